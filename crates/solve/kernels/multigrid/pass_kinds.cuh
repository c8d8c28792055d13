// What a pass over a level does.
#pragma once

namespace crosswarp {

__device__ inline int wrapped(int at, int count) {
    while (at < 0) at += count;
    while (at >= count) at -= count;
    return at;
}

// Makes the outermost values of a tile's field zero.
template <int threads, class F, int rows, int columns> __device__ __forceinline__ void clear_rim(F (&field)[rows][columns]) {
    for (int k = threadIdx.x; k < columns; k += threads) field[0][k] = field[rows - 1][k] = F(0);
    for (int k = threadIdx.x; k < rows; k += threads) field[k][0] = field[k][columns - 1] = F(0);
}

// What a pass does: as the launch says,
struct as_launched {
    template <class G> static __device__ int start(const G& g) { return g.start; }
    template <class G> static __device__ int measured(const G& g) { return g.measured; }
    template <class G> static __device__ bool restricts(const G& g) { return g.coarse_right_side; }
    template <class G> static __device__ int colour(const G& g) { return g.colour; }
    // Of a step, the first being 0, of so many, that relaxes points of one colour: where there are such, `omega` is a quarter of ω.
    template <class G> static __device__ bool solves(const G& g, int step, int) { return g.omega[step] == 0.25; }
};
// or as the compiler knows, where time matters most.
template <int s, int m, bool r, int c = no_colour> struct as_known {
    template <class G> static __device__ constexpr int start(const G&) { return s; }
    template <class G> static __device__ constexpr int measured(const G&) { return m; }
    template <class G> static __device__ constexpr bool restricts(const G&) { return r; }
    template <class G> static __device__ constexpr int colour(const G&) { return c; }
    // The first after a correction, and the last before one: see `Smoothing::red_black`.
    template <class G> static __device__ constexpr bool solves(const G&, int step, int steps) {
        return step == 0 || step + 1 == steps;
    }
};

}  // namespace crosswarp
