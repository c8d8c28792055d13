//! Collectives over a team: everyone calls, in the same order, and everyone gets the answer.
//!
//! Payloads of up to [`SLOT_BYTES`] travel through the slots of the control memory, written before
//! and read after one rendezvous. Larger ones are read straight out of the callers' symmetric memory
//! between two rendezvous, moved once. Nothing is written to a destination before the PEs have
//! agreed that they are in the same call.
#![allow(unsafe_code)] // reads and writes the slots' words as elements

use crate::call::{Call, Kind};
use crate::control::{SLOT_BYTES, Slot};
use crate::op::ReduceOp;
use crate::pe::Pe;
use crate::rendezvous::{Arrival, rendezvous};
use crate::symmetric::SymRef;
use crate::wait::{Wait, WaitError};
use bytemuck::Pod;
use thiserror::Error;

pub use crate::call::{Call as CollectiveCall, Kind as CollectiveKind};

/// A collective that did not come about. After a mismatch the PEs have met and may go on; after a
/// failed wait the world is good for nothing but leaving.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum CollectiveError {
    /// The PEs called different collectives, or the same with different sizes.
    #[error("PE {me} called {mine}, but PE {pe} called {theirs}")]
    Mismatch {
        /// The PE that reports.
        me: usize,
        /// What it called.
        mine: Call,
        /// The first PE that called something else.
        pe: usize,
        /// What that one called.
        theirs: Call,
    },
    /// A source and a destination whose lengths do not go together; every PE must pass the same.
    #[error("{kind:?}: the destination has {dest} elements, the call needs {needed}")]
    Length {
        /// Which collective.
        kind: Kind,
        /// Elements of the destination.
        dest: usize,
        /// Elements it must have.
        needed: usize,
    },
    /// The meeting itself failed.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

impl Pe {
    /// Meets all PEs, each of which must be in the same call.
    pub(crate) fn meet(
        &self,
        kind: Kind,
        parameter: u64,
        bytes: u64,
    ) -> Result<(), CollectiveError> {
        let (control, me, shared) = (self.control(), self.my_pe(), self.shared());
        let mine = Call {
            kind,
            parameter,
            bytes,
        };
        let waiter = self.waiter();
        let line = |pe: usize| -> &Arrival { &control.pe(pe).arrival };
        let differing = rendezvous(
            line,
            self.n_pes(),
            me,
            shared,
            mine.to_tag(),
            |pe, number| {
                let arrival = line(pe);
                waiter.until(
                    || Wait::Collective { number, pe },
                    || (arrival.arrived() >= number).then_some(()),
                )
            },
        )?;
        match differing {
            None => Ok(()),
            Some((pe, theirs)) => Err(CollectiveError::Mismatch {
                me,
                mine,
                pe,
                theirs: Call::from_tag(theirs),
            }),
        }
    }

    /// Waits until every PE has come here with the same two numbers: how collectives of other kinds of
    /// memory check that all PEs make the same call. `parameter` below 2^56.
    ///
    /// Memory ordering: as [`sync`](Self::sync).
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn agree(&self, parameter: u64, bytes: u64) -> Result<(), CollectiveError> {
        self.meet(Kind::Agree, parameter, bytes)
    }

    /// Completes this PE's puts and waits until every PE has come here.
    ///
    /// Memory ordering: what any PE wrote or put before is visible to every PE after.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn barrier(&self) -> Result<(), CollectiveError> {
        self.world().barrier()
    }

    /// Waits until every PE has come here, without completing puts.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn sync(&self) -> Result<(), CollectiveError> {
        self.world().sync()
    }
}

/// A set of PEs that meet: at present always the whole world.
///
/// ```
/// use crosswarp_shmem::op::Sum;
/// let sums = crosswarp_shmem::spmd(4, |pe| {
///     let (mine, all) = (pe.alloc::<u64>(1)?, pe.alloc::<u64>(1)?);
///     pe.write(&mine, &[10 + pe.my_pe() as u64]);
///     pe.world().reduce(Sum, &all, &mine)?;
///     Ok::<_, crosswarp_shmem::Error>(pe.g(&all, pe.my_pe()))
/// })
/// .unwrap();
/// assert!(sums.iter().all(|sum| *sum == Ok(46)));
/// ```
///
/// Every method is collective: all PEs of the team call it in the same order with objects of the
/// same sizes. Sources and destinations are symmetric. On return the destination is complete on this
/// PE and the source may be reused. Each implies a `sync`, not a `quiet`. On a mismatch every PE gets
/// [`CollectiveError::Mismatch`] and no destination has been touched.
#[derive(Clone, Copy)]
pub struct Team<'a> {
    pub(crate) pe: &'a Pe,
}

