//! A picture of shapes in pixels.

use super::canvas::{Anchor, Canvas, Font};
use super::chart::{Chart, Element, Point};
use super::theme;
use crate::output::staged::{OutputError, StagedFile};

/// Pixels of a unit of the page: what makes the built-in font as wide as the text of the SVG.
const SCALE: f64 = 1.5;
/// Height of the middle line of text over its baseline, in units.
const MIDDLE: f64 = 4.5;

/// Most pixels of a picture, 16 million: it is drawn in memory, with three bytes each.
pub const MOST_PIXELS: usize = 1 << 24;

impl Chart {
    /// Width and height of the PNG. Casts saturate.
    pub fn pixels(&self) -> (usize, usize) {
        let pixels = |units: f64| (SCALE * units).ceil() as usize;
        (pixels(self.width), pixels(self.height))
    }

    /// Writes the picture as PNG.
    pub fn write_png(&self, file: StagedFile) -> Result<(), OutputError> {
        let (width, height) = self.pixels();
        let mut canvas = Canvas::new(width, height);
        for element in &self.elements {
            draw(&mut canvas, element);
        }
        canvas.write_png(file)
    }
}

fn draw(canvas: &mut Canvas, element: &Element) {
    match element {
        Element::Text {
            class,
            anchor,
            at,
            upwards,
            text,
        } => {
            let font = if class.contains("title") {
                Font::Title
            } else {
                Font::Small
            };
            let anchor = match *anchor {
                "middle" => Anchor::Middle,
                "end" => Anchor::Right,
                _ => Anchor::Left,
            };
            // The built-in font has few letters beyond ASCII.
            let text = text
                .replace('×', "x")
                .replace(['·', '–'], "-")
                .replace('µ', "u");
            if *upwards {
                canvas.text_upwards(pixel(*at), font, &text);
            } else {
                let at = pixel((at.0, at.1 - MIDDLE));
                if class.contains("clear") {
                    let left = match anchor {
                        Anchor::Left => at.0,
                        Anchor::Middle => at.0.saturating_sub(font.width(&text) / 2),
                        Anchor::Right => at.0.saturating_sub(font.width(&text)),
                    };
                    let corner = (left, at.1.saturating_sub(font.height() / 2));
                    let size = (font.width(&text), font.height());
                    canvas.fill(corner, size, theme::fill("paper"));
                }
                canvas.text_in(theme::text(class), at, anchor, font, &text);
            }
        }
        Element::Line { class, points } => {
            let (stroke, colour) = theme::line(class);
            let half = SCALE * stroke.width / 2.0;
            let dash = stroke.dash.map(|(on, off)| (SCALE * on, SCALE * off));
            for pair in points.windows(2) {
                for (from, to) in dashes(scaled(pair[0]), scaled(pair[1]), dash) {
                    canvas.stroke(from, to, half, colour);
                }
            }
        }
        Element::Dot {
            class, at, radius, ..
        } => {
            let at = scaled(*at);
            canvas.stroke(at, at, SCALE * radius, theme::fill(class));
        }
        Element::Cell {
            class, at, size, ..
        } => {
            let (left, top) = pixel(*at);
            let (right, bottom) = pixel((at.0 + size.0, at.1 + size.1));
            let size = ((right - left).max(1), (bottom - top).max(1));
            canvas.fill((left, top), size, theme::fill(class));
        }
    }
}

fn scaled((x, y): Point) -> Point {
    (SCALE * x, SCALE * y)
}

/// The nearest pixel. Places are on the page, so not negative.
fn pixel(at: Point) -> (usize, usize) {
    let (x, y) = scaled(at);
    (x.round() as usize, y.round() as usize)
}

/// The dashes of a straight line, or the whole of it.
fn dashes(from: Point, to: Point, dash: Option<(f64, f64)>) -> Vec<(Point, Point)> {
    let Some((on, off)) = dash else {
        return vec![(from, to)];
    };
    let length = (to.0 - from.0).hypot(to.1 - from.1);
    let at = |distance: f64| {
        let part = (distance / length).min(1.0);
        (
            from.0 + part * (to.0 - from.0),
            from.1 + part * (to.1 - from.1),
        )
    };
    let count = (length / (on + off)).ceil() as usize;
    (0..count)
        .map(|k| k as f64 * (on + off))
        .map(|start| (at(start), at(start + on)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_cover_a_line_and_end_with_it() {
        let found = dashes((0.0, 0.0), (0.0, 30.0), Some((7.0, 5.0)));
        let ends: Vec<(f64, f64)> = found.iter().map(|(a, b)| (a.1, b.1)).collect();
        assert_eq!(ends, [(0.0, 7.0), (12.0, 19.0), (24.0, 30.0)]);
        assert!(dashes((1.0, 1.0), (1.0, 1.0), Some((7.0, 5.0))).is_empty());
        assert_eq!(dashes((1.0, 1.0), (2.0, 1.0), None).len(), 1);
    }
}
