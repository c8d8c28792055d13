//! Steps of conjugate gradients and of Chebyshev's iteration on a GPU, with the bits of the CPU's: what is done on the finest
//! level of a plane or a box beside passes.
//!
//! The fields stay in the GPU's memory. After each step the host reads its sums, and decides.
#![allow(unsafe_code)] // Launches of kernels.

use std::ops::Range;

use bytemuck::Pod;
use crosswarp_cuda::{ByValue, Function, Launch, Stream};
use crosswarp_prim::Superaccumulator;

use super::equations::{DeviceEquations, EquationsOnGpu};
use super::storage::{DeviceField, Stored};
use super::sums::{self, LeafSums};
use super::{GpuCycles, exchange, same_inverse};
use crate::engine::cpu::multigrid::finest::Finest;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::space::level::Level;
use crate::engine::cuda::arena::Arena;
use crate::engine::cuda::kernels;
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::gpu::Gpu;
use crate::gpu::box_arguments::BoxPass;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{COLUMN_THREADS, FinestStep, LevelPass};

/// Kinds of sums that a step makes, at most.
const MOST_SUMS: usize = 3;

/// What the kernels of a kind of level are called: as the fields of [`Kernels`].
type Names = [&'static str; 7];

macro_rules! names {
    ($of:literal) => {
        [
            concat!($of, "_measure"),
            concat!($of, "_residual"),
            concat!($of, "_curve"),
            concat!($of, "_multiply"),
            concat!($of, "_descend"),
            concat!($of, "_turn"),
            concat!($of, "_chebyshev"),
        ]
    };
}

/// What kernels are told of a finest level.
pub(crate) trait FinestPass: Pod {
    /// The kernels.
    fn kernels(&self) -> Names;
    /// The same with sums in this place.
    fn measuring_to(self, place: LevelPass) -> Self;
    /// The same without a right side.
    fn without_right_side(self) -> Self;
}

impl FinestPass for LevelPass {
    fn kernels(&self) -> Names {
        names!("plane")
    }
    fn measuring_to(self, place: LevelPass) -> Self {
        LevelPass {
            sums: place.sums,
            sum_pitch: place.sum_pitch,
            ..self
        }
    }
    fn without_right_side(self) -> Self {
        LevelPass {
            right_side: 0,
            ..self
        }
    }
}

impl FinestPass for BoxPass {
    fn kernels(&self) -> Names {
        match self.points {
            0 => names!("box"),
            _ => names!("points"),
        }
    }
    fn measuring_to(self, place: LevelPass) -> Self {
        BoxPass {
            sums: place.sums,
            sum_pitch: place.sum_pitch,
            ..self
        }
    }
    fn without_right_side(self) -> Self {
        BoxPass {
            right_side: 0,
            ..self
        }
    }
}

/// Those kernels on a GPU.
struct Kernels {
    measure: Function,
    residual: Function,
    curve: Function,
    multiply: Function,
    descend: Function,
    turn: Function,
    chebyshev: Function,
}

/// A field of the steps. Chebyshev's iteration has its direction d in `P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    U,
    R,
    P,
    Q,
}

/// The fields of a method, and the kernels that work on them. `K` has what else is needed: the level's tables, or all levels.
pub(crate) struct GpuSteps<A, K> {
    /// What kernels are told of the level.
    arguments: A,
    kept: K,
    shape: Shape,
    /// Blocks of a launch.
    blocks: usize,
    /// By [`Part`].
    fields: [DeviceField<f64>; 4],
    kernels: Kernels,
    sums: LeafSums,
    /// 1 / the diagonal, where kernels do not look it up.
    inverse: f64,
    stream: Stream,
}

/// On the finest level of a plane, without others.
pub(crate) type PlaneSteps = GpuSteps<LevelPass, DeviceEquations>;
/// With the levels of a plane, whose finest one has z for its field and r on the right.
pub(crate) type PlaneGradients = GpuSteps<LevelPass, GpuCycles>;

/// What is known of a level before there are fields.
pub(super) struct Made<A> {
    pub arguments: A,
    pub shape: Shape,
    /// Columns, and rows of leaves.
    pub leaves: (usize, Range<usize>),
    /// See [`GpuSteps`].
    pub inverse: f64,
    pub arena: Arena,
}

/// Fields but for u, kernels and room for sums.
pub(super) struct Room<A> {
    made: Made<A>,
    /// r, p and q.
    fields: [DeviceField<f64>; 3],
    kernels: Kernels,
    sums: LeafSums,
}

impl<A: FinestPass> Made<A> {
    /// A field of the level, all zero.
    pub fn field(&self) -> Result<DeviceField<f64>, GpuError> {
        let shape = &self.shape;
        DeviceField::new(&self.arena, shape.x.len, &Stored::of(shape))
    }

