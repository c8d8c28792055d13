//! The launcher: starts the PEs of a process world, watches them, and says how they ended.
//!
//! What holds it together, in order:
//! 1. Control memory and heaps are memfds, created here, inherited by every PE, named nowhere.
//! 2. What is started asks the kernel to be killed when the launcher dies, and a PE further down (with
//!    a shell in between) watches the launcher itself, so killing the launcher leaves no PE behind.
//! 3. A PE that dies without having left the world takes the others with it: the world is marked as
//!    ended (waits return an error), they get SIGTERM and, a grace later, SIGKILL.
//! 4. So does a PE that has asked for it by `global_exit`, which is no failure whatever its code.
//! 5. A PE that left the world and then exits with a failure code is reported but ends nobody: the
//!    others may be writing their results.
#![allow(unsafe_code)] // `pre_exec`, to set the death signal between fork and exec

mod events;
mod labels;

use crate::config::{Config, ConfigError};
use crate::control::{Control, Life};
use crate::processes::{FDS, N_PES, PE};
use crate::region::{Region, memfd};
use crate::threads::MAX_PES;
use crate::wait::Wait;
use events::{Events, is_end};
use labels::Labels;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use signal_hook::consts::SIGCHLD;
use signal_hook::low_level::siginfo::{Cause, Origin};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long PEs may take to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(300);
/// Exit code when the time limit ended the run, as `timeout(1)` has it.
const TIMED_OUT: i32 = 124;

/// The PEs could not be started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// A world has between 1 and [`MAX_PES`] PEs.
    #[error("a world has 1 to {MAX_PES} PEs, not {n_pes}")]
    NumberOfPes {
        /// PEs asked for.
        n_pes: usize,
    },
    /// A setting makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system did not give the memory.
    #[error("cannot make the memory of the world ({bytes} bytes for {what}): {source}")]
    Memory {
        /// What for.
        what: &'static str,
        /// How much.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The program could not be started.
    #[error("cannot start '{program}': {source}")]
    Spawn {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Signals could not be watched.
    #[error("cannot watch for signals: {0}")]
    Signals(std::io::Error),
}

/// How one PE ended in failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The PE.
    pub pe: usize,
    /// Its status.
    pub status: ExitStatus,
    /// What it was waiting for at its end, or had waited for in vain.
    pub last_wait: Option<Wait>,
}

impl Ended {
    /// The exit code a shell would give: 128 + number for signals.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status.signal() {
            Some(signal) => {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("unknown");
                write!(f, "PE {} was killed by signal {signal} ({name})", self.pe)?;
            }
            None => write!(f, "PE {} ended with exit code {}", self.pe, self.code())?,
        }
        match self.last_wait {
            Some(wait) => write!(f, "; it last waited for {wait}"),
            None => Ok(()),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The PE that failed first of its own accord, if any.
    pub failure: Option<Ended>,
    /// The exit code with which a PE ended all ([`Pe::global_exit`](crate::Pe::global_exit)).
    pub global_exit: Option<i32>,
    /// With a time limit that ran out: what each PE still running was waiting for.
    pub timed_out: Option<Vec<(usize, Option<Wait>)>>,
}

impl Outcome {
    /// 124 for a run out of time, what a PE asked for that ended all, the code of the first failure, or 0.
    pub fn code(&self) -> i32 {
        match (&self.timed_out, self.global_exit, &self.failure) {
            (Some(_), _, _) => TIMED_OUT,
            // What of it an exit code can hold.
            (None, Some(status), _) => status & 0xff,
            (None, None, Some(failure)) => failure.code(),
            (None, None, None) => 0,
        }
    }
}

/// A program to run on every PE of a process world.
///
/// ```
/// use crosswarp_shmem::Launch;
/// let outcome = Launch::new(2, "true").heap_bytes(1 << 20).run().unwrap();
/// assert_eq!(outcome.code(), 0);
/// let outcome = Launch::new(2, "sh").args(["-c", "exit 7"]).heap_bytes(1 << 20).run().unwrap();
/// assert_eq!(outcome.code(), 7);
/// ```
#[derive(Clone, Debug)]
pub struct Launch {
    n_pes: usize,
    program: OsString,
    args: Vec<OsString>,
    timeout: Option<Duration>,
    label: bool,
    config: Config,
}

