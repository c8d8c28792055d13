//! The arguments of `crosswarp transpose`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::backend::BackendArgs;

const TRANSPOSE_AFTER: &str = "\
A file of shape (rows, columns) becomes one of (columns, rows); one of (matrices, rows, columns),
each matrix by itself, one of (matrices, columns, rows). Any dtype of NPY that is a plain number.
The file may be larger than memory, and than a GPU's: it goes through in panels, one GPU working
beside the reading and writing. Under `crosswarp run`, and with --pes on GPUs, the PEs share the
rows of each matrix, which must then fit their memory, and PE 0 writes.

Examples:
  crosswarp transpose table.npy --output columns.npy
  crosswarp transpose images.npy -o turned.npy --json
  crosswarp run -n 4 -- crosswarp transpose table.npy -o columns.npy";

/// Arguments of `transpose`.
#[derive(Args, Debug)]
#[command(after_help = TRANSPOSE_AFTER)]
pub struct TransposeArgs {
    /// NPY file of 2 or 3 axes, - for standard input
    #[arg(value_name = "FILE.npy", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// NPY file to write, - for standard output
    #[arg(short, long, value_name = "OUT.npy", value_parser = super::pictures::npy, value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub backend: BackendArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}
