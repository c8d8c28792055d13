//! The rows of a solve's fields, as checkpoints hold them.

use std::ops::Range;

use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::field::storage::Field;
use crate::pes::error::PeError;

/// How the points of a row (of a box: a plane) of the problem lie in a row of storage.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Lines of a row; 1 of planes.
    pub lines: usize,
    /// Points of a line of the problem.
    pub width: usize,
    /// The points of a line that are stored.
    pub first: usize,
    pub stored: usize,
    /// Where line 0 begins in storage, and how far on the next one does.
    pub begin: usize,
    pub stride: usize,
}

/// The own rows of some fields, one after the other in each row. Ghosts are zero: they are made anew.
pub(super) struct HeldRows<'a> {
    pub fields: Vec<&'a mut Field<f64>>,
    pub partition: Partition,
    /// Rows of the problem.
    pub own: Range<usize>,
    /// The problem's row of the fields' row 0, and how many the fields have.
    pub first: usize,
    pub rows: usize,
    pub line: Line,
}

impl HeldRows<'_> {
    /// The row of the fields that is row `y` of the problem, if it is no ghost.
    fn at(&self, y: usize) -> Option<isize> {
        let at = y.checked_sub(self.first)?;
        (at < self.rows).then_some(at as isize)
    }
}

impl LocalRows<f64> for HeldRows<'_> {
    type Error = PeError;

    fn partition(&self) -> &Partition {
        &self.partition
    }

    fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    fn row_len(&self) -> usize {
        self.fields.len() * self.line.lines * self.line.width
    }

    fn wraps(&self) -> bool {
        false
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<f64>) -> Result<(), PeError> {
        let Line {
            width,
            first,
            stored,
            begin,
            stride,
            ..
        } = self.line;
        for y in rows {
            let start = out.len();
            out.resize(start + self.row_len(), 0.0);
            let Some(at) = self.at(y) else { continue };
            let lines = out[start..].chunks_exact_mut(width);
            for (number, line) in lines.enumerate() {
                let field = &self.fields[number / self.line.lines];
                let from = begin + number % self.line.lines * stride;
                line[first..first + stored].copy_from_slice(&field.row(at)[from..from + stored]);
            }
        }
        Ok(())
    }

    fn unpack(&mut self, first_row: isize, values: &[f64]) -> Result<(), PeError> {
        let Line {
            width,
            first,
            stored,
            begin,
            stride,
            ..
        } = self.line;
        let row_len = self.row_len();
        for (y, row) in (first_row as usize..).zip(values.chunks_exact(row_len)) {
            let Some(at) = self.at(y) else { continue };
            for (number, line) in row.chunks_exact(width).enumerate() {
                let field = &mut self.fields[number / self.line.lines];
                let to = begin + number % self.line.lines * stride;
                field.row_mut(at)[to..to + stored].copy_from_slice(&line[first..first + stored]);
            }
        }
        Ok(())
    }
}
