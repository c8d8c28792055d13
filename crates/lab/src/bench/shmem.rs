//! Measuring the device verbs: the rows of `kernels/bench_shmem.cu`, which says what each one is.
#![allow(unsafe_code)] // Launches the measuring kernels.

use crosswarp_cuda::{
    Buffer, Device, DeviceWorld, DeviceWorldError, Event, Launch, Module, Shape, Source, Stream,
    grid_state_bytes,
};
use crosswarp_shmem::Pe;

use super::error::BenchError;
use crate::measure::{self, fixed_runs};

/// The measuring kernels.
pub const SHMEM: Source<'static> = Source::new(
    "bench_shmem.cu",
    include_str!("../../kernels/bench_shmem.cu"),
)
.with_shapes(&[Shape {
    kernel: "bandwidth_put_block",
    threads: 256,
    dynamic_shared: 0,
}]);

/// Launches of each row that count, after [`WARM_UP`] that do not.
const SAMPLES: u32 = 15;
const WARM_UP: u32 = 2;

/// What is measured, with how many PEs at least, how many bytes, blocks, threads and iterations.
struct Row {
    what: &'static str,
    scope: &'static str,
    pair: bool,
    bytes: usize,
    blocks: u32,
    threads: u32,
    iterations: u32,
}

const fn pair(what: &'static str, scope: &'static str, bytes: usize, iterations: u32) -> Row {
    Row {
        what,
        scope,
        pair: true,
        bytes,
        blocks: 1,
        threads: threads(scope),
        iterations,
    }
}

const fn all(what: &'static str, scope: &'static str, bytes: usize, iterations: u32) -> Row {
    Row {
        what,
        scope,
        pair: false,
        bytes,
        blocks: 1,
        threads: threads(scope),
        iterations,
    }
}

const fn bandwidth(what: &'static str, scope: &'static str) -> Row {
    let (bytes, blocks, threads, iterations) = (4 << 20, 32, 256, 200);
    Row {
        what,
        scope,
        pair: true,
        bytes,
        blocks,
        threads,
        iterations,
    }
}

const fn grid(what: &'static str, bytes: usize, iterations: u32) -> Row {
    // More threads move more, fewer meet sooner.
    let threads = if bytes > 64 << 20 { 512 } else { 256 };
    Row {
        what,
        scope: "grid",
        pair: false,
        bytes,
        blocks: 0,
        threads,
        iterations,
    }
}

const fn threads(scope: &str) -> u32 {
    match scope.as_bytes() {
        b"thread" => 1,
        b"warp" => 32,
        _ => 256,
    }
}

const ROWS: &[Row] = &[
    pair("p_quiet", "thread", 4, 2000),
    pair("put_quiet", "warp", 8, 2000),
    pair("put_quiet", "block", 8, 2000),
    pair("get", "warp", 8, 2000),
    pair("get", "block", 8, 2000),
    pair("signal_relaxed_pingpong", "thread", 8, 1000),
    pair("signal_pingpong", "thread", 8, 1000),
    pair("p_pingpong", "thread", 4, 1000),
    pair("p_signal_pingpong", "thread", 4, 1000),
    pair("put_signal_pingpong", "thread", 4, 1000),
    pair("put_signal_pingpong", "thread", 8192, 200),
    pair("put_signal_pingpong", "warp", 8192, 500),
    pair("put_signal_pingpong", "block", 8192, 500),
    bandwidth("bandwidth_p", ""),
    bandwidth("bandwidth_store", ""),
    bandwidth("bandwidth_put", "block"),
    bandwidth("bandwidth_get", "block"),
    all("barrier", "thread", 0, 1000),
    all("barrier", "warp", 0, 1000),
    all("barrier", "block", 0, 1000),
    all("sync", "thread", 0, 1000),
    all("sync", "warp", 0, 1000),
    all("sync", "block", 0, 1000),
    all("meeting", "block", 0, 1000),
    all("sum_i32", "thread", 16, 1000),
    all("sum_i32", "warp", 16, 1000),
    all("sum_i32", "block", 16, 1000),
    all("sum_i32", "thread", 1024, 200),
    all("sum_i32", "warp", 1024, 1000),
    all("sum_i32", "block", 1024, 1000),
    all("fcollect", "warp", 32, 1000),
    all("fcollect", "block", 32, 1000),
    all("fcollect", "block", 128 << 10, 500),
    all("alltoall", "warp", 128, 1000),
    all("alltoall", "block", 128, 1000),
    all("alltoall", "block", 512 << 10, 200),
    all("broadcast", "warp", 16, 1000),
    all("broadcast", "block", 16, 1000),
    all("broadcast", "block", 512 << 10, 200),
    grid("fcollect", 128 << 10, 200),
    grid("alltoall", 512 << 10, 200),
    grid("broadcast", 512 << 10, 200),
    grid("sum_f32", 1 << 10, 200),
    grid("sum_f32", 4 << 20, 100),
    grid("sum_f32", 1 << 30, 2),
    grid("alltoall", 1 << 30, 2),
];

