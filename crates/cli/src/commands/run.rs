//! `crosswarp run`: a program as a world of processes.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crosswarp::shmem::internal::{name_static_data, other_openshmem_of};
use crosswarp::shmem::{HostList, Launch, run_for_launcher};

use super::error::CommandError;
use crate::args::run::RunArgs;
use crate::console;

/// Runs the program on every PE; the exit code is the run's.
pub fn run(args: &RunArgs) -> Result<i32, CommandError> {
    let (program, rest) = args
        .program
        .split_first()
        .expect("the parser asks for a program");
    // `crosswarp` alone is this very command, installed or not.
    let own = program == "crosswarp";
    let program = if own {
        this_command()?
    } else {
        program.clone()
    };
    if let Some(file) = file_of(&program) {
        if let Some(other) = other_openshmem_of(&file) {
            console::complain(format_args!(
                "{} is linked with {other}, another OpenSHMEM library, so each PE will be alone; compile it with Crosswarp's oshcc",
                file.display()
            ));
        }
        name_static_data(file);
    }
    let command = vec![this_command()?, "host".into()];
    let hosts = super::hosts::hosts(args, command)?;
    let n = args.n.unwrap_or(1) as usize;
    // Other folders may be searched elsewhere.
    let found = hosts.as_ref().and_then(|_| absolute(&program));
    let mut launch = Launch::new(n, found.unwrap_or(program))
        .args(rest)
        .label(args.label);
    if let Some(hosts) = &hosts {
        launch = launch.hosts(hosts.clone());
    }
    if let Some(limit) = args.timeout {
        launch = launch.timeout(limit);
    }
    if let Some(grace) = args.grace {
        launch = launch.grace(grace);
    }
    let outcome = launch.run()?;
    if let Some(waits) = &outcome.timed_out {
        let limit = args.timeout.unwrap_or_default().as_secs_f64();
        console::complain(format_args!("ended after the time limit of {limit} s"));
        for (pe, wait) in waits {
            match wait {
                Some(wait) => console::complain(format_args!("PE {pe} last waited for {wait}")),
                None => console::complain(format_args!("PE {pe} was not waiting for anyone")),
            }
        }
    }
    if let Some(lost) = &outcome.lost {
        console::complain(lost);
    }
    if let Some(failure) = &outcome.failure {
        // This command says itself why it ends with a code, which may be no error at all.
        if !own || failure.status.code().is_none() {
            match hosts.as_ref().and_then(|hosts| host_of(hosts, failure.pe)) {
                Some(host) => console::complain(format_args!("host {host}: {failure}")),
                None => console::complain(failure),
            }
        }
    }
    Ok(outcome.code())
}

/// The name of the host that runs `pe`.
fn host_of(hosts: &HostList, pe: usize) -> Option<&str> {
    let mut end = 0;
    let host = hosts.hosts.iter().find(|host| {
        end += host.pes;
        pe < end
    });
    host.map(|host| host.name.as_str())
}

/// Runs one host's part of a world.
pub fn host() -> Result<i32, CommandError> {
    run_for_launcher()?;
    Ok(0)
}

/// The program by its whole path, where it is found here.
fn absolute(program: &OsStr) -> Option<OsString> {
    let file = std::path::absolute(file_of(program)?).ok()?;
    Some(file.into())
}

/// Where the system finds a program.
fn file_of(program: &OsStr) -> Option<PathBuf> {
    let as_given = PathBuf::from(program);
    if as_given.components().count() > 1 {
        return Some(as_given);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn this_command() -> Result<OsString, CommandError> {
    let path = std::env::current_exe().map_err(CommandError::Executable)?;
    Ok(path.into())
}
