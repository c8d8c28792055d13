//! Sums on the GPU.
#![allow(unsafe_code)] // Launches kernels.

use crosswarp_cuda::{
    Buffer, BufferRef, Function, Launch, Module, Pod, PreparedLaunch, grid_state_bytes,
};
use crosswarp_prim::cuda::DeviceReducer;
use crosswarp_prim::{DType, Element, Op, ReduceError};
use half::f16;

use super::super::error::LadderError;
use super::super::inputs::{exact_sum, grouped, narrow_summand, sum_in_f16, sum_work, summand};
use super::super::kernels::{REDUCE, REDUCE_F16};
use super::super::peers::cub;
use super::super::rung::{Check, RungKind};
use super::ladder_run::{Call, LadderRun, RungSpec, resident};
use crate::measure::RotatingBuffers;

/// Threads of a block of every rung.
const THREADS: u32 = 256;
const CLUSTER: u32 = 8;

/// How a variant is launched.
enum Shape {
    /// A thread per element.
    ThreadPerElement,
    /// A thread per element, and a second launch for the blocks' sums.
    Parts,
    /// The same, with a scratch array as long as the input.
    PartsWithScratch,
    /// As many blocks as are resident.
    Resident,
    /// As many blocks as are resident, and a second launch for their sums.
    TwoPass,
    /// As many blocks as are resident, with a grid barrier.
    Cooperative,
    /// As many blocks as are resident, with their sums and a count of blocks that have ended.
    LastBlock,
    /// As many clusters as are resident.
    Clusters,
}

struct Variant {
    kernel: &'static str,
    kind: RungKind,
    shape: Shape,
    why: &'static str,
}

const fn textbook(kernel: &'static str, shape: Shape, why: &'static str) -> Variant {
    Variant {
        kernel,
        kind: RungKind::Textbook,
        shape,
        why,
    }
}

const F32: [Variant; 19] = [
    Variant {
        kernel: "racy",
        kind: RungKind::Wrong,
        shape: Shape::ThreadPerElement,
        why: "Wrong on purpose: threads load the same old value, and all but a few additions are lost.",
    },
    textbook(
        "atomic_per_element",
        Shape::ThreadPerElement,
        "Right, but all additions queue up at one address of the level-2 cache, one in about 2 ns.",
    ),
    textbook(
        "lane0_per_warp",
        Shape::ThreadPerElement,
        "A thirty-second of the atomics, and they still are the queue that everything waits in.",
    ),
    textbook(
        "thread0_per_block",
        Shape::ThreadPerElement,
        "One atomic for 256 elements; what remains of the queue hides that one thread adds them all.",
    ),
    textbook(
        "global_tree",
        Shape::PartsWithScratch,
        "No atomics: the blocks' sums go to an array that a second launch adds. But each of the tree's 8 steps goes through global memory.",
    ),
    textbook(
        "interleaved_divergent",
        Shape::Parts,
        "The tree in shared memory; its test leaves a few lanes busy in every warp.",
    ),
    textbook(
        "interleaved_strided",
        Shape::Parts,
        "Whole warps work or rest, but strides of 2, 4, 8 words meet in the same banks.",
    ),
    textbook(
        "sequential",
        Shape::Parts,
        "Neighbouring threads, neighbouring words: no conflict, no divergence.",
    ),
    textbook(
        "warp_shuffle",
        Shape::ThreadPerElement,
        "No shared memory and no barrier, but an atomic a warp: the queue is back.",
    ),
    textbook(
        "block_shuffle",
        Shape::Parts,
        "Shuffles in the warps and one barrier; each thread still has only one element, and blocks come and go.",
    ),
    textbook(
        "grid_stride_1",
        Shape::Resident,
        "Only as many blocks as are resident, each with many elements: one load in flight a thread.",
    ),
    textbook(
        "grid_stride_2",
        Shape::Resident,
        "Two independent loads in flight a thread.",
    ),
    textbook(
        "grid_stride_4",
        Shape::Resident,
        "Four loads in flight: more of the bytes that Little's law asks for.",
    ),
    textbook(
        "grid_stride_8",
        Shape::Resident,
        "Eight loads in flight: all that the memory can take were there with four.",
    ),
    textbook(
        "wide_loads",
        Shape::Resident,
        "Four loads of 16 bytes in flight: fewer instructions for more bytes.",
    ),
    textbook(
        "two_pass",
        Shape::TwoPass,
        "No atomics and nothing to zero, at the price of a second launch.",
    ),
    textbook(
        "cooperative",
        Shape::Cooperative,
        "One launch; the blocks meet at a barrier of the whole grid.",
    ),
    textbook(
        "cluster_dsm",
        Shape::Clusters,
        "Blocks of a cluster add over distributed shared memory: an eighth of the atomics, and barriers of clusters.",
    ),
    textbook(
        "last_block",
        Shape::LastBlock,
        "One launch without a barrier: whichever block ends last adds up.",
    ),
];

