//! Even bins: the rules that assign samples to them, operation by operation. `kernels/histogram/bins.cuh` has the same
//! ones. The rules are kernel arguments; the header `histogram/even_bins.cuh` of their parameters is made from here.

use super::rule::{BinRule, DROPPED, MOST_BINS};

/// Even bins of integers.
#[derive(Clone, Copy, Debug)]
pub enum EvenInteger {
    Shift(EvenShift),
    Multiply(EvenMultiply),
    Spread(EvenSpread),
    ClosedShift(Closed<EvenShift>),
    ClosedMultiply(Closed<EvenMultiply>),
}

crosswarp_cuda::shared_structures! {
    pub(crate) const HEADER = "// Parameters of even bins.
// Made from src/histogram/even.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp::histogram {

", "}  // namespace crosswarp::histogram\n";

    /// 2^shift values a bin. Keys are first moved into `from..=to`: the range if samples outside are clamped, else the
    /// limits of the type.
    pub EvenShift = "shift_parameters", align 4, size 20, with "": {
        0 pub low: i32 = "i32",
        4 pub from: i32 = "i32",
        8 pub to: i32 = "i32",
        12 pub bins: u32 = "u32",
        16 pub shift: u32 = "u32",
    }

    /// Fewer bins than values.
    pub EvenMultiply = "multiply_parameters", align 4, size 24, with "": {
        0 pub low: i32 = "i32",
        4 pub from: i32 = "i32",
        8 pub to: i32 = "i32",
        12 pub bins: u32 = "u32",
        16 pub factor_low: u32 = "u32",
        20 pub factor_high: u32 = "u32",
    }

    /// More bins than the range is wide.
    pub EvenSpread = "spread_parameters", align 4, size 32, with "": {
        0 pub low: i32 = "i32",
        4 pub from: i32 = "i32",
        8 pub to: i32 = "i32",
        12 pub bins: u32 = "u32",
        /// Whole bins a value.
        16 pub per_value: u32 = "u32",
        20 pub factor_low: u32 = "u32",
        24 pub factor_high: u32 = "u32",
        /// The greatest distance from `low` that is inside.
        28 pub last: u32 = "u32",
    }

    generic {
        /// A rule of bins no narrower than a value, with the upper end of the range in the last bin: it counts as
        /// the integer before it. (Where bins are narrower, these two are in different bins.)
        ///
        /// Keys are counted on from `after`, the integer behind the upper end, where that end is the last of all 2^32
        /// integers; so a minimum moves it, and nothing else. The rule's `low` is counted on from there, too.
        pub Closed<R> = "closed_parameters",
        of [EvenShift = "shift_parameters", EvenMultiply = "multiply_parameters"], size 4 + 1: {
            0 + 0 pub rule: R = "R",
            0 + 1 pub after: i32 = "i32",
        }

        /// Even bins of floating-point samples. Samples outside `from..=to` are dropped.
        pub EvenFloat<F> = "even_float_parameters", of [f32 = "float", f64 = "double"], size 8 + 4: {
            0 + 0 pub low: F = "F",
            0 + 1 pub scale: F = "F",
            0 + 2 pub from: F = "F",
            0 + 3 pub to: F = "F",
            0 + 4 pub bins: u32 = "u32",
            4 + 4 pub pad: u32 = "u32",
        }
    }
}

/// Even bins of integers of 64 bits, on CPUs. A key that is the upper end is in the last bin if `closed`.
#[derive(Clone, Copy, Debug)]
pub struct EvenWide {
    low: i64,
    /// 1 to 2^64.
    width: u128,
    bins: u32,
    /// Bins a unit, about.
    scale: f64,
    closed: bool,
    clamp: bool,
}

impl EvenWide {
    /// Bins of `low..high`, which is not empty: `low` is a key, `high` may be the one behind the last.
    pub fn new(low: i128, high: i128, bins: u32, closed: bool, clamp: bool) -> Self {
        let width = (high - low).cast_unsigned();
        Self {
            low: low as i64,
            width,
            bins,
            scale: f64::from(bins) / width as f64,
            closed,
            clamp,
        }
    }
}

