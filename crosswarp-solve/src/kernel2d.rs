//! One pass over a band of the 2-D grid: several sweeps while the rows are in cache.
//!
//! The band is cut into tiles of columns. Inside a tile a wavefront runs down the rows: when level 1 (the field after
//! the pass's first sweep) has reached row y, level 2 is one row behind it, level 3 two, and so on; only the last two
//! rows of each level are kept for the next step, so a tile's working set fits the second-level cache and memory is
//! read and written once per pass. Tiles overlap by the depth of the pass on both sides: those columns are computed
//! twice, never wrongly, because every level is valid one column less far.
//!
//! Every level also leaves the exact sum of its squared differences: per column of a leaf (16 rows × 128 columns of
//! global coordinates) in row order, then the 128 columns by halving, then exactly.
#![allow(unsafe_code)] // Raw row pointers: rows of one buffer are read and written at the same time.

use std::ops::Range;

use crate::field::{Field, PAD};
use crosswarp_prim::Float as _;
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES as LEAF_COLUMNS, ROWS as LEAF_ROWS};

use crate::real::Real;
use crate::simd::{Isa, Simd};

/// Most sweeps of one pass.
pub const MAX_DEPTH: usize = 32;

/// Columns of a tile; a multiple of [`LEAF_COLUMNS`] so that no leaf is cut.
const TILE: usize = 512;
/// Rows that a level advances per step. Each row of the level below is then loaded once for up to four uses.
const STEP: usize = 4;

/// Rows of a step between the two kept from the step before and the two kept for the next.
const MIDDLE: usize = STEP - 2;
/// Elements between working rows: an odd number of 16-element groups, so that rows spread over the cache sets.
const PITCH: usize = TILE + 2 * PAD + 16;

const _: () = assert!(
    PAD >= MAX_DEPTH + 16 && TILE.is_multiple_of(LEAF_COLUMNS) && LEAF_ROWS.is_multiple_of(STEP)
);

/// What a pass works on.
pub struct Band<'a, F> {
    /// Columns of the grid.
    pub nx: usize,
    /// Rows of the grid.
    pub ny: usize,
    /// The rows to advance: whole leaves, or to the grid's end.
    pub rows: Range<usize>,
    /// Whether the columns wrap around (else columns 0 and nx − 1 are fixed).
    pub wrap_x: bool,
    /// Whether the rows wrap around (else rows 0 and ny − 1 are fixed).
    pub wrap_y: bool,
    /// The field before the pass, with `depth` rows of halo where the grid goes on beyond `rows`.
    pub before: &'a Field<F>,
    /// Cells that keep their value (byte ≠ 0); rows as in `before`.
    pub fixed: Option<&'a Field<u8>>,
    /// h²·f; rows as in `before`.
    pub source: Option<&'a Field<F>>,
}

/// Buffers of a pass, kept between passes.
pub struct Workspace<F> {
    rows: Field<F>,
}

impl<F: Real> Workspace<F> {
    /// Buffers for passes of up to [`MAX_DEPTH`] sweeps.
    ///
    /// Errors: the system's, when the memory can not be mapped.
    pub fn new() -> std::io::Result<Workspace<F>> {
        let rows = 2 * MIDDLE + 1 + (MAX_DEPTH + 1) * 5;
        Ok(Workspace {
            rows: Field::new(0..1, rows * PITCH)?,
        })
    }
}

