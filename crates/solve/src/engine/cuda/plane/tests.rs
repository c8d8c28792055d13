//! What kernels do when a PE they wait for never comes. Needs a GPU and NVRTC.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crosswarp_cuda::{Device, Nvrtc, skip};
use crosswarp_shmem::{Pe, ThreadWorld};

use super::*;
use crate::engine::slab::Run;
use crate::problem::Norm;
use crate::problem::scale::Scale;
use crate::stop::threshold::Threshold;

/// The first GPU, or nothing and a line that says why the test is skipped.
fn gpu(test: &str) -> Option<Device> {
    let found = Device::all()
        .map_err(|reason| reason.to_string())
        .and_then(|devices| match Nvrtc::get() {
            Ok(_) => devices.first().copied().ok_or("there is none".to_owned()),
            Err(reason) => Err(reason.to_string()),
        });
    match found {
        Ok(device) => Some(device),
        Err(reason) => {
            skip::skip_gpu(test, 1, reason);
            None
        }
    }
}

/// Ends the process if `body` has not ended after a minute: its threads can not be stopped.
fn must_end(body: impl FnOnce()) {
    let (done, wait) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if wait.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("it should have ended within a minute");
            std::process::abort();
        }
    });
    body();
    drop(done);
}

/// PE 0 sweeps, PE 1 has set up the same and never sweeps.
fn a_peer_never_comes<F: Real>(device: Device, nx: usize, ny: usize) {
    let problem = Problem2d::<F>::laplace(nx, ny);
    let gpu = Gpu {
        device,
        strategy: Strategy::Persistent,
    };
    let set_up = |pe: &Pe, then: &dyn Fn(&mut GpuPlane<'_, F>)| {
        let mut host = CpuPlane::new(&problem, pe.my_pe(), pe.n_pes(), None).unwrap();
        host.load(&problem, Scale::NONE);
        then(&mut GpuPlane::new(pe, &problem, &host, &gpu).unwrap());
    };
    // Compiling may take longer than the limit.
    ThreadWorld::new(2).spmd(|pe| set_up(pe, &|_| ())).unwrap();
    let (over, told) = (Mutex::new(false), Condvar::new());
    let limited = ThreadWorld::new(2).wait_timeout(Duration::from_secs(5));
    let errors = limited.spmd(|pe| {
        let error = Mutex::new(None);
        set_up(pe, &|plane| {
            if pe.my_pe() == 1 {
                let over = over.lock().unwrap();
                drop(told.wait_while(over, |over| !*over).unwrap());
                return;
            }
            let run = Run {
                done: 0,
                most: 200,
                next: 0,
                depth: 1,
                threshold: &Threshold::new(0.0, Norm::L2, 1),
            };
            let Advance::UntilStopped(mut engine) = plane.advance(false) else {
                panic!("a plane on the chip runs until stopped");
            };
            *error.lock().unwrap() = engine.run(&run, &mut Vec::new()).err();
            *over.lock().unwrap() = true;
            told.notify_all();
        });
        error.into_inner().unwrap()
    });
    let error = errors.unwrap().remove(0);
    assert!(
        matches!(error, Some(GpuError::Kernel(_))),
        "{nx} x {ny}: {error:?}"
    );
}

#[test]
fn persistent_kernels_end_when_a_peer_never_comes() {
    let Some(device) = gpu("persistent_kernels_end_when_a_peer_never_comes") else {
        return;
    };
    must_end(|| {
        // Deep halos with a leaf on an SM and with two, and tiles.
        a_peer_never_comes::<f32>(device, 300, 139);
        a_peer_never_comes::<f64>(device, 300, 139);
        a_peer_never_comes::<f32>(device, 1001, 397);
        a_peer_never_comes::<f64>(device, 1001, 397);
    });
}
