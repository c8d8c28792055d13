//! The arguments of `crosswarp run`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueHint};
use crosswarp::shmem::internal::GRACE;

const RUN_AFTER: &str = "\
Every PE is one process of this host, or of those of --hosts; a Crosswarp program among them joins
the world when it starts. The run ends when all PEs have ended. If one fails, the others are ended
and its exit code is the run's. The program `crosswarp` is this very command. --timeout ends
a run with exit code 124.

The first Ctrl-C or SIGTERM (SIGHUP, SIGQUIT) is passed on and continues PEs that are stopped; they
have --grace seconds to write what they have. A second one kills them. PEs start with no signal
blocked.

Examples:
  crosswarp run -n 4 -- crosswarp solve laplace1d
  crosswarp run -n 2 --label --timeout 60 -- ./my-program --its-option
  crosswarp run --hosts node1:4,node2:4 -- ./my-program";

/// Arguments of `run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_AFTER)]
pub struct RunArgs {
    /// Number of PEs, also -np [default: those of the hosts]
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    #[arg(required_unless_present_any = ["hosts", "host_file"])]
    pub n: Option<u32>,
    /// Hosts to run on, each with its number of PEs; without numbers the PEs are shared out evenly
    #[arg(long, value_name = "HOST[:N]", value_delimiter = ',')]
    pub hosts: Vec<HostArg>,
    /// A file with such a host on each line
    #[arg(long, value_name = "FILE", conflicts_with = "hosts", value_hint = ValueHint::FilePath)]
    pub host_file: Option<PathBuf>,
    /// How to start a command on a host, which follows it [default: ssh]
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub rsh: Option<String>,
    /// Send this variable to the hosts, too; may be repeated
    #[arg(long, value_name = "NAME")]
    pub pass: Vec<std::ffi::OsString>,
    /// Seconds between two signs of life of a host [default: 1]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub beat: Option<Duration>,
    /// A host that gives none for so many seconds is lost, and ends the run [default: 5]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub patience: Option<Duration>,
    /// End the run after this many seconds (exit code 124)
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    #[arg(long, value_name = "S", value_parser = grace, help = format!(
        "End PEs this many seconds after the first signal to end [default: {}]", GRACE.as_secs()
    ))]
    pub grace: Option<Duration>,
    /// Begin every line of output with the number of its PE
    #[arg(long)]
    pub label: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub program: Vec<std::ffi::OsString>,
}

/// A host as the command line and host files have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArg {
    /// Its name or address.
    pub name: String,
    /// Its PEs, if they are given.
    pub pes: Option<usize>,
}

impl FromStr for HostArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let host = |name: &str, pes| Self {
            name: name.to_owned(),
            pes,
        };
        // An IPv6 address with a number of PEs is in brackets.
        let inner = text.strip_prefix('[').and_then(|text| text.split_once(']'));
        let (name, pes) = match inner {
            Some((name, rest)) => (name, rest.strip_prefix(':')),
            None if text.matches(':').count() > 1 => (text, None),
            None => match text.split_once(':') {
                Some((name, pes)) => (name, Some(pes)),
                None => (text, None),
            },
        };
        // An option would be the remote shell's.
        if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
            return Err(format!("'{name}' is no name of a host"));
        }
        let Some(pes) = pes else {
            return Ok(host(name, None));
        };
        match pes.parse() {
            Ok(pes @ 1..=4096) => Ok(host(name, Some(pes))),
            _ => Err(format!("'{pes}' is no number of PEs from 1 to 4096")),
        }
    }
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
    fn hosts_have_names_and_numbers_of_pes() {
        let host = |text: &str| text.parse::<HostArg>().map(|host| (host.name, host.pes));
        let named = |name: &str, pes| Ok((name.to_owned(), pes));
        assert_eq!(host("node1"), named("node1", None));
        assert_eq!(host("node1:4"), named("node1", Some(4)));
        assert_eq!(host("fe80::1"), named("fe80::1", None));
        assert_eq!(host("[fe80::1]:2"), named("fe80::1", Some(2)));
        for wrong in ["", ":2", "a:0", "a:b", "-oProxyCommand=x", "a b"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_positive_seconds() {
        assert!(seconds("0").is_err() && seconds("nan").is_err() && seconds("1e30").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(grace("0"), Ok(Duration::ZERO));
        assert!(grace("-1").is_err() && grace("nan").is_err());
    }
}
