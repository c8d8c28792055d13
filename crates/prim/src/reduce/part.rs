//! Where a PE's part of an array is, and who works on it.

use std::borrow::Cow;
use std::ops::Range;

use crate::{Op, ReduceError};

/// This PE's part of each input of a reduction, all of one length.
pub enum Part<'a, T> {
    /// In host memory, worked on by the CPU.
    Host(Vec<&'a [T]>),
    /// Elsewhere: worked on by a GPU, or read piece by piece.
    Remote(&'a dyn RemotePart<T>),
}

/// A part that is not in host memory as a whole, or that a GPU works on.
pub trait RemotePart<T> {
    /// Number of inputs.
    fn inputs(&self) -> usize;

    /// Elements of input `k`.
    fn len(&self, k: usize) -> usize;

    /// Elements `range` of input `k`, of at most one leaf.
    fn fetch(&self, k: usize, range: Range<usize>) -> Result<Vec<T>, ReduceError>;

    /// The partial result of elements `range`, in the words in which the PEs exchange it.
    ///
    /// Floats: `range` is whole leaves; a superaccumulator's words for sums, the leaves' products
    /// (their bits) for products. Integers: the words of a 192-bit total, or one word modulo 2^64.
    /// Extrema: whether there is one, its index in the part, the value's bits.
    fn partial(&self, op: Op, range: Range<usize>) -> Result<Vec<u64>, ReduceError>;
}

impl<'a, T> Part<'a, T>
where
    [T]: ToOwned<Owned = Vec<T>>,
{
    pub(crate) fn inputs(&self) -> usize {
        match self {
            Self::Host(inputs) => inputs.len(),
            Self::Remote(part) => part.inputs(),
        }
    }

    /// Elements of input `k`; 0 if there is no such input.
    pub(crate) fn len(&self, k: usize) -> usize {
        match self {
            Self::Host(inputs) => inputs.get(k).map_or(0, |input| input.len()),
            Self::Remote(part) if k < part.inputs() => part.len(k),
            Self::Remote(_) => 0,
        }
    }

    /// Elements `range` of input `k`, of at most one leaf.
    pub(crate) fn fetch(&self, k: usize, range: Range<usize>) -> Result<Cow<'a, [T]>, ReduceError> {
        match self {
            Self::Host(inputs) => Ok(Cow::Borrowed(&inputs[k][range])),
            Self::Remote(_) if range.is_empty() => Ok(Cow::Borrowed(&[])),
            Self::Remote(part) => part.fetch(k, range).map(Cow::Owned),
        }
    }
}
