// Puts and gets of PEs of other hosts, in worlds that have them.
#include "on_stream/kernels.cuh"

KERNEL(routed_copy)(void* remote, void* local, u64 bytes, i32 pe, i32 puts) {
    if (puts) {
        cw::detail::route_put(remote, local, bytes, pe, cw::thread());
    } else {
        cw::detail::route_get(local, remote, bytes, pe, cw::thread());
    }
}
KERNEL(routed_strided)(void* remote, u64 remote_stride, void* local, u64 local_stride, u64 width, u64 n, i32 pe, i32 puts) {
    const auto op = puts ? cw::route_op::put_strided : cw::route_op::get_strided;
    cw::detail::route_strided(op, reinterpret_cast<u64>(local), local_stride, remote, remote_stride, width, n, pe,
                              cw::thread());
}
KERNEL(routed_quiet)() { cw::quiet(); }
// Executes the inbox of atomic operations, if no other kernel does.
KERNEL(execute_inbox)() { cw::detail::serve_inbox(); }