impl BinRule<i64> for EvenWide {
    const NAME: &'static str = "wide";
    /// Nothing: kernels have no such samples.
    fn argument(&self, _: u64, _: u64) -> Vec<u8> {
        Vec::new()
    }
    #[inline(always)]
    fn bin(&self, key: i64) -> u32 {
        if key < self.low {
            return if self.clamp { 0 } else { DROPPED };
        }
        let distance = key.wrapping_sub(self.low).cast_unsigned();
        if u128::from(distance) >= self.width {
            let last = self.clamp || self.closed && u128::from(distance) == self.width;
            return if last { self.bins - 1 } else { DROPPED };
        }
        // The estimate is off by less than 2^28 · 2^−50; the products, below 2^93, say by how much.
        let estimate = (distance as f64 * self.scale) as u32;
        let exact = u128::from(distance) * u128::from(self.bins);
        let start = u128::from(estimate) * self.width;
        if start > exact {
            estimate - 1
        } else if start + self.width <= exact {
            estimate + 1
        } else {
            estimate
        }
    }
}

impl EvenInteger {
    /// Bins of `low..high`, which is not empty. A key that is `high` is in the last bin if `closed`, for
    /// which `high` has to be below 2^31; keys outside are in the first or last bin if `clamp`.
    pub fn new(low: i64, high: i64, bins: u32, closed: bool, clamp: bool) -> Self {
        let width = (high - low) as u64; // 1 to 2^32
        let (low, top) = (low as i32, (high - 1) as i32);
        let (from, to) = if clamp {
            (low, top)
        } else {
            (i32::MIN, i32::MAX)
        };
        // Clamped keys are at most `top`.
        let closed = closed && !clamp;
        let after = top.wrapping_add(2);
        let rule_low = if closed { low.wrapping_sub(after) } else { low };
        let per_bin = width / u64::from(bins);
        if per_bin.is_power_of_two() && per_bin * u64::from(bins) == width {
            // A shift by 32 bits is none: one bin of all values.
            if let shift @ 0..32 = per_bin.ilog2() {
                let rule = EvenShift {
                    low: rule_low,
                    from,
                    to,
                    bins,
                    shift,
                };
                return if closed {
                    Self::ClosedShift(Closed { rule, after })
                } else {
                    Self::Shift(rule)
                };
            }
        }
        let (per_value, rest) = (u64::from(bins) / width, u64::from(bins) % width);
        // ceil(2^64 · rest / width). For a distance d ≤ width < 2^32 the product d · factor / 2^64 exceeds
        // d · rest / width by less than d / 2^64 < 1 / width, the least that is missing to the next
        // integer; so the integer parts agree. From `width` on the product is at least `rest`.
        let factor = (u128::from(rest) << 64).div_ceil(width.into()) as u64;
        let (factor_low, factor_high) = (factor as u32, (factor >> 32) as u32);
        if per_value == 0 {
            let rule = EvenMultiply {
                low: rule_low,
                from,
                to,
                bins,
                factor_low,
                factor_high,
            };
            if closed {
                Self::ClosedMultiply(Closed { rule, after })
            } else {
                Self::Multiply(rule)
            }
        } else {
            Self::Spread(EvenSpread {
                low,
                from,
                // Clamped, too, what is above is in the last bin, not in that of `top`.
                to: if clamp { top.saturating_add(1) } else { to },
                bins,
                per_value: per_value as u32,
                factor_low,
                factor_high,
                last: (width - u64::from(!closed && !clamp)) as u32,
            })
        }
    }
}

/// Whether some key is moved into `from..=to`.
fn moves(from: i32, to: i32) -> bool {
    (from, to) != (i32::MIN, i32::MAX)
}

/// How far `key`, moved into `from..=to`, is above `low`; keys below wrap to beyond every distance
/// inside.
#[inline(always)]
fn distance(key: i32, low: i32, from: i32, to: i32) -> u32 {
    (key.min(to).max(from) as u32).wrapping_sub(low as u32)
}

/// The upper half of `d` · factor.
#[inline(always)]
fn upper(d: u32, factor_low: u32, factor_high: u32) -> u32 {
    let lower = (u64::from(factor_low) * u64::from(d)) >> 32;
    ((u64::from(factor_high) * u64::from(d) + lower) >> 32) as u32
}

impl BinRule<i32> for EvenShift {
    const NAME: &'static str = "shift";
    fn argument(&self, _: u64, _: u64) -> Vec<u8> {
        bytemuck::bytes_of(self).to_vec()
    }
    fn moves_keys(&self) -> bool {
        moves(self.from, self.to)
    }
    #[inline(always)]
    fn bin(&self, key: i32) -> u32 {
        distance(key, self.low, self.from, self.to) >> self.shift
    }
}

impl BinRule<i32> for EvenMultiply {
    const NAME: &'static str = "multiply";
    fn argument(&self, _: u64, _: u64) -> Vec<u8> {
        bytemuck::bytes_of(self).to_vec()
    }
    fn moves_keys(&self) -> bool {
        moves(self.from, self.to)
    }
    #[inline(always)]
    fn bin(&self, key: i32) -> u32 {
        let d = distance(key, self.low, self.from, self.to);
        upper(d, self.factor_low, self.factor_high)
    }
}

