//! The signals the launcher hears of.

use super::LaunchError;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Origin;
use std::sync::mpsc::{Receiver, channel};

/// Signals, as they come in.
pub(super) struct Events {
    pub(super) receiver: Receiver<Origin>,
    handle: signal_hook::iterator::Handle,
}

impl Events {
    /// Hears of children that end and of the signals that are passed on, except those this process
    /// ignores (under `nohup`, say): PEs ignore them too, and a handler of ours would end that.
    pub(super) fn watch() -> Result<Self, LaunchError> {
        let ignored = ignored_signals();
        let passed_on = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]
            .into_iter()
            .filter(|signal| ignored >> (signal - 1) & 1 == 0);
        let all = passed_on.chain([SIGCHLD]);
        let mut signals = SignalsInfo::<WithOrigin>::new(all).map_err(LaunchError::Signals)?;
        let handle = signals.handle();
        let (sender, receiver) = channel();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                for origin in signals.forever() {
                    if sender.send(origin).is_err() {
                        return;
                    }
                }
            })
            .map_err(LaunchError::Signals)?;
        Ok(Self { receiver, handle })
    }

    /// Whether a signal to end has come that nobody has looked at yet.
    pub(super) fn asked_to_end(&self) -> bool {
        self.receiver.try_iter().any(|origin| is_end(origin.signal))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.handle.close();
    }
}

pub(super) fn is_end(signal: i32) -> bool {
    matches!(signal, SIGINT | SIGTERM | SIGHUP | SIGQUIT)
}

/// The signals this process ignores, as a mask with signal 1 in bit 0 (`SigIgn` of proc(5)).
/// None where that can not be read.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
