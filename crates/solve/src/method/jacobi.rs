//! Jacobi's method: exchange halos, sweep, add up the norms of all PEs, decide.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crosswarp_prim::Superaccumulator;
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::slab::{Advance, MOST_SWEEPS_OF_PASS, MOST_SWEEPS_OF_RUN, Run, Slab};
use crate::exchange::Rows;
use crate::exchange::put_signal::PutSignal;
use crate::field::checkpoint::{self, CheckpointError, Identity};
use crate::field::view::{FieldView, Scaled};
use crate::method::error::SolveError;
use crate::method::options::Options;
use crate::pes::agree::first_of;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::Norm;
use crate::problem::scale::Scale;
use crate::stop::decision::{Criterion, Decision};
use crate::stop::forecast::likely_left;
use crate::stop::norms;
use crate::stop::threshold::Threshold;

/// What the observer of a solve sees after each pass, on every PE.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Sweeps done, those of earlier runs included.
    pub sweeps: usize,
    /// Norms of the sweeps of this pass, the last ones done; sweeps count from 0.
    pub norms: &'a [f64],
    /// Why the last checkpoint could not be written, if so. The solve goes on.
    pub checkpoint_failure: Option<&'a CheckpointError>,
    /// The field, every [`Options::field_every`] sweeps or cycles.
    pub field: Option<FieldView<'a>>,
}

/// How a solve ended.
pub(crate) struct Outcome {
    pub converged: bool,
    pub interrupted: bool,
    pub history: Vec<f64>,
    pub seconds: f64,
    pub resumed_at: usize,
    pub sweeps_per_pass: usize,
    pub checkpoint_failure: Option<CheckpointError>,
}

/// What the loop needs besides the slab.
pub(crate) struct Settings<'a> {
    pub norm: Norm,
    /// Points of the grid.
    pub points: usize,
    pub identity: Identity,
    /// How the slab holds its values; norms are of what it holds, too.
    pub scale: Scale,
    pub options: &'a Options<'a>,
}

/// The norms of what is held as `scale` says.
fn unscaled(scale: Scale, norms: &[f64]) -> Vec<f64> {
    norms.iter().map(|&norm| scale.up(norm)).collect()
}

/// Words that are added up over all PEs after every pass, at most.
pub(crate) fn reduced_words<F: Real>() -> usize {
    norms::words::<F>(MOST_SWEEPS_OF_PASS)
}

