//! Bins of arbitrary edges: a table narrows the search.
#![allow(unsafe_code)] // Reason: the tables are indexed without checks, so that many keys are looked up at once.

use bytemuck::Pod;

use super::rule::{BinRule, DROPPED, Tables};

/// Most edges that entries of the table can count.
const MOST_EDGES: usize = 1 << EDGE_BITS;

/// Explicit edges, ascending. Those that no key can reach are left out. Samples outside `from..=to` are
/// dropped.
///
/// A monotonic function maps keys to cells. So all edges in cells before a key's are at or below the key, all
/// in cells after it above, and only those of its own cell have to be compared with: where the cells follow
/// the edges, one or none. The comparison decides, so the function may round.
#[derive(Clone, Debug)]
pub struct Edges<K> {
    edge: Vec<K>,
    /// For each cell the edges in cells before it, plus 2^[`EDGE_BITS`] times its own (at most [`MANY`]).
    cell: Vec<u32>,
    map: CellMap<K>,
    from: K,
    to: K,
    bins: u32,
    /// Most edges of a cell.
    most: u32,
}

crosswarp_cuda::shared_structures! {
    pub(crate) const HEADER = "// Parameters of bins of arbitrary edges.
// Made from src/histogram/edges.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp::histogram {

", "}  // namespace crosswarp::histogram\n";

    numbers {
        /// Bits of a cell's entry for the edges in cells before it; the others are for its own.
        EDGE_BITS: u32 = "edge_bits": "u32" = 24;
        /// What an entry says if a cell has this many edges or more.
        MANY: u32 = "many_edges": "u32" = 255;
    }

    generic {
        /// Edges and cells, their tables in device memory.
        pub EdgesParameters<K> = "edges_parameters",
        of [i32 = "i32", i64 = "i64", f32 = "float", f64 = "double"], size 40 + 4: {
            0 + 0 pub edge: u64 = "const K*",
            8 + 0 pub cell: u64 = "const u32*",
            /// Samples outside are dropped.
            16 + 0 pub from: K = "K",
            16 + 1 pub to: K = "K",
            /// The cell of a key: (key - low) * scale, for floats and if `factor` is 0.
            16 + 2 pub low: K = "K",
            16 + 3 pub scale: K = "K",
            /// Edges.
            16 + 4 pub count: u32 = "u32",
            20 + 4 pub bins: u32 = "u32",
            /// Otherwise (ordered key - base) * factor / 2^32.
            24 + 4 pub base: u32 = "u32",
            28 + 4 pub factor: u32 = "u32",
            32 + 4 pub cells: u32 = "u32",
            36 + 4 pub pad: u32 = "u32",
        }
    }
}

/// Which cell a key is in: by its distance from the first edge, or, for floats whose edges crowd near 0, by
/// the distance of their bits, which is piecewise the logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellMap<K> {
    /// (key − low) · scale, for floats and if `factor` is 0.
    pub low: K,
    pub scale: K,
    /// Otherwise (ordered key − base) · factor / 2^32.
    pub base: u32,
    pub factor: u32,
    pub cells: u32,
}

/// Keys that can be put into cells.
pub trait Celled: Pod + PartialOrd + Sync {
    /// An integer that ascends with the key: all of it, or its upper half.
    fn ordered(self) -> u32;
    /// The linear map of the finite edges, if keys are floats and there is one.
    fn linear(edges: &[Self], cells: u32) -> Option<CellMap<Self>>;
    /// trunc((self − low) · scale), 0 for NaN and below; at least 2^31 − 128 for what is there or above.
    fn scaled(self, low: Self, scale: Self) -> u32;
    /// The bytes of a kernel's argument.
    fn bytes_of(parameters: &EdgesParameters<Self>) -> &[u8];
}

impl Celled for i32 {
    #[inline(always)]
    fn ordered(self) -> u32 {
        self as u32 ^ 1 << 31
    }
    fn linear(_: &[Self], _: u32) -> Option<CellMap<Self>> {
        None
    }
    fn scaled(self, _: Self, _: Self) -> u32 {
        0
    }
    fn bytes_of(parameters: &EdgesParameters<Self>) -> &[u8] {
        bytemuck::bytes_of(parameters)
    }
}

