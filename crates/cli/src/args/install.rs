//! The arguments of `crosswarp install`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const INSTALL_AFTER: &str = "\
Lays out bin, include, lib, lib/pkgconfig, man pages and completions below the prefix. The C library
is the one that came with this command; where there is none, cargo builds it, from the sources the
command was built from.

With --nvshmem, headers and a library for programs written for NVSHMEM take the place of all of
these, in a prefix that build systems are given as NVSHMEM_HOME.

Examples:
  crosswarp install --prefix ~/.local
  oshcc -O2 ring.c -o ring
  oshrun -np 4 ./ring

  crosswarp install --nvshmem --prefix ~/nvshmem
  nvcc -I ~/nvshmem/include ring.cu -L ~/nvshmem/lib -lnvshmem_host -o ring
  ~/nvshmem/bin/nvshmrun -np 2 ./ring";

/// Arguments of `install`.
#[derive(Args, Debug)]
#[command(after_help = INSTALL_AFTER)]
pub struct InstallArgs {
    /// Where to install
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub prefix: PathBuf,

    /// Headers and library for programs written for NVSHMEM, instead
    #[arg(long)]
    pub nvshmem: bool,
}
