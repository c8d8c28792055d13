//! Strategy `persistent` for planes: the field stays in the registers of the GPUs, one kernel on each for up to a
//! thousand sweeps.
//!
//! The kernels exchange edges, add up the norms and decide on the stop among themselves. They notice a stop up to two
//! chunks of sweeps late, and have then kept the field before the chunk it lies in: from there the sweeps up to the
//! stop are made again.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::sum_layout::TRACKERS;
use crosswarp_cuda::{
    Buffer, ByValue, Device, DeviceSym, DeviceWorld, Function, Launch, PinnedBuffer, Stream,
};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES as LEAF_COLUMNS, ROWS as LEAF_ROWS};
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cuda::kernels;
use crate::engine::cuda::on_chip::placement::{Blocks, DeepHalo, Placement, Tile, Wraps};
use crate::engine::cuda::sums::sum_of_squares;
use crate::engine::slab::MOST_SWEEPS_OF_RUN;
use crate::field::partition::Partition;
use crate::gpu::arguments::{
    Band, CHUNK_SWEEPS_F32, CHUNK_SWEEPS_F64, DEEP_HALO_SHARED, DIGITS, DeepHaloRun, PACKET_RING,
    PLANE_TILE_SHARED_F32, PLANE_TILE_SHARED_F64, StopDecision, TileRun,
};
use crate::gpu::error::GpuError;
use crate::pes::agree::{all_ready, least};
use crate::stop::threshold::Threshold;

/// What both kinds of runs have; they have it in different orders, which their kernels' registers are sensitive to.
struct RunParameters {
    plane: Band,
    bands: i32,
    above: i32,
    below: i32,
    generation: u32,
    sweeps: i32,
    decides: i32,
    kept: [u64; 2],
    norms: StopDecision,
}

/// How a PE's part is held, and where its edges are exchanged.
enum Scheme {
    /// After every sweep.
    Tiles {
        /// Packets of rows from PE to PE and from block to block.
        rows: DeviceSym<u64>,
        /// Packets of columns.
        columns: DeviceSym<u64>,
        tile: Tile,
        max_bands: usize,
        /// Side by side.
        units: usize,
    },
    /// After several.
    DeepHalo {
        deep: DeepHalo,
        packets: DeviceSym<u64>,
        /// Of a strip of packets.
        field_rows: usize,
        /// Side by side.
        leaves: usize,
        above_rows: usize,
    },
}

impl Scheme {
    /// What the kernel is called, and its dynamic shared memory.
    fn kernel<F: Real>(placement: &Placement, source: bool) -> (&'static str, u32) {
        let name = match (placement.blocks, source) {
            (Blocks::Tiles { parts, .. }, false) if Placement::is_narrow(parts) => {
                "run_tiles_narrow"
            }
            (Blocks::Tiles { parts, .. }, true) if Placement::is_narrow(parts) => {
                "run_tiles_narrow_source"
            }
            (Blocks::Tiles { .. }, false) => "run_tiles_wide",
            (Blocks::Tiles { .. }, true) => "run_tiles_wide_source",
            (Blocks::DeepHalo(DeepHalo { leaves: 1, .. }), false) => "run_deep_halo_one",
            (Blocks::DeepHalo(DeepHalo { leaves: 1, .. }), true) => "run_deep_halo_one_source",
            (Blocks::DeepHalo(_), false) => "run_deep_halo_two",
            (Blocks::DeepHalo(_), true) => "run_deep_halo_two_source",
        };
        let shared = match (placement.blocks, size_of::<F>()) {
            (Blocks::Tiles { .. }, 4) => PLANE_TILE_SHARED_F32,
            (Blocks::Tiles { .. }, _) => PLANE_TILE_SHARED_F64,
            (Blocks::DeepHalo(_), _) => DEEP_HALO_SHARED,
        };
        (name, shared)
    }

    /// Blocks and their threads for `bands` rows of leaves.
    fn grid(&self, bands: usize) -> (usize, usize) {
        match *self {
            Scheme::Tiles { tile, units, .. } => {
                let blocks = bands.div_ceil(tile.bands) * units.div_ceil(tile.units);
                (blocks, 32 * tile.bands * tile.units)
            }
            Scheme::DeepHalo { deep, leaves, .. } => {
                ((bands * leaves).div_ceil(deep.leaves), 32 * deep.warps)
            }
        }
    }

    /// Generations that a run of `sweeps` takes; what is behind the last sweep is sent as well.
    fn generations(&self, sweeps: usize) -> u32 {
        match self {
            Scheme::Tiles { .. } => sweeps as u32 + 1,
            Scheme::DeepHalo { deep, .. } => sweeps.div_ceil(deep.depth) as u32 + 1,
        }
    }
}

