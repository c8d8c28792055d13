//! Arrays of more than 2^31 elements, where an index no longer fits in 32 bits. They take gigabytes, so these tests run
//! only with CROSSWARP_BIG=1; those of a GPU (10 GB of its memory) say by name that they were skipped without one.
//!
//! Arrays are zeros but for a few marks, most of them beyond element 2^31: what is expected follows from the marks.

use crosswarp_cuda::{Buffer, Device, Nvrtc, Stream, skip};
use crosswarp_prim::cuda::{DeviceHistogram, DeviceReducer, Segments};
use crosswarp_prim::histogram::{Bins, Histogram};
use crosswarp_prim::{DeviceTransposer, Element, Layout, Op, Reducer, Transposer, Value};
use crosswarp_shmem::spmd;
use half::f16;

const HALF: usize = 1 << 31;
/// Whole leaves, units and vectors, and some more.
const LEN: usize = HALF + 3 * 2048 + 77;
/// Places and values.
const MARKS: [(usize, u8); 6] = [
    (5, 3),
    (HALF - 1, 7),
    (HALF, 11),
    (HALF + 2049, 200),
    (HALF + 2050, 200),
    (LEN - 1, 2),
];

fn asked_for(test: &str) -> bool {
    let asked = std::env::var_os("CROSSWARP_BIG").is_some_and(|value| value == "1");
    if !asked {
        println!("skipped: {test}: needs CROSSWARP_BIG=1");
    }
    asked
}

fn gpu(test: &str) -> Option<(Device, Stream)> {
    if !asked_for(test) {
        return None;
    }
    if let Err(reason) = Device::count() {
        skip::skip_gpu(test, 1, format!("no GPU: {reason}"));
        return None;
    }
    if let Err(reason) = Nvrtc::get() {
        skip::skip_gpu(test, 1, reason);
        return None;
    }
    let device = Device::get(0).unwrap();
    Some((device, Stream::new(&device).unwrap()))
}

/// The array on the GPU, each mark as what `make` makes of it.
fn marked<T: Element>(stream: &Stream, make: impl Fn(u8) -> T) -> Buffer<T> {
    let array = Buffer::zeroed(stream, LEN).unwrap();
    for (at, value) in MARKS {
        stream
            .write(array.range(at..at + 1), &[make(value)])
            .unwrap();
    }
    array
}

fn host_array() -> Vec<u8> {
    let mut array = vec![0; LEN];
    MARKS.iter().for_each(|&(at, value)| array[at] = value);
    array
}

fn sum() -> u64 {
    MARKS.iter().map(|mark| u64::from(mark.1)).sum()
}

fn squares() -> u64 {
    MARKS.iter().map(|mark| u64::from(mark.1).pow(2)).sum()
}

#[test]
fn the_cpu_reduces_and_counts() {
    if !asked_for("the_cpu_reduces_and_counts") {
        return;
    }
    let array = host_array();
    let reducer = Reducer::new().threads(2);
    assert_eq!(reducer.sum(&array), Ok(sum()));
    assert_eq!(reducer.argmax(&array), Ok(HALF as u64 + 2049));
    let counts = Histogram::new(&Bins::even(0, 256, 256).unwrap())
        .threads(2)
        .count(&array)
        .unwrap();
    assert_eq!((counts[0], counts[200]), ((LEN - MARKS.len()) as u64, 2));
    let parts = spmd(2, |pe| {
        let part = [0..HALF + 1000, HALF + 1000..LEN][pe.my_pe()].clone();
        Reducer::new().on(pe).argmax(&array[part])
    });
    assert!(
        parts
            .unwrap()
            .iter()
            .all(|place| *place == Ok(HALF as u64 + 2049))
    );
}

