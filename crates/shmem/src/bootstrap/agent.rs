//! Starting the agent of a host, and getting this host's memory from it.
#![allow(unsafe_code)] // forks, and hands descriptors over by number

use super::{BootstrapError, Handed, START, descriptors, host, read_frame, write_frame};
use crate::transport::hosts::Hosts;
use crate::world::ring::receive_fd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Longer messages are none of ours.
const LINE: usize = 16 << 20;

fn failed(error: impl std::fmt::Display) -> BootstrapError {
    BootstrapError::Agent(error.to_string())
}

/// An agent that has been started.
pub(super) struct Agent {
    line: UnixStream,
    /// Where PEs of other hosts reach it.
    pub(super) address: SocketAddr,
    /// Where those of this host do.
    pub(super) path: PathBuf,
}

/// Starts it: a process that is nobody's child, so that no launcher and no `wait` of the program takes it for a PE.
///
/// It is a fork that does not become another program, for the program that this library is part of has no other. What
/// other threads of this process held at that moment it must not need: it uses what it makes itself, and the allocator,
/// which the C library makes whole again.
///
/// # Errors
/// [`BootstrapError::Agent`].
pub(super) fn start(part: host::Part) -> Result<Agent, BootstrapError> {
    let (line, far) = UnixStream::pair().map_err(failed)?;
    // SAFETY: see above.
    match unsafe { libc::fork() } {
        -1 => return Err(failed(io::Error::last_os_error())),
        0 => {
            // SAFETY: as above; the one in between ends here, without what the program does at its end.
            unsafe {
                libc::setsid();
                match libc::fork() {
                    0 => {}
                    in_between => libc::_exit(i32::from(in_between < 0)),
                }
            }
            let keeps = detach(far.as_fd());
            let run = std::panic::AssertUnwindSafe(|| host::run(part, far));
            let ended = keeps.is_ok() && std::panic::catch_unwind(run).is_ok();
            // SAFETY: ends this process without what the program does at its end, which is for the program to do.
            unsafe { libc::_exit(i32::from(!ended)) };
        }
        in_between => {
            drop(far);
            let in_between = Pid::from_raw(in_between);
            // One that ignores SIGCHLD learns nothing here, and nothing is lost.
            let _ = rustix::io::retry_on_intr(|| waitpid(in_between, WaitOptions::empty()));
        }
    }
    let mut agent = Agent {
        line,
        address: SocketAddr::from(([0, 0, 0, 0], 0)),
        path: PathBuf::new(),
    };
    let said = read_frame(&mut agent.line, LINE).map_err(failed)?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let parts = said.split_once('\n');
    let Some((Ok(address), path)) = parts.map(|(address, path)| (address.parse(), path)) else {
        return Err(BootstrapError::Agent(said));
    };
    (agent.address, agent.path) = (address, path.into());
    Ok(agent)
}

/// Leaves what belongs to the PE: its descriptors, its terminal's signals, its name.
fn detach(line: BorrowedFd<'_>) -> io::Result<()> {
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR,
        rustix::fs::Mode::empty(),
    )?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    drop(null);
    let line = line.as_raw_fd() as libc::c_uint;
    // SAFETY: closes descriptors of this process's copy, whose owners' code never runs here.
    unsafe {
        let close = |first: libc::c_uint, last: libc::c_uint| {
            if first <= last && libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
                for fd in first..=last.min(1 << 16) {
                    libc::close(fd as RawFd);
                }
            }
        };
        close(3, line - 1);
        close(line + 1, libc::c_uint::MAX);
        // It ends when the PEs have; and is told by them, not by signals that mean them.
        for signal in [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGTERM,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGPIPE,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    rustix::thread::set_name(c"crosswarp agent")?;
    Ok(())
}

impl Agent {
    /// Tells it where the agents of all hosts are.
    pub(super) fn tell(&mut self, agents: &[SocketAddr]) -> Result<(), BootstrapError> {
        let agents: Vec<String> = agents.iter().map(ToString::to_string).collect();
        write_frame(&mut self.line, agents.join(",").as_bytes()).map_err(failed)
    }
}

/// What a PE has got.
pub(super) struct Descriptors {
    fds: Vec<OwnedFd>,
    local: usize,
    several: bool,
}

/// Gets it from the agent at `path`, for PE `me`.
///
/// # Errors
/// [`BootstrapError::Agent`].
pub(super) fn receive(
    path: &Path,
    me: usize,
    hosts: &Hosts,
) -> Result<Descriptors, BootstrapError> {
    let shown = path.display();
    let mut door = UnixStream::connect(path).map_err(|error| {
        let hint = "do all PEs of a host see its files? else set CROSSWARP_HOST";
        failed(format!("{shown}: {error} ({hint})"))
    })?;
    door.write_all(&(me as u64).to_le_bytes()).map_err(failed)?;
    let local = hosts.members(hosts.of(me)).count();
    let several = hosts.n() > 1;
    let limit = Timespec::try_from(START).map_err(failed)?;
    let mut fds = Vec::new();
    for _ in 0..descriptors(local, several) {
        let mut watched = [PollFd::new(&door, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut watched, Some(&limit))).map_err(failed)?;
        let fd = receive_fd(door.as_fd()).map_err(failed)?;
        fds.push(fd.ok_or_else(|| failed(format!("{shown}: it has closed the connection")))?);
    }
    Ok(Descriptors {
        fds,
        local,
        several,
    })
}

impl Descriptors {
    /// With the rest of what it needs.
    pub(super) fn handed(self, me: usize, hosts: Hosts, agents: Vec<SocketAddr>) -> Handed {
        let numbers: Vec<RawFd> = self.fds.into_iter().map(IntoRawFd::into_raw_fd).collect();
        let ring = 1 + self.local;
        Handed {
            me,
            hosts,
            control: numbers[0],
            heaps: numbers[1..ring].into(),
            // To the right, from the left.
            ring: numbers[ring..ring + 2].into(),
            place: 0,
            lifeline: numbers[ring + 2],
            key: self.several.then(|| numbers[ring + 3]),
            agents,
        }
    }
}
