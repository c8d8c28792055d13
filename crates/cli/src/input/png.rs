//! Fields and masks from PNG pictures.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use crate::input::files;

/// Most samples (pixels times channels) of a picture that are decoded.
const MOST_SAMPLES: u64 = 1 << 28;
/// What deflate, the compression of PNG, makes of a byte at most.
const MOST_INFLATED: u64 = 1032;

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
    #[error(
        "{columns} x {rows} pixels of {channels} channels: at most {MOST_SAMPLES} samples are decoded; NPY has no such limit"
    )]
    TooLarge {
        columns: u32,
        rows: u32,
        channels: usize,
    },
    #[error("truncated: {bytes} bytes can not hold {columns} x {rows} pixels")]
    TooShort { bytes: u64, columns: u32, rows: u32 },
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

/// The grey values of a greyscale PNG: 0 to 255, or to 65535 if it has 16 bits. Transparency is ignored.
pub fn read_values(path: &Path) -> Result<ImagePlane<f32>, ImageError> {
    let decoded = decode(path, None).map_err(|problem| ImageError {
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

/// 1 where a PNG's pixel is not black, else 0; `needed` is its width and height. Transparency is ignored.
pub fn read_mask(path: &Path, needed: (usize, usize)) -> Result<ImagePlane<u8>, ImageError> {
    let decoded = decode(path, Some(needed)).map_err(|problem| ImageError {
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

/// Decodes a picture, of `needed` width and height if given. All sizes are checked before anything is decoded.
fn decode(path: &Path, needed: Option<(usize, usize)>) -> Result<Decoded, ImageProblem> {
    let file = files::open_regular(path).map_err(ImageProblem::Open)?;
    let file_bytes = file.metadata().map_err(ImageProblem::Open)?.len();
    let mut decoder = png::Decoder::new(BufReader::new(file));
    // Palettes become RGB, and 1, 2 and 4 bits become 8.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info()?;
    let (columns, rows) = reader.info().size();
    if let Some(needed) = needed.filter(|needed| *needed != (columns as usize, rows as usize)) {
        return Err(ImageProblem::Size {
            columns: columns as usize,
            rows: rows as usize,
            needed,
        });
    }
    let channels = reader.output_color_type().0.samples();
    // Without overflow: 2^31 x 2^31 x 4.
    let samples = u64::from(columns) * u64::from(rows) * channels as u64;
    if samples > MOST_SAMPLES {
        return Err(ImageProblem::TooLarge {
            columns,
            rows,
            channels,
        });
    }
    let packed = reader.info().raw_row_length() as u64 * u64::from(rows);
    if packed > file_bytes.saturating_mul(MOST_INFLATED) {
        return Err(ImageProblem::TooShort {
            bytes: file_bytes,
            columns,
            rows,
        });
    }
    let too_large = ImageProblem::TooLarge {
        columns,
        rows,
        channels,
    };
    let mut bytes = vec![0; reader.output_buffer_size().ok_or(too_large)?];
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
        assert_eq!(read_mask(one_bit.path(), (3, 1)).unwrap().cells, [1, 0, 1]);
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
        assert_eq!(read_mask(rgba.path(), (2, 1)).unwrap().cells, [0, 1]);
        let palette = write(ColorType::Indexed, BitDepth::Eight, (2, 1), &[0, 1]);
        assert_eq!(read_mask(palette.path(), (2, 1)).unwrap().cells, [0, 1]);
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
        let error = read_mask(file.path(), (1, 1)).unwrap_err().to_string();
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
            read_mask(Path::new("/nonexistent.png"), (1, 1))
                .unwrap_err()
                .to_string()
                .contains("cannot read: No such file")
        );
    }

    /// A PNG with a valid header of any size, and hardly any data.
    fn claiming(width: u32, height: u32, depth: u8, colour: u8) -> Vec<u8> {
        fn chunk(kind: &[u8], data: &[u8], out: &mut Vec<u8>) {
            out.extend((data.len() as u32).to_be_bytes());
            let start = out.len();
            out.extend(kind);
            out.extend(data);
            // PNG's checksum is that of gzip.
            let mut crc = u32::MAX;
            for byte in &out[start..] {
                crc ^= u32::from(*byte);
                for _ in 0..8 {
                    crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
                }
            }
            out.extend((!crc).to_be_bytes());
        }
        let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
        header.extend([depth, colour, 0, 0, 0]);
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        chunk(b"IHDR", &header, &mut out);
        chunk(b"IDAT", b"x\x9c\x03\x00\x00\x00\x00\x01", &mut out);
        chunk(b"IEND", b"", &mut out);
        out
    }

    #[test]
    fn sizes_are_checked_before_anything_is_decoded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let message = |width, height, depth, colour| {
            std::fs::write(file.path(), claiming(width, height, depth, colour)).unwrap();
            let error = read_values(file.path()).unwrap_err().to_string();
            let (_, message) = error.split_once(": ").unwrap();
            message.to_owned()
        };
        assert_eq!(
            message(40_000, 20_000, 8, 0),
            "40000 x 20000 pixels of 1 channels: at most 268435456 samples are decoded; NPY has no such limit"
        );
        assert_eq!(
            message(16_000, 16_000, 8, 0),
            "truncated: 65 bytes can not hold 16000 x 16000 pixels"
        );
        assert!(message(65_535, 65_535, 16, 6).starts_with("65535 x 65535 pixels of 4"));
        assert!(message(16_000, 16_000, 1, 0).starts_with("truncated"));
        for (width, height) in [(u32::MAX / 2, u32::MAX / 2), (u32::MAX, 1), (0, 0), (4, 4)] {
            assert!(!message(width, height, 16, 6).contains('\n'));
        }
        std::fs::write(file.path(), claiming(16_000, 16_000, 8, 0)).unwrap();
        let error = read_mask(file.path(), (3, 4)).unwrap_err().to_string();
        assert!(
            error.ends_with("16000 x 16000 pixels, but 3 x 4 are needed"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let error = read_values(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: cannot read: not a regular file");
    }
}
