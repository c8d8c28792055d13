//! Cutting the matrices of a file into panels whose transposed parts follow one another in the output.

use crosswarp::prim::Layout;

/// Bytes of a panel at most: what is made, then written, at a time.
pub const PANEL_BYTES: usize = 64 << 20;

/// A part of the input: whole matrices, some columns of all rows of one, or some rows of one column.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// Index of its first element in the file.
    pub first: usize,
    /// Where its elements lie from there on.
    pub layout: Layout,
}

impl Panel {
    /// Its elements.
    pub fn len(&self) -> usize {
        self.layout.batch * self.layout.rows * self.layout.columns
    }
}

/// The panels of `batch` matrices of `rows` × `columns` elements of `element` bytes.
pub fn panels(batch: usize, rows: usize, columns: usize, element: usize) -> Vec<Panel> {
    let most = PANEL_BYTES / element;
    let matrix = rows * columns;
    let mut panels = Vec::new();
    if matrix <= most {
        let together = most / matrix;
        for b in (0..batch).step_by(together) {
            let layout = Layout::new(rows, columns).with_batch(together.min(batch - b));
            let first = b * matrix;
            panels.push(Panel { first, layout });
        }
        return panels;
    }
    // Whole cache lines of output and of input, where there are as many.
    let width = match most / rows {
        0 => 1,
        wide if wide >= 128 => wide / 128 * 128,
        narrow => narrow,
    };
    let height = if width == 1 { rows.min(most) } else { rows };
    for b in 0..batch {
        for column in (0..columns).step_by(width) {
            for row in (0..rows).step_by(height) {
                let (height, width) = (height.min(rows - row), width.min(columns - column));
                let layout = Layout::new(height, width).with_leading_dimension(columns);
                let first = (b * rows + row) * columns + column;
                panels.push(Panel { first, layout });
            }
        }
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_follow_one_another_in_the_output() {
        // Small matrices, and one of few, of many, and of very many rows.
        for (batch, rows, columns) in [
            (5_000_000, 3, 5),
            (1, 3, 40_000_000),
            (2, 100_000, 1500),
            (1, 100_000_000, 2),
        ] {
            let mut next = 0;
            for panel in panels(batch, rows, columns, 1) {
                let (matrix, place) = (
                    panel.first / (rows * columns),
                    panel.first % (rows * columns),
                );
                let at = place % columns * rows + place / columns;
                assert_eq!(matrix * rows * columns + at, next);
                let Layout {
                    rows: height,
                    columns: width,
                    ..
                } = panel.layout;
                assert!(panel.len() <= PANEL_BYTES && (height == rows || width == 1));
                next += panel.len();
            }
            assert_eq!(next, batch * rows * columns);
        }
    }
}