#[test]
fn the_cpu_transposes() {
    if !asked_for("the_cpu_transposes") {
        return;
    }
    let (rows, columns) = (65_536, LEN / 65_536 + 1);
    let mut array = host_array();
    array.resize(rows * columns, 0);
    let mut turned = vec![0; rows * columns];
    let (from, to) = (Layout::new(rows, columns), Layout::new(columns, rows));
    Transposer::new()
        .transpose(&array, &from, &mut turned, &to)
        .unwrap();
    assert_eq!(Reducer::new().sum(&turned), Ok(sum()));
    for (at, value) in MARKS {
        assert_eq!(
            turned[at % columns * rows + at / columns],
            value,
            "element {at}"
        );
    }
}

#[test]
fn a_gpu_reduces() {
    let Some((device, stream)) = gpu("a_gpu_reduces") else {
        return;
    };
    let reducer = DeviceReducer::new(&device);
    let mut workspace = reducer.workspace(&stream).unwrap();
    let bytes = marked(&stream, |value| value);
    let mut of_bytes = |op: Op| {
        let inputs = [bytes.range(..); 2];
        reducer
            .reduce(op, &mut workspace, &inputs[..op.inputs()])
            .unwrap()
    };
    let mean = sum() as f64 / LEN as f64;
    assert_eq!(of_bytes(Op::Sum), Value::U64(sum()));
    assert_eq!(of_bytes(Op::Mean), Value::F64(mean));
    assert_eq!(of_bytes(Op::Dot), Value::U64(squares()));
    assert_eq!(of_bytes(Op::Max), Value::U8(200));
    assert_eq!(of_bytes(Op::Argmax), Value::U64(HALF as u64 + 2049));
    assert_eq!(of_bytes(Op::Prod), Value::U64(0));

    let halves = marked(&stream, |value| f16::from_f32(value.into()));
    let mut of_halves = |op: Op| {
        let inputs = [halves.range(..); 2];
        reducer
            .reduce(op, &mut workspace, &inputs[..op.inputs()])
            .unwrap()
    };
    assert_eq!(of_halves(Op::Sum), Value::F32(sum() as f32));
    assert_eq!(of_halves(Op::ExactSum), Value::F32(sum() as f32));
    assert_eq!(of_halves(Op::Mean), Value::F32(mean as f32));
    assert_eq!(of_halves(Op::Dot), Value::F32(squares() as f32));
    assert_eq!(
        of_halves(Op::Norm2),
        Value::F32((squares() as f64).sqrt() as f32)
    );
    assert_eq!(of_halves(Op::Argmax), Value::U64(HALF as u64 + 2049));
    assert_eq!(of_halves(Op::Prod), Value::F32(0.0));
}

#[test]
fn a_gpu_reduces_what_streams_through() {
    let Some((device, _)) = gpu("a_gpu_reduces_what_streams_through") else {
        return;
    };
    let array = host_array();
    let reducer = DeviceReducer::new(&device);
    let places = spmd(1, |pe| {
        let mut workspace = reducer.workspace(&Stream::new(&device).unwrap()).unwrap();
        reducer.reduce_host_on(pe, Op::Argmax, &mut workspace, &[&array[..]])
    });
    assert_eq!(places.unwrap(), [Ok(Value::U64(HALF as u64 + 2049))]);
}

