//! Planes of numbers from GeoTIFF files, and the tags that say where they lie.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiff::ColorType;
use tiff::decoder::{ChunkType, Decoder, DecodingResult, Limits};
use tiff::tags::{ByteOrder, PhotometricInterpretation, SampleFormat, Tag, Type, ValueBuffer};
use tiff::{TiffError, TiffResult};

use crate::input::files;
use crate::input::npy::Dtype;

/// Tags that are taken over into a file made of this one: where it lies, what its numbers are, which are void.
const CARRIED: [Tag; 8] = [
    Tag::ModelPixelScaleTag,
    Tag::ModelTiepointTag,
    Tag::ModelTransformationTag,
    Tag::GeoKeyDirectoryTag,
    Tag::GeoDoubleParamsTag,
    Tag::GeoAsciiParamsTag,
    GDAL_METADATA,
    Tag::GdalNodata,
];
/// The crate has no name for it.
const GDAL_METADATA: Tag = Tag::Unknown(42112);
/// What LZW makes of a byte at most: a code of 12 bits stands for fewer than 4096. Deflate makes less of it.
const MOST_UNPACKED: u64 = 4096;

/// A TIFF that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct RasterError {
    path: PathBuf,
    problem: RasterProblem,
}

/// What is wrong with a TIFF.
#[derive(Debug, thiserror::Error)]
enum RasterProblem {
    #[error("cannot read: {0}")]
    Open(std::io::Error),
    #[error("not a TIFF that can be read: {0}")]
    Decode(#[from] TiffError),
    #[error("{bands} bands; a field is one (gdal_translate -b 1 takes it out)")]
    Bands { bands: u16 },
    #[error("colours, not values ({0})")]
    Colours(&'static str),
    #[error(
        "samples of {bits} bits, {format}; i8, u8, i16, u16, i32, u32, f32 and f64 are accepted"
    )]
    Samples { bits: u8, format: &'static str },
    #[error("{columns} x {rows} pixels: there are none")]
    Empty { columns: u32, rows: u32 },
    #[error("truncated: {bytes} bytes can not hold {columns} x {rows} pixels")]
    TooShort { bytes: u64, columns: u32, rows: u32 },
    #[error("truncated: {expected} bytes expected, {bytes} found")]
    Cut { expected: u64, bytes: u64 },
    #[error("{} x {} pixels, but {} x {} are needed", found.0, found.1, needed.0, needed.1)]
    Size {
        found: (usize, usize),
        needed: (usize, usize),
    },
    #[error("the void value (GDAL_NODATA) is {0:?}, which is no number")]
    Nodata(String),
}

/// The tags of a raster that say where it lies, as they stand in its file.
#[derive(Clone, Default)]
pub struct GeoTags(Arc<[(Tag, ValueBuffer)]>);

impl GeoTags {
    /// Each tag with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Tag, &ValueBuffer)> {
        self.0.iter().map(|(tag, value)| (*tag, value))
    }
}

impl fmt::Debug for GeoTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(tag, _)| tag))
            .finish()
    }
}

/// A TIFF whose first image is known to be a plane of numbers; they are not decoded yet.
#[derive(Debug)]
pub struct Raster {
    path: PathBuf,
    decoder: Decoder<BufReader<File>>,
    /// Width.
    pub columns: usize,
    /// Height.
    pub rows: usize,
    /// Type of the numbers.
    pub dtype: Dtype,
    /// The value of void cells, if the file has one.
    pub nodata: Option<f64>,
}

impl Raster {
    /// Reads the head of `path`.
    ///
    /// # Errors
    /// [`RasterError`], naming the file and what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, RasterError> {
        Self::head(path).map_err(|problem| RasterError {
            path: path.to_owned(),
            problem,
        })
    }

    fn head(path: &Path) -> Result<Self, RasterProblem> {
        let file = files::open_regular(path).map_err(RasterProblem::Open)?;
        let bytes = file.metadata().map_err(RasterProblem::Open)?.len();
        let mut decoder = Decoder::new(BufReader::new(file)).map_err(plain)?;
        let (columns, rows) = decoder.dimensions()?;
        if columns == 0 || rows == 0 {
            return Err(RasterProblem::Empty { columns, rows });
        }
        let dtype = dtype(&mut decoder)?;
        // Without overflow: 2^32 x 2^32 x 8.
        let needed = u128::from(columns) * u128::from(rows) * dtype.size() as u128;
        let most = u128::from(bytes) * u128::from(MOST_UNPACKED);
        let Some(needed) = usize::try_from(needed).ok().filter(|_| needed <= most) else {
            return Err(RasterProblem::TooShort {
                bytes,
                columns,
                rows,
            });
        };
        let expected = end_of_data(&mut decoder)?;
        if expected > bytes {
            return Err(RasterProblem::Cut { expected, bytes });
        }
        let mut limits = Limits::default();
        limits.decoding_buffer_size = needed;
        // A strip or tile as it is packed, and unpacked: a file may be one strip.
        limits.intermediate_buffer_size = limits.intermediate_buffer_size.max(2 * needed);
        let mut decoder = decoder.with_limits(limits);
        let nodata = nodata(&mut decoder)?;
        Ok(Self {
            path: path.to_owned(),
            decoder,
            columns: columns as usize,
            rows: rows as usize,
            dtype,
            nodata,
        })
    }

    /// Refuses another size than `needed`: width and height.
    ///
    /// # Errors
    /// [`RasterError`] with both sizes.
    pub fn check_size(&self, needed: (usize, usize)) -> Result<(), RasterError> {
        let found = (self.columns, self.rows);
        match found == needed {
            true => Ok(()),
            false => Err(self.error(RasterProblem::Size { found, needed })),
        }
    }

    /// Decodes the numbers, row-major.
    ///
    /// # Errors
    /// [`RasterError`] if the file is cut short or broken.
    pub fn decode(mut self) -> Result<DecodingResult, RasterError> {
        let mut cells = DecodingResult::U8(Vec::new());
        match self.decoder.read_image_to_buffer(&mut cells) {
            Ok(_) => Ok(cells),
            Err(error) => Err(self.error(plain(error))),
        }
    }

    /// The tags that say where the raster lies.
    ///
    /// # Errors
    /// [`RasterError`] if one of them is broken.
    pub fn geo_tags(&mut self) -> Result<GeoTags, RasterError> {
        let tags = carried(&mut self.decoder);
        tags.map_err(|error| self.error(plain(error)))
    }

    fn error(&self, problem: RasterProblem) -> RasterError {
        RasterError {
            path: self.path.clone(),
            problem,
        }
    }
}

