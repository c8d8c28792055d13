//! `cargo bench -p crosswarp-prim --bench reduce`: sums of `f32` by size on one thread, beside a
//! loop that only reads, a sum in any order, the standard library, ndarray and rayon; then every
//! operation and type at one size. For a table of the same see the example `reduce_table`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crosswarp_prim::{Element, Op, Reducer, Simd};
use half::{bf16, f16};
use rayon::prelude::*;

mod peers;

fn values(len: usize) -> Vec<f32> {
    (0..len).map(|k| (k % 1013) as f32 * 0.37 - 180.0).collect()
}

fn sums(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sum_f32");
    group
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    for exponent in [10, 14, 16, 18, 20, 24] {
        let values = values(1 << exponent);
        group.throughput(Throughput::Bytes(4 << exponent));
        let mut bench = |name: String, sum: &dyn Fn(&[f32]) -> f32| {
            group.bench_function(BenchmarkId::new(name, format!("2^{exponent}")), |bencher| {
                bencher.iter(|| sum(black_box(&values)));
            });
        };
        for simd in Simd::available() {
            let reducer = Reducer::new().simd(simd);
            bench(format!("crosswarp {simd}"), &|x| reducer.sum(x).unwrap());
        }
        bench("crosswarp exact".into(), &|x| {
            Reducer::new().exact_sum(x).unwrap()
        });
        bench("any order".into(), &peers::any_order);
        bench("read only".into(), &|x| {
            peers::parallel_read(x, 1)[0] as f32
        });
        bench("iter().sum()".into(), &|x| x.iter().sum());
        bench("ndarray".into(), &|x| ndarray::ArrayView1::from(x).sum());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        bench(format!("crosswarp, {threads} threads"), &|x| {
            Reducer::new().threads(threads).sum(x).unwrap()
        });
        bench(format!("rayon, {threads} threads"), &|x| x.par_iter().sum());
    }
}

fn operations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("operations_2^16");
    group
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400));
    fn all<T: Element>(
        group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
        of: fn(f32) -> T,
    ) {
        let values: Vec<T> = values(1 << 16).into_iter().map(of).collect();
        for &op in Op::ALL {
            let inputs = [&values[..]; 2];
            let inputs = &inputs[..op.inputs()];
            group.throughput(Throughput::Bytes(
                (inputs.len() * size_of_val(&values[..])) as u64,
            ));
            group.bench_function(BenchmarkId::new(op.to_string(), T::DTYPE), |bencher| {
                bencher.iter(|| Reducer::new().reduce(op, black_box(inputs)));
            });
        }
    }
    all(&mut group, f16::from_f32);
    all(&mut group, bf16::from_f32);
    all(&mut group, |x| x);
    all(&mut group, f64::from);
    all(&mut group, |x| x as i8);
    all(&mut group, |x| x as i32);
    all(&mut group, |x| x as i64);
}

criterion_group!(benches, sums, operations);
criterion_main!(benches);
