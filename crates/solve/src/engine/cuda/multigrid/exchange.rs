//! Rows of levels between the GPUs of PEs: put by kernels where the GPUs reach each other, else through the hosts' memory, as
//! on the CPU, wherever the PEs are.

use std::ops::Range;

use bytemuck::Pod;
use crosswarp_cuda::Stream;

use super::storage::{DeviceField, row_bytes};
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cuda::kernels;
use crate::exchange::level_puts::{self, LevelPuts, OnGpus};
use crate::exchange::level_rows::{LevelRows, Rows};
use crate::gpu::Gpu;
use crate::gpu::choice::Choice;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{MOST_RELAXATIONS, MOST_STEPS};
use crate::gpu::strategy::Strategy;
use crate::pes::agree::{all_ready, least};

/// Rows on their way between a GPU and other PEs.
struct Staged<T> {
    nx: usize,
    /// Those to send, from `first` on.
    parts: Vec<(isize, Vec<T>)>,
    /// Those that have arrived, one after the other.
    arrived: Vec<(isize, Vec<T>)>,
}

impl<T: Pod> Staged<T> {
    /// Copies `parts` from the GPU.
    fn new(
        stream: &Stream,
        field: &DeviceField<T>,
        nx: usize,
        parts: impl IntoIterator<Item = Range<isize>>,
    ) -> Result<Staged<T>, GpuError> {
        let mut staged = Staged {
            nx,
            parts: Vec::new(),
            arrived: Vec::new(),
        };
        for rows in parts {
            let (first, mut values) = (rows.start, Vec::with_capacity(rows.len() * nx));
            field.read(stream, rows, |_, row| values.extend_from_slice(row))?;
            staged.parts.push((first, values));
        }
        Ok(staged)
    }

    /// Copies what has arrived to the GPU.
    fn deliver(self, stream: &Stream, field: &DeviceField<T>) -> Result<(), GpuError> {
        for (first, values) in &self.arrived {
            let rows = *first..first + (values.len() / self.nx) as isize;
            field.write(stream, rows, |y| {
                &values[(y - first) as usize * self.nx..][..self.nx]
            })?;
        }
        Ok(())
    }
}

impl<T: Pod> Rows for Staged<T> {
    fn words(&self) -> usize {
        self.nx * (size_of::<T>() / size_of::<u32>())
    }

    fn get(&self, y: isize) -> &[u32] {
        let row = self.parts.iter().find_map(|(first, values)| {
            let at = usize::try_from(y - first).ok()? * self.nx;
            values.get(at..at + self.nx)
        });
        bytemuck::cast_slice(row.expect("it was copied from the GPU"))
    }

    fn set(&mut self, y: isize, row: &[u32]) {
        let follows =
            |(first, values): &(isize, Vec<T>)| first + (values.len() / self.nx) as isize == y;
        if !self.arrived.last().is_some_and(follows) {
            self.arrived.push((y, Vec::new()));
        }
        let (_, values) = self.arrived.last_mut().expect("there is one");
        let start = values.len();
        values.resize(start + self.nx, T::zeroed());
        // What arrived need not be aligned for `T`.
        bytemuck::cast_slice_mut(&mut values[start..]).copy_from_slice(row);
    }

    fn copy(&mut self, _: isize, _: isize) {
        unreachable!("kernels wrap around the rows of a level that is not spread by themselves");
    }
}

/// Rows of the deepest halo: of a launch of passes, or of a right side.
const DEPTH: usize = MOST_STEPS + 2;
const _: () = assert!(DEPTH >= MOST_RELAXATIONS + 2);

/// From now on rows of the levels `finest` and `coarser` travel between GPUs, if they can; fields of `coarser` are of `T`.
/// Collective.
///
/// Errors: on every PE. That they can not is one only if the strategy is to put.
pub(crate) fn reach<'s, T>(
    rows: &mut LevelRows<'_>,
    gpu: &Gpu,
    finest: &Shape,
    coarser: impl IntoIterator<Item = &'s Shape>,
) -> Result<(), GpuError> {
    let (pe, gpus) = (rows.pe(), &mut rows.gpus);
    let may_put = matches!(gpu.strategy, Strategy::Auto | Strategy::DevicePut);
    if !finest.spread || !may_put {
        *gpus = OnGpus::default();
        return Ok(());
    }
    let known = gpus.puts.is_some() || gpu.strategy == Strategy::Auto;
    let there = known && gpus.reached == Some(gpu.device);
    if least(pe, there.into())? == 1 {
        return Ok(());
    }
    *gpus = OnGpus::default();
    // Found first: what fails on one PE alone must not be taken for what no PE can have.
    let kernel = all_ready(
        pe,
        kernels::find_plain_of_pe(&gpu.device, level_puts::KERNEL),
    )?;
    let halo = DEPTH * row_bytes::<f64>(finest);
    let whole = coarser.into_iter().find(|level| !level.spread);
    let gathered = whole.map_or(0, |level| level.y.len * row_bytes::<T>(level));
    let made = LevelPuts::new(pe, gpu, kernel, [halo, gathered]);
    if gpu.strategy == Strategy::DevicePut {
        gpus.puts = Some(made?);
    } else {
        let mut choice = Choice::default();
        gpus.puts = choice.prefer(pe, Strategy::DevicePut, made)?;
        gpus.declined = choice.declined;
    }
    gpus.reached = Some(gpu.device);
    Ok(())
}

/// Makes the `depth` rows around the own ones what they are where they are computed. Collective if the level is spread.
pub(super) fn halo<T: Pod>(
    stream: &Stream,
    rows: &mut LevelRows<'_>,
    shape: &Shape,
    field: &DeviceField<T>,
    depth: usize,
) -> Result<(), GpuError> {
    if !shape.spread {
        return Ok(());
    }
    if let Some(puts) = &mut rows.gpus.puts {
        return puts.halo(stream, shape, depth, |rows| field.stretch(rows));
    }
    let (own, deep) = (shape.own(), depth as isize);
    let edges = [own.start..own.start + deep, own.end - deep..own.end];
    let mut staged = Staged::new(stream, field, shape.x.len, edges)?;
    rows.halo_of(shape, &mut staged, depth)?;
    staged.deliver(stream, field)
}

/// Gives every PE all rows of a level that is not spread, of which each has computed those of its cut. Collective.
pub(super) fn gather<T: Pod>(
    stream: &Stream,
    rows: &mut LevelRows<'_>,
    shape: &Shape,
    field: &DeviceField<T>,
) -> Result<(), GpuError> {
    if let Some(puts) = &mut rows.gpus.puts {
        return puts.gather(stream, shape, |rows| field.stretch(rows));
    }
    let own = shape.cuts[shape.me] as isize..shape.cuts[shape.me + 1] as isize;
    let mut staged = Staged::new(stream, field, shape.x.len, [own])?;
    rows.gather(shape, &mut staged)?;
    staged.deliver(stream, field)
}

/// Waits for `stream`.
///
/// Errors: also if a wait for rows of another PE was given up.
pub(super) fn synchronize(stream: &Stream, rows: &mut LevelRows<'_>) -> Result<(), GpuError> {
    match &mut rows.gpus.puts {
        Some(puts) => puts.synchronize(stream),
        None => Ok(stream.synchronize()?),
    }
}
