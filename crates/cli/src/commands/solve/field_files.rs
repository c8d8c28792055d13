//! The files of a solve, and the hash of its field.

use std::path::{Path, PathBuf};

use bytemuck::Pod;
use crosswarp::solve::RowSource;
use sha2::{Digest, Sha256};

use crate::args::solve::SolveArgs;
use crate::drawing::box_slice::SlicePicture;
use crate::drawing::line_field::LinePicture;
use crate::drawing::look::Look;
use crate::drawing::plane_field::{Axes, Axis, Page, PlanePicture};
use crate::input::npy::{Dtype, Shape};
use crate::input::slice::Cut;
use crate::input::spacing::Spacing;
use crate::input::tiff::GeoTags;
use crate::output::npy::NpyWriter;
use crate::output::paths::{SameOutput, check_distinct};
use crate::output::staged::{OutputError, StagedFile};
use crate::output::tiff::TiffWriter;
use crate::output::vti::VtiWriter;
use crate::problem::field::Format;

/// The output files, opened before the solve so that a path that cannot be written is said at once.
#[derive(Default)]
pub struct OutputFiles {
    /// The field as NPY or TIFF.
    pub field: Option<FieldFile>,
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
    /// Refuses outputs, and a checkpoint, of one name.
    pub fn check(args: &SolveArgs) -> Result<(), SameOutput> {
        let all = paths(args).into_iter().chain([&args.checkpoint]);
        check_distinct(all.flatten().map(PathBuf::as_path))
    }

    /// Opens what `args` asks for, and sees that a checkpoint could be written. A field as TIFF gets `tags`.
    pub fn open(args: &SolveArgs, tags: GeoTags) -> Result<Self, OutputError> {
        if let Some(path) = &args.checkpoint {
            StagedFile::check(path)?;
        }
        let open = |path: &Option<PathBuf>| path.as_deref().map(StagedFile::create).transpose();
        Ok(Self {
            field: open(&args.output)?.map(|file| FieldFile::new(file, tags)),
            png: open(&args.png)?,
            vti: open(&args.vti)?,
            plot: open(&args.plot)?,
            history: open(&args.history)?,
        })
    }
}

/// Where the field's numbers go.
pub enum FieldFile {
    /// As NPY.
    Npy(StagedFile),
    /// As TIFF, with the tags that say where it lies.
    Tiff(StagedFile, GeoTags),
}

impl FieldFile {
    /// What the file's name says; as TIFF with `tags`.
    fn new(file: StagedFile, tags: GeoTags) -> Self {
        match Format::of(file.target()) {
            Format::Tiff => Self::Tiff(file, tags),
            Format::Npy | Format::Png => Self::Npy(file),
        }
    }
}

