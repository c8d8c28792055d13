//! Arrays that are read piece by piece give the bits of those in memory.

use std::io;

use crosswarp_prim::histogram::{Bins, Histogram, HistogramError};
use crosswarp_prim::{Element, Op, ReduceError, Reducer, Source};
use crosswarp_shmem::spmd;
use half::bf16;

/// An array in memory, of which elements from `broken` on cannot be read.
struct Slow<'a, T> {
    elements: &'a [T],
    broken: usize,
    /// Lends them, too.
    lends: bool,
}

impl<'a, T> Slow<'a, T> {
    fn new(elements: &'a [T]) -> Self {
        Self {
            elements,
            broken: usize::MAX,
            lends: elements.len() % 2 == 1,
        }
    }
}

impl<T: Copy + Sync> Source<T> for Slow<'_, T> {
    fn len(&self) -> usize {
        self.elements.len()
    }
    fn read(&self, first: usize, to: &mut [T]) -> io::Result<()> {
        if first + to.len() > self.broken {
            return Err(io::Error::other("the disk is gone"));
        }
        to.copy_from_slice(&self.elements[first..first + to.len()]);
        Ok(())
    }
    fn lent(&self, range: std::ops::Range<usize>) -> Option<&[T]> {
        self.lends.then(|| &self.elements[range])
    }
}

fn words(len: usize) -> Vec<u64> {
    let mut state = 7u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state ^ state >> 29
    };
    (0..len).map(|_| next()).collect()
}

/// All reductions of `values`, over 1 to 3 PEs and in threads, are those of the slice.
fn check<T: Element>(values: &[T]) {
    let other: Vec<T> = values.iter().rev().copied().collect();
    let slow = (Slow::new(values), Slow::new(&other));
    for &op in Op::ALL {
        let slices = [values, &other];
        let sources: [&dyn Source<T>; 2] = [&slow.0, &slow.1];
        let reducer = Reducer::new().threads(3);
        let expected = reducer.reduce(op, &slices[..op.inputs()]);
        let found = reducer.reduce_from(op, &sources[..op.inputs()]);
        assert_eq!(
            found.map(|value| value.hex()),
            expected.clone().map(|value| value.hex()),
            "{op} of {} {}",
            values.len(),
            T::DTYPE
        );
        for pes in 2..4 {
            let all = spmd(pes, |pe| {
                // Parts that cut leaves.
                let cut = |k: usize| values.len() * k / pes;
                let range = cut(pe.my_pe())..cut(pe.my_pe() + 1);
                let (mine, others) = (Slow::new(&values[range.clone()]), Slow::new(&other[range]));
                let sources: [&dyn Source<T>; 2] = [&mine, &others];
                Reducer::new()
                    .on(pe)
                    .reduce_from(op, &sources[..op.inputs()])
            })
            .unwrap();
            for found in all {
                assert_eq!(
                    found.map(|value| value.hex()),
                    expected.clone().map(|value| value.hex()),
                    "{op} over {pes} PEs"
                );
            }
        }
    }
}

#[test]
fn reductions_of_sources_have_the_bits_of_slices() {
    // None, one, within a piece, over the edges of pieces of 256 KiB.
    for len in [0, 1, 5000, 65_537, 200_003] {
        let words = words(len);
        let floats: Vec<f32> = words.iter().map(|&x| x as i32 as f32 * 1e-7).collect();
        check(&floats);
        let doubles: Vec<f64> = words.iter().map(|&x| x as i64 as f64 * 1e-9).collect();
        check(&doubles);
        let halves: Vec<bf16> = floats.iter().map(|&x| bf16::from_f32(x)).collect();
        check(&halves);
        check(&words);
        check(&words.iter().map(|&x| x as i16).collect::<Vec<_>>());
    }
}

#[test]
fn special_values_come_through_pieces() {
    let mut values = vec![1.0f32; 300_000];
    values[299_999] = f32::MAX;
    values[150_000] = f32::MAX;
    check(&values);
    values[70_000] = f32::NAN;
    check(&values);
    check(&vec![-0.0f64; 100_000]);
}

