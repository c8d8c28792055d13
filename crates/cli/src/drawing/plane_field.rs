//! A plane field as a colour map with axes and a colour bar.

use crosswarp::solve::RowSource;

use super::canvas::{Anchor, Canvas, Font, LINE};
use super::colour_map::ColourMap;
use super::look::Look;
use super::raster::Raster;
use super::rgb::{Rgb, mix};
use super::ticks::{labels, ticks};
use crate::format::general;
use crate::output::staged::{OutputError, StagedFile};

/// Longest side of one panel, in pixels.
const LONGEST: usize = 960;
const LONGEST_OF_TWO: usize = 560;
const MARGIN: usize = 28;
const TITLE_BAND: usize = 58;
const SUBTITLE_BAND: usize = 26;
const LEFT_AXIS: usize = 62;
const BOTTOM_AXIS: usize = 54;
const PANEL_GAP: usize = 28;
const BAR_GAP: usize = 24;
const BAR_WIDTH: usize = 20;
const TICK: usize = 5;
/// Cells whose value was not given.
const UNKNOWN: Rgb = [226, 229, 233];
/// And the stripes over them, so many pixels apart.
const STRIPE: Rgb = [168, 175, 184];
const STRIPES: usize = 8;
/// Pixels of the short side of a panel, at least.
const THINNEST: usize = 24;
/// Pixels of the colour bar, at least.
const LEAST_BAR: usize = 150;
/// How much of a pixel's colour a contour line covers, at most.
const CONTOUR: f64 = 0.55;
/// How much hill shading darkens or lightens, at most.
const RELIEF: f64 = 0.5;

/// One axis.
#[derive(Clone, Copy)]
pub struct Axis {
    /// What its cells are.
    pub cells: &'static str,
    /// Distance of their middles, where that was given; the axis has lengths then, from the middle of the first.
    pub spacing: Option<f64>,
}

impl Axis {
    fn label(&self) -> String {
        match self.spacing {
            Some(spacing) => format!("{} x {}", self.cells, general(spacing, 6)),
            None => self.cells.to_owned(),
        }
    }

    /// Ticks of `cells` cells, as cells, with their texts.
    fn marks(&self, cells: usize, wanted: usize) -> Vec<(f64, String)> {
        let step = self.spacing.unwrap_or(1.0);
        if cells == 1 {
            return vec![(0.0, "0".to_owned())];
        }
        let mut marks = ticks(0.0, (cells - 1) as f64 * step, wanted.clamp(1, 10));
        marks.retain(|tick| self.spacing.is_some() || tick.fract() == 0.0);
        let texts = labels(&marks);
        marks.iter().map(|mark| mark / step).zip(texts).collect()
    }
}

/// What the axes count.
#[derive(Clone, Copy)]
pub struct Axes {
    /// From left to right.
    pub across: Axis,
    /// From top to bottom.
    pub down: Axis,
}

/// What is drawn beside the field.
pub struct Page {
    /// The heading.
    pub title: String,
    /// What else was asked for.
    pub look: Look,
    /// The axes.
    pub axes: Axes,
}

/// A picture of a plane field; with a mask of given cells, a second panel shows what was given.
pub struct PlanePicture {
    file: StagedFile,
    page: Page,
    columns: usize,
    rows: usize,
    field: Raster,
    given: Option<Given>,
    position: usize,
}

struct Given {
    mask: RowSource<u8>,
    row: Vec<u8>,
    raster: Raster,
}

impl PlanePicture {
    /// Starts the picture of a field of `columns` × `rows` cells.
    pub fn new(
        file: StagedFile,
        page: Page,
        (columns, rows): (usize, usize),
        given: Option<RowSource<u8>>,
    ) -> Self {
        let longest = if given.is_some() {
            LONGEST_OF_TWO
        } else {
            LONGEST
        };
        let raster = || Raster::new((columns, rows), longest);
        let given = given.map(|mask| Given {
            mask,
            row: vec![0; columns],
            raster: raster(),
        });
        Self {
            file,
            page,
            columns,
            rows,
            field: raster(),
            given,
            position: 0,
        }
    }

