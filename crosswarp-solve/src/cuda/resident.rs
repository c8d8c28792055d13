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

use crate::cuda::agree::{all_ready, least};
use crate::cuda::kernels;
use crate::cuda::plane::{Band, sum_of_squares};
use crate::driver::{MOST_MARCHED, SolveError};
use crate::partition::Partition;
use crate::real::Real;
use crate::threshold::Threshold;

/// `crosswarp::resident_warps`.
const WARPS: usize = 16;
/// `crosswarp::packet_ring`.
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

/// `crosswarp::resident_run`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Run {
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

/// Units of 16 rows that a block holds: `bands` of them below one another, `units` side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    bands: usize,
    units: usize,
}

impl Tile {
    /// The tiles for `bands` × `units` units on `blocks` blocks, with as few units as possible, and then as short an edge.
    /// Leaves of `parts` units stay whole. None if there are not enough blocks.
    fn of(bands: usize, units: usize, parts: usize, blocks: usize) -> Option<Tile> {
        let sizes = (1..=WARPS).flat_map(|bands| {
            (parts..=WARPS / bands)
                .step_by(parts)
                .map(move |units| Tile { bands, units })
        });
        sizes
            .filter(|tile| bands.div_ceil(tile.bands) * units.div_ceil(tile.units) <= blocks)
            .min_by_key(|tile| {
                let width = tile.units * LEAF_COLUMNS / parts;
                // A column at the edge costs more than one of a row: measured, about six times.
                (tile.bands * tile.units, width + 6 * tile.bands * LEAF_ROWS)
            })
    }
}

/// Units that a leaf has where they are narrow.
const NARROW: usize = 4;

/// How a field lies on the chips.
struct Cut {
    tile: Tile,
    /// Units of a leaf.
    parts: usize,
    /// Rows of units of the PE with most.
    max_bands: usize,
    /// Leaves across.
    leaves: usize,
}

impl Cut {
    /// For `blocks` blocks on every GPU.
    fn of<F: Real>(partition: &Partition, nx: usize, blocks: usize) -> Result<Cut, SolveError> {
        let rows = |pe: usize| partition.rows(pe).len();
        let most_rows = (0..partition.active()).map(rows).max().unwrap_or(0);
        let max_bands = most_rows.div_ceil(LEAF_ROWS);
        let leaves = nx.div_ceil(LEAF_COLUMNS);
        // Narrow units are ready sooner, wide ones leave room for more cells.
        let wide = if size_of::<F>() == 4 { 1 } else { 2 };
        let with = |parts: usize| {
            let tile = Tile::of(max_bands, leaves * parts, parts, blocks)?;
            Some(Cut {
                tile,
                parts,
                max_bands,
                leaves,
            })
        };
        with(NARROW)
            .or_else(|| with(wide))
            .ok_or_else(|| SolveError::TooLargeForChip {
                cells: most_rows * nx,
                most: blocks * WARPS / wide * LEAF_ROWS * LEAF_COLUMNS,
            })
    }
}

/// Whether the field has room on the chips of GPUs like `device` if no PEs share one. Where it has, this is the fastest
/// strategy: on four H200s 1.8 µs a sweep of 1024² cells (`f32`) against 6.9 of passes, of 4096² 3.7 against 9.9.
pub(crate) fn fits<F: Real>(device: &Device, partition: &Partition, nx: usize) -> bool {
    let blocks = device.properties().multiprocessors as usize;
    Cut::of::<F>(partition, nx, blocks).is_ok()
}