#[test]
fn what_cannot_be_read_is_an_error_on_every_pe() {
    let values = vec![1.0f64; 98_304];
    let broken = Slow {
        elements: &values,
        broken: 60_000,
        lends: false,
    };
    let error = Reducer::new().reduce_from(Op::Sum, &[&broken]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read elements 32768 to 65535: the disk is gone"
    );
    let errors = spmd(2, |pe| {
        let part = Slow {
            elements: &values,
            broken: [usize::MAX, 10][pe.my_pe()],
            lends: false,
        };
        Reducer::new().on(pe).reduce_from(Op::Max, &[&part])
    })
    .unwrap();
    assert!(matches!(errors[0], Err(ReduceError::PeerFailed { pe: 1 })));
    assert!(matches!(errors[1], Err(ReduceError::Read(_))));

    let bins = Bins::<f64>::even(0.0, 2.0, 4).unwrap();
    let counts = spmd(2, |pe| {
        let part = Slow {
            elements: &values,
            broken: [usize::MAX, 10][pe.my_pe()],
            lends: false,
        };
        Histogram::new(&bins).on(pe).count_from(&part)
    })
    .unwrap();
    assert!(matches!(counts[0], Err(HistogramError::Collective(_))));
    assert!(matches!(counts[1], Err(HistogramError::Read(_))));
}

#[test]
fn histograms_of_sources_are_those_of_slices() {
    let words = words(400_001);
    let samples: Vec<u16> = words.iter().map(|&x| x as u16).collect();
    let weights: Vec<u32> = words.iter().map(|&x| (x >> 32) as u32).collect();
    for bins in [7, 3000, 60_000] {
        let bins = Bins::<u16>::even(100, 60_000, bins).unwrap();
        let histogram = Histogram::new(&bins).threads(3);
        assert_eq!(
            histogram.count_from(&Slow::new(&samples)),
            histogram.count(&samples)
        );
        assert_eq!(
            histogram.sum_weights_from(&Slow::new(&samples), &Slow::new(&weights)),
            histogram.sum_weights(&samples, &weights)
        );
    }
}

#[test]
fn every_integer_type_is_counted() {
    fn check<T: crosswarp_prim::histogram::Sample>(
        samples: &[T],
        bounds: &[T::Bound],
        expected: &[u64],
    ) {
        let edges = Bins::<T>::edges(bounds).unwrap();
        let counts = Histogram::new(&edges).count(samples).unwrap();
        assert_eq!(counts, expected, "{}", T::DTYPE);
    }
    check(&[-128i8, -1, 0, 1, 127], &[-128, 0, 1, 128], &[2, 1, 2]);
    check(&[i16::MIN, 5, i16::MAX], &[-40_000, 5, 6], &[1, 1]);
    check(&[0u32, 1 << 31, u32::MAX], &[0, 1 << 31, 1 << 32], &[1, 2]);
    check(
        &[i64::MIN, -1, 0, i64::MAX],
        &[i64::MIN.into(), 0, i64::MAX.into()],
        &[2, 2],
    );
    check(
        &[0, 1, u64::MAX - 1, u64::MAX],
        &[0, 1, u64::MAX.into(), 1 << 64],
        &[1, 2, 1],
    );
    // Even bins of all values; the last has its upper edge where a sample can be that.
    let bins = Bins::<u64>::even(0, 1 << 64, 4).unwrap();
    let counts = Histogram::new(&bins).count(&[0, 1 << 62, (1 << 63) - 1, u64::MAX]);
    assert_eq!(counts.unwrap(), [1, 2, 0, 1]);
    let bins = Bins::<i64>::even(-3, 3, 3).unwrap();
    let counts = Histogram::new(&bins).count(&[-4, -3, -2, -1, 2, 3, 4]);
    assert_eq!(counts.unwrap(), [2, 1, 2]);
    let bins = Bins::<i64>::integers(i64::MAX.into(), 1 << 63).unwrap();
    assert_eq!(bins.bin_of(i64::MAX), Some(0));
    assert!(Bins::<u64>::even(-1, 5, 3).is_err());
}