    /// Takes all that steps need but for u: nothing can fail then.
    pub fn room(self) -> Result<Room<A>, GpuError> {
        let device = self.arena.stream().device();
        let names = self.arguments.kernels();
        kernels::compile_together(device, names.into_iter().chain(sums::KERNELS));
        let find = |name| kernels::find_plain(device, name);
        let [measure, residual, curve, multiply, descend, turn, chebyshev] = names;
        let kernels = Kernels {
            measure: find(measure)?,
            residual: find(residual)?,
            curve: find(curve)?,
            multiply: find(multiply)?,
            descend: find(descend)?,
            turn: find(turn)?,
            chebyshev: find(chebyshev)?,
        };
        let (columns, bands) = self.leaves.clone();
        Ok(Room {
            fields: [self.field()?, self.field()?, self.field()?],
            sums: LeafSums::new(&self.arena, columns, bands, MOST_SUMS)?,
            kernels,
            made: self,
        })
    }
}

impl<A: FinestPass> Room<A> {
    /// Where r is.
    pub fn residual(&self) -> u64 {
        self.fields[0].address()
    }

    /// With `u`, and what else is needed.
    pub fn with<K>(self, kept: K, u: DeviceField<f64>) -> GpuSteps<A, K> {
        let Room {
            made,
            fields: [r, p, q],
            kernels,
            sums,
        } = self;
        let (columns, bands) = made.leaves;
        GpuSteps {
            arguments: made.arguments.measuring_to(sums.place()),
            kept,
            shape: made.shape,
            blocks: columns.div_ceil(COLUMN_THREADS) * bands.len(),
            fields: [u, r, p, q],
            kernels,
            sums,
            inverse: made.inverse,
            stream: made.arena.stream().clone(),
        }
    }
}

impl<A: FinestPass, K> GpuSteps<A, K> {
    fn field(&self, part: Part) -> &DeviceField<f64> {
        &self.fields[part as usize]
    }

    /// Takes the own rows of `from`.
    pub fn load(&self, part: Part, from: &Field<f64>) -> Result<(), GpuError> {
        let own = self.shape.own();
        self.field(part)
            .write_many(&self.stream, own, |y| from.row(y))
    }

    /// Copies the own rows to `to`.
    pub fn save(&self, part: Part, to: &mut Field<f64>) -> Result<(), GpuError> {
        self.field(part).download(&self.stream, to)
    }

    /// What a kernel is told: all fields, and `weights`.
    fn step(&self, weights: [f64; 2]) -> FinestStep {
        let [u, r, p, q] = self.fields.each_ref().map(DeviceField::address);
        FinestStep {
            u,
            r,
            p,
            q,
            weights,
            sum_kind: self.sums.place().sum_kind,
        }
    }

    fn launch(&self, kernel: &Function, arguments: A, step: FinestStep) -> Result<(), GpuError> {
        let launch = Launch::new(kernel)
            .grid(self.blocks as u32)
            .block(COLUMN_THREADS as u32);
        // SAFETY: the parameters are those of a kernel of this kind of level, whose arrays have its extent and live until the
        // stream has been waited for; blocks cover the columns of all leaves; fields that neighbours are read of are not
        // written by the same kernel.
        Ok(unsafe { launch.launch(&self.stream, (ByValue(arguments), ByValue(step))) }?)
    }

    /// Makes the rows around the own ones what they are where they are computed. Collective.
    fn halo(&self, rows: &mut LevelRows<'_>, part: Part) -> Result<(), GpuError> {
        exchange::halo(&self.stream, rows, &self.shape, self.field(part), 1)
    }

    /// The first sums that a kernel has left.
    fn read<const N: usize>(
        &self,
        rows: &mut LevelRows<'_>,
    ) -> Result<[Superaccumulator<f64>; N], GpuError> {
        self.sums.publish(&self.stream, N)?;
        self.sums.read(&self.stream, rows)
    }

    /// The squares of b − Au, and those of u times its diagonal. Collective.
    pub fn measure(
        &self,
        rows: &mut LevelRows<'_>,
    ) -> Result<[Superaccumulator<f64>; 2], GpuError> {
        self.halo(rows, Part::U)?;
        self.launch(&self.kernels.measure, self.arguments, self.step([0.0; 2]))?;
        self.read(rows)
    }

    /// r = b − Au. Collective.
    pub fn residual(&self, rows: &mut LevelRows<'_>) -> Result<(), GpuError> {
        self.halo(rows, Part::U)?;
        self.launch(&self.kernels.residual, self.arguments, self.step([0.0; 2]))
    }

    /// p = r + `beta` p; without it p = r.
    pub fn turn(&self, beta: Option<f64>) -> Result<(), GpuError> {
        self.turn_to(self.field(Part::R).address(), beta)
    }

    fn turn_to(&self, address: u64, beta: Option<f64>) -> Result<(), GpuError> {
        let weights = beta.map_or([0.0; 2], |beta| [beta, 1.0]);
        let step = FinestStep {
            r: address,
            ..self.step(weights)
        };
        self.launch(&self.kernels.turn, self.arguments, step)
    }

    /// ⟨r, r⟩, in the inner product in which the operator is symmetric.
    pub fn square(&self, rows: &mut LevelRows<'_>) -> Result<Superaccumulator<f64>, GpuError> {
        let r = self.field(Part::R).address();
        self.product_of(rows, r, r)
    }