impl Row {
    fn measured(&self, pes: usize, blocks: u32, time: measure::Timing) -> measure::Row {
        measure::Row::new(self.what, time)
            .with("scope", self.scope)
            .with("pes", if self.pair { 2 } else { pes })
            .with("blocks", blocks)
            .with("threads", self.threads)
            .bytes(self.bytes as u64)
    }
}

/// Measures every row and hands it to `report`, on every PE alike but for the times, which are PE 0's.
/// Collective. Rows for two PEs are left out in a world of one.
pub fn shmem(
    pe: &Pe,
    device: Device,
    mut report: impl FnMut(measure::Row),
) -> Result<(), BenchError> {
    let module = Module::compile(&device, &SHMEM).map_err(crosswarp_cuda::Error::from)?;
    let stream = Stream::new(&device)?;
    let world = DeviceWorld::new(pe, device, None, None)?;
    world.install(&module)?;
    let largest = ROWS.iter().map(|row| row.bytes).max().unwrap_or(0);
    let heap = world.heap();
    let alloc = |bytes| heap.alloc::<u8>(bytes).map_err(DeviceWorldError::from);
    let (dest, source, flag) = (alloc(largest)?, alloc(largest)?, alloc(8)?);
    let [dest_at, source_at, flag_at] =
        [&dest, &source, &flag].map(|of| heap.address_of(of, pe.my_pe()));
    // Grids of one block per SM; PEs that share a GPU share its SMs.
    let sharing =
        pe.n_pes()
            .div_ceil(Device::all().map_err(crosswarp_cuda::Error::from)?.len()) as u32;
    let most_blocks = (device.properties().multiprocessors / sharing).max(1);
    let state = Buffer::<u8>::zeroed(&stream, grid_state_bytes(most_blocks as usize))?;
    let (start, end) = (Event::new(&device)?, Event::new(&device)?);
    for row in ROWS {
        if row.pair && pe.n_pes() < 2 {
            continue;
        }
        let name = match row.scope {
            "" => row.what.to_owned(),
            scope => format!("{}_{scope}", row.what),
        };
        let function = module.function(&name).map_err(DeviceWorldError::from)?;
        let blocks = if row.blocks == 0 {
            most_blocks
        } else {
            row.blocks
        };
        let launch = Launch::new(&function).grid(blocks).block(row.threads);
        let prepared = world.prepare_together(launch)?;
        world.put(&stream, dest.range(..16), &[0; 16], pe.my_pe())?;
        world.put(&stream, flag.range(..8), &[0; 8], pe.my_pe())?;
        let time = fixed_runs(
            WARM_UP,
            SAMPLES,
            row.iterations,
            |launch| -> Result<f64, BenchError> {
                let base = u64::from(launch) * u64::from(row.iterations);
                pe.barrier()?;
                stream.record(&start)?;
                let args = (
                    dest_at,
                    source_at,
                    flag_at,
                    &state,
                    row.bytes as u64,
                    u64::from(row.iterations),
                    base,
                );
                // SAFETY: these are the kernels' parameters (see bench_shmem.cu); the symmetric arrays have
                // `largest` bytes, the grid state serves `most_blocks` blocks, and all PEs launch.
                unsafe { prepared.launch(&stream, args) }.map_err(DeviceWorldError::from)?;
                stream.record(&end)?;
                world.synchronize(&stream)?;
                Ok(end.since(&start)?.as_secs_f64() / f64::from(row.iterations))
            },
        )?;
        report(row.measured(pe.n_pes(), blocks, time));
    }
    pe.barrier()?;
    Ok(())
}
