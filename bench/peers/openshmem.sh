#!/bin/sh
# openshmem.sh [OSHCC OSHRUN [PES]]: openshmem.c with an OpenSHMEM's own compiler and launcher.
# Without arguments those of an installed Crosswarp on the path. Options for the launcher go into OSHRUN:
#   bench/peers/openshmem.sh /usr/bin/oshcc '/usr/bin/oshrun --oversubscribe' 2
set -eu
here=$(dirname "$0")
oshcc=${1:-oshcc}
oshrun=${2:-oshrun}
pes=${3:-2}
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"$oshcc" -O2 "$here/openshmem.c" -o "$program"
echo "# $oshcc, $pes PEs: operation, bytes, ns"
# shellcheck disable=SC2086 # the launcher may have options
$oshrun -np "$pes" "$program"
