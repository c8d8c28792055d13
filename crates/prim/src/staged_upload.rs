//! Host arrays of any size on a GPU, piece by piece.

use std::ops::Range;

use crosswarp_cuda::{Buffer, BufferRef, CudaError, Device, PinnedBuffer, Pod, Stream};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// Bytes of a piece: large beside the cost of starting a copy and waiting for it (some 20 µs), small
/// beside any GPU's memory.
pub const PIECE_BYTES: usize = 32 << 20;
/// Bytes that a thread copies at a time into page-locked memory; one thread alone is slower than the link
/// to the GPU.
const PART_BYTES: usize = 512 << 10;

/// Brings elements `range` of host arrays of one length to `device`, piece by piece, and calls `work`
/// with each piece of all inputs and the piece's range, in order. A piece is `piece` elements long, the
/// last one may be shorter.
///
/// Three things go on at once: the host copies a piece into page-locked memory, the one before travels to
/// the GPU, and the one before that is worked on. `work` must be done with the piece when it returns, and
/// must not use the default of waiting for the whole device, which would wait for the copy, too.
///
/// Takes twice a piece of each input of device memory, and as much page-locked memory.
///
/// # Errors
/// Those of `work`, after which no further piece is brought, and those of the driver.
///
/// # Panics
/// If `piece` is 0, or `range` is not in every input.
pub fn in_pieces<T, E>(
    device: &Device,
    inputs: &[&[T]],
    range: Range<usize>,
    piece: usize,
    mut work: impl FnMut(&[BufferRef<'_, T>], Range<usize>) -> Result<(), E>,
) -> Result<(), E>
where
    T: Pod + Send + Sync,
    E: From<CudaError>,
{
    assert!(piece > 0, "pieces have elements");
    if range.is_empty() {
        return Ok(());
    }
    let piece = piece.min(range.len());
    let pieces: Vec<_> = range
        .clone()
        .step_by(piece)
        .map(|start| start..(start + piece).min(range.end))
        .collect();
    let stream = Stream::new(device)?;
    let slot = || -> Result<Slot<T>, CudaError> {
        let of = |_: &&[T]| {
            Ok((
                Buffer::new(device, piece)?,
                PinnedBuffer::zeroed(device, piece)?,
            ))
        };
        let (there, here) = inputs
            .iter()
            .map(of)
            .collect::<Result<Vec<_>, CudaError>>()?
            .into_iter()
            .unzip();
        Ok(Slot { there, here })
    };
    let (mut now, mut other) = (slot()?, slot()?);
    now.fill(inputs, &pieces[0]);
    for k in 0..pieces.len() {
        // `now` holds piece k on the host; `other` holds piece k − 1 on the GPU.
        let len = pieces[k].len();
        stream.scope(|copies| {
            for (there, here) in now.there.iter().zip(&now.here) {
                copies.write(there.range(..len), &here[..len])?;
            }
            if k > 0 {
                work(&other.views(pieces[k - 1].len()), pieces[k - 1].clone())?;
            }
            if let Some(next) = pieces.get(k + 1) {
                other.fill(inputs, next);
            }
            Ok::<_, E>(())
        })?;
        std::mem::swap(&mut now, &mut other);
    }
    let last = pieces.last().cloned().unwrap_or(range);
    work(&other.views(last.len()), last)
}

/// Room for one piece of each input, on both sides.
struct Slot<T: Pod> {
    there: Vec<Buffer<T>>,
    here: Vec<PinnedBuffer<T>>,
}

impl<T: Pod + Send + Sync> Slot<T> {
    fn views(&self, len: usize) -> Vec<BufferRef<'_, T>> {
        self.there.iter().map(|there| there.range(..len)).collect()
    }

    fn fill(&mut self, inputs: &[&[T]], range: &Range<usize>) {
        for (here, input) in self.here.iter_mut().zip(inputs) {
            copy(&mut here[..range.len()], &input[range.clone()]);
        }
    }
}

/// Copies with the threads of rayon's pool, which all PEs of the process share.
fn copy<T: Pod + Send + Sync>(dest: &mut [T], source: &[T]) {
    let part = (PART_BYTES / size_of::<T>().max(1)).max(1);
    dest.par_chunks_mut(part)
        .zip(source.par_chunks(part))
        .for_each(|(dest, source)| dest.copy_from_slice(source));
}
