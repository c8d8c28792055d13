//! `crosswarp profile`: a program under Nsight Compute, and the model beside it.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use crosswarp::lab::measure::nsight::{ProfiledLaunch, SECTIONS};
use serde_json::{Value, json};

use crate::args::profile::ProfileArgs;
use crate::commands::error::CommandError;
use crate::console;
use crate::format::{counted, general, microseconds};
use crate::output::json;
use crate::programs::nsight_compute::{ProfilingError, Selection, collect};

/// Profiles the program, or, on the other PEs of a world, becomes it.
pub fn profile(args: &ProfileArgs) -> Result<i32, CommandError> {
    let (program, rest) = args
        .program
        .split_first()
        .expect("the parser asks for a program");
    let program = if program == "crosswarp" {
        std::env::current_exe().map_err(CommandError::Executable)?
    } else {
        PathBuf::from(program)
    };
    if crosswarp::shmem::under_launcher()
        && crosswarp::shmem::launched_pe() != Some(args.pe as usize)
    {
        // What the launcher left open is inherited; this process is the PE from here on.
        let source = Command::new(&program).args(rest).exec();
        return Err(ProfilingError::Start { program, source }.into());
    }
    let selection = Selection {
        sections: &SECTIONS,
        metrics: None,
        kernel: args.kernel.as_deref(),
        skip: args.skip,
        launches: Some(args.launches),
    };
    let launches = collect(&selection, &program, rest)?;
    if args.json {
        for launched in &launches {
            console::line(json::line(&as_json(launched)))?;
        }
    } else {
        let texts: Vec<String> = launches.iter().map(text).collect();
        console::line(texts.join("\n\n"))?;
    }
    Ok(0)
}

const SPEED_OF_LIGHT: [(&str, &str); 5] = [
    ("Memory Throughput", "memory"),
    ("DRAM Throughput", "device memory"),
    ("L2 Cache Throughput", "level-2 cache"),
    ("L1/TEX Cache Throughput", "level-1 cache"),
    ("Compute (SM) Throughput", "compute"),
];

fn text(launched: &ProfiledLaunch) -> String {
    let mut out = format!(
        "{}: {} of {}",
        launched.kernel,
        counted(launched.grid, "block"),
        counted(launched.threads.into(), "thread")
    );
    if let Some(duration) = launched.metric("Duration") {
        let _ = write!(out, ", {} us", microseconds(duration));
    }
    out.push_str("\n  speed of light:");
    for (metric, name) in SPEED_OF_LIGHT {
        // The same name also has a rate in bytes; the share is the one up to 100.
        if let Some(share) = launched.metric(metric) {
            let _ = write!(out, "  {name} {} %", general(share, 3));
        }
    }
    let _ = write!(out, "\n  {:<24}{:>12}{:>12}", "", "measured", "model");
    let model = launched.model();
    let mut row = |name: &str, measured: Option<f64>, predicted: Option<f64>, unit: &str| {
        let cell = |value: Option<f64>| {
            value.map_or("-".to_owned(), |value| {
                format!("{}{unit}", general(value, 4))
            })
        };
        if measured.is_some() {
            let _ = write!(
                out,
                "\n  {name:<24}{:>12}{:>12}",
                cell(measured),
                cell(predicted)
            );
        }
    };
    let metric = |name| launched.metric(name);
    row(
        "registers of a thread",
        metric("Registers Per Thread"),
        None,
        "",
    );
    let limits = [
        (
            "Block Limit Registers",
            "blocks by registers",
            model.map(|m| m.by_registers),
        ),
        (
            "Block Limit Shared Mem",
            "blocks by shared memory",
            model.map(|m| m.by_shared),
        ),
        (
            "Block Limit Warps",
            "blocks by warps",
            model.map(|m| m.by_warps),
        ),
    ];
    for (name, words, predicted) in limits {
        row(words, metric(name), predicted.map(f64::from), "");
    }
    let theoretical = model.map(|model| 100.0 * model.fraction());
    row(
        "theoretical occupancy",
        metric("Theoretical Occupancy"),
        theoretical,
        " %",
    );
    row(
        "achieved occupancy",
        metric("Achieved Occupancy"),
        None,
        " %",
    );
    row("waves", metric("Waves Per SM"), launched.model_waves(), "");
    out
}

fn as_json(launched: &ProfiledLaunch) -> Value {
    let model = launched.model();
    let shares: serde_json::Map<String, Value> = SPEED_OF_LIGHT
        .iter()
        .filter_map(|(metric, name)| Some(((*name).to_owned(), launched.metric(metric)?.into())))
        .collect();
    json!({
        "kernel": launched.kernel,
        "blocks": launched.grid,
        "threads": launched.threads,
        "seconds": launched.metric("Duration"),
        "registers": launched.metric("Registers Per Thread"),
        "speed_of_light": shares,
        "theoretical_occupancy": launched.metric("Theoretical Occupancy").map(|percent| percent / 100.0),
        "achieved_occupancy": launched.metric("Achieved Occupancy").map(|percent| percent / 100.0),
        "model_occupancy": model.map(|model| model.fraction()),
        "waves": launched.metric("Waves Per SM"),
        "model_waves": launched.model_waves(),
    })
}
