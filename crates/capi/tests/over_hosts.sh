#!/usr/bin/env bash
# over_hosts.sh PREFIX: the C programs over hosts that are network namespaces, started by the oshrun of the installation
# at PREFIX, on 2 and on 3 hosts, and by other launchers on 2: MPICH's and Open MPI's, where they are installed, and
# whoever sets the variables of torchrun. Needs root and iproute2. CROSSWARP_SRUN, if it is set, is a command that
# starts what follows as srun does, on two nodes that see these files. CROSSWARP_REQUIRE_TOOLS=1: a launcher that is
# missing is a failure, but for srun. Where CROSSWARP_SUITES names folders of sources, suites.sh runs these, too, on 2 PEs
# and on 4.
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
checked() { # what; how it is done
    if timeout 300 "${@:2}" >out 2>&1; then
        echo "passed: $1"
    else
        echo "FAILED: $1"
        cat out
        failed=1
    fi
}
run() { # the program; how; its options
    checked "$1 $2" "$bed" run 1 oshrun --rsh "$rsh" "${@:3}" "./$1"
}
# Nothing of a run is left on any host, after so many seconds at most.
nothing_is_left() {
    local host left
    for host in 1 2 3; do
        for _ in $(seq "$1"); do
            left=$("$bed" pids "$host")
            [ -n "$left" ] || break
            sleep 1
        done
        [ -z "$left" ] || { echo "FAILED: processes are left on host $host: $left"; failed=1; }
    done
}
for name in rma amo nbi signal wait reduce collect teams contexts locks memory old setup statics threads generics ring \
    heat isort matmul samplesort; do
    oshcc -std=c11 -O1 -pthread "$here/c/$name.c" -o "$name" -lm
    run "$name" "on two hosts" --hosts "$two"
    run "$name" "on three hosts" --host-file three -n 5
done
nothing_is_left 5

# These launchers do not tell programs that there are several hosts.
export SEVERAL_HOSTS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
printf '#!/bin/sh\nexec %s "$@"\n' "$rsh" >rsh
(umask 077 && echo 00112233445566778899aabbccddeeff >secret)
cat >variables <<'END'
#!/bin/bash
# variables BED_SH PROGRAM: two PEs on each of two hosts, as torchrun would start them.
export WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 CROSSWARP_BOOTSTRAP=10.67.0.1:29600 CROSSWARP_SECRET_FILE=$PWD/secret
for rank in 0 1 2 3; do
    RANK=$rank LOCAL_RANK=$((rank % 2)) "$1" run $((1 + rank / 2)) "$2" &
done
failed=0
for _ in 0 1 2 3; do wait -n || failed=1; done
exit "$failed"
END
chmod 700 rsh variables
there() { # a launcher
    command -v "$1" >/dev/null && return
    echo "skipped: $1 is not there"
    [ "${CROSSWARP_REQUIRE_TOOLS-}" != 1 ] || failed=1
    return 1
}
programs="rma amo nbi signal wait reduce collect teams contexts locks memory setup statics threads ring"
for name in $programs; do
    checked "$name by variables" ./variables "$bed" "$work/$name"
done
if there mpiexec.hydra; then
    for name in $programs; do
        checked "$name by MPICH's launcher" "$bed" run 1 mpiexec.hydra -launcher ssh -launcher-exec "$work/rsh" \
            -iface eth0 -hosts "$two" -n 4 "$work/$name"
    done
fi
if there mpirun.openmpi; then
    for name in $programs; do
        checked "$name by Open MPI's launcher" "$bed" run 1 mpirun.openmpi --oversubscribe --map-by slot \
            --mca plm rsh --mca plm_rsh_agent "$work/rsh" --mca oob_tcp_if_include eth0 \
            --mca btl_tcp_if_include eth0 -x CROSSWARP_HEAP -x SEVERAL_HOSTS \
            -H "$two" -np 4 "$work/$name"
    done
fi
if [ -n "${CROSSWARP_SRUN-}" ]; then
    for mpi in pmi2 pmix; do
        for name in $programs; do
            # A command and its words.
            # shellcheck disable=SC2086
            checked "$name by srun, $mpi" $CROSSWARP_SRUN -N2 --ntasks-per-node=2 "--mpi=$mpi" "$work/$name"
        done
    done
else
    echo "skipped: CROSSWARP_SRUN names no srun"
fi

if [ -n "${CROSSWARP_SUITES-}" ]; then
    # Folders are words. Some programs want more memory than the default of these.
    # shellcheck disable=SC2086
    env -u CROSSWARP_HEAP -u SEVERAL_HOSTS SUITE_HOSTS="10.67.0.1 10.67.0.2" SUITE_RSH="$rsh" \
        "$bed" run 1 "$here/suites.sh" $CROSSWARP_SUITES 1+1 1+3 || failed=1
else
    echo "skipped: CROSSWARP_SUITES names no sources"
fi

# The daemons of other launchers may be about to end.
nothing_is_left 60
[ -z "$failed" ]
