//! The files of a solve, and the hash of its field.

use std::path::{Path, PathBuf};

use bytemuck::Pod;
use sha2::{Digest, Sha256};

use crate::args::SolveArgs;
use crate::drawing::{Colours, CurvePicture, MapPicture, MaskRows};
use crate::input::npy::{Dtype, Shape};
use crate::output::npy::NpyWriter;
use crate::output::staged::{OutputError, StagedFile};
use crate::output::vti::VtiWriter;

/// Two outputs with one name.
#[derive(Debug, thiserror::Error)]
#[error("{}: two outputs cannot be the same file", .0.display())]
pub struct SameOutput(pub PathBuf);

/// The output files, opened before the solve so that a path that cannot be written is said at once.
#[derive(Default)]
pub struct OutputFiles {
    /// The field as NPY.
    pub npy: Option<StagedFile>,
    /// The field's picture.
    pub png: Option<StagedFile>,
    /// The field as VTK image data.
    pub vti: Option<StagedFile>,
    /// The plot of the norms.
    pub plot: Option<StagedFile>,
    /// The table of the norms.
    pub history: Option<StagedFile>,
}

impl OutputFiles {
    /// The first path that is named twice among the outputs and the checkpoint.
    pub fn check(args: &SolveArgs) -> Result<(), SameOutput> {
        let mut seen: Vec<&PathBuf> = Vec::new();
        for path in paths(args).into_iter().chain([&args.checkpoint]).flatten() {
            if seen.contains(&path) {
                return Err(SameOutput(path.clone()));
            }
            seen.push(path);
        }
        Ok(())
    }

    /// Opens what `args` asks for, and sees that a checkpoint could be written.
    pub fn open(args: &SolveArgs) -> Result<Self, OutputError> {
        if let Some(path) = &args.checkpoint {
            StagedFile::check(path)?;
        }
        let open = |path: &Option<PathBuf>| path.as_deref().map(StagedFile::create).transpose();
        Ok(Self {
            npy: open(&args.output)?,
            png: open(&args.png)?,
            vti: open(&args.vti)?,
            plot: open(&args.plot)?,
            history: open(&args.history)?,
        })
    }
}

/// The output paths, in the order in which they are reported.
pub fn paths(args: &SolveArgs) -> [&Option<PathBuf>; 5] {
    [
        &args.output,
        &args.png,
        &args.vti,
        &args.plot,
        &args.history,
    ]
}

/// What a field is, for its files.
pub struct FieldHead {
    /// Heading of the picture.
    pub title: String,
    /// Number type.
    pub dtype: Dtype,
    /// Columns, or points of a line.
    pub columns: usize,
    /// Rows, or `None` for a line.
    pub rows: Option<usize>,
    /// Distance of neighbouring points.
    pub spacing: f64,
    /// Colours of the picture.
    pub colours: Colours,
    /// For a line: how many points at each end can have changed; the picture shows those.
    pub reach: usize,
    /// For a filled field: which cells were given.
    pub given: Option<MaskRows>,
}

enum Picture {
    Map(Box<MapPicture>),
    Curve(CurvePicture),
}

/// Takes a field in row-major order and makes its files and its hash.
#[derive(Default)]
pub struct FieldOutputs {
    npy: Option<NpyWriter>,
    vti: Option<VtiWriter>,
    picture: Option<Picture>,
    hash: Option<Sha256>,
}

impl FieldOutputs {
    /// Starts the files of a field.
    pub fn start(
        npy: Option<StagedFile>,
        png: Option<StagedFile>,
        vti: Option<StagedFile>,
        hash: bool,
        head: FieldHead,
    ) -> Result<Self, OutputError> {
        let FieldHead {
            reach,
            title,
            dtype,
            columns,
            rows,
            spacing,
            colours,
            given,
        } = head;
        let shape = Shape(rows.into_iter().chain([columns]).collect());
        let plane = (columns, rows.unwrap_or(1));
        Ok(Self {
            npy: npy
                .map(|file| NpyWriter::new(file, dtype, &shape))
                .transpose()?,
            vti: vti
                .map(|file| VtiWriter::new(file, dtype, plane, spacing))
                .transpose()?,
            picture: png.map(|file| match rows {
                Some(_) => Picture::Map(Box::new(MapPicture::new(
                    file, title, colours, plane, given,
                ))),
                None => Picture::Curve(CurvePicture::new(file, title, columns, reach)),
            }),
            hash: hash.then(Sha256::new),
        })
    }

    /// Takes the next cells.
    pub fn put<F: Pod + Into<f64>>(&mut self, cells: &[F]) -> Result<(), OutputError> {
        if let Some(hash) = &mut self.hash {
            hash.update(bytemuck::cast_slice::<F, u8>(cells));
        }
        if let Some(npy) = &mut self.npy {
            npy.put(cells)?;
        }
        if let Some(vti) = &mut self.vti {
            vti.put(cells)?;
        }
        match &mut self.picture {
            Some(Picture::Map(map)) => map.put(cells),
            Some(Picture::Curve(curve)) => curve.put(cells),
            None => {}
        }
        Ok(())
    }

    /// Completes the files; the hash in hexadecimal if it was asked for.
    pub fn finish(self) -> Result<Option<String>, OutputError> {
        if let Some(npy) = self.npy {
            npy.finish()?;
        }
        if let Some(vti) = self.vti {
            vti.finish()?;
        }
        match self.picture {
            Some(Picture::Map(map)) => map.finish()?,
            Some(Picture::Curve(curve)) => curve.finish()?,
            None => {}
        }
        Ok(self.hash.map(|hash| hex(&hash.finalize())))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `path` as a user reads it.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha256_of_the_little_endian_bytes() {
        let head = FieldHead {
            title: String::new(),
            dtype: Dtype::F32,
            columns: 2,
            rows: Some(1),
            spacing: 1.0,
            colours: Colours::Viridis,
            reach: 2,
            given: None,
        };
        let mut outputs = FieldOutputs::start(None, None, None, true, head).unwrap();
        outputs.put(&[1.0f32]).unwrap();
        outputs.put(&[-2.5f32]).unwrap();
        // sha256sum of the bytes 00 00 80 3f 00 00 20 c0.
        let expected = "48943f7a0ea247f8e3c9386d0c5822fe181d323a9289980426638cc4e72a43e1";
        assert_eq!(outputs.finish().unwrap().unwrap(), expected);
    }
}
