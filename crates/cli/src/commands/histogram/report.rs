//! What was counted: one JSON object, lines for people, or files.

use serde::Serialize;

use crate::args::histogram::HistogramArgs;
use crate::drawing::histogram::{self, Bars};
use crate::format::{general, grouped, pes, si};
use crate::input::npy::{Dtype, Shape};
use crate::output::csv;
use crate::output::json::{self, Run};
use crate::output::npy::NpyWriter;
use crate::output::staged::{OutputError, StagedFile};

/// Lines of the printed histogram.
const MOST_LINES: usize = 32;
/// Length of the longest printed bar.
const BAR_WIDTH: usize = 40;

/// What was counted.
pub struct HistogramReport {
    /// Type of the samples.
    pub dtype: Dtype,
    /// Number of samples.
    pub samples: usize,
    /// Whether the totals are of weights.
    pub weighted: bool,
    /// One more than `totals`.
    pub edges: Vec<f64>,
    /// One a bin.
    pub totals: Vec<u64>,
    /// `cpu` or `cuda`.
    pub backend: &'static str,
    /// What counted, in words.
    pub machine: String,
    /// How it was run.
    pub run: Run,
}

impl HistogramReport {
    /// Samples in no bin, if nothing is weighted.
    fn dropped(&self) -> u64 {
        self.samples as u64 - self.totals.iter().sum::<u64>()
    }

    fn samples_per_second(&self) -> f64 {
        self.samples as f64 / self.run.seconds
    }

    /// Writes the files that were asked for.
    pub fn write(&self, args: &HistogramArgs) -> Result<(), OutputError> {
        if let Some(path) = &args.output {
            let shape = Shape(vec![self.totals.len()]);
            let mut npy = NpyWriter::new(StagedFile::create(path)?, Dtype::U64, &shape)?;
            npy.put(&self.totals)?;
            npy.finish()?;
        }
        if let Some(path) = &args.csv {
            csv::write_bins(
                StagedFile::create(path)?,
                self.what(),
                &self.edges,
                &self.totals,
            )?;
        }
        if args.svg.is_some() || args.png.is_some() {
            let title = args.title.clone().unwrap_or_else(|| {
                let file = match args.file.to_str() {
                    Some("-") => "standard input".into(),
                    _ => args.file.display().to_string(),
                };
                let samples = grouped(self.samples as u64);
                format!("{file}: {samples} {}", self.dtype)
            });
            let chart = histogram::chart(&Bars {
                title: &title,
                unit: args.unit.as_deref(),
                quantity: self.what(),
                edges: &self.edges,
                totals: &self.totals,
            });
            if let Some(path) = &args.svg {
                chart.write_svg(StagedFile::create(path)?)?;
            }
            if let Some(path) = &args.png {
                chart.write_png(StagedFile::create(path)?)?;
            }
        }
        Ok(())
    }

    /// What the totals are.
    fn what(&self) -> &'static str {
        if self.weighted { "weight" } else { "count" }
    }

    /// One line of JSON.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            dtype: &'a str,
            samples: usize,
            weighted: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            dropped: Option<u64>,
            edges: Vec<serde_json::Value>,
            totals: &'a [u64],
            backend: &'a str,
            #[serde(flatten)]
            run: &'a Run,
            samples_per_second: f64,
        }
        json::line(&Object {
            dtype: self.dtype.name(),
            samples: self.samples,
            weighted: self.weighted,
            dropped: (!self.weighted).then(|| self.dropped()),
            edges: self.edges.iter().map(|&edge| json::real(edge)).collect(),
            totals: &self.totals,
            backend: self.backend,
            run: &self.run,
            samples_per_second: self.samples_per_second(),
        })
    }

    /// The histogram in lines, neighbouring bins together where there are more bins than lines.
    pub fn text(&self) -> String {
        let step = self.totals.len().div_ceil(MOST_LINES);
        let lines: Vec<(String, u64)> = self
            .totals
            .chunks(step)
            .enumerate()
            .map(|(line, totals)| {
                let (lower, upper) = (
                    self.edges[line * step],
                    self.edges[line * step + totals.len()],
                );
                let range = format!("{} .. {}", general(lower, 6), general(upper, 6));
                let sum = totals
                    .iter()
                    .fold(0u64, |sum, &total| sum.saturating_add(total));
                (range, sum)
            })
            .collect();
        let most = lines.iter().map(|line| line.1).max().unwrap_or(0).max(1);
        let width = lines.iter().map(|line| line.0.len()).max().unwrap_or(0);
        let digits = grouped(most).len();
        let mut text = String::new();
        for (range, total) in lines {
            let line = format!(
                "{range:>width$}  {:>digits$}  {}",
                grouped(total),
                bar(total, most)
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let bins = match (self.totals.len(), step) {
            (1, _) => "1 bin".to_owned(),
            (bins, 1) => format!("{} bins", grouped(bins as u64)),
            (bins, _) => format!("{} bins ({step} a line)", grouped(bins as u64)),
        };
        let outside = if self.weighted {
            "weighted".to_owned()
        } else {
            format!("{} dropped", grouped(self.dropped()))
        };
        text.push_str(&format!(
            "{} samples {} in {bins}, {outside}\n{} ({}) on {}, {:.3} ms, {}",
            grouped(self.samples as u64),
            self.dtype,
            pes(self.run.pes),
            self.run.world,
            self.machine,
            self.run.seconds * 1e3,
            si(self.samples_per_second(), " samples/s"),
        ));
        text
    }
}

/// A bar of block characters, to an eighth of a column.
fn bar(total: u64, most: u64) -> String {
    let eighths = (total as f64 / most as f64 * (8 * BAR_WIDTH) as f64).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(0, 10), "");
        assert_eq!(bar(10, 10).chars().count(), BAR_WIDTH);
        assert_eq!(bar(1, 320), "▏");
        assert_eq!(bar(u64::MAX, u64::MAX).chars().count(), BAR_WIDTH);
    }
}
