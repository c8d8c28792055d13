#!/usr/bin/env bash
# network.sh CROSSWARP NETWORK RSH HOST1 HOST2 [PES_PER_HOST...]: JSON lines of one-sided operations between two hosts.
# Run it on HOST1. CROSSWARP and NETWORK are release builds of the command and of crates/shmem/examples/network.rs; RSH
# is a remote shell (RSH HOST COMMAND). For each number of PEs a host (1, 2 and 8 unless given) one after the other, $TIMES
# times (3): Crosswarp, with a bare TCP connection beside; MPICH's one-sided operations; Open MPI's OpenSHMEM. The peers
# go over UCX, all over TCP on $INTERFACE (eth0), not bound to cores. A library that is not there is named on standard
# error, and a run that takes longer than $LIMIT seconds (90) is ended, as MPICH's sometimes has to be.
#
# Debian: apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev libucx0
set -euo pipefail
crosswarp=$1 network=$2 rsh=$3 hosts=("$4" "$5")
shift 5
pes=("${@:-1}")
(($# > 0)) || pes=(1 2 8)
here=$(dirname "$(readlink -f "$0")")
interface=${INTERFACE:-eth0}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
export UCX_TLS=tcp UCX_NET_DEVICES=$interface
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

compile() { # PROGRAM COMPILER SOURCE
  "$2" -O2 "$here/$3" -o "$build/$1" 2> "$build/log" || echo "no $1: $(head -1 "$build/log")" >&2
}
compile mpich mpicc.mpich network_mpi.c
compile openmpi_openshmem oshcc network_openshmem.c

# Those that spin take milliseconds a round where PEs share cores.
rounds() { case $1 in 1) echo 1000 ;; 2) echo 300 ;; *) echo 40 ;; esac; }

measure() { # IMPLEMENTATION PES_PER_HOST COMMAND...: adds PEs a host
  local impl=$1 each=$2
  shift 2
  timeout -k 5 "${LIMIT:-90}" "$@" 2>> "$build/log" |
    sed -n "s/^{\(\"impl\":\"[^\"]*\",\)\?/{\"impl\":\"$impl\",\"pes_per_host\":$each,\"run\":$run,/p" ||
    echo "$impl, $each PEs a host: ended with $?" >&2
}

openmpi=(mpirun.openmpi --mca plm rsh --mca plm_rsh_agent "$rsh" --mca oob_tcp_if_include "$interface"
  --mca btl_tcp_if_include "$interface" --oversubscribe --bind-to none -x UCX_TLS -x UCX_NET_DEVICES
  --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca spml ucx)

for run in $(seq "${TIMES:-3}"); do
  for each in "${pes[@]}"; do
    list=${hosts[0]}:$each,${hosts[1]}:$each
    count=$(rounds "$each")
    measure crosswarp "$each" "$crosswarp" run --hosts "$list" --rsh "$rsh" -- "$network" "$count"
    if [ -x "$build/mpich" ]; then
      measure mpich "$each" mpiexec.hydra -launcher ssh -launcher-exec "$rsh" -iface "$interface" -hosts "$list" \
        -n $((2 * each)) "$build/mpich" mpich "$count"
    fi
    if [ -x "$build/openmpi_openshmem" ]; then
      measure openmpi_openshmem "$each" "${openmpi[@]}" --map-by "ppr:$each:node" -H "$list" -np $((2 * each)) \
        "$build/openmpi_openshmem" openmpi_openshmem "$count"
    fi
  done
done
