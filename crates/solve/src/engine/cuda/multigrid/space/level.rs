//! A level of a box in the memory of a GPU.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{Buffer, ByValue, Device, Function, Launch, Stream};
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use super::points::DevicePoints;
use crate::engine::cpu::multigrid::galerkin::computed_rows;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::smoothing::{Colour, Smoothing, Step};
use crate::engine::cpu::multigrid::space::level::{DEPTH, Level};
use crate::engine::cpu::multigrid::space::line::Line;
use crate::engine::cpu::multigrid::space::operator::Operator;
use crate::engine::cpu::multigrid::space::transfer::Transfer;
use crate::engine::cuda::kernels;
use crate::engine::cuda::multigrid::level::{colour_of, of_kernels};
use crate::engine::cuda::multigrid::storage::{DeviceField, Stored, pitch_of};
use crate::engine::cuda::multigrid::{exchange, longest_run};
use crate::engine::cuda::sources::{box_pass_shared, box_red_black_shared};
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::gpu::box_arguments::{BoxPass, MOST_STEPS, THREAD_ROWS, TILE_X};
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    LevelPass, START_CORRECTED, START_CORRECTION, START_FIELD, START_ZERO,
};

/// Blocks along z that are considered: this many,
const MOST_PARTS: usize = 12;
/// or as many as make so many waves.
const MOST_WAVES: usize = 6;
/// Planes of a block, at least.
const FEWEST_PLANES: usize = 2;
/// Own rows of a tile, at least.
const FEWEST_ROWS: usize = 32;
/// Most rows of a level: a grid has at most 65,535 blocks in y.
pub(super) const MOST_ROWS: usize = 65_535 * FEWEST_ROWS;

/// Columns, and rows, of a tile on each side of its own ones, where a launch reads `margin` around these: as `box_pass.cuh`
/// and `box_red_black.cuh` have it.
const fn side_of(margin: usize) -> usize {
    margin.next_multiple_of(2)
}

/// Points around its own ones that a launch reads.
const fn margin_of(steps: usize, measured: Option<usize>, restrict: bool) -> usize {
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
    of: Points,
    /// Whether a residual can follow them.
    then: bool,
    /// What it is made for, if not for all.
    only: Option<Known>,
}

/// What a relaxation computes, and so a lane has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Points {
    /// All points, of a column.
    All,
    /// Red ones, then black ones, of two columns.
    RedBlack,
}

impl Points {
    /// Of a level: `lines` tells whether its operator is one of lines, without axes that wrap around.
    fn of(steps: &[Step], lines: bool) -> Points {
        let colours: Vec<_> = steps.iter().map(|step| step.colour).collect();
        match lines && colours == [Some(Colour::Red), Some(Colour::Black)] {
            true => Points::RedBlack,
            false => Points::All,
        }
    }
}

impl PassKernel {
    /// Of a block.
    fn threads(&self) -> u32 {
        (TILE_X * (self.warps + self.helpers)) as u32
    }

    fn shared(&self) -> usize {
        match self.of {
            Points::All => box_pass_shared(self.warps, self.steps, self.then),
            Points::RedBlack => {
                let (start, ..) = self.only.expect("all are made for one kind of pass");
                let reads = [START_FIELD, START_CORRECTED].contains(&start);
                box_red_black_shared(self.warps, reads, self.then)
            }
        }
    }

    /// A block's own columns and rows: of these whole leaves where squares are summed.
    fn own(&self, (start, measured, restrict): Known) -> [usize; 2] {
        let side = side_of(margin_of(self.steps, measured, restrict));
        let columns = match self.of {
            Points::All => TILE_X - 2 * side,
            // The last odd column has no lane behind that could correct it.
            Points::RedBlack if start >= START_CORRECTED => 2 * TILE_X - 2 * side - 2,
            Points::RedBlack => 2 * TILE_X - 2 * side,
        };
        let rows = self.warps * THREAD_ROWS - 2 * side;
        match measured {
            Some(_) => [columns, rows / LEAF_ROWS * LEAF_ROWS],
            None => [columns, rows],
        }
    }
}

