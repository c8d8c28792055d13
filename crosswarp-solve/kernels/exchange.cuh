// The exchange of halos between neighbouring PEs: put + signal, nothing else. The host's twin is
// `cuda::exchange::Exchange`.
//
// Exchanges are numbered from 1 and use one of two buffers in turn. Why no buffer is overwritten while it is
// read: this kernel puts into a neighbour's buffer in exchange s only when the stream has ended exchange
// s − 1, at whose end all signals s − 1 of the neighbour had come. The neighbour's kernel sent them at the
// start of its exchange s − 1, hence after its exchange s − 2 had ended, which had read the buffer that
// exchange s writes. Every exchange signals in both directions, also when it carries no rows.
#pragma once
#include "pe.cuh"

namespace crosswarp {

// What an exchange does on one side.
struct edge {
    i32 pe;       // the neighbour; −1: none
    i32 count;    // rows that travel each way
    i32 send;     // the first row that goes
    i32 receive;  // the first row that comes
};

template <class F> struct exchange {
    F* field;  // address of row `first`, column 0
    F* buffers;  // symmetric; two of [above, below] of `part` elements
    u64* signals;  // symmetric; above, below: blocks that have sent, added up over all exchanges
    i64 pitch;
    i64 part;
    u64 number;
    i32 first;
    i32 columns;  // elements of a row that travel, a multiple of 128
    edge edges[2];  // above, below
};

constexpr int piece = 2048;

// Elements of the piece of a row that begins with element x.
template <class F> __device__ inline int part(const exchange<F>& e, int x) {
    return e.columns - x < piece ? e.columns - x : piece;
}

// The whole grid takes part; blocks share out pieces of rows.
template <class F> __device__ inline void exchange_halos(const exchange<F>& e) {
    block b;
    int across = (e.columns + piece - 1) / piece;
    F* buffers = e.buffers + 2 * e.part * (e.number & 1);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const edge& to = e.edges[side];
        if (to.pe < 0) continue;
        // What goes up comes from below.
        F* buffer = buffers + (1 - side) * e.part;
        for (int i = blockIdx.x; i < to.count * across; i += gridDim.x) {
            int row = i / across, x = i % across * piece;
            const F* from = e.field + (i64)(to.send + row - e.first) * e.pitch + x;
            put(buffer + (i64)row * e.columns + x, from, part(e, x), to.pe, b);
        }
        b.sync();
        // Release, after the whole block's puts: who sees the signal sees them.
        if (b.rank() == 0) signal(e.signals + (1 - side), 1, signal_op::add, to.pe);
    }
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const edge& from = e.edges[side];
        if (from.pe < 0) continue;
        __shared__ bool come;
        // Acquire by one thread, passed on to the others by the barrier.
        if (b.rank() == 0) come = signal_wait_until(e.signals + side, cmp::ge, e.number * gridDim.x);
        b.sync();
        bool there = come;
        b.sync();
        if (!there) return;
        const F* buffer = buffers + side * e.part;
        for (int i = blockIdx.x; i < from.count * across; i += gridDim.x) {
            int row = i / across, x = i % across * piece;
            F* to = e.field + (i64)(from.receive + row - e.first) * e.pitch + x;
            detail::copy<unit_of<F>, true>(to, buffer + (i64)row * e.columns + x,
                                           sizeof(F) * part(e, x), b);
        }
    }
}

}  // namespace crosswarp
