//! What can be wrong with an NPY file, in one line each.

use std::io;
use std::path::PathBuf;

use super::dtype::{Dtype, Shape};

/// An NPY file that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct NpyError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: NpyProblem,
}

/// What is wrong with an NPY file.
#[derive(Debug, thiserror::Error)]
pub enum NpyProblem {
    /// It cannot be opened or mapped.
    #[error("cannot read: {0}")]
    Open(io::Error),
    /// A folder, a named pipe, a device or a terminal.
    #[error("not a regular file, nor a pipe by the name -")]
    NotAFile,
    /// A pipe, and several processes that would each take a part of it.
    #[error("a pipe has one reader, and there are several processes; save it as a file")]
    PipeOfMany,
    /// The first bytes are not NPY's.
    #[error("not an NPY file (the first bytes are not \\x93NUMPY)")]
    NotNpy,
    /// A version of the format that is not known.
    #[error("NPY format version {major}.{minor} is not known (1.0, 2.0 and 3.0 are)")]
    Version {
        /// Major version found.
        major: u8,
        /// Minor version found.
        minor: u8,
    },
    /// A header of an absurd length.
    #[error("the header claims {bytes} bytes; an array of numbers needs fewer than {limit}")]
    HeaderTooLong {
        /// Length claimed.
        bytes: usize,
        /// Most that is read.
        limit: usize,
    },
    /// The header is not the dictionary that it should be.
    #[error("broken header: {0}")]
    Header(String),
    /// Column-major data.
    #[error("the array is in Fortran order; save it with numpy.ascontiguousarray")]
    FortranOrder,
    /// Most significant byte first.
    #[error("dtype '{descr}' is big-endian; save it with a.astype(a.dtype.newbyteorder('<'))")]
    BigEndian {
        /// Type string found.
        descr: String,
    },
    /// Python objects.
    #[error("the array holds Python objects, not numbers")]
    Objects,
    /// A type that is not a plain number.
    #[error("dtype {descr} is not a plain number type")]
    NotANumber {
        /// Type description found.
        descr: String,
    },
    /// A number type that is not taken here.
    #[error("dtype {found}, but {accepted} is accepted here")]
    Dtype {
        /// The file's type.
        found: Dtype,
        /// The types that would be right.
        accepted: &'static str,
    },
    /// The wrong shape.
    #[error("shape {found}, but {expected} is needed")]
    Shape {
        /// The file's shape.
        found: Shape,
        /// What would be right.
        expected: String,
    },
    /// No elements.
    #[error("shape {found} has no elements")]
    NoElements {
        /// The file's shape.
        found: Shape,
    },
    /// More bytes than can be addressed.
    #[error("the shape has more elements than can be addressed")]
    TooLarge,
    /// Cut short.
    #[error("truncated: {expected} bytes expected, {found} found")]
    Truncated {
        /// Bytes that header and data need.
        expected: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// Bytes after the data.
    #[error("{extra} bytes follow the data ({expected} bytes expected)")]
    Trailing {
        /// Bytes too many.
        extra: u64,
        /// Bytes that header and data need.
        expected: u64,
    },
    /// Data that begins at an odd place.
    #[error(
        "the data begin at byte {offset}, not at a multiple of {align}; save it with numpy.save"
    )]
    Misaligned {
        /// Where the data begin.
        offset: usize,
        /// The type's alignment.
        align: usize,
    },
}