    /// Takes the next cells, in row-major order.
    pub fn put<T: Copy + Into<f64>>(&mut self, cells: &[T]) {
        for &cell in cells {
            let value = cell.into();
            self.field.push(Some(value));
            if let Some(given) = &mut self.given {
                let column = self.position % self.columns;
                if column == 0 {
                    (given.mask)(self.position / self.columns, &mut given.row);
                }
                given.raster.push((given.row[column] != 0).then_some(value));
            }
            self.position += 1;
        }
    }

    /// Draws the page and completes the file.
    pub fn finish(self) -> Result<(), OutputError> {
        let look = &self.page.look;
        let range = look.range(self.field.range());
        let colours = look.colours.unwrap_or(ColourMap::suiting(range));
        let longest = if self.given.is_some() {
            LONGEST_OF_TWO
        } else {
            LONGEST
        };
        let grow = (longest / self.field.width.max(self.field.height)).max(1);
        // A strip is made as thick as can be seen.
        let grown = |cells: usize| grow.max(THINNEST.div_ceil(cells));
        let grow = (grown(self.field.width), grown(self.field.height));
        let panel = (self.field.width * grow.0, self.field.height * grow.1);
        let panels: Vec<(&str, &Raster)> = match &self.given {
            Some(given) => vec![("given", &given.raster), ("filled", &self.field)],
            None => vec![("", &self.field)],
        };

        let bar_height = panel.1.max(LEAST_BAR);
        let bar_ticks = ticks(range.0, range.1, (bar_height / 70).clamp(2, 8));
        let bar_labels = labels(&bar_ticks);
        let bar_text = bar_labels
            .iter()
            .map(|text| Font::Small.width(text))
            .max()
            .unwrap_or(0);
        let unit = look.unit.as_deref().unwrap_or_default();
        let subtitled = panels.len() > 1 || !unit.is_empty();
        let top = TITLE_BAND + if subtitled { SUBTITLE_BAND } else { 0 };
        let bar_text = (TICK + 4 + bar_text).max(Font::Small.width(unit).saturating_sub(BAR_WIDTH));
        let right = BAR_GAP + BAR_WIDTH + bar_text + MARGIN;
        let all_panels = panels.len() * panel.0 + (panels.len() - 1) * PANEL_GAP;
        let left = MARGIN + LEFT_AXIS;
        let width =
            (left + all_panels + right).max(left + Font::Title.width(&self.page.title) + MARGIN);
        let row_label = self.page.axes.down.label();
        // The label of a low field needs more than the field.
        let label = Font::Small.width(&row_label).saturating_sub(panel.1) / 2;
        let (down, below) = (label.saturating_sub(top), label.saturating_sub(BOTTOM_AXIS));
        let top = top + down;
        let height = (panel.1 + BOTTOM_AXIS + below).max(bar_height) + MARGIN;
        let mut canvas = Canvas::new(width, top + height);

        canvas.text(
            (left, TITLE_BAND / 2 + 4),
            Anchor::Left,
            Font::Title,
            &self.page.title,
        );
        // A solution is smooth: lines of equal value show its shape. Given cells may be anything.
        let contours = if self.given.is_none() && !colours.shaded() && grow.0 == grow.1 {
            // Not at the ends, which sides often have.
            let inside = |level: &&f64| range.0 < **level && **level < range.1;
            bar_ticks.iter().filter(inside).copied().collect()
        } else {
            Vec::new()
        };
        let paint = Paint {
            colours,
            range,
            contours,
        };
        for (place, (subtitle, raster)) in panels.iter().enumerate() {
            let x = left + place * (panel.0 + PANEL_GAP);
            canvas.text(
                (x, top - SUBTITLE_BAND / 2),
                Anchor::Left,
                Font::Small,
                subtitle,
            );
            paint.panel(&mut canvas, (x, top), raster, grow);
            canvas.frame((x, top), panel, LINE);
            self.column_axis(&mut canvas, (x, top + panel.1), panel.0);
        }
        self.row_axis(&mut canvas, (left, top), panel.1);
        canvas.text(
            (left + all_panels + BAR_GAP, top - SUBTITLE_BAND / 2),
            Anchor::Left,
            Font::Small,
            unit,
        );

        let bar = (left + all_panels + BAR_GAP, top);
        paint.bar(&mut canvas, bar, bar_height);
        for (tick, label) in bar_ticks.iter().zip(&bar_labels) {
            let share = (tick - range.0) / (range.1 - range.0);
            let y = top + ((1.0 - share) * (bar_height - 1) as f64).round() as usize;
            canvas.fill((bar.0 + BAR_WIDTH + 1, y), (TICK, 1), LINE);
            canvas.text(
                (bar.0 + BAR_WIDTH + TICK + 5, y),
                Anchor::Left,
                Font::Small,
                label,
            );
        }
        canvas.write_png(self.file)
    }

