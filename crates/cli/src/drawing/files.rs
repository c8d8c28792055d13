//! The files that a command draws its picture into.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::commands::error::CliError;
use crate::drawing::chart::Chart;
use crate::output::staged::StagedFile;

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

/// Files that are made before anything is computed, so that one that can not be made is known early.
pub struct Pictures {
    svg: Option<StagedFile>,
    png: Option<StagedFile>,
}

impl PictureArgs {
    /// Whether there is to be a picture.
    pub fn wanted(&self) -> bool {
        self.svg.is_some() || self.png.is_some()
    }

    /// Makes the files.
    pub fn create(&self) -> Result<Pictures, CliError> {
        Ok(Pictures {
            svg: self.svg.as_deref().map(StagedFile::create).transpose()?,
            png: self.png.as_deref().map(StagedFile::create).transpose()?,
        })
    }
}

impl Pictures {
    /// Draws the chart into those that were asked for.
    pub fn draw(self, chart: impl FnOnce() -> Chart) -> Result<(), CliError> {
        if self.svg.is_none() && self.png.is_none() {
            return Ok(());
        }
        let chart = chart();
        if self.png.is_some() {
            chart.check_pixels()?;
        }
        if let Some(mut file) = self.svg {
            file.put(chart.standalone().as_bytes())?;
            file.commit()?;
        }
        if let Some(file) = self.png {
            chart.write_png(file)?;
        }
        Ok(())
    }
}
