//! The one table of the C interface: every function of OpenSHMEM 1.5 (with its deprecated names) and of
//! 1.6, written as in the specification. Header, exported symbols, C11 selections and C++ overloads are
//! all made from it.
//!
//! A row is `types | flags | prototype | implementation`.
//! - `types`: the set of types (see [`crate::types`]) the row is repeated for; `T` in the prototype is
//!   the C type, `{T}` in the name its name in the specification. `one` is a single function.
//! - `flags`: `c` - `{c}` in the name marks where `ctx_` goes, and the function exists a second time with
//!   a context as its first argument; `g` - there is a type-generic form, named like the function without
//!   `{c}{T}_`; `n` - does not return.
//! - `implementation`: the Rust function behind it, called with the function's name, the context (where
//!   there is one) and the arguments.

/// See the module's documentation.
pub const TABLE: &str = "
# Setup, exit, queries
one | | void shmem_init(void) | setup::init
one | | int shmem_init_thread(int requested, int *provided) | setup::init_thread
one | | void shmem_query_thread(int *provided) | setup::query_thread
one | | void shmem_query_initialized(int *initialized) | setup::query_initialized
one | | void shmem_finalize(void) | setup::finalize
one | n | void shmem_global_exit(int status) | setup::global_exit
one | | int shmem_my_pe(void) | setup::my_pe
one | | int shmem_n_pes(void) | setup::n_pes
one | | int shmem_pe_accessible(int pe) | setup::pe_accessible
one | | int shmem_addr_accessible(const void *addr, int pe) | setup::addr_accessible
one | | void *shmem_ptr(const void *dest, int pe) | setup::ptr
one | | void shmem_info_get_version(int *major, int *minor) | setup::info_get_version
one | | void shmem_info_get_name(char *name) | setup::info_get_name
one | | void shmem_pcontrol(const int level, ...) | setup::pcontrol

# Memory management
one | | void *shmem_malloc(size_t size) | memory::malloc
one | | void *shmem_malloc_with_hints(size_t size, long hints) | memory::malloc_with_hints
one | | void *shmem_calloc(size_t count, size_t size) | memory::calloc
one | | void *shmem_align(size_t alignment, size_t size) | memory::align
one | | void *shmem_realloc(void *ptr, size_t size) | memory::realloc
one | | void shmem_free(void *ptr) | memory::free

# Teams
one | | int shmem_team_my_pe(shmem_team_t team) | team::my_pe
one | | int shmem_team_n_pes(shmem_team_t team) | team::n_pes
one | | int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config) | team::get_config
one | | int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team) | team::translate_pe
one | | int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team) | team::split_strided
one | | int shmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team) | team::split_2d
one | | void shmem_team_destroy(shmem_team_t team) | team::destroy
one | | void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe) | team::ptr

# Contexts
one | | int shmem_ctx_create(long options, shmem_ctx_t *ctx) | context::create
one | | int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx) | context::team_create
one | | void shmem_ctx_destroy(shmem_ctx_t ctx) | context::destroy
one | | int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team) | context::get_team
one | | void shmem_ctx_session_start(shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask) | context::session_start
one | | void shmem_ctx_session_stop(shmem_ctx_t ctx) | context::session_stop