/// Advances `band` by `norms.len()` sweeps into `after` and adds each sweep's squared differences to `norms`.
///
/// Only the band's own rows of `after` are written. Panics if a needed row is not stored or `norms` is empty or
/// longer than [`MAX_DEPTH`].
pub fn pass<F: Real>(
    isa: Isa,
    band: &Band<'_, F>,
    after: &mut Field<F>,
    work: &mut Workspace<F>,
    norms: &mut [Superaccumulator<F>],
) {
    assert!(
        (1..=MAX_DEPTH).contains(&norms.len()),
        "a pass of {} sweeps",
        norms.len()
    );
    let depth = norms.len() as isize;
    let rows = band.rows.start as isize..band.rows.end as isize;
    let first = if band.wrap_y {
        rows.start - depth
    } else {
        (rows.start - depth).max(0)
    };
    let last = if band.wrap_y {
        rows.end + depth
    } else {
        (rows.end + depth).min(band.ny as isize)
    };
    // The pointers below are only made for rows first … last − 1 of these fields.
    let stored = |have: Range<isize>| have.start <= first && have.end >= last;
    assert!(stored(band.before.rows()));
    assert!(band.fixed.is_none_or(|field| stored(field.rows())));
    assert!(band.source.is_none_or(|field| stored(field.rows())));
    assert!(after.rows().start <= rows.start && after.rows().end >= rows.end);

    for x0 in (0..band.nx).step_by(TILE) {
        let tile = Tile {
            x0: x0 as isize,
            x1: (x0 + TILE).min(band.nx.next_multiple_of(16)) as isize,
        };
        // SAFETY: the vector unit was found on this processor by `Isa::available`; the rows were checked above.
        unsafe {
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => tile_avx512(band, tile, after, work, norms),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => tile_avx2(band, tile, after, work, norms),
                Isa::Plain => tile_any::<F::Plain>(band, tile, after, work, norms),
            }
        }
    }
}

/// Columns x0 … x1 − 1, multiples of 16 (the last may reach into the padding).
#[derive(Clone, Copy)]
struct Tile {
    x0: isize,
    x1: isize,
}

impl Tile {
    /// The tile's columns with a margin of `depth`, rounded up to 16, on both sides, cut at the grid's fixed columns.
    ///
    /// The outermost vectors hold a few wrong columns that no right one depends on.
    #[inline(always)]
    fn columns(self, depth: usize, wrap_x: bool, column_end: isize) -> Range<isize> {
        let margin = depth.next_multiple_of(16) as isize;
        let (start, end) = (self.x0 - margin, self.x1 + margin);
        if wrap_x {
            start..end
        } else {
            start.max(0)..end.min(column_end)
        }
    }
}

/// # Safety
/// As [`tile_any`]; the processor must have AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn tile_avx512<F: Real>(
    band: &Band<'_, F>,
    tile: Tile,
    after: &mut Field<F>,
    work: &mut Workspace<F>,
    norms: &mut [Superaccumulator<F>],
) {
    // SAFETY: passed on.
    unsafe { tile_any::<F::Avx512>(band, tile, after, work, norms) }
}

/// # Safety
/// As [`tile_any`]; the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn tile_avx2<F: Real>(
    band: &Band<'_, F>,
    tile: Tile,
    after: &mut Field<F>,
    work: &mut Workspace<F>,
    norms: &mut [Superaccumulator<F>],
) {
    // SAFETY: passed on.
    unsafe { tile_any::<F::Avx2>(band, tile, after, work, norms) }
}

/// # Safety
/// The processor must have `V`'s vector unit, and the fields the rows that [`pass`] checks.
#[inline(always)]
unsafe fn tile_any<V: Simd>(
    band: &Band<'_, V::Elem>,
    tile: Tile,
    after: &mut Field<V::Elem>,
    work: &mut Workspace<V::Elem>,
    norms: &mut [Superaccumulator<V::Elem>],
) {
    // SAFETY: passed on.
    unsafe {
        match (band.fixed.is_some(), band.source.is_some()) {
            (false, false) => wavefront::<V, false, false>(band, tile, after, work, norms),
            (true, false) => wavefront::<V, true, false>(band, tile, after, work, norms),
            (false, true) => wavefront::<V, false, true>(band, tile, after, work, norms),
            (true, true) => wavefront::<V, true, true>(band, tile, after, work, norms),
        }
    }
}

