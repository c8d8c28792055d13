#!/bin/sh
# suites.sh SOURCE... [PES...]: builds every C and C++ program below the folders SOURCE with oshcc and oshc++,
# runs each on so many PEs (without numbers: 2, 3 and 4) with oshrun, and prints what passed and what did not.
# Ends with 1 if anything failed that is not named below.
#
# Made for two public suites, of which nothing is kept here: tests-sos
# (https://github.com/openshmem-org/tests-sos) and shmemvv (https://github.com/michael-beebe/shmemvv).
# It takes any folder whose files each are a program; files without `main` serve those beside them.
#
#   OSHCC, OSHCXX, OSHRUN  (from PATH)  what compiles and runs
#   SUITE_TIMEOUT          (300)        seconds for one run
#   SUITE_ONLY                          a pattern of grep: only files whose path matches
set -u
oshcc=${OSHCC:-oshcc} oshcxx=${OSHCXX:-oshc++} oshrun=${OSHRUN:-oshrun}
limit=${SUITE_TIMEOUT:-300}

# What does not pass, or not always, file by file: a path's end, `build`, the numbers of PEs or `all`, and why.
expected() {
    race='PE 0 reads the others'"'"' verdicts, which they may not have written yet (no barrier)'
    sandia='tests a function of Sandia OpenSHMEM alone'
    cat <<END
c11/collectives/c11_shmem_sync.c|all|$race
c11/collectives/c11_shmem_reduce.c|all|$race
c11/atomics/c11_shmem_atomic_fetch.c|all|$race
c11/atomics/c11_shmem_atomic_fetch_nbi.c|all|$race
shmemx/c11_test_shmem_ibget.c|build|$sandia
shmemx/c11_test_shmem_ibput.c|build|$sandia
shmemx/cxx_test_shmem_ibget.cpp|build|$sandia
shmemx/cxx_test_shmem_ibput.cpp|build|$sandia
spec-example/hybrid_mpi_mapping_id.c|build|needs an MPI
spec-example/hybrid_mpi_mapping_id_shmem_comm.c|build|needs an MPI
END
}

sources= pes=
for argument in "$@"; do
    case $argument in
    *[!0-9]*)
        [ -d "$argument" ] || { echo "suites.sh: no folder $argument" >&2; exit 2; }
        sources="$sources $(cd "$argument" && pwd)"
        ;;
    *) pes="$pes $argument" ;;
    esac
done
[ -n "$sources" ] || { sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
pes=${pes:-2 3 4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/logs"
cd "$work" || exit 2
passed=0 failed=0 known=0 skipped=0

# Why a file's run on so many PEs is expected to fail; nothing if it is not.
reason() {
    expected | while IFS='|' read -r path numbers why; do
        case $1 in *"$path") ;; *) continue ;; esac
        case " $numbers " in *" $2 "* | " all ") echo "$why"; break ;; esac
    done
}

# file, PEs, what happened
fails() {
    why=$(reason "$1" "$2")
    if [ -n "$why" ]; then
        known=$((known + 1))
        echo "expected  $2  $1: $why"
    else
        failed=$((failed + 1))
        echo "FAILED    $2  $1: $3"
    fi
}

compile() {
    set -- -I"$(dirname "$1")" "$@"
    case $2 in
    *.c) set -- "$oshcc" -std=gnu11 "$@" ;;
    *) set -- "$oshcxx" -std=c++17 "$@" ;;
    esac
    # HAVE_…: as tests-sos's configuration finds it. Deprecated functions, too, where a file asks for nothing
    # else by that.
    set -- "$@" -O2 -w -pthread -fopenmp -DHAVE_SHMEMX_WTIME
    # shellcheck disable=SC2086 # the folders are words
    "$@" -DENABLE_DEPRECATED_TESTS $includes 2>/dev/null || "$@" $includes
}

for source in $sources; do
    includes=$(find "$source" -type d -name include ! -path '*/mpp*' -exec echo "-I{}" \; | tr '\n' ' ')
    files=$(find "$source" \( -name '*.c' -o -name '*.cpp' -o -name '*.cc' -o -name '*.cxx' \) | sort)
    rm -f helpers.a
    for file in $files; do
        grep -q '\bmain *(' "$file" && continue
        compile "$file" -c -o "$(basename "$file").o" 2>/dev/null && ar -cr helpers.a "$(basename "$file").o"
    done
    [ -e helpers.a ] || ar -cr helpers.a
    for file in $files; do
        grep -q '\bmain *(' "$file" || continue
        echo "$file" | grep -q -- "${SUITE_ONLY:-.}" || continue
        name=${file#"$(dirname "$source")"/}
        if ! compile "$file" helpers.a -lm -o program >output 2>&1; then
            fails "$name" build "$(grep -m 1 -E 'error|undefined' output | cut -c 1-160)"
            continue
        fi
        for n in $pes; do
            "$oshrun" -n "$n" --timeout "$limit" ./program </dev/null >output 2>&1
            code=$?
            if [ $code -eq 77 ]; then
                skipped=$((skipped + 1))
            elif [ $code -ne 0 ]; then
                fails "$name" "$n" "code $code: $(grep -a -v '^ *$' output | tail -n 2 | tr '\n' ' ' | cut -c 1-200)"
            elif grep -a -q 'FAILED' output; then
                fails "$name" "$n" "$(grep -a -m 1 FAILED output | cut -c 1-160)"
            else
                passed=$((passed + 1))
            fi
        done
    done
done
echo "$passed passed, $failed failed, $known failed as expected, $skipped skipped by themselves, on $pes PEs"
[ "$failed" -eq 0 ]
