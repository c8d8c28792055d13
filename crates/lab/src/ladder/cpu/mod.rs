//! The rungs of the processor.

mod histogram;
mod jacobi1d;
mod reduce;
mod sgemm;
mod transpose;

use std::convert::Infallible;

use super::ceilings::HostCeilings;
use super::{Ladder, LadderError, Options, Rate, Rung, RungKind, Subject, Verdict};
use crate::measure::{Machine, Spread, host};
use crate::models::roofline::Work;

pub fn run(
    subject: Subject,
    threads: usize,
    options: &Options,
    each: &mut dyn FnMut(&Rung),
) -> Result<Ladder, LadderError> {
    let ceilings = HostCeilings::measure(threads);
    let mut climb = Climb {
        options,
        threads,
        each,
        group: String::new(),
        rungs: Vec::new(),
    };
    match subject {
        Subject::Reduce => reduce::climb(&mut climb)?,
        Subject::Histogram => histogram::climb(&mut climb),
        Subject::Transpose => transpose::climb(&mut climb),
        Subject::Jacobi1d => jacobi1d::climb(&mut climb)?,
        Subject::Sgemm => sgemm::climb(&mut climb),
    }
    // Speeds of processors and shared memory change from second to second: a roof is the best that was seen,
    // by itself or under a rung.
    let measured = ceilings.best(&HostCeilings::measure(threads));
    let (rate, ceilings, ceilings_are) = match subject {
        Subject::Jacobi1d | Subject::Sgemm => (
            Rate::Gigaflops,
            measured.copying(),
            measured.text_arithmetic(),
        ),
        Subject::Reduce | Subject::Histogram => {
            (Rate::Gigabytes, measured.reading(), measured.text_reading())
        }
        Subject::Transpose => (Rate::Gigabytes, measured.copying(), measured.text_copying()),
    };
    let ceilings = climb.rungs.iter().fold(ceilings, |roof, rung| {
        roof.raised_to(&rung.work, rung.time.min)
    });
    Ok(Ladder {
        subject: subject.name(),
        title: climb.group,
        machine: Machine::of_host(),
        gpu: false,
        ceilings,
        ceilings_are,
        rate,
        notes: Vec::new(),
        rungs: climb.rungs,
    })
}

/// A ladder being climbed.
struct Climb<'a> {
    options: &'a Options,
    threads: usize,
    each: &'a mut dyn FnMut(&Rung),
    group: String,
    rungs: Vec<Rung>,
}

/// A rung before it is measured.
struct Spec {
    name: &'static str,
    kind: RungKind,
    why: &'static str,
    work: Work,
}

impl Climb<'_> {
    fn size(&self) -> usize {
        self.options.size
    }

    /// Measures `call` on `state`, and checks what it left there.
    fn rung<S>(
        &mut self,
        spec: Spec,
        state: &mut S,
        mut call: impl FnMut(&mut S),
        verify: impl FnOnce(&S) -> Verdict,
    ) {
        let Ok(time) = host(&self.options.plan, |_| {
            call(state);
            Ok::<_, Infallible>(())
        });
        let verdict = verify(state);
        self.done(spec, time, verdict);
    }

    /// Takes a measured rung in, and shows it.
    fn done(&mut self, spec: Spec, time: Spread, verdict: Verdict) {
        let rung = Rung {
            name: spec.name.to_owned(),
            group: self.group.clone(),
            kind: spec.kind,
            why: spec.why,
            work: spec.work,
            time,
            hot: None,
            verdict,
            occupied: None,
        };
        (self.each)(&rung);
        self.rungs.push(rung);
    }
}

/// Runs `work` on each of `parts`, a thread each.
fn on_threads<P: Send, R: Send>(parts: Vec<P>, work: impl Fn(P) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = parts
            .into_iter()
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        let join = |handle: std::thread::ScopedJoinHandle<R>| {
            handle
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().map(join).collect()
    })
}
