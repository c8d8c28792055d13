//! Tables and fields of a level in the memory of a GPU: the rows that a PE stores.
//!
//! Kernels number rows as the whole level does. A field that does not begin with row 0 has an address as if it did; of a
//! level that wraps around, PEs have room for all rows, and halos lie where their rows do.

use std::ops::Range;

use bytemuck::Pod;
use crosswarp_cuda::{BufferRef, PinnedBuffer, Stream};

use crate::element::Real;
use crate::engine::cpu::multigrid::row_table::RowTable;
use crate::engine::cpu::multigrid::shape::{Axis, HALO, Shape};
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::exchange::level_puts::Stretch;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;

/// Elements at once of a copy between host and device.
const COPY: usize = 1 << 20;
/// Elements of a row from which on fields are copied as parts of them are: twice as many would be page-locked.
const LONGEST_LOCKED: usize = 8 * COPY;

/// Rows of a [`RowTable`] from −1 on.
pub(crate) struct DeviceTable<T: Real> {
    index: ArenaBuffer<u32>,
    rows: ArenaBuffer<T>,
}

impl<T: Real> DeviceTable<T> {
    /// The rows −1 … of a level with `axis`, those that are stored; the others are zero. `made`: the rows that, with some
    /// around them, are right in the table.
    pub fn new(
        arena: &Arena,
        table: &RowTable<T>,
        axis: Axis,
        made: Range<isize>,
    ) -> Result<Self, GpuError> {
        let (len, stored) = (axis.len as isize, table.rows());
        let identity = |y: isize| {
            // Where the level wraps around, a row may stand beyond an end.
            let places = [y, y - len, y + len].into_iter();
            let place = places
                .filter(|at| stored.contains(at) && (axis.wraps || *at == y))
                .min_by_key(|at| (made.start - at).max(at - made.end + 1).max(0));
            place.map_or(0, |at| table.identity(at))
        };
        let index: Vec<u32> = (-1..len).map(identity).collect();
        let rows = arena.buffer(table.distinct().len() * table.elements())?;
        let (mut staged, mut at) = (Vec::new(), 0);
        let mut distinct = table.distinct().peekable();
        while let Some(row) = distinct.next() {
            staged.extend_from_slice(row);
            if staged.len() >= COPY || distinct.peek().is_none() {
                let part = rows.range(at..at + staged.len());
                arena.stream().write(part, &staged)?;
                at += staged.len();
                staged.clear();
            }
        }
        Ok(DeviceTable {
            index: arena.copied(&index)?,
            rows,
        })
    }

    /// Room for the rows of a level with `axis` that a kernel makes, so that all are there: row y is number y + 1. Number 0 is of
    /// zeros.
    pub fn room(arena: &Arena, axis: Axis, columns: usize, parts: usize) -> Result<Self, GpuError> {
        let (len, elements) = (axis.len as u32, parts * (columns + 2));
        let above = if axis.wraps { len } else { 0 };
        let index: Vec<u32> = std::iter::once(above).chain(1..=len).collect();
        let rows = arena.buffer((axis.len + 1) * elements)?;
        arena.stream().zero(rows.range(..elements))?;
        Ok(DeviceTable {
            index: arena.copied(&index)?,
            rows,
        })
    }

    /// All rows of a table that [`room`](Self::room) has made, from row 0 on.
    pub fn made_rows(&self, stream: &Stream) -> Result<Vec<T>, GpuError> {
        let elements = self.rows.len() / self.index.len();
        let mut rows = vec![T::ZERO; self.rows.len() - elements];
        stream.read(&mut rows, self.rows.range(elements..))?;
        Ok(rows)
    }

    /// Addresses of the index of row 0, and of the rows.
    pub fn addresses(&self) -> [u64; 2] {
        [self.index.address() + 4, self.rows.address()]
    }

    /// The address of the rows, number 0 first.
    pub fn rows(&self) -> BufferRef<'_, T> {
        self.rows.range(..)
    }
}

/// The rows of a level that a PE stores.
#[derive(Clone)]
pub(crate) struct Stored {
    /// Those of its own.
    pub own: Range<isize>,
    /// The level's rows that there is room for.
    room: Range<usize>,
    axis: Axis,
}

impl Stored {
    pub fn of(shape: &Shape) -> Stored {
        let stored = shape.stored();
        let len = shape.y.len;
        let room = if shape.y.wraps {
            0..len
        } else {
            stored.start.max(0) as usize..stored.end.clamp(0, len as isize) as usize
        };
        Stored {
            own: shape.own(),
            room,
            axis: shape.y,
        }
    }

