//! A histogram as bars over the axis of its edges, as SVG or PNG.

use std::fmt::Write as _;

use crate::drawing::ticks::{labels, ticks};
use crate::drawing::{Anchor, Canvas, Font, LINE, PAPER, Rgb, mix};
use crate::output::staged::{OutputError, StagedFile};

const WIDTH: usize = 860;
const HEIGHT: usize = 460;
const LEFT: usize = 110;
const RIGHT: usize = 28;
const TOP: usize = 56;
const BOTTOM: usize = 62;
const BAR: Rgb = [9, 105, 218];
/// Most bars of a drawing: neighbouring bins are drawn together, as tall as their sum.
const MOST_BARS: usize = 512;

const STYLE: &str = "
    .paper { fill: #ffffff } .ink { fill: #1f2328 } .faint { fill: #59636e }
    .grid { stroke: #d1d9e0; stroke-width: 1 } .frame { fill: none; stroke: #818b98; stroke-width: 1 }
    .bar { fill: #0969da }
    text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif } .title { font-size: 17px; font-weight: 600 }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117 } .ink { fill: #f0f6fc } .faint { fill: #9198a1 }
      .grid { stroke: #3d444d } .frame { stroke: #656c76 } .bar { fill: #4493f8 }
    }";

/// What is drawn.
pub struct Bars<'a> {
    /// The heading.
    pub title: &'a str,
    /// What the bars' heights are.
    pub quantity: &'a str,
    /// One more than `totals`.
    pub edges: &'a [f64],
    /// One a bin, at least one.
    pub totals: &'a [u64],
}

/// Writes the bars as SVG; text and lines take the reader's light or dark scheme.
pub fn write_svg(mut file: StagedFile, bars: &Bars) -> Result<(), OutputError> {
    file.put(svg(bars).as_bytes())?;
    file.commit()
}

/// Writes the bars as PNG.
pub fn write_png(file: StagedFile, bars: &Bars) -> Result<(), OutputError> {
    let page = Page::of(bars);
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    canvas.text((LEFT, TOP / 2 + 2), Anchor::Left, Font::Title, bars.title);
    let marks = page.height_marks();
    for (mark, label) in marks.iter().zip(labels(&marks)) {
        let y = page.y(*mark).round() as usize;
        canvas.fill((LEFT, y), (right - LEFT, 1), mix(PAPER, LINE, 0.25));
        canvas.text((LEFT - 8, y), Anchor::Right, Font::Small, &label);
    }
    for &(from, to, total) in &page.bars {
        let (x, end) = (page.x(from).round() as usize, page.x(to).round() as usize);
        let y = page.y(total).round() as usize;
        // A pixel between bars where there is room for it.
        let width = if end > x + 3 {
            end - x - 1
        } else {
            (end - x).max(1)
        };
        canvas.fill((x, y), (width, bottom - y), BAR);
    }
    let marks = page.edge_marks();
    for (mark, label) in marks.iter().zip(labels(&marks)) {
        let x = page.x(*mark).round() as usize;
        canvas.fill((x, bottom + 1), (1, 5), LINE);
        canvas.text((x, bottom + 18), Anchor::Middle, Font::Small, &label);
    }
    canvas.text(
        (LEFT + (right - LEFT) / 2, HEIGHT - 18),
        Anchor::Middle,
        Font::Small,
        page.axis,
    );
    canvas.text_upwards((18, TOP + (bottom - TOP) / 2), Font::Small, bars.quantity);
    canvas.frame((LEFT, TOP), (right - LEFT, bottom - TOP), LINE);
    canvas.write_png(file)
}

fn svg(bars: &Bars) -> String {
    let page = Page::of(bars);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let title = crate::drawing::norms::escape(bars.title);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n  \
         <style>{STYLE}\n  </style>\n  <rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n  \
         <text class=\"ink title\" x=\"{LEFT}\" y=\"34\">{title}</text>\n"
    );
    let mut line =
        |element: String| writeln!(out, "  {element}").expect("a String takes everything");
    let marks = page.height_marks();
    for (mark, label) in marks.iter().zip(labels(&marks)) {
        let y = page.y(*mark);
        line(format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        ));
        line(format!(
            "<text class=\"faint\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{label}</text>",
            LEFT - 9,
            y + 5.0
        ));
    }
    for &(from, to, total) in page.bars.iter().filter(|bar| bar.2 > 0.0) {
        let (x, y) = (page.x(from), page.y(total));
        let width = page.x(to) - x;
        let width = if width > 3.0 { width - 1.0 } else { width };
        line(format!(
            "<rect class=\"bar\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{:.2}\"/>",
            bottom as f64 - y
        ));
    }
    let marks = page.edge_marks();
    for (mark, label) in marks.iter().zip(labels(&marks)) {
        line(format!(
            "<text class=\"faint\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{}\">{label}</text>",
            page.x(*mark),
            bottom + 20
        ));
    }
    line(format!(
        "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>",
        right - LEFT,
        bottom - TOP
    ));
    line(format!(
        "<text class=\"faint\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
        LEFT + (right - LEFT) / 2,
        HEIGHT - 16,
        page.axis
    ));
    line(format!(
        "<text class=\"faint\" text-anchor=\"middle\" transform=\"translate(22 {}) rotate(-90)\">{}</text>",
        TOP + (bottom - TOP) / 2,
        bars.quantity
    ));
    out.push_str("</svg>\n");
    out
}

