//! Where the rows of a band lie in the GPU's memory, and copies between them and the host's.

use std::ops::Range;

use bytemuck::Pod;
use crosswarp_cuda::{Buffer, Stream};

use crate::field::storage::Field;
use crate::gpu::arguments::PAD;
use crate::gpu::error::GpuError;

/// Elements at once of a copy between host and device.
const COPY: usize = 1 << 22;

/// Where the rows of an array lie.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// Columns of the grid.
    pub nx: usize,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// The first stored row.
    pub first: isize,
    /// Stored rows.
    pub rows: usize,
}

impl Layout {
    /// Rows that are copied together: a few million elements, at least one row.
    fn rows_at_once(&self) -> usize {
        (COPY / self.pitch).max(1)
    }

    /// The elements of `rows` with their padding.
    pub(crate) fn elements(&self, rows: &Range<isize>) -> Range<usize> {
        let at = |y: isize| (y - self.first) as usize * self.pitch;
        at(rows.start)..at(rows.end)
    }

    /// Copies `rows` from `field`, padding columns included, to `to`.
    pub(crate) fn upload<T: Pod>(
        &self,
        stream: &Stream,
        to: &Buffer<T>,
        field: &Field<T>,
        rows: Range<isize>,
    ) -> Result<(), GpuError> {
        let mut staged = Vec::new();
        for part in pieces(rows, self.rows_at_once()) {
            staged.clear();
            staged.resize(part.len() * self.pitch, T::zeroed());
            for (y, row) in part.clone().zip(staged.chunks_exact_mut(self.pitch)) {
                row[..self.nx + 2 * PAD].copy_from_slice(field.with_padding(y, PAD));
            }
            stream.write(to.range(self.elements(&part)), &staged)?;
        }
        Ok(())
    }

    /// Calls `take` with each of `rows` of `from`, padding excluded.
    pub(crate) fn download<T: Pod>(
        &self,
        stream: &Stream,
        from: &Buffer<T>,
        rows: Range<isize>,
        mut take: impl FnMut(isize, &[T]),
    ) -> Result<(), GpuError> {
        let mut staged = Vec::new();
        for part in pieces(rows, self.rows_at_once()) {
            staged.resize(part.len() * self.pitch, T::zeroed());
            stream.read(&mut staged, from.range(self.elements(&part)))?;
            for (y, row) in part.zip(staged.chunks_exact(self.pitch)) {
                take(y, &row[PAD..PAD + self.nx]);
            }
        }
        Ok(())
    }
}

/// `rows` in pieces of at most `most`.
fn pieces(rows: Range<isize>, most: usize) -> impl Iterator<Item = Range<isize>> {
    rows.clone()
        .step_by(most)
        .map(move |start| start..(start + most as isize).min(rows.end))
}
