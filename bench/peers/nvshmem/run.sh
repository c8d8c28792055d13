#!/usr/bin/env bash
# run.sh CROSSWARP NVSHMEM OUTPUT [PES [TIMES]]: calls.cu, the same source, against both libraries, alternated.
#
# CROSSWARP: a prefix of `crosswarp install --nvshmem --prefix`. NVSHMEM: NVIDIA's, a folder with include and lib (of the
# wheel nvidia-nvshmem-cu13: site-packages/nvidia/nvshmem). OUTPUT: a file of JSON lines, written anew; the table goes to
# standard output. PES: how many GPUs, all if 0 or not said. TIMES: runs of each (9). A run that takes more than $LIMIT
# seconds (120) is ended. nvcc is that of $CUDA_HOME or the PATH, of a CUDA version not above the driver's; Crosswarp
# needs NVRTC at run time (CROSSWARP_NVRTC). $ARCH: what is compiled for (native). $RDC=false leaves Crosswarp's without
# relocatable device code, which it does not need; both have it otherwise.
set -u -o pipefail
[ $# -ge 3 ] && [ $# -le 5 ] || { sed -n '2p' "$0" >&2; exit 2; }
ours=$(readlink -f "$1") theirs=$(readlink -f "$2") output=$3 pes=${4:-0} times=${5:-9}
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
say() { echo "peers: $*" >&2; }

nvcc=${CUDA_HOME:+$CUDA_HOME/bin/nvcc}
nvcc=${nvcc:-$(command -v nvcc)} || { say "no nvcc: set CUDA_HOME"; exit 2; }
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
for root in "$ours" "$theirs"; do
    [ -e "$root/include/nvshmem.h" ] && [ -e "$root/lib/libnvshmem_host.so.3" ] ||
        { say "$root has no include/nvshmem.h and lib/libnvshmem_host.so.3"; exit 2; }
done

# Wheels have no links for the linker, neither CUDA's nor NVSHMEM's.
compile() { # PROGRAM PREFIX RDC
    mkdir -p "$build/$1.lib" && ln -sf "$2/lib/libnvshmem_host.so.3" "$build/$1.lib/libnvshmem_host.so"
    say "building against $2"
    "$nvcc" -O3 -std=c++17 "-arch=${ARCH:-native}" "-rdc=$3" -I "$2/include" -o "$build/$1" "$here/calls.cu" \
        -L "$build/$1.lib" -L "$2/lib" -L "$cuda/lib64" -L "$cuda/lib" -lnvshmem_host -lnvshmem_device \
        -Xlinker "-rpath=$2/lib" >&2
}
compile crosswarp "$ours" "${RDC:-true}" && compile nvshmem "$theirs" true || exit 1

export NVSHMEM_DISABLE_NVLS=1
printf '{"machine":"%s","driver":"%s","date":"%s"}\n' \
    "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" \
    "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)" \
    "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$output" || exit 1
failed=0
for round in $(seq "$times"); do
    # Who is first changes.
    order="nvshmem crosswarp"
    [ $((round % 2)) = 0 ] || order="crosswarp nvshmem"
    for program in $order; do
        say "round $round: $program"
        # What libraries say on standard output is kept out of the result.
        timeout -k 5 "${LIMIT:-120}" "$build/$program" "$pes" |
            sed -n "s/^{\"impl\"/{\"round\":$round,&/; s/,{/,/p" >>"$output" || { say "$program failed"; failed=1; }
    done
done
"$here/table.py" "$output" || failed=1
exit "$failed"
