//! `cargo run --release -p crosswarp-prim --example histogram_table`: speed of histograms on the CPU, 10⁹
//! samples a second; best of several runs.

use std::time::Instant;

use crosswarp_prim::histogram::{Bins, Histogram, OutOfRange, Sample};

const SAMPLES: usize = 1 << 26;
const RUNS: usize = 5;

fn row<T: Sample>(what: &str, bins: &Bins<T>, samples: &[T]) {
    print!("{what:<44}");
    for threads in [1, 2] {
        let histogram = Histogram::new(bins).threads(threads);
        let mut best = f64::INFINITY;
        for _ in 0..RUNS {
            let start = Instant::now();
            let counts = histogram.count(samples).expect("one thread is no team");
            best = best.min(start.elapsed().as_secs_f64());
            assert_eq!(counts.iter().sum::<u64>(), samples.len() as u64);
        }
        let rate = samples.len() as f64 / best / 1e9;
        print!("  {threads} thread(s) {rate:>5.2}");
    }
    println!();
}

fn main() {
    // The mixing of SplitMix64 (Steele, Lea and Flood, 2014).
    let unit = |k: usize| {
        let mut z = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let units: Vec<f64> = (0..SAMPLES).map(unit).collect();
    let bytes: Vec<u8> = units.iter().map(|u| (u * 256.0) as u8).collect();
    let levels = Bins::<u8>::integers(0, 256).expect("ascending");
    row("u8, 256 values, uniform", &levels, &bytes);
    row("u8, 256 values, all equal", &levels, &vec![7; SAMPLES]);
    let floats: Vec<f32> = units.iter().map(|&u| u as f32).collect();
    for bins in [100, 65_536, 1 << 20] {
        let even = Bins::even(0.0f32, 1.0, bins).expect("a range");
        // Some samples are rounded to 1.
        let even = even.out_of_range(OutOfRange::Clamp);
        row(
            &format!("f32, {bins} even bins, uniform"),
            &even,
            &floats[..SAMPLES / 2],
        );
    }
    let edges: Vec<f32> = (0..=1000).map(|k| (k as f32 / 1000.0).powi(2)).collect();
    let edges = Bins::edges(&edges).expect("ascending");
    let edges = edges.out_of_range(OutOfRange::Clamp);
    row(
        "f32, 1000 bins of arbitrary edges, uniform",
        &edges,
        &floats[..SAMPLES / 2],
    );
}
