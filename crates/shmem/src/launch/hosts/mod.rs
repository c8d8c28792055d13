//! A world of several hosts: the launcher that the user started (the *root*), and on each host one that it starts
//! there through a remote shell.
//!
//! 1. The root gives each host's launcher its part, the job's [key](crate::transport::tcp::key) included, through
//!    the remote shell's standard input. Nothing of it is an argument or has a name.
//! 2. The host's launcher makes the memory of its PEs, starts the [agent](crate::transport::agent) and prints the
//!    port where that listens.
//! 3. The root connects to it there, proves that it knows the key, and says where all agents are. Then the PEs
//!    start. Standard output and error come back through the remote shell; PE 0 has the root's standard input.
//! 4. What ends a PE on one host ends all: hosts [report](words::Report) to the root, which gives
//!    [orders](words::Order). Both sides send beats. A host that does not answer is lost, and ends the world for the
//!    others; a host whose root does not answer kills its PEs. Hosts give each other
//!    [signs of life](crate::transport::beat), too, and report who is missed.

pub(super) mod here;
pub(super) mod link;
pub(super) mod root;
pub(super) mod words;

use crate::transport::beat::Life;
use crate::transport::hosts::Hosts;
use crate::world::config::{Config, ConfigError, NETWORK, Network, read};
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// A host, and how many PEs it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name or address, as every host of the world knows it.
    pub name: String,
    /// PEs.
    pub pes: usize,
}

/// Where and how to start the launchers of several hosts.
#[derive(Clone, Debug)]
pub struct HostList {
    /// The hosts. Their PEs are numbered in this order.
    pub hosts: Vec<Host>,
    /// The remote shell and its options, which are followed by the host and the command.
    pub rsh: Vec<OsString>,
    /// What starts a host's launcher: a command that calls [`run_for_launcher`](crate::run_for_launcher). It is the
    /// same on all hosts.
    pub command: Vec<OsString>,
    /// Where the program runs on each host.
    pub folder: PathBuf,
    /// Variables it gets there.
    pub environment: Vec<(OsString, OsString)>,
}

impl HostList {
    /// Hosts that are this one under other names, as `CROSSWARP_FAKE_HOSTS` says for `n_pes` PEs; `None` if it says
    /// nothing. `command`: see [`HostList::command`].
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn fake(n_pes: usize, command: Vec<OsString>) -> Result<Option<Self>, ConfigError> {
        Self::fake_as(None, n_pes, command)
    }

    /// The same as `text` says, if it is given.
    ///
    /// # Errors
    /// [`ConfigError`].
    #[doc(hidden)]
    pub fn fake_as(
        text: Option<&'static str>,
        n_pes: usize,
        command: Vec<OsString>,
    ) -> Result<Option<Self>, ConfigError> {
        let config = Config {
            fake_hosts: text,
            ..Config::default()
        };
        let (hosts, network) = Hosts::fake(&config, n_pes)?;
        if hosts.n() == 1 {
            return Ok(None);
        }
        let host = |host| Host {
            name: "127.0.0.1".into(),
            pes: hosts.pes(host).len(),
        };
        Ok(Some(Self {
            hosts: (0..hosts.n()).map(host).collect(),
            // The host is the script's name, the command its argument.
            rsh: ["sh", "-c", "exec sh -c \"$1\""].map(OsString::from).into(),
            command,
            folder: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            environment: network
                .map(|network| (NETWORK.name.into(), network.to_string().into()))
                .into_iter()
                .collect(),
        }))
    }

    /// What these hosts, or else this process's environment, have set.
    fn variable(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        let mut named = self.environment.iter().rev();
        match named.find(|(named, value)| named == name && !value.is_empty()) {
            Some((_, value)) => Ok(Some(value.to_string_lossy().into_owned())),
            None => read(name),
        }
    }

    /// What carries messages between these hosts.
    fn network(&self) -> Result<Network, ConfigError> {
        let named = self.variable(NETWORK.name)?;
        named.map_or(Ok(Network::default()), |text| text.parse())
    }

    /// How often they give signs of life.
    fn life(&self) -> Result<Life, ConfigError> {
        Life::of(|name| self.variable(name))
    }
}

/// A host that could not be started, or does not answer any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostHost {
    /// The host.
    pub name: String,
    /// Its PEs.
    pub pes: Range<usize>,
    /// Why.
    pub reason: String,
}

impl fmt::Display for LostHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.pes;
        match end - start {
            1 => write!(f, "host {} (PE {start}) is lost: ", self.name)?,
            _ => write!(
                f,
                "host {} (PEs {start} to {}) is lost: ",
                self.name,
                end - 1
            )?,
        }
        f.write_str(&self.reason)
    }
}
