// What the kernels are launched with.
// Made from src/gpu/arguments.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp {

// Columns of padding before column 0 of a plane and, at least, behind the last tile.
constexpr int pad = 16;
// Digits of a threshold, at least the limbs of any accumulator.
constexpr int threshold_digits = 68;
// Sorts of strips of a band, at most.
constexpr int strip_kinds = 20;
// Columns of a plane that a lane has in a pass.
constexpr int lane_columns = 4;
// Most sweeps of a pass over an `f32` plane without mask and source.
constexpr int pass_depth_plain_f32 = 6;
// The same over large ones of `f64`.
constexpr int pass_depth_large_f64 = 6;
// The same over `f32` planes with a source.
constexpr int pass_depth_source_f32 = 4;
// Most sweeps of a pass over other planes.
constexpr int pass_depth = 5;
// Rows of a pass under way from memory, or just read: twice as many as are unrolled.
constexpr int wavefront_ring = 6;
// Points on each side of a line that a pass needs, and most sweeps of it.
constexpr int line_pass_halo = 64;
// Threads of a block of a pass over an `f32` line.
constexpr int line_pass_threads_f32 = 512;
// The same, `f64`.
constexpr int line_pass_threads_f64 = 256;
// Points of the halo of a line on the chip, on each side: most sweeps until it has to be renewed.
constexpr int line_tile_halo = 32;
// Sets of edges and of words that runs of a line use in turn, pass by pass.
constexpr int line_sets = 3;
// Columns of a lane in narrow units of a plane on the chip.
constexpr int narrow_unit_columns = 1;
// In wide ones, `f32`.
constexpr int wide_unit_columns_f32 = 4;
// The same, `f64`.
constexpr int wide_unit_columns_f64 = 2;
// Most warps of a block that holds a tile of a plane.
constexpr int tile_warps = 16;
// Generations of packets that slots are for.
constexpr int packet_ring = 4;
// Sweeps of an `f32` plane whose norms are decided on together.
constexpr int chunk_sweeps_f32 = 64;
// The same, `f64`.
constexpr int chunk_sweeps_f64 = 32;
// Dynamic shared memory of the kernels of tiles of an `f32` plane, in bytes.
constexpr int plane_tile_shared_f32 = 81920;
// The same, `f64`.
constexpr int plane_tile_shared_f64 = 98304;
// Dynamic shared memory of the kernels with deep halos, in bytes.
constexpr int deep_halo_shared = 49152;
// Cells of a deep halo of an `f32` plane, and sweeps from one exchange to the next.
constexpr int deep_halo_depth_f32 = 8;
// The same, `f64`.
constexpr int deep_halo_depth_f64 = 4;
// Warps of a block of one leaf with a deep halo, `f32`.
constexpr int deep_halo_warps_one_f32 = 12;
// Of two leaves, `f32`.
constexpr int deep_halo_warps_two_f32 = 8;
// Of one leaf, `f64`.
constexpr int deep_halo_warps_one_f64 = 10;
// Threads of a block of the kernels that make one sweep.
constexpr int sweep_threads = 128;
// Threads of a block of what is done between passes.
constexpr int between_passes_threads = 256;
// Threads of a block of the exchange of halos.
constexpr int exchange_threads = 256;

