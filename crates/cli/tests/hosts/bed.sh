#!/usr/bin/env bash
# Hosts for tests: network namespaces joined by a bridge. Needs root and iproute2.
#
#   bed.sh up N          make hosts 10.67.0.1 to N
#   bed.sh down          remove them
#   bed.sh run N CMD...  become CMD on host N
#   bed.sh rsh HOST CMD  as ssh: a shell there without this environment, which outlives this process
#   bed.sh cut A B       drop what A sends to B, without a word, as on a broken link
#   bed.sh mend A B      let it through again
#   bed.sh pids N        the processes on host N
#
# $BED names the bed. Nothing of it is visible outside its namespaces but their names.
set -euo pipefail
: "${BED:?}"
NET=10.67.0
cmd=$1
shift
# A host has its own name, too, which some launchers go by.
enter='hostname "$0" && exec "$@"'
case $cmd in
up)
    ip netns add "$BED-hub"
    ip -n "$BED-hub" link add br0 type bridge
    ip -n "$BED-hub" link set br0 up
    for ((i = 1; i <= $1; i++)); do
        ip netns add "$BED-$i"
        ip -n "$BED-hub" link add "p$i" type veth peer name eth0 netns "$BED-$i"
        ip -n "$BED-hub" link set "p$i" master br0 up
        ip -n "$BED-$i" addr add "$NET.$i/24" dev eth0
        ip -n "$BED-$i" link set lo up
        ip -n "$BED-$i" link set eth0 up
        mkdir -p "/etc/netns/$BED-$i"
        for ((j = 1; j <= $1; j++)); do echo "$NET.$j $BED-$j"; done |
            cat - <(echo 127.0.0.1 localhost) >"/etc/netns/$BED-$i/hosts"
        # Other names are not known, which who asks hears at once.
        echo nameserver 127.0.0.1 >"/etc/netns/$BED-$i/resolv.conf"
    done
    ;;
down)
    # By name: `ip netns list` complains of those that others are removing.
    for ns in /run/netns/"$BED"-*; do
        [[ ! -e $ns ]] || ip netns del "${ns##*/}"
    done
    rm -rf /etc/netns/"$BED"-*
    ;;
run) exec ip netns exec "$BED-$1" unshare --uts sh -c "$enter" "$BED-$1" "${@:2}" ;;
rsh)
    # As with ssh, options come first.
    while [[ $1 == -* ]]; do shift; done
    host=${1##*.}
    # In the background: who kills this process does not reach what runs on the other host.
    ip netns exec "$BED-$host" unshare --uts sh -c "$enter" "$BED-$host" env -i -C / PATH="$PATH" sh -c "${*:2}" <&0 &
    wait $!
    ;;
# The address gets a hardware address that nobody has; an unreachable route would tell the sender.
cut) ip -n "$BED-$1" neigh replace "$NET.$2" dev eth0 lladdr 02:00:00:00:00:00 nud permanent ;;
mend) ip -n "$BED-$1" neigh del "$NET.$2" dev eth0 || true ;;
pids) ip netns pids "$BED-$1" ;;
*) exit 2 ;;
esac
