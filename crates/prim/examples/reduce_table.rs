//! `cargo run --release -p crosswarp-prim --example reduce_table`: speed of reproducible reductions
//! beside their peers, as one table. GB/s of array read; the best of several runs, taken in turns
//! so that a slow moment of the machine hits all of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crosswarp_prim::{Element, Op, Reducer, Simd};
use half::{bf16, f16};
use rayon::prelude::*;

#[path = "../benches/peers/mod.rs"]
mod peers;

type Column<'a> = (String, Box<dyn Fn() + 'a>);

/// Best time of each column, in turns, over about `budget`.
fn measure(columns: &[Column<'_>], budget: Duration) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; columns.len()];
    let begun = Instant::now();
    let mut rounds = 0;
    while rounds < 5 || begun.elapsed() < budget {
        for ((_, run), best) in columns.iter().zip(&mut best) {
            // Enough calls to read the clock seldom.
            let (start, mut calls) = (Instant::now(), 0);
            while calls == 0 || start.elapsed() < Duration::from_micros(300) {
                run();
                calls += 1;
            }
            *best = best.min(start.elapsed().as_secs_f64() / f64::from(calls));
        }
        rounds += 1;
    }
    best
}

fn row(title: &str, bytes: usize, columns: &[Column<'_>]) {
    let times = measure(columns, Duration::from_millis(250));
    print!("{title:>12}");
    times
        .iter()
        .for_each(|time| print!("  {:>9.1}", bytes as f64 / time / 1e9));
    println!();
}

fn header(title: &str, columns: &[Column<'_>]) {
    print!("{title:>12}");
    columns.iter().for_each(|(name, _)| print!("  {name:>9}"));
    println!();
}

fn of_type<T: Element>(threads: usize, of: fn(f32) -> T) {
    let values: Vec<T> = (0..1 << 24)
        .map(|k| of((k % 1013) as f32 * 0.37 - 180.0))
        .collect();
    for exponent in [16, 24] {
        let values = &values[..1 << exponent];
        let mut columns: Vec<Column<'_>> = Vec::new();
        columns.push((
            "read".into(),
            Box::new(|| {
                black_box(peers::parallel_read(black_box(values), threads));
            }),
        ));
        for &op in Op::ALL {
            columns.push((
                op.to_string(),
                Box::new(move || {
                    let inputs = [black_box(values), black_box(values)];
                    let _ = black_box(
                        Reducer::new()
                            .threads(threads)
                            .reduce(op, &inputs[..op.inputs()]),
                    );
                }),
            ));
        }
        if T::DTYPE == crosswarp_prim::DType::F16 && exponent == 16 {
            header("type, size", &columns);
        }
        row(
            &format!("{}, 2^{exponent}", T::DTYPE),
            size_of_val(values),
            &columns,
        );
    }
}

macro_rules! sums {
    ($type:ident, $threads:expr) => {{
        let threads: usize = $threads;
        let all: Vec<$type> = (0..1 << 27)
            .map(|k| (k % 1013) as $type * 0.37 - 180.0)
            .collect();
        println!("sum of {}, {threads} thread(s), GB/s", stringify!($type));
        for exponent in [10, 12, 14, 16, 18, 20, 22, 24, 27] {
            let x = &all[..1 << exponent];
            let mut columns: Vec<Column<'_>> = Vec::new();
            columns.push((
                "read".into(),
                Box::new(|| {
                    black_box(peers::parallel_read(black_box(x), threads));
                }),
            ));
            columns.push((
                "any order".into(),
                Box::new(|| {
                    black_box(peers::parallel(black_box(x), threads, peers::any_order));
                }),
            ));
            for simd in Simd::available() {
                columns.push((
                    simd.to_string(),
                    Box::new(move || {
                        black_box(
                            Reducer::new()
                                .threads(threads)
                                .simd(simd)
                                .sum(black_box(x))
                                .unwrap(),
                        );
                    }),
                ));
            }
            columns.push((
                "exact".into(),
                Box::new(|| {
                    black_box(
                        Reducer::new()
                            .threads(threads)
                            .exact_sum(black_box(x))
                            .unwrap(),
                    );
                }),
            ));
            if threads == 1 {
                columns.push((
                    "iter.sum".into(),
                    Box::new(|| {
                        black_box(black_box(x).iter().sum::<$type>());
                    }),
                ));
                columns.push((
                    "ndarray".into(),
                    Box::new(|| {
                        black_box(ndarray::ArrayView1::from(black_box(x)).sum());
                    }),
                ));
            } else {
                columns.push((
                    "rayon".into(),
                    Box::new(|| {
                        black_box(black_box(x).par_iter().sum::<$type>());
                    }),
                ));
            }
            if exponent == 10 {
                header("elements", &columns);
            }
            row(&format!("2^{exponent}"), size_of_val(x), &columns);
        }
        println!();
    }};
}

/// Sums of an array spread over PEs that are threads: microseconds a call, over many calls.
fn team(pes: usize) {
    println!("sum of f32 over {pes} PE(s), cut inside a leaf, microseconds a call");
    for exponent in [0, 10, 14, 18, 22] {
        let values: Vec<f32> = (0..1 << exponent).map(|k| k as f32).collect();
        let cut = |pe: usize| match pe {
            0 => 0,
            _ if pe == pes => values.len(),
            _ => (values.len() * pe / pes).saturating_sub(1),
        };
        let times = crosswarp_shmem::spmd(pes, |pe| {
            let part = &values[cut(pe.my_pe())..cut(pe.my_pe() + 1)];
            let calls = if exponent < 20 { 5000 } else { 50 };
            let sums = |calls| {
                (0..calls).for_each(|_| {
                    black_box(Reducer::new().on(pe).sum(black_box(part)).unwrap());
                });
            };
            sums(calls / 10);
            let start = Instant::now();
            sums(calls);
            start.elapsed().as_secs_f64() / f64::from(calls)
        });
        println!(
            "{:>12}  {:>9.2}",
            format!("2^{exponent}"),
            times.unwrap()[0] * 1e6
        );
    }
    println!();
}

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = std::env::args().nth(1).unwrap_or_else(|| "f32".into());
    match part.as_str() {
        "f32" => sums!(f32, 1),
        "f64" => sums!(f64, 1),
        "threads" => sums!(f32, threads),
        "team" => (1..=threads).for_each(team),
        "operations" => {
            println!("every operation, 1 thread, GB/s of one input array");
            of_type(1, f16::from_f32);
            of_type(1, bf16::from_f32);
            of_type(1, |x| x);
            of_type(1, f64::from);
            of_type(1, |x| x as i8);
            of_type(1, |x| x as i16);
            of_type(1, |x| x as i32);
            of_type(1, |x| x as i64);
            of_type(1, |x| x as u64);
        }
        other => eprintln!("unknown part {other:?}; parts are f32, f64, threads, team, operations"),
    }
}
