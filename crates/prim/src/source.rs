//! Arrays that are read piece by piece.

use std::io;
use std::ops::Range;
use std::time::Instant;

/// Bytes of a piece: it stays in the second-level cache of any processor between being read and being worked on, and
/// is large beside the cost of a system call.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// Pieces taken in turns by reading and from memory, until it is known what is quicker.
const TRIED: usize = 8;
/// Pieces after which that is asked again: other threads may have begun, or ended.
const ASKED_AGAIN: usize = 64;
/// Pieces that are lent at a time: there is no buffer to stay in a cache, and less to add up.
const LENT_PIECES: usize = 16;

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

    /// Elements `range`, if they can be had without being read, as in a mapped file.
    ///
    /// That saves a copy, but pages of a file are mapped when first touched, which takes more or less than copying them
    /// by system, file and number of threads; so both are tried, and the quicker one goes on.
    fn lent(&self, range: Range<usize>) -> Option<&[T]> {
        _ = range;
        None
    }
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
    // The least time of an element that was read, and of one that was lent.
    let mut least = [f64::INFINITY; 2];
    let (mut start, mut number) = (range.start, 0);
    while start < range.end {
        let turn = number % ASKED_AGAIN;
        number += 1;
        if turn == 0 {
            least = [f64::INFINITY; 2];
        }
        let is_lent = if turn < TRIED {
            turn % 2 == 1
        } else {
            least[1] < least[0]
        };
        let before = Instant::now();
        let lent: Option<Vec<&[T]>> = if is_lent {
            let end = range.end.min(start + LENT_PIECES * piece);
            let all = sources.iter().map(|source| source.lent(start..end));
            all.collect()
        } else {
            None
        };
        let (way, pieces) = match lent {
            Some(pieces) => (1, pieces),
            None => {
                let len = piece.min(range.end - start);
                for (buffer, source) in buffers.iter_mut().zip(sources) {
                    read(*source, start, &mut buffer[..len])?;
                }
                (0, buffers.iter().map(|buffer| &buffer[..len]).collect())
            }
        };
        work(&pieces, start);
        let len = pieces[0].len();
        least[way] = least[way].min(before.elapsed().as_secs_f64() / len as f64);
        start += len;
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
