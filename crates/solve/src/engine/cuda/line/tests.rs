//! Lines with more than 2^31 points a PE, where something moves at the cut.
//!
//! Only with CROSSWARP_BIG=1: takes 40 GB of host memory and as much of a GPU's. A problem on a line has no initial
//! values to give, so this looks at the slabs.

use crosswarp_cuda::{Device, Nvrtc};
use crosswarp_shmem::spmd;

use super::*;
use crate::element::simd::Isa;
use crate::field::checkpoint::Identity;
use crate::method::jacobi::{self, Settings};
use crate::method::options::Options;
use crate::pes::reduction::Reduction;
use crate::problem::Problem1d;
use crate::problem::scale::Scale;

/// On each of two PEs.
const POINTS: usize = (1 << 31) + (1 << 27);
const SWEEPS: usize = 90;
/// Points on each side of the cut that are not zero at first.
const NOISE: usize = 1000;

fn point(x: usize) -> f32 {
    if x.abs_diff(POINTS) < NOISE {
        (x * 7919 % 1013) as f32 / 1013.0 - 0.3
    } else {
        0.0
    }
}

/// The points around the cut after all sweeps, from `POINTS` − 2 `NOISE` on.
fn expected() -> Vec<f32> {
    let mut before: Vec<f32> = (POINTS - 2 * NOISE..POINTS + 2 * NOISE)
        .map(point)
        .collect();
    for _ in 0..SWEEPS {
        let mut after = before.clone();
        for (now, around) in after[1..].iter_mut().zip(before.windows(3)) {
            *now = 0.5 * (around[0] + around[2]);
        }
        before = after;
    }
    before
}

/// The points of this PE around the cut, and the norms.
fn solve(pe: &Pe, gpu: Option<Gpu>) -> (Vec<f32>, Vec<f64>) {
    let problem = Problem1d {
        points: 2 * POINTS,
        left: 0.0f32,
        right: 0.0,
        norm: Norm::L2,
    };
    let options = Options {
        sweeps_per_pass: Some(16),
        ..Options::new(0.0, SWEEPS)
    };
    let settings = Settings {
        norm: Norm::L2,
        points: problem.points,
        identity: Identity {
            bits: 32,
            nx: 0,
            nz: 1,
            ny: 0,
            hash: 0,
            exponent: 0,
        },
        scale: Scale::NONE,
        options: &options,
    };
    let mut host = CpuLine::new(&problem, pe.my_pe(), 2, Isa::widest()).unwrap();
    let own = host.own();
    assert_eq!(own.len(), POINTS);
    let near = own.start.max(POINTS - 2 * NOISE)..own.end.min(POINTS + 2 * NOISE);
    let values: Vec<f32> = near.clone().map(point).collect();
    host.unpack(near.start as isize, &values).unwrap();
    let reduction = Reduction::new(pe, jacobi::reduced_words::<f32>()).unwrap();
    let mut found = Vec::new();
    let outcome = match gpu {
        None => {
            let outcome = jacobi::run(pe, reduction, &mut host, &settings, |_| {}).unwrap();
            host.pack(near, &mut found).unwrap();
            outcome
        }
        Some(gpu) => {
            let mut line = GpuLine::new(pe, &host, &gpu).unwrap();
            let outcome = jacobi::run(pe, reduction, &mut line, &settings, |_| {}).unwrap();
            line.pack(near, &mut found).unwrap();
            outcome
        }
    };
    (found, outcome.history)
}

#[test]
fn lines_of_more_than_2_to_the_31_points_a_pe() {
    if std::env::var_os("CROSSWARP_BIG").is_none() {
        eprintln!("skipped: lines_of_more_than_2_to_the_31_points_a_pe: needs CROSSWARP_BIG=1");
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
    let expected = expected();
    let mut norms: Option<Vec<f64>> = None;
    for way in ways.chain([None]) {
        let runs = spmd(2, |pe| {
            let gpu = way.map(|strategy| Gpu {
                device: gpus[pe.my_pe() % gpus.len()],
                strategy,
            });
            solve(pe, gpu)
        });
        let (fields, histories): (Vec<_>, Vec<_>) = runs.unwrap().into_iter().unzip();
        let field = fields.concat();
        assert_eq!(field.len(), expected.len());
        for (i, (found, expected)) in field.iter().zip(&expected).enumerate() {
            assert_eq!(
                found.to_bits(),
                expected.to_bits(),
                "{way:?}, point {} from the cut: {found} instead of {expected}",
                i as isize - 2 * NOISE as isize
            );
        }
        for history in histories {
            assert_eq!(norms.get_or_insert(history.clone()), &history, "{way:?}");
        }
    }
}
