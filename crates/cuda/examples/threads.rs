//! The hierarchy of threads made visible: each lane of a small grid reports its index in the grid, its
//! block, its warp and its lane, in the order in which the reports arrive. Blocks and warps come in any
//! order, another one at each run; the lanes of a warp come together and in order.
//!
//! ```text
//! cargo run -p crosswarp-cuda --example threads
//! ```
#![allow(unsafe_code)] // Launches a kernel.

use std::process::ExitCode;

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{Buffer, Device, Error, Launch, Module, Stream, THREADS};

/// What the kernel writes, `struct Report` in `kernels/threads.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Report {
    index: u32,
    block: u32,
    warp: u32,
    lane: u32,
}

const BLOCKS: u32 = 4;
const THREADS_OF_BLOCK: u32 = 64;

fn reports() -> Result<Vec<Report>, Error> {
    let device = Device::get(0)?;
    let threads = Module::compile(&device, &THREADS)?.function("threads")?;
    let stream = Stream::new(&device)?;
    let reports = Buffer::<Report>::zeroed(&stream, (BLOCKS * THREADS_OF_BLOCK) as usize)?;
    let arrived = Buffer::<u32>::zeroed(&stream, 1)?;
    let launch = Launch::new(&threads).grid(BLOCKS).block(THREADS_OF_BLOCK);
    // SAFETY: the kernel takes pointers to a Report per thread and to a counter.
    unsafe { launch.launch(&stream, (&reports, &arrived)) }?;
    Ok(reports.to_vec(&stream)?)
}

fn main() -> ExitCode {
    match reports() {
        Ok(reports) => {
            println!("index  block  warp  lane");
            for report in reports {
                println!(
                    "{:5}  {:5}  {:4}  {:4}",
                    report.index, report.block, report.warp, report.lane
                );
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
