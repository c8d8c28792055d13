#!/usr/bin/env bash
# Fetches EBISU and AN5D, Jacobi codes with temporal blocking, gives them the coefficients of Laplace's equation, builds them
# and writes JSON lines of their sweeps on one GPU.
#
#     bench/peers/temporal.sh OUTPUT [SIDE]     OUTPUT: a file, written anew; SIDE: of the square plane, 16384 if not said
#
# Needs git, nvcc ($CUDA_HOME, or on the PATH) and a GPU, and takes 7 GB of it at 16384. Neither computes norms. AN5D
# keeps the rim as it is, EBISU's rim sees itself beyond. A result that a CPU does not confirm is not measured. Ends with 0
# if both have been measured, 1 if one was not, 2 if nothing could be run.
set -u -o pipefail

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 OUTPUT [SIDE]" >&2
    exit 2
fi
output=$1
side=${2:-16384}
# A multiple of 8 and of 9, the sweeps of EBISU's passes: it counts those of the last pass that were not asked for as none.
sweeps=1008
repetitions=9
work=$(mktemp -d "${TMPDIR:-/tmp}/crosswarp-peers.XXXXXX")
trap 'rm -rf "$work"' EXIT

say() { echo "peers: $*" >&2; }

nvcc=${CUDA_HOME:+$CUDA_HOME/bin/nvcc}
[ -n "$nvcc" ] && [ -x "$nvcc" ] || nvcc=$(command -v nvcc) || { say "no nvcc: set CUDA_HOME"; exit 2; }
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
[ -n "$arch" ] || { say "no GPU"; exit 2; }

# One commit of a repository, without its history.
get() { # URL, commit, folder
    git init -q "$3" && git -C "$3" fetch -q --depth 1 "$1" "$2" && git -C "$3" checkout -q FETCH_HEAD
}

# The line of the median of the numbers that lines on standard input begin with.
median() { sort -g | awk '{ value[NR] = $0 } END { if (NR) print value[int((NR + 1) / 2)] }'; }

row() { # implementation, version, type, how it is set, milliseconds of all sweeps, columns
    awk -v impl="$1" -v version="$2" -v type="$3" -v setting="$4" -v ms="$5" -v side="$side" -v columns="$6" \
        -v sweeps="$sweeps" -v repetitions="$repetitions" 'BEGIN {
        us = ms * 1000 / sweeps
        printf "{\"impl\":\"%s\",\"version\":\"%s\",\"what\":\"plane_%d_%s\",\"pes\":1,\"setting\":\"%s\",", \
            impl, version, side, type, setting
        printf "\"columns\":%d,", columns
        printf "\"iterations\":%d,\"repetitions\":%d,\"us\":%.3f,\"gupdates\":%.1f}\n", \
            sweeps, repetitions, us, side * columns / us / 1000
    }' >>"$output"
}

failed=0
fault() { say "$*"; failed=1; }

# Milliseconds of EBISU's sweeps and what it chose: sweeps of a pass, columns of a strip, strips, parts of a strip, and
# blocks of a multiprocessor that there are and that there can be. Nothing if a run failed, which it says and then goes on.
ebisu_run() { # columns, threads, flag
    timeout 300 "$work/ebisu.exe" "$side" "$1" "--iter=$sweeps" --warmup "--bdim=$2" $3 | tr '<,>/' '    ' |
        awk '/Cuda failure/ { failed = 1 }
            $1 ~ /^[0-9]+$/ && NF > 12 && $10 > 0 && $(NF - 1) > 0 {
                line = $(NF - 1) " " $6 " " $8 " " $9 " " $10 " " $12 " " $13
            }
            END { if (!failed && line) print line }'
}

# The best of EBISU's blocks of 256 and 128 threads, on a plane of the side that was asked for and on one so narrow that its
# blocks fill the GPU: it gives a block a strip of columns and does not see whether strips come out even.
ebisu_best() { # flag; sets best, best_ms and best_columns
    local columns threads fields ms
    best= best_ms= best_columns=
    for threads in 256 128; do
        if ! "$work/ebisu.exe" 2048 2048 --iter=72 --check "--bdim=$threads" $1 | grep 'RMS Error' >&2; then
            fault "EBISU: another result than a CPU's ($threads threads $1)"
            continue
        fi
        columns=$side
        for _ in 1 2; do
            fields=$(for _ in $(seq $repetitions); do ebisu_run "$columns" "$threads" "$1"; done | median)
            [ -n "$fields" ] || break
            ms=${fields%% *}
            if awk "BEGIN { exit !(${best_ms:-1e300} / ${best_columns:-1} > $ms / $columns) }"; then
                best_ms=$ms best_columns=$columns
                best="$(cut -d ' ' -f 2 <<<"$fields") sweeps a pass, $threads threads"
            fi
            columns=$(awk '{ room = int($4 * $5 / $6 + 0.5) * $7
                for (strips = $4; room % strips; --strips) {}
                print strips * $3 }' <<<"$fields")
        done
    done
    [ -n "$best" ]
}

