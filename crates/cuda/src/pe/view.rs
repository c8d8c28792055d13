//! Views of device memory: parts of symmetric objects, and either side of a copy.

use std::ops::RangeBounds;

use bytemuck::Pod;

use crate::driver::memory::{Buffer, BufferRef, limits};
use crate::pe::heap::DeviceSym;
use crate::pe::world::DeviceWorld;

/// Consecutive elements of a [`DeviceSym`], the same on every PE. `&sym` converts to a view of all.
#[derive(Debug)]
pub struct DeviceSymRef<'a, T> {
    object: &'a DeviceSym<T>,
    start: usize,
    len: usize,
}

impl<T> Clone for DeviceSymRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSymRef<'_, T> {}

impl<'a, T: Pod> From<&'a DeviceSym<T>> for DeviceSymRef<'a, T> {
    fn from(object: &'a DeviceSym<T>) -> Self {
        Self {
            object,
            start: 0,
            len: object.len(),
        }
    }
}

impl<T: Pod> DeviceSym<T> {
    /// A view of some of its elements. Panics if they are out of range, as slices do.
    pub fn range(&self, range: impl RangeBounds<usize>) -> DeviceSymRef<'_, T> {
        DeviceSymRef::from(self).range(range)
    }

    /// A view of one element. Panics if there is no such element.
    pub fn at(&self, index: usize) -> DeviceSymRef<'_, T> {
        self.range(index..=index)
    }
}

impl<T: Pod> DeviceSymRef<'_, T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Byte offset from the start of the heap, the same on every PE.
    pub fn offset(&self) -> usize {
        self.object.offset() + self.start * size_of::<T>()
    }

    /// Its device address on `pe`, in this PE's mapping. Panics if it is of another world, or `pe` does not exist.
    pub(crate) fn address(&self, world: &DeviceWorld<'_>, pe: usize) -> u64 {
        let start = self.start * size_of::<T>();
        world.heap().address_in(self.object, start, pe)
    }

    /// Its byte offset in the heap of `world`. Panics if it is of another one.
    pub(crate) fn place(&self, world: &DeviceWorld<'_>) -> usize {
        (self.address(world, 0) - world.heap().address(0, 0)) as usize
    }

    /// A view of some of its elements. Panics if they are out of range, as slices do.
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let (start, end) = limits(range, self.len);
        Self {
            start: self.start + start,
            len: end - start,
            ..self
        }
    }
}

/// Device memory on this PE's side of a copy: a buffer, or this PE's part of a symmetric object, or
/// views of them.
#[derive(Debug)]
pub enum DeviceMemory<'a, T: Pod> {
    /// Memory of this PE alone.
    Private(BufferRef<'a, T>),
    /// This PE's part of a symmetric object.
    Symmetric(DeviceSymRef<'a, T>),
}

impl<T: Pod> Clone for DeviceMemory<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Pod> Copy for DeviceMemory<'_, T> {}

impl<'a, T: Pod> From<&'a Buffer<T>> for DeviceMemory<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self::Private(buffer.into())
    }
}

impl<'a, T: Pod> From<BufferRef<'a, T>> for DeviceMemory<'a, T> {
    fn from(buffer: BufferRef<'a, T>) -> Self {
        Self::Private(buffer)
    }
}

impl<'a, T: Pod> From<&'a DeviceSym<T>> for DeviceMemory<'a, T> {
    fn from(object: &'a DeviceSym<T>) -> Self {
        Self::Symmetric(object.into())
    }
}

impl<'a, T: Pod> From<DeviceSymRef<'a, T>> for DeviceMemory<'a, T> {
    fn from(view: DeviceSymRef<'a, T>) -> Self {
        Self::Symmetric(view)
    }
}

impl<T: Pod> DeviceMemory<'_, T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Private(buffer) => buffer.len(),
            Self::Symmetric(view) => view.len(),
        }
    }

    /// Its device address in `world`'s process.
    pub(crate) fn address(&self, world: &DeviceWorld<'_>) -> u64 {
        match self {
            Self::Private(buffer) => buffer.address(),
            Self::Symmetric(view) => view.address(world, world.pe().my_pe()),
        }
    }
}
