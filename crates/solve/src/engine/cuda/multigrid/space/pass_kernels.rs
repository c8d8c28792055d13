//! The kernels that make passes over levels of boxes, and which of them makes which pass.

use crosswarp_cuda::{Device, Function, Launch};
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use crate::engine::cpu::multigrid::smoothing::{Colour, Smoothing, Step};
use crate::engine::cuda::kernels;
use crate::engine::cuda::sources::{box_pass_shared, box_red_black_shared};
use crate::gpu::box_arguments::{MOST_STEPS, THREAD_ROWS, TILE_X};
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{START_CORRECTED, START_CORRECTION, START_FIELD, START_ZERO};

/// Own rows of a tile, at least.
const FEWEST_ROWS: usize = 32;
/// Blocks that a grid has in y, at most.
pub(super) const MOST_BLOCKS: usize = 65_535;
/// Most rows of a level.
pub(super) const MOST_ROWS: usize = MOST_BLOCKS * FEWEST_ROWS;

/// Columns, and rows, of a tile on each side of its own ones, where a launch reads `margin` around these: as `box_pass.cuh`
/// and `box_red_black.cuh` have it.
const fn side_of(margin: usize) -> usize {
    margin.next_multiple_of(2)
}

/// Points around its own ones that a launch reads.
pub(super) const fn margin_of(steps: usize, measured: Option<usize>, restrict: bool) -> usize {
    match (restrict, measured) {
        (true, _) => steps + 2,
        (false, Some(at)) if at == steps => steps + 1,
        _ => steps,
    }
}

/// A kernel that makes passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PassKernel {
    pub name: &'static str,
    /// Of a block, and those beside them that have no part of its tile: as in `KERNELS` of `sources.rs`.
    warps: usize,
    helpers: usize,
    /// Relaxations of a launch.
    steps: usize,
    order: Order,
    /// Whether a residual can follow them.
    then: bool,
    /// What it is made for, if not for all.
    only: Option<Known>,
}

/// In which order relaxations change points, and so what a lane has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// All at once, of a column.
    AllPoints,
    /// Red ones, then black ones, of two columns.
    RedBlack,
    /// The same where axes wrap around.
    RedBlackAround,
}

impl Order {
    /// Of these relaxations; `wraps`: whether an axis wraps around.
    pub fn of(steps: &[Step], wraps: bool) -> Order {
        let colours: Vec<_> = steps.iter().map(|step| step.colour).collect();
        match colours == [Some(Colour::Red), Some(Colour::Black)] {
            true if wraps => Order::RedBlackAround,
            true => Order::RedBlack,
            false => Order::AllPoints,
        }
    }
}

impl PassKernel {
    /// Of a block.
    pub fn threads(&self) -> u32 {
        (TILE_X * (self.warps + self.helpers)) as u32
    }

    pub fn shared(&self) -> usize {
        match self.order {
            Order::AllPoints => box_pass_shared(self.warps, self.steps, self.then),
            Order::RedBlack | Order::RedBlackAround => {
                let (start, ..) = self.only.expect("all are made for one kind of pass");
                let reads = [START_FIELD, START_CORRECTED].contains(&start);
                box_red_black_shared(self.warps, reads, self.then)
            }
        }
    }

    /// A block's own columns and rows: of these whole leaves where squares are summed.
    pub fn own(&self, (start, measured, restrict): Known) -> [usize; 2] {
        let side = side_of(margin_of(self.steps, measured, restrict));
        let columns = match self.order {
            Order::AllPoints => TILE_X - 2 * side,
            // The last odd column has no lane behind that could correct it.
            _ if start >= START_CORRECTED => 2 * TILE_X - 2 * side - 2,
            _ => 2 * TILE_X - 2 * side,
        };
        let rows = self.warps * THREAD_ROWS - 2 * side;
        match measured {
            Some(_) => [columns, rows / LEAF_ROWS * LEAF_ROWS],
            None => [columns, rows],
        }
    }
}

/// What a launch does: where it begins, the step before which it measures, whether it restricts.
pub(super) type Known = (i32, Option<usize>, bool);

/// A launch without relaxations.
const MEASURED: Known = (START_FIELD, Some(0), true);

const fn pass(
    name: &'static str,
    (warps, helpers): (usize, usize),
    steps: usize,
    then: bool,
    only: Option<Known>,
) -> PassKernel {
    PassKernel {
        name,
        warps,
        helpers,
        steps,
        order: Order::AllPoints,
        then,
        only,
    }
}

const fn red_black(name: &'static str, warps: (usize, usize), only: Known) -> PassKernel {
    let (_, measured, restrict) = only;
    PassKernel {
        order: Order::RedBlack,
        ..pass(name, warps, 2, measured.is_some() || restrict, Some(only))
    }
}

