//! Cycles on a GPU, with the bits of the CPU's.
//!
//! The levels are made on the CPU; their operators and weights, of which most rows are the same where there is no mask,
//! are copied once. Field, right side and corrections stay in the GPU's memory. After each cycle the host reads the sum of
//! the squares of the residual, and decides.
#![allow(unsafe_code)] // Launches of kernels.

mod level;
mod small;
mod storage;

use crosswarp_cuda::{Buffer, ByValue, Function, Launch, PinnedBuffer, Stream};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES as LEAF_COLUMNS, ROWS as LEAF_ROWS};

use self::level::{DeviceLevel, Kernel, Plan};
use self::small::Small;
use self::storage::{DeviceField, DeviceTable, pitch_of, upload};
use crate::engine::cpu::multigrid::cycle::power_of_two;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::hierarchy::{Hierarchy, Smoothing};
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cuda::kernels;
use crate::engine::cuda::sums::sum_of_squares;
use crate::field::storage::Field;
use crate::gpu::Gpu;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    END_FIXED, END_MIRROR, END_OPEN, END_WRAP, LEVEL_THREADS, LevelPass, START_CORRECTED,
    START_CORRECTION, START_FIELD, START_ZERO, SUM_COPIES,
};

/// Blocks that add up leaves: so many keep a large GPU busy.
const ADDING_BLOCKS: usize = 264;

/// Rows of a block on coarse levels are a multiple of it.
const COARSE_ROWS: usize = 2;

/// A coarse level.
struct Coarse {
    level: DeviceLevel<f32>,
    right_side: DeviceField<f32>,
    _tables: [DeviceTable<f32>; 2],
    /// From here to the next level.
    _transfer: Option<DeviceTable<f32>>,
}

/// All levels, in the memory of a GPU.
pub(crate) struct GpuCycles {
    finest: DeviceLevel<f64>,
    levels: Vec<Coarse>,
    smoothing: Smoothing,
    coarse_smoothing: Smoothing,
    /// The finest level's ω are multiplied by it.
    inverse: f64,
    exponent: i32,
    restrict_right_side: Function,
    square: Function,
    add_leaves: Function,
    publish_sum: Function,
    small: Small,
    /// For the host: the words of a sum.
    total: PinnedBuffer<u64>,
    stream: Stream,
    _kept: Kept,
}

/// What kernels reach by address only.
struct Kept {
    _right_side: Option<DeviceField<f64>>,
    _fixed: Option<Buffer<u8>>,
    _coefficients: Option<[DeviceTable<f64>; 2]>,
    _transfer: DeviceTable<f32>,
    _sums: Buffer<f64>,
    _words: Buffer<u64>,
    _dense: (Buffer<f64>, Buffer<u8>),
}

