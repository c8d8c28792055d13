//! `crosswarp bench shmem` and `bench reduce`: the device verbs and reductions measured on this machine's
//! GPUs.

use crosswarp::cuda::{BenchRow, Device, bench_shmem};
use crosswarp::prim::cuda::{ReduceBenchRow, bench_reduce};

use crate::args::{BenchReduceArgs, BenchShmemArgs};
use crate::console;
use crate::error::CliError;
use crate::world::{in_world_of, kind_name};

/// Measures and prints a table, or with `--json` one object a line.
pub fn shmem(args: &BenchShmemArgs) -> Result<i32, CliError> {
    let devices = Device::all().map_err(crosswarp::cuda::Error::from)?;
    let pes = args.pes.map_or(devices.len(), |pes| pes as usize);
    in_world_of(args.pes, pes, |pe| {
        let device = devices[pe.my_pe() % devices.len()];
        let mut outcome = Ok(());
        if pe.my_pe() == 0 && !args.json {
            outcome = console::line(format_args!(
                "{:<26}{:>8}{:>12}{:>5}{:>12}{:>12}{:>12}{:>11}",
                "what", "scope", "bytes", "PEs", "us", "min", "max", "GB/s"
            ));
        }
        bench_shmem(pe, device, |row| {
            if pe.my_pe() == 0 && outcome.is_ok() {
                let line = if args.json {
                    json(row, kind_name(pe))
                } else {
                    line(row)
                };
                outcome = console::line(format_args!("{line}"));
            }
        })?;
        Ok(outcome.map(|()| 0)?)
    })
}

/// Payload over time; nothing for rows without payload to speak of.
fn gigabytes(row: &BenchRow) -> Option<f64> {
    (row.bytes >= 1 << 16).then(|| row.bytes as f64 / row.us / 1e3)
}

fn line(row: &BenchRow) -> String {
    format!(
        "{:<26}{:>8}{:>12}{:>5}{:>12.3}{:>12.3}{:>12.3}{:>11}",
        row.what,
        row.scope,
        row.bytes,
        row.pes,
        row.us,
        row.us_min,
        row.us_max,
        gigabytes(row).map_or(String::new(), |rate| format!("{rate:.1}")),
    )
}

fn json(row: &BenchRow, world: &str) -> String {
    let mut object = serde_json::json!({
        "impl": "crosswarp",
        "version": env!("CARGO_PKG_VERSION"),
        "world": world,
        "what": row.what,
        "scope": row.scope,
        "pes": row.pes,
        "bytes": row.bytes,
        "blocks": row.blocks,
        "threads": row.threads,
        "iterations": row.iterations,
        "repetitions": row.repetitions,
        "us": row.us,
        "us_min": row.us_min,
        "us_max": row.us_max,
    });
    if let Some(rate) = gigabytes(row) {
        object["gbs"] = rate.into();
    }
    object.to_string()
}

/// Measures sums and prints a table, or with `--json` one object a line.
pub fn reduce(args: &BenchReduceArgs) -> Result<i32, CliError> {
    let device = Device::get(args.device).map_err(crosswarp::cuda::Error::from)?;
    let mut outcome = Ok(());
    if !args.json {
        outcome = console::line(format_args!(
            "{:<6}{:>12}{:>13}{:>12}{:>12}{:>12}{:>11}",
            "type", "elements", "calls", "us", "min", "max", "GB/s"
        ));
    }
    bench_reduce(&device, |row| {
        if outcome.is_ok() {
            outcome = if args.json {
                console::line(reduce_json(row))
            } else {
                console::line(reduce_line(row))
            };
        }
    })?;
    Ok(outcome.map(|()| 0)?)
}

fn reduce_line(row: &ReduceBenchRow) -> String {
    format!(
        "{:<6}{:>12}{:>13}{:>12.3}{:>12.3}{:>12.3}{:>11.1}",
        row.dtype.to_string(),
        row.elements,
        row.calls.name(),
        row.us,
        row.us_min,
        row.us_max,
        row.bytes as f64 / row.us / 1e3,
    )
}

fn reduce_json(row: &ReduceBenchRow) -> String {
    serde_json::json!({
        "impl": "crosswarp",
        "version": env!("CARGO_PKG_VERSION"),
        "what": format!("reduce_sum_{}_{}", row.dtype, row.calls.name()),
        "pes": 1,
        "scope": "",
        "bytes": row.bytes,
        "iterations": row.iterations,
        "repetitions": row.repetitions,
        "us": row.us,
        "us_min": row.us_min,
        "us_max": row.us_max,
        "gbs": row.bytes as f64 / row.us / 1e3,
    })
    .to_string()
}
