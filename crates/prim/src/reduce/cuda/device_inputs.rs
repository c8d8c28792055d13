//! A PE's part of an array as its GPU works on it.

use std::cell::RefCell;
use std::ops::Range;

use crosswarp_cuda::BufferRef;

use crate::pieces::{PIECE_BYTES, in_pieces};
use crate::reduce::cuda::launcher::Launcher;
use crate::reduce::cuda::workspace::ReduceWorkspace;
use crate::reduce::part::DevicePart;
use crate::sum::leaf::LEAF;
use crate::sum::leaf_total::LeafTotal;
use crate::{DType, Element, Float, Op, ReduceError};

/// Inputs in device memory.
pub(crate) struct InDeviceMemory<'a, T: Element> {
    pub launcher: &'a Launcher,
    pub workspace: RefCell<&'a mut ReduceWorkspace>,
    pub inputs: &'a [BufferRef<'a, T>],
}

impl<T: Element> DevicePart<T> for InDeviceMemory<'_, T> {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn len(&self, k: usize) -> usize {
        self.inputs[k].len()
    }

    fn fetch(&self, k: usize, range: Range<usize>) -> Result<Vec<T>, ReduceError> {
        let mut values = vec![T::zeroed(); range.len()];
        let workspace = self.workspace.borrow();
        workspace
            .stream
            .read(&mut values, self.inputs[k].range(range))?;
        Ok(values)
    }

    fn partial(&self, op: Op, range: Range<usize>) -> Result<Vec<u64>, ReduceError> {
        let workspace = &mut **self.workspace.borrow_mut();
        let inputs: Vec<_> = self.inputs.iter().map(|x| x.range(range.clone())).collect();
        self.launcher.words(op, workspace, &inputs)
    }
}

/// Inputs in host memory, brought to the GPU piece by piece.
pub(crate) struct StreamedFromHost<'a, T: Element> {
    pub launcher: &'a Launcher,
    pub workspace: RefCell<&'a mut ReduceWorkspace>,
    pub inputs: &'a [&'a [T]],
}

impl<T: Element> DevicePart<T> for StreamedFromHost<'_, T> {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn len(&self, k: usize) -> usize {
        self.inputs[k].len()
    }

    fn fetch(&self, k: usize, range: Range<usize>) -> Result<Vec<T>, ReduceError> {
        Ok(self.inputs[k][range].to_vec())
    }

    fn partial(&self, op: Op, range: Range<usize>) -> Result<Vec<u64>, ReduceError> {
        let workspace = &mut **self.workspace.borrow_mut();
        let start = range.start;
        let piece = PIECE_BYTES / size_of::<T>() / LEAF * LEAF;
        // Of no elements, so that there is something to add to.
        let mut total = None;
        let mut add = |words: Vec<u64>, offset: usize| match &mut total {
            None => total = Some(words),
            Some(total) => merge::<T>(op, total, words, offset as u64),
        };
        if range.is_empty() {
            let nothing = crosswarp_cuda::Buffer::<T>::new(self.launcher.device(), 0)?;
            return self.launcher.words(op, workspace, &[(&nothing).into(); 2]);
        }
        in_pieces(
            self.launcher.device(),
            self.inputs,
            range,
            piece,
            |views, at| {
                add(self.launcher.words(op, workspace, views)?, at.start - start);
                Ok::<_, ReduceError>(())
            },
        )?;
        Ok(total.unwrap_or_default())
    }
}

/// Adds to the partial result of what comes before that of elements from `offset` on.
fn merge<T: Element>(op: Op, total: &mut Vec<u64>, words: Vec<u64>, offset: u64) {
    match (op, T::DTYPE.is_float()) {
        (Op::Min | Op::Argmin, _) => first_of::<T, false>(total, &words, offset),
        (Op::Max | Op::Argmax, _) => first_of::<T, true>(total, &words, offset),
        (Op::Prod, true) => total.extend(words),
        (_, true) if T::DTYPE == DType::F64 => merge_sums::<f64>(total, &words),
        (_, true) => merge_sums::<f32>(total, &words),
        (Op::Prod, false) => total[0] = total[0].wrapping_mul(words[0]),
        // Numbers in two's complement, of one word or three.
        (_, false) => {
            let mut carry = false;
            for (total, word) in total.iter_mut().zip(words) {
                let (sum, first) = total.overflowing_add(word);
                let (sum, second) = sum.overflowing_add(carry.into());
                (*total, carry) = (sum, first || second);
            }
        }
    }
}

fn first_of<T: Element, const MAX: bool>(total: &mut [u64], words: &[u64], offset: u64) {
    let rank = |bits| T::from_bits64(bits).rank::<MAX>();
    if words[0] == 1 && (total[0] == 0 || rank(words[2]) < rank(total[2])) {
        total.copy_from_slice(&[1, offset + words[1], words[2]]);
    }
}

fn merge_sums<F: Float>(total: &mut [u64], words: &[u64]) {
    let mut both = LeafTotal::<F>::from_words(total);
    both.merge(&LeafTotal::from_words(words));
    total.copy_from_slice(&both.to_words());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_results_add_up() {
        let mut extremum = vec![1, 7, 5];
        merge::<i32>(Op::Min, &mut extremum, vec![1, 3, 5], 10);
        assert_eq!(extremum, [1, 7, 5], "the first of equals stays");
        merge::<i32>(Op::Argmin, &mut extremum, vec![1, 3, 0xffff_ffff], 10);
        assert_eq!(extremum, [1, 13, 0xffff_ffff]);
        merge::<i32>(Op::Max, &mut extremum, vec![0, 0, 0], 10);
        assert_eq!(extremum, [1, 13, 0xffff_ffff]);

        let mut integers = vec![u64::MAX, u64::MAX, 0];
        merge::<u64>(Op::Sum, &mut integers, vec![1, 0, 0], 0);
        assert_eq!(integers, [0, 0, 1]);
        let mut product = vec![3];
        merge::<u8>(Op::Prod, &mut product, vec![5], 0);
        assert_eq!(product, [15]);

        let words = |values: &[f32]| {
            let mut sum = LeafTotal::new();
            sum.extend(values.iter().copied());
            sum.to_words()
        };
        let mut sums = words(&[1e20, 1.0]);
        merge::<f32>(Op::Norm2, &mut sums, words(&[-1e20]), 0);
        assert_eq!(sums, words(&[1.0, 1e20, -1e20]));
        let mut products = vec![1, 2];
        merge::<f64>(Op::Prod, &mut products, vec![3], 0);
        assert_eq!(products, [1, 2, 3]);
    }
}
