//! The agent's process: makes the memory of its host, hands it to the PEs there, and stays until all have ended.
//!
//! It does for PEs that it has not started what a launcher does for its own:
//! 1. A PE that ends without having left the world ends it for all; so does one that asks for it by `global_exit`. How
//!    a process ended that is not its child, it can't know: the launcher reports that.
//! 2. PEs that still run then get SIGTERM and, 0.3 s later, SIGKILL. It signals by pidfd, so never a stranger.
//! 3. PEs watch it in turn, by their lifeline, and end with it.
//! 4. When its PEs have ended it stays until all have, for others may still use their memory.

use super::tree::{Event, Link, Word};
use super::{START, descriptors, hex, read_frame, write_frame};
use crate::memory::register::agent_maps;
use crate::transport::agent::Agent;
use crate::transport::beat::{Life, Signs};
use crate::transport::hosts::Hosts;
use crate::transport::tcp::key::Key;
use crate::transport::tcp::server::Server;
use crate::wait::waiter::Wait;
use crate::world::config::Network;
use crate::world::control::PeState;
use crate::world::created::World;
use crate::world::lifeline::{Sent, receive};
use crate::world::mapped::Mapped;
use crate::world::ring::send_fd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long PEs may take to end after SIGTERM, and between two SIGKILLs.
const SHORT: Duration = Duration::from_millis(300);
/// How long a PE may take to say which it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// What an agent has to know.
pub(super) struct Part {
    pub(super) hosts: Hosts,
    pub(super) host: usize,
    pub(super) heap_bytes: usize,
    pub(super) key: Key,
    pub(super) network: Network,
    pub(super) life: Life,
    /// Where it listens.
    pub(super) address: IpAddr,
}

/// Runs it. `line` leads to the PE that has started it.
pub(super) fn run(part: Part, mut line: UnixStream) {
    let (sender, events) = channel();
    let host = part.host;
    let told = match Ready::make(part, &sender) {
        Ok(ready) => {
            let text = format!("{}\n{}", ready.address, ready.door.path.display());
            let told = write_frame(&mut line, text.as_bytes());
            told.map(|()| ready)
        }
        Err(text) => {
            let _ = write_frame(&mut line, text.as_bytes());
            return;
        }
    };
    // A PE that is gone by now has said why.
    let agents = told.and_then(|ready| Ok((ready, read_frame(&mut line, usize::MAX)?)));
    let Ok((ready, agents)) = agents else {
        return;
    };
    let agents = String::from_utf8_lossy(&agents).into_owned();
    if let Err(error) = ready.go_on(&agents, sender, &events) {
        complain(&format!("the agent of host {host}: {error}"));
    }
}

