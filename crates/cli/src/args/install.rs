//! The arguments of `crosswarp install`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const INSTALL_AFTER: &str = "\
Lays out bin, include, lib, lib/pkgconfig, man pages and completions below the prefix. The C library
is the one that came with this command; where there is none, cargo builds it, from the sources the
command was built from.

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