impl Team<'_> {
    /// This PE's number in the team.
    pub fn my_pe(&self) -> usize {
        self.pe.my_pe()
    }

    /// Number of PEs in the team.
    pub fn n_pes(&self) -> usize {
        self.pe.n_pes()
    }

    /// See [`Pe::barrier`].
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn barrier(&self) -> Result<(), CollectiveError> {
        self.pe.quiet();
        self.pe.meet(Kind::Barrier, 0, 0)
    }

    /// See [`Pe::sync`].
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn sync(&self) -> Result<(), CollectiveError> {
        self.pe.meet(Kind::Sync, 0, 0)
    }

    /// Copies `source` on PE `root` into `dest` on every PE, the root included. They may be the same
    /// object, but not overlap in part.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Panics
    /// If `root` does not exist.
    pub fn broadcast<'d, 's, T: Pod>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
        root: usize,
    ) -> Result<(), CollectiveError> {
        let (dest, source) = (dest.into(), source.into());
        self.check_length(Kind::Broadcast, dest.len(), source.len())?;
        let bytes = size_of_val_ref(source);
        self.exchange(Kind::Broadcast, root as u64, bytes, source, |from| {
            from.copy(root, 0, dest);
        })
    }

    /// Concatenates the `source`s of all PEs in rank order into `dest` on every PE.
    /// `dest` has [`n_pes`](Self::n_pes) times as many elements as `source`. They must not overlap, or
    /// the result is unspecified.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn fcollect<'d, 's, T: Pod>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
    ) -> Result<(), CollectiveError> {
        let (dest, source) = (dest.into(), source.into());
        let n = source.len();
        self.check_length(Kind::Fcollect, dest.len(), n * self.n_pes())?;
        let bytes = size_of_val_ref(source);
        self.exchange(Kind::Fcollect, 0, bytes, source, |from| {
            for pe in self.others_first() {
                from.copy(pe, 0, dest.range(pe * n..(pe + 1) * n));
            }
        })
    }

    /// Block `j` of PE `i`'s `source` becomes block `i` of PE `j`'s `dest`. Both have the same number
    /// of elements, a multiple of [`n_pes`](Self::n_pes). They must not overlap, or the result is
    /// unspecified.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn alltoall<'d, 's, T: Pod>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
    ) -> Result<(), CollectiveError> {
        let (dest, source) = (dest.into(), source.into());
        let n = source.len() / self.n_pes();
        self.check_length(Kind::Alltoall, source.len(), n * self.n_pes())?;
        self.check_length(Kind::Alltoall, dest.len(), source.len())?;
        let bytes = size_of_val_ref(source);
        self.exchange(Kind::Alltoall, 0, bytes, source, |from| {
            for pe in self.others_first() {
                from.copy(pe, self.my_pe() * n, dest.range(pe * n..(pe + 1) * n));
            }
        })
    }

    /// Combines the `source`s of all PEs element by element, in rank order, into `dest` on every PE;
    /// all PEs get the same bits. `dest` and `source` may be the same object, but not overlap in part.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn reduce<'d, 's, T: Pod, O: ReduceOp<T>>(
        &self,
        _op: O,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
    ) -> Result<(), CollectiveError> {
        let (dest, source) = (dest.into(), source.into());
        self.check_length(Kind::Reduce, dest.len(), source.len())?;
        let bytes = size_of_val_ref(source);
        let id = u64::from(O::ID);
        if bytes <= SLOT_BYTES {
            return self.exchange(Kind::Reduce, id, bytes, source, |from| {
                self.reduce_part::<T, O>(&from, 0, source.len(), |part, values| {
                    self.pe.put(dest.range(part), values, self.my_pe());
                });
            });
        }
        // Each PE reduces its share for everyone. Of every share only its reducer reads sources and
        // writes destinations, and it reads a piece on all PEs before it writes it anywhere, so
        // `dest == source` is safe.
        self.pe.meet(Kind::Reduce, id, bytes as u64)?;
        let share = source.len().div_ceil(self.n_pes());
        let start = (self.my_pe() * share).min(source.len());
        let end = (start + share).min(source.len());
        let from = Sources::Heaps {
            team: *self,
            source,
        };
        self.reduce_part::<T, O>(&from, start, end, |part, values| {
            for pe in self.others_first() {
                self.pe.put(dest.range(part.clone()), values, pe);
            }
        });
        self.pe.meet(Kind::Reduce, id, bytes as u64)
    }

    /// Combines elements `start..end` of all PEs piece by piece and hands each piece out.
    fn reduce_part<T: Pod, O: ReduceOp<T>>(
        &self,
        from: &Sources<'_, '_, T>,
        start: usize,
        end: usize,
        mut hand_out: impl FnMut(std::ops::Range<usize>, &[T]),
    ) {
        // Two pieces stay in the first-level cache.
        const PIECE_BYTES: usize = 8192;
        let piece = (PIECE_BYTES / size_of::<T>().max(1))
            .max(1)
            .min(end - start);
        let mut sum = vec![T::zeroed(); piece];
        let mut next = sum.clone();
        for at in (start..end).step_by(piece.max(1)) {
            let n = piece.min(end - at);
            from.read(0, at, &mut sum[..n]);
            for pe in 1..self.n_pes() {
                from.read(pe, at, &mut next[..n]);
                for (sum, &next) in sum[..n].iter_mut().zip(&next[..n]) {
                    *sum = O::apply(*sum, next);
                }
            }
            hand_out(at..at + n, &sum[..n]);
        }
    }

    /// The meeting around an exchange of `source`: `take` reads what it wants from any PE's source.
    fn exchange<'s, T: Pod>(
        &self,
        kind: Kind,
        parameter: u64,
        bytes: usize,
        source: SymRef<'s, T>,
        take: impl FnOnce(Sources<'_, 's, T>),
    ) -> Result<(), CollectiveError> {
        if bytes <= SLOT_BYTES {
            let set = self.pe.next_slot();
            let slot = &self.pe.control().pe(self.my_pe()).slots[set];
            slot.write(self.pe, source);
            self.pe.meet(kind, parameter, bytes as u64)?;
            take(Sources::Slots { team: *self, set });
            // No second meeting: the slot is written next two meetings from now (rule 2 of control).
            return Ok(());
        }
        self.pe.meet(kind, parameter, bytes as u64)?;
        take(Sources::Heaps {
            team: *self,
            source,
        });
        // Nobody may change its source before everyone has read it.
        self.pe.meet(kind, parameter, bytes as u64)
    }

    /// Lengths are part of the call, so a PE with a wrong one is in the same call as the others, or
    /// they see the mismatch; it still has to come to the meeting.
    fn check_length(&self, kind: Kind, dest: usize, needed: usize) -> Result<(), CollectiveError> {
        if dest == needed {
            return Ok(());
        }
        // A call no other PE makes unless it errs in the same way.
        self.pe.meet(kind, u64::MAX >> 8, dest as u64)?;
        Err(CollectiveError::Length { kind, dest, needed })
    }

    /// All PEs, beginning behind me: spreads the load when all read from all.
    fn others_first(&self) -> impl Iterator<Item = usize> + use<> {
        let (me, n) = (self.my_pe(), self.n_pes());
        (me + 1..n).chain(0..=me)
    }
}