impl Launch {
    /// `n_pes` processes of `program` (looked up in `PATH`).
    pub fn new(n_pes: usize, program: impl AsRef<OsStr>) -> Self {
        Self {
            n_pes,
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            timeout: None,
            label: false,
            config: Config::default(),
        }
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Ends the run after `limit`.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Whether each output line begins with `[PE] `.
    pub fn label(mut self, label: bool) -> Self {
        self.label = label;
        self
    }

    /// Bytes of symmetric heap per PE; without it what `CROSSWARP_HEAP` says, else the default.
    pub fn heap_bytes(mut self, bytes: usize) -> Self {
        self.config.heap_bytes = Some(bytes);
        self
    }

    /// Starts the PEs and waits for all of them. PE 0 has this process's standard input.
    ///
    /// While they run, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 sent to this process are
    /// passed on to them, unless this process ignores them; a second one of the first four kills them.
    /// Once caught, these signals do not end this process any more, also after the run: a program
    /// that goes on has to handle them itself.
    ///
    /// # Errors
    /// [`LaunchError`]; then no PE is left running.
    pub fn run(&self) -> Result<Outcome, LaunchError> {
        if self.n_pes == 0 || self.n_pes > MAX_PES {
            return Err(LaunchError::NumberOfPes { n_pes: self.n_pes });
        }
        let heap_bytes = self.config.heap_bytes(self.n_pes)?;
        let world = World::create(self.n_pes, heap_bytes)?;
        // Watch before the first child starts: none may end unseen.
        let events = Events::watch()?;
        let labels = Labels::new();
        let mut job = Job {
            children: Vec::with_capacity(self.n_pes),
            control: world.control,
            failure: None,
            ending: None,
            killed: false,
        };
        for pe in 0..self.n_pes {
            let mut command = Command::new(&self.program);
            command
                .args(&self.args)
                .env(PE, pe.to_string())
                .env(N_PES, self.n_pes.to_string())
                .env(FDS, &world.fd_list);
            if pe != 0 {
                command.stdin(Stdio::null());
            }
            if self.label {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
            let launcher = rustix::process::getpid();
            let inherited = Arc::clone(&world.fds);
            // SAFETY: between fork and exec only async-signal-safe calls are allowed; these are plain
            // system calls and no allocation.
            unsafe {
                command.pre_exec(move || {
                    for fd in inherited.iter() {
                        rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
                    }
                    set_parent_process_death_signal(Some(Signal::KILL))?;
                    // The launcher may have died before the line above.
                    match rustix::process::getppid() == Some(launcher) {
                        true => Ok(()),
                        false => Err(rustix::io::Errno::SRCH.into()),
                    }
                });
            }
            let labelled = command.spawn().and_then(|mut child| {
                let (out, err) = (child.stdout.take(), child.stderr.take());
                job.children.push(Some(child));
                labels.copy(pe, out, std::io::stdout)?;
                labels.copy(pe, err, std::io::stderr)
            });
            match labelled {
                Ok(()) => {}
                Err(source) => {
                    job.signal_all(Signal::KILL);
                    job.reap_all();
                    return Err(LaunchError::Spawn {
                        program: self.program.to_string_lossy().into_owned(),
                        source,
                    });
                }
            }
        }
        // A limit beyond the clock's range is none.
        let deadline = self
            .timeout
            .and_then(|limit| Instant::now().checked_add(limit));
        let timed_out = job.watch(&events, deadline);
        labels.drain(|| events.asked_to_end());
        // A run cut short by its time limit has ended by that.
        let exit = job.control.announced_exit();
        Ok(Outcome {
            failure: job.failure,
            global_exit: exit.filter(|_| timed_out.is_none()),
            timed_out,
        })
    }
}

/// The memory of a world of processes, as the launcher holds it.
struct World {
    control: Control,
    fd_list: String,
    /// Close-on-exec here, so that nothing else this process starts meanwhile inherits them.
    fds: Arc<[OwnedFd]>,
}

impl World {
    fn create(n_pes: usize, heap_bytes: usize) -> Result<Self, LaunchError> {
        let memory = |what, bytes| {
            move |error: rustix::io::Errno| LaunchError::Memory {
                what,
                bytes,
                source: error.into(),
            }
        };
        let bytes = Control::bytes(n_pes);
        let control_error = memory("control", bytes);
        let control_fd = memfd("crosswarp-control", bytes).map_err(control_error)?;
        let region = Region::shared(control_fd.as_fd(), bytes).map_err(control_error)?;
        let launcher = rustix::process::getpid().as_raw_nonzero().get() as u32;
        let mut fds = vec![control_fd];
        for _ in 0..n_pes {
            fds.push(memfd("crosswarp-heap", heap_bytes).map_err(memory("a heap", heap_bytes))?);
        }
        for _ in 0..n_pes {
            let (domain, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
            let (near, far) = socketpair(domain, kind, SocketFlags::CLOEXEC, None)
                .map_err(memory("a socket", 0))?;
            fds.extend([near, far]);
        }
        let numbers: Vec<String> = fds.iter().map(|fd| fd.as_raw_fd().to_string()).collect();
        Ok(Self {
            control: Control::create(region, n_pes, heap_bytes, launcher),
            fd_list: numbers.join(","),
            fds: fds.into(),
        })
    }
}

/// The running PEs.
struct Job {
    /// By PE; `None` once reaped.
    children: Vec<Option<Child>>,
    control: Control,
    failure: Option<Ended>,
    /// When those still running get SIGKILL.
    ending: Option<Instant>,
    /// Whether they got it.
    killed: bool,
}

impl Job {
    /// Waits until every PE has ended. Returns the last waits if `limit` passed before.
    fn watch(
        &mut self,
        events: &Events,
        limit: Option<Instant>,
    ) -> Option<Vec<(usize, Option<Wait>)>> {
        let mut timed_out = None;
        let mut interrupted = false;
        loop {
            self.reap_ended();
            if self.children.iter().all(Option::is_none) {
                return timed_out;
            }
            let now = Instant::now();
            if self.ending.is_some_and(|end| now >= end) {
                self.killed = true;
                self.signal_all(Signal::KILL);
                self.ending = Some(now + GRACE);
            }
            // A run that is ending already has its reason.
            if self.ending.is_none() && limit.is_some_and(|limit| now >= limit) {
                timed_out = Some(self.last_waits());
                self.end(None);
            }
            let pause = match self.ending.or(limit) {
                Some(at) => at.saturating_duration_since(now),
                None => Duration::from_secs(3600),
            };
            match events.receiver.recv_timeout(pause) {
                Ok(origin) if origin.signal == SIGCHLD => {}
                Ok(origin) => {
                    if interrupted && is_end(origin.signal) {
                        self.signal_all(Signal::KILL);
                    } else {
                        self.pass_on(&origin);
                    }
                    interrupted |= is_end(origin.signal);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The signal thread is gone, which only a panic in it could do; keep reaping.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(GRACE),
            }
        }
    }

    /// Collects PEs that have ended and decides what that means for the others.
    fn reap_ended(&mut self) {
        for pe in 0..self.children.len() {
            let Some(child) = &mut self.children[pe] else {
                continue;
            };
            let Ok(Some(status)) = child.try_wait() else {
                continue;
            };
            // A PE whose parent (a shell, say) has ended may live on; it must not.
            let started = child.id();
            self.children[pe] = None;
            self.signal_joined(pe, started, Signal::KILL);
            let control = self.control.pe(pe);
            let had_left = control.life() == Life::Finished;
            if self.control.announced_exit().is_some() {
                if self.ending.is_none() {
                    self.end(None);
                }
                continue;
            }
            if status.success() {
                // It may have exited without leaving the world; nobody should wait for it.
                control.set_life(Life::Finished);
                self.control.wake_all(true);
                continue;
            }
            // Those we end ourselves are not failures of their own. But a PE that fails makes others
            // fail, who may be quicker to end: the one in whose name the world ended comes first.
            let culprit = self.control.ended_by();
            let cause = culprit == Some(pe) && self.failure.is_some() && !self.killed;
            if cause || (self.ending.is_none() && self.failure.is_none()) {
                self.failure = Some(Ended {
                    pe,
                    status,
                    last_wait: Wait::from_words(control.last_wait()),
                });
            }
            if !had_left && self.ending.is_none() {
                control.set_life(Life::Failed);
                self.end(culprit);
                self.control.end(pe, true);
            }
        }
    }

    /// Begins to end all PEs still running. `culprit` is ending by itself and gets the grace for it,
    /// so that its own exit code is seen.
    fn end(&mut self, culprit: Option<usize>) {
        self.signal_but(culprit, Signal::TERM);
        self.ending = Some(Instant::now() + GRACE);
    }

    fn last_waits(&self) -> Vec<(usize, Option<Wait>)> {
        let running = (0..self.children.len()).filter(|&pe| self.children[pe].is_some());
        running
            .map(|pe| (pe, Wait::from_words(self.control.pe(pe).last_wait())))
            .collect()
    }

    /// Passes a signal on, unless the terminal has sent it to the PEs as well.
    fn pass_on(&self, origin: &Origin) {
        if origin.cause == Cause::Kernel {
            return;
        }
        if let Some(signal) = Signal::from_named_raw(origin.signal) {
            self.signal_all(signal);
        }
    }

    /// Signals every PE still running and, where a PE is a descendant of what we started (a shell,
    /// say), that process too.
    fn signal_all(&self, signal: Signal) {
        self.signal_but(None, signal);
    }

    fn signal_but(&self, spared: Option<usize>, signal: Signal) {
        for (pe, child) in self.children.iter().enumerate() {
            let Some(child) = child else { continue };
            if spared == Some(pe) {
                continue;
            }
            // An unreaped child keeps its number, so this can not hit a stranger.
            let _ = kill_process(Pid::from_child(child), signal);
            self.signal_joined(pe, child.id(), signal);
        }
    }

    fn signal_joined(&self, pe: usize, started: u32, signal: Signal) {
        let control = self.control.pe(pe);
        let pid = control.pid();
        if control.life() == Life::Joined
            && pid != started
            && let Some(pid) = Pid::from_raw(pid as i32)
        {
            let _ = kill_process(pid, signal);
        }
    }

    fn reap_all(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_a_process_starts_inherits_nothing_of_the_world() {
        let world = World::create(2, 1 << 16).unwrap();
        let mut ls = Command::new("ls");
        let listing = ls.args(["-l", "/proc/self/fd"]).output().unwrap();
        let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
        assert!(listing.contains("pipe:"), "{listing}");
        for fd in world.fds.iter() {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
            assert!(!listing.contains(link.to_str().unwrap()), "{listing}");
        }
    }
}
