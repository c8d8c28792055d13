#!/usr/bin/env bash
# network_here.sh CROSSWARP NETWORK [OUT]: what Crosswarp's operations between hosts take, beside a bare TCP connection,
# MPICH and Open MPI in the same runs, on two hosts that are network namespaces of this machine. CROSSWARP and NETWORK are
# release builds of the command and of crates/shmem/examples/network.rs; rows go to the file OUT (rows.jsonl), tables and
# the goals beside what was reached to standard output. Needs root, iproute2 and python3; nobody else should use the
# machine. In a clone:
#
#     cargo build --release -p crosswarp-cli && cargo build --release -p crosswarp-shmem --example network
#     bench/peers/network_here.sh target/release/crosswarp target/release/examples/network rows.jsonl
#
# Each of $PLACES says where processes run:
#
#   free    wherever the system puts them
#   two     all on the first two processors, which the PEs of both hosts share
#   halves  each host on a half of the processors of its own
#
# Then come network.sh's rows, for $PES (1 2 8) PEs a host, $TIMES (3) times, each run at most $LIMIT (90) seconds. With UCX
# on this machine there is another run of Crosswarp over it (`impl` crosswarp_ucx). Last, how long PEs go on (`seconds`), and
# anything of the run (`until_empty`), after a PE, a host's launcher or the first one was killed or a host was cut off,
# $TIMES times.
set -euo pipefail
crosswarp=$(readlink -f "$1") network=$(readlink -f "$2") out=$(readlink -f "${3:-rows.jsonl}")
here=$(dirname "$(readlink -f "$0")")
bed=$here/../../crates/cli/tests/hosts/bed.sh
read -ra places <<<"${PLACES:-free two halves}"
read -ra pes <<<"${PES:-1 2 8}"
export TIMES=${TIMES:-3} BED=cwn$$
one=10.67.0.1 two=10.67.0.2
folder=$(mktemp -d)
end() {
    for host in 1 2; do "$bed" pids "$host" | xargs -r kill -KILL 2>/dev/null || true; done
    "$bed" down
    rm -rf "$folder"
}
trap end EXIT
"$bed" up 2
: >"$out"
last=$(($(nproc) - 1))
((last > 0)) || { echo "network_here.sh: two hosts want two processors" >&2; exit 2; }

processors() { # PLACE HOST
    case $1 in
    free) echo "0-$last" ;;
    two) echo 0-1 ;;
    halves) if [ "$2" = 1 ]; then echo "0-$((last / 2))"; else echo "$((last / 2 + 1))-$last"; fi ;;
    *) echo "network_here.sh: PLACES are free, two and halves, not '$1'" >&2 && exit 2 ;;
    esac
}
rsh_of() { # PLACE: makes the remote shell
    cat >"$folder/rsh" <<END
#!/bin/bash
# As ssh: options come first, then the host.
for word; do case \$word in -*) ;; *) host=\$word; break ;; esac; done
case \$host in *.1) on=$(processors "$1" 1) ;; *) on=$(processors "$1" 2) ;; esac
exec taskset -c "\$on" "$bed" rsh "\$@"
END
    chmod 700 "$folder/rsh"
}
on_one() { # PLACE COMMAND...: on the first host
    taskset -c "$(processors "$1" 1)" "$bed" run 1 "${@:2}"
}
place() { sed "s/^{/{\"place\":\"$1\",/" >>"$out"; }

for at in "${places[@]}"; do
    rsh_of "$at"
    on_one "$at" "$here/network.sh" "$crosswarp" "$network" "$folder/rsh" "$one" "$two" "${pes[@]}" | place "$at"
    if "$crosswarp" info | grep -qE '^UCX +[0-9]'; then
        export CROSSWARP_NETWORK=ucx UCX_TLS=tcp
        for run in $(seq "$TIMES"); do
            on_one "$at" timeout "${LIMIT:-90}" "$crosswarp" run --hosts "$one,$two" --rsh "$folder/rsh" -- "$network" |
                sed "s/^{/{\"impl\":\"crosswarp_ucx\",\"pes_per_host\":1,\"run\":$run,/" | place "$at" || true
        done
        unset CROSSWARP_NETWORK UCX_TLS
    fi
done

# How long what is left of a run goes on.
mkfifo "$folder/nothing"
rsh_of free
launcher() { # HOST: the process of the launcher there, which has the agent in it
    local pid words
    for pid in $("$bed" pids "$1"); do
        mapfile -d '' words <"/proc/$pid/cmdline" 2>/dev/null || continue
        if [[ ${#words[@]} == 2 && ${words[0]} == *crosswarp && ${words[1]} == host ]]; then echo "$pid"; fi
    done
}
sleeper() { # HOST: a PE there
    for pid in $("$bed" pids "$1"); do
        ! grep -qx sleep "/proc/$pid/comm" 2>/dev/null || echo "$pid"
    done | head -1
}
harm() { # WHAT ROOT
    case $1 in
    pe) kill -KILL "$(sleeper 2)" ;;
    launcher) kill -KILL "$(launcher 2)" ;;
    root) kill -KILL "$2" ;;
    cut) "$bed" cut 1 2 && "$bed" cut 2 1 ;;
    cut_there) "$bed" cut 1 2 ;;
    cut_back) "$bed" cut 2 1 ;;
    esac
}
gone() { # PROCESS...: waits. Starts nothing, which could take longer than what is measured.
    local pid
    for pid; do
        while [ -e "/proc/$pid" ]; do read -rt 0.01 <>"$folder/nothing" || true; done
    done
}
for run in $(seq "$TIMES"); do
    for what in pe launcher root cut cut_there cut_back; do
        # `run` becomes the command, so this is its process.
        "$bed" run 1 "$crosswarp" run --hosts "$one,$two" --rsh "$folder/rsh" -- sleep 300 >/dev/null 2>&1 &
        root=$!
        until [ -n "$(sleeper 1)" ] && [ -n "$(sleeper 2)" ]; do sleep 0.1; done
        # Signs of life have come.
        sleep 2
        ours=("$(sleeper 1)" "$(sleeper 2)")
        mapfile -t all < <("$bed" pids 1 && "$bed" pids 2)
        harm "$what" "$root"
        began=$EPOCHREALTIME
        gone "${ours[@]}" && ended=$EPOCHREALTIME && gone "${all[@]}" && empty=$EPOCHREALTIME
        wait "$root" 2>/dev/null || true
        "$bed" mend 1 2 && "$bed" mend 2 1
        python3 -c 'import sys; what, run, *at = sys.argv[1:]; at = [float(t) - float(at[0]) for t in at]
print(f"{{\"what\":\"ends\",\"after\":\"{what}\",\"run\":{run},\"seconds\":{at[1]:.2f},\"until_empty\":{at[2]:.2f}}}")' \
            "$what" "$run" "$began" "$ended" "$empty" >>"$out"
    done
done

"$here/network_table.py" "$out"
