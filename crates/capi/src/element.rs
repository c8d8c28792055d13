//! What the reductions do with elements of each C type.

use bytemuck::Pod;
pub(crate) use crosswarp_shmem::op::Complex;
use crosswarp_shmem::op::{self, ReduceOp};

/// An operation on two elements.
pub(crate) trait Combine<T: Pod> {
    /// Tells the operations apart.
    const CODE: u64;
    /// `a ∘ b`.
    fn combine(a: T, b: T) -> T;
}

/// The operations of crosswarp-shmem, on the types it has.
macro_rules! as_in_rust {
    ($($op:ident = $code:literal: $($ty:ty)*;)*) => {$(
        pub(crate) struct $op;
        $(impl Combine<$ty> for $op {
            const CODE: u64 = $code;
            #[inline(always)]
            fn combine(a: $ty, b: $ty) -> $ty { <op::$op as ReduceOp<$ty>>::apply(a, b) }
        })*
    )*};
}
as_in_rust! {
    Sum = 1: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 Complex<f32> Complex<f64>;
    Prod = 2: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 Complex<f32> Complex<f64>;
    Min = 3: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    Max = 4: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    And = 5: i8 i16 i32 i64 u8 u16 u32 u64;
    Or = 6: i8 i16 i32 i64 u8 u16 u32 u64;
    Xor = 7: i8 i16 i32 i64 u8 u16 u32 u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complex_numbers_multiply() {
        let (a, b) = (Complex { re: 1.0, im: 2.0 }, Complex { re: 3.0, im: -1.0 });
        assert_eq!(Prod::combine(a, b), Complex { re: 5.0, im: 5.0 });
        assert_eq!(Sum::combine(a, b), Complex { re: 4.0, im: 1.0 });
    }
}
