//! The reductions once more, written from their documentation, slowly, one element at a time, with
//! `num-bigint` for everything that is exact. Shares no code with the crate.

use half::{bf16, f16};
use num_bigint::{BigInt, Sign};

/// A format in which leaves are added: what the reference needs of `f32` and `f64`.
pub trait Wide: crosswarp_prim::Scalar {
    const PRECISION: u64;
    const NEG_ZERO: Self;
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
}

macro_rules! wide {
    ($type:ident, $precision:literal) => {
        impl Wide for $type {
            const PRECISION: u64 = $precision;
            const NEG_ZERO: Self = -0.0;
            const ONE: Self = 1.0;
            fn add(self, other: Self) -> Self {
                self + other
            }
            fn mul(self, other: Self) -> Self {
                self * other
            }
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn from_f64(value: f64) -> Self {
                value as Self
            }
        }
    };
}
wide!(f32, 24);
wide!(f64, 53);

/// A floating-point element type.
pub trait Narrow: crosswarp_prim::Element<Sum = Self::Wide, Mean = Self::Wide> {
    type Wide: Wide;
    fn widen(self) -> Self::Wide;
    fn of_bits(bits: u64) -> Self;
    fn of_f64(value: f64) -> Self;
}

macro_rules! narrow {
    ($($type:ident $wide:ident $bits:ident $widen:expr, $of_f64:expr;)*) => {$(
        impl Narrow for $type {
            type Wide = $wide;
            fn widen(self) -> $wide {
                $widen(self)
            }
            fn of_bits(bits: u64) -> Self {
                Self::from_bits(bits as $bits)
            }
            fn of_f64(value: f64) -> Self {
                $of_f64(value)
            }
        }
    )*};
}
narrow! {
    f16 f32 u16 f16::to_f32, f16::from_f64;
    bf16 f32 u16 bf16::to_f32, bf16::from_f64;
    f32 f32 u32 |x| x, |x| x as f32;
    f64 f64 u64 |x| x, |x| x;
}

fn leaf<W: Wide>(terms: &[W], identity: W, combine: fn(W, W) -> W) -> W {
    let mut lanes = [identity; 128];
    for (i, &term) in terms.iter().enumerate() {
        lanes[i % 128] = combine(lanes[i % 128], term);
    }
    for half in [64, 32, 16, 8, 4, 2, 1] {
        for k in 0..half {
            lanes[k] = combine(lanes[k], lanes[k + half]);
        }
    }
    lanes[0]
}

/// A finite value as a multiple of 2^-1074.
fn exact(value: f64) -> BigInt {
    let bits = value.to_bits();
    let exponent = bits >> 52 & 0x7ff;
    let fraction = bits & ((1 << 52) - 1);
    let magnitude = match exponent {
        0 => BigInt::from(fraction),
        _ => BigInt::from(fraction | 1 << 52) << (exponent - 1),
    };
    if value.is_sign_negative() {
        -magnitude
    } else {
        magnitude
    }
}

/// `numerator` / `denominator`, in units of 2^-1074, rounded to nearest even with `W`'s precision
/// and range.
fn round<W: Wide>(numerator: &BigInt, denominator: u64) -> f64 {
    let min_last_bit = if W::PRECISION == 24 { 1074 - 149 } else { 0 };
    let magnitude = if numerator.sign() == Sign::Minus {
        -numerator
    } else {
        numerator.clone()
    };
    let denominator = BigInt::from(denominator);
    let bits = (&magnitude / &denominator).bits();
    let last_bit = bits.saturating_sub(W::PRECISION).max(min_last_bit);
    let unit: BigInt = &denominator << last_bit;
    let mut significand: BigInt = &magnitude / &unit;
    let twice: BigInt = (&magnitude - &significand * &unit) * 2;
    if twice > unit || (twice == unit && significand.bit(0)) {
        significand += 1;
    }
    let (_, digits) = significand.to_u64_digits();
    let significand = digits.first().copied().unwrap_or(0);
    let result = if last_bit == 0 {
        f64::from_bits(significand)
    } else {
        // Two steps, as a single power of two may lie beyond the range; both are exact.
        let exponent = last_bit as i32 - 1074;
        significand as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
    };
    let result = if W::PRECISION == 24 {
        f64::from(result as f32)
    } else {
        result
    };
    if numerator.sign() == Sign::Minus {
        -result
    } else {
        result
    }
}

/// A total as the crate's documentation has it: exact sum of `terms`, IEEE for special values.
pub struct Total {
    special: Option<f64>,
    sum: BigInt,
}

impl Total {
    pub fn of(terms: &[f64]) -> Self {
        let positive = terms.contains(&f64::INFINITY);
        let negative = terms.contains(&f64::NEG_INFINITY);
        let special = if terms.iter().any(|x| x.is_nan()) || (positive && negative) {
            Some(f64::NAN)
        } else if positive {
            Some(f64::INFINITY)
        } else if negative {
            Some(f64::NEG_INFINITY)
        } else if terms.iter().all(|x| x.to_bits() == (-0.0f64).to_bits()) {
            Some(-0.0)
        } else {
            None
        };
        let sum = if special.is_some() {
            BigInt::ZERO
        } else {
            terms.iter().copied().map(exact).sum()
        };
        Self { special, sum }
    }

