//! Reductions of one array against the reference, for every type, instruction set and number of
//! threads.

mod reference;

use std::sync::atomic::{AtomicBool, Ordering};

use crosswarp_prim::{Element, Op, ReduceError, Reducer, Scalar, Simd, Value};
use half::{bf16, f16};
use proptest::prelude::*;
use reference::Narrow;

fn reducers() -> impl Iterator<Item = Reducer<'static>> {
    Simd::available().flat_map(|simd| [1, 3].map(|n| Reducer::new().simd(simd).threads(n)))
}

/// The result's bits by the method of this name: [`Reducer::reduce`] takes short arrays as rows.
fn typed<T: Element>(reducer: &Reducer<'_>, op: Op, inputs: &[&[T]]) -> u64 {
    let values = inputs[0];
    let found = match op {
        Op::Sum => reducer.sum(values).map(Scalar::bits),
        Op::ExactSum => reducer.exact_sum(values).map(Scalar::bits),
        Op::Prod => reducer.prod(values).map(Scalar::bits),
        Op::Min => reducer.min(values).map(Scalar::bits),
        Op::Max => reducer.max(values).map(Scalar::bits),
        Op::Argmin => reducer.argmin(values),
        Op::Argmax => reducer.argmax(values),
        Op::Mean => reducer.mean(values).map(Scalar::bits),
        Op::Norm2 => reducer.norm2(values).map(Scalar::bits),
        Op::Dot => reducer.dot(values, inputs[1]).map(Scalar::bits),
    };
    found.unwrap()
}

fn check<T: Narrow>(values: &[T]) {
    let reversed: Vec<T> = values.iter().rev().copied().collect();
    for reducer in reducers() {
        let bits = |value: Result<T::Sum, ReduceError>| value.unwrap().bits();
        let what = format!("{} elements of {}", values.len(), T::DTYPE);
        assert_eq!(
            bits(reducer.sum(values)),
            reference::sum(values),
            "sum of {what}"
        );
        assert_eq!(
            bits(reducer.exact_sum(values)),
            reference::exact_sum(values),
            "exact {what}"
        );
        assert_eq!(
            bits(reducer.prod(values)),
            reference::prod(values),
            "product of {what}"
        );
        let dot = bits(reducer.dot(values, &reversed));
        assert_eq!(dot, reference::dot(values, &reversed), "dot of {what}");
        let norm = reducer.norm2(values).unwrap().bits();
        assert_eq!(norm, reference::norm2(values), "norm of {what}");
        let pair = |value: Result<T, _>, index: Result<u64, _>| {
            value.ok().map(|value| (value.bits(), index.unwrap()))
        };
        let min = pair(reducer.min(values), reducer.argmin(values));
        assert_eq!(min, reference::extremum(values, false), "minimum of {what}");
        let max = pair(reducer.max(values), reducer.argmax(values));
        assert_eq!(max, reference::extremum(values, true), "maximum of {what}");
        for op in [Op::Sum, Op::Mean, Op::Norm2, Op::Dot] {
            let both = [values, &reversed];
            let inputs = &both[..op.inputs()];
            // As one of few rows, and of rows that memory has to be waited for.
            for bytes in [0, 100 << 20] {
                if let Some(row) = T::row(Simd::detect(), op, inputs, bytes) {
                    let all = typed(&reducer, op, inputs);
                    assert_eq!(row.bits(), all, "{op} of a row, {what}");
                }
            }
            let floats = T::DTYPE.is_float() && !values.is_empty();
            assert_eq!(
                T::row(Simd::detect(), op, inputs, 0).is_some(),
                floats,
                "{op} of {what}"
            );
        }
        match reducer.mean(values) {
            Ok(mean) => assert_eq!(mean.bits(), reference::mean(values), "mean of {what}"),
            Err(error) => {
                assert!(values.is_empty());
                assert_eq!(error, ReduceError::Empty { op: Op::Mean });
            }
        }
    }
}

