#!/usr/bin/env bash
# flashinfer.sh PREFIX [SOURCES]: compiles the part of FlashInfer that is written for NVSHMEM, unchanged, against an
# installation of `crosswarp install --nvshmem --prefix PREFIX`, and links it into a library. Where there are GPUs, it runs
# FlashInfer's all-reduce of four ranks on them, with the values checked (flashinfer.cu), and says "passed".
#
# FlashInfer (https://github.com/flashinfer-ai/flashinfer, Apache-2.0) is fetched at the commit below, or taken from the
# folder SOURCES; nothing of it is kept here. Its kernels are templates that its build fills in by a generator; here two of
# them, of those without multicast, in the way its generator does. nvcc is that of $CUDA_HOME or the PATH; tvm-ffi comes by
# pip, or its headers from the folder $TVM_FFI, beside which its library is in lib. $LIMIT: seconds for the run (300).
# $COMPILE_ONLY: if set, nothing is run.
set -eu -o pipefail
commit=fb28d7242b3506a2348265962041acc1fb56cca4
[ $# -ge 1 ] && [ $# -le 2 ] || { sed -n '2p' "$0" >&2; exit 2; }
prefix=$(readlink -f "$1") sources=${2:-}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/nvcc}
nvcc=${nvcc:-$(command -v nvcc)} || { echo "no nvcc: set CUDA_HOME" >&2; exit 2; }
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
if [ -z "$sources" ]; then
    sources=$build/sources
    git init -q "$sources"
    git -C "$sources" fetch -q --depth 1 https://github.com/flashinfer-ai/flashinfer "$commit"
    git -C "$sources" checkout -q FETCH_HEAD
fi
tvm=${TVM_FFI-}
if [ -z "$tvm" ]; then
    python3 -m pip install --quiet --no-deps --target "$build/tvm" apache-tvm-ffi
    tvm=$build/tvm/tvm_ffi/include
fi
here=$(cd "$(dirname "$0")" && pwd)
cat >"$build/kernels.cu" <<'KERNELS'
#include "flashinfer/comm/mixed_comm.cuh"
namespace flashinfer {
namespace mixed_comm {
template __global__ void allreduce_kernel<1, 2, 1, true, false, MixedCommMode::OPT_WAITS_UC, nv_half>(
    MixedCommArgs<2, 1, true, false, MixedCommMode::OPT_WAITS_UC, nv_half> const);
template __global__ void allgather_kernel<1, 1, 2, false, true, MixedCommMode::OPT_WAITS_UC, nv_bfloat16>(
    MixedCommArgs<1, 2, false, true, MixedCommMode::OPT_WAITS_UC, nv_bfloat16> const);
}  // namespace mixed_comm
}  // namespace flashinfer
KERNELS
for source in "$build/kernels.cu" "$sources/csrc/mixed_comm.cu"; do
    "$nvcc" -std=c++17 -arch=sm_90 -rdc=true -Xcompiler -fPIC -I "$prefix/include" -I "$sources/include" \
        -I "$sources/csrc" -I "$tvm" -c "$source" -o "$build/$(basename "$source" .cu).o"
done
# Kernels that were not filled in stay open, as in a library of which a part was left out.
"$nvcc" -arch=sm_90 -dlink -o "$build/linked.o" "$build/kernels.o" -L "$prefix/lib" -L "$cuda/lib64" -L "$cuda/lib" \
    -lnvshmem_device
echo "FlashInfer's mixed collectives compile unchanged"
"$nvcc" -std=c++17 -arch=sm_90 -rdc=true -I "$prefix/include" -I "$sources/include" -I "$sources/csrc" -I "$tvm" \
    "$here/flashinfer.cu" -o "$build/flashinfer" -L "$prefix/lib" -L "$tvm/../lib" -L "$cuda/lib64" -L "$cuda/lib" \
    -lnvshmem_host -lnvshmem_device -ltvm_ffi -Xlinker "-rpath=$prefix/lib" -Xlinker "-rpath=$tvm/../lib"
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
if [ -n "${COMPILE_ONLY-}" ] || [ "$gpus" = 0 ]; then
    echo "not run: $gpus GPUs${COMPILE_ONLY:+, and COMPILE_ONLY is set}"
else
    timeout -k 5 "${LIMIT:-300}" "$build/flashinfer"
fi
