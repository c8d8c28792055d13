//! Number types and shapes of arrays.

use std::fmt;

/// A plain number type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dtype {
    /// One byte, 0 or 1.
    Bool,
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// Two IEEE binary32: real and imaginary part.
    C64,
    /// Two IEEE binary64.
    C128,
}

/// Each type with numpy's kind-and-size code and with the name used in messages.
const DTYPES: [(Dtype, &str, &str, usize); 14] = [
    (Dtype::Bool, "b1", "bool", 1),
    (Dtype::F16, "f2", "f16", 2),
    (Dtype::F32, "f4", "f32", 4),
    (Dtype::F64, "f8", "f64", 8),
    (Dtype::I8, "i1", "i8", 1),
    (Dtype::I16, "i2", "i16", 2),
    (Dtype::I32, "i4", "i32", 4),
    (Dtype::I64, "i8", "i64", 8),
    (Dtype::U8, "u1", "u8", 1),
    (Dtype::U16, "u2", "u16", 2),
    (Dtype::U32, "u4", "u32", 4),
    (Dtype::U64, "u8", "u64", 8),
    (Dtype::C64, "c8", "complex64", 8),
    (Dtype::C128, "c16", "complex128", 16),
];

impl Dtype {
    fn row(self) -> &'static (Dtype, &'static str, &'static str, usize) {
        &DTYPES[self as usize]
    }

    /// The name in Rust's manner: `f32`, `u8`, …
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        self.row().3
    }

    /// numpy's type string, `<f4` say.
    pub(super) fn descr(self) -> String {
        let order = if self.size() == 1 { '|' } else { '<' };
        format!("{order}{}", self.row().1)
    }

    /// The type with numpy's kind-and-size code, `f4` say.
    pub(super) fn of_code(code: &str) -> Option<Self> {
        let row = DTYPES.iter().find(|row| row.1 == code);
        row.map(|row| row.0)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The lengths of an array's axes, slowest first; displayed as Python does, `(344, 403)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape(pub Vec<usize>);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<String> = self.0.iter().map(usize::to_string).collect();
        let comma = if lengths.len() == 1 { "," } else { "" };
        write!(f, "({}{comma})", lengths.join(", "))
    }
}
