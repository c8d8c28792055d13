//! Names of element types, and results whose type is known at run time.

use core::fmt;

use half::{bf16, f16};

macro_rules! element_types {
    ($($variant:ident($type:ident, $integer:ty),)*) => {
        /// An element type of arrays.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DType {
            $(#[doc = concat!("`", stringify!($type), "`")] $variant,)*
        }

        impl DType {
            /// All element types.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Bytes of one element.
            #[must_use]
            pub fn size(self) -> usize {
                match self { $(Self::$variant => size_of::<$type>(),)* }
            }
        }

        impl DType {
            /// Whether it is a floating-point type.
            #[must_use]
            pub fn is_float(self) -> bool {
                matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
            }
        }

        impl fmt::Display for DType {
            /// The Rust name of the type.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => stringify!($type),)* })
            }
        }

        /// A result, with its type.
        ///
        /// ```
        /// use crosswarp_prim::{DType, Op, Reducer, Value};
        ///
        /// let value = Reducer::new().reduce(Op::Mean, &[&[1.0f32, 2.0][..]])?;
        /// assert_eq!(value, Value::F32(1.5));
        /// assert_eq!(value.dtype(), DType::F32);
        /// assert_eq!((value.to_string(), value.hex()), ("1.5".into(), "0x3fc00000".into()));
        /// # Ok::<(), crosswarp_prim::ReduceError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Value {
            $(#[doc = concat!("A value of type `", stringify!($type), "`.")] $variant($type),)*
        }

        impl Value {
            /// The value's type.
            #[must_use]
            pub fn dtype(self) -> DType {
                match self { $(Self::$variant(_) => DType::$variant,)* }
            }

            /// The bit pattern, zero-extended.
            #[must_use]
            pub fn bits(self) -> u64 {
                match self { $(Self::$variant(value) => Scalar::bits(value),)* }
            }

            /// The nearest `f64`.
            #[must_use]
            pub fn to_f64(self) -> f64 {
                match self { $(Self::$variant(value) => num_traits::ToPrimitive::to_f64(&value).unwrap_or(f64::NAN),)* }
            }
        }

        impl fmt::Display for Value {
            /// The shortest decimal number that reads back as the same value.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$variant(value) => value.fmt(f),)* }
            }
        }

        $(
            impl From<$type> for Value {
                fn from(value: $type) -> Self {
                    Self::$variant(value)
                }
            }

            impl Scalar for $type {
                const DTYPE: DType = DType::$variant;
                fn bits(self) -> u64 {
                    bytemuck::cast::<Self, $integer>(self).into()
                }
                fn from_bits64(bits: u64) -> Self {
                    bytemuck::cast(bits as $integer)
                }
            }
        )*
    };
}

element_types! {
    F16(f16, u16),
    Bf16(bf16, u16),
    F32(f32, u32),
    F64(f64, u64),
    I8(i8, u8),
    I16(i16, u16),
    I32(i32, u32),
    I64(i64, u64),
    U8(u8, u8),
    U16(u16, u16),
    U32(u32, u32),
    U64(u64, u64),
}

impl Value {
    /// The bit pattern in hexadecimal, with as many digits as the type has: `0x3f800000`.
    #[must_use]
    pub fn hex(self) -> String {
        format!(
            "{:#0width$x}",
            self.bits(),
            width = 2 + 2 * self.dtype().size()
        )
    }
}

/// What a result can be: one of the twelve element types.
pub trait Scalar: bytemuck::Pod + Into<Value> + fmt::Debug + fmt::Display + PartialEq {
    /// The type's name at run time.
    const DTYPE: DType;
    /// The bit pattern, zero-extended.
    fn bits(self) -> u64;
    /// The value with this bit pattern; bits beyond the type's width are ignored.
    fn from_bits64(bits: u64) -> Self;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_bits() {
        assert_eq!(Value::from(-1i8).hex(), "0xff");
        assert_eq!(Value::from(bf16::ONE).hex(), "0x3f80");
        assert_eq!(Value::from(-0.0f64).hex(), "0x8000000000000000");
        assert_eq!(Value::from(7u64).to_string(), "7");
        assert_eq!(Value::from(f16::from_f32(0.1)).to_f64(), 0.0999755859375);
    }
}
