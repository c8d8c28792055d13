// Parameters of bins of arbitrary edges.
// Made from src/histogram/edges.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp::histogram {

// Bits of a cell's entry for the edges in cells before it; the others are for its own.
constexpr u32 edge_bits = 24;
// What an entry says if a cell has this many edges or more.
constexpr u32 many_edges = 255;

// Edges and cells, their tables in device memory.
template <class K> struct edges_parameters {
    const K* edge;
    const u32* cell;
    // Samples outside are dropped.
    K from;
    K to;
    // The cell of a key: (key - low) * scale, for floats and if `factor` is 0.
    K low;
    K scale;
    // Edges.
    u32 count;
    u32 bins;
    // Otherwise (ordered key - base) * factor / 2^32.
    u32 base;
    u32 factor;
    u32 cells;
    u32 pad;
};
static_assert(sizeof(edges_parameters<i32>) == 40 + 4 * sizeof(i32),
              "size of edges_parameters");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, edge) == 0 + 0 * sizeof(i32),
              "edges_parameters::edge");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, cell) == 8 + 0 * sizeof(i32),
              "edges_parameters::cell");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, from) == 16 + 0 * sizeof(i32),
              "edges_parameters::from");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, to) == 16 + 1 * sizeof(i32),
              "edges_parameters::to");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, low) == 16 + 2 * sizeof(i32),
              "edges_parameters::low");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, scale) == 16 + 3 * sizeof(i32),
              "edges_parameters::scale");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, count) == 16 + 4 * sizeof(i32),
              "edges_parameters::count");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, bins) == 20 + 4 * sizeof(i32),
              "edges_parameters::bins");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, base) == 24 + 4 * sizeof(i32),
              "edges_parameters::base");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, factor) == 28 + 4 * sizeof(i32),
              "edges_parameters::factor");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, cells) == 32 + 4 * sizeof(i32),
              "edges_parameters::cells");
static_assert(CROSSWARP_OFFSET(edges_parameters<i32>, pad) == 36 + 4 * sizeof(i32),
              "edges_parameters::pad");
static_assert(sizeof(edges_parameters<i64>) == 40 + 4 * sizeof(i64),
              "size of edges_parameters");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, edge) == 0 + 0 * sizeof(i64),
              "edges_parameters::edge");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, cell) == 8 + 0 * sizeof(i64),
              "edges_parameters::cell");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, from) == 16 + 0 * sizeof(i64),
              "edges_parameters::from");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, to) == 16 + 1 * sizeof(i64),
              "edges_parameters::to");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, low) == 16 + 2 * sizeof(i64),
              "edges_parameters::low");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, scale) == 16 + 3 * sizeof(i64),
              "edges_parameters::scale");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, count) == 16 + 4 * sizeof(i64),
              "edges_parameters::count");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, bins) == 20 + 4 * sizeof(i64),
              "edges_parameters::bins");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, base) == 24 + 4 * sizeof(i64),
              "edges_parameters::base");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, factor) == 28 + 4 * sizeof(i64),
              "edges_parameters::factor");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, cells) == 32 + 4 * sizeof(i64),
              "edges_parameters::cells");
static_assert(CROSSWARP_OFFSET(edges_parameters<i64>, pad) == 36 + 4 * sizeof(i64),
              "edges_parameters::pad");
static_assert(sizeof(edges_parameters<float>) == 40 + 4 * sizeof(float),
              "size of edges_parameters");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, edge) == 0 + 0 * sizeof(float),
              "edges_parameters::edge");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, cell) == 8 + 0 * sizeof(float),
              "edges_parameters::cell");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, from) == 16 + 0 * sizeof(float),
              "edges_parameters::from");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, to) == 16 + 1 * sizeof(float),
              "edges_parameters::to");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, low) == 16 + 2 * sizeof(float),
              "edges_parameters::low");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, scale) == 16 + 3 * sizeof(float),
              "edges_parameters::scale");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, count) == 16 + 4 * sizeof(float),
              "edges_parameters::count");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, bins) == 20 + 4 * sizeof(float),
              "edges_parameters::bins");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, base) == 24 + 4 * sizeof(float),
              "edges_parameters::base");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, factor) == 28 + 4 * sizeof(float),
              "edges_parameters::factor");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, cells) == 32 + 4 * sizeof(float),
              "edges_parameters::cells");
static_assert(CROSSWARP_OFFSET(edges_parameters<float>, pad) == 36 + 4 * sizeof(float),
              "edges_parameters::pad");
static_assert(sizeof(edges_parameters<double>) == 40 + 4 * sizeof(double),
              "size of edges_parameters");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, edge) == 0 + 0 * sizeof(double),
              "edges_parameters::edge");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, cell) == 8 + 0 * sizeof(double),
              "edges_parameters::cell");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, from) == 16 + 0 * sizeof(double),
              "edges_parameters::from");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, to) == 16 + 1 * sizeof(double),
              "edges_parameters::to");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, low) == 16 + 2 * sizeof(double),
              "edges_parameters::low");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, scale) == 16 + 3 * sizeof(double),
              "edges_parameters::scale");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, count) == 16 + 4 * sizeof(double),
              "edges_parameters::count");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, bins) == 20 + 4 * sizeof(double),
              "edges_parameters::bins");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, base) == 24 + 4 * sizeof(double),
              "edges_parameters::base");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, factor) == 28 + 4 * sizeof(double),
              "edges_parameters::factor");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, cells) == 32 + 4 * sizeof(double),
              "edges_parameters::cells");
static_assert(CROSSWARP_OFFSET(edges_parameters<double>, pad) == 36 + 4 * sizeof(double),
              "edges_parameters::pad");

}  // namespace crosswarp::histogram
