//! The order in which the blocks of a pass take the rows of a band.
//!
//! Blocks begin in the order of their numbers, those at the end of the grid when others have ended. So rows that
//! neighbours wait for come first, and the blocks that begin last get shorter strips, so that all end together.

use std::ops::Range;

use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use crate::engine::cuda::temporal::strips::{KINDS, PassShape, StripCut, cut};
use crate::gpu::arguments::{STRIP_KINDS, Strips, StripsOf};

/// Above, below, and two parts between.
const SECTIONS: usize = 4;
const _: () = assert!(SECTIONS * KINDS == STRIP_KINDS);

/// A pass over rows of a band: its grid and its parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockOrder {
    strips: Strips,
    kinds: usize,
    blocks: usize,
    /// Warps, and those that count.
    warps: usize,
    counted: usize,
}

impl BlockOrder {
    const EMPTY: BlockOrder = BlockOrder {
        strips: Strips {
            of: [StripsOf::UNUSED; STRIP_KINDS],
            counted_blocks: 0,
            padding: 0,
            made: 0,
        },
        kinds: 0,
        blocks: 0,
        warps: 0,
        counted: 0,
    };

    /// `rows`, cut like this, behind what is there.
    fn push(&mut self, rows: Range<usize>, cut: &StripCut) {
        for kind in cut.strips.iter().filter(|kind| **kind != StripsOf::UNUSED) {
            self.strips.of[self.kinds] = StripsOf {
                first_block: kind.first_block + self.blocks as i32,
                start: rows.start as i32,
                end: rows.end as i32,
                ..*kind
            };
            self.kinds += 1;
            let groups = kind.across as usize * rows.len().div_ceil(kind.rows as usize);
            self.warps += groups * kind.warps as usize;
        }
        self.blocks += cut.blocks;
    }

    /// Has what is there so far counted.
    fn count(&mut self) {
        self.strips.counted_blocks = self.blocks as i32;
        self.counted = self.warps;
    }

    /// Blocks of the grid.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks as u32
    }

    /// By how much a pass raises the count.
    pub(crate) fn counted(&self) -> u64 {
        self.counted as u64
    }

    /// The kernel's parameter; `made` is the address of the count, if any rows are counted.
    pub(crate) fn strips(&self, made: u64) -> Strips {
        Strips {
            made,
            ..self.strips
        }
    }
}

/// Steps until a block has taken the place of one that has ended, and what a few rows take longer than their share.
const CHANGE: f64 = 10.0;

/// Cuts the rows of passes over bands of `nx` columns, for the GPU that makes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassCutter {
    pub shape: PassShape,
    pub nx: usize,
    /// Whether columns wrap around.
    pub wraps: bool,
    /// Warps of a block.
    pub warps: usize,
    /// Blocks that run at once.
    pub blocks: usize,
}

impl PassCutter {
    fn cut(&self, rows: usize, blocks: usize) -> StripCut {
        cut(&self.shape, self.nx, self.wraps, rows, self.warps, blocks)
    }

    /// `rows` alike. They begin on a leaf and end with one or with the band.
    pub(crate) fn whole(&self, rows: Range<usize>) -> BlockOrder {
        let mut order = BlockOrder::EMPTY;
        let cut = self.cut(rows.len(), self.blocks);
        order.push(rows, &cut);
        order
    }

    /// As [`whole`](Self::whole), all rows counted.
    pub(crate) fn whole_counted(&self, rows: Range<usize>) -> BlockOrder {
        let mut order = self.whole(rows);
        order.count();
        order
    }

    /// The rows above and below the inner ones first, and counted.
    pub(crate) fn edges_first(&self, [top, inner, bottom]: [Range<usize>; 3]) -> BlockOrder {
        let mut order = BlockOrder::EMPTY;
        let mut late = CHANGE;
        for edge in [top, bottom] {
            // As short as strips can be.
            let cut = self.cut(edge.len(), usize::MAX);
            late = late.max(cut.steps + CHANGE);
            order.push(edge, &cut);
        }
        order.count();
        let at_once = self.blocks.saturating_sub(order.blocks);
        let [early, rest] = self.balanced(inner.len(), at_once, late);
        let mut start = inner.start;
        for (rows, cut) in [early, rest].into_iter().flatten() {
            order.push(start..start + rows, &cut);
            start += rows;
        }
        order
    }

