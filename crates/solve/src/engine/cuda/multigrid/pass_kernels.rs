//! The kernels that make passes over levels of planes, and which of them makes which pass.

use crosswarp_cuda::{Device, Function, Launch};

use crate::element::Real;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::smoothing::{Colour, Smoothing, Step};
use crate::engine::cuda::kernels;
use crate::engine::cuda::sources::level_pass_shared;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    BLACK, LevelPass, MASK_TILE_SHARED, MASK_TILE_THREADS, NO_COLOUR, PASS_THREADS, RED,
    START_CORRECTED, START_CORRECTION, START_FIELD, START_ZERO, TILE_THREADS,
    VARIED_COARSE_THREADS, VARYING_TILE_SHARED, VARYING_TILE_THREADS,
};

/// A kernel that makes passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PassKernel {
    pub name: &'static str,
    pub blocks: Blocks,
    /// Relaxations of a launch.
    pub steps: usize,
    /// What it is made for, if not for all.
    only: Option<Known>,
}

/// How the blocks of a kernel share a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Blocks {
    /// Each goes down the rows of some columns: see `pass.cuh`.
    Strips,
    /// Each has some rows of some columns: see `tile.cuh`;
    Tiles,
    /// of the finest level, `finest_tile.cuh`,
    FinestTiles,
    /// where points differ, `varied_tile.cuh`: with a mask,
    MaskTiles,
    /// or with couplings;
    VaryingTiles,
    /// and of coarse levels below such ones, `varied_coarse_tile.cuh`.
    VariedCoarseTiles,
}

/// What tells points of a level apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Nothing but the sides.
    Plain,
    /// Some keep their values.
    Masked,
    /// Couplings.
    Varying,
}

impl Kind {
    pub fn of(level: &LevelPass) -> Kind {
        match (level.operator_rows, level.fixed) {
            (0, 0) => Kind::Plain,
            (0, _) => Kind::Masked,
            _ => Kind::Varying,
        }
    }

    /// Those of the finest level by strips.
    fn kernels(self) -> &'static [PassKernel] {
        match self {
            Kind::Varying => &FINEST_VARYING,
            Kind::Plain | Kind::Masked => &FINEST,
        }
    }

    /// Those by tiles that are faster on a finest level of this shape, where a block has at most so much shared memory.
    fn tiles(self, shape: &Shape, shared: u32) -> &'static [PassKernel] {
        let rows = shape.own().len();
        if shape.x.wraps || shape.y.wraps || rows > MOST_ROWS_OF_TILES {
            return &[];
        }
        match self {
            Kind::Plain if rows * shape.x.len > MOST_CELLS_OF_TILES => &[],
            Kind::Plain => &FINEST_TILES,
            // Where no row is calm, strips are slower at any size.
            Kind::Masked => &MASK_TILES,
            Kind::Varying if shared < VARYING_TILE_SHARED => &[],
            Kind::Varying => &VARYING_TILES,
        }
    }

    /// What of `colour` a kernel has to have been told: with a mask it takes any where it was told that red comes first.
    pub fn colour_known(self, colour: i32) -> i32 {
        if self == Kind::Masked { RED } else { colour }
    }
}

/// What the compiler was told of a kernel: where it begins, what it measures, whether it restricts, the first colour.
pub(super) type Known = (i32, Option<usize>, bool, i32);

const fn pass(name: &'static str, steps: usize, only: Option<Known>) -> PassKernel {
    PassKernel {
        name,
        blocks: Blocks::Strips,
        steps,
        only,
    }
}

const fn tiles(name: &'static str, blocks: Blocks, steps: usize, only: Known) -> PassKernel {
    PassKernel {
        name,
        blocks,
        steps,
        only: Some(only),
    }
}

/// On the finest level,
const BETWEEN: Known = (START_CORRECTED, Some(4), true, RED);
/// and where relaxations change all points.
const BETWEEN_OF_ALL: Known = (START_CORRECTED, Some(4), true, NO_COLOUR);
const DOWN: Known = (START_ZERO, None, true, NO_COLOUR);
const UP: Known = (START_CORRECTED, None, false, NO_COLOUR);
/// What full multigrid goes on with where a level has what the coarser ones found: on the finest level, and on others.
const BEGUN: Known = (START_CORRECTED, None, true, RED);
const BEGUN_OF_ALL: Known = (START_CORRECTED, None, true, NO_COLOUR);
const BEGUN_COARSE: Known = (START_CORRECTION, None, true, NO_COLOUR);