    /// So many rows that do not wrap around.
    pub fn all(rows: usize) -> Stored {
        Stored {
            own: 0..rows as isize,
            room: 0..rows,
            axis: Axis {
                len: rows,
                wraps: false,
            },
        }
    }

    /// Whether other PEs have the other rows.
    pub fn is_spread(&self) -> bool {
        self.own.len() < self.axis.len
    }

    /// The own rows and, where there are others, up to `margin` around them.
    pub fn around(&self, margin: usize) -> Range<isize> {
        let (own, len, margin) = (self.own.clone(), self.axis.len as isize, margin as isize);
        if !self.is_spread() {
            return own;
        }
        let rows = own.start - margin..own.end + margin;
        match self.axis.wraps {
            true => rows,
            false => rows.start.max(0)..rows.end.min(len),
        }
    }

    /// The rows of the level, 0 to its last, that are stored under their own numbers.
    pub fn inside(&self) -> Range<isize> {
        let rows = self.around(HALO);
        rows.start.max(0)..rows.end.min(self.axis.len as isize)
    }

    /// Where row `y` lies.
    fn place(&self, y: isize) -> usize {
        y.rem_euclid(self.axis.len as isize) as usize - self.room.start
    }

    /// `rows` in pieces that lie together, of at most so many elements with `pitch` that copies need not much room.
    fn pieces(&self, rows: Range<isize>, pitch: usize) -> Vec<Range<isize>> {
        let at_once = (COPY / pitch).max(1) as isize;
        let len = self.axis.len as isize;
        let mut pieces = Vec::new();
        let mut start = rows.start;
        while start < rows.end {
            let wraps_at = (start.div_euclid(len) + 1) * len;
            let end = (start + at_once).min(rows.end).min(wraps_at);
            pieces.push(start..end);
            start = end;
        }
        pieces
    }
}

/// Rows without padding but for what makes every row begin at a multiple of 128 bytes.
pub(crate) struct DeviceRows<T: Pod> {
    buffer: ArenaBuffer<T>,
    stored: Stored,
    pitch: usize,
    nx: usize,
}

/// As fields have it.
pub(crate) type DeviceField<T> = DeviceRows<T>;

pub(super) fn pitch_of(nx: usize) -> usize {
    nx.next_multiple_of(32)
}

/// Bytes from one row of a field on `level` to the next.
pub(super) fn row_bytes<T>(level: &Shape) -> usize {
    pitch_of(level.x.len) * size_of::<T>()
}

impl<T: Pod> DeviceRows<T> {
    /// All zero.
    pub fn new(arena: &Arena, nx: usize, stored: &Stored) -> Result<Self, GpuError> {
        let pitch = pitch_of(nx);
        Ok(DeviceRows {
            buffer: arena.zeroed(pitch * stored.room.len())?,
            stored: stored.clone(),
            pitch,
            nx,
        })
    }

    /// That of row 0, stored or not.
    pub fn address(&self) -> u64 {
        let before = (self.stored.room.start * self.pitch * size_of::<T>()) as u64;
        self.buffer.address().wrapping_sub(before)
    }

    /// Where `rows` are, which do not go over an end of the level.
    pub fn stretch(&self, rows: Range<isize>) -> Stretch {
        let elements = self.elements(&rows);
        Stretch {
            address: self.buffer.address() + (elements.start * size_of::<T>()) as u64,
            bytes: elements.len() * size_of::<T>(),
        }
    }

    fn elements(&self, rows: &Range<isize>) -> Range<usize> {
        let start = self.stored.place(rows.start) * self.pitch;
        start..start + rows.len() * self.pitch
    }

    /// Takes the own rows of `field`, and its halos.
    pub fn upload(&self, stream: &Stream, field: &Field<T>) -> Result<(), GpuError> {
        let around = self.stored.around(HALO);
        self.write_many(stream, around, |y| field.row(y))
    }

    /// Copies the own rows to `field`.
    pub fn download(&self, stream: &Stream, field: &mut Field<T>) -> Result<(), GpuError> {
        let own = self.stored.own.clone();
        self.read_many(stream, own, |y, row| {
            field.row_mut(y).copy_from_slice(row);
        })
    }

