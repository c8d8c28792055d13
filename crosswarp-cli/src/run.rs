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
    // `crosswarp` alone is this very command, installed or not.
    let own = program == "crosswarp";
    let program = if own {
        this_command()?
    } else {
        program.clone()
    };
    let mut launch = Launch::new(args.n as usize, program)
        .args(rest)
        .label(args.label);
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
                None => console::complain(format_args!("PE {pe} had not waited for anyone")),
            }
        }
    }
    if let Some(failure) = &outcome.failure {
        // This command says itself why it ends with a code, which may be no error at all.
        if !own || failure.status.code().is_none() {
            console::complain(failure);
        }
    }
    Ok(outcome.code())
}

fn this_command() -> Result<OsString, CliError> {
    let path = std::env::current_exe().map_err(CliError::Executable)?;
    Ok(path.into())
}
