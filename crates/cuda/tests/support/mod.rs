//! Worlds for the device tests: several PEs on one GPU, several GPUs as threads, several GPUs as
//! processes. A test that lacks GPUs says so by name and does nothing.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crosswarp_cuda::internal::{compile_all, units};
use crosswarp_cuda::{Arch, Cache, Device, Nvrtc, Options, Source, skip};
use crosswarp_shmem::{Launch, Pe, ThreadWorld};

/// A hang is a failure, not a hanging test. Beside other programs on the GPU all is slow.
pub const LIMIT: Duration = Duration::from_secs(60);

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
    world(n).spmd(body).unwrap();
}

fn world(n: usize) -> ThreadWorld {
    ThreadWorld::new(n)
        .heap_bytes(1 << 20)
        .wait_timeout(2 * LIMIT)
}

/// Runs `body` as each of `n` PEs on the first GPU, which are told that they are of several hosts.
#[allow(dead_code)] // Not every suite has it.
pub fn on_hosts(test: &str, n: usize, hosts: &'static str, body: impl Fn(&Pe, Device) + Sync) {
    if let Some(devices) = devices(test, 1) {
        let _alone = alone();
        let world = world(n).fake_hosts(hosts);
        world.spmd(|pe| body(pe, devices[0])).unwrap();
    }
}

/// Runs `body` as one PE per GPU, each told that it is of a host of its own.
#[allow(dead_code)] // Not every suite has it.
pub fn on_gpus_of_hosts(test: &str, body: impl Fn(&Pe, Device) + Sync) {
    if let Some(devices) = devices(test, 2) {
        let _alone = alone();
        let hosts: &'static str = devices.len().to_string().leak();
        let world = world(devices.len()).fake_hosts(hosts);
        world.spmd(|pe| body(pe, devices[pe.my_pe()])).unwrap();
    }
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
    let program = std::env::current_exe().unwrap();
    // Of a name that no test has, nothing would run, and that would be a success.
    let list = ["--list", "--ignored", "--exact", name];
    let listed = Command::new(&program).args(list).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains(&format!("{name}: test")), "{listed}");
    let quietly = "exec \"$0\" --ignored --exact \"$1\" --nocapture > /dev/null";
    let _alone = alone();
    let limit = Duration::from_secs(300);
    let outcome = Launch::new(devices.len(), "sh")
        .args([
            "-c".as_ref(),
            quietly.as_ref(),
            program.as_os_str(),
            name.as_ref(),
        ])
        .heap_bytes(1 << 20)
        .timeout(limit)
        .run()
        .unwrap();
    if let Some(waits) = outcome.timed_out {
        panic!("{test}: not ended after {limit:?}; the PEs' last waits: {waits:?}");
    }
    assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap());
}

/// This process's part in the world of [`as_processes`].
pub fn as_process(body: impl Fn(&Pe, Device)) {
    let pe = crosswarp_shmem::init().unwrap();
    let device = Device::get(pe.my_pe()).unwrap();
    body(&pe, device);
}

/// [`cubins`], or none where there is no compiler. Needs no GPU.
pub fn compiles(
    test: &str,
    sources: &[Source<'_>],
    archs: &[Arch],
    options: &Options,
) -> Vec<Vec<u8>> {
    if let Err(reason) = Nvrtc::get() {
        skip::skip_gpu(test, 1, reason);
        return Vec::new();
    }
    cubins(sources, archs, options)
}

/// The cubins of `sources`, of one architecture after the other, from the user's cache if they are there. As many are
/// compiled at a time as there are processors.
pub fn cubins(sources: &[Source<'_>], archs: &[Arch], options: &Options) -> Vec<Vec<u8>> {
    let units: Vec<_> = sources
        .iter()
        .map(|&source| (source, options.clone()))
        .collect();
    let cubins = compile_all(&Cache::of_user(), &units, archs, &|_, _| ());
    cubins.unwrap_or_else(|error| panic!("{error}"))
}

/// The sources of the stream-ordered verbs that are compiled with `options`.
#[allow(dead_code)] // Not every suite has it.
pub fn verbs_with(options: &Options) -> Vec<Source<'static>> {
    let verbs = units()
        .into_iter()
        .filter(|(source, with)| source.name.starts_with("on_stream/") && with == options);
    verbs.map(|(source, _)| source).collect()
}
