//! Measuring: by the host's clock, or by a GPU's events.
#![allow(unsafe_code)] // Launches recorded work again.

use std::time::{Duration, Instant};

use crosswarp_cuda::{CudaError, Event, Graph, Stream};

use super::cache_flush::CacheFlush;
use super::plan::Plan;
use super::timing::Timing;

/// Measures `call`, which is given the number of the call, by the host's clock.
///
/// Errors: the first of `call`.
pub fn host<E>(plan: &Plan, mut call: impl FnMut(usize) -> Result<(), E>) -> Result<Timing, E> {
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
    Ok(Timing::of(samples, calls).expect("at least one sample"))
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
pub fn fixed_runs<E>(
    warm_up: u32,
    samples: u32,
    calls: u32,
    mut run: impl FnMut(u32) -> Result<f64, E>,
) -> Result<Timing, E> {
    for number in 0..warm_up {
        run(number)?;
    }
    let times: Result<Vec<f64>, E> = (0..samples).map(|k| run(warm_up + k)).collect();
    Ok(Timing::of(times?, calls).expect("samples of nothing"))
}

/// Measures what `call` gives to the stream, by events, one call after the other as a program would
/// make them: gaps between launches count. With a `flush`, caches are emptied before each sample; then
/// `call`, which is given its number within the sample, should take other memory each time.
///
/// Errors: the first of `call`, and those of the GPU.
pub fn on_stream<E: From<CudaError>>(
    plan: &Plan,
    stream: &Stream,
    flush: Option<&CacheFlush>,
    mut call: impl FnMut(&Stream, usize) -> Result<(), E>,
) -> Result<Timing, E> {
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
    Ok(Timing::of(samples?, calls).expect("at least one sample"))
}

/// Measures what `call` gives to the stream, by events around a graph of many calls: what the GPU
/// itself needs, without the host's launches.
///
/// `call` is given the number of the call within the graph, from 0. With a `flush`, caches are emptied
/// before each graph: if call k then takes buffer k of [`RotatingBuffers`](super::RotatingBuffers), every call finds
/// its input in memory.
///
/// Errors: the first of `call`, and those of the GPU.
///
/// # Safety
/// What `call` gives to the stream may run again, in the same order, at any time until this function
/// returns: memory and modules that it uses must live until then, not only until `call` returns.
pub unsafe fn in_graph<E: From<CudaError>>(
    plan: &Plan,
    stream: &Stream,
    flush: Option<&CacheFlush>,
    mut call: impl FnMut(&Stream, usize) -> Result<(), E>,
) -> Result<Timing, E> {
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
    Ok(Timing::of(samples?, calls).expect("at least one sample"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_runs_are_as_many_as_asked_for() {
        let mut seen = Vec::new();
        let spread = fixed_runs(2, 3, 10, |number| {
            seen.push(number);
            Ok::<_, ()>(f64::from(number))
        })
        .unwrap();
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        assert_eq!((spread.min, spread.median, spread.max), (2.0, 3.0, 4.0));
        assert_eq!((spread.samples, spread.calls), (3, 10));
        assert_eq!(fixed_runs(1, 1, 1, |_| Err("no")), Err("no"));
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
