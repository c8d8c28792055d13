//! One pass over a band of the 2-D grid: several sweeps while the rows are in cache.
//!
//! The band is cut into tiles of columns. Inside a tile a wavefront runs down the rows: when level 1 (the field after
//! the pass's first sweep) has reached row y, level 2 is one row behind it, level 3 two, and so on; only the last two
//! rows of each level are kept for the next step, so a tile's working set fits the second-level cache and memory is
//! read and written once per pass. ColumnTiles overlap by the depth of the pass on both sides: those columns are
//! computed twice, never wrongly, because every level is valid one column less far.
//!
//! Every level also leaves the exact sum of its squared differences: per column of a leaf (16 rows × 128 columns of
//! global coordinates) in row order, then the 128 columns by halving, then exactly.
#![allow(unsafe_code)] // Raw row pointers: rows of one buffer are read and written at the same time.

use std::ops::Range;

use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use crate::element::Real;
use crate::element::simd::{self, Isa, Simd, Unit};
use crate::engine::cpu::MAX_DEPTH;
use crate::engine::cpu::plane_rows::{
    ColumnTile, Givens, Group, MIDDLE, STEP, add_leaves, advance, advance_one, pitch, tile_columns,
};
use crate::field::storage::{Field, PAD};

/// Working rows that all levels share: two sets of middle rows, and the sums of ended leaves.
const SHARED_ROWS: usize = 2 * MIDDLE + 1;
/// Working rows of each level: the last two rows of this step and of the one before, and the sums.
const LEVEL_ROWS: usize = 5;

const _: () = assert!(PAD >= MAX_DEPTH + 16 && LEAF_ROWS.is_multiple_of(STEP));

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
        let rows = SHARED_ROWS + (MAX_DEPTH + 1) * LEVEL_ROWS;
        Ok(Workspace {
            rows: Field::new(0..1, rows * pitch::<F>())?,
        })
    }
}

/// Advances `band` by `norms.len()` sweeps into `after` and adds each sweep's squared differences to `norms`.
///
/// Only the band's own rows of `after` are written. Panics if a needed row is not stored, the band is empty, or `norms`
/// is empty or longer than [`MAX_DEPTH`].
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
    // The pointers below are only made for rows first … last − 1, and columns up to nx plus padding, of these fields.
    assert!(!rows.is_empty() && band.nx >= 3);
    assert!(band.before.covers(&(first..last), band.nx));
    assert!(
        band.fixed
            .is_none_or(|field| field.covers(&(first..last), band.nx))
    );
    assert!(
        band.source
            .is_none_or(|field| field.covers(&(first..last), band.nx))
    );
    assert!(after.covers(&rows, band.nx));

    for x0 in (0..band.nx).step_by(tile_columns::<F>()) {
        let tile = ColumnTile {
            x0: x0 as isize,
            x1: (x0 + tile_columns::<F>()).min(band.nx.next_multiple_of(16)) as isize,
        };
        // SAFETY: the vector unit was found on this processor by `Isa::available`; the rows were checked above.
        unsafe {
            match isa.unit() {
                #[cfg(target_arch = "x86_64")]
                Unit::Avx512 => tile_avx512(band, tile, after, work, norms),
                #[cfg(target_arch = "x86_64")]
                Unit::Avx2 => tile_avx2(band, tile, after, work, norms),
                Unit::Plain => tile_any::<F::Plain>(band, tile, after, work, norms),
            }
        }
    }
    simd::drain();
}

/// # Safety
/// As [`tile_any`]; the processor must have AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn tile_avx512<F: Real>(
    band: &Band<'_, F>,
    tile: ColumnTile,
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
    tile: ColumnTile,
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
    tile: ColumnTile,
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

