//! GeoTIFF in and out, and integers as values: `crosswarp solve` end to end.

mod common;

use std::fs::{self, File};
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};

use common::{json, outcome, write_npy};
use tiff::decoder::{Decoder, DecodingResult};
use tiff::encoder::colortype::{self, ColorType};
use tiff::encoder::{Compression, DeflateLevel, TiffEncoder, TiffValue};
use tiff::tags::Tag;

const SIZE: (usize, usize) = (10, 12);

/// 500 + x² − y², row by row: it solves the five-point equation.
fn truth() -> Vec<f64> {
    let cell = |k: usize| ((k % SIZE.0) as f64, (k / SIZE.0) as f64);
    let cells = (0..SIZE.0 * SIZE.1).map(cell);
    cells.map(|(x, y)| 500.0 + x * x - y * y).collect()
}

/// The same with `void` in the middle.
fn with_void(void: f64) -> Vec<f64> {
    let mut cells = truth();
    for y in 4..7 {
        cells[y * SIZE.0 + 3..y * SIZE.0 + 6].fill(void);
    }
    cells
}

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/rasters")
        .join(name)
}

/// A TIFF of one band made by the crate, with texts as tags.
fn tiff_bytes<C>(cells: &[C::Inner], compression: Compression, texts: &[(Tag, &str)]) -> Vec<u8>
where
    C: ColorType,
    [C::Inner]: TiffValue,
{
    let mut bytes = Vec::new();
    let encoder = TiffEncoder::new(Cursor::new(&mut bytes)).unwrap();
    let mut encoder = encoder.with_compression(compression);
    let mut image = encoder
        .new_image::<C>(SIZE.0 as u32, SIZE.1 as u32)
        .unwrap();
    image.rows_per_strip(5).unwrap();
    for (tag, text) in texts {
        image.encoder().write_tag(*tag, *text).unwrap();
    }
    image.write_data(cells).unwrap();
    bytes
}

fn decoder(path: &Path) -> Decoder<BufReader<File>> {
    Decoder::new(BufReader::new(File::open(path).unwrap())).unwrap()
}

fn read(path: &Path) -> Vec<f64> {
    match decoder(path).read_image().unwrap() {
        DecodingResult::F32(cells) => cells.into_iter().map(f64::from).collect(),
        DecodingResult::F64(cells) => cells,
        other => panic!("{other:?}"),
    }
}

fn assert_solved(cells: &[f64]) {
    assert_eq!(cells.len(), truth().len());
    for (k, (found, exact)) in cells.iter().zip(truth()).enumerate() {
        assert!((found - exact).abs() < 1e-3, "{k}: {found} {exact}");
    }
}

#[test]
fn files_of_others_are_filled_and_stay_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    for (name, types) in [
        ("gdal_f32_deflate_tiles.tif", "f32 on"),
        ("gdal_i16_lzw_strips.tif", "f32 (values i16) on"),
        ("tifffile_f64_big_endian.tif", "f64 on"),
    ] {
        let filled = folder.path().join(name);
        let values = stored(name);
        let line = format!(
            "solve fill --values {} -o {}",
            values.display(),
            filled.display()
        );
        let (code, out, err) = outcome(&line);
        assert_eq!((code, err.as_str()), (0, ""), "{name}");
        assert!(out.contains(&format!("10 x 12 cells {types} ")), "{out}");
        assert!(!out.contains("Nothing to solve"), "{out}");
        assert_solved(&read(&filled));
        let (mut before, mut after) = (decoder(&values), decoder(&filled));
        let mut carried = 0;
        // Scale, tie point, transformation, keys with their parameters, GDAL's texts, the void value.
        for tag in [33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113] {
            let tag = Tag::from_u16_exhaustive(tag);
            let there = before.find_tag(tag).unwrap();
            assert_eq!(after.find_tag(tag).unwrap(), there, "{name}: {tag:?}");
            carried += usize::from(there.is_some());
        }
        assert!(carried >= 3, "{name}");
    }
}

