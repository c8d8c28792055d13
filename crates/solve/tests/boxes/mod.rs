//! Solving in boxes, for the tests of three dimensions.
#![allow(dead_code)] // Not every test program needs all.

use std::sync::Arc;

use crosswarp_shmem::spmd;
use crosswarp_solve::{Options, PlaneSource, Problem3d, solve_3d};

use crate::cycles::{noise, options};

/// Field and relative residuals.
#[derive(Debug)]
pub struct Solved {
    pub field: Vec<f64>,
    pub history: Vec<f64>,
    pub converged: bool,
    pub floor_reached: bool,
    pub gradients_from: Option<usize>,
}

impl Solved {
    /// What is the same for any number of PEs.
    pub fn bits(&self) -> (Vec<u64>, Vec<u64>, Option<usize>, bool) {
        let bits = |of: &[f64]| of.iter().map(|value| value.to_bits()).collect();
        (
            bits(&self.field),
            bits(&self.history),
            self.gradients_from,
            self.converged,
        )
    }
}

pub fn solve_with(problem: &Problem3d<f64>, options: &Options<'_>, pes: usize) -> Solved {
    let all = spmd(pes, |pe| {
        let solution = solve_3d(pe, problem, options, |_| {}).unwrap();
        Solved {
            field: solution.gather_all(pe).unwrap(),
            history: solution.history.clone(),
            converged: solution.converged,
            floor_reached: solution.floor_reached,
            gradients_from: solution.gradients_from,
        }
    });
    all.unwrap().swap_remove(0)
}

/// By cycles.
pub fn solve(problem: &Problem3d<f64>, tolerance: f64, pes: usize) -> Solved {
    solve_with(problem, &options(tolerance), pes)
}

pub fn by_point(
    of: impl Fn(usize, usize, usize) -> f64 + Send + Sync + 'static,
) -> PlaneSource<f64> {
    Arc::new(move |z, y, row: &mut [f64]| {
        let values = row.iter_mut().enumerate();
        values.for_each(|(x, value)| *value = of(x, y, z));
    })
}

pub fn mask(
    of: impl Fn(usize, usize, usize) -> bool + Send + Sync + 'static,
) -> Option<PlaneSource<u8>> {
    Some(Arc::new(move |z, y, row: &mut [u8]| {
        let bytes = row.iter_mut().enumerate();
        bytes.for_each(|(x, byte)| *byte = u8::from(of(x, y, z)));
    }))
}

pub fn rough() -> Option<PlaneSource<f64>> {
    Some(by_point(|x, y, z| {
        (noise(x, y + 1000 * z, 1) % 11) as f64 - 5.0
    }))
}
