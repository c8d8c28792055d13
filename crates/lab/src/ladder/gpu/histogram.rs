//! Histograms on the GPU.
#![allow(unsafe_code)] // Launches kernels.

use crosswarp_cuda::{Buffer, BufferRef, Function, Launch, Module, Stream};
use crosswarp_prim::cuda::DeviceHistogram;
use crosswarp_prim::histogram::{Bins, OutOfRange};

use super::super::error::LadderError;
use super::super::inputs::{bin_of, exact_histogram, grouped, histogram_work, sample};
use super::super::kernels::HISTOGRAM;
use super::super::peers::cub;
use super::super::rung::{Check, RungKind};
use super::ladder_run::{Call, LadderRun, RungSpec, resident};
use crate::measure::RotatingBuffers;

const THREADS: u32 = 512;
/// Blocks of a cluster. More than 8 are not portable: where a GPU has no place for them there is a note.
const CLUSTERS: [u32; 5] = [1, 2, 4, 8, 16];

/// Few bins, and more than a block's shared memory holds.
const BINS: [u32; 2] = [256, 65_536];

struct Variant {
    kernel: &'static str,
    why: &'static str,
    /// How many blocks share a histogram in shared memory; `None` if there is none.
    shared_by: Option<u32>,
}

const VARIANTS: [Variant; 3] = [
    Variant {
        kernel: "global_atomics",
        why: "Every sample is an atomic in the level-2 cache; equal samples queue up there.",
        shared_by: None,
    },
    Variant {
        kernel: "shared_atomics",
        why: "A histogram per block in shared memory: atomics stay on the SM, one flush at the end.",
        shared_by: Some(1),
    },
    Variant {
        kernel: "shared_wide",
        why: "The same with 16-byte loads, two of them in flight.",
        shared_by: Some(1),
    },
];

const DSM: &str = "cluster_dsm";
const CHOSEN: &str = "A histogram per cluster over distributed shared memory; this is the smallest cluster that holds the bins, as the textbook chooses it.";
const LARGER: &str =
    "The same in larger clusters: fewer bins a block, more samples over the cluster's network.";

pub fn run(run: &mut LadderRun) -> Result<(), LadderError> {
    let module = Module::compile(&run.device, &HISTOGRAM)?;
    let asked = run.options.bins.as_ref().map(std::slice::from_ref);
    for &bins in asked.unwrap_or(&BINS) {
        let n = run.size();
        run.group = format!(
            "histogram of {} samples in {} bins",
            grouped(n),
            grouped(bins as usize)
        );
        let samples: Vec<i32> = (0..n).map(|index| sample(index, bins)).collect();
        let mut bench = Bench {
            x: &run.inputs(&samples)?,
            counts: &Buffer::new(&run.device, bins as usize)?,
            expected: exact_histogram(&samples, bins),
            run: &mut *run,
            bins,
        };
        for variant in &VARIANTS {
            bench.variant(&module, variant)?;
        }
        bench.clusters(&module)?;
        bench.own()?;
        bench.peer(&samples)?;
    }
    Ok(())
}

struct Bench<'c, 'o> {
    run: &'c mut LadderRun<'o>,
    x: &'c RotatingBuffers<i32>,
    bins: u32,
    counts: &'c Buffer<u32>,
    expected: Vec<u32>,
}

impl Bench<'_, '_> {
    fn variant(&mut self, module: &Module, variant: &Variant) -> Result<(), LadderError> {
        let Some(kernel) = self.kernel(module, variant.kernel)? else {
            return Ok(());
        };
        let shared = variant
            .shared_by
            .map_or(0, |blocks| 4 * self.bins.div_ceil(blocks));
        let most = self.run.device.properties().shared_per_block_optin;
        if shared + kernel.attributes().static_shared > most {
            let note = format!(
                "{}: {} bins do not fit in {most} bytes of shared memory",
                variant.kernel, self.bins
            );
            self.run.notes.push(note);
            return Ok(());
        }
        let launch = Launch::new(&kernel).block(THREADS).shared(shared);
        let launch = launch.grid(resident(&kernel, THREADS, shared)?);
        let name = variant.kernel.replace('_', " ");
        self.launched(&name, variant.why, &kernel, launch, shared)
    }

    /// A kernel of the textbook, or a note if this GPU has none.
    fn kernel(&mut self, module: &Module, name: &str) -> Result<Option<Function>, LadderError> {
        let kernel = LadderRun::kernel(module, name)?;
        if kernel.is_none() {
            self.run.notes.push(format!("{name}: not on this GPU"));
        }
        Ok(kernel)
    }

    /// The sizes of clusters side by side, from the smallest that holds the bins.
    fn clusters(&mut self, module: &Module) -> Result<(), LadderError> {
        let Some(kernel) = self.kernel(module, DSM)? else {
            return Ok(());
        };
        let most = self.run.device.properties().shared_per_block_optin;
        let room = most - kernel.attributes().static_shared;
        let mut why = CHOSEN;
        for blocks in CLUSTERS {
            let shared = 4 * self.bins.div_ceil(blocks);
            if shared > room {
                continue;
            }
            let launch = Launch::new(&kernel)
                .block(THREADS)
                .shared(shared)
                .cluster(blocks);
            let grid = match launch.max_resident() {
                Ok(grid) if grid > 0 => u32::try_from(grid).unwrap_or(u32::MAX),
                _ => {
                    let note = format!("cluster dsm, {blocks} blocks: no place on this GPU");
                    self.run.notes.push(note);
                    continue;
                }
            };
            let name = match blocks {
                1 => "cluster dsm, 1 block".to_owned(),
                _ => format!("cluster dsm, {blocks} blocks"),
            };
            self.launched(&name, why, &kernel, launch.grid(grid), shared)?;
            why = LARGER;
        }
        if why == CHOSEN {
            let (bins, blocks) = (self.bins, CLUSTERS[CLUSTERS.len() - 1]);
            let note = format!("cluster dsm: {blocks} blocks do not hold {bins} bins");
            self.run.notes.push(note);
        }
        Ok(())
    }

