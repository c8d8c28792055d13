//! Waiting: spin briefly, then yield, then sleep; say what is waited for; give up when told to.

use crate::memory::position::Place;
use crate::wait::parker::Watched;
use crate::world::control::{Control, PeState};
use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How to compare the value waited on with the one given; as in OpenSHMEM's `SHMEM_CMP_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl Cmp {
    /// Whether `seen` stands in this relation to `expected`.
    #[inline]
    pub fn holds<T: PartialOrd>(self, seen: T, expected: T) -> bool {
        match self {
            Self::Eq => seen == expected,
            Self::Ne => seen != expected,
            Self::Gt => seen > expected,
            Self::Ge => seen >= expected,
            Self::Lt => seen < expected,
            Self::Le => seen <= expected,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Lt => "<",
            Self::Le => "<=",
        }
    }

    fn from_index(index: u64) -> Self {
        [Self::Eq, Self::Ne, Self::Gt, Self::Ge, Self::Lt, Self::Le][(index % 6) as usize]
    }
}

/// What a PE waits for. Its `Display` is what warnings, errors and the launcher show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The `number`-th rendezvous of all PEs (barrier, sync or any other collective); `pe` is missing.
    Collective {
        /// Counts the collectives of the world from 1.
        number: u64,
        /// The PE that has not come.
        pe: usize,
    },
    /// A value in this PE's symmetric memory.
    Value {
        /// Byte offset of the value in the heap; from 2^46 on, in the registered segments.
        offset: usize,
        /// The comparison that must hold.
        cmp: Cmp,
        /// The value compared with (two's complement).
        expected: u64,
        /// Whether the value is of a signed type.
        signed: bool,
    },
    /// A lock.
    Lock {
        /// Byte offset of its word in the heap.
        offset: usize,
    },
    /// One or some of several values in this PE's symmetric heap.
    Values {
        /// Byte offset of the first in the heap.
        offset: usize,
        /// How many there are, those left out included.
        count: usize,
        /// The comparison that must hold.
        cmp: Cmp,
    },
}

impl Wait {
    pub(crate) fn to_words(self) -> [u64; 4] {
        match self {
            Self::Collective { number, pe } => [1, number, pe as u64, 0],
            Self::Value {
                offset,
                cmp,
                expected,
                signed,
            } => [
                if signed { 5 } else { 2 },
                offset as u64,
                cmp as u64,
                expected,
            ],
            Self::Lock { offset } => [4, offset as u64, 0, 0],
            Self::Values { offset, count, cmp } => [3, offset as u64, cmp as u64, count as u64],
        }
    }

    fn watched(self) -> Watched {
        match self {
            Self::Collective { .. } => Watched::Arrivals,
            Self::Value { offset, .. } | Self::Lock { offset } => Watched::Word(offset),
            Self::Values { .. } => Watched::Anything,
        }
    }

