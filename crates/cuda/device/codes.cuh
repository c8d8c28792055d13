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

}  // namespace crosswarp
