//! Nsight Compute, the profiler of GPU kernels.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crosswarp::cuda::find_program;
use crosswarp::lab::measure::nsight::{ProfileError, ProfiledLaunch, parse};

use super::child::{self, last_words};

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
) -> Result<Vec<ProfiledLaunch>, ProfilingError> {
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
