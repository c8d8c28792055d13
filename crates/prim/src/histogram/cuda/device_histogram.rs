//! Histograms on a GPU.
#![allow(unsafe_code)] // Reason: launches kernels of this crate.

use std::ffi::c_void;

use crosswarp_cuda::internal::compile_together;
use crosswarp_cuda::{
    Buffer, BufferRef, ByValue, CudaError, Device, Error, Function, KernelArg, Launch, Module, Pod,
    Source, Stream,
};

use super::arguments::{
    BinGrouping, CELL_BITS, Decision, HotTable, MOST_GROUPS, MOST_RANGES, Ranges, THREADS,
};
use super::kernels::{ROWS, kernels_of};
use crate::histogram::{BinRule, Bins, DeviceSample, Tables, Visit};

/// Bytes of the table of hot bins.
const HOT_TABLE: u32 = size_of::<HotTable>() as u32;
/// Bytes of the cells that `choose_plan` counts in (`histogram/sampling.cuh`).
const CELLS: u32 = 4 << CELL_BITS;
/// Samples from which on choosing a plan pays.
const PLANNED_FROM: usize = 1 << 22;
/// Bytes of what is decided.
const DECISION: usize = size_of::<Decision>();
/// Samples a bin in a block's share, where the host can choose: longer arrays are counted in parts.
const NARROW_PART: f64 = 3.5;
/// Samples of one launch: no counter of 32 bits can overflow.
const MOST_SAMPLES: usize = 1 << 31;
/// Samples that pay for a block.
const SAMPLES_PER_BLOCK: usize = 16384;

/// Histograms of samples in device memory: compiled kernels and a plan for one GPU and some [`Bins`].
/// The counts are those of [`Histogram`](crate::histogram::Histogram), exactly.
///
/// How bins are counted, by their number (on an H200):
///
/// - Up to 58,112: a 32-bit counter a bin in each block's shared memory. Equal counters of a warp are merged by the
///   hardware.
/// - Up to 4.4 million: counters of 8 bits, four to a word of shared memory, whose overflows are added to the totals,
///   for 224,000 bins a block; beyond, up to 20 blocks read the same samples and count a range of bins each. One block
///   first examines some of the samples and decides whether counters of 4 bits would rarely overflow, or whether bin
///   groups had better have counters of 4, 8 or 32 bits each. Bins that are frequent just now are counted in a side
///   table, which each block decides by itself.
/// - Beyond: in device memory, with the same table.
/// - Weights: a 32-bit counter a bin in shared memory, then device memory.
///
/// ```
/// use crosswarp_cuda::{Buffer, Device, Stream};
/// use crosswarp_prim::cuda::DeviceHistogram;
/// use crosswarp_prim::histogram::Bins;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let stream = Stream::new(&device)?;
///     let faces = DeviceHistogram::new(&stream, &Bins::<u8>::integers(1, 7)?)?;
///     let dice = Buffer::from_slice(&stream, &[1, 6, 3, 3, 2, 6, 6])?;
///     let counts = Buffer::zeroed(&stream, 6)?;
///     let workspace = faces.workspace()?;
///     faces.add_counts(&stream, &dice, &counts, &workspace)?;
///     assert_eq!(counts.to_vec(&stream)?, [1, 1, 2, 0, 0, 3]);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct DeviceHistogram<T: DeviceSample> {
    bins: Bins<T>,
    device: Device,
    plan: Plan,
    weigh: Function,
    weigh_shared: u32,
    rule: RuleArgument,
    /// What `rule` points to.
    _tables: Option<(Buffer<T::Key>, Buffer<u32>)>,
}

/// Device memory that counting needs beside samples and counts (30 MB on an H200, nothing for up to
/// 58,112 bins): one for each stream in which histograms run at the same time.
#[derive(Debug)]
pub struct HistogramWorkspace {
    rows: Buffer<u8>,
    decision: Buffer<u8>,
}

#[derive(Debug)]
enum Plan {
    /// `shared_…` or `global_…` with this much dynamic shared memory.
    Simple {
        kernel: Function,
        shared: u32,
        resident: u32,
    },
    /// `packed_…`: counters that share words.
    Packed {
        /// None if a block cannot have the shared memory.
        choose: Option<Function>,
        kernel: Function,
        rows: Function,
        shared: u32,
        resident: u32,
        wide: Ranges,
        narrow: Ranges,
        grouping: BinGrouping,
    },
}

