// What NVSHMEM's names mean in kernels, over the verbs of Crosswarp: one template a row of the table
// (generator/table.rs), from which the names are made.
//
// NVSHMEM's warp and block forms order their scope on both sides: the scope's threads meet before anything is sent and
// again when their parts are done. A wait that ends in vain (the PE that it needs has gone, or the time limit has
// passed) leaves its record for the host and ends the kernel by a trap, since these functions have no way to say so.

namespace crosswarp_nvshmem {

using crosswarp::block;
using crosswarp::thread;
using crosswarp::u16;
using crosswarp::u32;
using crosswarp::u64;
using crosswarp::u8;
using crosswarp::warp;

// 128 consecutive threads of a block, fewer in its last one. They meet at one of the block's upper eight barriers, which
// the hardware has sixteen of; libraries of kernels take theirs from below.
struct warpgroup {
    static __device__ int first() { return (int)(warp::linear_thread() & ~127u); }
    __device__ int rank() const { return (int)(warp::linear_thread() & 127u); }
    __device__ int size() const {
        const int rest = (int)(blockDim.x * blockDim.y * blockDim.z) - first();
        return rest < 128 ? rest : 128;
    }
    __device__ void sync() const {
        // Whole warps are counted.
        asm volatile("bar.sync %0, %1;" ::"r"(15 - first() / 128), "r"((size() + 31) & ~31) : "memory");
    }
};

// Ends the kernel after a wait in vain, when the record of who waited for whom is there: another thread may still be at
// it, and the trap ends that one, too. (A record is a few stores to the host; so many looks take milliseconds.)
__device__ inline void came(bool came) {
    if (came) return;
    const volatile u32* state = &crosswarp_world.record->state;
    for (int looks = 0; looks < 10000 && *state != crosswarp::record_complete; ++looks) {}
    __trap();
}

// What is added is 0, but no compiler knows: it would load the number from the constant bank again wherever it is compared,
// also between a wait and the signal that follows (0.7 % of a signal there and back between two H200).
__device__ inline int my_pe() {
    u32 multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    return crosswarp::my_pe() + (int)(multiprocessor >> 24);
}
__device__ inline int n_pes() { return crosswarp::n_pes(); }

// Leaves what status there is to the host: a kernel can end, a process can not be ended from it.
__device__ inline void global_exit(int) { __trap(); }

__device__ inline void info_get_version(int* major, int* minor) {
    *major = NVSHMEM_MAJOR_VERSION;
    *minor = NVSHMEM_MINOR_VERSION;
}
__device__ inline void info_get_name(char* name) {
    const char text[] = NVSHMEM_VENDOR_STRING;
    for (unsigned i = 0; i < sizeof(text); ++i) name[i] = text[i];
}
__device__ inline void vendor_get_version_info(int* major, int* minor, int* patch) {
    *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

// Whether there is memory at an offset of a heap, as the host has it in words: how many bytes there are from the beginning
// on; from where on registered memory may be; the logarithm of a unit of that; and then a bit for each.
__device__ inline bool is_memory(u64 offset) {
    const u64* memory = nvshmem_cw_state_1.memory;
    if (offset >= crosswarp_world.heap_bytes) return false;
    if (memory == nullptr || offset < crosswarp::load_volatile(memory)) return true;
    const u64 registered = crosswarp::load_volatile(memory + 1);
    if (offset < registered) return false;
    const u64 unit = (offset - registered) >> crosswarp::load_volatile(memory + 2);
    return crosswarp::load_volatile(memory + 3 + unit / 64) >> unit % 64 & 1;
}

// The address of `pe`'s part, or null for what is no memory of a symmetric heap, and for PEs of other hosts.
__device__ inline void* ptr(const void* dest, int pe) {
    const u64 offset = reinterpret_cast<u64>(dest) - crosswarp_world.heap;
    if (pe < 0 || pe >= n_pes() || !is_memory(offset)) return nullptr;
    return crosswarp::ptr(const_cast<char*>(static_cast<const char*>(dest)), pe);
}
// No multicast.
__device__ inline void* mc_ptr(nvshmem_team_t, const void*) { return nullptr; }

// ---- Teams: an index into a table that the host writes.

__device__ inline bool is_team(nvshmem_team_t t) {
    return t >= 0 && t < nvshmem_cw_state_1.n_teams && nvshmem_cw_state_1.teams[t].size > 0;
}
__device__ inline const crosswarp::team& team_of(nvshmem_team_t t) {
    return t == NVSHMEM_TEAM_WORLD ? crosswarp::world() : nvshmem_cw_state_1.teams[t];
}
__device__ inline int team_my_pe(nvshmem_team_t t) { return is_team(t) ? team_of(t).me : -1; }
__device__ inline int team_n_pes(nvshmem_team_t t) { return is_team(t) ? team_of(t).size : -1; }
__device__ inline int team_translate_pe(nvshmem_team_t from, int pe, nvshmem_team_t to) {
    if (!is_team(from) || !is_team(to) || pe < 0 || pe >= team_of(from).size) return -1;
    const crosswarp::team& other = team_of(to);
    const int away = team_of(from).pe(pe) - other.start;
    if (away < 0 || away % other.stride != 0 || away / other.stride >= other.size) return -1;
    return away / other.stride;
}

// ---- Put and get.

template <class T> __device__ inline void p(T* dest, T value, int pe) { crosswarp::p(dest, value, pe); }
template <class T> __device__ inline T g(const T* source, int pe) { return crosswarp::g(source, pe); }

template <class S, class T> __device__ inline void put(T* dest, const T* source, size_t n, int pe) {
    S scope;
    scope.sync();
    crosswarp::put(dest, source, n, pe, scope);
    scope.sync();
}
template <class S, class T> __device__ inline void get(T* dest, const T* source, size_t n, int pe) {
    S scope;
    scope.sync();
    crosswarp::get(dest, source, n, pe, scope);
    scope.sync();
}
template <class S, class T>
__device__ inline void iput(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe) {
    S scope;
    scope.sync();
    crosswarp::iput(dest, dst, source, sst, n, pe, scope);
    scope.sync();
}
template <class S, class T>
__device__ inline void iget(T* dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe) {
    S scope;
    scope.sync();
    crosswarp::iget(dest, dst, source, sst, n, pe, scope);
    scope.sync();
}

// ---- Signals.

// As NVSHMEM has it: a signal alone orders nothing, what is to be seen before it needs a fence. (A release would cost two
// microseconds there and back.)
__device__ inline void signal_op(uint64_t* signal, uint64_t value, int op, int pe) {
    u64* at = reinterpret_cast<u64*>(signal);
    if (op == NVSHMEM_SIGNAL_ADD) return crosswarp::atomic_add(at, value, pe);
    crosswarp::atomic_set(at, value, pe);
}
template <class S, class T>
__device__ inline void put_signal(T* dest, const T* source, size_t n, uint64_t* signal, uint64_t value, int op, int pe) {
    S scope;
    // Its sync at the end puts the data of all the scope's threads before the signal.
    put<S>(dest, source, n, pe);
    if (scope.rank() == 0) {
        crosswarp::signal(reinterpret_cast<u64*>(signal), value,
                          op == NVSHMEM_SIGNAL_ADD ? crosswarp::signal_op::add : crosswarp::signal_op::set, pe);
    }
    // Nobody may reuse the source, or count on the signal's order, before it is sent.
    scope.sync();
}
__device__ inline uint64_t signal_fetch(const uint64_t* signal) {
    return crosswarp::signal_fetch(reinterpret_cast<const u64*>(signal));
}

// ---- Atomics.

template <class T> __device__ inline T atomic_fetch(const T* source, int pe) { return crosswarp::atomic_fetch(source, pe); }
template <class T> __device__ inline void atomic_set(T* dest, T value, int pe) { crosswarp::atomic_set(dest, value, pe); }
template <class T> __device__ inline T atomic_swap(T* dest, T value, int pe) { return crosswarp::atomic_swap(dest, value, pe); }
template <class T> __device__ inline T atomic_compare_swap(T* dest, T cond, T value, int pe) {
    return crosswarp::atomic_compare_swap(dest, cond, value, pe);
}
template <class T> __device__ inline T atomic_fetch_inc(T* dest, int pe) { return crosswarp::atomic_fetch_inc(dest, pe); }
template <class T> __device__ inline void atomic_inc(T* dest, int pe) { crosswarp::atomic_inc(dest, pe); }
template <class T> __device__ inline T atomic_fetch_add(T* dest, T value, int pe) {
    return crosswarp::atomic_fetch_add(dest, value, pe);
}
template <class T> __device__ inline void atomic_add(T* dest, T value, int pe) { crosswarp::atomic_add(dest, value, pe); }
template <class T> __device__ inline T atomic_fetch_and(T* dest, T value, int pe) {
    return crosswarp::atomic_fetch_and(dest, value, pe);
}
template <class T> __device__ inline void atomic_and(T* dest, T value, int pe) { crosswarp::atomic_and(dest, value, pe); }
template <class T> __device__ inline T atomic_fetch_or(T* dest, T value, int pe) {
    return crosswarp::atomic_fetch_or(dest, value, pe);
}
template <class T> __device__ inline void atomic_or(T* dest, T value, int pe) { crosswarp::atomic_or(dest, value, pe); }
template <class T> __device__ inline T atomic_fetch_xor(T* dest, T value, int pe) {
    return crosswarp::atomic_fetch_xor(dest, value, pe);
}
template <class T> __device__ inline void atomic_xor(T* dest, T value, int pe) { crosswarp::atomic_xor(dest, value, pe); }

// ---- Waiting, for words of 16, 32 and 64 bits. What the writer put before a fence or signal is visible after (acquire).

__device__ inline u16 load_acquire(const u16* at) {
    u16 value;
    asm volatile("ld.acquire.sys.global.u16 %0, [%1];" : "=h"(value) : "l"(at) : "memory");
    return value;
}
using crosswarp::detail::load_acquire;
template <int Bytes> struct word;
template <> struct word<2> { using type = u16; };
template <> struct word<4> { using type = u32; };
template <> struct word<8> { using type = u64; };

template <class T> __device__ inline T seen(const T* value) {
    using W = typename word<sizeof(T)>::type;
    const W bits = load_acquire(reinterpret_cast<const W*>(value));
    T as;
    memcpy(&as, &bits, sizeof(T));
    return as;
}

template <class T> __device__ inline bool holds(T value, int how, T than) {
    switch (how) {
        case NVSHMEM_CMP_EQ: return value == than;
        case NVSHMEM_CMP_NE: return value != than;
        case NVSHMEM_CMP_GT: return value > than;
        case NVSHMEM_CMP_LE: return value <= than;
        case NVSHMEM_CMP_LT: return value < than;
        default: return value >= than;
    }
}
template <class T> __device__ inline int test(T* value, int how, T than) { return holds(seen(value), how, than); }

// Waits until `done()`, which looks at words of the array `words`; `looks` as of `spin`.
template <class T, int looks = 1, class Done> __device__ inline void wait_for(const T* words, T than, Done done) {
    came(crosswarp::spin<looks>(done, crosswarp::wait_value, crosswarp::anyone, words, (u64)than,
                                [=] { return (u64)seen(words); }));
}
template <class T> __device__ inline T wait_until_seen(const T* value, int how, T than) {
    T last = than;
    wait_for<T, crosswarp::looks_at_a_word>(value, than, [&] {
        last = seen(value);
        return holds(last, how, than);
    });
    return last;
}
template <class T> __device__ inline void wait_until(T* value, int how, T than) { wait_until_seen(value, how, than); }
__device__ inline uint64_t signal_wait_until(uint64_t* signal, int how, uint64_t than) {
    return wait_until_seen(signal, how, than);
}

// What each word of several is compared with: the same for all, or one of a vector.
template <class T> struct same_for_all {
    T value;
    __device__ T operator[](size_t) const { return value; }
};
__device__ inline bool looked_at(const int* status, size_t i) { return status == nullptr || status[i] == 0; }
__device__ inline bool any_looked_at(const int* status, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        if (looked_at(status, i)) return true;
    }
    return false;
}
constexpr size_t no_index = ~(size_t)0;

template <class T, class Than>
__device__ inline int test_all_of(T* words, size_t n, const int* status, int how, Than than) {
    for (size_t i = 0; i < n; ++i) {
        if (looked_at(status, i) && !holds<T>(seen(words + i), how, than[i])) return 0;
    }
    return 1;
}
// From the word behind `from` on, around: a series of calls then returns every word that holds, sooner or later.
template <class T, class Than>
__device__ inline size_t test_any_of(T* words, size_t n, const int* status, int how, Than than) {
    const size_t from = n == 0 ? 0 : (size_t)(crosswarp::nanoseconds() / 32) % n;
    for (size_t k = 0; k < n; ++k) {
        const size_t i = from + k < n ? from + k : from + k - n;
        if (looked_at(status, i) && holds<T>(seen(words + i), how, than[i])) return i;
    }
    return no_index;
}
template <class T, class Than>
__device__ inline size_t test_some_of(T* words, size_t n, size_t* indices, const int* status, int how, Than than) {
    size_t found = 0;
    for (size_t i = 0; i < n; ++i) {
        if (looked_at(status, i) && holds<T>(seen(words + i), how, than[i])) indices[found++] = i;
    }
    return found;
}
template <class T, class Than>
__device__ inline void wait_until_all_of(T* words, size_t n, const int* status, int how, Than than) {
    for (size_t i = 0; i < n; ++i) {
        if (looked_at(status, i)) wait_until_seen<T>(words + i, how, than[i]);
    }
}
template <class T, class Than>
__device__ inline size_t wait_until_any_of(T* words, size_t n, const int* status, int how, Than than) {
    if (!any_looked_at(status, n)) return no_index;
    size_t found = no_index;
    wait_for<T>(words, than[0], [&] { return (found = test_any_of(words, n, status, how, than)) != no_index; });
    return found;
}
template <class T, class Than>
__device__ inline size_t wait_until_some_of(T* words, size_t n, size_t* indices, const int* status, int how, Than than) {
    if (!any_looked_at(status, n)) return 0;
    size_t found = 0;
    wait_for<T>(words, than[0], [&] { return (found = test_some_of(words, n, indices, status, how, than)) != 0; });
    return found;
}

template <class T> __device__ inline int test_all(T* words, size_t n, const int* status, int how, T than) {
    return test_all_of(words, n, status, how, same_for_all<T>{than});
}
template <class T> __device__ inline size_t test_any(T* words, size_t n, const int* status, int how, T than) {
    return test_any_of(words, n, status, how, same_for_all<T>{than});
}
template <class T>
__device__ inline size_t test_some(T* words, size_t n, size_t* indices, const int* status, int how, T than) {
    return test_some_of(words, n, indices, status, how, same_for_all<T>{than});
}
template <class T> __device__ inline void wait_until_all(T* words, size_t n, const int* status, int how, T than) {
    wait_until_all_of(words, n, status, how, same_for_all<T>{than});
}
template <class T> __device__ inline size_t wait_until_any(T* words, size_t n, const int* status, int how, T than) {
    return wait_until_any_of(words, n, status, how, same_for_all<T>{than});
}
template <class T>
__device__ inline size_t wait_until_some(T* words, size_t n, size_t* indices, const int* status, int how, T than) {
    return wait_until_some_of(words, n, indices, status, how, same_for_all<T>{than});
}
template <class T> __device__ inline int test_all_vector(T* words, size_t n, const int* status, int how, T* than) {
    return test_all_of(words, n, status, how, than);
}
template <class T> __device__ inline size_t test_any_vector(T* words, size_t n, const int* status, int how, T* than) {
    return test_any_of(words, n, status, how, than);
}
template <class T>
__device__ inline size_t test_some_vector(T* words, size_t n, size_t* indices, const int* status, int how, T* than) {
    return test_some_of(words, n, indices, status, how, than);
}
template <class T> __device__ inline void wait_until_all_vector(T* words, size_t n, const int* status, int how, T* than) {
    wait_until_all_of(words, n, status, how, than);
}
template <class T>
__device__ inline size_t wait_until_any_vector(T* words, size_t n, const int* status, int how, T* than) {
    return wait_until_any_of(words, n, status, how, than);
}
template <class T>
__device__ inline size_t wait_until_some_vector(T* words, size_t n, size_t* indices, const int* status, int how, T* than) {
    return wait_until_some_of(words, n, indices, status, how, than);
}

// ---- Order.

__device__ inline void fence() { crosswarp::fence(); }
__device__ inline void quiet() { crosswarp::quiet(); }

// ---- Queue pairs: there is none to choose, so what names one does as what names none.

template <class T> __device__ inline void p(T* dest, T value, int pe, nvshmemx_qp_handle_t) { p(dest, value, pe); }
template <class T> __device__ inline T g(const T* source, int pe, nvshmemx_qp_handle_t) { return g(source, pe); }
template <class S, class T>
__device__ inline void put(T* dest, const T* source, size_t n, int pe, nvshmemx_qp_handle_t) {
    put<S>(dest, source, n, pe);
}
template <class S, class T>
__device__ inline void get(T* dest, const T* source, size_t n, int pe, nvshmemx_qp_handle_t) {
    get<S>(dest, source, n, pe);
}
__device__ inline void signal_op(uint64_t* signal, uint64_t value, int op, int pe, nvshmemx_qp_handle_t) {
    signal_op(signal, value, op, pe);
}
template <class S, class T>
__device__ inline void put_signal(T* dest, const T* source, size_t n, uint64_t* signal, uint64_t value, int op, int pe,
                                  nvshmemx_qp_handle_t) {
    put_signal<S>(dest, source, n, signal, value, op, pe);
}
template <class S> __device__ inline void qp_fence(int, const nvshmemx_qp_handle_t*, int) {
    S scope;
    scope.sync();
    fence();
    scope.sync();
}
template <class S> __device__ inline void qp_quiet(int, const nvshmemx_qp_handle_t*, int) {
    S scope;
    scope.sync();
    quiet();
    scope.sync();
}

// ---- Collectives: 0, or -1 for what is no team of this PE's. Not inlined: programs have many, and each is long.

template <class S> __device__ inline int barrier(nvshmem_team_t t) {
    if (!is_team(t)) return -1;
    came(crosswarp::barrier<S>(team_of(t)));
    return 0;
}
template <class S> __device__ inline void barrier_all() { came(crosswarp::barrier<S>()); }
template <class S> __device__ inline int team_sync(nvshmem_team_t t) {
    if (!is_team(t)) return -1;
    came(crosswarp::sync<S>(team_of(t)));
    return 0;
}
template <class S> __device__ inline void sync_all() { came(crosswarp::sync<S>()); }

template <class S, class T>
__device__ __noinline__ int broadcast(nvshmem_team_t t, T* dest, const T* source, size_t n, int root) {
    if (!is_team(t) || root < 0 || root >= team_of(t).size) return -1;
    came(crosswarp::broadcast<S>(dest, source, n, root, team_of(t)));
    return 0;
}
template <class S, class T> __device__ __noinline__ int fcollect(nvshmem_team_t t, T* dest, const T* source, size_t n) {
    if (!is_team(t)) return -1;
    came(crosswarp::fcollect<S>(dest, source, n, team_of(t)));
    return 0;
}
template <class S, class T> __device__ __noinline__ int alltoall(nvshmem_team_t t, T* dest, const T* source, size_t n) {
    if (!is_team(t)) return -1;
    came(crosswarp::alltoall<S>(dest, source, n, team_of(t)));
    return 0;
}
template <class S, class Op, class T>
__device__ __noinline__ int reduce(nvshmem_team_t t, T* dest, const T* source, size_t n) {
    if (!is_team(t)) return -1;
    came(crosswarp::reduce<S>(dest, source, n, Op(), team_of(t)));
    return 0;
}
template <class S, class Op, class T>
__device__ __noinline__ int reducescatter(nvshmem_team_t t, T* dest, const T* source, size_t n) {
    if (!is_team(t)) return -1;
    came(crosswarp::reducescatter<S>(dest, source, n, Op(), team_of(t)));
    return 0;
}

// The pair with the greater first number; of equal ones that of the lower rank.
struct maxloc_op {
    template <class T> __device__ T operator()(T a, T b) const { return b.x > a.x ? b : a; }
};

}  // namespace crosswarp_nvshmem
