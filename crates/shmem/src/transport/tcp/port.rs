//! A PE's connections to agents.

use crate::transport::engine::{Engine, EngineError};
use crate::transport::tcp::frame::{Incoming, send};
use crate::transport::tcp::key::{Key, Who, knock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::net::SendFlags;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long an agent may take to answer a new connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the [module](self).
pub(crate) struct Port {
    me: u32,
    key: Key,
    hosts: Vec<Host>,
}

/// The way to one agent.
struct Host {
    address: SocketAddr,
    connection: OnceLock<Connection>,
    /// Held by the thread that connects, or sends.
    sending: Mutex<()>,
}

struct Connection {
    stream: TcpStream,
    incoming: Mutex<Incoming>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked while it sent has left a connection behind that the agent will find broken.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects PE `me` to the agent at `address`; returns also what only the two know. Reads wait for [`PATIENCE`].
///
/// # Errors
/// What the system says, or what [`knock`] finds.
pub(crate) fn connect(address: SocketAddr, key: Key, me: u32) -> std::io::Result<(TcpStream, Key)> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let session = knock(&mut stream, key, Who::Pe(me))?;
    Ok((stream, session))
}

impl Port {
    /// Of PE `me`, to the agents at `addresses`, by host.
    pub(crate) fn new(me: usize, key: Key, addresses: &[SocketAddr]) -> Self {
        let host = |&address: &SocketAddr| Host {
            address,
            connection: OnceLock::new(),
            sending: Mutex::new(()),
        };
        Self {
            me: me as u32,
            key,
            hosts: addresses.iter().map(host).collect(),
        }
    }

    fn unreachable(&self, host: usize, error: &std::io::Error) -> EngineError {
        EngineError::Unreachable {
            host,
            reason: format!("{}: {error}", self.hosts[host].address),
        }
    }

    fn connect(&self, host: &Host) -> std::io::Result<Connection> {
        let (stream, _) = connect(host.address, self.key, self.me)?;
        stream.set_read_timeout(None)?;
        Ok(Connection {
            stream,
            incoming: Mutex::default(),
        })
    }

    fn connections(&self) -> impl Iterator<Item = (usize, &Connection)> {
        let hosts = self.hosts.iter().enumerate();
        hosts.filter_map(|(host, there)| Some((host, there.connection.get()?)))
    }
}

impl Engine for Port {
    fn send(&self, host: usize, head: &[u8], body: &[u8]) -> Result<(), EngineError> {
        let there = &self.hosts[host];
        let failed = |error: std::io::Error| self.unreachable(host, &error);
        let length = u32::try_from(head.len() + body.len());
        let length = length.map_err(|_| failed(std::io::ErrorKind::InvalidInput.into()))?;
        let _sending = lock(&there.sending);
        let connection = match there.connection.get() {
            Some(connection) => connection,
            None => {
                let connection = self.connect(there).map_err(failed)?;
                there.connection.get_or_init(|| connection)
            }
        };
        let frame = [&length.to_le_bytes(), head, body];
        send(&connection.stream, &frame, SendFlags::empty()).map_err(failed)?;
        Ok(())
    }

    fn progress(&self, deliver: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        for (host, connection) in self.connections() {
            let mut incoming = lock(&connection.incoming);
            let open = incoming.read(&connection.stream);
            let open = open.map_err(|error| self.unreachable(host, &error))?;
            while let Ok(Some(reply)) = incoming.frame(usize::MAX) {
                deliver(reply);
            }
            if !open {
                let closed = std::io::Error::other("the agent has closed the connection");
                return Err(self.unreachable(host, &closed));
            }
        }
        Ok(())
    }

    fn sleep(&self, limit: Duration) {
        let mut watched: Vec<_> = self
            .connections()
            .map(|(_, connection)| {
                PollFd::from_borrowed_fd(connection.stream.as_fd(), PollFlags::IN)
            })
            .collect();
        let limit = Timespec::try_from(limit).ok();
        // Every outcome means: look again.
        let _ = poll(&mut watched, limit.as_ref());
    }
}
