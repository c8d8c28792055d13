//! Measuring sums on a GPU: the rows that `bench/peers/cub_reduce.cu` measures of CUB, in the same way.
#![allow(unsafe_code)] // Measures launches in graphs.

use std::time::Duration;

use crosswarp_cuda::{Buffer, BufferRef, Device, Stream};
use crosswarp_prim::cuda::{DeviceReducer, ReduceWorkspace, Segments};
use crosswarp_prim::{Element, Op};
use half::f16;

use super::error::BenchError;
use crate::measure::{CacheFlush, Plan, Row, in_graph, on_stream};

/// Bytes over which cold calls rotate: several times the second-level cache.
const COLD_BYTES: usize = 512 << 20;
const PLAN: Plan = Plan {
    warm_up: Duration::from_millis(10),
    samples: 9,
    least: Duration::from_millis(2),
    most_calls: 100,
    budget: Duration::from_millis(500),
};

/// How the calls are made.
#[derive(Clone, Copy)]
enum Calls {
    /// In a graph, each on other memory, none of it in the cache.
    ColdGraph,
    /// In a graph, all on the same memory.
    HotGraph,
    /// Given to a stream one by one, each on other memory, none of it in the cache.
    ColdStream,
}

impl Calls {
    const ALL: [Self; 3] = [Self::ColdGraph, Self::HotGraph, Self::ColdStream];

    fn name(self) -> &'static str {
        match self {
            Self::ColdGraph => "cold_graph",
            Self::HotGraph => "hot_graph",
            Self::ColdStream => "cold_stream",
        }
    }
}

/// Measures sums of `f32`, `f16`, `f64` and `i32` of 2^10 to 2^30 elements on `device`, then those of segments of
/// an array of `f32`, and hands each row to `report`. Sizes that do not fit into half of the free memory are left out.
pub fn reduce(device: &Device, mut report: impl FnMut(Row)) -> Result<(), BenchError> {
    let bench = Bench::new(device)?;
    let sizes = [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
    bench.sums(&sizes, |r| (r >> 9) as f32 / 4e6 - 1.0, &mut report)?;
    bench.sums(
        &sizes,
        |r| f16::from_f32((r >> 9) as f32 / 4e6 - 1.0),
        &mut report,
    )?;
    bench.sums(&sizes, |r| f64::from(r) / 2e9 - 1.0, &mut report)?;
    bench.sums(&sizes, |r| r as i32, &mut report)?;
    for cut in SegmentCut::ALL {
        report(bench.segments(cut)?);
    }
    Ok(())
}

/// How an array of 2^25 elements is cut into segments, all but the rows by offsets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentCut {
    /// 8 elements each.
    Tiny,
    /// A quarter of the array each.
    Huge,
    /// Half of the array 8 elements each, and the other half one segment in their midst.
    Uneven,
    /// Rows of a matrix, 4096 elements each.
    Rows,
}

impl SegmentCut {
    const ALL: [Self; 4] = [Self::Tiny, Self::Huge, Self::Uneven, Self::Rows];
    const ELEMENTS: usize = 1 << 25;
    const ROW: usize = 4096;

    fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Huge => "huge",
            Self::Uneven => "uneven",
            Self::Rows => "rows",
        }
    }

    fn offsets(self) -> Vec<u64> {
        let n = Self::ELEMENTS as u64;
        let every = |from: u64, to: u64, step: usize| (from..to).step_by(step);
        let mut offsets: Vec<u64> = match self {
            Self::Tiny => every(0, n, 8).collect(),
            Self::Huge => every(0, n, 1 << 23).collect(),
            Self::Uneven => every(0, n / 4, 8)
                .chain([n / 4])
                .chain(every(n / 4 * 3, n, 8))
                .collect(),
            Self::Rows => every(0, n, Self::ROW).collect(),
        };
        offsets.push(n);
        offsets
    }
}

struct Bench {
    device: Device,
    stream: Stream,
    reducer: DeviceReducer,
    flush: CacheFlush,
}

