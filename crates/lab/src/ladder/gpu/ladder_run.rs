//! Measuring, checking and marking rungs of the GPU.
#![allow(unsafe_code)] // Measures launches of kernels.

use crosswarp_cuda::{
    ArchLimits, BlockNeeds, Device, Function, Launch, Module, Occupancy, Pod, Stream,
};

use super::super::error::LadderError;
use super::super::options::Options;
use super::super::rung::{Check, KernelOccupancy, Rung, RungKind};
use crate::measure::{CacheFlush, Plan, RotatingBuffers, Timing, cold_bytes, in_graph};
use crate::models::roofline::Work;

/// A ladder whose rungs are being run.
pub struct LadderRun<'a> {
    pub device: Device,
    pub stream: Stream,
    pub purpose: Purpose,
    pub options: &'a Options,
    pub each: &'a mut dyn FnMut(&Rung),
    pub group: String,
    pub rungs: Vec<Rung>,
    pub notes: Vec<String>,
}

/// What rungs are run for.
pub enum Purpose {
    /// To be measured and checked.
    Measure(CacheFlush),
    /// Once each, behind a mark.
    Mark {
        /// The kernel that marks.
        mark: Function,
        /// Rungs marked so far.
        marked: u32,
    },
}

/// A rung before it is measured.
pub struct RungSpec<'a> {
    pub name: &'a str,
    pub kind: RungKind,
    pub why: &'static str,
    pub work: Work,
    pub occupancy: Option<KernelOccupancy>,
}

/// One call of a variant: everything from input to result, given to the stream. Its number chooses the
/// input among equal ones.
pub type Call<'c> = dyn FnMut(&Stream, usize) -> Result<(), LadderError> + 'c;

impl LadderRun<'_> {
    pub fn size(&self) -> usize {
        self.options.size
    }

    /// Whether rungs are only run once, behind marks.
    pub fn marks(&self) -> bool {
        matches!(self.purpose, Purpose::Mark { .. })
    }

    /// Marks the next rung, if rungs are marked.
    pub fn mark(&mut self) -> Result<bool, LadderError> {
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
    pub unsafe fn times(
        &mut self,
        inputs: usize,
        call: &mut Call,
    ) -> Result<Option<(Timing, Timing)>, LadderError> {
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
    pub fn inputs<T: Pod>(&self, values: &[T]) -> Result<RotatingBuffers<T>, LadderError> {
        Ok(RotatingBuffers::new(
            &self.stream,
            values,
            cold_bytes(&self.device),
        )?)
    }

    /// A kernel of `module`, or `None` on a GPU for which it is not compiled.
    pub fn kernel(module: &Module, name: &str) -> Result<Option<Function>, LadderError> {
        if module.kernels().iter().any(|known| known == name) {
            Ok(Some(module.function(name)?))
        } else {
            Ok(None)
        }
    }

    /// How blocks of `kernel` sit on an SM.
    pub fn occupancy(
        &self,
        kernel: &Function,
        threads: u32,
        dynamic_shared: u32,
    ) -> Option<KernelOccupancy> {
        let attributes = kernel.attributes();
        let needs = BlockNeeds {
            threads,
            registers: attributes.registers,
            shared: attributes.static_shared + dynamic_shared,
        };
        let limits = ArchLimits::of(self.device.arch())?;
        Some(KernelOccupancy {
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
    pub unsafe fn rung(
        &mut self,
        spec: RungSpec,
        inputs: usize,
        call: &mut Call,
        poison: &mut dyn FnMut(&Stream) -> Result<(), LadderError>,
        verify: &mut dyn FnMut(&Stream) -> Result<Check, LadderError>,
    ) -> Result<(), LadderError> {
        // SAFETY: the caller's promise.
        let Some((time, hot)) = (unsafe { self.times(inputs, call) })? else {
            return Ok(());
        };
        poison(&self.stream)?;
        call(&self.stream, 0)?;
        let check = verify(&self.stream)?;
        self.done(spec, time, Some(hot), check);
        Ok(())
    }

    /// Takes a measured rung in, and shows it.
    pub fn done(&mut self, spec: RungSpec, time: Timing, hot: Option<Timing>, check: Check) {
        let rung = Rung {
            name: spec.name.to_owned(),
            group: self.group.clone(),
            kind: spec.kind,
            why: spec.why,
            work: spec.work,
            time,
            hot,
            check,
            occupancy: spec.occupancy,
        };
        (self.each)(&rung);
        self.rungs.push(rung);
    }
}

/// The blocks of `threads` threads that are resident at once.
pub fn resident(kernel: &Function, threads: u32, dynamic_shared: u32) -> Result<u32, LadderError> {
    let blocks = Launch::new(kernel)
        .block(threads)
        .shared(dynamic_shared)
        .max_resident()?;
    Ok(u32::try_from(blocks).unwrap_or(u32::MAX))
}