    /// `None` for words that no wait wrote: the PE never waited.
    pub(crate) fn from_words(words: [u64; 4]) -> Option<Self> {
        match words {
            [1, number, pe, _] => Some(Self::Collective {
                number,
                pe: pe as usize,
            }),
            [tag @ (2 | 5), offset, cmp, expected] => Some(Self::Value {
                offset: offset as usize,
                cmp: Cmp::from_index(cmp),
                expected,
                signed: tag == 5,
            }),
            [4, offset, ..] => Some(Self::Lock {
                offset: offset as usize,
            }),
            [3, offset, cmp, count] => Some(Self::Values {
                offset: offset as usize,
                count: count as usize,
                cmp: Cmp::from_index(cmp),
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collective { number, pe } => write!(f, "collective #{number} for PE {pe}"),
            Self::Value {
                offset,
                cmp,
                expected,
                signed,
            } => {
                let place = Place("value", *offset);
                match signed {
                    true => write!(f, "{place} to be {} {}", cmp.symbol(), *expected as i64),
                    false => write!(f, "{place} to be {} {expected}", cmp.symbol()),
                }
            }
            Self::Lock { offset } => Place("lock", *offset).fmt(f),
            Self::Values { offset, count, cmp } => write!(
                f,
                "any of {count} values, the first of them {}, to be {} what it should",
                Place("value", *offset),
                cmp.symbol()
            ),
        }
    }
}

/// A wait that can not, or may no longer, succeed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum WaitError {
    /// The configured time has passed.
    #[error("PE {me} waited {seconds:.1} s in vain for {wait}")]
    TimedOut {
        /// The PE that waited.
        me: usize,
        /// What it waited for.
        wait: Wait,
        /// How long, in seconds, rounded to tenths.
        seconds: TenthSeconds,
    },
    /// A PE failed, and with it the world.
    #[error("PE {pe} failed while PE {me} waited for {wait}")]
    PeerFailed {
        /// The PE that waited.
        me: usize,
        /// The PE that failed.
        pe: usize,
        /// What was waited for.
        wait: Wait,
    },
    /// The PE waited for has left the world in good order; it will not come any more.
    #[error("PE {pe} has left the world, but PE {me} waits for {wait}")]
    PeerLeft {
        /// The PE that waited.
        me: usize,
        /// The PE that left.
        pe: usize,
        /// What was waited for.
        wait: Wait,
    },
    /// Somebody wants this thread back: see [`interruptible`].
    #[error("PE {me} was interrupted while it waited for {wait}")]
    Interrupted {
        /// The PE that waited.
        me: usize,
        /// What it waited for.
        wait: Wait,
    },
    /// The launcher is gone, so nobody watches the PEs any more.
    #[error("the launcher ended while PE {me} waited for {wait}")]
    LauncherGone {
        /// The PE that waited.
        me: usize,
        /// What was waited for.
        wait: Wait,
    },
}

thread_local! {
    static WANTED_BACK: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// Does `work`, in which waits of this thread end with [`WaitError::Interrupted`] once `is_wanted_back` says so, which
/// is asked about ten times a second while one lasts. For interpreters, which have signals to handle.
///
/// A collective that was interrupted is one that this PE has not come to: it should [leave](crate::Pe::leave), or end.
///
/// ```
/// use crosswarp_shmem::{Cmp, WaitError, interruptible, spmd};
///
/// let seen = spmd(1, |pe| {
///     let word = pe.alloc_zeroed::<u64>(1)?;
///     Ok::<_, crosswarp_shmem::Error>(interruptible(|| true, || pe.wait_until(word.at(0), Cmp::Eq, 1)))
/// })
/// .unwrap();
/// assert!(matches!(seen[0], Ok(Err(WaitError::Interrupted { me: 0, .. }))));
/// ```
pub fn interruptible<R>(is_wanted_back: fn() -> bool, work: impl FnOnce() -> R) -> R {
    struct Before(Option<fn() -> bool>);
    impl Drop for Before {
        fn drop(&mut self) {
            WANTED_BACK.set(self.0);
        }
    }
    let _before = Before(WANTED_BACK.replace(Some(is_wanted_back)));
    work()
}

/// Seconds in tenths, so that errors compare equal and print shortly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenthSeconds(u64);

impl fmt::Display for TenthSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0 as f64 / 10.0).fmt(f)
    }
}

impl From<Duration> for TenthSeconds {
    fn from(duration: Duration) -> Self {
        Self((duration.as_millis() / 100) as u64)
    }
}

/// After how long a wait is named in a warning.
const WARN_AFTER: Duration = Duration::from_secs(30);
/// Spins before a wait is recorded.
const BRIEF_SPINS: u32 = 20;
/// The longest sleep between two looks at the membership.
const HEARTBEAT: Duration = Duration::from_millis(100);
/// The shortest sleep. Nobody wakes a sleeper for a plain store, be it of another thread of this PE or of
/// another PE through a pointer. So sleeps are half as long as the wait so far: such a store is seen after
/// at most half as long again, at the price of a handful of awakenings.
const FIRST_NAP: Duration = Duration::from_micros(200);

/// How a PE waits: the two limits before it sleeps, fixed when the world starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    spins: u32,
    yields: u32,
    /// Give up after this long; `None`: never.
    pub(crate) timeout: Option<Duration>,
}

impl Patience {
    /// Spinning pays only if the PE waited for can run meanwhile, on a core of its own.
    /// A spin is a `pause` of 20-140 cycles by processor, so 2000 are 20-70 µs, about the cost of
    /// sleeping and being woken: at worst twice the best choice in hindsight (the ski-rental rule).
    ///
    /// `hosts`: of the world. With several the agent needs a core at the time when PEs wait for what it brings, and
    /// a yield costs less than half a microsecond where nobody else wants the core.
    pub(crate) fn new(n_pes: usize, hosts: usize, timeout: Option<Duration>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (spins, yields) = if hosts > 1 {
            (20, 100)
        } else if n_pes <= cores {
            (2000, 20)
        } else {
            (20, 100)
        };
        Self {
            spins,
            yields,
            timeout,
        }
    }
}

/// What a PE has issued and not sent.
pub(crate) trait Unsent {
    /// Sends it.
    fn send_waiting(&self);
}

/// A PE about to wait.
#[derive(Clone, Copy)]
pub(crate) struct Waiter<'a> {
    pub(crate) control: &'a Control,
    pub(crate) me: usize,
    pub(crate) shared: bool,
    pub(crate) patience: Patience,
    /// What this PE has put at other hosts leaves before it waits.
    pub(crate) unsent: Option<&'a dyn Unsent>,
}

