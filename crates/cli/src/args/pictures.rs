//! The options that name the files of a picture.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Where pictures go.
#[derive(Args, Debug)]
pub struct PictureArgs {
    /// Draw it as SVG
    #[arg(long, value_name = "PICTURE.svg", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Draw it as PNG
    #[arg(long, value_name = "PICTURE.png", value_hint = ValueHint::FilePath)]
    pub png: Option<PathBuf>,
}

impl PictureArgs {
    /// Whether there is to be a picture.
    pub fn wanted(&self) -> bool {
        self.svg.is_some() || self.png.is_some()
    }
}
