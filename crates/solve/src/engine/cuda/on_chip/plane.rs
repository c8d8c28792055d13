//! Strategy `persistent` for planes: the field stays in the registers of the GPUs, one kernel on each for up to a
//! thousand sweeps.
//!
//! The kernels exchange edges, add up the norms and decide on the stop among themselves. They notice a stop up to two
//! chunks of sweeps late, and have then kept the field before the chunk it lies in: from there the sweeps up to the stop
//! are made again.
#![allow(unsafe_code)] // Launches of kernels.

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{
    Buffer, ByValue, Device, DeviceSym, DeviceWorld, Function, Launch, PinnedBuffer, Stream,
};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::{LANES as LEAF_COLUMNS, ROWS as LEAF_ROWS};
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::engine::cuda::kernels;
pub(crate) use crate::engine::cuda::on_chip::placement::Wraps;
use crate::engine::cuda::on_chip::placement::{Blocks, Cut, Deep, Tile};
use crate::engine::cuda::plane::{Band, sum_of_squares};
use crate::field::partition::Partition;
use crate::method::jacobi::{MOST_MARCHED, SolveError};
use crate::pes::agree::{all_ready, least};
use crate::stop::threshold::Threshold;

/// `crosswarp::packet_ring`, for deep edges `crosswarp::field_ring`.
const RING: usize = 4;
/// `crosswarp::most_digits`, in fours.
const DIGITS: usize = 17;

/// `crosswarp::verdict_run`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Verdict {
    words: u64,
    tickets: u64,
    parts: u64,
    arrived: u64,
    totals: u64,
    stop: u64,
    before: u64,
    pes: i32,
    infinite: i32,
    digits: [[u32; 4]; DIGITS],
}

/// The beginning of `crosswarp::deep_run`. `resident_run` has the same in another order, which its kernels' registers are
/// sensitive to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct March {
    band: Band,
    bands: i32,
    above: i32,
    below: i32,
    generation: u32,
    sweeps: i32,
    judges: i32,
    kept: [u64; 2],
    norms: Verdict,
}

/// `crosswarp::resident_run`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct TilesRun {
    band: Band,
    rows: u64,
    columns: u64,
    row_stride: u32,
    column_stride: u32,
    max_bands: i32,
    bands: i32,
    units: i32,
    tile_bands: i32,
    tile_units: i32,
    above: i32,
    below: i32,
    generation: u32,
    sweeps: i32,
    judges: i32,
    kept: [u64; 2],
    norms: Verdict,
}

/// `crosswarp::deep_run`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct DeepRun {
    march: March,
    packets: u64,
    slot: u64,
    field_rows: i32,
    leaves: i32,
    above_rows: i32,
    padding: u32,
}

/// How a PE's part is held, and where its edges are exchanged.
enum Exchange {
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
    Deep {
        deep: Deep,
        packets: DeviceSym<u64>,
        /// Of a strip of packets.
        field_rows: usize,
        /// Side by side.
        leaves: usize,
        above_rows: usize,
    },
}

impl Exchange {
    /// What the kernel is called, and its dynamic shared memory.
    fn kernel<F: Real>(cut: &Cut, source: bool) -> (&'static str, u32) {
        let name = match (cut.blocks, source) {
            (Blocks::Tiles { parts, .. }, false) if Cut::is_narrow(parts) => "resident_narrow",
            (Blocks::Tiles { parts, .. }, true) if Cut::is_narrow(parts) => {
                "resident_narrow_source"
            }
            (Blocks::Tiles { .. }, false) => "resident_wide",
            (Blocks::Tiles { .. }, true) => "resident_wide_source",
            (Blocks::Deep(Deep { leaves: 1, .. }), false) => "deep_one",
            (Blocks::Deep(Deep { leaves: 1, .. }), true) => "deep_one_source",
            (Blocks::Deep(_), false) => "deep_two",
            (Blocks::Deep(_), true) => "deep_two_source",
        };
        let shared = match (cut.blocks, size_of::<F>()) {
            (Blocks::Tiles { .. }, 4) => kernels::RESIDENT_SHARED_F32,
            (Blocks::Tiles { .. }, _) => kernels::RESIDENT_SHARED_F64,
            (Blocks::Deep(_), _) => kernels::DEEP_SHARED,
        };
        (name, shared)
    }

