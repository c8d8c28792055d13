//! Whether a stream may have work that nobody has waited for. Several threads give it some and wait for it.

use std::sync::atomic::{AtomicU64, Ordering};

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// How often the stream was given work.
    given: AtomicU64,
    /// Up to which of these it has been waited for.
    done: AtomicU64,
}

/// What a wait that begins waits for.
#[must_use]
pub(crate) struct Begun(u64);

impl UnderWay {
    /// The stream was given work. Called afterwards, or a wait in between would be taken for one that has seen it.
    pub(crate) fn has_given(&self) {
        // Release: who sees the number gives or waits after the work was given.
        self.given.fetch_add(1, Ordering::Release);
    }

    /// A wait begins.
    pub(crate) fn begins(&self) -> Begun {
        Begun(self.given.load(Ordering::Acquire))
    }

    /// It has ended.
    pub(crate) fn ends(&self, begun: Begun) {
        self.done.fetch_max(begun.0, Ordering::Release);
    }

    /// Whether there may be some that this thread has given, or another one that it has heard from.
    pub(crate) fn is_any(&self) -> bool {
        // In this order: more may be given in between, but none that this thread knows of.
        let done = self.done.load(Ordering::Acquire);
        self.given.load(Ordering::Acquire) != done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wait_that_has_ended_counts_and_only_for_what_was_given_before_it() {
        let work = UnderWay::default();
        assert!(!work.is_any());
        work.has_given();
        let (first, second) = (work.begins(), work.begins());
        // Another thread is waiting for it.
        assert!(work.is_any());
        work.has_given();
        work.ends(second);
        assert!(work.is_any());
        let last = work.begins();
        work.ends(last);
        assert!(!work.is_any());
        // A wait that began before.
        work.ends(first);
        assert!(!work.is_any());
    }
}