    fn column_axis(&self, canvas: &mut Canvas, (x, y): (usize, usize), width: usize) {
        let axis = &self.page.axes.across;
        for (tick, label) in axis.marks(self.columns, width / 90) {
            let place = x + pixel(tick, self.columns, width);
            canvas.fill((place, y + 1), (1, TICK), LINE);
            canvas.text((place, y + TICK + 13), Anchor::Middle, Font::Small, &label);
        }
        canvas.text(
            (x + width / 2, y + TICK + 34),
            Anchor::Middle,
            Font::Small,
            &axis.label(),
        );
    }

    fn row_axis(&self, canvas: &mut Canvas, (x, y): (usize, usize), height: usize) {
        let axis = &self.page.axes.down;
        for (tick, label) in axis.marks(self.rows, height / 70) {
            let place = y + pixel(tick, self.rows, height);
            canvas.fill((x - 1 - TICK, place), (TICK, 1), LINE);
            canvas.text((x - TICK - 6, place), Anchor::Right, Font::Small, &label);
        }
        canvas.text_upwards((MARGIN, y + height / 2), Font::Small, &axis.label());
    }
}

/// The pixel at the middle of cell `cell` of an axis of `cells` cells and `length` pixels.
fn pixel(cell: f64, cells: usize, length: usize) -> usize {
    (((cell + 0.5) * length as f64 / cells as f64) as usize).min(length - 1)
}

struct Paint {
    colours: ColourMap,
    range: (f64, f64),
    /// Values whose contour lines are drawn.
    contours: Vec<f64>,
}

impl Paint {
    fn panel(
        &self,
        canvas: &mut Canvas,
        (x, y): (usize, usize),
        raster: &Raster,
        grow: (usize, usize),
    ) {
        for row in 0..raster.height {
            for column in 0..raster.width {
                let at = (x + column * grow.0, y + row * grow.1);
                match self.cell(raster, column, row) {
                    Some(colour) => canvas.fill(at, grow, colour),
                    None => hatch(canvas, at, grow),
                }
            }
        }
        if !self.contours.is_empty() {
            self.contour_lines(canvas, (x, y), raster, grow.0);
        }
    }

    /// Draws each contour where the field, linear between the middles of the cells, crosses it:
    /// a pixel's cover is its distance from the line, the value's difference over the slope.
    fn contour_lines(
        &self,
        canvas: &mut Canvas,
        (x, y): (usize, usize),
        raster: &Raster,
        grow: usize,
    ) {
        let scale = 1.0 / grow as f64;
        let place = |pixel: usize| (pixel as f64 + 0.5) * scale - 0.5;
        for py in 0..raster.height * grow {
            for px in 0..raster.width * grow {
                let (value, slope) = raster.linear(place(px), place(py));
                let slope = slope * scale;
                // Where the field is flat, or only touches the value (a constant side does), there
                // is no line to draw.
                if slope <= 1e-4 * (self.range.1 - self.range.0) {
                    continue;
                }
                let (low, high) = raster.bounds(place(px), place(py));
                let crossed = |level: &&f64| f64::from(low) < **level && **level < f64::from(high);
                let nearest = self
                    .contours
                    .iter()
                    .filter(crossed)
                    .map(|level| (value - level).abs());
                let distance = nearest.fold(f64::INFINITY, f64::min) / slope;
                if distance < 1.0 {
                    canvas.blend(
                        x + px,
                        y + py,
                        self.colours.contour(),
                        CONTOUR * (1.0 - distance),
                    );
                }
            }
        }
    }

