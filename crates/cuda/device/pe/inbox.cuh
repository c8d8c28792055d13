// Atomic operations from PEs of other hosts on words of this GPU. Only the GPU itself changes words of its memory
// atomically, so the host leaves what is asked in an inbox there, and threads of kernels execute it while they wait
// (pe/wait.cuh). Where none waits, the host starts a kernel for it.
#pragma once
#include "pe/world.cuh"

namespace crosswarp {

namespace detail {

template <class W> __device__ inline u64 execute_on(W* at, atomic_op op, u64 operand, u64 expected) {
    const W value = static_cast<W>(operand);
    switch (op) {
        case atomic_op::swap: return atomicExch_system(at, value);
        case atomic_op::compare_swap: return atomicCAS_system(at, static_cast<W>(expected), value);
        case atomic_op::add: return atomicAdd_system(at, value);
        case atomic_op::bit_and: return atomicAnd_system(at, value);
        case atomic_op::bit_or: return atomicOr_system(at, value);
        default: return atomicXor_system(at, value);
    }
}

__device__ inline u64 execute(const inbox_entry& entry) {
    const u64 at = crosswarp_world.heap + entry.offset;
    const auto op = static_cast<atomic_op>(entry.op & 0xff);
    switch (op) {
        case atomic_op::add_f32:
            return __float_as_uint(atomicAdd_system(reinterpret_cast<float*>(at), __uint_as_float((u32)entry.operand)));
        case atomic_op::add_f64:
            return __double_as_longlong(
                atomicAdd_system(reinterpret_cast<double*>(at), __longlong_as_double(entry.operand)));
        case atomic_op::add_f16: {
            u16 old;
            asm volatile("atom.add.noftz.relaxed.sys.global.f16 %0, [%1], %2;"
                         : "=h"(old) : "l"(at), "h"((u16)entry.operand) : "memory");
            return old;
        }
        default: break;
    }
    if (entry.op >> 8 == 2) return execute_on(reinterpret_cast<u32*>(at), op, entry.operand, entry.expected);
    return execute_on(reinterpret_cast<u64*>(at), op, entry.operand, entry.expected);
}

// Executes what has come. Any thread.
__device__ inline __noinline__ void serve_inbox() {
#ifdef CROSSWARP_ROUTED
    const route_state& route = crosswarp_route;
    if (route.inbox == nullptr || load_volatile(route.inbox_head) == load_volatile(route.inbox_tail)) return;
    if (atomicCAS(route.inbox_lock, 0u, 1u) != 0) return;
    // Races prevented: entries must not be read before the number that says that they have come, nor the tail before
    // whoever had the lock has left it.
    __threadfence_system();
    u64 tail = load_volatile(route.inbox_tail);
    const u64 head = load_volatile(route.inbox_head);
    __threadfence_system();
    for (; tail != head; ++tail) {
        const u64 before = execute(load_volatile(route.inbox + tail % inbox_entries));
        *const_cast<volatile u64*>(route.inbox_results + tail % inbox_entries) = before;
    }
    // Race prevented: the host must not see the count before the results and the changes.
    __threadfence_system();
    *const_cast<volatile u64*>(route.inbox_done) = tail;
    *const_cast<volatile u64*>(route.inbox_tail) = tail;
    __threadfence();
    atomicExch(route.inbox_lock, 0u);
#endif
}

}  // namespace detail
}  // namespace crosswarp
