//! `crosswarp kernels`: what every kernel of the project needs, without a GPU.

use std::fmt::Write;

use crosswarp::cuda::{Arch, KernelRow, Occupancy, kernel_table};
use crosswarp::{cuda, lab, prim, solve};

use serde::Serialize;

use super::error::CommandError;
use crate::args::kernels::KernelsArgs;
use crate::console;
use crate::output::json;

/// Compiles for each architecture and prints a table, or with `--json` one object a kernel.
pub fn kernels(args: &KernelsArgs) -> Result<i32, CommandError> {
    for (index, &arch) in args.arch.iter().enumerate() {
        let mut rows = Vec::new();
        for kernels in [
            cuda::KERNELS,
            prim::internal::KERNELS,
            solve::internal::KERNELS,
            lab::KERNELS,
        ] {
            rows.extend(kernel_table(arch, kernels)?);
        }
        if args.json {
            for row in &rows {
                console::line(as_json(arch, row))?;
            }
            continue;
        }
        let gap = if index > 0 { "\n" } else { "" };
        console::line(format_args!("{gap}{}", table(arch, &rows)))?;
    }
    Ok(0)
}

fn table(arch: Arch, rows: &[KernelRow]) -> String {
    let width = rows.iter().map(|row| row.resources.name.len()).max();
    let width = width.unwrap_or(0).max(6);
    let mut text = format!(
        "{:<width$}  registers  shared  dynamic  local  threads  occupancy",
        arch.to_string()
    );
    for row in rows {
        let needs = &row.resources;
        let occupancy = match &row.occupancy {
            Some(occupancy) => format!("{:.0} %", 100.0 * occupancy.fraction()),
            None => "unknown".to_owned(),
        };
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "\n{:<width$}  {:>9}  {:>6}  {:>7}  {:>5}  {:>7}  {occupancy:>9}",
            needs.name,
            needs.registers,
            needs.static_shared,
            row.dynamic_shared,
            needs.local,
            row.threads,
        );
    }
    text
}

fn as_json(arch: Arch, row: &KernelRow) -> String {
    #[derive(Serialize)]
    struct Object<'a> {
        arch: String,
        kernel: &'a str,
        registers: u32,
        shared: u32,
        dynamic_shared: u32,
        local: u32,
        threads: u32,
        /// Null where the architecture's limits are not known.
        occupancy: Option<f64>,
    }
    let needs = &row.resources;
    json::line(&Object {
        arch: arch.to_string(),
        kernel: &needs.name,
        registers: needs.registers,
        shared: needs.static_shared,
        dynamic_shared: row.dynamic_shared,
        local: needs.local,
        threads: row.threads,
        occupancy: row.occupancy.as_ref().map(Occupancy::fraction),
    })
}
