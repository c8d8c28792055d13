//! How rows are cut into strips, one for each warp group of a pass.

use crosswarp_prim::leaf::{LANES as LEAF_COLUMNS, ROWS as LEAF_ROWS};
use crosswarp_prim::{Float, Superaccumulator};

use crate::gpu::arguments::{
    LANE_COLUMNS, PASS_DEPTH, PASS_DEPTH_LARGE_F64, PASS_DEPTH_PLAIN_F32, PASS_DEPTH_SOURCE_F32,
    StripsOf, WAVEFRONT_RING,
};

impl StripsOf {
    pub(crate) const UNUSED: StripsOf = StripsOf {
        first_block: i32::MAX,
        warps: 1,
        x: 0,
        across: 1,
        step: 0,
        rows: LEAF_ROWS as i32,
        start: 0,
        end: 0,
    };
}

/// Warp groups of 8, 4, 2 and 1 warps, and the ends.
pub(crate) const KINDS: usize = 5;

/// Which planes a pass's kernel is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PassKind {
    /// Without mask and source.
    Plain,
    /// Of these, large ones of `f64`.
    Large,
    /// With a mask alone.
    Mask,
    /// With a source.
    Source,
}

impl PassKind {
    /// Most sweeps of a pass over numbers of `size` bytes.
    const fn depth(self, size: usize) -> usize {
        match (self, size) {
            (PassKind::Plain, 4) => PASS_DEPTH_PLAIN_F32,
            (PassKind::Large, _) => PASS_DEPTH_LARGE_F64,
            (PassKind::Source, 4) => PASS_DEPTH_SOURCE_F32,
            _ => PASS_DEPTH,
        }
    }
}

/// What a pass's kernel is made for: the parameters of `crosswarp::pass`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassShape {
    /// Most sweeps of a pass.
    pub depth: usize,
    lane_columns: usize,
    /// Bytes of a value, and words of an accumulator.
    element: usize,
    words: usize,
}

impl PassShape {
    /// Of the kernels for fields of `F`.
    pub(crate) const fn of<F: Float>(kind: PassKind) -> PassShape {
        PassShape {
            depth: kind.depth(size_of::<F>()),
            lane_columns: LANE_COLUMNS,
            element: size_of::<F>(),
            words: Superaccumulator::<F>::WORDS,
        }
    }

    /// Columns that a warp owns.
    const fn own(&self) -> usize {
        32 * self.lane_columns - 2 * self.depth.next_multiple_of(self.lane_columns)
    }

    /// Leaves across that a group of `warps` warps owns.
    const fn leaves(&self, warps: usize) -> usize {
        self.own() * warps / LEAF_COLUMNS
    }

    /// Dynamic shared memory of a block: the size of `crosswarp::wavefront_shape::scratch`.
    pub(crate) const fn shared(&self, warps: usize) -> u32 {
        let rows = WAVEFRONT_RING * 32 * self.lane_columns * self.element;
        let sums = 2 * self.depth * (self.leaves(warps) * LEAF_COLUMNS + 16) * self.element;
        let of_warp = rows + (self.depth * self.words + 1) * size_of::<u64>();
        (sums + warps * of_warp).next_multiple_of(16) as u32
    }
}

/// Rows that have been cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripCut {
    pub strips: [StripsOf; KINDS],
    /// Blocks that make them.
    pub blocks: usize,
    /// How long they take, in steps of a strip of inner columns.
    pub steps: f64,
}

/// What a row of a strip at the left or right end takes, where columns are fixed, in rows of others. (1.75 with six sweeps of
/// `f64`; such planes are so large that their ends get half of the rows in any case.)
const END_COST: f64 = 1.2;

/// How a band of `rows` rows and `nx` columns is cut for blocks of `warps` warps, so that all strips end soon if
/// `blocks` blocks run at once. Without `wraps` the outermost columns are fixed.
///
/// A large warp group owns more of the columns that it computes, so as many columns as can be are given to large ones.
/// The ends, which take longer, are given to the smallest, and in shorter pieces.
pub(crate) fn cut(
    shape: &PassShape,
    nx: usize,
    wraps: bool,
    rows: usize,
    warps: usize,
    blocks: usize,
) -> StripCut {
    let leaves = rows.div_ceil(LEAF_ROWS).max(1);
    // Steps until the levels are filled and emptied.
    let fill = 2 * shape.depth;
    let steps = |of_leaves: usize| (of_leaves * LEAF_ROWS + fill) as f64;
    let mut best: Option<StripCut> = None;
    for inner in 1..=leaves {
        if best.is_some_and(|best| best.steps <= steps(inner)) {
            break;
        }
        // The shortest pieces at the ends for which there is room.
        let fits = |&ends: &usize| pieces(shape, nx, wraps, leaves, warps, inner, ends).1 <= blocks;
        // Taller pieces never need more blocks.
        if !fits(&inner) {
            continue;
        }
        let ends = (inner.div_ceil(2)..inner).find(fits).unwrap_or(inner);
        let (strips, blocks) = pieces(shape, nx, wraps, leaves, warps, inner, ends);
        let steps = steps(inner).max(END_COST * steps(ends));
        if best.is_none_or(|best| steps < best.steps) {
            best = Some(StripCut {
                strips,
                blocks,
                steps,
            });
        }
    }
    best.unwrap_or_else(|| {
        let (strips, blocks) = pieces(shape, nx, wraps, leaves, warps, leaves, leaves);
        StripCut {
            strips,
            blocks,
            steps: steps(leaves),
        }
    })
}