# Remote memory access
rma | cg | void shmem_{c}{T}_put(T *dest, const T *source, size_t nelems, int pe) | rma::put
size | c | void shmem_{c}put{T}(T *dest, const T *source, size_t nelems, int pe) | rma::put
mem | c | void shmem_{c}put{T}(T *dest, const T *source, size_t nelems, int pe) | rma::put
rma | cg | void shmem_{c}{T}_p(T *dest, T value, int pe) | rma::p
rma | cg | void shmem_{c}{T}_iput(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) | rma::iput
size | c | void shmem_{c}iput{T}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) | rma::iput
rma | cg | void shmem_{c}{T}_ibput(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) | rma::ibput
size | c | void shmem_{c}ibput{T}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) | rma::ibput
rma | cg | void shmem_{c}{T}_get(T *dest, const T *source, size_t nelems, int pe) | rma::get
size | c | void shmem_{c}get{T}(T *dest, const T *source, size_t nelems, int pe) | rma::get
mem | c | void shmem_{c}get{T}(T *dest, const T *source, size_t nelems, int pe) | rma::get
rma | cg | T shmem_{c}{T}_g(const T *source, int pe) | rma::g
rma | cg | void shmem_{c}{T}_iget(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) | rma::iget
size | c | void shmem_{c}iget{T}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) | rma::iget
rma | cg | void shmem_{c}{T}_ibget(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) | rma::ibget
size | c | void shmem_{c}ibget{T}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) | rma::ibget
rma | cg | void shmem_{c}{T}_put_nbi(T *dest, const T *source, size_t nelems, int pe) | rma::put
size | c | void shmem_{c}put{T}_nbi(T *dest, const T *source, size_t nelems, int pe) | rma::put
mem | c | void shmem_{c}put{T}_nbi(T *dest, const T *source, size_t nelems, int pe) | rma::put
rma | cg | void shmem_{c}{T}_get_nbi(T *dest, const T *source, size_t nelems, int pe) | rma::get_nbi
size | c | void shmem_{c}get{T}_nbi(T *dest, const T *source, size_t nelems, int pe) | rma::get_nbi
mem | c | void shmem_{c}get{T}_nbi(T *dest, const T *source, size_t nelems, int pe) | rma::get_nbi

# Atomics
amo_all | cg | T shmem_{c}{T}_atomic_fetch(const T *source, int pe) | amo::fetch
amo_all | cg | void shmem_{c}{T}_atomic_set(T *dest, T value, int pe) | amo::set
amo_all | cg | T shmem_{c}{T}_atomic_swap(T *dest, T value, int pe) | amo::swap
amo | cg | T shmem_{c}{T}_atomic_compare_swap(T *dest, T cond, T value, int pe) | amo::compare_swap
amo | cg | T shmem_{c}{T}_atomic_fetch_inc(T *dest, int pe) | amo::fetch_inc
amo | cg | void shmem_{c}{T}_atomic_inc(T *dest, int pe) | amo::inc
amo | cg | T shmem_{c}{T}_atomic_fetch_add(T *dest, T value, int pe) | amo::fetch_add
amo | cg | void shmem_{c}{T}_atomic_add(T *dest, T value, int pe) | amo::add
bits | cg | T shmem_{c}{T}_atomic_fetch_and(T *dest, T value, int pe) | amo::fetch_and
bits | cg | void shmem_{c}{T}_atomic_and(T *dest, T value, int pe) | amo::and
bits | cg | T shmem_{c}{T}_atomic_fetch_or(T *dest, T value, int pe) | amo::fetch_or
bits | cg | void shmem_{c}{T}_atomic_or(T *dest, T value, int pe) | amo::or
bits | cg | T shmem_{c}{T}_atomic_fetch_xor(T *dest, T value, int pe) | amo::fetch_xor
bits | cg | void shmem_{c}{T}_atomic_xor(T *dest, T value, int pe) | amo::xor
amo_all | cg | void shmem_{c}{T}_atomic_fetch_nbi(T *fetch, const T *source, int pe) | amo::fetch_nbi
amo_all | cg | void shmem_{c}{T}_atomic_swap_nbi(T *fetch, T *dest, T value, int pe) | amo::swap_nbi
amo | cg | void shmem_{c}{T}_atomic_compare_swap_nbi(T *fetch, T *dest, T cond, T value, int pe) | amo::compare_swap_nbi
amo | cg | void shmem_{c}{T}_atomic_fetch_inc_nbi(T *fetch, T *dest, int pe) | amo::fetch_inc_nbi
amo | cg | void shmem_{c}{T}_atomic_fetch_add_nbi(T *fetch, T *dest, T value, int pe) | amo::fetch_add_nbi
bits | cg | void shmem_{c}{T}_atomic_fetch_and_nbi(T *fetch, T *dest, T value, int pe) | amo::fetch_and_nbi
bits | cg | void shmem_{c}{T}_atomic_fetch_or_nbi(T *fetch, T *dest, T value, int pe) | amo::fetch_or_nbi
bits | cg | void shmem_{c}{T}_atomic_fetch_xor_nbi(T *fetch, T *dest, T value, int pe) | amo::fetch_xor_nbi

