#!/bin/sh
# Tests of the reductions on a GPU under NVIDIA's compute-sanitizer: memcheck, then racecheck.
#
#     crosswarp-prim/sanitize.sh            builds the tests
#     crosswarp-prim/sanitize.sh TESTS      takes the executable of device_reduce.rs
#
# Exit code: 0 clean, 1 the sanitizer found something or a test failed, 2 something is missing. Takes some
# 10 s with a warm cache of kernels.
set -u

missing() {
    echo "sanitize.sh: $*" >&2
    exit 2
}

tests=${1-}
if [ -z "$tests" ]; then
    cd "$(dirname -- "$0")/.." || exit 2
    built=$(cargo test -p crosswarp-prim --test device_reduce --no-run 2>&1) || missing "the tests do not build:
$built"
    tests=$(printf '%s\n' "$built" | sed -n 's/.*Executable .*(\(.*\))$/\1/p')
fi
[ -x "$tests" ] || missing "no test executable at '$tests'"
case $tests in
    */*) ;;
    *) tests=./$tests ;;
esac
sanitizer=$(command -v compute-sanitizer) || sanitizer=${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer
[ -x "$sanitizer" ] || missing "compute-sanitizer is not on PATH nor in CUDA_HOME; install the CUDA toolkit"

result=0
check() { # tool, test
    # Without the sanitizer first, which also fills the cache of kernels.
    plain=$("$tests" --exact "$2" --nocapture 2>&1) || { printf '%s\n' "$plain"; exit 1; }
    skipped=$(printf '%s\n' "$plain" | sed -n "s/.*skipped: //p")
    [ -z "$skipped" ] || missing "$skipped"
    case $plain in
        *"1 passed"*) ;;
        *) missing "'$tests' has no test $2" ;;
    esac
    echo "== $1 $2"
    "$sanitizer" --tool "$1" --report-api-errors no --error-exitcode 1 "$tests" --exact "$2" || result=1
}
# Sums, extrema, products and exact sums; segments with a full queue; arrays of which PEs share leaves.
for test in a_graph_runs_again_on_new_values offsets_that_go_down_do_no_harm; do
    check memcheck "$test"
    check racecheck "$test"
done
check memcheck cuts_between_pes_do_not_show
[ "$result" -eq 0 ] && echo "sanitize.sh: clean" || echo "sanitize.sh: not clean" >&2
exit "$result"
