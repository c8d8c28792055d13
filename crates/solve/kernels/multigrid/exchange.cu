// Rows of levels between the GPUs of PEs: put + signal. The host side is `exchange::level_puts::LevelPuts`.
//
// Why no buffer is overwritten while it is read: exchanges of a kind are numbered, run one after the other on a PE's
// stream, and use one of two sets of buffers in turn. A PE puts into another's buffer in exchange s only when its stream
// has ended exchange s − 1, at whose end it had seen all signals s − 1 of that PE. That PE's kernel had sent them before it
// received in exchange s − 1, hence after its exchange s − 2 had ended, which had read the buffer that exchange s writes.
#include "multigrid/arguments.cuh"
#include "pe.cuh"

namespace crosswarp {

// Bytes that a block copies with all its loads in flight at once.
constexpr i64 exchange_piece = level_exchange_threads * 8 * 16;

// Calls `copy(first byte, bytes)` for this block's pieces of `bytes`.
template <class Copy> __device__ inline void share(i64 bytes, Copy copy) {
    for (i64 at = blockIdx.x * exchange_piece; at < bytes; at += gridDim.x * exchange_piece) {
        copy(at, bytes - at < exchange_piece ? bytes - at : exchange_piece);
    }
}

// The whole grid takes part.
extern "C" __global__ void __launch_bounds__(level_exchange_threads) level_exchange(const __grid_constant__ level_exchange_of e) {
    block b;
    for (int i = 0; i < e.sends; ++i) {
        const level_edge& to = e.send[i];
        share(to.bytes, [&](i64 at, i64 n) {
            put((u64*)(to.buffer + at), (const u64*)(to.rows + at), n / 8, to.pe, b);
        });
        b.sync();
        // Release, after the whole block's puts: who sees the signal sees them.
        if (b.rank() == 0) signal(e.signals + to.signal, 1, signal_op::add, to.pe);
    }
    __shared__ bool come;
    for (int i = 0; i < e.receives; ++i) {
        const level_edge& from = e.receive[i];
        // Acquire by one thread, passed on to the others by a barrier: the rows of all blocks have come.
        if (b.rank() == 0) come = signal_wait_until(e.signals + from.signal, cmp::ge, e.sent, from.pe);
        b.sync();
        // A wait that was given up: the host is told.
        if (!come) return;
        // The next wait writes it again.
        b.sync();
        share(from.bytes, [&](i64 at, i64 n) {
            detail::copy<u64, true>((void*)(from.rows + at), (const void*)(from.buffer + at), n, b);
        });
    }
}

}  // namespace crosswarp