/// What a launch does: where it begins, the step before which it measures, whether it restricts.
type Known = (i32, Option<usize>, bool);

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
        of: Points::All,
        then,
        only,
    }
}

const fn red_black(name: &'static str, warps: (usize, usize), only: Known) -> PassKernel {
    let (_, measured, restrict) = only;
    PassKernel {
        of: Points::RedBlack,
        ..pass(name, warps, 2, measured.is_some() || restrict, Some(only))
    }
}

/// Those for one kind of pass first. Warps: as many as there are registers for; where squares are summed, whose own rows are
/// whole leaves, no more than bring another leaf; without relaxations, no more than that two blocks fit.
const KERNELS: [PassKernel; 9] = [
    red_black("box_red_black_down", (12, 0), (START_ZERO, None, true)),
    red_black("box_red_black_up", (12, 0), (START_CORRECTED, None, false)),
    red_black(
        "box_red_black_between",
        (10, 2),
        (START_FIELD, Some(2), true),
    ),
    red_black(
        "box_red_black_begun",
        (12, 0),
        (START_CORRECTION, None, true),
    ),
    pass(
        "box_down_2",
        (10, 2),
        2,
        true,
        Some((START_ZERO, None, true)),
    ),
    pass(
        "box_up_2",
        (12, 0),
        2,
        false,
        Some((START_CORRECTED, None, false)),
    ),
    pass("box_2", (10, 2), 2, true, None),
    pass("box_1", (10, 2), 1, true, None),
    pass("box_0", (9, 0), 0, true, Some(MEASURED)),
];

fn place_of(steps: usize, of: Points, known: Known) -> usize {
    let fits = |kernel: &PassKernel| {
        // What relaxes all points can leave those of a colour as they are.
        let points = kernel.of == of || kernel.of == Points::All;
        kernel.steps == steps && points && kernel.only.is_none_or(|only| only == known)
    };
    KERNELS
        .iter()
        .position(fits)
        .expect("there is one for any of these steps")
}

/// The launches of a pass with `count` relaxations: so many steps each, and what it does.
fn launches(count: usize, known: Known) -> Vec<(usize, Known)> {
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

/// The kernels of passes that cycles with these `smoothings` launch, of operators of lines that wrap around or not.
pub(super) fn pass_kernels<'a>(
    smoothings: impl IntoIterator<Item = &'a Smoothing>,
    wraps: bool,
) -> Vec<&'static PassKernel> {
    let all = smoothings.into_iter().flat_map(launches_of);
    let mut places: Vec<usize> = all
        .map(|(steps, known)| place_of(steps.len(), Points::of(&steps, !wraps), known))
        .collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|place| &KERNELS[place]).collect()
}

/// Passes on a GPU, of any level.
pub(crate) struct Passes {
    loaded: Vec<Option<Loaded>>,
}

/// Such a kernel on a GPU.
struct Loaded {
    function: Function,
    /// Blocks that run at once.
    resident: usize,
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

/// A pass: see `Plan` of the CPU's.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub start: i32,
    pub steps: &'a [Step],
    /// The step before which the residual is measured; as many as there are steps: after the last.
    pub measured: Option<usize>,
    /// Whether the next level's right side is made.
    pub restrict: bool,
    /// Without steps: the colour whose equations hold.
    pub solved: Option<Colour>,
}

/// Numbers of a level that kernels reach by address only.
struct Tables {
    _numbers: Vec<Buffer<f64>>,
    _inverse_of: Buffer<u32>,
}

/// A level's operator and right side, and what its kernels are told.
pub(crate) struct DeviceOperator {
    pub(super) right_side: DeviceField<f64>,
    /// What is the same in every launch.
    pub(super) arguments: BoxPass,
    /// Of an operator that is not one of lines.
    pub(super) points: Option<DevicePoints>,
    _tables: Tables,
}