impl BinGrouping {
    /// For counters, and a word a group, in `bytes` bytes of shared memory.
    fn of(bins: u32, bytes: u32) -> Self {
        let group = bins.div_ceil(MOST_GROUPS).next_power_of_two();
        Self {
            // The 4-bit counters of a group take at least 128 bytes.
            group_bits: group.ilog2().max(8),
            room: bytes.saturating_sub(4 * MOST_GROUPS) / 128 * 128,
        }
    }
}

impl Ranges {
    const NONE: Self = Self { count: 0, span: 0 };

    /// For counters of `bits` bits in `bytes` bytes of shared memory.
    fn of(bins: u32, bits: u32, bytes: u32) -> Self {
        // Spans are a multiple of 128 counters, so that they are whole vectors of 16 bytes.
        let room = bytes * 8 / bits / 128 * 128;
        if room == 0 {
            return Self::NONE;
        }
        let count = bins.div_ceil(room);
        let span = bins.div_ceil(count).next_multiple_of(128);
        // Rounding up can leave nothing for the last ones.
        let count = bins.div_ceil(span);
        Self { count, span }
    }
}

/// A rule as a kernel argument.
#[derive(Clone, Copy, Debug)]
struct RuleArgument {
    bytes: [u64; 9],
    size: usize,
}

// SAFETY: `pointer` is to `bytes`, of which `size` are within it: see `RuleArgument::new`.
unsafe impl KernelArg for RuleArgument {
    fn pointer(&self) -> *const c_void {
        self.bytes.as_ptr().cast()
    }
    fn size(&self) -> usize {
        self.size
    }
}

impl RuleArgument {
    fn new(rule: &[u8]) -> Self {
        let mut bytes = [0; 9];
        // Panics if there were a rule that is larger.
        bytemuck::cast_slice_mut(&mut bytes)[..rule.len()].copy_from_slice(rule);
        Self {
            bytes,
            size: rule.len(),
        }
    }
}

/// The rule's name, whether it moves keys, its tables, and its bytes given where they lie.
struct Describe;

struct Described<K> {
    name: &'static str,
    moves_keys: bool,
    tables: Option<Tables<K>>,
    argument: Box<dyn FnOnce(u64, u64) -> Vec<u8>>,
}

impl<K: Pod> Visit<K> for Describe {
    type Output = Described<K>;
    fn visit<R: BinRule<K>>(self, rule: &R) -> Described<K> {
        let with_tables = rule.clone();
        Described {
            name: R::NAME,
            moves_keys: rule.moves_keys(),
            tables: rule.tables(),
            argument: Box::new(move |edges, cells| with_tables.argument(edges, cells)),
        }
    }
}

