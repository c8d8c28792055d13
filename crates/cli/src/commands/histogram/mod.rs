//! `crosswarp histogram`: how many samples of an NPY file, or how much weight, fall into each bin.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use crosswarp::cuda::{Buffer, Device, Stream};
use crosswarp::prim::cuda::{DeviceHistogram, PIECE_BYTES, in_pieces};
use crosswarp::prim::histogram::{Bins, Histogram, HistogramError, OutOfRange, Sample};
use crosswarp::shmem::{Pe, op};

use crate::args::{HistogramArgs, OutsideArg};
use crate::commands::error::CliError;
use crate::commands::solve::field_files::SameOutput;
use crate::console;
use crate::drawing::histogram::{self as bars, Bars};
use crate::format::{general, grouped, pes, si};
use crate::input::npy::{Dtype, NpyMap, Shape};
use crate::output::npy::NpyWriter;
use crate::output::staged::{OutputError, StagedFile};
use crate::world::{in_world_of, kind_name};

const DTYPES: &str = "u8, u16, i32, f32 or f64";
/// Bins where nothing else is asked for.
const DEFAULT_BINS: usize = 64;
/// Lines of the printed histogram.
const MOST_LINES: usize = 32;
/// Length of the longest printed bar.
const BAR_WIDTH: usize = 40;

/// Counts, prints and writes what was asked for.
pub fn histogram(args: &HistogramArgs) -> Result<i32, CliError> {
    check_outputs(args)?;
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

/// The range as typed: its ends are read when the type of the samples is known.
#[derive(Clone, Debug)]
pub struct RangeText {
    low: String,
    high: String,
}

impl std::str::FromStr for RangeText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (low, high) = text
            .split_once(':')
            .ok_or("a range is LOW:HIGH, as in 0:256 or -1.5:1.5")?;
        for end in [low, high] {
            end.parse::<f64>()
                .map_err(|_| format!("{end:?} is no number"))?;
        }
        let (low, high) = (low.to_owned(), high.to_owned());
        Ok(Self { low, high })
    }
}

/// What the command needs to know of a type of samples.
trait CliSample: Sample {
    /// A bound as typed.
    fn bound(text: &str) -> Result<Self::Bound, CliError>;
    /// The least bound at or above `value`: what samples ≥ `value` are at or above, too.
    fn at_or_above(value: f64) -> Self::Bound;
    /// A range around a single value, where all samples are equal.
    fn around(value: f64) -> (Self::Bound, Self::Bound);
    /// The sample, exactly.
    fn widen(self) -> f64;
    /// A bin for every integer of a range, `high` left out.
    fn integers(low: Self::Bound, high: Self::Bound) -> Result<Bins<Self>, CliError>;
    /// A bin for every integer from one sample to another, both with one.
    fn integers_between(least: f64, greatest: f64) -> Result<Bins<Self>, CliError>;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl CliSample for $integer {
            fn bound(text: &str) -> Result<i64, CliError> {
                text.parse().map_err(|_| {
                    CliError::Usage(format!("the range of integer samples needs integers, {text} is none"))
                })
            }
            fn at_or_above(value: f64) -> i64 {
                value.ceil() as i64
            }
            fn around(value: f64) -> (i64, i64) {
                (value as i64, value as i64 + 1)
            }
            fn widen(self) -> f64 {
                self.into()
            }
            fn integers(low: i64, high: i64) -> Result<Bins<Self>, CliError> {
                Ok(Bins::integers(low, high)?)
            }
            fn integers_between(least: f64, greatest: f64) -> Result<Bins<Self>, CliError> {
                Self::integers(least as i64, greatest as i64 + 1)
            }
        }
    )*};
}
integers!(u8, u16, i32);