    /// ⟨p, r⟩.
    pub fn product_of_direction(
        &self,
        rows: &mut LevelRows<'_>,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        self.product_of(
            rows,
            self.field(Part::P).address(),
            self.field(Part::R).address(),
        )
    }

    fn product_of(
        &self,
        rows: &mut LevelRows<'_>,
        a: u64,
        b: u64,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        let step = FinestStep {
            u: a,
            r: b,
            ..self.step([0.0; 2])
        };
        self.launch(&self.kernels.multiply, self.arguments, step)?;
        let [sum] = self.read(rows)?;
        Ok(sum)
    }

    /// q = −Ap. −⟨p, Ap⟩. Collective.
    pub fn curve(&self, rows: &mut LevelRows<'_>) -> Result<Superaccumulator<f64>, GpuError> {
        self.halo(rows, Part::P)?;
        let arguments = self.arguments.without_right_side();
        self.launch(&self.kernels.curve, arguments, self.step([0.0; 2]))?;
        let [sum] = self.read(rows)?;
        Ok(sum)
    }

    /// u += `alpha` p, r += `alpha` q, and if `turns` q = −`alpha` q. The squares of r and of u times its diagonal, and
    /// ⟨r, r⟩.
    pub fn descend(
        &self,
        rows: &mut LevelRows<'_>,
        alpha: f64,
        turns: bool,
    ) -> Result<[Superaccumulator<f64>; 3], GpuError> {
        let weights = [alpha, f64::from(u8::from(turns))];
        self.launch(&self.kernels.descend, self.arguments, self.step(weights))?;
        self.read(rows)
    }

    /// u += d, r = b − Au, d = `keep` d + `gain` D⁻¹r. The squares of r and of u times its diagonal. Collective.
    pub fn chebyshev(
        &mut self,
        rows: &mut LevelRows<'_>,
        [keep, gain]: [f64; 2],
    ) -> Result<[Superaccumulator<f64>; 2], GpuError> {
        self.halo(rows, Part::U)?;
        self.halo(rows, Part::P)?;
        let step = self.step([keep, gain * self.inverse]);
        self.launch(&self.kernels.chebyshev, self.arguments, step)?;
        self.fields.swap(Part::U as usize, Part::R as usize);
        self.fields.swap(Part::P as usize, Part::Q as usize);
        self.read(rows)
    }
}

impl<K> GpuSteps<BoxPass, K> {
    /// Copies u to that of `level`.
    pub fn save_field(&self, level: &mut Level) -> Result<(), GpuError> {
        let Level { operator, u, .. } = level;
        self.save(Part::U, u)?;
        for z in self.shape.own() {
            operator.beyond(u.row_mut(z));
        }
        Ok(())
    }
}

impl PlaneSteps {
    /// Copies the equations, the right side and the field. `first`: row 0's number in the leaves.
    pub fn plane(
        gpu: &Gpu,
        finest: &Finest,
        u: &Field<f64>,
        right_side: Option<&Field<f64>>,
        first: usize,
    ) -> Result<Self, GpuError> {
        DeviceEquations::check(finest)?;
        let stream = Stream::new(&gpu.device)?;
        let arena = Arena::new(&stream);
        let equations = DeviceEquations::new(
            &arena,
            finest,
            right_side.into(),
            EquationsOnGpu::default(),
            first,
        )?;
        let made = Made {
            arguments: equations.arguments,
            shape: finest.shape.clone(),
            leaves: (finest.shape.x.len, equations.bands.clone()),
            inverse: same_inverse(finest),
            arena,
        };
        let field = made.field()?;
        let steps = made.room()?.with(equations, field);
        steps.load(Part::U, u)?;
        Ok(steps)
    }
}

/// Levels that can precondition.
pub(crate) trait Preconditioner {
    /// Where z is.
    fn correction(&self) -> u64;
    /// z = a cycle from zero for `r`, the right side that was given; `exponent` as of `Hierarchy::precondition`.
    fn cycle(
        &mut self,
        rows: &mut LevelRows<'_>,
        r: &DeviceField<f64>,
        exponent: i32,
    ) -> Result<(), GpuError>;
}

impl<A: FinestPass, K: Preconditioner> GpuSteps<A, K> {
    /// z = a cycle from zero for r. Collective.
    pub fn precondition(
        &mut self,
        rows: &mut LevelRows<'_>,
        exponent: i32,
    ) -> Result<(), GpuError> {
        self.kept
            .cycle(rows, &self.fields[Part::R as usize], exponent)
    }

    /// p = z + `beta` p; without it p = z.
    pub fn turn_to_correction(&self, beta: Option<f64>) -> Result<(), GpuError> {
        self.turn_to(self.kept.correction(), beta)
    }

    /// ⟨z, `part`⟩.
    pub fn product_of_correction(
        &self,
        rows: &mut LevelRows<'_>,
        part: Part,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        self.product_of(rows, self.kept.correction(), self.field(part).address())
    }
}
