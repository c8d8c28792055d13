//! Passes over a plane in memory, and the exchanges between them.
//!
//! The host reads a pass's norms while the next pass already runs: whether it was needed turns out later. If the stop
//! lies in the pass before, what the early pass wrote is forgotten; the field before that pass is still there.

use crosswarp_cuda::{Buffer, Event, Function, PinnedBuffer, Stream};
use crosswarp_prim::Superaccumulator;
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cuda::kernels;
use crate::engine::cuda::plane::edges_first;
use crate::engine::cuda::plane::field::{MAX_DEPTH, PlaneField, loaded};
use crate::engine::cuda::plane::pass_kernel::Sweeps;
use crate::engine::cuda::sums::sum_of_squares;
use crate::engine::slab::Passes;
use crate::exchange::device_put::DevicePut;
use crate::exchange::host_exchange::HostExchange;
use crate::exchange::put_signal::PutSignal;
use crate::exchange::{HaloExchange, Rows};
use crate::gpu::Gpu;
use crate::gpu::error::GpuError;
use crate::pes::agree::least;

/// Rows of one PE, and what makes passes over them.
pub(super) struct PlanePasses<'w, F: Real> {
    // The device worlds are dropped first: they tell the other PEs, before buffers wait for kernels that may wait for
    // this PE.
    pub exchange: Option<DevicePut<'w, F>>,
    /// Another way: the hosts exchange.
    host_exchange: Option<HostExchange<'w, F>>,
    pub field: PlaneField<F>,
    /// What an early pass writes to; none if memory is short.
    spare: Option<Buffer<F>>,
    /// Where the words of a pass are copied to.
    pub(super) sums: PinnedBuffer<u64>,
    /// The pass expected after the next one.
    expected: Option<usize>,
    /// Sweeps of the pass from `before` to `after` that has been launched early, its exchange included.
    early: Option<usize>,
    /// The same from `after` to `spare`.
    earlier: Option<usize>,
    /// Whether the exchange of the halos of what the last pass makes has been launched, and nothing waits for it yet.
    pub(super) sent: bool,
    /// Which half of the field's words the next pass adds to.
    half: usize,
    /// Which halves are zero, once what is in the streams has ended.
    pub(super) zero: [bool; 2],
    pub sweeps: Sweeps,
    pub(super) publish: Function,
    /// The words of the last pass are in `sums`.
    pub(super) published: Event,
    /// What has been given to the field's stream up to the last pass, or later, is over.
    pub(super) passed: Event,
    /// Of what goes on beside passes: exchanges, and what is published while the next pass begins. The same stream if
    /// there are no exchanges, or too many PEs share the GPU.
    pub(super) beside: Stream,
}

impl<'w, F: Real> PlanePasses<'w, F> {
    /// Collective. `early`: whether passes may be launched before it is known that they are needed.
    pub(super) fn new(
        pe: &Pe,
        gpu: &Gpu,
        field: PlaneField<F>,
        sweeps: Sweeps,
        exchange: Option<DevicePut<'w, F>>,
        host_exchange: Option<HostExchange<'w, F>>,
        early: bool,
    ) -> Result<PlanePasses<'w, F>, GpuError> {
        let stream = &field.stream;
        let spare = early
            .then(|| Buffer::zeroed(stream, field.elements()).ok())
            .flatten();
        // Early passes are launched on all PEs or on none.
        let spare = if pe.n_pes() > 1 && least(pe, spare.is_some().into())? == 0 {
            None
        } else {
            spare
        };
        Ok(PlanePasses {
            beside: exchange.as_ref().map_or(stream, DevicePut::stream).clone(),
            exchange,
            host_exchange,
            expected: None,
            early: None,
            earlier: None,
            sent: false,
            half: 0,
            zero: [true; 2],
            spare,
            sums: PinnedBuffer::zeroed(&gpu.device, MAX_DEPTH * Superaccumulator::<F>::WORDS)?,
            publish: loaded(kernels::find_plain(&gpu.device, "publish_sums")?)?,
            published: Event::without_timing(&gpu.device)?,
            passed: Event::without_timing(&gpu.device)?,
            field,
            sweeps,
        })
    }

    /// Waits for what has been launched.
    ///
    /// Errors: also if a kernel ever gave up waiting for a neighbour.
    pub(super) fn synchronize(&self) -> Result<(), GpuError> {
        match &self.exchange {
            Some(exchange) => {
                self.join()?;
                exchange.synchronize(&self.field.stream)
            }
            None => Ok(()),
        }
    }
}

impl<F: Real> Passes<F> for PlanePasses<'_, F> {
    type Error = GpuError;

    fn exchange(
        &mut self,
        through_hosts: &mut PutSignal<'_, F>,
        rows: Rows,
    ) -> Result<(), GpuError> {
        let idle = self.field.own.is_empty();
        match &mut self.host_exchange {
            Some(host) if !idle => edges_first::exchange(host, &self.field, rows)?,
            _ if self.field.partition.active() > 1 && self.exchange.is_none() => {
                through_hosts.exchange(&mut self.field, rows)?;
            }
            _ => {}
        }
        // An early pass has had its halos.
        if idle || self.early.is_some() {
            return Ok(());
        }
        let band = self
            .field
            .band(&self.field.before, &self.field.after, self.half);
        self.fill_halos(band, rows)
    }

    fn expect(&mut self, next: Option<usize>) {
        self.expected = next;
    }

    fn pass(&mut self, norms: &mut [Superaccumulator<F>]) -> Result<(), GpuError> {
        if self.field.own.is_empty() {
            return Ok(());
        }
        let (half, count) = (self.half, Superaccumulator::<F>::WORDS);
        self.earlier = None;
        // When a pass is made again, its edge has been sent.
        let sends = self
            .host_exchange
            .as_ref()
            .is_some_and(|host| !host.is_under_way());
        if sends {
            self.begin_at_zero(half)?;
        }
        match (&mut self.host_exchange, &self.sweeps) {
            (Some(host), Sweeps::Pass(pass)) if sends => {
                edges_first::launch(host, &self.field, pass, half, norms.len())?;
            }
            _ if self.early.take() != Some(norms.len()) => {
                let band = self.field.band(&self.field.before, &self.field.after, half);
                self.launch(band, half, norms.len())?;
            }
            _ => {}
        }
        self.publish(half, norms.len() * count)?;
        let next = self.expected.take().filter(|_| self.spare.is_some());
        if let (Some(next), Some(spare)) = (next, &self.spare) {
            let band = self.field.band(&self.field.after, spare, 1 - half);
            self.fill_halos(band, Rows::halo(next))?;
            self.launch(band, 1 - half, next)?;
        }
        self.earlier = next;
        match &self.exchange {
            Some(exchange) => exchange.wait(&self.published, &self.beside)?,
            None => self.published.synchronize()?,
        }
        let sums = &self.sums[..norms.len() * count];
        for (norm, sum) in norms.iter_mut().zip(sums.chunks_exact(count)) {
            norm.merge(&sum_of_squares(sum));
        }
        Ok(())
    }

    fn accept(&mut self) {
        std::mem::swap(&mut self.field.before, &mut self.field.after);
        self.half = 1 - self.half;
        self.early = self.earlier.take();
        if let (Some(_), Some(spare)) = (self.early, &mut self.spare) {
            std::mem::swap(&mut self.field.after, spare);
        }
    }
}
