//! The one table of the interface: prototypes in headers, definitions for kernels, exported functions and the list of
//! symbols are all made from it.
//!
//! A row is `types | forms | prototype | in kernels | on the host`.
//! - `types`: the set of types (see [`crate::types`]) the row is repeated for; `T` in the prototype is the C type, `{T}`
//!   in the name its name. `one` is a single function.
//! - `forms`: `h` on the host; `d` in kernels, by a thread; `w`, `g`, `b` in kernels, by a warp, a warpgroup or a block;
//!   `s` on the host in stream order, with a `cudaStream_t` as its last argument. In the name, `{x}` is `x` in the forms
//!   `w`, `g`, `b` and `s`, and `{f}` is what the form appends.
//! - `in kernels`: a function of `device/nvshmem.cuh`; `S` is the scope. `as numbers` has it called with one type of each
//!   size and kind (`int` for `int32_t`), `as bits` with an unsigned one of each size: types that are the same to it share
//!   its code, which is long.
//! - `on the host`: a Rust function, called with the arguments; with where to run (`On`) before them in rows that have
//!   the form `s`. `T` is the Rust type.

/// See the module's documentation.
pub const TABLE: &str = "
# Beginning and end
one | h | void nvshmem_init(void) | | setup::init
one | h | int nvshmem_init_thread(int requested, int *provided) | | setup::init_thread
one | h | void nvshmem_query_thread(int *provided) | | setup::query_thread
one | h | void nvshmem_finalize(void) | | setup::finalize
one | hd | void nvshmem_global_exit(int status) | global_exit | setup::global_exit
one | h | int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes) | | setup::init_attr
one | h | int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes) | | setup::init_attr
one | h | void nvshmemx_hostlib_finalize(void) | | setup::finalize
one | h | int nvshmemx_init_status(void) | | setup::init_status
one | h | int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *uniqueid) | | setup::get_uniqueid
one | h | int nvshmemx_set_attr_uniqueid_args(const int myrank, const int nranks, const nvshmemx_uniqueid_t *uniqueid, nvshmemx_init_attr_t *attributes) | | setup::set_attr_uniqueid_args
one | h | int nvshmemx_set_attr_mpi_comm_args(void *mpi_comm, nvshmemx_init_attr_t *attributes) | | setup::set_attr_mpi_comm_args
one | hd | int nvshmem_my_pe(void) | my_pe | setup::my_pe
one | hd | int nvshmem_n_pes(void) | n_pes | setup::n_pes
one | hd | void nvshmem_info_get_version(int *major, int *minor) | info_get_version | setup::info_get_version
one | hd | void nvshmem_info_get_name(char *name) | info_get_name | setup::info_get_name
one | hd | void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch) | vendor_get_version_info | setup::vendor_get_version_info

# Modules that were loaded by the driver's functions
one | h | int nvshmemx_cumodule_init(CUmodule module) | | module::cumodule_init
one | h | int nvshmemx_cumodule_finalize(CUmodule module) | | module::cumodule_finalize
one | h | int nvshmemx_culibrary_init(CUlibrary library) | | module::culibrary_init
one | h | int nvshmemx_culibrary_finalize(CUlibrary library) | | module::culibrary_finalize

# Symmetric memory
one | h | void *nvshmem_malloc(size_t size) | | memory::malloc
one | h | void *nvshmem_calloc(size_t count, size_t size) | | memory::calloc
one | h | void *nvshmem_align(size_t alignment, size_t size) | | memory::align
one | h | void nvshmem_free(void *ptr) | | memory::free
one | hd | void *nvshmem_ptr(const void *dest, int pe) | ptr | memory::ptr
one | hd | void *nvshmemx_mc_ptr(nvshmem_team_t team, const void *ptr) | mc_ptr | memory::mc_ptr
one | h | int nvshmemx_buffer_register(void *addr, size_t length) | | memory::buffer_register
one | h | int nvshmemx_buffer_unregister(void *addr) | | memory::buffer_unregister
one | h | void nvshmemx_buffer_unregister_all(void) | | memory::buffer_unregister_all
one | h | void *nvshmemx_buffer_register_symmetric(void *user_buffer, size_t size, int flags) | | memory::buffer_register_symmetric
one | h | int nvshmemx_buffer_unregister_symmetric(void *ptr, size_t size) | | memory::buffer_unregister_symmetric

