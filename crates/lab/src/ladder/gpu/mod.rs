//! The rungs of the GPU.
#![allow(unsafe_code)] // Measures launches of kernels.

mod histogram;
mod jacobi1d;
mod reduce;
mod sgemm;
mod transpose;

use crosswarp_cuda::{
    ArchLimits, BlockNeeds, Device, Function, Launch, Module, Occupancy, Pod, Stream,
};

use super::ceilings::GpuCeilings;
use super::{Ladder, LadderError, Occupied, Options, Rate, Rung, RungKind, Subject, Verdict};
use super::{counters, kernels};
use crate::measure::{Flush, Machine, Plan, Rotating, Spread, cold_bytes, in_graph};
use crate::models::roofline::{Ceilings, Work};

pub fn run(
    subject: Subject,
    device: &Device,
    options: &Options,
    each: &mut dyn FnMut(&Rung),
) -> Result<Ladder, LadderError> {
    let stream = Stream::new(device)?;
    let measured = GpuCeilings::measure(device, &stream)?;
    let mut climb = Climb {
        device: *device,
        purpose: Purpose::Measure(Flush::new(&stream)?),
        stream,
        options,
        each,
        group: String::new(),
        rungs: Vec::new(),
        notes: Vec::new(),
    };
    climb.all(subject)?;
    let (rate, ceilings, ceilings_are) = roof(subject, &measured);
    Ok(Ladder {
        subject: subject.name(),
        title: climb
            .rungs
            .first()
            .map_or(String::new(), |rung| rung.group.clone()),
        machine: Machine::with_gpu(device),
        gpu: true,
        ceilings,
        ceilings_are: ceilings_are.to_owned(),
        rate,
        notes: climb.notes,
        rungs: climb.rungs,
    })
}

/// Runs each rung once, behind a mark: for a profiler to look at.
pub fn run_marked(subject: Subject, device: &Device, options: &Options) -> Result<(), LadderError> {
    let mark = Module::compile(device, &kernels::MARK)?.function(counters::MARK)?;
    let mut climb = Climb {
        device: *device,
        purpose: Purpose::Mark { mark, marked: 0 },
        stream: Stream::new(device)?,
        options,
        each: &mut |_| {},
        group: String::new(),
        rungs: Vec::new(),
        notes: Vec::new(),
    };
    climb.all(subject)
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

/// A ladder being climbed.
struct Climb<'a> {
    device: Device,
    stream: Stream,
    purpose: Purpose,
    options: &'a Options,
    each: &'a mut dyn FnMut(&Rung),
    group: String,
    rungs: Vec<Rung>,
    notes: Vec<String>,
}

/// What rungs are run for.
enum Purpose {
    /// To be measured and checked.
    Measure(Flush),
    /// Once each, behind a mark.
    Mark {
        /// The kernel that marks.
        mark: Function,
        /// Rungs marked so far.
        marked: u32,
    },
}

/// A rung before it is measured.
struct Spec<'a> {
    name: &'a str,
    kind: RungKind,
    why: &'static str,
    work: Work,
    occupied: Option<Occupied>,
}

/// One call of a variant: everything from input to result, given to the stream. Its number chooses the
/// input among equal ones.
type Call<'c> = dyn FnMut(&Stream, usize) -> Result<(), LadderError> + 'c;