#[test]
fn a_gpu_reduces_segments() {
    let Some((device, stream)) = gpu("a_gpu_reduces_segments") else {
        return;
    };
    let reducer = DeviceReducer::new(&device);
    let mut workspace = reducer.workspace(&stream).unwrap();
    let halves = marked(&stream, |value| f16::from_f32(value.into()));
    let mut sums = |segments: Segments<'_>, count: usize| {
        let results = Buffer::zeroed(&stream, count).unwrap();
        let inputs = [halves.range(..)];
        reducer
            .enqueue_segments::<f16>(
                Op::Sum,
                &mut workspace,
                &inputs,
                segments,
                results.range(..),
            )
            .unwrap();
        let bits = results.to_vec(&stream).unwrap();
        bits.into_iter()
            .map(|bits| f32::from_bits(bits as u32))
            .collect::<Vec<_>>()
    };
    let expected = |begin: usize, end: usize| {
        let inside = MARKS.iter().filter(|mark| (begin..end).contains(&mark.0));
        inside.map(|mark| f32::from(mark.1)).sum::<f32>()
    };
    // Short rows, long ones, and rows of more than 2^31 elements.
    for columns in [1021, (1 << 20) - 5, HALF + 2049] {
        let found = sums(Segments::Rows(columns), LEN.div_ceil(columns));
        for (row, sum) in found.into_iter().enumerate() {
            let begin = row * columns;
            assert_eq!(
                sum,
                expected(begin, begin + columns),
                "row {row} of {columns}"
            );
        }
    }
    let ends = [0, 3, HALF - 1, HALF, HALF + 2050, LEN].map(|end| end as u64);
    let offsets = Buffer::from_slice(&stream, &ends).unwrap();
    let found = sums(Segments::Offsets(offsets.range(..)), ends.len() - 1);
    for (pair, sum) in ends.windows(2).zip(found) {
        assert_eq!(
            sum,
            expected(pair[0] as usize, pair[1] as usize),
            "{pair:?}"
        );
    }
}

#[test]
fn a_gpu_counts() {
    let Some((_, stream)) = gpu("a_gpu_counts") else {
        return;
    };
    let array = marked(&stream, |value| u16::from(value) * 300);
    // Whole and packed counters; one bin gets nearly all samples.
    for bins in [256, 65_536, 400_000] {
        let bins = Bins::<u16>::even(0, 1 << 16, bins).unwrap();
        let histogram = DeviceHistogram::new(&stream, &bins).unwrap();
        let workspace = histogram.workspace().unwrap();
        let totals = Buffer::zeroed(&stream, bins.count()).unwrap();
        histogram
            .add_counts(&stream, array.range(..), &totals, &workspace)
            .unwrap();
        let counts = totals.to_vec(&stream).unwrap();
        let mut expected = vec![0u64; bins.count()];
        expected[0] = (LEN - MARKS.len()) as u64;
        for (_, value) in MARKS {
            expected[bins.bin_of(u16::from(value) * 300).unwrap()] += 1;
        }
        assert!(counts == expected, "{} bins", bins.count());
    }
}

/// Rows that begin on 16 bytes and rows that begin anywhere.
#[test]
fn a_gpu_transposes() {
    let Some((device, stream)) = gpu("a_gpu_transposes") else {
        return;
    };
    let transposer = DeviceTransposer::new(&device).unwrap();
    let reducer = DeviceReducer::new(&device);
    let mut workspace = reducer.workspace(&stream).unwrap();
    let mut check = |rows: usize, columns: usize, in_place: bool| {
        let len = rows * columns;
        let places = [
            (5, 3u8),
            (HALF - 1, 7),
            (HALF, 11),
            (HALF + 2049, 200),
            (len - 1, 2),
        ];
        let array = Buffer::<u8>::zeroed(&stream, len).unwrap();
        for (at, value) in places {
            stream.write(array.range(at..at + 1), &[value]).unwrap();
        }
        let (from, to) = (Layout::new(rows, columns), Layout::new(columns, rows));
        let turned = if in_place {
            transposer
                .transpose_in_place(&stream, array.range(..), &from)
                .unwrap();
            array
        } else {
            let turned = Buffer::<u8>::zeroed(&stream, len).unwrap();
            transposer
                .transpose(&stream, array.range(..), &from, turned.range(..), &to)
                .unwrap();
            turned
        };
        for (at, value) in places {
            let mut found = [0];
            let place = at % columns * rows + at / columns;
            stream
                .read(&mut found, turned.range(place..place + 1))
                .unwrap();
            assert_eq!(found[0], value, "element {at} of {rows} × {columns}");
        }
        let sum = reducer.reduce(Op::Sum, &mut workspace, &[turned.range(..)]);
        assert_eq!(sum, Ok(Value::U64(3 + 7 + 11 + 200 + 2)));
    };
    check(65_536, 40_000, false);
    check(40_001, 65_537, false);
    check(46_400, 46_400, true);
    check(46_341, 46_341, true);
}
