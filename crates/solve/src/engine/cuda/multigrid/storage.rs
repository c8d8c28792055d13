//! Tables and fields of a level in the memory of a GPU.

use std::ops::Range;

use crosswarp_cuda::{Buffer, Stream};

use crate::element::Real;
use crate::engine::cpu::multigrid::row_table::RowTable;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;

/// Elements at once of a copy between host and device.
const COPY: usize = 1 << 22;
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

    /// Takes the rows of `field`.
    pub fn upload(&self, stream: &Stream, field: &Field<T>) -> Result<(), GpuError> {
        upload(stream, &self.buffer, self.pitch, self.ny, field)
    }

    /// Copies the rows to `field`.
    pub fn download(&self, stream: &Stream, field: &mut Field<T>) -> Result<(), GpuError> {
        let mut staged = Vec::new();
        for part in pieces(self.pitch, self.ny) {
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
    let mut staged = Vec::new();
    for part in pieces(pitch, ny) {
        let elements = part.start * pitch..part.end * pitch;
        staged.clear();
        staged.resize(elements.len(), T::zeroed());
        for (y, row) in part.zip(staged.chunks_exact_mut(pitch)) {
            let from = field.row(y as isize);
            row[..from.len()].copy_from_slice(from);
        }
        stream.write(to.range(elements), &staged)?;
    }
    Ok(())
}

/// The rows 0 … `ny` − 1 in pieces of a few million elements, at least one row each.
fn pieces(pitch: usize, ny: usize) -> impl Iterator<Item = Range<usize>> {
    let at_once = (COPY / pitch).max(1);
    let starts = (0..ny).step_by(at_once);
    starts.map(move |start| start..(start + at_once).min(ny))
}
