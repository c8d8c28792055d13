//! The arguments of `crosswarp run`.

use std::time::Duration;

use clap::{Args, ValueHint};

const RUN_AFTER: &str = "\
Every PE is one process of this host; a Crosswarp program among them joins the world when it
starts. The run ends when all PEs have ended. If one fails, the others are ended and its exit
code is the run's. The program `crosswarp` is this very command.

The first Ctrl-C or SIGTERM (SIGHUP, SIGQUIT) is passed on and continues PEs that are stopped; they
have --grace seconds to write what they have. A second one kills them. PEs start with no signal
blocked.

Examples:
  crosswarp run -n 4 -- crosswarp solve laplace1d
  crosswarp run -n 2 --label --timeout 60 -- ./my-program --its-option";

/// Arguments of `run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_AFTER)]
pub struct RunArgs {
    /// Number of PEs
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub n: u32,
    /// End the run after this many seconds (exit code 124)
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// End PEs this many seconds after the first signal to end [default: 30]
    #[arg(long, value_name = "S", value_parser = grace)]
    pub grace: Option<Duration>,
    /// Begin every line of output with the number of its PE
    #[arg(long)]
    pub label: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub program: Vec<std::ffi::OsString>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(duration);
    let wanted = || "a positive number of seconds is needed".to_owned();
    time.filter(|time| !time.is_zero()).ok_or_else(wanted)
}

fn grace(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(duration);
    time.ok_or_else(|| "a number of seconds, 0 or more, is needed".to_owned())
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_positive_seconds() {
        assert!(seconds("0").is_err() && seconds("nan").is_err() && seconds("1e30").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(grace("0"), Ok(Duration::ZERO));
        assert!(grace("-1").is_err() && grace("nan").is_err());
    }
}