/// The bars and how they lie on the page.
struct Page {
    /// From, to, height; in the axis' and the totals' units.
    bars: Vec<(f64, f64, f64)>,
    low: f64,
    high: f64,
    top: f64,
    axis: &'static str,
}

impl Page {
    fn of(bars: &Bars) -> Self {
        let step = bars.totals.len().div_ceil(MOST_BARS);
        // Where an edge is infinite, or the whole span is, the axis is that of the bins' numbers.
        let (low, high) = (bars.edges[0], bars.edges[bars.totals.len()]);
        let finite = bars.edges.iter().all(|edge| edge.is_finite());
        let by_value = finite && (high - low).is_finite() && high > low;
        let place = |edge: usize| {
            if by_value {
                bars.edges[edge]
            } else {
                edge as f64
            }
        };
        let drawn: Vec<_> = bars
            .totals
            .chunks(step)
            .enumerate()
            .map(|(k, totals)| {
                let sum = totals.iter().map(|&total| total as f64).sum();
                (place(k * step), place(k * step + totals.len()), sum)
            })
            .collect();
        let top = drawn.iter().map(|bar| bar.2).fold(1.0, f64::max);
        Self {
            low: place(0),
            high: place(bars.totals.len()),
            top: 1.05 * top,
            bars: drawn,
            axis: if by_value { "value" } else { "bin" },
        }
    }

    fn x(&self, place: f64) -> f64 {
        let share = (place - self.low) / (self.high - self.low);
        LEFT as f64 + share * (WIDTH - RIGHT - LEFT) as f64
    }

    fn y(&self, total: f64) -> f64 {
        (HEIGHT - BOTTOM) as f64 - total / self.top * (HEIGHT - BOTTOM - TOP) as f64
    }

    fn height_marks(&self) -> Vec<f64> {
        ticks(0.0, self.top, 6)
    }

    fn edge_marks(&self) -> Vec<f64> {
        ticks(self.low, self.high, 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_histogram_makes_well_formed_xml_with_its_bars() {
        let many: Vec<u64> = (0..5000).collect();
        let many_edges: Vec<f64> = (0..=5000).map(f64::from).collect();
        for (edges, totals, drawn) in [
            (&[0.0, 1.0][..], &[7u64][..], 1),
            (&[0.0, 1.0, 1.0, 4.0], &[1, 0, u64::MAX], 2),
            (&[f64::NEG_INFINITY, 0.0, f64::INFINITY], &[3, 4], 2),
            (&[-1e308, 0.0, 1e308], &[3, 4], 2),
            (&[-8e307, f64::INFINITY, 8e307], &[3, 4], 2),
            (&[-8e307, 0.0, 8e307], &[3, 4], 2),
            (&[0.0, 1.0, 2.0], &[0, 0], 0),
            (&many_edges, &many, 500),
        ] {
            let drawing = Bars {
                title: "a < b & \"c\"",
                quantity: "count",
                edges,
                totals,
            };
            let text = svg(&drawing);
            let document = roxmltree::Document::parse(&text).unwrap();
            let bars = document
                .descendants()
                .filter(|node| node.attribute("class") == Some("bar"));
            assert_eq!(bars.count(), drawn);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            let folder = tempfile::tempdir().unwrap();
            let file = StagedFile::create(&folder.path().join("bars.png")).unwrap();
            write_png(file, &drawing).unwrap();
        }
    }

    #[test]
    fn heights_are_in_proportion() {
        let bars = Bars {
            title: "",
            quantity: "count",
            edges: &[0.0, 1.0, 3.0],
            totals: &[10, 5],
        };
        let page = Page::of(&bars);
        let bottom = page.y(0.0);
        assert!(((bottom - page.y(10.0)) - 2.0 * (bottom - page.y(5.0))).abs() < 1e-9);
        assert!(((page.x(3.0) - page.x(1.0)) - 2.0 * (page.x(1.0) - page.x(0.0))).abs() < 1e-9);
    }
}