/// A level with its fields.
pub(crate) struct DeviceLevel {
    pub shape: Shape,
    pub operator: DeviceOperator,
    pub fields: [DeviceField<f64>; 2],
    /// Of an operator that is not one of lines.
    pub residual: Option<DeviceField<f64>>,
}

impl DeviceOperator {
    /// Those of a level on the CPU, the right side zero; `next` is the one below it.
    pub fn new(
        stream: &Stream,
        level: &Level,
        next: Option<&DeviceLevel>,
    ) -> Result<DeviceOperator, GpuError> {
        let operator = &level.operator;
        let shape = &operator.shape;
        let stored = Stored::of(shape);
        let columns = shape.x.len;
        let right_side = DeviceField::new(stream, columns, &stored)?;
        let mut numbers = Vec::new();
        let mut keep = |values: &[f64]| -> Result<u64, GpuError> {
            let buffer = Buffer::from_slice(stream, values)?;
            let address = buffer.address();
            numbers.push(buffer);
            Ok(address)
        };
        let mut lines = [0; 3];
        for (address, line) in lines.iter_mut().zip(&operator.lines) {
            *address = keep(&parts_of(line))?;
        }
        let mut weights = [0; 3];
        if let Some(Transfer::Lines(of)) = &level.weights {
            for (address, of) in weights.iter_mut().zip(of) {
                *address = keep(&[&of.left[..], &of.right[..]].concat())?;
            }
        }
        let (inverses, kinds) = operator.inverses();
        let kinds: Vec<u32> = kinds.iter().map(|&kind| kind as u32).collect();
        let inverse_of = Buffer::from_slice(stream, &kinds)?;
        let inverses = keep(&inverses.concat())?;
        let size = size_of_lines(&operator.lines);
        let own = shape.own();
        let calm = Calm::of(operator, level.weights.as_ref());
        let points = DevicePoints::of(stream, level, next.map(|next| &next.shape))?;
        let below = next.map(|next| &next.operator.arguments);
        let coarse = next.map_or(0..0, |next| computed_rows(shape, &next.shape));
        let arguments = BoxPass {
            right_side: right_side.address(),
            coarse_right_side: next.map_or(0, |next| next.operator.right_side.address()),
            lines,
            weights,
            inverse_of: inverse_of.address(),
            inverses,
            plane: pitch_of(columns) as i64,
            coarse_plane: below.map_or(0, |below| below.plane),
            diagonal: operator.diagonal_inside(),
            size,
            coarse_size: below.map_or([0; 3], |below| below.size),
            wraps: operator.lines.each_ref().map(|line| line.axis.wraps.into()),
            plane_start: own.start as i32,
            plane_end: own.end as i32,
            calm: calm.points.concat().try_into().expect("two of each axis"),
            calm_row: calm.row,
            calm_weights: calm.weights,
            even_coupling: calm.even_coupling,
            calm_inverse: calm.inverse,
            coarse_start: coarse.start as i32,
            coarse_end: coarse.end as i32,
            measured: -1,
            points: points.as_ref().map_or(0, DevicePoints::address),
            ..bytemuck::Zeroable::zeroed()
        };
        Ok(DeviceOperator {
            right_side,
            arguments,
            points,
            _tables: Tables {
                _numbers: numbers,
                _inverse_of: inverse_of,
            },
        })
    }

    /// What kernels are told, without fields.
    pub fn arguments(&self) -> BoxPass {
        self.arguments
    }

    /// Takes the right side of the level.
    pub fn load_right_side(&self, stream: &Stream, level: &Level) -> Result<(), GpuError> {
        let around = Stored::of(&level.operator.shape).around(DEPTH);
        self.right_side
            .write_many(stream, around, |z| level.right_side.row(z))
    }
}

