//! `cargo run --release -p crosswarp-prim --example transpose_table`: speed of transpositions on the
//! CPU beside a copy of the same bytes. GB/s read and written; best of several runs, taken in turns.

use std::cell::RefCell;
use std::time::Instant;

use bytemuck::Pod;
use crosswarp_prim::{Layout, Simd, Transposer};

type Run<'a> = (String, Box<dyn FnMut() + 'a>);

fn best(runs: &mut [Run<'_>]) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; runs.len()];
    for _ in 0..5 {
        for ((_, run), best) in runs.iter_mut().zip(&mut best) {
            let start = Instant::now();
            run();
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    best
}

fn row<T: Pod + Send + Sync>(rows: usize, columns: usize, pad: usize, threads: usize) {
    let input: Vec<T> = bytemuck::cast_slice::<u32, T>(
        &(0..(rows * (columns + pad) * size_of::<T>()).div_ceil(16) as u32 * 4)
            .map(|k| k.wrapping_mul(2_654_435_761))
            .collect::<Vec<_>>(),
    )
    .to_vec();
    let mut copy = vec![T::zeroed(); rows * columns];
    let mut output = vec![T::zeroed(); columns * (rows + pad)];
    let (from, to) = (
        Layout::new(rows, columns).with_leading_dimension(columns + pad),
        Layout::new(columns, rows).with_leading_dimension(rows + pad),
    );
    let output = RefCell::new(&mut output);
    let mut runs: Vec<Run<'_>> = Vec::new();
    runs.push((
        "copy".into(),
        Box::new(|| {
            let part = (rows * columns).div_ceil(threads);
            std::thread::scope(|scope| {
                for (to, from) in copy.chunks_mut(part).zip(input.chunks(part)) {
                    scope.spawn(move || to.copy_from_slice(&from[..to.len()]));
                }
            });
        }),
    ));
    for simd in Simd::available() {
        let (input, from, to, output) = (&input, &from, &to, &output);
        runs.push((
            simd.to_string(),
            Box::new(move || {
                let transposer = Transposer::new().simd(simd).threads(threads);
                transposer
                    .transpose(input, from, &mut output.borrow_mut(), to)
                    .unwrap();
            }),
        ));
    }
    let times = best(&mut runs);
    print!(
        "{:>2} B {rows:>6} x {columns:<6} +{pad} {threads} thread(s)",
        size_of::<T>()
    );
    for ((name, _), time) in runs.iter().zip(times) {
        let rate = 2.0 * (rows * columns * size_of::<T>()) as f64 / time / 1e9;
        print!("  {name} {rate:>6.1}");
    }
    println!();
}

fn main() {
    let only: Option<usize> = std::env::args().nth(1).and_then(|text| text.parse().ok());
    for threads in [1, 2] {
        for pad in [0, 1] {
            if only.is_none_or(|element| element == 1) {
                row::<u8>(16384, 16384, pad, threads);
            }
            if only.is_none_or(|element| element == 2) {
                row::<u16>(8192, 16384, pad, threads);
            }
            if only.is_none_or(|element| element == 4) {
                row::<u32>(8192, 8192, pad, threads);
            }
            if only.is_none_or(|element| element == 8) {
                row::<u64>(4096, 8192, pad, threads);
            }
            if only.is_none_or(|element| element == 16) {
                row::<u128>(4096, 4096, pad, threads);
            }
        }
    }
}