const fn around(name: &'static str, warps: (usize, usize), only: Known) -> PassKernel {
    PassKernel {
        order: Order::RedBlackAround,
        ..red_black(name, warps, only)
    }
}

const DOWN: Known = (START_ZERO, None, true);
const UP: Known = (START_CORRECTED, None, false);
const BETWEEN: Known = (START_FIELD, Some(2), true);
const BEGUN: Known = (START_CORRECTION, None, true);

/// Those for one kind of pass first. Warps: as many as there are registers for; where squares are summed, whose own rows are
/// whole leaves, no more than bring another leaf; without relaxations, no more than that two blocks fit.
pub(super) const KERNELS: [PassKernel; 13] = [
    red_black("box_red_black_down", (12, 0), DOWN),
    red_black("box_red_black_up", (12, 0), UP),
    red_black("box_red_black_between", (10, 2), BETWEEN),
    red_black("box_red_black_begun", (12, 0), BEGUN),
    around("box_red_black_around_down", (12, 0), DOWN),
    around("box_red_black_around_up", (12, 0), UP),
    around("box_red_black_around_between", (10, 2), BETWEEN),
    around("box_red_black_around_begun", (12, 0), BEGUN),
    pass("box_down_2", (10, 2), 2, true, Some(DOWN)),
    pass("box_up_2", (12, 0), 2, false, Some(UP)),
    pass("box_2", (10, 2), 2, true, None),
    pass("box_1", (10, 2), 1, true, None),
    pass("box_0", (9, 0), 0, true, Some(MEASURED)),
];

pub(super) fn place_of(steps: usize, order: Order, known: Known) -> usize {
    let fits = |kernel: &PassKernel| {
        // What relaxes all points can leave those of a colour as they are.
        let fits = kernel.order == order || kernel.order == Order::AllPoints;
        kernel.steps == steps && fits && kernel.only.is_none_or(|only| only == known)
    };
    KERNELS
        .iter()
        .position(fits)
        .expect("there is one for any of these steps")
}

/// The launches of a pass with `count` relaxations: so many steps each, and what it does.
pub(super) fn launches(count: usize, known: Known) -> Vec<(usize, Known)> {
    let (mut start, measured, restrict) = known;
    let (mut done, mut made) = (0, Vec::new());
    loop {
        let steps = (count - done).min(MOST_STEPS);
        let last = done + steps == count;
        // What is measured after the last step of a launch is so before the first one of the next.
        let measured = measured.and_then(|at| at.checked_sub(done));
        let measured = measured.filter(|&at| at < steps || (last && at == steps));
        made.push((steps, (start, measured, restrict && last)));
        (done, start) = (done + steps, START_FIELD);
        if last {
            return made;
        }
    }
}

/// All launches of passes that cycles make.
fn launches_of(smoothing: &Smoothing) -> Vec<(Vec<Step>, Known)> {
    let Smoothing { pre, post } = smoothing;
    let both = [&post[..], pre].concat();
    let passes = [
        (&[][..], MEASURED),
        (pre, (START_FIELD, Some(0), true)),
        (pre, (START_CORRECTED, None, false)),
        (&both, (START_CORRECTED, Some(both.len()), true)),
        (pre, (START_ZERO, None, true)),
        (pre, (START_CORRECTION, None, true)),
        (post, (START_CORRECTED, None, false)),
    ];
    let of_pass = |(steps, known): (&[Step], Known)| {
        let mut done = 0;
        let launches = launches(steps.len(), known).into_iter();
        let launches = launches.map(move |(count, known)| {
            let these = steps[done..done + count].to_vec();
            done += count;
            (these, known)
        });
        launches.collect::<Vec<_>>()
    };
    passes.into_iter().flat_map(of_pass).collect()
}

/// The kernels of passes that cycles with these `smoothings` launch; `wraps`: whether an axis wraps around.
pub(super) fn pass_kernels<'a>(
    smoothings: impl IntoIterator<Item = &'a Smoothing>,
    wraps: bool,
) -> Vec<&'static PassKernel> {
    let all = smoothings.into_iter().flat_map(launches_of);
    let mut places: Vec<usize> = all
        .map(|(steps, known)| place_of(steps.len(), Order::of(&steps, wraps), known))
        .collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|place| &KERNELS[place]).collect()
}

/// Passes on a GPU, of any level.
pub(crate) struct Passes {
    pub(super) loaded: Vec<Option<Loaded>>,
}

/// Such a kernel on a GPU.
pub(super) struct Loaded {
    pub function: Function,
    /// Blocks that run at once.
    pub resident: usize,
}