impl DeviceLevel {
    /// The level as it is on the CPU, all fields zero; `next` is the one below it.
    pub fn new(
        stream: &Stream,
        level: &Level,
        next: Option<&DeviceLevel>,
    ) -> Result<DeviceLevel, GpuError> {
        let operator = DeviceOperator::new(stream, level, next)?;
        let shape = &level.operator.shape;
        let stored = Stored::of(shape);
        let field = || DeviceField::new(stream, shape.x.len, &stored);
        Ok(DeviceLevel {
            fields: [field()?, field()?],
            residual: operator.points.as_ref().map(|_| field()).transpose()?,
            shape: shape.clone(),
            operator,
        })
    }

    /// Where sums go.
    pub fn measure_to(&mut self, place: LevelPass) {
        let arguments = &mut self.operator.arguments;
        (arguments.sums, arguments.sum_pitch) = (place.sums, place.sum_pitch);
    }

    /// Takes `field` for its own, and gives back what it had.
    pub fn replace_field(&mut self, field: DeviceField<f64>) -> DeviceField<f64> {
        std::mem::replace(&mut self.fields[0], field)
    }

    /// What passes take as the right side from now on, by its address.
    pub fn set_right_side(&mut self, address: u64) {
        self.operator.arguments.right_side = address;
    }

    /// What solves the level directly: a factor, and which points have an equation.
    pub fn solve_by(&mut self, factor: u64, active: u64) {
        (
            self.operator.arguments.factor,
            self.operator.arguments.active,
        ) = (factor, active);
    }

    /// Where the field is now.
    pub fn field(&self) -> &DeviceField<f64> {
        &self.fields[0]
    }

    /// What kernels beside passes are told.
    pub fn arguments(&self) -> BoxPass {
        BoxPass {
            before: self.fields[0].address(),
            after: self.fields[0].address(),
            ..self.operator.arguments
        }
    }

    /// Takes field and right side of the level.
    pub fn upload(&self, stream: &Stream, level: &Level) -> Result<(), GpuError> {
        let around = Stored::of(&self.shape).around(DEPTH);
        self.fields[0].write_many(stream, around, |z| level.u.row(z))?;
        self.operator.load_right_side(stream, level)
    }

    /// Copies the own planes of the field to `u`.
    pub fn save(
        &self,
        stream: &Stream,
        operator: &Operator,
        u: &mut Field<f64>,
    ) -> Result<(), GpuError> {
        self.fields[0].read_many(stream, self.shape.own(), |z, plane| {
            u.row_mut(z).copy_from_slice(plane);
            operator.beyond(u.row_mut(z));
        })
    }

