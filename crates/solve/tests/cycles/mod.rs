//! Solving by cycles, for the tests of multigrid.
#![allow(dead_code)] // Not every test program needs all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosswarp_cuda::{Device, Nvrtc, skip};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Cycles, Gpu, Method, Options, Problem2d, Real, RowSource, Strategy, solve_2d,
};

/// A GPU that is used so, or nothing and a line that says why the test is skipped.
pub fn gpu(test: &str, strategy: Strategy) -> Option<Gpu> {
    let reason = match (Device::get(0), Nvrtc::get()) {
        (Ok(device), Ok(_)) => return Some(Gpu { device, strategy }),
        (Err(reason), _) => reason.to_string(),
        (_, Err(reason)) => reason.to_string(),
    };
    skip::skip_gpu(test, 1, reason);
    None
}

/// Field and relative residuals.
pub struct Solved<F> {
    pub field: Vec<F>,
    pub history: Vec<f64>,
    pub converged: bool,
    pub floor_reached: bool,
    pub gradients_from: Option<usize>,
}

pub fn options(tolerance: f64) -> Options<'static> {
    Options {
        method: Method::Multigrid(Cycles::default()),
        ..Options::new(tolerance, 40)
    }
}

pub fn solve<F: Real>(problem: &Problem2d<F>, tolerance: f64, pes: usize) -> Solved<F> {
    solve_with(problem, &options(tolerance), pes)
}

/// By conjugate gradients.
pub fn solve_cg<F: Real>(problem: &Problem2d<F>, tolerance: f64, pes: usize) -> Solved<F> {
    let options = Options {
        method: Method::ConjugateGradients(Cycles::default()),
        ..options(tolerance)
    };
    solve_with(problem, &options, pes)
}

pub fn solve_with<F: Real>(problem: &Problem2d<F>, options: &Options<'_>, pes: usize) -> Solved<F> {
    let mut all = spmd(pes, |pe| {
        let solution = solve_2d(pe, problem, options, |_| {}).unwrap();
        Solved {
            field: solution.gather_all(pe).unwrap(),
            history: solution.history.clone(),
            converged: solution.converged,
            floor_reached: solution.floor_reached,
            gradients_from: solution.gradients_from,
        }
    })
    .unwrap();
    all.swap_remove(0)
}

/// Kernels that wait for one another must fit the GPU together: one world at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static GPUS: Mutex<()> = Mutex::new(());
    GPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn by_cell<F: Real>(of: impl Fn(usize, usize) -> f64 + Send + Sync + 'static) -> RowSource<F> {
    Arc::new(move |y, row: &mut [F]| {
        row.iter_mut()
            .enumerate()
            .for_each(|(x, value)| *value = F::from_f64(of(x, y)));
    })
}

/// Numbers that look random, the same everywhere (SplitMix64 of the cell's number).
pub fn noise(x: usize, y: usize, seed: u64) -> u64 {
    let mut z = ((x as u64) << 32 | y as u64) ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub fn mask(of: impl Fn(usize, usize) -> bool + Send + Sync + 'static) -> Option<RowSource<u8>> {
    Some(Arc::new(move |y, row: &mut [u8]| {
        row.iter_mut()
            .enumerate()
            .for_each(|(x, byte)| *byte = u8::from(of(x, y)));
    }))
}
