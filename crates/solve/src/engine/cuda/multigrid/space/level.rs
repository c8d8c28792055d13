//! A level of a box in the memory of a GPU.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{ByValue, Launch, Stream};

use super::pass_kernels::{KERNELS, Order, Passes, launches, margin_of, place_of};
use super::points::DevicePoints;
use crate::engine::cpu::multigrid::galerkin::computed_rows;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::smoothing::{Colour, Step};
use crate::engine::cpu::multigrid::space::level::{DEPTH, Level};
use crate::engine::cpu::multigrid::space::line::Line;
use crate::engine::cpu::multigrid::space::operator::Operator;
use crate::engine::cpu::multigrid::space::transfer::Transfer;
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::engine::cuda::multigrid::pass_kernels::{colour_of, of_kernels};
use crate::engine::cuda::multigrid::storage::{DeviceField, Stored, pitch_of};
use crate::engine::cuda::multigrid::{exchange, longest_run};
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::gpu::box_arguments::{BoxPass, MOST_STEPS};
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{LevelPass, START_CORRECTED, START_FIELD};

/// Blocks along z that are considered: this many,
const MOST_PARTS: usize = 12;
/// or as many as make so many waves.
const MOST_WAVES: usize = 6;
/// Planes of a block, at least.
const FEWEST_PLANES: usize = 2;
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
    _numbers: Vec<ArenaBuffer<f64>>,
    _inverse_of: ArenaBuffer<u32>,
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
        arena: &Arena,
        level: &Level,
        next: Option<&DeviceLevel>,
    ) -> Result<DeviceOperator, GpuError> {
        let operator = &level.operator;
        let shape = &operator.shape;
        let stored = Stored::of(shape);
        let columns = shape.x.len;
        let right_side = DeviceField::new(arena, columns, &stored)?;
        let mut numbers = Vec::new();
        let mut keep = |values: &[f64]| -> Result<u64, GpuError> {
            let buffer = arena.copied(values)?;
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
        let inverse_of = arena.copied(&kinds)?;
        let inverses = keep(&inverses.concat())?;
        let size = size_of_lines(&operator.lines);
        let own = shape.own();
        let calm = Calm::of(operator, level.weights.as_ref());
        let points = DevicePoints::of(arena, level, next.map(|next| &next.shape))?;
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
        arena: &Arena,
        level: &Level,
        next: Option<&DeviceLevel>,
    ) -> Result<DeviceLevel, GpuError> {
        let operator = DeviceOperator::new(arena, level, next)?;
        let shape = &level.operator.shape;
        let stored = Stored::of(shape);
        let field = || DeviceField::new(arena, shape.x.len, &stored);
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
            let wraps = self.operator.arguments.wraps != [0; 3];
            let place = place_of(steps, Order::of(these, wraps), known);
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
    use crate::engine::cpu::multigrid::space::hierarchy::finest_shape;

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
