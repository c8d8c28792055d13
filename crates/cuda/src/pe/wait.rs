//! Waits inside kernels, seen from the host: what one that ended in vain waited for, and ending it when a PE that it
//! needs is gone.
//!
//! What kernels and the host tell each other, and who may write it:
//! 1. `record`: written by the thread that sets `gave_up`, from state `RECORD_NONE` to `RECORD_COMPLETE`; read and set
//!    back to `RECORD_NONE` by the host when the kernels have ended.
//! 2. `gave_up`: set by kernels, cleared by the host when it has set the record back.
//! 3. `gone`: written by this PE's watcher, and by `end_all`; words only go from 0 to something, once.
#![allow(unsafe_code)] // Words that kernels and the host change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crosswarp_shmem::{Membership, Pe, Sym};

use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::memory::{Buffer, PinnedBuffer};
use crate::driver::stream::Stream;
use crate::layout::{
    ANYONE, EVERYONE, GONE_ANY, GONE_END, GONE_FOR, RECORD_COMPLETE, RECORD_NONE, WAIT_REMOTE,
    WAIT_RENDEZVOUS, WAIT_VALUE, WaitRecord,
};
use crate::pe::collective::CollectiveWord;

/// How long the host only looks at the stream.
const SPIN: Duration = Duration::from_millis(5);
/// Then it sleeps between looks.
const NAP: Duration = Duration::from_micros(50);
/// How often the watcher looks at the other PEs.
const WATCH: Duration = Duration::from_millis(20);
/// For how long another PE must have been gone before waits for it are hopeless: what it has sent arrives first.
const GRACE: Duration = Duration::from_millis(500);
/// How long kernels may take to end after a wait of theirs has ended in vain, or a PE has failed.
const DRAIN: Duration = Duration::from_secs(10);

/// A wait inside a kernel that ran out of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a kernel of PE {pe} waited {limit:?} in vain for {}; it saw {seen}",
    describe(*wait, *expected)
)]
pub struct KernelTimeout {
    /// The PE that waited.
    pub pe: usize,
    /// What it waited for; offsets are in the device heap.
    pub wait: KernelWait,
    /// The value waited for (two's complement), or the number of the rendezvous.
    pub expected: u64,
    /// The value it last saw.
    pub seen: u64,
    /// The time limit.
    pub limit: Duration,
}

/// What a kernel waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelWait {
    /// A value at this offset of its own device heap.
    Value {
        /// Byte offset in the heap.
        offset: u64,
    },
    /// Another PE, in a collective inside the kernel.
    Rendezvous {
        /// The PE that did not come.
        pe: usize,
    },
    /// A PE of another host, to do what the kernel asked for.
    Remote {
        /// That PE.
        pe: usize,
    },
    /// Something that takes every PE, at this offset of its own device heap.
    Everyone {
        /// Byte offset in the heap.
        offset: u64,
    },
}

/// A wait inside a kernel that could not end any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "PE {gone} failed or left while a kernel of PE {pe} waited for {}",
    describe(*wait, *expected)
)]
pub struct KernelLeft {
    /// The PE that waited.
    pub pe: usize,
    /// The PE that is gone.
    pub gone: usize,
    /// What was waited for; offsets are in the device heap.
    pub wait: KernelWait,
    /// As in [`KernelTimeout`].
    pub expected: u64,
}

fn describe(wait: KernelWait, expected: u64) -> String {
    match wait {
        KernelWait::Value { offset } => {
            format!("the value at device heap offset {offset}, compared with {expected}")
        }
        KernelWait::Rendezvous { pe } => format!("meeting #{expected} with PE {pe}"),
        KernelWait::Remote { pe } => format!("PE {pe} of another host"),
        KernelWait::Everyone { offset } => {
            format!("all PEs, at device heap offset {offset}, compared with {expected}")
        }
    }
}

/// PEs that came to one rendezvous of a team with different collectives. The team must not be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "PE {pe} called {} of its team, but PE {peer} another collective (its kind, bytes, root, operation or type \
     differs, or the order of calls); all PEs of a team call the same ones in the same order",
    CollectiveWord(*.collective)
)]
pub struct KernelMismatch {
    /// The PE that found it; every other one of the team finds it, too.
    pub pe: usize,
    /// A PE that called something else.
    pub peer: usize,
    /// What `pe` called: kind, root or operation, bytes.
    collective: u64,
}

/// Work of a GPU that does not end although the world has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "PE {gone} failed, and {limit:?} later PE {pe} still waits for {what} on its GPU, whose kernels were told to give up"
)]
pub struct WorkStuck {
    /// The PE that waited.
    pub pe: usize,
    /// The PE that failed.
    pub gone: usize,
    /// What it waited for.
    pub what: &'static str,
    /// For how long after.
    pub limit: Duration,
}

