//! The arguments of `crosswarp banks`.

use clap::Args;
use crosswarp::lab::models::banks::{Textbook, Width};

use super::pictures::PictureArgs;
use crate::input::choice::{Choice, one_of};

const BANKS_AFTER: &str = "\
The index is an expression as in C, in `lane` and the iteration `i`; lane accesses element
[index] of an array in shared memory, and elements have --width bytes. A tile has 32 rows, and
a warp reads its columns, a row each lane.

Examples:
  crosswarp banks
  crosswarp banks strided-tree
  crosswarp banks tile --svg tile.svg
  crosswarp banks --index 'lane * 33 + i' --iterations 32
  crosswarp banks --index 'lane * 5' --width 16
  crosswarp banks --tile 64 --pad 1 --width 8 --png tile.png";

/// Arguments of `banks`.
#[derive(Args, Debug)]
#[command(after_help = BANKS_AFTER)]
pub struct BanksArgs {
    /// A pattern of the textbook [default: all of them, in a line each]
    #[arg(value_parser = one_of(PATTERNS))]
    pub pattern: Option<Textbook>,
    /// A pattern of your own
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "pattern")]
    pub index: Option<String>,
    /// Columns of a tile of your own
    #[arg(long, value_name = "COLUMNS", conflicts_with_all = ["pattern", "index"])]
    pub tile: Option<u16>,
    /// Elements between the tile's rows
    #[arg(long, value_name = "N", default_value_t = 0, requires = "tile")]
    pub pad: u16,
    /// Keep the tile's element (row, column) at column ^ row
    #[arg(long, requires = "tile")]
    pub swizzle: bool,
    /// Values of i, from 0
    #[arg(long, value_name = "N", default_value_t = 1, requires = "index", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub iterations: u16,
    /// Bytes of each lane's access; those of the textbook's patterns have 4
    #[arg(long, value_parser = one_of(WIDTHS), default_value = "4", conflicts_with = "pattern")]
    pub width: Width,
    /// A picture of the banks.
    #[command(flatten)]
    pub pictures: PictureArgs,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

/// The textbook's patterns.
const PATTERNS: &[Choice<Textbook>] = &[
    Choice::new(
        Textbook::StridedTree,
        "strided-tree",
        "Tree whose stride doubles: 2-way conflicts and up",
    ),
    Choice::new(
        Textbook::SequentialTree,
        "sequential-tree",
        "Tree whose stride halves: none",
    ),
    Choice::new(Textbook::Tile, "tile", "Columns of a 32 x 32 tile: 32-way"),
    Choice::new(
        Textbook::TilePadded,
        "tile-padded",
        "Columns of a 32 x 33 tile: none",
    ),
    Choice::new(
        Textbook::TileSwizzled,
        "tile-swizzled",
        "Columns of a 32 x 32 tile kept at column ^ row: none",
    ),
];

/// Bytes of each lane's access.
const WIDTHS: &[Choice<Width>] = &[
    Choice::new(Width::Bytes4, "4", "One word"),
    Choice::new(Width::Bytes8, "8", "Two words"),
    Choice::new(Width::Bytes16, "16", "Four words"),
];
