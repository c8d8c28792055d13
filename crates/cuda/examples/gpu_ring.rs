//! A token goes around the ring of PEs inside one kernel on each PE (`gpu_ring.cu`, beside this file): PE 0
//! sends 100 to its right-hand neighbour, and each PE adds one to what it gets and passes it on.
//!
//! ```text
//! cargo run -p crosswarp-cuda --example gpu_ring                # one PE per GPU
//! cargo run -p crosswarp-cuda --example gpu_ring -- 3           # three PEs, as threads
//! crosswarp run -n 2 target/debug/examples/gpu_ring             # two PEs, as processes
//! ```
#![allow(unsafe_code)] // Launches a kernel.

use std::process::ExitCode;
use std::time::Duration;

use crosswarp_cuda::{DeviceWorld, Launch, Source, Spmd, Stream};

const RING: Source<'static> = Source::new("gpu_ring.cu", include_str!("gpu_ring.cu"));

/// The crates' errors and those of the command line.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What each PE does.
fn ring(world: DeviceWorld<'_>) -> Result<(), Failure> {
    // Compiled at the first run, from the user's cache later; its kernels are told which PE they are.
    let module = world.load(&RING)?;
    let kernel = module.function("ring")?;
    let stream = Stream::new(&world.device())?;
    // One word each on every PE: the token, and the signal that it has come.
    let token = world.heap().alloc_zeroed::<u64>(1)?;
    let arrived = world.heap().alloc_zeroed::<u64>(1)?;
    // One block of one thread on every PE, all running at once.
    // SAFETY: the kernel takes two pointers to a u64 each, which stay allocated until it has ended.
    unsafe { world.launch_together(Launch::new(&kernel), &stream, (&token, &arrived)) }?;
    // Waits for the kernel, and says so if a wait inside it gave up.
    world.synchronize(&stream)?;
    // Nobody unloads or frees anything, which waits for the whole GPU, before all kernels have ended.
    world.pe().barrier()?;
    let (me, gpu, mut got) = (world.pe().my_pe(), world.device().ordinal(), [0]);
    world.get(&stream, &mut got, &token, me)?;
    println!("PE {me} on GPU {gpu} got {}", got[0]);
    Ok(())
}

fn run() -> Result<(), Failure> {
    // A wait inside a kernel gives up after ten seconds.
    let mut spmd = Spmd::new().wait_limit(Duration::from_secs(10));
    if let Some(pes) = std::env::args().nth(1) {
        spmd = spmd.pes(pes.parse().map_err(|_| "usage: gpu_ring [NUMBER OF PES]")?);
    }
    // Runs `ring` as every PE: threads, or under `crosswarp run` this process as one of them.
    spmd.run(ring).map(|_| ())
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
