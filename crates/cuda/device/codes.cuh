// Numbers of operations and comparisons. Made from src/layout.rs, which is to be changed instead.
#pragma once

namespace crosswarp {

// Operations of `reduce`, as PEs compare what they do.
enum class op_code : int {
    sum = 0,
    prod = 1,
    min = 2,
    max = 3,
    bit_and = 4,
    bit_or = 5,
    bit_xor = 6,
};
// What `signal_wait_until` and its kin compare with, as in OpenSHMEM's SHMEM_CMP_*.
enum class cmp : int {
    eq = 0,
    ne = 1,
    gt = 2,
    ge = 3,
    lt = 4,
    le = 5,
};
// What a kernel asks of its host to do at a PE of another host (pe/route.cuh).
enum class route_op : int {
    put = 1,
    word = 2,
    get = 3,
    fetch = 4,
    put_strided = 5,
    get_strided = 6,
    atomic = 7,
    atomic_fetch = 8,
};
// Atomic operations that a GPU executes for PEs of other hosts.
enum class atomic_op : int {
    swap = 0,
    compare_swap = 1,
    add = 2,
    bit_and = 3,
    bit_or = 4,
    bit_xor = 5,
    add_f32 = 6,
    add_f64 = 7,
    add_f16 = 8,
};

}  // namespace crosswarp