    /// The total divided by `count`, rounded to `W`; as an `f64`, with a canonical NaN.
    pub fn quotient<W: Wide>(&self, count: u64) -> f64 {
        self.special.unwrap_or_else(|| round::<W>(&self.sum, count))
    }
}

/// What is added exactly for `terms` of `x` and `y`: the values of their leaves; of one that its type was too narrow
/// for the value in `f64`, or all terms. `squares`: the root of the sum is wanted.
fn leaves<T: Narrow>(x: &[T], y: &[T], squares: bool, term: fn(f64, f64) -> f64) -> Vec<f64> {
    let is_f32 = T::Wide::PRECISION == 24;
    let mut all = Vec::new();
    for (x, y) in x.chunks(2048).zip(y.chunks(2048)) {
        let x: Vec<f64> = x.iter().map(|x| x.widen().to_f64()).collect();
        let y = y.iter().map(|y| y.widen().to_f64());
        // Products of two f32 are exact in f64.
        let wide: Vec<f64> = x.iter().zip(y).map(|(&x, y)| term(x, y)).collect();
        let narrow: Vec<_> = wide.iter().map(|&x| T::Wide::from_f64(x)).collect();
        let value = leaf(&narrow, T::Wide::NEG_ZERO, T::Wide::add).to_f64();
        let lost = |x: &f64| *x != 0.0 && x.abs() < 2f64.powi(-63);
        let lost = is_f32 && squares && value < 2f64.powi(-100) && x.iter().any(lost);
        match (value.is_finite() && !lost, is_f32) {
            (true, _) => all.push(value),
            (false, true) => all.push(leaf(&wide, -0.0, <f64 as Wide>::add)),
            (false, false) => all.extend(wide),
        }
    }
    all
}

fn bits<W: Wide>(value: f64) -> u64 {
    if value.is_nan() {
        return if W::PRECISION == 24 {
            0x7fc0_0000
        } else {
            0x7ff8_0000_0000_0000
        };
    }
    W::from_f64(value).bits()
}

fn widen<T: Narrow>(values: &[T]) -> Vec<T::Wide> {
    values.iter().map(|x| x.widen()).collect()
}

/// The bits of a sum of `terms`: +0 if there are none.
fn sum_of<W: Wide>(terms: &[f64]) -> u64 {
    if terms.is_empty() {
        return 0;
    }
    bits::<W>(Total::of(terms).quotient::<W>(1))
}

/// Expected bits of each operation.
pub fn sum<T: Narrow>(values: &[T]) -> u64 {
    sum_of::<T::Wide>(&leaves(values, values, false, |x, _| x))
}

pub fn exact_sum<T: Narrow>(values: &[T]) -> u64 {
    let terms: Vec<f64> = values.iter().map(|x| x.widen().to_f64()).collect();
    sum_of::<T::Wide>(&terms)
}

pub fn mean<T: Narrow>(values: &[T]) -> u64 {
    let total = Total::of(&leaves(values, values, false, |x, _| x));
    bits::<T::Wide>(total.quotient::<T::Wide>(values.len() as u64))
}

pub fn norm2<T: Narrow>(values: &[T]) -> u64 {
    if values.is_empty() {
        return 0;
    }
    let total = Total::of(&leaves(values, values, true, |x, _| x * x));
    let mut root = total.quotient::<f64>(1).sqrt();
    if root == f64::INFINITY {
        // The sum is beyond the range of f64; its root need not be.
        root = total.quotient::<f64>(1 << 60).sqrt() * 2f64.powi(30);
    }
    bits::<T::Wide>(root)
}

pub fn dot<T: Narrow>(x: &[T], y: &[T]) -> u64 {
    sum_of::<T::Wide>(&leaves(x, y, false, |x, y| x * y))
}

pub fn prod<T: Narrow>(values: &[T]) -> u64 {
    let mut level = widen(values);
    if level.is_empty() {
        level.push(T::Wide::ONE);
    }
    loop {
        level = level
            .chunks(2048)
            .map(|terms| leaf(terms, T::Wide::ONE, T::Wide::mul))
            .collect();
        if let [product] = level[..] {
            return bits::<T::Wide>(product.to_f64());
        }
    }
}

/// (bits of the minimum or maximum, its index).
pub fn extremum<T: Narrow>(values: &[T], max: bool) -> Option<(u64, u64)> {
    let wide: Vec<f64> = values.iter().map(|x| x.widen().to_f64()).collect();
    let mut best = 0;
    for (k, value) in wide.iter().enumerate() {
        if value.is_nan() {
            // All canonical quiet NaNs have the sign clear and only the top payload bit set.
            return Some((
                T::of_f64(f64::NAN).bits() & !(1 << (size_of::<T>() * 8 - 1)),
                k as u64,
            ));
        }
        let order = value.total_cmp(&wide[best]);
        if if max { order.is_gt() } else { order.is_lt() } {
            best = k;
        }
    }
    Some((values.get(best)?.bits(), best as u64))
}
