//! The memory of a world of processes, as whoever makes it holds it: a launcher, or the agent of a host.

use crate::memory::region::{Region, memfd};
use crate::transport::hosts::Hosts;
use crate::transport::tcp::key::Key;
use crate::wait::sync::register_heavy_fence;
use crate::wait::waiter::Patience;
use crate::world::control::Control;
use crate::world::mapped::{Mapped, WorldKind};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// The system did not give the memory of a world.
#[derive(Debug, Error)]
#[error("cannot make the memory of the world ({bytes} bytes for {what}): {source}")]
pub struct WorldMemoryError {
    /// What for.
    pub what: &'static str,
    /// How much.
    pub bytes: usize,
    /// What the system said.
    pub source: std::io::Error,
}

/// See the [module](self).
pub(crate) struct World {
    pub(crate) control: Control,
    /// What PEs get: control, the heaps of this host's PEs, for each of these the two ends of its socket pair to the
    /// right neighbour, the PEs' end of the lifeline and, if there are several hosts, the key. Close-on-exec here, so
    /// that nothing else this process starts meanwhile inherits them.
    pub(crate) fds: Arc<[OwnedFd]>,
    /// This process's end of the lifeline, which nobody inherits.
    pub(crate) lifeline: Arc<OwnedFd>,
}

fn failed(what: &'static str, bytes: usize) -> impl Fn(rustix::io::Errno) -> WorldMemoryError {
    move |error| WorldMemoryError {
        what,
        bytes,
        source: error.into(),
    }
}

impl World {
    /// That of `host`, with `key` if there are others.
    ///
    /// # Errors
    /// [`WorldMemoryError`].
    pub(crate) fn create(
        hosts: &Hosts,
        host: usize,
        heap_bytes: usize,
        key: Option<Key>,
    ) -> Result<Self, WorldMemoryError> {
        let n_pes = hosts.n_pes();
        let local = hosts.members(host).count();
        let bytes = Control::bytes(n_pes);
        let control_fd = memfd("crosswarp-control", bytes).map_err(failed("control", bytes))?;
        let region = Region::shared(control_fd.as_fd(), bytes).map_err(failed("control", bytes))?;
        let creator = rustix::process::getpid().as_raw_nonzero().get() as u32;
        let mut fds = vec![control_fd];
        for _ in 0..local {
            fds.push(memfd("crosswarp-heap", heap_bytes).map_err(failed("a heap", heap_bytes))?);
        }
        let pair = || {
            let (domain, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
            socketpair(domain, kind, SocketFlags::CLOEXEC, None).map_err(failed("a socket", 0))
        };
        for _ in 0..local {
            let (near, far) = pair()?;
            fds.extend([near, far]);
        }
        let (lifeline, far) = pair()?;
        fds.push(far);
        if let Some(key) = key {
            let failed = failed("the key", key.0.len());
            let fd = memfd("crosswarp-key", key.0.len()).map_err(&failed)?;
            rustix::io::pwrite(&fd, &key.0, 0).map_err(&failed)?;
            fds.push(fd);
        }
        Ok(Self {
            control: Control::create(region, n_pes, heap_bytes, creator),
            fds: fds.into(),
            lifeline: Arc::new(lifeline),
        })
    }

    /// Maps it once more, for the agent of `host`.
    ///
    /// # Errors
    /// [`WorldMemoryError`].
    pub(crate) fn map(
        &self,
        hosts: &Hosts,
        host: usize,
        heap_bytes: usize,
    ) -> Result<Mapped, WorldMemoryError> {
        let region = |fd: usize, bytes: usize| {
            let mapped = Region::shared(self.fds[fd].as_fd(), bytes);
            mapped.map_err(failed("the agent", bytes))
        };
        let n_pes = hosts.n_pes();
        let mut heaps: Vec<Option<Region>> = (0..n_pes).map(|_| None).collect();
        for (index, pe) in hosts.members(host).enumerate() {
            heaps[pe] = Some(region(1 + index, heap_bytes)?);
        }
        let control = Control::new(region(0, Control::bytes(n_pes))?, n_pes);
        register_heavy_fence(true);
        Ok(Mapped {
            control,
            heaps,
            heap_bytes,
            hosts: hosts.clone(),
            kind: WorldKind::Processes,
            patience: Patience::new(n_pes, hosts.n(), None),
            ring: None,
            launcher: None,
            parts: Mutex::default(),
        })
    }
}
