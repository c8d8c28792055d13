#!/bin/sh
# suites.sh SOURCE... [PES...]: builds every C and C++ program below the folders SOURCE with oshcc and oshc++,
# runs each on so many PEs (without numbers: 2, 3 and 4) with oshrun, and prints what passed and what did not.
# PES is a number, or the PEs of each of several hosts, as in 1+3. Ends with 1 if anything failed that is not named below.
#
# Made for two public suites, of which nothing is kept here: tests-sos
# (https://github.com/openshmem-org/tests-sos) and shmemvv (https://github.com/michael-beebe/shmemvv).
# It takes any folder whose files each are a program; files without `main` serve those beside them. A file is built
# as it stands, and again with each of the macros below that makes another program of it.
#
#   OSHCC, OSHCXX, OSHRUN  (from PATH)  what compiles and runs
#   SUITE_TIMEOUT          (300)        seconds for one run
#   SUITE_ONLY                          a pattern of grep: only files whose path matches
#   SUITE_HOSTS            (this machine, which plays them all)  names of hosts, and
#   SUITE_RSH              (ssh)        what starts a command on one of them
set -u
oshcc=${OSHCC:-oshcc} oshcxx=${OSHCXX:-oshc++} oshrun=${OSHRUN:-oshrun}
limit=${SUITE_TIMEOUT:-300}

# What does not pass, or not always: the end of a path and of what it is built with, `build`, the numbers of PEs
# or `all`, and why.
expected() {
    race='PE 0 reads the others'"'"' verdicts, which they may not have written yet (no barrier)'
    sandia='tests a function of Sandia OpenSHMEM alone'
    cat <<END
c11/collectives/c11_shmem_sync.c|all|$race
c11/collectives/c11_shmem_sync_all.c|all|$race
c11/collectives/c11_shmem_reduce.c|all|$race
c11/atomics/c11_shmem_atomic_fetch.c|all|$race
c11/atomics/c11_shmem_atomic_fetch_nbi.c|all|$race
shmemx/c11_test_shmem_ibget.c|build|$sandia
shmemx/c11_test_shmem_ibput.c|build|$sandia
shmemx/cxx_test_shmem_ibget.cpp|build|$sandia
shmemx/cxx_test_shmem_ibput.cpp|build|$sandia
shmemx/gettid_register.c|build|$sandia
shmemx/perf_counter.c|build|$sandia
shmemx/shmem_ct.c|build|$sandia
shmemx/shmem_malloc_with_hints.c|build|$sandia
performance/tests/shmemlatency.c|3 4|is for two PEs: the others wait for a signal that nobody sends
spec-example/hybrid_mpi_mapping_id.c|build|needs an MPI
spec-example/hybrid_mpi_mapping_id_shmem_comm.c|build|needs an MPI
END
    for operation in add cswap fetch inc set swap; do
        for file in unit/c11_test_shmem_atomic_$operation.c \
            unit/cxx_test_shmem_atomic_$operation.cpp shmemx/cxx_test_shmem_atomic_$operation.cpp; do
            echo "$file with ENABLE_DEPRECATED_TESTS|build|old names of atomics have signed types only in OpenSHMEM"
        done
    done
}

sources= pes=
for argument in "$@"; do
    case $argument in
    *[!0-9+]* | +* | *+ | *++*)
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

# How many PEs there are on all hosts.
total() { echo $(($1)); }

# Why a file's run on so many PEs is expected to fail; nothing if it is not.
reason() {
    case $2 in build) all_pes=build ;; *) all_pes=$(total "$2") ;; esac
    expected | while IFS='|' read -r path numbers why; do
        case $1 in *"$path") ;; *) continue ;; esac
        for number in $numbers; do
            case $number in "$all_pes" | all) echo "$why"; break 2 ;; esac
        done
    done
}

