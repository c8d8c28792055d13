//! What a reduction over a team exchanges: who holds which elements, the elements of leaves that
//! lie on several PEs, and the PEs' partial results.

use std::borrow::Cow;
use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use crosswarp_shmem::{Pe, Sym};

use crate::reduce::part::Part;
use crate::sum::leaf::LEAF;
use crate::threads::Workers;
use crate::{DType, Op, ReduceError, Scalar, Superaccumulator};

/// Words of a PE's announcement: operation, type, number of inputs, length of the first and second.
const CALL_WORDS: usize = 5;
/// Words of the longest partial result, and one that says whether there is one.
const RESULT_WORDS: usize = Superaccumulator::<f64>::WORDS + 1;
/// Bytes of a leaf of the widest type.
const LEAF_BYTES: usize = LEAF * 8;

/// One reduction on one PE, or on no team at all.
pub struct Exchange<'a> {
    pub(crate) workers: Workers<'a>,
    /// The PEs' parts of the global index range, in order.
    parts: Vec<Range<u64>>,
    team: Option<Workspace<'a>>,
}

/// The symmetric memory of one reduction. Each area is written once, so that no PE can overwrite
/// what another still reads:
/// 1. call, results: every PE's words, filled by `fcollect`;
/// 2. leaf: the elements of the last leaf that begins on this PE which other PEs hold, one area per
///    input, written by those PEs before a barrier and read by this one after it.
struct Workspace<'a> {
    pe: &'a Pe,
    memory: Sym<u8>,
}

impl<'a> Exchange<'a> {
    /// Agrees with the team on the reduction, runs `work`, and gives back the symmetric memory.
    pub(crate) fn run<T: Scalar, R>(
        workers: Workers<'a>,
        pe: Option<&'a Pe>,
        op: Op,
        part: &Part<'_, T>,
        work: impl FnOnce(&Self) -> Result<R, ReduceError>,
    ) -> Result<R, ReduceError> {
        let Some(pe) = pe else {
            let parts = agree(op, &[announce(op, part)])?;
            let result = work(&Self {
                workers,
                parts,
                team: None,
            });
            if workers.is_stopped() {
                return Err(ReduceError::Stopped { op });
            }
            return result;
        };
        let bytes = 8 * (CALL_WORDS + RESULT_WORDS) * (pe.n_pes() + 1) + 2 * LEAF_BYTES;
        let workspace = Workspace {
            pe,
            memory: pe.alloc_aligned::<u8>(bytes, 64)?,
        };
        let mut exchange = Self {
            workers,
            parts: Vec::new(),
            team: Some(workspace),
        };
        let result = exchange
            .gather_at(0, &announce(op, part))
            .and_then(|calls| agree(op_of(&calls[0]), &calls))
            .and_then(|parts| {
                exchange.parts = parts;
                work(&exchange)
            });
        // After a failure of the team giving back fails too; the first error is the one to tell.
        let freed = exchange
            .team
            .map_or(Ok(()), |workspace| pe.free(workspace.memory));
        let result = result?;
        freed?;
        Ok(result)
    }

    fn my_pe(&self) -> usize {
        self.team
            .as_ref()
            .map_or(0, |workspace| workspace.pe.my_pe())
    }

    /// Whether there is no team to exchange with.
    pub(crate) fn is_alone(&self) -> bool {
        self.team.is_none()
    }

    /// Global index of this PE's first element.
    pub(crate) fn start(&self) -> u64 {
        self.parts[self.my_pe()].start
    }

    /// Elements of all PEs.
    pub(crate) fn total(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// All PEs' `words` (`len` on each, fewer than [`RESULT_WORDS`]), in rank order. Once per reduction.
    ///
    /// A PE without words comes too, so that nobody waits for it in vain: then all PEs get an error.
    pub(crate) fn gather(
        &self,
        len: usize,
        words: Result<Vec<u64>, ReduceError>,
    ) -> Result<Vec<Vec<u64>>, ReduceError> {
        debug_assert!(len < RESULT_WORDS);
        let mut marked = vec![0; len + 1];
        if let Ok(words) = &words {
            marked[0] = 1;
            marked[1..].copy_from_slice(words);
        }
        let mut all = self.gather_at(8 * CALL_WORDS * (self.parts.len() + 1), &marked)?;
        words?;
        if let Some(pe) = all.iter().position(|words| words[0] == 0) {
            return Err(ReduceError::PeerFailed { pe });
        }
        for words in &mut all {
            words.remove(0);
        }
        Ok(all)
    }

    /// Gathers through the area at byte `at`.
    fn gather_at(&self, at: usize, words: &[u64]) -> Result<Vec<Vec<u64>>, ReduceError> {
        let Some(Workspace { pe, memory }) = &self.team else {
            return Ok(vec![words.to_vec()]);
        };
        let bytes = size_of_val(words);
        let source = memory.range(at..at + bytes);
        let dest = memory.range(at + bytes..at + bytes * (1 + pe.n_pes()));
        pe.write(source, cast_slice(words));
        pe.world().fcollect(dest, source)?;
        let mut all = vec![0u64; words.len() * pe.n_pes()];
        pe.read(cast_slice_mut(&mut all), dest);
        Ok(all.chunks_exact(words.len()).map(<[u64]>::to_vec).collect())
    }

    /// Where this PE's leaves lie in its part, and the elements of its last leaf.
    ///
    /// A leaf belongs to the PE that holds its first element. Elements at the front of a part that
    /// belong to the leaf of an earlier PE are sent there; what is missing at the end of the last
    /// leaf is received.
    pub(crate) fn own_leaves<'v, T: Scalar>(
        &self,
        values: &Part<'v, T>,
    ) -> Result<OwnLeaves<'v, T>, ReduceError> {
        let part = &self.parts[self.my_pe()];
        let length = (part.end - part.start) as usize;
        let head = front(part);
        let whole = head..head + (length - head) / LEAF * LEAF;
        // A failure to fetch is told after the barrier, which the other PEs come to.
        let mut failure = None;
        let mut fetch = |k: usize, range: Range<usize>| {
            let len = range.len();
            values.fetch(k, range).unwrap_or_else(|error| {
                failure.get_or_insert(error);
                Cow::Owned(vec![T::zeroed(); len])
            })
        };
        let mut last: Vec<_> = (0..values.inputs())
            .map(|k| fetch(k, whole.end..length))
            .collect();