/// The way of the levels down one tile.
///
/// Level t is t rows behind level 0. In step s it holds the rows `base(s, t)` … `base(s, t)` + STEP − 1.
struct Wavefront<'a, F> {
    band: &'a Band<'a, F>,
    tile: ColumnTile,
    depth: isize,
    /// Rows of the grid that exist, or all if it wraps around.
    grid: Range<isize>,
    /// The band's own rows.
    own: Range<isize>,
    /// The working rows.
    buffer: *mut F,
}

impl<F: Real> Wavefront<'_, F> {
    /// The rows that `level` has to have: one less on each side than the level below, but none beyond the grid.
    #[inline(always)]
    fn rows(&self, level: isize) -> Range<isize> {
        let margin = self.depth - level;
        (self.own.start - margin).max(self.grid.start)..(self.own.end + margin).min(self.grid.end)
    }

    #[inline(always)]
    fn base(&self, step: isize, level: isize) -> isize {
        self.rows(1).start + step * STEP as isize - (level - 1)
    }

    /// The columns of `level`.
    #[inline(always)]
    fn columns(&self, level: isize) -> Range<isize> {
        let band = self.band;
        self.tile
            .columns((self.depth - level) as usize, band.wrap_x, band.nx)
    }

    /// Column 0 of the grid in working row `row`.
    ///
    /// For all tiles but the first that is an address before the row, hence wrapping arithmetic; only the columns of
    /// the tile and its margins are ever accessed.
    #[inline(always)]
    fn working(&self, row: usize) -> *mut F {
        self.buffer
            .wrapping_add(row * pitch::<F>() + PAD)
            .wrapping_offset(-self.tile.x0)
    }

    /// The first rows of a step of `level`, which only the next level needs, and that at once: two sets in turn.
    #[inline(always)]
    fn middle(&self, level: isize) -> *mut F {
        self.working((level as usize & 1) * MIDDLE)
    }

    /// The last two rows of a step of `level`, which the next level needs in the next step as well.
    #[inline(always)]
    fn newer(&self, level: isize, step: isize) -> *mut F {
        self.working(SHARED_ROWS + level as usize * LEVEL_ROWS + (step as usize & 1) * 2)
    }

    /// The sums of squares of `level`.
    #[inline(always)]
    fn sums(&self, level: isize) -> *mut F {
        self.working(SHARED_ROWS + level as usize * LEVEL_ROWS + 4)
    }

    /// The rows of `level` in `step`, and of the level below.
    #[inline(always)]
    fn group(&self, level: isize, step: isize) -> Group<F> {
        Group {
            older: self.newer(level - 1, step - 1),
            middle: self.middle(level - 1),
            newer: self.newer(level - 1, step),
            out: self.middle(level),
            out_newer: self.newer(level, step),
            sums: self.sums(level),
            ended: self.working(SHARED_ROWS - 1),
        }
    }

    /// Mask and source from row `y` on.
    #[inline(always)]
    fn givens<const FIXED: bool, const SOURCE: bool>(&self, y: isize) -> Givens<F> {
        let fixed = self.band.fixed.filter(|_| FIXED);
        let source = self.band.source.filter(|_| SOURCE);
        Givens {
            fixed: fixed.map_or(std::ptr::null(), |field| field.row_ptr(y)),
            fixed_pitch: fixed.map_or(0, |field| field.stride() as isize),
            source: source.map_or(std::ptr::null(), |field| field.row_ptr(y)),
            source_pitch: source.map_or(0, |field| field.stride() as isize),
        }
    }

    /// Copies the rows of level 0 of a step from the field into the working rows.
    ///
    /// # Safety
    /// As [`tile_any`].
    #[inline(always)]
    unsafe fn enter<V: Simd<Elem = F>>(&self, step: isize) {
        let columns = self.columns(0);
        let group = Group {
            out: self.middle(0),
            out_newer: self.newer(0, step),
            ..self.group(1, step)
        };
        for j in 0..STEP {
            let y = self.base(step, 0) + j as isize;
            if self.rows(0).contains(&y) {
                let (from, to) = (self.band.before.row_ptr(y), group.out(j));
                for x in columns.clone().step_by(V::LANES) {
                    // SAFETY: the columns, multiples of 16 of them, lie inside the padded rows of both fields.
                    unsafe { V::load(from.wrapping_offset(x)).store(to.wrapping_offset(x)) };
                }
            }
        }
    }

    /// Asks for those rows of level 0 of the next step whose turn is at `level`, so that memory is busy all the time.
    #[inline(always)]
    fn prefetch<V: Simd<Elem = F>>(&self, step: isize, level: isize) {
        for j in ((level - 1) as usize..STEP).step_by(self.depth as usize) {
            let y = self.base(step + 1, 0) + j as isize;
            if self.rows(0).contains(&y) {
                let from = self.band.before.row_ptr(y);
                for x in self.columns(0).step_by(64 / size_of::<F>()) {
                    V::prefetch(from.wrapping_offset(x));
                }
            }
        }
    }

    /// Puts the fixed columns of row `y` back where vectors have run over them.
    ///
    /// # Safety
    /// `row` must cover `columns`.
    #[inline(always)]
    unsafe fn hold_columns(&self, row: *mut F, y: isize, columns: &Range<isize>) {
        if !self.band.wrap_x {
            let kept = self.band.before.row_ptr(y);
            for x in [0, self.band.nx as isize - 1] {
                if columns.contains(&x) {
                    // SAFETY: column x of row y is stored, and x is one of the columns of `row`.
                    unsafe { *row.wrapping_offset(x) = *kept.offset(x) };
                }
            }
        }
    }

    /// Whether a leaf of the band ends with row `y`. Not at a ghost row: it has ended at the last inner row then.
    #[inline(always)]
    fn leaf_ends(&self, y: isize) -> bool {
        let last = self.band.ny as isize - 2;
        self.own.contains(&y)
            && y <= last
            && (y % LEAF_ROWS as isize == LEAF_ROWS as isize - 1 || y == last)
    }

    /// Advances `level` in `step`, where it has STEP inner rows.
    ///
    /// # Safety
    /// As [`tile_any`].
    #[inline(always)]
    unsafe fn advance_group<V: Simd<Elem = F>, const FIXED: bool, const SOURCE: bool>(
        &self,
        level: isize,
        step: isize,
        norm: &mut Superaccumulator<F>,
    ) {
        let (group, columns) = (self.group(level, step), self.columns(level));
        let (base, nx) = (self.base(step, level), self.band.nx as isize);
        let givens = self.givens::<FIXED, SOURCE>(base);
        let phase = base.rem_euclid(LEAF_ROWS as isize) as usize;
        // SAFETY: the rows are distinct buffers that cover the level's columns and a vector more on both sides; the
        // sums cover the tile.
        unsafe {
            match phase {
                0 => advance::<V, 0, FIXED, SOURCE>(&group, &givens, &columns),
                13 => advance::<V, 3, FIXED, SOURCE>(&group, &givens, &columns),
                14 => advance::<V, 2, FIXED, SOURCE>(&group, &givens, &columns),
                15 => advance::<V, 1, FIXED, SOURCE>(&group, &givens, &columns),
                _ => advance::<V, STEP, FIXED, SOURCE>(&group, &givens, &columns),
            }
            for j in 0..STEP {
                self.hold_columns(group.out(j), base + j as isize, &columns);
            }
            if phase > LEAF_ROWS - STEP && self.leaf_ends(base + (LEAF_ROWS - phase) as isize - 1) {
                add_leaves::<V>(group.ended, self.tile, nx, norm);
            }
            if self.leaf_ends(base + STEP as isize - 1) {
                add_leaves::<V>(group.sums, self.tile, nx, norm);
            }
        }
    }

    /// Advances row `base` + `j` of `level` in `step`: any row that the level has.
    ///
    /// # Safety
    /// As [`tile_any`].
    #[inline(always)]
    unsafe fn advance_row<V: Simd<Elem = F>, const FIXED: bool, const SOURCE: bool>(
        &self,
        level: isize,
        step: isize,
        j: usize,
        norm: &mut Superaccumulator<F>,
    ) {
        let (group, columns) = (self.group(level, step), self.columns(level));
        let y = self.base(step, level) + j as isize;
        // SAFETY: as in `advance_group`; a fixed row is copied between different buffers.
        unsafe {
            if !self.band.wrap_y && (y == 0 || y == self.band.ny as isize - 1) {
                let from = self.band.before.row_ptr(y).offset(columns.start);
                from.copy_to_nonoverlapping(
                    group.out(j).wrapping_offset(columns.start),
                    columns.len(),
                );
                return;
            }
            let begins_leaf = y % LEAF_ROWS as isize == 0 || y == 1;
            let givens = self.givens::<FIXED, SOURCE>(y);
            advance_one::<V, FIXED, SOURCE>(&group, j, &givens, begins_leaf, &columns);
            self.hold_columns(group.out(j), y, &columns);
            if self.leaf_ends(y) {
                add_leaves::<V>(group.sums, self.tile, self.band.nx as isize, norm);
            }
        }
    }

    /// Copies the rows of the last level of a step into the field.
    ///
    /// # Safety
    /// As [`tile_any`].
    #[inline(always)]
    unsafe fn leave<V: Simd<Elem = F>>(&self, step: isize, after: &mut Field<F>) {
        let group = self.group(self.depth, step);
        for j in 0..STEP {
            let y = self.base(step, self.depth) + j as isize;
            if self.own.contains(&y) {
                let (from, to) = (group.out(j), after.row_ptr_mut(y));
                for x in self.columns(self.depth).step_by(V::LANES) {
                    // SAFETY: the columns lie inside the padded rows of both fields; rows of fields begin on a
                    // multiple of 64 bytes and the columns are counted from a multiple of 16, so vectors are aligned.
                    unsafe { V::load(from.wrapping_offset(x)).stream(to.wrapping_offset(x)) };
                }
            }
        }
    }
}

