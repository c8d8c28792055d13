//! `crosswarp run`: a program as a world of processes.

use std::ffi::OsString;

use crosswarp::shmem::Launch;

use crate::args::RunArgs;
use crate::console;
use crate::error::CliError;

/// Runs the program on every PE; the exit code is the run's.
pub fn run(args: &RunArgs) -> Result<i32, CliError> {
    let (program, rest) = args
        .program
        .split_first()
        .expect("the parser asks for a program");
    let mut launch = Launch::new(args.n as usize, this_command(program)?)
        .args(rest)
        .label(args.label);
    if let Some(limit) = args.timeout {
        launch = launch.timeout(limit);
    }
    let outcome = launch.run()?;
    if let Some(waits) = &outcome.timed_out {
        let limit = args.timeout.unwrap_or_default().as_secs_f64();
        console::complain(format_args!("ended after the time limit of {limit} s"));
        for (pe, wait) in waits {
            match wait {
                Some(wait) => console::complain(format_args!("PE {pe} last waited for {wait}")),
                None => console::complain(format_args!("PE {pe} had not waited for anyone")),
            }
        }
    }
    if let Some(failure) = &outcome.failure {
        console::complain(failure);
    }
    Ok(outcome.code())
}

/// The program to start: `crosswarp` alone is this very command, installed or not.
fn this_command(program: &OsString) -> Result<OsString, CliError> {
    if program != "crosswarp" {
        return Ok(program.clone());
    }
    std::env::current_exe()
        .map(Into::into)
        .map_err(CliError::Executable)
}
