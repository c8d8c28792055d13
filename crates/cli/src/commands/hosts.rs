//! The hosts of `crosswarp run`, and what is sent to them.

use std::ffi::OsString;
use std::path::Path;

use crosswarp::shmem::internal::{BEAT, PATIENCE};
use crosswarp::shmem::{Host, HostList};

use super::error::CommandError;
use crate::args::run::{HostArg, RunArgs};

/// Variables whose names begin so mean the same on every host.
const SENT: [&str; 11] = [
    "CROSSWARP_",
    "SHMEM_",
    "SMA_",
    "OMP_",
    "RUST_",
    "UCX_",
    "NVSHMEM_",
    "NCCL_",
    "CUDA_",
    "LD_LIBRARY_PATH",
    "LC_",
];

/// Where to run; `None`: here. `command` starts a host's launcher.
pub fn hosts(args: &RunArgs, command: Vec<OsString>) -> Result<Option<HostList>, CommandError> {
    let given = match &args.host_file {
        Some(file) => read(file)?,
        None => args.hosts.clone(),
    };
    let life = [(BEAT, args.beat), (PATIENCE, args.patience)];
    let life = life.into_iter().filter_map(|(setting, time)| {
        let seconds = time?.as_secs_f64().to_string();
        Some((OsString::from(setting.name), OsString::from(seconds)))
    });
    if given.is_empty() {
        let n = args.n.unwrap_or(1) as usize;
        let mut fake = HostList::fake(n, command).map_err(crosswarp::shmem::LaunchError::from)?;
        if let Some(hosts) = &mut fake {
            hosts.environment.extend(life);
        }
        return Ok(fake);
    }
    let hosts = share_out(&given, args.n.map(|n| n as usize)).map_err(CommandError::Usage)?;
    let rsh = args.rsh.as_deref().unwrap_or("ssh");
    let sent = |(name, _): &(OsString, OsString)| {
        if args.pass.contains(name) {
            return true;
        }
        let name = name.to_string_lossy();
        SENT.iter().any(|sent| name.starts_with(sent))
    };
    Ok(Some(HostList {
        hosts,
        rsh: rsh.split_whitespace().map(OsString::from).collect(),
        command,
        folder: std::env::current_dir().map_err(CommandError::Executable)?,
        environment: std::env::vars_os().filter(sent).chain(life).collect(),
    }))
}

/// How many PEs each host runs, of `n` in all if that is given.
fn share_out(given: &[HostArg], n: Option<usize>) -> Result<Vec<Host>, String> {
    let numbered: usize = given.iter().filter_map(|host| host.pes).sum();
    let open = given.iter().filter(|host| host.pes.is_none()).count();
    let left = n.map_or(Some(open), |n| n.checked_sub(numbered));
    let fits = left.filter(|&left| left >= open && (open > 0 || left == 0));
    let left = fits.ok_or_else(|| {
        let (n, hosts) = (n.unwrap_or(0), given.len());
        format!("{n} PEs do not go on these {hosts} hosts, of which {open} without a number, and the others run {numbered}")
    })?;
    let mut shares = (0..open).map(|i| left / open + usize::from(i < left % open));
    let hosts = given.iter().map(|host| Host {
        name: host.name.clone(),
        pes: host.pes.or_else(|| shares.next()).unwrap_or(1),
    });
    Ok(hosts.collect())
}

/// The hosts of a file, one a line; `#` begins a comment.
fn read(file: &Path) -> Result<Vec<HostArg>, CommandError> {
    let bad = |reason: String| CommandError::Usage(format!("{}: {reason}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim());
    let hosts = lines.filter(|line| !line.is_empty()).map(str::parse);
    let hosts: Vec<HostArg> = hosts.collect::<Result<_, _>>().map_err(bad)?;
    match hosts.is_empty() {
        true => Err(bad("it names no host".into())),
        false => Ok(hosts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(given: &str, n: Option<usize>) -> Option<Vec<usize>> {
        let given: Vec<HostArg> = given.split(',').map(|host| host.parse().unwrap()).collect();
        let hosts = share_out(&given, n).ok()?;
        Some(hosts.iter().map(|host| host.pes).collect())
    }

    #[test]
    fn pes_go_where_they_are_sent_or_are_shared_out() {
        assert_eq!(shares("a,b", None), Some(vec![1, 1]));
        assert_eq!(shares("a,b:4", None), Some(vec![1, 4]));
        assert_eq!(shares("a,b", Some(5)), Some(vec![3, 2]));
        assert_eq!(shares("a:2,b", Some(5)), Some(vec![2, 3]));
        assert_eq!(shares("a:2,b:2", Some(4)), Some(vec![2, 2]));
        assert_eq!(shares("a:2,b:2", Some(5)), None);
        assert_eq!(shares("a,b", Some(1)), None);
    }
}