    /// Gives the launches of `plan` to `stream`, with `correction` as the next level's field. Collective if the level is
    /// spread: each launch computes the own planes, from some more.
    pub fn pass(
        &mut self,
        stream: &Stream,
        rows: &mut LevelRows<'_>,
        passes: &Passes,
        plan: &Plan<'_>,
        correction: u64,
    ) -> Result<(), GpuError> {
        let Plan {
            start,
            steps: all,
            measured,
            restrict,
            solved,
        } = *plan;
        let mut done = 0;
        for (steps, known) in launches(all.len(), (start, measured, restrict)) {
            let (start, measured, restrict) = known;
            let these = &all[done..done + steps];
            let place = place_of(steps, Points::of(these, self.lines_end()), known);
            let (kernel, loaded) = (&KERNELS[place], passes.loaded[place].as_ref());
            let loaded = loaded.expect("it was loaded");
            let margin = margin_of(steps, measured, restrict);
            if start == START_FIELD || start == START_CORRECTED {
                exchange::halo(stream, rows, &self.shape, &self.fields[0], margin)?;
            }
            let mut omega = [0.0; MOST_STEPS];
            for (omega, step) in omega.iter_mut().zip(these) {
                *omega = step.omega;
            }
            let [wide, high] = kernel.own(known);
            let [nx, ny, _] = self.operator.arguments.size.map(|n| n as usize);
            let tiles = [nx.div_ceil(wide), ny.div_ceil(high)];
            let planes =
                self.planes_of_a_block(tiles[0] * tiles[1], margin, steps, loaded.resident);
            let arguments = BoxPass {
                before: self.fields[0].address(),
                after: if steps > 0 {
                    self.fields[1].address()
                } else {
                    0
                },
                correction,
                coarse_right_side: if restrict {
                    self.operator.arguments.coarse_right_side
                } else {
                    0
                },
                omega,
                colour: match (these, solved) {
                    ([], Some(solved)) => of_kernels(solved.other()).into(),
                    _ => colour_of(these).into(),
                },
                start,
                measured: measured.map_or(-1, |at| at as i32),
                planes: planes as i32,
                ..self.operator.arguments
            };
            let blocks = self.shape.own().len().div_ceil(planes);
            let launch = Launch::new(&loaded.function)
                .grid((tiles[0] as u32, tiles[1] as u32, blocks as u32))
                .block(kernel.threads())
                .shared(kernel.shared() as u32);
            // SAFETY: the parameter is a `box_pass`, made by `new` with arrays of its extent, which live until the stream
            // has been waited for; what is read is not what is written.
            unsafe { launch.launch(stream, (ByValue(arguments),)) }?;
            if steps > 0 {
                self.fields.swap(0, 1);
            }
            done += steps;
        }
        Ok(())
    }

    /// Whether the operator is one of lines, none of which wraps around.
    fn lines_end(&self) -> bool {
        self.operator.points.is_none() && self.operator.arguments.wraps == [0; 3]
    }

    /// Planes of a block: those with which waves of `resident` blocks, all of them at once, go through the fewest planes.
    /// The margins of a block are computed twice.
    fn planes_of_a_block(
        &self,
        tiles: usize,
        margin: usize,
        steps: usize,
        resident: usize,
    ) -> usize {
        let nz = self.shape.own().len();
        let planes_in = |parts: usize| nz.div_ceil(parts).next_multiple_of(FEWEST_PLANES);
        // Planes before and behind, and what the last step is behind the first.
        let beyond = 2 * margin + steps + 3;
        // Tiles at the sides take longer: they are waited for at the end as if there were so many waves more.
        const WAITED_FOR: usize = 2;
        let cost = |&parts: &usize| {
            let blocks = tiles * nz.div_ceil(planes_in(parts));
            (blocks.div_ceil(resident) + WAITED_FOR) * (planes_in(parts) + beyond)
        };
        let of_waves = (MOST_WAVES * resident).div_ceil(tiles);
        let most = of_waves.max(MOST_PARTS).min(nz.div_ceil(FEWEST_PLANES));
        planes_in((1..=most).min_by_key(cost).unwrap_or(1))
    }
}

/// A line as kernels have it.
fn parts_of(line: &Line) -> Vec<f64> {
    let n = line.axis.len;
    let before: Vec<f64> = (0..n).map(|i| line.before(i)).collect();
    let free: Vec<f64> = line
        .free
        .iter()
        .map(|&free| f64::from(u8::from(free)))
        .collect();
    [&before[..], &line.coupling, &line.excess, &line.mass, &free].concat()
}

fn size_of_lines(lines: &[Line; 3]) -> [i32; 3] {
    lines.each_ref().map(|line| line.axis.len as i32)
}

/// The points of a level of which all couplings are the same: fields of [`BoxPass`].
#[derive(Default)]
struct Calm {
    points: [[i32; 2]; 3],
    row: [f64; 6],
    weights: [f64; 6],
    even_coupling: f64,
    inverse: f64,
}

