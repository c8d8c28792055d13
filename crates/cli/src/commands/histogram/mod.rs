//! `crosswarp histogram`: how many samples of an NPY file, or how much weight, fall into each bin.

mod bounds;
mod report;

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crosswarp::cuda::{Buffer, Device, Stream};
use crosswarp::prim::cuda::{DeviceHistogram, PIECE_BYTES, in_pieces};
use crosswarp::prim::histogram::{Bins, Histogram, HistogramError, Sample};
use crosswarp::shmem::{Pe, op};

use self::bounds::BoundedSample;
use self::report::HistogramReport;
use super::error::CommandError;
use crate::args::histogram::HistogramArgs;
use crate::console;
use crate::defaults::HISTOGRAM_BINS;
use crate::format::general;
use crate::input::npy::{Dtype, NpyMap};
use crate::output::json::Run;
use crate::output::paths::check_distinct;
use crate::world::backend::Backend;
use crate::world::pes::{in_world_of, kind_name, share};

const DTYPES: &str = "u8, u16, i32, f32 or f64";
/// Counts, prints and writes what was asked for.
pub fn histogram(args: &HistogramArgs) -> Result<i32, CommandError> {
    let outputs = [&args.output, &args.csv, &args.plot, &args.png];
    check_distinct(outputs.into_iter().flatten().map(PathBuf::as_path))?;
    let file = NpyMap::open(&args.file)?;
    let weights = args.weights.as_deref().map(Weights::open).transpose()?;
    if let Some(weights) = &weights {
        weights.check_length(&file)?;
    }
    let report = match file.dtype() {
        Dtype::U8 => run::<u8>(args, &file, weights.as_ref()),
        Dtype::U16 => run::<u16>(args, &file, weights.as_ref()),
        Dtype::I32 => run::<i32>(args, &file, weights.as_ref()),
        Dtype::F32 => run::<f32>(args, &file, weights.as_ref()),
        Dtype::F64 => run::<f64>(args, &file, weights.as_ref()),
        _ => Err(file.wrong_dtype(DTYPES).into()),
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

/// The report, on PE 0.
fn run<T: BoundedSample>(
    args: &HistogramArgs,
    file: &NpyMap,
    all_weights: Option<&Weights>,
) -> Result<Option<HistogramReport>, CommandError> {
    let samples = file.elements::<T>()?;
    let edges = args.edges.as_deref().map(read_edges::<T>).transpose()?;
    let backend = Backend::choose_when_asked(&args.backend)?;
    let n_pes = args
        .backend
        .pes
        .map_or(backend.default_pes(), |pes| pes as usize);
    in_world_of(args.backend.pes, n_pes, |pe| {
        let range = share(samples.len(), pe);
        let part = &samples[range.clone()];
        let bins = bins_of(args, edges.as_deref(), pe, part)?;
        let weights = all_weights.map(|weights| weights.part(range)).transpose()?;
        let start = Instant::now();
        let histogram = Histogram::new(&bins).on(pe);
        let totals = match (backend.device(pe), &weights) {
            (Some(device), weights) => {
                histogram.team_sum(on_gpu(device, &bins, part, weights.as_deref())?)?
            }
            (None, Some(weights)) => histogram.sum_weights(part, weights)?,
            (None, None) => histogram.count(part)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        let of_weights = all_weights.map_or(0, |weights| weights.0.bytes().len());
        let bytes = file.bytes().len() + of_weights;
        Ok((pe.my_pe() == 0).then(|| HistogramReport {
            dtype: file.dtype(),
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
fn on_gpu<T: Sample>(
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
    part: &[T],
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
            Bins::even(T::at_or_above(least), T::at_or_above(greatest), bins_wanted)?
        } else {
            let (low, high) = T::around(least);
            Bins::even(low, high, bins_wanted).map_err(|_| {
                CommandError::Usage(format!(
                    "all samples are {}, and {bins_wanted} bins do not fit around that: give a range with --range LOW:HIGH",
                    general(least, 6)
                ))
            })?
        }
    };
    Ok(bins.out_of_range(args.out_of_range))
}

/// Least and greatest sample of all PEs, NaN left out.
fn extremes<T: BoundedSample>(pe: &Pe, part: &[T]) -> Result<(f64, f64), CommandError> {
    let numbers = part.iter().map(|sample| sample.widen());
    let mine = numbers.fold([f64::INFINITY; 2], |[least, minus_greatest], x| {
        [least.min(x), minus_greatest.min(-x)]
    });
    let words = pe.alloc::<f64>(2).map_err(HistogramError::from)?;
    pe.write(&words, &mine);
    pe.world()
        .reduce(&words, &words, op::Min)
        .map_err(HistogramError::from)?;
    let mut all = [0.0; 2];
    pe.read(&mut all, &words);
    pe.free(words).map_err(HistogramError::from)?;
    let (least, greatest) = (all[0], -all[1]);
    if least.is_finite() && greatest.is_finite() {
        Ok((least, greatest))
    } else {
        Err(CommandError::Usage(
            "the samples have no finite range: give one with --range LOW:HIGH".to_owned(),
        ))
    }
}

fn read_edges<T: BoundedSample>(path: &Path) -> Result<Vec<T::Bound>, CommandError> {
    let file = NpyMap::open(path)?;
    if file.shape().0.len() != 1 {
        return Err(file.wrong_shape("(edges,)").into());
    }
    fn bounds<T: BoundedSample, E: bytemuck::Pod>(
        file: &NpyMap,
        widen: impl Fn(E) -> f64 + Copy,
    ) -> Result<Vec<T::Bound>, CommandError> {
        let edges = file.elements::<E>()?.iter().map(|&edge| widen(edge));
        if let Some(place) = edges.clone().position(f64::is_nan) {
            return Err(CommandError::Usage(format!("edge {place} is no number")));
        }
        Ok(edges.map(T::at_or_above).collect())
    }
    match file.dtype() {
        Dtype::F64 => bounds::<T, f64>(&file, |edge| edge),
        Dtype::F32 => bounds::<T, f32>(&file, f64::from),
        Dtype::I32 => bounds::<T, i32>(&file, f64::from),
        Dtype::U8 => bounds::<T, u8>(&file, f64::from),
        Dtype::U16 => bounds::<T, u16>(&file, f64::from),
        Dtype::I64 => bounds::<T, i64>(&file, |edge| edge as f64),
        _ => Err(file.wrong_dtype("u8, u16, i32, i64, f32 or f64").into()),
    }
}
