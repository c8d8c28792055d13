#!/usr/bin/env bash
# Builds the peer programs that can be built here, runs them, and writes their JSON lines.
#
#     bench/peers/run.sh OUTPUT [GPUS]     OUTPUT: a file, written anew; GPUS: how many, all if not said
#
# Looks for nvcc (with CUB) in $CUDA_HOME, on the PATH and in Python's site-packages; for NVSHMEM in $NVSHMEM_HOME
# and site-packages; for NCCL in $NCCL_HOME, site-packages and the system. What is missing is said and
# left out. Ends with 0 if every peer that was found has been measured, 1 if one failed, 2 if there was
# nothing to run.
set -u -o pipefail

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 OUTPUT [GPUS]" >&2
    exit 2
fi
output=$1
gpus=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d "${TMPDIR:-/tmp}/crosswarp-peers.XXXXXX")
trap 'rm -rf "$build"' EXIT

say() { echo "peers: $*" >&2; }

# First of the `nvidia` packages of python3 that holds PATH; prints the package's folder.
in_site_packages() {
    command -v python3 >/dev/null || return 1
    python3 - "$1" <<'PY'
import os, sys
for folder in sys.path:
    root = os.path.join(folder or ".", "nvidia")
    packages = sorted(os.listdir(root)) if os.path.isdir(root) else []
    for package in packages:
        if os.path.exists(os.path.join(root, package, sys.argv[1])):
            print(os.path.abspath(os.path.join(root, package)))
            sys.exit(0)
sys.exit(1)
PY
}

find_nvcc() {
    if [ -n "${CUDA_HOME:-}" ] && [ -x "$CUDA_HOME/bin/nvcc" ]; then echo "$CUDA_HOME/bin/nvcc"; return; fi
    command -v nvcc && return
    local package
    package=$(in_site_packages bin/nvcc) && echo "$package/bin/nvcc"
}

# The folder that has include/$2 and lib/$3 (or lib64): $1 if given, else site-packages, else /usr.
find_library() {
    local root folder
    for root in "$1" "$(in_site_packages "include/$2")" /usr/local /usr; do
        [ -n "$root" ] && [ -e "$root/include/$2" ] || continue
        for folder in lib lib64 lib/x86_64-linux-gnu lib/aarch64-linux-gnu; do
            if compgen -G "$root/$folder/$3*" >/dev/null; then echo "$root $root/$folder"; return; fi
        done
    done
    return 1
}

# Wheels have libNAME.so.N only; the linker wants libNAME.so. A link in the build folder gives it.
link_for_linker() { # library folder, NAME
    local found
    found=$(compgen -G "$1/lib$2.so" || compgen -G "$1/lib$2.so.*") || return 1
    ln -sf "$(echo "$found" | head -n 1)" "$build/lib$2.so"
}

nvcc=$(find_nvcc)
if [ -z "$nvcc" ]; then
    say "no nvcc: set CUDA_HOME, or install the CUDA toolkit or the nvidia-cuda-nvcc, -runtime and -crt wheels"
    exit 2
fi
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
cuda_libraries=()
for folder in "$cuda/lib64" "$cuda/lib"; do
    [ -d "$folder" ] && cuda_libraries+=("-L$folder")
done

found_gpus=0
arch=
if command -v nvidia-smi >/dev/null; then
    found_gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
fi
arch=${arch:-90}

compile() { # program, extra arguments
    local program=$1
    shift
    say "building $program for sm_$arch with $nvcc"
    "$nvcc" -O3 -std=c++17 "-arch=sm_$arch" -o "$build/$program" "$here/$program.cu" \
        "-L$build" ${cuda_libraries[@]+"${cuda_libraries[@]}"} "$@" >&2
}

built=()
failed=0
libraries=

if found=$(find_library "${NVSHMEM_HOME:-}" nvshmem.h libnvshmem_host.so); then
    read -r root folder <<<"$found"
    link_for_linker "$folder" nvshmem_host
    libraries=$libraries:$folder
    for program in nvshmem jacobi_nvshmem; do
        if compile "$program" -rdc=true "-I$root/include" "-L$folder" -lnvshmem_host -lnvshmem_device; then
            built+=("$program")
        else
            say "NVSHMEM was found in $root but $program.cu does not build"
            failed=1
        fi
    done
else
    say "no NVSHMEM: set NVSHMEM_HOME or install the nvidia-nvshmem-cu13 wheel"
fi

if found=$(find_library "${NCCL_HOME:-}" nccl.h libnccl.so); then
    read -r root folder <<<"$found"
    if link_for_linker "$folder" nccl && compile nccl "-I$root/include" -lnccl -lpthread; then
        built+=(nccl)
        libraries=$libraries:$folder
    else
        say "NCCL was found in $root but nccl.cu does not build"
        failed=1
    fi
else
    say "no NCCL: set NCCL_HOME or install the nvidia-nccl-cu13 wheel"
fi

if [ "$found_gpus" -lt 2 ] && [ "${#built[@]}" -gt 0 ]; then
    say "built ${built[*]}; not run: $found_gpus GPUs here, 2 or more needed"
    built=()
fi

# The programs below need one GPU. Toolkits have CUB in include/cccl.
if compile jacobi_sweep; then
    built+=(jacobi_sweep)
else
    say "jacobi_sweep.cu does not build"
    failed=1
fi
if [ -e "$cuda/include/cccl/cub/cub.cuh" ]; then
    if compile cub_reduce "-I$cuda/include/cccl" -cudart static; then
        built+=(cub_reduce)
    else
        say "CUB was found but cub_reduce.cu does not build"
        failed=1
    fi
else
    say "no CUB: install the CUDA toolkit or the nvidia-cuda-cccl wheel"
fi
if [ "${#built[@]}" -eq 0 ] || [ "$found_gpus" -lt 1 ]; then
    say "nothing to run: $found_gpus GPUs here"
    exit 2
fi

export LD_LIBRARY_PATH=${libraries#:}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Which machine this was, as the first line.
printf '{"machine":"%s","gpus":%s,"driver":"%s","date":"%s"}\n' \
    "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" "${gpus:-$found_gpus}" \
    "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)" \
    "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$output" || exit 1
for program in "${built[@]}"; do
    say "running $program"
    # A hung peer must not hang the script; the program's PEs end with it. Libraries that print to
    # stdout are kept out of the result.
    arguments=(${gpus:+"$gpus"})
    [ "$program" = jacobi_sweep ] || [ "$program" = cub_reduce ] && arguments=()
    if ! timeout 300 "$build/$program" ${arguments[@]+"${arguments[@]}"} | { grep '^{"impl"' >>"$output" || true; }; then
        say "$program failed"
        failed=1
    fi
done
say "$(grep -c '"impl"' "$output") rows in $output"
exit "$failed"