    /// Blocks and their threads for `bands` rows of leaves.
    fn grid(&self, bands: usize) -> (usize, usize) {
        match *self {
            Exchange::Tiles { tile, units, .. } => {
                let blocks = bands.div_ceil(tile.bands) * units.div_ceil(tile.units);
                (blocks, 32 * tile.bands * tile.units)
            }
            Exchange::Deep { deep, leaves, .. } => {
                ((bands * leaves).div_ceil(deep.leaves), 32 * deep.warps)
            }
        }
    }

    /// Generations that a run of `sweeps` takes; what is behind the last sweep is sent as well.
    fn generations(&self, sweeps: usize) -> u32 {
        match self {
            Exchange::Tiles { .. } => sweeps as u32 + 1,
            Exchange::Deep { deep, .. } => sweeps.div_ceil(deep.depth) as u32 + 1,
        }
    }
}

/// Whether the field has room on the chips of GPUs like `device` if no PEs share one. Where it has, this is the fastest
/// strategy: on four H200s 0.9 µs a sweep of 1024² cells (`f32`) against 6.1 of passes, of 4096² 3.7 against 8.1.
pub(crate) fn fits<F: Real>(
    device: &Device,
    partition: &Partition,
    nx: usize,
) -> Result<(), SolveError> {
    let blocks = device.properties().multiprocessors as usize;
    Cut::of::<F>(partition, nx, Wraps::default(), blocks).map(drop)
}

/// Where a PE's part of the field and its units are.
pub(crate) struct Resident<'w, F: Real> {
    world: DeviceWorld<'w>,
    kernel: Function,
    shared: u32,
    exchange: Exchange,
    /// Two sets of the words that the PEs send one another.
    parts: DeviceSym<u64>,
    arrived: DeviceSym<u64>,
    /// Tickets of chunks, then this PE's words.
    words: Buffer<u64>,
    /// The stop, then the sums of all sweeps over all PEs; of runs in turn.
    reports: [PinnedBuffer<u64>; 2],
    /// The run that has begun: its sweeps, and whether they are judged.
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
    /// Chunks handed in so far, and runs that did.
    chunks: u64,
    judged: usize,
}

