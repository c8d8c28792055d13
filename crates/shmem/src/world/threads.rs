//! Worlds whose PEs are threads of this process.

use crate::memory::region::Region;
use crate::transport::fake::{Network, StartError};
use crate::transport::hosts::Hosts;
use crate::transport::network::NetworkError;
use crate::wait::sync::register_heavy_fence;
use crate::wait::waiter::Patience;
use crate::world::config::{Config, ConfigError};
use crate::world::control::Control;
use crate::world::mapped::{Mapped, WorldKind};
use crate::world::pe::Pe;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thiserror::Error;

/// A world of threads that did not run to its end.
#[derive(Debug, Error)]
pub enum WorldError {
    /// A world has at least one PE.
    #[error("a world needs at least 1 PE, not {n_pes}")]
    NoPes {
        /// PEs asked for.
        n_pes: usize,
    },
    /// More PEs than the layout of the control memory allows.
    #[error("{n_pes} PEs are more than the {MAX_PES} a world can have")]
    TooManyPes {
        /// PEs asked for.
        n_pes: usize,
    },
    /// A setting makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system did not give the memory.
    #[error("cannot reserve {bytes} bytes for {what}: {source}; set a smaller CROSSWARP_HEAP")]
    Memory {
        /// What for.
        what: &'static str,
        /// How much.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system did not start a thread.
    #[error("cannot start the thread of PE {pe}: {source}")]
    Thread {
        /// The PE.
        pe: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system did not start a thread beside those of the PEs.
    #[error("cannot start the thread of an agent: {source}")]
    Agent {
        /// What the system said.
        source: std::io::Error,
    },
    /// The network between hosts can't be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A PE panicked; the others were told and have ended.
    #[error("PE {pe} panicked: {message}")]
    Panicked {
        /// The first PE that panicked.
        pe: usize,
        /// What it said.
        message: String,
    },
}

/// Most PEs a world can have.
pub const MAX_PES: usize = 1 << 16;

/// Runs `f` on `n` PEs, each a thread of this process; returns what they returned, by PE.
///
/// Takes its settings from the environment; [`ThreadWorld`] takes them as options.
///
/// # Errors
/// [`WorldError`]; a panic of one PE ends the waits of the others with an error and becomes
/// [`WorldError::Panicked`].
///
/// ```
/// let sums = crosswarp_shmem::spmd(4, |pe| {
///     let everyone = pe.alloc_zeroed::<u64>(1)?;
///     // Every PE adds its number on every other PE.
///     for other in 0..pe.n_pes() {
///         pe.atomic_add(&everyone, pe.my_pe() as u64, other);
///     }
///     pe.barrier()?;
///     Ok::<_, crosswarp_shmem::Error>(pe.g(&everyone, pe.my_pe()))
/// })
/// .unwrap();
/// assert!(sums.iter().all(|sum| *sum == Ok(6)));
/// ```
pub fn spmd<R: Send>(n: usize, f: impl Fn(&Pe) -> R + Sync) -> Result<Vec<R>, WorldError> {
    ThreadWorld::new(n).spmd(f)
}

/// A world of threads with options.
///
/// ```
/// use std::time::Duration;
/// let world = crosswarp_shmem::ThreadWorld::new(2)
///     .heap_bytes(1 << 20)
///     .wait_timeout(Duration::from_secs(5));
/// assert_eq!(world.spmd(|pe| pe.heap_bytes()).unwrap(), [1 << 20, 1 << 20]);
/// ```
#[derive(Clone, Debug)]
pub struct ThreadWorld {
    n_pes: usize,
    config: Config,
    /// Of each thread; `None`: what the standard library takes.
    stack_bytes: Option<usize>,
}

impl ThreadWorld {
    /// A world of `n_pes` PEs.
    pub fn new(n_pes: usize) -> Self {
        Self {
            n_pes,
            config: Config::default(),
            stack_bytes: None,
        }
    }

    /// Bytes of symmetric heap per PE, rounded up to whole pages.
    pub fn heap_bytes(mut self, bytes: usize) -> Self {
        self.config.heap_bytes = Some(bytes);
        self
    }

    /// After how long a wait gives up. Without it: what `CROSSWARP_WAIT_TIMEOUT` says, else never.
    pub fn wait_timeout(mut self, limit: Duration) -> Self {
        self.config.wait_timeout = Some(limit);
        self
    }

    /// Bytes of each thread's stack, for programs that count on those of their `main`.
    #[doc(hidden)]
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// Cuts the world into hosts that share nothing, for tests: what `CROSSWARP_FAKE_HOSTS` may say.
    #[doc(hidden)]
    pub fn fake_hosts(mut self, hosts: &'static str) -> Self {
        self.config.fake_hosts = Some(hosts);
        self
    }

    /// Runs `f` on every PE; see [`spmd`].
    ///
    /// # Errors
    /// See [`WorldError`].
    pub fn spmd<R: Send>(&self, f: impl Fn(&Pe) -> R + Sync) -> Result<Vec<R>, WorldError> {
        self.spmd_owned(|pe| f(&pe))
    }

    /// The same for who keeps the PE.
    ///
    /// # Errors
    /// See [`WorldError`].
    #[doc(hidden)]
    pub fn spmd_owned<R: Send>(&self, f: impl Fn(Pe) -> R + Sync) -> Result<Vec<R>, WorldError> {
        let (hosts, network) = Hosts::fake(&self.config, self.n_pes)?;
        let worlds = self.map(&hosts)?;
        let (f, end) = (&f, |pe| {
            worlds.iter().for_each(|world| world.control.end(pe, false))
        });
        let mut results = Vec::with_capacity(self.n_pes);
        let mut panics = Vec::new();
        std::thread::scope(|scope| {
            let failed = |error| match error {
                StartError::System(source) => WorldError::Agent { source },
                StartError::Network(error) => error.into(),
            };
            let network = match worlds.len() {
                1 => None,
                _ => Some(Network::start(&worlds, network, scope).map_err(failed)?),
            };
            let mut threads = Vec::with_capacity(self.n_pes);
            for me in 0..self.n_pes {
                let world = Arc::clone(&worlds[hosts.of(me)]);
                let port = network.as_ref().map(|network| network.port(me));
                let port = port.transpose().inspect_err(|_| end(me))?;
                let pe = Pe::join(world, me, port);
                let mut builder = std::thread::Builder::new().name(format!("PE {me}"));
                if let Some(bytes) = self.stack_bytes {
                    builder = builder.stack_size(bytes);
                }
                let thread = builder.spawn_scoped(scope, move || f(pe));
                match thread {
                    Ok(thread) => threads.push(thread),
                    Err(source) => {
                        // Those already running must not wait for one that will never come.
                        end(me);
                        return Err(WorldError::Thread { pe: me, source });
                    }
                }
            }
            for (pe, thread) in threads.into_iter().enumerate() {
                match thread.join() {
                    Ok(result) => results.push(result),
                    Err(payload) => panics.push((pe, payload)),
                }
            }
            Ok(())
        })?;
        // Others may have panicked because the first did; only the first says why.
        let first = worlds.iter().find_map(|world| world.control.ended_by());
        let at = panics.iter().position(|(pe, _)| Some(*pe) == first);
        match panics.into_iter().nth(at.unwrap_or(0)) {
            None => Ok(results),
            Some((pe, payload)) => Err(WorldError::Panicked {
                pe,
                message: payload
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| payload.downcast_ref::<&str>().copied())
                    .unwrap_or("(no message)")
                    .to_owned(),
            }),
        }
    }

    /// The memory of a world of one.
    pub(crate) fn one() -> Result<Arc<Mapped>, WorldError> {
        let worlds = Self::new(1).map(&Hosts::one(1))?;
        Ok(worlds.into_iter().next().expect("one host has one memory"))
    }

    /// The memory of each host.
    fn map(&self, hosts: &Hosts) -> Result<Vec<Arc<Mapped>>, WorldError> {
        let n_pes = self.n_pes;
        if n_pes == 0 {
            return Err(WorldError::NoPes { n_pes });
        }
        if n_pes > MAX_PES {
            return Err(WorldError::TooManyPes { n_pes });
        }
        let heap_bytes = self.config.heap_bytes(n_pes)?;
        let timeout = self.config.wait_timeout()?;
        let memory = |what, bytes, huge| {
            Region::anonymous(bytes, huge).map_err(|source| WorldError::Memory {
                what,
                bytes,
                source: source.into(),
            })
        };
        register_heavy_fence(false);
        let map = |host: usize| {
            let control = memory("the control memory", Control::bytes(n_pes), false)?;
            let heap = |pe: usize| {
                let mapped = hosts.of(pe) == host;
                mapped
                    .then(|| memory("a symmetric heap", heap_bytes, true))
                    .transpose()
            };
            Ok(Arc::new(Mapped {
                control: Control::create(control, n_pes, heap_bytes, 0),
                heaps: (0..n_pes).map(heap).collect::<Result<_, _>>()?,
                heap_bytes,
                hosts: hosts.clone(),
                kind: WorldKind::Threads,
                patience: Patience::new(n_pes, hosts.n(), timeout),
                ring: None,
                launcher: None,
                parts: Mutex::default(),
            }))
        };
        (0..hosts.n()).map(map).collect()
    }
}