/// Rows of the level below and of this level in one step, as addresses of column 0 (often outside the buffer).
///
/// Rows of one group are [`PITCH`] apart, so that few addresses have to be held in registers.
struct Rows<F> {
    /// Rows y − 1 and y of the level below, kept from the step before.
    older: *const F,
    /// Rows y + 1 … y + STEP − 2 of the level below.
    middle: *const F,
    /// The last two rows, y + STEP − 1 and y + STEP, of the level below.
    newer: *const F,
    /// Rows y … y + STEP − 3 of this level.
    out: *mut F,
    /// The last two rows, y + STEP − 2 and y + STEP − 1, of this level.
    out_newer: *mut F,
    /// The running sum of squares of each column.
    sums: *mut F,
    /// Where the sums of a leaf that ends inside the step go.
    ended: *mut F,
    /// Row y of the mask and of the source, if any, and the distance of their rows.
    fixed: *const u8,
    fixed_pitch: isize,
    source: *const F,
    source_pitch: isize,
}

impl<F> Rows<F> {
    #[inline(always)]
    fn below(&self, j: usize) -> *const F {
        let (group, row) = match j {
            0..2 => (self.older, j),
            2..STEP => (self.middle, j - 2),
            _ => (self.newer, j - STEP),
        };
        group.wrapping_add(row * PITCH)
    }

    #[inline(always)]
    fn out(&self, j: usize) -> *mut F {
        let (group, row) = if j < STEP - 2 {
            (self.out, j)
        } else {
            (self.out_newer, j + 2 - STEP)
        };
        group.wrapping_add(row * PITCH)
    }
}

