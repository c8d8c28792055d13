#!/bin/sh
# try.sh PACKAGE: installs the package (needs root), tries what it promises, and removes it.
set -eu
package=$(realpath "$1")
examples=$(cd "$(dirname "$0")/../examples" && pwd)
work=$(mktemp -d)
remove() {
    apt-get remove -qy crosswarp >/dev/null 2>&1 || dpkg --remove crosswarp
    rm -rf "$work"
}
apt-get install -qy --no-install-recommends "$package" >/dev/null
trap remove EXIT
cd "$work"
# Nothing of cargo or the sources.
try() { env -i HOME="$work" PATH=/usr/bin:/bin "$@"; }
try crosswarp solve laplace2d --nx 257 --ny 257 --quiet --png field.png
[ -s field.png ]
try oshcc.crosswarp -O2 "$examples/ring.c" -o ring
try oshrun.crosswarp -np 4 ./ring
for name in oshcc oshrun; do
    # The plain name, unless Debian's Open MPI has it.
    [ "$(readlink /usr/bin/$name)" = $name.crosswarp ] || dpkg -S "/usr/bin/$name" >/dev/null
done
try crosswarp install --prefix "$work/prefix"
[ -x "$work/prefix/bin/oshcc" ]
# Programs written for NVSHMEM: what needs neither a GPU nor the toolkit's headers.
home=/usr/lib/crosswarp-nvshmem
cat >pe.c <<'PROGRAM'
#include <stdio.h>
void nvshmem_init(void); void nvshmem_finalize(void); int nvshmem_my_pe(void); int nvshmem_n_pes(void);
int main(void) {
    nvshmem_init();
    printf("PE %d of %d\n", nvshmem_my_pe(), nvshmem_n_pes());
    nvshmem_finalize();
    return 0;
}
PROGRAM
try gcc pe.c -o pe -L$home/lib -lnvshmem_host -Wl,-rpath,$home/lib
[ "$(try $home/bin/nvshmrun -np 2 ./pe | sort)" = "PE 0 of 2
PE 1 of 2" ]
try $home/bin/nvshmem-info >/dev/null
try crosswarp install --nvshmem --prefix "$work/nvshmem"
cmp "$home/lib/libnvshmem_host.so.3" "$work/nvshmem/lib/libnvshmem_host.so.3"
gzip -t /usr/share/man/man1/crosswarp-solve.1.gz
if [ -e /usr/share/crosswarp/kernels.bundle ]; then
    # Kernels without a compiler.
    try CROSSWARP_NVRTC=/nonexistent crosswarp kernels --arch sm_86 >kernels
    tail -n 1 kernels
fi
echo "the package works"
