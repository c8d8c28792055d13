//! `crosswarp bench compare`: two runs of a bench side by side.

use std::path::Path;

use crosswarp::lab::measure::{Change, Comparison, Rows, compare as compare_rows};
use serde_json::json;

use crate::args::compare::CompareArgs;
use crate::commands::error::CommandError;
use crate::console;
use crate::format::with_separators;
use crate::input::files;
use crate::output::json;

/// Prints one row per measurement of both files.
pub fn compare(args: &CompareArgs) -> Result<i32, CommandError> {
    let (found, alone) = compare_rows(&read(&args.before)?, &read(&args.after)?);
    if found.is_empty() {
        return Err(CommandError::Usage(format!(
            "{} and {} have no measurement in common",
            args.before.display(),
            args.after.display()
        )));
    }
    let width = found.iter().map(|row| row.what.len()).max().unwrap_or(0);
    if !args.json {
        console::line(format_args!(
            "{:<width$}{:>14}{:>14}{:>10}",
            "what", "before us", "after us", "speed-up"
        ))?;
    }
    for row in &found {
        if args.json {
            console::line(json::line(&json!({
                "what": row.what,
                "before_seconds": 1e-6 * row.before,
                "after_seconds": 1e-6 * row.after,
                "speedup": row.speedup(),
                "change": change(row),
            })))?;
        } else {
            console::line(format_args!(
                "{:<width$}{:>14}{:>14}{:>10.3}  {}",
                row.what,
                with_separators(&format!("{:.3}", row.before)),
                with_separators(&format!("{:.3}", row.after)),
                row.speedup(),
                change(row)
            ))?;
        }
    }
    if alone > 0 && !args.json {
        console::line(format_args!("{alone} more rows are in one file only"))?;
    }
    Ok(0)
}

fn change(row: &Comparison) -> &'static str {
    match row.change {
        Change::Faster => "faster",
        Change::Slower => "slower",
        Change::Within => "within the spread",
    }
}

fn read(path: &Path) -> Result<Rows, CommandError> {
    let text = files::read_text(path, files::ROWS).map_err(|source| CommandError::ReadRows {
        path: path.to_owned(),
        source,
    })?;
    Rows::read(&text).map_err(|source| CommandError::Rows {
        path: path.to_owned(),
        source,
    })
}