/// Kernel, elements of f16 that its threads add in accumulators of f16 side by side, why.
const F16: [(&str, Option<usize>, &str); 5] = [
    (
        "f16_plain",
        Some(1),
        "Two bytes a load, and accumulators of 11 bits: one that holds 2048 drops the ones that follow.",
    ),
    (
        "f16_pairs",
        Some(2),
        "half2: two elements a load and an addition, in accumulators that still drop ones.",
    ),
    (
        "f16_plain_f32",
        None,
        "Widened before adding: exact here and no slower, for the loads of two bytes are the limit.",
    ),
    (
        "f16_pairs_f32",
        None,
        "half2 loads, f32 accumulators: the width of the loads is what counts.",
    ),
    (
        "f16_wide_f32",
        None,
        "Eight elements a load, four loads in flight, f32 accumulators.",
    ),
];

pub fn run(run: &mut LadderRun) -> Result<(), LadderError> {
    let n = run.size();
    let out = Buffer::new(&run.device, 1)?;
    run.group = format!("sum of {} f32", grouped(n));
    {
        let x: Vec<f32> = (0..n).map(summand).collect();
        let x = run.inputs(&x)?;
        let module = Module::compile(&run.device, &REDUCE)?;
        let mut bench = Bench::new(run, &x, &out, exact_sum(n));
        for variant in &F32 {
            bench.variant(&module, variant)?;
        }
        bench.own(DType::F32)?;
        bench.peer(cub::Element::F32)?;
    }
    run.group = format!("sum of {} f16", grouped(n));
    let values: Vec<f16> = (0..n).map(|k| narrow_summand(k, n)).collect();
    let expected = values.iter().map(|value| value.to_f64()).sum();
    let x = run.inputs(&values)?;
    let module = Module::compile(&run.device, &REDUCE_F16)?;
    let mut bench = Bench::new(run, &x, &out, expected);
    for (kernel, side_by_side, why) in F16 {
        bench.rounded = match side_by_side {
            Some(elements) => {
                let kernel = module.function(kernel)?;
                let threads = resident(&kernel, THREADS, 0)? * THREADS;
                Some(sum_in_f16(&values, elements * threads as usize))
            }
            None => None,
        };
        bench.variant(&module, &textbook(kernel, Shape::Resident, why))?;
    }
    bench.own(DType::F16)?;
    bench.peer(cub::Element::F16)
}

/// One input and where its sum goes.
struct Bench<'c, 'o, T: Pod> {
    run: &'c mut LadderRun<'o>,
    x: &'c RotatingBuffers<T>,
    n: u32,
    out: &'c Buffer<f32>,
    expected: f64,
    /// What the next variant gives instead, if it adds in f16.
    rounded: Option<f64>,
}

impl<'c, 'o, T: Pod> Bench<'c, 'o, T> {
    fn new(
        run: &'c mut LadderRun<'o>,
        x: &'c RotatingBuffers<T>,
        out: &'c Buffer<f32>,
        expected: f64,
    ) -> Self {
        // At most 2^30 elements, see `Subject::check`.
        let n = run.size() as u32;
        Self {
            run,
            x,
            n,
            out,
            expected,
            rounded: None,
        }
    }

