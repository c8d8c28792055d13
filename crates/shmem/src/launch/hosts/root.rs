//! The launcher of all hosts.

use super::link::Link;
use super::words::{News, Order, Part, Report, hear, say};
use super::{HostList, LostHost};
use crate::launch::events::{Event, Events, is_end};
use crate::launch::{Ended, Launch, LaunchError, Outcome};
use crate::transport::beat::Life;
use crate::transport::hosts::Hosts;
use crate::transport::tcp::key::{Key, Who, knock};
use crate::wait::waiter::Wait;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::SIGCHLD;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How long a host may take to start its launcher.
const START: Duration = Duration::from_secs(60);
/// How long a host's launcher may take to answer a new connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a remote shell that says nothing may take to end once its host is done.
const SHELL_ENDS: Duration = Duration::from_secs(2);
/// How long all of them may go on talking then, beside the time that a slow reader of what they say takes.
const TALK_ENDS: Duration = Duration::from_secs(10);
/// How often remote shells that ought to end are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// One host.
struct Remote {
    name: String,
    address: IpAddr,
    shell: Child,
    output: Arc<Copied>,
    /// The way to its launcher, until it is lost.
    link: Option<Link>,
    port: Option<u16>,
    done: bool,
}

/// What has been copied of a host's output.
#[derive(Default)]
struct Copied {
    lines: AtomicU64,
    /// Somebody is slow to read it.
    is_written: AtomicBool,
    /// There is no more.
    is_closed: AtomicBool,
}

/// The run.
struct Run<'a> {
    list: &'a HostList,
    hosts: Hosts,
    life: Life,
    remotes: Vec<Remote>,
    outcome: Outcome,
    /// In whose name the failure that is known came about.
    culprit: Option<usize>,
    ending: bool,
    asked: bool,
    waits: Vec<(usize, Option<Wait>)>,
}