/// Whether the field has room on the chips of GPUs like `device` if no PEs share one. Where it has, this is the fastest
/// strategy: on four H200s 0.9 µs a sweep of 1024² cells (`f32`) against 6.1 of passes, of 4096² 3.7 against 8.1.
pub(crate) fn fits<F: Real>(
    device: &Device,
    partition: &Partition,
    nx: usize,
) -> Result<(), GpuError> {
    let blocks = device.properties().multiprocessors as usize;
    Placement::of::<F>(partition, nx, Wraps::default(), blocks).map(drop)
}

/// Where a PE's part of the field and its units are.
pub(crate) struct OnChipPlane<'w, F: Real> {
    world: DeviceWorld<'w>,
    kernel: Function,
    shared: u32,
    scheme: Scheme,
    /// Two sets of the words that the PEs send one another.
    parts: DeviceSym<u64>,
    arrived: DeviceSym<u64>,
    /// Tickets of chunks, then this PE's words.
    words: Buffer<u64>,
    /// The stop, then the sums of all sweeps over all PEs; of runs in turn.
    reports: [PinnedBuffer<u64>; 2],
    /// The run that has begun: its sweeps, and whether it decides on the stop.
    begun: Option<(usize, bool)>,
    /// The field before the last two chunks.
    kept: [Buffer<F>; 2],
    /// Rows of leaves of this PE.
    bands: usize,
    above: i32,
    below: i32,
    active: usize,
    /// Of the first packets of the next run. Wraps around.
    generation: u32,
    /// Chunks whose sums have been added up so far, and runs that decided on the stop.
    chunks: u64,
    deciding_runs: usize,
}

impl<'w, F: Real> OnChipPlane<'w, F> {
    /// Sweeps whose norms are decided on together.
    pub(crate) const CHUNK: usize = if size_of::<F>() == 4 {
        CHUNK_SWEEPS_F32
    } else {
        CHUNK_SWEEPS_F64
    };
    const WORDS: usize = Superaccumulator::<F>::WORDS;
    const CHUNKS: usize = MOST_SWEEPS_OF_RUN.div_ceil(Self::CHUNK);

    /// Room for a plane of `nx` columns whose bands have `elements` elements, halos included. Collective.
    ///
    /// Errors: on every PE alike, if the field does not fit, or GPUs can not reach each other.
    #[allow(clippy::too_many_arguments)] // All of them say what plane it is.
    pub(crate) fn new(
        pe: &'w Pe,
        device: Device,
        stream: &Stream,
        partition: &Partition,
        nx: usize,
        wraps: Wraps,
        elements: usize,
        source: bool,
    ) -> Result<OnChipPlane<'w, F>, GpuError> {
        DeviceWorld::needs_one_host(pe, "a field on the chips")?;
        let world = DeviceWorld::without_verbs(pe, device, None, pe.wait_timeout())?;
        let blocks = device.properties().multiprocessors as usize / world.pes_on_gpu();
        let blocks = least(pe, blocks as u64)?;
        let active = partition.active();
        let placement = Placement::of::<F>(partition, nx, wraps, blocks as usize)?;
        let (name, shared) = Scheme::kernel::<F>(&placement, source);
        let (kernel, _) = all_ready(pe, kernels::find_of_pe::<F>(&device, name))?;
        all_ready(pe, world.install(kernel.module()).map_err(GpuError::from))?;

