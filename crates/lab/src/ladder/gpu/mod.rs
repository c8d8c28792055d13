//! The rungs of the GPU.

mod histogram;
mod jacobi1d;
mod ladder_run;
mod reduce;
mod sgemm;
mod transpose;

use crosswarp_cuda::{Device, Module, Stream};

use self::ladder_run::{LadderRun, Purpose};
use super::ceilings::GpuCeilings;
use super::error::LadderError;
use super::options::Options;
use super::rung::{Ladder, Rate, Rung};
use super::subject::Subject;
use super::{counters, kernels};
use crate::measure::{CacheFlush, Machine};
use crate::models::roofline::Ceilings;

pub fn run(
    subject: Subject,
    device: &Device,
    options: &Options,
    each: &mut dyn FnMut(&Rung),
) -> Result<Ladder, LadderError> {
    let stream = Stream::new(device)?;
    let measured = GpuCeilings::measure(device, &stream)?;
    let mut run = LadderRun {
        device: *device,
        purpose: Purpose::Measure(CacheFlush::new(&stream)?),
        stream,
        options,
        each,
        group: String::new(),
        rungs: Vec::new(),
        notes: Vec::new(),
    };
    run_all(&mut run, subject)?;
    let (rate, ceilings, ceilings_are) = roof(subject, &measured);
    Ok(Ladder {
        subject: subject.name(),
        title: run
            .rungs
            .first()
            .map_or(String::new(), |rung| rung.group.clone()),
        machine: Machine::with_gpu(device),
        gpu: true,
        ceilings,
        ceilings_are: ceilings_are.to_owned(),
        rate,
        notes: run.notes,
        rungs: run.rungs,
    })
}

/// Runs each rung once, behind a mark: for a profiler to look at.
pub fn run_marked(subject: Subject, device: &Device, options: &Options) -> Result<(), LadderError> {
    let mark = Module::compile(device, &kernels::MARK)?.function(counters::MARK)?;
    let mut run = LadderRun {
        device: *device,
        purpose: Purpose::Mark { mark, marked: 0 },
        stream: Stream::new(device)?,
        options,
        each: &mut |_| {},
        group: String::new(),
        rungs: Vec::new(),
        notes: Vec::new(),
    };
    run_all(&mut run, subject)
}

/// What a subject is measured against.
fn roof(subject: Subject, measured: &GpuCeilings) -> (Rate, Ceilings, &'static str) {
    match subject {
        Subject::Reduce | Subject::Histogram => (
            Rate::Gigabytes,
            measured.reading(),
            "a kernel that only reads 1 GiB, measured in this run",
        ),
        Subject::Transpose => (
            Rate::Gigabytes,
            measured.copying(),
            "the driver's copy of 1 GiB, bytes read and written, measured in this run",
        ),
        Subject::Jacobi1d | Subject::Sgemm => (
            Rate::Gigaflops,
            measured.copying(),
            "the driver's copy; fused multiply-adds without loads, measured in this run",
        ),
    }
}

fn run_all(run: &mut LadderRun, subject: Subject) -> Result<(), LadderError> {
    match subject {
        Subject::Reduce => reduce::run(run),
        Subject::Histogram => histogram::run(run),
        Subject::Transpose => transpose::run(run),
        Subject::Jacobi1d => jacobi1d::run(run),
        Subject::Sgemm => sgemm::run(run),
    }
}
