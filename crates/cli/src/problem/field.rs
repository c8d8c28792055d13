//! Planes of numbers, and masks, from files of any format that is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosswarp::solve::{Real, RowSource};
use tiff::decoder::DecodingResult;

use crate::input::npy::{Dtype, NpyError, NpyMap};
use crate::input::png::{self, ImageError, ImagePlane};
use crate::input::tiff::{GeoTags, Raster, RasterError};

/// What a field may be made of, for messages.
const NUMBERS: &str = "f32, f64 or an integer of 8, 16 or 32 bits";

/// A field or mask whose file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// An NPY file.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A PNG.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A TIFF.
    #[error(transparent)]
    Raster(#[from] RasterError),
    /// A picture where a box is needed.
    #[error("{}: a box of numbers comes from an NPY file of three axes", .0.display())]
    PlaneForBox(PathBuf),
}

/// The formats, by the end of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// NumPy's; also for names that say nothing.
    Npy,
    /// PNG.
    Png,
    /// TIFF, with or without a georeference.
    Tiff,
}

impl Format {
    /// By the end of a file's name.
    pub fn of(path: &Path) -> Self {
        let ends = |end| {
            path.extension()
                .is_some_and(|extension| extension.eq_ignore_ascii_case(end))
        };
        if ends("png") {
            Self::Png
        } else if ends("tif") || ends("tiff") {
            Self::Tiff
        } else {
            Self::Npy
        }
    }
}

/// The number type of a field's file; that of a picture is f32.
pub fn file_dtype(path: &Path) -> Result<Dtype, FieldError> {
    Ok(match Format::of(path) {
        Format::Png => Dtype::F32,
        Format::Tiff => Raster::open(path)?.dtype,
        Format::Npy => NpyMap::open(path)?.dtype(),
    })
}

/// Where a file says that it lies; nothing but a TIFF says so.
pub fn geo_tags(path: &Path) -> Result<GeoTags, FieldError> {
    Ok(match Format::of(path) {
        Format::Tiff => Raster::open(path)?.geo_tags()?,
        _ => GeoTags::default(),
    })
}

/// A plane of numbers from a file, which is looked at but perhaps not decoded.
pub enum Field {
    /// Read row by row.
    Npy(NpyMap),
    /// Decoded.
    Image(ImagePlane<f32>),
    /// Not decoded.
    Raster(Box<Raster>),
}

impl Field {
    /// Opens `path`, which is known afterwards to hold a plane of readable numbers.
    pub fn open(path: &Path) -> Result<Self, FieldError> {
        match Format::of(path) {
            Format::Png => Ok(Self::Image(png::read_values(path)?)),
            Format::Tiff => Ok(Self::Raster(Box::new(Raster::open(path)?))),
            Format::Npy => {
                let map = NpyMap::open(path)?;
                map.rows_columns()?;
                row_of(&map, 0, &mut []).ok_or_else(|| map.wrong_dtype(NUMBERS))??;
                Ok(Self::Npy(map))
            }
        }
    }

    /// The same, of `needed` columns and rows.
    pub fn open_sized(path: &Path, needed: (usize, usize)) -> Result<Self, FieldError> {
        let field = Self::open(path)?;
        match &field {
            Self::Npy(map) if field.size() != needed => {
                let (nx, ny) = needed;
                Err(map.wrong_shape(format!("({ny}, {nx})")).into())
            }
            Self::Raster(raster) => {
                raster.check_size(needed)?;
                Ok(field)
            }
            _ => Ok(field),
        }
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        match self {
            Self::Npy(map) => {
                let shape = &map.shape().0;
                (shape[1], shape[0])
            }
            Self::Image(plane) => (plane.columns, plane.rows),
            Self::Raster(raster) => (raster.columns, raster.rows),
        }
    }

