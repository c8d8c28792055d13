//! A picture of shapes as SVG.

use std::fmt::Write as _;

use super::chart::{Chart, Element};
use super::theme;
use crate::output::staged::{OutputError, StagedFile};

impl Chart {
    /// The picture for a file of its own.
    pub fn standalone(&self) -> String {
        self.svg(
            " xmlns=\"http://www.w3.org/2000/svg\"",
            &format!(
                "  <style>{}</style>\n  <rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n",
                theme::style()
            ),
        )
    }

    /// Writes the picture into a file of its own.
    ///
    /// # Errors
    /// The file's.
    pub fn write_svg(&self, mut file: StagedFile) -> Result<(), OutputError> {
        file.put(self.standalone().as_bytes())?;
        file.commit()
    }

    /// The picture as part of a page that has [`theme::style`].
    pub fn inline(&self) -> String {
        self.svg("", "")
    }

    fn svg(&self, namespace: &str, before: &str) -> String {
        let mut out = format!(
            "<svg{namespace} class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{before}",
            self.width,
            self.height,
            escape(&self.title),
        );
        for element in &self.elements {
            writeln!(out, "  {}", element.svg()).expect("a String takes everything");
        }
        out.push_str("</svg>\n");
        out
    }
}

impl Element {
    fn svg(&self) -> String {
        match self {
            Self::Text {
                class,
                anchor,
                at: (x, y),
                upwards,
                text,
            } => {
                let place = if *upwards {
                    format!("transform=\"translate({x:.1} {y:.1}) rotate(-90)\"")
                } else {
                    format!("x=\"{x:.1}\" y=\"{y:.1}\"")
                };
                let text = escape(text);
                format!("<text class=\"{class}\" text-anchor=\"{anchor}\" {place}>{text}</text>")
            }
            Self::Line { class, points } => {
                let points: Vec<String> = points
                    .iter()
                    .map(|(x, y)| format!("{x:.1},{y:.1}"))
                    .collect();
                let points = points.join(" ");
                format!("<polyline class=\"{class}\" points=\"{points}\"/>")
            }
            Self::Dot {
                class,
                at: (x, y),
                radius,
                hint,
            } => {
                let hint = title(hint);
                format!(
                    "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">{hint}</circle>"
                )
            }
            Self::Cell {
                class,
                at: (x, y),
                size: (width, height),
                hint,
            } => {
                let hint = title(hint);
                // Narrow ones would be ellipses.
                let corners = if *width > 6.0 { " rx=\"2\"" } else { "" };
                format!(
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"{corners}>{hint}</rect>"
                )
            }
        }
    }
}

fn title(hint: &str) -> String {
    match hint {
        "" => String::new(),
        hint => format!("<title>{}</title>", escape(hint)),
    }
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
