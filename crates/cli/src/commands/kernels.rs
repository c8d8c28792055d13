//! `crosswarp kernels`: what every kernel of the project needs, and a file of all of them compiled; without a GPU.

use std::fmt::Write;

use std::path::Path;

use crosswarp::cuda::internal::kernel_table_with;
use crosswarp::cuda::{Arch, Cache, KernelRow, Occupancy, Options, Source, compile_bundle};
use crosswarp::{cuda, lab, prim, solve};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::error::CommandError;
use crate::args::kernels::KernelsArgs;
use crate::console;
use crate::output::json;
use crate::output::staged::StagedFile;
use crate::world::backend::tell_of_compilation;

/// What [`embed`] compiles for: code for one runs on later ones of the same major number.
const EMBEDDED: [Arch; 4] = [
    Arch::new(8, 0),
    Arch::new(9, 0),
    Arch::new(10, 0),
    Arch::new(12, 0),
];

/// Compiles for each architecture and prints a table, or with `--json` one object a kernel.
pub fn kernels(args: &KernelsArgs) -> Result<i32, CommandError> {
    let asked = |otherwise: &[Arch]| match &args.arch[..] {
        [] => otherwise.to_vec(),
        archs => archs.to_vec(),
    };
    Cache::on_first_compilation(tell_of_compilation);
    if let Some(path) = &args.embed {
        return embed(path, &asked(&EMBEDDED));
    }
    for (index, arch) in asked(&[Arch::new(9, 0)]).into_iter().enumerate() {
        let sources = [
            cuda::KERNELS,
            prim::internal::KERNELS,
            solve::internal::KERNELS,
            lab::KERNELS,
        ]
        .concat();
        let bar = progress_bar();
        let rows = kernel_table_with(arch, &sources, &|done, all| show(&bar, done, all))?;
        bar.finish_and_clear();
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

/// Compiles everything for `archs` into the file at `path`.
fn embed(path: &Path, archs: &[Arch]) -> Result<i32, CommandError> {
    let mut staged = StagedFile::create(path)?;
    let units = units();
    let bar = progress_bar();
    let bytes = compile_bundle(&units, archs, &|done, all| show(&bar, done, all))?;
    bar.finish_and_clear();
    staged.put(&bytes)?;
    staged.commit()?;
    let archs: Vec<String> = archs.iter().map(Arch::to_string).collect();
    console::line(format_args!(
        "{}: {} sources for each of {}, {:.1} MB",
        path.display(),
        units.len(),
        archs.join(", "),
        bytes.len() as f64 / 1e6
    ))?;
    Ok(0)
}

/// Of the sources that are compiled, at a terminal.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30.cyan/blue} {pos} of {len} sources compiled");
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        .with_style(style.expect("a template of ours"))
}

fn show(bar: &ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}

/// Everything that commands and verbs compile.
fn units() -> Vec<(Source<'static>, Options)> {
    let plain = solve::internal::KERNELS.iter().chain(lab::KERNELS);
    let plain = plain.map(|&source| (source, Options::new()));
    let chosen = cuda::internal::units()
        .into_iter()
        .chain(prim::internal::units());
    chosen.chain(plain).collect()
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