macro_rules! floats {
    ($($float:ident),*) => {$(
        impl CliSample for $float {
            fn bound(text: &str) -> Result<$float, CliError> {
                text.parse().map_err(|_| CliError::Usage(format!("{text} is no number")))
            }
            #[allow(clippy::unnecessary_cast)] // Reason: written for both types.
            fn at_or_above(value: f64) -> $float {
                let nearest = value as $float;
                if f64::from(nearest) < value { nearest.next_up() } else { nearest }
            }
            #[allow(clippy::unnecessary_cast)] // Reason: as above.
            fn around(value: f64) -> ($float, $float) {
                (value as $float - 0.5, value as $float + 0.5)
            }
            fn widen(self) -> f64 {
                self.into()
            }
            fn integers(_: $float, _: $float) -> Result<Bins<Self>, CliError> {
                Err(no_integers())
            }
            fn integers_between(_: f64, _: f64) -> Result<Bins<Self>, CliError> {
                Err(no_integers())
            }
        }
    )*};
}
floats!(f32, f64);

fn no_integers() -> CliError {
    CliError::Usage("--integer needs samples that are integers (u8, u16 or i32)".to_owned())
}

/// A file of weights.
struct Weights(NpyMap);

impl Weights {
    fn open(path: &Path) -> Result<Self, CliError> {
        let file = NpyMap::open(path)?;
        match file.dtype() {
            Dtype::U8 | Dtype::U16 | Dtype::U32 => Ok(Self(file)),
            _ => Err(file
                .wrong_dtype("u8, u16 or u32 (floating-point weights: scale them to integers)")
                .into()),
        }
    }

    fn check_length(&self, samples: &NpyMap) -> Result<(), CliError> {
        if self.0.shape() == samples.shape() {
            Ok(())
        } else {
            Err(self.0.wrong_shape(samples.shape().to_string()).into())
        }
    }

