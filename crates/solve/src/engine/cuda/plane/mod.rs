//! A PE's band of a 2-D grid in its GPU's memory.

mod edges_first;
mod field;
mod launches;
mod pass_kernel;
mod passes;
mod run;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crosswarp_prim::leaf::LANES as LEAF_COLUMNS;
use crosswarp_shmem::Pe;
use field::{MAX_DEPTH, PlaneField};
use pass_kernel::{PassKernel, Sweeps};
use passes::PlanePasses;
use run::PlaneRun;

use crate::element::Real;
use crate::engine::cpu::plane::CpuPlane;
use crate::engine::cuda::kernels;
use crate::engine::cuda::on_chip::placement::Wraps;
use crate::engine::cuda::on_chip::plane::{OnChipPlane, fits};
use crate::engine::slab::{Advance, Slab};
use crate::exchange::device_put::{DevicePut, KERNEL as EXCHANGE};
use crate::exchange::host_exchange::HostExchange;
use crate::field::partition::Partition;
use crate::field::rows::LocalRows;
use crate::gpu::Gpu;
use crate::gpu::choice::Choice;
use crate::gpu::error::GpuError;
use crate::gpu::strategy::Strategy;
use crate::pes::agree::all_ready;
use crate::problem::Problem2d;

/// Rows of one PE, and what makes sweeps over them.
pub(crate) struct GpuPlane<'w, F: Real> {
    // The device worlds are dropped first: they tell the other PEs, before buffers wait for kernels that may wait for
    // this PE.
    /// Makes the sweeps, if there is one, but for the first of a grid that wraps around.
    on_chip: Option<OnChipPlane<'w, F>>,
    passes: PlanePasses<'w, F>,
    choice: Choice,
}

impl<'w, F: Real> GpuPlane<'w, F> {
    /// The band that `host` has loaded. Collective.
    pub(crate) fn new(
        pe: &'w Pe,
        problem: &Problem2d<F>,
        host: &CpuPlane<F>,
        gpu: &Gpu,
    ) -> Result<GpuPlane<'w, F>, GpuError> {
        let field = PlaneField::new(problem, host, gpu)?;
        let (nx, stream) = (problem.nx, &field.stream);
        let chip = || {
            let wraps = Wraps {
                x: field.wrap_x,
                y: field.wrap_y,
            };
            OnChipPlane::new(
                pe,
                gpu.device,
                stream,
                host.partition(),
                nx,
                wraps,
                field.elements(),
                field.source.is_some(),
            )
        };
        let mut choice = Choice::default();
        let on_chip = match gpu.strategy {
            Strategy::Persistent => Some(chip()?),
            // Where it can not be, all PEs are told so.
            Strategy::Auto => {
                let fits = fits::<F>(&gpu.device, host.partition(), nx);
                let made = all_ready(pe, fits).and_then(|()| chip());
                choice.prefer(pe, Strategy::Persistent, made)?
            }
            _ => None,
        };
        let alone = host.partition().active() == 1;
        let in_passes = on_chip.is_none() && gpu.strategy != Strategy::Sweep;
        let puts = !alone && in_passes && gpu.strategy != Strategy::HostExchange;
        if puts {
            let together = [PassKernel::name(&field).0, EXCHANGE].map(kernels::of_type::<F>);
            kernels::compile_together(&gpu.device, together.iter().map(String::as_str));
        }
        let put = || {
            // Found first: what fails on one PE alone must not be taken for an exchange that no PE can have.
            let kernel = all_ready(pe, kernels::find_of_pe::<F>(&gpu.device, EXCHANGE))?;
            let columns = nx.next_multiple_of(LEAF_COLUMNS);
            DevicePut::new(pe, gpu.device, kernel, MAX_DEPTH + 1, columns, stream)?.beside_passes()
        };
        let exchange = match gpu.strategy {
            Strategy::DevicePut if puts => Some(put()?),
            // Where it can not be, all PEs are told so.
            Strategy::Auto if puts => choice.prefer(pe, Strategy::DevicePut, put())?,
            _ => None,
        };
        let sweeps = if in_passes {
            Sweeps::Pass(Box::new(PassKernel::new(&field, gpu, exchange.as_ref())?))
        } else if on_chip.is_none() || field.wrap_x || field.wrap_y {
            // The first sweep of a grid that wraps around is never made on the chip.
            Sweeps::One(kernels::find::<F>(&gpu.device, "sweep_plane")?.0)
        } else {
            Sweeps::OnChip
        };
        let host_exchange = if gpu.strategy == Strategy::HostExchange && !alone {
            let pitch = field.layout.pitch;
            Some(HostExchange::new(pe, gpu.device, MAX_DEPTH + 1, pitch)?)
        } else {
            None
        };
        choice.taken = match gpu.strategy {
            Strategy::Sweep => Strategy::Sweep.name(),
            _ if on_chip.is_some() => Strategy::Persistent.name(),
            _ if exchange.is_some() => Strategy::DevicePut.name(),
            _ if host_exchange.is_some() => Strategy::HostExchange.name(),
            _ => "passes",
        };
        let early =
            exchange.is_some() || (alone && on_chip.is_none() && gpu.strategy != Strategy::Sweep);
        let passes = PlanePasses::new(pe, gpu, field, sweeps, exchange, host_exchange, early)?;
        Ok(GpuPlane {
            on_chip,
            passes,
            choice,
        })
    }

    /// How sweeps are made.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Copies the field before the next pass to `host`.
    ///
    /// Errors: also if a kernel ever gave up waiting for a neighbour.
    pub(crate) fn save(&self, host: &mut CpuPlane<F>) -> Result<(), GpuError> {
        if let Some(on_chip) = &self.on_chip {
            on_chip.synchronize(&self.passes.field.stream)?;
        }
        self.passes.synchronize()?;
        let field = &self.passes.field;
        let rows = field.own.start as isize..field.own.end as isize;
        field
            .layout
            .download(&field.stream, &field.before, rows, |y, row| {
                host.overwrite(y, row);
            })
    }
}

impl<F: Real> LocalRows<F> for GpuPlane<'_, F> {
    type Error = GpuError;

    fn partition(&self) -> &Partition {
        self.passes.field.partition()
    }

    fn own(&self) -> Range<usize> {
        self.passes.field.own()
    }

    fn row_len(&self) -> usize {
        self.passes.field.row_len()
    }

    fn wraps(&self) -> bool {
        self.passes.field.wraps()
    }

    fn pack(&self, rows: Range<usize>, out: &mut Vec<F>) -> Result<(), GpuError> {
        self.passes.join()?;
        self.passes.field.pack(rows, out)
    }

    fn unpack(&mut self, first: isize, values: &[F]) -> Result<(), GpuError> {
        self.passes.field.unpack(first, values)
    }
}

impl<F: Real> Slab<F> for GpuPlane<'_, F> {
    fn starts_singly(&self) -> bool {
        self.passes.field.wrap_x || self.passes.field.wrap_y
    }

    fn default_depth(&self) -> usize {
        self.depth_limit()
    }

    fn depth_limit(&self) -> usize {
        if self.on_chip.is_some() {
            1
        } else {
            self.passes.sweeps.depth()
        }
    }

    fn advance(&mut self, singly: bool) -> Advance<'_, F, GpuError> {
        let passes = &mut self.passes;
        match &mut self.on_chip {
            Some(on_chip) if !singly => Advance::UntilStopped(Box::new(PlaneRun {
                on_chip,
                field: &mut passes.field,
            })),
            _ => Advance::Passes(passes),
        }
    }
}