        let me = pe.my_pe();
        let heap = world.heap();
        let mine = partition.rows(me).len();
        let neighbour = |ahead: usize| (me < active).then_some((me + ahead) % active);
        let number = |pe: Option<usize>| pe.map_or(-1, |pe| pe as i32);
        let (above, below) = (neighbour(active - 1), neighbour(1));
        let report = || PinnedBuffer::zeroed(&device, 1 + MOST_SWEEPS_OF_RUN * Self::WORDS);
        let kept = || Buffer::zeroed(stream, elements);
        let buffers = || -> Result<_, GpuError> {
            let words = Buffer::zeroed(stream, Self::CHUNKS + MOST_SWEEPS_OF_RUN * Self::WORDS)?;
            Ok((words, [report()?, report()?], [kept()?, kept()?]))
        };
        let (words, reports, kept) = all_ready(pe, buffers())?;
        let packets = size_of::<F>() / 4;
        let scheme = match placement.blocks {
            Blocks::Tiles { tile, parts } => {
                let (max_bands, units) = (placement.max_bands, placement.leaves * parts);
                let row_packets = 2 * max_bands * placement.leaves * LEAF_COLUMNS * packets;
                let column_packets = 2 * max_bands * units * LEAF_ROWS * packets;
                Scheme::Tiles {
                    rows: heap.alloc_zeroed(PACKET_RING * row_packets)?,
                    columns: heap.alloc_zeroed(PACKET_RING * column_packets)?,
                    tile,
                    max_bands,
                    units,
                }
            }
            Blocks::DeepHalo(deep) => {
                let field_rows = deep.depth + placement.max_rows + deep.depth;
                // A strip more at each end of the grid.
                let strips = (placement.leaves + 2) * field_rows * LEAF_COLUMNS * packets;
                Scheme::DeepHalo {
                    deep,
                    packets: heap.alloc_zeroed(PACKET_RING * strips)?,
                    field_rows,
                    leaves: placement.leaves,
                    above_rows: above.map_or(0, |pe| partition.rows(pe).len()),
                }
            }
        };
        let plane = OnChipPlane {
            scheme,
            parts: heap.alloc_zeroed(2 * Self::part_words(pe.n_pes()))?,
            arrived: heap.alloc_zeroed(pe.n_pes())?,
            words,
            reports,
            kept,
            begun: None,
            bands: mine.div_ceil(LEAF_ROWS),
            above: number(above),
            below: number(below),
            // Zero is what the slots hold at first.
            generation: 1,
            chunks: 0,
            deciding_runs: 0,
            world,
            kernel,
            shared,
            active,
        };
        stream.synchronize()?;
        // Checks that the kernels of all PEs run at once, and loads them.
        plane.world.prepare_together(plane.shape())?;
        Ok(plane)
    }

    fn part_words(pes: usize) -> usize {
        Self::CHUNKS * pes * Self::CHUNK * Self::WORDS
    }

    fn shape(&self) -> Launch<'_> {
        let (blocks, threads) = self.scheme.grid(self.bands);
        Launch::new(&self.kernel)
            .grid(blocks.max(1) as u32)
            .block(threads as u32)
            .shared(self.shared)
    }

    /// The field before a chunk of the last run: that of number `chunk`, or the one behind it.
    pub(crate) fn kept(&self, chunk: usize) -> &Buffer<F> {
        &self.kept[chunk % 2]
    }

    /// The sweeps of the run that has begun and decides on the stop.
    pub(crate) fn begun(&self) -> Option<usize> {
        self.begun
            .and_then(|(sweeps, decides)| decides.then_some(sweeps))
    }

    /// Begins a run of `sweeps` sweeps of `band`, whose addresses `column0` has moved to column 0, as it does with
    /// those of the kept fields; up to the threshold, if one is given. Waits for none that has begun before, and
    /// forgets it.
    pub(crate) fn begin(
        &mut self,
        stream: &Stream,
        band: Band,
        column0: impl Fn(&Buffer<F>) -> u64,
        sweeps: usize,
        threshold: Option<&Threshold>,
    ) -> Result<(), GpuError> {
        if self.begun.is_some() {
            self.finish(stream)?;
        }
        let mut digits = [0; DIGITS];
        let limbs = Self::WORDS - TRACKERS;
        let mut infinite = false;
        if let Some(threshold) = threshold {
            threshold.digits(F::MIN_LSB_EXPONENT, &mut digits[..limbs]);
            infinite = threshold.allows_infinity();
            self.deciding_runs += 1;
            let used = Self::CHUNKS + sweeps * Self::WORDS;
            stream.zero(self.words.range(..used))?;
            // Its last run has been waited for.
            self.reports[self.deciding_runs % 2][0] = 0;
        }
        let report = self.reports[self.deciding_runs % 2].address();
        let heap = self.world.heap();
        let me = self.world.pe().my_pe();
        let parts = (self.deciding_runs % 2 * Self::part_words(self.world.pe().n_pes()) * 8) as u64;
        let run = RunParameters {
            plane: band,
            bands: self.bands as i32,
            above: self.above,
            below: self.below,
            generation: self.generation,
            sweeps: sweeps as i32,
            decides: threshold.is_some().into(),
            kept: [column0(&self.kept[0]), column0(&self.kept[1])],
            norms: StopDecision {
                words: self.words.address() + 8 * Self::CHUNKS as u64,
                tickets: self.words.address(),
                parts: heap.address_of(&self.parts, me) + parts,
                arrived: heap.address_of(&self.arrived, me),
                totals: report + 8,
                stop: report,
                before: self.chunks,
                pes: self.active as i32,
                infinite: infinite.into(),
                digits,
            },
        };
        let alone = self.world.pes_on_gpu() == 1;
        let launch = if alone {
            self.shape().cooperative()
        } else {
            self.shape()
        };
        // The parameter is what the kernel takes. The band's arrays hold its own rows, whole leaves of columns wide,
        // and mask and source `ROWS_BEFORE` and `ROWS_BEHIND` rows and `PAD` columns more: deep halos reach 21 rows and
        // 15 columns beyond. The kept fields are like the band's. Slots, parts and words are as long as the kernel
        // takes them to be for these bands, units and sweeps, at most `MOST_SWEEPS_OF_RUN`. The report is not touched
        // by the host before `finish` has waited for the stream.
        match &self.scheme {
            Scheme::Tiles {
                rows,
                columns,
                tile,
                max_bands,
                units,
            } => {
                let run = TileRun {
                    plane: run.plane,
                    bands: run.bands,
                    above: run.above,
                    below: run.below,
                    generation: run.generation,
                    sweeps: run.sweeps,
                    decides: run.decides,
                    kept: run.kept,
                    norms: run.norms,
                    rows: heap.address_of(rows, me),
                    columns: heap.address_of(columns, me),
                    row_stride: (rows.len() / PACKET_RING) as u32,
                    column_stride: (columns.len() / PACKET_RING) as u32,
                    max_bands: *max_bands as i32,
                    units: *units as i32,
                    tile_bands: tile.bands as i32,
                    tile_units: tile.units as i32,
                };
                // SAFETY: see above.
                unsafe { launch.launch(stream, (ByValue(run),)) }?;
            }
            Scheme::DeepHalo {
                packets,
                field_rows,
                leaves,
                above_rows,
                ..
            } => {
                let run = DeepHaloRun {
                    plane: run.plane,
                    bands: run.bands,
                    above: run.above,
                    below: run.below,
                    generation: run.generation,
                    sweeps: run.sweeps,
                    decides: run.decides,
                    kept: run.kept,
                    norms: run.norms,
                    packets: heap.address_of(packets, me),
                    slot: (packets.len() / PACKET_RING) as u64,
                    field_rows: *field_rows as i32,
                    leaves: *leaves as i32,
                    above_rows: *above_rows as i32,
                    padding: 0,
                };
                // SAFETY: see above.
                unsafe { launch.launch(stream, (ByValue(run),)) }?;
            }
        }
        let sent = self.scheme.generations(sweeps);
        self.generation = self.generation.wrapping_add(sent);
        if threshold.is_some() {
            self.chunks += sweeps.div_ceil(Self::CHUNK) as u64;
        }
        self.begun = Some((sweeps, threshold.is_some()));
        Ok(())
    }

    /// Waits for the run that has begun. Returns its sweeps up to the first that meets the threshold, and whether one
    /// does. Only if that is the last one, or none does, the band's field after has been made.
    pub(crate) fn finish(&mut self, stream: &Stream) -> Result<(usize, bool), GpuError> {
        self.world.synchronize(stream)?;
        let (sweeps, decides) = self.begun.take().unwrap_or((0, false));
        let stop = self.reports[self.deciding_runs % 2][0] as usize;
        if !decides || stop == 0 {
            return Ok((sweeps, false));
        }
        // Generations go on behind the last that was sent: the next run's first edges must not lie in the slot of those
        // that another PE may still be about to read.
        let made = swept(sweeps, stop, Self::CHUNK);
        let left_out = self.scheme.generations(sweeps) - self.scheme.generations(made);
        self.generation = self.generation.wrapping_sub(left_out);
        Ok((stop, true))
    }

    /// Appends the sums over all PEs of the first `made` sweeps of the last run that decided on the stop and was
    /// finished.
    pub(crate) fn sums(&self, made: usize, sums: &mut Vec<Superaccumulator<F>>) {
        let runs = self.deciding_runs - usize::from(self.begun().is_some());
        let words = &self.reports[runs % 2][1..1 + made * Self::WORDS];
        sums.extend(words.chunks_exact(Self::WORDS).map(sum_of_squares::<F>));
    }

    /// Waits for `stream`.
    ///
    /// Errors: also if a wait for a neighbour ran out of time.
    pub(crate) fn synchronize(&self, stream: &Stream) -> Result<(), GpuError> {
        Ok(self.world.synchronize(stream)?)
    }
}

/// Sweeps that the kernels make in a run of `sweeps` whose sweep `stop`, counted from 1, is the first to meet the
/// threshold: they learn of it at the end of the chunk behind.
fn swept(sweeps: usize, stop: usize, chunk: usize) -> usize {
    sweeps.min(((stop - 1) / chunk + 2) * chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_noticed_a_chunk_late() {
        for (sweeps, stop, expected) in [
            (1024, 1, 128),
            (1024, 64, 128),
            (1024, 65, 192),
            (330, 33, 128),
            (330, 200, 320),
            (330, 257, 330),
            (330, 330, 330),
            (1, 1, 1),
        ] {
            assert_eq!(swept(sweeps, stop, 64), expected, "{stop} of {sweeps}");
        }
    }
}