/// # Safety
/// As [`tile_any`].
#[inline(always)]
unsafe fn wavefront<V: Simd, const FIXED: bool, const SOURCE: bool>(
    band: &Band<'_, V::Elem>,
    tile: ColumnTile,
    after: &mut Field<V::Elem>,
    work: &mut Workspace<V::Elem>,
    norms: &mut [Superaccumulator<V::Elem>],
) {
    let (depth, ny) = (norms.len() as isize, band.ny as isize);
    let front = Wavefront {
        band,
        tile,
        depth,
        grid: if band.wrap_y {
            isize::MIN..isize::MAX
        } else {
            0..ny
        },
        own: band.rows.start as isize..band.rows.end as isize,
        buffer: work.rows.row_ptr_mut(0),
    };
    let rows_to_go = front.rows(depth).end - front.base(0, depth);
    let steps = (rows_to_go + STEP as isize - 1) / STEP as isize;
    // SAFETY: passed on; every level's rows are computed after those they need of the level below.
    unsafe {
        front.enter::<V>(-1);
        for step in 0..steps {
            front.enter::<V>(step);
            for (level, norm) in (1..).zip(norms.iter_mut()) {
                front.prefetch::<V>(step, level);
                let base = front.base(step, level);
                let (rows, end) = (front.rows(level), base + STEP as isize);
                // Rows 0, 1 and ny − 1 are special: fixed or ghost rows, and the first of a leaf.
                let inner = (base >= 2 && end < ny) || end <= 0 || base >= ny;
                if base >= rows.start && end <= rows.end && inner {
                    front.advance_group::<V, FIXED, SOURCE>(level, step, norm);
                } else {
                    for j in (0..STEP).filter(|&j| rows.contains(&(base + j as isize))) {
                        front.advance_row::<V, FIXED, SOURCE>(level, step, j, norm);
                    }
                }
            }
            front.leave::<V>(step, after);
        }
    }
}
