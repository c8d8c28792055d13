//! The launcher: starts the PEs of a process world, watches them, and says how they ended.
//!
//! What holds it together, in order:
//! 1. Control memory and heaps are memfds, created here, inherited by every PE, named nowhere.
//! 2. What is started asks the kernel to be killed when the launcher dies. The kernel means the thread
//!    that started it, which stays in [`Launch::run`] until all have ended. A PE further down (with a
//!    shell in between) holds one end of a socket, the lifeline, whose other end only the launcher has,
//!    and kills itself when that is closed. So killing the launcher leaves no PE behind.
//! 3. A PE that dies without having left the world takes the others with it: the world is marked as
//!    ended (waits return an error), they get SIGTERM and, 0.3 s later, SIGKILL.
//! 4. So does a PE that has asked for it by `global_exit`, which is no failure whatever its code.
//! 5. A PE that left the world and then exits with a failure code is reported but ends nobody: the
//!    others may be writing their results.
//! 6. The first signal to end is passed on, stopped PEs are continued, and all have the grace to write
//!    what they have; then, or with the second signal, they get SIGKILL.
//! 7. All this holds while PEs are still being started; the others then never are.
#![allow(unsafe_code)] // `pre_exec`, to set the death signal between fork and exec

mod events;
pub(crate) mod hosts;
mod job;
mod labels;
pub(crate) mod signal_mask;

