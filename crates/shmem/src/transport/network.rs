//! Which engine a world of several hosts has, and what each of them needs at either end.

use crate::transport::agent::Agent;
use crate::transport::engine::Engine;
use crate::transport::tcp::key::Key;
use crate::transport::tcp::port::Port as TcpPort;
use crate::transport::tcp::server::{Server, Stop};
use crate::transport::ucx::library::Ucx;
use crate::transport::ucx::port::Port as UcxPort;
use crate::transport::ucx::server::Server as UcxServer;
use crate::world::config::{NETWORK, Network};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use thiserror::Error;

/// The network that was asked for can't be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name} is {network}, but {reason}", name = NETWORK.name)]
pub struct NetworkError {
    /// Its name.
    pub network: String,
    /// Why not.
    pub reason: String,
}

impl Network {
    fn failed(self, reason: impl fmt::Display) -> NetworkError {
        NetworkError {
            network: self.to_string(),
            reason: reason.to_string(),
        }
    }

    /// Opens what it needs of libraries, but uses nothing of them yet.
    ///
    /// # Errors
    /// [`NetworkError`]: there is none.
    pub(crate) fn open(self) -> Result<(), NetworkError> {
        match self {
            Self::Tcp => Ok(()),
            Self::Ucx => Ucx::get().map(drop).map_err(|error| self.failed(error)),
        }
    }

    /// Variables by which a program uses what [`open`](Self::open) has found here.
    pub(crate) fn variables(self) -> Vec<(&'static str, String)> {
        let mut variables = vec![(NETWORK.name, self.to_string())];
        if let (Self::Ucx, Ok(ucx)) = (self, Ucx::get()) {
            variables.push((Ucx::VARIABLE, ucx.path().display().to_string()));
        }
        variables
    }

    /// The way of PE `me` to the agents that listen at `addresses`, by host.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub(crate) fn port(
        self,
        me: usize,
        key: Key,
        addresses: &[SocketAddr],
    ) -> Result<Box<dyn Engine>, NetworkError> {
        Ok(match self {
            Self::Tcp => Box::new(TcpPort::new(me, key, addresses)),
            Self::Ucx => {
                let port = UcxPort::new(me, key, addresses);
                Box::new(port.map_err(|error| self.failed(error))?)
            }
        })
    }

    /// What an agent needs before PEs can reach it.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub(crate) fn serves(self) -> Result<Serves, NetworkError> {
        Ok(Serves(match self {
            Self::Tcp => None,
            Self::Ucx => Some(UcxServer::new().map_err(|error| self.failed(error))?),
        }))
    }
}

/// The version and the file of the UCX that this machine has.
///
/// Errors: why it has none that can be used.
pub fn ucx() -> Result<(String, PathBuf), String> {
    let ucx = Ucx::get().map_err(|error| error.to_string())?;
    Ok((ucx.version().to_string(), ucx.path().to_owned()))
}

/// The side of an agent, before it serves.
pub(crate) struct Serves(Option<UcxServer>);

impl Serves {
    /// Serves PEs by `agent` until told to stop. `server` listens; `launcher` gets the connections of launchers.
    ///
    /// # Errors
    /// What the system says, or UCX. What goes wrong with one PE ends that one alone.
    pub(crate) fn serve(
        self,
        server: Server,
        agent: Agent,
        launcher: impl FnMut(TcpStream),
    ) -> io::Result<()> {
        let Some(ucx) = self.0 else {
            return server.serve(agent, launcher);
        };
        let (at, introductions) = ucx.with(agent).map_err(io::Error::other)?;
        // Either ends with the other.
        let stop: Stop = server.stop();
        std::thread::scope(|scope| {
            let serve = || {
                let served = at.serve();
                drop(stop);
                served.map_err(io::Error::other)
            };
            let thread = std::thread::Builder::new().name("agent ucx".into());
            let thread = thread.spawn_scoped(scope, serve)?;
            let listened = server.serve(introductions, launcher);
            at.stop();
            let served = thread.join();
            served.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            listened
        })
    }
}
