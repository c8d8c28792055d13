// Tiles of arrays of several dimensions, between PEs: what `nvshmemx::tile_…` does (crosswarp_nvshmem_tile.h).
//
// A tile is copied by rows: the elements along a dimension in which both sides have them next to one another, or single
// elements where there is none. Rows are cut into the widest words (16 bytes, 4, or an element's) that all of them are
// aligned to, and a scope's threads take words side by side.
#if __cplusplus >= 201703L

namespace crosswarp_nvshmem {

// Rows of two tiles, in bytes: the first one of each, how many there are along each dimension, and the steps between them.
template <int R> struct tile_rows {
    u64 to, from;
    u32 count[R];
    long long to_step[R], from_step[R];
};

// Copies `n` words of each row from byte `at` of it on, all dimensions from `First` on. `all`: words in all rows, of which
// there are less than 2^31.
template <class W, bool Fresh, int First, int R, class S>
__device__ inline void copy_row_words(const tile_rows<R>& rows, u32 at, u32 n, u32 all, const S& scope) {
    constexpr int flight = 4;
    const u32 size = scope.size();
    for (u32 i = scope.rank(); i < all; i += flight * size) {
        W word[flight];
        u64 to[flight];
#pragma unroll
        for (int j = 0; j < flight; ++j) {
            const u32 k = i + j * size;
            if (k >= all) continue;
            u32 row = k / n;
            const u64 inside = at + (u64)(k - row * n) * sizeof(W);
            u64 from = rows.from + inside;
            to[j] = rows.to + inside;
#pragma unroll
            for (int d = First; d < R; ++d) {
                // In the last dimension what is left is the place.
                const u32 rest = d + 1 < R ? row / rows.count[d] : 0;
                const long long place = row - rest * rows.count[d];
                to[j] += place * rows.to_step[d];
                from += place * rows.from_step[d];
                row = rest;
            }
            word[j] = crosswarp::detail::load<W, Fresh>(reinterpret_cast<const W*>(from));
        }
#pragma unroll
        for (int j = 0; j < flight; ++j) {
            if (i + j * size < all) *reinterpret_cast<W*>(to[j]) = word[j];
        }
    }
}

// The same for rows of `bytes`, what is left of each in U's.
template <class W, class U, bool Fresh, int First, int R, class S>
__device__ inline void copy_rows_in(const tile_rows<R>& rows, u32 n, u32 bytes, const S& scope) {
    const u32 wide = bytes / sizeof(W), done = wide * sizeof(W), rest = (bytes - done) / sizeof(U);
    if (wide != 0) copy_row_words<W, Fresh, First>(rows, 0, wide, n * wide, scope);
    if (rest != 0) copy_row_words<U, Fresh, First>(rows, done, rest, n * rest, scope);
}

// How many rows there are of `bytes`, a multiple of U's; 0 if these are too many words.
template <class U, int First, int R> __device__ inline u32 count_rows(const tile_rows<R>& rows, u64 bytes) {
    u64 n = 1;
#pragma unroll
    for (int d = First; d < R; ++d) {
        if (n >> 31 == 0) n *= rows.count[d];
    }
    return n >> 31 != 0 || bytes >> 32 != 0 || n * (bytes / sizeof(U)) >> 31 != 0 ? 0 : (u32)n;
}

// Copies rows of `bytes`, a multiple of U's, to which everything is aligned.
template <class U, bool Fresh, int First, int R, class S>
__device__ inline int copy_rows(const tile_rows<R>& rows, u64 bytes, const S& scope) {
    const u32 n = count_rows<U, First>(rows, bytes);
    if (n == 0) return NVSHMEMX_ERROR_INVALID_VALUE;
    u64 aligned = rows.to | rows.from;
#pragma unroll
    for (int d = First; d < R; ++d) {
        if (rows.count[d] > 1) aligned |= (u64)rows.to_step[d] | (u64)rows.from_step[d];
    }
    if (aligned % 16 == 0) {
        copy_rows_in<crosswarp::detail::vec16, U, Fresh, First>(rows, n, (u32)bytes, scope);
    } else if (sizeof(U) < 4 && aligned % 4 == 0) {
        copy_rows_in<u32, U, Fresh, First>(rows, n, (u32)bytes, scope);
    } else {
        copy_rows_in<U, U, Fresh, First>(rows, n, (u32)bytes, scope);
    }
    return 0;
}

// From dimension `D` on: elements of a tile of this shape that are before `boundary`, whose first one is at `start`. (No
// lambda goes through dimensions: NVRTC takes generic ones for functions of the host.)
template <int D, class Shape, class Tuple>
__device__ inline void tile_extents(const Shape& shape, const Tuple& start, const Tuple& boundary, long long* extent) {
    constexpr int R = nvshmemx::nvshmem_cw::rank_of<Shape>, bounds = nvshmemx::nvshmem_cw::rank_of<Tuple>;
    static_assert(bounds == 0 || bounds == R,
                  "start_coord and boundary are nvshmemx::shape or stride of the tile's dimensions, or an empty structure");
    if constexpr (D < R) {
        using nvshmemx::nvshmem_cw::at;
        extent[D] = at<D>(shape.of);
        if constexpr (bounds > 0) {
            const long long left = at<D>(boundary.of) - at<D>(start.of);
            if (left < extent[D]) extent[D] = left;
        }
        if (extent[D] < 0) extent[D] = 0;
        tile_extents<D + 1>(shape, start, boundary, extent);
    }
}

// From dimension `D` on: single elements of two tiles as rows. Whether the destination has room for them.
template <int D, int R, class Source, class Dest>
__device__ inline bool lay_out(const Dest& dest, const Source& source, long long bytes, const long long* extent,
                               tile_rows<R>& rows) {
    if constexpr (D < R) {
        using nvshmemx::nvshmem_cw::at;
        rows.count[D] = (u32)extent[D];
        rows.to_step[D] = at<D>(dest.stride.of) * bytes;
        rows.from_step[D] = at<D>(source.stride.of) * bytes;
        const bool fits = extent[D] <= at<D>(dest.shape.of) && extent[D] >> 31 == 0;
        return lay_out<D + 1>(dest, source, bytes, extent, rows) && fits;
    } else {
        return true;
    }
}

#ifdef CROSSWARP_ROUTED
// Copies rows of `bytes` to or from `pe`, of another host, one after the other; what is there has the address that it has
// here.
template <class U, bool Gets, int First, int R, class S>
__device__ inline __noinline__ int carry_rows(const tile_rows<R>& rows, u64 bytes, int pe, const S& scope) {
    const u32 n = count_rows<U, First>(rows, bytes);
    if (n == 0) return NVSHMEMX_ERROR_INVALID_VALUE;
    for (u32 i = 0; scope.rank() == 0 && i < n; ++i) {
        u32 row = i;
        u64 to = rows.to, from = rows.from;
        for (int d = First; d < R; ++d) {
            const long long place = row % rows.count[d];
            row /= rows.count[d];
            to += place * rows.to_step[d];
            from += place * rows.from_step[d];
        }
        u8* there = reinterpret_cast<u8*>(to);
        const u8* here = reinterpret_cast<const u8*>(from);
        Gets ? crosswarp::get(there, here, bytes, pe) : crosswarp::put(there, here, bytes, pe);
    }
    return 0;
}
#endif

// Where `pe` has what is at `local` here; of a PE of another host that address.
template <class T> __device__ inline T* tile_at(T* local, int pe) {
    T* there = crosswarp::ptr(local, pe);
#ifdef CROSSWARP_ROUTED
    if (there == nullptr) return local;
#endif
    return there;
}

// Copies what is there of the tile at `from` to `to`, which lie as `source` and `dest` do; `pe`: whose the one or, if
// `Fresh`, the other is.
template <bool Fresh, class T, class Source, class Dest, class Tuple, class S>
__device__ inline int copy_tile(T* to, const Dest& dest, const T* from, const Source& source, const Tuple& start,
                                const Tuple& boundary, int pe, const S& scope) {
    constexpr int R = nvshmemx::nvshmem_cw::rank_of<decltype(source.shape)>;
    static_assert(R > 0 && R == nvshmemx::nvshmem_cw::rank_of<decltype(dest.shape)>, "two tiles of the same dimensions");
    long long extent[R];
    tile_extents<0>(source.shape, start, boundary, extent);
    tile_rows<R> rows = {reinterpret_cast<u64>(to), reinterpret_cast<u64>(from), {}, {}, {}};
    if (!lay_out<0>(dest, source, sizeof(T), extent, rows)) return NVSHMEMX_ERROR_INVALID_VALUE;
    bool empty = false, gaps = true;
#pragma unroll
    for (int d = 0; d < R; ++d) empty = empty || rows.count[d] == 0;
    if (empty) return 0;
    // The longest dimension without gaps on either side comes first and becomes the rows.
#pragma unroll
    for (int d = 0; d < R; ++d) {
        const bool close = rows.to_step[d] == (long long)sizeof(T) && rows.from_step[d] == (long long)sizeof(T);
        if (!close || (!gaps && rows.count[d] <= rows.count[0])) continue;
        gaps = false;
        const u32 count = rows.count[0];
        const long long to_step = rows.to_step[0], from_step = rows.from_step[0];
        rows.count[0] = rows.count[d], rows.count[d] = count;
        rows.to_step[0] = rows.to_step[d], rows.to_step[d] = to_step;
        rows.from_step[0] = rows.from_step[d], rows.from_step[d] = from_step;
    }
    using U = crosswarp::unit_of<T>;
#ifdef CROSSWARP_ROUTED
    if (!crosswarp::detail::mapped(pe)) {
        if (gaps) return carry_rows<U, Fresh, 0>(rows, sizeof(T), pe, scope);
        return carry_rows<U, Fresh, 1>(rows, (u64)rows.count[0] * sizeof(T), pe, scope);
    }
#endif
    if (gaps) return copy_rows<U, Fresh, 0>(rows, sizeof(T), scope);
    return copy_rows<U, Fresh, 1>(rows, (u64)rows.count[0] * sizeof(T), scope);
}

__device__ inline bool is_pe(int pe) { return pe >= 0 && pe < n_pes(); }

template <class S, class Source, class Dest, class Tuple>
__device__ inline int tile_put(const Source& src, const Dest& dst, const Tuple& start, const Tuple& boundary, int pe) {
    if (!is_pe(pe)) return NVSHMEMX_ERROR_INVALID_VALUE;
    S scope;
    scope.sync();
    const int status =
        copy_tile<false>(tile_at(dst.data, pe), dst.layout, src.data, src.layout, start, boundary, pe, scope);
    scope.sync();
    return status;
}
template <class S, class Source, class Dest, class Tuple>
__device__ inline int tile_get(const Source& src, const Dest& dst, const Tuple& start, const Tuple& boundary, int pe) {
    if (!is_pe(pe)) return NVSHMEMX_ERROR_INVALID_VALUE;
    S scope;
    scope.sync();
    const int status =
        copy_tile<true>(dst.data, dst.layout, tile_at(src.data, pe), src.layout, start, boundary, pe, scope);
    scope.sync();
    return status;
}

// To the same place on every PE of the team, beginning behind this one, so that the links fill evenly.
template <class Source, class Dest, class T, class Tuple, class S>
__device__ inline int tile_to_all(const crosswarp::team& t, const Source& src, T* to, const Dest& dst, const Tuple& start,
                                  const Tuple& boundary, const S& scope) {
    int status = 0;
    for (int i = 1; i <= t.size; ++i) {
        const int pe = t.pe((t.me + i) % t.size);
        status = copy_tile<false>(tile_at(to, pe), dst.layout, src.data, src.layout, start, boundary, pe, scope);
    }
    return status;
}

// From dimension `D` on: how many elements behind the first this PE's tile goes to, and in how many dimensions the
// destination is longer; -1 if that is not so many times as there are PEs.
template <int D, int R, class Source, class Dest>
__device__ inline int longer_in(const Source& source, const Dest& dest, const crosswarp::team& t, long long& place) {
    if constexpr (D < R) {
        using nvshmemx::nvshmem_cw::at;
        const int others = longer_in<D + 1, R>(source, dest, t, place);
        const long long mine = at<D>(source.shape.of), all = at<D>(dest.shape.of);
        if (mine == all || others < 0) return others;
        place += t.me * mine * at<D>(dest.stride.of);
        return all == mine * t.size ? others + 1 : -1;
    } else {
        return 0;
    }
}

// The destination is as many times as long as there are PEs in one dimension, in which their tiles lie in rank order. They
// have all arrived after `tile_collective_wait`, which meets the team.
template <class S, class Source, class Dest, class Tuple>
__device__ inline int tile_allgather(nvshmem_team_t team, const Source& src, const Dest& dst, const Tuple& start,
                                     const Tuple& boundary) {
    if (!is_team(team)) return NVSHMEMX_ERROR_INVALID_VALUE;
    const crosswarp::team& t = team_of(team);
    constexpr int R = nvshmemx::nvshmem_cw::rank_of<decltype(src.layout.shape)>;
    static_assert(R == nvshmemx::nvshmem_cw::rank_of<decltype(dst.layout.shape)>, "two tiles of the same dimensions");
    long long place = 0;
    if (longer_in<0, R>(src.layout, dst.layout, t, place) != (t.size > 1)) return NVSHMEMX_ERROR_INVALID_VALUE;
    auto* to = dst.data + place;
    S scope;
    scope.sync();
    const int status = tile_to_all(t, src, to, dst, start, boundary, scope);
    scope.sync();
    return status;
}
// From the PE that calls to all of the team, which meet in `tile_collective_wait`.
template <class S, class Source, class Dest, class Tuple>
__device__ inline int tile_broadcast(nvshmem_team_t team, const Source& src, const Dest& dst, const Tuple& start,
                                     const Tuple& boundary) {
    if (!is_team(team)) return NVSHMEMX_ERROR_INVALID_VALUE;
    S scope;
    scope.sync();
    const int status = tile_to_all(team_of(team), src, dst.data, dst, start, boundary, scope);
    scope.sync();
    return status;
}

}  // namespace crosswarp_nvshmem

#endif
