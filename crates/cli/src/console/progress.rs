//! What is shown while a solve runs: the norm every so many sweeps, and a bar on a terminal.

use std::io::{self, IsTerminal};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console;
use crate::format::{general, si};

/// Shows the progress of a solve on PE 0.
pub struct Progress {
    bar: Option<ProgressBar>,
    every: u64,
    cells: u64,
    next_sweep: u64,
    started: Instant,
    resumed_at: Option<u64>,
}

impl Progress {
    /// Prints a line every `every` sweeps; with a terminal on standard error, draws a bar of
    /// `max_sweeps` there. `cells` cells are updated in a sweep.
    pub fn new(every: u64, max_sweeps: u64, cells: u64) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(
                "{bar:30.cyan/blue} {human_pos} of {human_len} sweeps at most  {msg}",
            );
            let bar = ProgressBar::with_draw_target(Some(max_sweeps), ProgressDrawTarget::stderr());
            bar.with_style(style.expect("a template of ours"))
        });
        Self {
            bar,
            every,
            cells,
            next_sweep: 0,
            started: Instant::now(),
            resumed_at: None,
        }
    }

    /// Takes the norms of the sweeps that end with sweep number `sweeps` − 1.
    ///
    /// # Errors
    /// Standard output's.
    pub fn pass(&mut self, sweeps: u64, norms: &[f64]) -> io::Result<()> {
        let first = sweeps - norms.len() as u64;
        let resumed_at = *self.resumed_at.get_or_insert(first);
        for (sweep, norm) in (first..sweeps).zip(norms) {
            if sweep % self.every == 0 && sweep >= self.next_sweep {
                self.next_sweep = sweep + 1;
                self.line(&format!(
                    "Iteration = {sweep} error = {}",
                    general(*norm, 6)
                ))?;
            }
        }
        if let (Some(bar), Some(norm)) = (&self.bar, norms.last()) {
            let seconds = self.started.elapsed().as_secs_f64();
            let rate = (sweeps - resumed_at) as f64 * self.cells as f64 / seconds;
            bar.set_message(format!(
                "norm {}  {}",
                general(*norm, 3),
                si(rate, " cell updates/s")
            ));
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