impl Bench {
    fn new(device: &Device) -> Result<Self, BenchError> {
        let stream = Stream::new(device)?;
        Ok(Self {
            device: *device,
            flush: CacheFlush::new(&stream)?,
            reducer: DeviceReducer::new(device),
            stream,
        })
    }

    fn sums<T: Element>(
        &self,
        exponents: &[u32],
        make: impl Fn(u32) -> T,
        report: &mut impl FnMut(Row),
    ) -> Result<(), BenchError> {
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
            for calls in Calls::ALL {
                report(self.row(&x, &mut workspace, elements, calls)?);
            }
        }
        Ok(())
    }

    /// Random values, repeated from a few megabytes on.
    fn filled<T: Element>(
        &self,
        len: usize,
        make: impl Fn(u32) -> T,
    ) -> Result<Buffer<T>, BenchError> {
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
        calls: Calls,
    ) -> Result<Row, BenchError> {
        let bytes = elements * size_of::<T>();
        // Pages of their own.
        let step = bytes.next_multiple_of(4096) / size_of::<T>();
        let places = (x.len() / step).max(1);
        let result = Buffer::<u64>::zeroed(&self.stream, 1)?;
        // Compiles; the graph must not.
        self.reducer.prepare(Op::Sum, T::DTYPE)?;
        // The workspace's stream is the one that is measured.
        let call = |_: &Stream, number: usize| -> Result<(), BenchError> {
            let place = match calls {
                Calls::HotGraph => 0,
                _ => number % places,
            };
            let of: BufferRef<'_, T> = x.range(place * step..place * step + elements);
            let to = (&result).into();
            Ok(self.reducer.enqueue(Op::Sum, workspace, &[of], None, to)?)
        };
        let time = match calls {
            Calls::ColdStream => on_stream(&PLAN, &self.stream, Some(&self.flush), call),
            // SAFETY: elements, workspace and result live to the end of this function, which the measurement
            // does not outlast; the workspace is used by nothing else meanwhile.
            Calls::ColdGraph => unsafe { in_graph(&PLAN, &self.stream, Some(&self.flush), call) },
            // SAFETY: as above.
            Calls::HotGraph => unsafe { in_graph(&PLAN, &self.stream, None, call) },
        }?;
        Ok(
            Row::new(format!("reduce_sum_{}_{}", T::DTYPE, calls.name()), time)
                .with("pes", 1)
                .with("scope", "")
                .bytes(bytes as u64),
        )
    }

    /// Sums of segments of an array too large for the cache, which is why one place is enough.
    fn segments(&self, cut: SegmentCut) -> Result<Row, BenchError> {
        let x = self.filled(SegmentCut::ELEMENTS, |r| (r >> 9) as f32 / 4e6 - 1.0)?;
        let offsets = Buffer::from_slice(&self.stream, &cut.offsets())?;
        let results = Buffer::<u64>::zeroed(&self.stream, offsets.len() - 1)?;
        let mut workspace = self.reducer.workspace(&self.stream)?;
        let segments = match cut {
            SegmentCut::Rows => Segments::Rows(SegmentCut::ROW),
            _ => Segments::Offsets((&offsets).into()),
        };
        let mut call = |_: &Stream, _: usize| -> Result<(), BenchError> {
            let (inputs, results) = ([(&x).into()], (&results).into());
            Ok(self.reducer.enqueue_segments::<f32>(
                Op::Sum,
                &mut workspace,
                &inputs,
                segments,
                results,
            )?)
        };
        // Compiles and makes room; the graph must not.
        call(&self.stream, 0)?;
        self.stream.synchronize()?;
        // SAFETY: elements, offsets, workspace and results live to the end of this function, which the
        // measurement does not outlast; the workspace is used by nothing else meanwhile.
        let time = unsafe { in_graph(&PLAN, &self.stream, Some(&self.flush), call) }?;
        let what = format!("reduce_segments_{}_f32_cold_graph", cut.name());
        Ok(Row::new(what, time)
            .with("pes", 1)
            .with("scope", "")
            .bytes(SegmentCut::ELEMENTS as u64 * 4))
    }
}