/// Each type and packing, as TIFF and as NPY, is the same field.
#[test]
fn every_type_is_read_from_either_format() {
    let folder = tempfile::tempdir().unwrap();
    let (tif, npy) = (folder.path().join("v.tif"), folder.path().join("v.npy"));
    let mut hashes = Vec::new();
    macro_rules! check {
        ($type:ty, $colour:ident, $packing:expr, $void:expr, $field:expr) => {
            // Within the range of a byte.
            let narrow = |cell: f64| ((cell - 500.0) / 4.0 + 60.0) as $type;
            let cells: Vec<$type> = with_void(f64::NAN)
                .into_iter()
                .map(|cell| if cell.is_nan() { $void } else { narrow(cell) })
                .collect();
            let bytes = tiff_bytes::<colortype::$colour>(&cells, $packing, &[]);
            fs::write(&tif, bytes).unwrap();
            write_npy(&npy, &[SIZE.1 as u64, SIZE.0 as u64], cells);
            let [a, b] = [&tif, &npy].map(|path| {
                let void = f64::from($void);
                json(&format!(
                    "solve fill --values {} --nodata {void} --json",
                    path.display()
                ))
            });
            assert_eq!(a["field_sha256"], b["field_sha256"]);
            for object in [&a, &b] {
                assert_eq!(object["values_dtype"], stringify!($type));
                assert_eq!(object["dtype"], $field, "{}", stringify!($type));
                assert_eq!(object["converged"], true);
            }
            hashes.push(a["field_sha256"].to_string());
        };
    }
    let deflate = Compression::Deflate(DeflateLevel::Balanced);
    check!(u8, Gray8, deflate, 255, "f32");
    check!(i8, GrayI8, Compression::Lzw, -99, "f32");
    check!(u16, Gray16, Compression::Lzw, 65535, "f32");
    check!(i16, GrayI16, deflate, -9999, "f32");
    check!(u32, Gray32, Compression::Packbits, u32::MAX, "f64");
    check!(i32, GrayI32, Compression::Uncompressed, i32::MIN, "f64");
    check!(f32, Gray32Float, deflate, -9999.1, "f32");
    check!(f64, Gray64Float, Compression::Lzw, -9999.1, "f64");
    // The integers' fields are those of the same numbers; the floats' are not rounded.
    assert_eq!(hashes[0], hashes[1]);
    assert_eq!(hashes[2], hashes[3]);
    assert_eq!(hashes[4], hashes[5]);
}

#[test]
fn void_are_nan_the_files_value_and_the_one_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut cells: Vec<f32> = with_void(-9999.1).into_iter().map(|v| v as f32).collect();
    cells[1] = f32::NAN;
    cells[118] = -7.0;
    for (text, voids) in [("-9999.1", true), ("-9999.1 \n", true), ("-8", false)] {
        let bytes = tiff_bytes::<colortype::Gray32Float>(
            &cells,
            Compression::Uncompressed,
            &[(Tag::GdalNodata, text)],
        );
        fs::write(at("v.tif"), bytes).unwrap();
        for dtype in ["f32", "f64"] {
            let line = format!(
                "solve fill --values {} --nodata -7 --dtype {dtype} -o {}",
                at("v.tif").display(),
                at("o.tif").display()
            );
            let (code, out, err) = outcome(&line);
            assert_eq!(code, 0, "{out} {err}");
            let filled = read(&at("o.tif"));
            assert!(filled.iter().all(|cell| cell.is_finite() && *cell != -7.0));
            let untouched = (filled[5 * SIZE.0 + 4] + 9999.1).abs() < 0.01;
            assert_eq!(untouched, !voids, "{text:?} {dtype}");
        }
    }
    // Of 32 bits, next to the void value: rounded to f32 both would be void.
    let near: Vec<i32> = with_void(f64::NAN)
        .into_iter()
        .map(|cell| {
            if cell.is_nan() {
                i32::MAX
            } else {
                i32::MAX - 1
            }
        })
        .collect();
    let texts = [(Tag::GdalNodata, "2147483647")];
    let bytes = tiff_bytes::<colortype::GrayI32>(&near, Compression::Uncompressed, &texts);
    fs::write(at("near.tif"), bytes).unwrap();
    let line = format!(
        "solve fill --values {} --dtype f32 -o {}",
        at("near.tif").display(),
        at("o.npy").display()
    );
    assert_eq!(outcome(&line).0, 0);
}

#[test]
fn masks_sources_and_first_guesses_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mask: Vec<u8> = with_void(0.0)
        .into_iter()
        .map(|cell| if cell == 0.0 { 0 } else { 7 })
        .collect();
    let deflate = Compression::Deflate(DeflateLevel::Balanced);
    fs::write(
        at("mask.tif"),
        tiff_bytes::<colortype::Gray8>(&mask, deflate, &[]),
    )
    .unwrap();
    let values = tiff_bytes::<colortype::Gray64Float>(&with_void(1.0), deflate, &[]);
    fs::write(at("v.tif"), values).unwrap();
    let line = format!(
        "solve fill --values {} --known {} -o {}",
        at("v.tif").display(),
        at("mask.tif").display(),
        at("o.tiff").display()
    );
    assert_eq!(outcome(&line).0, 0);
    assert_solved(&read(&at("o.tiff")));
    let exact = tiff_bytes::<colortype::Gray64Float>(&truth(), Compression::Lzw, &[]);
    fs::write(at("exact.tif"), exact).unwrap();
    let zero = tiff_bytes::<colortype::GrayI16>(&[0; 120], Compression::Lzw, &[]);
    fs::write(at("zero.tif"), zero).unwrap();
    let problem = "kind = 'laplace2d'\nnx = 10\nny = 12\ndtype = 'f64'\ninitial = 'zero.tif'\n\
                   source = 'zero.tif'\n[boundary]\nleft = '500-j^2'\nright = '581-j^2'\n\
                   top = '500+i^2'\nbottom = '379+i^2'\n[fixed]\nmask = 'mask.tif'\nvalues = 'exact.tif'\n";
    fs::write(at("p.toml"), problem).unwrap();
    let line = format!(
        "solve {} -o {}",
        at("p.toml").display(),
        at("p.tif").display()
    );
    let (code, out, err) = outcome(&line);
    assert_eq!(code, 0, "{out} {err}");
    assert_solved(&read(&at("p.tif")));
}

