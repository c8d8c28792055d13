//! Pictures of the lab as SVG: alone in a file, or part of a page.
//!
//! Colours are classes that take the reader's light or dark scheme; a picture in a file brings their
//! definitions, a page has them once.

use std::fmt::Write as _;

use super::axes::Axes;
use crate::plot::escape;

/// What the classes look like.
pub const STYLE: &str = "
  .chart { --paper: #ffffff; --ink: #1f2328; --faint: #59636e; --rule: #d1d9e0; --frame: #818b98;
    --blue: #0969da; --orange: #bc4c00; --green: #1a7f37; --violet: #8250df; --grey: #afb8c1;
    --idle: #f0f3f6; --good: #54aeff; --warm: #fb8f44; --hot: #cf222e; --on: #ffffff }
  @media (prefers-color-scheme: dark) {
    .chart { --paper: #0d1117; --ink: #f0f6fc; --faint: #9198a1; --rule: #3d444d; --frame: #656c76;
      --blue: #4493f8; --orange: #f0883e; --green: #3fb950; --violet: #ab7df8; --grey: #656c76;
      --idle: #1c2128; --good: #1f6feb; --warm: #db6d28; --hot: #da3633; --on: #ffffff }
  }
  .chart text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: var(--ink) }
  .chart .title { font-size: 16px; font-weight: 600 } .chart .small { font-size: 12px } .chart .strong { font-weight: 600 }
  .chart .paper { fill: var(--paper) } .chart text.faint { fill: var(--faint) }
  .chart text.alarm { fill: var(--hot); font-weight: 600 } .chart text.on { fill: var(--on); font-weight: 600 }
  .chart .rule { stroke: var(--rule); stroke-width: 1 } .chart .frame { fill: none; stroke: var(--frame) }
  .chart .curve { fill: none; stroke: var(--blue); stroke-width: 2.2; stroke-linejoin: round }
  .chart .roof { fill: none; stroke: var(--ink); stroke-width: 2.2; stroke-linejoin: round }
  .chart .goal { fill: none; stroke: var(--orange); stroke-width: 1.6; stroke-dasharray: 7 5 }
  .chart .mark { fill: var(--orange) } .chart .textbook { fill: var(--blue) } .chart .own { fill: var(--green) }
  .chart .peer { fill: var(--violet) } .chart .wrong { fill: var(--grey) }
  .chart .idle { fill: var(--idle) } .chart .good { fill: var(--good) } .chart .warm { fill: var(--warm) } .chart .hot { fill: var(--hot) }
";

const LEFT: f64 = 84.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 68.0;
const BOTTOM: f64 = 62.0;

/// A picture in the making.
pub struct Chart {
    title: String,
    width: f64,
    height: f64,
    body: String,
}

/// The inner rectangle of a plot.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plot {
    /// Where a pair of values lies on the page.
    pub fn at(&self, axes: &Axes, x: f64, y: f64) -> (f64, f64) {
        (
            self.left + axes.x.place(x) * (self.right - self.left),
            self.bottom - axes.y.place(y) * (self.bottom - self.top),
        )
    }
}

impl Chart {
    /// An empty picture with a heading.
    pub fn new(title: &str, width: f64, height: f64) -> Self {
        let mut chart = Self {
            title: title.to_owned(),
            width,
            height,
            body: String::new(),
        };
        chart.text("title", "start", 24.0, 34.0, title);
        chart
    }

    /// Frame, grid, marks and labels of a plot that fills the picture.
    pub fn plot(&mut self, axes: &Axes) -> Plot {
        let plot = Plot {
            left: LEFT,
            right: self.width - RIGHT,
            top: TOP,
            bottom: self.height - BOTTOM,
        };
        for (value, label) in axes.x.marks() {
            let x = plot.left + axes.x.place(value) * (plot.right - plot.left);
            self.line("rule", (x, plot.top), (x, plot.bottom));
            self.text("faint", "middle", x, plot.bottom + 20.0, &label);
        }
        for (value, label) in axes.y.marks() {
            let y = plot.bottom - axes.y.place(value) * (plot.bottom - plot.top);
            self.line("rule", (plot.left, y), (plot.right, y));
            self.text("faint", "end", plot.left - 9.0, y + 4.5, &label);
        }
        let (width, height) = (plot.right - plot.left, plot.bottom - plot.top);
        self.element(format_args!(
            "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\"/>",
            plot.left, plot.top
        ));
        let middle = f64::midpoint(plot.left, plot.right);
        self.text("faint", "middle", middle, self.height - 16.0, axes.x_label);
        let y = f64::midpoint(plot.top, plot.bottom);
        let label = escape(axes.y_label);
        self.element(format_args!(
            "<text class=\"faint\" text-anchor=\"middle\" transform=\"translate(22 {y}) rotate(-90)\">{label}</text>"
        ));
        plot
    }

    /// Text whose `anchor` (start, middle, end) is at x and whose baseline is at y.
    pub fn text(&mut self, class: &str, anchor: &str, x: f64, y: f64, text: &str) {
        let text = escape(text);
        self.element(format_args!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.element(format_args!(
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line through points.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let points = points.join(" ");
        self.element(format_args!(
            "<polyline class=\"{class}\" points=\"{points}\"/>"
        ));
    }

    /// A filled circle that says `hint` when pointed at.
    pub fn dot(&mut self, class: &str, x: f64, y: f64, radius: f64, hint: &str) {
        let hint = escape(hint);
        self.element(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"><title>{hint}</title></circle>"
        ));
    }

    /// A filled rectangle that says `hint` when pointed at.
    pub fn cell(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64, hint: &str) {
        let hint = match hint {
            "" => String::new(),
            hint => format!("<title>{}</title>", escape(hint)),
        };
        self.element(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\">{hint}</rect>"
        ));
    }

    fn element(&mut self, element: std::fmt::Arguments) {
        writeln!(self.body, "  {element}").expect("a String takes everything");
    }

    /// The picture for a file of its own.
    pub fn standalone(&self) -> String {
        self.svg(
            " xmlns=\"http://www.w3.org/2000/svg\"",
            &format!("  <style>{STYLE}</style>\n  <rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n"),
        )
    }

    /// The picture as part of a page that has [`STYLE`].
    pub fn inline(&self) -> String {
        self.svg("", "")
    }

    fn svg(&self, namespace: &str, before: &str) -> String {
        format!(
            "<svg{namespace} class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{before}{}</svg>\n",
            self.width,
            self.height,
            escape(&self.title),
            self.body
        )
    }
}
