// Measuring kernels of one-sided communication. bench/peers/nvshmem.cu has the same loops for NVSHMEM.
//
// Every kernel takes the same arguments, is launched on every PE of the world at once, and makes
// `iterations` iterations; the figure is the time of the launch divided by them.
//
//   dest, source  symmetric, `bytes` (0: unused) each
//   flag          symmetric, one u64, zero before the row's first launch
//   grid          for `_grid` kernels: grid_state_bytes(blocks) of this GPU's memory, zero at first
//   bytes         as in the table; a multiple of 4 × blocks, for fcollect and alltoall of 4 × PEs
//   iterations    of this launch
//   base          iterations that the row's earlier launches made: the values of ping-pongs only grow.
//                 `dest` of p_pingpong is zero before the row's first launch
//
// The scope is the end of the name: _thread is launched with 1 thread, _warp with 32, _block with one
// block of any size, _grid cooperatively; the bandwidth kernels with any blocks and threads.
//
// | kernel                         | PEs | one iteration                                             |
// |--------------------------------|-----|-----------------------------------------------------------|
// | p_quiet_thread                 | 2   | PE 0 stores one int on PE 1 and completes it (quiet)      |
// | put_quiet_block                | 2   | PE 0 puts `bytes` on PE 1; meet; thread 0 quiets          |
// | put_quiet_warp                 | 2   | the same by one warp                                      |
// | get_block, get_warp            | 2   | PE 0 gets `bytes` of PE 1; the scope meets                |
// | signal_relaxed_pingpong_thread | 2   | there and back: a signal that orders nothing              |
// | signal_pingpong_thread         | 2   | there and back: a signal after data, a wait before data   |
// | p_pingpong_thread              | 2   | there and back: p of one int, wait_until on its value     |
// | p_signal_pingpong_thread       | 2   | there and back: p of one int, signal; wait for the signal |
// | put_signal_pingpong_…          | 2   | there and back: put_signal of `bytes`, wait for the signal |
// | bandwidth_p                    | 2   | PE 0 stores `bytes` on PE 1 by p, one int each            |
// | bandwidth_store                | 2   | the same by plain stores through ptr                      |
// | bandwidth_put_block            | 2   | PE 0 puts `bytes` on PE 1, each block its part            |
// | bandwidth_get_block            | 2   | PE 0 gets `bytes` of PE 1, each block its part            |
// | barrier_…, sync_…              | all | one barrier, one sync                                     |
// | meeting_block                  | all | what a collective does beside exchanging: its number, two syncs   |
// | sum_i32_…                      | all | element sum of `bytes` of int                             |
// | sum_f32_grid                   | all | element sum of `bytes` of float                           |
// | fcollect_…                     | all | `dest` receives `bytes`, bytes / PEs from each            |
// | alltoall_…                     | all | `dest` receives `bytes`, bytes / PEs from each            |
// | broadcast_…                    | all | broadcast of `bytes` from PE 0                            |
//
// With 2 PEs, the others return at once. Latencies: µs per iteration, of a ping-pong for the whole round
// trip. Bandwidths: `bytes` per iteration; the blocks do not meet between iterations, and all is complete
// before the kernel ends. Collectives follow one another without a pause.
#include "pe.cuh"

#define KERNEL(name) BOUNDED_KERNEL(name, )
#define BOUNDED_KERNEL(name, bounds)                                                                     \
    extern "C" __global__ void bounds name(int* dest, const int* source, cw::u64* flag, cw::grid_state* grid,   \
                                    cw::u64 bytes, cw::u64 iterations, cw::u64 base)

// ---- one way ---------------------------------------------------------------------------------------

KERNEL(p_quiet_thread) {
    if (cw::my_pe() != 0) return;
    for (cw::u64 i = 0; i < iterations; ++i) {
        cw::p(dest, (int)i, 1);
        cw::quiet();
    }
}

template <class Scope>
__device__ inline void put_quiet(int* dest, const int* source, cw::u64 bytes, cw::u64 iterations) {
    if (cw::my_pe() != 0) return;
    Scope scope;
    for (cw::u64 i = 0; i < iterations; ++i) {
        cw::put(dest, source, bytes / sizeof(int), 1, scope);
        scope.sync();
        if (scope.rank() == 0) cw::quiet();
        scope.sync();
    }
}
KERNEL(put_quiet_warp) { put_quiet<cw::warp>(dest, source, bytes, iterations); }
KERNEL(put_quiet_block) { put_quiet<cw::block>(dest, source, bytes, iterations); }

