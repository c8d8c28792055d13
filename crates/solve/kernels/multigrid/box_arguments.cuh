// What the kernels of multigrid in boxes are launched with.
// Made from src/gpu/box_arguments.rs, which is to be changed instead.
#pragma once
#include "multigrid/arguments.cuh"

namespace crosswarp {

// Columns of a block's tile: a warp has them.
constexpr int box_tile_x = 32;
// Rows of a thread, an even number.
constexpr int box_thread_rows = 4;
// Most relaxations of a launch.
constexpr int box_most_steps = 2;
// Planes of the residual that are kept: three for the next level's right side, and the one that is made meanwhile.
constexpr int box_residual_planes = 4;
// Numbers of each column that a block keeps.
constexpr int box_column_numbers = 8;
// The same where a lane has two columns.
constexpr int box_pair_numbers = 8;
// Threads of a block of other kernels.
constexpr int box_threads = 128;
// Coarse columns of a warp that restricts right sides,
constexpr int box_restricting_columns = 31;
// and coarse rows of a thread.
constexpr int box_restricting_rows = 4;
// Most points of the coarsest level that a lane solves for.
constexpr int box_coarsest_of_lane = 4;
// Half of the points around a point,
constexpr int box_steps = 13;
// and of those along axes, which alone are coupled to it on the finest level.
constexpr int box_steps_along_axes = 3;
// Weights of the points between coarse ones.
constexpr int box_point_weights = 26;

// Couplings of a level that differ from point to point, in planes as those of fields.
struct alignas(8) box_points {
    // To the points a step away: on the finest level those along axes only.
    const double* parts[box_steps];
    const double* excess;
    // 1 / the diagonal; 0 where there is no equation.
    const double* inverse;
    // Of points between those of the next level, in its planes.
    const double* weights[box_point_weights];
};
static_assert(sizeof(box_points) == 328, "size of box_points");
static_assert(CROSSWARP_OFFSET(box_points, parts) == 0, "box_points::parts");
static_assert(CROSSWARP_OFFSET(box_points, excess) == 104, "box_points::excess");
static_assert(CROSSWARP_OFFSET(box_points, inverse) == 112, "box_points::inverse");
static_assert(CROSSWARP_OFFSET(box_points, weights) == 120, "box_points::weights");

// A pass over a level of a box, or another kernel's work on it. Planes of fields have `plane` elements, of which each
// row has one more before its first point and one behind its last; addresses are those of plane 0, which need not be
// stored where a PE has some planes only.
struct alignas(8) box_pass {
    // The field before; unused where a pass begins with zero or the correction alone.
    const double* before;
    // The field after, another array; null if nothing is relaxed.
    double* after;
    const double* right_side;
    // The next level's field.
    const double* correction;
    // The next level's right side; null if the residual is not wanted.
    double* coarse_right_side;
    // Gets sums of squares over the rows of each leaf, by columns, from the first of the planes that this PE computes.
    double* sums;
    // Along x, y and z: couplings to the points before, then to those after, excess, mass, and 1 where there is an
    // equation, else 0.
    const double* lines[3];
    // The weights of the next level's points in what lies behind them, then in what lies before the next.
    const double* weights[3];
    // Which row of 1 / the diagonal that of a row of points is, by z and y; then these rows.
    const u32* inverse_of;
    const double* inverses;
    i64 plane;
    i64 coarse_plane;
    i64 sum_pitch;
    // ω of each step.
    double omega[box_most_steps];
    // What the field is multiplied by before it is squared.
    double diagonal;
    // Of the coarsest level: its factor L, by rows, above the diagonal Lᵀ, and whether points have an equation.
    const double* factor;
    const u8* active;
    i32 size[3];
    i32 coarse_size[3];
    // Whether the axes wrap around.
    i32 wraps[3];
    i32 start;
    // The step before which the residual is measured; −1: it is not.
    i32 measured;
    // Planes of a block.
    i32 planes;
    // The planes that this PE computes; arrays have these and some more.
    i32 plane_start;
    i32 plane_end;
    // The coarse planes that this PE computes.
    i32 coarse_start;
    i32 coarse_end;
    // Columns, rows and planes of which all couplings are the same, with others on both sides: where they begin and end.
    i32 calm[6];
    // What of a row of these does not depend on the column: across, to the row before, behind, the plane before, behind,
    // excess.
    double calm_row[6];
    // Along each axis, the weights of the coarse points before and behind one of these that lies between two.
    double calm_weights[6];
    // The coupling of all these to all neighbours, if all factors are powers of two; else 0.
    double even_coupling;
    // 1 / the diagonal of all these.
    double calm_inverse;
    // Null: the operator is one of lines.
    const box_points* points;
    // The colour that the first relaxation changes, or `no_colour`; colours take turns. A pass without relaxations: that of
    // the next one, if the equations of the other colour hold. Kernels of operators of points: the colour that is relaxed,
    // or whose equations hold.
    i64 colour;
};
static_assert(sizeof(box_pass) == 392, "size of box_pass");
static_assert(CROSSWARP_OFFSET(box_pass, before) == 0, "box_pass::before");
static_assert(CROSSWARP_OFFSET(box_pass, after) == 8, "box_pass::after");
static_assert(CROSSWARP_OFFSET(box_pass, right_side) == 16, "box_pass::right_side");
static_assert(CROSSWARP_OFFSET(box_pass, correction) == 24, "box_pass::correction");
static_assert(CROSSWARP_OFFSET(box_pass, coarse_right_side) == 32, "box_pass::coarse_right_side");
static_assert(CROSSWARP_OFFSET(box_pass, sums) == 40, "box_pass::sums");
static_assert(CROSSWARP_OFFSET(box_pass, lines) == 48, "box_pass::lines");
static_assert(CROSSWARP_OFFSET(box_pass, weights) == 72, "box_pass::weights");
static_assert(CROSSWARP_OFFSET(box_pass, inverse_of) == 96, "box_pass::inverse_of");
static_assert(CROSSWARP_OFFSET(box_pass, inverses) == 104, "box_pass::inverses");
static_assert(CROSSWARP_OFFSET(box_pass, plane) == 112, "box_pass::plane");
static_assert(CROSSWARP_OFFSET(box_pass, coarse_plane) == 120, "box_pass::coarse_plane");
static_assert(CROSSWARP_OFFSET(box_pass, sum_pitch) == 128, "box_pass::sum_pitch");
static_assert(CROSSWARP_OFFSET(box_pass, omega) == 136, "box_pass::omega");
static_assert(CROSSWARP_OFFSET(box_pass, diagonal) == 152, "box_pass::diagonal");
static_assert(CROSSWARP_OFFSET(box_pass, factor) == 160, "box_pass::factor");
static_assert(CROSSWARP_OFFSET(box_pass, active) == 168, "box_pass::active");
static_assert(CROSSWARP_OFFSET(box_pass, size) == 176, "box_pass::size");
static_assert(CROSSWARP_OFFSET(box_pass, coarse_size) == 188, "box_pass::coarse_size");
static_assert(CROSSWARP_OFFSET(box_pass, wraps) == 200, "box_pass::wraps");
static_assert(CROSSWARP_OFFSET(box_pass, start) == 212, "box_pass::start");
static_assert(CROSSWARP_OFFSET(box_pass, measured) == 216, "box_pass::measured");
static_assert(CROSSWARP_OFFSET(box_pass, planes) == 220, "box_pass::planes");
static_assert(CROSSWARP_OFFSET(box_pass, plane_start) == 224, "box_pass::plane_start");
static_assert(CROSSWARP_OFFSET(box_pass, plane_end) == 228, "box_pass::plane_end");
static_assert(CROSSWARP_OFFSET(box_pass, coarse_start) == 232, "box_pass::coarse_start");
static_assert(CROSSWARP_OFFSET(box_pass, coarse_end) == 236, "box_pass::coarse_end");
static_assert(CROSSWARP_OFFSET(box_pass, calm) == 240, "box_pass::calm");
static_assert(CROSSWARP_OFFSET(box_pass, calm_row) == 264, "box_pass::calm_row");
static_assert(CROSSWARP_OFFSET(box_pass, calm_weights) == 312, "box_pass::calm_weights");
static_assert(CROSSWARP_OFFSET(box_pass, even_coupling) == 360, "box_pass::even_coupling");
static_assert(CROSSWARP_OFFSET(box_pass, calm_inverse) == 368, "box_pass::calm_inverse");
static_assert(CROSSWARP_OFFSET(box_pass, points) == 376, "box_pass::points");
static_assert(CROSSWARP_OFFSET(box_pass, colour) == 384, "box_pass::colour");

// Arrays of the caller's, of all points of a box, and the finest level. `F`: the type of their elements.
template <class F> struct alignas(8) box_arrays {
    // Null: there is none.
    const F* source;
    // Null: zero.
    const F* initial;
    F* field;
    // The level's field.
    double* u;
    // Null: zero.
    double* right_side;
    // Gets the largest magnitude, by its bits, and whether a value of the field is not +0; where the field is written, ones if
    // a value has no room.
    u64* words;
    // Derivatives outwards at the first and the last x, y and z,
    double slopes[6];
    // not 0 where there are such.
    i32 crossed[6];
    // What the problem is multiplied by, or when it is written what the field is.
    double scale;
    // What is taken away.
    double surplus;
    // What is summed.
    i64 weighed;
};
static_assert(sizeof(box_arrays<float>) == 144, "size of box_arrays");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, source) == 0, "box_arrays::source");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, initial) == 8, "box_arrays::initial");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, field) == 16, "box_arrays::field");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, u) == 24, "box_arrays::u");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, right_side) == 32, "box_arrays::right_side");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, words) == 40, "box_arrays::words");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, slopes) == 48, "box_arrays::slopes");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, crossed) == 96, "box_arrays::crossed");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, scale) == 120, "box_arrays::scale");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, surplus) == 128, "box_arrays::surplus");
static_assert(CROSSWARP_OFFSET(box_arrays<float>, weighed) == 136, "box_arrays::weighed");

}  // namespace crosswarp
