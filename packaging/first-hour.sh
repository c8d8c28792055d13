#!/bin/sh
# first-hour.sh [--wheel WHEEL] [--package PACKAGE] [--sources] [--image TAR]: what a newcomer does in the first hour,
# each time on an empty machine: a Debian image without Rust and without Python packages, in a root of its own (needs
# root, and mmdebstrap unless --image names a tar file of one). Prints a table of times; fails if a step does, or if from
# `pip install` to the first picture it takes more than a minute.
#
#   --wheel     pip install, the first picture by the command, the first sum in Python, a C program
#   --package   the Debian package, the README's commands
#   --sources   the README's two commands on a copy of the sources, with this machine's Rust mounted read-only
#
# In each, nothing of cargo or of the sources is in the image unless it says so.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
wheel='' package='' sources='' image=''
while [ $# -gt 0 ]; do
    case $1 in
    --wheel) wheel=$(realpath "$2"); shift 2 ;;
    --package) package=$(realpath "$2"); shift 2 ;;
    --image) image=$(realpath "$2"); shift 2 ;;
    --sources) sources=1; shift ;;
    *) echo "first-hour.sh: no option '$1'" >&2; exit 2 ;;
    esac
done
[ -n "$wheel$package$sources" ] || { echo "first-hour.sh: give --wheel, --package or --sources" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "first-hour.sh: a root of its own needs root" >&2; exit 1; }

work=$(mktemp -d)
times=$work/times
failed=0
# Mounts live in namespaces of their own and end with them.
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [ -z "$image" ]; then
    image=$work/image.tar
    mmdebstrap --quiet --variant=minbase --include=python3-venv,ca-certificates,gcc,libc6-dev bookworm "$image"
fi

# A fresh machine in $root.
machine() {
    root=$work/$1
    mkdir "$root"
    tar -C "$root" -xf "$image"
    mkdir -p "$root/given" "$root/home"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    # This machine's certificates and pip's settings, by which it reaches its package index.
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    [ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$root/etc/pip.conf"
    cp -r "$here/examples" "$root/home/examples"
    for tool in cargo rustc crosswarp; do
        [ -z "$(find "$root" -name "$tool" -type f)" ] || { echo "the image has $tool" >&2; exit 1; }
    done
}

# What $1 takes on the machine, and whether it worked: a line of the table, its output in a log.
step() {
    start=$(date +%s.%N)
    if unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" sh -c '
        root=$1 command=$2 rust=$3
        mount --rbind /dev "$root/dev"
        for folder in $rust; do
            mkdir -p "$root$folder"
            mount --bind -o ro "$folder" "$root$folder"
        done
        exec chroot "$root" env -i HOME=/home PATH="/home/venv/bin:/home/bin:$4/usr/bin:/bin:/usr/sbin:/sbin" LANG=C.UTF-8 \
            RUSTUP_HOME="${RUSTUP_HOME-}" sh -c "cd /home && $command"
    ' first-hour "$root" "$1" "${rust-}" "${rust_path-}" >"$work/log" 2>&1; then
        said=ok
    else
        said=FAILED failed=1
        tail -n 20 "$work/log" >&2
    fi
    took=$(awk "BEGIN { print $(date +%s.%N) - $start }")
    printf '%-10s %8.2f s  %-7s %s\n' "$name" "$took" "$said" "$1" | tee -a "$times"
}

if [ -n "$wheel" ]; then
    name=wheel
    machine wheel
    cp "$wheel" "$root/given/"
    file=/given/$(basename "$wheel")
    step "python3 -m venv venv && pip --version"
    before=$(date +%s)
    step "pip install --quiet $file"
    step "crosswarp solve laplace2d --boundary 'top=sin(pi*x)' --png first.png && test -s first.png"
    seconds=$(($(date +%s) - before))
    step "python -c \"import crosswarp as cw, numpy as np; print(cw.sum(np.load('examples/jacksboro/jacksboro_dem.npy')))\""
    step "crosswarp solve examples/jacksboro.toml --png jacksboro.png --colours terrain && test -s jacksboro.png"
    step "crosswarp install --prefix /home/prefix && prefix/bin/oshcc -O2 examples/ring.c -o ring && prefix/bin/oshrun -np 4 ./ring"
    echo "from pip install to the first picture: $seconds s" | tee -a "$times"
    [ "$seconds" -le 60 ] || failed=1
fi
if [ -n "$package" ]; then
    name=package
    machine package
    cp "$package" "$root/given/"
    step "dpkg --install /given/$(basename "$package")"
    step "crosswarp solve laplace1d"
    step "crosswarp solve examples/electrodes.toml --png electrodes.png --plot convergence.svg && test -s electrodes.png"
    step "crosswarp run -n 4 -- crosswarp solve laplace1d --json"
    step "crosswarp reduce sum examples/jacksboro/jacksboro_dem.npy"
    step "crosswarp histogram examples/jacksboro/jacksboro_dem.npy --svg heights.svg && test -s heights.svg"
    step "oshcc -O2 examples/ring.c -o ring && oshrun -np 4 ./ring"
fi
if [ -n "$sources" ]; then
    name=sources
    machine sources
    mkdir "$root/home/crosswarp"
    git -C "$here" archive HEAD | tar -C "$root/home/crosswarp" -x
    RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
    export RUSTUP_HOME
    # The compiler, its tools, and what cargo has fetched before; what it builds goes to the image.
    toolchain=$(rustc --print sysroot)
    rust="$toolchain ${CARGO_HOME:-$HOME/.cargo}/registry"
    rust_path=$toolchain/bin:
    mkdir -p "$root/home/.cargo"
    [ ! -e "${CARGO_HOME:-$HOME/.cargo}/config.toml" ] || cp "${CARGO_HOME:-$HOME/.cargo}/config.toml" "$root/home/.cargo/"
    ln -s "${CARGO_HOME:-$HOME/.cargo}/registry" "$root/home/.cargo/registry"
    step "cd crosswarp && cargo install --quiet --offline --root /home --path crates/cli"
    step "crosswarp solve laplace1d"
fi
echo
cat "$times"
exit "$failed"