impl GpuCycles {
    /// Copies the levels, the field and the right side. `first`: row 0's number in the leaves.
    pub(crate) fn new(
        gpu: &Gpu,
        hierarchy: &Hierarchy<f32>,
        u: &Field<f64>,
        right_side: Option<&Field<f64>>,
        first: usize,
    ) -> Result<GpuCycles, GpuError> {
        let finest = &hierarchy.finest;
        let (nx, ny) = (finest.shape.x.len, finest.shape.y.len);
        let longest = nx.max(ny);
        if longest > i32::MAX as usize - 4096 {
            return Err(GpuError::TooLong { longest });
        }
        let device = &gpu.device;
        let stream = Stream::new(device)?;
        let levels = coarse_levels(gpu, hierarchy, &stream)?;
        let right_side = right_side
            .map(|from| {
                let field = DeviceField::new(&stream, nx, ny)?;
                field.upload(&stream, from)?;
                Ok::<_, GpuError>(field)
            })
            .transpose()?;
        let fixed = finest
            .fixed
            .as_ref()
            .map(|from| {
                let pitch = pitch_of(nx);
                let buffer = Buffer::zeroed(&stream, pitch * ny)?;
                upload(&stream, &buffer, pitch, ny, from)?;
                Ok::<_, GpuError>(buffer)
            })
            .transpose()?;
        let coefficients = finest
            .coefficients
            .as_ref()
            .map(|from| {
                let [parts, inverse] = from.tables();
                Ok::<_, GpuError>([
                    DeviceTable::new(&stream, parts, ny)?,
                    DeviceTable::new(&stream, inverse, ny)?,
                ])
            })
            .transpose()?;
        let coarse_ny = hierarchy.levels[0].operator.shape.y.len;
        let transfer = DeviceTable::new(&stream, &hierarchy.transfer, coarse_ny)?;
        let bands = (ny + first).div_ceil(LEAF_ROWS);
        let sum_pitch = nx.next_multiple_of(LEAF_COLUMNS);
        let sums = Buffer::new(device, bands * sum_pitch)?;
        let words = Superaccumulator::<f64>::WORDS;
        let copies = Buffer::zeroed(&stream, SUM_COPIES * words)?;
        let total = PinnedBuffer::zeroed(device, words)?;
        let next = levels.first().expect("there is a coarse level");
        let [operator, inverse] = tables(&coefficients);
        let [calm_start, calm_end] =
            longest_run(ny, |y| hierarchy.transfer.identity(y as isize / 2));
        let [transfer_index, transfer_rows] = transfer.addresses();
        let arguments = LevelPass {
            right_side: right_side.as_ref().map_or(0, DeviceField::address),
            fixed: fixed.as_ref().map_or(0, Buffer::address),
            operator_index: operator[0],
            operator_rows: operator[1],
            inverse_index: inverse[0],
            inverse_rows: inverse[1],
            transfer_index,
            transfer_rows,
            sums: sums.address(),
            sum_pitch: sum_pitch as i64,
            ends: finest
                .ends
                .as_flattened()
                .iter()
                .map(|&end| end_code(end))
                .collect::<Vec<_>>()
                .try_into()
                .expect("two axes have four ends"),
            first: first as i32,
            words: copies.address(),
            total: total.address(),
            leaf_bands: bands as i32,
            calm_start,
            calm_end,
            ..extent(&finest.shape, Some(next))
        };
        let kind = if coefficients.is_some() {
            "varying"
        } else {
            "plain"
        };
        let name = |steps: &str| format!("finest_{kind}_{steps}");
        let between = Some((START_CORRECTED, Some(2), true));
        let passes = [
            ("2_2", 4, between),
            ("2", 2, None),
            ("1", 1, None),
            ("0", 0, None),
        ]
        .map(|(steps, count, only)| Kernel::new(device, &name(steps), count, only))
        .into_iter()
        .collect::<Result<_, _>>()?;
        let level = DeviceLevel::new(&stream, arguments, passes, LEAF_ROWS)?;
        level.upload(&stream, u)?;
        let dense = &hierarchy.dense;
        let active: Vec<u8> = dense.active().iter().map(|&active| active.into()).collect();
        let factor = (
            Buffer::from_slice(&stream, dense.factor())?,
            Buffer::from_slice(&stream, &active)?,
        );
        let small = Small::new(gpu, &stream, &levels, &factor, &hierarchy.coarse_smoothing)?;
        let find = |name| kernels::find_plain(device, name);
        Ok(GpuCycles {
            finest: level,
            levels,
            smoothing: hierarchy.smoothing.clone(),
            coarse_smoothing: hierarchy.coarse_smoothing.clone(),
            inverse: if coefficients.is_some() {
                1.0
            } else {
                finest.inverse()
            },
            exponent: 0,
            restrict_right_side: find("level_restrict_right_side")?,
            square: find("level_square")?,
            add_leaves: find("level_add_leaves")?,
            publish_sum: find("level_publish_sum")?,
            small,
            total,
            stream,
            _kept: Kept {
                _right_side: right_side,
                _fixed: fixed,
                _coefficients: coefficients,
                _transfer: transfer,
                _sums: sums,
                _words: copies,
                _dense: factor,
            },
        })
    }

    /// See `Hierarchy::begin`. The sum of squares.
    pub(crate) fn begin(
        &mut self,
        full: bool,
        exponent: i32,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        let pre = self.omegas(&self.smoothing.pre);
        let plan = Plan {
            start: START_FIELD,
            omegas: if full { &[] } else { &pre },
            measured: Some(0),
            restrict: true,
            up_scale: power_of_two(self.exponent),
            down_scale: power_of_two(-exponent),
        };
        self.exponent = exponent;
        self.on_finest(&plan)?;
        self.publish()?;
        if full {
            self.solve_coarse()?;
            let plan = Plan {
                start: START_CORRECTED,
                omegas: &pre,
                measured: None,
                up_scale: power_of_two(exponent),
                ..plan
            };
            self.on_finest(&plan)?;
        }
        self.sum()
    }

    /// See `Hierarchy::resume`.
    pub(crate) fn resume(&mut self, exponent: i32) -> Result<(), GpuError> {
        let plan = Plan {
            start: START_FIELD,
            omegas: &[],
            measured: None,
            restrict: true,
            up_scale: 1.0,
            down_scale: power_of_two(-exponent),
        };
        self.exponent = exponent;
        self.on_finest(&plan)
    }

