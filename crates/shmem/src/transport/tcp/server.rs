//! The agent's end: a thread that listens, and hears whoever knows the key.

use crate::transport::agent::Agent;
use crate::transport::message::Reply;
use crate::transport::tcp::frame::{Incoming, send};
use crate::transport::tcp::key::{ANSWER, Door, Key, Who};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::SendFlags;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a stranger may take to prove itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// Ports that are tried until one is free for datagrams, too.
const TRIES: usize = 32;
/// Most strangers at a time; one more, and the one that came first is dismissed.
const MOST_STRANGERS: usize = 256;

/// Names of the listener and of the bell among what `epoll` reports; connections begin after them.
const LISTENER: u64 = 0;
const BELL: u64 = 1;

/// A listening agent, before it serves.
pub(crate) struct Server {
    listener: TcpListener,
    /// At the same address.
    signs: UdpSocket,
    key: Key,
    bell: Arc<OwnedFd>,
}

/// Ends a [`Server`] that serves.
pub(crate) struct Stop(Arc<OwnedFd>);

impl Drop for Stop {
    fn drop(&mut self) {
        // The only write: the counter can't be full.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Hears what PEs say.
pub(crate) trait Hears {
    /// The longest message that a PE sends.
    fn longest_message(&self) -> usize;

    /// Does what `message` of a PE says; the key is what only that PE and this side know. `reply` sends the parts of a
    /// reply.
    ///
    /// # Errors
    /// What is wrong with it: the PE is not to be heard any more.
    fn hear(
        &mut self,
        from: (u32, Key),
        message: &[u8],
        reply: &mut dyn FnMut(&[&[u8]]),
    ) -> Result<(), String>;

    /// A PE is not heard any more, because of what it sent.
    fn give_up_on(&mut self, pe: u32);
}

impl Hears for Agent {
    fn longest_message(&self) -> usize {
        self.longest_message()
    }

    fn hear(
        &mut self,
        (pe, _): (u32, Key),
        message: &[u8],
        reply: &mut dyn FnMut(&[&[u8]]),
    ) -> Result<(), String> {
        let mut reply = |head: &Reply, body: &[u8]| reply(&[head.bytes(), body]);
        let served = self.serve(pe as usize, message, &mut reply);
        served.map_err(|error| error.to_string())
    }

    fn give_up_on(&mut self, pe: u32) {
        Agent::give_up_on(self, pe as usize);
    }
}

/// One connection.
struct Connection {
    stream: TcpStream,
    incoming: Incoming,
    state: State,
    /// What the socket has not taken yet.
    outgoing: Vec<u8>,
}

enum State {
    Stranger { door: Door, since: Instant },
    Pe(u32, Key),
}

impl Server {
    /// Listens at `address`; port 0: any.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn listen(address: SocketAddr, key: Key) -> io::Result<Self> {
        let mut tries = 0;
        let (listener, signs) = loop {
            let listener = TcpListener::bind(address)?;
            tries += 1;
            match UdpSocket::bind(listener.local_addr()?) {
                Ok(signs) => break (listener, signs),
                // Somebody hears datagrams there; another port may be free.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        };
        listener.set_nonblocking(true)?;
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Self {
            listener,
            signs,
            key,
            bell,
        })
    }

    /// Where [signs of life](crate::transport::beat) of other hosts come to.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn signs(&self) -> io::Result<UdpSocket> {
        self.signs.try_clone()
    }

    /// Where.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What ends it when dropped.
    pub(crate) fn stop(&self) -> Stop {
        Stop(Arc::clone(&self.bell))
    }

    /// Listens until told to stop. `hears` gets what PEs say, `launcher` the connections of launchers.
    ///
    /// # Errors
    /// What the system says of `epoll`. What goes wrong with one connection ends that one alone.
    pub(crate) fn serve(
        self,
        hears: impl Hears,
        launcher: impl FnMut(TcpStream),
    ) -> io::Result<()> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &self.listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        epoll::add(
            &epoll,
            &*self.bell,
            EventData::new_u64(BELL),
            EventFlags::IN,
        )?;
        let serving = Serving {
            server: self,
            epoll,
            hears,
            launcher,
            connections: HashMap::new(),
            replies: Vec::new(),
            last: BELL,
        };
        serving.run()
    }
}

/// A server at work.
struct Serving<H, L> {
    server: Server,
    epoll: OwnedFd,
    hears: H,
    launcher: L,
    connections: HashMap<u64, Connection>,
    replies: Vec<u8>,
    /// The last name given to a connection.
    last: u64,
}