# Runs what was made of a file on so many PEs.
launch() {
    case $2 in
    *+*) ;;
    *) "$oshrun" -n "$2" --timeout "$limit" ./program; return ;;
    esac
    # Benchmarks that move gigabytes, or wait for a million answers, one after the other: fewer of each.
    case $1 in
    */shmem_perf_suite/*) few='-p 5 -n 10 -e 65536' ;;
    *) few= ;;
    esac
    if [ -z "${SUITE_HOSTS-}" ]; then
        # shellcheck disable=SC2086 # options are words
        CROSSWARP_FAKE_HOSTS=$2 "$oshrun" -n "$(total "$2")" --timeout "$limit" ./program $few
        return
    fi
    hosts= left=$SUITE_HOSTS
    for each in $(echo "$2" | tr + ' '); do
        host=${left%% *} left=${left#"${left%% *}"} left=${left# }
        [ -n "$host" ] || { echo "suites.sh: $2 wants more hosts than '$SUITE_HOSTS'"; return 2; }
        hosts=$hosts${hosts:+,}$host:$each
    done
    # shellcheck disable=SC2086
    "$oshrun" --rsh "${SUITE_RSH:-ssh}" --hosts "$hosts" --timeout "$limit" "$PWD/program" $few
}

# file with a macro, PEs, what happened
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

# What tests-sos's makefiles set, for all files or for some.
macros='ENABLE_DEPRECATED_TESTS ENABLE_THREADS TEST_PSHMEM USE_GET_PUT USE_NONBLOCKING_API'
# What Sandia OpenSHMEM had before OpenSHMEM 1.6 did.
renamed='-DSHMEMX_TEAM_NODE=SHMEM_TEAM_NODE -Dshmemx_signal_add=shmem_signal_add
    -Dshmemx_signal_set=shmem_ctx_signal_set -Dshmemx_long_sum_inscan=shmem_long_sum_inscan
    -Dshmemx_long_sum_exscan=shmem_long_sum_exscan'

compile() {
    set -- -I"$(dirname "$1")" "$@"
    # The dialects that compilers have of themselves.
    case $2 in
    *.c) set -- "$oshcc" -std=gnu11 "$@" ;;
    *) set -- "$oshcxx" -std=gnu++17 "$@" ;;
    esac
    # HAVE_…: as tests-sos's configuration finds it.
    # shellcheck disable=SC2086 # the folders and the names are words
    "$@" -O2 -w -pthread -fopenmp -DHAVE_SHMEMX_WTIME $renamed $includes
}

# The macros that make another program of a file, each on a line, after an empty line for the file as it stands.
variants() {
    echo
    compile "$1" -E -P >plain 2>/dev/null || return
    for macro in $macros; do
        grep -q "$macro" "$1" "$(dirname "$1")"/*.h 2>/dev/null || continue
        compile "$1" -E -P "-D$macro" 2>/dev/null | cmp -s plain - || echo "$macro"
    done
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
        variants "$file" >variants
        while read -r macro; do
            what=$name${macro:+ with $macro}
            if ! compile "$file" helpers.a -lm -o program ${macro:+"-D$macro"} >output 2>&1; then
                fails "$what" build "$(grep -m 1 -E 'error|undefined' output | cut -c 1-160)"
                continue
            fi
            for n in $pes; do
                launch "$file" "$n" </dev/null >output 2>&1
                code=$?
                if [ $code -eq 77 ]; then
                    skipped=$((skipped + 1))
                elif [ $code -ne 0 ]; then
                    end=$(grep -a -v '^ *$' output | tail -n 2 | tr '\n' ' ' | cut -c 1-200)
                    fails "$what" "$n" "code $code: $end"
                elif grep -a -q 'FAILED' output; then
                    fails "$what" "$n" "$(grep -a -m 1 FAILED output | cut -c 1-160)"
                else
                    passed=$((passed + 1))
                fi
            done
        done <variants
    done
done
echo "$passed passed, $failed failed, $known failed as expected, $skipped skipped by themselves, on $pes PEs"
[ "$failed" -eq 0 ]
