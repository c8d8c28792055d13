//! A 1-D stencil over the PEs: a thousand damped Jacobi sweeps in one kernel on each PE (`halo.cu`, beside
//! this file), which exchange their outermost points themselves. Then the same sweeps on the CPU: the
//! results must agree bit by bit, for kernels are compiled without contraction of `a * b + c`.
//!
//! ```text
//! cargo run -p crosswarp-cuda --example halo                    # one PE per GPU
//! cargo run -p crosswarp-cuda --example halo -- 3               # three PEs, as threads
//! crosswarp run -n 2 target/debug/examples/halo                 # two PEs, as processes
//! ```
#![allow(unsafe_code)] // Launches a kernel.

use std::process::ExitCode;
use std::time::Duration;

use crosswarp_cuda::{Device, DeviceWorld, Launch, Module, Source, Stream};
use crosswarp_shmem::{Pe, init, spmd, under_launcher};

const HALO: Source<'static> = Source::new("halo.cu", include_str!("halo.cu"));

/// Points of each PE, and how often each is renewed.
const POINTS: usize = 1000;
const SWEEPS: usize = 1000;

/// The crates' errors and those of the command line.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Points `0..=len + 1` of the whole line before the first sweep; the first and the last never change.
fn initial(len: usize) -> Vec<f32> {
    let value = |i: usize| (i * i % 97) as f32 / 97.0;
    (0..len + 2).map(value).collect()
}

/// The same sweeps on the CPU.
fn on_cpu(mut u: Vec<f32>) -> Vec<f32> {
    for _ in 0..SWEEPS {
        let old = u.clone();
        for i in 1..u.len() - 1 {
            u[i] = old[i] + 0.3 * ((old[i - 1] - old[i]) + (old[i + 1] - old[i]));
        }
    }
    u
}

/// What each PE does on its GPU.
fn halo(pe: &Pe, gpu: Device) -> Result<(), Failure> {
    // Compiled at the first run, from the user's cache later.
    let module = Module::compile(&gpu, &HALO)?;
    let kernel = module.function("halo")?;
    let stream = Stream::new(&gpu)?;
    // A heap of up to 64 MiB on every PE's GPU; a wait inside a kernel gives up after ten seconds.
    let limit = Duration::from_secs(10);
    let world = DeviceWorld::new(pe, gpu, Some(64 << 20), Some(limit))?;
    // Now the module's kernels know which PE they are.
    world.install(&module)?;
    // Two states of this PE's points and their halo; how far the left and the right neighbour are.
    let me = pe.my_pe();
    let u = world.heap().alloc::<f32>(2 * (POINTS + 2))?;
    let done = world.heap().alloc::<u64>(2)?;
    // This PE's points are 1 + first ..= POINTS + first of the line.
    let (line, first) = (initial(POINTS * pe.n_pes()), me * POINTS);
    let mine = &line[first..first + POINTS + 2];
    // Both states, since the ends of the line are read in both and never written.
    world.put(&stream, &u, 0, mine, me)?;
    world.put(&stream, &u, POINTS + 2, mine, me)?;
    world.put(&stream, &done, 0, &[0, 0], me)?;
    // Nobody starts before everybody's memory is ready.
    pe.barrier()?;
    let done_at = world.heap().address_of(&done, me);
    let args = (
        world.heap().address_of(&u, me),
        done_at,
        done_at + size_of::<u64>() as u64,
        POINTS as i32,
        SWEEPS as u64,
    );
    // One block of 256 threads on every PE, all running at once.
    // SAFETY: the parameters are (float*, u64*, u64*, int, u64); the arrays are as long as the kernel
    // asks and stay allocated until it has ended.
    unsafe { world.launch_together(Launch::new(&kernel).block(256), &stream, args) }?;
    let waited = world.synchronize(&stream);
    // The memory must stay until all kernels have ended, also if this PE's failed.
    pe.barrier()?;
    waited?;
    // The last sweep wrote state SWEEPS % 2.
    let mut got = vec![0.0f32; POINTS];
    world.get(&stream, &mut got, &u, SWEEPS % 2 * (POINTS + 2) + 1, me)?;
    let expected = &on_cpu(line)[first + 1..=first + POINTS];
    // Distance of two numbers of one sign in units of the last place.
    let units = |(a, b): (&f32, &f32)| a.to_bits().abs_diff(b.to_bits());
    let most = got.iter().zip(expected).map(units).max().unwrap_or(0);
    println!(
        "PE {me} on GPU {}: points {}..={} differ from the CPU's by at most {most} units in the last place",
        gpu.ordinal(),
        first + 1,
        first + POINTS,
    );
    if most == 0 {
        Ok(())
    } else {
        Err(format!("PE {me}: the GPU's result is not the CPU's").into())
    }
}

fn run() -> Result<(), Failure> {
    let gpus = Device::all()?;
    let gpu_of = |pe: &Pe| gpus[pe.my_pe() % gpus.len()];
    if under_launcher() {
        // This process is one PE of the launcher's world.
        let pe = init()?;
        return halo(&pe, gpu_of(&pe));
    }
    let n = match std::env::args().nth(1) {
        Some(n) => n.parse().map_err(|_| "usage: halo [NUMBER OF PES]")?,
        None => gpus.len(),
    };
    // Each PE a thread; with more PEs than GPUs, some share one.
    spmd(n, |pe| halo(pe, gpu_of(pe)))?.into_iter().collect()
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
