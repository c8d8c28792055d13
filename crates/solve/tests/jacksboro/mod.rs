//! The tile of `examples/jacksboro`, for tests and benches.

use std::path::Path;

/// Heights in metres, row by row, and which of them are known.
pub struct Tile {
    pub nx: usize,
    pub values: Vec<f64>,
    pub known: Vec<bool>,
}

pub fn tile() -> Tile {
    let (values, nx) = read_npy("jacksboro_dem.npy");
    let (known, _) = read_npy("jacksboro_known.npy");
    Tile {
        nx,
        values,
        known: known.iter().map(|&known| known != 0.0).collect(),
    }
}

/// The numbers of an NPY file of version 1, and their columns.
fn read_npy(name: &str) -> (Vec<f64>, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jacksboro");
    let bytes = std::fs::read(folder.join(name)).unwrap();
    assert_eq!(&bytes[..7], b"\x93NUMPY\x01");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let head = std::str::from_utf8(&bytes[10..end]).unwrap();
    let (_, shape) = head.split_once("'shape': (").unwrap();
    let (shape, _) = shape.split_once(')').unwrap();
    let columns = shape.split(", ").nth(1).unwrap().parse().unwrap();
    let data = &bytes[end..];
    let values = if head.contains("'<f4'") {
        let numbers = data.chunks_exact(4);
        let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
        numbers.map(|bytes| f64::from(number(bytes))).collect()
    } else {
        assert!(head.contains("'|b1'") || head.contains("'|u1'"), "{head}");
        data.iter().map(|&byte| f64::from(byte)).collect()
    };
    (values, columns)
}