    fn part(&self, range: Range<usize>) -> Result<Cow<'_, [u32]>, CliError> {
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
fn run<T: CliSample>(
    args: &HistogramArgs,
    file: &NpyMap,
    weights: Option<&Weights>,
) -> Result<Option<Report>, CliError> {
    let samples = file.elements::<T>()?;
    let edges = args.edges.as_deref().map(read_edges::<T>).transpose()?;
    let backend = args.backend.choose_for_one_pass()?;
    let n_pes = args
        .backend
        .pes
        .map_or(backend.default_pes(), |pes| pes as usize);
    in_world_of(args.backend.pes, n_pes, |pe| {
        let range = share(samples.len(), pe);
        let part = &samples[range.clone()];
        let bins = bins_of(args, edges.as_deref(), pe, part)?;
        let weights = weights.map(|weights| weights.part(range)).transpose()?;
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
        Ok((pe.my_pe() == 0).then(|| Report {
            dtype: file.dtype(),
            samples: samples.len(),
            weighted: weights.is_some(),
            edges: (0..=bins.count()).map(|k| bins.edge(k)).collect(),
            totals,
            backend: backend.name(),
            machine: backend.describe(),
            pes: pe.n_pes(),
            world: kind_name(pe),
            seconds,
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
) -> Result<Vec<u64>, CliError> {
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
fn bins_of<T: CliSample>(
    args: &HistogramArgs,
    edges: Option<&[T::Bound]>,
    pe: &Pe,
    part: &[T],
) -> Result<Bins<T>, CliError> {
    let bins_wanted = args.bins.unwrap_or(DEFAULT_BINS);
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
                CliError::Usage(format!(
                    "all samples are {}, and {bins_wanted} bins do not fit around that: give a range with --range LOW:HIGH",
                    general(least, 6)
                ))
            })?
        }
    };
    Ok(bins.out_of_range(match args.out_of_range {
        OutsideArg::Drop => OutOfRange::Drop,
        OutsideArg::Clamp => OutOfRange::Clamp,
    }))
}

/// Least and greatest sample of all PEs, NaN left out.
fn extremes<T: CliSample>(pe: &Pe, part: &[T]) -> Result<(f64, f64), CliError> {
    let numbers = part.iter().map(|sample| sample.widen());
    let mine = numbers.fold([f64::INFINITY; 2], |[least, minus_greatest], x| {
        [least.min(x), minus_greatest.min(-x)]
    });
    let words = pe.alloc::<f64>(2).map_err(HistogramError::from)?;
    pe.write(&words, &mine);
    pe.world()
        .reduce(op::Min, &words, &words)
        .map_err(HistogramError::from)?;
    let mut all = [0.0; 2];
    pe.read(&mut all, &words);
    pe.free(words).map_err(HistogramError::from)?;
    let (least, greatest) = (all[0], -all[1]);
    if least.is_finite() && greatest.is_finite() {
        Ok((least, greatest))
    } else {
        Err(CliError::Usage(
            "the samples have no finite range: give one with --range LOW:HIGH".to_owned(),
        ))
    }
}

fn read_edges<T: CliSample>(path: &Path) -> Result<Vec<T::Bound>, CliError> {
    let file = NpyMap::open(path)?;
    if file.shape().0.len() != 1 {
        return Err(file.wrong_shape("(edges,)").into());
    }
    fn bounds<T: CliSample, E: bytemuck::Pod>(
        file: &NpyMap,
        widen: impl Fn(E) -> f64 + Copy,
    ) -> Result<Vec<T::Bound>, CliError> {
        let edges = file.elements::<E>()?.iter().map(|&edge| widen(edge));
        if let Some(place) = edges.clone().position(f64::is_nan) {
            return Err(CliError::Usage(format!("edge {place} is no number")));
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

/// This PE's part of `count` elements.
fn share(count: usize, pe: &Pe) -> Range<usize> {
    let bound = |k: usize| (count as u128 * k as u128 / pe.n_pes() as u128) as usize;
    bound(pe.my_pe())..bound(pe.my_pe() + 1)
}

fn check_outputs(args: &HistogramArgs) -> Result<(), SameOutput> {
    let outputs = [&args.output, &args.csv, &args.plot, &args.png];
    let mut seen = Vec::new();
    for path in outputs.into_iter().flatten() {
        if seen.contains(&path) {
            return Err(SameOutput(path.clone()));
        }
        seen.push(path);
    }
    Ok(())
}

/// What was counted.
struct Report {
    dtype: Dtype,
    samples: usize,
    weighted: bool,
    edges: Vec<f64>,
    totals: Vec<u64>,
    backend: &'static str,
    machine: String,
    pes: usize,
    world: &'static str,
    seconds: f64,
}

impl Report {
    fn sum(&self) -> u64 {
        self.totals
            .iter()
            .fold(0, |sum, &total| sum.wrapping_add(total))
    }

    fn write(&self, args: &HistogramArgs) -> Result<(), OutputError> {
        if let Some(path) = &args.output {
            let shape = Shape(vec![self.totals.len()]);
            let mut npy = NpyWriter::new(StagedFile::create(path)?, Dtype::U64, &shape)?;
            npy.put(&self.totals)?;
            npy.finish()?;
        }
        if let Some(path) = &args.csv {
            let mut csv = StagedFile::create(path)?;
            csv.put(format!("lower,upper,{}\n", self.what()).as_bytes())?;
            for (edges, total) in self.edges.windows(2).zip(&self.totals) {
                csv.put(format!("{},{},{total}\n", edges[0], edges[1]).as_bytes())?;
            }
            csv.commit()?;
        }
        let bars = Bars {
            title: &format!(
                "{}: {} {}",
                args.file.display(),
                grouped(self.samples as u64),
                self.dtype
            ),
            quantity: self.what(),
            edges: &self.edges,
            totals: &self.totals,
        };
        if let Some(path) = &args.plot {
            bars::write_svg(StagedFile::create(path)?, &bars)?;
        }
        if let Some(path) = &args.png {
            bars::write_png(StagedFile::create(path)?, &bars)?;
        }
        Ok(())
    }

    /// What the totals are.
    fn what(&self) -> &'static str {
        if self.weighted { "weight" } else { "count" }
    }

    fn json(&self) -> String {
        let mut object = serde_json::json!({
            "dtype": self.dtype.name(),
            "samples": self.samples,
            "weighted": self.weighted,
            "edges": self.edges.iter().map(|&edge| json_edge(edge)).collect::<Vec<_>>(),
            "totals": self.totals,
            "backend": self.backend,
            "pes": self.pes,
            "world": self.world,
            "seconds": self.seconds,
            "samples_per_second": self.samples as f64 / self.seconds,
        });
        if !self.weighted {
            object["dropped"] = (self.samples as u64 - self.sum()).into();
        }
        object.to_string()
    }

    /// The histogram in lines, neighbouring bins together where there are more bins than lines.
    fn text(&self) -> String {
        let step = self.totals.len().div_ceil(MOST_LINES);
        let lines: Vec<(String, u64)> = self
            .totals
            .chunks(step)
            .enumerate()
            .map(|(line, totals)| {
                let (lower, upper) = (
                    self.edges[line * step],
                    self.edges[line * step + totals.len()],
                );
                let range = format!("{} .. {}", general(lower, 6), general(upper, 6));
                let sum = totals
                    .iter()
                    .fold(0u64, |sum, &total| sum.saturating_add(total));
                (range, sum)
            })
            .collect();
        let most = lines.iter().map(|line| line.1).max().unwrap_or(0).max(1);
        let width = lines.iter().map(|line| line.0.len()).max().unwrap_or(0);
        let digits = grouped(most).len();
        let mut text = String::new();
        for (range, total) in lines {
            let line = format!(
                "{range:>width$}  {:>digits$}  {}",
                grouped(total),
                bar(total, most)
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let bins = match (self.totals.len(), step) {
            (1, _) => "1 bin".to_owned(),
            (bins, 1) => format!("{} bins", grouped(bins as u64)),
            (bins, _) => format!("{} bins ({step} a line)", grouped(bins as u64)),
        };
        let outside = if self.weighted {
            "weighted".to_owned()
        } else {
            format!("{} dropped", grouped(self.samples as u64 - self.sum()))
        };
        text.push_str(&format!(
            "{} samples {} in {bins}, {outside}\n{} ({}) on {}, {:.3} ms, {}",
            grouped(self.samples as u64),
            self.dtype,
            pes(self.pes),
            self.world,
            self.machine,
            self.seconds * 1e3,
            si(self.samples as f64 / self.seconds, " samples/s"),
        ));
        text
    }
}

/// JSON has no infinities; they are texts.
fn json_edge(edge: f64) -> serde_json::Value {
    serde_json::Number::from_f64(edge)
        .map_or_else(|| general(edge, 6).into(), serde_json::Value::Number)
}

/// A bar of block characters, to an eighth of a column.
fn bar(total: u64, most: u64) -> String {
    let eighths = (total as f64 / most as f64 * (8 * BAR_WIDTH) as f64).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_the_samples_type_keep_the_order() {
        // The least f32 at or above 0.1 and 1/3, which have no f32.
        for value in [0.1, 1.0 / 3.0, -0.1, 0.0, 2.5, 1e-50] {
            let bound = f32::at_or_above(value);
            assert!(f64::from(bound) >= value && f64::from(bound.next_down()) < value);
        }
        assert_eq!((i32::at_or_above(2.5), i32::at_or_above(-2.5)), (3, -2));
        assert_eq!(f32::around(1.0), (0.5, 1.5));
    }

    #[test]
    fn ranges_are_two_numbers() {
        assert!("0:256".parse::<RangeText>().is_ok() && "-1e3:-0.5".parse::<RangeText>().is_ok());
        for wrong in ["", "3", "a:b", "1:", "1:2:3"] {
            assert!(wrong.parse::<RangeText>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(0, 10), "");
        assert_eq!(bar(10, 10).chars().count(), BAR_WIDTH);
        assert_eq!(bar(1, 320), "▏");
        assert_eq!(bar(u64::MAX, u64::MAX).chars().count(), BAR_WIDTH);
    }
}
