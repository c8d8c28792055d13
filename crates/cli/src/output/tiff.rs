//! Writing a GeoTIFF: one band, strips of about a megabyte, nothing packed.

use std::io::Cursor;

use bytemuck::Pod;
use tiff::TiffResult;
use tiff::encoder::colortype::{ColorType, Gray32Float, Gray64Float};
use tiff::encoder::{TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard, TiffValue};

use crate::input::npy::Dtype;
use crate::input::tiff::GeoTags;
use crate::output::staged::{OutputError, StagedFile};

/// Most bytes of numbers in a TIFF whose offsets have 32 bits; the rest is for its head, strip tables and tags.
const MOST_CLASSIC: usize = (u32::MAX as usize) - (64 << 20);

/// A TIFF being written; it appears when [`TiffWriter::finish`] succeeds.
///
/// The format's head, which comes first, says where its directory is, which comes last, and a file can be a pipe: so
/// the whole is put together in memory.
pub struct TiffWriter {
    file: StagedFile,
    dtype: Dtype,
    columns: usize,
    rows: usize,
    tags: GeoTags,
    bytes: Vec<u8>,
}

impl TiffWriter {
    /// Starts a plane of `columns` × `rows` numbers, f32 or f64, that lies where `tags` say.
    pub fn new(
        file: StagedFile,
        dtype: Dtype,
        (columns, rows): (usize, usize),
        tags: GeoTags,
    ) -> Self {
        let bytes = Vec::with_capacity(columns * rows * dtype.size());
        Self {
            file,
            dtype,
            columns,
            rows,
            tags,
            bytes,
        }
    }

    /// Appends `elements`, in row-major order.
    pub fn put<T: Pod>(&mut self, elements: &[T]) {
        self.bytes.extend_from_slice(bytemuck::cast_slice(elements));
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<(), OutputError> {
        let encoded = match (self.dtype, self.bytes.len() <= MOST_CLASSIC) {
            (Dtype::F64, true) => self.encoded::<Gray64Float, f64, TiffKindStandard>(),
            (Dtype::F64, false) => self.encoded::<Gray64Float, f64, TiffKindBig>(),
            (_, true) => self.encoded::<Gray32Float, f32, TiffKindStandard>(),
            (_, false) => self.encoded::<Gray32Float, f32, TiffKindBig>(),
        };
        let encoded = encoded.map_err(|error| {
            OutputError::write(self.file.target(), std::io::Error::other(error))
        })?;
        self.file.put(&encoded)?;
        self.file.commit()
    }

    fn encoded<C, T, K>(&self) -> TiffResult<Vec<u8>>
    where
        C: ColorType<Inner = T>,
        T: Pod,
        [T]: TiffValue,
        K: TiffKind,
    {
        let mut bytes = Vec::with_capacity(self.bytes.len() + (1 << 16));
        let mut encoder = TiffEncoder::<_, K>::new_generic(Cursor::new(&mut bytes))?;
        let (columns, rows) = (u32::try_from(self.columns)?, u32::try_from(self.rows)?);
        let mut image = encoder.new_image::<C>(columns, rows)?;
        for (tag, value) in self.tags.iter() {
            image.encoder().write_tag_buf(tag, value)?;
        }
        let mut rest = &self.bytes[..];
        while image.next_strip_sample_count() > 0 {
            let bytes = usize::try_from(image.next_strip_sample_count())? * size_of::<T>();
            let (strip, others) = rest.split_at(bytes.min(rest.len()));
            // Copied, since the bytes need not lie as `T` has to.
            let numbers = strip.chunks_exact(size_of::<T>());
            let numbers: Vec<T> = numbers.map(bytemuck::pod_read_unaligned).collect();
            image.write_strip(&numbers)?;
            rest = others;
        }
        image.finish()?;
        Ok(bytes)
    }
}
