//! A token goes around the ring of PEs inside one kernel on each PE (`ring.cu`, beside this file): PE 0
//! sends 100 to its right-hand neighbour, and each PE adds one to what it gets and passes it on.
//!
//! ```text
//! cargo run -p crosswarp-cuda --example ring                    # one PE per GPU
//! cargo run -p crosswarp-cuda --example ring -- 3               # three PEs, as threads
//! crosswarp run -n 2 target/debug/examples/ring                 # two PEs, as processes
//! ```
#![allow(unsafe_code)] // Launches a kernel.

use std::process::ExitCode;
use std::time::Duration;

use crosswarp_cuda::{Device, DeviceWorld, Launch, Module, Source, Stream};
use crosswarp_shmem::{Pe, init, spmd, under_launcher};

const RING: Source<'static> = Source::new("ring.cu", include_str!("ring.cu"));

/// The crates' errors and those of the command line.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What each PE does on its GPU.
fn ring(pe: &Pe, gpu: Device) -> Result<(), Failure> {
    // Compiled at the first run, from the user's cache later.
    let module = Module::compile(&gpu, &RING)?;
    let kernel = module.function("ring")?;
    let stream = Stream::new(&gpu)?;
    // A heap of up to 64 MiB on every PE's GPU; a wait inside a kernel gives up after ten seconds.
    let limit = Duration::from_secs(10);
    let world = DeviceWorld::new(pe, gpu, Some(64 << 20), Some(limit))?;
    // Now the module's kernels know which PE they are.
    world.install(&module)?;
    // One word each on every PE: the token, and the signal that it has come.
    let (token, arrived) = (world.heap().alloc::<u64>(1)?, world.heap().alloc::<u64>(1)?);
    let me = pe.my_pe();
    world.put(&stream, &token, 0, &[0], me)?;
    world.put(&stream, &arrived, 0, &[0], me)?;
    // Nobody starts before everybody's words are zero.
    pe.barrier()?;
    // Kernels take the addresses of this PE's own parts.
    let args = (
        world.heap().address_of(&token, me),
        world.heap().address_of(&arrived, me),
    );
    // One block of one thread on every PE, all running at once.
    // SAFETY: the kernel takes two pointers to a u64 each, which stay allocated until it has ended.
    unsafe { world.launch_together(Launch::new(&kernel), &stream, args) }?;
    let waited = world.synchronize(&stream);
    // The memory must stay until all kernels have ended, also if this PE's failed.
    pe.barrier()?;
    waited?;
    let mut got = [0];
    world.get(&stream, &mut got, &token, 0, me)?;
    println!("PE {me} on GPU {} got {}", gpu.ordinal(), got[0]);
    Ok(())
}

fn run() -> Result<(), Failure> {
    let gpus = Device::all()?;
    let gpu_of = |pe: &Pe| gpus[pe.my_pe() % gpus.len()];
    if under_launcher() {
        // This process is one PE of the launcher's world.
        let pe = init()?;
        return ring(&pe, gpu_of(&pe));
    }
    let n = match std::env::args().nth(1) {
        Some(n) => n.parse().map_err(|_| "usage: ring [NUMBER OF PES]")?,
        None => gpus.len(),
    };
    // Each PE a thread; with more PEs than GPUs, some share one.
    spmd(n, |pe| ring(pe, gpu_of(pe)))?.into_iter().collect()
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
