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
    /// Of all cells that count, in the type of the means.
    least: f32,
    greatest: f32,
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
            least: f32::INFINITY,
            greatest: f32::NEG_INFINITY,
        }
    }

    /// Takes the next cell; `None` is a cell that does not count.
    pub fn push(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            let place = self.column / self.shrink;
            self.sums[place] += value;
            self.counts[place] += 1;
            if value.is_finite() {
                self.least = self.least.min(value as f32);
                self.greatest = self.greatest.max(value as f32);
            }
        }
        self.column += 1;
        if self.column == self.columns {
            self.column = 0;
            self.row += 1;
            if self.row.is_multiple_of(self.shrink) || self.row == self.rows {
                self.close_boxes();
            }
        }
    }

    /// The range of the cells, not of their means: where many cells share a box, those are closer together.
    pub fn range(&self) -> (f64, f64) {
        finite_range(&[self.least, self.greatest])
    }

    /// Value and slope at a place between the boxes' middles, which have whole coordinates. Beyond the outermost ones the
    /// value is theirs, so it does not change in that direction.
    pub fn linear(&self, x: f64, y: f64) -> (f64, f64) {
        let cell = |place: f64, length: usize| {
            let within = place.clamp(0.0, (length - 1) as f64);
            let below = (within as usize).min(length.saturating_sub(2));
            let changes = f64::from(u8::from(within == place));
            (
                below,
                (below + 1).min(length - 1),
                within - below as f64,
                changes,
            )
        };
        let (left, right, fx, along_x) = cell(x, self.width);
        let (up, down, fy, along_y) = cell(y, self.height);
        let at = |column: usize, row: usize| f64::from(self.means[row * self.width + column]);
        let (a, b, c, d) = (at(left, up), at(right, up), at(left, down), at(right, down));
        let (top, bottom) = (a + fx * (b - a), c + fx * (d - c));
        let dx = (b - a) + fy * ((d - c) - (b - a));
        let slope = (along_x * dx).hypot(along_y * (bottom - top));
        (top + fy * (bottom - top), slope)
    }

    /// Least and greatest mean of the four boxes around a place and of their neighbours.
    pub fn bounds(&self, x: f64, y: f64) -> (f32, f32) {
        let span = |place: f64, length: usize| {
            let below = place.max(0.0) as usize;
            below.saturating_sub(1)..(below + 3).min(length)
        };
        let mut bounds = (f32::INFINITY, f32::NEG_INFINITY);
        for row in span(y, self.height) {
            for column in span(x, self.width) {
                let mean = self.means[row * self.width + column];
                bounds = (bounds.0.min(mean), bounds.1.max(mean));
            }
        }
        bounds
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
        assert_eq!((raster.shrink, raster.width, raster.height), (2, 3, 2));
        (0..15).for_each(|k| raster.push((k != 14).then_some(f64::from(k))));
        assert_eq!(raster.means[..3], [3.0, 5.0, 6.5]);
        assert_eq!(raster.means[3..5], [10.5, 12.5]);
        assert!(raster.means[5].is_nan());
    }

    #[test]
    fn the_range_is_that_of_the_cells() {
        let mut raster = Raster::new((4, 2), 2);
        for value in [0.0, 4.0, 2.0, 2.0, 1.0, 1.0, f64::NAN, -3.0] {
            raster.push(Some(value));
        }
        assert_eq!(raster.range(), (-3.0, 4.0));
        assert_eq!(Raster::new((4, 2), 2).range(), (0.0, 1.0));
    }

    #[test]
    fn linear_in_between() {
        let mut raster = Raster::new((3, 3), 9);
        (0..9).for_each(|k| raster.push(Some(f64::from(k % 3 * 2 + k / 3 * 10))));
        for (x, y) in [(0.0, 0.0), (0.5, 1.25), (1.75, 2.0), (2.0, 0.3)] {
            let (value, slope) = raster.linear(x, y);
            assert!((value - (2.0 * x + 10.0 * y)).abs() < 1e-12);
            assert!((slope - 2f64.hypot(10.0)).abs() < 1e-12);
        }
        // Beyond the outermost middles the value stays, in a corner in both directions.
        assert_eq!(raster.linear(-0.4, 0.0), (0.0, 10.0));
        assert_eq!(raster.linear(1.0, 2.3), (22.0, 2.0));
        assert_eq!(raster.linear(2.4, -0.1), (4.0, 0.0));
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
