//! Measuring and checking rungs of the processor.

use std::convert::Infallible;

use super::super::options::Options;
use super::super::rung::{Check, Rung, RungKind};
use crate::measure::{Timing, host};
use crate::models::roofline::Work;

/// A ladder whose rungs are being run.
pub struct LadderRun<'a> {
    pub options: &'a Options,
    pub threads: usize,
    pub each: &'a mut dyn FnMut(&Rung),
    pub group: String,
    pub rungs: Vec<Rung>,
}

/// A rung before it is measured.
pub struct RungSpec {
    pub name: &'static str,
    pub kind: RungKind,
    pub why: &'static str,
    pub work: Work,
}

impl LadderRun<'_> {
    pub fn size(&self) -> usize {
        self.options.size
    }

    /// Measures `call` on `state`, and checks what it left there.
    pub fn rung<S>(
        &mut self,
        spec: RungSpec,
        state: &mut S,
        mut call: impl FnMut(&mut S),
        verify: impl FnOnce(&S) -> Check,
    ) {
        let Ok(time) = host(&self.options.plan, |_| {
            call(state);
            Ok::<_, Infallible>(())
        });
        let check = verify(state);
        self.done(spec, time, check);
    }

    /// Takes a measured rung in, and shows it.
    pub fn done(&mut self, spec: RungSpec, time: Timing, check: Check) {
        let rung = Rung {
            name: spec.name.to_owned(),
            group: self.group.clone(),
            kind: spec.kind,
            why: spec.why,
            work: spec.work,
            time,
            hot: None,
            check,
            occupancy: None,
        };
        (self.each)(&rung);
        self.rungs.push(rung);
    }
}

/// Runs `work` on each of `parts`, a thread each.
pub fn on_threads<P: Send, R: Send>(parts: Vec<P>, work: impl Fn(P) -> R + Sync) -> Vec<R> {
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