    /// Two parts of `rows` rows, so that the last strip ends as early as can be: what the `at_once` blocks take that
    /// begin at once, and what the others take, which begin `late` steps later.
    fn balanced(&self, rows: usize, at_once: usize, late: f64) -> [Option<(usize, StripCut)>; 2] {
        let leaves = rows.div_ceil(LEAF_ROWS);
        let parts = |early: usize| {
            let early = (early * LEAF_ROWS).min(rows);
            let part =
                |rows: usize, blocks: usize| (rows > 0).then(|| (rows, self.cut(rows, blocks)));
            let first = part(early, at_once);
            let taken = first.as_ref().map_or(0, |(_, cut)| cut.blocks);
            let left = self.blocks.saturating_sub(taken);
            [first, part(rows - early, left)]
        };
        if at_once < self.cut(LEAF_ROWS, usize::MAX).blocks {
            // No room for strips side by side.
            return parts(0);
        }
        let ends = |[first, rest]: &[Option<(usize, StripCut)>; 2]| {
            let first = first.as_ref().map_or(0.0, |(_, cut)| cut.steps);
            (
                first,
                rest.as_ref().map_or(0.0, |(_, cut)| late + cut.steps),
            )
        };
        // The more rows the first part has, the later it ends, and the earlier the rest: where they meet, or near
        // there, since both go in steps.
        let (mut low, mut high) = (0, leaves);
        while low < high {
            let middle = (low + high) / 2;
            let (first, rest) = ends(&parts(middle));
            if first < rest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let near = (low.saturating_sub(4)..=(low + 4).min(leaves)).map(parts);
        let best = near.min_by(|a, b| {
            let last = |parts| f64::max(ends(parts).0, ends(parts).1);
            last(a).total_cmp(&last(b))
        });
        best.expect("`low` is among them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cuda::temporal::strips::PassKind;

    fn h200(nx: usize) -> PassCutter {
        PassCutter {
            shape: PassShape::of::<f32>(PassKind::Plain),
            nx,
            wraps: false,
            warps: 8,
            blocks: 262,
        }
    }

    /// Rows and blocks of each kind of strips.
    fn kinds(order: &BlockOrder) -> Vec<(Range<i32>, Range<i32>, StripsOf)> {
        let of = &order.strips.of[..order.kinds];
        let ends = of[1..].iter().map(|next| next.first_block);
        of.iter()
            .zip(ends.chain([order.blocks as i32]))
            .map(|(kind, end)| (kind.start..kind.end, kind.first_block..end, *kind))
            .collect()
    }

    #[test]
    fn sections_cover_the_rows_on_whole_leaves_and_have_blocks_for_all_strips() {
        for nx in [3, 129, 1500, 16384, 100_000] {
            for parts in [[0..16, 16..32, 32..59], [160..176, 176..8176, 8176..8192]] {
                let order = h200(nx).edges_first(parts.clone());
                let kinds = kinds(&order);
                let mut rows: Vec<_> = kinds.iter().map(|(rows, ..)| rows.clone()).collect();
                rows.sort_by_key(|rows| rows.start);
                rows.dedup();
                assert_eq!(rows[0].start as usize, parts[0].start);
                assert_eq!(rows[rows.len() - 1].end as usize, parts[2].end);
                assert!(rows.windows(2).all(|pair| pair[0].end == pair[1].start));
                for (rows, blocks, kind) in &kinds {
                    assert!(rows.start % 16 == 0 && kind.rows % 16 == 0);
                    let strips = kind.across as usize * rows.len().div_ceil(kind.rows as usize);
                    let groups = blocks.len() * (8 / kind.warps) as usize;
                    assert!(strips <= groups && groups < strips + 8, "{nx} {rows:?}");
                    let edge =
                        rows.end as usize <= parts[0].end || rows.start as usize >= parts[2].start;
                    assert_eq!(edge, blocks.end <= order.strips.counted_blocks);
                    assert_eq!(!edge, blocks.start >= order.strips.counted_blocks);
                }
            }
        }
    }

    #[test]
    fn blocks_that_begin_late_have_shorter_strips() {
        let order = h200(16384).edges_first([0..16, 16..4080, 4080..4096]);
        let kinds = kinds(&order);
        let mut tallest: Vec<(i32, i32)> = Vec::new();
        for (rows, _, kind) in kinds
            .iter()
            .filter(|kind| kind.1.start >= order.strips.counted_blocks)
        {
            match tallest.last_mut() {
                Some((start, tall)) if *start == rows.start => *tall = kind.rows.max(*tall),
                _ => tallest.push((rows.start, kind.rows)),
            }
        }
        let [(_, long), (_, short)] = tallest[..] else {
            panic!("{kinds:?}");
        };
        // All that is not an edge runs at once.
        assert!(order.blocks as i32 - order.strips.counted_blocks <= 262);
        // No longer than the strips of an undivided band.
        let undivided = h200(16384).whole(0..4096).strips.of;
        let undivided = undivided.iter().filter(|kind| **kind != StripsOf::UNUSED);
        let most = undivided.map(|kind| kind.rows).max();
        assert!(Some(long) <= most && short < long, "{most:?} {kinds:?}");
    }
}
