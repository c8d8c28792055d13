// The exchange of halos between neighbouring PEs: put + signal, nothing else. The host side is
// `exchange::device_put::DevicePut`.
//
// It runs beside the pass that makes the field: the pass makes the outermost rows first and counts them, and this
// kernel waits for the count, then for the neighbours, in a few small blocks that find room beside the pass's. It
// reads only rows that are counted, and writes only halos, and ghost rows that wrap around, which are counted, too;
// nobody reads the halos of a field that is still being made, because the next pass is behind this kernel, and the
// passes that read those of the field in the same memory before are over when the pass that counts begins.
//
// Exchanges are numbered from 1, run one after the other on a stream, and use one of two buffers in turn. Why no
// buffer is overwritten while it is read: this kernel puts into a neighbour's buffer in exchange s only when the
// stream has ended exchange s − 1, at whose end all signals s − 1 of the neighbour had come. The neighbour's kernel
// sent them before it received in its exchange s − 1, hence after its exchange s − 2 had ended, which had read the
// buffer that exchange s writes. Every exchange signals in both directions, also when it carries no rows.
#pragma once
#include "jacobi/arguments.cuh"
#include "pe.cuh"

namespace crosswarp {

// Bytes that a block copies with all its loads in flight at once.
constexpr int piece_bytes = exchange_threads * 8 * 16;

// Calls `copy(element of the field's rows, element of the buffer, elements)` for this block's pieces of `count` rows.
template <class F, class Copy> __device__ inline void share(const exchange<F>& e, int count, Copy copy) {
    constexpr int piece = piece_bytes / sizeof(F);
    int rows = count, columns = e.columns;
    if (e.pitch == columns) {
        // Rows without gaps are one row.
        columns *= rows;
        rows = 1;
    }
    // There may be almost 2³¹ columns.
    int across = columns / piece + (columns % piece != 0);
    for (int i = blockIdx.x; i < rows * across; i += gridDim.x) {
        i64 row = i / across, x = i % across * piece;
        copy(row * e.pitch + x, row * columns + x, columns - x < piece ? columns - x : piece);
    }
}

// Waits until `signal`, which PE `from` changes, is at least `value`; false if the wait was given up. The whole block
// calls.
__device__ inline bool come(const u64* signal, u64 value, int from, const block& b) {
    __shared__ bool seen;
    if (b.rank() == 0) seen = signal_wait_until(signal, cmp::ge, value, from);
    b.sync();
    bool there = seen;
    // The next wait writes it again.
    b.sync();
    return there;
}

// The whole grid takes part; blocks share out pieces of rows.
template <class F> __device__ inline void exchange_halos(const exchange<F>& e) {
    block b;
    // Acquire by one thread, passed on to the others by a barrier: the rows that go have been made.
    if (!come(e.signals + 2, e.made, my_pe(), b)) return;
    F* buffers = e.buffers + 2 * e.part * (e.number & 1);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const edge& to = e.edges[side];
        if (to.pe < 0) continue;
        // What goes up comes from below.
        F* buffer = buffers + (1 - side) * e.part;
        const F* from = e.field + (to.send - e.first) * e.pitch;
        share(e, to.count, [&](i64 field, i64 at, i64 n) { put(buffer + at, from + field, n, to.pe, b); });
        b.sync();
        // Release, after the whole block's puts: who sees the signal sees them.
        if (b.rank() == 0) signal(e.signals + (1 - side), 1, signal_op::add, to.pe);
    }
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const edge& from = e.edges[side];
        if (from.pe < 0) continue;
        // Acquire, too: the neighbour's rows have come.
        if (!come(e.signals + side, e.number * gridDim.x, from.pe, b)) return;
        const F* buffer = buffers + side * e.part;
        F* to = e.field + (from.receive - e.first) * e.pitch;
        share(e, from.count, [&](i64 field, i64 at, i64 n) {
            detail::copy<unit_of<F>, true>(to + field, buffer + at, n * sizeof(F), b);
        });
    }
}

// The kernel for fields of `F`.
#define CROSSWARP_EXCHANGE(name, F)                                                              \
    extern "C" __global__ void __launch_bounds__(cw::exchange_threads) name(cw::exchange<F> e) { \
        cw::exchange_halos(e);                                                                   \
    }

}  // namespace crosswarp
