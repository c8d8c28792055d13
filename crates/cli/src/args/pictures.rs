//! The options that name the files of a picture.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::console;

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

/// A name for an NPY file.
pub fn npy(name: &str) -> Result<PathBuf, String> {
    named(name, "npy", "NPY")
}

/// A name for a field: NPY or GeoTIFF.
pub fn field(name: &str) -> Result<PathBuf, String> {
    let tiff = Path::new(name).extension().is_some_and(|given| {
        given.eq_ignore_ascii_case("tif") || given.eq_ignore_ascii_case("tiff")
    });
    if tiff {
        return Ok(name.into());
    }
    npy(name).map_err(|_| "fields are NPY or GeoTIFF; the name ends in .npy or .tif".to_owned())
}

/// A name for a table.
pub fn csv(name: &str) -> Result<PathBuf, String> {
    named(name, "csv", "CSV")
}

/// A name for VTK image data.
pub fn vti(name: &str) -> Result<PathBuf, String> {
    named(name, "vti", "VTI")
}

/// A name for a page.
pub fn html(name: &str) -> Result<PathBuf, String> {
    named(name, "html", "HTML")
}

/// Refuses names of other kinds of files, which other programs would believe. Names that say nothing
/// (`/dev/stdout`) are taken; `-` is standard output.
fn named(name: &str, ending: &str, kind: &str) -> Result<PathBuf, String> {
    const ENDINGS: [&str; 13] = [
        "svg", "png", "jpg", "jpeg", "gif", "pdf", "tif", "tiff", "npy", "csv", "vti", "html",
        "json",
    ];
    let other = Path::new(name).extension().and_then(|given| given.to_str());
    match other.map(str::to_ascii_lowercase) {
        Some(other) if other != ending && ENDINGS.contains(&other.as_str()) => {
            Err(format!("this file is {kind}; its name ends in .{ending}"))
        }
        _ => Ok(output(name)),
    }
}

/// The path of an output; `-` is standard output, and what the command says goes to standard error then.
pub fn output(name: &str) -> PathBuf {
    if name == "-" {
        console::give_output_away();
        return console::OUTPUT.into();
    }
    name.into()
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
                && npy("x.png").is_err()
                && csv("x.npy").is_err()
                && html("report").is_ok()
                && vti("x.vti").is_ok()
        );
    }
}