/// Values of one kind; one seed gives one array.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Any bits: all magnitudes, NaNs, infinities.
    Bits,
    /// Any finite bits.
    Finite,
    /// Around 1, either sign.
    Ordinary,
    /// Subnormals and zeros.
    Tiny,
    /// Each value again with the other sign, far away.
    Cancelling,
    /// Mostly −0.0.
    Zeros,
}

fn make<T: Narrow>(kind: Kind, len: usize, seed: u64) -> Vec<T> {
    let mut state = seed | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let sign = 1u64 << (size_of::<T>() * 8 - 1);
    let infinity = T::of_f64(f64::INFINITY).bits();
    let mut one = |k: usize| {
        let bits = random() >> 3;
        match kind {
            Kind::Bits => T::of_bits(bits),
            Kind::Finite | Kind::Cancelling => {
                let magnitude = bits % infinity;
                T::of_bits(if bits & 1 << 60 == 0 {
                    magnitude
                } else {
                    magnitude | sign
                })
            }
            Kind::Ordinary => T::of_f64(bits as f64 / 2f64.powi(60) - 1.0),
            Kind::Tiny => T::of_bits(bits & 0xff | if k.is_multiple_of(2) { 0 } else { sign }),
            Kind::Zeros => T::of_bits(if bits % 1000 == 0 { 0 } else { sign }),
        }
    };
    let mut values: Vec<T> = (0..len).map(&mut one).collect();
    if let Kind::Cancelling = kind {
        for k in 0..len / 2 {
            values[len - 1 - k] = T::of_bits(values[k].bits() ^ sign);
        }
    }
    values
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Bits,
        Kind::Finite,
        Kind::Ordinary,
        Kind::Tiny,
        Kind::Cancelling,
        Kind::Zeros,
    ])
}

