//! A PE's part of an array as it is read piece by piece.

use std::ops::Range;

use crate::reduce::part::RemotePart;
use crate::reduce::partial;
use crate::source::{ReadError, Source, in_pieces, read};
use crate::sum::leaf::LEAF;
use crate::threads::{Cost, Workers};
use crate::{Element, Op, ReduceError};

/// Inputs that are read piece by piece, by each thread into a buffer of its own.
pub(crate) struct FromSource<'a, T> {
    pub workers: Workers<'a>,
    pub inputs: &'a [&'a dyn Source<T>],
}

impl<T: Element> RemotePart<T> for FromSource<'_, T> {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn len(&self, k: usize) -> usize {
        self.inputs[k].len()
    }

    fn fetch(&self, k: usize, range: Range<usize>) -> Result<Vec<T>, ReduceError> {
        let mut values = vec![T::zeroed(); range.len()];
        read(self.inputs[k], range.start, &mut values)?;
        Ok(values)
    }

    fn partial(&self, op: Op, range: Range<usize>) -> Result<Vec<u64>, ReduceError> {
        let simd = self.workers.simd;
        let nothing: &[T] = &[];
        let of_nothing = || T::partial(simd, op, &[nothing; 2][..op.inputs()]);
        let parts = self.workers.split(
            Cost::Streaming,
            size_of::<T>() * op.inputs(),
            range.len(),
            |part| {
                let mut total = of_nothing();
                let mine = range.start + part.start..range.start + part.end;
                in_pieces(self.inputs, mine, LEAF, |pieces, first| {
                    let words = T::partial(simd, op, pieces);
                    let offset = (first - range.start) as u64;
                    partial::combine::<T>(op, &mut total, &words, offset);
                })?;
                Ok::<_, ReadError>(total)
            },
        );
        let mut total = of_nothing();
        for words in parts {
            partial::combine::<T>(op, &mut total, &words?, 0);
        }
        Ok(total)
    }
}
