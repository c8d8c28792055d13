//! A field along a line as a curve.

use std::ops::Range;

use super::axes::Scale;
use super::canvas::{Anchor, Canvas, Font, LINE};
use super::look::Look;
use super::raster::finite_range;
use super::rgb::mix;
use super::theme::{BLUE, PAPER};
use super::ticks::{labels, ticks};
use crate::format::grouped;
use crate::output::staged::{OutputError, StagedFile};

const WIDTH: usize = 960;
const HEIGHT: usize = 420;
const LEFT: usize = 96;
const TOP: usize = 58;
const RIGHT: usize = 44;
const BOTTOM: usize = 72;
const GAP: usize = 40;
const TICK: usize = 5;
/// Half the line's thickness, in pixels.
const HALF_LINE: f64 = 1.1;

/// A picture of a field along a line: value over point.
///
/// Where only the ends can have changed, it shows these two parts side by side.
pub struct LinePicture {
    file: StagedFile,
    title: String,
    look: Look,
    position: usize,
    parts: Vec<Part>,
}

/// A stretch of points, and the pixels it is drawn on.
struct Part {
    points: Range<usize>,
    width: usize,
    /// Least and greatest value in each pixel column, or of each point if they are fewer.
    bins: Vec<(f32, f32)>,
}

impl LinePicture {
    /// Starts the picture of `points` values, of which those `reach` or more points from both
    /// ends have not changed.
    pub fn new(
        file: StagedFile,
        (title, look): (String, Look),
        points: usize,
        reach: usize,
    ) -> Self {
        let reach = reach.max(2);
        let parts = if reach < points / 4 {
            let width = (WIDTH - GAP) / 2;
            vec![
                Part::new(0..reach, width),
                Part::new(points - reach..points, width),
            ]
        } else {
            vec![Part::new(0..points, WIDTH)]
        };
        Self {
            file,
            title,
            look,
            position: 0,
            parts,
        }
    }

    /// Takes the next values.
    pub fn put<T: Copy + Into<f64>>(&mut self, values: &[T]) {
        let here = self.position..self.position + values.len();
        for part in &mut self.parts {
            let (from, to) = (
                part.points.start.max(here.start),
                part.points.end.min(here.end),
            );
            for point in from..to {
                part.put(point, values[point - here.start].into() as f32);
            }
        }
        self.position = here.end;
    }

    /// Draws the page and completes the file.
    pub fn finish(self) -> Result<(), OutputError> {
        let bins = self.parts.iter().flat_map(|part| &part.bins);
        let ends: Vec<f32> = bins.flat_map(|bin| [bin.0, bin.1]).collect();
        let (low, high) = self.look.range(finite_range(&ends));
        let room = 0.06 * (high - low);
        // No room beyond an end that was asked for.
        let bottom = self.look.vmin.unwrap_or(low - room);
        let top = self.look.vmax.unwrap_or(high + room);
        let scale = Scale::linear(bottom, top);
        let mut canvas = Canvas::new(LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
        canvas.text((LEFT, TOP / 2 + 2), Anchor::Left, Font::Title, &self.title);

        let marks = ticks(bottom, top, 6);
        for (mark, label) in marks.iter().zip(labels(&marks)) {
            let y = pixel(&scale, *mark).round() as usize;
            canvas.fill((LEFT - 1 - TICK, y), (TICK, 1), LINE);
            canvas.text((LEFT - TICK - 6, y), Anchor::Right, Font::Small, &label);
        }
        canvas.text_upwards(
            (20, TOP + HEIGHT / 2),
            Font::Small,
            &self.look.with_unit("value"),
        );
        let middle = LEFT + WIDTH / 2;
        canvas.text(
            (middle, TOP + HEIGHT + TICK + 36),
            Anchor::Middle,
            Font::Small,
            "point",
        );
        let mut left = LEFT;
        for part in &self.parts {
            for mark in &marks {
                let y = pixel(&scale, *mark).round() as usize;
                canvas.fill((left, y), (part.width, 1), mix(PAPER, LINE, 0.25));
            }
            part.draw(&mut canvas, left, &scale);
            left += part.width + GAP;
        }
        canvas.write_png(self.file)
    }
}

/// The row of pixels where `value` lies.
fn pixel(scale: &Scale, value: f64) -> f64 {
    TOP as f64 + (1.0 - scale.place(value)) * (HEIGHT - 1) as f64
}

impl Part {
    fn new(points: Range<usize>, width: usize) -> Self {
        let bins = vec![(f32::INFINITY, f32::NEG_INFINITY); points.len().min(width)];
        Self {
            points,
            width,
            bins,
        }
    }

