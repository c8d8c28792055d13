//! Which columns of a row passes go through.
//!
//! Where a mask fixes most cells, as where voids of a raster are filled, there are equations in a few places only. A pass leaves
//! the other columns out: a fixed cell keeps its value, and its residual and its correction are 0. All columns that a point with
//! an equation is coupled to, in its row and in those beside it, are in the blocks of these rows. What a pass keeps of other
//! columns is old, and read at most by points without an equation, which make nothing of it if it is finite.

use std::ops::Range;

use super::shape::Axis;

/// Columns are taken or left out by so many.
pub(super) const BLOCK: usize = 32;

/// A row is gone through by blocks if one of so many is taken, at most: else it is faster to compute all columns at once.
const SPARSE: usize = 2;

/// See [`Blocks::ahead`]: points of a level.
const ASKED_FOR_ABOVE: usize = 1 << 18;

/// The columns of each row of a level that passes go through.
pub(crate) struct Blocks {
    first: isize,
    /// Where in `starts` those of each row begin, and the end; none: all rows have all columns.
    rows: Option<Vec<u32>>,
    starts: Vec<u32>,
    nx: usize,
}

/// Those of a row, in order.
#[derive(Clone, Copy)]
pub(crate) struct RowBlocks<'a> {
    /// The first columns of blocks of [`BLOCK`] columns.
    pub whole: &'a [u32],
    /// From this column on all of the row: from the first on, where no column is left out; a shorter block at its end, or none,
    /// where some are.
    pub rest: usize,
    pub nx: usize,
}

impl RowBlocks<'_> {
    /// All columns.
    pub fn all(nx: usize) -> Self {
        RowBlocks {
            whole: &[],
            rest: 0,
            nx,
        }
    }

    /// Whether no column is left out.
    #[inline(always)]
    pub fn are_all(self) -> bool {
        self.rest == 0
    }

    /// The columns of each.
    pub fn ranges(self) -> impl Iterator<Item = Range<usize>> {
        let whole = self.whole.iter().map(|&start| start as usize);
        let whole = whole.map(|start| start..start + BLOCK);
        whole.chain((self.rest < self.nx).then_some(self.rest..self.nx))
    }

    /// Whether the first and the last column of the row are among them.
    #[inline(always)]
    pub fn has_ends(self) -> [bool; 2] {
        let ends_row = |&last: &u32| last as usize + BLOCK == self.nx;
        [
            self.whole.first() == Some(&0) || self.rest == 0,
            self.rest < self.nx || self.whole.last().is_some_and(ends_row),
        ]
    }
}

/// Makes `$part` of all columns of `$blocks`, `$len` of them from `$start` on at a time: but for a rest as many as the compiler
/// knows.
macro_rules! in_blocks {
    ($blocks:expr, |$start:ident, $len:ident| $part:expr) => {
        let blocks: RowBlocks<'_> = $blocks;
        for &start in blocks.whole {
            let ($start, $len) = (start as usize, BLOCK);
            $part;
        }
        if blocks.rest < blocks.nx {
            let ($start, $len) = (blocks.rest, blocks.nx - blocks.rest);
            $part;
        }
    };
}
pub(super) use in_blocks;

impl Blocks {
    /// All columns of all rows, of a level of `nx` columns.
    pub fn all(nx: usize) -> Blocks {
        Blocks {
            first: 0,
            rows: None,
            starts: Vec::new(),
            nx,
        }
    }

    /// Of the rows `rows` of a level with the columns `x`: where points are that have equations, and beside them.
    /// `any`: whether there are some in these columns of a row.
    pub fn around(
        rows: Range<isize>,
        x: Axis,
        mut any: impl FnMut(isize, Range<usize>) -> bool,
    ) -> Blocks {
        #[cfg(test)]
        if tests::ALL.get() {
            return Blocks::all(x.len);
        }
        let (n, last) = (x.len, x.len.div_ceil(BLOCK) - 1);
        let mut around = |y: isize, out: &mut Vec<bool>| {
            out.clear();
            out.extend((0..=last).map(|block| {
                let (start, end) = (block * BLOCK, (block + 1) * BLOCK);
                rows.contains(&y)
                    && (any(y, start.saturating_sub(1)..(end + 1).min(n))
                        || (x.wraps && block == 0 && any(y, n - 1..n))
                        || (x.wraps && block == last && any(y, 0..1)))
            }));
        };
        let [mut above, mut here, mut below] = [const { Vec::new() }; 3];
        around(rows.start - 1, &mut above);
        around(rows.start, &mut here);
        let (mut ends, mut starts) = (Vec::from([0]), Vec::new());
        for y in rows.clone() {
            around(y + 1, &mut below);
            let blocks = above.iter().zip(&here).zip(&below);
            for (block, ((&above, &here), &below)) in blocks.enumerate() {
                if above | here | below {
                    starts.push((block * BLOCK) as u32);
                }
            }
            ends.push(starts.len() as u32);
            (above, here, below) = (here, below, above);
        }
        Blocks {
            first: rows.start,
            rows: Some(ends),
            starts,
            nx: n,
        }
    }

