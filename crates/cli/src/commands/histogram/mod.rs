//! `crosswarp histogram`: how many samples of an NPY file, or how much weight, fall into each bin.

mod bounds;
mod report;

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crosswarp::cuda::{Buffer, Device, Stream};
use crosswarp::prim::cuda::{DeviceHistogram, PIECE_BYTES, in_pieces};
use crosswarp::prim::histogram::{Bins, DeviceSample, Histogram, HistogramError};
use crosswarp::prim::{Loop, ReadError, Simd, Source};
use crosswarp::shmem::Pe;

use self::bounds::BoundedSample;
use self::report::HistogramReport;
use super::error::CommandError;
use crate::args::histogram::HistogramArgs;
use crate::console;
use crate::defaults::HISTOGRAM_BINS;
use crate::format::general;
use crate::input::npy::{Dtype, Elements, NpyMap};
use crate::output::json::Run;
use crate::output::paths::check_distinct;
use crate::world::backend::Backend;
use crate::world::pes::{in_world_of, kind_name, share};

const DTYPES: &str = "an integer type, bool, f32 or f64";

/// Counts, prints and writes what was asked for.
pub fn histogram(args: &HistogramArgs) -> Result<i32, CommandError> {
    let outputs = [&args.output, &args.csv, &args.svg, &args.png];
    check_distinct(outputs.into_iter().flatten().map(PathBuf::as_path))?;
    let files = Files {
        samples: NpyMap::open(&args.file)?,
        weights: args.weights.as_deref().map(Weights::open).transpose()?,
    };
    if let Some(weights) = &files.weights {
        weights.check_length(&files.samples)?;
    }
    let report = match files.samples.dtype() {
        Dtype::U8 | Dtype::Bool => run::<u8>(args, &files, Some(on_gpu)),
        Dtype::U16 => run::<u16>(args, &files, Some(on_gpu)),
        Dtype::I32 => run::<i32>(args, &files, Some(on_gpu)),
        Dtype::F32 => run::<f32>(args, &files, Some(on_gpu)),
        Dtype::F64 => run::<f64>(args, &files, Some(on_gpu)),
        Dtype::I8 => run::<i8>(args, &files, None),
        Dtype::I16 => run::<i16>(args, &files, None),
        Dtype::I64 => run::<i64>(args, &files, None),
        Dtype::U32 => run::<u32>(args, &files, None),
        Dtype::U64 => run::<u64>(args, &files, None),
        Dtype::F16 | Dtype::C64 | Dtype::C128 => Err(files.samples.wrong_dtype(DTYPES).into()),
    }?;
    let Some(report) = report else {
        return Ok(0);
    };
    report.write(args)?;
    if args.json {
        console::line(report.json())?;
    } else {
        console::line(report.text())?;
    }
    Ok(0)
}

/// What is counted.
struct Files {
    samples: NpyMap,
    weights: Option<Weights>,
}

/// A file of weights.
struct Weights(NpyMap);

impl Weights {
    fn open(path: &Path) -> Result<Self, CommandError> {
        let file = NpyMap::open(path)?;
        match file.dtype() {
            Dtype::U8 | Dtype::U16 | Dtype::U32 => Ok(Self(file)),
            _ => Err(file
                .wrong_dtype("u8, u16 or u32 (floating-point weights: scale them to integers)")
                .into()),
        }
    }

    fn check_length(&self, samples: &NpyMap) -> Result<(), CommandError> {
        if self.0.shape() == samples.shape() {
            Ok(())
        } else {
            Err(self.0.wrong_shape(samples.shape().to_string()).into())
        }
    }

    fn part(&self, range: Range<usize>) -> Result<Cow<'_, [u32]>, CommandError> {
        fn widened<T: bytemuck::Pod + Into<u32>>(part: &[T]) -> Cow<'static, [u32]> {
            part.iter().map(|&weight| weight.into()).collect()
        }
        Ok(match self.0.dtype() {
            Dtype::U8 => widened(&self.0.elements::<u8>()?[range]),
            Dtype::U16 => widened(&self.0.elements::<u16>()?[range]),
            _ => Cow::Borrowed(&self.0.elements::<u32>()?[range]),
        })
    }
}

