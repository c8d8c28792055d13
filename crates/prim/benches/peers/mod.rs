//! What the sums are measured against, besides `iter().sum()`, rayon and ndarray: a loop that only
//! reads, and the fastest sum that may add in any order. Both are compiled for the machine's widest
//! vectors and keep 128 (`f64`: 64) independent lanes.
#![allow(unsafe_code)] // Reason: functions compiled for instruction sets found at run time.

use std::ops::{Add, BitOr};
use std::thread;

#[inline(always)]
fn lanes<T: Copy, const N: usize>(values: &[T], zero: T, combine: impl Fn(T, T) -> T) -> T {
    let mut lanes = [zero; N];
    let (rows, rest) = values.as_chunks::<N>();
    for row in rows {
        for k in 0..N {
            lanes[k] = combine(lanes[k], row[k]);
        }
    }
    lanes.iter().chain(rest).fold(zero, |a, &b| combine(a, b))
}

macro_rules! widest {
    ($name:ident, $body:ident, $($bound:path),*) => {
        pub fn $name<T: Copy + Default $(+ $bound)*>(values: &[T]) -> T {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512<T: Copy + Default $(+ $bound)*>(values: &[T]) -> T {
                    $body(values)
                }
                #[target_feature(enable = "avx2")]
                fn avx2<T: Copy + Default $(+ $bound)*>(values: &[T]) -> T {
                    $body(values)
                }
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                    // SAFETY: found; machines with VL have BW and DQ.
                    return unsafe { avx512(values) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: found.
                    return unsafe { avx2(values) };
                }
            }
            $body(values)
        }
    };
}

#[inline(always)]
fn any_order_body<T: Copy + Default + Add<Output = T>>(values: &[T]) -> T {
    if size_of::<T>() == 8 {
        lanes::<T, 64>(values, T::default(), |a, b| a + b)
    } else {
        lanes::<T, 128>(values, T::default(), |a, b| a + b)
    }
}

#[inline(always)]
fn read_body<T: Copy + Default + BitOr<Output = T>>(values: &[T]) -> T {
    lanes::<T, 64>(values, T::default(), |a, b| a | b)
}

// Sum in whatever order is fastest.
widest!(any_order, any_order_body, Add<Output = T>);
widest!(read_words, read_body, BitOr<Output = T>);

/// Reads every byte of `values`, whose length in bytes is a multiple of 8, with several threads.
pub fn parallel_read<T: bytemuck::Pod>(values: &[T], threads: usize) -> Vec<u64> {
    parallel(bytemuck::cast_slice(values), threads, read_words)
}

/// Runs `body` on equal contiguous parts, one per thread.
pub fn parallel<T: Sync, R: Send>(
    values: &[T],
    threads: usize,
    body: impl Fn(&[T]) -> R + Sync,
) -> Vec<R> {
    if threads == 1 {
        return vec![body(values)];
    }
    let parts = values.chunks(values.len().div_ceil(threads));
    thread::scope(|scope| {
        let running: Vec<_> = parts.map(|part| scope.spawn(|| body(part))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}
