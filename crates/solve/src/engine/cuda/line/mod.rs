//! A PE's part of the line in its GPU's memory.

mod field;
mod passes;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crosswarp_cuda::Stream;
use crosswarp_prim::Superaccumulator;
use crosswarp_shmem::Pe;
use field::{LineField, PAD, point0};
use passes::{Halos, LinePasses, PASS, Sweeps};

use crate::element::Real;
use crate::engine::cpu::line::CpuLine;
use crate::engine::cuda::kernels;
use crate::engine::cuda::on_chip::line::{self as on_chip, OnChipLine};
use crate::engine::slab::{Advance, Run, RunUntilStopped, Slab};
use crate::exchange::device_put::{DevicePut, KERNEL as EXCHANGE};
use crate::exchange::host_exchange::HostExchange;
use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::gpu::Gpu;
use crate::gpu::choice::Choice;
use crate::gpu::error::GpuError;
use crate::gpu::strategy::Strategy;
use crate::pes::agree::all_ready;
use crate::pes::error::PeError;
use crate::problem::Norm;
use crate::stop::threshold::Threshold;

/// Points of one PE, and what makes sweeps over them.
pub(crate) struct GpuLine<'w, F: Real> {
    engine: Engine<'w, F>,
    choice: Choice,
}

enum Engine<'w, F: Real> {
    OnChip(LineOnChip<'w, F>),
    Passes(LinePasses<'w, F>),
}

/// A line that stays on the chip while it runs, and is in memory in between.
struct LineOnChip<'w, F: Real> {
    // Its device world is dropped first: it tells the other PEs, before buffers wait for kernels that may wait for this
    // PE.
    kernel: OnChipLine<'w, F>,
    field: LineField<F>,
}

impl<'w, F: Real> GpuLine<'w, F> {
    /// The points that `host` has. Collective.
    pub(crate) fn new(
        pe: &'w Pe,
        host: &CpuLine<F>,
        gpu: &Gpu,
    ) -> Result<GpuLine<'w, F>, GpuError> {
        let stream = Stream::new(&gpu.device)?;
        let alone = host.partition().active() == 1;
        let on_chip = || OnChipLine::new(pe, gpu, host.partition(), &stream);
        let put = || {
            // Found first: what fails on one PE alone must not be taken for an exchange that no PE can have.
            let kernel = all_ready(pe, kernels::find_of_pe::<F>(&gpu.device, EXCHANGE))?;
            let exchange = DevicePut::new(pe, gpu.device, kernel, PAD, 1, &stream)?;
            Ok::<_, GpuError>(Halos::Put(Box::new(exchange)))
        };
        let pass = || all_ready(pe, Sweeps::pass::<F>(gpu));
        let pass_that_puts = || {
            let together = [PASS, EXCHANGE].map(kernels::of_type::<F>);
            kernels::compile_together(&gpu.device, together.iter().map(String::as_str));
            pass()
        };
        let in_memory = |sweeps: Sweeps, halos: Halos<'w, F>| {
            let field = LineField::new(host, &stream)?;
            LinePasses::new(gpu, field, sweeps, halos).map(Engine::Passes)
        };
        let on_the_chip = |kernel: OnChipLine<'w, F>| {
            let field = LineField::new(host, &stream)?;
            let mut line = LineOnChip { kernel, field };
            line.warm_up(pe)?;
            Ok::<_, GpuError>(Engine::OnChip(line))
        };
        let mut choice = Choice::default();
        let through_hosts = Halos::ThroughHosts;
        let engine = match gpu.strategy {
            Strategy::Sweep => in_memory(all_ready(pe, Sweeps::one::<F>(gpu))?, through_hosts)?,
            Strategy::Persistent => on_the_chip(on_chip()?)?,
            // Where it can not be, all PEs are told so.
            Strategy::Auto => match choice.prefer(pe, Strategy::Persistent, on_chip())? {
                Some(kernel) => on_the_chip(kernel)?,
                None if alone => in_memory(pass()?, through_hosts)?,
                None => {
                    let pass = pass_that_puts()?;
                    let halos = choice.prefer(pe, Strategy::DevicePut, put())?;
                    in_memory(pass, halos.unwrap_or(through_hosts))?
                }
            },
            Strategy::HostExchange if !alone => {
                let exchange = HostExchange::new(pe, gpu.device, PAD, 1)?;
                in_memory(pass()?, Halos::Copied(Box::new(exchange)))?
            }
            Strategy::DevicePut if !alone => {
                let pass = pass_that_puts()?;
                in_memory(pass, put()?)?
            }
            Strategy::HostExchange | Strategy::DevicePut => in_memory(pass()?, through_hosts)?,
        };
        choice.taken = match &engine {
            Engine::OnChip(_) => Strategy::Persistent.name(),
            Engine::Passes(passes) => passes.name(),
        };
        Ok(GpuLine { engine, choice })
    }

    /// How sweeps are made.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Copies the points before the next sweep to `host`.
    pub(crate) fn save(&self, host: &mut CpuLine<F>) -> Result<(), GpuError> {
        let mut values = Vec::new();
        self.pack(self.own(), &mut values)?;
        Ok(host.unpack(self.own().start as isize, &values)?)
    }

    fn field(&self) -> &LineField<F> {
        match &self.engine {
            Engine::OnChip(line) => &line.field,
            Engine::Passes(passes) => &passes.field,
        }
    }
}

