//! Planes with more than 2^31 cells a PE, where something moves at the last cell, at the cut, and in between.
//!
//! Only with CROSSWARP_BIG=1: takes 20 GB of host memory and 30 GB of a GPU's for each of two PEs. Use a release build.

mod common;

use std::sync::Arc;

use common::noise;
use crosswarp_cuda::{Device, Nvrtc};
use crosswarp_shmem::spmd;
use crosswarp_solve::{Boundary, Gpu, Options, Problem2d, RowSource, Strategy, solve_2d};

/// 2^31 + 2^28 cells on each of two PEs.
const NX: usize = 73_728;
const NY: usize = 2 * 32_768;
const SWEEPS: usize = 13;

/// Cells before the first sweep: noise in some columns of every row, zero in the others.
fn cell(x: usize, y: usize) -> f32 {
    if !(64..NX - 64).contains(&x) || x.abs_diff(NX / 2) < 64 {
        noise(x, y, 7) as f32
    } else {
        0.0
    }
}

fn problem() -> Problem2d<f32> {
    let profile = |len: usize, cell: &dyn Fn(usize) -> f32| {
        Boundary::Fixed((0..len).map(cell).collect::<Vec<_>>())
    };
    let initial: RowSource<f32> = Arc::new(|y, row| {
        for x in (0..64).chain(NX / 2 - 64..NX / 2 + 64).chain(NX - 64..NX) {
            row[x] = cell(x, y);
        }
    });
    Problem2d {
        left: profile(NY, &|y| cell(0, y)),
        right: profile(NY, &|y| cell(NX - 1, y)),
        top: profile(NX, &|x| cell(x, 0)),
        bottom: profile(NX, &|x| cell(x, NY - 1)),
        initial: Some(initial),
        ..Problem2d::laplace(NX, NY)
    }
}

/// The value of a cell after all sweeps, from the cells around it alone.
fn expected(x: usize, y: usize) -> f32 {
    let near = |at: usize, end: usize| at.saturating_sub(SWEEPS)..(at + SWEEPS + 1).min(end);
    let (columns, rows) = (near(x, NX), near(y, NY));
    let width = columns.len();
    let mut before: Vec<f32> = rows
        .clone()
        .flat_map(|y| columns.clone().map(move |x| cell(x, y)))
        .collect();
    // Each sweep is right for one cell less on the sides that are not the grid's.
    for _ in 0..SWEEPS {
        let mut after = before.clone();
        for j in 1..rows.len() - 1 {
            for i in 1..width - 1 {
                let at = j * width + i;
                after[at] = 0.25
                    * (((before[at + 1] + before[at - 1]) + before[at + width])
                        + before[at - width]);
            }
        }
        before = after;
    }
    before[(y - rows.start) * width + (x - columns.start)]
}

#[test]
fn planes_of_more_than_2_to_the_31_cells_a_pe() {
    if std::env::var_os("CROSSWARP_BIG").is_none() {
        eprintln!("skipped: planes_of_more_than_2_to_the_31_cells_a_pe: needs CROSSWARP_BIG=1");
        return;
    }
    let gpus = match Device::all() {
        Ok(devices) if Nvrtc::get().is_ok() => devices,
        _ => {
            assert!(
                std::env::var_os("CROSSWARP_REQUIRE_GPU").is_none(),
                "there is no GPU or no NVRTC"
            );
            eprintln!("on the CPU alone: there is no GPU or no NVRTC");
            Vec::new()
        }
    };
    let ways = [
        Strategy::Sweep,
        Strategy::HostExchange,
        Strategy::DevicePut,
        Strategy::Auto,
    ];
    let ways = ways
        .iter()
        .filter(|_| !gpus.is_empty())
        .map(|&way| Some(way));
    let mut norms: Option<Vec<f64>> = None;
    for way in ways.chain([None]) {
        let histories = spmd(2, |pe| {
            let options = Options {
                gpu: way.map(|strategy| Gpu {
                    device: gpus[pe.my_pe() % gpus.len()],
                    strategy,
                }),
                ..Options::new(0.0, SWEEPS)
            };
            let solution = solve_2d(pe, &problem(), &options, |_| {}).unwrap();
            let rows = solution.rows();
            assert!(rows.len() * NX > 1 << 31);
            // The first and last rows of the PE, and what lies about 2^31 cells behind the first.
            let behind = rows.start + (1usize << 31) / NX;
            for y in [
                rows.start,
                rows.start + 1,
                behind,
                behind + 1,
                rows.end - 2,
                rows.end - 1,
            ] {
                for x in [0, 1, 40, NX / 2, NX - 2, NX - 1] {
                    let (found, expected) = (solution.row(y)[x], expected(x, y));
                    assert_eq!(
                        found.to_bits(),
                        expected.to_bits(),
                        "column {x}, row {y}, {way:?}: {found} instead of {expected}"
                    );
                }
            }
            solution.history
        });
        for history in histories.unwrap() {
            assert_eq!(norms.get_or_insert(history.clone()), &history, "{way:?}");
        }
    }
}
