//! Histograms on the GPU.
#![allow(unsafe_code)] // Launches kernels.

use crosswarp_cuda::{Buffer, BufferRef, Launch, Module, Stream};
use crosswarp_prim::cuda::DeviceHistogram;
use crosswarp_prim::histogram::Bins;

use super::super::error::LadderError;
use super::super::inputs::{exact_histogram, grouped, histogram_work, sample};
use super::super::kernels::HISTOGRAM;
use super::super::peers::cub;
use super::super::rung::{Check, RungKind};
use super::ladder_run::{Call, LadderRun, RungSpec, resident};
use crate::measure::RotatingBuffers;

const THREADS: u32 = 512;
const CLUSTER: u32 = 8;

/// Few bins, and more than a block's shared memory holds.
const BINS: [u32; 2] = [256, 65_536];

struct Variant {
    kernel: &'static str,
    why: &'static str,
    /// How many blocks share a histogram in shared memory; `None` if there is none.
    shared_by: Option<u32>,
}

const VARIANTS: [Variant; 4] = [
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
    Variant {
        kernel: "cluster_dsm",
        why: "A histogram per cluster of 8 blocks, over distributed shared memory: eight times the bins.",
        shared_by: Some(CLUSTER),
    },
];

pub fn run(run: &mut LadderRun) -> Result<(), LadderError> {
    let module = Module::compile(&run.device, &HISTOGRAM)?;
    for bins in BINS {
        let n = run.size();
        run.group = format!(
            "histogram of {} samples in {} bins",
            grouped(n),
            grouped(bins as usize)
        );
        // Below 2^31, so the bits are those of the u32 that the textbook's kernels read.
        let samples: Vec<i32> = (0..n).map(|index| sample(index, bins) as i32).collect();
        let mut bench = Bench {
            x: &run.inputs(&samples)?,
            counts: &Buffer::new(&run.device, bins as usize)?,
            expected: exact_histogram(n, bins),
            run: &mut *run,
            bins,
        };
        for variant in &VARIANTS {
            bench.variant(&module, variant)?;
        }
        bench.own()?;
        bench.peer()?;
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
        let Some(kernel) = LadderRun::kernel(module, variant.kernel)? else {
            let note = format!("{}: not on this GPU", variant.kernel);
            self.run.notes.push(note);
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
        let launch = match variant.shared_by {
            Some(blocks) if blocks > 1 => {
                let launch = launch.cluster(blocks);
                let grid = launch.max_resident()?;
                launch.grid(u32::try_from(grid).unwrap_or(u32::MAX))
            }
            _ => launch.grid(resident(&kernel, THREADS, shared)?),
        };
        let launch = launch.prepare()?;
        // At most 2^30 samples, see `Subject::check`.
        let (n, bins) = (self.run.size() as u32, self.bins);
        let (x, counts) = (self.x, BufferRef::from(self.counts));
        let mut call = |stream: &Stream, number: usize| {
            stream.zero(counts)?;
            // SAFETY: x has n numbers below `bins`, `counts` has `bins`, and the block (or its cluster)
            // has shared memory for as many; both live as long as `call`, which the measurement does
            // not outlast.
            unsafe { launch.launch(stream, (x.get(number), n, counts, bins)) }?;
            Ok(())
        };
        let spec = RungSpec {
            name: &variant.kernel.replace('_', " "),
            kind: RungKind::Textbook,
            why: variant.why,
            work: histogram_work(n as usize, bins),
            occupancy: self.run.occupancy(&kernel, THREADS, shared),
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
        let bins = bins.map_err(|error| failed(error.to_string()))?;
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

    fn peer(&mut self) -> Result<(), LadderError> {
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
        let (x, counts) = (self.x, BufferRef::from(self.counts));
        let mut call = |stream: &Stream, number: usize| {
            // SAFETY: x has the n samples and `counts` the bins that `histogram` was made for; both
            // live as long as `call`.
            unsafe { histogram.launch(stream, x.get(number).address(), counts.address()) }
        };
        let spec = RungSpec {
            name: "CUB",
            kind: RungKind::Peer,
            why: "NVIDIA's library: private histograms in shared memory up to 256 bins.",
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