    /// Measures `launch` of a textbook's kernel.
    fn launched(
        &mut self,
        name: &str,
        why: &'static str,
        kernel: &Function,
        launch: Launch<'_>,
        shared: u32,
    ) -> Result<(), LadderError> {
        let launch = launch.prepare()?;
        // At most 2^30 samples, see `Subject::check`.
        let (n, bins) = (self.run.size() as u32, self.bins);
        let (x, counts) = (self.x, BufferRef::from(self.counts));
        let mut call = |stream: &Stream, number: usize| {
            stream.zero(counts)?;
            // SAFETY: x has n numbers, `counts` has `bins`, and the block (or its cluster) has shared memory
            // for as many; both live as long as `call`, which the measurement does not outlast.
            unsafe { launch.launch(stream, (x.get(number), n, counts, bins)) }?;
            Ok(())
        };
        let spec = RungSpec {
            name,
            kind: RungKind::Textbook,
            why,
            work: histogram_work(n as usize, bins),
            occupancy: self.run.occupancy(kernel, THREADS, shared),
        };
        // SAFETY: all buffers and kernels of `call` are borrowed or owned here.
        unsafe { self.measure(spec, &mut call) }
    }

    fn own(&mut self) -> Result<(), LadderError> {
        let failed = |reason: String| LadderError::Rung {
            rung: "crosswarp",
            reason,
        };
        let stream = self.run.stream.clone();
        let bins = Bins::<i32>::integers(0, self.bins.into());
        let bins = bins
            .map_err(|error| failed(error.to_string()))?
            .out_of_range(OutOfRange::Clamp);
        let histogram = DeviceHistogram::new(&stream, &bins)?;
        let workspace = histogram.workspace()?;
        let totals = &Buffer::<u64>::new(&self.run.device, self.expected.len())?;
        let x = self.x;
        let mut call = |stream: &Stream, number: usize| {
            stream.zero(totals)?;
            histogram.add_counts(stream, x.get(number), totals, &workspace)?;
            Ok(())
        };
        let spec = RungSpec {
            name: "crosswarp",
            kind: RungKind::Crosswarp,
            why: "Private histograms in shared memory up to 58,112 bins; beyond, narrow digits that know their overflows.",
            work: histogram_work(self.run.size(), self.bins),
            occupancy: None,
        };
        let expected: Vec<u64> = self.expected.iter().map(|&count| count.into()).collect();
        let poisoned = vec![u64::MAX; expected.len()];
        let mut poison = |stream: &Stream| Ok(stream.write(totals, &poisoned)?);
        let mut verify = |stream: &Stream| Ok(Check::of_slices(&totals.to_vec(stream)?, &expected));
        // SAFETY: all buffers and kernels of `call` are borrowed or owned here.
        unsafe {
            self.run
                .rung(spec, x.count(), &mut call, &mut poison, &mut verify)
        }
    }

    /// CUB drops samples that are outside, so it gets them moved into the first or last bin.
    fn peer(&mut self, samples: &[i32]) -> Result<(), LadderError> {
        let n = self.run.size() as u32;
        let histogram = match cub::Histogram::find(&self.run.device, n, self.bins) {
            Ok(histogram) => histogram,
            Err(reason) => {
                let note = format!("CUB: {reason}");
                if !self.run.notes.contains(&note) {
                    self.run.notes.push(note);
                }
                return Ok(());
            }
        };
        let inside: Vec<i32> = samples
            .iter()
            .map(|&sample| bin_of(sample, self.bins) as i32)
            .collect();
        let (x, counts) = (self.run.inputs(&inside)?, BufferRef::from(self.counts));
        let mut call = |stream: &Stream, number: usize| {
            // SAFETY: x has the n samples and `counts` the bins that `histogram` was made for; both
            // live as long as `call`.
            unsafe { histogram.launch(stream, x.get(number).address(), counts.address()) }
        };
        let spec = RungSpec {
            name: "CUB",
            kind: RungKind::Peer,
            why: "NVIDIA's library: private histograms in shared memory up to 256 bins. Its samples are in range already.",
            work: histogram_work(n as usize, self.bins),
            occupancy: None,
        };
        // SAFETY: as above.
        unsafe { self.measure(spec, &mut call) }
    }

    /// # Safety
    /// As [`LadderRun::rung`].
    unsafe fn measure(&mut self, spec: RungSpec, call: &mut Call) -> Result<(), LadderError> {
        let (counts, expected) = (self.counts, &self.expected);
        let poisoned = vec![u32::MAX; expected.len()];
        let mut poison = |stream: &Stream| Ok(stream.write(counts, &poisoned)?);
        let mut verify = |stream: &Stream| Ok(Check::of_slices(&counts.to_vec(stream)?, expected));
        // SAFETY: the caller's promise.
        unsafe {
            self.run
                .rung(spec, self.x.count(), call, &mut poison, &mut verify)
        }
    }
}