impl<T: DeviceSample> DeviceHistogram<T> {
    /// Compiles what `bins` need for the stream's GPU (from the cache the second time).
    ///
    /// # Errors
    /// Those of compiling and of the driver.
    pub fn new(stream: &Stream, bins: &Bins<T>) -> Result<Self, Error> {
        let device = *stream.device();
        let Described {
            name,
            moves_keys,
            tables,
            argument,
        } = bins.rule().visit(Describe);
        let tables = match &tables {
            Some(Tables { edge, cell }) => Some((
                Buffer::from_slice(stream, edge)?,
                Buffer::from_slice(stream, cell)?,
            )),
            None => None,
        };
        let (edges, cells) = tables
            .as_ref()
            .map_or((0, 0), |(edge, cell)| (edge.address(), cell.address()));
        let table_bytes = tables.as_ref().map_or(0, |(edge, cell)| {
            (edge.len() * size_of::<T::Key>() + cell.len() * 4) as u64
        });
        let kernels = kernels_of(T::DTYPE, name);
        let load = |source: &Source<'_>| Module::compile(&device, source);
        let function = |module: &Module, what: &str| {
            module.function(&format!("histogram_{what}_{}", kernels.suffix))
        };
        let count = u32::try_from(bins.count()).expect("bins have numbers of 32 bits");
        let optin = device.properties().shared_per_block_optin;
        let most_shared =
            |kernel: &Function| optin.saturating_sub(kernel.attributes().static_shared);
        let resident = |kernel: &Function, shared: u32| -> Result<u32, Error> {
            let blocks = Launch::new(kernel)
                .block(THREADS)
                .shared(shared)
                .max_resident()?;
            Ok(u32::try_from(blocks).unwrap_or(u32::MAX).max(1))
        };

        let bytes = u64::from(count) * 4;
        let fits = |kernel: &Function| bytes <= u64::from(most_shared(kernel));
        // What the kernels' own shared memory leaves no room for shows when they are there; what shows before is not
        // compiled.
        let few = bytes <= u64::from(optin);
        let packed = kernels.packed.filter(|_| {
            let wide = Ranges::of(count, 8, optin.saturating_sub(HOT_TABLE));
            (1..=MOST_RANGES).contains(&wide.count)
        });
        let mut needed = match (few, packed) {
            (true, _) => vec![kernels.shared],
            (false, Some(packed)) => vec![packed.counting(moves_keys).0, packed.plan, ROWS],
            (false, None) => vec![kernels.global],
        };
        needed.push(kernels.weigh);
        compile_together(&device, &needed);
        let mut plan = None;
        let in_shared = if few {
            Some(function(&load(&kernels.shared)?, "shared")?).filter(fits)
        } else {
            None
        };
        if let Some(in_shared) = in_shared {
            // Rules with tables have them there, too, if there is room.
            let with_tables = bytes.next_multiple_of(16) + table_bytes;
            let shared = if with_tables <= u64::from(most_shared(&in_shared)) {
                with_tables as u32
            } else {
                bytes as u32
            };
            plan = Some(Plan::Simple {
                resident: resident(&in_shared, shared)?,
                kernel: in_shared,
                shared,
            });
        } else if let Some(packed) = packed {
            let (source, what) = packed.counting(moves_keys);
            let kernel = function(&load(&source)?, what)?;
            let shared = most_shared(&kernel) / 16 * 16;
            let room = shared.saturating_sub(HOT_TABLE);
            let wide = Ranges::of(count, 8, room);
            let narrow = Ranges::of(count, 4, room);
            let resident = resident(&kernel, shared)?;
            if (1..=MOST_RANGES.min(resident / 4)).contains(&wide.count) {
                let choose = Some(function(&load(&packed.plan)?, "plan")?)
                    .filter(|choose| most_shared(choose) >= CELLS);
                // Samples of 2 bytes have too few values to fill more ranges than one: theirs hold bins for numbers
                // that no sample is. Their kernels have no counters of 4 bits (`may_be_narrow` in `kernels.cuh`).
                let narrow_pays = wide.count > 1 && choose.is_some() && size_of::<T>() > 2;
                plan = Some(Plan::Packed {
                    choose,
                    rows: load(&ROWS)?.function("histogram_rows")?,
                    kernel,
                    shared,
                    resident,
                    wide,
                    narrow: if narrow_pays { narrow } else { Ranges::NONE },
                    grouping: BinGrouping::of(count, room),
                });
            }
        }
        let plan = match plan {
            Some(plan) => plan,
            None => {
                let kernel = function(&load(&kernels.global)?, "global")?;
                Plan::Simple {
                    resident: resident(&kernel, HOT_TABLE)?,
                    kernel,
                    shared: HOT_TABLE,
                }
            }
        };
        let module = load(&kernels.weigh)?;
        let weigh = function(&module, "weigh_shared")?;
        let (weigh, weigh_shared) = if fits(&weigh) {
            (weigh, bytes as u32)
        } else {
            (function(&module, "weigh_global")?, 0)
        };
        Ok(Self {
            bins: bins.clone(),
            device,
            plan,
            weigh,
            weigh_shared,
            rule: RuleArgument::new(&argument(edges, cells)),
            _tables: tables,
        })
    }

    /// The bins.
    pub fn bins(&self) -> &Bins<T> {
        &self.bins
    }

    /// Memory for one stream.
    ///
    /// # Errors
    /// [`CudaError::is_out_of_memory`] tells whether there was too little.
    pub fn workspace(&self) -> Result<HistogramWorkspace, CudaError> {
        let rows = match self.plan {
            Plan::Simple { .. } => 0,
            Plan::Packed {
                shared, resident, ..
            } => (shared - HOT_TABLE) as usize * resident as usize,
        };
        Ok(HistogramWorkspace {
            rows: Buffer::new(&self.device, rows)?,
            decision: Buffer::new(&self.device, DECISION)?,
        })
    }

