//! Joining a world whose PEs are processes, as the launcher set it up.
//!
//! The launcher hands down open files: the control memory, the heap of each PE of this host, a ring of sockets, one
//! socket to itself and, in a world of several hosts, the job's key. Variables say which PE this is, which descriptors
//! these are and where the other hosts' agents are. Nothing has a name anywhere, so nothing can be left behind. Under
//! other launchers the [agent](crate::bootstrap) of the host hands the same over.
#![allow(unsafe_code)] // takes ownership of inherited file descriptors

use crate::bootstrap::{self, AllGather, BootstrapError, Handed, IdListener, IdPlace};
use crate::memory::region::Region;
use crate::transport::engine::Engine;
use crate::transport::hosts::Hosts;
use crate::transport::network::NetworkError;
use crate::transport::tcp::key::{self, Key};
use crate::wait::sync::{Ordering, register_heavy_fence};
use crate::wait::waiter::Patience;
use crate::world::config::{Config, ConfigError, HOSTS, Network};
use crate::world::control::{Control, LAYOUT, MAGIC};
use crate::world::lifeline::send_joined;
use crate::world::mapped::{Mapped, WorldKind};
use crate::world::pe::Pe;
use crate::world::ring::Ring;
use crate::world::threads::{MAX_PES, ThreadWorld, WorldError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_process, parent_process_death_signal, pidfd_open,
};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Tells a process which PE it is.
pub(crate) const PE: &str = "CROSSWARP_PE";
/// Tells a process how many PEs there are.
pub(crate) const N_PES: &str = "CROSSWARP_N_PES";
/// Tells a process the file descriptors, separated by commas: control, the heaps of this host's PEs, then for each of
/// these the two ends of its socket pair to the right neighbour, then the PEs' end of the lifeline, then, if there are
/// several hosts, the key.
pub(crate) const FDS: &str = "CROSSWARP_FDS";
/// Tells a process of a world of several hosts the addresses of their agents, separated by commas.
pub(crate) const AGENTS: &str = "CROSSWARP_AGENTS";