    /// Takes `rows`.
    pub fn write<'f>(
        &self,
        stream: &Stream,
        rows: Range<isize>,
        row_of: impl Fn(isize) -> &'f [T],
    ) -> Result<(), GpuError>
    where
        T: 'f,
    {
        let mut staged = Vec::new();
        for part in self.stored.pieces(rows, self.pitch) {
            staged.clear();
            staged.resize(part.len() * self.pitch, T::zeroed());
            self.stage(&mut staged, &part, &row_of);
            stream.write(self.buffer.range(self.elements(&part)), &staged)?;
        }
        Ok(())
    }

    /// As [`write`](Self::write), of so many that page-locked memory is worth its allocation: while one piece is copied, the
    /// next is staged.
    pub fn write_many<'f>(
        &self,
        stream: &Stream,
        rows: Range<isize>,
        row_of: impl Fn(isize) -> &'f [T],
    ) -> Result<(), GpuError>
    where
        T: 'f,
    {
        let pieces = self.stored.pieces(rows.clone(), self.pitch);
        let Some(mut staged) = self.locked(stream, &pieces)? else {
            return self.write(stream, rows, row_of);
        };
        self.stage(&mut staged[0], &pieces[0], &row_of);
        for (at, part) in pieces.iter().enumerate() {
            let [here, beside] = &mut staged;
            stream.scope(|copies| -> Result<(), GpuError> {
                let elements = self.elements(part);
                let from = &here[..elements.len()];
                copies.write(self.buffer.range(elements), from)?;
                if let Some(next) = pieces.get(at + 1) {
                    self.stage(beside, next, &row_of);
                }
                Ok(())
            })?;
            staged.swap(0, 1);
        }
        Ok(())
    }

    /// Gives `rows` to `take`.
    pub fn read(
        &self,
        stream: &Stream,
        rows: Range<isize>,
        mut take: impl FnMut(isize, &[T]),
    ) -> Result<(), GpuError> {
        let mut staged = Vec::new();
        for part in self.stored.pieces(rows, self.pitch) {
            staged.resize(part.len() * self.pitch, T::zeroed());
            stream.read(&mut staged, self.buffer.range(self.elements(&part)))?;
            self.give(&staged, part, &mut take);
        }
        Ok(())
    }

    /// As [`read`](Self::read), of so many that page-locked memory is worth its allocation: while one piece is copied, the one
    /// before is given.
    pub fn read_many(
        &self,
        stream: &Stream,
        rows: Range<isize>,
        mut take: impl FnMut(isize, &[T]),
    ) -> Result<(), GpuError> {
        let pieces = self.stored.pieces(rows.clone(), self.pitch);
        let Some(mut staged) = self.locked(stream, &pieces)? else {
            return self.read(stream, rows, take);
        };
        for at in 0..=pieces.len() {
            let [here, beside] = &mut staged;
            stream.scope(|copies| -> Result<(), GpuError> {
                if let Some(part) = pieces.get(at) {
                    let elements = self.elements(part);
                    let to = &mut here[..elements.len()];
                    copies.read(to, self.buffer.range(elements))?;
                }
                if at > 0 {
                    self.give(beside, pieces[at - 1].clone(), &mut take);
                }
                Ok(())
            })?;
            staged.swap(0, 1);
        }
        Ok(())
    }

    /// Page-locked room for two of these pieces, all zero, if there are several and rows are not too long.
    fn locked(
        &self,
        stream: &Stream,
        pieces: &[Range<isize>],
    ) -> Result<Option<[PinnedBuffer<T>; 2]>, GpuError> {
        if pieces.len() < 2 || self.pitch > LONGEST_LOCKED {
            return Ok(None);
        }
        let longest = pieces.iter().map(|part| part.len()).max().unwrap_or(0);
        let room = || PinnedBuffer::zeroed(stream.device(), longest * self.pitch);
        Ok(Some([room()?, room()?]))
    }

    /// Copies `rows` to `staged`; what lies between them stays.
    fn stage<'f>(&self, staged: &mut [T], rows: &Range<isize>, row_of: &impl Fn(isize) -> &'f [T])
    where
        T: 'f,
    {
        for (y, row) in rows.clone().zip(staged.chunks_exact_mut(self.pitch)) {
            row[..self.nx].copy_from_slice(row_of(y));
        }
    }

    fn give(&self, staged: &[T], rows: Range<isize>, take: &mut impl FnMut(isize, &[T])) {
        for (y, row) in rows.zip(staged.chunks_exact(self.pitch)) {
            take(y, &row[..self.nx]);
        }
    }
}