    fn variant(&mut self, module: &Module, variant: &Variant) -> Result<(), LadderError> {
        let Some(kernel) = LadderRun::kernel(module, variant.kernel)? else {
            let note = format!("{}: not on this GPU", variant.kernel);
            self.run.notes.push(note);
            return Ok(());
        };
        let device = self.run.device;
        let per_element = self.n.div_ceil(THREADS);
        let blocks = match variant.shape {
            Shape::ThreadPerElement | Shape::Parts | Shape::PartsWithScratch => per_element,
            Shape::Clusters => {
                let launch = Launch::new(&kernel).block(THREADS).cluster(CLUSTER);
                u32::try_from(launch.max_resident()?).unwrap_or(u32::MAX)
            }
            _ => resident(&kernel, THREADS, 0)?,
        };
        let parts = Buffer::<f32>::new(&device, blocks as usize)?;
        let scratch_len = match variant.shape {
            Shape::PartsWithScratch => blocks as usize * THREADS as usize,
            _ => 0,
        };
        let scratch = Buffer::<f32>::new(&device, scratch_len)?;
        let state = Buffer::<u8>::zeroed(&self.run.stream, grid_state_bytes(blocks as usize))?;
        let launch = Launch::new(&kernel).grid(blocks).block(THREADS);
        let launch = match variant.shape {
            Shape::Cooperative => launch.cooperative(),
            Shape::Clusters => launch.cluster(CLUSTER),
            _ => launch,
        };
        let launch = launch.prepare()?;
        let second_kernel: Option<Function> = match variant.shape {
            Shape::Parts | Shape::PartsWithScratch | Shape::TwoPass => {
                Some(module.function("add_parts")?)
            }
            _ => None,
        };
        let second: Option<PreparedLaunch> = match &second_kernel {
            Some(kernel) => Some(Launch::new(kernel).block(1024).prepare()?),
            None => None,
        };
        let (x, n, out) = (self.x, self.n, BufferRef::from(self.out));
        let mut call = |stream: &crosswarp_cuda::Stream, number: usize| {
            let x = x.get(number);
            // SAFETY: x has n elements, an even number, and is aligned to 256 bytes; `out` has one
            // element, `parts` one per block, `scratch` one per thread if it is used, `state` is that of a
            // grid of `blocks` blocks, or an integer that is zero between launches. All live as long as
            // `call`, which the measurement does not outlast.
            unsafe {
                match variant.shape {
                    Shape::ThreadPerElement | Shape::Resident | Shape::Clusters => {
                        stream.zero(out)?;
                        launch.launch(stream, (x, n, out))?;
                    }
                    Shape::Parts | Shape::TwoPass => launch.launch(stream, (x, n, &parts))?,
                    Shape::PartsWithScratch => launch.launch(stream, (x, n, &parts, &scratch))?,
                    Shape::Cooperative => launch.launch(stream, (x, n, out, &state))?,
                    Shape::LastBlock => launch.launch(stream, (x, n, out, &parts, &state))?,
                }
                if let Some(second) = &second {
                    second.launch(stream, (&parts, blocks, out))?;
                }
            }
            Ok(())
        };
        let name = variant.kernel.replace('_', " ");
        let spec = RungSpec {
            name: &name,
            kind: variant.kind,
            why: variant.why,
            work: sum_work(self.n as usize, size_of::<T>()),
            occupancy: self.run.occupancy(&kernel, THREADS, 0),
        };
        // SAFETY: all buffers and kernels of `call` are borrowed or owned here.
        unsafe { self.measure(spec, &mut call) }
    }