impl Celled for i64 {
    #[inline(always)]
    fn ordered(self) -> u32 {
        (self >> 32) as u32 ^ 1 << 31
    }
    /// By a shift, which is the `scale`.
    fn linear(edges: &[Self], cells: u32) -> Option<CellMap<Self>> {
        let (&low, &high) = (edges.first()?, edges.last()?);
        let bits = u64::BITS - high.wrapping_sub(low).cast_unsigned().leading_zeros();
        Some(CellMap {
            low,
            scale: bits.saturating_sub(cells.ilog2()).into(),
            base: 0,
            factor: 0,
            cells,
        })
    }
    #[inline(always)]
    fn scaled(self, low: Self, scale: Self) -> u32 {
        if self < low {
            return 0;
        }
        let distance = self.wrapping_sub(low).cast_unsigned();
        // A shift by 64 bits leaves nothing.
        let cell = distance.checked_shr(scale as u32).unwrap_or(0);
        cell.min(u32::MAX.into()) as u32
    }
    fn bytes_of(parameters: &EdgesParameters<Self>) -> &[u8] {
        bytemuck::bytes_of(parameters)
    }
}

macro_rules! celled {
    ($($float:ident, $most:expr, $high:expr);*) => {$(
        impl Celled for $float {
            #[inline(always)]
            fn ordered(self) -> u32 {
                // The sum makes −0 to 0, which is equal.
                let bits: u32 = $high((self + 0.0).to_bits());
                bits ^ (((bits as i32) >> 31) as u32 | 1 << 31)
            }
            fn linear(edges: &[Self], cells: u32) -> Option<CellMap<Self>> {
                let finite = || edges.iter().copied().filter(|edge| edge.is_finite());
                let (low, high) = (finite().next()?, finite().next_back()?);
                let scale = cells as $float / (high - low);
                (scale.is_finite() && scale > 0.0).then_some(CellMap {
                    low,
                    scale,
                    base: 0,
                    factor: 0,
                    cells,
                })
            }
            #[inline(always)]
            fn scaled(self, low: Self, scale: Self) -> u32 {
                let cell = (self - low) * scale;
                // Beyond all cells a value of `i32` will do, to which vectors convert without more ado.
                let cell = if cell > 0.0 { cell } else { 0.0 };
                let cell = if cell < $most { cell } else { $most };
                // SAFETY: from 0 to the largest float below 2^31.
                (unsafe { cell.to_int_unchecked::<i32>() }) as u32
            }
            fn bytes_of(parameters: &EdgesParameters<Self>) -> &[u8] {
                bytemuck::bytes_of(parameters)
            }
        }
    )*};
}
celled! {
    f32, 2147483520.0, |bits: u32| bits;
    f64, 2147483647.0, |bits: u64| (bits >> 32) as u32
}

impl<K: Celled> CellMap<K> {
    fn by_order(edges: &[K], cells: u32) -> Self {
        let base = edges.first().map_or(0, |edge| edge.ordered());
        let width = edges.last().map_or(0, |edge| edge.ordered()) - base;
        let factor = (u64::from(cells) << 32) / (u64::from(width) + 1);
        Self {
            low: K::zeroed(),
            scale: K::zeroed(),
            base,
            factor: factor.clamp(1, u32::MAX.into()) as u32,
            cells,
        }
    }

    /// The cell of `key`.
    #[inline(always)]
    fn cell(&self, key: K) -> u32 {
        let cell = if self.factor == 0 {
            key.scaled(self.low, self.scale)
        } else {
            let distance = key.ordered().max(self.base) - self.base;
            ((u64::from(distance) * u64::from(self.factor)) >> 32) as u32
        };
        cell.min(self.cells - 1)
    }

    fn counts(&self, edges: &[K]) -> Vec<u32> {
        let mut counts = vec![0; self.cells as usize];
        for &edge in edges {
            counts[self.cell(edge) as usize] += 1;
        }
        counts
    }
}

/// Comparisons of a key in a cell with this many edges, summed over keys as dense as the edges.
fn cost(counts: &[u32]) -> u64 {
    let steps = |count: u32| u64::from(count) * u64::from(u32::BITS - count.leading_zeros());
    counts.iter().map(|&count| steps(count)).sum()
}

impl<K: Celled> Edges<K> {
    pub fn new(edge: Vec<K>, from: K, to: K, bins: u32) -> Self {
        let cells = match edge.len() {
            // A single cell, of all edges.
            len if len >= MOST_EDGES => 1,
            // Few enough that 16384 bins' counters, edges and cells fit into the shared memory of a block.
            len if len > 2048 => (len / 4 * 5) as u32,
            len => (4 * len).max(64) as u32,
        };
        let by_order = CellMap::by_order(&edge, cells);
        let mut best = (by_order, by_order.counts(&edge));
        if let Some(linear) = K::linear(&edge, cells) {
            let counts = linear.counts(&edge);
            if cost(&counts) <= cost(&best.1) {
                best = (linear, counts);
            }
        }
        let (map, counts) = best;
        let most = counts.iter().copied().max().unwrap_or(0);
        let mut before = 0;
        let cell = counts.iter().map(|&count| {
            let entry = before | count.min(MANY) << EDGE_BITS;
            before += count;
            entry
        });
        Self {
            cell: cell.collect(),
            edge,
            map,
            from,
            to,
            bins,
            most,
        }
    }
}

