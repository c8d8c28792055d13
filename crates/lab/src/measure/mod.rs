//! The harness behind every `crosswarp bench`: warm-up, repetition, medians with their spread, buffers
//! that rotate so that no cache helps, and rows of JSON with the machine and the version.
//!
//! ```
//! use crosswarp_lab::measure::{Machine, Plan, Row, host};
//! let values = vec![1.0f32; 1 << 16];
//! let plan = Plan::quick();
//! let time = host(&plan, |_| {
//!     std::hint::black_box(std::hint::black_box(&values).iter().sum::<f32>());
//!     Ok::<_, std::convert::Infallible>(())
//! })
//! .unwrap();
//! let row = Row::new("sum", time).with("dtype", "f32").with("elements", values.len()).bytes(1 << 18);
//! println!("{}", row.json(&Machine::of_host()));
//! ```
#![allow(unsafe_code)] // Launches recorded work again.

mod compare;
mod flush;
mod machine;
pub mod nsight;
mod row;

use std::time::{Duration, Instant};

use crosswarp_cuda::{Buffer, CudaError, Device, Event, Graph, Pod, Stream};

pub use compare::{Change, Comparison, ReadError, Rows, compare};
pub use flush::Flush;
pub(crate) use flush::READ;
pub use machine::Machine;
pub use row::{Row, SCHEMA};

/// How long and how often something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Time for which it runs before anything counts: clocks rise, pages and code are loaded.
    pub warm_up: Duration,
    /// Samples, of which the median is the result.
    pub samples: u32,
    /// Least time of a sample; shorter calls are repeated within it.
    pub least: Duration,
    /// Most calls of a sample.
    pub most_calls: u32,
    /// Time for all samples; of calls so long that it does not suffice, at least three are taken.
    pub budget: Duration,
}

impl Default for Plan {
    /// 100 ms of warm-up, then 15 samples of at least 2 ms each.
    fn default() -> Self {
        Self {
            warm_up: Duration::from_millis(100),
            samples: 15,
            least: Duration::from_millis(2),
            most_calls: 1000,
            budget: Duration::from_millis(500),
        }
    }
}

impl Plan {
    /// 10 ms of warm-up and 5 samples of at least 0.5 ms: where there is much to measure.
    pub fn quick() -> Self {
        Self {
            warm_up: Duration::from_millis(10),
            samples: 5,
            least: Duration::from_micros(500),
            ..Self::default()
        }
    }

    /// Calls of a sample, if one takes `once`.
    fn calls(&self, once: Duration) -> u32 {
        let needed = self.least.as_secs_f64() / once.as_secs_f64().max(1e-9);
        // Casts saturate.
        (needed.ceil() as u32).clamp(1, self.most_calls.max(1))
    }

    /// Samples, if one takes `sample`.
    fn samples(&self, sample: Duration) -> u32 {
        let affordable = self.budget.as_secs_f64() / sample.as_secs_f64().max(1e-9);
        (affordable as u32)
            .clamp(3.min(self.samples), self.samples)
            .max(1)
    }
}

/// The time of one call, over all samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Median, seconds.
    pub median: f64,
    /// Least, seconds.
    pub min: f64,
    /// Greatest, seconds.
    pub max: f64,
    /// Samples.
    pub samples: u32,
    /// Calls of each sample; a sample is their mean.
    pub calls: u32,
}

impl Spread {
    /// Of samples of `calls` calls each, in seconds for one call; `None` of no samples.
    pub fn of(mut samples: Vec<f64>, calls: u32) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let middle = samples.len() / 2;
        Some(Self {
            median: if samples.len() % 2 == 1 {
                samples[middle]
            } else {
                (samples.get(middle.checked_sub(1)?)? + samples[middle]) / 2.0
            },
            min: *samples.first()?,
            max: *samples.last()?,
            samples: samples.len() as u32,
            calls,
        })
    }
}