/// A stream that did not end well.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// A wait inside a kernel ran out of time.
    #[error(transparent)]
    Timeout(#[from] KernelTimeout),
    /// A wait inside a kernel was for a PE that is gone.
    #[error(transparent)]
    Left(#[from] KernelLeft),
    /// PEs called different collectives.
    #[error(transparent)]
    Mismatch(#[from] KernelMismatch),
    /// The work does not end.
    #[error(transparent)]
    Stuck(#[from] WorkStuck),
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// The memory through which kernels and the host speak; see the top of the file.
struct WaitMemory {
    record: PinnedBuffer<WaitRecord>,
    /// One word: a wait of this PE ended in vain.
    gave_up: Buffer<u32>,
    gone: PinnedBuffer<u32>,
}

/// Of the list of PEs that are gone, the word of waits for `ANYONE` or `EVERYONE`.
fn word_for(peer: i32) -> usize {
    GONE_FOR - peer.unsigned_abs() as usize
}

impl WaitMemory {
    fn state(&self) -> &AtomicU32 {
        // SAFETY: one word of the record, aligned, alive as long as `self`; kernels change it with atomics and the host
        // looks at it with one.
        unsafe { AtomicU32::from_ptr(self.record.address() as *mut u32) }
    }

    fn gone(&self, word: usize) -> &AtomicU32 {
        assert!(word < self.gone.len(), "word {word} of the list of PEs");
        // SAFETY: a word of the list, aligned, alive as long as `self`; kernels only read it.
        unsafe { AtomicU32::from_ptr((self.gone.address() as *mut u32).add(word)) }
    }

    /// Tells kernels that `pe` has left; called by one thread only. Release, so that who sees `GONE_ANY` sees what is
    /// behind it.
    fn tell_left(&self, pe: usize) {
        let tell = |word: usize, because: usize| {
            let word = self.gone(word);
            if word.load(Ordering::Relaxed) == 0 {
                word.store(because as u32 + 1, Ordering::Release);
            }
        };
        tell(GONE_FOR + pe, pe);
        let n_pes = self.gone.len() - GONE_FOR;
        let has_left = |&pe: &usize| self.gone(GONE_FOR + pe).load(Ordering::Relaxed) != 0;
        let left: Vec<usize> = (0..n_pes).filter(has_left).collect();
        tell(word_for(EVERYONE), left[0]);
        // All others.
        if left.len() == n_pes - 1 {
            tell(word_for(ANYONE), left[0]);
        }
        self.gone(GONE_ANY).store(1, Ordering::Release);
    }

    /// All waits end, because of `pe`. The first to say so is the one reported.
    fn end_all(&self, pe: usize) {
        let (order, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = self
            .gone(GONE_END)
            .compare_exchange(0, pe as u32 + 1, order, relaxed);
        self.gone(GONE_ANY).store(1, Ordering::Release);
    }

    /// The PE because of which all waits end.
    fn ended_by(&self) -> Option<usize> {
        (self.gone(GONE_END).load(Ordering::Acquire) as usize).checked_sub(1)
    }
}

/// A word of each PE, as this PE sees it: not 0 once it has dropped its device world. In the symmetric heap, which
/// the `Membership` beside it keep mapped.
struct LeftWords(*const AtomicU64, usize);

// SAFETY: the words are only read, as atomics.
unsafe impl Send for LeftWords {}

impl LeftWords {
    fn left(&self, pe: usize) -> bool {
        assert!(pe < self.1);
        // SAFETY: `self.1` words from there on are in this PE's heap, aligned and mapped (see above); all access is
        // atomic while the device world lives, and the watcher ends with it. (If the world is leaked, so are they.)
        unsafe { &*self.0.add(pe) }.load(Ordering::Acquire) != 0
    }
}

/// Looks at the membership now and then, whether or not this PE waits for anything, and tells kernels who is gone:
/// so waits inside kernels end, and with them every wait for a stream, an event or the GPU.
struct Watcher {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    fn start(
        memory: Arc<WaitMemory>,
        membership: Membership,
        left: LeftWords,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let watch = move || {
            let me = membership.my_pe();
            // Since when each has been gone; the last one: since when one has failed.
            let mut since: Vec<Option<Instant>> = vec![None; membership.n_pes() + 1];
            while !stopped.load(Ordering::Acquire) {
                std::thread::park_timeout(WATCH);
                let mut over = |which: usize, gone: bool| {
                    gone && since[which].get_or_insert_with(Instant::now).elapsed() > GRACE
                };
                for pe in (0..membership.n_pes()).filter(|&pe| pe != me) {
                    if over(pe, membership.has_left(pe) || left.left(pe)) {
                        memory.tell_left(pe);
                    }
                }
                let failed = membership.failed();
                if let Some(pe) = failed
                    && over(membership.n_pes(), true)
                {
                    memory.end_all(pe);
                }
            }
        };
        let thread = std::thread::Builder::new().name("crosswarp-watch".into());
        Ok(Self {
            stop,
            thread: Some(thread.spawn(watch)?),
        })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// What the kernels of a PE and its host tell each other about waits.
pub(crate) struct Waits {
    // Ended first: it reads `left` and writes to the memory.
    _watcher: Option<Watcher>,
    memory: Arc<WaitMemory>,
    /// Whether somebody has been told what the record says.
    told: AtomicBool,
    limit: Option<Duration>,
    left: Sym<u64>,
}

impl Waits {
    pub(crate) fn new(
        pe: &Pe,
        device: &Device,
        limit: Option<Duration>,
        left: Sym<u64>,
    ) -> Result<Waits, CudaError> {
        let stream = Stream::new(device)?;
        let gave_up = Buffer::zeroed(&stream, 1)?;
        stream.synchronize()?;
        let memory = Arc::new(WaitMemory {
            record: PinnedBuffer::zeroed(device, 1)?,
            gave_up,
            gone: PinnedBuffer::zeroed(device, GONE_FOR + pe.n_pes())?,
        });
        let watcher = match pe.n_pes() {
            1 => None,
            n => {
                let words = LeftWords(pe.ptr(&left, pe.my_pe()).cast_const().cast(), n);
                let started = Watcher::start(Arc::clone(&memory), pe.membership(), words);
                Some(started.map_err(|error| CudaError {
                    call: "starting the thread that watches the other PEs",
                    code: error.raw_os_error().unwrap_or(0),
                    name: error.kind().to_string(),
                    message: error.to_string(),
                })?)
            }
        };
        Ok(Waits {
            _watcher: watcher,
            memory,
            told: AtomicBool::new(false),
            limit,
            left,
        })
    }

    /// The time limit of waits inside kernels.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// For `world_state`; 0: no limit.
    pub(crate) fn limit_ns(&self) -> u64 {
        self.limit
            .map_or(0, |limit| limit.as_nanos().clamp(1, u64::MAX.into()) as u64)
    }

    pub(crate) fn record(&self) -> u64 {
        self.memory.record.address()
    }

    pub(crate) fn gave_up(&self) -> u64 {
        self.memory.gave_up.address()
    }

    pub(crate) fn gone(&self) -> u64 {
        self.memory.gone.address()
    }

    /// Tells the other PEs that `pe` takes no part any more.
    pub(crate) fn leave(&self, pe: &Pe) {
        for other in 0..pe.n_pes() {
            pe.atomic_set(self.left.at(pe.my_pe()), 1, other);
        }
    }

    /// Tells this PE's kernels to give up whatever they wait for.
    pub(crate) fn end_all(&self, pe: &Pe) {
        self.memory.end_all(pe.my_pe());
    }

    /// As [`end_all`](Self::end_all), for a thread.
    pub(crate) fn ender(&self, pe: &Pe) -> impl FnOnce() + Send + 'static {
        let (memory, me) = (Arc::clone(&self.memory), pe.my_pe());
        move || memory.end_all(me)
    }

    /// Words of all PEs: not 0 for each that has left.
    pub(crate) fn left(&self) -> &Sym<u64> {
        &self.left
    }

    /// Leaves the memory to kernels that may still use it.
    pub(crate) fn leak(&self) {
        std::mem::forget(Arc::clone(&self.memory));
    }

    /// Whether there is anything to say about waits.
    pub(crate) fn any(&self) -> bool {
        self.memory.state().load(Ordering::Acquire) != RECORD_NONE
    }

    /// Waits until `done`: that `what` on the GPU has ended. Waits inside kernels end by themselves (see [`Watcher`]);
    /// an error says that this did not help.
    pub(crate) fn until(
        &self,
        pe: &Pe,
        what: &'static str,
        done: impl Fn() -> Result<bool, CudaError>,
    ) -> Result<(), SyncError> {
        let start = Instant::now();
        let mut ending = None;
        // Who traps after a wait in vain leaves a context in which every question fails. What was waited for is in the
        // host's memory all the same.
        let done = || done().map_err(|error| self.reported().unwrap_or(SyncError::Cuda(error)));
        while !done()? {
            if pe.n_pes() == 1 || start.elapsed() < SPIN {
                std::hint::spin_loop();
                continue;
            }
            std::thread::sleep(NAP);
            let failed = self.memory.ended_by();
            if failed.is_none() && !self.any() {
                continue;
            }
            if ending.get_or_insert_with(Instant::now).elapsed() > DRAIN {
                // Not cleared: the kernels are still there.
                if let Some(error) = self.reported() {
                    return Err(error);
                }
                if let Some(gone) = failed {
                    return Err(SyncError::Stuck(WorkStuck {
                        pe: pe.my_pe(),
                        gone,
                        what,
                        limit: DRAIN,
                    }));
                }
            }
        }
        Ok(())
    }

    /// Whether a wait was given up by the kernels before; `stream` has ended them. The record is cleared.
    pub(crate) fn outcome(&self, stream: &Stream) -> Result<(), SyncError> {
        let Some(error) = self.reported() else {
            return Ok(());
        };
        // In this order: who finds `gave_up` cleared writes the record.
        self.memory.state().store(RECORD_NONE, Ordering::Release);
        self.told.store(false, Ordering::Relaxed);
        stream.zero(&self.memory.gave_up)?;
        stream.synchronize()?;
        Err(error)
    }

    /// What a complete record says, for who asks.
    fn reported(&self) -> Option<SyncError> {
        let error = self.complete_record();
        if error.is_some() {
            self.told.store(true, Ordering::Relaxed);
        }
        error
    }

    /// What a complete record says that nobody has been told, at the end of the process: its memory may have been taken
    /// away (`cudaDeviceReset`).
    pub(crate) fn untold(&self) -> Option<SyncError> {
        let there = || is_mapped(self.record(), size_of::<WaitRecord>() as u64);
        if self.told.load(Ordering::Relaxed) || !there() {
            return None;
        }
        self.complete_record()
    }

    fn complete_record(&self) -> Option<SyncError> {
        // Acquire: pairs with the kernel's system fence before it stored RECORD_COMPLETE.
        if self.memory.state().load(Ordering::Acquire) != RECORD_COMPLETE {
            return None;
        }
        // SAFETY: as in `state`; a complete record is not written any more until it is cleared.
        let record = unsafe { (self.memory.record.address() as *const WaitRecord).read_volatile() };
        Some(record.error(self.limit.unwrap_or_default()))
    }
}

/// Whether this process has memory at these addresses, as the system says.
fn is_mapped(address: u64, bytes: u64) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().any(|line| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        range.is_some_and(|(first, end)| {
            number(first).is_some_and(|first| first <= address)
                && number(end).is_some_and(|end| address + bytes <= end)
        })
    })
}

impl WaitRecord {
    fn error(&self, limit: Duration) -> SyncError {
        let (pe, expected, offset) = (self.pe as usize, self.expected, self.offset);
        let wait = match (self.what, self.peer) {
            (WAIT_VALUE | WAIT_REMOTE, EVERYONE) => KernelWait::Everyone { offset },
            (WAIT_VALUE, _) => KernelWait::Value { offset },
            (WAIT_REMOTE, peer) => KernelWait::Remote { pe: peer as usize },
            (WAIT_RENDEZVOUS, peer) => KernelWait::Rendezvous { pe: peer as usize },
            (_, peer) => {
                return SyncError::Mismatch(KernelMismatch {
                    pe,
                    peer: peer as usize,
                    collective: expected,
                });
            }
        };
        match usize::try_from(self.gone) {
            Ok(gone) => SyncError::Left(KernelLeft {
                pe,
                gone,
                wait,
                expected,
            }),
            Err(_) => SyncError::Timeout(KernelTimeout {
                pe,
                wait,
                expected,
                seen: self.seen,
                limit,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Kind, WAIT_MISMATCH};
    use crate::pe::collective::collective_word;

    #[test]
    fn the_system_knows_what_memory_there_is() {
        let here = [0u64; 6];
        let (address, bytes) = (here.as_ptr() as u64, size_of_val(&here) as u64);
        assert!(is_mapped(address, bytes));
        assert!(!is_mapped(0, 1));
        // More than any mapping has.
        assert!(!is_mapped(address, 1 << 46));
    }

    #[test]
    fn records_say_what_was_waited_for_and_why_it_ended() {
        let record = WaitRecord {
            state: RECORD_COMPLETE,
            what: WAIT_RENDEZVOUS,
            pe: 1,
            peer: 3,
            offset: 0,
            expected: 7,
            seen: 6,
            gone: -1,
            pad: 0,
        };
        let limit = Duration::from_secs(2);
        let line = |record: WaitRecord| record.error(limit).to_string();
        assert_eq!(
            line(record),
            "a kernel of PE 1 waited 2s in vain for meeting #7 with PE 3; it saw 6"
        );
        assert_eq!(
            line(WaitRecord { gone: 3, ..record }),
            "PE 3 failed or left while a kernel of PE 1 waited for meeting #7 with PE 3"
        );
        let broadcast = WaitRecord {
            what: WAIT_MISMATCH,
            expected: collective_word(Kind::Broadcast, 2) | 512,
            ..record
        };
        let said = line(broadcast);
        assert!(
            said.starts_with(
                "PE 1 called a broadcast of 512 bytes from rank 2 of its team, but PE 3"
            ),
            "{said}"
        );
    }
}
