// Where the units of a plane on the chip are, and where their edges go and come from. The host side is
// `engine::cuda::on_chip::plane`.
#pragma once
#include "jacobi/arguments.cuh"
#include "jacobi/on_chip/packets.cuh"
#include "jacobi/on_chip/stop_decision.cuh"
#include "jacobi/plane.cuh"
#include "pe.cuh"

namespace crosswarp {

// Where a unit's edges go and come from, if not through shared memory; null if not.
struct unit_links {
    u64* send_row[2];
    const u64* receive_row[2];
    u64* send_column[2];
    const u64* receive_column[2];
    // What the other end's ghosts copy: 0 and 2 are row (column) 1, which goes to the bottom (right) end, 1 is the
    // last inner one. Where the ghost at that end is a unit's first row, it is sent to the unit before as well (2).
    u64* send_ghost_row[3];
    u64* send_ghost_column[3];
};

// A warp's unit of 16 rows and `Width` columns.
template <class F, int Width> class unit_neighbours {
  protected:
    const tile_run<F>& a_;
    const int warp_;
    int band_, column_;  // counted in units of this PE
    bool there_;

    __device__ __forceinline__ unit_neighbours(const tile_run<F>& a, int warp) : a_(a), warp_(warp) {
        int across = (a.units + a.tile_units - 1) / a.tile_units;
        band_ = blockIdx.x / across * a.tile_bands + warp / a.tile_units;
        column_ = blockIdx.x % across * a.tile_units + warp % a.tile_units;
        there_ = band_ < a.bands && column_ < a.units;
    }

    __device__ __forceinline__ int x0() const { return column_ * Width; }
    __device__ __forceinline__ int y0() const { return a_.plane.own_start + band_ * leaf_rows; }

    // The slots of this unit's row or column of a generation lie this much behind those of generation 0 (mod 4).
    __device__ __forceinline__ u64 row_ring(u32 generation) const {
        return (u64)(generation % packet_ring) * a_.row_stride;
    }
    __device__ __forceinline__ u64 column_ring(u32 generation) const {
        return (u64)(generation % packet_ring) * a_.column_stride;
    }
    // Slots for what comes from above band i are counted from the first band, from below from the last, so that
    // a neighbouring PE knows them.
    __device__ u64* from_above(int band) const { return row_slot(band); }
    __device__ u64* from_below(int from_last) const { return row_slot(a_.max_bands + from_last); }
    __device__ u64* row_slot(int i) const {
        return a_.rows + ((u64)i * a_.units + column_) * (Width * packets_of<F>);
    }
    __device__ u64* column_slot(int column, int side) const {
        return a_.columns + (((u64)band_ * a_.units + column) * 2 + side) * (leaf_rows * packets_of<F>);
    }

    __device__ unit_links links() const {
        const band<F>& g = a_.plane;
        unit_links l = {};
        bool first = band_ == 0, last = band_ == a_.bands - 1;
        bool top = y0() == 0, bottom = last && g.own_end == g.ny;
        if (first ? !top : warp_ < a_.tile_units) {
            l.send_row[0] = first ? ptr(from_below(0), a_.above) : from_below(a_.bands - band_);
            l.receive_row[0] = from_above(band_);
        }
        if (last ? !bottom : warp_ / a_.tile_units == a_.tile_bands - 1) {
            l.send_row[1] = last ? ptr(from_above(0), a_.below) : from_above(band_ + 1);
            l.receive_row[1] = from_below(a_.bands - 1 - band_);
        }
        if (column_ > 0 && warp_ % a_.tile_units == 0) {
            l.send_column[0] = column_slot(column_ - 1, 1);
            l.receive_column[0] = column_slot(column_, 0);
        }
        if (column_ < a_.units - 1 && warp_ % a_.tile_units == a_.tile_units - 1) {
            l.send_column[1] = column_slot(column_ + 1, 0);
            l.receive_column[1] = column_slot(column_, 1);
        }
        if (g.wrap_y) {
            // Each PE has one end or both.
            bool apart = (g.ny - 1) % leaf_rows == 0;
            if (top) {
                l.send_ghost_row[0] = ptr(from_below(0), a_.above);
                if (apart) l.send_ghost_row[2] = ptr(from_below(1), a_.above);
                l.receive_row[0] = from_above(0);
            }
            if (has_row(g.ny - 2)) {
                l.send_ghost_row[1] = ptr(from_above(0), a_.below);
                if (apart) l.receive_row[1] = from_below(1);
            }
            if (bottom) {
                l.receive_row[1] = from_below(0);
                if (apart) l.send_row[0] = nullptr;
            }
        }
        if (g.wrap_x) {
            int right = (g.nx - 1) / Width;
            bool apart = (g.nx - 1) % Width == 0;
            if (column_ == 0) {
                l.send_ghost_column[0] = column_slot(right, 1);
                if (apart) l.send_ghost_column[2] = column_slot(right - 1, 1);
                l.receive_column[0] = column_slot(0, 0);
            }
            if (has_column(g.nx - 2)) {
                l.send_ghost_column[1] = column_slot(0, 0);
                if (apart) l.receive_column[1] = column_slot(column_, 1);
            }
            if (column_ == right) {
                l.receive_column[1] = column_slot(column_, 1);
                if (apart) l.send_column[0] = nullptr;
            }
        }
        return l;
    }
    __device__ bool has_row(int y) const { return y >= y0() && y < y0() + leaf_rows; }
    __device__ bool has_column(int x) const { return x >= x0() && x < x0() + Width; }
    __device__ bool ghost_rows() const { return a_.plane.wrap_y && (has_row(0) || has_row(a_.plane.ny - 1)); }
    __device__ bool ghost_columns() const { return a_.plane.wrap_x && (has_column(0) || has_column(a_.plane.nx - 1)); }
};

}  // namespace crosswarp
