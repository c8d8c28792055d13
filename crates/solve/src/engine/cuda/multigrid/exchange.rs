//! Rows of levels between the GPUs of PEs: put by kernels where the GPUs reach each other, else through the hosts' memory, as
//! on the CPU, wherever the PEs are.

use std::ops::Range;

use bytemuck::Pod;
use crosswarp_cuda::Stream;

use super::storage::DeviceField;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::exchange::level_rows::{LevelRows, Rows};
use crate::gpu::error::GpuError;

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
    if let Some(puts) = &mut rows.puts {
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
    if let Some(puts) = &mut rows.puts {
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
    match &mut rows.puts {
        Some(puts) => puts.synchronize(stream),
        None => Ok(stream.synchronize()?),
    }
}
