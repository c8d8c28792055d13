#!/usr/bin/env bash
# on_gpus.sh PREFIX SETS [PES [PROGRAM...]]: the programs of tests/programs on a machine with GPUs and nvcc, without Rust.
#
# PREFIX: of `crosswarp install --nvshmem --prefix`. SETS: the folder of `sets.h`, the lists of types that the crate's build
# makes (target/*/build/crosswarp-nvcompat-*/out). PES: the most PEs (as many as there are GPUs); each program runs on 1 to
# so many. $HOSTS: play several hosts, as CROSSWARP_FAKE_HOSTS says; each then runs on 2 PEs and more. PROGRAM: a name
# without .cu; `matrix` is its eight parts, `matrix:4` one of them; all if not said. nvcc is that of $CUDA_HOME or the PATH;
# $ARCH: what is compiled for (native); $LIMIT: seconds for a run (300). Ends with 1 if anything failed, and names it.
set -u -o pipefail
[ $# -ge 2 ] || { sed -n '2p' "$0" >&2; exit 2; }
prefix=$(readlink -f "$1") sets=$(readlink -f "$2") pes=${3:-$(nvidia-smi -L | grep -c '^GPU')}
shift $(($# < 3 ? $# : 3))
here=$(cd "$(dirname "$0")" && pwd)
[ -e "$sets/sets.h" ] || { echo "$sets has no sets.h" >&2; exit 2; }
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/nvcc}
nvcc=${nvcc:-$(command -v nvcc)} || { echo "no nvcc: set CUDA_HOME" >&2; exit 2; }
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(cd "$here/programs" && printf '%s\n' *.cu | sed 's/\.cu$//')
first=1 kind=
if [ -n "${HOSTS-}" ]; then
    export CROSSWARP_FAKE_HOSTS=$HOSTS
    first=2 kind=-DNVSHMEM_CW_HOSTS
    # PEs of one host by what these are about.
    [ $# -gt 0 ] || mapfile -t names < <(printf '%s\n' "${names[@]}" | grep -vxE 'threads|shared_gpu|library|unique_id|gone')
fi
programs=()
for name in "${names[@]}"; do
    case $name in
    matrix) programs+=(matrix:{0..7}) ;;
    *) programs+=("$name") ;;
    esac
done

nvcc_with() { # NAME FILE ARGUMENT...
    "$nvcc" -std=c++17 "-arch=${ARCH:-native}" $kind -I "$prefix/include" -I "$sets" -o "$build/$2" "$here/programs/$1.cu" \
        -L "$prefix/lib" -L "$cuda/lib64" -L "$cuda/lib" -lnvshmem_host -Xlinker "-rpath=$prefix/lib" "${@:3}" \
        >"$build/$2.log" 2>&1 || { echo "does not compile: $2"; head -5 "$build/$2.log"; }
}
compile() { # NAME[:PART]
    local part=${1#*:}
    [ "$part" != "$1" ] || part=0
    nvcc_with "${1%:*}" "$1" "-DPART=$part"
    # A library that the program loads.
    [ "$1" != late ] || nvcc_with late late.unit.so -DPART=1 -shared -Xcompiler -fPIC
}
export -f compile nvcc_with
export nvcc prefix sets build here cuda kind
printf '%s\n' "${programs[@]}" | xargs -P "$(nproc)" -I{} bash -c 'compile {}'

# By unique ids it starts without a launcher.
by_id() { # N PROGRAM
    local rank status=0 pids=()
    for ((rank = 0; rank < $1; rank++)); do
        RANK=$rank WORLD_SIZE=$1 ID_FILE=$build/id.$1 timeout -k 5 "${LIMIT:-300}" "$2" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do wait "$rank" || status=1; done
    return $status
}
failed=()
for program in "${programs[@]}"; do
    for ((n = first; n <= pes; n++)); do
        # That one wants two, which it starts itself.
        [ "$program" != gone ] || [ "$n" -gt 1 ] || continue
        start=$SECONDS
        if [ "$program" = unique_id ]; then
            by_id "$n" "$build/$program"
        elif [ "$program" = gone ]; then
            timeout -k 5 "${LIMIT:-300}" "$build/$program" "$n"
        else
            timeout -k 5 "${LIMIT:-300}" "$prefix/bin/nvshmrun" -np "$n" "$build/$program"
        fi >"$build/out" 2>&1 && passed=passed || passed=FAILED
        echo "$program, $n PEs: $passed, $((SECONDS - start)) s"
        [ $passed = passed ] || { failed+=("$program/$n"); tail -15 "$build/out"; }
    done
done
echo "${#programs[@]} programs, ${#failed[@]} runs failed: ${failed[*]-}"
[ ${#failed[@]} = 0 ]