/// `path` with the number of steps at the end of its name.
fn frame_path(path: &Path, steps: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{steps:06}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

enum FieldWriter {
    Npy(NpyWriter),
    Tiff(TiffWriter),
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
    /// Points of a line; columns and rows; columns, rows and planes.
    pub size: Vec<usize>,
    /// Of a box: the plane that the picture shows.
    pub cut: Option<Cut>,
    /// Distance of neighbouring points.
    pub spacing: Spacing,
    /// Whether somebody gave it, so that axes show lengths.
    pub spacing_given: bool,
    /// What was asked for of the picture.
    pub look: Look,
    /// For a line: how many points at each end can have changed; the picture shows those.
    pub reach: usize,
    /// For a filled field: which cells were given.
    pub given: Option<RowSource<u8>>,
}

enum Picture {
    Plane(Box<PlanePicture>),
    Slice(Box<SlicePicture>),
    Line(Box<LinePicture>),
}

/// Takes a field in row-major order and makes its files and its hash.
#[derive(Default)]
pub struct FieldOutputs {
    field: Option<FieldWriter>,
    vti: Option<VtiWriter>,
    picture: Option<Picture>,
    hash: Option<Sha256>,
}

impl FieldOutputs {
    /// Starts the files of the field after `steps` steps.
    pub fn of_frame(
        args: &SolveArgs,
        steps: usize,
        tags: &GeoTags,
        head: FieldHead,
    ) -> Result<Self, OutputError> {
        let open = |path: &Option<PathBuf>| {
            let path = path.as_deref().map(|path| frame_path(path, steps));
            path.as_deref().map(StagedFile::create).transpose()
        };
        let field = open(&args.output)?.map(|file| FieldFile::new(file, tags.clone()));
        Self::start(field, open(&args.png)?, open(&args.vti)?, false, head)
    }

    /// Starts the files of a field.
    pub fn start(
        field: Option<FieldFile>,
        png: Option<StagedFile>,
        vti: Option<StagedFile>,
        hash: bool,
        head: FieldHead,
    ) -> Result<Self, OutputError> {
        let FieldHead {
            reach,
            title,
            dtype,
            size,
            cut,
            spacing,
            spacing_given,
            look,
            given,
        } = head;
        let lengths = spacing_given.then_some([spacing.x, spacing.y, spacing.z]);
        let shape = Shape(size.iter().rev().copied().collect());
        let along = |axis: usize| size.get(axis).copied().unwrap_or(1);
        let plane = (along(0), along(1));
        let all = [along(0), along(1), along(2)];
        Ok(Self {
            field: match field {
                Some(FieldFile::Npy(file)) => {
                    Some(FieldWriter::Npy(NpyWriter::new(file, dtype, &shape)?))
                }
                Some(FieldFile::Tiff(file, tags)) => {
                    Some(FieldWriter::Tiff(TiffWriter::new(file, dtype, plane, tags)))
                }
                None => None,
            },
            vti: vti
                .map(|file| VtiWriter::new(file, dtype, all, spacing))
                .transpose()?,
            picture: png.map(|file| match (cut, size.len()) {
                (Some(cut), _) => {
                    let picture = SlicePicture::new(file, (title, look), all, lengths, cut);
                    Picture::Slice(Box::new(picture))
                }
                (None, 1) => Picture::Line(Box::new(LinePicture::new(
                    file,
                    (title, look),
                    all[0],
                    reach,
                ))),
                (None, _) => {
                    let axis = |cells, along: usize| Axis {
                        cells,
                        spacing: lengths.map(|lengths| lengths[along]),
                    };
                    let axes = Axes {
                        across: axis("column", 0),
                        down: axis("row", 1),
                    };
                    let page = Page { title, look, axes };
                    let picture = PlanePicture::new(file, page, plane, given);
                    Picture::Plane(Box::new(picture))
                }
            }),
            hash: hash.then(Sha256::new),
        })
    }

    /// Takes the next cells.
    pub fn put<F: Pod + Into<f64>>(&mut self, cells: &[F]) -> Result<(), OutputError> {
        if let Some(hash) = &mut self.hash {
            hash.update(bytemuck::cast_slice::<F, u8>(cells));
        }
        match &mut self.field {
            Some(FieldWriter::Npy(npy)) => npy.put(cells)?,
            Some(FieldWriter::Tiff(tiff)) => tiff.put(cells),
            None => {}
        }
        if let Some(vti) = &mut self.vti {
            vti.put(cells);
        }
        match &mut self.picture {
            Some(Picture::Plane(plane)) => plane.put(cells),
            Some(Picture::Slice(slice)) => slice.put(cells),
            Some(Picture::Line(line)) => line.put(cells),
            None => {}
        }
        Ok(())
    }

    /// Completes the files; the hash in hexadecimal if it was asked for.
    pub fn finish(self) -> Result<Option<String>, OutputError> {
        match self.field {
            Some(FieldWriter::Npy(npy)) => npy.finish()?,
            Some(FieldWriter::Tiff(tiff)) => tiff.finish()?,
            None => {}
        }
        if let Some(vti) = self.vti {
            vti.finish()?;
        }
        match self.picture {
            Some(Picture::Plane(plane)) => plane.finish()?,
            Some(Picture::Slice(slice)) => slice.finish()?,
            Some(Picture::Line(line)) => line.finish()?,
            None => {}
        }
        Ok(self.hash.map(|hash| hex(&hash.finalize())))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered_so_that_names_sort() {
        let name = |path: &str, steps| frame_path(Path::new(path), steps).display().to_string();
        assert_eq!(name("a/field.npy", 100), "a/field-000100.npy");
        assert_eq!(name("field.v2.png", 7), "field.v2-000007.png");
        assert_eq!(name("field", 12_345_678), "field-12345678");
    }

    #[test]
    fn the_hash_is_sha256_of_the_little_endian_bytes() {
        let head = FieldHead {
            title: String::new(),
            dtype: Dtype::F32,
            size: vec![2, 1],
            cut: None,
            spacing: Spacing::same(1.0),
            spacing_given: false,
            look: Look::default(),
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