// A PE's band of a plane. Rows and columns carry their numbers in the whole grid. Every array has `pitch` elements
// per row and `pad` columns before column 0; row `first` is the first that is stored. The padding, and the rows
// beyond `own`, are halos.
template <class F> struct alignas(8) band {
    // Address of row `first`, column 0.
    const F* before;
    F* after;
    // Cells that keep their value: byte not 0; null if none.
    const u8* fixed;
    // h²·f; null if none.
    const F* source;
    // One superaccumulator per sweep.
    u64* words;
    i64 pitch;
    i32 nx;
    i32 ny;
    i32 first;
    i32 own_start;
    i32 own_end;
    // Whether the outermost columns and rows are ghosts instead of fixed.
    i32 wrap_x;
    i32 wrap_y;
    u32 padding;

    __device__ i64 at(i32 x, i32 y) const { return (i64)(y - first) * pitch + x; }
};
static_assert(sizeof(band<float>) == 80, "size of band");
static_assert(CROSSWARP_OFFSET(band<float>, before) == 0, "band::before");
static_assert(CROSSWARP_OFFSET(band<float>, after) == 8, "band::after");
static_assert(CROSSWARP_OFFSET(band<float>, fixed) == 16, "band::fixed");
static_assert(CROSSWARP_OFFSET(band<float>, source) == 24, "band::source");
static_assert(CROSSWARP_OFFSET(band<float>, words) == 32, "band::words");
static_assert(CROSSWARP_OFFSET(band<float>, pitch) == 40, "band::pitch");
static_assert(CROSSWARP_OFFSET(band<float>, nx) == 48, "band::nx");
static_assert(CROSSWARP_OFFSET(band<float>, ny) == 52, "band::ny");
static_assert(CROSSWARP_OFFSET(band<float>, first) == 56, "band::first");
static_assert(CROSSWARP_OFFSET(band<float>, own_start) == 60, "band::own_start");
static_assert(CROSSWARP_OFFSET(band<float>, own_end) == 64, "band::own_end");
static_assert(CROSSWARP_OFFSET(band<float>, wrap_x) == 68, "band::wrap_x");
static_assert(CROSSWARP_OFFSET(band<float>, wrap_y) == 72, "band::wrap_y");
static_assert(CROSSWARP_OFFSET(band<float>, padding) == 76, "band::padding");

// A PE's part of a line.
template <class F> struct alignas(8) segment {
    // Address of point `own_start`; halos left and right of the own points.
    const F* before;
    F* after;
    // One superaccumulator per sweep.
    u64* words;
    i64 points;
    i64 own_start;
    i64 own_end;
};
static_assert(sizeof(segment<float>) == 48, "size of segment");
static_assert(CROSSWARP_OFFSET(segment<float>, before) == 0, "segment::before");
static_assert(CROSSWARP_OFFSET(segment<float>, after) == 8, "segment::after");
static_assert(CROSSWARP_OFFSET(segment<float>, words) == 16, "segment::words");
static_assert(CROSSWARP_OFFSET(segment<float>, points) == 24, "segment::points");
static_assert(CROSSWARP_OFFSET(segment<float>, own_start) == 32, "segment::own_start");
static_assert(CROSSWARP_OFFSET(segment<float>, own_end) == 40, "segment::own_end");

// Strips as wide as the leaves that a group of `warps` warps owns: `across` of them, `step` columns from one to
// the next, from column `x` on, in the rows start … end − 1, cut into pieces of `rows` rows, a multiple of 16.
// Their blocks begin with `first_block`.
struct alignas(4) strips_of {
    i32 first_block;
    i32 warps;
    i32 x;
    i32 across;
    i32 step;
    i32 rows;
    i32 start;
    i32 end;
};
static_assert(sizeof(strips_of) == 32, "size of strips_of");
static_assert(CROSSWARP_OFFSET(strips_of, first_block) == 0, "strips_of::first_block");
static_assert(CROSSWARP_OFFSET(strips_of, warps) == 4, "strips_of::warps");
static_assert(CROSSWARP_OFFSET(strips_of, x) == 8, "strips_of::x");
static_assert(CROSSWARP_OFFSET(strips_of, across) == 12, "strips_of::across");
static_assert(CROSSWARP_OFFSET(strips_of, step) == 16, "strips_of::step");
static_assert(CROSSWARP_OFFSET(strips_of, rows) == 20, "strips_of::rows");
static_assert(CROSSWARP_OFFSET(strips_of, start) == 24, "strips_of::start");
static_assert(CROSSWARP_OFFSET(strips_of, end) == 28, "strips_of::end");

// How a band is cut, in the order of blocks.
struct alignas(8) strips {
    // Unused ones begin behind the grid.
    strips_of of[strip_kinds];
    // Rows that neighbours wait for are made by the blocks before this one; each of their warps then adds 1 to
    // `made`.
    i32 counted_blocks;
    u32 padding;
    // Null if no blocks are counted.
    u64* made;
};
static_assert(sizeof(strips) == 656, "size of strips");
static_assert(CROSSWARP_OFFSET(strips, of) == 0, "strips::of");
static_assert(CROSSWARP_OFFSET(strips, counted_blocks) == 640, "strips::counted_blocks");
static_assert(CROSSWARP_OFFSET(strips, padding) == 644, "strips::padding");
static_assert(CROSSWARP_OFFSET(strips, made) == 648, "strips::made");