/// Runs the sweeps and gives `reduction` back. Collective.
pub(crate) fn run<F: Real, S: Slab<F>>(
    pe: &Pe,
    reduction: Reduction<'_>,
    slab: &mut S,
    settings: &Settings<'_>,
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Outcome, SolveError>
where
    SolveError: From<S::Error>,
{
    let options = settings.options;
    assert!(slab.depth_limit() <= MOST_SWEEPS_OF_PASS);
    let depth_limit = slab
        .depth_limit()
        .min(slab.partition().max_depth(slab.wraps()));
    let sweeps_per_pass = options
        .sweeps_per_pass
        .unwrap_or(slab.default_depth())
        .min(depth_limit);
    let mut history = Vec::new();
    if let Some(path) = &options.resume {
        match checkpoint::resume(&reduction, slab, path, &settings.identity)? {
            Ok(norms) => history = norms,
            Err(error) => {
                reduction.free()?;
                return Err(error.into());
            }
        }
    }
    let resumed_at = history.len();
    let criterion = Criterion {
        norm: settings.norm,
        points: settings.points,
        tolerance: settings.scale.down(options.tolerance),
    };
    let mut converged = criterion.is_met(&history);
    let mut interrupted = false;
    let mut checkpoint_failure = None;

    let mut through_hosts = PutSignal::new(pe, slab.row_len(), sweeps_per_pass)?;
    let mut sums: Vec<Superaccumulator<F>> = Vec::new();
    let mut words = Vec::new();
    let threshold = Threshold::new(criterion.tolerance, settings.norm, settings.points);
    pe.barrier().map_err(PeError::from)?;
    let start = Instant::now();
    while !converged && !interrupted && history.len() < options.max_sweeps {
        let done = history.len();
        let singly = done == 0 && slab.starts_singly();
        // A pass ends where a checkpoint is written or the field is shown.
        let field_every = options.field_every.map(NonZeroUsize::get);
        let stations = options.checkpoint.iter().map(|checkpoint| checkpoint.every);
        let most = stations
            .chain(field_every)
            .map(|every| every - done % every)
            .fold(options.max_sweeps - done, usize::min);
        sums.clear();
        {
            let mut advance = slab.advance(singly);
            match &mut advance {
                Advance::UntilStopped(engine) => {
                    let run = Run {
                        done,
                        most: most.min(MOST_SWEEPS_OF_RUN),
                        next: most
                            .saturating_sub(MOST_SWEEPS_OF_RUN)
                            .min(MOST_SWEEPS_OF_RUN),
                        depth: sweeps_per_pass,
                        threshold: &threshold,
                    };
                    engine.run(&run, &mut sums)?;
                }
                Advance::Passes(engine) => {
                    let (depth, rows) = if singly {
                        (1, Rows::FIRST)
                    } else {
                        let likely = likely_left(&history, criterion.tolerance);
                        let depth = sweeps_per_pass.min(most).min(likely);
                        (depth, Rows::halo(depth))
                    };
                    engine.exchange(&mut through_hosts, rows)?;
                    // What the next pass is if this one neither stops the solve nor ends at a checkpoint.
                    let left = options.max_sweeps - done - depth;
                    let saves = options.checkpoint.is_some() || field_every.is_some();
                    engine.expect(
                        (left >= sweeps_per_pass && !singly && !saves).then_some(sweeps_per_pass),
                    );
                    sums.resize(depth, Superaccumulator::new());
                    engine.pass(&mut sums)?;
                }
            }
            let flag = options
                .interrupt
                .is_some_and(|flag| flag.load(Ordering::Relaxed));
            let of_own_rows = match &advance {
                Advance::UntilStopped(_) => &mut [],
                Advance::Passes(_) => &mut sums[..],
            };
            let not_finite = of_own_rows.iter().position(|sum| !sum.is_finite());
            interrupted = norms::sum_over_pes(&reduction, of_own_rows, flag, &mut words)?;
            match criterion.decide(&sums, &mut history) {
                Decision::GoOn => {}
                Decision::Stop => converged = true,
                Decision::NotFinite => {
                    let (norm, step) = (history[history.len() - 1], history.len());
                    // GPUs that decide among themselves do not say whose rows it was.
                    let mine = not_finite == Some(step - 1 - done) || reduction.n_pes() == 1;
                    let pe = first_of(&reduction, mine)?;
                    // The same on every PE.
                    through_hosts.free()?;
                    reduction.free()?;
                    return Err(SolveError::NotFinite {
                        steps: options.method.step(),
                        step,
                        norm,
                        pe,
                    });
                }
            }
            if let Advance::Passes(engine) = &mut advance {
                // The stop lies inside the pass: the field before it is still there, and so are its halos.
                let needed = history.len() - done;
                if needed < sums.len() {
                    sums.truncate(needed);
                    sums.fill(Superaccumulator::new());
                    engine.pass(&mut sums)?;
                }
                engine.accept();
                if singly {
                    engine.exchange(&mut through_hosts, Rows::GHOSTS)?;
                }
            }
        }

        if let Some(checkpoint) = &options.checkpoint {
            let due = history.len() % checkpoint.every == 0
                || interrupted
                || history.len() == options.max_sweeps;
            if due && !converged {
                let written = checkpoint::save(
                    &reduction,
                    slab,
                    &checkpoint.path,
                    &settings.identity,
                    &history,
                    None,
                )?;
                checkpoint_failure = written.err();
            }
        }
        let shown = field_every.is_some_and(|every| history.len().is_multiple_of(every));
        let view = shown.then(|| Scaled::new(&*slab, settings.scale));
        observer(&Progress {
            sweeps: history.len(),
            norms: &unscaled(settings.scale, &history[done..]),
            checkpoint_failure: checkpoint_failure.as_ref(),
            field: view.as_ref().map(FieldView::of),
        });
    }
    let seconds = start.elapsed().as_secs_f64();
    through_hosts.free()?;
    reduction.free()?;
    Ok(Outcome {
        converged,
        interrupted: interrupted && !converged,
        history: unscaled(settings.scale, &history),
        seconds,
        resumed_at,
        sweeps_per_pass,
        checkpoint_failure,
    })
}
