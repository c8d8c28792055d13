#!/usr/bin/env bash
# Builds the programs of this folder, runs them, and writes their JSON lines, each with commit, machine and date.
#
#     bench/schemes/run.sh OUTPUT [PROGRAM...]     OUTPUT: a file, written anew; PROGRAM: banks, strided, device_queues,
#                                                  histogram, all_reduce, waits; all if not said
#
# Looks for nvcc in $CUDA_HOME, on the PATH and in Python's site-packages; `waits` needs cargo instead. What is missing
# is said and left out. CROSSWARP_COMMIT says the commit where git does not. Ends with 0 if all that could
# be run has been, 1 if a program failed, 2 if there was nothing to run.
set -u -o pipefail

if [ $# -lt 1 ]; then
    echo "usage: $0 OUTPUT [PROGRAM...]" >&2
    exit 2
fi
output=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
programs=("$@")
[ $# -gt 0 ] || programs=(banks strided device_queues histogram all_reduce waits)
build=$(mktemp -d "${TMPDIR:-/tmp}/crosswarp-schemes.XXXXXX")
trap 'rm -rf "$build"' EXIT

say() { echo "schemes: $*" >&2; }

find_nvcc() {
    if [ -n "${CUDA_HOME:-}" ] && [ -x "$CUDA_HOME/bin/nvcc" ]; then echo "$CUDA_HOME/bin/nvcc"; return; fi
    command -v nvcc && return
    command -v python3 >/dev/null && python3 - <<'PY'
import os, sys
for folder in sys.path:
    root = os.path.join(folder or ".", "nvidia")
    for package in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        nvcc = os.path.join(root, package, "bin", "nvcc")
        if os.path.exists(nvcc):
            print(os.path.abspath(nvcc))
            sys.exit(0)
sys.exit(1)
PY
}

commit=${CROSSWARP_COMMIT:-$(git -C "$root" describe --always --dirty --abbrev=7 --exclude='*' 2>/dev/null || echo unknown)}
gpus=0
arch=90
gpu=
if command -v nvidia-smi >/dev/null; then
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
    if [ "$gpus" -gt 0 ]; then
        arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
        gpu="$gpus x $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)"
    fi
fi
processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
nvcc=$(find_nvcc) || nvcc=

compile() { # program
    local cuda folder
    cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    local libraries=()
    for folder in "$cuda/lib64" "$cuda/lib"; do
        [ -d "$folder" ] && libraries+=("-L$folder")
    done
    "$nvcc" -O3 -std=c++17 "-arch=sm_$arch" -I "$root/crates/cuda/device" -I "$root/crates/prim/kernels" \
        ${libraries[@]+"${libraries[@]}"} -o "$build/$1" "$here/$1.cu" >&2
}

# Adds to OUTPUT what a program prints, each line with where it comes from.
ran=0 failed=0
run() { # machine, command...
    local machine=$1
    shift
    local facts
    facts=$(printf '{"commit":"%s","machine":"%s","date":"%s",' "$commit" "$machine" "$(date -u +%Y-%m-%dT%H:%M:%SZ)")
    ran=1
    timeout 300 "$@" >"$build/rows"
    local status=$?
    # The facts may hold any character that a pattern of sed would take for another.
    while IFS= read -r row; do
        [ "${row:0:1}" = "{" ] && printf '%s%s\n' "$facts" "${row:1}" >>"$output"
    done <"$build/rows"
    return $status
}

: >"$output" || exit 1
# All at once: each takes one core for seconds.
if [ -n "$nvcc" ]; then
    for program in "${programs[@]}"; do
        if [ -e "$here/$program.cu" ]; then compile "$program" & fi
    done
    wait
fi
for program in "${programs[@]}"; do
    if [ "$program" = waits ]; then
        if ! command -v cargo >/dev/null; then
            say "no cargo: waits is left out"
            continue
        fi
        (cd "$root" && cargo build --quiet --release -p crosswarp-shmem --example waits) || { failed=1; continue; }
        target=${CARGO_TARGET_DIR:-$root/target}
        say "running waits"
        run "$processor" "$target/release/examples/waits" || { say "waits failed"; failed=1; }
        continue
    fi
    if [ ! -e "$here/$program.cu" ]; then
        say "no program $program"
        failed=1
        continue
    fi
    if [ -z "$nvcc" ]; then
        say "no nvcc: $program is left out; set CUDA_HOME, or install a CUDA toolkit or its wheels"
        continue
    fi
    if [ ! -x "$build/$program" ]; then
        say "$program does not build"
        failed=1
        continue
    fi
    if [ "$gpus" -lt 1 ] || { [ "$program" = all_reduce ] && [ "$gpus" -lt 2 ]; }; then
        say "built $program; not run: $gpus GPUs here"
        continue
    fi
    say "running $program"
    run "$gpu" "$build/$program" || { say "$program failed"; failed=1; }
    # Hardware queues are chosen by a setting that is read once a process.
    if [ "$program" = device_queues ]; then
        CUDA_DEVICE_MAX_CONNECTIONS=32 run "$gpu" "$build/$program" launches || { say "$program failed"; failed=1; }
    fi
done
[ "$failed" -eq 0 ] || exit 1
[ "$ran" -eq 1 ] || { say "nothing to run"; exit 2; }
say "$(grep -c . "$output") rows in $output"