impl<'w, F: Real> Resident<'w, F> {
    /// Sweeps that are judged together: `crosswarp::chunk_sweeps`.
    pub(crate) const CHUNK: usize = if size_of::<F>() == 4 { 64 } else { 32 };
    const WORDS: usize = Superaccumulator::<F>::WORDS;
    const CHUNKS: usize = MOST_MARCHED.div_ceil(Self::CHUNK);

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
    ) -> Result<Resident<'w, F>, SolveError> {
        let world = DeviceWorld::new(pe, device, None, pe.wait_timeout())?;
        let blocks = device.properties().multiprocessors as usize / world.pes_on_gpu();
        let blocks = least(pe, blocks as u64)?;
        let active = partition.active();
        let cut = Cut::of::<F>(partition, nx, wraps, blocks as usize)?;
        let (name, shared) = Exchange::kernel::<F>(&cut, source);
        let (kernel, _) = all_ready(pe, kernels::find::<F>(&device, name))?;
        all_ready(pe, world.install(kernel.module()).map_err(SolveError::from))?;

        let me = pe.my_pe();
        let heap = world.heap();
        let mine = partition.rows(me).len();
        let neighbour = |ahead: usize| (me < active).then_some((me + ahead) % active);
        let number = |pe: Option<usize>| pe.map_or(-1, |pe| pe as i32);
        let (above, below) = (neighbour(active - 1), neighbour(1));
        let report = || PinnedBuffer::zeroed(&device, 1 + MOST_MARCHED * Self::WORDS);
        let kept = || Buffer::zeroed(stream, elements);
        let buffers = || -> Result<_, SolveError> {
            let words = Buffer::zeroed(stream, Self::CHUNKS + MOST_MARCHED * Self::WORDS)?;
            Ok((words, [report()?, report()?], [kept()?, kept()?]))
        };
        let (words, reports, kept) = all_ready(pe, buffers())?;
        let packets = size_of::<F>() / 4;
        let exchange = match cut.blocks {
            Blocks::Tiles { tile, parts } => {
                let (max_bands, units) = (cut.max_bands, cut.leaves * parts);
                let row_packets = 2 * max_bands * cut.leaves * LEAF_COLUMNS * packets;
                let column_packets = 2 * max_bands * units * LEAF_ROWS * packets;
                Exchange::Tiles {
                    rows: heap.alloc_zeroed(RING * row_packets)?,
                    columns: heap.alloc_zeroed(RING * column_packets)?,
                    tile,
                    max_bands,
                    units,
                }
            }
            Blocks::Deep(deep) => {
                let field_rows = deep.depth + cut.max_rows + deep.depth;
                // A strip more at each end of the grid.
                let strips = (cut.leaves + 2) * field_rows * LEAF_COLUMNS * packets;
                Exchange::Deep {
                    deep,
                    packets: heap.alloc_zeroed(RING * strips)?,
                    field_rows,
                    leaves: cut.leaves,
                    above_rows: above.map_or(0, |pe| partition.rows(pe).len()),
                }
            }
        };
        let resident = Resident {
            exchange,
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
            judged: 0,
            world,
            kernel,
            shared,
            active,
        };
        stream.synchronize()?;
        // Checks that the kernels of all PEs run at once, and loads them.
        resident.world.prepare_together(resident.shape())?;
        Ok(resident)
    }

    fn part_words(pes: usize) -> usize {
        Self::CHUNKS * pes * Self::CHUNK * Self::WORDS
    }

    fn shape(&self) -> Launch<'_> {
        let (blocks, threads) = self.exchange.grid(self.bands);
        Launch::new(&self.kernel)
            .grid(blocks.max(1) as u32)
            .block(threads as u32)
            .shared(self.shared)
    }

    /// The field before a chunk of the last run: that of number `chunk`, or the one behind it.
    pub(crate) fn kept(&self, chunk: usize) -> &Buffer<F> {
        &self.kept[chunk % 2]
    }

    /// The sweeps of the run that has begun and is judged.
    pub(crate) fn begun(&self) -> Option<usize> {
        self.begun
            .and_then(|(sweeps, judged)| judged.then_some(sweeps))
    }

    /// Begins a run of `sweeps` sweeps of `band`, whose addresses `column0` has moved to column 0, as it does with those of
    /// the kept fields; up to the threshold, if one is given. Waits for none that has begun before, and forgets it.
    pub(crate) fn begin(
        &mut self,
        stream: &Stream,
        band: Band,
        column0: impl Fn(&Buffer<F>) -> u64,
        sweeps: usize,
        threshold: Option<&Threshold>,
    ) -> Result<(), SolveError> {
        if self.begun.is_some() {
            self.finish(stream)?;
        }
        let mut digits = [[0; 4]; DIGITS];
        let limbs = Self::WORDS - 4;
        let mut infinite = false;
        if let Some(threshold) = threshold {
            threshold.digits(F::MIN_LSB_EXPONENT, &mut digits.as_flattened_mut()[..limbs]);
            infinite = threshold.allows_infinity();
            self.judged += 1;
            let used = Self::CHUNKS + sweeps * Self::WORDS;
            stream.zero(self.words.range(..used))?;
            // Its last run has been waited for.
            self.reports[self.judged % 2][0] = 0;
        }
        let report = self.reports[self.judged % 2].address();
        let heap = self.world.heap();
        let me = self.world.pe().my_pe();
        let parts = (self.judged % 2 * Self::part_words(self.world.pe().n_pes()) * 8) as u64;
        let march = March {
            band,
            bands: self.bands as i32,
            above: self.above,
            below: self.below,
            generation: self.generation,
            sweeps: sweeps as i32,
            judges: threshold.is_some().into(),
            kept: [column0(&self.kept[0]), column0(&self.kept[1])],
            norms: Verdict {
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
        // The parameter is what the kernel takes. The band's arrays hold its own rows, whole leaves of columns wide, and
        // mask and source `ROWS_BEFORE` and `ROWS_BEHIND` rows and `PAD` columns more: deep edges reach 21 rows and 15
        // columns beyond. The kept fields are like the band's. Slots, parts and words are as long as the kernel takes
        // them to be for these bands, units and sweeps, at most `MOST_MARCHED`. The report is not touched by the host
        // before `finish` has waited for the stream.
        match &self.exchange {
            Exchange::Tiles {
                rows,
                columns,
                tile,
                max_bands,
                units,
            } => {
                let run = TilesRun {
                    band,
                    bands: march.bands,
                    above: march.above,
                    below: march.below,
                    generation: march.generation,
                    sweeps: march.sweeps,
                    judges: march.judges,
                    kept: march.kept,
                    norms: march.norms,
                    rows: heap.address_of(rows, me),
                    columns: heap.address_of(columns, me),
                    row_stride: (rows.len() / RING) as u32,
                    column_stride: (columns.len() / RING) as u32,
                    max_bands: *max_bands as i32,
                    units: *units as i32,
                    tile_bands: tile.bands as i32,
                    tile_units: tile.units as i32,
                };
                // SAFETY: see above.
                unsafe { launch.launch(stream, (ByValue(run),)) }?;
            }
            Exchange::Deep {
                packets,
                field_rows,
                leaves,
                above_rows,
                ..
            } => {
                let run = DeepRun {
                    march,
                    packets: heap.address_of(packets, me),
                    slot: (packets.len() / RING) as u64,
                    field_rows: *field_rows as i32,
                    leaves: *leaves as i32,
                    above_rows: *above_rows as i32,
                    padding: 0,
                };
                // SAFETY: see above.
                unsafe { launch.launch(stream, (ByValue(run),)) }?;
            }
        }
        let sent = self.exchange.generations(sweeps);
        self.generation = self.generation.wrapping_add(sent);
        if threshold.is_some() {
            self.chunks += sweeps.div_ceil(Self::CHUNK) as u64;
        }
        self.begun = Some((sweeps, threshold.is_some()));
        Ok(())
    }

    /// Waits for the run that has begun. Returns its sweeps up to the first that meets the threshold, and whether one does.
    /// Only if that is the last one, or none does, the band's field after has been made.
    pub(crate) fn finish(&mut self, stream: &Stream) -> Result<(usize, bool), SolveError> {
        self.world.synchronize(stream)?;
        let (sweeps, judged) = self.begun.take().unwrap_or((0, false));
        let stop = self.reports[self.judged % 2][0] as usize;
        if !judged || stop == 0 {
            return Ok((sweeps, false));
        }
        // Generations go on behind the last that was sent: the next run's first edges must not lie in the slot of those
        // that another PE may still be about to read.
        let made = swept(sweeps, stop, Self::CHUNK);
        let left_out = self.exchange.generations(sweeps) - self.exchange.generations(made);
        self.generation = self.generation.wrapping_sub(left_out);
        Ok((stop, true))
    }

    /// Appends the sums over all PEs of the first `made` sweeps of the last judged run that was finished.
    pub(crate) fn sums(&self, made: usize, sums: &mut Vec<Superaccumulator<F>>) {
        let runs = self.judged - usize::from(self.begun().is_some());
        let words = &self.reports[runs % 2][1..1 + made * Self::WORDS];
        sums.extend(words.chunks_exact(Self::WORDS).map(sum_of_squares::<F>));
    }

    /// Waits for `stream`.
    ///
    /// Errors: also if a wait for a neighbour ran out of time.
    pub(crate) fn synchronize(&self, stream: &Stream) -> Result<(), SolveError> {
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