/// Where a PE's part of the field and its units are.
pub(crate) struct Resident<'w, F: Real> {
    world: DeviceWorld<'w>,
    kernel: Function,
    /// Packets of rows from PE to PE and from block to block.
    rows: DeviceSym<u64>,
    /// Packets of columns.
    columns: DeviceSym<u64>,
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
    tile: Tile,
    max_bands: usize,
    /// Of this PE.
    bands: usize,
    units: usize,
    above: i32,
    below: i32,
    active: usize,
    /// Of the first edges of the next run. Wraps around.
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
    pub(crate) fn new(
        pe: &'w Pe,
        device: Device,
        stream: &Stream,
        partition: &Partition,
        nx: usize,
        elements: usize,
        source: bool,
    ) -> Result<Resident<'w, F>, SolveError> {
        let world = DeviceWorld::new(pe, device, None, pe.wait_timeout())?;
        let blocks = device.properties().multiprocessors as usize / world.pes_on_gpu();
        let blocks = least(pe, blocks as u64)?;
        let active = partition.active();
        let cut = Cut::of::<F>(partition, nx, blocks as usize)?;
        let Cut {
            tile,
            parts,
            max_bands,
            leaves,
        } = cut;
        let name = match (parts == NARROW, source) {
            (true, false) => "resident_narrow",
            (false, false) => "resident_wide",
            (true, true) => "resident_narrow_source",
            (false, true) => "resident_wide_source",
        };
        let (kernel, _) = all_ready(pe, kernels::find::<F>(&device, name))?;
        all_ready(pe, world.install(kernel.module()).map_err(SolveError::from))?;

        let (units, me) = (leaves * parts, pe.my_pe());
        let packets = size_of::<F>() / 4;
        let heap = world.heap();
        let row_packets = 2 * max_bands * leaves * LEAF_COLUMNS * packets;
        let column_packets = 2 * max_bands * units * LEAF_ROWS * packets;
        let mine = partition.rows(me).len();
        let neighbour = |ahead: usize| {
            if me < active {
                ((me + ahead) % active) as i32
            } else {
                -1
            }
        };
        let report = || PinnedBuffer::zeroed(&device, 1 + MOST_MARCHED * Self::WORDS);
        let kept = || Buffer::zeroed(stream, elements);
        let buffers = || -> Result<_, SolveError> {
            let words = Buffer::zeroed(stream, Self::CHUNKS + MOST_MARCHED * Self::WORDS)?;
            Ok((words, [report()?, report()?], [kept()?, kept()?]))
        };
        let (words, reports, kept) = all_ready(pe, buffers())?;
        let resident = Resident {
            rows: heap.alloc_zeroed(RING * row_packets)?,
            columns: heap.alloc_zeroed(RING * column_packets)?,
            parts: heap.alloc_zeroed(2 * Self::part_words(pe.n_pes()))?,
            arrived: heap.alloc_zeroed(pe.n_pes())?,
            words,
            reports,
            kept,
            begun: None,
            bands: mine.div_ceil(LEAF_ROWS),
            above: neighbour(active - 1),
            below: neighbour(1),
            // Zero is what the slots hold at first.
            generation: 1,
            chunks: 0,
            judged: 0,
            world,
            kernel,
            tile,
            max_bands,
            units,
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
        let blocks = self.bands.div_ceil(self.tile.bands) * self.units.div_ceil(self.tile.units);
        let shared = if size_of::<F>() == 4 {
            kernels::RESIDENT_SHARED_F32
        } else {
            kernels::RESIDENT_SHARED_F64
        };
        Launch::new(&self.kernel)
            .grid(blocks.max(1) as u32)
            .block((32 * self.tile.bands * self.tile.units) as u32)
            .shared(shared)
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
        let run = Run {
            band,
            rows: heap.address_of(&self.rows, me),
            columns: heap.address_of(&self.columns, me),
            row_stride: (self.rows.len() / RING) as u32,
            column_stride: (self.columns.len() / RING) as u32,
            max_bands: self.max_bands as i32,
            bands: self.bands as i32,
            units: self.units as i32,
            tile_bands: self.tile.bands as i32,
            tile_units: self.tile.units as i32,
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
        // SAFETY: the parameter is a `resident_run`. The band's arrays hold its own rows, whole leaves of columns wide,
        // and so do the kept fields; slots, parts and words are as long as the kernel takes them to be for these bands,
        // units and sweeps, at most `MOST_MARCHED`. The report is not touched by the host before `finish` has waited for
        // the stream.
        unsafe { launch.launch(stream, (ByValue(run),)) }?;
        // Each sweep has edges, and those behind the last are sent as well.
        self.generation = self.generation.wrapping_add(sweeps as u32 + 1);
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
        let left_out = sweeps - swept(sweeps, stop, Self::CHUNK);
        self.generation = self.generation.wrapping_sub(left_out as u32);
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

    #[test]
    fn tiles_cover_the_plane_keep_leaves_whole_and_fit() {
        for (bands, leaves) in [(1, 1), (16, 8), (64, 8), (64, 32), (3, 100), (500, 1)] {
            for parts in [1, 2, 4] {
                for blocks in [1, 33, 66, 132] {
                    let Some(tile) = Tile::of(bands, leaves * parts, parts, blocks) else {
                        assert!(
                            bands * leaves * parts > blocks * WARPS / 4,
                            "{bands} x {leaves} leaves of {parts} on {blocks}"
                        );
                        continue;
                    };
                    assert!(tile.units.is_multiple_of(parts));
                    assert!(tile.bands * tile.units <= WARPS);
                    let used = bands.div_ceil(tile.bands) * (leaves * parts).div_ceil(tile.units);
                    assert!(used <= blocks);
                }
            }
        }
        // 4096² on four GPUs, 1024² on one and on four.
        let tile = |bands, units| Some(Tile { bands, units });
        assert_eq!(Tile::of(64, 32, 1, 132), tile(4, 4));
        assert_eq!(Tile::of(64, 32, 4, 132), tile(2, 8));
        assert_eq!(Tile::of(16, 32, 4, 132), tile(1, 4));
    }
}