    /// Those of row `y`.
    #[inline(always)]
    pub fn of(&self, y: isize) -> RowBlocks<'_> {
        let nx = self.nx;
        let Some(rows) = &self.rows else {
            return RowBlocks::all(nx);
        };
        let row = (y - self.first) as usize;
        let starts = &self.starts[rows[row] as usize..rows[row + 1] as usize];
        if starts.len() * SPARSE > nx.div_ceil(BLOCK) {
            return RowBlocks::all(nx);
        }
        let (whole, rest) = match starts.split_last() {
            Some((&last, whole)) if last as usize + BLOCK > nx => (whole, last as usize),
            _ => (starts, nx),
        };
        RowBlocks { whole, rest, nx }
    }

    /// Those of row `y` that are to be asked for before they are needed: caches do not guess them. None, if it has all columns,
    /// or the level is small enough to stay in a cache.
    #[inline(always)]
    pub fn ahead(&self, y: isize) -> Option<RowBlocks<'_>> {
        let rows = self.rows.as_ref()?.len() - 1;
        let is_large = self.nx * rows > ASKED_FOR_ABOVE;
        is_large.then(|| self.of(y)).filter(|of| !of.are_all())
    }

    /// Copies the blocks of row `y`; rows with a column more on both sides, which are copied, too.
    #[inline(always)]
    pub fn copy<T: Copy>(&self, y: isize, from: &[T], to: &mut [T]) {
        in_blocks!(self.of(y), |start, n| {
            to[start + 1..start + 1 + n].copy_from_slice(&from[start + 1..start + 1 + n]);
        });
        for end in [0, self.nx + 1] {
            to[end] = from[end];
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use crosswarp_shmem::spmd;

    use super::super::wavefront::Kept;
    use super::*;
    use crate::element::Real;
    use crate::{Boundary, Cycles, Method, Options, Problem2d, RowSource, solve_2d};

    thread_local! {
        /// Whether no column is left out.
        pub(super) static ALL: Cell<bool> = const { Cell::new(false) };
    }

    /// With anything in what passes keep.
    pub fn left_by_a_failed_solve<T: Real>(mut kept: Kept<T>) -> Kept<T> {
        for step in kept.steps() {
            for y in step.rows() {
                step.with_padding_mut(y, 1).fill(T::from_f64(f64::NAN));
            }
        }
        kept
    }

    #[test]
    fn what_is_beside_an_active_point_is_in_a_block() {
        for (nx, wraps) in [(1, false), (32, true), (70, false), (96, true), (333, true)] {
            let x = Axis { len: nx, wraps };
            let active = |y: isize, x: usize| (x as isize * 7 + y * 13) % 97 == 0 && y % 3 != 0;
            let rows = -3..9;
            let blocks = Blocks::around(rows.clone(), x, |y, columns| {
                columns.into_iter().any(|x| active(y, x))
            });
            for y in rows.clone() {
                let mut taken = vec![false; nx];
                for columns in blocks.of(y).ranges() {
                    taken[columns].fill(true);
                }
                for (dy, dx) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dy, dx))) {
                    for at in (0..nx).filter(|&at| rows.contains(&(y + dy)) && active(y + dy, at)) {
                        let beside = at as isize + dx;
                        if x.has(beside) {
                            let beside = beside.rem_euclid(nx as isize) as usize;
                            assert!(taken[beside], "({beside}, {y}) of {nx}, {wraps}");
                        }
                    }
                }
            }
        }
    }

    /// Voids here and there, one at a corner.
    fn voids(nx: usize) -> RowSource<u8> {
        Arc::new(move |y, row| {
            for (x, byte) in row.iter_mut().enumerate() {
                let near = |cx: usize, cy: usize, radius: usize| {
                    x.abs_diff(cx).pow(2) + y.abs_diff(cy).pow(2) <= radius * radius
                };
                let void = near(0, 0, 9)
                    || near(nx / 2, 40, 12)
                    || near(nx - 2, 70, 5)
                    || near(31, 100, 1)
                    || (y == 85 && x % 64 < 3);
                *byte = u8::from(!void);
            }
        })
    }

    #[test]
    fn columns_that_are_left_out_change_nothing() {
        let nx = 333;
        let masked = Problem2d {
            fixed: Some(voids(nx)),
            initial: Some(Arc::new(|y, row: &mut [f64]| {
                for (x, value) in row.iter_mut().enumerate() {
                    *value = ((x * 31 + y * 17) % 101) as f64 - 50.0;
                }
            })),
            ..Problem2d::laplace(nx, 130)
        };
        let problems = [
            ("fixed sides", masked.clone()),
            (
                "mirrors and a right side",
                Problem2d {
                    left: Boundary::Neumann(vec![0.0; 130]),
                    bottom: Boundary::Neumann(vec![1.0; nx]),
                    source: Some(Arc::new(|y, row: &mut [f64]| row.fill((y % 5) as f64))),
                    ..masked.clone()
                },
            ),
            (
                "a ring with a coefficient",
                Problem2d {
                    left: Boundary::Periodic,
                    right: Boundary::Periodic,
                    coefficient: Some(Arc::new(|y, row: &mut [f64]| {
                        row.fill(1.0 + (y % 4) as f64);
                    })),
                    ..masked
                },
            ),
        ];
        for (name, problem) in &problems {
            for method in [Method::Multigrid, Method::ConjugateGradients] {
                for (pes, [pre, post]) in [(1, [2, 2]), (3, [2, 2]), (1, [1, 1])] {
                    let cycles = Cycles {
                        pre,
                        post,
                        ..Cycles::default()
                    };
                    let options = Options {
                        method: method(cycles),
                        ..Options::new(1e-8, 12)
                    };
                    let solve = |all: bool| {
                        let solved = spmd(pes, |pe| {
                            ALL.set(all);
                            let solved = solve_2d(pe, problem, &options, |_| {}).expect("solves");
                            let history = solved.history.clone();
                            (history, solved.gather_all(pe).expect("a field"))
                        });
                        solved.expect("a world")
                    };
                    assert!(
                        solve(false) == solve(true),
                        "{name}, {pes} PEs, {pre}, {post}"
                    );
                }
            }
        }
    }
}
