//! A ladder in lines.

use std::fmt::Write as _;

use crosswarp::lab::ladder::{KernelOccupancy, Ladder};
use crosswarp::lab::measure::Timing;

use crate::format::{figure, general, microseconds};

/// The rungs as a terminal shows them.
pub fn table(ladder: &Ladder) -> String {
    let mut out = format!("{}\n{}", ladder.machine, roof_line(ladder));
    let mut number = 0;
    for group in ladder.groups() {
        let _ = write!(out, "\n\n{}\n\n", group[0].group);
        let mut rows = vec![HEADINGS.map(str::to_owned)];
        rows[0][5] = ladder.rate.unit().to_owned();
        for rung in group {
            let speedup = ladder
                .speedup(number)
                .map(|speedup| format!("{speedup:.2} x"));
            number += 1;
            rows.push([
                number.to_string(),
                rung.name.clone(),
                microseconds(rung.time.median),
                spread(&rung.time),
                rung.hot
                    .map_or(String::new(), |hot| microseconds(hot.median)),
                rate(rung.rate(ladder.rate)),
                percent(ladder.of_roof(rung)),
                rung.occupancy.map_or(String::new(), |o| occupancy(&o)),
                speedup.unwrap_or_default(),
                rung.check.text(),
            ]);
        }
        out.push_str(&aligned(&rows));
    }
    if !ladder.notes.is_empty() {
        let _ = write!(out, "\n\n{}", ladder.notes.join("\n"));
    }
    out
}

/// How far the least and the greatest sample are from the median.
fn spread(time: &Timing) -> String {
    let off = |sample: f64| 100.0 * (sample / time.median - 1.0);
    format!("{:+.0} {:+.0} %", off(time.min), off(time.max))
}

const HEADINGS: [&str; 10] = [
    "#",
    "rung",
    "cold us",
    "spread",
    "hot us",
    "",
    "of roof",
    "occupancy",
    "x above",
    "result",
];

/// Rows in columns as wide as they need, names and results to the left, figures to the right; columns with
/// nothing but a heading are left out.
fn aligned(rows: &[[String; HEADINGS.len()]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(
            |column| match rows[1..].iter().all(|row| row[column].is_empty()) {
                true => 0,
                false => width(column).unwrap_or(0),
            },
        )
        .collect();
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for (column, text) in row
            .iter()
            .enumerate()
            .filter(|(column, _)| widths[*column] > 0)
        {
            let width = widths[column];
            let _ = match column {
                1 | 9 => write!(line, "  {text:<width$}"),
                _ => write!(line, "  {text:>width$}"),
            };
        }
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The theoretical occupancy, and the achieved one if it was counted.
fn occupancy(occupancy: &KernelOccupancy) -> String {
    let theoretical = format!("{:.0}", 100.0 * occupancy.theoretical);
    match occupancy.achieved {
        Some(achieved) => format!("{:.0} of {theoretical} %", 100.0 * achieved),
        None => format!("{theoretical} %"),
    }
}

/// The roof in a line.
pub fn roof_line(ladder: &Ladder) -> String {
    format!(
        "roof: {} GB/s, {} GFLOP/s ({})",
        figure(ladder.ceilings.bandwidth / 1e9, 4),
        figure(ladder.ceilings.rate / 1e9, 4),
        ladder.ceilings_are
    )
}

/// A rate with three digits, or all before the point.
pub fn rate(value: f64) -> String {
    figure(value, 3)
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent >= 9.95 {
        format!("{percent:.0} %")
    } else {
        format!("{} %", general(percent, 2))
    }
}
