//! `crosswarp bench`: what this machine's processor and GPUs do, and two such runs side by side.

pub mod compare;
mod rows;

use std::sync::Mutex;

use crosswarp::cuda::Device;
use crosswarp::lab::bench::{self, BenchError, JacobiProblem};
use crosswarp::lab::measure::Row;
use crosswarp::shmem::under_launcher;
use crosswarp::solve::Gpu;

use self::rows::Rows;
use super::error::CommandError;
use crate::args::bench::{
    BenchCpuArgs, BenchHistogramArgs, BenchJacobiArgs, BenchPrimArgs, BenchReduceArgs,
    BenchShmemArgs, BenchTransposeArgs,
};
use crate::console;
use crate::processor::physical_cores;
use crate::world::pes::{in_world_of, kind_name};

/// Measures processors.
pub fn cpu(args: &BenchCpuArgs) -> Result<i32, CommandError> {
    let pes = args.pes.map_or_else(physical_cores, |pes| pes as usize);
    in_world_of(args.pes, pes, |pe| {
        let mut rows = (pe.my_pe() == 0).then(|| Rows::of_host(args.json, 34));
        show_all(rows.as_mut(), |show| {
            bench::cpu(pe, args.side as usize, kind_name(pe), show)
        })
    })
}

/// Measures the device verbs.
pub fn shmem(args: &BenchShmemArgs) -> Result<i32, CommandError> {
    let devices = devices()?;
    let pes = args.pes.map_or(devices.len(), |pes| pes as usize);
    in_world_of(args.pes, pes, |pe| {
        let device = devices[pe.my_pe() % devices.len()];
        let mut rows = (pe.my_pe() == 0).then(|| Rows::new(args.json, &device, 26));
        show_all(rows.as_mut(), |show| {
            bench::shmem(pe, device, |row| show(row.with("world", kind_name(pe))))
        })
    })
}

/// Measures the primitives on the first GPU: the other benches, one after the other.
pub fn prim(args: &BenchPrimArgs) -> Result<i32, CommandError> {
    let json = args.json;
    reduce(&BenchReduceArgs { device: 0, json })?;
    let samples = BenchHistogramArgs::SAMPLES;
    histogram(&BenchHistogramArgs {
        device: 0,
        samples,
        json,
    })?;
    transpose(&BenchTransposeArgs { pes: None, json })
}

/// Measures sums, of whole arrays and of segments.
pub fn reduce(args: &BenchReduceArgs) -> Result<i32, CommandError> {
    let device = device(args.device)?;
    let mut rows = Rows::new(args.json, &device, 38);
    show_all(Some(&mut rows), |show| bench::reduce(&device, show))
}

/// Measures histograms.
pub fn histogram(args: &BenchHistogramArgs) -> Result<i32, CommandError> {
    let device = device(args.device)?;
    let mut rows = Rows::new(args.json, &device, 11);
    show_all(Some(&mut rows), |show| {
        bench::histogram(&device, args.samples, show)
    })
}

/// Measures transpositions on one GPU, or over PEs if there are several.
pub fn transpose(args: &BenchTransposeArgs) -> Result<i32, CommandError> {
    let devices = devices()?;
    let pes = args.pes.unwrap_or(1) as usize;
    if pes == 1 && !under_launcher() {
        let mut rows = Rows::new(args.json, &devices[0], 22);
        return show_all(Some(&mut rows), |show| bench::transpose(&devices[0], show));
    }
    in_world_of(args.pes, pes, |pe| {
        let device = devices[pe.my_pe() % devices.len()];
        let mut rows = (pe.my_pe() == 0).then(|| Rows::new(args.json, &device, 22));
        show_all(rows.as_mut(), |show| {
            bench::transpose_over_pes(pe, device, show)
        })
    })
}

/// Measures whole solves on 1, 2, 4, ... PEs, or on as many as asked for.
pub fn jacobi(args: &BenchJacobiArgs) -> Result<i32, CommandError> {
    let devices = devices()?;
    let strategy = args.strategy.unwrap_or_default();
    // Of several processes one prints.
    let rows = (!console::is_follower()).then(|| Mutex::new(Rows::new(args.json, &devices[0], 16)));
    let pes: Vec<usize> = match args.pes {
        Some(pes) => vec![pes as usize],
        // The launcher's world is what it is.
        None if under_launcher() => vec![devices.len()],
        None => (0..)
            .map(|power| 1 << power)
            .take_while(|&pes| pes <= devices.len())
            .collect(),
    };
    let planes = |sides: &[u32], problem: fn(usize) -> JacobiProblem| -> Vec<JacobiProblem> {
        sides.iter().map(|&side| problem(side as usize)).collect()
    };
    let planes = [
        planes(&args.sides, JacobiProblem::Plane),
        planes(&args.weak, JacobiProblem::Weak),
    ];
    for pes in pes {
        in_world_of(args.pes, pes, |pe| {
            let gpu = Gpu {
                device: devices[pe.my_pe() % devices.len()],
                strategy,
            };
            let problems = [JacobiProblem::Line].into_iter();
            for problem in problems.chain(planes.iter().flatten().copied()) {
                let row = bench::jacobi(pe, gpu, problem, kind_name(pe))?;
                if let (0, Some(rows)) = (pe.my_pe(), &rows) {
                    rows.lock().expect("only PE 0 locks it").show(&row)?;
                }
            }
            Ok::<_, CommandError>(())
        })?;
    }
    Ok(0)
}

fn devices() -> Result<Vec<Device>, CommandError> {
    Ok(Device::all().map_err(crosswarp::cuda::Error::from)?)
}

fn device(ordinal: usize) -> Result<Device, CommandError> {
    Ok(Device::get(ordinal).map_err(crosswarp::cuda::Error::from)?)
}

/// Shows the rows that `measure` reports, as they come, if this PE shows any.
fn show_all(
    mut rows: Option<&mut Rows>,
    measure: impl FnOnce(&mut dyn FnMut(Row)) -> Result<(), BenchError>,
) -> Result<i32, CommandError> {
    let mut outcome = Ok(());
    measure(&mut |row| {
        if let (Some(rows), Ok(())) = (&mut rows, &outcome) {
            outcome = rows.show(&row);
        }
    })?;
    outcome.map(|()| 0)
}
