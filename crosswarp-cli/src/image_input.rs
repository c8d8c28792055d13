//! Fields and masks from PNG pictures.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// A PNG that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ImageError {
    path: PathBuf,
    problem: ImageProblem,
}

/// What is wrong with a PNG.
#[derive(Debug, thiserror::Error)]
enum ImageProblem {
    #[error("cannot read: {0}")]
    Open(io::Error),
    #[error("not a PNG that can be read: {0}")]
    Decode(#[from] png::DecodingError),
    #[error("too large to hold in memory")]
    TooLarge,
    #[error("{columns} x {rows} pixels, but {} x {} are needed", needed.0, needed.1)]
    Size {
        columns: usize,
        rows: usize,
        needed: (usize, usize),
    },
    #[error("a colour picture; values need a greyscale one")]
    Colour,
}

/// A decoded picture: samples of 8 or 16 bits, interleaved by channel.
struct Decoded {
    columns: usize,
    rows: usize,
    colour: png::ColorType,
    samples: Vec<u16>,
}

/// A plane read from a picture, row-major.
#[derive(Debug)]
pub struct ImagePlane<T> {
    /// Width.
    pub columns: usize,
    /// Height.
    pub rows: usize,
    /// The cells.
    pub cells: Vec<T>,
}

impl<T> ImagePlane<T> {
    /// Refuses a picture that is not `needed` (columns, rows) large.
    pub fn check_size(&self, path: &Path, needed: (usize, usize)) -> Result<(), ImageError> {
        let (columns, rows) = (self.columns, self.rows);
        if (columns, rows) == needed {
            return Ok(());
        }
        Err(ImageError {
            path: path.to_owned(),
            problem: ImageProblem::Size {
                columns,
                rows,
                needed,
            },
        })
    }
}

/// The grey values of a greyscale PNG: 0 to 255, or to 65535 if it has 16 bits. Transparency is ignored.
pub fn read_values(path: &Path) -> Result<ImagePlane<f32>, ImageError> {
    let decoded = decode(path).map_err(|problem| ImageError {
        path: path.to_owned(),
        problem,
    })?;
    let channels = decoded.colour.samples();
    if channels > 2 {
        return Err(ImageError {
            path: path.to_owned(),
            problem: ImageProblem::Colour,
        });
    }
    let cells = decoded
        .samples
        .chunks_exact(channels)
        .map(|pixel| f32::from(pixel[0]))
        .collect();
    Ok(ImagePlane {
        columns: decoded.columns,
        rows: decoded.rows,
        cells,
    })
}

/// 1 where a PNG's pixel is not black, else 0. Transparency is ignored.
pub fn read_mask(path: &Path) -> Result<ImagePlane<u8>, ImageError> {
    let decoded = decode(path).map_err(|problem| ImageError {
        path: path.to_owned(),
        problem,
    })?;
    let channels = decoded.colour.samples();
    let colours = if channels > 2 { 3 } else { 1 };
    let pixels = decoded.samples.chunks_exact(channels);
    let cells = pixels
        .map(|pixel| u8::from(pixel[..colours].iter().any(|&v| v != 0)))
        .collect();
    Ok(ImagePlane {
        columns: decoded.columns,
        rows: decoded.rows,
        cells,
    })
}

fn decode(path: &Path) -> Result<Decoded, ImageProblem> {
    let file = File::open(path).map_err(ImageProblem::Open)?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    // Palettes become RGB, and 1, 2 and 4 bits become 8.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info()?;
    let mut bytes = Vec::new();
    let size = reader.output_buffer_size().ok_or(ImageProblem::TooLarge)?;
    bytes
        .try_reserve_exact(size)
        .map_err(|_| ImageProblem::TooLarge)?;
    bytes.resize(size, 0);
    let info = reader.next_frame(&mut bytes)?;
    bytes.truncate(info.buffer_size());
    let samples = match info.bit_depth {
        png::BitDepth::Sixteen => bytes
            .chunks_exact(2)
            .map(|b| u16::from_be_bytes([b[0], b[1]]))
            .collect(),
        _ => bytes.into_iter().map(u16::from).collect(),
    };
    Ok(Decoded {
        columns: info.width as usize,
        rows: info.height as usize,
        colour: info.color_type,
        samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(
        colour: png::ColorType,
        depth: png::BitDepth,
        (width, height): (u32, u32),
        data: &[u8],
    ) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut encoder = png::Encoder::new(file.reopen().unwrap(), width, height);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        if colour == png::ColorType::Indexed {
            encoder.set_palette(vec![0, 0, 0, 0, 0, 9]);
        }
        encoder
            .write_header()
            .unwrap()
            .write_image_data(data)
            .unwrap();
        file
    }

    #[test]
    fn greys_of_every_depth() {
        use png::{BitDepth, ColorType};
        let eight = write(ColorType::Grayscale, BitDepth::Eight, (2, 1), &[7, 255]);
        assert_eq!(read_values(eight.path()).unwrap().cells, [7.0, 255.0]);
        let sixteen = write(
            ColorType::Grayscale,
            BitDepth::Sixteen,
            (1, 2),
            &[1, 0, 255, 255],
        );
        let plane = read_values(sixteen.path()).unwrap();
        assert_eq!(
            (plane.columns, plane.rows, plane.cells),
            (1, 2, vec![256.0, 65535.0])
        );
        let alpha = write(
            ColorType::GrayscaleAlpha,
            BitDepth::Eight,
            (2, 1),
            &[3, 0, 4, 9],
        );
        assert_eq!(read_values(alpha.path()).unwrap().cells, [3.0, 4.0]);
        let one_bit = write(ColorType::Grayscale, BitDepth::One, (3, 1), &[0b1010_0000]);
        assert_eq!(read_mask(one_bit.path()).unwrap().cells, [1, 0, 1]);
    }

    #[test]
    fn masks_look_at_colour_not_at_transparency() {
        use png::{BitDepth, ColorType};
        let rgba = write(
            ColorType::Rgba,
            BitDepth::Eight,
            (2, 1),
            &[0, 0, 0, 255, 0, 1, 0, 0],
        );
        assert_eq!(read_mask(rgba.path()).unwrap().cells, [0, 1]);
        let palette = write(ColorType::Indexed, BitDepth::Eight, (2, 1), &[0, 1]);
        assert_eq!(read_mask(palette.path()).unwrap().cells, [0, 1]);
        let error = read_values(rgba.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("a colour picture; values need a greyscale one"),
            "{error}"
        );
    }

    #[test]
    fn broken_pictures_are_one_clear_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"\x93NUMPY").unwrap();
        let error = read_mask(file.path()).unwrap_err().to_string();
        assert!(
            error.contains("not a PNG that can be read") && !error.contains('\n'),
            "{error}"
        );
        let whole = write(
            png::ColorType::Grayscale,
            png::BitDepth::Eight,
            (64, 64),
            &[5; 4096],
        );
        let bytes = std::fs::read(whole.path()).unwrap();
        std::fs::write(file.path(), &bytes[..bytes.len() / 2]).unwrap();
        assert!(read_values(file.path()).is_err());
        assert!(
            read_mask(Path::new("/nonexistent.png"))
                .unwrap_err()
                .to_string()
                .contains("cannot read: No such file")
        );
    }
}
