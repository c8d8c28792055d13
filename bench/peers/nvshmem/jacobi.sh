#!/usr/bin/env bash
# jacobi.sh CROSSWARP NVSHMEM OUTPUT [SOURCES [TIMES]]: NVIDIA's Jacobi sample, unchanged, with both libraries, alternated.
#
# The sample is of https://github.com/NVIDIA/multi-gpu-programming-models (BSD licence), at the commit below; nothing of it
# is kept here. SOURCES: a folder that has it (its nvshmem/), where git can't fetch it. CROSSWARP: a prefix of `crosswarp
# install --nvshmem --prefix`, built against by the sample's own Makefile, given NVSHMEM_HOME. NVSHMEM: a folder with
# NVIDIA's include and lib, or - for none. OUTPUT: a file of JSON lines, written anew. TIMES: runs of each (5).
#
# Every mode runs on 1, 2, 4, ... GPUs; the sample compares its field with that of one GPU, and a run whose fields differ
# is a failure. Without a GPU it is built only. nvcc is that of $CUDA_HOME or the PATH; the sample wants mpic++, CUB and
# NVTX. $MPIRUN starts it (mpirun --allow-run-as-root); $SM: what is compiled for (90); $SIZE: its -nx and -ny (16384).
set -u -o pipefail
commit=9a600f5ea8f5e53614e30b7b36e9136107178dd8
[ $# -ge 3 ] && [ $# -le 5 ] || { sed -n '2p' "$0" >&2; exit 2; }
ours=$(readlink -f "$1") theirs=$2 output=$3 sources=${4:-} times=${5:-5}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
say() { echo "jacobi: $*" >&2; }

if [ -z "$sources" ]; then
    sources=$build/sources
    git init -q "$sources" && git -C "$sources" fetch -q --depth 1 \
        https://github.com/NVIDIA/multi-gpu-programming-models "$commit" && git -C "$sources" checkout -q FETCH_HEAD || exit 1
fi
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/nvcc}
nvcc=${nvcc:-$(command -v nvcc)} || { say "no nvcc: set CUDA_HOME"; exit 2; }
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")

# The Makefile links with libraries of the driver and the toolkit by names that neither drivers nor wheels have.
mkdir "$build/names"
for name in cuda nvidia-ml; do
    found=$(ldconfig -p | sed -n "s/.*lib$name\.so\.1 .*x86-64.* => //p" | head -n 1)
    if [ -n "$found" ]; then
        ln -s "$found" "$build/names/lib$name.so"
    else
        gcc -shared -Wl,-soname,lib$name.so.1 -o "$build/names/lib$name.so" -x c /dev/null
    fi
done
[ -e "$cuda/lib64/libcudart.so" ] || ln -s "$cuda"/lib/libcudart.so.* "$build/names/libcudart.so"
export LIBRARY_PATH=$build/names:$cuda/lib64:$cuda/lib CPATH=$cuda/include:$cuda/include/cccl

make_with() { # PROGRAM PREFIX [VARIABLE=VALUE...]
    cp -r "$sources/nvshmem" "$build/$1.made" && say "building against $2" &&
        make -s -C "$build/$1.made" "NVCC=$nvcc" "CUDA_HOME=$cuda" "NVSHMEM_HOME=$2" "BUILD_SM_ARCH=${SM:-90}" "${@:3}" >&2 &&
        mv "$build/$1.made/jacobi" "$build/$1"
}
make_with crosswarp "$ours" || exit 1
programs=(crosswarp)
if [ "$theirs" != - ]; then
    # Wheels have no libnvshmem, and no name without a number.
    theirs=$(readlink -f "$theirs")
    ln -s "$theirs/lib/libnvshmem_host.so.3" "$build/names/libnvshmem_host.so"
    make_with nvshmem "$theirs" "NVCC_LDFLAGS=-ccbin=mpic++ -L$build/names -L$theirs/lib -lnvshmem_host -lnvshmem_device \
-lcuda -lcudart -ldl -lnvidia-ml" || exit 1
    programs+=(nvshmem)
fi
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
[ "$gpus" -gt 0 ] || { say "built ${programs[*]}; not run: no GPU"; exit 0; }

export NVSHMEM_DISABLE_NVLS=1 NVSHMEM_REMOTE_TRANSPORT=none
modes=("" "-use_block_comm" "-norm_overlap" "-neighborhood_sync" "-norm_overlap -neighborhood_sync"
    "-use_block_comm -norm_overlap -neighborhood_sync")
: >"$output" || exit 1
failed=0
for ((pes = 1; pes <= gpus; pes *= 2)); do
    for mode in "${modes[@]}"; do
        for round in $(seq "$times"); do
            order=("${programs[@]}")
            [ $((round % 2)) = 0 ] || order=($(printf '%s\n' "${programs[@]}" | tac))
            for program in "${order[@]}"; do
                home=$ours
                [ "$program" = crosswarp ] || home=$theirs
                # With -csv the sample prints one line: its name, sizes, seconds on PEs and on one GPU.
                # shellcheck disable=SC2086
                if line=$(LD_LIBRARY_PATH=$home/lib timeout -k 5 120 ${MPIRUN:-mpirun --allow-run-as-root} -np "$pes" \
                    "$build/$program" -csv -nx "${SIZE:-16384}" -ny "${SIZE:-16384}" $mode 2>"$build/log" | grep "^nvshmem"); then
                    printf '{"impl":"%s","pes":%d,"mode":"%s","round":%d,"line":"%s"}\n' "$program" "$pes" "$mode" "$round" \
                        "$line" | tee -a "$output"
                else
                    say "$program on $pes GPUs, mode '$mode': failed: $(tail -n 2 "$build/log")"
                    failed=1
                fi
            done
        done
    done
done
exit $failed
