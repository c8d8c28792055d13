//! Reductions of an array spread over a team: the same bits as for the whole array, wherever it is
//! cut, and errors on every PE.

use crosswarp_prim::{DType, Element, Op, ReduceError, Reducer, Value};
use crosswarp_shmem::spmd;
use half::{bf16, f16};
use proptest::prelude::*;

/// Every reduction of `x` (and `y`), cut at `cuts`, on one PE per part.
fn check<T: Element>(x: &[T], y: &[T], cuts: &[usize]) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (x.len() + 1)).collect();
    cuts.extend([0, x.len()]);
    cuts.sort_unstable();
    let inputs = |op: Op| -> Vec<&[T]> { [x, y][..op.inputs()].to_vec() };
    let alone: Vec<_> = Op::ALL
        .iter()
        .map(|&op| Reducer::new().reduce(op, &inputs(op)))
        .collect();
    let together = spmd(cuts.len() - 1, |pe| {
        let part = cuts[pe.my_pe()]..cuts[pe.my_pe() + 1];
        let reduce = |&op: &Op| {
            let inputs: Vec<&[T]> = inputs(op).into_iter().map(|x| &x[part.clone()]).collect();
            Reducer::new().on(pe).threads(2).reduce(op, &inputs)
        };
        Op::ALL.iter().map(reduce).collect::<Vec<_>>()
    })
    .unwrap();
    let bits = |value: &Result<Value, ReduceError>| value.clone().map(|v| (v.dtype(), v.bits()));
    for (pe, results) in together.iter().enumerate() {
        for ((op, alone), together) in Op::ALL.iter().zip(&alone).zip(results) {
            let what = format!("{op} of {} {} on PE {pe}, cuts {cuts:?}", x.len(), T::DTYPE);
            assert_eq!(bits(together), bits(alone), "{what}");
        }
    }
}

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// All cuts of an array of `len` elements of every type.
fn check_all(len: usize, cuts: &[usize], seed: u64) {
    fn make<T>(len: usize, seed: u64, one: impl Fn(u64) -> T) -> (Vec<T>, Vec<T>) {
        let mut random = random(seed);
        (
            (0..len).map(|_| one(random())).collect(),
            (0..len).map(|_| one(random())).collect(),
        )
    }
    macro_rules! check_types {
        ($($one:expr;)*) => {$(
            let (x, y) = make(len, seed, $one);
            check(&x, &y, cuts);
        )*};
    }
    check_types! {
        |r| (r >> 40) as f32 * 1e-3 - 8e3;
        |r| f64::from_bits(r >> 1);
        |r| f16::from_bits(r as u16 & 0xbfff);
        |r| bf16::from_f32((r >> 40) as f32 * 1e-3 - 8e3);
        |r| r as i8;
        |r| r as u16;
        |r| r as i32;
        |r| r;
    }
}

#[test]
fn cuts_at_every_place_near_leaf_borders() {
    for cut in [0, 1, 2, 127, 128, 2047, 2048, 2049, 4095, 4096, 4097, 5000] {
        check_all(5000, &[cut], 11);
        check_all(5000, &[cut, 3000], 12);
    }
}

#[test]
fn one_leaf_may_lie_on_many_pes() {
    check_all(2000, &[100, 200, 200, 201, 1999, 2000], 21);
    check_all(4500, &[2000, 2010, 2020, 2047, 2060, 4097], 22);
    check_all(3, &[1, 2, 3, 3], 23);
    check_all(0, &[0, 0], 24);
}

#[test]
fn product_of_more_leaves_than_one_leaf_holds() {
    let x: Vec<f32> = (0..2048 * 2050 + 3)
        .map(|k| 1.0 + (k % 7) as f32 * 1e-7 - 3e-7)
        .collect();
    let alone = Reducer::new().prod(&x).unwrap();
    assert!(alone.is_finite() && alone != 0.0 && alone != 1.0);
    let together = spmd(3, |pe| {
        let cuts = [0, 1_000_000, 1_000_001, x.len()];
        Reducer::new()
            .on(pe)
            .prod(&x[cuts[pe.my_pe()]..cuts[pe.my_pe() + 1]])
    })
    .unwrap();
    assert!(
        together
            .iter()
            .all(|product| product.as_ref().unwrap().to_bits() == alone.to_bits())
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn any_cuts_give_the_same_bits(
        len in prop_oneof![0usize..5000, 0usize..30_000],
        cuts in prop::collection::vec(any::<usize>(), 0..7),
        seed: u64,
    ) {
        check_all(len, &cuts, seed);
    }
}

#[test]
fn disagreement_is_an_error_on_every_pe_and_the_team_goes_on() {
    let results = spmd(3, |pe| {
        let reducer = Reducer::new().on(pe);
        let values = [1.0f32, 2.0];
        let op = if pe.my_pe() == 1 {
            reducer.mean(&values).err()
        } else {
            reducer.sum(&values).err()
        };
        let dtype = if pe.my_pe() == 2 {
            reducer.sum(&[1.0f64]).err()
        } else {
            reducer.sum(&values).err()
        };
        let length = reducer
            .dot(&values, &values[pe.my_pe().saturating_sub(1)..])
            .err();
        let one = [&values[..]];
        let inputs = if pe.my_pe() == 0 {
            reducer.reduce::<f32>(Op::Dot, &one).err()
        } else {
            reducer.dot(&values, &values).err()
        };
        let empty = reducer.min::<u8>(&[]).err();
        ([op, dtype, length, inputs, empty], reducer.sum(&values))
    })
    .unwrap();
    let mismatch = |pe, other_op, other_dtype| ReduceError::Mismatch {
        op: Op::Sum,
        dtype: DType::F32,
        pe,
        other_op,
        other_dtype,
    };
    for (errors, sum) in results {
        assert_eq!(
            errors,
            [
                Some(mismatch(1, Op::Mean, DType::F32)),
                Some(mismatch(2, Op::Sum, DType::F64)),
                Some(ReduceError::Length {
                    op: Op::Dot,
                    pe: 2,
                    left: 2,
                    right: 1
                }),
                Some(ReduceError::Inputs {
                    op: Op::Dot,
                    pe: 0,
                    expected: 2,
                    got: 1
                }),
                Some(ReduceError::Empty { op: Op::Min }),
            ]
        );
        assert_eq!(sum, Ok(9.0));
    }
}