    /// The numbers, decoded; void are those that are NaN, the file's void value or `nodata`.
    pub fn decode(self, nodata: Option<f64>) -> Result<Cells, FieldError> {
        let mut voids = Vec::from_iter(nodata);
        let source = match self {
            Self::Npy(map) => Source::Npy(map),
            Self::Image(plane) => Source::Image(plane.cells),
            Self::Raster(raster) => {
                voids.extend(raster.nodata);
                Source::Raster(raster.decode()?)
            }
        };
        // A void value is meant as the file's type holds it: -9999.1 of f32 is not that of f64.
        if source.is_single() {
            voids
                .iter_mut()
                .for_each(|void| *void = f64::from(*void as f32));
        }
        Ok(Cells(Arc::new((source, voids))))
    }
}

/// A box of numbers from an NPY file.
pub struct Volume {
    map: NpyMap,
    rows: usize,
}

impl Volume {
    /// Opens `path`, which holds `size`: columns, rows and planes.
    pub fn open(path: &Path, [nx, ny, nz]: [usize; 3]) -> Result<Self, FieldError> {
        if Format::of(path) != Format::Npy {
            return Err(FieldError::PlaneForBox(path.to_owned()));
        }
        let map = NpyMap::open(path)?;
        if map.shape().0 != [nz, ny, nx] {
            return Err(map.wrong_shape(format!("({nz}, {ny}, {nx})")).into());
        }
        row_of(&map, 0, &mut []).ok_or_else(|| map.wrong_dtype(NUMBERS))??;
        Ok(Self { map, rows: ny })
    }

    /// Row `y` of plane `z`.
    pub fn row(&self, z: usize, y: usize, row: &mut [f64]) {
        // `open` has seen that the elements can be lent.
        _ = row_of(&self.map, (z * self.rows + y) * row.len(), row);
    }
}

/// Numbers by rows, whatever their type; which of them are void.
#[derive(Clone)]
pub struct Cells(Arc<(Source, Vec<f64>)>);

enum Source {
    Npy(NpyMap),
    Image(Vec<f32>),
    Raster(DecodingResult),
}

impl Cells {
    /// The rows; void cells are NaN.
    pub fn rows<F: Real>(&self) -> RowSource<F> {
        let cells = self.clone();
        Arc::new(move |y, row| {
            let mut numbers = vec![0.0; row.len()];
            cells.row(y, &mut numbers);
            for (cell, number) in row.iter_mut().zip(numbers) {
                let number = if cells.is_void(number) {
                    f64::NAN
                } else {
                    number
                };
                *cell = F::from_f64(number);
            }
        })
    }

    /// 1 where a cell is not void.
    pub fn known(&self) -> RowSource<u8> {
        self.mask(|number| !number.is_nan())
    }

    /// 1 where a cell is not void, NaN taken for a number.
    pub fn known_or_nan(&self) -> RowSource<u8> {
        self.mask(|_| true)
    }

    /// 1 where a cell is not void and not 0.
    fn nonzero(&self) -> RowSource<u8> {
        self.mask(|number| !number.is_nan() && number != 0.0)
    }

    /// Whether cells can be void for their value.
    pub fn has_void_value(&self) -> bool {
        !self.0.1.is_empty()
    }

    fn mask(&self, is_set: fn(f64) -> bool) -> RowSource<u8> {
        let cells = self.clone();
        Arc::new(move |y, row| {
            let mut numbers = vec![0.0; row.len()];
            cells.row(y, &mut numbers);
            for (cell, number) in row.iter_mut().zip(numbers) {
                *cell = u8::from(!cells.is_void(number) && is_set(number));
            }
        })
    }

    fn is_void(&self, number: f64) -> bool {
        let same = |void: &f64| *void == number || void.is_nan() && number.is_nan();
        self.0.1.iter().any(same)
    }

