//! Arrays that are read piece by piece.

use std::io;
use std::ops::Range;

/// Bytes of a piece: it stays in the second-level cache of any processor between being read and being worked on, and
/// is large beside the cost of a system call. Reading a file that the system has in memory into such a buffer took half
/// the time of mapping it (`bench/results/reading-2026-11-25.txt`): no page has to be mapped.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// An array that need not lie in memory as a whole, as one in a file.
///
/// ```
/// use std::io;
///
/// use crosswarp_prim::{Op, Reducer, Source};
///
/// /// 0, 1, 2, ...
/// struct Numbers(usize);
///
/// impl Source<u64> for Numbers {
///     fn len(&self) -> usize {
///         self.0
///     }
///     fn read(&self, first: usize, to: &mut [u64]) -> io::Result<()> {
///         (first as u64..).zip(to).for_each(|(number, to)| *to = number);
///         Ok(())
///     }
/// }
///
/// let sum = Reducer::new().reduce_from(Op::Sum, &[&Numbers(1_000_000)])?;
/// assert_eq!(sum.to_string(), "499999500000");
/// # Ok::<(), crosswarp_prim::ReduceError>(())
/// ```
#[allow(clippy::len_without_is_empty)] // Reason: nobody asks.
pub trait Source<T>: Sync {
    /// Elements.
    fn len(&self) -> usize;

    /// Fills `to` with the elements from number `first` on, which are there. Several threads call it at once.
    ///
    /// # Errors
    /// Those of reading; the reduction or histogram ends with the first one.
    fn read(&self, first: usize, to: &mut [T]) -> io::Result<()>;
}

/// Why elements could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read elements {} to {}: {reason}", range.start, range.end - 1)]
pub struct ReadError {
    /// Which elements.
    pub range: Range<usize>,
    /// What the source said.
    pub reason: String,
}

/// Calls `work` with pieces of `range` of all `sources`, in order, each with the number of its first element. Pieces
/// have a multiple of `unit` elements, the last one may be shorter.
pub(crate) fn in_pieces<T: bytemuck::Pod>(
    sources: &[&dyn Source<T>],
    range: Range<usize>,
    unit: usize,
    mut work: impl FnMut(&[&[T]], usize),
) -> Result<(), ReadError> {
    let piece = (PIECE_BYTES / size_of::<T>()).next_multiple_of(unit);
    let mut buffers = vec![vec![T::zeroed(); piece.min(range.len())]; sources.len()];
    for start in range.clone().step_by(piece) {
        let len = piece.min(range.end - start);
        for (buffer, source) in buffers.iter_mut().zip(sources) {
            read(*source, start, &mut buffer[..len])?;
        }
        let pieces: Vec<_> = buffers.iter().map(|buffer| &buffer[..len]).collect();
        work(&pieces, start);
    }
    Ok(())
}

/// [`Source::read`], with what was to be read in the error.
pub(crate) fn read<T>(source: &dyn Source<T>, first: usize, to: &mut [T]) -> Result<(), ReadError> {
    source.read(first, to).map_err(|error| ReadError {
        range: first..first + to.len(),
        reason: error.to_string(),
    })
}
