#!/bin/sh
# Every crate's kernels under NVIDIA's compute-sanitizer: memcheck, racecheck and synccheck.
#
#     sanitize/run.sh build FOLDER             builds the tests of the cases and the command, copies them to FOLDER
#     sanitize/run.sh FOLDER [PATTERN...]      runs the cases (see `cases`) that contain one of PATTERN
#
# The second needs no Rust: this folder, FOLDER, a GPU (two for the cases of two), NVRTC and compute-sanitizer
# (on PATH, in CUDA_HOME, or named by COMPUTE_SANITIZER). CROSSWARP_CACHE names the cache of compiled kernels;
# every case runs without a tool first, which fills it. SANITIZE_SECONDS limits a run (300), SANITIZE_TOOLS
# the tools (memcheck,racecheck,synccheck), SANITIZE_GPUS the cases to those of so many GPUs (as many as there
# are), SANITIZE_LOGS is where logs go (FOLDER/logs).
#
# A report that `accepted` does not name fails. Exit code: 0 clean, 1 not, 2 something is missing.
set -u
here=$(cd "$(dirname -- "$0")" && pwd) || exit 2

missing() {
    echo "sanitize: $*" >&2
    exit 2
}

build() {
    mkdir -p "$1" || exit 2
    folder=$(cd "$1" && pwd)
    cd "$here/.." || exit 2
    for crate in crosswarp-cuda crosswarp-prim crosswarp-solve; do
        # What the cases run, and no more: others take minutes.
        tests=$(sed -n "s/^[0-9]* [a-z,]* $crate\.\([a-z_]*\) .*/--test \1/p" "$here/cases" | sort -u)
        built=$(cargo test --release -p "$crate" $tests --no-run 2>&1) || missing "$crate does not build:
$built"
        printf '%s\n' "$built" | sed -n 's/.*Executable tests\/\(.*\) (\(.*\))$/\1 \2/p' |
            while read -r source executable; do
                name=${source%/main.rs}
                cp "$executable" "$folder/$crate.${name%.rs}"
            done || exit 2
    done
    cargo build --release -p crosswarp-cli || exit 2
    cp "${CARGO_TARGET_DIR:-target}/release/crosswarp" "$folder/" || exit 2
    ls "$folder"
}

