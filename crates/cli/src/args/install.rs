//! The arguments of `crosswarp install`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const INSTALL_AFTER: &str = "\
Builds the C library with cargo, from the sources this command was built from, and lays out
bin, include, lib and lib/pkgconfig below the prefix.

Example:
  crosswarp install --prefix ~/.local
  oshcc -O2 ring.c -o ring
  oshrun -np 4 ./ring";

/// Arguments of `install`.
#[derive(Args, Debug)]
#[command(after_help = INSTALL_AFTER)]
pub struct InstallArgs {
    /// Where to install
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub prefix: PathBuf,
}
