//! Two files of measured rows side by side.
//!
//! A file holds one JSON object a line. Rows of two files are the same measurement if all that
//! describes it is equal: every member but the figures, the remarks, the version and the machine.

use std::collections::BTreeMap;

use serde_json::Value;

/// Members that say how and with what it was measured. Figures are told by their kind: they are numbers
/// that are not whole.
const NOT_IDENTITY: &[&str] = &[
    "schema",
    "samples",
    "calls",
    "repetitions",
    "iterations",
    "about",
    "version",
    "machine",
];

/// The rows of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// In the file's order: what was measured, and the microseconds.
    rows: Vec<(String, Figure)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    us: f64,
    min: f64,
    max: f64,
}

/// Why a file holds no rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A line is no JSON object.
    #[error(
        "line {line}: {reason}; wanted is one JSON object a line, as `crosswarp bench … --json` prints"
    )]
    Json {
        /// From 1.
        line: usize,
        /// The parser's words.
        reason: String,
    },
    /// A row has no time.
    #[error("line {line}: no positive number \"us\"")]
    NoTime {
        /// From 1.
        line: usize,
    },
    /// Nothing at all.
    #[error("no measured rows")]
    Empty,
}

impl Rows {
    /// Reads the text of a file.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let line_number = index + 1;
            let object: serde_json::Map<String, Value> =
                serde_json::from_str(line).map_err(|error| ReadError::Json {
                    line: line_number,
                    reason: error.to_string(),
                })?;
            let number = |name: &str| object.get(name).and_then(Value::as_f64);
            let us = number("us").filter(|us| *us > 0.0);
            let us = us.ok_or(ReadError::NoTime { line: line_number })?;
            let figure = Figure {
                us,
                min: number("us_min").unwrap_or(us),
                max: number("us_max").unwrap_or(us),
            };
            rows.push((identity(&object), figure));
        }
        if rows.is_empty() {
            return Err(ReadError::Empty);
        }
        Ok(Self { rows })
    }
}

/// Whether a member is measured: times, and numbers with a point.
fn is_figure(name: &str, value: &Value) -> bool {
    name == "us" || name.starts_with("us_") || value.is_f64()
}

/// What was measured: the name first, then the parameters by name.
fn identity(object: &serde_json::Map<String, Value>) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let what = object.get("what").map(text).unwrap_or_default();
    let parameters = object.iter().filter(|(name, value)| {
        !is_figure(name, value)
            && *name != "what"
            && *name != "impl"
            && !NOT_IDENTITY.contains(&name.as_str())
    });
    let parameters: BTreeMap<&String, String> = parameters
        .map(|(name, value)| (name, text(value)))
        .collect();
    parameters
        .into_iter()
        .fold(what, |all, (name, value)| format!("{all} {name}={value}"))
}

/// Whether a time changed by more than its spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// All samples of the second file are below all of the first.
    Faster,
    /// All samples of the second file are above all of the first.
    Slower,
    /// The samples overlap.
    Within,
}

/// One measurement of both files.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What was measured.
    pub what: String,
    /// Median of the first file, µs.
    pub before: f64,
    /// Median of the second file, µs.
    pub after: f64,
    /// Whether they differ.
    pub change: Change,
}

impl Comparison {
    /// How many times faster the second is.
    pub fn speedup(&self) -> f64 {
        self.before / self.after
    }
}

/// The measurements that both files have, in the first one's order, and how many only one has. Where
/// a file has a measurement several times, the first counts.
pub fn compare(before: &Rows, after: &Rows) -> (Vec<Comparison>, usize) {
    let mut second: BTreeMap<&str, Figure> = BTreeMap::new();
    for (what, figure) in &after.rows {
        second.entry(what).or_insert(*figure);
    }
    let mut found = Vec::new();
    let mut alone = 0;
    let mut seen = std::collections::BTreeSet::new();
    for (what, first) in &before.rows {
        if !seen.insert(what.as_str()) {
            continue;
        }
        let Some(second) = second.remove(what.as_str()) else {
            alone += 1;
            continue;
        };
        let change = if second.max < first.min {
            Change::Faster
        } else if second.min > first.max {
            Change::Slower
        } else {
            Change::Within
        };
        found.push(Comparison {
            what: what.clone(),
            before: first.us,
            after: second.us,
            change,
        });
    }
    (found, alone + second.len())
}

#[cfg(test)]
mod tests {
    use super::super::{Machine, Row, SCHEMA, Timing};
    use super::*;

    fn row(what: &str, elements: u32, seconds: [f64; 3]) -> String {
        let time = Timing::of(seconds.to_vec(), 1).unwrap();
        Row::new(what, time)
            .with("elements", elements)
            .with("gsamples", f64::from(elements) / seconds[0])
            .bytes(1 << 20)
            .json(&Machine::of_host())
    }

    #[test]
    fn rows_that_are_written_are_found_again() {
        let before = [
            row("sum", 10, [1.0, 1.1, 1.2]),
            row("sum", 20, [1.0, 1.1, 1.2]),
            row("max", 10, [1.0, 1.1, 1.2]),
            row("min", 10, [1.0, 1.1, 1.2]),
        ];
        let after = [
            row("max", 10, [1.15, 1.3, 1.4]),
            row("sum", 20, [2.0, 2.2, 2.4]),
            row("sum", 10, [0.5, 0.55, 0.6]),
            row("dot", 10, [1.0, 1.1, 1.2]),
        ];
        let read = |rows: &[String]| Rows::read(&rows.join("\n")).unwrap();
        let (found, alone) = compare(&read(&before), &read(&after));
        let changes: Vec<(&str, Change)> =
            found.iter().map(|c| (c.what.as_str(), c.change)).collect();
        assert_eq!(
            changes,
            [
                ("sum bytes=1048576 elements=10", Change::Faster),
                ("sum bytes=1048576 elements=20", Change::Slower),
                ("max bytes=1048576 elements=10", Change::Within),
            ]
        );
        assert!((found[0].speedup() - 2.0).abs() < 1e-12);
        assert_eq!(alone, 2);
    }

    #[test]
    fn rows_from_before_the_schema_are_the_same_measurements() {
        let row = row("sum", 10, [1.0, 1.1, 1.2]);
        let without = row.replace(&format!("\"schema\":{SCHEMA},"), "");
        assert_ne!(row, without);
        let read = |text: &str| Rows::read(text).unwrap();
        let (found, alone) = compare(&read(&without), &read(&row));
        assert_eq!((found.len(), alone), (1, 0));
    }

    #[test]
    fn what_is_no_row_is_refused_with_its_line() {
        assert_eq!(Rows::read("\n\n"), Err(ReadError::Empty));
        assert_eq!(
            Rows::read("{\"us\": 1}\n\n{\"us\": 0}"),
            Err(ReadError::NoTime { line: 3 })
        );
        assert!(matches!(
            Rows::read("[1]"),
            Err(ReadError::Json { line: 1, .. })
        ));
        assert!(Rows::read("{\"what\": \"x\", \"us\": 1e999}").is_err());
    }
}
