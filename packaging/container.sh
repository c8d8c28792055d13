#!/bin/sh
# container.sh FOLDER: builds the container of the Debian package in FOLDER and tries it: a solve, a world of processes, a C
# program. By podman or docker; where neither starts a container, as on a machine that is one itself, by buildah, which as
# root needs neither control groups nor limits of its own.
#
# The base image is pulled. Where that can't be, mmdebstrap makes one of the release that this machine has.
set -eu
folder=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
container=''
clean() {
    [ -z "$container" ] || buildah rm "$container" >/dev/null
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cp "$here/../examples/ring.c" "$work/"
released=debian:stable-slim
name=$released

# Whether there is now a root of this machine's release in base.tar, to be imported.
made() {
    [ -e "$work/base.tar" ] || {
        command -v mmdebstrap >/dev/null &&
            mmdebstrap --quiet --variant=minbase "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/part.tar" &&
            mv "$work/part.tar" "$work/base.tar"
    } || return
    name=localhost/crosswarp-base
}
import_by_buildah() {
    scratch=$(buildah from scratch)
    buildah add --quiet "$scratch" "$work/base.tar" / >/dev/null
    buildah commit --quiet "$scratch" "$name" >/dev/null
    buildah rm "$scratch" >/dev/null
}
tries='crosswarp solve laplace2d --nx 257 --ny 257 && crosswarp run -n 4 -- crosswarp solve laplace1d --quiet &&
    oshcc -O2 /given/ring.c -o /tmp/ring && oshrun -np 4 /tmp/ring'

for tool in podman docker; do
    "$tool" info >/dev/null 2>&1 || continue
    "$tool" pull --quiet "$name" >/dev/null 2>&1 ||
        { made && "$tool" import "$work/base.tar" "$name"; } >/dev/null 2>&1 || { name=$released; continue; }
    "$tool" run --rm "$name" true >/dev/null 2>&1 || { name=$released; continue; }
    "$tool" build --build-arg "BASE=$name" -t crosswarp -f "$here/Containerfile" "$folder"
    "$tool" run --rm crosswarp solve laplace1d
    "$tool" run --rm -v "$work:/given:ro" --entrypoint sh crosswarp -c "$tries"
    echo "the container works, by $tool"
    exit
done
if [ "$(id -u)" = 0 ] && command -v buildah >/dev/null; then
    buildah pull --quiet "$name" >/dev/null 2>&1 || { made && import_by_buildah; } || {
        echo "$name can't be pulled, and without mmdebstrap none is made" >&2
        exit 77
    }
    buildah bud --isolation chroot --quiet --build-arg "BASE=$name" -t crosswarp -f "$here/Containerfile" "$folder"
    entrypoint=$(buildah inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' crosswarp)
    [ "$entrypoint" = '[crosswarp]' ] || { echo "the container starts $entrypoint, not crosswarp" >&2; exit 1; }
    container=$(buildah from crosswarp)
    buildah run --isolation chroot -v "$work:/given:ro" "$container" -- sh -c "$tries"
    echo "the container works, by buildah"
    exit
fi
echo "neither podman nor docker starts a container, and there is no buildah, or no root" >&2
exit 77
