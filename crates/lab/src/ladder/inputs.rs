//! The inputs of the ladders, their references, and what their problems need; shared by GPU and
//! processor.

use std::ops::Range;

use half::f16;

use crate::models::roofline::Work;

use super::rung::Check;

/// Pseudo-random 32-bit numbers of which each depends on its index alone, so that GPU and processor,
/// and any number of threads, make the same (a finaliser of the murmur3 kind).
pub fn hash(index: usize) -> u32 {
    let mut x = index as u64;
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (x >> 32) as u32
}

/// `count` with commas between thousands.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Sweeps of the Jacobi ladder: those of the seed problem.
pub const SWEEPS: usize = 57;

/// Element `index` of the summed array: a whole number from -8 to 8, so that every sum of part of the
/// array is exact in f32, in any order.
pub fn summand(index: usize) -> f32 {
    (hash(index) % 17) as f32 - 8.0
}

/// The exact sum of the first `n` summands.
pub fn exact_sum(n: usize) -> f64 {
    (0..n).map(|index| f64::from(summand(index))).sum()
}

/// Element `index` of `n` of the array that is summed in f16: zeros and ones and, in one pair of
/// neighbours out of 32 or more, 2048 and -2048, which cancel. An accumulator of f16 has 11 bits: at
/// 2048 and above it drops the ones. The sum stays below 2^24, so that f32 adds it exactly in any order
/// that adds neighbours early.
pub fn narrow_summand(index: usize, n: usize) -> f16 {
    // Apart from the numbers that `hash(index)` is made of.
    let of_pair = hash(index / 2 + (1 << 40));
    let pairs = 32 * (n >> 24).max(1) as u32;
    let value = if of_pair.is_multiple_of(pairs) {
        if (of_pair >> 8) as usize % 2 == index % 2 {
            2048.0
        } else {
            -2048.0
        }
    } else {
        let ones = (1u64 << 31).min((1 << 55) / n as u64);
        f32::from(u8::from(u64::from(hash(index)) < ones))
    };
    f16::from_f32(value)
}

/// What `accumulators` accumulators of f16 add up to, of which number k takes elements k, k +
/// `accumulators`, ... in order. Their own sum is exact.
pub fn sum_in_f16(x: &[f16], accumulators: usize) -> f64 {
    let mut sums = vec![f16::ZERO; accumulators];
    for row in x.chunks(accumulators) {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += *value;
        }
    }
    sums.iter().map(|sum| sum.to_f64()).sum()
}

/// What a sum of `n` elements of `bytes` bytes needs.
pub fn sum_work(n: usize, bytes: usize) -> Work {
    Work {
        bytes: (n * bytes) as f64,
        operations: n as f64,
    }
}

/// Sample `index` of a histogram of `bins` bins, fewer than 2^30: one in 64 is outside.
pub fn sample(index: usize, bins: u32) -> i32 {
    let (hash, bin) = (hash(index), (hash(index) % bins) as i32);
    // Apart from the numbers that `hash(index)` is made of.
    match self::hash(index + (1 << 40)) % 128 {
        0 => -1 - bin,
        1 => bins as i32 + (hash % 1000) as i32,
        _ => bin,
    }
}

/// The bin of a sample: those outside are in the first or last.
pub fn bin_of(sample: i32, bins: u32) -> u32 {
    sample.clamp(0, bins as i32 - 1) as u32
}

/// The histogram of samples.
pub fn exact_histogram(samples: &[i32], bins: u32) -> Vec<u32> {
    let mut counts = vec![0; bins as usize];
    for &sample in samples {
        counts[bin_of(sample, bins) as usize] += 1;
    }
    counts
}

/// What a histogram of `n` samples needs: an addition each.
pub fn histogram_work(n: usize, bins: u32) -> Work {
    Work {
        bytes: 4.0 * (n + bins as usize) as f64,
        operations: n as f64,
    }
}

/// Element `index` of the transposed matrix; distinct in any part of the matrix of less than 2^32
/// elements.
pub fn element(index: usize) -> f32 {
    // Any bits but those of NaN, which are not equal to themselves.
    f32::from_bits((index as u32).wrapping_mul(0x9e37_79b1) & 0xbfff_ffff)
}

