#!/bin/sh
# installed.sh PREFIX: what the README promises, with an installation at PREFIX.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PATH=$prefix/bin:$PATH
export CROSSWARP_HEAP=64M

oshcc -O2 -Wall -Wextra -Werror -pedantic "$here/c/ring.c" -o ring
oshrun -np 4 ./ring
oshrun -n 3 --label ring
oshrun -np2 --mca any thing ring
oshcc -v 2>/dev/null
oshcc -std=c11 -O2 -c "$here/c/rma.c" -o rma.o
oshcc rma.o -o rma
oshrun -n 5 ./rma
oshc++ -std=c++17 -O2 -x c++ "$here/c/generics.c" -o generics
oshrun -n 2 ./generics
for name in oshcxx oshCC; do
    "$name" -std=c++17 -x c++ "$here/c/ring.c" -o ring-cxx
    oshrun -n 2 ./ring-cxx
done
# The archive, with a tool inside the program that intercepts functions.
cc -O2 -I"$prefix/include" "$here/c/profile.c" "$prefix/lib/libcrosswarp_shmem.a" -lm -ldl -lpthread -o profile
oshrun -n 3 ./profile
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
    # shellcheck disable=SC2046 # words are meant
    cc "$here/c/isort.c" $(pkg-config --cflags --libs crosswarp-shmem) -o isort
    oshrun -n 4 ./isort
fi
oshcc --showme -O2 ring.c | grep -q lcrosswarp_shmem
if oshrun -n 2 false 2>/dev/null; then
    echo "a failure is not passed on" >&2
    exit 1
fi
# An installation is enough to make another one, without sources, cargo or anything else in the environment.
env -i PATH=/usr/bin:/bin "$prefix/bin/crosswarp" install --prefix "$work/again" >/dev/null
(
    PATH=$work/again/bin:/usr/bin:/bin
    oshcc -O2 "$here/c/ring.c" -o ring-again
    oshrun -np 2 ./ring-again
)
(cd "$prefix" && find . -type f ! -path './lib/*' | sort) >installed
(cd "$work/again" && find . -type f ! -path './lib/*' | sort) | diff installed -
echo "installed programs run"
