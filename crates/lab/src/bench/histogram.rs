//! Measuring histograms on one GPU, by bins and distribution: the rows that `bench/peers/cub_histogram.cu` measures of
//! CUB, in the same way.

use std::thread;

use crosswarp_cuda::{Buffer, Device, Stream};
use crosswarp_prim::cuda::DeviceHistogram;
use crosswarp_prim::histogram::Bins;

use super::error::BenchError;
use crate::measure::{Plan, Row, on_stream};

const BINS: [u32; 12] = [
    64, 256, 2048, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576, 4_194_304,
];
/// Numbers of bins that have edges of their own, and what those cover.
const EDGES: [u32; 4] = [64, 1024, 16_384, 262_144];
const SPAN: u32 = 1 << 30;
/// Threads that make samples.
const THREADS: usize = 16;

#[derive(Clone, Copy)]
enum Distribution {
    Uniform,
    OneHot,
    /// Fourth powers of uniform numbers: half of the samples in 6 % of the bins.
    Skewed,
}

impl Distribution {
    const ALL: [Self; 3] = [Self::Uniform, Self::OneHot, Self::Skewed];

    fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::OneHot => "one-hot",
            Self::Skewed => "skewed",
        }
    }

    /// Sample `k` in 0..`bins`. `bench/peers/cub_histogram.cu` has the same.
    fn sample(self, k: u64, bins: u32) -> i32 {
        // The mixing of SplitMix64 (Steele, Lea and Flood, 2014).
        let mut z = k.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let unit = (z >> 11) as f64 / (1u64 << 53) as f64;
        let place = match self {
            Self::Uniform => unit,
            Self::OneHot => 0.37,
            Self::Skewed => unit * unit * unit * unit,
        };
        (place * f64::from(bins)) as i32
    }
}

/// Measures 2^`samples` samples and hands every row to `report`.
///
/// # Errors
/// The GPU's.
pub fn histogram(
    device: &Device,
    samples: u32,
    mut report: impl FnMut(Row),
) -> Result<(), BenchError> {
    let stream = Stream::new(device)?;
    let n = 1usize << samples;
    let there = Buffer::<i32>::new(device, n)?;
    let mut samples = vec![0i32; n];
    let mut measure = |bins: Bins<i32>,
                       distribution,
                       sample: &(dyn Fn(u64) -> i32 + Sync)|
     -> Result<(), BenchError> {
        fill(&mut samples, sample);
        stream.write(&there, &samples)?;
        let count = bins.count();
        let histogram = DeviceHistogram::new(&stream, &bins)?;
        let workspace = histogram.workspace()?;
        let totals = Buffer::<u64>::zeroed(&stream, count)?;
        let time = on_stream(&Plan::quick(), &stream, None, |stream, _| {
            histogram.add_counts(stream, &there, &totals, &workspace)
        })?;
        let row = Row::new("histogram", time)
            .with("dtype", "i32")
            .with("elements", n)
            .with("bins", count)
            .with("distribution", distribution)
            .with("gsamples", n as f64 / time.median / 1e9)
            .bytes(4 * n as u64);
        report(row);
        Ok(())
    };
    for bins in BINS {
        for distribution in Distribution::ALL {
            let values = Bins::<i32>::integers(0, bins.into())?;
            measure(values, distribution.name(), &|k| {
                distribution.sample(k, bins)
            })?;
        }
    }
    for bins in EDGES {
        let edges = Bins::<i32>::edges(&edges(bins))?;
        measure(edges, "edges", &|k| Distribution::Uniform.sample(k, SPAN))?;
    }
    Ok(())
}

/// Arbitrary edges over 0..SPAN, denser towards 0: squares. `bench/peers/cub_histogram.cu` has the same.
fn edges(bins: u32) -> Vec<i64> {
    let (bins, span) = (u64::from(bins), u64::from(SPAN));
    (0..=bins)
        .map(|k| (k * k * (span / bins) / bins) as i64)
        .collect()
}

/// Writes `value(k)` to place k.
fn fill(samples: &mut [i32], value: impl Fn(u64) -> i32 + Sync) {
    let part = samples.len().div_ceil(THREADS).max(1);
    let value = &value;
    thread::scope(|scope| {
        for (place, samples) in samples.chunks_mut(part).enumerate() {
            scope.spawn(move || {
                for (k, sample) in samples.iter_mut().enumerate() {
                    *sample = value((place * part + k) as u64);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_ascend_and_cover_the_span() {
        for bins in EDGES {
            let edges = edges(bins);
            assert!(edges.len() == bins as usize + 1 && edges.is_sorted());
            assert_eq!((edges[0], edges[bins as usize]), (0, SPAN.into()));
        }
    }

    #[test]
    fn samples_are_in_range_and_as_named() {
        let mut samples = vec![0; 100_000];
        for distribution in Distribution::ALL {
            fill(&mut samples, |k| distribution.sample(k, 1000));
            assert!(samples.iter().all(|sample| (0..1000).contains(sample)));
            let low = samples.iter().filter(|&&sample| sample < 63).count();
            match distribution {
                Distribution::Uniform => assert!((6000..6600).contains(&low), "{low}"),
                Distribution::OneHot => assert!(samples.iter().all(|&sample| sample == 370)),
                Distribution::Skewed => assert!((49_000..51_500).contains(&low), "{low}"),
            }
        }
    }
}