/// Rows of integers against the methods that share them among threads, and extrema of all types.
fn check_rows<T: Element>(values: &[T]) {
    let reversed: Vec<T> = values.iter().rev().copied().collect();
    let reducer = Reducer::new().threads(1);
    for simd in Simd::available() {
        for &op in Op::ALL {
            let both = [values, &reversed];
            let inputs = &both[..op.inputs()];
            let Some(row) = T::row(simd, op, inputs, 0) else {
                assert!(values.is_empty() || T::DTYPE.is_float(), "{op}");
                continue;
            };
            let all = typed(&reducer, op, inputs);
            assert_eq!(row.bits(), all, "{op} of {} of {}", values.len(), T::DTYPE);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn floats_agree_with_the_reference(
        kind in kinds(), len in prop_oneof![0usize..300, 0usize..20_000], seed: u64,
    ) {
        check(&make::<f32>(kind, len, seed));
        check(&make::<f64>(kind, len, seed));
        check(&make::<f16>(kind, len, seed));
        check(&make::<bf16>(kind, len, seed));
    }
}

#[test]
fn rows_of_integers_and_extrema() {
    let mut state = 7u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for len in [1, 2, 7, 15, 16, 17, 31, 63, 64, 65, 255, 300, 2048, 5001] {
        let words: Vec<u64> = (0..len).map(|_| random()).collect();
        check_rows::<u8>(&words.iter().map(|&word| word as u8).collect::<Vec<_>>());
        check_rows::<u16>(&words.iter().map(|&word| word as u16).collect::<Vec<_>>());
        check_rows::<u32>(&words.iter().map(|&word| word as u32).collect::<Vec<_>>());
        check_rows::<u64>(&words);
        check_rows::<i8>(&words.iter().map(|&word| word as i8).collect::<Vec<_>>());
        check_rows::<i16>(&words.iter().map(|&word| word as i16).collect::<Vec<_>>());
        check_rows::<i32>(&words.iter().map(|&word| word as i32).collect::<Vec<_>>());
        check_rows::<i64>(&words.iter().map(|&word| word as i64).collect::<Vec<_>>());
        // Few values, so that the first of several equal ones counts; zeros of both signs, NaNs and infinities.
        let few = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        for kinds in 2..=few.len() {
            let pick = |&word: &u64| few[(word >> 20) as usize % kinds];
            check_rows::<f64>(&words.iter().map(pick).collect::<Vec<_>>());
            let narrow: Vec<f32> = words.iter().map(|word| pick(word) as f32).collect();
            check_rows::<f32>(&narrow);
            check_rows::<f16>(&narrow.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
            check_rows::<bf16>(
                &narrow
                    .iter()
                    .map(|&x| bf16::from_f32(x))
                    .collect::<Vec<_>>(),
            );
        }
    }
}

#[test]
fn all_lengths_around_the_leaf_size() {
    for leaves in [0, 1, 2, 32, 33] {
        for len in (leaves * 2048usize).saturating_sub(2)..=leaves * 2048 + 2 {
            check(&make::<f32>(Kind::Ordinary, len, 7));
            check(&make::<f64>(Kind::Finite, len, 8));
            check(&make::<f16>(Kind::Ordinary, len, 9));
        }
    }
}

#[test]
fn arrays_that_are_split_between_threads() {
    // Long enough for several threads; ends within a leaf.
    let values = make::<f32>(Kind::Ordinary, 13_000_001, 3);
    let (sum, prod) = (reference::sum(&values), reference::prod(&values));
    let max = reference::extremum(&values, true).unwrap();
    let longs: Vec<i64> = values[..5_000_001]
        .iter()
        .map(|x| i64::from(x.to_bits()) << 31)
        .collect();
    let total: i128 = longs.iter().map(|&x| i128::from(x)).sum();
    let wide = make::<f64>(Kind::Finite, 100_001, 4);
    let exact = reference::exact_sum(&wide);
    for simd in Simd::available() {
        let reducer = Reducer::new().simd(simd).threads(5);
        assert_eq!(reducer.sum(&values).unwrap().bits(), sum);
        assert_eq!(reducer.prod(&values).unwrap().bits(), prod);
        assert_eq!(reducer.argmax(&values), Ok(max.1));
        assert_eq!(reducer.exact_sum(&wide).unwrap().bits(), exact);
        assert_eq!(reducer.sum(&longs), Ok(total as i64));
        let product = longs.iter().fold(1i64, |a, b| a.wrapping_mul(b | 1));
        let odd: Vec<i64> = longs.iter().map(|x| x | 1).collect();
        assert_eq!(reducer.prod(&odd), Ok(product));
    }
}

#[test]
fn integers_widen_to_64_bits_and_wrap_there() {
    for reducer in reducers() {
        assert_eq!(reducer.sum(&[i8::MIN; 100_000]).unwrap(), -12_800_000i64);
        assert_eq!(reducer.sum(&[u64::MAX, 3]).unwrap(), 2u64);
        assert_eq!(reducer.sum(&[i64::MAX, 1]).unwrap(), i64::MIN);
        assert_eq!(reducer.prod(&[-3i8; 5]).unwrap(), -243i64);
        assert_eq!(reducer.prod(&[10u16; 25]).unwrap(), 10u64.wrapping_pow(25));
        assert_eq!(
            reducer.dot(&[-2i32, i32::MIN], &[5, i32::MIN]).unwrap(),
            (1i64 << 62) - 10
        );
        assert_eq!(reducer.mean(&[u64::MAX; 4]).unwrap(), u64::MAX as f64);
        assert_eq!(reducer.mean(&[1i16, 2, 4]).unwrap(), 7.0 / 3.0);
        assert_eq!(reducer.norm2(&[i64::MIN; 4]).unwrap(), 2f64.powi(64));
        assert_eq!(reducer.norm2(&[3u8, 4]).unwrap(), 5.0);
        assert_eq!(reducer.max(&[1u8, 255, 3, 255]).unwrap(), 255);
        assert_eq!(reducer.argmax(&[1u8, 255, 3, 255]).unwrap(), 1);
        assert_eq!(reducer.argmin(&[i32::MIN, i32::MAX, i32::MIN]).unwrap(), 0);
    }
}

#[test]
fn no_elements() {
    fn empty<T: Element>(zero: T::Sum, one: T::Sum) {
        let r = Reducer::new();
        assert_eq!(r.sum::<T>(&[]).unwrap().bits(), zero.bits());
        assert_eq!(r.exact_sum::<T>(&[]).unwrap().bits(), zero.bits());
        assert_eq!(r.dot::<T>(&[], &[]).unwrap().bits(), zero.bits());
        assert_eq!(r.prod::<T>(&[]).unwrap().bits(), one.bits());
        assert_eq!(r.norm2::<T>(&[]).unwrap().bits(), 0);
        assert_eq!(
            r.min::<T>(&[]).unwrap_err(),
            ReduceError::Empty { op: Op::Min }
        );
        assert_eq!(
            r.argmax::<T>(&[]).unwrap_err(),
            ReduceError::Empty { op: Op::Argmax }
        );
        assert_eq!(
            r.mean::<T>(&[]).unwrap_err(),
            ReduceError::Empty { op: Op::Mean }
        );
    }
    empty::<f16>(0.0, 1.0);
    empty::<f32>(0.0, 1.0);
    empty::<f64>(0.0, 1.0);
    empty::<i32>(0, 1);
    empty::<u64>(0, 1);
}

#[test]
fn the_operation_can_be_chosen_at_run_time() {
    let values = [3.0f32, 1.0, 2.0];
    let expected = [
        (Op::Sum, Value::F32(6.0)),
        (Op::ExactSum, Value::F32(6.0)),
        (Op::Prod, Value::F32(6.0)),
        (Op::Min, Value::F32(1.0)),
        (Op::Max, Value::F32(3.0)),
        (Op::Argmin, Value::U64(1)),
        (Op::Argmax, Value::U64(0)),
        (Op::Mean, Value::F32(2.0)),
        (Op::Norm2, Value::F32(14f32.sqrt())),
    ];
    for (op, value) in expected {
        assert_eq!(Reducer::new().reduce(op, &[&values[..]]), Ok(value));
    }
    let dot = Reducer::new().reduce(Op::Dot, &[&[1i8, 2][..], &[3, 4]]);
    assert_eq!(dot, Ok(Value::I64(11)));
    assert_eq!(
        Reducer::new().reduce(Op::Dot, &[&values[..]]),
        Err(ReduceError::Inputs {
            op: Op::Dot,
            pe: 0,
            expected: 2,
            got: 1
        })
    );
    assert_eq!(
        Reducer::new().dot(&values, &values[1..]),
        Err(ReduceError::Length {
            op: Op::Dot,
            pe: 0,
            left: 3,
            right: 2
        })
    );
}

#[test]
fn what_can_be_stopped_has_the_same_bits_until_it_is() {
    // More than a thread works on without a look at the flag.
    let values: Vec<f64> = (0..9_000_000).map(|k| f64::from(k).sin()).collect();
    let numbers: Vec<i32> = (0..9_000_000).map(|k: i32| k.wrapping_mul(k) | 1).collect();
    let stop = AtomicBool::new(false);
    for threads in [1, 2, 5] {
        let reducer = Reducer::new().threads(threads);
        let stoppable = reducer.stop_when(&stop);
        for &op in Op::ALL {
            let inputs = &[&values[..]; 2][..op.inputs()];
            assert_eq!(stoppable.reduce(op, inputs), reducer.reduce(op, inputs));
            let inputs = &[&numbers[..]; 2][..op.inputs()];
            assert_eq!(stoppable.reduce(op, inputs), reducer.reduce(op, inputs));
        }
    }
    stop.store(true, Ordering::Relaxed);
    for &op in Op::ALL {
        let inputs = &[&values[..]; 2][..op.inputs()];
        let stopped = Reducer::new()
            .threads(2)
            .stop_when(&stop)
            .reduce(op, inputs);
        assert_eq!(stopped, Err(ReduceError::Stopped { op }));
    }
}
