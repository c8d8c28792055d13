// Signals, and waiting for values that other PEs write.
//
// A wait returns true when its condition holds, false when the world's time limit ran out (then the
// host reports which wait it was). The value is read with acquire at system scope: what its writer put
// before a fence or signal is visible after.
#pragma once
#include "pe/atomic.cuh"
#include "pe/wait.cuh"

namespace crosswarp {

enum class signal_op : int { set, add };

// Changes `signal` on `pe` after everything this thread put before. One thread calls.
// Race prevented: the receiver must not see the signal before the data; the release orders them, and
// is cumulative over what this thread observed through a scope's `sync`.
__device__ inline void signal(u64* signal, u64 value, signal_op op, int pe) {
#ifdef CROSSWARP_ROUTED
    if (!detail::mapped(pe)) {
        // Race prevented: what this thread put to PEs of its own host must not be missed by who sees the signal.
        fence();
        if (op == signal_op::set) return detail::route_p(signal, value, pe);
        return detail::route_change(signal, atomic_op::add, value, pe);
    }
#endif
    u64* at = ptr(signal, pe);
    if (op == signal_op::set) {
        detail::store_release(at, value);
    } else {
        asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    }
}

// `put`, then `signal`. All threads of the scope call; the signal follows all threads' data.
template <class Scope = thread, class T>
__device__ inline void put_signal(T* dest, const T* source, u64 n, u64* flag, u64 value, signal_op op,
                                  int pe, const Scope& scope = Scope()) {
    put(dest, source, n, pe, scope);
    scope.sync();
    if (scope.rank() == 0) signal(flag, value, op, pe);
}

template <class T> __device__ inline bool test(const T* value, cmp how, same_t<T> expected) {
    using C = detail::carrier_of<T>;
    C seen = detail::load_acquire(reinterpret_cast<const C*>(value));
    return holds<T>(how, detail::bits<T>(seen), expected);
}

// Waits until my own `value` compares as asked. One thread, or all of a scope each for itself. `from`: the PE that
// writes it, if only one does: the wait ends when that one is gone, else when all others are.
template <class T>
__device__ inline bool wait_until(const T* value, cmp how, same_t<T> expected, int from = anyone) {
    using C = detail::carrier_of<T>;
    const C* at = reinterpret_cast<const C*>(value);
    return spin<looks_at_a_word>([=] { return test(value, how, expected); }, wait_value, from, value,
                                 (u64)detail::bits<C>(expected), [=] { return (u64)detail::load_relaxed(at); });
}

__device__ inline bool signal_wait_until(const u64* signal, cmp how, u64 expected, int from = anyone) {
    return wait_until(signal, how, expected, from);
}
__device__ inline u64 signal_fetch(const u64* signal) { return detail::load_relaxed(signal); }

// What the verbs over several values return beside an index or a count.
constexpr i64 nothing = -1;    // no value compares as asked, or there is none to compare
constexpr i64 timed_out = -2;  // a wait ended in vain, as one that returns false

// Over `n` values; an element whose `status` is not 0 is left out (`status` may be null).
// test_any: the lowest index that holds, or `nothing`.
template <class T>
__device__ inline i64 test_any(const T* values, u64 n, const int* status, cmp how, same_t<T> expected) {
    for (u64 i = 0; i < n; ++i) {
        if ((!status || status[i] == 0) && test(values + i, how, expected)) return (i64)i;
    }
    return nothing;
}
// test_all: whether all that are not left out hold; true if none is.
template <class T>
__device__ inline bool test_all(const T* values, u64 n, const int* status, cmp how, same_t<T> expected) {
    for (u64 i = 0; i < n; ++i) {
        if ((!status || status[i] == 0) && !test(values + i, how, expected)) return false;
    }
    return true;
}
// test_some: writes the indices that hold to `indices`, returns how many.
template <class T>
__device__ inline u64 test_some(const T* values, u64 n, u64* indices, const int* status, cmp how,
                                same_t<T> expected) {
    u64 found = 0;
    for (u64 i = 0; i < n; ++i) {
        if ((!status || status[i] == 0) && test(values + i, how, expected)) indices[found++] = i;
    }
    return found;
}

namespace detail {
__device__ inline bool none_left(u64 n, const int* status) {
    if (!status) return n == 0;
    for (u64 i = 0; i < n; ++i) {
        if (status[i] == 0) return false;
    }
    return true;
}
}  // namespace detail

// Waits until at least one holds; the lowest index that does. `nothing` at once if there is none to wait for.
template <class T>
__device__ inline i64 wait_until_any(const T* values, u64 n, const int* status, cmp how, same_t<T> expected) {
    if (detail::none_left(n, status)) return nothing;
    i64 found = nothing;
    const bool came = spin([&] { return (found = test_any(values, n, status, how, expected)) >= 0; }, wait_value,
                           anyone, values, (u64)expected, [=] { return (u64)values[0]; });
    return came ? found : timed_out;
}
// Waits until all have held, each at some time; false if one ended in vain.
template <class T>
__device__ inline bool wait_until_all(const T* values, u64 n, const int* status, cmp how, same_t<T> expected) {
    for (u64 i = 0; i < n; ++i) {
        if ((!status || status[i] == 0) && !wait_until(values + i, how, expected)) return false;
    }
    return true;
}
// Waits until at least one holds; writes the indices that do and returns how many: 0 at once if there is none to wait
// for, `timed_out` if it ended in vain.
template <class T>
__device__ inline i64 wait_until_some(const T* values, u64 n, u64* indices, const int* status, cmp how,
                                      same_t<T> expected) {
    if (detail::none_left(n, status)) return 0;
    u64 found = 0;
    const bool came = spin([&] { return (found = test_some(values, n, indices, status, how, expected)) > 0; },
                           wait_value, anyone, values, (u64)expected, [=] { return (u64)values[0]; });
    return came ? (i64)found : timed_out;
}

}  // namespace crosswarp
