//! A page of pixels: rectangles, text, and the PNG file.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::rgb::{Rgb, mix};
use super::theme::{INK, PAPER};
use crate::output::staged::{OutputError, StagedFile};

/// Frames and ticks.
pub const LINE: Rgb = [110, 118, 129];

/// A weight and size of text.
#[derive(Clone, Copy)]
pub enum Font {
    /// Ticks and axis titles.
    Small,
    /// Titles.
    Title,
}

impl Font {
    fn parameters(self) -> (FontWeight, RasterHeight) {
        match self {
            Self::Small => (FontWeight::Regular, RasterHeight::Size16),
            Self::Title => (FontWeight::Bold, RasterHeight::Size20),
        }
    }

    /// Height of a line, in pixels.
    pub fn height(self) -> usize {
        self.parameters().1.val()
    }

    /// Width of `text`, in pixels.
    pub fn width(self, text: &str) -> usize {
        let (weight, size) = self.parameters();
        text.chars().count() * get_raster_width(weight, size)
    }
}

/// Which point of a text is placed.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// Its left end.
    Left,
    /// Its middle.
    Middle,
    /// Its right end.
    Right,
}

/// An RGB image, top row first.
pub struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

impl Canvas {
    /// A blank page.
    pub fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            pixels: vec![PAPER; width * height],
        }
    }

    /// Sets one pixel; outside the page nothing happens.
    pub fn set(&mut self, x: usize, y: usize, colour: Rgb) {
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x] = colour;
        }
    }

    /// Lays `colour` over a pixel, `cover` in 0..=1.
    pub fn blend(&mut self, x: usize, y: usize, colour: Rgb, cover: f64) {
        if x < self.width && y < self.height {
            let pixel = &mut self.pixels[y * self.width + x];
            *pixel = mix(*pixel, colour, cover);
        }
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, (x, y): (usize, usize), (width, height): (usize, usize), colour: Rgb) {
        for row in y..y + height {
            for column in x..x + width {
                self.set(column, row, colour);
            }
        }
    }

    /// Draws a one-pixel frame just outside a rectangle.
    pub fn frame(&mut self, (x, y): (usize, usize), (width, height): (usize, usize), colour: Rgb) {
        self.fill((x - 1, y - 1), (width + 2, 1), colour);
        self.fill((x - 1, y + height), (width + 2, 1), colour);
        self.fill((x - 1, y), (1, height), colour);
        self.fill((x + width, y), (1, height), colour);
    }

    /// Draws a straight line with round ends, `half` pixels to each side; a dot if its ends are one point.
    /// Places are in pixels from the top left corner of the page.
    pub fn stroke(&mut self, from: (f64, f64), to: (f64, f64), half: f64, colour: Rgb) {
        let reach = half + 1.0;
        let span = |a: f64, b: f64, most: usize| {
            // Casts saturate at 0.
            let first = (a.min(b) - reach) as usize;
            let last = (a.max(b) + reach) as usize;
            first..last.saturating_add(1).min(most)
        };
        let along = (to.0 - from.0, to.1 - from.1);
        let square = along.0 * along.0 + along.1 * along.1;
        for y in span(from.1, to.1, self.height) {
            for x in span(from.0, to.0, self.width) {
                let (dx, dy) = (x as f64 + 0.5 - from.0, y as f64 + 0.5 - from.1);
                let part = if square > 0.0 {
                    ((dx * along.0 + dy * along.1) / square).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                let distance = (dx - part * along.0).hypot(dy - part * along.1);
                self.blend(x, y, colour, (half + 0.5 - distance).clamp(0.0, 1.0));
            }
        }
    }

    /// Writes `text` with its anchor at `x` and its middle line at `y`.
    pub fn text(&mut self, at: (usize, usize), anchor: Anchor, font: Font, text: &str) {
        self.text_in(INK, at, anchor, font, text);
    }

    /// The same in another colour.
    pub fn text_in(
        &mut self,
        colour: Rgb,
        (x, y): (usize, usize),
        anchor: Anchor,
        font: Font,
        text: &str,
    ) {
        let left = start(x, anchor, font.width(text));
        let top = y.saturating_sub(font.height() / 2);
        glyphs(font, text, |dx, dy, cover| {
            self.blend(left + dx, top + dy, colour, cover)
        });
    }

    /// Writes `text` upwards, its middle line at `x` and its middle at `y`.
    pub fn text_upwards(&mut self, (x, y): (usize, usize), font: Font, text: &str) {
        let bottom = y + font.width(text) / 2;
        let left = x.saturating_sub(font.height() / 2);
        glyphs(font, text, |dx, dy, cover| {
            if let Some(row) = bottom.checked_sub(dx) {
                self.blend(left + dy, row, INK, cover);
            }
        });
    }

    /// Writes the page as a PNG.
    pub fn write_png(&self, mut file: StagedFile) -> Result<(), OutputError> {
        let mut bytes = Vec::new();
        let width = u32::try_from(self.width).expect("pages are a few thousand pixels wide");
        let height = u32::try_from(self.height).expect("pages are a few thousand pixels high");
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(self.pixels.as_flattened())?;
            writer.finish()
        });
        written.map_err(|error| OutputError::write(file.target(), std::io::Error::other(error)))?;
        file.put(&bytes)?;
        file.commit()
    }
}