/// Runs `launch` on these hosts.
pub(in crate::launch) fn run(launch: &Launch, list: &HostList) -> Result<Outcome, LaunchError> {
    let sizes: Vec<usize> = list.hosts.iter().map(|host| host.pes).collect();
    if sizes.contains(&0) || sizes.is_empty() {
        return Err(LaunchError::NumberOfPes { n_pes: 0 });
    }
    let key = Key::random().map_err(LaunchError::Watch)?;
    let heap_bytes = launch
        .config
        .heap_bytes(sizes.iter().copied().max().unwrap_or(1))?;
    let network = list.network()?;
    let life = list.life()?;
    let hosts = Hosts::with(&sizes);
    // Nobody joins here; the socket is for `Events` to watch.
    let (domain, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let pair = socketpair(domain, kind, SocketFlags::CLOEXEC, None);
    let (lifeline, _far) = pair.map_err(|error| LaunchError::Watch(error.into()))?;
    let events = Events::watch(&Arc::new(lifeline), None)?;
    let mut run = Run {
        list,
        remotes: Vec::new(),
        outcome: Outcome::default(),
        culprit: None,
        ending: false,
        asked: false,
        waits: Vec::new(),
        hosts,
        life,
    };
    let address = |name: &str| -> io::Result<IpAddr> {
        let mut all = (name, 0).to_socket_addrs()?;
        Ok(all.next().ok_or(io::ErrorKind::NotFound)?.ip())
    };
    let addresses: Result<Vec<IpAddr>, _> = list
        .hosts
        .iter()
        .map(|host| {
            address(&host.name).map_err(|source| LaunchError::Address {
                host: host.name.clone(),
                source,
            })
        })
        .collect();
    let mut addresses = addresses?;
    name_this_host(&mut addresses);
    for (host, address) in addresses.into_iter().enumerate() {
        let part = Part {
            version: env!("CARGO_PKG_VERSION").into(),
            key,
            host,
            sizes: run.hosts.sizes(),
            n_pes: launch.n_pes,
            address: SocketAddr::new(address, 0),
            heap_bytes,
            network,
            life,
            grace: launch.grace,
            label: launch.label,
            folder: list.folder.clone().into(),
            environment: list.environment.clone(),
            program: launch.program.clone(),
            args: launch.args.clone(),
        };
        run.start(&part, &events)?;
    }
    if run.connect(key, &events) {
        let deadline = launch
            .timeout
            .and_then(|limit| Instant::now().checked_add(limit));
        run.watch(&events, deadline);
    }
    run.finish();
    Ok(run.outcome)
}

impl Run<'_> {
    /// Starts the launcher of the next host.
    fn start(&mut self, part: &Part, events: &Events) -> Result<(), LaunchError> {
        let name = self.list.hosts[part.host].name.clone();
        let rsh = &self.list.rsh;
        let failed = |source| LaunchError::Host {
            host: name.clone(),
            command: rsh
                .first()
                .map_or_else(String::new, |rsh| rsh.to_string_lossy().into_owned()),
            source,
        };
        let (shell, options) = rsh
            .split_first()
            .ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let mut command = Command::new(shell);
        command
            .args(options)
            .arg(&name)
            .arg(quoted(&self.list.command))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The terminal's signals are for this process, which passes them on in its own words.
            .process_group(0);
        // SAFETY: a plain system call, which allocates nothing.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let mut shell = command.spawn().map_err(failed)?;
        let (input, output) = (shell.stdin.take(), shell.stdout.take());
        let copied = Arc::new(Copied::default());
        self.remotes.push(Remote {
            name: name.clone(),
            address: part.address.ip(),
            shell,
            output: Arc::clone(&copied),
            link: None,
            port: None,
            done: false,
        });
        let mut input = input.ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        let output = output.ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        // A shell that has ended already is told of by its output.
        let _ = say(&mut input, part);
        let (host, news) = (part.host, events.sender());
        thread("host output", move || {
            copy_output(output, host, &copied, &news)
        })?;
        if host == 0 {
            // Until either ends; at the end of the run it is left behind.
            thread("standard input", move || {
                let _ = io::copy(&mut io::stdin(), &mut input);
            })?;
        }
        Ok(())
    }

    /// Connects to all hosts once they listen, and lets their PEs start. False: the run has ended before.
    fn connect(&mut self, key: Key, events: &Events) -> bool {
        let deadline = Instant::now() + START;
        while self.remotes.iter().any(|remote| remote.port.is_none()) {
            let left = deadline.saturating_duration_since(Instant::now());
            match events.receiver.recv_timeout(left) {
                Ok(Event::News(host, News::Listens(port))) => self.remotes[host].port = Some(port),
                Ok(Event::News(host, News::Closed)) => {
                    let ended = self.remotes[host].shell.wait();
                    let ended =
                        ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                    self.lose(host, format!("its launcher did not start ({ended})"));
                    return false;
                }
                Ok(Event::Signal(origin)) if is_end(origin.signal) => {
                    self.outcome.interrupted = Some(origin.signal);
                    return false;
                }
                Ok(_) => {}
                Err(_) => {
                    let missing = self.remotes.iter().position(|remote| remote.port.is_none());
                    let seconds = START.as_secs();
                    self.lose(
                        missing.unwrap_or(0),
                        format!("its launcher did not start in {seconds} s"),
                    );
                    return false;
                }
            }
        }
        let agents: Vec<SocketAddr> = self
            .remotes
            .iter()
            .map(|remote| SocketAddr::new(remote.address, remote.port.unwrap_or(0)))
            .collect();
        for (host, &agent) in agents.iter().enumerate() {
            match self.link(host, agent, key, events) {
                Ok(link) => self.remotes[host].link = Some(link),
                Err(error) => {
                    self.lose(host, format!("no connection to {agent}: {error}"));
                    return false;
                }
            }
        }
        self.order(&Order::Start { agents });
        true
    }

    fn link(
        &self,
        host: usize,
        address: SocketAddr,
        key: Key,
        events: &Events,
    ) -> io::Result<Link> {
        let life = self.life;
        let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CONNECT))?;
        stream.set_write_timeout(Some(life.patience))?;
        knock(&mut stream, key, Who::Launcher)?;
        stream.set_read_timeout(Some(life.patience))?;
        let (mut hears, news) = (stream.try_clone()?, events.sender());
        let listen = move || {
            loop {
                let said = hear(&mut hears);
                let last = said.is_err();
                let lost = |error| News::Lost(life.silence(&error, "launcher"));
                let said = said.map_or_else(lost, News::Says);
                if news.send(Event::News(host, said)).is_err() || last {
                    return;
                }
            }
        };
        thread("host reports", listen).map_err(io::Error::other)?;
        let link = Link::new(stream);
        link.beat(life.beat, Order::Beat)?;
        Ok(link)
    }

    /// Gives an order to all hosts.
    fn order(&self, order: &Order) {
        self.order_but(None, order);
    }

    fn order_but(&self, spared: Option<usize>, order: &Order) {
        for (host, remote) in self.remotes.iter().enumerate() {
            if spared != Some(host)
                && let Some(link) = &remote.link
            {
                link.tell(order);
            }
        }
    }

    /// Sees to what happens until all hosts are done.
    fn watch(&mut self, events: &Events, deadline: Option<Instant>) {
        while self.remotes.iter().any(|remote| !remote.done) {
            let deadline = deadline.filter(|_| !self.ending && !self.asked);
            let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            match events.receiver.recv_timeout(left) {
                Ok(Event::Signal(origin)) if origin.signal != SIGCHLD => {
                    let signal = origin.signal;
                    match is_end(signal) && self.asked {
                        true => self.order(&Order::Kill),
                        false => self.order(&Order::Signal { signal }),
                    }
                    self.asked |= is_end(signal);
                }
                Ok(Event::News(host, news)) => self.hear(host, news),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if deadline.is_some() => {
                    self.outcome.timed_out = Some(Vec::new());
                    self.end(None, None);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn hear(&mut self, host: usize, news: News) {
        let report = match news {
            News::Says(report) => report,
            News::Lost(reason) if !self.remotes[host].done => return self.lose(host, reason),
            News::Closed if !self.remotes[host].done => {
                return self.lose(host, "its remote shell has ended".into());
            }
            News::Listens(_) | News::Closed | News::Lost(_) => return,
        };
        match report {
            Report::Beat => {}
            // One that is done may be gone.
            Report::Misses { host: missed }
                if self.remotes.get(missed).is_some_and(|it| !it.done) =>
            {
                let by = &self.remotes[host].name;
                let seconds = self.life.patience.as_secs_f64();
                self.lose(
                    missed,
                    format!("host {by} has not heard of it for {seconds} s"),
                );
            }
            Report::Misses { .. } => {}
            Report::Left { pe } => self.order_but(Some(host), &Order::Left { pe }),
            Report::Waits { pe, wait } => self.waits.push((pe, wait)),
            Report::Exit { status } => {
                self.outcome.global_exit.get_or_insert(status);
                self.end(Some(host), None);
            }
            Report::Error { text } => self.lose(host, text),
            Report::Failed {
                failure,
                culprit,
                ends,
            } => self.failed(host, failure, culprit, ends),
            Report::Done { interrupted } => {
                self.remotes[host].done = true;
                if self.outcome.interrupted.is_none() {
                    self.outcome.interrupted = interrupted;
                }
            }
        }
    }

    /// A PE that fails makes others fail, which may be quicker to end: the one in whose name the world ended counts.
    fn failed(&mut self, host: usize, failure: Ended, culprit: Option<usize>, ends: bool) {
        let pe = failure.pe;
        let is_cause = self.outcome.failure.is_some() && self.culprit == Some(pe);
        let counts = self.outcome.failure.is_none() && !self.ending;
        if is_cause || counts {
            self.culprit = culprit.filter(|&culprit| culprit != pe);
            self.outcome.failure = Some(failure);
        }
        if ends {
            self.end(Some(host), Some(culprit.unwrap_or(pe)));
        }
    }

    /// Ends all PEs of the other hosts.
    fn end(&mut self, spared: Option<usize>, culprit: Option<usize>) {
        if !self.ending {
            self.ending = true;
            self.order_but(spared, &Order::End { culprit });
        }
    }

    /// Goes on without a host, which means to end.
    fn lose(&mut self, host: usize, reason: String) {
        let pes = self.hosts.pes(host);
        let remote = &mut self.remotes[host];
        remote.done = true;
        // If it can still hear: no more signs of life, so that its PEs end.
        if let Some(link) = remote.link.take() {
            link.close();
        }
        let _ = remote.shell.kill();
        let known = self.outcome.failure.is_some() || self.outcome.global_exit.is_some();
        if self.outcome.lost.is_none() && !known && !self.ending {
            self.outcome.lost = Some(LostHost {
                name: remote.name.clone(),
                pes: pes.clone(),
                reason,
            });
        }
        self.end(Some(host), Some(pes.start));
    }

    /// Lets the hosts' launchers end, and waits for the remote shells.
    fn finish(&mut self) {
        for remote in &mut self.remotes {
            if let Some(link) = remote.link.take() {
                link.close();
            }
        }
        // A shell may have ended before all that it said has been read, and what it said last is not to be lost. But what it
        // has left behind may keep its output open, or talk, for ever.
        let (mut deadline, mut lines) = (Instant::now() + SHELL_ENDS, 0);
        let mut talk = TALK_ENDS;
        for remote in &mut self.remotes {
            let (started, output) = (remote.port.is_some(), &remote.output);
            let goes_on = |shell: &mut Child| {
                !output.is_closed.load(Ordering::Acquire) || matches!(shell.try_wait(), Ok(None))
            };
            while started
                && goes_on(&mut remote.shell)
                && Instant::now() < deadline
                && !talk.is_zero()
            {
                std::thread::sleep(LOOK);
                let now = output.lines.load(Ordering::Relaxed);
                let waits = output.is_written.load(Ordering::Relaxed);
                if !waits {
                    talk = talk.saturating_sub(LOOK);
                }
                if now != lines || waits {
                    (deadline, lines) = (Instant::now() + SHELL_ENDS, now);
                }
            }
            let _ = remote.shell.kill();
            let _ = remote.shell.wait();
        }
        if let Some(waits) = &mut self.outcome.timed_out {
            self.waits.sort_by_key(|&(pe, _)| pe);
            *waits = std::mem::take(&mut self.waits);
        }
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), LaunchError> {
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn(work).map_err(LaunchError::Watch)?;
    Ok(())
}

/// Hands the first line of a host's output to the root, and the others to this process's.
fn copy_output(output: impl Read, host: usize, copied: &Copied, news: &Sender<Event>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(1..) = output.read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        let port = text
            .strip_prefix("crosswarp ")
            .and_then(|port| port.trim_end().parse().ok());
        if let Some(port) = port {
            let _ = news.send(Event::News(host, News::Listens(port)));
            break;
        }
        // What a login script prints.
        if !text.trim().is_empty() {
            let _ = io::stdout().write_all(&line);
        }
        line.clear();
    }
    loop {
        line.clear();
        match output.read_until(b'\n', &mut line) {
            Ok(1..) => {
                copied.is_written.store(true, Ordering::Relaxed);
                let mut out = io::stdout().lock();
                let _ = out.write_all(&line).and_then(|()| out.flush());
                copied.lines.fetch_add(1, Ordering::Relaxed);
                copied.is_written.store(false, Ordering::Relaxed);
            }
            _ => break,
        }
    }
    // Release: all has been written.
    copied.is_closed.store(true, Ordering::Release);
    let _ = news.send(Event::News(host, News::Closed));
}

/// A command as one word for a shell.
fn quoted(command: &[OsString]) -> OsString {
    let quote = |word: &OsString| {
        let bytes = word.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-=+:,@%".contains(byte);
        if !bytes.is_empty() && bytes.iter().all(plain) {
            return bytes.to_vec();
        }
        let inner: Vec<u8> = bytes
            .iter()
            .flat_map(|&byte| match byte {
                b'\'' => b"'\\''".to_vec(),
                byte => vec![byte],
            })
            .collect();
        [b"'".as_slice(), &inner, b"'"].concat()
    };
    let words: Vec<Vec<u8>> = command.iter().map(quote).collect();
    OsString::from_vec(words.join(OsStr::new(" ").as_bytes()))
}

/// Where some hosts are others, a loopback address is this one, as Debian has it of a host's own name: puts the address in
/// its place by which this host reaches the others.
fn name_this_host(addresses: &mut [IpAddr]) {
    let Some(&other) = addresses.iter().find(|address| !address.is_loopback()) else {
        return;
    };
    // A datagram socket that is connected has sent nothing, and knows the way.
    let way = || -> io::Result<IpAddr> {
        let any: IpAddr = match other {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((other, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    let loopback = addresses.iter_mut().filter(|address| address.is_loopback());
    // Without a way to the others the run ends anyhow, with a line.
    if let Ok(here) = way() {
        loopback.for_each(|address| *address = here);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let words = ["/a/b-c", "it's", "", "x y$(z)"].map(OsString::from);
        let quoted = quoted(&words);
        let script = format!("printf '%s\\n' {}", quoted.to_str().unwrap());
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "/a/b-c\nit's\n\nx y$(z)\n"
        );
    }

    #[test]
    fn this_host_among_others_has_the_address_of_the_way_to_them() {
        let local: IpAddr = Ipv4Addr::new(127, 0, 1, 1).into();
        // Hosts that this one plays stay where they are.
        let mut played = [local, Ipv4Addr::LOCALHOST.into()];
        name_this_host(&mut played);
        assert_eq!(played, [local, Ipv4Addr::LOCALHOST.into()]);
        // An address for texts, which nobody has.
        let other: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
        let mut hosts = [other, local];
        name_this_host(&mut hosts);
        assert_eq!(hosts[0], other);
        let has_a_way = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect((other, 9)));
        assert_eq!(hosts[1].is_loopback(), has_a_way.is_err());
    }
}
