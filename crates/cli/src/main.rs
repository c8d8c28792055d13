//! The `crosswarp` command: solves, reductions, worlds of processes.
//!
//! Only arguments, files, progress, tables and pictures live here; the numerics are in the
//! `crosswarp` crate.

mod args;
mod commands;
mod console;
mod defaults;
mod drawing;
mod format;
#[cfg(test)]
mod fuzz;
mod input;
mod output;
mod problem;
mod processor;
mod programs;
#[cfg(test)]
mod random;
mod world;

use std::process::ExitCode;
use std::time::Duration;

use args::Command;
use args::bench::BenchCommand;
use commands::error::CommandError;
use commands::{bench, histogram, info, install, kernels, lab, reduce, run, solve, transpose};
use console::interrupt::Interrupt;
use world::pes::PeError;

fn main() -> ExitCode {
    let code = match args::parse(args::given()) {
        Ok(cli) => dispatch(cli.command).unwrap_or_else(|error| {
            if !error.is_silent() && is_first_to_speak(error.is_echo()) {
                if error.has_lines() {
                    console::complain_in_lines(&error);
                } else {
                    console::complain(&error);
                }
            }
            error.exit_code()
        }),
        Err(message) => {
            // The parser repeats what is wrong as it is: what a terminal would obey it is told in other words.
            let escaped = console::escaped_arguments();
            let message = escaped
                .and_then(|arguments| args::parse(arguments).err())
                .unwrap_or(message);
            if !message.use_stderr() || is_first_to_speak(false) {
                // A closed output ends help and usage quietly.
                let _ = message.print();
            }
            message.exit_code()
        }
    };
    // Codes are 0 to 255.
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn dispatch(command: Command) -> Result<i32, CommandError> {
    match command {
        Command::Solve(args) => solve::solve(&args),
        Command::Reduce(args) => reduce::reduce(&args),
        Command::Histogram(args) => histogram::histogram(&args),
        Command::Transpose(args) => transpose::transpose(&args),
        Command::Run(args) => run::run(&args),
        Command::Host => run::host(),
        Command::Install(args) => install::install(&args),
        Command::Info(args) => info::info(&args),
        Command::Kernels(args) => kernels::kernels(&args),
        Command::Bench { what } => match what {
            BenchCommand::Cpu(args) => bench::cpu(&args),
            BenchCommand::Transpose(args) => bench::transpose(&args),
            BenchCommand::Shmem(args) => bench::shmem(&args),
            BenchCommand::Histogram(args) => bench::histogram(&args),
            BenchCommand::Jacobi(args) => bench::jacobi(&args),
            BenchCommand::Reduce(args) => bench::reduce(&args),
            BenchCommand::Prim(args) => bench::prim(&args),
            BenchCommand::Compare(args) => bench::compare::compare(&args),
        },
        Command::Occupancy(args) => lab::occupancy::occupancy(&args),
        Command::Banks(args) => lab::banks::banks(&args),
        Command::Divergence(args) => lab::divergence::divergence(&args),
        Command::Roofline(args) => lab::roofline::roofline(&args),
        Command::Ladder(args) => lab::ladder::ladder(&args),
        Command::Profile(args) => lab::profile::profile(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::command(), "crosswarp", &mut script);
            console::text(&script)?;
            Ok(0)
        }
    }
}

/// Whether an error found here is news.
///
/// In a process world most errors are found by all PEs, or echo on all PEs the failure of one.
/// PE 0 speaks before the others, and whoever has a reason before those who have only heard of
/// one. The launcher ends the others when the first has spoken.
fn is_first_to_speak(echo: bool) -> bool {
    let turn = u32::from(console::is_follower()) + 2 * u32::from(echo);
    if crosswarp::shmem::under_launcher() {
        std::thread::sleep(turn * Duration::from_millis(300));
    }
    !Interrupt::has_come()
}