# Teams
one | hd | int nvshmem_team_my_pe(nvshmem_team_t team) | team_my_pe | team::my_pe
one | hd | int nvshmem_team_n_pes(nvshmem_team_t team) | team_n_pes | team::n_pes
one | hd | int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team) | team_translate_pe | team::translate_pe
one | h | int nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t *config) | | team::get_config
one | h | int nvshmem_team_split_strided(nvshmem_team_t parent_team, int start, int stride, int size, const nvshmem_team_config_t *config, long config_mask, nvshmem_team_t *new_team) | | team::split_strided
one | h | int nvshmem_team_split_2d(nvshmem_team_t parent_team, int xrange, const nvshmem_team_config_t *xaxis_config, long xaxis_mask, nvshmem_team_t *xaxis_team, const nvshmem_team_config_t *yaxis_config, long yaxis_mask, nvshmem_team_t *yaxis_team) | | team::split_2d
one | h | void nvshmem_team_destroy(nvshmem_team_t team) | | team::destroy
one | h | int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t *uniqueid) | | joining::get_uniqueid
one | h | int nvshmemx_team_init(nvshmem_team_t *team, nvshmem_team_config_t *config, long config_mask, int npes, int pe_idx_in_team) | | joining::init

# Put and get
rma | hds | void nvshmem{x}_{T}_p{f}(T *dest, const T value, int pe) | p | rma::p::<T>
rma | hds | T nvshmem{x}_{T}_g{f}(const T *source, int pe) | g | rma::g::<T>
rma | hdwbs | void nvshmem{x}_{T}_put{f}(T *dest, const T *source, size_t nelems, int pe) | put<S> | rma::put::<T>
size | hdwbs | void nvshmem{x}_put{T}{f}(T *dest, const T *source, size_t nelems, int pe) | put<S> | rma::put::<T>
mem | hdwbs | void nvshmem{x}_put{T}{f}(T *dest, const T *source, size_t nelems, int pe) | put<S> | rma::put::<T>
rma | hdwbs | void nvshmem{x}_{T}_put_nbi{f}(T *dest, const T *source, size_t nelems, int pe) | put<S> | rma::put_nbi::<T>
size | hdwbs | void nvshmem{x}_put{T}_nbi{f}(T *dest, const T *source, size_t nelems, int pe) | put<S> | rma::put_nbi::<T>
mem | hdwbs | void nvshmem{x}_put{T}_nbi{f}(T *dest, const T *source, size_t nelems, int pe) | put<S> | rma::put_nbi::<T>
rma | hdwbs | void nvshmem{x}_{T}_get{f}(T *dest, const T *source, size_t nelems, int pe) | get<S> | rma::get::<T>
size | hdwbs | void nvshmem{x}_get{T}{f}(T *dest, const T *source, size_t nelems, int pe) | get<S> | rma::get::<T>
mem | hdwbs | void nvshmem{x}_get{T}{f}(T *dest, const T *source, size_t nelems, int pe) | get<S> | rma::get::<T>
rma | hdwbs | void nvshmem{x}_{T}_get_nbi{f}(T *dest, const T *source, size_t nelems, int pe) | get<S> | rma::get_nbi::<T>
size | hdwbs | void nvshmem{x}_get{T}_nbi{f}(T *dest, const T *source, size_t nelems, int pe) | get<S> | rma::get_nbi::<T>
mem | hdwbs | void nvshmem{x}_get{T}_nbi{f}(T *dest, const T *source, size_t nelems, int pe) | get<S> | rma::get_nbi::<T>
rma | hdwbs | void nvshmem{x}_{T}_iput{f}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) | iput<S> | rma::iput::<T>
size | hdwbs | void nvshmem{x}_iput{T}{f}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) | iput<S> | rma::iput::<T>
rma | hdwbs | void nvshmem{x}_{T}_iget{f}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) | iget<S> | rma::iget::<T>
size | hdwbs | void nvshmem{x}_iget{T}{f}(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) | iget<S> | rma::iget::<T>

