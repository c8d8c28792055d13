//! Histograms on the CPU against one sample at a time, and on a GPU against the CPU. What bin a single
//! sample is in is tested beside the rules. Without a GPU the tests that need one say so by name.

#![allow(unsafe_code)] // Reason: launches graphs.

use crosswarp_cuda::{Buffer, Device, Graph, Nvrtc, Stream, skip};
use crosswarp_prim::Simd;
use crosswarp_prim::cuda::DeviceHistogram;
use crosswarp_prim::histogram::{
    Bins, DeviceSample, Histogram, HistogramError, OutOfRange, Sample,
};
use proptest::prelude::*;

/// A pseudo-random word, the same for the same `k`.
fn mix(k: u64) -> u64 {
    let mut z = k.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Numbers in 0..1 of the distributions that are hard in different ways.
const DISTRIBUTIONS: [&str; 7] = [
    "even", "one", "skewed", "sorted", "runs", "three", "drifting",
];

fn numbers(distribution: &str, n: usize) -> Vec<f64> {
    let unit = |k: usize| (mix(k as u64) >> 11) as f64 / (1u64 << 53) as f64;
    (0..n)
        .map(|k| match distribution {
            "even" => unit(k),
            "one" => 0.37,
            "skewed" => unit(k).powi(6),
            "sorted" => k as f64 / n as f64,
            "runs" => unit(k / 37),
            "three" => [0.11, 0.61, unit(k)][(mix(k as u64) % 3) as usize],
            _ => 0.05 + 0.9 * (k as f64 * 1e-5).sin().abs() + 1e-3 * unit(k),
        })
        .collect()
}

/// One sample at a time.
fn reference<T: Sample>(bins: &Bins<T>, samples: &[T]) -> Vec<u64> {
    let mut counts = vec![0; bins.count()];
    samples
        .iter()
        .filter_map(|&sample| bins.bin_of(sample))
        .for_each(|bin| counts[bin] += 1);
    counts
}

fn check_cpu<T: Sample>(bins: &Bins<T>, samples: &[T]) {
    let expected = reference(bins, samples);
    for simd in Simd::available() {
        for threads in [1, 3] {
            let histogram = Histogram::new(bins).simd(simd).threads(threads);
            assert_eq!(
                histogram.count(samples).unwrap(),
                expected,
                "{simd} {threads}"
            );
        }
    }
    let weights: Vec<u32> = (0..samples.len()).map(|k| mix(k as u64) as u32).collect();
    let mut sums = vec![0u64; bins.count()];
    for (&sample, &weight) in samples.iter().zip(&weights) {
        if let Some(bin) = bins.bin_of(sample) {
            sums[bin] += u64::from(weight);
        }
    }
    let histogram = Histogram::new(bins).threads(2);
    assert_eq!(histogram.sum_weights(samples, &weights).unwrap(), sums);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn counts_are_those_of_single_samples(
        samples in proptest::collection::vec(any::<i32>(), 0..3000),
        bins in 1usize..6000,
        clamp: bool,
    ) {
        let policy = if clamp { OutOfRange::Clamp } else { OutOfRange::Drop };
        let wide = Bins::even(-1 << 30, 1 << 30, bins).unwrap().out_of_range(policy);
        check_cpu(&wide, &samples);
        let bytes: Vec<u8> = samples.iter().map(|&x| x as u8).collect();
        check_cpu(&Bins::even(-5, 200, bins).unwrap().out_of_range(policy), &bytes);
        let halves: Vec<u16> = samples.iter().map(|&x| x as u16).collect();
        check_cpu(&Bins::edges(&[3, 3, 77, 1000, 40_000]).unwrap().out_of_range(policy), &halves);
        let floats: Vec<f32> = samples.iter().map(|&x| f32::from_bits(x as u32)).collect();
        check_cpu(&Bins::even(-1.0, 1e10, bins).unwrap().out_of_range(policy), &floats);
        let doubles: Vec<f64> = samples.iter().map(|&x| f64::from(x) * 1e-9).collect();
        check_cpu(&Bins::edges(&[f64::NEG_INFINITY, -0.1, 0.0, 0.3]).unwrap().out_of_range(policy), &doubles);
    }
}

/// Even and explicit bins of 0..3 and the samples 0, 1, 2, 3, with one beyond: 1, 1 and 2.
fn last_bin_is_closed<T: Sample>(values: [T; 5], edges: [T::Bound; 4]) {
    let even = Bins::<T>::even(edges[0], edges[3], 3).unwrap();
    for bins in [even, Bins::edges(&edges).unwrap()] {
        let found = |bins: &Bins<T>| Histogram::new(bins).count(&values).unwrap();
        assert_eq!(found(&bins), [1, 1, 2]);
        check_cpu(&bins, &values);
        let clamped = bins.out_of_range(OutOfRange::Clamp);
        assert_eq!(found(&clamped), [1, 1, 3]);
        check_cpu(&clamped, &values);
    }
}

#[test]
fn the_last_bin_has_both_its_edges() {
    last_bin_is_closed::<u8>([0, 1, 2, 3, 4], [0, 1, 2, 3]);
    last_bin_is_closed::<u16>([0, 1, 2, 3, 4], [0, 1, 2, 3]);
    last_bin_is_closed::<i32>([0, 1, 2, 3, 4], [0, 1, 2, 3]);
    last_bin_is_closed::<f32>([0.0, 1.0, 2.0, 3.0, 3.0f32.next_up()], [0.0, 1.0, 2.0, 3.0]);
    last_bin_is_closed::<f64>([0.0, 1.0, 2.0, 3.0, 3.0f64.next_up()], [0.0, 1.0, 2.0, 3.0]);
    // More bins than the range is wide: the upper end is not in the bin of the value before.
    let narrow = Bins::<i32>::even(0, 2, 8).unwrap();
    let samples = [-1, 0, 1, 2, 3];
    let found = |bins: &Bins<i32>| Histogram::new(bins).count(&samples).unwrap();
    assert_eq!(found(&narrow), [1, 0, 0, 0, 1, 0, 0, 1]);
    let clamped = narrow.out_of_range(OutOfRange::Clamp);
    assert_eq!(found(&clamped), [2, 0, 0, 0, 1, 0, 0, 2]);
    // The greatest samples there are.
    let bytes = Bins::<u8>::even(0, 255, 5).unwrap();
    assert_eq!(
        Histogram::new(&bytes).count(&[255, 254, 0]).unwrap(),
        [1, 0, 0, 0, 2]
    );
    for bins in [1, 3, 4, 1000] {
        let all = Bins::<i32>::even(i32::MIN.into(), i32::MAX.into(), bins).unwrap();
        let ends = [i32::MIN, i32::MAX, i32::MAX - 1].map(|x| all.bin_of(x));
        assert_eq!(ends, [Some(0), Some(bins - 1), Some(bins - 1)]);
    }
    let infinite = Bins::<f64>::edges(&[f64::NEG_INFINITY, 0.0, f64::INFINITY]).unwrap();
    let ends = [f64::NEG_INFINITY, f64::INFINITY, f64::NAN].map(|x| infinite.bin_of(x));
    assert_eq!(ends, [Some(0), Some(1), None]);
    // Bins of single values have no upper end among them.
    let values = Bins::<u8>::integers(0, 3).unwrap();
    assert_eq!(
        Histogram::new(&values).count(&[0, 1, 2, 3]).unwrap(),
        [1, 1, 1]
    );
}

/// A line of `reference/numpy_histograms.txt`, whose counts are found or not.
fn check_vector<T: Sample + std::str::FromStr>(fields: &[&str])
where
    T::Bound: std::str::FromStr,
{
    fn numbers<N: std::str::FromStr>(text: &str) -> Vec<N> {
        let read = |word: &str| word.parse().ok();
        text.split(' ')
            .map(|word| read(word).expect(word))
            .collect()
    }
    let (low, high) = (numbers(fields[2])[0], numbers(fields[3])[0]);
    let bins = Bins::<T>::even(low, high, numbers(fields[4])[0]).unwrap();
    let samples: Vec<T> = numbers(fields[5]);
    let found = Histogram::new(&bins).count(&samples).unwrap();
    let same = found == numbers::<u64>(fields[6]);
    assert_eq!(same, fields[0] == "agrees", "{fields:?}: {found:?}");
    // No sample is lost where a rounded edge is in another place.
    assert_eq!(
        found.iter().sum::<u64>(),
        numbers(fields[6]).iter().sum::<u64>()
    );
}

#[test]
fn counts_are_those_of_numpy() {
    let vectors = include_str!("reference/numpy_histograms.txt");
    let lines: Vec<&str> = vectors
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(lines.len(), 28);
    for line in lines {
        let fields: Vec<&str> = line.split("; ").collect();
        match fields[1] {
            "float32" => check_vector::<f32>(&fields),
            "float64" => check_vector::<f64>(&fields),
            "int32" => check_vector::<i32>(&fields),
            "uint8" => check_vector::<u8>(&fields),
            "uint16" => check_vector::<u16>(&fields),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn many_samples_on_many_threads() {
    for distribution in DISTRIBUTIONS {
        let samples: Vec<i32> = numbers(distribution, 1_000_003)
            .iter()
            .map(|x| (x * 1e6) as i32)
            .collect();
        for bins in [1, 1024, 1025, 5000, 70_000] {
            check_cpu(&Bins::even(0, 1_000_000, bins).unwrap(), &samples);
        }
    }
}

#[test]
fn a_team_adds_its_counts() {
    let samples: Vec<u16> = (0..50_000).map(|k| mix(k) as u16).collect();
    // The greatest sample is inside, and at the upper end.
    for (bins, high) in [10, 65_536, 200_000]
        .into_iter()
        .flat_map(|bins| [(bins, 65_535), (bins, 1 << 16)])
    {
        let bins = Bins::even(0, high, bins).unwrap();
        let expected = reference(&bins, &samples);
        let counts = crosswarp_shmem::spmd(3, |pe| {
            let part = [0..17, 17..17, 17..50_000][pe.my_pe()].clone();
            Histogram::new(&bins).on(pe).count(&samples[part])
        })
        .unwrap();
        assert!(counts.iter().all(|counts| counts.as_ref() == Ok(&expected)));
    }
}

#[test]
fn a_team_that_disagrees_is_told() {
    let results = crosswarp_shmem::spmd(2, |pe| {
        let high = 10 + pe.my_pe() as i64;
        let bins = Bins::<i32>::even(0, high, 5).unwrap();
        Histogram::new(&bins).on(pe).count(&[1, 2, 3])
    })
    .unwrap();
    assert!(
        results
            .iter()
            .all(|r| matches!(r, Err(HistogramError::Collective(_))))
    );
    let bins = Bins::<i32>::even(0, 10, 5).unwrap();
    let results = crosswarp_shmem::spmd(2, |pe| {
        Histogram::new(&bins)
            .on(pe)
            .sum_weights(&[1, 2], &[7, 8][..2 - pe.my_pe()])
    })
    .unwrap();
    assert!(matches!(results[0], Err(HistogramError::Collective(_))));
    assert_eq!(
        results[1].as_ref().unwrap_err().to_string(),
        "2 samples need as many weights, got 1"
    );
}

/// A GPU to test on, or a word that there is none.
fn gpu(test: &str) -> Option<Stream> {
    let found = Device::get(0).map_err(|error| error.to_string());
    let found = found.and_then(|device| {
        Nvrtc::get().map_err(|error| error.to_string())?;
        Stream::new(&device).map_err(|error| error.to_string())
    });
    match found {
        Ok(stream) => Some(stream),
        Err(reason) => {
            skip::skip_gpu(test, 1, reason);
            None
        }
    }
}

/// Counts `samples` and some of their parts, not aligned to 16 bytes, and compares with the CPU.
fn check_gpu<T: DeviceSample>(stream: &Stream, bins: &Bins<T>, samples: &[T], what: &str) {
    let histogram = DeviceHistogram::new(stream, bins).unwrap();
    let workspace = histogram.workspace().unwrap();
    let there = Buffer::from_slice(stream, samples).unwrap();
    let totals = Buffer::<u64>::new(stream.device(), bins.count()).unwrap();
    let n = samples.len();
    for range in [0..n, 1..n, n / 2 + 3..n / 2 + 20, 5..5] {
        stream.zero(&totals).unwrap();
        histogram
            .add_counts(stream, there.range(range.clone()), &totals, &workspace)
            .unwrap();
        let expected = Histogram::new(bins).count(&samples[range.clone()]).unwrap();
        let found = totals.to_vec(stream).unwrap();
        if let Some(bin) = (0..bins.count()).find(|&bin| found[bin] != expected[bin]) {
            let wrong = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
            panic!(
                "{what}, samples {range:?}: {wrong} of {} bins wrong, first {bin}: {} instead of {}",
                bins.count(),
                found[bin],
                expected[bin]
            );
        }
    }
}

/// Around every change of plan.
const BINS: [usize; 15] = [
    1,
    2,
    31,
    256,
    1000,
    8192,
    57_000,
    58_112,
    58_113,
    65_536,
    223_232,
    223_233,
    446_465,
    1 << 20,
    5_000_000,
];

#[test]
fn gpu_counts_of_i32() {
    let Some(stream) = gpu("gpu_counts_of_i32") else {
        return;
    };
    for distribution in DISTRIBUTIONS {
        // Enough for several runs of tiles and for counters of 4 bits.
        let numbers = numbers(distribution, (1 << 23) + 12_345);
        let samples: Vec<i32> = numbers
            .iter()
            .map(|x| (x * 1e9) as i32 - 400_000_000)
            .collect();
        for bins in BINS {
            let even = Bins::even(-400_000_000, 600_000_000, bins).unwrap();
            check_gpu(
                &stream,
                &even,
                &samples,
                &format!("{distribution}, {bins} bins"),
            );
        }
        let few: Vec<i32> = numbers.iter().map(|x| (x * 300_000.0) as i32).collect();
        for (low, high) in [(0, 300_000), (100, 262_144 + 100)] {
            for policy in [OutOfRange::Drop, OutOfRange::Clamp] {
                let integers = Bins::integers(low, high).unwrap().out_of_range(policy);
                check_gpu(
                    &stream,
                    &integers,
                    &few,
                    &format!("{distribution}, integers {policy:?}"),
                );
                let even = Bins::even(low, high, 90_000).unwrap().out_of_range(policy);
                check_gpu(&stream, &even, &few, &format!("{distribution}, {policy:?}"));
            }
        }
        let spread = Bins::even(0, 300_000, 800_000).unwrap();
        check_gpu(
            &stream,
            &spread,
            &few,
            &format!("{distribution}, more bins than values"),
        );
    }
}

/// Every plan on few samples: what sanitizers are run on.
#[test]
fn gpu_counts_of_few_samples() {
    let Some(stream) = gpu("gpu_counts_of_few_samples") else {
        return;
    };
    for distribution in ["even", "one"] {
        let samples: Vec<i32> = numbers(distribution, 20_011)
            .iter()
            .map(|x| (x * 1e6) as i32)
            .collect();
        for bins in BINS.into_iter().filter(|&bins| bins < 1_000_000) {
            let even = Bins::even(0, 1_000_000, bins).unwrap();
            check_gpu(
                &stream,
                &even,
                &samples,
                &format!("{distribution}, {bins} bins"),
            );
        }
    }
}

#[test]
fn gpu_counts_of_other_types() {
    let Some(stream) = gpu("gpu_counts_of_other_types") else {
        return;
    };
    for distribution in ["even", "skewed", "runs"] {
        let numbers = numbers(distribution, (1 << 22) + 77);
        for policy in [OutOfRange::Drop, OutOfRange::Clamp] {
            let what = |kind: &str| format!("{kind}, {distribution}, {policy:?}");
            let bytes: Vec<u8> = numbers.iter().map(|x| (x * 256.0) as u8).collect();
            for bins in [
                Bins::integers(0, 256).unwrap(),
                Bins::even(10, 200, 7).unwrap(),
                Bins::even(-3, 300, 100_000).unwrap(),
                Bins::edges(&[0, 5, 5, 100, 256]).unwrap(),
            ] {
                check_gpu(&stream, &bins.out_of_range(policy), &bytes, &what("u8"));
            }
            let words: Vec<u16> = numbers.iter().map(|x| (x * 65536.0) as u16).collect();
            for bins in [
                Bins::integers(0, 65_536).unwrap(),
                Bins::even(10, 60_000, 59_000).unwrap(),
                Bins::even(10, 60_000, 100_000).unwrap(),
                // More bins than one range holds, of values that no sample has.
                Bins::even(-100_000, 500_000, 300_000).unwrap(),
                Bins::edges(&[0, 500, 10_000, 65_536]).unwrap(),
            ] {
                check_gpu(&stream, &bins.out_of_range(policy), &words, &what("u16"));
            }
            let mut singles: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
            for (k, odd) in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1.0]
                .iter()
                .enumerate()
            {
                singles[k * 1001] = *odd;
            }
            for bins in [100, 70_000, 300_000, 6_000_000] {
                let even = Bins::even(0.1, 0.9, bins).unwrap().out_of_range(policy);
                check_gpu(&stream, &even, &singles, &what("f32"));
            }
            let doubles: Vec<f64> = singles.iter().map(|&x| x.into()).collect();
            for bins in [100, 70_000, 300_000] {
                let even = Bins::even(0.1, 0.9, bins).unwrap().out_of_range(policy);
                check_gpu(&stream, &even, &doubles, &what("f64"));
                let edges: Vec<f64> = (0..=bins)
                    .map(|k| (k as f64 / bins as f64).powi(2))
                    .collect();
                let edges = Bins::edges(&edges).unwrap().out_of_range(policy);
                check_gpu(&stream, &edges, &doubles, &what("f64 edges"));
            }
            let edges: Vec<i64> = (0..=80_000).map(|k| k * k / 100).collect();
            let integers: Vec<i32> = numbers.iter().map(|x| (x * 7e7) as i32).collect();
            let edges = Bins::edges(&edges).unwrap().out_of_range(policy);
            check_gpu(&stream, &edges, &integers, &what("i32 edges"));
        }
    }
}

/// Samples at both ends of the range, next to them and at the ends of the type, counted and weighed.
fn check_gpu_ends<T: DeviceSample>(stream: &Stream, bins: &Bins<T>, few: &[T], what: &str) {
    let samples: Vec<T> = few.iter().copied().cycle().take(5000).collect();
    for policy in [OutOfRange::Drop, OutOfRange::Clamp] {
        let bins = bins.clone().out_of_range(policy);
        let what = format!("{what}, {} bins, {policy:?}", bins.count());
        check_gpu(stream, &bins, &samples, &what);
        let weights: Vec<u32> = (0..samples.len()).map(|k| mix(k as u64) as u32).collect();
        let there = Buffer::from_slice(stream, &samples).unwrap();
        let weighing = Buffer::from_slice(stream, &weights).unwrap();
        let totals = Buffer::zeroed(stream, bins.count()).unwrap();
        DeviceHistogram::new(stream, &bins)
            .unwrap()
            .add_weights(stream, &there, &weighing, &totals)
            .unwrap();
        let expected = Histogram::new(&bins)
            .sum_weights(&samples, &weights)
            .unwrap();
        assert_eq!(totals.to_vec(stream).unwrap(), expected, "{what}");
    }
}

#[test]
fn gpu_counts_at_the_ends_of_ranges() {
    let Some(stream) = gpu("gpu_counts_at_the_ends_of_ranges") else {
        return;
    };
    // A shift, a product, more bins than values; with and without packed counters.
    for bins in [1, 3, 4, 100, 70_000, 65_536, 1 << 20] {
        for (low, high) in [
            (0, 3),
            (-7, 1 << 20),
            (0, i64::from(i32::MAX)),
            (-1 << 31, 1 << 31),
        ] {
            let near = |end: i64| [end - 1, end, end + 1].map(|x| x as i32);
            let samples = [near(low), near(high), [1, 2, 3], [i32::MIN, i32::MAX, 0]].concat();
            let even = Bins::<i32>::even(low, high, bins).unwrap();
            check_gpu_ends(&stream, &even, &samples, &format!("i32 {low}:{high}"));
        }
        let bytes = [0u8, 1, 2, 3, 4, 99, 100, 101, 254, 255];
        let words = [0u16, 3, 4, 254, 255, 256, 65_534, 65_535];
        for high in [3, 100, 255, 256, 65_535] {
            let even = Bins::<u8>::even(0, high, bins).unwrap();
            check_gpu_ends(&stream, &even, &bytes, &format!("u8 0:{high}"));
            let even = Bins::<u16>::even(0, high, bins).unwrap();
            check_gpu_ends(&stream, &even, &words, &format!("u16 0:{high}"));
        }
        let singles = [
            0.0,
            1.0,
            2.0,
            3.0,
            3.0f32.next_up(),
            3.0f32.next_down(),
            -0.0,
            f32::INFINITY,
            f32::NAN,
        ];
        let even = Bins::<f32>::even(0.0, 3.0, bins).unwrap();
        check_gpu_ends(&stream, &even, &singles, "f32");
        let doubles = [
            0.0,
            1.0,
            2.0,
            3.0,
            3.0f64.next_up(),
            3.0f64.next_down(),
            -0.0,
            f64::INFINITY,
            f64::NAN,
        ];
        let even = Bins::<f64>::even(0.0, 3.0, bins).unwrap();
        check_gpu_ends(&stream, &even, &doubles, "f64");
    }
    let words = [0, 1, 2, 3, 4, i32::MIN, i32::MAX];
    let edges = Bins::<i32>::edges(&[0, 1, 2, 3]).unwrap();
    check_gpu_ends(&stream, &edges, &words, "i32 edges");
    let doubles = [
        0.0,
        1.0,
        3.0,
        3.0f64.next_up(),
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    for last in [3.0, f64::INFINITY] {
        let edges = Bins::<f64>::edges(&[0.0, 1.0, 2.0, last]).unwrap();
        check_gpu_ends(&stream, &edges, &doubles, "f64 edges");
    }
}

#[test]
fn gpu_sums_of_weights() {
    let Some(stream) = gpu("gpu_sums_of_weights") else {
        return;
    };
    for distribution in ["even", "one", "three"] {
        let samples: Vec<f32> = numbers(distribution, 300_001)
            .iter()
            .map(|&x| x as f32)
            .collect();
        // Large ones, so that counters of 32 bits wrap.
        let weights: Vec<u32> = (0..samples.len())
            .map(|k| !0 - (mix(k as u64) as u32 >> 8))
            .collect();
        for bins in [1, 64, 50_000, 100_000] {
            let bins = Bins::even(0.0, 0.8, bins).unwrap();
            let histogram = DeviceHistogram::new(&stream, &bins).unwrap();
            let (there, weighing) = (
                Buffer::from_slice(&stream, &samples).unwrap(),
                Buffer::from_slice(&stream, &weights).unwrap(),
            );
            let totals = Buffer::zeroed(&stream, bins.count()).unwrap();
            histogram
                .add_weights(&stream, &there, &weighing, &totals)
                .unwrap();
            assert_eq!(
                totals.to_vec(&stream).unwrap(),
                Histogram::new(&bins)
                    .sum_weights(&samples, &weights)
                    .unwrap(),
                "{distribution}"
            );
        }
    }
}

#[test]
fn gpu_graphs_and_streams_at_once() {
    let Some(stream) = gpu("gpu_graphs_and_streams_at_once") else {
        return;
    };
    for bins in [500, 100_000, 400_000] {
        let bins = Bins::even(0, 1_000_000, bins).unwrap();
        let histogram = DeviceHistogram::new(&stream, &bins).unwrap();
        let samples: Vec<i32> = numbers("three", 5_000_000)
            .iter()
            .map(|x| (x * 1e6) as i32)
            .collect();
        let expected = Histogram::new(&bins).count(&samples).unwrap();
        let there = Buffer::from_slice(&stream, &samples).unwrap();
        let work: Vec<_> = (0..3)
            .map(|_| {
                let stream = Stream::new(stream.device()).unwrap();
                let totals = Buffer::<u64>::zeroed(&stream, bins.count()).unwrap();
                (stream, totals, histogram.workspace().unwrap())
            })
            .collect();
        let graphs: Vec<_> = work
            .iter()
            .map(|(stream, totals, workspace)| {
                Graph::capture(stream, |stream| {
                    histogram.add_counts(stream, &there, totals, workspace)
                })
                .unwrap()
            })
            .collect();
        for _ in 0..4 {
            for (graph, (stream, ..)) in graphs.iter().zip(&work) {
                // SAFETY: everything captured lives until the totals have been read below; each graph
                // has a stream, totals and a workspace of its own.
                unsafe { graph.launch(stream) }.unwrap();
            }
        }
        for (stream, totals, _) in &work {
            let found = totals.to_vec(stream).unwrap();
            assert!(
                found
                    .iter()
                    .zip(&expected)
                    .all(|(found, count)| *found == 4 * count)
            );
        }
    }
}

#[test]
fn gpus_of_a_team_add_their_counts() {
    if gpu("gpus_of_a_team_add_their_counts").is_none() {
        return;
    }
    let devices = Device::all().unwrap();
    let samples: Vec<u16> = (0..500_000).map(|k| mix(k) as u16).collect();
    let bins = Bins::integers(0, 1 << 16).unwrap();
    let expected = Histogram::new(&bins).count(&samples).unwrap();
    let results = crosswarp_shmem::spmd(3, |pe| {
        let stream = Stream::new(&devices[pe.my_pe() % devices.len()]).unwrap();
        let histogram = DeviceHistogram::new(&stream, &bins).unwrap();
        let part = [0..17, 17..200_000, 200_000..500_000][pe.my_pe()].clone();
        let there = Buffer::from_slice(&stream, &samples[part]).unwrap();
        let totals = Buffer::zeroed(&stream, bins.count()).unwrap();
        let workspace = histogram.workspace().unwrap();
        histogram
            .add_counts(&stream, &there, &totals, &workspace)
            .unwrap();
        Histogram::new(&bins)
            .on(pe)
            .team_sum(totals.to_vec(&stream).unwrap())
    })
    .unwrap();
    assert!(
        results
            .iter()
            .all(|counts| counts.as_ref() == Ok(&expected))
    );
}
