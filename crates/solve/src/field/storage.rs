//! Storage of a PE's rows: private, aligned to cache lines; large ones to pages, huge pages advised.
#![allow(unsafe_code)] // A typed view of bytes, and row pointers for the kernels.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::allocation::try_zeroed_slice_box;
use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use memmap2::MmapMut;

use super::zeros::{ROUNDED_FROM, huge_pages};

/// Columns of padding left and right of every row: deeper than the halo of any pass plus one vector.
pub const PAD: usize = 64;

/// Where rows are.
enum Memory {
    /// Of the allocator, which mostly keeps it for the next one: coarse levels have dozens of fields, and to map, make and
    /// unmap a page takes longer than to write to it.
    Allocated(Box<[Line]>),
    Mapped(MmapMut),
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Memory {
    /// Zeros.
    fn new(bytes: usize) -> io::Result<Memory> {
        if bytes < ROUNDED_FROM {
            let lines = try_zeroed_slice_box(bytes.div_ceil(size_of::<Line>()));
            return Ok(Memory::Allocated(
                lines.map_err(|()| io::ErrorKind::OutOfMemory)?,
            ));
        }
        Ok(Memory::Mapped(huge_pages(bytes)?))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Allocated(lines) => cast_slice(lines),
            Memory::Mapped(map) => map,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Allocated(lines) => cast_slice_mut(lines),
            Memory::Mapped(map) => map,
        }
    }
}

/// Rows `rows` of a grid `nx` columns wide, with [`PAD`] columns of padding on both sides, initially all zero bits.
///
/// Row and column numbers are global; both may run out of the grid by the halo (negative numbers included).
pub struct Field<T> {
    memory: Memory,
    rows: Range<isize>,
    nx: usize,
    stride: usize,
    element: PhantomData<T>,
}

impl<T: Pod> Field<T> {
    /// Allocates the rows `rows`, each of `nx` columns.
    ///
    /// The pages of a large one are made here, by the PE that will use them, and not in the middle of the first pass.
    ///
    /// Errors: the system's, when there is not enough memory.
    pub fn new(rows: Range<isize>, nx: usize) -> io::Result<Field<T>> {
        let mut field = Field::lazy(rows, nx)?;
        let bytes = (field.rows.len() + 1) * field.stride * size_of::<T>();
        if let Memory::Mapped(map) = &mut field.memory {
            for byte in (0..bytes).step_by(4096) {
                map[byte] = 0;
            }
        }
        Ok(field)
    }