ebisu() {
    local url=https://github.com/neozhang307/EBISU-ICS23 commit=dd3d84471cb64f504ad3019e29def10a3434599d
    local from=$work/ebisu code
    get "$url" "$commit" "$from" || { fault "EBISU: cannot fetch $url"; return; }
    code=$from/2dstencil
    # Neighbours 1/4 each, the cell itself 0, in the kernel and in what checks it; 8 sweeps a pass in double.
    sed -E -i 's#15\.0 */ *118#0.0#; s#[0-9]+\.0 */ *118#0.25#g' "$code/jacobi-temporal-traditional.cu"
    sed -E -i 's#\b(5|12) \*#0.25 *#g; s#\b15 \*#0.0 *#g; s#\b118\b#1#g' "$code"/2d5pt/jacobi_gold*.cpp
    sed -E -i '/timesteps< *1, *star_shape, *4, *double>/,/};/ s#(const val *= *)[0-9]+#\18#' \
        "$code/common/temporalconfig.cuh"
    # It knows GPUs up to the A100's architecture, and is told that later ones are as that.
    sed -i 's#__CUDA_ARCH__==800#__CUDA_ARCH__>=800#' "$code/common/cuda_common.cuh"
    if grep -q '\b118\b' "$code/jacobi-temporal-traditional.cu" "$code"/2d5pt/jacobi_gold*.cpp; then
        fault "EBISU: its coefficients are not where they were expected"
        return
    fi
    # What is not for the GPU has parts for nvcc that CUDA 13 does not know, and builds without them.
    local flags=(-O3 -std=c++17 -D_TIMER_ -DTRATEMPORAL -DEBISU "-I$code" "-I$code/2d5pt") file
    for file in jacobi.driver 2d5pt/jacobi_gold 2d5pt/jacobi_gold_gen; do
        "${CXX:-g++}" "${flags[@]}" "-I$cuda/include" -c -o "$work/$(basename $file).o" "$code/$file.cpp" >&2 ||
            { fault "EBISU does not build"; return; }
    done
    "$nvcc" "${flags[@]}" "-arch=sm_$arch" -rdc=true -o "$work/ebisu.exe" \
        "$code"/jacobi-{temporal-traditional,2d}.cu "$work"/jacobi{.driver,_gold,_gold_gen}.o >&2 ||
        { fault "EBISU does not build"; return; }
    # A run takes ten seconds, most of them on the CPU.
    local type flag best best_ms best_columns repetitions=3
    for type in f64 f32; do
        flag=
        [ "$type" = f32 ] && flag=--fp32
        ebisu_best "$flag" && row ebisu "${commit:0:7}" "$type" "$best" "$best_ms" "$best_columns" ||
            fault "EBISU failed ($type)"
    done
}

an5d() {
    local url=https://github.com/khaki3/AN5D-Artifact commit=fbebf5f2bb2fa1aae2bfc8fd975947a2ff791752
    local from=$work/an5d
    get "$url" "$commit" "$from" || { fault "AN5D: cannot fetch $url"; return; }
    # The kernels that its generator made are in the repository, by width of a block, sweeps a pass and length of a stream.
    # The best of those that it was tuned to for the last GPU of its authors, double and float.
    local type folder setting settings code ms best best_ms
    for type in f64 f32; do
        [ "$type" = f64 ] && folder=double || folder=float
        settings=$(awk -F, '$1 == "j2d5pt" { print $2 "-" $4 "-" $5 }' "$from/compiled/v100_$folder.csv")
        # Five at most, side by side: one takes half a minute.
        for setting in $settings; do
            code=$from/compiled/$folder/j2d5pt-$setting
            [ -f "${code}_kernel.cu" ] || { say "AN5D $setting is not there ($type)"; continue; }
            # As above; what remains of the cell itself is taken out of the kernel.
            sed -E -i 's# \+ \(15\.0f \* \(__REGREF\(__b, 0\)\)\)##; s#\b(5\.1|12\.1|12\.2|5\.2)f#0.25f#g; s#\b15\.0f#0.0f#g; s# */ *118##g' \
                "$code"_{kernel,host}.cu
            if grep -q -E '/ *118|12\.1f' "$code"_{kernel,host}.cu; then
                fault "AN5D: its coefficients are not where they were expected"
                wait $(jobs -p)
                return
            fi
            "$nvcc" -O3 --use_fast_math "-arch=sm_$arch" -Xcompiler -fopenmp "-DSB_TYPE=$folder" "-I$from" \
                -o "$work/an5d-$type-$setting" "$code"_{host,kernel}.cu >&2 &
        done
        # The builds, and not what a caller may have begun.
        wait $(jobs -p)
        best= best_ms=
        for setting in $settings; do
            code=$work/an5d-$type-$setting
            if [ ! -f "$code" ]; then
                [ -f "$from/compiled/$folder/j2d5pt-${setting}_kernel.cu" ] && fault "AN5D $setting does not build ($type)"
                continue
            fi
            # It prints the root mean square of what is wrong; values are up to 1000.
            if ! "$code" -s 2048 -t 72 -n 1 -c | awk '/RMS Error/ { good = $3 < 0.01 } END { exit !good }'; then
                fault "AN5D $setting: another result than a CPU's ($type)"
                continue
            fi
            # Milliseconds of the sweeps alone: the clock is started after the copy to the GPU.
            ms=$(timeout 600 "$code" -s "$side" -t $sweeps -n $repetitions |
                awk '/^ *[0-9]+:/ { print $(NF - 1) }' | median)
            if [ -n "$ms" ] && awk "BEGIN { exit !(${best_ms:-1e300} > $ms) }"; then
                best=$setting best_ms=$ms
            fi
        done
        [ -n "$best" ] && row an5d "${commit:0:7}" "$type" "$best" "$best_ms" "$side" || fault "AN5D failed ($type)"
    done
}

printf '{"machine":"%s","gpus":1,"driver":"%s","date":"%s"}\n' \
    "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" \
    "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)" \
    "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$output" || exit 2
ebisu
an5d
say "$(grep -c '"impl"' "$output") rows in $output"
exit "$failed"
