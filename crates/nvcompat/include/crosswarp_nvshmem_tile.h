/* Tiles: parts of arrays of several dimensions. Included by crosswarp_nvshmem.h, from C++17 on, which has what kernels do
 * with them. */
#if defined(__cplusplus) && __cplusplus >= 201703L && !defined(NVSHMEM_CW_TILE)
#define NVSHMEM_CW_TILE

namespace nvshmemx {

/* How a tile travels. PEs reach each other's memory directly, so those of a direction do the same. */
enum class tile_algo_t { PEER_PUSH_NBI, PEER_PULL_NBI, REMOTE_PUSH_NBI, REMOTE_PULL_NBI };
enum class tile_coll_algo_t { NVLS_ONE_SHOT_PUSH_NBI, NVLS_ONE_SHOT_PULL_NBI, NVLS_TWO_SHOT_PUSH_NBI };

/* A number that the compiler knows. */
#ifdef NVSHMEM_CW_LIBCUDACXX
template <int N> using ConstInt = cuda::std::integral_constant<int, N>;
#else
template <int N> struct ConstInt {
    using value_type = int;
    static constexpr int value = N;
    __host__ __device__ constexpr operator int() const { return N; }
};
#endif

namespace nvshmem_cw {

/* A number for each dimension, each of a type of its own. */
template <class... Ts> struct numbers {};
template <class T, class... Ts> struct numbers<T, Ts...> {
    T first;
    numbers<Ts...> rest;
    numbers() = default;
    __host__ __device__ constexpr numbers(T one, Ts... others) : first(one), rest(others...) {}
};
template <int I, class T, class... Ts> __host__ __device__ constexpr long long at(const numbers<T, Ts...> &of) {
    if constexpr (I == 0) {
        return of.first;
    } else {
        return at<I - 1>(of.rest);
    }
}

}  // namespace nvshmem_cw

template <class... Ts> struct shape {
    nvshmem_cw::numbers<Ts...> of;
};
template <class... Ts> struct stride {
    nvshmem_cw::numbers<Ts...> of;
};
template <class... Ts> __host__ __device__ constexpr shape<Ts...> make_shape(Ts const &...t) {
    return {nvshmem_cw::numbers<Ts...>{t...}};
}
template <class... Ts> __host__ __device__ constexpr stride<Ts...> make_stride(Ts const &...t) {
    return {nvshmem_cw::numbers<Ts...>{t...}};
}

namespace nvshmem_cw {

/* Dimensions of a shape or stride. A program's own empty structure stands for no bounds and has none; −1 for what might
 * have been meant as bounds and is not understood. */
template <class T> constexpr int rank_of = __is_empty(T) ? 0 : -1;
template <class... Ts> constexpr int rank_of<shape<Ts...>> = (int)sizeof...(Ts);
template <class... Ts> constexpr int rank_of<stride<Ts...>> = (int)sizeof...(Ts);

}  // namespace nvshmem_cw

/* How a tile lies in memory; strides in elements. */
template <class Shape, class Stride> struct Layout {
    static_assert(nvshmem_cw::rank_of<Shape> == nvshmem_cw::rank_of<Stride>, "a stride for each dimension");
    Shape shape;
    Stride stride;
    Layout() = default;
    __host__ __device__ constexpr Layout(Shape const &sizes, Stride const &steps) : shape(sizes), stride(steps) {}
};
template <class Shape, class Stride>
__host__ __device__ constexpr Layout<Shape, Stride> make_layout(Shape const &shape, Stride const &stride) {
    return {shape, stride};
}

/* A tile: its first element and its layout. */
template <class T, class Layout> struct Tensor {
    T *data;
    Layout layout;
    Tensor() = default;
    __host__ __device__ constexpr Tensor(T *first, Layout how) : data(first), layout(how) {}
};

}  // namespace nvshmemx

#endif