/// Some of the weights, widened when they are read.
struct SomeWeights<'a> {
    all: &'a Weights,
    range: Range<usize>,
}

impl Source<u32> for SomeWeights<'_> {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn read(&self, first: usize, to: &mut [u32]) -> io::Result<()> {
        fn widened<T: bytemuck::Pod + Into<u32>>(
            file: &NpyMap,
            first: usize,
            to: &mut [u32],
        ) -> io::Result<()> {
            let mut narrow = vec![T::zeroed(); to.len()];
            file.read(first, &mut narrow)?;
            to.iter_mut()
                .zip(narrow)
                .for_each(|(to, weight)| *to = weight.into());
            Ok(())
        }
        let (file, first) = (&self.all.0, self.range.start + first);
        match file.dtype() {
            Dtype::U8 => widened::<u8>(file, first, to),
            Dtype::U16 => widened::<u16>(file, first, to),
            _ => file.read(first, to),
        }
    }
}

/// What counts on a GPU: samples, and weights if there are any.
type OnGpu<T> = fn(Device, &Bins<T>, &[T], Option<&[u32]>) -> Result<Vec<u64>, CommandError>;

/// The report, on PE 0.
fn run<T: BoundedSample>(
    args: &HistogramArgs,
    files: &Files,
    on_gpu: Option<OnGpu<T>>,
) -> Result<Option<HistogramReport>, CommandError> {
    let samples = &files.samples;
    let edges = args.edges.as_deref().map(read_edges::<T>).transpose()?;
    let backend = Backend::choose_when_asked(&args.backend)?;
    if on_gpu.is_none() && matches!(backend, Backend::Cuda(_)) {
        return Err(CommandError::Usage(format!(
            "samples of {} are counted on CPUs only; GPUs count u8, u16, i32, f32 and f64",
            samples.dtype()
        )));
    }
    let n_pes = args
        .backend
        .pes
        .map_or(backend.default_pes(), |pes| pes as usize);
    in_world_of(args.backend.pes, n_pes, |pe| {
        let range = share(samples.len(), pe);
        let part = Elements::new(std::slice::from_ref(samples), range.clone());
        let bins = bins_of::<T>(args, edges.as_deref(), pe, &part)?;
        let start = Instant::now();
        let histogram = Histogram::new(&bins).on(pe);
        let totals = match (backend.device(pe).zip(on_gpu), &files.weights) {
            (Some((device, on_gpu)), weights) => {
                let weights = weights
                    .as_ref()
                    .map(|weights| weights.part(range.clone()))
                    .transpose()?;
                let part = &samples.elements::<T>()?[range];
                histogram.team_sum(on_gpu(device, &bins, part, weights.as_deref())?)?
            }
            (None, Some(all)) => histogram.sum_weights_from(&part, &SomeWeights { all, range })?,
            (None, None) => histogram.count_from(&part)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        let weights = files.weights.as_ref();
        let of_weights = weights.map_or(0, |weights| weights.0.bytes().len());
        let bytes = samples.bytes().len() + of_weights;
        Ok((pe.my_pe() == 0).then(|| HistogramReport {
            dtype: samples.dtype(),
            samples: samples.len(),
            weighted: weights.is_some(),
            edges: (0..=bins.count()).map(|k| bins.edge(k)).collect(),
            totals,
            backend: backend.name(),
            machine: backend.describe(),
            run: Run {
                pes: pe.n_pes(),
                world: kind_name(pe),
                seconds,
                bytes_per_second: Some(bytes as f64 / seconds),
            },
        }))
    })
}

/// The totals of `part`, which travels to the GPU piece by piece; while one piece is counted, the next
/// one is copied (with weights they take turns).
fn on_gpu<T: DeviceSample>(
    device: Device,
    bins: &Bins<T>,
    part: &[T],
    weights: Option<&[u32]>,
) -> Result<Vec<u64>, CommandError> {
    let piece = (PIECE_BYTES / size_of::<T>()).min(part.len().max(1));
    let work = || -> Result<Vec<u64>, crosswarp::cuda::Error> {
        let stream = Stream::new(&device)?;
        let histogram = DeviceHistogram::new(&stream, bins)?;
        let totals = Buffer::zeroed(&stream, bins.count())?;
        if let Some(weights) = weights {
            let samples_there = Buffer::<T>::new(&device, piece)?;
            let weights_there = Buffer::<u32>::new(&device, piece)?;
            for (samples, weights) in part.chunks(piece).zip(weights.chunks(piece)) {
                let there = samples_there.range(..samples.len());
                let weighing = weights_there.range(..weights.len());
                stream.write(there, samples)?;
                stream.write(weighing, weights)?;
                histogram.add_weights(&stream, there, weighing, &totals)?;
            }
        } else {
            let workspace = histogram.workspace()?;
            in_pieces(&device, &[part], 0..part.len(), piece, |pieces, _| {
                histogram.add_counts(&stream, pieces[0], &totals, &workspace)?;
                Ok::<_, crosswarp::cuda::Error>(stream.synchronize()?)
            })?;
        }
        Ok(totals.to_vec(&stream)?)
    };
    Ok(work()?)
}

/// The bins asked for; the range, unless given, from the samples of all PEs.
fn bins_of<T: BoundedSample>(
    args: &HistogramArgs,
    edges: Option<&[T::Bound]>,
    pe: &Pe,
    part: &dyn Source<T>,
) -> Result<Bins<T>, CommandError> {
    let bins_wanted = args.bins.unwrap_or(HISTOGRAM_BINS);
    let bins = if let Some(edges) = edges {
        Bins::edges(edges)?
    } else if let Some(text) = &args.range {
        let (low, high) = (T::bound(&text.low)?, T::bound(&text.high)?);
        if args.integer {
            T::integers(low, high)?
        } else {
            Bins::even(low, high, bins_wanted)?
        }
    } else {
        let (least, greatest) = extremes(pe, part)?;
        if args.integer {
            T::integers_between(least, greatest)?
        } else if least < greatest {
            Bins::even(least, greatest, bins_wanted)?
        } else {
            let (low, high) = T::around(least);
            Bins::even(low, high, bins_wanted).map_err(|_| {
                CommandError::Usage(format!(
                    "all samples are {}, and {bins_wanted} bins do not fit around that: give a range with --range LOW:HIGH",
                    general(T::bound_to_f64(least), 6)
                ))
            })?
        }
    };
    Ok(bins.out_of_range(args.out_of_range))
}

/// Least and greatest sample of all PEs, NaN left out.
fn extremes<T: BoundedSample>(
    pe: &Pe,
    part: &dyn Source<T>,
) -> Result<(T::Bound, T::Bound), CommandError> {
    /// Samples read at a time.
    const PIECE: usize = 1 << 15;
    let mut buffer = vec![T::zeroed(); PIECE.min(part.len())];
    let (mut least, mut greatest) = (T::GREATEST, T::LEAST);
    for start in (0..part.len()).step_by(PIECE) {
        let len = PIECE.min(part.len() - start);
        if let Err(error) = part.read(start, &mut buffer[..len]) {
            // So that nobody waits for this PE; its own error says more than the mismatch.
            let _ = pe.agree(0, 0);
            return Err(HistogramError::Read(ReadError {
                range: start..start + len,
                reason: error.to_string(),
            })
            .into());
        }
        let found = Simd::detect().compile(Extremes(&buffer[..len]));
        least = if found.0 < least { found.0 } else { least };
        greatest = if found.1 > greatest {
            found.1
        } else {
            greatest
        };
    }
    let words = pe
        .alloc::<u64>(2 * (1 + pe.n_pes()))
        .map_err(HistogramError::from)?;
    let (own, all) = (words.range(..2), words.range(2..));
    pe.write(own, &[least.bits(), greatest.bits()]);
    pe.world()
        .fcollect(all, own)
        .map_err(HistogramError::from)?;
    let mut found = vec![0; 2 * pe.n_pes()];
    pe.read(&mut found, all);
    pe.free(words).map_err(HistogramError::from)?;
    for words in found.chunks_exact(2) {
        let (low, high) = (T::from_bits64(words[0]), T::from_bits64(words[1]));
        least = if low < least { low } else { least };
        greatest = if high > greatest { high } else { greatest };
    }
    least.exact().zip(greatest.exact()).ok_or_else(|| {
        CommandError::Usage(
            "the samples have no finite range: give one with --range LOW:HIGH".to_owned(),
        )
    })
}

/// Least and greatest sample, NaN left out.
struct Extremes<'a, T>(&'a [T]);