/// # Safety
/// As [`tile_any`].
#[inline(always)]
unsafe fn wavefront<V: Simd, const FIXED: bool, const SOURCE: bool>(
    band: &Band<'_, V::Elem>,
    tile: Tile,
    after: &mut Field<V::Elem>,
    work: &mut Workspace<V::Elem>,
    norms: &mut [Superaccumulator<V::Elem>],
) {
    let depth = norms.len() as isize;
    let (nx, ny) = (band.nx as isize, band.ny as isize);
    let own = band.rows.start as isize..band.rows.end as isize;
    // The rows that a level has: one less on each side than the level below, but not beyond the grid unless it wraps.
    let (grid_first, grid_last) = if band.wrap_y {
        (isize::MIN, isize::MAX)
    } else {
        (0, ny)
    };
    let first_row = |level: isize| (own.start - (depth - level)).max(grid_first);
    let last_row = |level: isize| (own.end + (depth - level)).min(grid_last);
    let column_end = (nx as usize).next_multiple_of(16) as isize;

    let buffer = work.rows.row_ptr_mut(0);
    // Column 0 of the grid in working row `row`. For all tiles but the first that is an address before the row, hence
    // wrapping arithmetic; only the columns of the tile and its margins are ever accessed.
    let working = |row: usize| {
        buffer
            .wrapping_add(row * PITCH + PAD)
            .wrapping_offset(-tile.x0)
    };
    let middle = |level: isize| working((level as usize & 1) * MIDDLE);
    let ended = working(2 * MIDDLE);
    let newer = |level: isize, step: isize| {
        working(2 * MIDDLE + 1 + level as usize * 5 + (step as usize & 1) * 2)
    };
    let sums = |level: isize| working(2 * MIDDLE + 1 + level as usize * 5 + 4);

    // Level t is t rows behind level 0 and starts a step at row `base(step, t)`.
    let base = |step: isize, level: isize| first_row(1) + step * STEP as isize - (level - 1);
    let steps = (last_row(depth) - base(0, depth) + STEP as isize - 1) / STEP as isize;
    for step in -1..steps {
        // Level 0: rows into the working buffer.
        {
            let columns = tile.columns(depth as usize, band.wrap_x, column_end);
            let rows = [(middle(0), MIDDLE, 0), (newer(0, step), 2, MIDDLE)];
            for (group, count, offset) in rows {
                for row in 0..count {
                    let y = base(step, 0) + (offset + row) as isize;
                    if y < first_row(0) || y >= last_row(0) {
                        continue;
                    }
                    let from = band.before.row_ptr(y);
                    let to = group.wrapping_add(row * PITCH);
                    let mut x = columns.start;
                    while x < columns.end {
                        // SAFETY: the columns lie inside the padded rows of both fields.
                        unsafe { V::load(from.wrapping_offset(x)).store(to.wrapping_offset(x)) };
                        x += V::LANES as isize;
                    }
                }
            }
        }
        if step < 0 {
            continue;
        }
        for level in 1..=depth {
            // The next step's rows of level 0, a part at each level.
            for row in ((level - 1) as usize..STEP).step_by(depth as usize) {
                let y = base(step + 1, 0) + row as isize;
                if y >= first_row(0) && y < last_row(0) {
                    let from = band.before.row_ptr(y);
                    let columns = tile.columns(depth as usize, band.wrap_x, column_end);
                    for x in columns.step_by(64 / size_of::<V::Elem>()) {
                        V::prefetch(from.wrapping_offset(x));
                    }
                }
            }
            let base = base(step, level);
            let end = base + STEP as isize;
            let (first, last) = (first_row(level), last_row(level));
            if base >= last || end <= first {
                continue;
            }
            let columns = tile.columns((depth - level) as usize, band.wrap_x, column_end);
            let clamp = |y: isize| y.clamp(first_row(0), last_row(0) - 1);
            let rows = Rows {
                older: newer(level - 1, step - 1),
                middle: middle(level - 1),
                newer: newer(level - 1, step),
                out: middle(level),
                out_newer: newer(level, step),
                sums: sums(level),
                ended,
                fixed: if FIXED {
                    band.fixed
                        .map_or(std::ptr::null(), |field| field.row_ptr(clamp(base)))
                } else {
                    std::ptr::null()
                },
                fixed_pitch: if FIXED {
                    band.fixed.map_or(0, |field| field.stride() as isize)
                } else {
                    0
                },
                source: if SOURCE {
                    band.source
                        .map_or(std::ptr::null(), |field| field.row_ptr(clamp(base)))
                } else {
                    std::ptr::null()
                },
                source_pitch: if SOURCE {
                    band.source.map_or(0, |field| field.stride() as isize)
                } else {
                    0
                },
            };

            let norm = &mut norms[level as usize - 1];
            let hold_columns = |row: *mut V::Elem, y: isize| {
                if !band.wrap_x {
                    let kept = band.before.row_ptr(y);
                    for x in [0, nx - 1] {
                        if columns.contains(&x) {
                            // SAFETY: column x of row y is stored in `before`, and in the working row as x is one of
                            // the level's columns.
                            unsafe { *row.wrapping_offset(x) = *kept.offset(x) };
                        }
                    }
                }
            };
            // Not at a ghost row: the leaf has ended at the last inner row then.
            let leaf_ends = |y: isize| {
                let last_of_leaf = y % LEAF_ROWS as isize == LEAF_ROWS as isize - 1;
                own.contains(&y) && y <= ny - 2 && (last_of_leaf || y == ny - 2)
            };

            // Rows 0, 1 and ny − 1 are special: fixed or ghost rows, and the first of a leaf.
            let inner = (base >= 2 && end < ny) || end <= 0 || base >= ny;
            if base >= first && end <= last && inner {
                let phase = base.rem_euclid(LEAF_ROWS as isize) as usize;
                // SAFETY: the rows are distinct buffers that cover the level's columns and one column more on
                // both sides.
                unsafe {
                    match phase {
                        0 => advance::<V, 0, FIXED, SOURCE>(&rows, &columns),
                        13 => advance::<V, 3, FIXED, SOURCE>(&rows, &columns),
                        14 => advance::<V, 2, FIXED, SOURCE>(&rows, &columns),
                        15 => advance::<V, 1, FIXED, SOURCE>(&rows, &columns),
                        _ => advance::<V, STEP, FIXED, SOURCE>(&rows, &columns),
                    }
                }
                for j in 0..STEP {
                    hold_columns(rows.out(j), base + j as isize);
                }
                if phase > LEAF_ROWS - STEP && leaf_ends(base + (LEAF_ROWS - phase) as isize - 1) {
                    // SAFETY: the sums cover the tile's columns.
                    unsafe { add_leaves::<V>(ended, tile, nx, norm) };
                }
                if leaf_ends(end - 1) {
                    // SAFETY: as above.
                    unsafe { add_leaves::<V>(rows.sums, tile, nx, norm) };
                }
            } else {
                for j in 0..STEP {
                    let y = base + j as isize;
                    if y < first || y >= last {
                        continue;
                    }
                    if !band.wrap_y && (y == 0 || y == ny - 1) {
                        let count = (columns.end - columns.start) as usize;
                        // SAFETY: both rows cover the level's columns, and they are different buffers.
                        unsafe {
                            let from = band.before.row_ptr(y).offset(columns.start);
                            from.copy_to_nonoverlapping(
                                rows.out(j).wrapping_offset(columns.start),
                                count,
                            );
                        }
                        continue;
                    }
                    let fresh = y % LEAF_ROWS as isize == 0 || y == 1;
                    let fixed = if FIXED {
                        band.fixed
                            .map_or(std::ptr::null(), |field| field.row_ptr(y))
                    } else {
                        std::ptr::null()
                    };
                    let source = if SOURCE {
                        band.source
                            .map_or(std::ptr::null(), |field| field.row_ptr(y))
                    } else {
                        std::ptr::null()
                    };
                    // SAFETY: as above.
                    unsafe {
                        advance_one::<V, FIXED, SOURCE>(&rows, j, fixed, source, fresh, &columns)
                    };
                    hold_columns(rows.out(j), y);
                    if leaf_ends(y) {
                        // SAFETY: as above.
                        unsafe { add_leaves::<V>(rows.sums, tile, nx, norm) };
                    }
                }
            }
            if level == depth {
                for j in 0..STEP {
                    let y = base + j as isize;
                    if own.contains(&y) {
                        let to = after.row_ptr_mut(y);
                        let from = rows.out(j);
                        let mut x = columns.start;
                        while x < columns.end {
                            // SAFETY: the columns lie inside the padded rows of both fields.
                            unsafe {
                                V::load(from.wrapping_offset(x)).stream(to.wrapping_offset(x))
                            };
                            x += V::LANES as isize;
                        }
                    }
                }
            }
        }
    }
}

