//! What is shown while a solve runs: the norm every so many sweeps or cycles, and a bar on a terminal.

use std::io::{self, IsTerminal};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console;
use crate::format::{exponential, general, si};

/// What a solve is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steps {
    /// Sweeps; the norm of every so many is printed: of all of them if they are `asked` for, else of fewer the longer it
    /// takes.
    Sweeps { every: u64, asked: bool },
    /// The same with the relative residual.
    Residuals { every: u64, asked: bool },
    /// Cycles; the relative residual of every so many is printed.
    Cycles { every: u64 },
}

/// Shows the progress of a solve on PE 0.
pub struct Progress {
    bar: Option<ProgressBar>,
    steps: Steps,
    cells: u64,
    next_sweep: u64,
    lines: u32,
    started: Instant,
    resumed_at: Option<u64>,
}

impl Progress {
    /// Prints lines; with a terminal on standard error, draws a bar of `most` steps there. `cells` cells are updated
    /// in a sweep.
    pub fn new(steps: Steps, most: u64, cells: u64) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(match steps {
                Steps::Sweeps { .. } | Steps::Residuals { .. } => {
                    "{bar:30.cyan/blue} {human_pos} of {human_len} sweeps at most  {msg}"
                }
                Steps::Cycles { .. } => {
                    "{bar:30.cyan/blue} {human_pos} of {human_len} cycles at most  {msg}"
                }
            });
            let bar = ProgressBar::with_draw_target(Some(most), ProgressDrawTarget::stderr());
            bar.with_style(style.expect("a template of ours"))
        });
        Self {
            bar,
            steps,
            cells,
            next_sweep: 0,
            lines: 0,
            started: Instant::now(),
            resumed_at: None,
        }
    }

    /// Takes the norms of the sweeps, or relative residuals of the cycles, that end with number `sweeps` − 1.
    ///
    /// # Errors
    /// Standard output's.
    pub fn pass(&mut self, sweeps: u64, norms: &[f64]) -> io::Result<()> {
        let first = sweeps - norms.len() as u64;
        let resumed_at = *self.resumed_at.get_or_insert(first);
        for (sweep, norm) in (first..sweeps).zip(norms) {
            match self.steps {
                Steps::Cycles { every } if (sweep + 1) % every == 0 => {
                    let residual = exponential(*norm, 2);
                    self.line(&format!(
                        "Cycle {}: relative residual {residual}",
                        sweep + 1
                    ))?;
                }
                Steps::Sweeps { every, asked }
                    if sweep % every == 0 && (asked || sweep >= self.next_sweep) =>
                {
                    self.lines += 1;
                    self.next_sweep = sweep + spacing(sweep - resumed_at, self.lines);
                    self.line(&format!(
                        "Iteration = {sweep} error = {}",
                        general(*norm, 6)
                    ))?;
                }
                Steps::Residuals { every, asked }
                    if (sweep + 1) % every == 0 && (asked || sweep >= self.next_sweep) =>
                {
                    self.lines += 1;
                    self.next_sweep = sweep + spacing(sweep - resumed_at, self.lines);
                    let residual = exponential(*norm, 2);
                    self.line(&format!(
                        "Sweep {}: relative residual {residual}",
                        sweep + 1
                    ))?;
                }
                Steps::Sweeps { .. } | Steps::Residuals { .. } | Steps::Cycles { .. } => {}
            }
        }
        if let (Some(bar), Some(norm)) = (&self.bar, norms.last()) {
            let seconds = self.started.elapsed().as_secs_f64();
            let rate = (sweeps - resumed_at) as f64 * self.cells as f64 / seconds;
            bar.set_message(match self.steps {
                Steps::Cycles { .. } | Steps::Residuals { .. } => {
                    format!("relative residual {}", exponential(*norm, 2))
                }
                Steps::Sweeps { .. } => format!(
                    "norm {}  {}",
                    general(*norm, 3),
                    si(rate, " cell updates/s")
                ),
            });
            bar.set_position(sweeps);
        }
        Ok(())
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) -> io::Result<()> {
        match &self.bar {
            Some(bar) => bar.suspend(|| console::line(text)),
            None => console::line(text),
        }
    }
}

/// Sweeps from a line to the next, after so many lines and sweeps: the first lines are next to each other, later ones
/// twice as far on as the one before. So a solve of a million sweeps prints some twenty lines, not ten thousand.
fn spacing(sweeps: u64, lines: u32) -> u64 {
    if lines <= 10 { 1 } else { sweeps.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_solves_print_few_lines() {
        for every in [10, 100] {
            let (mut next, mut lines) = (0, 0);
            for sweep in (0..1_000_000).step_by(every) {
                if sweep as u64 >= next {
                    lines += 1;
                    next = sweep as u64 + spacing(sweep as u64, lines);
                    assert!(lines > 10 || sweep == (lines as usize - 1) * every);
                }
            }
            assert!((15..=25).contains(&lines), "{lines} lines");
        }
    }
}
