#!/bin/sh
# The device conformance test under NVIDIA's compute-sanitizer: memcheck, then racecheck.
#
#     crosswarp-cuda/sanitize.sh            builds the test
#     crosswarp-cuda/sanitize.sh TEST       takes the test executable given
#
# Exit code: 0 clean, 1 the sanitizer found something or the test failed, 2 something is missing.
#
# With one PE and with two on one GPU. The tools slow some threads down more than others, which has shown
# a race between PEs that no run without them did.
set -u
case=one_gpu_1_pe

missing() {
    echo "sanitize.sh: $*" >&2
    exit 2
}

test=${1-}
if [ -z "$test" ]; then
    cd "$(dirname -- "$0")/.." || exit 2
    built=$(cargo test -p crosswarp-cuda --test conformance --no-run 2>&1) || missing "the test does not build:
$built"
    test=$(printf '%s\n' "$built" | sed -n 's/.*Executable .*(\(.*\))$/\1/p')
fi
[ -x "$test" ] || missing "no test executable at '$test'"
case $test in
    */*) ;;
    *) test=./$test ;;
esac

sanitizer=
for place in "$(command -v compute-sanitizer)" \
    "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" /usr/local/cuda/bin/compute-sanitizer; do
    if [ -x "$place" ]; then
        sanitizer=$place
        break
    fi
done
[ -n "$sanitizer" ] || missing "compute-sanitizer is not on PATH nor in CUDA_HOME; install the CUDA toolkit, \
or the Python package nvidia-cuda-sanitizer-api and put its nvidia/cu13/bin on PATH"

# Without the sanitizer first: is there a GPU, and is there anything to look into? (The device test skips
# itself without a GPU.) This also fills the cache of compiled kernels.
plain=$("$test" --exact "$case" --nocapture 2>&1)
ended=$?
skipped=$(printf '%s\n' "$plain" | sed -n "s/.*$case: skipped: //p")
[ -z "$skipped" ] || missing "$skipped"
if [ "$ended" -ne 0 ]; then
    printf '%s\n' "$plain"
    echo "sanitize.sh: the test fails without the sanitizer already" >&2
    exit 1
fi
case $plain in
    *"1 passed"*) ;;
    *) missing "'$test' has no test $case" ;;
esac

result=0
check() {
    echo "== $*"
    # The launch's argument check asks the driver for one parameter too many on purpose, which the tool
    # would report as an error of the API.
    for pes in "$case" one_gpu_2_pes; do
        "$sanitizer" --tool "$@" --report-api-errors no --error-exitcode 1 \
            "$test" --exact "$pes" --nocapture || result=1
    done
}
check memcheck
# Hazards in shared memory: all kernels of the case, with `levels` in five launch shapes and the
# collectives of whole blocks.
check racecheck
if [ "$result" -eq 0 ]; then
    echo "sanitize.sh: clean"
else
    echo "sanitize.sh: not clean" >&2
fi
exit "$result"
