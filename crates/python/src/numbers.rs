//! Operations and element types, which the Python side names by number.

use crosswarp::prim::{DType, Op};

use crate::error::Failure;

/// The operation of this number.
pub fn operation(number: usize) -> Result<Op, Failure> {
    let op = Op::ALL.get(number).copied();
    op.ok_or_else(|| Failure::Internal(format!("no operation {number}")))
}

/// The element type of this number.
pub fn element_type(number: usize) -> Result<DType, Failure> {
    let dtype = DType::ALL.get(number).copied();
    dtype.ok_or_else(|| Failure::Internal(format!("no element type {number}")))
}

/// Does something with the Rust type of an element type.
macro_rules! of_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = half::f16;
                $body
            }
            DType::Bf16 => {
                type $T = half::bf16;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::I8 => {
                type $T = i8;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::U8 => {
                type $T = u8;
                $body
            }
            DType::U16 => {
                type $T = u16;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
        }
    };
}

pub(crate) use of_type;
