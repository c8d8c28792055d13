//! Writing an NPY file row by row.

use bytemuck::Pod;

use crate::input::npy::{Dtype, Header, Shape};
use crate::output::staged::{OutputError, StagedFile};

/// An NPY file being written; it appears when [`NpyWriter::finish`] succeeds.
pub struct NpyWriter {
    file: StagedFile,
}

impl NpyWriter {
    /// Starts an array of `shape` in `file`.
    pub fn new(mut file: StagedFile, dtype: Dtype, shape: &Shape) -> Result<Self, OutputError> {
        file.put(&Header::write(dtype, shape))?;
        Ok(Self { file })
    }

    /// Appends `elements`, in row-major order.
    pub fn put<T: Pod>(&mut self, elements: &[T]) -> Result<(), OutputError> {
        self.file.put(bytemuck::cast_slice(elements))
    }

    /// Completes the file.
    pub fn finish(self) -> Result<(), OutputError> {
        self.file.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::npy::NpyMap;

    #[test]
    fn written_rows_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let file = StagedFile::create(&path).unwrap();
        let mut writer = NpyWriter::new(file, Dtype::F64, &Shape(vec![2, 2])).unwrap();
        writer.put(&[1.0, 2.0]).unwrap();
        writer.put(&[3.0, 4.0]).unwrap();
        writer.finish().unwrap();
        let map = NpyMap::open(&path).unwrap();
        assert_eq!(map.elements::<f64>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }
}