/// Measures `call`, which is given the number of the call, by the host's clock.
///
/// Errors: the first of `call`.
pub fn host<E>(plan: &Plan, mut call: impl FnMut(usize) -> Result<(), E>) -> Result<Spread, E> {
    let began = Instant::now();
    let mut number = 0;
    let mut fastest = Duration::MAX;
    loop {
        let before = Instant::now();
        call(number)?;
        number += 1;
        fastest = fastest.min(before.elapsed());
        if began.elapsed() >= plan.warm_up {
            break;
        }
    }
    let calls = plan.calls(fastest);
    let mut samples = Vec::new();
    for _ in 0..plan.samples(fastest * calls) {
        let before = Instant::now();
        for _ in 0..calls {
            call(number)?;
            number += 1;
        }
        samples.push(before.elapsed().as_secs_f64() / f64::from(calls));
    }
    Ok(Spread::of(samples, calls).expect("at least one sample"))
}

/// Measures `run`, which makes `calls` calls, is given its own number from 0, and returns the seconds of one
/// call: `warm_up` runs that do not count, then `samples` that do.
///
/// For what the PEs of a world do together: nothing here depends on the clock, so all PEs make the same
/// runs.
///
/// Errors: the first of `run`.
///
/// # Panics
/// If `samples` is 0.
pub fn counted<E>(
    warm_up: u32,
    samples: u32,
    calls: u32,
    mut run: impl FnMut(u32) -> Result<f64, E>,
) -> Result<Spread, E> {
    for number in 0..warm_up {
        run(number)?;
    }
    let times: Result<Vec<f64>, E> = (0..samples).map(|k| run(warm_up + k)).collect();
    Ok(Spread::of(times?, calls).expect("samples of nothing"))
}

/// Measures what `call` gives to the stream, by events, one call after the other as a program would
/// make them: gaps between launches count. With a `flush`, caches are emptied before each sample; then
/// `call`, which is given its number within the sample, should take other memory each time.
///
/// Errors: the first of `call`, and those of the GPU.
pub fn on_stream<E: From<CudaError>>(
    plan: &Plan,
    stream: &Stream,
    flush: Option<&Flush>,
    mut call: impl FnMut(&Stream, usize) -> Result<(), E>,
) -> Result<Spread, E> {
    let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
    let mut sample = |calls: u32| -> Result<f64, E> {
        if let Some(flush) = flush {
            flush.run(stream)?;
        }
        stream.record(&start)?;
        for number in 0..calls as usize {
            call(stream, number)?;
        }
        stream.record(&end)?;
        Ok(end.since(&start)?.as_secs_f64() / f64::from(calls))
    };
    let once = warm_up(plan, || sample(1))?;
    let calls = plan.calls(once);
    let samples: Result<Vec<f64>, E> = (0..plan.samples(once * calls))
        .map(|_| sample(calls))
        .collect();
    Ok(Spread::of(samples?, calls).expect("at least one sample"))
}

/// Measures what `call` gives to the stream, by events around a graph of many calls: what the GPU
/// itself needs, without the host's launches.
///
/// `call` is given the number of the call within the graph, from 0. With a `flush`, caches are emptied
/// before each graph: if call k then takes buffer k of [`Rotating`] ones, every call finds its input in
/// memory.
///
/// Errors: the first of `call`, and those of the GPU.
///
/// # Safety
/// What `call` gives to the stream may run again, in the same order, at any time until this function
/// returns: memory and modules that it uses must live until then, not only until `call` returns.
pub unsafe fn in_graph<E: From<CudaError>>(
    plan: &Plan,
    stream: &Stream,
    flush: Option<&Flush>,
    mut call: impl FnMut(&Stream, usize) -> Result<(), E>,
) -> Result<Spread, E> {
    let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
    // Not yet captured: also loads the kernels, and shows what one call takes.
    let once = warm_up(plan, || -> Result<f64, E> {
        stream.record(&start)?;
        call(stream, 0)?;
        stream.record(&end)?;
        Ok(end.since(&start)?.as_secs_f64())
    })?;
    let calls = plan.calls(once);
    let graph = Graph::capture(stream, |stream| {
        (0..calls as usize).try_for_each(|number| call(stream, number))
    })?;
    let run = || -> Result<f64, CudaError> {
        if let Some(flush) = flush {
            flush.run(stream)?;
        }
        stream.record(&start)?;
        // SAFETY: the caller's promise; the run has ended when `since` returns. If that fails, the
        // context is broken and runs nothing any more.
        unsafe { graph.launch(stream) }?;
        stream.record(&end)?;
        Ok(end.since(&start)?.as_secs_f64() / f64::from(calls))
    };
    run()?;
    let samples: Result<Vec<f64>, CudaError> =
        (0..plan.samples(once * calls)).map(|_| run()).collect();
    Ok(Spread::of(samples?, calls).expect("at least one sample"))
}