/// Says something where the launcher shows it. Not by the standard library's lock, which may have been held at the fork.
fn complain(text: &str) {
    let line = format!("crosswarp: {text}\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
}

/// An agent before its PEs have come.
struct Ready {
    part: Part,
    world: World,
    memory: Arc<Mapped>,
    address: SocketAddr,
    /// Where signs of life of other hosts come to.
    signs: Option<UdpSocket>,
    door: Door,
}

impl Ready {
    fn make(part: Part, heard: &Sender<Event>) -> Result<Self, String> {
        let several = part.hosts.n() > 1;
        let key = several.then_some(part.key);
        let world = World::create(&part.hosts, part.host, part.heap_bytes, key);
        let world = world.map_err(|error| error.to_string())?;
        let memory = world.map(&part.hosts, part.host, part.heap_bytes);
        let memory = Arc::new(memory.map_err(|error| error.to_string())?);
        let mut address = SocketAddr::new(part.address, 0);
        let mut signs = None;
        if several {
            let failed = |error: io::Error| format!("it can't listen at {}: {error}", part.address);
            let serves = part.network.serves().map_err(|error| error.to_string())?;
            let server = Server::listen(address, part.key).map_err(failed)?;
            address = server.address().map_err(failed)?;
            signs = Some(server.signs().map_err(failed)?);
            let agent = Agent::new(Arc::clone(&memory), part.host);
            let (heard, host) = (heard.clone(), part.host);
            // Until this process ends.
            let serve = move || {
                let launcher = |stream| drop(heard.send(Event::Root(stream)));
                if let Err(error) = serves.serve(server, agent, launcher) {
                    complain(&format!("the agent of host {host} can't go on: {error}"));
                    std::process::abort();
                }
            };
            let thread = std::thread::Builder::new().name("agent".into());
            thread.spawn(serve).map_err(failed)?;
        }
        let door = Door::open().map_err(|error| format!("it can't make a socket: {error}"))?;
        Ok(Self {
            part,
            world,
            memory,
            address,
            signs,
            door,
        })
    }

    fn go_on(self, agents: &str, heard: Sender<Event>, events: &Receiver<Event>) -> io::Result<()> {
        let Part {
            hosts,
            host,
            key,
            life,
            ..
        } = self.part;
        let local: Vec<usize> = hosts.members(host).collect();
        let processes = self.door.admit(&self.world, &local, hosts.n() > 1)?;
        drop(self.door);
        let World { lifeline, fds, .. } = self.world;
        // The memory stays mapped; the PEs have the rest.
        drop(fds);
        let processes = Arc::new(processes);
        let watched = (Arc::clone(&processes), Arc::clone(&self.memory));
        let ended = heard.clone();
        let thread = std::thread::Builder::new().name("PEs".into());
        thread.spawn(move || watch_pes(&lifeline, &watched.0, &watched.1, &ended))?;
        let mut watch = Watch {
            memory: self.memory,
            links: (0..hosts.n()).map(|_| None).collect(),
            done: vec![false; hosts.n()],
            running: processes.iter().map(|(pe, _)| *pe).collect(),
            processes,
            hosts,
            host,
            ending: false,
            told: false,
            kill_at: None,
        };
        if let Some(socket) = self.signs {
            let hosts = agents.split(',').map(|address| address.parse());
            let signs = Signs {
                socket,
                key,
                host,
                hosts: hosts.collect::<Result<_, _>>().map_err(io::Error::other)?,
                life,
            };
            let missed = heard.clone();
            signs.begin(move |host| drop(missed.send(Event::Misses(host))))?;
        }
        watch.connect(agents, (key, life), &heard, events);
        watch.until_all_have_ended(events);
        Ok(())
    }
}

/// Where this host's PEs come for its memory: a socket in a folder that only they can enter. Dropped, it is gone.
struct Door {
    folder: PathBuf,
    path: PathBuf,
    listener: Option<UnixListener>,
}

impl Door {
    fn open() -> io::Result<Self> {
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let own = own.filter(|folder| folder.is_absolute());
        let folders = own.into_iter().chain([PathBuf::from("/tmp")]);
        let mut last = io::ErrorKind::NotFound.into();
        for folder in folders {
            match Self::open_in(&folder) {
                Ok(door) => return Ok(door),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn open_in(folder: &Path) -> io::Result<Self> {
        let folder = folder.join(format!("crosswarp-{}", hex(&Key::random()?.0)));
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let mut door = Self {
            path: folder.join("agent"),
            folder,
            listener: None,
        };
        door.listener = Some(UnixListener::bind(&door.path)?);
        Ok(door)
    }

    /// Hands `world` to each of the PEs `local`; returns their pidfds.
    fn admit(
        &self,
        world: &World,
        local: &[usize],
        several: bool,
    ) -> io::Result<Vec<(usize, OwnedFd)>> {
        let Some(listener) = &self.listener else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        listener.set_nonblocking(true)?;
        let deadline = Instant::now() + START;
        let mut processes: Vec<(usize, OwnedFd)> = Vec::with_capacity(local.len());
        while processes.len() < local.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut watched = [PollFd::new(listener, PollFlags::IN)];
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            rustix::io::retry_on_intr(|| poll(&mut watched, Some(&left)))?;
            let (mut stream, _) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(_) if Instant::now() < deadline => continue,
                Err(_) => {
                    let came = |pe: &&usize| processes.iter().any(|(known, _)| known == *pe);
                    let missing = local.iter().find(|pe| !came(pe)).copied().unwrap_or(0);
                    let seconds = START.as_secs();
                    let text = format!("PE {missing} has not come within {seconds} s");
                    return Err(io::Error::other(text));
                }
            };
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            let peer = socket_peercred(&stream)?;
            let mut pe = [0; 8];
            if peer.uid != rustix::process::geteuid() || stream.read_exact(&mut pe).is_err() {
                continue;
            }
            let pe = u64::from_le_bytes(pe) as usize;
            let place = local.iter().position(|&known| known == pe);
            let Some(place) = place.filter(|_| processes.iter().all(|(known, _)| *known != pe))
            else {
                continue;
            };
            // It is there, for it waits for what it gets here.
            let process = pidfd_open(peer.pid, PidfdFlags::empty())?;
            let ring = 1 + local.len();
            let left = ring + (2 * place + 2 * local.len() - 1) % (2 * local.len());
            let mut numbers: Vec<usize> = (0..ring).collect();
            numbers.extend([ring + 2 * place, left, 3 * local.len() + 1]);
            numbers.extend(several.then_some(3 * local.len() + 2));
            debug_assert_eq!(numbers.len(), descriptors(local.len(), several));
            for number in numbers {
                send_fd(stream.as_fd(), &world.fds[number])?;
            }
            processes.push((pe, process));
        }
        Ok(processes)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Until all PEs of this host have ended.
fn watch_pes(
    lifeline: &OwnedFd,
    processes: &[(usize, OwnedFd)],
    memory: &Mapped,
    heard: &Sender<Event>,
) {
    let mut running: Vec<&(usize, OwnedFd)> = processes.iter().collect();
    while !running.is_empty() {
        let fds = running.iter().map(|(_, process)| process.as_fd());
        let fds = std::iter::once(lifeline.as_fd()).chain(fds);
        let mut watched: Vec<_> = fds
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        if rustix::io::retry_on_intr(|| poll(&mut watched, None)).is_err() {
            return;
        }
        let news: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        if news[0]
            && let Ok(Some(Sent::Segment {
                pe,
                position,
                len,
                memory: segment,
            })) = receive(lifeline.as_fd())
            && pe < memory.control.n_pes()
        {
            agent_maps(memory, pe, (position, len), segment.as_fd());
        }
        // A pidfd is readable once its process has ended.
        let mut ended = news[1..].iter();
        running.retain(|(pe, _)| {
            let gone = ended.next() == Some(&true);
            !(gone && heard.send(Event::Ended(*pe)).is_ok())
        });
    }
}

/// The world, as one agent sees it.
struct Watch {
    memory: Arc<Mapped>,
    hosts: Hosts,
    host: usize,
    processes: Arc<Vec<(usize, OwnedFd)>>,
    /// PEs of this host that have not ended.
    running: Vec<usize>,
    /// To other agents: from host 0 to all, from the others to host 0.
    links: Vec<Option<Link>>,
    /// Hosts whose PEs have ended, or that are lost.
    done: Vec<bool>,
    ending: bool,
    /// Whether somebody has said why.
    told: bool,
    /// When those still running get SIGKILL.
    kill_at: Option<Instant>,
}

impl Watch {
    fn connect(
        &mut self,
        agents: &str,
        (key, life): (Key, Life),
        heard: &Sender<Event>,
        events: &Receiver<Event>,
    ) {
        if self.hosts.n() == 1 {
            return;
        }
        if self.host == 0 {
            for (host, address) in agents.split(',').enumerate().skip(1) {
                let address = address.parse().map_err(io::Error::other);
                let link = address.and_then(|to| Link::connect(host, to, (key, life), heard));
                match link {
                    Ok(link) => self.links[host] = Some(link),
                    Err(error) => self.lose(host, &error.to_string()),
                }
            }
            return;
        }
        let deadline = Instant::now() + START;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match events.recv_timeout(left) {
                Ok(Event::Root(stream)) => {
                    match Link::over(0, stream, life, heard) {
                        Ok(link) => self.links[0] = Some(link),
                        Err(error) => self.lose(0, &error.to_string()),
                    }
                    return;
                }
                Ok(event) => self.hear(event),
                Err(_) => return self.lose(0, "its agent has not connected"),
            }
        }
    }

    fn until_all_have_ended(&mut self, events: &Receiver<Event>) {
        loop {
            if self.running.is_empty() && !self.done[self.host] {
                self.done[self.host] = true;
                self.tell_but(None, Word::Done);
            }
            // Host 0 closes the connections when all are done.
            let waits = match self.host {
                0 => self.done.contains(&false),
                _ => !self.done[self.host] || self.links[0].is_some(),
            };
            if !waits {
                break;
            }
            let now = Instant::now();
            if self.kill_at.is_some_and(|at| now >= at) {
                self.signal_but(None, Signal::KILL);
                self.kill_at = Some(now + SHORT);
            }
            let pause = match self.kill_at {
                Some(at) => at.saturating_duration_since(now),
                None => Duration::from_secs(3600),
            };
            if let Ok(event) = events.recv_timeout(pause) {
                self.hear(event);
            }
        }
        for link in self.links.iter().flatten() {
            link.close();
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Ended(pe) => self.ended(pe),
            Event::Says(host, Word::Done) => self.done[host] = true,
            Event::Says(host, Word::End(pe)) if pe < self.hosts.n_pes() => {
                self.told = true;
                self.fail(pe, Some(host));
            }
            Event::Says(host, Word::Exit(status)) => {
                self.memory.control.announce_exit(status);
                self.told = true;
                if !self.ending {
                    self.tell_but(Some(host), Word::Exit(status));
                }
                self.end(None);
            }
            Event::Says(by, Word::Misses(host)) => self.misses(by, host),
            // Host 0 knows who is done, and may be gone.
            Event::Misses(host) if self.host == 0 => self.misses(0, host),
            Event::Misses(host) => self.tell_but(None, Word::Misses(host)),
            Event::Says(_, Word::End(_) | Word::Beat) | Event::Root(_) => {}
            Event::Lost(host, reason) => {
                self.links[host] = None;
                if !self.done[host] {
                    self.lose(host, &reason);
                }
            }
        }
    }

    /// Decides what the end of a PE of this host means for the others.
    fn ended(&mut self, pe: usize) {
        self.running.retain(|&running| running != pe);
        let control = &self.memory.control;
        if let Some(status) = control.announced_exit() {
            self.told = true;
            if !self.ending {
                self.tell_but(None, Word::Exit(status));
            }
            return self.end(None);
        }
        if control.pe(pe).state() == PeState::Finished {
            return;
        }
        // A PE that fails makes others fail: the one in whose name the world ended counts, and is reported where it was.
        let culprit = control.ended_by().unwrap_or(pe);
        if culprit == pe && !self.told {
            self.told = true;
            let wait = match Wait::from_words(control.pe(pe).last_wait()) {
                Some(wait) => format!("; it last waited for {wait}"),
                None => String::new(),
            };
            let host = self.host;
            complain(&format!(
                "PE {pe} (host {host}) has ended without leaving the world{wait}"
            ));
        }
        self.fail(culprit, None);
    }

    /// The world has ended in the name of PE `pe`; who `knows` has said so.
    fn fail(&mut self, pe: usize, knows: Option<usize>) {
        if !self.ending {
            self.memory.control.pe(pe).set_state(PeState::Failed);
            self.memory.control.end(pe, true);
            self.tell_but(knows, Word::End(pe));
            self.end(Some(pe));
        }
    }

    /// Host `by` has not heard of `host` for too long.
    fn misses(&mut self, by: usize, host: usize) {
        if self.host != 0 || self.done.get(host) != Some(&false) || self.done[by] {
            return;
        }
        // This one goes on.
        let (lost, reason) = match host {
            0 => (by, "it does not hear of host 0".into()),
            _ => (host, format!("host {by} does not hear of it")),
        };
        if let Some(link) = &self.links[lost] {
            link.tell(Word::End(self.hosts.members(lost).next().unwrap_or(0)));
        }
        self.lose(lost, &reason);
    }

    /// Goes on without a host, which means to end.
    fn lose(&mut self, host: usize, reason: &str) {
        (self.links[host], self.done[host]) = (None, true);
        let pes: Vec<usize> = self.hosts.members(host).collect();
        if !self.ending {
            self.told = true;
            let first = pes.first().copied().unwrap_or(0);
            let all = pes.iter().map(ToString::to_string).collect::<Vec<_>>();
            complain(&format!(
                "host {host} (PEs {}) is lost: {reason}",
                all.join(", ")
            ));
            self.fail(first, Some(host));
        }
    }

    /// Begins to end the PEs that still run. `culprit` is ending by itself.
    fn end(&mut self, culprit: Option<usize>) {
        if !self.ending {
            self.ending = true;
            self.signal_but(culprit, Signal::TERM);
            self.signal_but(culprit, Signal::CONT);
            self.kill_at = Some(Instant::now() + SHORT);
        }
    }

    fn signal_but(&self, spared: Option<usize>, signal: Signal) {
        for (pe, process) in self.processes.iter() {
            if Some(*pe) != spared && self.running.contains(pe) {
                let _ = pidfd_send_signal(process, signal);
            }
        }
    }

    fn tell_but(&self, knows: Option<usize>, word: Word) {
        for (host, link) in self.links.iter().enumerate() {
            if let Some(link) = link.as_ref().filter(|_| knows != Some(host)) {
                link.tell(word);
            }
        }
    }
}