/// Joining a world failed.
#[derive(Debug, Error)]
pub enum InitError {
    /// A process is one PE; it has joined already.
    #[error("this process has joined its world already")]
    AlreadyJoined,
    /// The launcher's variables are incomplete or make no sense.
    #[error("{name} is '{value}', which no launcher sets; start the program with `crosswarp run`")]
    Environment {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The inherited memory is not there: something between the launcher and here closed it.
    #[error(
        "cannot use the world's memory (file descriptor {fd}): {reason}; was it closed by a wrapper?"
    )]
    Memory {
        /// The descriptor.
        fd: RawFd,
        /// What is wrong.
        reason: String,
    },
    /// The world's memory does not fit into this process's addresses.
    #[error("cannot map the world's memory: {0}")]
    NoRoom(std::io::Error),
    /// The heaps do not fit into this process's addresses.
    #[error(
        "cannot reserve {bytes} bytes for each of {n_pes} symmetric heaps: {source}; set a smaller CROSSWARP_HEAP"
    )]
    Heap {
        /// Bytes of one heap.
        bytes: usize,
        /// How many there are.
        n_pes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has joined as this PE; a PE joins its world once.
    #[error("process {pid} has joined as PE {pe} already; a run can hold one program per PE")]
    Taken {
        /// This PE.
        pe: usize,
        /// The other process.
        pid: u32,
    },
    /// Launcher and program were built from different versions.
    #[error("the launcher's memory layout is version {theirs}, this program's is {ours}")]
    Version {
        /// The launcher's.
        theirs: u32,
        /// This program's.
        ours: u32,
    },
    /// A setting makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The network between hosts can't be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The launcher's way to the other PEs does not work, or there is none.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// The world of one could not be made.
    #[error(transparent)]
    World(#[from] WorldError),
}

static JOINED: AtomicBool = AtomicBool::new(false);

/// Whether this process was started as one of several PEs: by `crosswarp run`, or by another launcher that [`init`]
/// knows or would refuse.
pub fn under_launcher() -> bool {
    std::env::var_os(FDS).is_some() || !matches!(bootstrap::find(), Ok(None))
}

/// Which PE this process will be, as its launcher says, before it has joined; `None` without a launcher.
pub fn launched_pe() -> Option<usize> {
    match std::env::var_os(FDS) {
        Some(_) => number(PE).ok(),
        None => bootstrap::find().ok()??.rank(),
    }
}

/// Joins the world the launcher made; without a launcher, a world of one.
///
/// The launcher is `crosswarp run`, or one that speaks PMI (`mpiexec`, `srun --mpi=pmi2`) or PMIx (`mpirun`, `srun
/// --mpi=pmix`), or whatever sets the variables that `torchrun` sets, and `CROSSWARP_BOOTSTRAP`. Under another the first
/// PE of each host starts a process that stays until all PEs have ended.
///
/// Call it once, early: it takes over the file descriptors the launcher handed down, and may fork.
///
/// # Errors
/// [`InitError`].
///
/// ```
/// // Not started by the launcher, so this is a world of one.
/// let pe = crosswarp_shmem::init().unwrap();
/// assert_eq!((pe.my_pe(), pe.n_pes()), (0, 1));
/// ```
pub fn init() -> Result<Pe, InitError> {
    if std::env::var_os(FDS).is_some() {
        return join(inherited()?);
    }
    let Some(launcher) = bootstrap::find()? else {
        return Ok(Pe::join(ThreadWorld::one()?, 0, None));
    };
    only_once()?;
    join(bootstrap::start(launcher)?)
}

/// Joins the world of the `n_pes` processes of this host that call this with the same `id`, as PE `rank`: for programs
/// that have a way of their own to agree on an id. No other job may ever have it, and who knows it can join.
///
/// The processes meet at an abstract socket named by the id; PE 0 starts a process that stays until all PEs have ended,
/// and so may fork. One process may be a PE of several such worlds, one after the other.
///
/// # Errors
/// [`InitError`]; those who do not come within a minute are named.
///
/// ```
/// let pe = crosswarp_shmem::init_by_id(0, 1, [7; 16]).unwrap();
/// assert_eq!((pe.my_pe(), pe.n_pes()), (0, 1));
/// ```
pub fn init_by_id(rank: usize, n_pes: usize, id: [u8; 16]) -> Result<Pe, InitError> {
    if n_pes == 1 && rank == 0 {
        return Ok(Pe::join(ThreadWorld::one()?, 0, None));
    }
    join(bootstrap::start_by_id(rank, n_pes, id, (None, None))?)
}

/// The same for processes on one host or several: PE 0 has an [`IdListener`] from the making of the id on, whose place is
/// passed on with the id. Processes of its host do not use the network, those of others prove that they know the id.
///
/// # Errors
/// [`InitError`].
pub fn init_by_id_at(
    rank: usize,
    n_pes: usize,
    id: [u8; 16],
    place: IdPlace,
    own: Option<IdListener>,
) -> Result<Pe, InitError> {
    if n_pes == 1 && rank == 0 {
        return Ok(Pe::join(ThreadWorld::one()?, 0, None));
    }
    join(bootstrap::start_by_id(rank, n_pes, id, (Some(place), own))?)
}

/// The same for processes, on one host or several, that can exchange bytes in a way of their own: `gather` hands each what
/// every one has brought, by rank, and all call it as often. For programs that have MPI, say.
///
/// # Errors
/// [`InitError`]; of one that fails, on all.
///
/// ```
/// let mut alone = |mine: &[u8]| Ok(vec![mine.to_vec()]);
/// let pe = crosswarp_shmem::init_by_exchange(0, 1, &mut alone).unwrap();
/// assert_eq!((pe.my_pe(), pe.n_pes()), (0, 1));
/// ```
pub fn init_by_exchange<'a>(
    rank: usize,
    n_pes: usize,
    gather: &'a mut AllGather<'a>,
) -> Result<Pe, InitError> {
    if n_pes == 1 && rank == 0 {
        return Ok(Pe::join(ThreadWorld::one()?, 0, None));
    }
    join(bootstrap::start_by_exchange(rank, n_pes, gather)?)
}

fn only_once() -> Result<(), InitError> {
    match JOINED.swap(true, Ordering::AcqRel) {
        true => Err(InitError::AlreadyJoined),
        false => Ok(()),
    }
}

