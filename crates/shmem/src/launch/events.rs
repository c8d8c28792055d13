//! What the launcher hears of: signals, and PEs that have joined although it did not start them itself.

use super::LaunchError;
use super::hosts::words::{News, Order};
use super::signal_mask;
use crate::memory::register::agent_maps;
use crate::world::lifeline::{Sent, receive};
use crate::world::mapped::Mapped;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{Shutdown, shutdown};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Origin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Signals that are passed on to the PEs.
const PASSED_ON: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// One thing the launcher has heard of.
pub(super) enum Event {
    /// A signal, with who sent it.
    Signal(Origin),
    /// A process between which and the launcher there is another (a shell, say) has joined as `pe`.
    Joined {
        pe: usize,
        /// Its pidfd, which it has opened itself: it never means another process.
        process: Arc<OwnedFd>,
    },
    /// That process has ended.
    Gone { pe: usize },
    /// The launcher of all hosts has said something.
    Order(Order),
    /// A host has, to that launcher.
    News(usize, News),
}

/// Events, as they come in.
pub(super) struct Events {
    pub(super) receiver: Receiver<Event>,
    sender: Sender<Event>,
    /// The signals heard of, SIGCHLD among them.
    pub(super) watched: Vec<i32>,
    signals: signal_hook::iterator::Handle,
    lifeline: Arc<OwnedFd>,
}

impl Events {
    /// Hears of children that end, of what comes through `lifeline`, and of the signals that are passed
    /// on, except those this process ignores (under `nohup`, say): PEs ignore them too, and a handler
    /// of ours would end that.
    /// `agent`: the memory of a host in a world of several, which gets the segments of its PEs.
    pub(super) fn watch(
        lifeline: &Arc<OwnedFd>,
        agent: Option<Arc<Mapped>>,
    ) -> Result<Self, LaunchError> {
        let passed_on = PASSED_ON
            .into_iter()
            .filter(|&signal| !signal_mask::is_ignored(signal));
        let watched: Vec<i32> = passed_on.chain([SIGCHLD]).collect();
        let mut signals = SignalsInfo::<WithOrigin>::new(&watched).map_err(LaunchError::Watch)?;
        let (sender, receiver) = channel();
        let this = Self {
            receiver,
            sender: sender.clone(),
            watched: watched.clone(),
            signals: signals.handle(),
            lifeline: Arc::clone(lifeline),
        };
        let heard = sender.clone();
        let (takes_signals, ready) = channel();
        start("signals", move || {
            // Whoever started this process may have left signals blocked, in every thread of it. One
            // thread that takes them is enough. Those that have come before come now.
            signal_mask::unblock(&watched);
            for origin in signals.pending() {
                let _ = heard.send(Event::Signal(origin));
            }
            let _ = takes_signals.send(());
            for origin in signals.forever() {
                if heard.send(Event::Signal(origin)).is_err() {
                    return;
                }
            }
        })?;
        // What has come before the run ends it before a PE is started.
        let _ = ready.recv();
        let near = Arc::clone(lifeline);
        start("joins", move || {
            hear_of_joins(&near, agent.as_deref(), &sender)
        })?;
        Ok(this)
    }

    /// For others who hear of something.
    pub(super) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// Whether a signal to end has come that nobody has looked at yet.
    pub(super) fn asked_to_end(&self) -> bool {
        let mut signals = self.receiver.try_iter();
        signals.any(|event| matches!(event, Event::Signal(origin) if is_end(origin.signal)))
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), LaunchError> {
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn(work).map_err(LaunchError::Watch)?;
    Ok(())
}

/// Until the lifeline is shut down.
fn hear_of_joins(lifeline: &OwnedFd, agent: Option<&Mapped>, heard: &Sender<Event>) {
    let mut joined: Vec<(usize, Arc<OwnedFd>)> = Vec::new();
    loop {
        let processes = joined.iter().map(|(_, process)| process.as_fd());
        let all = std::iter::once(lifeline.as_fd()).chain(processes);
        let mut watched: Vec<_> = all
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        if rustix::io::retry_on_intr(|| poll(&mut watched, None)).is_err() {
            return;
        }
        // A pidfd is readable once its process has ended.
        let news: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = news[1..].iter();
        joined.retain(|&(pe, _)| {
            let gone = ended.next() == Some(&true);
            !(gone && heard.send(Event::Gone { pe }).is_ok())
        });
        if !news[0] {
            continue;
        }
        match receive(lifeline.as_fd()) {
            Ok(Some(Sent::Joined { pe, process })) => {
                let process = Arc::new(process);
                joined.push((pe, Arc::clone(&process)));
                if heard.send(Event::Joined { pe, process }).is_err() {
                    return;
                }
            }
            Ok(Some(Sent::Segment {
                pe,
                position,
                len,
                memory,
            })) => {
                if let Some(agent) = agent.filter(|agent| pe < agent.control.n_pes()) {
                    agent_maps(agent, pe, (position, len), memory.as_fd());
                }
            }
            Ok(Some(Sent::Nothing)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.signals.close();
        // Ends the thread that reads it, and every PE that still watches the other end.
        let _ = shutdown(&*self.lifeline, Shutdown::Both);
    }
}

pub(super) fn is_end(signal: i32) -> bool {
    matches!(signal, SIGINT | SIGTERM | SIGHUP | SIGQUIT)
}