# Signals
rma | dwbs | void nvshmem{x}_{T}_put_signal{f}(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | put_signal<S> | signal::put_signal::<T>
size | dwbs | void nvshmem{x}_put{T}_signal{f}(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | put_signal<S> | signal::put_signal::<T>
mem | dwbs | void nvshmem{x}_put{T}_signal{f}(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | put_signal<S> | signal::put_signal::<T>
rma | dwbs | void nvshmem{x}_{T}_put_signal_nbi{f}(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | put_signal<S> | signal::put_signal::<T>
size | dwbs | void nvshmem{x}_put{T}_signal_nbi{f}(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | put_signal<S> | signal::put_signal::<T>
mem | dwbs | void nvshmem{x}_put{T}_signal_nbi{f}(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | put_signal<S> | signal::put_signal::<T>
one | hds | void nvshmemx_signal_op{f}(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) | signal_op | signal::op
one | hd | uint64_t nvshmem_signal_fetch(uint64_t *sig_addr) | signal_fetch | signal::fetch
one | d | uint64_t nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value) | signal_wait_until |
one | s | void nvshmemx_signal_wait_until{f}(uint64_t *sig_addr, int cmp, uint64_t cmp_value) | | signal::wait_until

# Queue pairs, of which there is none to choose
one | h | int nvshmemx_qp_create(int num_qps, nvshmemx_qp_handle_t **out_qp_array) | | setup::qp_create
rma | d | void nvshmemx_qp_{T}_p(T *dest, const T value, int pe, nvshmemx_qp_handle_t qp) | p |
rma | d | T nvshmemx_qp_{T}_g(const T *source, int pe, nvshmemx_qp_handle_t qp) | g |
rma | dwb | void nvshmemx_qp_{T}_put{f}(T *dest, const T *source, size_t nelems, int pe, nvshmemx_qp_handle_t qp) | put<S> |
rma | dwb | void nvshmemx_qp_{T}_put_nbi{f}(T *dest, const T *source, size_t nelems, int pe, nvshmemx_qp_handle_t qp) | put<S> |
rma | dwb | void nvshmemx_qp_{T}_get{f}(T *dest, const T *source, size_t nelems, int pe, nvshmemx_qp_handle_t qp) | get<S> |
rma | dwb | void nvshmemx_qp_{T}_get_nbi{f}(T *dest, const T *source, size_t nelems, int pe, nvshmemx_qp_handle_t qp) | get<S> |
rma | dwb | void nvshmemx_qp_{T}_put_signal{f}(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, nvshmemx_qp_handle_t qp) | put_signal<S> |
rma | dwb | void nvshmemx_qp_{T}_put_signal_nbi{f}(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, nvshmemx_qp_handle_t qp) | put_signal<S> |
one | d | void nvshmemx_qp_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, nvshmemx_qp_handle_t qp) | signal_op |
one | dwb | void nvshmemx_qp_fence{f}(int pe, nvshmemx_qp_handle_t *qp_handle, int num_qps) | qp_fence<S> |
one | dwb | void nvshmemx_qp_quiet{f}(int pe, nvshmemx_qp_handle_t *qp_handle, int num_qps) | qp_quiet<S> |

# Atomics
amo_all | hd | T nvshmem_{T}_atomic_fetch(const T *source, int pe) | atomic_fetch | amo::fetch::<T>
amo_all | hd | void nvshmem_{T}_atomic_set(T *dest, T value, int pe) | atomic_set | amo::set::<T>
amo_all | hd | T nvshmem_{T}_atomic_swap(T *dest, T value, int pe) | atomic_swap | amo::swap::<T>
amo | hd | T nvshmem_{T}_atomic_compare_swap(T *dest, T cond, T value, int pe) | atomic_compare_swap | amo::compare_swap::<T>
amo | hd | T nvshmem_{T}_atomic_fetch_inc(T *dest, int pe) | atomic_fetch_inc | amo::fetch_inc::<T>
amo | hd | void nvshmem_{T}_atomic_inc(T *dest, int pe) | atomic_inc | amo::inc::<T>
amo | hd | T nvshmem_{T}_atomic_fetch_add(T *dest, T value, int pe) | atomic_fetch_add | amo::fetch_add::<T>
amo | hd | void nvshmem_{T}_atomic_add(T *dest, T value, int pe) | atomic_add | amo::add::<T>
bits | hd | T nvshmem_{T}_atomic_fetch_and(T *dest, T value, int pe) | atomic_fetch_and | amo::fetch_and::<T>
bits | hd | void nvshmem_{T}_atomic_and(T *dest, T value, int pe) | atomic_and | amo::and::<T>
bits | hd | T nvshmem_{T}_atomic_fetch_or(T *dest, T value, int pe) | atomic_fetch_or | amo::fetch_or::<T>
bits | hd | void nvshmem_{T}_atomic_or(T *dest, T value, int pe) | atomic_or | amo::or::<T>
bits | hd | T nvshmem_{T}_atomic_fetch_xor(T *dest, T value, int pe) | atomic_fetch_xor | amo::fetch_xor::<T>
bits | hd | void nvshmem_{T}_atomic_xor(T *dest, T value, int pe) | atomic_xor | amo::xor::<T>

# Waiting and testing
wait | ds | void nvshmem{x}_{T}_wait_until{f}(T *ivar, int cmp, T cmp_value) | wait_until | wait::until::<T>
wait | ds | void nvshmem{x}_{T}_wait_until_all{f}(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) | wait_until_all | wait::until_all::<T>
wait | d | size_t nvshmem_{T}_wait_until_any(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) | wait_until_any |
wait | d | size_t nvshmem_{T}_wait_until_some(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value) | wait_until_some |
wait | ds | void nvshmem{x}_{T}_wait_until_all_vector{f}(T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) | wait_until_all_vector | wait::until_all_vector::<T>
wait | d | size_t nvshmem_{T}_wait_until_any_vector(T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) | wait_until_any_vector |
wait | d | size_t nvshmem_{T}_wait_until_some_vector(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T *cmp_values) | wait_until_some_vector |
wait | d | int nvshmem_{T}_test(T *ivar, int cmp, T cmp_value) | test |
wait | d | int nvshmem_{T}_test_all(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) | test_all |
wait | d | size_t nvshmem_{T}_test_any(T *ivars, size_t nelems, const int *status, int cmp, T cmp_value) | test_any |
wait | d | size_t nvshmem_{T}_test_some(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value) | test_some |
wait | d | int nvshmem_{T}_test_all_vector(T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) | test_all_vector |
wait | d | size_t nvshmem_{T}_test_any_vector(T *ivars, size_t nelems, const int *status, int cmp, T *cmp_values) | test_any_vector |
wait | d | size_t nvshmem_{T}_test_some_vector(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T *cmp_values) | test_some_vector |

# Order
one | hd | void nvshmem_fence(void) | fence | order::fence
one | hd | void nvshmem_quiet(void) | quiet | order::quiet
one | s | void nvshmemx_quiet{f}(void) | | order::quiet_on

# Meeting
one | hdwgbs | int nvshmem{x}_barrier{f}(nvshmem_team_t team) | barrier<S> | collective::barrier
one | hdwbs | void nvshmem{x}_barrier_all{f}(void) | barrier_all<S> | collective::barrier_all
one | hdwbs | int nvshmem{x}_team_sync{f}(nvshmem_team_t team) | team_sync<S> | collective::team_sync
one | hdwbs | void nvshmem{x}_sync_all{f}(void) | sync_all<S> | collective::sync_all

# Collectives
rma | hdwbs | int nvshmem{x}_{T}_broadcast{f}(nvshmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root) | broadcast<S> as bits | collective::broadcast::<T>
mem | hdwbs | int nvshmem{x}_broadcast{T}{f}(nvshmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root) | broadcast<S> as bits | collective::broadcast::<T>
rma | hdwbs | int nvshmem{x}_{T}_fcollect{f}(nvshmem_team_t team, T *dest, const T *source, size_t nelems) | fcollect<S> as bits | collective::fcollect::<T>
mem | hdwbs | int nvshmem{x}_fcollect{T}{f}(nvshmem_team_t team, T *dest, const T *source, size_t nelems) | fcollect<S> as bits | collective::fcollect::<T>
rma | hdwbs | int nvshmem{x}_{T}_alltoall{f}(nvshmem_team_t team, T *dest, const T *source, size_t nelems) | alltoall<S> as bits | collective::alltoall::<T>
mem | hdwbs | int nvshmem{x}_alltoall{T}{f}(nvshmem_team_t team, T *dest, const T *source, size_t nelems) | alltoall<S> as bits | collective::alltoall::<T>
bitwise | hdwbs | int nvshmem{x}_{T}_and_reduce{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce<S, crosswarp::and_op> as bits | reduce::and::<T>
bitwise | hdwbs | int nvshmem{x}_{T}_or_reduce{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce<S, crosswarp::or_op> as bits | reduce::or::<T>
bitwise | hdwbs | int nvshmem{x}_{T}_xor_reduce{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce<S, crosswarp::xor_op> as bits | reduce::xor::<T>
arith | hdwbs | int nvshmem{x}_{T}_min_reduce{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce<S, crosswarp::min_op> as numbers | reduce::min::<T>
arith | hdwbs | int nvshmem{x}_{T}_max_reduce{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce<S, crosswarp::max_op> as numbers | reduce::max::<T>
arith | hdwbs | int nvshmem{x}_{T}_sum_reduce{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce<S, crosswarp::sum_op> as numbers | reduce::sum::<T>
arith | hdwbs | int nvshmem{x}_{T}_prod_reduce{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reduce<S, crosswarp::prod_op> as numbers | reduce::prod::<T>
bitwise | hdwbs | int nvshmem{x}_{T}_and_reducescatter{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reducescatter<S, crosswarp::and_op> as bits | reduce::scatter_and::<T>
bitwise | hdwbs | int nvshmem{x}_{T}_or_reducescatter{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reducescatter<S, crosswarp::or_op> as bits | reduce::scatter_or::<T>
bitwise | hdwbs | int nvshmem{x}_{T}_xor_reducescatter{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reducescatter<S, crosswarp::xor_op> as bits | reduce::scatter_xor::<T>
arith | hdwbs | int nvshmem{x}_{T}_min_reducescatter{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reducescatter<S, crosswarp::min_op> as numbers | reduce::scatter_min::<T>
arith | hdwbs | int nvshmem{x}_{T}_max_reducescatter{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reducescatter<S, crosswarp::max_op> as numbers | reduce::scatter_max::<T>
arith | hdwbs | int nvshmem{x}_{T}_sum_reducescatter{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reducescatter<S, crosswarp::sum_op> as numbers | reduce::scatter_sum::<T>
arith | hdwbs | int nvshmem{x}_{T}_prod_reducescatter{f}(nvshmem_team_t team, T *dest, const T *source, size_t nreduce) | reducescatter<S, crosswarp::prod_op> as numbers | reduce::scatter_prod::<T>
one | b | int nvshmemx_double2_maxloc_reduce{f}(nvshmem_team_t team, double2 *dest, const double2 *source, size_t nreduce) | reduce<S, crosswarp_nvshmem::maxloc_op> |
";
