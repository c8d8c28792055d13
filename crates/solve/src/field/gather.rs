//! Streaming a distributed field to PE 0, in order, a piece at a time.

use crosswarp_shmem::{Cmp, Pe, SignalOp};

use crate::element::Real;
use crate::field::rows::LocalRows;
use crate::pes::error::PeError;

/// Elements of a piece, unless a single row is longer.
const PIECE: usize = 1 << 16;

/// Hands the whole field to `take` on PE 0, in pieces of whole rows, in order.
///
/// Collective. A PE sends its next piece only into one of two buffers that PE 0 has said it has emptied. When `take`
/// fails, the rest is still received (so that nobody waits for ever) but no longer handed on.
///
/// Errors: the shared memory's, on every PE; what `take` returned, as the inner result, on PE 0.
pub(crate) fn stream<F: Real, E, R: LocalRows<F>>(
    pe: &Pe,
    field: &R,
    mut take: impl FnMut(&[F]) -> Result<(), E>,
) -> Result<Result<(), E>, R::Error> {
    let partition = field.partition();
    let rows_per_piece = (PIECE / field.row_len()).max(1);
    let capacity = rows_per_piece * field.row_len();
    let pieces = |of: usize| partition.rows(of).len().div_ceil(rows_per_piece);
    let own = field.own();
    let piece = |number: usize| {
        let start = own.start + number * rows_per_piece;
        start..(start + rows_per_piece).min(own.end)
    };

    let mut outcome = Ok(());
    let mut values = Vec::with_capacity(capacity);
    if pe.my_pe() == 0 {
        for number in 0..pieces(0) {
            values.clear();
            field.pack(piece(number), &mut values)?;
            if outcome.is_ok() {
                outcome = take(&values);
            }
        }
    }
    if partition.active() == 1 {
        return Ok(outcome);
    }

    let buffers = pe.alloc::<F>(2 * capacity).map_err(PeError::from)?;
    // Word 0: pieces that arrived here (used on PE 0). Word 1: pieces that this PE may have sent.
    let signals = pe.alloc_zeroed::<u64>(2).map_err(PeError::from)?;
    if pe.my_pe() == 0 {
        let mut arrived = 0;
        for sender in 1..partition.active() {
            let rows = partition.rows(sender);
            pe.signal(signals.at(1), 2, SignalOp::Set, sender);
            for number in 0..pieces(sender) {
                arrived += 1;
                pe.signal_wait_until(signals.at(0), Cmp::Ge, arrived)
                    .map_err(PeError::from)?;
                let count = rows_per_piece.min(rows.len() - number * rows_per_piece);
                let start = number % 2 * capacity;
                values.clear();
                values.resize(count * field.row_len(), F::ZERO);
                let source = buffers.range(start..start + values.len());
                pe.read(&mut values, source);
                pe.signal(signals.at(1), number as u64 + 3, SignalOp::Set, sender);
                if outcome.is_ok() {
                    outcome = take(&values);
                }
            }
        }
    } else {
        for number in 0..pieces(pe.my_pe()) {
            values.clear();
            field.pack(piece(number), &mut values)?;
            pe.signal_wait_until(signals.at(1), Cmp::Gt, number as u64)
                .map_err(PeError::from)?;
            let start = number % 2 * capacity;
            let target = buffers.range(start..start + values.len());
            pe.put_signal(target, &values, signals.at(0), 1, SignalOp::Add, 0);
        }
    }
    pe.free(buffers).map_err(PeError::from)?;
    pe.free(signals).map_err(PeError::from)?;
    Ok(outcome)
}
