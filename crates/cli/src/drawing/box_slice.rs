//! A plane of a box as a picture.

use super::look::Look;
use super::plane_field::{Axes, Axis, Page, PlanePicture};
use crate::input::slice::Cut;
use crate::output::staged::{OutputError, StagedFile};

/// The picture of a plane of a box; left to right and top to bottom are columns and rows, columns and planes, or planes
/// and rows.
pub struct SlicePicture {
    picture: PlanePicture,
    cut: Cut,
    size: [usize; 3],
    /// Of the cell to come.
    place: [usize; 3],
    /// Its cells, in the order of the box.
    cells: Vec<f64>,
}

impl SlicePicture {
    /// Starts the picture of a plane of a box of `size`.
    pub fn new(
        file: StagedFile,
        (title, look): (String, Look),
        size: [usize; 3],
        spacing: Option<[f64; 3]>,
        cut: Cut,
    ) -> Self {
        const NAMES: [&str; 3] = ["column", "row", "plane"];
        let (across, down) = match cut.axis {
            0 => (2, 1),
            1 => (0, 2),
            _ => (0, 1),
        };
        let axis = |axis: usize| Axis {
            cells: NAMES[axis],
            spacing: spacing.map(|spacing| spacing[axis]),
        };
        let page = Page {
            title,
            look,
            axes: Axes {
                across: axis(across),
                down: axis(down),
            },
        };
        let picture = PlanePicture::new(file, page, (size[across], size[down]), None);
        Self {
            picture,
            cut,
            size,
            place: [0; 3],
            cells: Vec::new(),
        }
    }

    /// Takes the next cells, in the order of the box.
    pub fn put<T: Copy + Into<f64>>(&mut self, cells: &[T]) {
        for &cell in cells {
            if self.place[self.cut.axis] == self.cut.at {
                self.cells.push(cell.into());
            }
            for (place, size) in self.place.iter_mut().zip(self.size) {
                *place += 1;
                if *place < size {
                    break;
                }
                *place = 0;
            }
        }
    }

    /// Draws the page and completes the file.
    pub fn finish(mut self) -> Result<(), OutputError> {
        if self.cut.axis == 0 {
            // They came plane by plane.
            let (rows, planes) = (self.size[1], self.size[2]);
            for row in 0..rows {
                for plane in 0..planes {
                    self.picture.put(&self.cells[plane * rows + row..][..1]);
                }
            }
        } else {
            self.picture.put(&self.cells);
        }
        self.picture.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The picture of a box whose cells have their numbers, and of the plane that is meant.
    fn both(cut: Cut, plane: &[f64], (columns, rows): (usize, usize), axes: Axes) {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| StagedFile::create(&folder.path().join(name)).unwrap();
        let title = || "a title".to_owned();
        let look = Look::default;
        let mut slice = SlicePicture::new(
            file("slice.png"),
            (title(), look()),
            [4, 3, 5],
            Some([0.5, 2.0, 3.0]),
            cut,
        );
        let cells: Vec<f64> = (0..60).map(f64::from).collect();
        cells.chunks(7).for_each(|piece| slice.put(piece));
        slice.finish().unwrap();
        let mut expected = PlanePicture::new(
            file("plane.png"),
            Page {
                title: title(),
                look: look(),
                axes,
            },
            (columns, rows),
            None,
        );
        expected.put(plane);
        expected.finish().unwrap();
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert!(read("slice.png") == read("plane.png"), "{cut:?}");
    }

    #[test]
    fn a_slice_is_the_plane_that_it_says() {
        let at = |x: usize, y: usize, z: usize| ((z * 3 + y) * 4 + x) as f64;
        let cells = |(columns, rows): (usize, usize), of: &dyn Fn(usize, usize) -> f64| {
            let rows = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
            rows.map(|(column, row)| of(column, row))
                .collect::<Vec<f64>>()
        };
        let axis = |cells| Axis {
            cells,
            spacing: Some(match cells {
                "column" => 0.5,
                "row" => 2.0,
                _ => 3.0,
            }),
        };
        let axes = |across, down| Axes {
            across: axis(across),
            down: axis(down),
        };
        let plane = cells((4, 3), &|x, y| at(x, y, 2));
        both(
            Cut { axis: 2, at: 2 },
            &plane,
            (4, 3),
            axes("column", "row"),
        );
        let plane = cells((4, 5), &|x, z| at(x, 1, z));
        both(
            Cut { axis: 1, at: 1 },
            &plane,
            (4, 5),
            axes("column", "plane"),
        );
        let plane = cells((5, 3), &|z, y| at(3, y, z));
        both(Cut { axis: 0, at: 3 }, &plane, (5, 3), axes("plane", "row"));
    }
}
