#!/bin/sh
# Measures Poisson solvers of others and Crosswarp's, one after the other on one core, as JSON lines on standard output.
# What is missing is said on standard error and left out.
#
#     bench/peers/poisson/run.sh [n...]        n intervals an axis; 2048 if nothing is said
#
# Debian's packages: libfftw3-dev libhypre-dev libpetsc-real-dev; Python's: numpy scipy pyamg (PYTHON says which one).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
: "${CC:=cc}" "${PYTHON:=python3}"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# One core for everybody.
pinned="$(command -v taskset >/dev/null && echo taskset -c 0)"

peer() { # NAME FLAGS... -- SIZES...
    name=$1
    shift
    flags=
    while [ "$1" != -- ]; do
        flags="$flags $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # the flags are several words
    if $CC -O3 -march=native -o "$build/$name" "$here/$name.c" $flags -lm 2>"$build/$name.log"; then
        $pinned "$build/$name" "$@"
    else
        echo "$name: left out: $(head -n 1 "$build/$name.log")" >&2
    fi
}
flags_of() { pkg-config --cflags --libs "$1" 2>/dev/null || true; }
mpi=$(flags_of mpi)
[ -n "$mpi" ] || mpi=$(flags_of mpi-c)
[ -n "$mpi" ] || mpi=$(flags_of ompi)

[ $# -gt 0 ] || set -- 2048
# shellcheck disable=SC2046,SC2086 # flags are several words
{
    peer fftw $(flags_of fftw3) -lfftw3 -- "$@"
    peer hypre -I/usr/include/hypre -lHYPRE $mpi -- "$@"
    petsc=$(flags_of PETSc)
    [ -n "$petsc" ] || petsc=$(flags_of petsc)
    peer petsc $petsc $mpi -- "$@"
}
if "$PYTHON" -c 'import pyamg, scipy' 2>/dev/null; then
    $pinned "$PYTHON" "$here/python_peers.py" "$@"
else
    echo "scipy, pyamg: left out: $PYTHON has not both" >&2
fi
# Of these, 2048 intervals are what the peers have. Rows count loading in cpu_ms, which those of the peers do not.
(cd "$here/../../.." && $pinned cargo bench --quiet -p crosswarp-solve --bench multigrid -- 1 planes)
