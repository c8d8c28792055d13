//! Leaves by all instruction sets, beside the rule of the `leaf` module.

use super::*;

/// The rule of the `leaf` module, one element at a time and with any combination.
fn by_the_rule<F: Float>(terms: &[F], identity: F, combine: impl Fn(F, F) -> F) -> F {
    let mut lanes = [identity; 128];
    for (i, &term) in terms.iter().enumerate() {
        lanes[i % 128] = combine(lanes[i % 128], term);
    }
    let mut half = 64;
    while half > 0 {
        for k in 0..half {
            lanes[k] = combine(lanes[k], lanes[k + half]);
        }
        half /= 2;
    }
    lanes[0]
}

fn assert_same<F: Float>(mine: F, theirs: F, simd: Simd, what: &str) {
    // Which NaN comes out of an addition is the hardware's choice; it is canonical later.
    let (mine, theirs) = (mine.canonical().to_bits64(), theirs.canonical().to_bits64());
    assert_eq!(mine, theirs, "{what} with {simd}");
}

/// A near leaf, which may begin anywhere, and a far one, which is read as it lies.
fn check_near_and_far<T: InVectors, O: LeafOp>(simd: Simd, inputs: &[&[T]], what: &str) {
    let inputs = &inputs[..O::INPUTS];
    let [near, far] =
        [Distance::Near, Distance::Far].map(|of| leaf_result::<T, O>(simd, inputs, of));
    assert_same(near, far, simd, what);
}

fn check<T: InVectors>(make: impl Fn(u64) -> T) {
    let mut state = 88172645463325252u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for len in [
        2 * LEAF,
        2 * (LEAF + 1),
        LEAF,
        0,
        1,
        2,
        127,
        128,
        129,
        1000,
        LEAF - 1,
    ] {
        let x: Vec<T> = (0..len).map(|_| make(random())).collect();
        let y: Vec<T> = (0..len).map(|_| make(random())).collect();
        let wide = |v: &[T]| v.iter().map(|x| x.widen()).collect::<Vec<_>>();
        let (wide_x, wide_y) = (wide(&x), wide(&y));
        let squares: Vec<_> = wide_x.iter().map(|&x| x * x).collect();
        let products: Vec<_> = wide_x.iter().zip(&wide_y).map(|(&x, &y)| x * y).collect();
        for simd in Simd::available() {
            for leaf in 0..len.div_ceil(LEAF).max(1) {
                let part = leaf * LEAF..((leaf + 1) * LEAF).min(len);
                let (x, y) = (&x[part.clone()], &y[part.clone()]);
                let zero = <T::Wide as Float>::NEG_ZERO;
                let sum = by_the_rule(&wide_x[part.clone()], zero, |a, b| a + b);
                assert_same(
                    leaf_result::<T, Sum>(simd, &[x], Distance::Near),
                    sum,
                    simd,
                    "sum",
                );
                let one = <T::Wide as Float>::ONE;
                let product = by_the_rule(&wide_x[part.clone()], one, |a, b| a * b);
                let mine = leaf_result::<T, Product>(simd, &[x], Distance::Near);
                assert_same(mine, product, simd, "product");
                let dot = by_the_rule(&products[part.clone()], zero, |a, b| a + b);
                let mine = leaf_result::<T, SumOfProducts>(simd, &[x, y], Distance::Near);
                assert_same(mine, dot, simd, "sum of products");
                if len > 0 {
                    let sum = by_the_rule(&squares[part], zero, |a, b| a + b);
                    let mine = leaf_result::<T, SumOfSquares>(simd, &[x], Distance::Near);
                    assert_same(mine, sum, simd, "sum of squares");
                }
            }
            // Rows of leaves of which the last is not whole.
            for row in [1, 100, 129, LEAF, LEAF + 1, 3000] {
                let leaves = row.div_ceil(LEAF);
                let mut found = vec![<T::Wide as Float>::ZERO; len / row * leaves];
                leaf_results::<T, Sum>(simd, &[&x], row, Distance::Near, &mut found);
                for (k, found) in found.into_iter().enumerate() {
                    let (begin, end) = (k / leaves * row, (k / leaves + 1) * row);
                    let part = begin + k % leaves * LEAF..end.min(begin + (k % leaves + 1) * LEAF);
                    let alone = leaf_result::<T, Sum>(simd, &[&x[part]], Distance::Near);
                    assert_same(found, alone, simd, "sum of a leaf of a row");
                }
            }
            if len == 2 * LEAF {
                // Beginnings with each distance from a cache line's, of both inputs alike and not.
                for begin in 0..16 {
                    for other in [begin, begin * 3 % 16] {
                        let inputs = [&x[begin..][..LEAF], &y[other..][..LEAF]];
                        check_near_and_far::<T, Sum>(simd, &inputs, "sum");
                        check_near_and_far::<T, SumOfSquares>(simd, &inputs, "squares");
                        check_near_and_far::<T, SumOfProducts>(simd, &inputs, "products");
                        check_near_and_far::<T, Product>(simd, &inputs, "product");
                    }
                }
                // Far arrays are read in another order.
                for megabytes in [0, 2] {
                    let distance = Distance::of(megabytes << 20, 1);
                    let both = |k: usize| [&x[k * LEAF..][..LEAF], &y[k * LEAF..][..LEAF]];
                    let mut found = [<T::Wide as Float>::ZERO; 2];
                    leaf_results::<T, Sum>(simd, &[&x], LEAF, distance, &mut found);
                    for (k, found) in found.into_iter().enumerate() {
                        let near = leaf_result::<T, Sum>(simd, &both(k)[..1], Distance::Near);
                        assert_same(found, near, simd, "sum of a far leaf");
                    }
                    leaf_results::<T, SumOfSquares>(simd, &[&x], LEAF, distance, &mut found);
                    for (k, found) in found.into_iter().enumerate() {
                        let near =
                            leaf_result::<T, SumOfSquares>(simd, &both(k)[..1], Distance::Near);
                        assert_same(found, near, simd, "sum of a far leaf's squares");
                    }
                    leaf_results::<T, SumOfProducts>(simd, &[&x, &y], LEAF, distance, &mut found);
                    for (k, found) in found.into_iter().enumerate() {
                        let near = leaf_result::<T, SumOfProducts>(simd, &both(k), Distance::Near);
                        assert_same(found, near, simd, "sum of far leaves' products");
                    }
                }
            }
        }
    }
}