[ $# -ge 1 ] || missing "usage: sanitize/run.sh build FOLDER, or sanitize/run.sh FOLDER [PATTERN...]"
if [ "$1" = build ]; then
    [ $# -eq 2 ] || missing "usage: sanitize/run.sh build FOLDER"
    build "$2"
    exit 0
fi
folder=$(cd "$1" && pwd) || missing "no folder $1; \`sanitize/run.sh build $1\` makes it"
shift

sanitizer=
for place in "${COMPUTE_SANITIZER-}" "$(command -v compute-sanitizer)" \
    "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" /usr/local/cuda/bin/compute-sanitizer; do
    if [ -n "$place" ] && [ -x "$place" ]; then
        sanitizer=$place
        break
    fi
done
[ -n "$sanitizer" ] || missing "compute-sanitizer is not on PATH nor in CUDA_HOME; install the CUDA toolkit, \
or the Python package nvidia-cuda-sanitizer-api and name its nvidia/cu13/bin/compute-sanitizer in COMPUTE_SANITIZER"

# The GPUs that may be used: those in CUDA_VISIBLE_DEVICES, else all.
visible=${CUDA_VISIBLE_DEVICES-}
if [ -z "$visible" ]; then
    visible=$(ls /dev | sed -n 's/^nvidia\([0-9][0-9]*\)$/\1/p' | sort -n |
        awk '{ print NR - 1 }' | paste -sd,)
fi
have=$(printf '%s' "$visible" | awk -F, '{ print NF }')
[ "${have:-0}" -gt 0 ] || missing "no GPU"
most=${SANITIZE_GPUS:-$have}

limit=${SANITIZE_SECONDS:-300}
tools=${SANITIZE_TOOLS:-memcheck,racecheck,synccheck}
logs=${SANITIZE_LOGS:-$folder/logs}
mkdir -p "$logs" || exit 2
table=$logs/table
: >"$table" || exit 2
# A test that would be skipped fails.
export CROSSWARP_REQUIRE_GPU=1
# All types of a verb share its code of synchronization.
export CROSSWARP_ONE_TYPE=1

row() { # case, tool, result, seconds
    printf '%-70s %-10s %-22s %6s\n' "$1" "$2" "$3" "$4" | tee -a "$table"
}

wanted() { # case
    [ -n "$patterns" ] || return 0
    while IFS= read -r pattern; do
        case $1 in *"$pattern"*) return 0 ;; esac
    done <<PATTERNS
$patterns
PATTERNS
    return 1
}
patterns=$(for pattern in "$@"; do printf '%s\n' "$pattern"; done)

result=0
number=0
while read -r gpus of_case executable arguments; do
    case $gpus in '' | '#'*) continue ;; esac
    name="$gpus GPU: $executable $arguments"
    number=$((number + 1))
    wanted "$name" || continue
    [ "$gpus" -le "$most" ] || continue
    short=$(printf '%.70s' "$name")
    if [ "$gpus" -gt "$have" ]; then
        row "$short" - "needs $gpus GPUs" -
        result=1
        continue
    fi
    program=$folder/$executable
    [ -x "$program" ] || missing "no $program; \`sanitize/run.sh build $folder\` makes it"
    # Arguments are words without blanks.
    case $executable in
        crosswarp) set -- "$program" $arguments ;;
        *) set -- "$program" --exact $arguments --nocapture --test-threads 1 ;;
    esac
    CUDA_VISIBLE_DEVICES=$(printf '%s' "$visible" | cut -d, -f"1-$gpus")
    export CUDA_VISIBLE_DEVICES

    # Without a tool: does it pass at all, and is it all there?
    output=$logs/$number.plain
    began=$(date +%s)
    timeout -k 10 "$limit" "$@" >"$output" 2>&1 </dev/null
    ended=$?
    said=passed
    [ "$ended" -eq 0 ] || said="FAILED ($ended)"
    if [ "$executable" != crosswarp ]; then
        set -f
        count=$(set -- $arguments && echo $#)
        set +f
        grep -q "^test result: ok. $count passed" "$output" || said="FAILED ($ended)"
    fi
    row "$short" none "$said" $(($(date +%s) - began))
    if [ "$said" != passed ]; then
        tail -n 20 "$output"
        result=1
        continue
    fi

    for tool in memcheck racecheck synccheck; do
        case ",$of_case," in *",$tool,"*) ;; *) continue ;; esac
        case ",$tools," in *",$tool,"*) ;; *) continue ;; esac
        output=$logs/$number.$tool
        rm -f "$output.log"
        began=$(date +%s)
        # What it finds by itself of mbarriers made in PTX is too few.
        barriers=
        [ "$tool" = memcheck ] || barriers="--num-cuda-barriers 64"
        timeout -k 10 "$limit" "$sanitizer" --tool "$tool" $barriers --target-processes application-only --kill \
            --demangle simple --print-limit 10000 --log-file "$output.log" "$@" >"$output" 2>&1 </dev/null
        ended=$?
        seconds=$(($(date +%s) - began))
        touch "$output.log"
        reports=$(awk -v tool="$tool" -v accepted="$here/accepted" -f "$here/reports.awk" "$output.log")
        verdict=$(printf '%s\n' "$reports" | tail -n 1)
        case $ended:$verdict in
            124:* | 137:*) said="TIME ($limit s)" ;;
            0:"accepted 0 refused 0") said=clean ;;
            0:*"refused 0") said=$verdict ;;
            0:*) said="NOT CLEAN, ${verdict#* * }" ;;
            *) said="FAILED ($ended)" ;;
        esac
        row "$short" "$tool" "$said" "$seconds"
        case $said in
            clean | accepted*) ;;
            *)
                result=1
                printf '%s\n' "$reports" | sed '$d' | head -n 60
                [ "$ended" -eq 0 ] || tail -n 20 "$output"
                ;;
        esac
    done
done <"$here/cases"

echo
echo "logs in $logs; kernels cached in ${CROSSWARP_CACHE:-the cache of the user}"
cat "$table"
[ -s "$table" ] || missing "no case matches"
if [ "$result" -eq 0 ]; then
    echo "sanitize: clean"
else
    echo "sanitize: not clean" >&2
fi
exit "$result"