template <class Scope>
__device__ inline void get_repeatedly(int* dest, const int* source, cw::u64 bytes, cw::u64 iterations) {
    if (cw::my_pe() != 0) return;
    Scope scope;
    for (cw::u64 i = 0; i < iterations; ++i) {
        cw::get(dest, source, bytes / sizeof(int), 1, scope);
        scope.sync();
    }
}
KERNEL(get_warp) { get_repeatedly<cw::warp>(dest, source, bytes, iterations); }
KERNEL(get_block) { get_repeatedly<cw::block>(dest, source, bytes, iterations); }

// ---- there and back --------------------------------------------------------------------------------

// Alternates PE 0's `send(value, peer)` and `receive(value)` with PE 1's; all threads of a scope call.
// Ends early when a wait ran out of time.
template <class Send, class Receive>
__device__ inline void pingpong(cw::u64 iterations, cw::u64 base, Send send, Receive receive) {
    int me = cw::my_pe();
    if (me > 1) return;
    for (cw::u64 value = base + 1; value <= base + iterations; ++value) {
        if (me == 1 && !receive(value)) return;
        send(value, 1 - me);
        if (me == 0 && !receive(value)) return;
    }
}

KERNEL(signal_relaxed_pingpong_thread) {
    pingpong(
        iterations, base, [=](cw::u64 value, int peer) { cw::atomic_set(flag, value, peer); },
        [=](cw::u64 value) {
            auto seen = [=] { return cw::signal_fetch(flag); };
            return cw::spin([=] { return seen() >= value; }, 1, -1, flag, value, seen);
        });
}

KERNEL(signal_pingpong_thread) {
    pingpong(
        iterations, base,
        [=](cw::u64 value, int peer) { cw::signal(flag, value, cw::signal_op::set, peer); },
        [=](cw::u64 value) { return cw::signal_wait_until(flag, cw::cmp::ge, value); });
}

KERNEL(p_pingpong_thread) {
    pingpong(
        iterations, base, [=](cw::u64 value, int peer) { cw::p(dest, (int)value, peer); },
        [=](cw::u64 value) { return cw::wait_until(dest, cw::cmp::eq, (int)value); });
}

KERNEL(p_signal_pingpong_thread) {
    pingpong(
        iterations, base,
        [=](cw::u64 value, int peer) {
            cw::p(dest, (int)value, peer);
            cw::signal(flag, value, cw::signal_op::set, peer);
        },
        [=](cw::u64 value) { return cw::signal_wait_until(flag, cw::cmp::ge, value); });
}

template <class Scope>
__device__ inline void put_signal_pingpong(int* dest, const int* source, cw::u64* flag, cw::u64 bytes,
                                           cw::u64 iterations, cw::u64 base) {
    Scope scope;
    pingpong(
        iterations, base,
        [=](cw::u64 value, int peer) {
            cw::put_signal(dest, source, bytes / sizeof(int), flag, value, cw::signal_op::set, peer, scope);
        },
        [=](cw::u64 value) {
            bool came = scope.rank() != 0 || cw::signal_wait_until(flag, cw::cmp::ge, value);
            // The data is the whole scope's, not only of the thread that saw the signal.
            scope.sync();
            return came && !cw::given_up();
        });
}
KERNEL(put_signal_pingpong_thread) {
    put_signal_pingpong<cw::thread>(dest, source, flag, bytes, iterations, base);
}
KERNEL(put_signal_pingpong_warp) {
    put_signal_pingpong<cw::warp>(dest, source, flag, bytes, iterations, base);
}
KERNEL(put_signal_pingpong_block) {
    put_signal_pingpong<cw::block>(dest, source, flag, bytes, iterations, base);
}

// ---- bandwidth -------------------------------------------------------------------------------------

// `move(first, n)` for this block's part of the ints, again and again. The block's sync keeps the
// compiler from merging iterations; blocks do not wait for one another.
template <class Move>
__device__ inline void by_blocks(cw::u64 bytes, cw::u64 iterations, Move move) {
    if (cw::my_pe() != 0) return;
    cw::u64 part = bytes / sizeof(int) / gridDim.x;
    cw::block block;
    for (cw::u64 i = 0; i < iterations; ++i) {
        move(blockIdx.x * part, part);
        block.sync();
    }
    // After the block's sync one thread completes what all its threads have put.
    if (block.rank() == 0) cw::quiet();
}