    /// As [`new`](Self::new), without making the pages of a large one: the first write to one makes it, and finds it in
    /// the cache, and until then reading it reads one page of zeros. Of a small one all zeros are written here.
    pub fn lazy(rows: Range<isize>, nx: usize) -> io::Result<Field<T>> {
        #[cfg(test)]
        failing::next()?;
        let padded = (nx + 2 * PAD).next_multiple_of(16);
        // An odd number of 64-byte lines between rows, so that equal columns of many rows spread over the cache sets.
        let line = 64 / size_of::<T>();
        let lines = padded.div_ceil(line) | 1;
        let stride = lines * line;
        let bytes = (rows.len() + 1)
            .checked_mul(stride)
            .and_then(|elements| elements.checked_mul(size_of::<T>()))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Field {
            memory: Memory::new(bytes)?,
            rows,
            nx,
            stride,
            element: PhantomData,
        })
    }

    /// The stored rows.
    pub fn rows(&self) -> Range<isize> {
        self.rows.clone()
    }

    /// Whether all of `rows` are stored, `nx` columns wide.
    pub fn covers(&self, rows: &Range<isize>, nx: usize) -> bool {
        self.rows.start <= rows.start && rows.end <= self.rows.end && nx == self.nx
    }

    /// Columns of a row, without padding.
    pub fn columns(&self) -> usize {
        self.nx
    }

    /// Elements from one row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Address of column 0 of row `y`.
    ///
    /// Columns −[`PAD`] … nx + [`PAD`] − 1 are part of the allocation. Panics if the row is not stored.
    pub fn row_ptr(&self, y: isize) -> *const T {
        // SAFETY: `offset` is inside the memory, which was sized for every stored row.
        unsafe { self.memory.bytes().as_ptr().cast::<T>().add(self.offset(y)) }
    }

    /// As [`Field::row_ptr`], for writing.
    pub fn row_ptr_mut(&mut self, y: isize) -> *mut T {
        let offset = self.offset(y);
        // SAFETY: as in `row_ptr`.
        unsafe { self.memory.bytes_mut().as_mut_ptr().cast::<T>().add(offset) }
    }

    /// Columns 0 … nx − 1 of row `y`. Panics if the row is not stored.
    pub fn row(&self, y: isize) -> &[T] {
        // SAFETY: nx elements from column 0 on are inside the row; the memory lives as long as `self` and any bit
        // pattern is a valid `T`.
        unsafe { std::slice::from_raw_parts(self.row_ptr(y), self.nx) }
    }

    /// Columns −`pad` … nx + `pad` − 1 of row `y`. Panics if the row is not stored or `pad` exceeds [`PAD`].
    pub fn with_padding(&self, y: isize, pad: usize) -> &[T] {
        assert!(pad <= PAD);
        // SAFETY: PAD columns on both sides of the nx are inside the row; else as in `row`.
        unsafe { std::slice::from_raw_parts(self.row_ptr(y).sub(pad), self.nx + 2 * pad) }
    }

    /// As [`Field::with_padding`], for writing.
    pub fn with_padding_mut(&mut self, y: isize, pad: usize) -> &mut [T] {
        let len = self.nx + 2 * pad;
        &mut self.padded_row_mut(y)[PAD - pad..][..len]
    }

    /// As [`Field::row`], for writing.
    pub fn row_mut(&mut self, y: isize) -> &mut [T] {
        let nx = self.nx;
        // SAFETY: as in `row`; `&mut self` makes the borrow exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.row_ptr_mut(y), nx) }
    }

    /// Row `y` with the padding: element `PAD + x` is column x. Panics if the row is not stored.
    pub fn padded_row_mut(&mut self, y: isize) -> &mut [T] {
        let len = self.nx + 2 * PAD;
        // SAFETY: PAD columns on both sides of the nx are inside the row; exclusive through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.row_ptr_mut(y).sub(PAD), len) }
    }

    /// All rows, to be read and written side by side.
    pub fn shared(&mut self) -> SharedRows<'_, T> {
        let (first, stride, nx) = (self.rows.start, self.stride, self.nx);
        let cells = Cell::from_mut(cast_slice_mut(self.memory.bytes_mut())).as_slice_of_cells();
        SharedRows {
            cells,
            first,
            stride,
            nx,
        }
    }

    /// Makes row `to` a copy of row `from`. Panics if either is not stored.
    pub fn copy_row(&mut self, from: isize, to: isize) {
        let (from, to) = (self.offset(from), self.offset(to));
        let bytes = size_of::<T>();
        self.memory
            .bytes_mut()
            .copy_within(from * bytes..(from + self.nx) * bytes, to * bytes);
    }

    fn offset(&self, y: isize) -> usize {
        assert!(
            self.rows.contains(&y),
            "row {y} is not among the stored rows {:?}",
            self.rows
        );
        (y - self.rows.start) as usize * self.stride + PAD
    }
}

/// The rows of a [`Field`], each of which one who has another may change.
#[derive(Clone, Copy)]
pub struct SharedRows<'a, T> {
    cells: &'a [Cell<T>],
    first: isize,
    stride: usize,
    nx: usize,
}

impl<'a, T> SharedRows<'a, T> {
    /// As [`Field::with_padding`].
    #[inline(always)]
    pub fn with_padding(&self, y: isize, pad: usize) -> &'a [Cell<T>] {
        assert!(pad <= PAD);
        let column_0 = (y - self.first) as usize * self.stride + PAD;
        &self.cells[column_0 - pad..column_0 + self.nx + pad]
    }
}

/// Lets a thread run out of memory, for tests.
#[cfg(test)]
pub mod failing {
    use std::cell::Cell;
    use std::io;

    thread_local!(static LEFT: Cell<Option<usize>> = const { Cell::new(None) });

    /// This thread has memory for `fields` more; `None`: for any number.
    pub fn after(fields: Option<usize>) {
        LEFT.set(fields);
    }

    pub(super) fn next() -> io::Result<()> {
        match LEFT.get() {
            Some(0) => Err(io::ErrorKind::OutOfMemory.into()),
            left => {
                LEFT.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
}
