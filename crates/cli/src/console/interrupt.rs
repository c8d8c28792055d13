//! Ctrl-C and SIGTERM: the first asks the solve to stop in good order, the second ends at once.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crosswarp::shmem::internal::is_ignored;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether a signal came, and which.
#[derive(Clone, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

static INSTALLED: OnceLock<Interrupt> = OnceLock::new();

impl Interrupt {
    /// Takes over SIGINT and SIGTERM of this process, except what it was started to ignore: a script's shell starts
    /// background jobs so, which Ctrl-C is not meant for.
    ///
    /// # Errors
    /// The system's, if it refuses the handlers.
    pub fn install() -> io::Result<&'static Self> {
        let this = INSTALLED.get_or_init(Self::default);
        let heeded = [SIGINT, SIGTERM]
            .into_iter()
            .filter(|&signal| !is_ignored(signal));
        for signal in heeded {
            // In this order: a handler that finds the flag raised ends the process.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&this.raised))?;
            flag::register_usize(signal, Arc::clone(&this.signal), signal as usize)?;
            flag::register(signal, Arc::clone(&this.raised))?;
        }
        Ok(this)
    }

    /// Whether a signal has come that would have ended a process without handlers.
    pub fn has_come() -> bool {
        INSTALLED.get().is_some_and(|this| this.signal().is_some())
    }

    /// The flag that a solve watches.
    pub fn flag(&self) -> &AtomicBool {
        &self.raised
    }

    /// Asks for the same as a signal does.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}