/// What the transpose of an `n` × `n` matrix of f32 needs: a read and a write of each element.
pub fn transpose_work(n: usize) -> Work {
    Work {
        bytes: 8.0 * (n * n) as f64,
        operations: 0.0,
    }
}

/// The transpose of the matrix of [`element`]s.
pub fn check_transpose(got: &[f32], n: usize) -> Check {
    for (place, value) in got.iter().enumerate() {
        let expected = element(place % n * n + place / n);
        if value.to_bits() != expected.to_bits() {
            return Check::Wrong(format!("{value:e} instead of {expected:e} at {place}"));
        }
    }
    Check::Exact
}

/// Point `index` of the first field of a Jacobi ladder.
pub fn first_field(index: usize) -> f32 {
    hash(index) as f32 / 4_294_967_296.0
}

/// What [`SWEEPS`] sweeps over `n` points need: a read and a write of each point, once for all sweeps, and for
/// each sweep an addition, a halving, and the norm's difference, square and sum.
pub fn jacobi_work(n: usize) -> Work {
    Work {
        bytes: 8.0 * n as f64,
        operations: 5.0 * (n * SWEEPS) as f64,
    }
}

/// A field after [`SWEEPS`] sweeps, and the sum of squared changes of each.
pub struct Relaxed {
    pub field: Vec<f32>,
    pub squares: Vec<f64>,
}

/// The reference: one sweep after the other, norms in f64.
pub fn relax(mut field: Vec<f32>) -> Relaxed {
    let mut next = field.clone();
    let mut squares = Vec::new();
    for _ in 0..SWEEPS {
        let mut sum = 0.0;
        for i in 1..field.len() - 1 {
            next[i] = 0.5 * (field[i - 1] + field[i + 1]);
            sum += f64::from(next[i] - field[i]).powi(2);
        }
        squares.push(sum);
        std::mem::swap(&mut field, &mut next);
    }
    Relaxed { field, squares }
}

impl Relaxed {
    /// Whether field and norms are those of the reference: the field to the bit, the norms to what sums in
    /// f32 allow.
    pub fn check(&self, field: &[f32], squares: &[f32]) -> Check {
        let field = Check::of_slices(field, &self.field);
        if !field.is_right() {
            return field;
        }
        let mut worst = 0.0f64;
        for (sweep, (got, expected)) in squares.iter().zip(&self.squares).enumerate() {
            let error = (f64::from(*got) / expected - 1.0).abs();
            // A chain of additions of points to one f32 is off by 1e-2 before it stalls.
            if error.is_nan() || error > 0.2 {
                return Check::Wrong(format!(
                    "norm of sweep {sweep}: {got:e} instead of {expected:e}"
                ));
            }
            worst = worst.max(error);
        }
        if worst == 0.0 {
            Check::Exact
        } else {
            Check::Within(worst)
        }
    }
}

/// Element `index` of the first (`which` 0) or second factor of a product: a whole number from -2 to 2, so
/// that every partial sum is exact in f32.
pub fn factor(index: usize, which: usize) -> f32 {
    (hash(2 * index + which) % 5) as f32 - 2.0
}

/// Rows `rows` of factor `which`, `n` columns.
pub fn factor_rows(rows: Range<usize>, n: usize, which: usize) -> Vec<f32> {
    (rows.start * n..rows.end * n)
        .map(|index| factor(index, which))
        .collect()
}

/// What a product of `n` × `n` matrices needs.
pub fn product_work(n: usize) -> Work {
    Work {
        bytes: 12.0 * (n * n) as f64,
        operations: 2.0 * (n as f64).powi(3),
    }
}

