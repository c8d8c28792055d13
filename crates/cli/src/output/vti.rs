//! VTK image data (`.vti`), for ParaView and VTK.
//!
//! One point-data array named `u`, appended raw: the file is a short XML head, then
//! the numbers as they are. The format's y points up and its first row is the lowest, so the field's rows come in
//! reverse: row 0, the top of a picture and the north of a map, has the greatest y, and the last one y = 0. Its z
//! points to the viewer, so the planes of a box come in reverse, too: plane 0, the front, has the greatest z. Both
//! together turn the box and do not mirror it.

use bytemuck::Pod;

use crate::input::npy::Dtype;
use crate::input::spacing::Spacing;
use crate::output::staged::{OutputError, StagedFile};

/// A VTK image-data file being written; it appears when [`VtiWriter::finish`] succeeds.
pub struct VtiWriter {
    file: StagedFile,
    /// Bytes of a row.
    row: usize,
    /// Kept until the last row is there, which is written first.
    rows: Vec<u8>,
}

impl VtiWriter {
    /// Starts a field of `nx` × `ny` × `nz` points `spacing` apart; `nz` of a plane is 1.
    pub fn new(
        mut file: StagedFile,
        dtype: Dtype,
        [nx, ny, nz]: [usize; 3],
        spacing: Spacing,
    ) -> Result<Self, OutputError> {
        let kind = if dtype == Dtype::F64 {
            "Float64"
        } else {
            "Float32"
        };
        let Spacing { x, y, z } = spacing;
        let extent = format!("0 {} 0 {} 0 {}", nx - 1, ny - 1, nz - 1);
        let head = format!(
            r#"<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="{extent}" Origin="0 0 0" Spacing="{x:?} {y:?} {z:?}">
    <Piece Extent="{extent}">
      <PointData Scalars="u">
        <DataArray type="{kind}" Name="u" format="appended" offset="0"/>
      </PointData>
      <CellData/>
    </Piece>
  </ImageData>
  <AppendedData encoding="raw">
   _"#
        );
        file.put(head.as_bytes())?;
        let bytes = nx as u64 * ny as u64 * nz as u64 * dtype.size() as u64;
        file.put(&bytes.to_le_bytes())?;
        Ok(Self {
            file,
            row: nx * dtype.size(),
            rows: Vec::new(),
        })
    }

    /// Appends `elements`, row by row and plane by plane.
    pub fn put<T: Pod>(&mut self, elements: &[T]) {
        self.rows.extend_from_slice(bytemuck::cast_slice(elements));
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<(), OutputError> {
        for row in self.rows.chunks(self.row).rev() {
            self.file.put(row)?;
        }
        self.file.put(b"\n  </AppendedData>\n</VTKFile>\n")?;
        self.file.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the underscore stands after which the data begin.
    fn mark(bytes: &[u8]) -> usize {
        let intro = b"raw\">\n   _";
        bytes.windows(intro.len()).position(|w| w == intro).unwrap() + intro.len() - 1
    }

    /// The bytes of a 3 × 2 field's file.
    fn written() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.vti");
        let file = StagedFile::create(&path).unwrap();
        let mut writer = VtiWriter::new(file, Dtype::F32, [3, 2, 1], Spacing::same(0.5)).unwrap();
        writer.put(&[1.0f32, 2.0, 3.0]);
        writer.put(&[4.0f32, 5.0, 6.0]);
        writer.finish().unwrap();
        std::fs::read(&path).unwrap()
    }

    #[test]
    fn the_data_stand_where_the_format_says() {
        let bytes = written();
        let mark = mark(&bytes);
        let length = u64::from_le_bytes(bytes[mark + 1..mark + 9].try_into().unwrap());
        assert_eq!(length, 24);
        let data = &bytes[mark + 9..mark + 9 + 24];
        assert_eq!(
            data,
            bytemuck::cast_slice::<f32, u8>(&[4.0, 5.0, 6.0, 1.0, 2.0, 3.0])
        );
        assert!(bytes.ends_with(b"\n  </AppendedData>\n</VTKFile>\n"));
    }

    #[test]
    fn a_box_is_turned_and_not_mirrored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.vti");
        let file = StagedFile::create(&path).unwrap();
        let spacing = Spacing {
            x: 1.0,
            y: 2.0,
            z: 4.0,
        };
        let mut writer = VtiWriter::new(file, Dtype::F64, [2, 3, 4], spacing).unwrap();
        let cells: Vec<f64> = (0..24).map(f64::from).collect();
        writer.put(&cells);
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            text.contains(r#"WholeExtent="0 1 0 2 0 3" Origin="0 0 0" Spacing="1.0 2.0 4.0">"#),
            "{text}"
        );
        let data = &bytes[mark(&bytes) + 9..][..24 * 8];
        let (x, y, z) = (1, 2, 3);
        let there: f64 = bytemuck::pod_read_unaligned(&data[8 * ((z * 3 + y) * 2 + x)..][..8]);
        // The greatest y and z are row 0 and plane 0.
        assert_eq!(there, 1.0);
    }

    #[test]
    fn the_head_is_well_formed_and_says_the_size() {
        let bytes = written();
        let mark = mark(&bytes);
        let mut text = String::from_utf8(bytes[..mark].to_vec()).unwrap();
        text.push_str("</AppendedData></VTKFile>");
        let document = roxmltree::Document::parse(&text).unwrap();
        let piece = document
            .descendants()
            .find(|n| n.has_tag_name("Piece"))
            .unwrap();
        assert_eq!(piece.attribute("Extent"), Some("0 2 0 1 0 0"));
        let array = document
            .descendants()
            .find(|n| n.has_tag_name("DataArray"))
            .unwrap();
        assert_eq!(array.attribute("type"), Some("Float32"));
    }
}
