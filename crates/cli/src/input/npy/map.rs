//! Mapped NPY files, lent as typed slices.
// Mapping a file is unsafe in itself: see the one block below.
#![allow(unsafe_code)]

use std::fs::File;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use memmap2::Mmap;

use super::dtype::{Dtype, Shape};
use super::error::{NpyError, NpyProblem};
use super::header::Header;

/// An NPY file, mapped: pages are read when they are touched, and never twice.
///
/// The file must not be changed or cut while it is mapped, as with any mapped file.
#[derive(Debug)]
pub struct NpyMap {
    path: PathBuf,
    map: Mmap,
    header: Header,
}

impl NpyMap {
    /// Maps `path` and checks its header against its length.
    ///
    /// # Errors
    /// [`NpyError`], naming the file and what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, NpyError> {
        let failed = |problem| NpyError {
            path: path.to_owned(),
            problem,
        };
        let io = |error| failed(NpyProblem::Open(error));
        // The kind is looked up before opening: opening a pipe would wait for its writer.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(failed(NpyProblem::NotAFile));
        }
        let file = File::open(path).map_err(io)?;
        // SAFETY: the mapping is private to this object, read-only, and lives as long as
        // the slices lent from it. That nobody changes or cuts the file meanwhile cannot
        // be enforced by any process on Linux; it is the documented contract of the type.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        let header = Header::parse(&map).map_err(failed)?;
        check_length(&header, map.len()).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            map,
            header,
        })
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.header.dtype
    }

    /// The shape, slowest axis first.
    pub fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// The data as elements of `T`, which has the size of the file's type: the caller
    /// has looked at [`NpyMap::dtype`].
    ///
    /// # Errors
    /// [`NpyProblem::Misaligned`] if the writer put the data at an odd place.
    ///
    /// # Panics
    /// If `T` has another size than the file's type.
    pub fn elements<T: Pod>(&self) -> Result<&[T], NpyError> {
        assert_eq!(size_of::<T>(), self.header.dtype.size());
        let offset = self.header.data_offset;
        bytemuck::try_cast_slice(&self.map[offset..]).map_err(|_| {
            self.error(NpyProblem::Misaligned {
                offset,
                align: align_of::<T>(),
            })
        })
    }

    /// The data as bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.map[self.header.data_offset..]
    }

    /// The shape as rows × columns.
    ///
    /// # Errors
    /// [`NpyProblem::Shape`] unless there are two axes.
    pub fn rows_columns(&self) -> Result<(usize, usize), NpyError> {
        match self.header.shape.0[..] {
            [rows, columns] => Ok((rows, columns)),
            _ => Err(self.wrong_shape("(rows, columns)")),
        }
    }

    /// The error for a shape that is not the `expected` one.
    pub fn wrong_shape(&self, expected: impl Into<String>) -> NpyError {
        self.error(NpyProblem::Shape {
            found: self.header.shape.clone(),
            expected: expected.into(),
        })
    }

    /// The error for a type that is not one of the `accepted`.
    pub fn wrong_dtype(&self, accepted: &'static str) -> NpyError {
        self.error(NpyProblem::Dtype {
            found: self.header.dtype,
            accepted,
        })
    }

    fn error(&self, problem: NpyProblem) -> NpyError {
        NpyError {
            path: self.path.clone(),
            problem,
        }
    }
}

fn check_length(header: &Header, file_bytes: usize) -> Result<(), NpyProblem> {
    let lengths = &header.shape.0;
    if lengths.contains(&0) {
        return Err(NpyProblem::NoElements {
            found: header.shape.clone(),
        });
    }
    let bytes = lengths
        .iter()
        .try_fold(header.dtype.size(), |product, &n| product.checked_mul(n));
    let expected = bytes.and_then(|bytes| bytes.checked_add(header.data_offset));
    let expected = expected
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(NpyProblem::TooLarge)? as u64;
    let found = file_bytes as u64;
    match found.cmp(&expected) {
        std::cmp::Ordering::Less => Err(NpyProblem::Truncated { expected, found }),
        std::cmp::Ordering::Greater => Err(NpyProblem::Trailing {
            extra: found - expected,
            expected,
        }),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(bytes: &[u8]) -> Result<NpyMap, NpyError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, bytes).unwrap();
        NpyMap::open(&path)
    }

    fn message(bytes: &[u8]) -> String {
        open(bytes).unwrap_err().problem.to_string()
    }

    fn file(shape: &[usize], data: &[u8]) -> Vec<u8> {
        let mut bytes = Header::write(Dtype::F32, &Shape(shape.to_vec()));
        bytes.extend(data);
        bytes
    }

    #[test]
    fn lends_the_elements() {
        let map = open(&file(&[2, 1], bytemuck::cast_slice(&[1.5f32, -2.0]))).unwrap();
        assert_eq!(map.elements::<f32>().unwrap(), [1.5, -2.0]);
        assert_eq!(map.rows_columns().unwrap(), (2, 1));
        assert_eq!(map.bytes().len(), 8);
    }

    #[test]
    fn a_file_written_by_npyz_is_read() {
        use npyz::WriterBuilder;
        let mut bytes = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(&[2, 3]);
        let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
        writer.extend([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        writer.finish().unwrap();
        let map = open(&bytes).unwrap();
        assert_eq!(
            (map.dtype(), map.shape().to_string()),
            (Dtype::F64, "(2, 3)".into())
        );
        assert_eq!(
            map.elements::<f64>().unwrap(),
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        );
    }

    #[test]
    fn lengths_are_checked() {
        assert_eq!(
            message(&file(&[2, 2], &[0; 15])),
            "truncated: 144 bytes expected, 143 found"
        );
        assert_eq!(
            message(&file(&[2, 2], &[0; 18])),
            "2 bytes follow the data (144 bytes expected)"
        );
        assert_eq!(message(&file(&[0, 2], &[])), "shape (0, 2) has no elements");
        let huge = usize::MAX / 3;
        assert_eq!(
            message(&file(&[huge, huge], &[])),
            "the shape has more elements than can be addressed"
        );
        assert_eq!(
            message(&file(&[usize::MAX >> 3, 1], &[])),
            "the shape has more elements than can be addressed"
        );
        assert_eq!(
            message(b""),
            "not an NPY file (the first bytes are not \\x93NUMPY)"
        );
    }

    #[test]
    fn files_that_cannot_be_mapped() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            NpyMap::open(folder.path()).unwrap_err().problem,
            NpyProblem::NotAFile
        ));
        let missing = NpyMap::open(&folder.path().join("none.npy"))
            .unwrap_err()
            .to_string();
        assert!(
            missing.contains("none.npy: cannot read: No such file"),
            "{missing}"
        );
    }

    #[test]
    fn odd_offsets_are_refused_not_misread() {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n";
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.extend([0; 4]);
        let offset = bytes.len() - 4;
        let map = open(&bytes).unwrap();
        assert_ne!(offset % 4, 0);
        assert!(matches!(
            map.elements::<f32>().unwrap_err().problem,
            NpyProblem::Misaligned { .. }
        ));
    }
}
