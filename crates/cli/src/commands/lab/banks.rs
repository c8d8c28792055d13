//! `crosswarp banks`: conflicts of accesses to shared memory.

use std::fmt::Write as _;

use crosswarp::lab::models::banks::{Access, BANKS, Layout, Pattern, Textbook, Width};
use serde_json::{Value, json};

use crate::args::banks::BanksArgs;
use crate::commands::error::CommandError;
use crate::console;
use crate::drawing::chart::Chart;
use crate::drawing::files::PictureFiles;
use crate::format::general;
use crate::output::json;

/// Prints the degrees of conflict, and draws the banks if asked for.
pub fn banks(args: &BanksArgs) -> Result<i32, CommandError> {
    let layout = args.tile.map(|columns| Layout {
        columns: columns.into(),
        padding: args.pad.into(),
        swizzled: args.swizzle,
    });
    let pattern = match (&args.index, args.pattern) {
        _ if layout.is_some() => layout
            .map(|layout| layout.columns(args.width))
            .transpose()
            .map_err(|error| CommandError::Usage(error.to_string()))?,
        (Some(index), _) => Some(
            Pattern::of_index(index, args.width, args.iterations.into())
                .map_err(|error| CommandError::Usage(error.to_string()))?,
        ),
        (None, Some(named)) => Some(named.pattern()),
        (None, None) => None,
    };
    let Some(pattern) = pattern else {
        if args.width != Width::Bytes4 {
            return Err(CommandError::Usage(
                "--width is of --index or --tile; the textbook's patterns have 4 bytes".to_owned(),
            ));
        }
        if args.pictures.wanted() {
            return Err(CommandError::Usage(
                "--svg and --png are of one pattern: name it, or give --index or --tile".to_owned(),
            ));
        }
        if args.json {
            for textbook in Textbook::ALL {
                console::line(json::line(&as_json(&textbook.pattern())))?;
            }
        } else {
            console::line(overview())?;
        }
        return Ok(0);
    };
    PictureFiles::create(args.pictures.svg.as_deref(), args.pictures.png.as_deref())?
        .draw(|| picture(&pattern))?;
    if args.json {
        console::line(json::line(&as_json(&pattern)))?;
    } else {
        console::line(table(&pattern))?;
    }
    Ok(0)
}

fn overview() -> String {
    let mut out = "worst    slowdown  pattern".to_owned();
    for textbook in Textbook::ALL {
        let pattern = textbook.pattern();
        let worst = pattern.analyse().map(|access| access.degree()).max();
        let worst = format!("{}-way", worst.unwrap_or(0));
        let _ = write!(
            out,
            "\n{worst:<9}{:>6} x  {}",
            general(pattern.slowdown(), 3),
            pattern.title
        );
    }
    out
}

/// A line for each access, or for several that follow one another and come out the same.
fn table(pattern: &Pattern) -> String {
    let labels = pattern.accesses.iter().map(|(label, _)| label.as_str());
    let accesses: Vec<(&str, Access)> = labels.zip(pattern.analyse()).collect();
    let alike = |(_, a): &(&str, Access), (_, b): &(&str, Access)| {
        let key = |access: &Access| (access.lanes(), access.degree(), access.requests());
        key(a) == key(b)
    };
    let rows: Vec<(String, &Access)> = accesses
        .chunk_by(alike)
        .map(|same| match same {
            [.., last] if same.len() > 1 => (format!("{} to {}", same[0].0, last.0), &last.1),
            _ => (same[0].0.to_owned(), &same[0].1),
        })
        .collect();
    let widths = rows.iter().map(|(label, _)| label.len());
    let width = widths.max().unwrap_or(0).max(6);
    let mut out = format!(
        "{}\n\n{:<width$}  lanes  conflict  requests",
        pattern.title, "access"
    );
    for (label, access) in rows {
        let _ = write!(
            out,
            "\n{label:<width$}  {:>5}  {:>8}  {:>8}",
            access.lanes(),
            conflict(access),
            access.requests()
        );
    }
    let requests: usize = accesses.iter().map(|(_, access)| access.requests()).sum();
    let _ = write!(
        out,
        "\n\n{requests} requests, {} times what they take without conflicts",
        general(pattern.slowdown(), 4)
    );
    out
}

fn conflict(access: &Access) -> String {
    match access.degree() {
        0 | 1 => "none".to_owned(),
        ways => format!("{ways}-way"),
    }
}

fn as_json(pattern: &Pattern) -> Value {
    let accesses: Vec<Value> = pattern
        .accesses
        .iter()
        .zip(pattern.analyse())
        .map(|((label, _), access)| {
            let phases: Vec<usize> = access.phases.iter().map(|phase| phase.degree()).collect();
            json!({
                "access": label,
                "lanes": access.lanes(),
                "degree": access.degree(),
                "phases": phases,
                "requests": access.requests(),
            })
        })
        .collect();
    json!({
        "pattern": pattern.title,
        "width": pattern.width.bytes(),
        "slowdown": pattern.slowdown(),
        "accesses": accesses,
    })
}

const CELL: f64 = 24.0;
const LEFT: f64 = 120.0;
const TOP: f64 = 84.0;

/// A row per phase, a column per bank; a cell says how many words are wanted from the bank.
fn picture(pattern: &Pattern) -> Chart {
    let mut rows = Vec::new();
    for ((label, _), access) in pattern.accesses.iter().zip(pattern.analyse()) {
        let many = access.phases.len() > 1;
        for (number, phase) in access.phases.into_iter().enumerate() {
            let label = if many {
                format!("{label}, part {}", number + 1)
            } else {
                label.clone()
            };
            rows.push((label, phase));
        }
    }
    let right = LEFT + CELL * BANKS as f64;
    let height = TOP + CELL * rows.len() as f64 + 40.0;
    let mut chart = Chart::new(&format!("Banks: {}", pattern.title), right + 84.0, height);
    for bank in 0..BANKS {
        let x = LEFT + CELL * (bank as f64 + 0.5);
        chart.text("faint small", "middle", x, TOP - 8.0, &bank.to_string());
    }
    chart.text("faint small", "end", LEFT - 10.0, TOP - 8.0, "bank");
    chart.text("faint small", "start", right + 10.0, TOP - 8.0, "requests");
    for (number, (label, phase)) in rows.iter().enumerate() {
        let y = TOP + CELL * number as f64;
        chart.text("faint small", "end", LEFT - 10.0, y + 16.0, label);
        for (bank, words) in phase.banks.iter().enumerate() {
            let x = LEFT + CELL * bank as f64;
            let class = match words.len() {
                0 => "idle",
                1 => "good",
                2..=4 => "warm",
                _ => "hot",
            };
            let lanes: Vec<String> = words
                .iter()
                .map(|(word, lanes)| format!("word {word}: lanes {lanes:?}"))
                .collect();
            let size = (CELL - 2.0, CELL - 2.0);
            chart.cell(class, (x + 1.0, y + 1.0), size, &lanes.join("; "));
            if words.len() > 1 {
                let count = words.len().to_string();
                chart.text("on small", "middle", x + CELL / 2.0, y + 16.0, &count);
            }
        }
        let degree = phase.degree();
        let class = if degree > 1 {
            "alarm small"
        } else {
            "faint small"
        };
        chart.text(class, "start", right + 10.0, y + 16.0, &degree.to_string());
    }
    let note =
        "a cell: how many different words the lanes want from this bank; one comes at a time";
    chart.text("faint small", "start", LEFT, height - 16.0, note);
    chart
}
