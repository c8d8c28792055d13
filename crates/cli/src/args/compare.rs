//! The arguments of `crosswarp bench compare`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const COMPARE_AFTER: &str = "\
Both files hold one JSON object a line, as `crosswarp bench ... --json` prints them. Rows are the
same measurement if all but the figures, the version and the machine is equal. A change counts
where the samples of one run are all below those of the other.

Example:
  crosswarp bench compare before.json after.json";

/// Arguments of `bench compare`.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_AFTER)]
pub struct CompareArgs {
    /// Rows of the first run
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,
    /// Rows of the second run
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,
    /// Print one JSON object a row and nothing else
    #[arg(long)]
    pub json: bool,
}