/// Advances the rows y … y + STEP − 1 by one sweep.
///
/// `SPLIT`: the row that begins a new leaf (0: the sums start afresh; `STEP`: none does).
///
/// # Safety
/// The processor must have `V`'s vector unit; every row must cover `columns` (multiples of 16 of them), the rows below
/// one column more on the left and a vector more on the right; no `out` row may overlap a row that is read.
#[inline(always)]
unsafe fn advance<V: Simd, const SPLIT: usize, const FIXED: bool, const SOURCE: bool>(
    rows: &Rows<V::Elem>,
    columns: &Range<isize>,
) {
    let mut x = columns.start;
    // SAFETY: the contract above; x runs over `columns` in whole vectors since LANES divides 16.
    unsafe {
        let quarter = V::splat(V::Elem::from_f64(0.25));
        let nothing = V::splat(V::Elem::NEG_ZERO);
        let mut before = [nothing; STEP];
        let mut here = [nothing; STEP];
        if V::SHIFTS {
            for j in 0..STEP {
                before[j] = V::load(rows.below(j + 1).wrapping_offset(x - V::LANES as isize));
                here[j] = V::load(rows.below(j + 1).wrapping_offset(x));
            }
        }
        while x < columns.end {
            let mut up = V::load(rows.below(0).wrapping_offset(x));
            let mut centre = V::load(rows.below(1).wrapping_offset(x));
            let mut sum = if SPLIT == 0 {
                nothing
            } else {
                V::load(rows.sums.wrapping_offset(x))
            };
            for j in 0..STEP {
                if j == SPLIT && j > 0 {
                    sum.store(rows.ended.wrapping_offset(x));
                    sum = nothing;
                }
                let row = rows.below(j + 1);
                let (left, right, down);
                if V::SHIFTS {
                    let next = V::load(row.wrapping_offset(x + V::LANES as isize));
                    left = V::shift_in_left(before[j], here[j]);
                    right = V::shift_in_right(here[j], next);
                    down = if j + 1 < STEP {
                        here[j + 1]
                    } else {
                        V::load(rows.below(j + 2).wrapping_offset(x))
                    };
                    before[j] = here[j];
                    here[j] = next;
                } else {
                    left = V::load(row.wrapping_offset(x - 1));
                    right = V::load(row.wrapping_offset(x + 1));
                    down = V::load(rows.below(j + 2).wrapping_offset(x));
                }
                let mut total = right.add(left).add(down).add(up);
                if SOURCE {
                    total = total.sub(V::load(
                        rows.source
                            .wrapping_offset(x + j as isize * rows.source_pitch),
                    ));
                }
                let mut new = quarter.mul(total);
                if FIXED {
                    new = V::hold(
                        rows.fixed
                            .wrapping_offset(x + j as isize * rows.fixed_pitch),
                        centre,
                        new,
                    );
                }
                new.store(rows.out(j).wrapping_offset(x));
                let difference = new.sub(centre);
                sum = sum.add(difference.mul(difference));
                up = centre;
                centre = down;
            }
            sum.store(rows.sums.wrapping_offset(x));
            x += V::LANES as isize;
        }
    }
}