use crate::held_signals::HeldSignals;
use crate::transport::hosts::Hosts;
use crate::transport::network::NetworkError;
use crate::wait::waiter::Wait;
use crate::world::config::{Config, ConfigError};
use crate::world::created::{World, WorldMemoryError};
use crate::world::processes::{FDS, N_PES, PE};
use crate::world::threads::MAX_PES;
use events::Events;
pub use hosts::here::run_for_launcher;
pub use hosts::{Host, HostList, LostHost};
use job::Job;
use labels::Labels;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::FdFlags;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long PEs may take to end after the first signal to end, unless told otherwise.
pub const GRACE: Duration = Duration::from_secs(30);
/// Exit code when a host was lost, as of `ssh` when it can't reach one.
const LOST_HOST: i32 = 255;
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
    #[error(transparent)]
    Memory(#[from] WorldMemoryError),
    /// The network between the hosts can't be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The program could not be started.
    #[error("cannot start '{program}': {source}")]
    Spawn {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A host could not be asked to run its PEs.
    #[error("cannot start '{command}' for host {host}: {source}")]
    Host {
        /// The host.
        host: String,
        /// The remote shell.
        command: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A host's name means nothing here.
    #[error("host {host} has no address: {source}")]
    Address {
        /// The host.
        host: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// What this process was told by the launcher that started it makes no sense.
    #[error("this is the part of a launcher that another launcher starts on each host: {0}")]
    Order(std::io::Error),
    /// Signals and PEs that join could not be watched.
    #[error("cannot watch for signals: {0}")]
    Watch(std::io::Error),
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
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The PE that failed first of its own accord, if any.
    pub failure: Option<Ended>,
    /// The exit code with which a PE ended all ([`Pe::global_exit`](crate::Pe::global_exit)).
    pub global_exit: Option<i32>,
    /// The signal that came before all PEs were started; those not started then never were.
    pub interrupted: Option<i32>,
    /// With a time limit that ran out: what each PE still running was waiting for.
    pub timed_out: Option<Vec<(usize, Option<Wait>)>>,
    /// A host that could not be started, or was lost.
    pub lost: Option<LostHost>,
}

impl Outcome {
    /// 124 for a run out of time, what a PE asked for that ended all, the code of the first failure,
    /// 128 + the signal that came before all PEs were started, or 0.
    pub fn code(&self) -> i32 {
        match (&self.timed_out, self.global_exit, &self.failure) {
            (Some(_), _, _) => TIMED_OUT,
            // What of it an exit code can hold.
            (None, Some(status), _) => status & 0xff,
            (None, None, Some(failure)) => failure.code(),
            (None, None, None) if self.lost.is_some() => LOST_HOST,
            (None, None, None) => self.interrupted.map_or(0, |signal| 128 + signal),
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
    grace: Duration,
    label: bool,
    config: Config,
    hosts: Option<HostList>,
    /// Variables that PEs get beside those of this process.
    environment: Vec<(OsString, OsString)>,
}

impl Launch {
    /// `n_pes` processes of `program` (looked up in `PATH`).
    pub fn new(n_pes: usize, program: impl AsRef<OsStr>) -> Self {
        Self {
            n_pes,
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            timeout: None,
            grace: GRACE,
            label: false,
            config: Config::default(),
            hosts: None,
            environment: Vec::new(),
        }
    }

    /// Runs the PEs on these hosts instead of this one.
    pub fn hosts(mut self, hosts: HostList) -> Self {
        self.n_pes = hosts.hosts.iter().map(|host| host.pes).sum();
        self.hosts = Some(hosts);
        self
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

    /// How long the PEs may take to end after the first SIGINT, SIGTERM, SIGHUP or SIGQUIT, to write a
    /// checkpoint, say; then they get SIGKILL. Without it 30 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
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
    /// passed on to them, unless this process ignores them. With the first of the first four, stopped
    /// PEs are continued and no more are started; a second one, or the end of the
    /// [grace](Launch::grace), kills them. Once caught, these signals do not end this process any more,
    /// also after the run: a program that goes on has to handle them itself.
    ///
    /// PEs start with no signal blocked, whatever the caller has blocked, and ignore what the caller
    /// ignores, but for SIGCHLD, which has its default action.
    ///
    /// # Errors
    /// [`LaunchError`]; then no PE is left running.
    pub fn run(&self) -> Result<Outcome, LaunchError> {
        if self.n_pes == 0 || self.n_pes > MAX_PES {
            return Err(LaunchError::NumberOfPes { n_pes: self.n_pes });
        }
        match &self.hosts {
            Some(hosts) => hosts::root::run(self, hosts),
            None => self.run_here(),
        }
    }

    /// Runs a world of this host alone.
    fn run_here(&self) -> Result<Outcome, LaunchError> {
        let heap_bytes = self.config.heap_bytes(self.n_pes)?;
        let world = World::create(&Hosts::one(self.n_pes), 0, heap_bytes, None)?;
        // Watch before the first child starts: none may end unseen.
        let events = Events::watch(&world.lifeline, None)?;
        let job = Job::new(world.control, self.grace);
        self.run_job(&world.fds, &events, job)
    }

    /// Starts the PEs of this host and sees them to their end.
    fn run_job(
        &self,
        inherited: &Arc<[OwnedFd]>,
        events: &Events,
        mut job: Job,
    ) -> Result<Outcome, LaunchError> {
        let labels = Labels::new();
        let (pes, mut started) = (job.pes(), 0);
        while started < pes.len() && job.goes_on(events) {
            let pe = pes.start + started;
            if let Err(source) = self.start(pe, inherited, &events.watched, &mut job, &labels) {
                job.kill();
                job.reap_all();
                return Err(LaunchError::Spawn {
                    program: self.program.to_string_lossy().into_owned(),
                    source,
                });
            }
            started += 1;
        }
        if started < pes.len() {
            job.give_up_on_the_rest();
        }
        // A limit beyond the clock's range is none.
        let deadline = self
            .timeout
            .and_then(|limit| Instant::now().checked_add(limit));
        let timed_out = job.watch(events, deadline);
        labels.drain(|| events.asked_to_end());
        // A run cut short by its time limit has ended by that.
        let exit = job.control.announced_exit();
        Ok(Outcome {
            interrupted: job.asked().filter(|_| started < pes.len()),
            failure: job.failure,
            global_exit: exit.filter(|_| timed_out.is_none()),
            timed_out,
            lost: None,
        })
    }

    /// Starts one PE of this host, which inherits these descriptors and is told their numbers. `handled`: the signals
    /// that this process has handlers for.
    fn start(
        &self,
        pe: usize,
        inherited: &Arc<[OwnedFd]>,
        handled: &[i32],
        job: &mut Job,
        labels: &Labels,
    ) -> std::io::Result<()> {
        let numbers: Vec<String> = (inherited.iter())
            .map(|fd| fd.as_raw_fd().to_string())
            .collect();
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env(PE, pe.to_string())
            .env(N_PES, self.n_pes.to_string())
            .env(FDS, numbers.join(","))
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        if pe != 0 {
            command.stdin(Stdio::null());
        }
        if self.label {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let launcher = rustix::process::getpid();
        let (inherited, handled) = (Arc::clone(inherited), handled.to_vec());
        // SAFETY: between fork and exec only async-signal-safe calls are allowed; these are plain
        // system calls and no allocation.
        unsafe {
            command.pre_exec(move || {
                for fd in inherited.iter() {
                    rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
                }
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The launcher may have died before the line above.
                if rustix::process::getppid() != Some(launcher) {
                    return Err(rustix::io::Errno::SRCH.into());
                }
                signal_mask::as_new(&handled);
                Ok(())
            });
        }
        // A signal that comes between fork and exec meets no handler of this process in the child: it waits until `as_new`
        // has removed them.
        let held = HeldSignals::all();
        let child = command.spawn();
        drop(held);
        let mut child = child?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        job.add(child);
        labels.copy(pe, out, std::io::stdout)?;
        labels.copy(pe, err, std::io::stderr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsRawFd;

    #[test]
    fn what_else_a_process_starts_inherits_nothing_of_the_world() {
        let world = World::create(&Hosts::one(2), 0, 1 << 16, None).unwrap();
        let mut ls = Command::new("ls");
        let listing = ls.args(["-l", "/proc/self/fd"]).output().unwrap();
        let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
        assert!(listing.contains("pipe:"), "{listing}");
        for fd in world.fds.iter() {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
            assert!(!listing.contains(link.to_str().unwrap()), "{listing}");
        }
    }

    /// A run of `sh -c script` before its first PE.
    fn prepared(n_pes: usize, script: &str) -> (Launch, World, Events) {
        let launch = Launch::new(n_pes, "sh").args(["-c", script]);
        let world = World::create(&Hosts::one(n_pes), 0, 1 << 16, None).unwrap();
        let events = Events::watch(&world.lifeline, None).unwrap();
        (launch, world, events)
    }

    #[test]
    fn a_pe_that_fails_ends_the_start_of_the_others() {
        let (launch, world, events) = prepared(2, "exit 3");
        let mut job = Job::new(world.control, GRACE);
        assert!(job.goes_on(&events));
        let inherited = &world.fds;
        let labels = Labels::new();
        launch
            .start(0, inherited, &events.watched, &mut job, &labels)
            .unwrap();
        let start = Instant::now();
        while job.goes_on(&events) {
            assert!(start.elapsed() < Duration::from_secs(60), "it goes on");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(job.watch(&events, None), None);
        assert_eq!(job.failure.map(|failure| failure.code()), Some(3));
    }

    #[test]
    fn a_time_limit_that_passes_while_a_failed_run_ends_is_not_its_reason() {
        // PE 1 needs the whole time between SIGTERM and SIGKILL, and the limit has passed by then.
        let script = "[ $CROSSWARP_PE = 0 ] && exit 6; trap '' TERM; while :; do sleep 0.05; done";
        let (launch, world, events) = prepared(2, script);
        let mut job = Job::new(world.control, GRACE);
        let inherited = &world.fds;
        for pe in 0..2 {
            let labels = Labels::new();
            launch
                .start(pe, inherited, &events.watched, &mut job, &labels)
                .unwrap();
        }
        while job.goes_on(&events) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(job.watch(&events, Some(Instant::now())), None);
        assert_eq!(job.failure.map(|failure| failure.code()), Some(6));
    }
}