    /// Adds the number of samples in each bin to `totals`, one a bin, in order with the stream's other
    /// work. Returns at once; can be captured into a graph, which must not outlive `self`, and launches
    /// of which count as uses of `workspace`.
    ///
    /// `samples`: any place in a buffer. `workspace`: of this histogram, used by nothing else that runs
    /// at the same time, or the totals are unspecified. The same goes for writers of `totals`.
    ///
    /// # Errors
    /// Those of launches.
    ///
    /// # Panics
    /// If there is not one total a bin, or the workspace is another histogram's and too small.
    pub fn add_counts<'a, 'b>(
        &self,
        stream: &Stream,
        samples: impl Into<BufferRef<'a, T>>,
        totals: impl Into<BufferRef<'b, u64>>,
        workspace: &HistogramWorkspace,
    ) -> Result<(), Error> {
        let (samples, totals) = (samples.into(), totals.into());
        self.check(totals);
        let most = self.part(samples.len()).max(1);
        for start in (0..samples.len()).step_by(most) {
            let part = samples.range(start..(start + most).min(samples.len()));
            self.add_part(stream, part, totals, workspace)?;
        }
        Ok(())
    }

    /// Samples of one launch.
    fn part(&self, n: usize) -> usize {
        match &self.plan {
            Plan::Packed {
                narrow, resident, ..
            } if narrow.count > 0 => {
                let workers = (resident / narrow.count).max(1);
                let part = NARROW_PART * self.bins.count() as f64 * f64::from(workers);
                let parts = (n as f64 / part).ceil().max(1.0);
                // Parts of the same size, and loads aligned as those of the whole.
                let part = (n as f64 / parts).ceil() as usize;
                part.next_multiple_of(1 << 20).min(MOST_SAMPLES)
            }
            _ => MOST_SAMPLES,
        }
    }

    fn add_part(
        &self,
        stream: &Stream,
        samples: BufferRef<'_, T>,
        totals: BufferRef<'_, u64>,
        workspace: &HistogramWorkspace,
    ) -> Result<(), Error> {
        let n = samples.len();
        // Clearing and adding up a block's counters takes about as long as counting half as many samples.
        let worth = |resident: u32, bins: usize| {
            let blocks = n / SAMPLES_PER_BLOCK.max(bins / 2);
            u32::try_from(blocks).unwrap_or(u32::MAX).clamp(1, resident)
        };
        match &self.plan {
            Plan::Simple {
                kernel,
                shared,
                resident,
            } => {
                let blocks = worth(*resident, *shared as usize / 4);
                let launch = Launch::new(kernel)
                    .grid(blocks)
                    .block(THREADS)
                    .shared(*shared);
                // SAFETY: the arguments are those of the `shared_` and `global_` kernels, whose rule is
                // that of their source; they read `n` samples and add to totals of bins below their
                // number, which `check` found to be there. Freed buffers wait for the GPU's work; the
                // module is kept by the caller until the kernel has ended, see `Drop`.
                unsafe { launch.launch(stream, (samples, n as u64, self.rule, totals)) }?;
            }
            Plan::Packed {
                choose,
                kernel,
                rows,
                shared,
                resident,
                wide,
                narrow,
                grouping,
            } => {
                let choose = choose.as_ref().filter(|_| n >= PLANNED_FROM);
                let narrow = if choose.is_some() {
                    *narrow
                } else {
                    Ranges::NONE
                };
                let ranges = wide.count.max(narrow.count);
                let blocks = worth(resident / ranges, wide.span as usize) * ranges;
                let blocks = if blocks / ranges == resident / ranges {
                    *resident
                } else {
                    blocks
                };
                // A range must have a block, however few samples it has.
                let choose = choose.filter(|_| blocks >= 3 * ranges);
                let (wide, narrow) = (ByValue(*wide), ByValue(narrow));
                let grouping = ByValue(*grouping);
                let decision = match choose {
                    Some(choose) => {
                        let args = (
                            samples,
                            n as u64,
                            self.rule,
                            wide,
                            narrow,
                            grouping,
                            blocks,
                            &workspace.decision,
                        );
                        let launch = Launch::new(choose).block(THREADS).shared(CELLS);
                        // SAFETY: as above; it writes a `plan`, for which there is room.
                        unsafe { launch.launch(stream, args) }?;
                        workspace.decision.address()
                    }
                    None => 0,
                };
                let bytes = (shared - HOT_TABLE) as usize * blocks as usize;
                assert!(
                    bytes <= workspace.rows.len(),
                    "another histogram's workspace"
                );
                let launch = Launch::new(kernel)
                    .grid(blocks)
                    .block(THREADS)
                    .shared(*shared)
                    .overlapping();
                let args = (
                    samples,
                    n as u64,
                    self.rule,
                    totals,
                    wide,
                    narrow,
                    grouping,
                    decision,
                    &workspace.rows,
                );
                // SAFETY: as above; each block has room for its row, by the assertion. It waits for the
                // plan before it touches memory other than shared memory.
                unsafe { launch.launch(stream, args) }?;
                let words = (wide.0.span / 4)
                    .max(narrow.0.span / 8)
                    .max(grouping.0.room / 4);
                let launch = Launch::new(rows)
                    .grid((words.div_ceil(32), ranges))
                    .block((32, 8))
                    .overlapping();
                let args = (
                    &workspace.rows,
                    decision,
                    blocks,
                    wide,
                    narrow,
                    grouping,
                    self.bins.count() as u32,
                    totals,
                );
                // SAFETY: it reads the rows that the kernel before has written, in the same layout, once
                // it has waited for it.
                unsafe { launch.launch(stream, args) }?;
            }
        }
        Ok(())
    }

