//! A 1-D stencil over the PEs: a thousand damped Jacobi sweeps in one kernel on each PE (`halo.cu`, beside
//! this file), which exchange their outermost points themselves. Then the same sweeps on the CPU: the
//! results must be equal, for kernels are compiled without contraction of `a * b + c`.
//!
//! ```text
//! cargo run -p crosswarp-cuda --example halo                    # one PE per GPU
//! cargo run -p crosswarp-cuda --example halo -- 3               # three PEs, as threads
//! crosswarp run -n 2 target/debug/examples/halo                 # two PEs, as processes
//! ```
#![allow(unsafe_code)] // Launches a kernel.

use std::process::ExitCode;
use std::time::Duration;

use crosswarp_cuda::{DeviceWorld, Launch, Source, Spmd, Stream};

const HALO: Source<'static> = Source::new("halo.cu", include_str!("halo.cu"));
/// Points of each PE, and how often each is renewed.
const POINTS: usize = 1000;
const SWEEPS: usize = 1000;

/// The crates' errors and those of the command line.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The same sweeps on the CPU. The first and the last point never change.
fn on_cpu(mut line: Vec<f32>) -> Vec<f32> {
    for _ in 0..SWEEPS {
        let old = line.clone();
        for i in 1..line.len() - 1 {
            line[i] = old[i] + 0.3 * ((old[i - 1] - old[i]) + (old[i + 1] - old[i]));
        }
    }
    line
}

/// What each PE does.
fn halo(world: DeviceWorld<'_>) -> Result<(), Failure> {
    // Compiled at the first run, from the user's cache later; its kernels are told which PE they are.
    let module = world.load(&HALO)?;
    let kernel = module.function("halo")?;
    let stream = Stream::new(&world.device())?;
    // The whole line; this PE's points are 1 + first ..= POINTS + first of it.
    let (me, pes) = (world.pe().my_pe(), world.pe().n_pes());
    let line = (0..POINTS * pes + 2).map(|i| (i * i % 97) as f32 / 97.0);
    let line: Vec<f32> = line.collect();
    let first = me * POINTS;
    // Two states of them and their halo, and how many sweeps the left and right neighbours have done.
    let u = world.heap().alloc::<f32>(2 * (POINTS + 2))?;
    let left_done = world.heap().alloc_zeroed::<u64>(1)?;
    let right_done = world.heap().alloc_zeroed::<u64>(1)?;
    // Both states, since the ends of the line are read in both and never written.
    for state in [0, POINTS + 2] {
        let part = u.range(state..state + POINTS + 2);
        world.put(&stream, part, &line[first..][..POINTS + 2], me)?;
    }
    // One block of 256 threads on every PE, all running at once; nobody starts before all have come here.
    let args = (&u, &left_done, &right_done, POINTS as i32, SWEEPS as u64);
    // SAFETY: the parameters are (float*, u64*, u64*, int, u64); the arrays are as long as the kernel
    // asks and stay allocated until it has ended.
    unsafe { world.launch_together(Launch::new(&kernel).block(256), &stream, args) }?;
    // Waits for the kernel, and says so if a wait inside it gave up.
    world.synchronize(&stream)?;
    // Nobody unloads or frees anything, which waits for the whole GPU, before all kernels have ended.
    world.pe().barrier()?;
    // The last sweep wrote state SWEEPS % 2.
    let mut got = vec![0.0f32; POINTS];
    let own = SWEEPS % 2 * (POINTS + 2) + 1;
    world.get(&stream, &mut got, u.range(own..own + POINTS), me)?;
    let equal = got == on_cpu(line)[first + 1..][..POINTS];
    let gpu = world.device().ordinal();
    println!("PE {me} on GPU {gpu}: equal to the CPU's points: {equal}");
    equal
        .then_some(())
        .ok_or("the GPU's points are wrong".into())
}

fn run() -> Result<(), Failure> {
    // A wait inside a kernel gives up after ten seconds.
    let mut spmd = Spmd::new().wait_limit(Duration::from_secs(10));
    if let Some(pes) = std::env::args().nth(1) {
        spmd = spmd.pes(pes.parse().map_err(|_| "usage: halo [NUMBER OF PES]")?);
    }
    // Runs `halo` as every PE: threads, or under `crosswarp run` this process as one of them.
    spmd.run(halo).map(|_| ())
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