fn size_of_val_ref<T: Pod>(object: SymRef<'_, T>) -> usize {
    object.len() * size_of::<T>()
}

/// Where the sources of a collective can be read, between its meetings.
enum Sources<'t, 's, T> {
    Slots {
        team: Team<'t>,
        set: usize,
    },
    Heaps {
        team: Team<'t>,
        source: SymRef<'s, T>,
    },
}

impl<T: Pod> Sources<'_, '_, T> {
    /// Elements `at..at + dest.len()` of `pe`'s source.
    fn read(&self, pe: usize, at: usize, dest: &mut [T]) {
        match self {
            Self::Slots { team, set } => team.pe.control().pe(pe).slots[*set].read(at, dest),
            Self::Heaps { team, source } => {
                team.pe.get(dest, source.range(at..at + dest.len()), pe);
            }
        }
    }

    /// Elements `at..` of `pe`'s source into my own part of `dest`.
    fn copy(&self, pe: usize, at: usize, dest: SymRef<'_, T>) {
        match self {
            Self::Slots { team, .. } => {
                let mut values = vec![T::zeroed(); dest.len()];
                self.read(pe, at, &mut values);
                team.pe.write(dest, &values);
            }
            Self::Heaps { team, source } => {
                let from = team.pe.address(source.range(at..at + dest.len()), pe);
                let to = team.pe.address(dest, team.my_pe());
                // SAFETY: `address` checked both ranges; `copy` allows them to be the same memory
                // (the root of an in-place broadcast).
                unsafe { std::ptr::copy(from, to, dest.len()) };
                team.pe.notify(dest, team.my_pe());
            }
        }
    }
}

impl Slot {
    /// Fills this (my own) slot with my part of `source`, at most [`SLOT_BYTES`].
    fn write<T: Pod>(&self, pe: &Pe, source: SymRef<'_, T>) {
        debug_assert!(size_of_val_ref(source) <= SLOT_BYTES);
        let to = self.0.as_ptr().cast::<u8>().cast_mut();
        let from = pe.address(source, pe.my_pe()).cast::<u8>();
        // SAFETY: the slot has SLOT_BYTES, atomics allow writing through a shared reference, and
        // rule 2 of `control` says nobody reads this slot before my next arrival.
        unsafe { std::ptr::copy_nonoverlapping(from, to, size_of_val_ref(source)) };
    }

    /// Reads elements `at..` of this slot.
    fn read<T: Pod>(&self, at: usize, dest: &mut [T]) {
        assert!((at + dest.len()) * size_of::<T>() <= SLOT_BYTES);
        // SAFETY: inside the slot by the assertion; its owner wrote it before it arrived and writes
        // it again only after two more meetings; any bits are a valid T. The copy is bytewise, so
        // the slot's alignment does not matter.
        unsafe {
            let from = self.0.as_ptr().cast::<u8>().add(at * size_of::<T>());
            std::ptr::copy_nonoverlapping(
                from,
                dest.as_mut_ptr().cast::<u8>(),
                size_of_val::<[T]>(dest),
            );
        }
    }
}

impl Pe {
    /// Which slot belongs to this PE's next rendezvous.
    fn next_slot(&self) -> usize {
        let mine = &self.control().pe(self.my_pe()).arrival;
        ((mine.arrived() + 1) % 2) as usize
    }
}