/// Kernels of the finest level: those for one kind of pass first, then those with most relaxations.
const FINEST: [PassKernel; 5] = [
    pass("finest_plain_2_2", 4, Some(BETWEEN)),
    pass("finest_plain_begun_2", 2, Some(BEGUN)),
    pass("finest_plain_2", 2, None),
    pass("finest_plain_1", 1, None),
    pass("finest_plain_0", 0, None),
];

/// The same where couplings differ from place to place.
const FINEST_VARYING: [PassKernel; 4] = [
    pass("finest_varying_2_2", 4, Some(BETWEEN_OF_ALL)),
    pass("finest_varying_2", 2, None),
    pass("finest_varying_1", 1, None),
    pass("finest_varying_0", 0, None),
];

/// The same of other levels, where every pass has a relaxation.
const COARSE: [PassKernel; 5] = [
    pass("coarse_down_2", 2, Some(DOWN)),
    pass("coarse_up_2", 2, Some(UP)),
    pass("coarse_begun_2", 2, Some(BEGUN_COARSE)),
    pass("coarse_2", 2, None),
    pass("coarse_1", 1, None),
];

/// Those of them that make the same by tiles.
const TILES: [PassKernel; 3] = [
    tiles("tile_down_2", Blocks::Tiles, 2, DOWN),
    tiles("tile_up_2", Blocks::Tiles, 2, UP),
    tiles("tile_begun_2", Blocks::Tiles, 2, BEGUN_COARSE),
];

/// And where no rows are known to be the same.
const VARIED_COARSE_TILES: [PassKernel; 3] = [
    tiles("varied_coarse_down_2", Blocks::VariedCoarseTiles, 2, DOWN),
    tiles("varied_coarse_up_2", Blocks::VariedCoarseTiles, 2, UP),
    tiles(
        "varied_coarse_begun_2",
        Blocks::VariedCoarseTiles,
        2,
        BEGUN_COARSE,
    ),
];

/// The same of finest levels on which points differ by the sides alone.
const FINEST_TILES: [PassKernel; 2] = [
    tiles("finest_tile_2_2", Blocks::FinestTiles, 4, BETWEEN),
    tiles("finest_tile_begun_2", Blocks::FinestTiles, 2, BEGUN),
];

/// And of those with a mask.
const MASK_TILES: [PassKernel; 2] = [
    tiles("mask_tile_2_2", Blocks::MaskTiles, 4, BETWEEN),
    tiles("mask_tile_begun_2", Blocks::MaskTiles, 2, BEGUN),
];

/// And of those whose couplings differ.
const VARYING_TILES: [PassKernel; 2] = [
    tiles("varying_tile_2_2", Blocks::VaryingTiles, 4, BETWEEN_OF_ALL),
    tiles(
        "varying_tile_begun_2",
        Blocks::VaryingTiles,
        2,
        BEGUN_OF_ALL,
    ),
];

/// Most cells of a PE's part of a level that tiles are faster for: of strips few rows each would be left.
const MOST_CELLS_OF_TILES: usize = 5 << 20;

/// Most rows of it: a grid has at most 65,535 blocks in y, and the lowest tiles have 24 own rows.
const MOST_ROWS_OF_TILES: usize = 65_535 * 24 - 1;

/// The first of `kernels` that can begin a pass with `left` relaxations.
pub(super) fn place_of(
    kernels: impl IntoIterator<Item = PassKernel>,
    left: usize,
    known: Known,
) -> usize {
    let fits = |kernel: PassKernel| match kernel.only {
        None => kernel.steps <= left,
        Some(only) => kernel.steps == left && only == known,
    };
    kernels
        .into_iter()
        .position(fits)
        .expect("there is a pass of no steps, or of one")
}

