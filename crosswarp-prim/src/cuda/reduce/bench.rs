//! Measuring sums on a GPU: the rows that `bench/peers/cub_reduce.cu` measures of CUB, in the same way.
#![allow(unsafe_code)] // Runs graphs.

use crosswarp_cuda::{Buffer, BufferRef, Device, Event, Graph, Stream};
use half::f16;

use crate::cuda::{DeviceReducer, ReduceWorkspace};
use crate::{DType, Element, Op, ReduceError};

/// Bytes over which cold calls rotate, and which are read between repetitions: several times the
/// second-level cache.
const COLD_BYTES: usize = 512 << 20;
/// Most calls of a graph.
const CALLS: usize = 100;
/// Repetitions that count, after one that does not.
const REPETITIONS: usize = 9;

/// How the calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceCalls {
    /// In a graph, each on other memory, none of it in the cache.
    ColdGraph,
    /// In a graph, all on the same memory.
    HotGraph,
    /// Given to a stream one by one, each on other memory, none of it in the cache.
    ColdStream,
}

impl ReduceCalls {
    /// Short name, for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ColdGraph => "cold_graph",
            Self::HotGraph => "hot_graph",
            Self::ColdStream => "cold_stream",
        }
    }
}

/// One measured row: sums of `elements` elements; times are of one call, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReduceBenchRow {
    /// Type of the elements.
    pub dtype: DType,
    /// Elements of a call.
    pub elements: usize,
    /// Bytes of a call.
    pub bytes: usize,
    /// How the calls are made.
    pub calls: ReduceCalls,
    /// ReduceCalls of a repetition.
    pub iterations: usize,
    /// Repetitions that count.
    pub repetitions: usize,
    /// Median.
    pub us: f64,
    /// Shortest.
    pub us_min: f64,
    /// Longest.
    pub us_max: f64,
}

/// Measures sums of `f32`, `f16`, `f64` and `i32` of 2^10 to 2^30 elements on `device` and hands each row to
/// `report`. Sizes that do not fit into half of the free memory are left out.
///
/// # Errors
/// [`ReduceError::Cuda`].
pub fn bench_reduce(
    device: &Device,
    mut report: impl FnMut(&ReduceBenchRow),
) -> Result<(), ReduceError> {
    let bench = Bench::new(device)?;
    let sizes = [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
    bench.sums(&sizes, |r| (r >> 9) as f32 / 4e6 - 1.0, &mut report)?;
    bench.sums(
        &sizes,
        |r| f16::from_f32((r >> 9) as f32 / 4e6 - 1.0),
        &mut report,
    )?;
    bench.sums(&sizes, |r| f64::from(r) / 2e9 - 1.0, &mut report)?;
    bench.sums(&sizes, |r| r as i32, &mut report)
}

struct Bench {
    device: Device,
    stream: Stream,
    reducer: DeviceReducer,
    /// Read between repetitions, so that nothing of the inputs stays in the cache.
    flush: Buffer<i32>,
    start: Event,
    end: Event,
}

impl Bench {
    fn new(device: &Device) -> Result<Self, ReduceError> {
        let stream = Stream::new(device)?;
        Ok(Self {
            device: *device,
            flush: Buffer::zeroed(&stream, COLD_BYTES / 4)?,
            reducer: DeviceReducer::new(device),
            start: Event::new(device)?,
            end: Event::new(device)?,
            stream,
        })
    }

    fn sums<T: Element>(
        &self,
        exponents: &[u32],
        make: impl Fn(u32) -> T,
        report: &mut impl FnMut(&ReduceBenchRow),
    ) -> Result<(), ReduceError> {
        let size = size_of::<T>();
        let most = self.device.free_memory()? / 2 / size;
        let sizes: Vec<usize> = exponents
            .iter()
            .map(|&e| 1 << e)
            .filter(|&n| n <= most)
            .collect();
        let capacity = (COLD_BYTES / size).max(sizes.iter().copied().max().unwrap_or(0));
        let x = self.filled(capacity, make)?;
        let mut workspace = self.reducer.workspace(&self.stream)?;
        for &elements in &sizes {
            for calls in [
                ReduceCalls::ColdGraph,
                ReduceCalls::HotGraph,
                ReduceCalls::ColdStream,
            ] {
                report(&self.row(&x, &mut workspace, elements, calls)?);
            }
        }
        Ok(())
    }

    /// Random values, repeated from a few megabytes on.
    fn filled<T: Element>(
        &self,
        len: usize,
        make: impl Fn(u32) -> T,
    ) -> Result<Buffer<T>, ReduceError> {
        let mut state = 88_172_645_463_325_252u64;
        let some: Vec<T> = (0..(1 << 22).min(len))
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                make((state >> 32) as u32)
            })
            .collect();
        let x = Buffer::new(&self.device, len)?;
        self.stream.write(x.range(..some.len()), &some)?;
        let mut have = some.len();
        while have < len {
            let more = have.min(len - have);
            self.stream
                .copy(x.range(have..have + more), x.range(..more))?;
            have += more;
        }
        Ok(x)
    }

    fn row<T: Element>(
        &self,
        x: &Buffer<T>,
        workspace: &mut ReduceWorkspace,
        elements: usize,
        calls: ReduceCalls,
    ) -> Result<ReduceBenchRow, ReduceError> {
        let bytes = elements * size_of::<T>();
        // Pages of their own.
        let step = bytes.next_multiple_of(4096) / size_of::<T>();
        let iterations = (COLD_BYTES / (step * size_of::<T>())).clamp(2, CALLS);
        let places = (x.len() / step).max(1);
        let result = Buffer::<u64>::zeroed(&self.stream, 1)?;
        let mut enqueue = |op, of: BufferRef<'_, T>| {
            self.reducer
                .enqueue(op, workspace, &[of], None, (&result).into())
        };
        let mut all = || {
            for call in 0..iterations {
                let place = match calls {
                    ReduceCalls::HotGraph => 0,
                    _ => call % places,
                };
                enqueue(Op::Sum, x.range(place * step..place * step + elements))?;
            }
            Ok::<_, ReduceError>(())
        };
        // Compiles; the graph must not.
        self.reducer.prepare(Op::Sum, T::DTYPE)?;
        let graph = match calls {
            ReduceCalls::ColdStream => None,
            _ => Some(Graph::capture(&self.stream, |_| all())?),
        };
        let mut flusher = self.reducer.workspace(&self.stream)?;
        let mut times = Vec::with_capacity(REPETITIONS);
        for repetition in 0..=REPETITIONS {
            if calls != ReduceCalls::HotGraph {
                self.reducer.enqueue(
                    Op::Max,
                    &mut flusher,
                    &[(&self.flush).into()],
                    None,
                    (&result).into(),
                )?;
            }
            self.stream.record(&self.start)?;
            match &graph {
                // SAFETY: all that the graph uses lives to the end of this function, which waits for
                // every run; the workspace is used by nothing else meanwhile.
                Some(graph) => unsafe { graph.launch(&self.stream) }?,
                None => all()?,
            }
            self.stream.record(&self.end)?;
            let time = self.end.since(&self.start)?;
            if repetition > 0 {
                times.push(time.as_secs_f64() * 1e6 / iterations as f64);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(ReduceBenchRow {
            dtype: T::DTYPE,
            elements,
            bytes,
            calls,
            iterations,
            repetitions: REPETITIONS,
            us: times[REPETITIONS / 2],
            us_min: times[0],
            us_max: times[REPETITIONS - 1],
        })
    }
}