/// What the launcher handed down to this process.
fn inherited() -> Result<Handed, InitError> {
    let (me, n_pes): (usize, usize) = (number(PE)?, number(N_PES)?);
    let fds = variable(FDS)?;
    let bad_fds = || InitError::Environment {
        name: FDS,
        value: fds.clone(),
    };
    let numbers: Vec<RawFd> = fds
        .split(',')
        .map(|fd| fd.parse().ok().filter(|&fd| fd > 2).ok_or_else(bad_fds))
        .collect::<Result<_, _>>()?;
    if n_pes == 0 || n_pes > MAX_PES {
        return Err(bad_fds());
    }
    if me >= n_pes {
        return Err(InitError::Environment {
            name: PE,
            value: me.to_string(),
        });
    }
    let hosts = match std::env::var_os(HOSTS) {
        None => Hosts::one(n_pes),
        Some(_) => Hosts::parse(HOSTS, &variable(HOSTS)?, n_pes)?,
    };
    let local = hosts.members(hosts.of(me)).count();
    let ring = 1 + local..1 + 3 * local;
    let several = hosts.n() > 1;
    if numbers.len() != ring.end + 1 + usize::from(several) {
        return Err(bad_fds());
    }
    only_once()?;
    let agents = match several {
        true => addresses_of_agents()?,
        false => Vec::new(),
    };
    let own = hosts.members(hosts.of(me)).position(|pe| pe == me);
    Ok(Handed {
        me,
        control: numbers[0],
        heaps: numbers[1..ring.start].into(),
        lifeline: numbers[ring.end],
        key: several.then(|| numbers[numbers.len() - 1]),
        ring: numbers[ring].into(),
        place: own.unwrap_or(0),
        agents,
        hosts,
    })
}

/// Joins with what was handed to this process.
fn join(handed: Handed) -> Result<Pe, InitError> {
    let Handed { me, hosts, .. } = handed;
    let n_pes = hosts.n_pes();
    let several = hosts.n() > 1;
    let control = map(handed.control, Control::bytes(n_pes))?;
    let control = Control::new(control, n_pes);
    let header = control.header();
    // Acquire pairs with `Control::create`, though the launcher wrote it before we were started.
    if header.magic.load(Ordering::Acquire) != MAGIC {
        return Err(InitError::Memory {
            fd: handed.control,
            reason: "it is not a Crosswarp world".into(),
        });
    }
    let theirs = header.layout.load(Ordering::Relaxed);
    if theirs != LAYOUT {
        return Err(InitError::Version {
            theirs,
            ours: LAYOUT,
        });
    }
    let heap_bytes = header.heap_bytes.load(Ordering::Relaxed) as usize;
    let mut heaps: Vec<Option<Region>> = (0..n_pes).map(|_| None).collect();
    for (pe, &fd) in hosts.members(hosts.of(me)).zip(&handed.heaps) {
        heaps[pe] = Some(map(fd, heap_bytes).map_err(|error| match error {
            InitError::NoRoom(source) => InitError::Heap {
                bytes: heap_bytes,
                n_pes,
                source,
            },
            error => error,
        })?);
    }
    let ring = take_ring(&handed.ring, handed.place)?;
    // SAFETY: as in `map`: handed down for this one use.
    let lifeline = unsafe { OwnedFd::from_raw_fd(handed.lifeline) };
    let engine = match handed.key {
        Some(key) => Some(way_to_agents(me, key, &handed.agents)?),
        None => None,
    };
    register_heavy_fence(true);
    let timeout = Config::default().wait_timeout()?;
    if !control.pe(me).claim() {
        return Err(InitError::Taken {
            pe: me,
            pid: control.pe(me).pid(),
        });
    }
    let launcher = several.then(|| rustix::io::fcntl_dupfd_cloexec(&lifeline, 0));
    let launcher = launcher
        .transpose()
        .map_err(|error| InitError::NoRoom(error.into()))?;
    hold_on(lifeline, me, header.launcher_pid.load(Ordering::Relaxed));
    Ok(Pe::join(
        Arc::new(Mapped {
            control,
            heaps,
            heap_bytes,
            patience: Patience::new(n_pes, hosts.n(), timeout),
            hosts,
            kind: WorldKind::Processes,
            ring: Some(ring),
            launcher,
            parts: Mutex::default(),
        }),
        me,
        engine,
    ))
}

fn addresses_of_agents() -> Result<Vec<SocketAddr>, InitError> {
    let text = variable(AGENTS)?;
    let addresses: Result<Vec<_>, _> = text.split(',').map(str::parse).collect();
    addresses.map_err(|_| InitError::Environment {
        name: AGENTS,
        value: text.clone(),
    })
}

