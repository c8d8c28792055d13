//! Histograms on the processor.

use crosswarp_prim::histogram::{Bins, Histogram, OutOfRange};

use super::super::inputs::{bin_of, exact_histogram, grouped, histogram_work, sample};
use super::super::rung::{Check, RungKind};
use super::ladder_run::{LadderRun, RungSpec, on_threads};

/// Bins if no number is given.
const BINS: u32 = 256;

fn scalar(x: &[i32], counts: &mut [u32]) {
    let bins = counts.len() as u32;
    for &sample in x {
        counts[bin_of(sample, bins) as usize] += 1;
    }
}

/// Four histograms, so that equal neighbours do not wait for one another's store.
fn four_copies(x: &[i32], counts: &mut [u32]) {
    let bins = counts.len();
    let mut copies = vec![0u32; 4 * bins];
    let quads = x.chunks_exact(4);
    scalar(quads.remainder(), counts);
    for quad in quads {
        for (copy, &sample) in quad.iter().enumerate() {
            copies[copy * bins + bin_of(sample, bins as u32) as usize] += 1;
        }
    }
    for copy in copies.chunks_exact(bins) {
        for (count, part) in counts.iter_mut().zip(copy) {
            *count += part;
        }
    }
}

fn threads(x: &[i32], counts: &mut [u32], threads: usize) {
    let parts = x.chunks(x.len().div_ceil(threads)).collect();
    let bins = counts.len();
    let of_part = |part: &[i32]| {
        let mut own = vec![0; bins];
        four_copies(part, &mut own);
        own
    };
    for own in on_threads(parts, of_part) {
        for (count, part) in counts.iter_mut().zip(own) {
            *count += part;
        }
    }
}

pub fn run(run: &mut LadderRun) {
    let n = run.size();
    let number = run.options.bins.unwrap_or(BINS);
    run.group = format!(
        "histogram of {} samples in {} bins",
        grouped(n),
        grouped(number as usize)
    );
    let x: Vec<i32> = (0..n).map(|index| sample(index, number)).collect();
    let expected = exact_histogram(&x, number);
    let count = run.threads;
    use RungKind::{Crosswarp, Textbook};
    let mut rung = |name, kind, why, histogram: &dyn Fn(&[i32], &mut [u32])| {
        let spec = RungSpec {
            name,
            kind,
            why,
            work: histogram_work(n, number),
        };
        run.rung(
            spec,
            &mut vec![u32::MAX; number as usize],
            |counts| {
                counts.fill(0);
                histogram(std::hint::black_box(&x), counts);
            },
            |counts| Check::of_slices(counts, &expected),
        );
    };
    rung(
        "scalar",
        Textbook,
        "A load, an add and a store a sample; a bin hit twice waits for its own store.",
        &scalar,
    );
    rung(
        "four copies",
        Textbook,
        "Neighbouring samples count in different copies and never wait for each other.",
        &four_copies,
    );
    rung(
        "threads",
        Textbook,
        "A histogram per thread, added up at the end.",
        &|x, counts| threads(x, counts, count),
    );
    let Ok(bins) = Bins::<i32>::integers(0, number.into()) else {
        return;
    };
    let bins = bins.out_of_range(OutOfRange::Clamp);
    let own = Histogram::new(&bins).threads(count);
    rung(
        "crosswarp",
        Crosswarp,
        "Finds the bins of many samples at once, and counts with more than one copy per thread.",
        &|x, counts| {
            // On no team it has no error; the check would show it.
            for (count, of_bin) in counts.iter_mut().zip(own.count(x).unwrap_or_default()) {
                *count = of_bin as u32;
            }
        },
    );
}