// What an exchange does on one side.
struct alignas(8) edge {
    // The neighbour; −1: none.
    i32 pe;
    // Rows that travel each way.
    i32 count;
    // The first row that goes; of a line a row is a point, so there may be more than 2³¹.
    i64 send;
    // The first row that comes.
    i64 receive;
};
static_assert(sizeof(edge) == 24, "size of edge");
static_assert(CROSSWARP_OFFSET(edge, pe) == 0, "edge::pe");
static_assert(CROSSWARP_OFFSET(edge, count) == 4, "edge::count");
static_assert(CROSSWARP_OFFSET(edge, send) == 8, "edge::send");
static_assert(CROSSWARP_OFFSET(edge, receive) == 16, "edge::receive");

// An exchange of halos.
template <class F> struct alignas(8) exchange {
    // Address of row `first`, column 0.
    F* field;
    // Symmetric; two of [above, below] of `part` elements.
    F* buffers;
    // Symmetric. Above, below: blocks that have sent, added up over all exchanges. Then: this PE's warps that have
    // made rows for neighbours, added up over all passes.
    u64* signals;
    i64 pitch;
    i64 part;
    u64 number;
    // Warps that have made the rows that go.
    u64 made;
    i64 first;
    // Elements of a row that travel, a multiple of 128.
    i32 columns;
    i32 padding;
    // Above, below.
    edge edges[2];
};
static_assert(sizeof(exchange<float>) == 120, "size of exchange");
static_assert(CROSSWARP_OFFSET(exchange<float>, field) == 0, "exchange::field");
static_assert(CROSSWARP_OFFSET(exchange<float>, buffers) == 8, "exchange::buffers");
static_assert(CROSSWARP_OFFSET(exchange<float>, signals) == 16, "exchange::signals");
static_assert(CROSSWARP_OFFSET(exchange<float>, pitch) == 24, "exchange::pitch");
static_assert(CROSSWARP_OFFSET(exchange<float>, part) == 32, "exchange::part");
static_assert(CROSSWARP_OFFSET(exchange<float>, number) == 40, "exchange::number");
static_assert(CROSSWARP_OFFSET(exchange<float>, made) == 48, "exchange::made");
static_assert(CROSSWARP_OFFSET(exchange<float>, first) == 56, "exchange::first");
static_assert(CROSSWARP_OFFSET(exchange<float>, columns) == 64, "exchange::columns");
static_assert(CROSSWARP_OFFSET(exchange<float>, padding) == 68, "exchange::padding");
static_assert(CROSSWARP_OFFSET(exchange<float>, edges) == 72, "exchange::edges");

// What a run that decides on the stop adds up, and where.
template <class F> struct alignas(8) stop_decision_run {
    // Of this PE: [sweeps][words], zero at first.
    u64* words;
    // Of this PE: [chunks], zero at first.
    u32* tickets;
    // Symmetric: [chunks][PEs][chunk_sweeps × words].
    u64* parts;
    // Symmetric: [PEs], chunks that each has sent since the solve began.
    u64* arrived;
    // For the host: [sweeps][words].
    u64* totals;
    // For the host: 1 + the first sweep that meets the threshold; 0: none.
    u64* stop;
    // Chunks before this run.
    u64 before;
    // That have parts; the first ones.
    i32 pes;
    // Whether an infinite sum meets the threshold.
    i32 infinite;
    // The largest finite sum that does, in base 2³² from the lowest.
    u32 digits[threshold_digits];
};
static_assert(sizeof(stop_decision_run<float>) == 336, "size of stop_decision_run");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, words) == 0, "stop_decision_run::words");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, tickets) == 8, "stop_decision_run::tickets");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, parts) == 16, "stop_decision_run::parts");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, arrived) == 24, "stop_decision_run::arrived");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, totals) == 32, "stop_decision_run::totals");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, stop) == 40, "stop_decision_run::stop");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, before) == 48, "stop_decision_run::before");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, pes) == 56, "stop_decision_run::pes");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, infinite) == 60, "stop_decision_run::infinite");
static_assert(CROSSWARP_OFFSET(stop_decision_run<float>, digits) == 64, "stop_decision_run::digits");

