//! A field brought to a picture's size while it streams by.

/// Means over boxes of `shrink` × `shrink` cells.
///
/// Cells come in row-major order in pieces of any length. A box without any cell that
/// counts is NaN.
pub struct Raster {
    columns: usize,
    shrink: usize,
    /// Width and height, in boxes.
    pub width: usize,
    /// Height, in boxes.
    pub height: usize,
    /// The means, row-major.
    pub means: Vec<f32>,
    sums: Vec<f64>,
    counts: Vec<u32>,
    column: usize,
    row: usize,
    rows: usize,
}

impl Raster {
    /// A raster of a field of `columns` × `rows` cells that is no wider and no higher than `longest`.
    pub fn new((columns, rows): (usize, usize), longest: usize) -> Self {
        let shrink = columns.max(rows).div_ceil(longest).max(1);
        let (width, height) = (columns.div_ceil(shrink), rows.div_ceil(shrink));
        Self {
            columns,
            shrink,
            width,
            height,
            means: Vec::with_capacity(width * height),
            sums: vec![0.0; width],
            counts: vec![0; width],
            column: 0,
            row: 0,
            rows,
        }
    }

    /// Cells along one side of a box.
    pub fn shrink(&self) -> usize {
        self.shrink
    }

    /// Takes the next cell; `None` is a cell that does not count.
    pub fn push(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            let place = self.column / self.shrink;
            self.sums[place] += value;
            self.counts[place] += 1;
        }
        self.column += 1;
        if self.column == self.columns {
            self.column = 0;
            self.row += 1;
            if self.row % self.shrink == 0 || self.row == self.rows {
                self.close_boxes();
            }
        }
    }

    fn close_boxes(&mut self) {
        let means = self
            .sums
            .iter()
            .zip(&self.counts)
            .map(|(sum, &n)| (sum / f64::from(n)) as f32);
        self.means.extend(means);
        self.sums.fill(0.0);
        self.counts.fill(0);
    }
}

/// The least and the greatest finite value, spread a little if they are the same; 0..1 without any.
pub fn finite_range(values: &[f32]) -> (f64, f64) {
    let finite = values
        .iter()
        .filter(|v| v.is_finite())
        .map(|&v| f64::from(v));
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    if low > high {
        return (0.0, 1.0);
    }
    if low == high {
        let spread = if low == 0.0 { 1.0 } else { low.abs() * 0.01 };
        return (low - spread, high + spread);
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_hold_the_means() {
        let mut raster = Raster::new((5, 3), 3);
        assert_eq!((raster.shrink(), raster.width, raster.height), (2, 3, 2));
        (0..15).for_each(|k| raster.push((k != 14).then_some(f64::from(k))));
        assert_eq!(raster.means[..3], [3.0, 5.0, 6.5]);
        assert_eq!(raster.means[3..5], [10.5, 12.5]);
        assert!(raster.means[5].is_nan());
    }

    #[test]
    fn small_fields_keep_their_cells() {
        let mut raster = Raster::new((3, 2), 900);
        (0..6).for_each(|k| raster.push(Some(f64::from(k))));
        assert_eq!(raster.means, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(finite_range(&raster.means), (0.0, 5.0));
        assert_eq!(finite_range(&[f32::NAN]), (0.0, 1.0));
        assert_eq!(finite_range(&[2.0, 2.0]), (1.98, 2.02));
    }
}