impl Waiter<'_> {
    /// Waits until `look` returns something. `wait` names it.
    ///
    /// `look` must read what `wait` names, with Acquire; whoever makes it true must afterwards notify
    /// this PE's parker.
    #[inline]
    pub(crate) fn until<R>(
        &self,
        wait: impl Fn() -> Wait,
        mut look: impl FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        if let Some(found) = look() {
            return Ok(found);
        }
        // The usual wait is over before there is anything to tell of it.
        for _ in 0..self.patience.spins.min(BRIEF_SPINS) {
            std::hint::spin_loop();
            if let Some(found) = look() {
                return Ok(found);
            }
        }
        self.wait_on(wait, look)
    }

    #[inline(never)]
    fn wait_on<R>(
        &self,
        wait: impl Fn() -> Wait,
        look: impl FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        if let Some(unsent) = self.unsent {
            unsent.send_waiting();
        }
        let record = |words| self.control.pe(self.me).record_wait(words);
        record(wait().to_words());
        let found = self.wait_recorded(wait, look);
        // What did not come stays on record: it may be why this PE ends.
        if found.is_ok() {
            record([0; 4]);
        }
        found
    }

    fn wait_recorded<R>(
        &self,
        wait: impl Fn() -> Wait,
        mut look: impl FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        // Only where it may spin: others must know, and it must know of them.
        let processor = (self.patience.spins > BRIEF_SPINS).then(rustix::thread::sched_getcpu);
        let me = self.control.pe(self.me);
        me.record_awake(processor);
        let found = self.stay_awake(processor, &mut look);
        me.record_awake(None);
        match found {
            Some(found) => Ok(found),
            None => self.sleep_until(wait(), look),
        }
    }

    /// Spins, then yields, on `processor`; yields at once if another PE waits awake on that very processor.
    ///
    /// Where strangers keep cores busy, the system may put two PEs on one, and leaves them there: they look as busy.
    /// Each would then spin to the end before the other runs, 50 µs a message; yielding takes 2 (`bench/results`).
    fn stay_awake<R>(
        &self,
        processor: Option<usize>,
        mut look: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let n_pes = self.control.n_pes();
        let mut other = self.me;
        for _ in BRIEF_SPINS..self.patience.spins {
            std::hint::spin_loop();
            if let Some(found) = look() {
                return Some(found);
            }
            // One a turn, so that there is little between two looks however many they are.
            other = if other + 1 < n_pes { other + 1 } else { 0 };
            if other != self.me && self.control.pe(other).is_awake_on(processor) {
                break;
            }
        }
        (0..self.patience.yields).find_map(|_| {
            rustix::thread::sched_yield();
            look()
        })
    }

    #[cold]
    fn sleep_until<R>(
        &self,
        wait: Wait,
        mut look: impl FnMut() -> Option<R>,
    ) -> Result<R, WaitError> {
        let start = Instant::now();
        let mut warned = false;
        loop {
            let mut found = None;
            let waited = start.elapsed();
            let left = self
                .patience
                .timeout
                .map(|limit| limit.saturating_sub(waited));
            let nap = (waited / 2).clamp(FIRST_NAP, HEARTBEAT);
            let nap = left.map_or(nap, |left| left.min(nap));
            self.control
                .pe(self.me)
                .parker
                .sleep(wait.watched(), self.shared, nap, || {
                    found = look();
                    // An end of the world wakes sleepers once; one who comes later must not sleep.
                    found.is_some() || self.control.ended_by().is_some()
                });
            if let Some(found) = found.or_else(&mut look) {
                return Ok(found);
            }
            if let Some(error) = self.hopeless(wait) {
                // What was waited for may have come true just before the peer ended.
                return look().ok_or(error);
            }
            if WANTED_BACK
                .get()
                .is_some_and(|is_wanted_back| is_wanted_back())
            {
                return Err(WaitError::Interrupted { me: self.me, wait });
            }
            let waited = start.elapsed();
            if left.is_some_and(|left| left.is_zero()) {
                return Err(WaitError::TimedOut {
                    me: self.me,
                    wait,
                    seconds: waited.into(),
                });
            }
            if !warned && waited >= WARN_AFTER {
                warned = true;
                warn(&format!(
                    "PE {} has waited {} s for {wait}",
                    self.me,
                    WARN_AFTER.as_secs()
                ));
            }
        }
    }

    /// Why `wait` can not succeed any more, if so.
    fn hopeless(&self, wait: Wait) -> Option<WaitError> {
        let me = self.me;
        if let Some(pe) = self.control.ended_by() {
            return Some(WaitError::PeerFailed { me, pe, wait });
        }
        let left = |pe: usize| self.control.pe(pe).state() == PeState::Finished;
        let gone = match wait {
            Wait::Collective { pe, .. } => left(pe).then_some(pe),
            // Anyone may still write the value, so it is hopeless only when all others have left.
            // A PE alone may wait for another of its threads.
            Wait::Value { .. } | Wait::Values { .. } | Wait::Lock { .. } => {
                let mut others = (0..self.control.n_pes()).filter(|&pe| pe != me);
                let first = others.next();
                first.filter(|&pe| left(pe) && others.all(left))
            }
        };
        if let Some(pe) = gone {
            return Some(WaitError::PeerLeft { me, pe, wait });
        }
        launcher_gone(self.control).then_some(WaitError::LauncherGone { me, wait })
    }
}

