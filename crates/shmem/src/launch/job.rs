//! The running PEs: who has ended, what that means for the others, and how they are told.
//!
//! A process is signalled in two ways only, neither of which can hit a stranger: a child by its number,
//! which is its own until it is reaped here, and a PE that another process (a shell, say) has started by the
//! pidfd that it sent when it joined.

use super::Ended;
use super::events::{Event, Events, is_end};
use super::hosts::link::Link;
use super::hosts::words::{Order, Report};
use crate::wait::waiter::Wait;
use crate::world::control::{Control, PeState};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process, pidfd_send_signal};
use signal_hook::consts::SIGCHLD;
use signal_hook::low_level::siginfo::{Cause, Origin};
use std::ops::Range;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How long PEs may take to end after a failure, and between two SIGKILLs.
const SHORT: Duration = Duration::from_millis(300);

/// The PEs of this host that have been started.
pub(super) struct Job {
    /// This host's PEs. What is kept of each stands in their order.
    pes: Range<usize>,
    /// The launcher of all hosts, if there are several.
    root: Option<Link>,
    /// `None` once reaped.
    children: Vec<Option<Child>>,
    /// What has joined without being our child.
    joined: Vec<Option<Arc<OwnedFd>>>,
    /// PEs of those that have ended, and until when what has started them may say how.
    gone: Vec<(usize, Instant)>,
    pub(super) control: Control,
    pub(super) failure: Option<Ended>,
    /// How long PEs may take to end after the first signal to end.
    grace: Duration,
    /// The first signal to end.
    asked: Option<Asked>,
    /// Whether the run is ending for a reason of its own: a failure, a time limit, a PE's wish.
    ending: bool,
    /// When those still running get SIGKILL.
    kill_at: Option<Instant>,
    /// Whether they got it.
    killed: bool,
}

#[derive(Clone, Copy)]
struct Asked {
    signal: i32,
    /// Whether the terminal has sent it to the PEs as well.
    by_terminal: bool,
}

impl Job {
    pub(super) fn new(control: Control, grace: Duration) -> Self {
        let pes = 0..control.n_pes();
        Self::of_host(control, grace, pes, None)
    }

    /// Of one of several hosts, with these PEs.
    pub(super) fn of_host(
        control: Control,
        grace: Duration,
        pes: Range<usize>,
        root: Option<Link>,
    ) -> Self {
        Self {
            children: Vec::with_capacity(pes.len()),
            joined: pes.clone().map(|_| None).collect(),
            pes,
            root,
            gone: Vec::new(),
            control,
            failure: None,
            grace,
            asked: None,
            ending: false,
            kill_at: None,
            killed: false,
        }
    }

    /// This host's PEs.
    pub(super) fn pes(&self) -> Range<usize> {
        self.pes.clone()
    }

    /// What is kept of `pe`; `None`: it is of another host.
    fn index(&self, pe: usize) -> Option<usize> {
        self.pes.contains(&pe).then(|| pe - self.pes.start)
    }

    /// Notes that a PE of this host will not come any more, on every host.
    fn finished(&self, pe: usize) {
        let control = self.control.pe(pe);
        // One that has left has told the other hosts, behind all else that it sent them.
        let told = control.state() == PeState::Finished;
        control.set_state(PeState::Finished);
        self.control.wake_all(true);
        if !told {
            self.tell(&Report::Left { pe });
        }
    }

    fn tell(&self, report: &Report) {
        if let Some(root) = &self.root {
            root.tell(report);
        }
    }

    /// Takes charge of the next PE.
    pub(super) fn add(&mut self, child: Child) {
        self.children.push(Some(child));
    }

    /// The signal to end that has come, if one has.
    pub(super) fn asked(&self) -> Option<i32> {
        self.asked.map(|asked| asked.signal)
    }

    /// Sees to what has happened so far. Returns whether the run goes on.
    pub(super) fn goes_on(&mut self, events: &Events) -> bool {
        while let Ok(event) = events.receiver.try_recv() {
            self.hear(event);
        }
        !self.ending && self.asked.is_none()
    }

    /// After the start of PEs was cut short: nobody waits for those that were never started.
    pub(super) fn give_up_on_the_rest(&self) {
        for pe in self.pes.start + self.children.len()..self.pes.end {
            self.finished(pe);
        }
    }