#[test]
fn what_is_no_plane_of_numbers_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let path = |name: &str| at(name).display().to_string();
    let image = |colours: fn(&mut TiffEncoder<Cursor<&mut Vec<u8>>>)| {
        let mut bytes = Vec::new();
        colours(&mut TiffEncoder::new(Cursor::new(&mut bytes)).unwrap());
        bytes
    };
    let rgb = image(|file| {
        file.write_image::<colortype::RGB8>(4, 4, &[9; 48]).unwrap();
    });
    let long = image(|file| {
        file.write_image::<colortype::Gray64>(4, 4, &[9; 16])
            .unwrap();
    });
    let whole = fs::read(stored("gdal_f32_deflate_tiles.tif")).unwrap();
    let plain = tiff_bytes::<colortype::Gray64Float>(&truth(), Compression::Uncompressed, &[]);
    let words = tiff_bytes::<colortype::Gray64Float>(
        &truth(),
        Compression::Uncompressed,
        &[(Tag::GdalNodata, "none")],
    );
    // The width is the first entry of the directory, which ends the file.
    let mut empty = plain.clone();
    let directory = u32::from_le_bytes(plain[4..8].try_into().unwrap()) as usize;
    empty[directory + 2 + 8..][..4].fill(0);
    let mut huge = plain.clone();
    huge[directory + 2 + 8..][..4].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    for (name, bytes, expected) in [
        ("rgb.tif", rgb, "3 bands; a field is one"),
        ("u64.tif", long, "samples of 64 bits, unsigned integers"),
        (
            "npy.tif",
            b"\x93NUMPY".to_vec(),
            "not a TIFF that can be read",
        ),
        ("nothing.tif", Vec::new(), "not a TIFF that can be read"),
        ("cut.tif", whole[..whole.len() / 2].to_vec(), "truncated"),
        ("short.tif", plain[..900].to_vec(), "truncated"),
        ("words.tif", words, "(GDAL_NODATA) is \"none\""),
        ("empty.tif", empty, "0x12"),
        ("huge.tif", huge, "truncated"),
    ] {
        fs::write(at(name), bytes).unwrap();
        let (code, out, err) = outcome(&format!("solve fill --values {}", path(name)));
        assert_eq!((code, out.as_str()), (1, ""), "{name}: {err}");
        assert!(
            err.contains(name) && err.contains(expected) && err.trim_end().lines().count() == 1,
            "{name}: {err}"
        );
    }
    fs::write(at("v.tif"), &plain).unwrap();
    let mask = tiff_bytes::<colortype::Gray8>(&[1; 120], Compression::Uncompressed, &[]);
    fs::write(at("mask.tif"), mask).unwrap();
    for (line, code, expected) in [
        (
            format!("solve laplace2d --boundary top={}", path("v.tif")),
            1,
            "a TIFF is a plane",
        ),
        (
            format!("solve laplace1d --points 9 -o {}", path("o.tif")),
            2,
            "a line cannot be written as TIFF",
        ),
        (
            format!(
                "solve fill --values {} --known {}",
                common::example("jacksboro/jacksboro_dem.npy").display(),
                path("mask.tif")
            ),
            1,
            "10 x 12 pixels, but 403 x 344 are needed",
        ),
    ] {
        let (found, _, err) = outcome(&line);
        assert_eq!(found, code, "{err}");
        assert!(err.contains(expected), "{err}");
    }
    assert!(!at("o.tif").exists());
}

/// What GDAL makes of a field that we wrote.
#[test]
fn gdal_reads_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let filled = folder.path().join("o.tif");
    let values = stored("gdal_f32_deflate_tiles.tif");
    let program = "import rasterio, sys\n\
                   a, b = map(rasterio.open, sys.argv[1:])\n\
                   print(a.transform == b.transform, a.crs == b.crs, b.nodata, b.dtypes[0],\
                   b.tags()['note'], b.tags()['AREA_OR_POINT'], int((b.read_masks(1) == 0).sum()), b.read(1)[5, 4])";
    let mut python = std::process::Command::new("python3");
    if !python
        .args(["-c", "import rasterio"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("skipped gdal_reads_what_is_written: there is no python3 with rasterio");
        return;
    }
    let line = format!(
        "solve fill --values {} -o {}",
        values.display(),
        filled.display()
    );
    assert_eq!(outcome(&line).0, 0);
    let mut python = std::process::Command::new("python3");
    let output = python
        .args(["-c", program])
        .args([&values, &filled])
        .output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rest = text.strip_prefix("True True -9999.0 float32 made for tests Point 0 ");
    let cell: f64 = rest
        .unwrap_or_else(|| panic!("{text} {}", String::from_utf8_lossy(&output.stderr)))
        .trim()
        .parse()
        .unwrap();
    assert!((cell - 491.0).abs() < 1e-3, "{cell}");
}
