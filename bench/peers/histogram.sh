#!/usr/bin/env bash
# Measures CUB's HistogramEven and torch.bincount on the samples of `crosswarp bench histogram`, and
# writes their JSON lines.
#
#     bench/peers/histogram.sh OUTPUT     OUTPUT: a file, written anew
#
# Needs nvcc with CUB (a CUDA toolkit, on the PATH or in $CUDA_HOME) for the one, PyTorch for the other.
# What is missing is said and left out. Ends with 1 if a peer failed, 2 if there was nothing to run.
set -u -o pipefail

if [ $# -ne 1 ]; then
    echo "usage: $0 OUTPUT" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d "${TMPDIR:-/tmp}/crosswarp-peers.XXXXXX")
trap 'rm -rf "$build"' EXIT
: >"$1" || exit 1
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/}nvcc
ran=0 failed=0
if command -v "$nvcc" >/dev/null; then
    ran=1
    "$nvcc" -O3 -std=c++17 -arch=native -o "$build/cub_histogram" "$here/cub_histogram.cu" &&
        timeout 300 "$build/cub_histogram" >>"$1" || failed=1
else
    echo "peers: no nvcc: set CUDA_HOME or install a CUDA toolkit" >&2
fi
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    ran=1
    timeout 300 python3 "$here/torch_histogram.py" >>"$1" || failed=1
else
    echo "peers: no PyTorch that sees a GPU" >&2
fi
[ "$ran" -eq 1 ] || exit 2
exit "$failed"
