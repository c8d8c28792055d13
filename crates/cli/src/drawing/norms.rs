//! The norm over the sweeps as a log plot (SVG).
//!
//! Text and lines take the reader's light or dark scheme.

use std::fmt::Write as _;

use crate::drawing::ticks::{labels, ticks};
use crate::format::general;
use crate::output::staged::{OutputError, StagedFile};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 62.0;
/// Most points in the curve: a long history shows its least and greatest norm per step.
const MOST_STEPS: usize = 1000;

const STYLE: &str = "
    .paper { fill: #ffffff } .ink { fill: #1f2328 } .faint { fill: #59636e }
    .grid { stroke: #d1d9e0; stroke-width: 1 } .minor { stroke: #eff2f5; stroke-width: 1 }
    .frame { fill: none; stroke: #818b98; stroke-width: 1 }
    .curve { fill: none; stroke: #0969da; stroke-width: 2.2; stroke-linejoin: round; stroke-linecap: round }
    .dot { fill: #0969da } .goal { stroke: #bc4c00; stroke-width: 1.6; stroke-dasharray: 7 5 } .goaltext { fill: #bc4c00 }
    text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif } .title { font-size: 17px; font-weight: 600 }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117 } .ink { fill: #f0f6fc } .faint { fill: #9198a1 }
      .grid { stroke: #3d444d } .minor { stroke: #1c2128 } .frame { stroke: #656c76 }
      .curve { stroke: #4493f8 } .dot { fill: #4493f8 } .goal { stroke: #f0883e } .goaltext { fill: #f0883e }
    }";

/// What the plot says beside the curve.
pub struct PlotTexts<'a> {
    /// The heading.
    pub title: &'a str,
    /// The name of the norm.
    pub norm: &'a str,
}

/// Writes the plot of `norms`, one per sweep, with a line at `tolerance`.
pub fn write_svg(
    mut file: StagedFile,
    texts: &PlotTexts,
    norms: &[f64],
    tolerance: f64,
) -> Result<(), OutputError> {
    file.put(svg(texts, norms, tolerance).as_bytes())?;
    file.commit()
}

fn svg(texts: &PlotTexts, norms: &[f64], tolerance: f64) -> String {
    let axes = Axes::around(norms, tolerance);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n  \
         <style>{STYLE}\n  </style>\n  <rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n  \
         <text class=\"ink title\" x=\"{LEFT}\" y=\"34\">{title}</text>\n",
        title = escape(texts.title)
    );
    axes.grid(&mut out);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let (width, height) = (right - LEFT, bottom - TOP);
    line(
        &mut out,
        format_args!(
            "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\"/>"
        ),
    );
    if tolerance > 0.0 {
        let y = axes.y(tolerance);
        line(
            &mut out,
            format_args!(
                "<line class=\"goal\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            ),
        );
        let text = general(tolerance, 6);
        line(
            &mut out,
            format_args!(
                "<text class=\"goaltext\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">tolerance {text}</text>",
                right - 8.0,
                y - 7.0
            ),
        );
    }
    axes.curve(&mut out, norms);
    let middle = LEFT + width / 2.0;
    line(
        &mut out,
        format_args!(
            "<text class=\"faint\" text-anchor=\"middle\" x=\"{middle}\" y=\"{:.1}\">sweep</text>",
            HEIGHT - 16.0
        ),
    );
    let y = TOP + height / 2.0;
    line(
        &mut out,
        format_args!(
            "<text class=\"faint\" text-anchor=\"middle\" transform=\"translate(22 {y}) rotate(-90)\">{}</text>",
            escape(texts.norm)
        ),
    );
    out.push_str("</svg>\n");
    out
}

/// The mapping from sweeps and norms to the page.
struct Axes {
    last: f64,
    /// Exponents of ten at the bottom and the top.
    low: f64,
    high: f64,
}

impl Axes {
    fn around(norms: &[f64], tolerance: f64) -> Self {
        let shown = norms
            .iter()
            .copied()
            .chain([tolerance])
            .filter(|&v| v > 0.0 && v.is_finite());
        let logs = shown.map(f64::log10);
        let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        let (low, high) = if low > high {
            (-1.0, 0.0)
        } else {
            ((low - 0.05).floor(), (high + 0.05).ceil())
        };
        Self {
            last: norms.len().saturating_sub(1).max(1) as f64,
            low,
            high: high.max(low + 1.0),
        }
    }

    fn x(&self, sweep: f64) -> f64 {
        LEFT + sweep / self.last * (WIDTH - RIGHT - LEFT)
    }

    fn y(&self, norm: f64) -> f64 {
        let exponent = norm.log10().clamp(self.low, self.high);
        TOP + (self.high - exponent) / (self.high - self.low) * (HEIGHT - BOTTOM - TOP)
    }

    fn grid(&self, out: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let decades = (self.high - self.low) as i32;
        let every = (decades as usize).div_ceil(10).max(1);
        for decade in (self.low as i32..=self.high as i32).step_by(every) {
            if decades <= 5 && f64::from(decade) < self.high {
                for part in 2..10 {
                    let y = self.y(f64::from(part) * 10f64.powi(decade));
                    line(
                        out,
                        format_args!(
                            "<line class=\"minor\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
                        ),
                    );
                }
            }
            let y = self.y(10f64.powi(decade));
            line(
                out,
                format_args!(
                    "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
                ),
            );
            line(
                out,
                format_args!(
                    "<text class=\"faint\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">10<tspan dy=\"-6\" font-size=\"10\">{decade}</tspan></text>",
                    LEFT - 9.0,
                    y + 5.0
                ),
            );
        }
        let mut marks = ticks(0.0, self.last, 8);
        marks.retain(|mark| mark.fract() == 0.0);
        for (mark, label) in marks.iter().zip(labels(&marks)) {
            let x = self.x(*mark);
            line(
                out,
                format_args!(
                    "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
                ),
            );
            line(
                out,
                format_args!(
                    "<text class=\"faint\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>",
                    bottom + 20.0
                ),
            );
        }
    }

    /// The curve; zeros and values that are not finite are left out.
    fn curve(&self, out: &mut String, norms: &[f64]) {
        let step = norms.len().div_ceil(MOST_STEPS).max(1);
        let mut points = Vec::new();
        for (place, chunk) in norms.chunks(step).enumerate() {
            let drawn = chunk
                .iter()
                .copied()
                .enumerate()
                .filter(|(_, v)| *v > 0.0 && v.is_finite());
            let least = drawn.clone().min_by(|a, b| a.1.total_cmp(&b.1));
            let greatest = drawn.max_by(|a, b| a.1.total_cmp(&b.1));
            let (Some(least), Some(greatest)) = (least, greatest) else {
                continue;
            };
            let mut both = [least, greatest];
            both.sort_by_key(|pair| pair.0);
            let both = if least.0 == greatest.0 {
                &both[..1]
            } else {
                &both[..]
            };
            points.extend(
                both.iter()
                    .map(|&(k, norm)| (self.x((place * step + k) as f64), self.y(norm))),
            );
        }
        if let [(x, y)] = points[..] {
            line(
                out,
                format_args!("<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"),
            );
        } else if !points.is_empty() {
            let path: Vec<String> = points
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            line(
                out,
                format_args!("<polyline class=\"curve\" points=\"{}\"/>", path.join(" ")),
            );
        }
    }
}

fn line(out: &mut String, element: std::fmt::Arguments) {
    writeln!(out, "  {element}").expect("a String takes everything");
}

/// `text` for XML and HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no way to write these.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: PlotTexts = PlotTexts {
        title: "a < b & \"c\"\u{1}",
        norm: "rms",
    };

    #[test]
    fn every_history_makes_well_formed_xml() {
        let decay: Vec<f64> = (0..5000).map(|k| (-f64::from(k) / 300.0).exp()).collect();
        for (norms, tolerance) in [
            (decay.as_slice(), 1e-6),
            (&[], 0.0),
            (&[1.0], 1e-3),
            (&[0.0, 0.0], 0.0),
            (&[f64::NAN, f64::INFINITY, 1e-300, 1e300], 1.0),
            (&[1e-4, 1e-4], 1e-4),
        ] {
            let text = svg(&TEXTS, norms, tolerance);
            let document = roxmltree::Document::parse(&text).unwrap();
            assert_eq!(
                document.root_element().attribute("aria-label"),
                Some("a < b & \"c\" ")
            );
            let goal = document
                .descendants()
                .any(|n| n.attribute("class") == Some("goal"));
            assert_eq!(goal, tolerance > 0.0);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(text.len() < 60_000);
        }
    }

    #[test]
    fn the_curve_falls_from_left_to_right() {
        let norms = [1.0, 0.1, 0.01];
        let text = svg(&TEXTS, &norms, 0.0);
        let document = roxmltree::Document::parse(&text).unwrap();
        let curve = document
            .descendants()
            .find(|n| n.has_tag_name("polyline"))
            .unwrap();
        let points: Vec<(f64, f64)> = curve
            .attribute("points")
            .unwrap()
            .split(' ')
            .map(|p| p.split_once(',').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        assert_eq!(points.len(), 3);
        assert!(
            points
                .windows(2)
                .all(|p| p[0].0 < p[1].0 && p[0].1 < p[1].1)
        );
        // Equal ratios are equal steps.
        assert!(((points[1].1 - points[0].1) - (points[2].1 - points[1].1)).abs() < 0.2);
    }
}
