//! Arguments of kernels.
#![allow(unsafe_code)] // Traits whose implementations the launch trusts.

use std::ffi::c_void;

use bytemuck::Pod;
use half::{bf16, f16};

use crate::driver::memory::{Buffer, BufferRef, PinnedBuffer};

/// One argument: numbers, buffers and symmetric objects (as the address of their first element on this
/// PE), and with [`ByValue`] structures.
///
/// # Safety
/// `pointer` points to `size` bytes that are valid while `self` is borrowed.
pub unsafe trait KernelArg {
    /// Where the argument's bytes are.
    fn pointer(&self) -> *const c_void;
    /// How many there are.
    fn size(&self) -> usize;
}

/// A `#[repr(C)]` structure passed by value; its layout must be that of the kernel's parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByValue<T: Pod>(pub T);

// SAFETY: points to the value itself.
unsafe impl<T: Pod> KernelArg for ByValue<T> {
    fn pointer(&self) -> *const c_void {
        (&raw const self.0).cast()
    }
    fn size(&self) -> usize {
        size_of::<T>()
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        // SAFETY: points to the value itself.
        unsafe impl KernelArg for $number {
            fn pointer(&self) -> *const c_void {
                (&raw const *self).cast()
            }
            fn size(&self) -> usize {
                size_of::<$number>()
            }
        }
    )*};
}
numbers!(
    u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64, f16, bf16, bool
);

// SAFETY: points to the address in the buffer's handle.
unsafe impl<T: Pod> KernelArg for &Buffer<T> {
    fn pointer(&self) -> *const c_void {
        (&raw const self.address).cast()
    }
    fn size(&self) -> usize {
        size_of_val(&self.address)
    }
}

// SAFETY: points to the address in the view.
unsafe impl<T: Pod> KernelArg for BufferRef<'_, T> {
    fn pointer(&self) -> *const c_void {
        (&raw const self.address).cast()
    }
    fn size(&self) -> usize {
        size_of_val(&self.address)
    }
}

// SAFETY: points to the address in the buffer's handle, which is the same on the GPU.
unsafe impl<T: Pod> KernelArg for &PinnedBuffer<T> {
    fn pointer(&self) -> *const c_void {
        self.parameter()
    }
    fn size(&self) -> usize {
        size_of::<*const T>()
    }
}

/// The arguments of a launch: a tuple of up to sixteen [`KernelArg`]s, `()` for none.
pub trait KernelArgs {
    /// Calls `launch` with the pointers and the sizes of the arguments, in order.
    fn with<R>(&self, launch: impl FnOnce(&mut [*mut c_void], &[usize]) -> R) -> R;
}

impl KernelArgs for () {
    fn with<R>(&self, launch: impl FnOnce(&mut [*mut c_void], &[usize]) -> R) -> R {
        launch(&mut [], &[])
    }
}

macro_rules! tuples {
    ($($first:ident $($rest:ident)*)?) => {$(
        impl<$first: KernelArg $(, $rest: KernelArg)*> KernelArgs for ($first, $($rest,)*) {
            #[allow(non_snake_case)] // The type parameters name the fields, too.
            fn with<Out>(&self, launch: impl FnOnce(&mut [*mut c_void], &[usize]) -> Out) -> Out {
                let ($first, $($rest,)*) = self;
                launch(
                    &mut [$first.pointer().cast_mut() $(, $rest.pointer().cast_mut())*],
                    &[$first.size() $(, $rest.size())*],
                )
            }
        }
        tuples!($($rest)*);
    )?};
}
tuples!(A B C D E F G H I J K L M N O P);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_given_in_order_with_their_bytes() {
        #[repr(C)]
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        struct Pair {
            a: u16,
            b: u16,
        }
        let args = (7u32, -1i64, 2.5f32, ByValue(Pair { a: 1, b: 2 }), f16::ONE);
        args.with(|pointers, sizes| {
            assert_eq!(sizes, [4, 8, 4, 4, 2]);
            // SAFETY: each pointer is to a value of that type in `args`.
            unsafe {
                assert_eq!(*pointers[0].cast::<u32>(), 7);
                assert_eq!(*pointers[1].cast::<i64>(), -1);
                assert_eq!(*pointers[2].cast::<f32>(), 2.5);
                let pair = *pointers[3].cast::<Pair>();
                assert_eq!((pair.a, pair.b), (1, 2));
                assert_eq!(*pointers[4].cast::<f16>(), f16::ONE);
            }
        });
        ().with(|pointers, sizes| assert!(pointers.is_empty() && sizes.is_empty()));
    }
}
