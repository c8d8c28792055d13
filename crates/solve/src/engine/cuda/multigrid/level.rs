//! A level in the memory of a GPU.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{Buffer, ByValue, Function, Launch, Stream};

use crate::element::Real;
use crate::engine::cpu::multigrid::row_table::RowTable;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{LevelPass, MOST_STEPS, PASS_THREADS, START_FIELD};

/// Elements at once of a copy between host and device.
const COPY: usize = 1 << 22;
/// Rows of a block: fewest, and most.
const FEWEST_ROWS: usize = 16;
const MOST_ROWS: usize = 512;
/// So many blocks keep a large GPU busy.
const BLOCKS: usize = 1024;

/// Rows of a [`RowTable`] from −1 on.
pub(super) struct DeviceTable<T: Real> {
    index: Buffer<u32>,
    rows: Buffer<T>,
}

impl<T: Real> DeviceTable<T> {
    /// The rows −1 … `len` − 1.
    pub fn new(stream: &Stream, table: &RowTable<T>, len: usize) -> Result<Self, GpuError> {
        let index: Vec<u32> = (-1..len as isize).map(|y| table.identity(y)).collect();
        let rows = Buffer::new(stream.device(), table.distinct().len() * table.elements())?;
        let (mut staged, mut at) = (Vec::new(), 0);
        let mut distinct = table.distinct().iter().peekable();
        while let Some(row) = distinct.next() {
            staged.extend_from_slice(row);
            if staged.len() >= COPY || distinct.peek().is_none() {
                stream.write(rows.range(at..at + staged.len()), &staged)?;
                at += staged.len();
                staged.clear();
            }
        }
        Ok(DeviceTable {
            index: Buffer::from_slice(stream, &index)?,
            rows,
        })
    }

    /// Addresses of the index of row 0, and of the rows.
    pub fn addresses(&self) -> [u64; 2] {
        [self.index.address() + 4, self.rows.address()]
    }
}

/// Rows of a grid, without padding but for what makes every row begin at a multiple of 128 bytes.
pub(super) struct DeviceField<T: Real> {
    pub buffer: Buffer<T>,
    pub pitch: usize,
    nx: usize,
    ny: usize,
}

pub(super) fn pitch_of(nx: usize) -> usize {
    nx.next_multiple_of(32)
}

impl<T: Real> DeviceField<T> {
    /// All zero.
    pub fn new(stream: &Stream, nx: usize, ny: usize) -> Result<Self, GpuError> {
        let pitch = pitch_of(nx);
        Ok(DeviceField {
            buffer: Buffer::zeroed(stream, pitch * ny)?,
            pitch,
            nx,
            ny,
        })
    }

    pub fn address(&self) -> u64 {
        self.buffer.address()
    }

    fn pieces(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<T> {
        let (at_once, ny) = ((COPY / self.pitch).max(1), self.ny);
        (0..ny)
            .step_by(at_once)
            .map(move |start| start..(start + at_once).min(ny))
    }

    /// Takes the rows of `field`.
    pub fn upload(&self, stream: &Stream, field: &Field<T>) -> Result<(), GpuError> {
        upload(stream, &self.buffer, self.pitch, self.ny, field)
    }

    /// Copies the rows to `field`.
    pub fn download(&self, stream: &Stream, field: &mut Field<T>) -> Result<(), GpuError> {
        let mut staged = Vec::new();
        for part in self.pieces() {
            staged.resize(part.len() * self.pitch, T::ZERO);
            let elements = part.start * self.pitch..part.end * self.pitch;
            stream.read(&mut staged, self.buffer.range(elements))?;
            for (y, row) in part.zip(staged.chunks_exact(self.pitch)) {
                field.row_mut(y as isize).copy_from_slice(&row[..self.nx]);
            }
        }
        Ok(())
    }
}

/// Copies the rows 0 … `ny` − 1 of `field`.
pub(super) fn upload<T: bytemuck::Pod>(
    stream: &Stream,
    to: &Buffer<T>,
    pitch: usize,
    ny: usize,
    field: &Field<T>,
) -> Result<(), GpuError> {
    let at_once = (COPY / pitch).max(1);
    let mut staged = vec![T::zeroed(); at_once.min(ny) * pitch];
    for start in (0..ny).step_by(at_once) {
        let end = (start + at_once).min(ny);
        for (y, row) in (start..end).zip(staged.chunks_exact_mut(pitch)) {
            let from = field.row(y as isize);
            row[..from.len()].copy_from_slice(from);
        }
        let elements = (end - start) * pitch;
        stream.write(to.range(start * pitch..end * pitch), &staged[..elements])?;
    }
    Ok(())
}

/// A level's field, before and after a pass, and what its kernels are told.
pub(super) struct DeviceLevel<T: Real> {
    fields: [DeviceField<T>; 2],
    /// What is the same in every launch.
    arguments: LevelPass,
    /// The passes that there are, with their steps, most first.
    passes: Vec<(usize, Function)>,
}

/// A pass: see `Pass` of the CPU's.
pub(super) struct Plan<'a> {
    pub start: i32,
    /// ω of each step, over the diagonal where all couplings are 1.
    pub omegas: &'a [f64],
    /// The step before which the residual is measured.
    pub measured: Option<usize>,
    /// Whether the next level's right side is made.
    pub restrict: bool,
    pub up_scale: f64,
    pub down_scale: f64,
}