// A run of sweeps over a plane in registers, with edges that travel after every sweep.
template <class F> struct alignas(8) tile_run {
    band<F> plane;
    // Symmetric: packets of rows, [ring][2 max_bands][units][32 lanes].
    u64* rows;
    // Packets of columns, [ring][max_bands][units][left, right][16].
    u64* columns;
    // Packets of a generation.
    u32 row_stride;
    u32 column_stride;
    // Bands of 16 rows of the PE with most.
    i32 max_bands;
    // Of this PE: rows of units, and units in each.
    i32 bands;
    i32 units;
    // Of a block.
    i32 tile_bands;
    i32 tile_units;
    // The PEs there, −1: none.
    i32 above;
    i32 below;
    // Of the first edges.
    u32 generation;
    i32 sweeps;
    // Whether sweeps are decided on; else all are made.
    i32 decides;
    // As `after`: the field before chunk c, in c % 2; not before chunk 0.
    F* kept[2];
    stop_decision_run<F> norms;
};
static_assert(sizeof(tile_run<float>) == 496, "size of tile_run");
static_assert(CROSSWARP_OFFSET(tile_run<float>, plane) == 0, "tile_run::plane");
static_assert(CROSSWARP_OFFSET(tile_run<float>, rows) == 80, "tile_run::rows");
static_assert(CROSSWARP_OFFSET(tile_run<float>, columns) == 88, "tile_run::columns");
static_assert(CROSSWARP_OFFSET(tile_run<float>, row_stride) == 96, "tile_run::row_stride");
static_assert(CROSSWARP_OFFSET(tile_run<float>, column_stride) == 100, "tile_run::column_stride");
static_assert(CROSSWARP_OFFSET(tile_run<float>, max_bands) == 104, "tile_run::max_bands");
static_assert(CROSSWARP_OFFSET(tile_run<float>, bands) == 108, "tile_run::bands");
static_assert(CROSSWARP_OFFSET(tile_run<float>, units) == 112, "tile_run::units");
static_assert(CROSSWARP_OFFSET(tile_run<float>, tile_bands) == 116, "tile_run::tile_bands");
static_assert(CROSSWARP_OFFSET(tile_run<float>, tile_units) == 120, "tile_run::tile_units");
static_assert(CROSSWARP_OFFSET(tile_run<float>, above) == 124, "tile_run::above");
static_assert(CROSSWARP_OFFSET(tile_run<float>, below) == 128, "tile_run::below");
static_assert(CROSSWARP_OFFSET(tile_run<float>, generation) == 132, "tile_run::generation");
static_assert(CROSSWARP_OFFSET(tile_run<float>, sweeps) == 136, "tile_run::sweeps");
static_assert(CROSSWARP_OFFSET(tile_run<float>, decides) == 140, "tile_run::decides");
static_assert(CROSSWARP_OFFSET(tile_run<float>, kept) == 144, "tile_run::kept");
static_assert(CROSSWARP_OFFSET(tile_run<float>, norms) == 160, "tile_run::norms");

// A run of sweeps over a plane in registers, with deep halos.
template <class F> struct alignas(8) deep_halo_run {
    band<F> plane;
    // Of 16 rows, of this PE.
    i32 bands;
    // The PEs there.
    i32 above;
    i32 below;
    // Of the first packets.
    u32 generation;
    i32 sweeps;
    // Whether sweeps are decided on; else all are made.
    i32 decides;
    // As `after`: the field before chunk c, in c % 2; not before chunk 0.
    F* kept[2];
    stop_decision_run<F> norms;
    // Symmetric: [ring][leaves + 2][field_rows][128]: strips of columns, the first and the last beyond the grid's
    // ends.
    u64* packets;
    // Packets of a generation.
    u64 slot;
    // T + rows of the PE with most + T.
    i32 field_rows;
    // In each band of this PE.
    i32 leaves;
    // Of the PE above.
    i32 above_rows;
    i32 padding;
};
static_assert(sizeof(deep_halo_run<float>) == 488, "size of deep_halo_run");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, plane) == 0, "deep_halo_run::plane");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, bands) == 80, "deep_halo_run::bands");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, above) == 84, "deep_halo_run::above");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, below) == 88, "deep_halo_run::below");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, generation) == 92, "deep_halo_run::generation");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, sweeps) == 96, "deep_halo_run::sweeps");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, decides) == 100, "deep_halo_run::decides");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, kept) == 104, "deep_halo_run::kept");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, norms) == 120, "deep_halo_run::norms");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, packets) == 456, "deep_halo_run::packets");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, slot) == 464, "deep_halo_run::slot");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, field_rows) == 472, "deep_halo_run::field_rows");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, leaves) == 476, "deep_halo_run::leaves");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, above_rows) == 480, "deep_halo_run::above_rows");
static_assert(CROSSWARP_OFFSET(deep_halo_run<float>, padding) == 484, "deep_halo_run::padding");