    /// Waits until every PE has ended. Returns the last waits if `limit` passed before.
    pub(super) fn watch(
        &mut self,
        events: &Events,
        limit: Option<Instant>,
    ) -> Option<Vec<(usize, Option<Wait>)>> {
        let mut timed_out = None;
        loop {
            self.reap_ended();
            if self.children.iter().all(Option::is_none) {
                return timed_out;
            }
            let now = Instant::now();
            if self.kill_at.is_some_and(|at| now >= at) {
                self.kill();
            }
            // A run that is ending already has its reason.
            let ends = self.ending || self.asked.is_some();
            if !ends && limit.is_some_and(|limit| now >= limit) {
                timed_out = Some(self.last_waits());
                self.end(None);
            }
            self.give_up_on_the_gone(now);
            let limit = limit.filter(|_| !ends);
            let decision = self.gone.iter().map(|&(_, until)| until).min();
            let next = [self.kill_at, limit, decision].into_iter().flatten().min();
            let pause = match next {
                Some(at) => at.saturating_duration_since(now),
                None => Duration::from_secs(3600),
            };
            match events.receiver.recv_timeout(pause) {
                Ok(event) => self.hear(event),
                Err(RecvTimeoutError::Timeout) => {}
                // The threads are gone, which only a panic in them could do; keep reaping.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(SHORT),
            }
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Signal(origin) if origin.signal == SIGCHLD => self.reap_ended(),
            Event::Signal(origin) => self.pass_on(&origin),
            Event::Joined { pe, process } => self.has_joined(pe, process),
            Event::Gone { pe } => self.gone.push((pe, Instant::now() + SHORT)),
            Event::Order(order) => self.obey(order),
            Event::News(..) => {}
        }
    }

    /// Does what the launcher of all hosts says.
    fn obey(&mut self, order: Order) {
        match order {
            Order::Signal { signal } => self.signal_came(signal, false),
            Order::Left { pe } => {
                self.control.pe(pe).set_state(PeState::Finished);
                self.control.wake_all(true);
            }
            Order::End { culprit } => {
                if let Some(pe) = culprit {
                    self.control.pe(pe).set_state(PeState::Failed);
                    self.control.end(pe, true);
                }
                if !self.ending && self.asked.is_none() {
                    self.tell_waits();
                    self.end(None);
                }
            }
            Order::Kill => {
                // After a first signal a second one is how the PEs end, which the exit code says.
                self.ending |= self.asked.is_none();
                self.kill();
            }
            Order::Start { .. } | Order::Beat => {}
        }
    }

    /// What PEs still running wait for, for whoever ends them.
    fn tell_waits(&self) {
        for (pe, wait) in self.last_waits() {
            self.tell(&Report::Waits { pe, wait });
        }
    }

    /// Passes a signal on, unless the terminal has sent it to the PEs as well. The first signal to end
    /// begins the grace; the second ends it.
    fn pass_on(&mut self, origin: &Origin) {
        self.signal_came(origin.signal, origin.cause == Cause::Kernel);
    }

    fn signal_came(&mut self, number: i32, by_terminal: bool) {
        let end = is_end(number);
        if end && self.asked.is_some() {
            self.kill();
            return;
        }
        if !by_terminal && let Some(signal) = Signal::from_named_raw(number) {
            self.signal_all(signal);
        }
        if end {
            self.asked = Some(Asked {
                signal: number,
                by_terminal,
            });
            // One that is stopped can not handle it.
            self.signal_all(Signal::CONT);
            self.kill_within(self.grace);
        }
    }

    /// `process` is PE `pe`. What the others have been told before is news to it.
    fn has_joined(&mut self, pe: usize, process: Arc<OwnedFd>) {
        let Some(index) = self.index(pe) else {
            return;
        };
        let parent_runs = self.children.get(index).is_some_and(Option::is_some);
        let asked = self.asked.filter(|asked| !asked.by_terminal);
        let late = if self.killed || !parent_runs {
            Some(Signal::KILL)
        } else if self.ending {
            Some(Signal::TERM)
        } else {
            asked.and_then(|asked| Signal::from_named_raw(asked.signal))
        };
        if let Some(signal) = late {
            let _ = pidfd_send_signal(&process, signal);
        }
        self.joined[index] = Some(process);
    }