    fn put(&mut self, point: usize, value: f32) {
        let offset = (point - self.points.start) as u128;
        let place = (offset * self.bins.len() as u128 / self.points.len() as u128) as usize;
        let bin = &mut self.bins[place];
        *bin = (bin.0.min(value), bin.1.max(value));
    }

    fn draw(&self, canvas: &mut Canvas, left: usize, scale: &Scale) {
        let (first, last) = (self.points.start as f64, (self.points.end - 1) as f64);
        let length = (last - first).max(1.0);
        let mut marks = ticks(first, first + length, self.width / 120);
        marks.retain(|mark| mark.fract() == 0.0);
        for mark in marks {
            let x = left + ((mark - first) / length * (self.width - 1) as f64).round() as usize;
            canvas.fill((x, TOP + HEIGHT + 1), (1, TICK), LINE);
            let label = grouped(mark as u64);
            canvas.text(
                (x, TOP + HEIGHT + TICK + 13),
                Anchor::Middle,
                Font::Small,
                &label,
            );
        }
        canvas.frame((left, TOP), (self.width, HEIGHT), LINE);
        for x in 0..self.width {
            let (top, bottom) = self.span(x, scale);
            // Cover of each pixel by the thick line: an edge falls off over one pixel.
            let (top, bottom) = (top - HALF_LINE, bottom + HALF_LINE);
            for y in top.max(0.0) as usize..=bottom as usize + 1 {
                let cover = (bottom - y as f64 + 0.5)
                    .min(y as f64 + 0.5 - top)
                    .clamp(0.0, 1.0);
                canvas.blend(left + x, y, BLUE, cover);
            }
        }
    }

    /// Highest and lowest place of the curve over pixel column `x`, joined to its neighbours.
    fn span(&self, x: usize, scale: &Scale) -> (f64, f64) {
        let bins = self.bins.len();
        let middle = |k: usize| 0.5 * (f64::from(self.bins[k].0) + f64::from(self.bins[k].1));
        let at = |place: f64| {
            let place = place.clamp(0.0, (bins - 1) as f64);
            let below = (place as usize).min(bins.saturating_sub(2));
            let above = (below + 1).min(bins - 1);
            middle(below) + (place - below as f64) * (middle(above) - middle(below))
        };
        let step = (bins - 1) as f64 / (self.width - 1) as f64;
        let mut values: Vec<f64> = [-0.5, 0.0, 0.5]
            .iter()
            .map(|d| at((x as f64 + d) * step))
            .collect();
        if bins == self.width {
            values.extend([f64::from(self.bins[x].0), f64::from(self.bins[x].1)]);
        }
        let pixels = values
            .into_iter()
            .filter(|v| v.is_finite())
            .map(|v| pixel(scale, v));
        pixels.fold((f64::INFINITY, f64::NEG_INFINITY), |(top, bottom), y| {
            (top.min(y), bottom.max(y))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pixels have the curve's colour.
    fn curve_pixels(points: usize, reach: usize) -> usize {
        let file = tempfile::NamedTempFile::new().unwrap();
        let staged = StagedFile::create(file.path()).unwrap();
        let mut picture =
            LinePicture::new(staged, ("curve".into(), Look::default()), points, reach);
        let values: Vec<f64> = (0..points)
            .map(|k| (k as f64 / points as f64 * 6.0).sin())
            .collect();
        values.chunks(1000).for_each(|piece| picture.put(piece));
        picture.finish().unwrap();
        let bytes = std::io::BufReader::new(std::fs::File::open(file.path()).unwrap());
        let mut reader = png::Decoder::new(bytes).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        pixels.chunks_exact(3).filter(|p| *p == BLUE).count()
    }

    #[test]
    fn curves_of_any_length_are_drawn() {
        for points in [1, 2, 3, 959, 960, 961, 100_000] {
            assert!(curve_pixels(points, points) >= WIDTH, "{points} points");
        }
    }

    #[test]
    fn ends_are_drawn_side_by_side() {
        for (points, reach) in [(100, 0), (100, 24), (1_000_000, 3000)] {
            assert!(
                curve_pixels(points, reach) >= WIDTH - GAP,
                "{reach} of {points} points"
            );
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let staged = StagedFile::create(file.path()).unwrap();
        let mut picture = LinePicture::new(staged, (String::new(), Look::default()), 100, 3);
        picture.put(&(0..100).map(f64::from).collect::<Vec<_>>());
        assert_eq!(picture.parts[0].bins, [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]);
        assert_eq!(
            picture.parts[1].bins,
            [(97.0, 97.0), (98.0, 98.0), (99.0, 99.0)]
        );
    }
}
