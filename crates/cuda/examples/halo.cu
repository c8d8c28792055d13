// Damped Jacobi sweeps on a line of points that is spread over the PEs, all in one kernel on each PE.
#include "pe.cuh"  // the verbs between PEs; brings the other levels with it

using namespace cw;

// `u`: two states of n + 2 points, read and written in turn; points 1..n are this PE's own, 0 and n + 1
// the halo, copies of the neighbours' outermost points (at the ends of the line: fixed values).
// `left_done`, `right_done`: how many sweeps the neighbour has done whose point is in my halo.
// All three are symmetric. One block per PE.
extern "C" __global__ void halo(float* u, u64* left_done, u64* right_done, int n, u64 sweeps) {
    block b;  // the scope of all threads of this block
    const int me = my_pe();
    const bool has_left = me > 0, has_right = me + 1 < n_pes();

    for (u64 sweep = 1; sweep <= sweeps; ++sweep) {
        const float* old_state = u + (sweep - 1) % 2 * (n + 2);
        float* new_state = u + sweep % 2 * (n + 2);

        // The neighbours' points of the sweep before must have come; `ge`, for a neighbour may be one
        // sweep ahead. One thread waits; it acquires for all through the barrier below.
        bool here = true;
        if (b.rank() == 0) {
            if (has_left) here = signal_wait_until(left_done, cmp::ge, sweep - 1);
            if (has_right) here = signal_wait_until(right_done, cmp::ge, sweep - 1) && here;
        }
        // A barrier of the block: the sweep before is complete. If a wait gave up, all leave.
        if (!__syncthreads_and(here)) return;

        for (int i = 1 + b.rank(); i <= n; i += b.size()) {
            float old = old_state[i];
            float value = old + 0.3f * ((old_state[i - 1] - old) + (old_state[i + 1] - old));
            new_state[i] = value;
            // My outermost points go to the neighbours' halos at once. Same thread, so the signal
            // (a release) follows the point, and also this thread's reading of its own halo: a
            // neighbour overwrites that halo point only after it has seen this signal, so two states
            // are enough and nobody waits for an acknowledgement.
            if (i == 1 && has_left) {
                p(&new_state[n + 1], value, me - 1);
                signal(right_done, sweep, signal_op::set, me - 1);
            }
            if (i == n && has_right) {
                p(&new_state[0], value, me + 1);
                signal(left_done, sweep, signal_op::set, me + 1);
            }
        }
    }
}