    /// See `Hierarchy::go_on`. The sum of squares.
    pub(crate) fn go_on(&mut self, exponent: i32) -> Result<Superaccumulator<f64>, GpuError> {
        self.cycle_below(0, START_ZERO)?;
        let Smoothing { pre, post } = &self.smoothing;
        let omegas = self.omegas(&[&post[..], &pre[..]].concat());
        let plan = Plan {
            start: START_CORRECTED,
            omegas: &omegas,
            measured: Some(post.len()),
            restrict: true,
            up_scale: power_of_two(self.exponent),
            down_scale: power_of_two(-exponent),
        };
        self.exponent = exponent;
        self.on_finest(&plan)?;
        self.publish()?;
        self.sum()
    }

    /// The sums of squares of the residual and of the field.
    pub(crate) fn measure(&mut self) -> Result<[Superaccumulator<f64>; 2], GpuError> {
        let plan = Plan {
            start: START_FIELD,
            omegas: &[],
            measured: Some(0),
            restrict: false,
            up_scale: 1.0,
            down_scale: 1.0,
        };
        self.on_finest(&plan)?;
        self.publish()?;
        let residual = self.sum()?;
        let arguments = self.finest.arguments();
        let blocks = (
            (arguments.nx as usize).div_ceil(LEVEL_THREADS) as u32,
            arguments.leaf_bands as u32,
        );
        let launch = Launch::new(&self.square)
            .grid(blocks)
            .block(LEVEL_THREADS as u32);
        // SAFETY: the parameter is a `level_pass<double>` whose arrays have its extent; blocks cover the columns and
        // bands.
        unsafe { launch.launch(&self.stream, (ByValue(arguments),)) }?;
        self.publish()?;
        Ok([residual, self.sum()?])
    }

    /// Copies the field to `u`.
    pub(crate) fn save(&self, u: &mut Field<f64>) -> Result<(), GpuError> {
        self.finest.field().download(&self.stream, u)
    }

    fn omegas(&self, of: &[f64]) -> Vec<f64> {
        of.iter().map(|&omega| self.inverse * omega).collect()
    }

    fn on_finest(&mut self, plan: &Plan<'_>) -> Result<(), GpuError> {
        let correction = self.levels[0].level.field().address();
        self.finest.pass(&self.stream, plan, correction)
    }

    /// Adds up what a pass has measured, for the host.
    fn publish(&self) -> Result<(), GpuError> {
        let arguments = self.finest.arguments();
        let leaves = (arguments.nx as usize).div_ceil(LEAF_COLUMNS) * arguments.leaf_bands as usize;
        let blocks = (leaves * 32).div_ceil(LEVEL_THREADS).min(ADDING_BLOCKS);
        let add = Launch::new(&self.add_leaves)
            .grid(blocks as u32)
            .block(LEVEL_THREADS as u32);
        let publish = Launch::new(&self.publish_sum).block(LEVEL_THREADS as u32);
        // SAFETY: the parameters are `level_pass<double>`, whose sums a pass has set for all leaves, and whose words the
        // host reads after it has waited.
        unsafe {
            add.launch(&self.stream, (ByValue(arguments),))?;
            publish.launch(&self.stream, (ByValue(arguments),))?;
        }
        Ok(())
    }

    /// What [`publish`](Self::publish) has left. Waits for it.
    fn sum(&self) -> Result<Superaccumulator<f64>, GpuError> {
        self.stream.synchronize()?;
        Ok(sum_of_squares::<f64>(&self.total))
    }

    /// As on the CPU.
    fn solve_coarse(&mut self) -> Result<(), GpuError> {
        for at in 0..self.small.from {
            let arguments = self.levels[at].level.arguments();
            let columns = (arguments.coarse_nx as usize).div_ceil(LEVEL_THREADS) as u32;
            let launch = Launch::new(&self.restrict_right_side)
                .grid((columns, arguments.coarse_ny as u32))
                .block(LEVEL_THREADS as u32);
            // SAFETY: the parameter is a `level_pass<float>` whose arrays have its extent, and the next level's right side
            // that of its own.
            unsafe { launch.launch(&self.stream, (ByValue(arguments),)) }?;
        }
        self.small.cycle(&self.stream, true)?;
        for at in (0..self.small.from).rev() {
            self.cycle_below(at, START_CORRECTION)?;
        }
        Ok(())
    }

    /// As on the CPU.
    fn cycle_below(&mut self, first: usize, start: i32) -> Result<(), GpuError> {
        let small = self.small.from;
        let Smoothing { pre, post } = self.coarse_smoothing.clone();
        let plan = Plan {
            start,
            omegas: &pre,
            measured: None,
            restrict: true,
            up_scale: 1.0,
            down_scale: 1.0,
        };
        for at in first..small {
            let start = if at == first { start } else { START_ZERO };
            self.on_coarse(at, &Plan { start, ..plan })?;
        }
        self.small.cycle(&self.stream, false)?;
        for at in (first..small).rev() {
            let plan = Plan {
                start: START_CORRECTED,
                omegas: &post,
                restrict: false,
                ..plan
            };
            self.on_coarse(at, &plan)?;
        }
        Ok(())
    }

