//! A field along a line as a curve.

use super::canvas::{Anchor, Canvas, Font, LINE, PAPER};
use super::colours::{Rgb, mix};
use super::raster::finite_range;
use crate::staged::{OutputError, StagedFile};
use crate::ticks::{labels, ticks};

const WIDTH: usize = 960;
const HEIGHT: usize = 440;
const LEFT: usize = 96;
const TOP: usize = 58;
const RIGHT: usize = 36;
const BOTTOM: usize = 72;
const TICK: usize = 5;
/// Half the line's thickness, in pixels.
const HALF_LINE: f64 = 1.1;
const CURVE: Rgb = [9, 105, 218];

/// A picture of a field along a line: value over point.
pub struct CurvePicture {
    file: StagedFile,
    title: String,
    points: usize,
    position: usize,
    /// Least and greatest value in each pixel column, or of each point if they are fewer.
    bins: Vec<(f32, f32)>,
}

impl CurvePicture {
    /// Starts the picture of `points` values.
    pub fn new(file: StagedFile, title: String, points: usize) -> Self {
        let bins = vec![(f32::INFINITY, f32::NEG_INFINITY); points.min(WIDTH)];
        Self {
            file,
            title,
            points,
            position: 0,
            bins,
        }
    }

    /// Takes the next values.
    pub fn put<T: Copy + Into<f64>>(&mut self, values: &[T]) {
        let bins = self.bins.len();
        for &value in values {
            let place = (self.position as u128 * bins as u128 / self.points as u128) as usize;
            let value = value.into() as f32;
            let bin = &mut self.bins[place];
            *bin = (bin.0.min(value), bin.1.max(value));
            self.position += 1;
        }
    }

    /// Draws the page and completes the file.
    pub fn finish(self) -> Result<(), OutputError> {
        let ends: Vec<f32> = self.bins.iter().flat_map(|bin| [bin.0, bin.1]).collect();
        let (low, high) = finite_range(&ends);
        let room = 0.06 * (high - low);
        let range = (low - room, high + room);
        let mut canvas = Canvas::new(LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
        canvas.text((LEFT, TOP / 2 + 2), Anchor::Left, Font::Title, &self.title);

        let level =
            |value: f64| TOP as f64 + (range.1 - value) / (range.1 - range.0) * (HEIGHT - 1) as f64;
        let marks = ticks(range.0, range.1, 6);
        for (mark, label) in marks.iter().zip(labels(&marks)) {
            let y = level(*mark).round() as usize;
            canvas.fill((LEFT, y), (WIDTH, 1), mix(PAPER, LINE, 0.25));
            canvas.fill((LEFT - 1 - TICK, y), (TICK, 1), LINE);
            canvas.text((LEFT - TICK - 6, y), Anchor::Right, Font::Small, &label);
        }
        let last = (self.points - 1).max(1) as f64;
        let marks = ticks(0.0, last, 8);
        for (mark, label) in marks.iter().zip(labels(&marks)) {
            let x = LEFT + (mark / last * (WIDTH - 1) as f64).round() as usize;
            canvas.fill((x, TOP + HEIGHT + 1), (1, TICK), LINE);
            canvas.text(
                (x, TOP + HEIGHT + TICK + 13),
                Anchor::Middle,
                Font::Small,
                &label,
            );
        }
        canvas.text(
            (LEFT + WIDTH / 2, TOP + HEIGHT + TICK + 36),
            Anchor::Middle,
            Font::Small,
            "point",
        );
        canvas.text_upwards((20, TOP + HEIGHT / 2), Font::Small, "value");
        canvas.frame((LEFT, TOP), (WIDTH, HEIGHT), LINE);
        for x in 0..WIDTH {
            let (top, bottom) = self.span(x, &level);
            // Cover of each pixel by the thick line: an edge falls off over one pixel.
            let (top, bottom) = (top - HALF_LINE, bottom + HALF_LINE);
            for y in top.max(0.0) as usize..=bottom as usize + 1 {
                let cover = (bottom - y as f64 + 0.5)
                    .min(y as f64 + 0.5 - top)
                    .clamp(0.0, 1.0);
                canvas.blend(LEFT + x, y, CURVE, cover);
            }
        }
        canvas.write_png(self.file)
    }

    /// Highest and lowest place of the curve over pixel column `x`, joined to its neighbours.
    fn span(&self, x: usize, level: &impl Fn(f64) -> f64) -> (f64, f64) {
        let bins = self.bins.len();
        let middle = |k: usize| 0.5 * (f64::from(self.bins[k].0) + f64::from(self.bins[k].1));
        let at = |place: f64| {
            let place = place.clamp(0.0, (bins - 1) as f64);
            let below = (place as usize).min(bins.saturating_sub(2));
            let above = (below + 1).min(bins - 1);
            middle(below) + (place - below as f64) * (middle(above) - middle(below))
        };
        let scale = (bins - 1) as f64 / (WIDTH - 1) as f64;
        let mut values = vec![
            at((x as f64 - 0.5) * scale),
            at(x as f64 * scale),
            at((x as f64 + 0.5) * scale),
        ];
        if bins == WIDTH {
            values.extend([f64::from(self.bins[x].0), f64::from(self.bins[x].1)]);
        }
        let levels = values.into_iter().filter(|v| v.is_finite()).map(level);
        levels.fold((f64::INFINITY, f64::NEG_INFINITY), |(top, bottom), y| {
            (top.min(y), bottom.max(y))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_of_any_length_are_drawn() {
        let folder = tempfile::tempdir().unwrap();
        for points in [1, 2, 3, 959, 960, 961, 100_000] {
            let path = folder.path().join("c.png");
            let file = StagedFile::create(&path).unwrap();
            let mut picture = CurvePicture::new(file, "curve".into(), points);
            let values: Vec<f64> = (0..points)
                .map(|k| (k as f64 / points as f64 * 6.0).sin())
                .collect();
            values.chunks(1000).for_each(|piece| picture.put(piece));
            picture.finish().unwrap();
            let bytes = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
            let mut reader = png::Decoder::new(bytes).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            let blue = pixels.chunks_exact(3).filter(|p| *p == CURVE).count();
            assert!(blue >= WIDTH, "{points} points: {blue} pixels of the curve");
        }
    }
}