impl<T: Real> DeviceLevel<T> {
    /// A level of the extent in `arguments`, all zero.
    pub fn new(
        stream: &Stream,
        arguments: LevelPass,
        passes: Vec<(usize, Function)>,
    ) -> Result<Self, GpuError> {
        let (nx, ny) = (arguments.nx as usize, arguments.ny as usize);
        let field = || DeviceField::new(stream, nx, ny);
        Ok(DeviceLevel {
            fields: [field()?, field()?],
            arguments,
            passes,
        })
    }

    /// Where the field is now.
    pub fn field(&self) -> &DeviceField<T> {
        &self.fields[0]
    }

    /// What kernels beside passes are told.
    pub fn arguments(&self) -> LevelPass {
        LevelPass {
            before: self.fields[0].address(),
            after: self.fields[0].address(),
            ..self.arguments
        }
    }

    /// Gives the launches of `plan` to `stream`, with `correction` as the next level's field.
    pub fn pass(
        &mut self,
        stream: &Stream,
        plan: &Plan<'_>,
        correction: u64,
    ) -> Result<(), GpuError> {
        let (mut done, mut start) = (0, plan.start);
        loop {
            let left = &plan.omegas[done..];
            let (steps, kernel) = self
                .passes
                .iter()
                .find(|(steps, _)| *steps <= left.len())
                .expect("there is a pass of no steps, or of one");
            let last = *steps == left.len();
            // What is measured before the first step of a launch could be measured after the last of the one before.
            let measured = plan.measured.and_then(|at| at.checked_sub(done));
            let measured = measured.filter(|&at| at < *steps || (last && at == *steps));
            let changes = *steps > 0 || start != START_FIELD;
            let mut omega = [0.0; MOST_STEPS];
            omega[..*steps].copy_from_slice(&left[..*steps]);
            let width = PASS_THREADS - 2 * (steps + 2);
            let strips = (self.arguments.nx as usize).div_ceil(width);
            let rows = rows_of_a_block(strips, self.arguments.ny as usize);
            let arguments = LevelPass {
                before: self.fields[0].address(),
                after: if changes { self.fields[1].address() } else { 0 },
                correction,
                coarse_right_side: if plan.restrict && last {
                    self.arguments.coarse_right_side
                } else {
                    0
                },
                up_scale: plan.up_scale,
                down_scale: plan.down_scale,
                omega,
                start,
                measured: measured.map_or(-1, |at| at as i32),
                rows: rows as i32,
                ..self.arguments
            };
            let blocks = (
                strips as u32,
                (self.arguments.ny as usize).div_ceil(rows) as u32,
            );
            let launch = Launch::new(kernel).grid(blocks).block(PASS_THREADS as u32);
            // SAFETY: the parameter is a `level_pass` of this type, made by `new` with arrays of its extent, which live
            // until the stream has been waited for; what is read is not what is written.
            unsafe { launch.launch(stream, (ByValue(arguments),)) }?;
            if changes {
                self.fields.swap(0, 1);
            }
            done += steps;
            start = START_FIELD;
            if last {
                return Ok(());
            }
        }
    }

    /// Takes the rows of `field`.
    pub fn upload(&self, stream: &Stream, field: &Field<T>) -> Result<(), GpuError> {
        self.fields[0].upload(stream, field)
    }
}

/// As many rows as leave enough blocks: the margins of a block are computed twice.
fn rows_of_a_block(strips: usize, ny: usize) -> usize {
    let rows = (strips * ny / BLOCKS).next_power_of_two();
    rows.clamp(FEWEST_ROWS, MOST_ROWS)
}
