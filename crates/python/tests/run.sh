#!/usr/bin/env bash
# The wheel, as its users get it: built for old systems, checked, installed into fresh environments, tested there.
#
#     crates/python/tests/run.sh [FOLDER]      the folder for wheel and environments, else target/python
#
# With CROSSWARP_KERNELS (see backend.py) the wheel brings compiled kernels.
# Needs python3 with venv, and a package index.
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=${1:-$PWD/target/python}
mkdir -p "$folder"
fresh() { # name, packages
    rm -rf "${folder:?}/$1"
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/python" -m pip install --quiet "${@:2}"
}
step() { printf '\n== %s\n' "$*"; "$@"; }

fresh tools pip auditwheel mypy numpy
rm -f "$folder"/crosswarp-*.whl
export CROSSWARP_CACHE=${CROSSWARP_CACHE:-$folder/cache}
CROSSWARP_GLIBC=2.28 step "$folder/tools/bin/pip" wheel --quiet --no-deps --wheel-dir "$folder" crates/python
wheel=$(ls "$folder"/crosswarp-*.whl)
case $wheel in *-cp310-abi3-manylinux_2_28_*.whl) ;; *) echo "not the wheel that was to be: $wheel" >&2; exit 1 ;; esac
step "$folder/tools/bin/auditwheel" show "$wheel" | tee "$folder/policy"
# The text wraps its lines.
tr -s ' \n' ' ' <"$folder/policy" | grep -q 'following platform tag: "manylinux_2_\(17\|2[0-8]\)_'
size=$(stat -c %s "$wheel")
kernels=$([ -z "${CROSSWARP_KERNELS-}" ] || stat -c %s "$CROSSWARP_KERNELS")
[ "$size" -le $(((15 << 20) + ${kernels:-0})) ] ||
    { echo "the wheel has $size bytes, more than 15 MiB beside the kernels" >&2; exit 1; }
step "$folder/tools/bin/mypy" --strict --config-file crates/python/pyproject.toml crates/python/python/crosswarp

# NumPy alone, and the command.
fresh bare "$wheel"
[ "$("$folder/bare/bin/pip" list --format freeze | cut -d= -f1 | sort | tr '\n' ' ')" = 'crosswarp numpy pip setuptools ' ] ||
    [ "$("$folder/bare/bin/pip" list --format freeze | cut -d= -f1 | sort | tr '\n' ' ')" = 'crosswarp numpy pip ' ]
(cd examples && step "$folder/bare/bin/python" -c '
import crosswarp as cw, numpy as np
dem, known = (np.load(f"jacksboro/jacksboro_{name}.npy") for name in ("dem", "known"))
print(cw.fill(dem, known).sha256())') | tail -1 >"$folder/hash"
step "$folder/bare/bin/crosswarp" solve fill --values examples/jacksboro/jacksboro_dem.npy \
    --known examples/jacksboro/jacksboro_known.npy --json | tail -1 >"$folder/solve.json"
grep -q "$(cat "$folder/hash")" "$folder/solve.json"

# What the command needs of C: the library, in an environment without cargo and sources.
env -i PATH=/usr/bin:/bin "$folder/bare/bin/crosswarp" install --prefix "$folder/prefix"
PATH=$folder/prefix/bin:/usr/bin:/bin oshcc -O2 examples/ring.c -o "$folder/ring"
step "$folder/prefix/bin/oshrun" -np 4 "$folder/ring"
if [ -n "${CROSSWARP_KERNELS-}" ]; then
    # Kernels without a compiler.
    CROSSWARP_NVRTC=/nonexistent "$folder/bare/bin/crosswarp" kernels --arch sm_86 | tail -n 1
fi

# A wheel of its own for a free-threaded interpreter, if there is one.
free=$(command -v python3.14t || true)
if [ -n "$free" ]; then
    "$free" -m venv --clear "$folder/free"
    CROSSWARP_GLIBC=2.28 step "$folder/free/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$folder" crates/python
    step "$folder/free/bin/python" -m pip install --quiet "$(ls "$folder"/crosswarp-*-cp314-cp314t-*.whl)[test]"
    # Importing it, and working with it, must not bring the lock back.
    "$folder/free/bin/python" -W error -c 'import sys, crosswarp; assert not sys._is_gil_enabled()'
    (cd crates/python && PATH=$folder/free/bin:$PATH step "$folder/free/bin/python" -m pytest)
else
    echo "not run: the wheel for free-threaded Python (no python3.14t on PATH)"
    # That the module compiles for it needs no interpreter.
    printf '%s\n' implementation=CPython version=3.14 shared=false abi3=false pointer_width=64 \
        build_flags=Py_GIL_DISABLED suppress_build_script_link_lines=true >"$folder/free-threaded.config"
    PYO3_CONFIG_FILE=$folder/free-threaded.config step cargo check --quiet -p crosswarp-python
fi

# NVRTC, so that kernels are compiled here; CROSSWARP_REQUIRE_TORCH=1 takes torch, too, which has gigabytes.
torch=${CROSSWARP_REQUIRE_TORCH:+torch}
fresh tests "$wheel[test]" nbclient ipykernel matplotlib tqdm mpi4py mpich 'nvidia-cuda-nvrtc==13.0.*' $torch
(cd crates/python && PATH=$folder/tests/bin:$PATH CROSSWARP_REQUIRE_TOOLS=1 step "$folder/tests/bin/python" -m pytest -rs)
for notebook in examples/notebooks/*.ipynb; do
    step "$folder/tests/bin/jupyter-execute" "$notebook"
done