impl<T: BoundedSample> Loop for Extremes<'_, T> {
    type Output = (T, T);

    #[inline(always)]
    fn run(self) -> (T, T) {
        // Side by side, so that they make vectors.
        const LANES: usize = 64;
        let (mut least, mut greatest) = ([T::GREATEST; LANES], [T::LEAST; LANES]);
        for samples in self.0.chunks(LANES) {
            for ((least, greatest), &x) in least.iter_mut().zip(&mut greatest).zip(samples) {
                *least = if x < *least { x } else { *least };
                *greatest = if x > *greatest { x } else { *greatest };
            }
        }
        let mut all = (T::GREATEST, T::LEAST);
        for (least, greatest) in least.into_iter().zip(greatest) {
            all.0 = if least < all.0 { least } else { all.0 };
            all.1 = if greatest > all.1 { greatest } else { all.1 };
        }
        all
    }
}

fn read_edges<T: BoundedSample>(path: &Path) -> Result<Vec<T::Bound>, CommandError> {
    let file = NpyMap::open(path)?;
    if file.shape().0.len() != 1 {
        return Err(file.wrong_shape("(edges,)").into());
    }
    fn floats<T: BoundedSample, E: bytemuck::Pod + Into<f64>>(
        file: &NpyMap,
    ) -> Result<Vec<T::Bound>, CommandError> {
        let edges = file.elements::<E>()?.iter().map(|&edge| edge.into());
        if let Some(place) = edges.clone().position(f64::is_nan) {
            return Err(CommandError::Usage(format!("edge {place} is no number")));
        }
        Ok(edges.map(T::at_or_above).collect())
    }
    fn integers<T: BoundedSample, E: bytemuck::Pod + Into<i128>>(
        file: &NpyMap,
    ) -> Result<Vec<T::Bound>, CommandError> {
        let edges = file.elements::<E>()?.iter();
        Ok(edges
            .map(|&edge| T::at_or_above_integer(edge.into()))
            .collect())
    }
    match file.dtype() {
        Dtype::F64 => floats::<T, f64>(&file),
        Dtype::F32 => floats::<T, f32>(&file),
        Dtype::I8 => integers::<T, i8>(&file),
        Dtype::I16 => integers::<T, i16>(&file),
        Dtype::I32 => integers::<T, i32>(&file),
        Dtype::I64 => integers::<T, i64>(&file),
        Dtype::U8 => integers::<T, u8>(&file),
        Dtype::U16 => integers::<T, u16>(&file),
        Dtype::U32 => integers::<T, u32>(&file),
        Dtype::U64 => integers::<T, u64>(&file),
        Dtype::Bool | Dtype::F16 | Dtype::C64 | Dtype::C128 => {
            Err(file.wrong_dtype("an integer type, f32 or f64").into())
        }
    }
}