    /// Crosswarp's reproducible sum, of elements of type `dtype`, which is T's.
    fn own(&mut self, dtype: DType) -> Result<(), LadderError>
    where
        T: Element,
    {
        let failed = |error: ReduceError| LadderError::Rung {
            rung: "crosswarp",
            reason: error.to_string(),
        };
        let stream = self.run.stream.clone();
        let reducer = DeviceReducer::new(&self.run.device);
        reducer.prepare(Op::Sum, dtype).map_err(failed)?;
        let mut workspace = reducer.workspace(&stream).map_err(failed)?;
        let result = &Buffer::<u64>::new(&self.run.device, 1)?;
        let (x, expected) = (self.x, self.expected);
        // The workspace's stream is the one that is measured.
        let mut call = |_: &crosswarp_cuda::Stream, number: usize| {
            let input = [BufferRef::from(x.get(number))];
            reducer
                .enqueue::<T>(Op::Sum, &mut workspace, &input, None, result.into())
                .map_err(failed)
        };
        let spec = RungSpec {
            name: "crosswarp",
            kind: RungKind::Crosswarp,
            why: "One launch, loads of 16 bytes all in flight, and leaves that meet exactly: the same bits on any machine.",
            work: sum_work(self.n as usize, size_of::<T>()),
            occupancy: None,
        };
        let mut poison = |stream: &crosswarp_cuda::Stream| Ok(stream.write(result, &[u64::MAX])?);
        let mut verify = |stream: &crosswarp_cuda::Stream| {
            // The sum is an f32, its bits zero-extended.
            let got = f32::from_bits(result.to_vec(stream)?[0] as u32);
            Ok(Check::of(f64::from(got), expected, 0.0))
        };
        // SAFETY: all buffers and kernels of `call` are borrowed or owned here.
        unsafe {
            self.run
                .rung(spec, x.count(), &mut call, &mut poison, &mut verify)
        }
    }

    /// CUB's sum, if CUB and a compiler for it are there.
    fn peer(&mut self, element: cub::Element) -> Result<(), LadderError> {
        let sum = match cub::Sum::find(&self.run.device, element, self.n) {
            Ok(sum) => sum,
            Err(reason) => {
                let note = format!("CUB: {reason}");
                if !self.run.notes.contains(&note) {
                    self.run.notes.push(note);
                }
                return Ok(());
            }
        };
        let (x, out) = (self.x, BufferRef::from(self.out));
        let mut call = |stream: &crosswarp_cuda::Stream, number: usize| {
            // SAFETY: x has the n elements of the type that `sum` was made for, `out` has one f32; both
            // live as long as `call`.
            unsafe { sum.launch(stream, x.get(number).address(), out.address()) }
        };
        let spec = RungSpec {
            name: "CUB",
            kind: RungKind::Peer,
            why: "NVIDIA's library: tuned per GPU and type, in one or two launches.",
            work: sum_work(self.n as usize, size_of::<T>()),
            occupancy: None,
        };
        // SAFETY: as above.
        unsafe { self.measure(spec, &mut call) }
    }

    /// # Safety
    /// As [`LadderRun::rung`].
    unsafe fn measure(&mut self, spec: RungSpec, call: &mut Call) -> Result<(), LadderError> {
        let Self {
            run,
            x,
            out,
            expected,
            rounded,
            ..
        } = self;
        let wrong_on_purpose = spec.kind == RungKind::Wrong;
        let (out, expected, rounded) = (*out, *expected, *rounded);
        let mut verify = |stream: &crosswarp_cuda::Stream| {
            let got = f64::from(out.to_vec(stream)?[0]);
            Ok(if wrong_on_purpose {
                Check::WrongOnPurpose(((got - expected) / expected).abs())
            } else if got != expected && rounded == Some(got) {
                Check::AsF16Rounds(((got - expected) / expected).abs())
            } else {
                Check::of(got, rounded.unwrap_or(expected), 0.0)
            })
        };
        let mut poison = |stream: &crosswarp_cuda::Stream| Ok(stream.write(out, &[f32::NAN])?);
        // SAFETY: the caller's promise.
        unsafe { run.rung(spec, x.count(), call, &mut poison, &mut verify) }
    }
}
