//! The arguments of `crosswarp reduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use crosswarp::prim::Op;

use super::backend::BackendArgs;
use crate::input::choice::{Choice, one_of};

const REDUCE_AFTER: &str = "\
Several files are one array, in the order given; all have the same dtype. dot takes two
files of the same length. Sums are reproducible: the same bits for any number of PEs and
any split into files. Integers: sums and products wrap. argmin and argmax print the lowest
index. bf16 has no NPY dtype: --dtype bf16 reads u16 files as bf16. Finite floats give a
finite sum, mean or norm unless the result itself is beyond the range of its type (squares of
f64: beyond 1.8e308 each). No elements have the sum 0 and the product 1; their mean, min, max,
argmin and argmax are an error.

Examples:
  crosswarp reduce sum samples.npy
  crosswarp reduce norm2 part1.npy part2.npy --json
  crosswarp reduce sum ill-conditioned.npy --exact
  crosswarp reduce dot a.npy b.npy
  crosswarp reduce mean weights.npy --dtype bf16
  zcat samples.npy.gz | crosswarp reduce sum -";

/// Arguments of `reduce`.
#[derive(Args, Debug)]
#[command(after_help = REDUCE_AFTER)]
pub struct ReduceArgs {
    /// The operation
    #[arg(value_parser = one_of(OPERATIONS))]
    pub op: Op,
    /// NPY files, - for standard input: f16, f32, f64, i8 to i64, u8 to u64
    #[arg(required = true, value_name = "FILE.npy", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// With sum: add all elements exactly and round once
    #[arg(long)]
    pub exact: bool,
    /// Read u16 files as bf16
    #[arg(long, value_enum)]
    pub dtype: Option<Reinterpret>,
    #[command(flatten)]
    pub backend: BackendArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The reductions.
pub const OPERATIONS: &[Choice<Op>] = &[
    Choice::new(Op::Sum, "sum", "Sum of the elements"),
    Choice::new(Op::Prod, "prod", "Product of the elements"),
    Choice::new(Op::Min, "min", "Least element (NaN if there is one)"),
    Choice::new(Op::Max, "max", "Greatest element (NaN if there is one)"),
    Choice::new(Op::Argmin, "argmin", "Index of the first least element"),
    Choice::new(Op::Argmax, "argmax", "Index of the first greatest element"),
    Choice::new(Op::Mean, "mean", "Arithmetic mean"),
    Choice::new(Op::Norm2, "norm2", "Square root of the sum of squares"),
    Choice::new(Op::Dot, "dot", "Sum of products of two files"),
];

/// Types that NPY cannot name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Reinterpret {
    /// bfloat16
    Bf16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::choice::name_of;

    #[test]
    fn operations_have_the_names_they_print() {
        // The exact sum is asked for by an option.
        for &op in Op::ALL.iter().filter(|&&op| op != Op::ExactSum) {
            assert_eq!(name_of(OPERATIONS, op), op.to_string());
        }
        assert_eq!(OPERATIONS.len(), Op::ALL.len() - 1);
    }
}
