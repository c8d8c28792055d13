//! The models of the lab: occupancy, bank conflicts, the roofline.

use crosswarp::lab::models::banks::{Pattern, Width};
use crosswarp::lab::models::occupancy::{ArchLimits, BlockNeeds, LimitedBy, Occupancy};
use crosswarp::lab::models::roofline::{Ceilings, DataSheet, Work};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Failure;
use crate::run::guarded;

fn input(error: impl ToString) -> Failure {
    Failure::Input(error.to_string())
}

#[pyfunction]
fn occupancy<'py>(
    py: Python<'py>,
    threads: u32,
    registers: u32,
    shared: u32,
    arch: &str,
) -> PyResult<Bound<'py, PyDict>> {
    guarded(move || {
        let name = arch
            .parse()
            .map_err(|_| input(format!("{arch:?} is no compute capability; '9.0' is one")))?;
        let limits = ArchLimits::of(name);
        let limits = limits
            .ok_or_else(|| input(format!("nothing is known of compute capability {arch}")))?;
        if !(1..=limits.threads_per_block).contains(&threads) {
            let most = limits.threads_per_block;
            return Err(input(format!(
                "a block of {threads} threads: 1 to {most} are possible"
            ))
            .into());
        }
        let needs = BlockNeeds {
            threads,
            registers,
            shared,
        };
        let found = Occupancy::new(limits, &needs);
        let said = PyDict::new(py);
        said.set_item("blocks", found.blocks)?;
        said.set_item("warps", found.warps)?;
        said.set_item("max_warps", found.max_warps)?;
        said.set_item("fraction", found.fraction())?;
        let limit = match found.limited_by {
            LimitedBy::Warps => "warps",
            LimitedBy::Registers => "registers",
            LimitedBy::Shared => "shared",
            LimitedBy::Blocks => "blocks",
        };
        said.set_item("limited_by", limit)?;
        Ok(said)
    })
}

#[pyfunction]
fn bank_conflicts(
    index: &str,
    bytes: u32,
    iterations: usize,
) -> PyResult<(Vec<usize>, Vec<usize>, f64)> {
    guarded(move || {
        let width = match bytes {
            4 => Width::Bytes4,
            8 => Width::Bytes8,
            16 => Width::Bytes16,
            _ => {
                return Err(input(format!("{bytes} bytes a lane: 4, 8 or 16 are possible")).into());
            }
        };
        let pattern = Pattern::of_index(index, width, iterations).map_err(input)?;
        let (degrees, requests) = pattern
            .analyse()
            .map(|access| (access.degree(), access.requests()))
            .unzip();
        Ok((degrees, requests, pattern.slowdown()))
    })
}

/// The GPUs of the table: key, name, bytes and single-precision operations a second.
#[pyfunction]
fn data_sheets() -> PyResult<Vec<(&'static str, &'static str, f64, f64)>> {
    guarded(move || {
        let row = |sheet: &'static DataSheet| {
            let ceilings = sheet.ceilings();
            (sheet.key, sheet.name, ceilings.bandwidth, ceilings.rate)
        };
        Ok(DataSheet::all().iter().map(row).collect())
    })
}

/// Least time, bound, intensity, ridge and attainable operations a second.
#[pyfunction]
fn roofline(
    bytes: f64,
    operations: f64,
    bandwidth: f64,
    rate: f64,
) -> PyResult<(f64, &'static str, f64, f64, f64)> {
    guarded(move || {
        let (ceilings, work) = (Ceilings { bandwidth, rate }, Work { bytes, operations });
        let intensity = work.intensity();
        Ok((
            ceilings.least_time(&work),
            ceilings.bound(&work).name(),
            intensity,
            ceilings.ridge(),
            ceilings.attainable(intensity),
        ))
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(occupancy, module)?)?;
    module.add_function(wrap_pyfunction!(bank_conflicts, module)?)?;
    module.add_function(wrap_pyfunction!(data_sheets, module)?)?;
    module.add_function(wrap_pyfunction!(roofline, module)?)
}
