//! The files that a command draws its picture into.

use std::path::Path;

use super::chart::Chart;
use super::png::MOST_PIXELS;
use crate::output::staged::{OutputError, StagedFile};

/// A picture that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// Too many pixels to be of use.
    #[error(
        "a PNG of {width} x {height} pixels: at most {MOST_PIXELS} are drawn; --svg has no such limit"
    )]
    TooLarge {
        /// In pixels.
        width: usize,
        /// In pixels.
        height: usize,
    },
    /// The file.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Files that are made before anything is computed, so that one that can not be made is known early.
pub struct PictureFiles {
    svg: Option<StagedFile>,
    png: Option<StagedFile>,
}

impl PictureFiles {
    /// Makes those that have a name.
    pub fn create(svg: Option<&Path>, png: Option<&Path>) -> Result<Self, OutputError> {
        Ok(Self {
            svg: svg.map(StagedFile::create).transpose()?,
            png: png.map(StagedFile::create).transpose()?,
        })
    }

    /// Draws the chart into those that were asked for.
    ///
    /// # Errors
    /// [`DrawError`]; with too many pixels nothing is written.
    pub fn draw(self, chart: impl FnOnce() -> Chart) -> Result<(), DrawError> {
        if self.svg.is_none() && self.png.is_none() {
            return Ok(());
        }
        let chart = chart();
        let (width, height) = chart.pixels();
        if self.png.is_some() && width.saturating_mul(height) > MOST_PIXELS {
            return Err(DrawError::TooLarge { width, height });
        }
        if let Some(file) = self.svg {
            chart.write_svg(file)?;
        }
        if let Some(file) = self.png {
            chart.write_png(file)?;
        }
        Ok(())
    }
}