/// The kernels of passes over a finest level of this kind and shape that cycles launch; `full`: whether the first cycle is a full
/// one; `shared`: bytes of shared memory that a block has at most.
pub(super) fn finest_kernels(
    kind: Kind,
    shape: &Shape,
    smoothing: &Smoothing,
    full: bool,
    shared: u32,
) -> Vec<PassKernel> {
    let of = [kind.tiles(shape, shared), kind.kernels()].concat();
    let (pre, post) = (smoothing.pre.len(), smoothing.post.len());
    let [before, after] =
        [&smoothing.pre, &smoothing.post].map(|steps| kind.colour_known(colour_of(steps)));
    let (start, measured) = match full {
        true => (START_CORRECTED, None),
        false => (START_FIELD, Some(0)),
    };
    let passes = [
        (0, (START_FIELD, Some(0), true, NO_COLOUR)),
        (pre, (start, measured, true, before)),
        (post + pre, (START_CORRECTED, Some(post + pre), true, after)),
    ];
    launched(&of, &passes)
}

/// The same of cycles from zero, as preconditioners.
pub(super) fn preconditioning_kernels(kind: Kind, smoothing: &Smoothing) -> Vec<PassKernel> {
    launched(
        kind.kernels(),
        &[(smoothing.pre.len(), DOWN), (smoothing.post.len(), UP)],
    )
}

/// The same of other levels.
pub(super) fn coarse_kernels(smoothing: &Smoothing, full: bool) -> Vec<PassKernel> {
    let (pre, post) = (smoothing.pre.len(), smoothing.post.len());
    let passes = [(pre, DOWN), (post, UP), (pre, BEGUN_COARSE)];
    launched(&COARSE, &passes[..if full { 3 } else { 2 }])
}

/// What takes the place of `kernels` on a level of this shape; `varied`: whether the GPU has made levels, where nobody has found rows
/// that are the same.
pub(super) fn fitting(kernels: &[PassKernel], shape: &Shape, varied: bool) -> Vec<PassKernel> {
    let rows = shape.own().len();
    let is_small = rows * shape.x.len <= MOST_CELLS_OF_TILES;
    let wraps = shape.x.wraps || shape.y.wraps;
    let tiles = match varied && !wraps {
        _ if rows > MOST_ROWS_OF_TILES => return kernels.to_vec(),
        true => &VARIED_COARSE_TILES,
        false if is_small => &TILES,
        false => return kernels.to_vec(),
    };
    let by_tiles = |kernel: &PassKernel| {
        let same = |tile: &&PassKernel| (tile.steps, tile.only) == (kernel.steps, kernel.only);
        *tiles.iter().find(same).unwrap_or(kernel)
    };
    kernels.iter().map(by_tiles).collect()
}

/// Those of `kernels` that `passes` take: their relaxations, where they begin, what they measure, whether they restrict.
fn launched(kernels: &[PassKernel], passes: &[(usize, Known)]) -> Vec<PassKernel> {
    let mut taken = vec![false; kernels.len()];
    for &(mut left, (mut start, measured, restrict, colour)) in passes {
        let mut measured = measured;
        loop {
            let place = place_of(
                kernels.iter().copied(),
                left,
                (start, measured, restrict, colour),
            );
            taken[place] = true;
            let steps = kernels[place].steps;
            (left, start) = (left - steps, START_FIELD);
            measured = measured.and_then(|at| at.checked_sub(steps));
            if left == 0 {
                break;
            }
        }
    }
    let taken = kernels.iter().zip(taken).filter(|(_, taken)| *taken);
    taken.map(|(kernel, _)| *kernel).collect()
}

impl PassKernel {
    /// Of a block.
    pub fn threads(&self) -> u32 {
        match self.blocks {
            Blocks::Strips => PASS_THREADS as u32,
            Blocks::Tiles | Blocks::FinestTiles => TILE_THREADS as u32,
            Blocks::VariedCoarseTiles => VARIED_COARSE_THREADS as u32,
            Blocks::MaskTiles => MASK_TILE_THREADS as u32,
            Blocks::VaryingTiles => VARYING_TILE_THREADS as u32,
        }
    }
}

/// Such a kernel on a GPU.
pub(super) struct Loaded {
    pub kernel: PassKernel,
    pub function: Function,
    /// Dynamic shared memory of a block, in bytes.
    pub shared: u32,
    /// Blocks that run at once.
    pub resident: usize,
}