/// Repeats `sample` for the time of warm-up; the least it returned.
fn warm_up<E>(plan: &Plan, mut sample: impl FnMut() -> Result<f64, E>) -> Result<Duration, E> {
    let began = Instant::now();
    let mut fastest = f64::MAX;
    loop {
        fastest = fastest.min(sample()?);
        if began.elapsed() >= plan.warm_up {
            return Ok(Duration::from_secs_f64(fastest));
        }
    }
}

/// The bytes over which inputs rotate so that each call finds none of its input in the level-2 cache:
/// eight times its size.
pub fn cold_bytes(device: &Device) -> usize {
    8 * device.properties().l2
}

/// Equal buffers used in turn, so that a call's input is no longer in the cache when its turn comes.
pub struct Rotating<T: Pod> {
    buffers: Vec<Buffer<T>>,
}

impl<T: Pod> Rotating<T> {
    /// As many copies of `values` as make up `bytes`, at least one.
    pub fn new(stream: &Stream, values: &[T], bytes: usize) -> Result<Self, CudaError> {
        let count = bytes.div_ceil(size_of_val(values).max(1)).max(1);
        let first = Buffer::from_slice(stream, values)?;
        let mut buffers = vec![first];
        for _ in 1..count {
            let copy = Buffer::new(stream.device(), values.len())?;
            stream.copy(&copy, &buffers[0])?;
            buffers.push(copy);
        }
        stream.synchronize()?;
        Ok(Self { buffers })
    }

    /// The buffer of call `number`.
    pub fn get(&self, number: usize) -> &Buffer<T> {
        &self.buffers[number % self.buffers.len()]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.buffers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let odd = Spread::of(vec![3.0, 1.0, 2.0], 4).unwrap();
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 3.0));
        assert_eq!((odd.samples, odd.calls), (3, 4));
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0], 1).unwrap().median, 2.5);
        assert_eq!(Spread::of(vec![], 1), None);
    }

    #[test]
    fn short_calls_are_repeated_within_a_sample() {
        let plan = Plan::default();
        assert_eq!(plan.calls(Duration::from_millis(5)), 1);
        assert_eq!(plan.calls(Duration::from_micros(100)), 20);
        assert_eq!(plan.calls(Duration::ZERO), 1000);
        assert_eq!(plan.samples(Duration::from_millis(2)), 15);
        assert_eq!(plan.samples(Duration::from_millis(100)), 5);
        assert_eq!(plan.samples(Duration::from_secs(9)), 3);
    }

    #[test]
    fn counted_runs_are_as_many_as_asked_for() {
        let mut seen = Vec::new();
        let spread = counted(2, 3, 10, |number| {
            seen.push(number);
            Ok::<_, ()>(f64::from(number))
        })
        .unwrap();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        assert_eq!((spread.min, spread.median, spread.max), (2.0, 3.0, 4.0));
        assert_eq!((spread.samples, spread.calls), (3, 10));
        assert_eq!(counted(1, 1, 1, |_| Err("no")), Err("no"));
    }

    #[test]
    fn every_call_gets_its_number_and_errors_end_it() {
        let plan = Plan {
            warm_up: Duration::ZERO,
            samples: 3,
            least: Duration::ZERO,
            most_calls: 10,
            budget: Duration::MAX,
        };
        let mut seen = Vec::new();
        let spread = host(&plan, |number| {
            seen.push(number);
            Ok::<_, ()>(())
        });
        assert_eq!(seen, [0, 1, 2, 3]);
        assert_eq!(spread.unwrap().samples, 3);
        assert_eq!(
            host(&plan, |number| if number == 2 { Err("no") } else { Ok(()) }),
            Err("no")
        );
    }
}