/// Keys looked up at once.
const TOGETHER: usize = 32;

/// Edges of which no cell of a linear map has more than one, and one has: a key is looked up without a branch.
#[derive(Clone, Copy)]
struct Lone<'a, K> {
    edge: &'a [K],
    cell: &'a [u32],
    low: K,
    scale: K,
    from: K,
    to: K,
    bins: u32,
}

impl<K: Celled> Lone<'_, K> {
    /// [`BinRule::bin`], or `most` if that is less.
    #[inline(always)]
    fn bin(self, key: K, most: u32) -> u32 {
        let (last_cell, last_edge) = (self.cell.len() as u32 - 1, self.edge.len() as u32 - 1);
        let cell = key.scaled(self.low, self.scale).min(last_cell);
        // SAFETY: both numbers are at most the last one; there are cells, and an edge.
        let (entry, edge) = unsafe {
            let entry = *self.cell.get_unchecked(cell as usize);
            let first = (entry % MOST_EDGES as u32).min(last_edge);
            (entry, *self.edge.get_unchecked(first as usize))
        };
        // Of a cell without an edge all edges before are below, and none of its own.
        let own = (entry >> EDGE_BITS) & u32::from(edge <= key);
        let below = entry % MOST_EDGES as u32 + own;
        let bin = below.max(1).min(self.bins) - 1;
        // NaN may be in any cell, and is dropped.
        let inside = (self.from <= key) & (key <= self.to);
        (if inside { bin } else { DROPPED }).min(most)
    }
}