impl Passes {
    /// Loads these kernels: later it could not be done while PEs of the same GPU wait for each other in kernels.
    pub(super) fn new(device: &Device, wanted: &[&PassKernel]) -> Result<Passes, GpuError> {
        let load = |kernel: &PassKernel| -> Result<Option<Loaded>, GpuError> {
            if !wanted.contains(&kernel) {
                return Ok(None);
            }
            let function = kernels::find_plain(device, kernel.name)?;
            let launch = Launch::new(&function)
                .block(kernel.threads())
                .shared(kernel.shared() as u32);
            let resident = launch.max_resident()? as usize;
            Ok(Some(Loaded { function, resident }))
        };
        let loaded = KERNELS.iter().map(load).collect::<Result<_, _>>()?;
        Ok(Passes { loaded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::multigrid::finest::End;
    use crate::engine::cpu::multigrid::space::hierarchy::{Hierarchy, finest_shape};
    use crate::engine::cpu::multigrid::space::line::Line;
    use crate::engine::cuda::sources;

    #[test]
    fn passes_are_launched_as_their_sources_say() {
        for kernel in &KERNELS {
            let mut shapes = sources::KERNELS.iter().flat_map(|source| source.shapes);
            let shape = shapes.find(|shape| shape.kernel == kernel.name);
            let shape = shape.expect("a kernel of that name");
            assert_eq!(shape.threads, kernel.threads(), "{}", kernel.name);
            assert_eq!(
                shape.dynamic_shared as usize,
                kernel.shared(),
                "{}",
                kernel.name
            );
        }
    }

    #[test]
    fn the_kernels_that_passes_take_are_those_that_are_compiled() {
        let of = |pre, post| Smoothing::chebyshev(pre, post, [0.4, 2.0]);
        let names = |smoothing: &Smoothing, wraps| -> Vec<&str> {
            let kernels = pass_kernels([smoothing], wraps).into_iter();
            kernels.map(|kernel| kernel.name).collect()
        };
        let all_points = ["box_down_2", "box_up_2", "box_2", "box_0"];
        assert_eq!(names(&of(2, 2), false), all_points);
        assert_eq!(names(&of(1, 1), true), ["box_2", "box_1", "box_0"]);
        let colours = Smoothing::of_colours(&of(2, 2), [1.4, 1.2]);
        for (wraps, order) in [(false, "red_black"), (true, "red_black_around")] {
            let passes = ["down", "up", "between", "begun"].map(|of| format!("box_{order}_{of}"));
            let others = ["box_2", "box_0"].map(str::to_string);
            assert_eq!(names(&colours, wraps), [&passes[..], &others].concat());
        }
        assert_eq!(
            launches(5, (START_CORRECTED, Some(5), true)),
            [
                (2, (START_CORRECTED, None, false)),
                (2, (START_FIELD, None, false)),
                (1, (START_FIELD, Some(1), true)),
            ]
        );
        assert_eq!(
            launches(4, (START_CORRECTED, Some(4), true)),
            [
                (2, (START_CORRECTED, None, false)),
                (2, (START_FIELD, Some(2), true)),
            ]
        );
    }

    #[test]
    fn levels_that_are_relaxed_otherwise_have_their_kernels() {
        // Coarse levels of one row have no two colours.
        let names = |sizes: [usize; 3]| -> Vec<&str> {
            let lines = sizes.map(|n| Line::finest(n, [End::Fixed, End::Fixed], 0.25));
            let shape = finest_shape(&lines, vec![0, sizes[2]], 0, 0);
            let smoothing = Smoothing::chebyshev(2, 2, [0.4, 2.0]);
            let hierarchy = Hierarchy::new(lines, shape, false, smoothing).unwrap();
            let kernels = pass_kernels(hierarchy.smoothing.of_relaxed(false), false);
            kernels.iter().map(|kernel| kernel.name).collect()
        };
        let others = ["box_down_2", "box_up_2"];
        let has = |sizes: [usize; 3]| others.map(|name| names(sizes).contains(&name));
        assert_eq!(has([33; 3]), [false; 2]);
        assert_eq!(has([130, 7, 9]), [true; 2]);
    }

    #[test]
    fn as_many_rows_as_are_possible_are_so_for_all_launches() {
        let blocks = |(steps, known): (Vec<Step>, Known)| {
            let kernel = &KERNELS[place_of(steps.len(), Order::of(&steps, false), known)];
            MOST_ROWS.div_ceil(kernel.own(known)[1])
        };
        let relaxations = (1..=3).flat_map(|pre| (1..=3).map(move |post| (pre, post)));
        let all = relaxations.flat_map(|(pre, post)| {
            let symmetric = Smoothing::chebyshev(pre, post, [0.4, 2.0]);
            let colours = Smoothing::of_colours(&symmetric, [1.4, 1.2]);
            [launches_of(&symmetric), launches_of(&colours)].concat()
        });
        assert_eq!(all.map(blocks).max(), Some(65_535));
    }
}