impl Loaded {
    pub fn new<T: Real>(device: &Device, kernel: PassKernel) -> Result<Loaded, GpuError> {
        let function = kernels::find_plain(device, kernel.name)?;
        // The finest level, of `f64`, has no corners.
        let (size, corners) = (size_of::<T>(), size_of::<T>() == size_of::<f32>());
        let shared = match kernel.blocks {
            Blocks::Strips => level_pass_shared(kernel.steps, corners, size) as u32,
            Blocks::Tiles | Blocks::VariedCoarseTiles | Blocks::FinestTiles => 0,
            Blocks::MaskTiles => MASK_TILE_SHARED,
            Blocks::VaryingTiles => VARYING_TILE_SHARED,
        };
        let launch = Launch::new(&function)
            .block(kernel.threads())
            .shared(shared);
        let resident = launch.max_resident()?;
        Ok(Loaded {
            kernel,
            function,
            shared,
            resident: resident as usize,
        })
    }
}

/// What kernels are told of the colours of `steps`: which the first has.
pub(super) fn colour_of(steps: &[Step]) -> i32 {
    let turns = |two: &[Step]| match (two[0].colour, two[1].colour) {
        (Some(one), Some(other)) => one != other,
        (one, other) => one == other,
    };
    debug_assert!(steps.windows(2).all(turns), "{steps:?}");
    let first = steps.first().and_then(|step| step.colour);
    first.map_or(NO_COLOUR, of_kernels)
}