    /// The colour of a cell; none if its value was not given.
    fn cell(&self, raster: &Raster, column: usize, row: usize) -> Option<Rgb> {
        let at = |column: usize, row: usize| f64::from(raster.means[row * raster.width + column]);
        let value = at(column, row);
        if value.is_nan() {
            return None;
        }
        let colour = self.colours.at(self.share(value));
        if !self.colours.shaded() {
            return Some(colour);
        }
        // Central differences towards the light, over one hundredth of the range per cell.
        let known = |neighbour: f64| if neighbour.is_nan() { value } else { neighbour };
        let right = known(at((column + 1).min(raster.width - 1), row));
        let left = known(at(column.saturating_sub(1), row));
        let down = known(at(column, (row + 1).min(raster.height - 1)));
        let up = known(at(column, row.saturating_sub(1)));
        let rise = ((right - left) + (down - up)) / (self.range.1 - self.range.0) * 12.0;
        let light = RELIEF * rise.tanh();
        Some(if light >= 0.0 {
            mix(colour, [255; 3], light)
        } else {
            mix(colour, [24, 30, 44], -light)
        })
    }

    fn bar(&self, canvas: &mut Canvas, (x, y): (usize, usize), height: usize) {
        for step in 0..height {
            let share = 1.0 - step as f64 / (height - 1).max(1) as f64;
            let value = self.range.0 + share * (self.range.1 - self.range.0);
            let colour = self.colours.at(self.share(value));
            canvas.fill((x, y + step), (BAR_WIDTH, 1), colour);
        }
        canvas.frame((x, y), (BAR_WIDTH, height), LINE);
    }

    fn share(&self, value: f64) -> f64 {
        self.colours.share(value, self.range)
    }
}

/// Marks cells whose value was not given as no colour of a map does: by stripes.
fn hatch(canvas: &mut Canvas, (x, y): (usize, usize), (width, height): (usize, usize)) {
    for py in y..y + height {
        for px in x..x + width {
            let stripe = (px + py) % STRIPES < 2;
            canvas.set(px, py, if stripe { STRIPE } else { UNKNOWN });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Width, height and pixels of the PNG that `fill` makes.
    fn decoded(
        colours: ColourMap,
        size: (usize, usize),
        given: Option<RowSource<u8>>,
        value: impl Fn(usize) -> f64,
    ) -> (usize, usize, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.png");
        let file = StagedFile::create(&path).unwrap();
        let page = Page {
            title: "a title".into(),
            look: Look {
                colours: Some(colours),
                ..Look::default()
            },
            axes: Axes {
                across: Axis {
                    cells: "column",
                    spacing: None,
                },
                down: Axis {
                    cells: "row",
                    spacing: Some(30.0),
                },
            },
        };
        let mut picture = PlanePicture::new(file, page, size, given);
        let cells: Vec<f64> = (0..size.0 * size.1).map(value).collect();
        cells.chunks(7).for_each(|piece| picture.put(piece));
        picture.finish().unwrap();
        let bytes = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(bytes).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(
            (info.color_type, info.bit_depth),
            (png::ColorType::Rgb, png::BitDepth::Eight)
        );
        (info.width as usize, info.height as usize, pixels)
    }

    fn holds(pixels: &[u8], colour: Rgb) -> usize {
        pixels.chunks_exact(3).filter(|p| *p == colour).count()
    }

    #[test]
    fn small_fields_grow_by_whole_factors() {
        let (_, height, pixels) = decoded(ColourMap::Viridis, (2, 1), None, |k| k as f64);
        // 960 / 2 pixels a cell, less the contour lines, and the ends of the range at the two cells and on the bar.
        assert!(height > 480);
        assert!(holds(&pixels, ColourMap::Viridis.at(0.0)) >= 400 * 400);
        assert!(holds(&pixels, ColourMap::Viridis.at(1.0)) >= 400 * 400);
    }

    #[test]
    fn unknown_cells_are_blank_in_the_first_panel_only() {
        let mask: RowSource<u8> = std::sync::Arc::new(|row, cells| cells.fill(u8::from(row != 1)));
        let (_, _, pixels) = decoded(ColourMap::Viridis, (4, 4), Some(mask), |k| k as f64);
        assert_eq!(
            holds(&pixels, UNKNOWN) + holds(&pixels, STRIPE),
            4 * 140 * 140
        );
    }

    #[test]
    fn odd_fields_make_pictures_too() {
        for (size, value) in [
            ((1, 1), 3.0),
            ((5000, 2), -1e30),
            ((3, 3), f64::NAN),
            ((2, 700), f64::MAX),
        ] {
            let (width, height, _) = decoded(ColourMap::Terrain, size, None, |k| {
                if k == 0 { 0.0 } else { value }
            });
            assert!(width < 1400 && height < 1200);
        }
    }
}