fn start(x: usize, anchor: Anchor, width: usize) -> usize {
    match anchor {
        Anchor::Left => x,
        Anchor::Middle => x.saturating_sub(width / 2),
        Anchor::Right => x.saturating_sub(width),
    }
}

/// Calls `pixel` with the place and the cover of each inked pixel of `text`.
fn glyphs(font: Font, text: &str, mut pixel: impl FnMut(usize, usize, f64)) {
    let (weight, size) = font.parameters();
    let advance = get_raster_width(weight, size);
    for (place, c) in text.chars().enumerate() {
        // The built-in font has ASCII; a file name with other letters shows a mark.
        let Some(glyph) = get_raster(c, weight, size).or_else(|| get_raster('?', weight, size))
        else {
            continue;
        };
        for (dy, row) in glyph.rows().enumerate() {
            for (dx, &ink) in row.iter().enumerate().filter(|(_, ink)| **ink > 0) {
                pixel(place * advance + dx, dy, f64::from(ink) / 255.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_leaves_ink_where_it_should() {
        let mut canvas = Canvas::new(100, 40);
        canvas.text((50, 20), Anchor::Middle, Font::Small, "Hg é");
        let inked = |canvas: &Canvas, x: std::ops::Range<usize>| {
            x.flat_map(|x| (0..40).map(move |y| (x, y)))
                .filter(|&(x, y)| canvas.pixels[y * 100 + x] != PAPER)
                .count()
        };
        assert!(inked(&canvas, 30..70) > 40);
        assert_eq!(inked(&canvas, 0..30) + inked(&canvas, 70..100), 0);
        let mut turned = Canvas::new(40, 100);
        turned.text_upwards((20, 50), Font::Small, "Hg é");
        let count = |canvas: &Canvas| canvas.pixels.iter().filter(|&&p| p != PAPER).count();
        assert_eq!(count(&turned), count(&canvas));
    }

    #[test]
    fn drawing_outside_the_page_is_harmless() {
        let mut canvas = Canvas::new(10, 10);
        canvas.text((9, 9), Anchor::Left, Font::Title, "long text");
        canvas.text_upwards((1, 1), Font::Title, "long text");
        canvas.fill((5, 5), (100, 100), INK);
        assert_eq!(canvas.pixels[99], INK);
        canvas.stroke((-50.0, 5.0), (50.0, 5.0), 1.0, LINE);
        assert_eq!(canvas.pixels[40], LINE);
    }

    #[test]
    fn strokes_cover_their_area() {
        let mut canvas = Canvas::new(60, 60);
        canvas.stroke((10.0, 30.0), (50.0, 30.0), 2.0, [0, 0, 0]);
        let ink = |canvas: &Canvas| -> f64 {
            let dark = |pixel: &Rgb| 1.0 - f64::from(pixel[0]) / 255.0;
            canvas.pixels.iter().map(dark).sum()
        };
        // 40 by 4, and a disc of radius 2.
        assert!((ink(&canvas) - 172.6).abs() < 2.0, "{}", ink(&canvas));
        let mut dot = Canvas::new(60, 60);
        dot.stroke((30.0, 30.0), (30.0, 30.0), 10.0, [0, 0, 0]);
        assert!((ink(&dot) - 314.2).abs() < 3.0, "{}", ink(&dot));
    }
}