impl<F: Real> LineOnChip<'_, F> {
    /// Two short passes whose outcome is forgotten: the first accesses to memory, another GPU's most of all, and
    /// fetching the code take longer than a whole solve. Collective.
    fn warm_up(&mut self, pe: &Pe) -> Result<(), GpuError> {
        // No PE allocates any more while another's kernel may be waiting for it on the same GPU.
        pe.barrier().map_err(PeError::from)?;
        let run = Run {
            done: 0,
            most: 4,
            next: 0,
            depth: 2,
            threshold: &Threshold::new(0.0, Norm::L2, 1),
        };
        self.launch(&run, &mut Vec::new())
    }

    /// Makes the sweeps of `run` from `before` to `after`.
    fn launch(
        &mut self,
        run: &Run<'_>,
        sums: &mut Vec<Superaccumulator<F>>,
    ) -> Result<(), GpuError> {
        let field = &self.field;
        let fields = (point0(&field.before), point0(&field.after));
        let points = (&field.own, field.partition.total());
        self.kernel.run(&field.stream, fields, points, run, sums)
    }
}

impl<F: Real> LocalRows<F> for GpuLine<'_, F> {
    type Error = GpuError;

    fn partition(&self) -> &Partition {
        self.field().partition()
    }

    fn own(&self) -> Range<usize> {
        self.field().own()
    }

    fn row_len(&self) -> usize {
        self.field().row_len()
    }

    fn wraps(&self) -> bool {
        self.field().wraps()
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), GpuError> {
        self.field().pack(rows, out)
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), GpuError> {
        match &mut self.engine {
            Engine::OnChip(line) => line.field.unpack(first, values),
            Engine::Passes(passes) => passes.field.unpack(first, values),
        }
    }
}

impl<F: Real> Slab<F> for GpuLine<'_, F> {
    fn starts_singly(&self) -> bool {
        false
    }

    fn default_depth(&self) -> usize {
        self.depth_limit().min(32)
    }

    fn depth_limit(&self) -> usize {
        match &self.engine {
            Engine::OnChip(_) => on_chip::DEPTH,
            Engine::Passes(passes) => passes.sweeps.depth(),
        }
    }

    fn advance(&mut self, _singly: bool) -> Advance<'_, F, GpuError> {
        match &mut self.engine {
            Engine::OnChip(line) => Advance::UntilStopped(Box::new(line)),
            Engine::Passes(passes) => Advance::Passes(passes),
        }
    }
}

impl<F: Real> RunUntilStopped<F> for &mut LineOnChip<'_, F> {
    type Error = GpuError;

    fn run(&mut self, run: &Run<'_>, sums: &mut Vec<Superaccumulator<F>>) -> Result<(), GpuError> {
        self.launch(run, sums)?;
        std::mem::swap(&mut self.field.before, &mut self.field.after);
        Ok(())
    }
}