fn launcher_gone(control: &Control) -> bool {
    let pid = control
        .header()
        .launcher_pid
        .load(crate::wait::sync::Ordering::Relaxed);
    match rustix::process::Pid::from_raw(pid as i32) {
        None => false, // a world of threads has no launcher
        Some(pid) => rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH),
    }
}

/// A warning must not get lost because nobody installed a subscriber.
fn warn(message: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!("{message}");
    } else {
        eprintln!("crosswarp: warning: {message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::position::STATIC;

    #[test]
    fn waits_survive_the_trip_through_the_control_memory() {
        let collective = Wait::Collective { number: 41, pe: 3 };
        let value = Wait::Value {
            offset: 64,
            cmp: Cmp::Le,
            expected: u64::MAX,
            signed: false,
        };
        let below = Wait::Value {
            offset: 64,
            cmp: Cmp::Lt,
            expected: u64::MAX,
            signed: true,
        };
        let values = Wait::Values {
            offset: 8,
            count: 3,
            cmp: Cmp::Ge,
        };
        for wait in [collective, value, below, values, Wait::Lock { offset: 8 }] {
            assert_eq!(Wait::from_words(wait.to_words()), Some(wait));
        }
        assert_eq!(Wait::from_words([0; 4]), None);
        assert_eq!(collective.to_string(), "collective #41 for PE 3");
        assert_eq!(
            value.to_string(),
            "the value at heap offset 64 to be <= 18446744073709551615"
        );
        assert_eq!(below.to_string(), "the value at heap offset 64 to be < -1");
        let lock = Wait::Lock {
            offset: STATIC + 24,
        };
        assert_eq!(lock.to_string(), "the lock at byte 24 of the static data");
    }

    /// PE 0 of two, on one processor of its choice, waits for what comes at its look number 500. How many looks it
    /// takes awake, where PE 1 waits awake on that processor, on another, or not.
    #[cfg(not(loom))]
    #[test]
    fn spinning_ends_where_another_pe_waits_awake_on_the_same_processor() {
        use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
        let here = sched_getcpu();
        let mut only = CpuSet::new();
        only.set(here);
        sched_setaffinity(None, &only).unwrap();
        let region = crate::memory::region::Region::anonymous(Control::bytes(2), false).unwrap();
        let control = Control::create(region, 2, 0, 0);
        let waiter = Waiter {
            control: &control,
            me: 0,
            shared: false,
            patience: Patience {
                spins: 1000,
                yields: 3,
                timeout: None,
            },
            unsent: None,
        };
        for (other, looks) in [(None, 500), (Some(here + 1), 500), (Some(here), 1 + 3)] {
            control.pe(1).record_awake(other);
            let (mut looked, mut seen) = (0, false);
            let found = waiter.stay_awake(Some(here), || {
                looked += 1;
                (looked == 500).then_some(())
            });
            assert_eq!(
                (looked, found.is_some()),
                (looks, looks == 500),
                "{other:?}"
            );
            // While it waits, PE 1 finds it there, and not after that.
            waiter
                .wait_on(
                    || Wait::Lock { offset: 0 },
                    || {
                        seen |= control.pe(0).is_awake_on(Some(here));
                        seen.then_some(())
                    },
                )
                .unwrap();
            assert!(seen && !control.pe(0).is_awake_on(Some(here)));
        }
    }

    #[test]
    fn comparisons_follow_the_specification() {
        for (cmp, holds) in [
            (Cmp::Eq, [false, true, false]),
            (Cmp::Ne, [true, false, true]),
            (Cmp::Gt, [false, false, true]),
            (Cmp::Ge, [false, true, true]),
            (Cmp::Lt, [true, false, false]),
            (Cmp::Le, [true, true, false]),
        ] {
            assert_eq!([-1, 0, 1].map(|seen| cmp.holds(seen, 0)), holds, "{cmp:?}");
        }
    }
}
