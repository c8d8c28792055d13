//! The options that name the files of a picture.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

/// Where pictures go.
#[derive(Args, Debug)]
pub struct PictureArgs {
    /// Draw it as SVG
    #[arg(long, value_name = "PICTURE.svg", value_parser = svg, value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Draw it as PNG
    #[arg(long, value_name = "PICTURE.png", value_parser = png, value_hint = ValueHint::FilePath)]
    pub png: Option<PathBuf>,
}

impl PictureArgs {
    /// Whether there is to be a picture.
    pub fn wanted(&self) -> bool {
        self.svg.is_some() || self.png.is_some()
    }
}

/// A name for an SVG picture.
pub fn svg(name: &str) -> Result<PathBuf, String> {
    named(name, "svg", "SVG")
}

/// A name for a PNG picture.
pub fn png(name: &str) -> Result<PathBuf, String> {
    named(name, "png", "PNG")
}

/// Refuses names of other kinds of pictures, which viewers would believe. Other names (`/dev/stdout`) are taken.
fn named(name: &str, ending: &str, kind: &str) -> Result<PathBuf, String> {
    const PICTURES: [&str; 8] = ["svg", "png", "jpg", "jpeg", "gif", "pdf", "tif", "tiff"];
    let other = Path::new(name).extension().and_then(|given| given.to_str());
    match other.map(str::to_ascii_lowercase) {
        Some(other) if other != ending && PICTURES.contains(&other.as_str()) => Err(format!(
            "this picture is {kind}; its name ends in .{ending}"
        )),
        _ => Ok(name.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_name_of_its_kind() {
        assert!(
            svg("x.svg").is_ok()
                && svg("x.SVG").is_ok()
                && svg("/dev/stdout").is_ok()
                && svg("v1.2").is_ok()
        );
        assert!(
            svg("x.png").is_err()
                && png("x.svg").is_err()
                && png("x.JPG").is_err()
                && png("x.png").is_ok()
        );
    }
}
