//! The rungs of the GPU.
#![allow(unsafe_code)] // Measures launches of kernels.

mod histogram;
mod jacobi1d;
mod reduce;
mod sgemm;
mod transpose;

use crosswarp_cuda::{
    ArchLimits, BlockNeeds, Device, Function, Launch, Module, Occupancy, Pod, Shape, Source, Stream,
};

use super::ceilings::GpuCeilings;
use super::{Ladder, LadderError, Occupied, Options, Rate, Rung, RungKind, Subject, Verdict};
use crate::measure::{Flush, Machine, Rotating, Spread, cold_bytes, in_graph};
use crate::roofline::{Ceilings, Work};

macro_rules! source {
    ($name:literal) => {
        Source::new(
            concat!("ladder/", $name),
            include_str!(concat!("../../kernels/ladder/", $name)),
        )
    };
}

pub const REDUCE: Source<'static> = source!("reduce.cu");
pub const REDUCE_F16: Source<'static> = source!("reduce_f16.cu");
pub const HISTOGRAM: Source<'static> = source!("histogram.cu").with_shapes(&[
    Shape {
        kernel: "shared_atomics",
        threads: 512,
        dynamic_shared: 1024,
    },
    Shape {
        kernel: "shared_wide",
        threads: 512,
        dynamic_shared: 1024,
    },
]);
pub const TRANSPOSE: Source<'static> = source!("transpose.cu");
pub const JACOBI1D: Source<'static> = source!("jacobi1d.cu");
pub const SGEMM: Source<'static> = source!("sgemm.cu").with_shapes(&[Shape {
    kernel: "naive",
    threads: 1024,
    dynamic_shared: 0,
}]);
pub const CEILINGS: Source<'static> = source!("ceilings.cu");

/// The ladders' kernels.
pub const SOURCES: &[Source<'static>] = &[
    REDUCE, REDUCE_F16, HISTOGRAM, TRANSPOSE, JACOBI1D, SGEMM, CEILINGS,
];

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
        flush: Flush::new(&stream)?,
        stream,
        options,
        each,
        group: String::new(),
        rungs: Vec::new(),
        notes: Vec::new(),
    };
    match subject {
        Subject::Reduce => reduce::climb(&mut climb)?,
        Subject::Histogram => histogram::climb(&mut climb)?,
        Subject::Transpose => transpose::climb(&mut climb)?,
        Subject::Jacobi1d => jacobi1d::climb(&mut climb)?,
        Subject::Sgemm => sgemm::climb(&mut climb)?,
    }
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

/// What a subject is measured against.
fn roof(subject: Subject, measured: &GpuCeilings) -> (Rate, Ceilings, &'static str) {
    match subject {
        Subject::Reduce | Subject::Histogram => (
            Rate::Gigabytes,
            measured.reading(),
            "a kernel that only reads 1 GiB, measured in this run",
        ),
        Subject::Transpose | Subject::Jacobi1d => (
            Rate::Gigabytes,
            measured.copying(),
            "the driver's copy of 1 GiB, bytes read and written, measured in this run",
        ),
        Subject::Sgemm => (
            Rate::Gigaflops,
            measured.reading(),
            "fused multiply-adds without loads, measured in this run",
        ),
    }
}

/// A ladder being climbed.
struct Climb<'a> {
    device: Device,
    stream: Stream,
    flush: Flush,
    options: &'a Options,
    each: &'a mut dyn FnMut(&Rung),
    group: String,
    rungs: Vec<Rung>,
    notes: Vec<String>,
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
    fn size(&self) -> usize {
        self.options.size
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
        let (plan, stream) = (&self.options.plan, &self.stream);
        let flush = Some(&self.flush);
        // SAFETY: the caller's promise, for all runs of both measurements.
        let time: Spread = unsafe { in_graph(plan, stream, flush, |stream, k| call(stream, k)) }?;
        let hot = if inputs > 1 {
            // SAFETY: as above.
            Some(unsafe { in_graph(plan, stream, None, |stream, _| call(stream, 0)) }?)
        } else {
            None
        };
        poison(&self.stream)?;
        call(&self.stream, 0)?;
        let verdict = verify(&self.stream)?;
        self.done(spec, time, hot, verdict);
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
