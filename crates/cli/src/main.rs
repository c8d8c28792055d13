//! The `crosswarp` command: solves, reductions, worlds of processes.
//!
//! Only arguments, files, progress, tables and pictures live here; the numerics are in the
//! `crosswarp` crate.

mod args;
mod backend;
mod bars;
mod bench;
mod bench_histogram;
mod bench_jacobi;
mod bench_transpose;
mod boundary;
mod console;
mod error;
mod expression;
#[cfg(test)]
mod fuzz;
mod general;
mod grid;
mod histogram;
mod history;
mod image_input;
mod info;
mod input;
mod install;
mod interrupt;
mod kernels;
mod lab;
mod npy;
mod outputs;
mod picture;
mod plot;
mod problem;
mod problem_file;
mod progress;
mod reduce;
mod report;
mod run;
mod solve;
mod staged;
mod ticks;
mod tool;
mod topology;
mod transpose;
mod vti;
mod world;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use args::{BenchCommand, Cli, Command};
use error::CliError;
use interrupt::Interrupt;

fn main() -> ExitCode {
    let code = match Cli::try_parse() {
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
                .and_then(|arguments| Cli::try_parse_from(arguments).err())
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

fn dispatch(command: Command) -> Result<i32, CliError> {
    match command {
        Command::Solve(args) => solve::solve(&args),
        Command::Reduce(args) => reduce::reduce(&args),
        Command::Histogram(args) => histogram::histogram(&args),
        Command::Transpose(args) => transpose::transpose(&args),
        Command::Run(args) => run::run(&args),
        Command::Install(args) => install::install(&args),
        Command::Info => info::info(),
        Command::Kernels(args) => kernels::kernels(&args),
        Command::Bench { what } => match what {
            BenchCommand::Transpose(args) => bench_transpose::transpose(&args),
            BenchCommand::Shmem(args) => bench::shmem(&args),
            BenchCommand::Histogram(args) => bench_histogram::histogram(&args),
            BenchCommand::Jacobi(args) => bench_jacobi::jacobi(&args),
            BenchCommand::Reduce(args) => bench::reduce(&args),
            BenchCommand::Prim(args) => bench::prim(&args),
            BenchCommand::Compare(args) => lab::compare(&args),
        },
        Command::Occupancy(args) => lab::occupancy(&args),
        Command::Banks(args) => lab::banks(&args),
        Command::Divergence(args) => lab::divergence(&args),
        Command::Roofline(args) => lab::roofline(&args),
        Command::Ladder(args) => lab::ladder(&args),
        Command::Profile(args) => lab::profile(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "crosswarp", &mut script);
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