    /// Adds the weights of the samples in each bin to `totals`, modulo 2^64; otherwise as
    /// [`add_counts`](Self::add_counts). Needs no workspace.
    ///
    /// # Errors
    /// Those of launches.
    ///
    /// # Panics
    /// If there is not one total a bin or one weight a sample.
    pub fn add_weights<'a, 'b, 'c>(
        &self,
        stream: &Stream,
        samples: impl Into<BufferRef<'a, T>>,
        weights: impl Into<BufferRef<'b, u32>>,
        totals: impl Into<BufferRef<'c, u64>>,
    ) -> Result<(), Error> {
        let (samples, weights, totals) = (samples.into(), weights.into(), totals.into());
        self.check(totals);
        assert_eq!(samples.len(), weights.len(), "one weight a sample");
        let (n, shared) = (samples.len(), self.weigh_shared);
        let launch = Launch::new(&self.weigh).block(THREADS).shared(shared);
        let resident = u32::try_from(launch.max_resident()?).unwrap_or(u32::MAX);
        let blocks = n / SAMPLES_PER_BLOCK.max(shared as usize / 8);
        let blocks = u32::try_from(blocks)
            .unwrap_or(u32::MAX)
            .clamp(1, resident.max(1));
        // SAFETY: as in `add_part`; there are `n` weights.
        unsafe {
            let args = (samples, weights, n as u64, self.rule, totals);
            launch.grid(blocks).launch(stream, args)
        }?;
        Ok(())
    }

    fn check(&self, totals: BufferRef<'_, u64>) {
        assert_eq!(totals.len(), self.bins.count(), "one total a bin");
    }
}

impl<T: DeviceSample> Drop for DeviceHistogram<T> {
    fn drop(&mut self) {
        // Its module goes with it, and kernels may still be running.
        let _ = self.device.synchronize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_all_bins_and_fit() {
        for (bits, bytes) in [(8, 223_232), (4, 223_232), (8, 90_000)] {
            for bins in [
                1,
                127,
                128,
                129,
                58_113,
                223_232,
                223_233,
                262_144,
                1 << 20,
                4_000_000,
            ] {
                let Ranges { count, span } = Ranges::of(bins, bits, bytes);
                assert!(span * bits / 8 <= bytes && span % 128 == 0);
                assert!(
                    count * span >= bins && (count - 1) * span < bins,
                    "{bins} {count} {span}"
                );
            }
        }
        assert_eq!(Ranges::of(5, 8, 100), Ranges::NONE);
    }

    #[test]
    fn there_are_enough_bin_groups() {
        for bins in [1, 58_113, 262_144, 262_145, 1 << 20, 4_400_000] {
            let BinGrouping { group_bits, room } = BinGrouping::of(bins, 223_232);
            assert!(
                group_bits >= 8 && bins.div_ceil(1 << group_bits) <= MOST_GROUPS,
                "{bins}"
            );
            assert!(room % 128 == 0 && room + 4 * MOST_GROUPS <= 223_232);
        }
    }
}