impl Calm {
    /// `weights_of`: to the next level.
    fn of(operator: &Operator, weights_of: Option<&Transfer>) -> Calm {
        let points = operator.lines.each_ref().map(calm_points);
        if operator.points.is_some() || points.iter().any(|[start, end]| start == end) {
            return Calm::default();
        }
        let first @ [x, y, z] = points.map(|[start, _]| start as usize);
        let row = operator.row_of(y, z);
        let mut weights = [0.0; 6];
        if let Some(Transfer::Lines(of)) = weights_of {
            for ((weights, of), [start, end]) in weights.chunks_mut(2).zip(of).zip(points) {
                // Points between coarse ones have odd numbers.
                let between = start | 1;
                if between < end {
                    let j = between as usize / 2;
                    weights.copy_from_slice(&[of.left[j], of.right[j]]);
                }
            }
        }
        Calm {
            points,
            row: [
                row.across, row.north, row.south, row.up, row.down, row.excess,
            ],
            weights,
            even_coupling: operator.even_coupling(first).unwrap_or(0.0),
            inverse: operator.inverse(y, z as isize)[x],
        }
    }
}

/// The longest stretch of points, not at an end, that have an equation and are all the same.
fn calm_points(line: &Line) -> [i32; 2] {
    let n = line.axis.len as isize;
    let points = match line.axis.wraps {
        true => 0..n,
        false => 1..n - 1,
    };
    let identity = |i: isize| {
        let i = i as usize;
        let numbers = [
            line.before(i),
            line.coupling[i],
            line.excess[i],
            line.mass[i],
        ];
        (line.free[i], numbers.map(f64::to_bits))
    };
    let [start, end] = longest_run(points, identity);
    match start < end && line.free[start as usize] {
        true => [start, end],
        false => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::multigrid::finest::End;
    use crate::engine::cpu::multigrid::space::hierarchy::{Hierarchy, finest_shape};
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
        assert_eq!(names(&of(1, 1), false), ["box_2", "box_1", "box_0"]);
        let colours = Smoothing::of_colours(&of(2, 2), [1.4, 1.2]);
        let red_black = ["down", "up", "between", "begun"].map(|of| format!("box_red_black_{of}"));
        let others = ["box_2", "box_0"].map(str::to_string);
        assert_eq!(names(&colours, false), [&red_black[..], &others].concat());
        assert_eq!(names(&colours, true), all_points);
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
            let kernel = &KERNELS[place_of(steps.len(), Points::of(&steps, true), known)];
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

    /// By the definitions: h² / h along an axis, and half of each coarse neighbour.
    #[test]
    fn what_calm_points_are_told_is_that_of_a_cube() {
        let of = |h: f64| {
            let line = || Line::finest(9, [End::Fixed, End::Fixed], h);
            let lines = [line(), line(), line()];
            let weights = lines.each_ref().map(|line| line.coarser().1);
            let shape = finest_shape(&lines, vec![0, 9], 0, 0);
            let operator = Operator::new(lines, shape);
            Calm::of(&operator, Some(&Transfer::Lines(weights)))
        };
        let cube = of(0.25);
        assert_eq!(cube.points, [[1, 8]; 3]);
        assert_eq!(cube.row, [0.0625, 1.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(cube.weights, [0.5; 6]);
        assert_eq!((cube.even_coupling, cube.inverse), (0.25, 1.0 / 1.5));
        // No power of two.
        let cube = of(0.3);
        assert_eq!((cube.points, cube.even_coupling), ([[1, 8]; 3], 0.0));
    }

    #[test]
    fn calm_points_are_inside_and_the_same() {
        let line = Line::finest(20, [End::Fixed, End::Mirror], 0.5);
        assert_eq!(calm_points(&line), [1, 19]);
        let ring = Line::finest(20, [End::Wrap, End::Wrap], 0.5);
        assert_eq!(calm_points(&ring), [0, 20]);
        let small = Line::finest(3, [End::Fixed, End::Fixed], 0.5);
        assert_eq!(calm_points(&small), [1, 2]);
        assert_eq!(calm_points(&small.coarser().0.coarser().0), [0, 0]);
    }
}
