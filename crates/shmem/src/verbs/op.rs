//! Operations of element-wise reductions across PEs.
#![allow(unsafe_code)] // declares complex numbers to be plain data

use bytemuck::{Pod, Zeroable};

/// A binary operation on `T`. Reductions apply it in rank order: `((v0 ∘ v1) ∘ v2) ∘ …`.
pub trait ReduceOp<T: Pod>: Copy {
    /// Tells operations and element types apart, so that PEs can check that they agree.
    const ID: u16;
    /// `a ∘ b`.
    fn apply(a: T, b: T) -> T;
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $id:literal),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        impl $name {
            /// The upper byte of [`ReduceOp::ID`], for types of sibling crates.
            #[doc(hidden)]
            pub const CODE: u16 = $id;
        }
    )*};
}
operations!(
    /// Sum; integers wrap.
    Sum = 1,
    /// Product; integers wrap.
    Prod = 2,
    /// Minimum; a NaN wins, −0 < +0.
    Min = 3,
    /// Maximum; a NaN wins, −0 < +0.
    Max = 4,
    /// Bitwise and, integers only.
    And = 5,
    /// Bitwise or, integers only.
    Or = 6,
    /// Bitwise exclusive or, integers only.
    Xor = 7
);

macro_rules! integers {
    ($($int:ty = $id:literal),*) => {$(
        integers!(@ $int, $id, Sum, |a, b| a.wrapping_add(b));
        integers!(@ $int, $id, Prod, |a, b| a.wrapping_mul(b));
        integers!(@ $int, $id, Min, |a, b| a.min(b));
        integers!(@ $int, $id, Max, |a, b| a.max(b));
        integers!(@ $int, $id, And, |a, b| a & b);
        integers!(@ $int, $id, Or, |a, b| a | b);
        integers!(@ $int, $id, Xor, |a, b| a ^ b);
    )*};
    (@ $int:ty, $id:literal, $op:ident, |$a:ident, $b:ident| $apply:expr) => {
        impl ReduceOp<$int> for $op {
            const ID: u16 = $op::CODE << 8 | $id;
            #[inline(always)]
            fn apply($a: $int, $b: $int) -> $int { $apply }
        }
    };
}
integers!(
    i8 = 1,
    i16 = 2,
    i32 = 3,
    i64 = 4,
    u8 = 5,
    u16 = 6,
    u32 = 7,
    u64 = 8,
    isize = 9,
    usize = 10
);

macro_rules! floats {
    ($($float:ty = $id:literal),*) => {$(
        impl ReduceOp<$float> for Sum {
            const ID: u16 = Sum::CODE << 8 | $id;
            #[inline(always)]
            fn apply(a: $float, b: $float) -> $float { a + b }
        }
        impl ReduceOp<$float> for Prod {
            const ID: u16 = Prod::CODE << 8 | $id;
            #[inline(always)]
            fn apply(a: $float, b: $float) -> $float { a * b }
        }
        impl ReduceOp<$float> for Min {
            const ID: u16 = Min::CODE << 8 | $id;
            #[inline(always)]
            fn apply(a: $float, b: $float) -> $float { extreme(a, b, std::cmp::Ordering::Less) }
        }
        impl ReduceOp<$float> for Max {
            const ID: u16 = Max::CODE << 8 | $id;
            #[inline(always)]
            fn apply(a: $float, b: $float) -> $float { extreme(a, b, std::cmp::Ordering::Greater) }
        }
    )*};
}
floats!(f32 = 11, f64 = 12);

/// A complex number laid out as C's; it has sums and products.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<F> {
    /// Real part.
    pub re: F,
    /// Imaginary part.
    pub im: F,
}

macro_rules! complex {
    ($($float:ty = $id:literal),*) => {$(
        // SAFETY: two floats without padding; zero bits are zero.
        unsafe impl Zeroable for Complex<$float> {}
        // SAFETY: as above, and any bits are valid floats.
        unsafe impl Pod for Complex<$float> {}
        impl ReduceOp<Complex<$float>> for Sum {
            const ID: u16 = Sum::CODE << 8 | $id;
            #[inline(always)]
            fn apply(a: Complex<$float>, b: Complex<$float>) -> Complex<$float> {
                Complex { re: a.re + b.re, im: a.im + b.im }
            }
        }
        /// By the textbook's formula, without C's repair of infinities.
        impl ReduceOp<Complex<$float>> for Prod {
            const ID: u16 = Prod::CODE << 8 | $id;
            #[inline(always)]
            fn apply(a: Complex<$float>, b: Complex<$float>) -> Complex<$float> {
                Complex {
                    re: a.re * b.re - a.im * b.im,
                    im: a.re * b.im + a.im * b.re,
                }
            }
        }
    )*};
}
// 15 is C's long double, of crosswarp-capi.
complex!(f32 = 13, f64 = 14);

/// `a` if it is NaN or on the `wanted` side of `b` in the total order (−0 before +0), else `b`.
///
/// A NaN keeps its payload, as with `min_op` and `max_op` of the kernels; reductions of arrays (crosswarp-prim) return
/// the canonical NaN instead.
#[inline(always)]
fn extreme<F: num::Float>(a: F, b: F, wanted: std::cmp::Ordering) -> F {
    if a.nan() || (!b.nan() && a.order(b) == wanted) {
        a
    } else {
        b
    }
}

/// The two questions [`extreme`] asks of a float.
mod num {
    use std::cmp::Ordering;

    pub(super) trait Float: Copy {
        fn nan(self) -> bool;
        fn order(self, other: Self) -> Ordering;
    }
    impl Float for f32 {
        #[inline(always)]
        fn nan(self) -> bool {
            self.is_nan()
        }
        #[inline(always)]
        fn order(self, other: Self) -> Ordering {
            self.total_cmp(&other)
        }
    }
    impl Float for f64 {
        #[inline(always)]
        fn nan(self) -> bool {
            self.is_nan()
        }
        #[inline(always)]
        fn order(self, other: Self) -> Ordering {
            self.total_cmp(&other)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_of_floats_propagate_nan_and_order_zeros() {
        let min = <Min as ReduceOp<f64>>::apply;
        let max = <Max as ReduceOp<f64>>::apply;
        assert!(min(f64::NAN, 1.0).is_nan() && min(1.0, f64::NAN).is_nan());
        assert!(max(f64::NAN, 1.0).is_nan() && max(1.0, f64::NAN).is_nan());
        for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
            assert!(min(a, b).is_sign_negative());
            assert!(max(a, b).is_sign_positive());
        }
        assert_eq!(min(-1.0, 2.0), -1.0);
        assert_eq!(max(-1.0, f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn complex_numbers_add_and_multiply() {
        let (a, b) = (Complex { re: 1.0, im: 2.0 }, Complex { re: -3.0, im: 0.5 });
        let sum = <Sum as ReduceOp<Complex<f64>>>::apply(a, b);
        assert_eq!(sum, Complex { re: -2.0, im: 2.5 });
        // (1 + 2i)(-3 + i/2) = -3 + i/2 - 6i - 1
        let product = <Prod as ReduceOp<Complex<f64>>>::apply(a, b);
        assert_eq!(product, Complex { re: -4.0, im: -5.5 });
    }

    #[test]
    fn integer_operations_wrap() {
        assert_eq!(<Sum as ReduceOp<u8>>::apply(255, 2), 1);
        assert_eq!(<Prod as ReduceOp<i8>>::apply(127, 2), -2);
    }
}