    fn on_coarse(&mut self, at: usize, plan: &Plan<'_>) -> Result<(), GpuError> {
        let correction = self.levels[at + 1].level.field().address();
        self.levels[at].level.pass(&self.stream, plan, correction)
    }
}

/// The longest stretch of rows of which all numbers that `identities` gives are the same.
fn longest_run<I: PartialEq>(rows: usize, identities: impl Fn(usize) -> I) -> [i32; 2] {
    let (mut longest, mut start) = (0..0, 0);
    for y in 1..=rows {
        if y == rows || identities(y) != identities(start) {
            if y - start > longest.len() {
                longest = start..y;
            }
            start = y;
        }
    }
    [longest.start as i32, longest.end as i32]
}

fn tables(coefficients: &Option<[DeviceTable<f64>; 2]>) -> [[u64; 2]; 2] {
    match coefficients {
        Some(tables) => [tables[0].addresses(), tables[1].addresses()],
        None => [[0; 2]; 2],
    }
}

fn end_code(end: End) -> i32 {
    match end {
        End::Fixed => END_FIXED,
        End::Mirror => END_MIRROR,
        End::Wrap => END_WRAP,
    }
}

/// The sizes of a level and of the next.
fn extent(shape: &Shape, next: Option<&Coarse>) -> LevelPass {
    let next_level = next.map(|next| next.level.arguments());
    LevelPass {
        pitch: pitch_of(shape.x.len) as i64,
        nx: shape.x.len as i32,
        ny: shape.y.len as i32,
        coarse_right_side: next.map_or(0, |next| next.right_side.address()),
        coarse_pitch: next_level.map_or(0, |next| next.pitch),
        coarse_nx: next_level.map_or(0, |next| next.nx),
        coarse_ny: next_level.map_or(0, |next| next.ny),
        ..bytemuck::Zeroable::zeroed()
    }
}

/// The levels below the finest one.
fn coarse_levels(
    gpu: &Gpu,
    hierarchy: &Hierarchy<f32>,
    stream: &Stream,
) -> Result<Vec<Coarse>, GpuError> {
    let mut levels: Vec<Coarse> = Vec::new();
    for from in hierarchy.levels.iter().rev() {
        let next = levels.last();
        let shape = &from.operator.shape;
        let (nx, ny) = (shape.x.len, shape.y.len);
        let [parts, inverse] = from.operator.tables();
        let made = [
            DeviceTable::new(stream, parts, ny)?,
            DeviceTable::new(stream, inverse, ny)?,
        ];
        let transfer = match (&from.transfer, next) {
            (Some(transfer), Some(next)) => {
                let coarse_ny = next.level.arguments().ny as usize;
                Some(DeviceTable::new(stream, transfer, coarse_ny)?)
            }
            _ => None,
        };
        let [calm_start, calm_end] = match &from.transfer {
            Some(transfer) => longest_run(ny, |y| {
                (
                    parts.identity(y as isize),
                    transfer.identity(y as isize / 2),
                )
            }),
            None => [0; 2],
        };
        let right_side = DeviceField::new(stream, nx, ny)?;
        let axis_end = |wraps| if wraps { END_WRAP } else { END_OPEN };
        let [across, down] = [shape.x.wraps, shape.y.wraps].map(axis_end);
        let [operator_index, operator_rows] = made[0].addresses();
        let [inverse_index, inverse_rows] = made[1].addresses();
        let [transfer_index, transfer_rows] =
            transfer.as_ref().map_or([0; 2], DeviceTable::addresses);
        let arguments = LevelPass {
            right_side: right_side.address(),
            operator_index,
            operator_rows,
            inverse_index,
            inverse_rows,
            transfer_index,
            transfer_rows,
            ends: [across, across, down, down],
            calm_start,
            calm_end,
            ..extent(shape, next)
        };
        let (down, up) = ((START_ZERO, None, true), (START_CORRECTED, None, false));
        let passes = [
            ("coarse_down_2", 2, Some(down)),
            ("coarse_up_2", 2, Some(up)),
            ("coarse_2", 2, None),
            ("coarse_1", 1, None),
        ]
        .map(|(name, steps, only)| Kernel::new(&gpu.device, name, steps, only))
        .into_iter()
        .collect::<Result<_, _>>()?;
        levels.push(Coarse {
            level: DeviceLevel::new(stream, arguments, passes, COARSE_ROWS)?,
            right_side,
            _tables: made,
            _transfer: transfer,
        });
    }
    levels.reverse();
    Ok(levels)
}