impl Climb<'_> {
    fn all(&mut self, subject: Subject) -> Result<(), LadderError> {
        match subject {
            Subject::Reduce => reduce::climb(self),
            Subject::Histogram => histogram::climb(self),
            Subject::Transpose => transpose::climb(self),
            Subject::Jacobi1d => jacobi1d::climb(self),
            Subject::Sgemm => sgemm::climb(self),
        }
    }

    fn size(&self) -> usize {
        self.options.size
    }

    /// Whether rungs are only run once, behind marks.
    fn marks(&self) -> bool {
        matches!(self.purpose, Purpose::Mark { .. })
    }

    /// Marks the next rung, if rungs are marked.
    fn mark(&mut self) -> Result<bool, LadderError> {
        let Purpose::Mark { mark, marked } = &mut self.purpose else {
            return Ok(false);
        };
        *marked += 1;
        // SAFETY: the kernel has no parameters and touches nothing.
        unsafe { Launch::new(mark).grid(*marked).launch(&self.stream, ()) }?;
        // The rung may use another stream.
        self.stream.synchronize()?;
        Ok(true)
    }

    /// The times of a call whose input comes from memory, and of one after another; or, if rungs are only
    /// marked, runs it once. With several `inputs`, call k takes number k; one input alone leaves the
    /// cache only before the first call of a sample, so that each is one call.
    ///
    /// # Safety
    /// What `call` gives to the stream uses memory and kernels that live until this returns.
    unsafe fn times(
        &mut self,
        inputs: usize,
        call: &mut Call,
    ) -> Result<Option<(Spread, Spread)>, LadderError> {
        self.mark()?;
        let (plan, stream) = (&self.options.plan, &self.stream);
        let Purpose::Measure(flush) = &self.purpose else {
            call(stream, 0)?;
            stream.synchronize()?;
            return Ok(None);
        };
        let cold_plan = Plan {
            most_calls: if inputs > 1 { plan.most_calls } else { 1 },
            ..*plan
        };
        // SAFETY: the caller's promise, for all runs of both measurements.
        let cold =
            unsafe { in_graph(&cold_plan, stream, Some(flush), |stream, k| call(stream, k)) }?;
        // SAFETY: as above.
        let hot = unsafe { in_graph(plan, stream, None, |stream, _| call(stream, 0)) }?;
        Ok(Some((cold, hot)))
    }

    /// `values` in as many buffers as the level-2 cache does not hold.
    fn inputs<T: Pod>(&self, values: &[T]) -> Result<Rotating<T>, LadderError> {
        Ok(Rotating::new(
            &self.stream,
            values,
            cold_bytes(&self.device),
        )?)
    }

    /// A kernel of `module`, or `None` on a GPU for which it is not compiled.
    fn kernel(module: &Module, name: &str) -> Result<Option<Function>, LadderError> {
        if module.kernels().iter().any(|known| known == name) {
            Ok(Some(module.function(name)?))
        } else {
            Ok(None)
        }
    }

    /// How blocks of `kernel` sit on an SM.
    fn occupied(&self, kernel: &Function, threads: u32, dynamic_shared: u32) -> Option<Occupied> {
        let attributes = kernel.attributes();
        let needs = BlockNeeds {
            threads,
            registers: attributes.registers,
            shared: attributes.static_shared + dynamic_shared,
        };
        let limits = ArchLimits::of(self.device.arch())?;
        Some(Occupied {
            threads,
            registers: needs.registers,
            shared: needs.shared,
            local: attributes.local,
            theoretical: Occupancy::new(limits, &needs).fraction(),
            achieved: None,
        })
    }

    /// Measures `call` with inputs that are in memory and with one that may be in the cache, then lets it
    /// run once more after `poison`, and checks what it left.
    ///
    /// # Safety
    /// What `call` gives to the stream uses memory and kernels that live until this returns.
    unsafe fn rung(
        &mut self,
        spec: Spec,
        inputs: usize,
        call: &mut Call,
        poison: &mut dyn FnMut(&Stream) -> Result<(), LadderError>,
        verify: &mut dyn FnMut(&Stream) -> Result<Verdict, LadderError>,
    ) -> Result<(), LadderError> {
        // SAFETY: the caller's promise.
        let Some((time, hot)) = (unsafe { self.times(inputs, call) })? else {
            return Ok(());
        };
        poison(&self.stream)?;
        call(&self.stream, 0)?;
        let verdict = verify(&self.stream)?;
        self.done(spec, time, Some(hot), verdict);
        Ok(())
    }

    /// Takes a measured rung in, and shows it.
    fn done(&mut self, spec: Spec, time: Spread, hot: Option<Spread>, verdict: Verdict) {
        let rung = Rung {
            name: spec.name.to_owned(),
            group: self.group.clone(),
            kind: spec.kind,
            why: spec.why,
            work: spec.work,
            time,
            hot,
            verdict,
            occupied: spec.occupied,
        };
        (self.each)(&rung);
        self.rungs.push(rung);
    }
}

/// The blocks of `threads` threads that are resident at once.
fn resident(kernel: &Function, threads: u32, dynamic_shared: u32) -> Result<u32, LadderError> {
    let blocks = Launch::new(kernel)
        .block(threads)
        .shared(dynamic_shared)
        .max_resident()?;
    Ok(u32::try_from(blocks).unwrap_or(u32::MAX))
}