/// An end of the file before the end of the data is said in plain words.
fn plain(error: TiffError) -> RasterProblem {
    match error {
        TiffError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            RasterProblem::Open(error)
        }
        TiffError::IoError(_) => RasterProblem::Open(std::io::Error::new(
            std::io::ErrorKind::UnexpectedEof,
            "the file is truncated",
        )),
        other => RasterProblem::Decode(other),
    }
}

fn dtype(decoder: &mut Decoder<BufReader<File>>) -> Result<Dtype, RasterProblem> {
    let interpretation = decoder.find_tag_unsigned(Tag::PhotometricInterpretation)?;
    if interpretation.and_then(PhotometricInterpretation::from_u16)
        == Some(PhotometricInterpretation::WhiteIsZero)
    {
        return Err(RasterProblem::Colours("white is zero"));
    }
    let bits = match decoder.colortype()? {
        ColorType::Gray(bits) => bits,
        ColorType::Multiband { num_samples, .. } => {
            return Err(RasterProblem::Bands { bands: num_samples });
        }
        ColorType::GrayA(_) => return Err(RasterProblem::Bands { bands: 2 }),
        ColorType::Palette(_) => return Err(RasterProblem::Colours("a palette")),
        _ => {
            let bands = decoder.find_tag_unsigned(Tag::SamplesPerPixel)?;
            return Err(RasterProblem::Bands {
                bands: bands.unwrap_or(3),
            });
        }
    };
    let formats: Option<Vec<u16>> = decoder.find_tag_unsigned_vec(Tag::SampleFormat)?;
    let format = formats.and_then(|formats| formats.first().copied());
    let format = format.map_or(SampleFormat::Uint, SampleFormat::from_u16_exhaustive);
    Ok(match (format, bits) {
        (SampleFormat::Uint, 8) => Dtype::U8,
        (SampleFormat::Uint, 16) => Dtype::U16,
        (SampleFormat::Uint, 32) => Dtype::U32,
        (SampleFormat::Int, 8) => Dtype::I8,
        (SampleFormat::Int, 16) => Dtype::I16,
        (SampleFormat::Int, 32) => Dtype::I32,
        (SampleFormat::IEEEFP, 32) => Dtype::F32,
        (SampleFormat::IEEEFP, 64) => Dtype::F64,
        (format, bits) => {
            let format = match format {
                SampleFormat::Uint => "unsigned integers",
                SampleFormat::Int => "signed integers",
                SampleFormat::IEEEFP => "floating point",
                _ => "of an unknown kind",
            };
            return Err(RasterProblem::Samples { bits, format });
        }
    })
}

/// Where the last strip or tile ends.
fn end_of_data(decoder: &mut Decoder<BufReader<File>>) -> TiffResult<u64> {
    let (offsets, counts) = match decoder.get_chunk_type() {
        ChunkType::Strip => (Tag::StripOffsets, Tag::StripByteCounts),
        ChunkType::Tile => (Tag::TileOffsets, Tag::TileByteCounts),
    };
    let mut numbers = |tag| -> TiffResult<Vec<u64>> {
        Ok(decoder.find_tag_unsigned_vec(tag)?.unwrap_or_default())
    };
    let (offsets, counts) = (numbers(offsets)?, numbers(counts)?);
    let ends = offsets.iter().zip(&counts);
    let ends = ends.map(|(offset, count)| offset.saturating_add(*count));
    Ok(ends.max().unwrap_or(0))
}

/// GDAL's tag: the number as a text.
fn nodata(decoder: &mut Decoder<BufReader<File>>) -> Result<Option<f64>, RasterProblem> {
    let Some((_, value)) = tag(decoder, Tag::GdalNodata)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    match text.parse::<f64>() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(RasterProblem::Nodata(text.to_owned())),
    }
}

fn carried(decoder: &mut Decoder<BufReader<File>>) -> TiffResult<GeoTags> {
    let mut tags = Vec::new();
    for name in CARRIED {
        tags.extend(tag(decoder, name)?);
    }
    Ok(GeoTags(tags.into()))
}

/// A tag as it stands in the file, in this machine's byte order.
fn tag(
    decoder: &mut Decoder<BufReader<File>>,
    name: Tag,
) -> TiffResult<Option<(Tag, ValueBuffer)>> {
    let mut value = ValueBuffer::empty(Type::BYTE);
    let found = decoder.image_ifd().find_tag_buf(name, &mut value)?;
    value.set_byte_order(ByteOrder::native());
    Ok(found.map(|_| (name, value)))
}
