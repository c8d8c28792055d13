//! The command line: the commands, and what they have in common.

pub mod backend;
pub mod banks;
pub mod bench;
pub mod compare;
mod data_sheet;
pub mod divergence;
mod exit_codes;
pub mod histogram;
pub mod info;
pub mod install;
pub mod kernels;
pub mod ladder;
pub mod occupancy;
pub mod pictures;
pub mod profile;
pub mod reduce;
pub mod roofline;
pub mod run;
pub mod solve;
pub mod transpose;

use std::ffi::OsString;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use banks::BanksArgs;
use bench::BenchCommand;
use divergence::DivergenceArgs;
use exit_codes::EXIT_CODES;
use histogram::HistogramArgs;
use info::InfoArgs;
use install::InstallArgs;
use kernels::KernelsArgs;
use ladder::LadderArgs;
use occupancy::OccupancyArgs;
use profile::ProfileArgs;
use reduce::ReduceArgs;
use roofline::RooflineArgs;
use run::RunArgs;
use solve::SolveArgs;
use transpose::TransposeArgs;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  crosswarp solve laplace1d
  crosswarp solve laplace2d --png potential.png --plot convergence.svg
  crosswarp solve fill --values dem.npy --known known.npy -o filled.npy --png filled.png
  crosswarp reduce sum samples.npy
  crosswarp occupancy kernel.cu --gpu h100
  crosswarp ladder reduce --html report.html
  crosswarp run -n 4 -- crosswarp solve laplace1d";

/// Laplace and Poisson problems and reproducible reductions over one or many PEs.
#[derive(Parser, Debug)]
#[command(name = "crosswarp", version, styles = STYLES, max_term_width = 100)]
#[command(after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Solve a Laplace or Poisson problem by multigrid or Jacobi sweeps
    Solve(Box<SolveArgs>),
    /// Reduce the elements of NPY files to one value, the same bits for any number of PEs
    Reduce(ReduceArgs),
    /// Count the samples of an NPY file in bins
    Histogram(Box<HistogramArgs>),
    /// Transpose the matrices of an NPY file into another
    Transpose(TransposeArgs),
    /// Run a program as a world of PEs, one process each
    Run(RunArgs),
    /// Install OpenSHMEM for C and C++: oshcc, oshc++, oshrun, shmem.h, the library
    Install(InstallArgs),
    /// Show what this machine offers and what would be used
    Info(InfoArgs),
    /// Compile every GPU kernel and show what it needs; takes NVRTC and minutes, no GPU
    Kernels(KernelsArgs),
    /// How many blocks of a kernel an SM holds, and what stops more; no GPU needed
    Occupancy(Box<OccupancyArgs>),
    /// Bank conflicts of accesses to shared memory; no GPU needed
    Banks(BanksArgs),
    /// Lanes that idle in the reduction trees of a block; no GPU needed
    Divergence(DivergenceArgs),
    /// What bandwidth and arithmetic allow a kernel; no GPU needed
    Roofline(Box<RooflineArgs>),
    /// Every textbook variant of a problem, checked and measured beside the roof
    Ladder(LadderArgs),
    /// Run a program under Nsight Compute, with the model beside what it measures
    Profile(ProfileArgs),
    /// Measure this machine
    Bench {
        /// What to measure
        #[command(subcommand)]
        what: BenchCommand,
    },
    /// Run one host's part of a world; started by `run` on each of its hosts
    #[command(hide = true)]
    Host,
    /// Write a completion script for a shell to standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The table of arguments. Every command's help ends with the exit codes.
pub fn command() -> clap::Command {
    with_exit_codes(Cli::command())
}

fn with_exit_codes(command: clap::Command) -> clap::Command {
    let text = match command.get_after_help() {
        Some(examples) => format!("{examples}\n\n{EXIT_CODES}"),
        None => EXIT_CODES.to_owned(),
    };
    command.mut_subcommands(with_exit_codes).after_help(text)
}

/// What `words`, the command line, say.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut table = command();
    let matches = table.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut table))
}

/// The command line; `run -np N`, as MPI's and OpenSHMEM's launchers write it, is `run -n N`.
pub fn given() -> Vec<OsString> {
    with_np(std::env::args_os().collect())
}

fn with_np(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "run") {
        let ours = words.iter_mut().take_while(|word| *word != "--");
        for word in ours.filter(|word| *word == "-np") {
            *word = "-n".into();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_help_ends_with_the_exit_codes() {
        fn check(command: &mut clap::Command) {
            let help = command.render_help().to_string();
            assert!(help.trim_end().ends_with(EXIT_CODES), "{help}");
            // `help`, the command, is the parser's own.
            let ours = command.get_subcommands_mut();
            ours.filter(|inner| inner.get_name() != "help")
                .for_each(check);
        }
        check(&mut command());
    }

    #[test]
    fn the_table_of_arguments_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn negative_values_and_boundaries_are_understood() {
        let cli = Cli::try_parse_from([
            "crosswarp",
            "solve",
            "laplace1d",
            "--left",
            "-5",
            "--right",
            "-1e-3",
        ])
        .unwrap();
        let Command::Solve(solve) = cli.command else {
            panic!()
        };
        assert_eq!((solve.left, solve.right), (Some(-5.0), Some(-1e-3)));
    }

    #[test]
    fn np_is_taken_before_the_program_only() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            with_np(words("crosswarp run -np 2 -- a -np 3")),
            words("crosswarp run -n 2 -- a -np 3")
        );
        assert_eq!(
            with_np(words("crosswarp solve -np")),
            words("crosswarp solve -np")
        );
    }
}
