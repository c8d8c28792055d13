//! The objects behind C's handles of teams and contexts.
//!
//! A handle is the index of a slot in a table and the slot's generation. So one that was destroyed, and one that
//! never was any, is recognised whatever has been created since; slots are used again, and looking one up takes no
//! lock.
//!
//! Access rules of a slot:
//! 1. `generation` is odd while the slot holds an object. Only who holds the table's lock changes it.
//! 2. The object is written before `generation` becomes odd, and taken out after it has become even.
//! 3. A reference from `get` ends before the object is destroyed: C's caller promises that.
#![allow(unsafe_code)] // hands out references to objects in slots that others may fill again

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Slots of the first chunk; every further one has twice as many.
const FIRST: usize = 64;
const CHUNKS: usize = 24;
/// Smaller numbers are handles with a meaning of their own.
const RESERVED: usize = 16;

struct Slot<T> {
    generation: AtomicU32,
    object: UnsafeCell<Option<T>>,
}

/// A table of objects. It only grows.
pub(crate) struct Handles<T: 'static> {
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    list: Mutex<SlotList>,
}

/// Which slots there are.
struct SlotList {
    free: Vec<usize>,
    slots: usize,
}

// SAFETY: slots are shared by the rules above; objects move between threads and are shared.
unsafe impl<T: Send + Sync> Sync for Handles<T> {}

/// Chunk and index in it of slot `index`, and the chunk's length.
fn chunk_of(index: usize) -> (usize, usize, usize) {
    let chunk = (index / FIRST + 1).ilog2() as usize;
    let len = FIRST << chunk;
    (chunk, index - (len - FIRST), len)
}

impl<T: Send + Sync> Handles<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            list: Mutex::new(SlotList {
                free: Vec::new(),
                slots: 0,
            }),
        }
    }

    fn slot(&self, index: usize) -> Option<&'static Slot<T>> {
        let (chunk, at, _) = chunk_of(index);
        let chunk = self.chunks.get(chunk)?.load(Ordering::Acquire);
        // SAFETY: null, or a chunk from `insert`, which is longer than `at` and never freed.
        (!chunk.is_null()).then(|| unsafe { &*chunk.add(at) })
    }

    /// The handle of `object` from now on; never less than 16.
    pub(crate) fn insert(&self, object: T) -> usize {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match list.free.pop() {
            Some(index) => index,
            None => {
                let index = list.slots;
                let (chunk, at, len) = chunk_of(index);
                assert!(chunk < CHUNKS, "{index} teams or contexts at once");
                if at == 0 {
                    let slots: Box<[Slot<T>]> = (0..len)
                        .map(|_| Slot {
                            generation: AtomicU32::new(0),
                            object: UnsafeCell::new(None),
                        })
                        .collect();
                    let slots = Box::leak(slots).as_mut_ptr();
                    self.chunks[chunk].store(slots, Ordering::Release);
                }
                list.slots += 1;
                index
            }
        };
        let slot = self.slot(index).expect("its chunk is there");
        // SAFETY: rule 1: empty, so nobody reads it, and the lock keeps other writers away.
        unsafe { *slot.object.get() = Some(object) };
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        // Release: whoever sees the generation sees the object.
        slot.generation.store(generation, Ordering::Release);
        (generation as usize) << 32 | (index + RESERVED)
    }

    /// The slot of `handle`, if it still holds that object.
    #[inline(always)]
    fn slot_of(&self, handle: usize) -> Option<&'static Slot<T>> {
        let index = (handle & 0xffff_ffff).checked_sub(RESERVED)?;
        let slot = self.slot(index)?;
        let generation = slot.generation.load(Ordering::Acquire);
        (generation as usize == handle >> 32 && generation % 2 == 1).then_some(slot)
    }

    /// The object of `handle`; `None` if it was destroyed or never was any.
    #[inline(always)]
    pub(crate) fn get(&self, handle: usize) -> Option<&'static T> {
        let slot = self.slot_of(handle)?;
        // SAFETY: rules 2 and 3: filled, and not destroyed before the reference ends.
        unsafe { (*slot.object.get()).as_ref() }
    }

    /// Takes the object of `handle` out, which is none from now on.
    pub(crate) fn remove(&self, handle: usize) -> Option<T> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = self.slot_of(handle)?;
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        slot.generation.store(generation, Ordering::Release);
        list.free.push((handle & 0xffff_ffff) - RESERVED);
        // SAFETY: rules 1 to 3: nobody finds it any more, nobody holds a reference, and the lock keeps
        // other writers away.
        unsafe { (*slot.object.get()).take() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_one_another() {
        let mut next = (0, 0);
        for index in 0..10_000 {
            let (chunk, at, len) = chunk_of(index);
            assert_eq!((chunk, at), next, "{index}");
            next = if at + 1 == len {
                (chunk + 1, 0)
            } else {
                (chunk, at + 1)
            };
        }
    }

    #[test]
    fn a_destroyed_handle_stays_one_though_its_slot_is_used_again() {
        static TABLE: Handles<usize> = Handles::new();
        let mut all: Vec<usize> = (0..200).map(|i| TABLE.insert(i)).collect();
        assert!(
            all.iter()
                .enumerate()
                .all(|(i, &h)| h >= RESERVED && TABLE.get(h) == Some(&i))
        );
        let old = all[70];
        assert_eq!(TABLE.remove(old), Some(70));
        assert_eq!((TABLE.get(old), TABLE.remove(old)), (None, None));
        all[70] = TABLE.insert(1000);
        assert_eq!(all[70] & 0xffff_ffff, old & 0xffff_ffff);
        assert_ne!(all[70], old);
        assert_eq!((TABLE.get(old), TABLE.get(all[70])), (None, Some(&1000)));
        // Whatever else a program may pass.
        for handle in [
            0,
            1,
            15,
            16,
            17,
            usize::MAX,
            0x7fff_dead_beef,
            1 << 32,
            2 << 32 | 16,
        ] {
            assert_eq!(
                (TABLE.get(handle), TABLE.remove(handle)),
                (None, None),
                "{handle:#x}"
            );
        }
    }
}
