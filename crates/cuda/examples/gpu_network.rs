//! What verbs in stream order cost between GPUs of two hosts: one JSON object a row.
//!
//!     cargo build --release -p crosswarp-cuda --example gpu_network
//!     crosswarp run --hosts a,b -- target/release/examples/gpu_network [ROUNDS]
//!     CROSSWARP_FAKE_HOSTS=tcp:2 target/release/examples/gpu_network
//!
//! The second is two PEs of this machine that are told to be of two hosts. With `NCCL_NVLS_ENABLE=0` and a GPU for each PE
//! the rows of collectives come again, by NCCL. Medians over rounds (15), from the call to the stream's end.

use crosswarp_cuda::{DeviceWorld, Spmd, Stream};
use std::time::Instant;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of the longest array.
const MOST: usize = 64 << 20;

fn main() -> Result<(), Failure> {
    let count = std::env::args().nth(1);
    let count = count.map_or(Ok(15), |count| count.parse::<usize>())?;
    let pes = match crosswarp_shmem::under_launcher() {
        true => Spmd::new(),
        false => Spmd::new().pes(2),
    };
    let measured = pes.run(|mut world| -> Result<(), Failure> {
        rows(&world, count, "kernels")?;
        if std::env::var("NCCL_NVLS_ENABLE").is_ok_and(|value| value == "0") {
            match world.use_nccl(1 << 16) {
                Ok(()) => rows(&world, count, "nccl")?,
                Err(error) => eprintln!("no rows of NCCL: {error}"),
            }
        }
        Ok(())
    });
    measured.map(drop)
}

fn rows(world: &DeviceWorld<'_>, count: usize, by: &str) -> Result<(), Failure> {
    let pe = world.pe();
    let (me, next) = (pe.my_pe(), (pe.my_pe() + 1) % pe.n_pes());
    let stream = Stream::new(&world.device())?;
    let heap = world.heap();
    let (a, b) = (heap.alloc::<f32>(MOST / 4)?, heap.alloc::<f32>(MOST / 4)?);
    let team = world.everyone();
    let row = |what: &str, bytes: usize, work: &dyn Fn() -> Result<(), Failure>| {
        let mut times = Vec::new();
        // The first one connects, and is not counted.
        for round in 0..=count {
            pe.barrier()?;
            let start = Instant::now();
            work()?;
            world.synchronize(&stream)?;
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        times.sort_by(f64::total_cmp);
        let us = times[times.len() / 2];
        if me == 0 {
            let rate = bytes as f64 / us;
            println!(
                r#"{{"what":"{what}","bytes":{bytes},"us":{us:.1},"mb_s":{rate:.0},"by":"{by}"}}"#
            );
        }
        Ok::<_, Failure>(())
    };
    row(
        "barrier",
        0,
        &|| Ok(world.barrier_on_stream(&stream, team)?),
    )?;
    for bytes in [8, 64 << 10, 4 << 20, MOST] {
        let n = bytes / 4;
        if by == "kernels" {
            // From PE 0 alone, then from every PE.
            for (what, all) in [("put", false), ("put_by_all", true)] {
                row(what, bytes, &|| {
                    if all || me == 0 {
                        world.put_on_stream(&stream, b.range(..n), a.range(..n), next)?;
                        world.quiet_on_stream(&stream)?;
                    }
                    Ok(())
                })?;
            }
            row("get", bytes, &|| {
                if me == 0 {
                    world.get_on_stream(&stream, b.range(..n), a.range(..n), next)?;
                }
                Ok(())
            })?;
        }
        row("sum", bytes, &|| {
            Ok(world.sum_on_stream(&stream, team, b.range(..n), a.range(..n))?)
        })?;
        row("broadcast", bytes, &|| {
            Ok(world.broadcast_on_stream(&stream, team, b.range(..n), a.range(..n), 0)?)
        })?;
    }
    pe.barrier()?;
    Ok(())
}