/// Whether `c` is the product, by Freivalds' check: `c·x = a·(b·x)` for a random vector x. All numbers are
/// whole, so the check is exact; a wrong element goes unseen with a chance of one in 2^20.
pub fn check_product(a: &[f32], b: &[f32], c: &[f32], n: usize) -> Check {
    let times = |matrix: &[f32], vector: &[i64]| -> Option<Vec<i64>> {
        let row = |row: &[f32]| {
            let mut sum = 0i64;
            for (value, factor) in row.iter().zip(vector) {
                // A value that is not whole is no result.
                if value.fract() != 0.0 || value.abs() > 1e9 {
                    return None;
                }
                sum += *value as i64 * factor;
            }
            Some(sum)
        };
        matrix.chunks_exact(n).map(row).collect()
    };
    let vector: Vec<i64> = (0..n).map(|k| i64::from(hash(k) >> 12)).collect();
    let expected = times(b, &vector).and_then(|bx| times(a, &bx));
    match (times(c, &vector), expected) {
        (Some(got), Some(expected)) => match got.iter().zip(&expected).position(|(a, b)| a != b) {
            None => Check::Exact,
            Some(row) => Check::Wrong(format!("row {row} is not that of the product")),
        },
        _ => Check::Wrong("an element is not a whole number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_check_sees_one_wrong_element() {
        let n = 8;
        let (a, b) = (factor_rows(0..n, n, 0), factor_rows(0..n, n, 1));
        let mut c = vec![0.0f32; n * n];
        for i in 0..n {
            for j in 0..n {
                c[i * n + j] = (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
            }
        }
        assert_eq!(check_product(&a, &b, &c, n), Check::Exact);
        for wrong in [c[9] + 1.0, c[9] + 0.5, f32::NAN] {
            let mut damaged = c.clone();
            damaged[9] = wrong;
            assert!(!check_product(&a, &b, &damaged, n).is_right());
        }
    }

    #[test]
    fn the_other_checks_see_one_wrong_element() {
        let n = 32;
        let mut transposed: Vec<f32> = (0..n * n).map(|p| element(p % n * n + p / n)).collect();
        assert_eq!(check_transpose(&transposed, n), Check::Exact);
        transposed.swap(5, 6);
        assert!(!check_transpose(&transposed, n).is_right());

        let relaxed = relax((0..100).map(first_field).collect());
        let mut squares: Vec<f32> = relaxed.squares.iter().map(|s| *s as f32).collect();
        assert!(relaxed.check(&relaxed.field, &squares).is_right());
        squares[56] *= 2.0;
        assert!(!relaxed.check(&relaxed.field, &squares).is_right());
        let mut field = relaxed.field.clone();
        field[50] += 1e-6;
        assert!(!relaxed.check(&field, &[]).is_right());
        let samples: Vec<i32> = (0..1000).map(|index| sample(index, 7)).collect();
        assert!(samples.iter().any(|x| *x < 0) && samples.iter().any(|x| *x >= 7));
        assert_eq!(exact_histogram(&samples, 7).iter().sum::<u32>(), 1000);
    }

    #[test]
    fn accumulators_of_f16_lose_what_the_input_is_made_to_show() {
        let n = 1 << 20;
        let x: Vec<f16> = (0..n).map(|k| narrow_summand(k, n)).collect();
        let exact: f64 = x.iter().map(|value| value.to_f64()).sum();
        assert!((0.4..0.6).contains(&(exact / n as f64)), "{exact}");
        // As many elements an accumulator as on a GPU.
        let lost = 1.0 - sum_in_f16(&x, n / 64) / exact;
        assert!((0.1..0.5).contains(&lost), "{lost}");
        assert_eq!(sum_in_f16(&x, n), exact);
        let other = sum_in_f16(&x, n / 128);
        assert_ne!(other, sum_in_f16(&x, n / 64), "the check tells them apart");
    }

    #[test]
    fn partial_sums_stay_exact() {
        // Far below 2^24 for any run of the array, by a random walk of steps of at most 8.
        let mut sum = 0.0f64;
        let mut largest = 0.0f64;
        for index in 0..1 << 20 {
            sum += f64::from(summand(index));
            largest = largest.max(sum.abs());
        }
        assert!(largest < 1e5, "{largest}");
        assert_eq!(exact_sum(1 << 20), sum);
    }
}
