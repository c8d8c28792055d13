#!/bin/sh
# debian.sh COMMAND FOLDER [KERNELS]: makes a Debian package in FOLDER of the installation that COMMAND, a built
# `crosswarp`, makes. KERNELS is what `crosswarp kernels --embed` made of the same sources: with it the package needs no
# NVRTC. Prints the package's name.
set -eu
command=$1 folder=$2 kernels=${3-}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
umask 022

"$command" install --prefix "$stage/usr" >&2
# What programs written for NVSHMEM are built with has a prefix of its own: NVSHMEM_HOME=/usr/lib/crosswarp-nvshmem.
nvshmem=$stage/usr/lib/crosswarp-nvshmem
"$command" install --nvshmem --prefix "$nvshmem" >&2
ln -sf ../../../bin/crosswarp "$nvshmem/bin/crosswarp"
# Archives are for those who build from the sources.
rm -f "$stage/usr/lib/libcrosswarp_shmem.a" "$nvshmem/lib/libnvshmem.a"
set -- "$stage/usr/bin/crosswarp" "$stage/usr/lib/libcrosswarp_shmem.so" "$nvshmem/lib/libnvshmem_host.so.3"
strip --strip-unneeded "$@"
# Debian's Open MPI has commands of the same names, which are no alternatives of Debian's. So these have names of their own,
# and those that nobody has are made when the package is installed.
names="oshcc oshc++ oshcxx oshCC oshrun"
for name in $names; do mv "$stage/usr/bin/$name" "$stage/usr/bin/$name.crosswarp"; done
[ -z "$kernels" ] || install -D -m 644 "$kernels" "$stage/usr/share/crosswarp/kernels.bundle"
mkdir -p "$stage/usr/share/zsh/vendor-completions"
mv "$stage/usr/share/zsh/site-functions/_crosswarp" "$stage/usr/share/zsh/vendor-completions/"
rmdir "$stage/usr/share/zsh/site-functions"
gzip -9n "$stage"/usr/share/man/man1/*.1
mkdir -p "$stage/usr/share/doc/crosswarp"
here=$(cd "$(dirname "$0")/.." && pwd)
cat "$here/LICENSE-MIT" "$here/LICENSE-APACHE" >"$stage/usr/share/doc/crosswarp/copyright"

version=$("$command" --version | sed 's/^crosswarp \([^ ]*\).*/\1/')
# The newest version of the C library that a symbol asks for.
libc=$(objdump -T "$@" |
    sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -uV | tail -n 1)
architecture=$(dpkg --print-architecture)
mkdir "$stage/DEBIAN"
cat >"$stage/DEBIAN/control" <<CONTROL
Package: crosswarp
Version: $version
Architecture: $architecture
Maintainer: The authors of Crosswarp
Section: science
Priority: optional
Depends: libc6 (>= $libc), libgcc-s1
Suggests: gcc, libucx0
Installed-Size: $(du -sk --exclude=DEBIAN "$stage" | cut -f1)
Description: the same verbs at every level of a parallel machine
 Reproducible reductions, histograms, transpositions and Laplace and Poisson
 solves on CPUs and GPUs, over processes and hosts; OpenSHMEM for C and C++
 (oshcc, oshrun); what programs written for NVSHMEM are compiled again
 with (NVSHMEM_HOME=/usr/lib/crosswarp-nvshmem); models of occupancy, bank
 conflicts and roofline.
CONTROL
cat >"$stage/DEBIAN/postinst" <<POSTINST
#!/bin/sh
set -e
[ "\$1" = configure ] || exit 0
for name in $names; do
    if [ -e "/usr/bin/\$name" ] || [ -L "/usr/bin/\$name" ]; then
        [ "\$(readlink "/usr/bin/\$name")" = "\$name.crosswarp" ] ||
            echo "crosswarp: /usr/bin/\$name belongs to another package; Crosswarp's is \$name.crosswarp"
    else
        ln -s "\$name.crosswarp" "/usr/bin/\$name"
    fi
done
POSTINST
cat >"$stage/DEBIAN/prerm" <<PRERM
#!/bin/sh
set -e
[ "\$1" = remove ] || exit 0
for name in $names; do
    [ "\$(readlink "/usr/bin/\$name")" != "\$name.crosswarp" ] || rm "/usr/bin/\$name"
done
PRERM
chmod 755 "$stage/DEBIAN/postinst" "$stage/DEBIAN/prerm"
package=$folder/crosswarp_${version}_$architecture.deb
mkdir -p "$folder"
dpkg-deb --root-owner-group --build "$stage" "$package" >&2
echo "$package"
