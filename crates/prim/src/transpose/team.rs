//! Transposing a matrix whose rows lie on the PEs of a team.
#![allow(unsafe_code)] // Reason: a part of the transposition goes through pointers.

use std::ops::Range;

use bytemuck::Pod;
use crosswarp_shmem::{Pe, Sym};

use super::cpu::Part;
use super::layout::{TransposeError, check_element};
use super::transposer::Transposer;

/// Bytes of a row that travel in one put, and the rows that are put from one buffer: 256 KiB.
const PUT_BYTES: usize = 4096;
const PUT_ROWS: usize = 64;

/// Which of `rows` rows PE `pe` of `n_pes` holds.
///
/// ```
/// use crosswarp_prim::rows_of;
/// assert_eq!((rows_of(10, 3, 0), rows_of(10, 3, 1), rows_of(10, 3, 2)), (0..3, 3..6, 6..10));
/// ```
#[must_use]
pub fn rows_of(rows: usize, n_pes: usize, pe: usize) -> Range<usize> {
    let bound = |k: usize| (rows as u128 * k as u128 / n_pes as u128) as usize;
    bound(pe)..bound(pe + 1)
}

/// Elements a symmetric output needs so that every PE's rows of the transposed matrix fit.
#[must_use]
pub fn part_len(rows: usize, columns: usize, n_pes: usize) -> Option<usize> {
    columns.div_ceil(n_pes).checked_mul(rows)
}

impl Transposer {
    /// Transposes a matrix of `rows` × `columns` whose rows lie on the PEs of `pe`'s world.
    ///
    /// `input`: this PE's rows [`rows_of`]`(rows, …)`, without gaps. `output`: receives this PE's rows
    /// `rows_of(columns, …)` of the transposed matrix, `rows` elements each; [`part_len`] says how many
    /// elements it needs. Each PE transposes its part piece by piece and puts every piece's rows to
    /// their places on the PEs that hold them.
    ///
    /// Collective. `output` may be in use on any PE until that PE calls.
    /// Memory ordering: implies a `barrier`.
    ///
    /// # Errors
    /// On every PE alike: [`TransposeError::Mismatch`] if the PEs disagree on the shape,
    /// [`TransposeError::Part`] if a part is too short; failures of the symmetric heap and the team.
    ///
    /// ```
    /// use crosswarp_prim::{TransposeError, Transposer, part_len, rows_of};
    ///
    /// let parts = crosswarp_shmem::spmd(2, |pe| {
    ///     let matrix = [[1u8, 2, 3], [4, 5, 6]];
    ///     let output = pe.alloc::<u8>(part_len(2, 3, 2).unwrap())?;
    ///     Transposer::new().transpose_on(pe, 2, 3, &matrix[pe.my_pe()], &output)?;
    ///     let mut part = vec![0; 2 * rows_of(3, 2, pe.my_pe()).len()];
    ///     pe.read(&mut part, output.range(..2 * rows_of(3, 2, pe.my_pe()).len()));
    ///     Ok::<_, TransposeError>(part)
    /// })
    /// .unwrap();
    /// assert_eq!(parts, [Ok(vec![1, 4]), Ok(vec![2, 5, 3, 6])]);
    /// ```
    pub fn transpose_on<T: Pod>(
        &self,
        pe: &Pe,
        rows: usize,
        columns: usize,
        input: &[T],
        output: &Sym<T>,
    ) -> Result<(), TransposeError> {
        let element = size_of::<T>();
        let (me, n) = (pe.my_pe(), pe.n_pes());
        // Every PE has arrived when this returns, so their outputs may be written.
        let calls = gather(pe, [rows, columns, input.len(), output.len()])?;
        agree(&calls)?;
        check_element(element)?;
        let mine = rows_of(rows, n, me);
        let mut buffer = vec![T::zeroed(); PUT_ROWS * (PUT_BYTES / element)];
        for turn in 1..=n {
            // Each PE begins with its neighbour, so that not all write to the same one.
            let owner = (me + turn) % n;
            let theirs = rows_of(columns, n, owner);
            for column in theirs.clone().step_by(PUT_ROWS) {
                let width = PUT_ROWS.min(theirs.end - column);
                for row in (0..mine.len()).step_by(PUT_BYTES / element) {
                    let height = (PUT_BYTES / element).min(mine.len() - row);
                    let part = Part {
                        input: input[row * columns + column..].as_ptr().cast(),
                        input_stride: columns * element,
                        output: buffer.as_mut_ptr().cast(),
                        output_stride: PUT_BYTES,
                        rows: height,
                        columns: width,
                        element,
                        stream: false,
                    };
                    // SAFETY: `agree` found `mine.len()` whole rows in the input; the buffer has PUT_ROWS
                    // rows of PUT_BYTES.
                    unsafe { part.run(self.instruction_set()) };
                    for (c, values) in buffer.chunks(PUT_BYTES / element).take(width).enumerate() {
                        let at = (column - theirs.start + c) * rows + mine.start + row;
                        pe.put(output.range(at..at + height), &values[..height], owner);
                    }
                }
            }
        }
        pe.barrier()?;
        Ok(())
    }
}

/// What a PE calls with: rows, columns, elements of input and of output.
type Call = [usize; 4];

/// What every PE calls with.
pub(crate) fn gather<const WORDS: usize>(
    pe: &Pe,
    call: [usize; WORDS],
) -> Result<Vec<[usize; WORDS]>, TransposeError> {
    let (n, words) = (pe.n_pes(), call.len());
    let memory = pe.alloc::<u64>(words * (n + 1))?;
    pe.write(memory.range(..words), &call.map(|word| word as u64));
    pe.world()
        .fcollect(memory.range(words..), memory.range(..words))?;
    let mut all = vec![0; words * n];
    pe.read(&mut all, memory.range(words..));
    pe.free(memory)?;
    let call_of = |words: &[u64]| std::array::from_fn(|k| words[k] as usize);
    Ok(all.chunks_exact(words).map(call_of).collect())
}

/// Checks that the calls go together; every PE comes to the same answer.
pub(crate) fn agree(calls: &[Call]) -> Result<(), TransposeError> {
    let [rows, columns, ..] = calls[0];
    let n = calls.len();
    for (pe, &[other_rows, other_columns, input, output]) in calls.iter().enumerate() {
        if (other_rows, other_columns) != (rows, columns) {
            return Err(TransposeError::Mismatch {
                rows,
                columns,
                pe,
                other_rows,
                other_columns,
            });
        }
        let input_needed = rows_of(rows, n, pe)
            .len()
            .checked_mul(columns)
            .ok_or(TransposeError::TooLarge)?;
        let output_needed = rows_of(columns, n, pe)
            .len()
            .checked_mul(rows)
            .ok_or(TransposeError::TooLarge)?;
        for (what, needed, len) in [
            ("input", input_needed, input),
            ("output", output_needed, output),
        ] {
            if len < needed {
                return Err(TransposeError::Part {
                    pe,
                    what,
                    needed,
                    len,
                });
            }
        }
    }
    Ok(())
}