impl<K: Celled> BinRule<K> for Edges<K> {
    const NAME: &'static str = "edges";
    fn tables(&self) -> Option<Tables<K>> {
        Some(Tables {
            edge: self.edge.clone(),
            cell: self.cell.clone(),
        })
    }
    fn argument(&self, edges: u64, cells: u64) -> Vec<u8> {
        let CellMap {
            low,
            scale,
            base,
            factor,
            cells: cell_count,
        } = self.map;
        let parameters = EdgesParameters {
            edge: edges,
            cell: cells,
            from: self.from,
            to: self.to,
            low,
            scale,
            count: self.edge.len() as u32,
            bins: self.bins,
            base,
            factor,
            cells: cell_count,
            pad: 0,
        };
        K::bytes_of(&parameters).to_vec()
    }
    #[inline(always)]
    fn bin(&self, key: K) -> u32 {
        let entry = self.cell[self.map.cell(key) as usize];
        let first = entry as usize % MOST_EDGES;
        let edges = match entry >> EDGE_BITS {
            MANY => &self.edge[first..],
            count => &self.edge[first..first + count as usize],
        };
        // Fewer than 2^29 edges.
        let below = (first + edges.partition_point(|&edge| edge <= key)) as u32;
        // NaN may be in any cell, and is dropped.
        if self.from <= key && key <= self.to {
            below.clamp(1, self.bins) - 1
        } else {
            DROPPED
        }
    }
    #[inline(always)]
    fn bins<T>(&self, samples: &[T], key: impl Fn(&T) -> K, most: u32, found: &mut [u32]) {
        let mut done = 0;
        if self.most == 1 && self.map.factor == 0 {
            let lone = Lone {
                edge: &self.edge,
                cell: &self.cell,
                low: self.map.low,
                scale: self.map.scale,
                from: self.from,
                to: self.to,
                bins: self.bins,
            };
            let (whole, _) = samples.as_chunks::<TOGETHER>();
            let (wholly_found, _) = found.as_chunks_mut::<TOGETHER>();
            for (samples, found) in whole.iter().zip(wholly_found) {
                // Not into `found` at once: it might be where the tables are, for all that the compiler knows.
                let mut bins = [0; TOGETHER];
                for (bin, sample) in bins.iter_mut().zip(samples) {
                    *bin = lone.bin(key(sample), most);
                }
                *found = bins;
                done += TOGETHER;
            }
        }
        for (found, sample) in found[done..].iter_mut().zip(&samples[done..]) {
            *found = self.bin(key(sample)).min(most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(folder, "kernels/histogram/edge_bins.cuh", HEADER);
    }

    /// By comparing with all edges.
    fn by_definition<K: Celled + core::fmt::Debug>(edges: &Edges<K>, key: K) -> u32 {
        let below = edges.edge.iter().filter(|&&edge| edge <= key).count() as u32;
        if edges.from <= key && key <= edges.to {
            below.clamp(1, edges.bins) - 1
        } else {
            DROPPED
        }
    }

    fn check<K: Celled + core::fmt::Debug>(mut edge: Vec<K>, lowest: K, highest: K, keys: &[K]) {
        edge.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let bins = edge.len() as u32 - 1;
        let own = edge.clone();
        let edges = Edges::new(edge, lowest, highest, bins);
        for &key in keys.iter().chain(&own) {
            assert_eq!(edges.bin(key), by_definition(&edges, key), "{key:?}");
        }
        // Many at once.
        let all: Vec<K> = keys.iter().chain(&own).copied().collect();
        let mut found = vec![0; all.len()];
        edges.bins(&all, |&key| key, bins, &mut found);
        for (&key, found) in all.iter().zip(found) {
            assert_eq!(found, by_definition(&edges, key).min(bins), "{key:?}");
        }
    }

    proptest! {
        #[test]
        fn the_table_changes_nothing(
            floats in prop::collection::vec(prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO, 2..300),
            near in prop::collection::vec(-1000i32..1000, 2..300),
            any in prop::collection::vec(any::<i32>(), 2..300),
            wide in prop::collection::vec(any::<i64>(), 2..300),
            keys in prop::collection::vec(any::<f64>(), 50),
        ) {
            let doubles: Vec<f64> = floats.iter().map(|&x| x.into()).collect();
            let singles: Vec<f32> = keys.iter().map(|&x| x as f32).collect();
            let ends = [f64::NEG_INFINITY, f64::INFINITY, -0.0, 0.0, f64::NAN];
            let mut all = keys.clone();
            all.extend(ends);
            all.extend(doubles.iter().flat_map(|x| [x.next_up(), x.next_down()]));
            check(doubles.clone(), ends[0], ends[1], &all);
            // Edges at infinity, and crowded ones.
            let mut with_ends = doubles;
            with_ends.extend(&ends[..2]);
            check(with_ends, ends[0], ends[1], &all);
            let crowded = near.iter().map(|&k| f64::from(k) * 1e-3).chain([1e300]).collect();
            check(crowded, ends[0], ends[1], &all);
            let mut few = singles;
            few.extend(floats.iter().flat_map(|x| [x.next_up(), x.next_down()]));
            check(floats, f32::NEG_INFINITY, f32::INFINITY, &few);
            let integers: Vec<i32> = keys.iter().map(|&x| x as i32).chain(near.clone()).collect();
            let mut wider = wide.clone();
            wider.extend(near.iter().map(|&k| i64::from(k)));
            wider.extend([i64::MIN, i64::MAX]);
            check(wide, i64::MIN, i64::MAX, &wider);
            check(near.iter().map(|&k| i64::from(k)).collect(), -10, 1000, &wider);
            check(wider.clone(), i64::MIN, i64::MAX, &wider);
            check(near, i32::MIN, i32::MAX, &integers);
            check(any, i32::MIN, i32::MAX, &integers);
        }
    }

    #[test]
    fn lone_edges_are_looked_up_together() {
        macro_rules! check_all {
            ($($float:ident)*) => {$(
                for bins in [1, 3, 100, 5000] {
                    let edge: Vec<$float> =
                        (0..=bins).map(|k| k as $float * 0.1 - 7.0).collect();
                    let (from, to) = (edge[0], edge[bins as usize]);
                    let width = to - from;
                    let mut keys: Vec<$float> =
                        (0..999).map(|k| from + width * (k as $float / 900.0 - 0.05)).collect();
                    keys.extend(edge.iter().flat_map(|x| [x.next_down(), x.next_up()]));
                    keys.extend([$float::NAN, $float::MAX, $float::MIN, 0.0, -0.0]);
                    keys.extend([$float::INFINITY, $float::NEG_INFINITY]);
                    assert_eq!(Edges::new(edge.clone(), from, to, bins).most, 1, "{bins}");
                    check(edge, from, to, &keys);
                }
            )*};
        }
        check_all!(f32 f64);
    }

    #[test]
    fn cells_follow_the_edges() {
        let even: Vec<f32> = (0..=1000).map(|k| k as f32).collect();
        let logarithmic: Vec<f64> = (0..=1000)
            .map(|k| 10f64.powf(k as f64 / 100.0 - 5.0))
            .collect();
        let most = |cell: &[u32]| cell.iter().map(|entry| entry >> EDGE_BITS).max();
        let even = Edges::new(even, 0.0, 1000.0, 1000);
        assert!(even.map.factor == 0 && most(&even.cell) == Some(1) && even.most == 1);
        let logarithmic = Edges::new(logarithmic, 0.0, 1e5, 1000);
        assert!(logarithmic.map.factor != 0 && most(&logarithmic.cell) <= Some(2));
    }
}