    /// A PE whose process has ended while the shell that started it runs on: how it ended, nobody says,
    /// but nobody should wait for it.
    fn give_up_on_the_gone(&mut self, now: Instant) {
        let (due, rest) = self.gone.iter().partition(|&&(_, until)| until <= now);
        self.gone = rest;
        let due: Vec<(usize, Instant)> = due;
        for (pe, _) in due {
            let child = self.index(pe).and_then(|index| self.children.get(index));
            let shell_runs = child.is_some_and(Option::is_some);
            if shell_runs && self.control.pe(pe).state() == PeState::Joined {
                self.finished(pe);
            }
        }
    }

    /// Collects PEs that have ended and decides what that means for the others.
    fn reap_ended(&mut self) {
        for index in 0..self.children.len() {
            let Some(child) = &mut self.children[index] else {
                continue;
            };
            let Ok(Some(status)) = child.try_wait() else {
                continue;
            };
            self.children[index] = None;
            // A PE whose parent (a shell, say) has ended may live on; it must not.
            self.signal_joined(index, Signal::KILL);
            let pe = self.pes.start + index;
            let control = self.control.pe(pe);
            let had_left = control.state() == PeState::Finished;
            if let Some(status) = self.control.announced_exit() {
                self.tell(&Report::Exit { status });
                if !self.ending {
                    self.end(None);
                }
                continue;
            }
            if status.success() {
                // It may have exited without leaving the world; nobody should wait for it.
                self.finished(pe);
                continue;
            }
            // Those we end ourselves are not failures of their own. But a PE that fails makes others
            // fail, who may be quicker to end: the one in whose name the world ended comes first.
            let culprit = self.control.ended_by();
            let cause = culprit == Some(pe) && self.failure.is_some() && !self.killed;
            if cause || (!self.ending && self.failure.is_none()) {
                let failure = Ended {
                    pe,
                    status,
                    last_wait: Wait::from_words(control.last_wait()),
                };
                self.tell(&Report::Failed {
                    failure: failure.clone(),
                    culprit,
                    ends: !had_left,
                });
                self.failure = Some(failure);
            }
            if !had_left && !self.ending {
                control.set_state(PeState::Failed);
                // Those that have been asked to end keep their grace; only their waits end.
                if self.asked.is_none() {
                    self.end(culprit);
                }
                self.control.end(pe, true);
            }
        }
    }

    /// Begins to end all PEs still running. `culprit` is ending by itself and gets the time for it, so
    /// that its own exit code is seen.
    fn end(&mut self, culprit: Option<usize>) {
        self.ending = true;
        self.signal_but(culprit, Signal::TERM);
        self.signal_but(culprit, Signal::CONT);
        self.kill_within(SHORT);
    }

    /// Ends all PEs still running at once, and those that join from now on.
    pub(super) fn kill(&mut self) {
        self.killed = true;
        self.signal_all(Signal::KILL);
        self.kill_at = Instant::now().checked_add(SHORT);
    }

    /// A time beyond the clock's range is none.
    fn kill_within(&mut self, time: Duration) {
        let at = Instant::now().checked_add(time);
        self.kill_at = match (self.kill_at, at) {
            (Some(before), Some(at)) => Some(before.min(at)),
            (before, at) => before.or(at),
        };
    }

    fn last_waits(&self) -> Vec<(usize, Option<Wait>)> {
        let running = (0..self.children.len()).filter(|&index| self.children[index].is_some());
        running
            .map(|index| self.pes.start + index)
            .map(|pe| (pe, Wait::from_words(self.control.pe(pe).last_wait())))
            .collect()
    }

    /// Signals every PE still running and, where a PE is a descendant of what we started (a shell,
    /// say), that process too.
    fn signal_all(&self, signal: Signal) {
        self.signal_but(None, signal);
    }

    fn signal_but(&self, spared: Option<usize>, signal: Signal) {
        for (index, child) in self.children.iter().enumerate() {
            let Some(child) = child else { continue };
            if spared == Some(self.pes.start + index) {
                continue;
            }
            // An unreaped child keeps its number, so this can not hit a stranger.
            let _ = kill_process(Pid::from_child(child), signal);
            self.signal_joined(index, signal);
        }
    }

    fn signal_joined(&self, index: usize, signal: Signal) {
        if let Some(process) = &self.joined[index] {
            let _ = pidfd_send_signal(process, signal);
        }
    }

    /// Waits for all that have been killed.
    pub(super) fn reap_all(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.wait();
        }
    }
}