impl BinRule<i32> for EvenSpread {
    const NAME: &'static str = "spread";
    fn argument(&self, _: u64, _: u64) -> Vec<u8> {
        bytemuck::bytes_of(self).to_vec()
    }
    #[inline(always)]
    fn bin(&self, key: i32) -> u32 {
        let d = distance(key, self.low, self.from, self.to);
        let bin = d.wrapping_mul(self.per_value).wrapping_add(upper(
            d,
            self.factor_low,
            self.factor_high,
        ));
        // At the upper end it is `bins`.
        if d <= self.last {
            bin.min(self.bins - 1)
        } else {
            DROPPED
        }
    }
}

macro_rules! closed {
    ($($rule:ident, $name:literal);*) => {$(
        impl BinRule<i32> for Closed<$rule> {
            const NAME: &'static str = $name;
            fn argument(&self, _: u64, _: u64) -> Vec<u8> {
                bytemuck::bytes_of(self).to_vec()
            }
            #[inline(always)]
            fn bin(&self, key: i32) -> u32 {
                self.rule.bin(counted_on(key, self.after))
            }
        }
    )*};
}
closed!(EvenShift, "closed_shift"; EvenMultiply, "closed_multiply");

/// How far `key` is behind `after`, the last of all counting as the one before.
#[inline(always)]
fn counted_on(key: i32, after: i32) -> i32 {
    (key.wrapping_sub(after) as u32).min(u32::MAX - 1) as i32
}

