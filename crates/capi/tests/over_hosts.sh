#!/usr/bin/env bash
# over_hosts.sh PREFIX: the C programs over hosts that are network namespaces, started by the oshrun of the installation
# at PREFIX, on 2 and on 3 hosts. Needs root and iproute2.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(cd "$1" && pwd)
bed=$here/../../cli/tests/hosts/bed.sh
work=$(mktemp -d)
export BED=cwc$$ CROSSWARP_HEAP=32M PATH=$prefix/bin:$PATH
trap '"$bed" down; rm -rf "$work"' EXIT
cd "$work"
"$bed" up 3
printf '10.67.0.1 # one PE\n10.67.0.2:2\n10.67.0.3:2\n' >three
two=10.67.0.1:2,10.67.0.2:2
rsh="$bed rsh"
failed=
run() { # the program; how; its options
    if timeout 300 "$bed" run 1 oshrun --rsh "$rsh" "${@:3}" "./$1" >out 2>&1; then
        echo "passed: $1 $2"
    else
        echo "FAILED: $1 $2"
        cat out
        failed=1
    fi
}
for name in rma amo nbi signal wait reduce collect teams contexts locks memory old setup statics threads generics ring \
    heat isort matmul samplesort; do
    oshcc -std=c11 -O1 -pthread "$here/c/$name.c" -o "$name" -lm
    run "$name" "on two hosts" --hosts "$two"
    run "$name" "on three hosts" --host-file three -n 5
done
for host in 1 2 3; do
    left=$("$bed" pids "$host")
    [ -z "$left" ] || { echo "FAILED: processes are left on host $host: $left"; failed=1; }
done
[ -z "$failed" ]