/// The way to the agents of a world of several hosts.
fn way_to_agents(
    me: usize,
    key: RawFd,
    addresses: &[SocketAddr],
) -> Result<Box<dyn Engine>, InitError> {
    let bad_key = |reason: String| InitError::Memory { fd: key, reason };
    // SAFETY: only borrowed for the call that asks whether the descriptor is open at all.
    let borrowed = unsafe { BorrowedFd::borrow_raw(key) };
    let mut bytes = [0; key::BYTES];
    let read =
        rustix::io::pread(borrowed, &mut bytes, 0).map_err(|error| bad_key(error.to_string()))?;
    if read != bytes.len() {
        return Err(bad_key("it is not the key of a job".into()));
    }
    // SAFETY: as in `map`.
    drop(unsafe { OwnedFd::from_raw_fd(key) });
    Ok(Network::chosen()?.port(me, Key(bytes), addresses)?)
}

/// Sees to it that the launcher can signal this process, and that it ends when the launcher does.
///
/// What the launcher started itself it knows, and the kernel ends. A PE with a shell in between, say,
/// sends it a pidfd of itself (a number may be another process's by the time it is used) and watches the
/// lifeline, whose other end closes with the launcher: such a PE may never wait for anyone.
fn hold_on(lifeline: OwnedFd, me: usize, launcher: u32) {
    // Set between fork and exec, and not inherited.
    let asked_for = parent_process_death_signal().is_ok_and(|signal| signal == Some(Signal::KILL));
    if asked_for && getppid() == Pid::from_raw(launcher as i32) {
        return;
    }
    // Not for this PE's own children.
    let _ = rustix::io::fcntl_setfd(&lifeline, rustix::io::FdFlags::CLOEXEC);
    // Where the kernel refuses, the lifeline still ends this process when the run has ended.
    if let Ok(myself) = pidfd_open(getpid(), PidfdFlags::empty()) {
        let _ = send_joined(lifeline.as_fd(), me, &myself);
    }
    let watch = std::thread::Builder::new().name("launcher watch".into());
    let _ = watch.spawn(move || {
        // Hung up once the launcher has ended or has shut its end down.
        let mut ended = [PollFd::new(&lifeline, PollFlags::empty())];
        while let Err(rustix::io::Errno::INTR) = poll(&mut ended, None) {}
        if ended[0].revents().contains(PollFlags::HUP) {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    });
}

/// Maps an inherited memfd and closes the descriptor.
fn map(fd: RawFd, expected: usize) -> Result<Region, InitError> {
    let memory = |reason: String| InitError::Memory { fd, reason };
    // SAFETY: only borrowed for the one call that asks whether the descriptor is open at all.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let size = rustix::fs::fstat(borrowed)
        .map_err(|e| memory(e.to_string()))?
        .st_size as usize;
    if size < expected {
        return Err(memory(format!("it has {size} bytes")));
    }
    // Before ownership is taken: a file that is no sealed memfd is somebody else's.
    let region = Region::shared(borrowed, size).map_err(|error| match error {
        rustix::io::Errno::INVAL => memory("it is not memory of a launcher".into()),
        rustix::io::Errno::NOMEM => InitError::NoRoom(error.into()),
        error => memory(error.to_string()),
    })?;
    // SAFETY: the descriptor is open (fstat above) and the launcher handed it to this process for
    // this one use; `JOINED` keeps a second call away, so nobody else owns or closes it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(region)
}

/// Keeps this PE's ends of the ring and closes everyone else's.
fn take_ring(ends: &[RawFd], me: usize) -> Result<Ring, InitError> {
    // Pair `i` joins PE `i` (first end) to its right neighbour (second end).
    let (right, left) = (2 * me, (2 * me + ends.len() - 1) % ends.len());
    let mut kept = (None, None);
    for (index, &fd) in ends.iter().enumerate() {
        // SAFETY: as in `map`: handed down for this one use.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        if index == right {
            kept.0 = Some(owned);
        } else if index == left {
            kept.1 = Some(owned);
        }
    }
    let (Some(right), Some(left)) = kept else {
        unreachable!("both indices are below the number of ends");
    };
    for end in [&right, &left] {
        // Not for this PE's own children.
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC).map_err(|error| {
            InitError::Memory {
                fd: end.as_raw_fd(),
                reason: error.to_string(),
            }
        })?;
    }
    Ok(Ring { right, left })
}

fn variable(name: &'static str) -> Result<String, InitError> {
    std::env::var(name).map_err(|error| InitError::Environment {
        name,
        value: error.to_string(),
    })
}

fn number(name: &'static str) -> Result<usize, InitError> {
    let value = variable(name)?;
    value
        .parse()
        .map_err(|_| InitError::Environment { name, value })
}
