// A token goes once around the ring of PEs, inside one kernel on each PE.
#include "pe.cuh"  // the verbs between PEs; brings the other levels with it

using namespace cw;

// One thread per PE. `token` and `arrived` are symmetric: every PE has them, at the same offset of its
// heap, so an address of mine names the same object on the PE that a verb is told. Both are zero before.
extern "C" __global__ void ring(u64* token, u64* arrived) {
    int me = my_pe();
    int right = (me + 1) % n_pes();  // in a world of one: I am my own neighbour
    u64 value = 100;                 // what PE 0 sends off

    if (me != 0) {
        // Wait until my own `arrived` is 1. False: the world's time limit passed, the host reports it.
        if (!signal_wait_until(arrived, cmp::eq, 1)) return;
        // The wait acquires what the signal released, so a plain load sees the token put before it.
        value = *token + 1;
    }

    // Copy one value to the neighbour's `token`, then set its `arrived` to 1. The neighbour can not see
    // the signal without the data.
    put_signal(token, &value, 1, arrived, 1, signal_op::set, right);

    // PE 0 sent the first one; the last PE's comes back to it.
    if (me == 0) signal_wait_until(arrived, cmp::eq, 1);
}
