//! Waits inside kernels, seen from the host: what one that was given up waited for, and giving it up when another PE
//! is gone.
#![allow(unsafe_code)] // A word that kernels and the host change.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use crosswarp_shmem::{Pe, Sym};

use crate::error::CudaError;
use crate::memory::{Buffer, PinnedBuffer};
use crate::{Device, Stream};

/// States of a record: nothing given up, complete, and told by the host to give up.
const NONE: u32 = 0;
const COMPLETE: u32 = 2;
const TOLD: u32 = 3;

/// How long the host only looks at the stream.
const SPIN: Duration = Duration::from_millis(5);
/// Then it sleeps between looks.
const NAP: Duration = Duration::from_micros(50);
/// For how long another PE must have been gone before its kernels' waits are hopeless: what it has sent arrives first.
const GRACE: Duration = Duration::from_millis(500);

/// `crosswarp::wait_record`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct WaitRecord {
    state: u32,
    what: u32,
    pe: i32,
    peer: i32,
    offset: u64,
    expected: u64,
    seen: u64,
}

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
    /// The value waited for (two's complement), or the number of the meeting.
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
    Meeting {
        /// The PE that did not come.
        pe: usize,
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
        KernelWait::Meeting { pe } => format!("meeting #{expected} with PE {pe}"),
    }
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
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// What the kernels of a PE and its host tell each other about waits.
pub(crate) struct Waits {
    record: PinnedBuffer<WaitRecord>,
    /// One word: a wait of this PE was given up.
    gave_up: Buffer<u32>,
    limit: Option<Duration>,
    /// A word of each PE: not 0 once it has dropped its device world.
    left: Sym<u64>,
    /// The PE because of which waits were told to give up, plus one.
    gone: AtomicU32,
}

impl Waits {
    pub(crate) fn new(
        device: &Device,
        limit: Option<Duration>,
        left: Sym<u64>,
    ) -> Result<Waits, CudaError> {
        let stream = Stream::new(device)?;
        let gave_up = Buffer::zeroed(&stream, 1)?;
        stream.synchronize()?;
        Ok(Waits {
            record: PinnedBuffer::zeroed(device, 1)?,
            gave_up,
            limit,
            left,
            gone: AtomicU32::new(0),
        })
    }

    /// For `world_state`; 0: no limit.
    pub(crate) fn limit_ns(&self) -> u64 {
        self.limit
            .map_or(0, |limit| limit.as_nanos().clamp(1, u64::MAX.into()) as u64)
    }

    pub(crate) fn record(&self) -> u64 {
        self.record.address()
    }

    pub(crate) fn gave_up(&self) -> u64 {
        self.gave_up.address()
    }

    fn state(&self) -> &AtomicU32 {
        // SAFETY: one word of the record, aligned, alive as long as `self`; kernels change it with atomics and the host
        // looks at it with one.
        unsafe { AtomicU32::from_ptr(self.record.address() as *mut u32) }
    }

    /// Tells the other PEs that `pe` takes no part any more.
    pub(crate) fn leave(&self, pe: &Pe) {
        for other in 0..pe.n_pes() {
            pe.atomic_set(self.left.at(pe.my_pe()), 1, other);
        }
    }

    /// A PE that takes no part any more: one that failed, left the world, or dropped its device world.
    fn gone(&self, pe: &Pe) -> Option<usize> {
        pe.gone().or_else(|| {
            let me = pe.my_pe();
            (0..pe.n_pes()).find(|&other| pe.atomic_fetch(self.left.at(other), me) != 0)
        })
    }

    /// Whether there is anything to say about waits.
    pub(crate) fn any(&self) -> bool {
        self.state().load(Ordering::Acquire) != NONE
    }

    /// Waits until `done`. When another PE has been gone for a while, the kernels' waits are told to give up.
    pub(crate) fn until(
        &self,
        pe: &Pe,
        done: impl Fn() -> Result<bool, CudaError>,
    ) -> Result<(), CudaError> {
        let start = Instant::now();
        let mut gone: Option<(usize, Instant)> = None;
        let mut told = false;
        while !done()? {
            if pe.n_pes() == 1 || start.elapsed() < SPIN {
                std::hint::spin_loop();
                continue;
            }
            std::thread::sleep(NAP);
            let now = Instant::now();
            if gone.is_none() {
                gone = self.gone(pe).map(|pe| (pe, now));
            }
            if let Some((pe, since)) = gone.filter(|_| !told)
                && now - since > GRACE
            {
                told = true;
                self.gone.store(pe as u32 + 1, Ordering::Relaxed);
                // Fails if a wait has given up by itself.
                let _ =
                    self.state()
                        .compare_exchange(NONE, TOLD, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Whether a wait was given up by the kernels before; `stream` has ended them. The record is cleared.
    pub(crate) fn outcome(&self, stream: &Stream) -> Result<(), SyncError> {
        // Acquire: pairs with the kernel's system fence before it stored COMPLETE.
        let state = self.state().load(Ordering::Acquire);
        if state == NONE {
            return Ok(());
        }
        // SAFETY: as in `state`; a complete record is not written any more until it is cleared.
        let record = unsafe { (self.record.address() as *const WaitRecord).read_volatile() };
        stream.zero(&self.gave_up)?;
        stream.synchronize()?;
        let gone = self.gone.swap(0, Ordering::Relaxed);
        self.state().store(NONE, Ordering::Release);
        if state != COMPLETE {
            // Told, but nobody waited any more.
            return Ok(());
        }
        let wait = match record.what {
            1 => KernelWait::Value {
                offset: record.offset,
            },
            _ => KernelWait::Meeting {
                pe: record.peer as usize,
            },
        };
        let (pe, expected) = (record.pe as usize, record.expected);
        Err(match gone.checked_sub(1) {
            Some(gone) => SyncError::Left(KernelLeft {
                pe,
                gone: gone as usize,
                wait,
                expected,
            }),
            None => SyncError::Timeout(KernelTimeout {
                pe,
                wait,
                expected,
                seen: record.seen,
                limit: self.limit.unwrap_or_default(),
            }),
        })
    }
}
