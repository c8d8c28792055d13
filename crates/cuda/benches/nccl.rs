//! The stream-ordered collectives by Crosswarp's kernels and by NCCL, by size, call by call through a stream
//! and inside a graph: from which size on `use_nccl` pays. One PE per GPU; one JSON object a line.
//!
//! ```text
//! NCCL_NVLS_ENABLE=0 cargo bench -p crosswarp-cuda --bench nccl
//! ```
#![allow(unsafe_code)] // Launches graphs.

use std::process::ExitCode;

use crosswarp_cuda::{DeviceSym, DeviceWorld, DeviceWorldError, Event, Graph, Spmd, Stream};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What is measured, each of `bytes` per PE.
const VERBS: [&str; 3] = ["sum_f32", "broadcast", "fcollect"];
/// Bytes of the longest array; every verb is measured with an eighth of it and less, too.
const MOST: usize = 1 << 30;
/// Measurements of each row that count, after one that does not.
const REPETITIONS: usize = 7;
/// Most calls inside a graph.
const RECORDED: usize = 20;

struct Arrays {
    dest: DeviceSym<f32>,
    source: DeviceSym<f32>,
}

/// One call of `verb`, in which every PE receives `bytes` in all.
fn call(
    world: &DeviceWorld<'_>,
    stream: &Stream,
    Arrays { dest, source }: &Arrays,
    verb: &str,
    bytes: usize,
) -> Result<(), DeviceWorldError> {
    let (n, team) = (bytes / size_of::<f32>(), world.everyone());
    let (to, from) = (dest.range(..n), source.range(..n));
    match verb {
        "sum_f32" => world.sum_on_stream(stream, team, to, from),
        "broadcast" => world.broadcast_on_stream(stream, team, to, from, 0),
        _ => {
            let part = source.range(..n / world.pe().n_pes());
            world.fcollect_on_stream(stream, team, to, part)
        }
    }
}

/// Median time in µs of one of the `calls` that `work` makes.
fn time(
    world: &DeviceWorld<'_>,
    stream: &Stream,
    calls: usize,
    mut work: impl FnMut() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let device = world.device();
    let (start, end) = (Event::new(&device)?, Event::new(&device)?);
    let mut times = Vec::new();
    for repetition in 0..=REPETITIONS {
        world.pe().barrier()?;
        // So that no PE's time begins before all are there.
        world.barrier_on_stream(stream, world.everyone())?;
        stream.record(&start)?;
        work()?;
        stream.record(&end)?;
        world.synchronize(stream)?;
        if repetition > 0 {
            times.push(end.since(&start)?.as_secs_f64() * 1e6 / calls as f64);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[REPETITIONS / 2])
}

/// All rows of one implementation.
fn table(world: &DeviceWorld<'_>, stream: &Stream, name: &str) -> Result<(), Failure> {
    let arrays = Arrays {
        dest: world.heap().alloc_zeroed(MOST / size_of::<f32>())?,
        source: world.heap().alloc_zeroed(MOST / size_of::<f32>())?,
    };
    for verb in VERBS {
        for bytes in (12..=30).step_by(2).map(|power| 1usize << power) {
            let calls = (MOST / bytes / 8).clamp(4, 200);
            let one = || call(world, stream, &arrays, verb, bytes);
            let streamed = time(world, stream, calls, || {
                (0..calls).try_for_each(|_| Ok(one()?))
            })?;
            let inside = calls.min(RECORDED);
            let graph = Graph::capture(stream, |_| -> Result<(), DeviceWorldError> {
                (0..inside).try_for_each(|_| one())
            })?;
            let recorded = time(world, stream, inside, || {
                // SAFETY: heap and teams outlive the run; all PEs launch.
                Ok(unsafe { graph.launch(stream) }?)
            })?;
            if world.pe().my_pe() == 0 {
                let pes = world.pe().n_pes();
                println!(
                    "{{\"impl\":\"{name}\",\"what\":\"{verb}_on_stream\",\"pes\":{pes},\"bytes\":{bytes},\
                     \"us\":{streamed:.2},\"graph_us\":{recorded:.2}}}"
                );
            }
        }
    }
    world.pe().barrier()?;
    world.heap().free(arrays.source)?;
    Ok(world.heap().free(arrays.dest)?)
}

fn run() -> Result<(), Failure> {
    Spmd::new().run(|mut world| -> Result<(), Failure> {
        let stream = Stream::new(&world.device())?;
        table(&world, &stream, "crosswarp")?;
        world.use_nccl(1)?;
        table(&world, &stream, "nccl")
    })?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
