//! Divergence of trees: the share of lanes that do something useful.
//!
//! A warp in which one lane has work takes as long as one in which all have. In step s of a tree over a
//! block's elements half of the remaining values are added to the other half; which threads do it
//! decides how many warps have to come along. (M. Harris, "Optimizing Parallel Reduction in CUDA".)

use crate::models::banks::LANES;

/// Who adds in step `s` of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tree {
    /// Thread t with `t % 2s == 0`, elements t and t + s: lanes of every warp.
    Interleaved,
    /// Thread t with `2·s·t < threads`, elements 2·s·t and 2·s·t + s: the first warps.
    Strided,
    /// Thread t with `t < s`, elements t and t + s: the first warps.
    Sequential,
}

impl Tree {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Interleaved, Self::Strided, Self::Sequential];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::Strided => "strided",
            Self::Sequential => "sequential",
        }
    }

    fn adds(self, thread: usize, stride: usize, threads: usize) -> bool {
        match self {
            Self::Interleaved => thread.is_multiple_of(2 * stride),
            Self::Strided => 2 * stride * thread < threads,
            Self::Sequential => thread < stride,
        }
    }
}

/// One step of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Distance of the two elements.
    pub stride: usize,
    /// Threads that add.
    pub active: usize,
    /// Warps with such a thread.
    pub warps: usize,
}

impl Step {
    /// Useful lanes as a share of the lanes of the warps that come along.
    pub fn useful(&self) -> f64 {
        self.active as f64 / (LANES * self.warps) as f64
    }
}

/// The steps of `tree` over `threads` elements, a power of two, in the order they are taken.
///
/// # Panics
/// If `threads` is no power of two.
pub fn steps(tree: Tree, threads: usize) -> Vec<Step> {
    assert!(threads.is_power_of_two(), "{threads} threads");
    let mut strides: Vec<usize> = (0..threads.trailing_zeros()).map(|k| 1 << k).collect();
    if tree == Tree::Sequential {
        strides.reverse();
    }
    let step = |stride| {
        let adds = |thread: &usize| tree.adds(*thread, stride, threads);
        let warps = (0..threads).step_by(LANES);
        Step {
            stride,
            active: (0..threads).filter(adds).count(),
            warps: warps
                .filter(|first| (*first..(first + LANES).min(threads)).any(|thread| adds(&thread)))
                .count(),
        }
    };
    strides.into_iter().map(step).collect()
}

/// Useful lanes over all of `steps`; 1 if there are none.
pub fn useful(steps: &[Step]) -> f64 {
    let active: usize = steps.iter().map(|step| step.active).sum();
    let lanes: usize = steps.iter().map(|step| LANES * step.warps).sum();
    if lanes == 0 {
        1.0
    } else {
        active as f64 / lanes as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_adds_all_values_once() {
        for tree in Tree::ALL {
            for threads in [1, 2, 32, 256, 1024] {
                let steps = steps(tree, threads);
                assert_eq!(steps.iter().map(|s| s.active).sum::<usize>(), threads - 1);
            }
        }
    }

    #[test]
    fn the_divergent_test_keeps_every_warp_busy() {
        let interleaved: Vec<(usize, usize)> = steps(Tree::Interleaved, 256)
            .iter()
            .map(|step| (step.active, step.warps))
            .collect();
        let (busy, then) = (
            [(128, 8), (64, 8), (32, 8), (16, 8), (8, 8)],
            [(4, 4), (2, 2), (1, 1)],
        );
        assert_eq!(interleaved, [&busy[..], &then[..]].concat());
        let sequential: Vec<(usize, usize)> = steps(Tree::Sequential, 256)
            .iter()
            .map(|step| (step.active, step.warps))
            .collect();
        let few = [
            (128, 4),
            (64, 2),
            (32, 1),
            (16, 1),
            (8, 1),
            (4, 1),
            (2, 1),
            (1, 1),
        ];
        assert_eq!(sequential, few);
        let strided = steps(Tree::Strided, 256);
        assert!(
            strided
                .iter()
                .zip(few)
                .all(|(step, few)| (step.active, step.warps) == few)
        );
        assert_eq!(
            useful(&steps(Tree::Interleaved, 256)),
            255.0 / (32.0 * 47.0)
        );
        assert_eq!(useful(&strided), 255.0 / (32.0 * 12.0));
    }
}