    fn row(&self, y: usize, row: &mut [f64]) {
        let at = y * row.len();
        match &self.0.0 {
            // `Field::open` has seen that the elements can be lent.
            Source::Npy(map) => _ = row_of(map, at, row),
            Source::Image(cells) => widen(cells, at, row),
            Source::Raster(cells) => match cells {
                DecodingResult::U8(cells) => widen(cells, at, row),
                DecodingResult::U16(cells) => widen(cells, at, row),
                DecodingResult::U32(cells) => widen(cells, at, row),
                DecodingResult::I8(cells) => widen(cells, at, row),
                DecodingResult::I16(cells) => widen(cells, at, row),
                DecodingResult::I32(cells) => widen(cells, at, row),
                DecodingResult::F32(cells) => widen(cells, at, row),
                DecodingResult::F64(cells) => widen(cells, at, row),
                // `Raster::open` has refused these types.
                DecodingResult::U64(_) | DecodingResult::I64(_) | DecodingResult::F16(_) => {
                    row.fill(f64::NAN);
                }
            },
        }
    }
}

impl Source {
    fn is_single(&self) -> bool {
        match self {
            Self::Npy(map) => map.dtype() == Dtype::F32,
            Self::Image(_) => true,
            Self::Raster(cells) => matches!(cells, DecodingResult::F32(_)),
        }
    }
}

fn widen<T: Copy + Into<f64>>(cells: &[T], at: usize, row: &mut [f64]) {
    let from = &cells[at..][..row.len()];
    row.iter_mut()
        .zip(from)
        .for_each(|(cell, &value)| *cell = value.into());
}

/// Elements of a file from number `at` on; `None` if they are not of a type that a field may have.
fn row_of(map: &NpyMap, at: usize, row: &mut [f64]) -> Option<Result<(), FieldError>> {
    macro_rules! widened {
        ($type:ty) => {{
            let mut cells = vec![<$type as bytemuck::Zeroable>::zeroed(); row.len()];
            map.read(at, &mut cells)
                .map(|()| widen(&cells, 0, row))
                .or_else(|_| {
                    // Nobody hears of an error here; the mapping ends the process where a file was cut.
                    map.elements::<$type>().map(|cells| widen(cells, at, row))
                })
                .map_err(FieldError::from)
        }};
    }
    Some(match map.dtype() {
        Dtype::U8 => widened!(u8),
        Dtype::U16 => widened!(u16),
        Dtype::U32 => widened!(u32),
        Dtype::I8 => widened!(i8),
        Dtype::I16 => widened!(i16),
        Dtype::I32 => widened!(i32),
        Dtype::F32 => widened!(f32),
        Dtype::F64 => widened!(f64),
        _ => return None,
    })
}

/// The rows of a mask: 1 where the file is not 0 (NPY, TIFF) or not black (PNG), and not void.
pub fn mask(path: &Path, (nx, ny): (usize, usize)) -> Result<RowSource<u8>, FieldError> {
    match Format::of(path) {
        Format::Png => {
            let plane = png::read_mask(path, (nx, ny))?;
            Ok(Arc::new(move |y, row| {
                row.copy_from_slice(&plane.cells[y * nx..][..nx])
            }))
        }
        Format::Tiff => Ok(Field::open_sized(path, (nx, ny))?.decode(None)?.nonzero()),
        Format::Npy => {
            let map = NpyMap::open(path)?;
            if !matches!(map.dtype(), Dtype::U8 | Dtype::Bool) {
                return Err(map.wrong_dtype("u8 or bool").into());
            }
            if map.shape().0 != [ny, nx] {
                return Err(map.wrong_shape(format!("({ny}, {nx})")).into());
            }
            Ok(Arc::new(move |y, row| {
                if map.read(y * nx, row).is_err() {
                    // As in `row_of`.
                    row.copy_from_slice(&map.bytes()[y * nx..][..nx]);
                }
                row.iter_mut().for_each(|cell| *cell = u8::from(*cell != 0));
            }))
        }
    }
}
