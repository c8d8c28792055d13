//! Pictures made of shapes: laid out once, then SVG (alone in a file, or part of a page) or PNG.
//!
//! Colours are classes. In SVG they take the reader's light or dark scheme; a picture in a file brings
//! their definitions, a page has them once. A PNG is light.

use super::axes::Axes;

const LEFT: f64 = 84.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 68.0;
const BOTTOM: f64 = 62.0;

/// A picture in the making.
pub struct Chart {
    pub(super) title: String,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) elements: Vec<Element>,
}

/// A point of the page, from the top left.
pub type Point = (f64, f64);

/// What a picture is made of, in the order in which it is drawn.
pub enum Element {
    /// Text at a point: of its baseline the start, the middle or the end.
    Text {
        /// Class.
        class: String,
        /// `start`, `middle` or `end`.
        anchor: &'static str,
        /// The point.
        at: Point,
        /// Whether it goes up the page.
        upwards: bool,
        /// The text.
        text: String,
    },
    /// A line through points.
    Line {
        /// Class.
        class: &'static str,
        /// The points.
        points: Vec<Point>,
    },
    /// A filled circle.
    Dot {
        /// Class.
        class: &'static str,
        /// Its centre.
        at: Point,
        /// Its radius.
        radius: f64,
        /// Shown when pointed at, unless empty.
        hint: String,
    },
    /// A filled rectangle.
    Cell {
        /// Class.
        class: &'static str,
        /// Its top left corner.
        at: Point,
        /// Width and height.
        size: Point,
        /// Shown when pointed at, unless empty.
        hint: String,
    },
}

/// The inner rectangle of a plot.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    pub left: f64,
    right: f64,
    pub top: f64,
    bottom: f64,
}

impl Plot {
    /// The right edge.
    pub fn right(&self) -> f64 {
        self.right
    }

    /// The lower edge.
    pub fn bottom(&self) -> f64 {
        self.bottom
    }

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
        let mut chart = Self::untitled(title, width, height);
        chart.text("title", "start", 24.0, 34.0, title);
        chart
    }

    /// An empty picture whose heading stands elsewhere.
    pub fn untitled(title: &str, width: f64, height: f64) -> Self {
        Self {
            title: title.to_owned(),
            width,
            height,
            elements: Vec::new(),
        }
    }

    /// The heading.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Frame, grid, marks and labels of a plot that fills the picture.
    pub fn plot(&mut self, axes: &Axes) -> Plot {
        let plot = Plot {
            left: LEFT,
            right: self.width - RIGHT,
            top: TOP,
            bottom: self.height - BOTTOM,
        };
        if axes.powers {
            for value in axes.y.fine_marks() {
                let y = plot.bottom - axes.y.place(value) * (plot.bottom - plot.top);
                self.line("fine", (plot.left, y), (plot.right, y));
            }
        }
        for (value, label) in axes.x.marks() {
            let x = plot.left + axes.x.place(value) * (plot.right - plot.left);
            self.line("rule", (x, plot.top), (x, plot.bottom));
            self.text("faint", "middle", x, plot.bottom + 20.0, &label);
        }
        let y_marks = match axes.powers {
            true => axes.y.powers(),
            false => axes.y.marks(),
        };
        for (value, label) in y_marks {
            let y = plot.bottom - axes.y.place(value) * (plot.bottom - plot.top);
            self.line("rule", (plot.left, y), (plot.right, y));
            self.text("faint", "end", plot.left - 9.0, y + 4.5, &label);
        }
        let corners = [
            (plot.left, plot.top),
            (plot.right, plot.top),
            (plot.right, plot.bottom),
            (plot.left, plot.bottom),
            (plot.left, plot.top),
        ];
        self.polyline("frame", &corners);
        let middle = f64::midpoint(plot.left, plot.right);
        self.text("faint", "middle", middle, self.height - 16.0, axes.x_label);
        self.elements.push(Element::Text {
            class: "faint".to_owned(),
            anchor: "middle",
            at: (22.0, f64::midpoint(plot.top, plot.bottom)),
            upwards: true,
            text: axes.y_label.to_owned(),
        });
        plot
    }

    /// Text whose `anchor` (start, middle, end) is at x and whose baseline is at y.
    pub fn text(&mut self, class: &str, anchor: &'static str, x: f64, y: f64, text: &str) {
        self.elements.push(Element::Text {
            class: class.to_owned(),
            anchor,
            at: (x, y),
            upwards: false,
            text: text.to_owned(),
        });
    }

    /// A straight line.
    pub fn line(&mut self, class: &'static str, from: Point, to: Point) {
        self.polyline(class, &[from, to]);
    }

    /// A line through points.
    pub fn polyline(&mut self, class: &'static str, points: &[Point]) {
        self.elements.push(Element::Line {
            class,
            points: points.to_vec(),
        });
    }

    /// A filled circle that says `hint` when pointed at.
    pub fn dot(&mut self, class: &'static str, x: f64, y: f64, radius: f64, hint: &str) {
        self.elements.push(Element::Dot {
            class,
            at: (x, y),
            radius,
            hint: hint.to_owned(),
        });
    }

    /// A filled rectangle that says `hint` when pointed at.
    pub fn cell(&mut self, class: &'static str, at: Point, size: Point, hint: &str) {
        self.elements.push(Element::Cell {
            class,
            at,
            size,
            hint: hint.to_owned(),
        });
    }
}
