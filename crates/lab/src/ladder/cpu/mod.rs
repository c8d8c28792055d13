//! The rungs of the processor.

mod histogram;
mod jacobi1d;
mod ladder_run;
mod reduce;
mod sgemm;
mod transpose;

use self::ladder_run::LadderRun;
use super::ceilings::HostCeilings;
use super::error::LadderError;
use super::options::Options;
use super::rung::{Ladder, Rate, Rung};
use super::subject::Subject;
use crate::measure::Machine;

pub fn run(
    subject: Subject,
    threads: usize,
    options: &Options,
    each: &mut dyn FnMut(&Rung),
) -> Result<Ladder, LadderError> {
    let ceilings = HostCeilings::measure(threads);
    let mut run = LadderRun {
        options,
        threads,
        each,
        group: String::new(),
        rungs: Vec::new(),
    };
    match subject {
        Subject::Reduce => reduce::run(&mut run)?,
        Subject::Histogram => histogram::run(&mut run),
        Subject::Transpose => transpose::run(&mut run),
        Subject::Jacobi1d => jacobi1d::run(&mut run)?,
        Subject::Sgemm => sgemm::run(&mut run),
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
    let ceilings = run.rungs.iter().fold(ceilings, |roof, rung| {
        roof.raised_to(&rung.work, rung.time.min)
    });
    Ok(Ladder {
        subject: subject.name(),
        title: run.group,
        machine: Machine::of_host(),
        gpu: false,
        ceilings,
        ceilings_are,
        rate,
        notes: Vec::new(),
        rungs: run.rungs,
    })
}
