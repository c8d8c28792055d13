//! The leaf: the unit of a reproducible sum, the only place where its order of addition is fixed.
//!
//! A leaf is [`LEAF`] consecutive elements by *global* index. Element i belongs to lane
//! i mod [`LANES`]; each lane starts from the identity −0.0 and adds its [`ROWS`] elements in
//! order; then [`combine_lanes`] adds the lanes by halving. A leaf at the end of the data is
//! shorter: its missing elements are simply not added, which is the same as adding −0.0.
//!
//! A field of a 2-D grid uses the same rule with a leaf of [`ROWS`] rows × [`LANES`] columns of
//! global grid coordinates: lane = column mod [`LANES`], rows in order.

use crosswarp_cuda::sum_layout;

use crate::Float;

/// Elements of a leaf.
pub const LEAF: usize = LANES * ROWS;
/// Lanes of a leaf.
pub const LANES: usize = sum_layout::LEAF_LANES;
/// Elements of each lane in a full leaf.
pub const ROWS: usize = sum_layout::LEAF_ROWS;

/// The lanes of a leaf before their first element: all −0.0.
#[inline(always)]
#[must_use]
pub fn empty_lanes<F: Float>() -> [F; LANES] {
    [F::NEG_ZERO; LANES]
}

/// Adds one row of a leaf to its lanes: element k to lane k.
///
/// A row shorter than [`LANES`] leaves the other lanes as they are.
///
/// # Panics
/// If `row` is longer than [`LANES`].
#[inline(always)]
pub fn add_row<F: Float>(lanes: &mut [F; LANES], row: &[F]) {
    for (lane, &value) in lanes[..row.len()].iter_mut().zip(row) {
        *lane = *lane + value;
    }
}

/// Combines the lanes of a leaf by halving: lane k takes in lane k + 64, then of the remaining 64
/// lane k takes in k + 32, and so on down to one.
///
/// The result is the leaf's sum, to be added to a [`Superaccumulator`](crate::Superaccumulator).
#[inline(always)]
#[must_use]
pub fn combine_lanes<F: Float>(lanes: &[F; LANES]) -> F {
    let mut sums = *lanes;
    halve::<F, 64>(&mut sums);
    halve::<F, 32>(&mut sums);
    halve::<F, 16>(&mut sums);
    halve::<F, 8>(&mut sums);
    halve::<F, 4>(&mut sums);
    halve::<F, 2>(&mut sums);
    halve::<F, 1>(&mut sums);
    sums[0]
}

/// One halving step. A constant trip count keeps the lanes in registers.
#[inline(always)]
fn halve<F: Float, const HALF: usize>(lanes: &mut [F; LANES]) {
    for k in 0..HALF {
        lanes[k] = lanes[k] + lanes[k + HALF];
    }
}

/// Sum of one leaf: up to [`LEAF`] elements, the first of which has a global index that is a
/// multiple of [`LEAF`].
///
/// Written for clarity; whole arrays go through the crate's reductions, which run the same leaves
/// with the widest vectors of the machine.
///
/// ```
/// use crosswarp_prim::leaf::leaf_sum;
///
/// assert_eq!(leaf_sum(&[1.0f32; 2048]), 2048.0);
/// assert_eq!(leaf_sum::<f32>(&[]).to_bits(), (-0.0f32).to_bits());
/// ```
///
/// # Panics
/// If there are more than [`LEAF`] values.
#[must_use]
pub fn leaf_sum<F: Float>(values: &[F]) -> F {
    assert!(
        values.len() <= LEAF,
        "a leaf has at most {LEAF} elements, got {}",
        values.len()
    );
    let mut lanes = empty_lanes();
    values
        .chunks(LANES)
        .for_each(|row| add_row(&mut lanes, row));
    combine_lanes(&lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule again, word for word and one element at a time.
    fn by_the_rule(values: &[f32]) -> f32 {
        let mut lanes = vec![-0.0f32; 128];
        for (i, x) in values.iter().enumerate() {
            lanes[i % 128] += x;
        }
        let mut half = 64;
        while half > 0 {
            for k in 0..half {
                lanes[k] += lanes[k + half];
            }
            half /= 2;
        }
        lanes[0]
    }

    #[test]
    fn leaves_of_every_length_follow_the_rule() {
        let values: Vec<f32> = (0..LEAF).map(|i| (i as f32 * 0.37).sin() * 1e3).collect();
        for len in 0..=LEAF {
            assert_eq!(
                leaf_sum(&values[..len]).to_bits(),
                by_the_rule(&values[..len]).to_bits(),
                "{len} elements"
            );
        }
    }

    #[test]
    fn the_order_is_the_documented_one() {
        // 2^24 + 1 is lost in f32, 1 + 1 is not: lanes 0, 64 and 32 meet as (0 + 64) + 32.
        let mut lanes = empty_lanes::<f32>();
        (lanes[0], lanes[64], lanes[32]) = (16777216.0, 1.0, 1.0);
        assert_eq!(combine_lanes(&lanes), 16777216.0);
        // Lanes 32 and 96 meet first.
        (lanes[0], lanes[64], lanes[32], lanes[96]) = (16777216.0, 0.0, 1.0, 1.0);
        assert_eq!(combine_lanes(&lanes), 16777218.0);
    }
}