/// The strips of a band `leaves` leaves high in pieces of `inner` leaves, those at the ends of `ends`; and the blocks.
fn pieces(
    shape: &PassShape,
    nx: usize,
    wraps: bool,
    leaves: usize,
    warps: usize,
    inner: usize,
    ends: usize,
) -> ([StripsOf; KINDS], usize) {
    let across = nx.div_ceil(LEAF_COLUMNS);
    let smallest = (0..)
        .map(|log| 1 << log)
        .find(|&group| shape.leaves(group) > 0);
    let smallest = smallest.expect("a large group owns a leaf");
    let mut strips = [StripsOf::UNUSED; KINDS];
    let (mut kinds, mut blocks) = (0, 0);
    let mut push = |group: usize, x: usize, across: usize, step: usize, of_leaves: usize| {
        strips[kinds] = StripsOf {
            first_block: blocks as i32,
            warps: group as i32,
            x: (x * LEAF_COLUMNS) as i32,
            across: across as i32,
            step: (step * LEAF_COLUMNS) as i32,
            rows: (of_leaves * LEAF_ROWS) as i32,
            ..StripsOf::UNUSED
        };
        kinds += 1;
        blocks += (across * leaves.div_ceil(of_leaves)).div_ceil(warps / group);
    };
    let at_ends = if wraps { 0 } else { across.min(2) };
    let (mut x, mut left) = (at_ends.min(1), across - at_ends);
    let mut group = warps;
    while left > 0 {
        let own = shape.leaves(group);
        if own > 0 && left >= own {
            push(group, x, left / own, own, inner);
            x += left / own * own;
            left %= own;
        }
        group /= 2;
    }
    if at_ends > 0 {
        push(smallest, 0, at_ends, across - 1, ends);
    }
    (strips, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [PassShape; 5] = [
        PassShape::of::<f32>(PassKind::Plain),
        PassShape::of::<f32>(PassKind::Mask),
        PassShape::of::<f32>(PassKind::Source),
        PassShape::of::<f64>(PassKind::Plain),
        PassShape::of::<f64>(PassKind::Large),
    ];

    #[test]
    fn blocks_of_two_warps_have_room_on_every_gpu() {
        // Shared memory of a block of compute capability 7.5, the least: CUDA C++ Programming Guide, technical specifications.
        for shape in SHAPES {
            assert!(shape.shared(2) <= 64 << 10, "{shape:?}");
        }
    }

    #[test]
    fn every_leaf_is_in_one_strip_and_strips_fit_where_they_can() {
        for shape in &SHAPES {
            for (nx, rows) in [(3, 3), (129, 47), (1000, 700), (16384, 2048), (128, 20_000)] {
                for (blocks, warps) in [(1, 8), (7, 4), (132, 8), (264, 8), (usize::MAX, 4)] {
                    for wraps in [false, true] {
                        let cut = cut(shape, nx, wraps, rows, warps, blocks);
                        let what = format!("{shape:?} {nx} x {rows}, {blocks}, {cut:?}");
                        let high = rows.div_ceil(LEAF_ROWS);
                        let mut covered = vec![0; nx.div_ceil(LEAF_COLUMNS) * high];
                        // As the kernel does.
                        for block in 0..cut.blocks as i32 {
                            let kind = cut.strips.iter();
                            let of = kind.rev().find(|of| of.first_block <= block).unwrap();
                            for in_block in 0..warps as i32 / of.warps {
                                let groups = warps as i32 / of.warps;
                                let number = (block - of.first_block) * groups + in_block;
                                let y = number / of.across * of.rows;
                                if y as usize >= rows {
                                    continue;
                                }
                                assert_eq!((of.rows % 16, of.x % 128, of.step % 128), (0, 0, 0));
                                let x = (of.x + number % of.across * of.step) as usize;
                                let x = x / LEAF_COLUMNS..;
                                for x in x.take(shape.leaves(of.warps as usize)) {
                                    let end = (y + of.rows) as usize / LEAF_ROWS;
                                    for y in y as usize / LEAF_ROWS..end.min(high) {
                                        covered[x * high + y] += 1;
                                    }
                                }
                            }
                        }
                        assert!(covered.iter().all(|&times| times == 1), "{what}");
                        let whole =
                            |of: &StripsOf| of.rows as usize >= rows || of.first_block == i32::MAX;
                        assert!(
                            cut.blocks <= blocks || cut.strips.iter().all(whole),
                            "{what}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn large_planes_are_balanced() {
        // An H200's 264 blocks could at best have strips of 72 leaves.
        let cut = cut(&SHAPES[0], 16384, false, 16384, 8, 264);
        assert_eq!(cut.strips[0].rows, 74 * 16, "{cut:?}");
        assert!(cut.blocks <= 264);
    }
}
