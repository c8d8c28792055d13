//! The one place atomics, fences, parking and the cells that atomics guard come from, so that `loom` can swap them
//! (`RUSTFLAGS="--cfg loom" cargo test -p crosswarp-shmem --lib loom --release`).

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// Plain data that atomics guard. As [`std::cell::UnsafeCell`] it costs nothing; in a model each look is one at which
/// `loom` reports a missing ordering as a data race. A pointer may be used after the look that gave it as long
/// as the access itself would be in order, for what the model checks is who happened before the look.
#[cfg(not(loom))]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// For reading.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get().cast_const())
    }

    /// For writing.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// The light half of an asymmetric fence: orders this thread's earlier stores before its later
/// loads *as seen by a thread that runs [`heavy_fence`]* between its own store and load.
///
/// It costs nothing: `membarrier` on the other side interrupts every running thread of the world,
/// which is a full fence at whatever point this thread had reached. Only the compiler must be kept
/// from moving the load up.
#[inline(always)]
pub(crate) fn light_fence() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    // loom has no membarrier: both halves become full fences, which is what the pair amounts to.
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// The heavy half: a full fence here and on every running thread of the world.
/// Returns `false` if the kernel offers none; the caller must then bound its sleep.
pub(crate) fn heavy_fence(shared: bool) -> bool {
    #[cfg(not(loom))]
    {
        use rustix::thread::{MembarrierCommand, membarrier};
        std::sync::atomic::fence(Ordering::SeqCst);
        let command = if shared {
            MembarrierCommand::GlobalExpedited
        } else {
            MembarrierCommand::PrivateExpedited
        };
        membarrier(command).is_ok()
    }
    #[cfg(loom)]
    {
        let _ = shared;
        loom::sync::atomic::fence(Ordering::SeqCst);
        true
    }
}

/// Registers this process for [`heavy_fence`] from other processes (`shared`) or its own threads.
/// Failure is not an error: the fence then reports itself missing and sleeps are bounded.
#[cfg(not(loom))]
pub(crate) fn register_heavy_fence(shared: bool) {
    use rustix::thread::{MembarrierCommand, membarrier};
    let command = if shared {
        MembarrierCommand::RegisterGlobalExpedited
    } else {
        MembarrierCommand::RegisterPrivateExpedited
    };
    let _ = membarrier(command);
}

#[cfg(loom)]
pub(crate) fn register_heavy_fence(_shared: bool) {}