macro_rules! even_float {
    ($($float:ident),*) => {$(
        impl EvenFloat<$float> {
            /// Bins from `low` to `high`; `scale` is bins a unit.
            pub fn new(low: $float, high: $float, scale: $float, bins: u32, clamp: bool) -> Self {
                let (from, to) = if clamp {
                    ($float::NEG_INFINITY, $float::INFINITY)
                } else {
                    (low, high)
                };
                Self { low, scale, from, to, bins, pad: 0 }
            }
        }

        impl BinRule<$float> for EvenFloat<$float> {
            const NAME: &'static str = "even";
            fn argument(&self, _: u64, _: u64) -> Vec<u8> {
                bytemuck::bytes_of(self).to_vec()
            }
            #[inline(always)]
            #[allow(unsafe_code)] // Reason: a conversion of a number within limits.
            fn bin(&self, key: $float) -> u32 {
                let above = (key - self.low) * self.scale;
                // Limited before it is converted: one instruction each, where a saturating conversion takes many.
                // NaN is not above 0.
                let above = if above > 0.0 { above } else { 0.0 };
                let above = if above < MOST_BINS as $float { above } else { MOST_BINS as $float };
                // SAFETY: from 0 to 2^28.
                let bin = unsafe { above.to_int_unchecked::<i32>() } as u32;
                let bin = bin.min(self.bins - 1);
                // No NaN is inside.
                if (self.from <= key) & (key <= self.to) { bin } else { DROPPED }
            }
        }
    )*};
}
even_float!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(folder, "kernels/histogram/even_bins.cuh", HEADER);
    }

    fn bin(even: EvenInteger, key: i32) -> u32 {
        match even {
            EvenInteger::Shift(rule) => rule.bin(key),
            EvenInteger::Multiply(rule) => rule.bin(key),
            EvenInteger::Spread(rule) => rule.bin(key),
            EvenInteger::ClosedShift(rule) => rule.bin(key),
            EvenInteger::ClosedMultiply(rule) => rule.bin(key),
        }
    }

    /// The definition, in integers that hold everything.
    fn by_definition(low: i64, high: i64, bins: u32, closed: bool, key: i64) -> Option<u32> {
        if key == high && closed {
            return Some(bins - 1);
        }
        let above = i128::from(key - low) * i128::from(bins) / i128::from(high - low);
        (low..high).contains(&key).then_some(above as u32)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn integers_are_binned_by_the_definition(
            a: i32, b: i32, bins in 1u32..1 << 28, small in 0u32..28, key: i32,
            near in -3i64..4, closed: bool, narrow: bool,
        ) {
            // Narrow ranges have more bins than values.
            let b = if narrow { a.saturating_add(b >> 16) } else { b };
            let (low, high) = (i64::from(a.min(b)), i64::from(a.max(b)) + 1);
            let bins = bins >> (small % 28);
            let bins = bins.max(1);
            let closed = closed && high <= i64::from(i32::MAX);
            let even = EvenInteger::new(low, high, bins, closed, false);
            let clamping = EvenInteger::new(low, high, bins, closed, true);
            // Keys next to the edge of a bin, and at the ends.
            let width = i128::from(high - low);
            let k = i128::from(key.unsigned_abs() % (bins + 1));
            let edge = i128::from(low) + (k * width).div_euclid(i128::from(bins)) + i128::from(near);
            let edge = edge.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32;
            let ends = [low, high - 1, low - 1, high, high + 1].map(|end| end as i32);
            for key in [key, edge, i32::MIN, i32::MAX].into_iter().chain(ends) {
                let expected = by_definition(low, high, bins, closed, key.into());
                let found = bin(even, key);
                prop_assert_eq!((found < bins).then_some(found), expected, "{:?} {}", even, key);
                // At and above the upper end is the last bin.
                let inside = i64::from(key).clamp(low, high);
                let clamped = by_definition(low, high, bins, true, inside);
                prop_assert_eq!(Some(bin(clamping, key)), clamped, "{:?} {}", even, key);
            }
        }
    }

    #[test]
    fn only_clamping_rules_move_keys() {
        for (bins, clamp) in [(4, false), (4, true), (3, false), (3, true)] {
            let moves = match EvenInteger::new(0, 16, bins, false, clamp) {
                EvenInteger::Shift(rule) => rule.moves_keys(),
                EvenInteger::Multiply(rule) => rule.moves_keys(),
                other => panic!("{other:?}"),
            };
            assert_eq!(moves, clamp, "{bins} bins");
        }
        let all = (i64::from(i32::MIN), i64::from(i32::MAX) + 1);
        // No key is outside of all.
        let EvenInteger::Shift(rule) = EvenInteger::new(all.0, all.1, 1 << 10, false, true) else {
            panic!("a power of two")
        };
        assert!(!rule.moves_keys());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn wide_integers_are_binned_by_the_definition(
            a: i64, b: i64, shift in 0u32..63, bins in 1u32..1 << 28, small in 0u32..28, key: i64,
            near in -3i128..4, closed: bool, clamp: bool,
        ) {
            let (a, b) = (a >> shift, b >> shift);
            let (low, high) = (i128::from(a.min(b)), i128::from(a.max(b)) + 1);
            let bins = (bins >> (small % 28)).max(1);
            let even = EvenWide::new(low, high, bins, closed, clamp);
            let k = i128::from(key.unsigned_abs() % u64::from(bins + 1));
            let edge = low + (k * (high - low)).div_euclid(i128::from(bins)) + near;
            let keys = [edge, key.into(), low, high - 1, high, high + 1, low - 1, i64::MIN.into(), i64::MAX.into()];
            for key in keys.into_iter().filter_map(|key| i64::try_from(key).ok()) {
                let at = i128::from(key);
                let inside = if clamp { at.clamp(low, high) } else { at };
                let expected = if inside == high && (closed || clamp) {
                    Some(bins - 1)
                } else if (low..high).contains(&inside) {
                    // Below 2^64 · 2^28.
                    Some(((inside - low) * i128::from(bins) / (high - low)) as u32)
                } else {
                    None
                };
                let found = even.bin(key);
                prop_assert_eq!((found < bins).then_some(found), expected, "{:?} {}", even, key);
            }
        }
    }

    #[test]
    fn every_rule_for_integers_occurs() {
        let new = |bins, closed| EvenInteger::new(0, 256, bins, closed, false);
        assert!(matches!(new(256, false), EvenInteger::Shift(_)));
        assert!(matches!(new(64, false), EvenInteger::Shift(_)));
        assert!(matches!(new(64, true), EvenInteger::ClosedShift(_)));
        assert!(matches!(new(100, false), EvenInteger::Multiply(_)));
        assert!(matches!(new(100, true), EvenInteger::ClosedMultiply(_)));
        assert!(matches!(new(512, true), EvenInteger::Spread(_)));
        let all = EvenInteger::new(-1 << 31, 1 << 31, 1, false, false);
        assert_eq!((bin(all, i32::MIN), bin(all, i32::MAX)), (0, 0));
    }

    #[test]
    fn only_the_upper_end_is_moved() {
        for high in [i32::MIN, -1, 0, 255, i32::MAX - 1, i32::MAX] {
            for key in [
                i32::MIN,
                i32::MIN + 1,
                -1,
                0,
                1,
                254,
                255,
                i32::MAX - 1,
                i32::MAX,
            ] {
                let expected = if key == high {
                    key.wrapping_sub(1)
                } else {
                    key
                };
                let after = high.wrapping_add(1);
                let found = counted_on(key, after).wrapping_add(after);
                assert_eq!(found, expected, "{key} {high}");
            }
        }
    }
}