#[test]
fn every_instruction_set_follows_the_rule_on_ordinary_values() {
    check(|r| (r >> 40) as f32 * 1e-3 - 8e3);
    check(|r| (r >> 11) as f64 * 1e-9 - 4e6);
    check(|r| f16::from_f32((r >> 40) as f32 * 1e-5 - 80.0));
    check(|r| bf16::from_f32((r >> 40) as f32 * 1e-3 - 8e3));
}

#[test]
fn every_instruction_set_follows_the_rule_on_subnormals_and_tiny_products() {
    check(|r| f32::from_bits(r as u32 & 0x80ff_ffff));
    check(|r| f64::from_bits(r & 0x801f_ffff_ffff_ffff));
    check(|r| f16::from_bits(r as u16 & 0x87ff));
    check(|r| bf16::from_bits(r as u16 & 0x80ff));
    check(|r| (r as u16 as f32 - 32768.0) * 1e-24);
}

#[test]
fn every_instruction_set_follows_the_rule_on_special_values() {
    const SPECIAL: [f32; 6] = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::MAX];
    check(|_| -0.0f32);
    check(|r| if r % 2 == 0 { -0.0f64 } else { 0.0 });
    check(|r| SPECIAL[(r >> 20) as usize % 6]);
    check(|r| f64::from(SPECIAL[(r >> 20) as usize % 5]));
    check(|r| f32::from_bits(r as u32));
    check(f64::from_bits);
    check(|r| f16::from_bits(r as u16));
    check(|r| bf16::from_bits(r as u16));
}