KERNEL(bandwidth_p) {
    by_blocks(bytes, iterations, [=](cw::u64 first, cw::u64 n) {
        for (cw::u64 k = first + threadIdx.x; k < first + n; k += blockDim.x) cw::p(dest + k, source[k], 1);
    });
}

KERNEL(bandwidth_store) {
    int* peer = cw::ptr(dest, 1);
    by_blocks(bytes, iterations, [=](cw::u64 first, cw::u64 n) {
        for (cw::u64 k = first + threadIdx.x; k < first + n; k += blockDim.x) peer[k] = source[k];
    });
}

KERNEL(bandwidth_put_block) {
    by_blocks(bytes, iterations, [=](cw::u64 first, cw::u64 n) {
        cw::put<cw::block>(dest + first, source + first, n, 1);
    });
}

KERNEL(bandwidth_get_block) {
    by_blocks(bytes, iterations, [=](cw::u64 first, cw::u64 n) {
        cw::get<cw::block>(dest + first, source + first, n, 1);
    });
}

// ---- collectives -----------------------------------------------------------------------------------

// `call` is the collective, of `n` ints (or `n_each` per PE) by the threads of `scope`.
#define COLLECTIVE(name, call)                                              \
    template <class Scope>                                                  \
    __device__ inline void repeat_##name(int* dest, const int* source, cw::u64 bytes, cw::u64 iterations, \
                                         const Scope& scope) {              \
        const cw::team& all = cw::world();                                  \
        [[maybe_unused]] cw::u64 n = bytes / sizeof(int);                   \
        [[maybe_unused]] cw::u64 n_each = n / all.size;                     \
        for (cw::u64 i = 0; i < iterations; ++i) {                          \
            if (!(call)) return;                                            \
        }                                                                   \
    }

#define ON_THREADS(name, scope) \
    KERNEL(name##_##scope) { repeat_##name(dest, source, bytes, iterations, cw::scope()); }

#define ON_GRID(name)                                                               \
    BOUNDED_KERNEL(name##_grid, __launch_bounds__(512)) {                            \
        cw::grid whole(grid);                                                       \
        repeat_##name(dest, source, bytes, iterations, cw::grid_threads(whole));    \
    }

COLLECTIVE(barrier, cw::barrier(all, scope))
ON_THREADS(barrier, thread)
ON_THREADS(barrier, warp)
ON_THREADS(barrier, block)

COLLECTIVE(sync, cw::sync(all, scope))
ON_THREADS(sync, thread)
ON_THREADS(sync, warp)
ON_THREADS(sync, block)

// A rendezvous at which nothing is sent and nobody is waited for.
template <class Scope> __device__ inline bool empty_rendezvous(const cw::team& all, const Scope& scope) {
    const cw::u64 number = cw::detail::begin_rendezvous(all, scope);
    cw::detail::count_rendezvous(all, number, scope);
    return cw::detail::end_rendezvous(all, number, scope);
}
COLLECTIVE(meeting, empty_rendezvous(all, scope))
ON_THREADS(meeting, block)

COLLECTIVE(sum_i32, cw::sum(dest, source, n, all, scope))
ON_THREADS(sum_i32, thread)
ON_THREADS(sum_i32, warp)
ON_THREADS(sum_i32, block)

COLLECTIVE(sum_f32, cw::sum(reinterpret_cast<float*>(dest), reinterpret_cast<const float*>(source), n, all,
                            scope))
ON_GRID(sum_f32)

COLLECTIVE(fcollect, cw::fcollect(dest, source, n_each, all, scope))
ON_THREADS(fcollect, warp)
ON_THREADS(fcollect, block)
ON_GRID(fcollect)

COLLECTIVE(alltoall, cw::alltoall(dest, source, n_each, all, scope))
ON_THREADS(alltoall, warp)
ON_THREADS(alltoall, block)
ON_GRID(alltoall)

COLLECTIVE(broadcast, cw::broadcast(dest, source, n, 0, all, scope))
ON_THREADS(broadcast, warp)
ON_THREADS(broadcast, block)
ON_GRID(broadcast)