// A run of passes over a line in registers.
template <class F> struct alignas(8) line_run {
    // Address of point `own_start`, with 32 points of halo on each side.
    const F* before;
    F* after;
    // Symmetric; [line_sets][2 + warps][2][32]: from the PE on the left, on the right, of the warps.
    F* edges;
    // Symmetric; [line_sets][PEs][32][words of an accumulator].
    u64* slots;
    // Symmetric; one for each PE.
    u64* signals;
    u64* arrived;
    // Of the host: the sum of every sweep of this launch.
    u64* sums;
    // Of the host: sweeps made, passes.
    u64* result;
    i64 points;
    i64 own_start;
    i64 own_end;
    // Number of the first pass.
    u64 first_pass;
    // The PEs there; −1: none.
    i32 left;
    i32 right;
    // Sweeps of the launch and of a pass, at least 1.
    i32 most;
    i32 depth;
    // Sweeps before the launch.
    i32 done;
    // Base-2 logarithm of the largest sum that meets the tolerance, in units of the lowest limb.
    float log_threshold;
    i32 allows_infinity;
    // That sum, as digits like the limbs.
    u32 threshold[threshold_digits];
    u32 padding;
};
static_assert(sizeof(line_run<float>) == 400, "size of line_run");
static_assert(CROSSWARP_OFFSET(line_run<float>, before) == 0, "line_run::before");
static_assert(CROSSWARP_OFFSET(line_run<float>, after) == 8, "line_run::after");
static_assert(CROSSWARP_OFFSET(line_run<float>, edges) == 16, "line_run::edges");
static_assert(CROSSWARP_OFFSET(line_run<float>, slots) == 24, "line_run::slots");
static_assert(CROSSWARP_OFFSET(line_run<float>, signals) == 32, "line_run::signals");
static_assert(CROSSWARP_OFFSET(line_run<float>, arrived) == 40, "line_run::arrived");
static_assert(CROSSWARP_OFFSET(line_run<float>, sums) == 48, "line_run::sums");
static_assert(CROSSWARP_OFFSET(line_run<float>, result) == 56, "line_run::result");
static_assert(CROSSWARP_OFFSET(line_run<float>, points) == 64, "line_run::points");
static_assert(CROSSWARP_OFFSET(line_run<float>, own_start) == 72, "line_run::own_start");
static_assert(CROSSWARP_OFFSET(line_run<float>, own_end) == 80, "line_run::own_end");
static_assert(CROSSWARP_OFFSET(line_run<float>, first_pass) == 88, "line_run::first_pass");
static_assert(CROSSWARP_OFFSET(line_run<float>, left) == 96, "line_run::left");
static_assert(CROSSWARP_OFFSET(line_run<float>, right) == 100, "line_run::right");
static_assert(CROSSWARP_OFFSET(line_run<float>, most) == 104, "line_run::most");
static_assert(CROSSWARP_OFFSET(line_run<float>, depth) == 108, "line_run::depth");
static_assert(CROSSWARP_OFFSET(line_run<float>, done) == 112, "line_run::done");
static_assert(CROSSWARP_OFFSET(line_run<float>, log_threshold) == 116, "line_run::log_threshold");
static_assert(CROSSWARP_OFFSET(line_run<float>, allows_infinity) == 120, "line_run::allows_infinity");
static_assert(CROSSWARP_OFFSET(line_run<float>, threshold) == 124, "line_run::threshold");
static_assert(CROSSWARP_OFFSET(line_run<float>, padding) == 396, "line_run::padding");

}  // namespace crosswarp
