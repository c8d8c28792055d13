//! Worlds for the device tests: several PEs on one GPU, several GPUs as threads, several GPUs as
//! processes. A test that lacks GPUs says so by name and does nothing.

pub mod skip;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosswarp_cuda::{Arch, Cache, Device, Nvrtc, Options, Source};
use crosswarp_shmem::{Launch, Pe, ThreadWorld};

/// A hang is a failure, not a hanging test.
pub const LIMIT: Duration = Duration::from_secs(20);

/// The machine's GPUs, if there are `least` at least.
pub fn devices(test: &str, least: usize) -> Option<Vec<Device>> {
    match Device::all() {
        Ok(devices) if devices.len() >= least => return Some(devices),
        Ok(devices) => skip::skip_gpu(test, least, format!("{} GPU only", devices.len())),
        Err(reason) => skip::skip_gpu(test, least, reason),
    }
    None
}

/// Kernels that wait must fit the GPU together: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static GPUS: Mutex<()> = Mutex::new(());
    GPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` as every PE of a world of `n` threads.
pub fn threads(n: usize, body: impl Fn(&Pe) + Sync) {
    let _alone = alone();
    let world = ThreadWorld::new(n)
        .heap_bytes(1 << 20)
        .wait_timeout(2 * LIMIT);
    world.spmd(body).unwrap();
}

/// Runs `body` as each of `n` PEs on the first GPU.
pub fn on_one_gpu(test: &str, n: usize, body: impl Fn(&Pe, Device) + Sync) {
    if let Some(devices) = devices(test, 1) {
        threads(n, |pe| body(pe, devices[0]));
    }
}

/// Runs `body` as one PE per GPU, threads.
pub fn on_all_gpus(test: &str, body: impl Fn(&Pe, Device) + Sync) {
    if let Some(devices) = devices(test, 2) {
        threads(devices.len(), |pe| body(pe, devices[pe.my_pe()]));
    }
}

/// Runs the ignored test `name` of this executable as one PE per GPU, processes.
pub fn as_processes(test: &str, name: &str, least: usize) {
    let Some(devices) = devices(test, least) else {
        return;
    };
    let quietly = "exec \"$0\" --ignored --exact \"$1\" --nocapture > /dev/null";
    let program = std::env::current_exe().unwrap();
    let _alone = alone();
    let outcome = Launch::new(devices.len(), "sh")
        .args([
            "-c".as_ref(),
            quietly.as_ref(),
            program.as_os_str(),
            name.as_ref(),
        ])
        .heap_bytes(1 << 20)
        .timeout(Duration::from_secs(300))
        .run()
        .unwrap();
    assert!(outcome.timed_out.is_none(), "{:?}", outcome.timed_out);
    assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap());
}

/// This process's part in the world of [`as_processes`].
pub fn as_process(body: impl Fn(&Pe, Device)) {
    let pe = crosswarp_shmem::init().unwrap();
    let device = Device::get(pe.my_pe()).unwrap();
    body(&pe, device);
}

/// Compiles `sources` for `archs`, a thread each; needs the compiler but no GPU.
pub fn compiles(test: &str, sources: &[Source<'_>], archs: &[Arch], options: &Options) {
    if let Err(reason) = Nvrtc::get() {
        skip::skip_gpu(test, 1, reason);
        return;
    }
    let all_for = |arch: Arch| {
        for source in sources {
            let compiled = Cache::of_user().compile(source, arch, options);
            compiled.unwrap_or_else(|error| panic!("{} for {arch}: {error}", source.name));
        }
    };
    std::thread::scope(|scope| {
        for &arch in archs {
            scope.spawn(move || all_for(arch));
        }
    });
}