pub(super) fn of_kernels(colour: Colour) -> i32 {
    match colour {
        Colour::Red => RED,
        Colour::Black => BLACK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::multigrid::shape::Axis;

    /// Shared memory of a block of an H200.
    const LARGE: u32 = 227 << 10;

    fn level(nx: usize, ny: usize, wraps: [bool; 2]) -> Shape {
        let axis = |len, wraps| Axis { len, wraps };
        Shape::finest(axis(nx, wraps[0]), axis(ny, wraps[1]), vec![0, ny], 0, 0)
    }

    fn names(kernels: &[PassKernel]) -> Vec<&str> {
        kernels.iter().map(|kernel| kernel.name).collect()
    }

    #[test]
    fn the_kernels_that_passes_take_are_those_that_are_compiled() {
        // By strips.
        let around = level(2048, 2048, [true; 2]);
        let of = |pre, post, full| {
            let smoothing = Smoothing::chebyshev(pre, post, [0.5, 2.0]);
            let finest = Smoothing::of_colours(&smoothing, [1.0, 1.1]);
            let finest = finest_kernels(Kind::Plain, &around, &finest, full, LARGE);
            (finest, coarse_kernels(&smoothing, full))
        };
        let (finest, coarse) = of(2, 2, true);
        assert_eq!(
            names(&finest),
            ["finest_plain_2_2", "finest_plain_begun_2", "finest_plain_0"]
        );
        assert_eq!(
            names(&coarse),
            ["coarse_down_2", "coarse_up_2", "coarse_begun_2"]
        );
        let (finest, coarse) = of(2, 2, false);
        assert_eq!(
            names(&finest),
            ["finest_plain_2_2", "finest_plain_2", "finest_plain_0"]
        );
        assert_eq!(names(&coarse), ["coarse_down_2", "coarse_up_2"]);
        let (finest, coarse) = of(1, 2, true);
        assert_eq!(
            names(&finest),
            ["finest_plain_2", "finest_plain_1", "finest_plain_0"]
        );
        assert_eq!(names(&coarse), ["coarse_up_2", "coarse_1"]);
        for (pre, post) in [(1, 1), (2, 1), (2, 3), (3, 3)] {
            let (finest, coarse) = of(pre, post, true);
            let each = ["finest_plain_2", "finest_plain_1", "finest_plain_0"];
            assert_eq!(names(&finest), each, "{pre} and {post}");
            // One left over, and of two or three the first two.
            let expected = match (pre, post) {
                (1, 1) => &["coarse_1"][..],
                (2, 1) => &["coarse_down_2", "coarse_begun_2", "coarse_1"],
                (2, 3) => &["coarse_down_2", "coarse_begun_2", "coarse_2", "coarse_1"],
                _ => &["coarse_2", "coarse_1"],
            };
            assert_eq!(names(&coarse), expected, "{pre} and {post}");
        }
        let all_points = Smoothing::chebyshev(2, 2, [0.5, 2.0]);
        let varying = finest_kernels(Kind::Varying, &around, &all_points, true, LARGE);
        assert_eq!(
            names(&varying),
            ["finest_varying_2_2", "finest_varying_2", "finest_varying_0"]
        );
        // With a mask no row is calm, and kernels take any colour.
        let masked = finest_kernels(Kind::Masked, &around, &all_points, true, LARGE);
        let of_red = ["finest_plain_2_2", "finest_plain_begun_2", "finest_plain_0"];
        assert_eq!(names(&masked), of_red);
        let plain = finest_kernels(Kind::Plain, &around, &all_points, true, LARGE);
        assert_eq!(names(&plain), ["finest_plain_2", "finest_plain_0"]);
    }

    #[test]
    fn small_levels_go_by_tiles_where_there_are_such() {
        let by = |pre, nx, ny, varied| {
            let kernels = coarse_kernels(&Smoothing::chebyshev(pre, 2, [0.5, 2.0]), true);
            let fitting = fitting(&kernels, &level(nx, ny, [false; 2]), varied);
            fitting.iter().map(|kernel| kernel.name).collect::<Vec<_>>()
        };
        let of = |pre, nx, ny| by(pre, nx, ny, false);
        assert_eq!(
            by(2, 4097, 4097, true),
            [
                "varied_coarse_down_2",
                "varied_coarse_up_2",
                "varied_coarse_begun_2"
            ]
        );
        assert_eq!(
            of(2, 2049, 2049),
            ["tile_down_2", "tile_up_2", "tile_begun_2"]
        );
        assert_eq!(of(1, 2049, 2049), ["tile_up_2", "coarse_1"]);
        let strips = ["coarse_down_2", "coarse_up_2", "coarse_begun_2"];
        assert_eq!(of(2, 4097, 4097), strips);
        // A grid has no room for as many tiles.
        assert_eq!(of(2, 3, 65_535 * 24), strips);
    }

    #[test]
    fn finest_levels_go_by_tiles_where_these_are_faster() {
        let all_points = Smoothing::chebyshev(2, 2, [0.5, 2.0]);
        let of_colours = Smoothing::of_colours(&all_points, [1.0, 1.1]);
        let of = |kind, shape: Shape| {
            let smoothing = if kind == Kind::Varying {
                &all_points
            } else {
                &of_colours
            };
            let kernels = finest_kernels(kind, &shape, smoothing, true, LARGE);
            kernels.iter().map(|kernel| kernel.name).collect::<Vec<_>>()
        };
        let tiles = ["finest_tile_2_2", "finest_tile_begun_2", "finest_plain_0"];
        let strips = ["finest_plain_2_2", "finest_plain_begun_2", "finest_plain_0"];
        assert_eq!(of(Kind::Plain, level(2049, 2049, [false; 2])), tiles);
        let mask_tiles = ["mask_tile_2_2", "mask_tile_begun_2", "finest_plain_0"];
        let varying_tiles = [
            "varying_tile_2_2",
            "varying_tile_begun_2",
            "finest_varying_0",
        ];
        assert_eq!(
            of(Kind::Varying, level(4097, 4097, [false; 2])),
            varying_tiles
        );
        // A block of compute capability 7.5 has 64 KiB.
        let large = level(4097, 4097, [false; 2]);
        let kernels = finest_kernels(Kind::Varying, &large, &all_points, true, 64 << 10);
        assert_eq!(names(&kernels)[0], "finest_varying_2_2");
        assert_eq!(of(Kind::Masked, level(4097, 4097, [false; 2])), mask_tiles);
        assert_eq!(of(Kind::Masked, level(2048, 2049, [true, false])), strips);
        assert_eq!(of(Kind::Plain, level(2048, 2049, [true, false])), strips);
        assert_eq!(of(Kind::Plain, level(4097, 4097, [false; 2])), strips);
    }
}