# Signals
rma | cg | void shmem_{c}{T}_put_signal(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | signal::put_signal
size | c | void shmem_{c}put{T}_signal(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | signal::put_signal
mem | c | void shmem_{c}put{T}_signal(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | signal::put_signal
rma | cg | void shmem_{c}{T}_put_signal_nbi(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | signal::put_signal
size | c | void shmem_{c}put{T}_signal_nbi(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | signal::put_signal
mem | c | void shmem_{c}put{T}_signal_nbi(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | signal::put_signal
one | c | void shmem_{c}signal_set(uint64_t *sig_addr, uint64_t signal, int pe) | signal::set
one | c | void shmem_{c}signal_add(uint64_t *sig_addr, uint64_t signal, int pe) | signal::add
one | | uint64_t shmem_signal_fetch(const uint64_t *sig_addr) | signal::fetch
one | | uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value) | signal::wait_until

# Waiting
wait | g | void shmem_{T}_wait_until(T *ivar, int cmp, T cmp_value) | wait::until
wait | g | void shmem_{T}_wait_until_all(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) | wait::until_all
wait | g | size_t shmem_{T}_wait_until_any(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) | wait::until_any
wait | g | size_t shmem_{T}_wait_until_some(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value) | wait::until_some
wait | g | void shmem_{T}_wait_until_all_vector(T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) | wait::until_all_vector
wait | g | size_t shmem_{T}_wait_until_any_vector(T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) | wait::until_any_vector
wait | g | size_t shmem_{T}_wait_until_some_vector(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T *cmp_values) | wait::until_some_vector
wait | g | int shmem_{T}_test(T *ivar, int cmp, T cmp_value) | wait::test
wait | g | int shmem_{T}_test_all(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) | wait::test_all
wait | g | size_t shmem_{T}_test_any(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) | wait::test_any
wait | g | size_t shmem_{T}_test_some(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value) | wait::test_some
wait | g | int shmem_{T}_test_all_vector(T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) | wait::test_all_vector
wait | g | size_t shmem_{T}_test_any_vector(T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) | wait::test_any_vector
wait | g | size_t shmem_{T}_test_some_vector(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T *cmp_values) | wait::test_some_vector

# Ordering
one | c | void shmem_{c}fence(void) | order::fence
one | c | void shmem_{c}quiet(void) | order::quiet
one | c | void shmem_{c}pe_quiet(const int *target_pes, size_t npes) | order::pe_quiet

# Collectives of teams
one | | void shmem_barrier_all(void) | collective::barrier_all
one | | void shmem_sync_all(void) | collective::sync_all
one | | int shmem_team_sync(shmem_team_t team) | collective::team_sync
rma | g | int shmem_{T}_broadcast(shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root) | collective::broadcast
mem | | int shmem_broadcast{T}(shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root) | collective::broadcast
rma | g | int shmem_{T}_collect(shmem_team_t team, T *dest, const T *source, size_t nelems) | collective::collect
mem | | int shmem_collect{T}(shmem_team_t team, T *dest, const T *source, size_t nelems) | collective::collect
rma | g | int shmem_{T}_fcollect(shmem_team_t team, T *dest, const T *source, size_t nelems) | collective::fcollect
mem | | int shmem_fcollect{T}(shmem_team_t team, T *dest, const T *source, size_t nelems) | collective::fcollect
rma | g | int shmem_{T}_alltoall(shmem_team_t team, T *dest, const T *source, size_t nelems) | collective::alltoall
mem | | int shmem_alltoall{T}(shmem_team_t team, T *dest, const T *source, size_t nelems) | collective::alltoall
rma | g | int shmem_{T}_alltoalls(shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) | collective::alltoalls
mem | | int shmem_alltoalls{T}(shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems) | collective::alltoalls
unsigned | g | int shmem_{T}_and_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce::and
unsigned | g | int shmem_{T}_or_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce::or
unsigned | g | int shmem_{T}_xor_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce::xor
rma | g | int shmem_{T}_min_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce::min
rma | g | int shmem_{T}_max_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce::max
arith | g | int shmem_{T}_sum_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce::sum
arith | g | int shmem_{T}_prod_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce::prod
arith | g | int shmem_{T}_sum_inscan(shmem_team_t team, T *dest, const T *source, size_t nelems) | reduce::sum_inscan
arith | g | int shmem_{T}_sum_exscan(shmem_team_t team, T *dest, const T *source, size_t nelems) | reduce::sum_exscan

# Locks
one | | void shmem_set_lock(long *lock) | lock::set
one | | void shmem_clear_lock(long *lock) | lock::clear
one | | int shmem_test_lock(long *lock) | lock::test

# Deprecated, still in 1.5
one | | void start_pes(int npes) | setup::start_pes
one | | int _my_pe(void) | setup::my_pe
one | | int _num_pes(void) | setup::n_pes
one | | void *shmalloc(size_t size) | memory::malloc
one | | void shfree(void *ptr) | memory::free
one | | void *shrealloc(void *ptr, size_t size) | memory::realloc
one | | void *shmemalign(size_t alignment, size_t size) | memory::align
one | | void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync) | active::barrier
one | | void shmem_sync(int PE_start, int logPE_stride, int PE_size, long *pSync) | active::sync
word | | void shmem_broadcast{T}(T *dest, const T *source, size_t nelems, int PE_root, int PE_start, int logPE_stride, int PE_size, long *pSync) | active::broadcast
word | | void shmem_collect{T}(T *dest, const T *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync) | active::collect
word | | void shmem_fcollect{T}(T *dest, const T *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync) | active::fcollect
word | | void shmem_alltoall{T}(T *dest, const T *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync) | active::alltoall
word | | void shmem_alltoalls{T}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync) | active::alltoalls
old_bits | | void shmem_{T}_and_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync) | active::and
old_bits | | void shmem_{T}_or_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync) | active::or
old_bits | | void shmem_{T}_xor_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync) | active::xor
old_real | | void shmem_{T}_max_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync) | active::max
old_real | | void shmem_{T}_min_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync) | active::min
old_arith | | void shmem_{T}_sum_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync) | active::sum
old_arith | | void shmem_{T}_prod_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync) | active::prod
long | | void shmem_wait(T *ivar, T cmp_value) | wait::differs
long | | void shmem_wait_until(T *ivar, int cmp, T cmp_value) | wait::until
old_bits | | void shmem_{T}_wait(T *ivar, T cmp_value) | wait::differs
old_amo | g | T shmem_{T}_cswap(T *dest, T cond, T value, int pe) | old_amo::cswap
old_amo | g | T shmem_{T}_fadd(T *dest, T value, int pe) | old_amo::fadd
old_amo | g | T shmem_{T}_finc(T *dest, int pe) | old_amo::finc
old_amo | g | void shmem_{T}_add(T *dest, T value, int pe) | old_amo::add
old_amo | g | void shmem_{T}_inc(T *dest, int pe) | old_amo::inc
old_amo_all | g | T shmem_{T}_swap(T *dest, T value, int pe) | old_amo::swap
old_amo_all | g | T shmem_{T}_fetch(const T *source, int pe) | old_amo::fetch
old_amo_all | g | void shmem_{T}_set(T *dest, T value, int pe) | old_amo::set
one | | void shmem_clear_cache_inv(void) | setup::nothing
one | | void shmem_set_cache_inv(void) | setup::nothing
one | | void shmem_clear_cache_line_inv(void *dest) | setup::nothing_with
one | | void shmem_set_cache_line_inv(void *dest) | setup::nothing_with
one | | void shmem_udcflush(void) | setup::nothing
one | | void shmem_udcflush_line(void *dest) | setup::nothing_with

# Extensions many programs expect
one | | double shmemx_wtime(void) | setup::wtime
";