/// Advances row y + `j` alone; `fresh`: it begins a leaf.
///
/// # Safety
/// As [`advance`].
#[inline(always)]
unsafe fn advance_one<V: Simd, const FIXED: bool, const SOURCE: bool>(
    rows: &Rows<V::Elem>,
    j: usize,
    fixed: *const u8,
    source: *const V::Elem,
    fresh: bool,
    columns: &Range<isize>,
) {
    let (above, row, under, out) = (
        rows.below(j),
        rows.below(j + 1),
        rows.below(j + 2),
        rows.out(j),
    );
    let mut x = columns.start;
    // SAFETY: as in `advance`.
    unsafe {
        let quarter = V::splat(V::Elem::from_f64(0.25));
        let nothing = V::splat(V::Elem::NEG_ZERO);
        while x < columns.end {
            let centre = V::load(row.wrapping_offset(x));
            let right = V::load(row.wrapping_offset(x + 1));
            let left = V::load(row.wrapping_offset(x - 1));
            let down = V::load(under.wrapping_offset(x));
            let up = V::load(above.wrapping_offset(x));
            let mut total = right.add(left).add(down).add(up);
            if SOURCE {
                total = total.sub(V::load(source.wrapping_offset(x)));
            }
            let mut new = quarter.mul(total);
            if FIXED {
                new = V::hold(fixed.wrapping_offset(x), centre, new);
            }
            new.store(out.wrapping_offset(x));
            let difference = new.sub(centre);
            let sum = if fresh {
                nothing
            } else {
                V::load(rows.sums.wrapping_offset(x))
            };
            sum.add(difference.mul(difference))
                .store(rows.sums.wrapping_offset(x));
            x += V::LANES as isize;
        }
    }
}

/// Adds the leaves of the tile whose column sums are `sums` to `norm`; fixed and ghost columns add nothing.
///
/// # Safety
/// The processor must have `V`'s vector unit; `sums` must cover the tile's columns rounded up to whole leaves.
#[inline(always)]
unsafe fn add_leaves<V: Simd>(
    sums: *mut V::Elem,
    tile: Tile,
    nx: isize,
    norm: &mut Superaccumulator<V::Elem>,
) {
    let mut x = tile.x0;
    while x < tile.x1 {
        let leaf = sums.wrapping_offset(x);
        // SAFETY: the contract above.
        unsafe {
            if x == 0 {
                *leaf = V::Elem::ZERO;
            }
            for outside in (nx - 1).max(x)..x + LEAF_COLUMNS as isize {
                *sums.wrapping_offset(outside) = V::Elem::ZERO;
            }
            let mut half = LEAF_COLUMNS / 2;
            while half >= 16 {
                for lane in (0..half).step_by(V::LANES) {
                    V::load(leaf.add(lane))
                        .add(V::load(leaf.add(lane + half)))
                        .store(leaf.add(lane));
                }
                half /= 2;
            }
            let mut lanes = leaf.cast::<[V::Elem; 16]>().read_unaligned();
            while half >= 1 {
                for lane in 0..half {
                    lanes[lane] = lanes[lane] + lanes[lane + half];
                }
                half /= 2;
            }
            norm.add(lanes[0]);
        }
        x += LEAF_COLUMNS as isize;
    }
}
