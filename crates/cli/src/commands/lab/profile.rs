//! `crosswarp profile`: a program under Nsight Compute, and the model beside it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crosswarp::cuda::find_program;
use crosswarp::lab::measure::nsight::{Launched, ProfileError, SECTIONS, parse};
use serde_json::{Value, json};

use crate::args::lab::ProfileArgs;
use crate::child::{self, last_words};
use crate::commands::error::CliError;
use crate::console;
use crate::format::{counted, general};

/// The environment's name of the profiler.
const VARIABLE: &str = "CROSSWARP_NCU";

/// What went wrong with a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfilingError {
    /// No profiler.
    #[error(
        "no Nsight Compute (ncu): {0}; it comes with the CUDA toolkit, and {VARIABLE} may name it. \
         Without it, `crosswarp occupancy FILE.cu` has the model's part"
    )]
    NoProfiler(String),
    /// The profiler or the program does not start.
    #[error("{}: {source}", program.display())]
    Start {
        /// What was started.
        program: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The profiler failed, or its table cannot be read.
    #[error("{source}; {} ({ended}) said last: {}", profiler.display(), said(words))]
    Table {
        /// What is wrong with the table.
        source: ProfileError,
        /// The profiler.
        profiler: PathBuf,
        /// How it ended.
        ended: ExitStatus,
        /// The last that it and the program wrote.
        words: String,
    },
    /// The program failed.
    #[error(
        "the profiled program ended with code {code}; it and Nsight Compute said last: {}",
        said(words)
    )]
    Program {
        /// Its code.
        code: i32,
        /// The last that it and the profiler wrote.
        words: String,
    },
}

fn said(words: &str) -> &str {
    if words.is_empty() { "nothing" } else { words }
}

/// Profiles the program, or, on the other PEs of a world, becomes it.
pub fn profile(args: &ProfileArgs) -> Result<i32, CliError> {
    let (program, rest) = args
        .program
        .split_first()
        .expect("the parser asks for a program");
    let program = if program == "crosswarp" {
        std::env::current_exe().map_err(CliError::Executable)?
    } else {
        PathBuf::from(program)
    };
    if crosswarp::shmem::under_launcher() {
        let pe = std::env::var("CROSSWARP_PE").ok();
        let pe = pe.and_then(|pe| pe.parse::<u32>().ok());
        if pe != Some(args.pe) {
            // The world's descriptors are inherited; this process is the PE from here on.
            let source = Command::new(&program).args(rest).exec();
            return Err(ProfilingError::Start { program, source }.into());
        }
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
            console::line(as_json(launched))?;
        }
    } else {
        let texts: Vec<String> = launches.iter().map(text).collect();
        console::line(texts.join("\n\n"))?;
    }
    Ok(0)
}

/// Which launches are profiled, and for what.
#[derive(Default)]
pub struct Selection<'a> {
    /// The profiler's sections.
    pub sections: &'a [&'a str],
    /// Metrics beside those of the sections.
    pub metrics: Option<&'a str>,
    /// Only kernels of this name.
    pub kernel: Option<&'a str>,
    /// After so many launches.
    pub skip: u32,
    /// So many launches, or all.
    pub launches: Option<u32>,
}

/// Runs the program under the profiler.
pub fn collect(
    selection: &Selection,
    program: &Path,
    rest: &[OsString],
) -> Result<Vec<Launched>, ProfilingError> {
    let profiler = find().map_err(ProfilingError::NoProfiler)?;
    let failed = |source| ProfilingError::Start {
        program: profiler.clone(),
        source,
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let log = folder.path().join("ncu.csv");
    let mut command = Command::new(&profiler);
    command
        .args(["--csv", "--page", "details", "--clock-control", "none"])
        .args(["--target-processes", "all", "--log-file"])
        .arg(&log)
        .args(["--launch-skip", &selection.skip.to_string()]);
    if let Some(launches) = selection.launches {
        command.args(["--launch-count", &launches.to_string()]);
    }
    for section in selection.sections {
        command.args(["--section", section]);
    }
    if let Some(metrics) = selection.metrics {
        command.args(["--metrics", metrics]);
    }
    if let Some(kernel) = selection.kernel {
        command.args(["--kernel-name", kernel]);
    }
    let ended = child::run(command.arg(program).args(rest)).map_err(failed)?;
    let table = std::fs::read(&log).unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    let source = match parse(&table) {
        Ok(launches) => return Ok(launches),
        Err(error) => error,
    };
    // The profiler's messages are in its log, before the table.
    let log = table.split("\"ID\"").next().unwrap_or_default();
    let words = [last_words(log.as_bytes()), ended.words];
    let words: Vec<String> = words
        .into_iter()
        .filter(|words| !words.is_empty())
        .collect();
    let words = words.join(" | ");
    Err(match ended.status.code() {
        // What the program said itself says more than an empty table.
        Some(code @ 1..) if source == ProfileError::NoKernel => {
            ProfilingError::Program { code, words }
        }
        _ => ProfilingError::Table {
            source,
            profiler,
            ended: ended.status,
            words,
        },
    })
}

/// The profiler: named by the environment, or on the path.
fn find() -> Result<PathBuf, String> {
    let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) else {
        return find_program("ncu");
    };
    let named = PathBuf::from(named);
    match named.is_absolute() {
        true => Ok(named),
        false => Err(format!(
            "{VARIABLE}={} is a relative path, which depends on the current folder; give an absolute one",
            named.display()
        )),
    }
}

const SPEED_OF_LIGHT: [(&str, &str); 5] = [
    ("Memory Throughput", "memory"),
    ("DRAM Throughput", "device memory"),
    ("L2 Cache Throughput", "level-2 cache"),
    ("L1/TEX Cache Throughput", "level-1 cache"),
    ("Compute (SM) Throughput", "compute"),
];

fn text(launched: &Launched) -> String {
    let mut out = format!(
        "{}: {} of {}",
        launched.kernel,
        counted(launched.grid, "block"),
        counted(launched.threads.into(), "thread")
    );
    if let Some(duration) = launched.metric("Duration") {
        let _ = write!(out, ", {} us", general(1e6 * duration, 5));
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

fn as_json(launched: &Launched) -> Value {
    let model = launched.model();
    let shares: serde_json::Map<String, Value> = SPEED_OF_LIGHT
        .iter()
        .filter_map(|(metric, name)| Some(((*name).to_owned(), launched.metric(metric)?.into())))
        .collect();
    json!({
        "kernel": launched.kernel,
        "blocks": launched.grid,
        "threads": launched.threads,
        "us": launched.metric("Duration").map(|seconds| 1e6 * seconds),
        "registers": launched.metric("Registers Per Thread"),
        "speed_of_light": shares,
        "theoretical_occupancy": launched.metric("Theoretical Occupancy").map(|percent| percent / 100.0),
        "achieved_occupancy": launched.metric("Achieved Occupancy").map(|percent| percent / 100.0),
        "model_occupancy": model.map(|model| model.fraction()),
        "waves": launched.metric("Waves Per SM"),
        "model_waves": launched.model_waves(),
    })
}
