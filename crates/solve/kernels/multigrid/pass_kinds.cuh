// What a pass over a level does.
#pragma once

namespace crosswarp {

__device__ inline int wrapped(int at, int count) {
    while (at < 0) at += count;
    while (at >= count) at -= count;
    return at;
}

// What a pass does: as the launch says,
struct as_launched {
    template <class G> static __device__ int start(const G& g) { return g.start; }
    template <class G> static __device__ int measured(const G& g) { return g.measured; }
    template <class G> static __device__ bool restricts(const G& g) { return g.coarse_right_side; }
    template <class G> static __device__ int colour(const G& g) { return g.colour; }
};
// or as the compiler knows, where time matters most.
template <int s, int m, bool r, int c = no_colour> struct as_known {
    template <class G> static __device__ constexpr int start(const G&) { return s; }
    template <class G> static __device__ constexpr int measured(const G&) { return m; }
    template <class G> static __device__ constexpr bool restricts(const G&) { return r; }
    template <class G> static __device__ constexpr int colour(const G&) { return c; }
};

}  // namespace crosswarp