        let cut = |part: &Range<u64>| front(part) > 0;
        if let Some(Workspace { pe, memory }) = &self.team
            && self.parts.iter().any(cut)
        {
            let areas = memory.len() - 2 * LEAF_BYTES;
            let place = |input: usize, elements: Range<usize>| {
                let area = areas + input * LEAF_BYTES;
                let size = size_of::<T>();
                memory.range(area + elements.start * size..area + elements.end * size)
            };
            if head > 0 {
                let leaf_start = part.start / LEAF as u64 * LEAF as u64;
                let owner = self
                    .parts
                    .iter()
                    .position(|part| part.contains(&leaf_start));
                let owner = owner.expect("some PE holds every element below the total");
                let offset = (part.start - leaf_start) as usize;
                for k in 0..values.inputs() {
                    let dest = place(k, offset..offset + head);
                    pe.put(dest, cast_slice(&fetch(k, 0..head)), owner);
                }
            }
            pe.barrier()?;
            let have = length - whole.end;
            if have > 0 {
                let leaf_start = part.end - have as u64;
                let elements = (self.total() - leaf_start).min(LEAF as u64) as usize;
                for (k, values) in last.iter_mut().enumerate() {
                    let values = values.to_mut();
                    values.resize(elements, T::zeroed());
                    pe.read(
                        cast_slice_mut(&mut values[have..]),
                        place(k, have..elements),
                    );
                }
            }
        }
        Ok(OwnLeaves {
            whole,
            last,
            failure,
        })
    }

    /// The array of one value per leaf, given this PE's values for the leaves that belong to it.
    pub(crate) fn gather_leaves<T: Scalar>(
        &self,
        mine: Result<Vec<T>, ReduceError>,
    ) -> Result<Vec<T>, ReduceError> {
        let Some(Workspace { pe, .. }) = &self.team else {
            return mine;
        };
        self.gather(0, mine.as_ref().map(|_| Vec::new()).map_err(Clone::clone))?;
        let mine = mine?;
        let leaves = self.total().div_ceil(LEAF as u64) as usize;
        let all = pe.alloc::<T>(leaves)?;
        // A leaf that begins before this part belongs to an earlier PE.
        let first = self.start().div_ceil(LEAF as u64) as usize;
        if !mine.is_empty() {
            for other in 0..pe.n_pes() {
                pe.put(all.range(first..first + mine.len()), &mine, other);
            }
        }
        pe.barrier()?;
        let mut values = vec![T::zeroed(); leaves];
        pe.read(&mut values, &all);
        pe.free(all)?;
        Ok(values)
    }
}

/// The leaves that belong to a PE.
pub(crate) struct OwnLeaves<'v, T: Clone> {
    /// The whole leaves that lie in its part, as local indices.
    pub whole: Range<usize>,
    /// The elements of one more leaf, shorter or completed by other PEs, for each input; may be empty.
    pub last: Vec<Cow<'v, [T]>>,
    /// Elements could not be fetched from the GPU: what this PE makes of the leaves is not to be used.
    pub failure: Option<ReduceError>,
}

/// Elements at the front of `part` that belong to a leaf which begins before it.
fn front(part: &Range<u64>) -> usize {
    let leaf = LEAF as u64;
    let missing = part.start.next_multiple_of(leaf) - part.start;
    missing.min(part.end - part.start) as usize
}

fn announce<T: Scalar>(op: Op, part: &Part<'_, T>) -> [u64; CALL_WORDS] {
    [
        op as u64,
        T::DTYPE as u64,
        part.inputs() as u64,
        part.len(0) as u64,
        part.len(1) as u64,
    ]
}

fn op_of(call: &[u64]) -> Op {
    Op::ALL[call[0] as usize]
}

fn dtype_of(call: &[u64]) -> DType {
    DType::ALL[call[1] as usize]
}

/// Checks that the calls of all PEs go together, and lays out their parts. Every PE sees the same
/// calls, so every PE comes to the same answer.
fn agree<C: AsRef<[u64]>>(op: Op, calls: &[C]) -> Result<Vec<Range<u64>>, ReduceError> {
    let first = calls[0].as_ref();
    let mut parts = Vec::with_capacity(calls.len());
    let mut end = 0;
    for (pe, call) in calls.iter().enumerate() {
        let call = call.as_ref();
        if call[..2] != first[..2] {
            let (dtype, other_op, other_dtype) = (dtype_of(first), op_of(call), dtype_of(call));
            return Err(ReduceError::Mismatch {
                op,
                dtype,
                pe,
                other_op,
                other_dtype,
            });
        }
        let (got, expected) = (call[2] as usize, op.inputs());
        if got != expected {
            return Err(ReduceError::Inputs {
                op,
                pe,
                expected,
                got,
            });
        }
        let (left, right) = (call[3], call[4]);
        if expected == 2 && left != right {
            return Err(ReduceError::Length {
                op,
                pe,
                left,
                right,
            });
        }
        parts.push(end..end + left);
        end += left;
    }
    if end == 0 && !op.allows_empty() {
        return Err(ReduceError::Empty { op });
    }
    Ok(parts)
}