impl<H: Hears, L: FnMut(TcpStream)> Serving<H, L> {
    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(64);
        loop {
            let strangers = self.strangers().next().is_some();
            let limit = strangers.then(|| Timespec::try_from(PATIENCE).unwrap_or_default());
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, limit.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    BELL => return Ok(()),
                    LISTENER => self.accept(),
                    name => self.attend(name, event.flags),
                }
            }
            self.dismiss_strangers();
        }
    }

    fn strangers(&self) -> impl Iterator<Item = (u64, Instant)> {
        let all = self.connections.iter();
        all.filter_map(|(&name, connection)| match connection.state {
            State::Stranger { since, .. } => Some((name, since)),
            State::Pe(..) => None,
        })
    }

    fn dismiss_strangers(&mut self) {
        let late = |&(_, since): &(u64, Instant)| since.elapsed() >= PATIENCE;
        let late: Vec<_> = self
            .strangers()
            .filter(late)
            .map(|(name, _)| name)
            .collect();
        for name in late {
            self.connections.remove(&name);
        }
    }

    fn accept(&mut self) {
        // `WouldBlock`: no more. Others (no descriptors left, a connection that is gone already): later ones.
        while let Ok((stream, _)) = self.server.listener.accept() {
            // Those who stay silent must not keep a PE out.
            if self.strangers().count() >= MOST_STRANGERS
                && let Some((oldest, _)) = self.strangers().min_by_key(|&(_, since)| since)
            {
                self.connections.remove(&oldest);
            }
            let _ = self.greet(stream);
        }
    }

    fn greet(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let (door, challenge) = Door::open(self.server.key)?;
        self.last += 1;
        epoll::add(
            &self.epoll,
            &stream,
            EventData::new_u64(self.last),
            EventFlags::IN,
        )?;
        let mut connection = Connection {
            stream,
            incoming: Incoming::default(),
            state: State::Stranger {
                door,
                since: Instant::now(),
            },
            outgoing: Vec::new(),
        };
        connection.send(&self.epoll, self.last, &challenge)?;
        self.connections.insert(self.last, connection);
        Ok(())
    }

    /// Does what a connection is ready for.
    fn attend(&mut self, name: u64, ready: EventFlags) {
        let Some(connection) = self.connections.get_mut(&name) else {
            return;
        };
        let sent = match ready.contains(EventFlags::OUT) {
            true => connection.send(&self.epoll, name, &[]),
            false => Ok(()),
        };
        let open = sent.and_then(|()| self.receive(name));
        if !open.unwrap_or(false) {
            self.close(name);
        }
    }

    fn close(&mut self, name: u64) {
        // Dropping the socket takes it out of `epoll`.
        self.connections.remove(&name);
    }

    /// Reads and serves what has come. False: the connection is of no more use.
    fn receive(&mut self, name: u64) -> io::Result<bool> {
        let Some(mut connection) = self.connections.remove(&name) else {
            return Ok(true);
        };
        let open = connection.incoming.read(&connection.stream)?;
        if let State::Stranger { door, .. } = &connection.state {
            let Some(answer) = connection.incoming.take(ANSWER) else {
                self.connections.insert(name, connection);
                return Ok(open);
            };
            let answer = answer.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
            let Some(admitted) = door.admit(answer) else {
                return Ok(false);
            };
            connection.send(&self.epoll, name, &admitted.reply)?;
            match admitted.who {
                Who::Launcher => {
                    epoll::delete(&self.epoll, &connection.stream)?;
                    connection.stream.set_nonblocking(false)?;
                    (self.launcher)(connection.stream);
                    return Ok(true);
                }
                Who::Pe(pe) => connection.state = State::Pe(pe, admitted.session),
            }
        }
        let State::Pe(pe, session) = connection.state else {
            return Ok(false);
        };
        let most = self.hears.longest_message();
        loop {
            let message = match connection.incoming.frame(most) {
                Ok(Some(message)) => Ok(message),
                Ok(None) => break,
                Err(length) => Err(format!("a message of {length} bytes")),
            };
            self.replies.clear();
            let mut reply = |parts: &[&[u8]]| {
                let length: usize = parts.iter().map(|part| part.len()).sum();
                self.replies.extend((length as u32).to_le_bytes());
                parts
                    .iter()
                    .for_each(|part| self.replies.extend_from_slice(part));
            };
            let heard =
                message.and_then(|message| self.hears.hear((pe, session), message, &mut reply));
            if let Err(error) = heard {
                tracing::error!("PE {pe} of another host: {error}");
                self.hears.give_up_on(pe);
                return Ok(false);
            }
            if !self.replies.is_empty() {
                connection.send(&self.epoll, name, &self.replies)?;
            }
        }
        self.connections.insert(name, connection);
        Ok(open)
    }
}

impl Connection {
    /// Sends what is left and `bytes`; what the socket does not take is kept until it does. What waits for a PE to read
    /// it is what that PE has asked for.
    fn send(&mut self, epoll: &OwnedFd, name: u64, bytes: &[u8]) -> io::Result<()> {
        let waited = !self.outgoing.is_empty();
        let parts = [&self.outgoing[..], bytes];
        let sent = send(self.stream.as_fd(), &parts, SendFlags::DONTWAIT)?;
        match sent < self.outgoing.len() + bytes.len() {
            true => self.outgoing = parts.concat().split_off(sent),
            false => self.outgoing.clear(),
        }
        let waits = !self.outgoing.is_empty();
        if waited != waits {
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, waits);
            epoll::modify(epoll, &self.stream, EventData::new_u64(name), flags)?;
        }
        Ok(())
    }
}
