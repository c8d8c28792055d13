//! Starting a world under a launcher that is not ours: `mpiexec`, `mpirun`, `srun`, or variables.
//!
//! Such a launcher starts the processes and lets them exchange a few bytes; it makes no memory. So:
//! 1. The processes say through the launcher on which host each is, and the first one makes the job's key.
//! 2. The first PE of each host forks the host's [agent](host), which makes the memory and listens.
//! 3. They say where the agents are. Each PE gets the memory of its host from the agent there, through a socket in a
//!    folder that is gone at once, and [joins](crate::world::processes) as under our own launcher.
//! 4. The agents stay until all PEs have ended. They [tell each other](tree) who fails; one that does not answer is lost
//!    with its host, and ends the world for the others.
//!
//! Which PEs share a host is what the launcher says, or the user ([`HOST`], [`HOSTS`]), never what a host is called.

mod address;
mod agent;
mod by_exchange;
mod by_id;
mod host;
mod pmi1;
mod pmix;
mod tree;
mod variables;

pub use by_exchange::AllGather;
pub use by_id::{IdListener, IdPlace};

use crate::transport::beat::Life;
use crate::transport::hosts::Hosts;
use crate::transport::network::NetworkError;
use crate::transport::tcp::key::{BYTES, Key};
use crate::world::config::{BOOTSTRAP, Config, ConfigError, HOST, HOSTS, NETWORK, Network, read};
use crate::world::threads::MAX_PES;
use rustix::fd::RawFd;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// Most bytes of a card.
const CARD: usize = 1024;
/// How long the PEs may take to come together.
const START: Duration = Duration::from_secs(60);

/// The PEs of a world could not come together.
#[derive(Debug, Error)]
pub enum BootstrapError {
    /// A launcher has started several processes that know nothing of each other.
    #[error(
        "{launcher} has started {n} processes that can't find each other; {right}, or set RANK, WORLD_SIZE, LOCAL_RANK, \
         LOCAL_WORLD_SIZE and CROSSWARP_BOOTSTRAP=address:port"
    )]
    Strangers {
        /// What started them.
        launcher: &'static str,
        /// How many.
        n: usize,
        /// What would be right.
        right: &'static str,
    },
    /// A variable makes no sense, or is missing.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The launcher's library is not there.
    #[error(
        "the launcher speaks PMIx, but {library} can't be opened: {reason}; install it (libpmix2)"
    )]
    Library {
        /// Its file.
        library: &'static str,
        /// What the system said.
        reason: String,
    },
    /// The exchange through the launcher failed.
    #[error("no exchange with the other PEs through {through}: {source}")]
    Exchange {
        /// The launcher, or the address.
        through: String,
        /// What is wrong.
        source: io::Error,
    },
    /// Not all PEs have come.
    #[error(
        "{missing} of {n} PEs, such as rank {first}, have not come to {place} within {seconds} s"
    )]
    Late {
        /// How many.
        missing: usize,
        /// Of how many.
        n: usize,
        /// One of them.
        first: usize,
        /// Where.
        place: SocketAddr,
        /// Within which time.
        seconds: u64,
    },
    /// Processes that meet by an id have not all come.
    #[error(
        "{n} PEs were to meet, and {} not come within {seconds} s: did each get the same id and a rank of its own, and \
         can those of other hosts reach rank 0's?",
        ranks(missing)
    )]
    Missing {
        /// The ranks that have not come; for others than rank 0 that one.
        missing: Vec<usize>,
        /// How many were to meet.
        n: usize,
        /// Within which time.
        seconds: u64,
    },
    /// Another version.
    #[error("PE {pe} is of version {theirs}, this one of {ours}")]
    Version {
        /// Who.
        pe: usize,
        /// Its version.
        theirs: String,
        /// This one's.
        ours: &'static str,
    },
    /// Another network.
    #[error("PE {pe} has {name} {theirs}, this one {ours}", name = NETWORK.name)]
    Networks {
        /// Who.
        pe: usize,
        /// Its network.
        theirs: String,
        /// This one's.
        ours: String,
    },
    /// The network can't be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A world has between 1 and [`MAX_PES`] PEs.
    #[error("a world has 1 to {MAX_PES} PEs, not {n_pes}")]
    NumberOfPes {
        /// What the launcher has started.
        n_pes: usize,
    },
    /// The agent of this host could not be started, or could not be reached.
    #[error("the agent of this host: {0}")]
    Agent(String),
}

/// Ranks with their verb, for a message.
fn ranks(ranks: &[usize]) -> String {
    let numbers: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    match numbers.len() {
        1 => format!("rank {} has", numbers[0]),
        _ => format!("ranks {} have", numbers.join(", ")),
    }
}

fn exchange(through: impl Into<String>) -> impl FnOnce(io::Error) -> BootstrapError {
    let through = through.into();
    move |source| BootstrapError::Exchange { through, source }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// The launcher's way between the processes that it has started.
pub(crate) trait Bootstrap {
    /// Which of them this is.
    fn rank(&self) -> usize;

    /// How many there are.
    fn n(&self) -> usize;

    /// A name for this host, the same for all processes here and for no others.
    ///
    /// # Errors
    /// [`BootstrapError`].
    fn host(&mut self) -> Result<String, BootstrapError>;

    /// Shows this process's `card` to all, if it is one of `from`; returns the cards of these. All call it, with the same
    /// `from`. Cards have at most [`CARD`] bytes.
    ///
    /// # Errors
    /// [`BootstrapError`].
    fn gather(&mut self, card: &[u8], from: &[usize]) -> Result<Vec<Vec<u8>>, BootstrapError>;

    /// The key, given what rank 0 has said.
    fn key(&self, said: [u8; BYTES]) -> Key {
        Key(said)
    }

    /// This host's address on the way to the others, if that is known.
    fn address(&self) -> Option<IpAddr> {
        None
    }

    /// Has the launcher end all processes, if it can.
    fn abort(&mut self, reason: &BootstrapError);

    /// Ends the exchange in good order.
    fn finish(&mut self);
}

/// What a process gets that joins a world.
pub(crate) struct Handed {
    /// Its PE.
    pub(crate) me: usize,
    pub(crate) hosts: Hosts,
    pub(crate) control: RawFd,
    /// The heaps of its host's PEs.
    pub(crate) heaps: Vec<RawFd>,
    /// Ends of socket pairs: both of each pair, pair by pair, where pair `i` joins the `i`th of the PEs that they are
    /// for to the next.
    pub(crate) ring: Vec<RawFd>,
    /// Which of these it is.
    pub(crate) place: usize,
    pub(crate) lifeline: RawFd,
    /// The key, if there are several hosts.
    pub(crate) key: Option<RawFd>,
    /// Where their agents are.
    pub(crate) agents: Vec<SocketAddr>,
}

/// The launcher that has started this process as one of several; `None` if none has.
///
/// # Errors
/// [`BootstrapError`]; nothing was said to the launcher.
pub(crate) fn find() -> Result<Option<Found>, BootstrapError> {
    let number = |name: &'static str| Ok::<_, ConfigError>(variables::number(name)?.unwrap_or(0));
    let set = |name: &str| std::env::var_os(name).is_some();
    if read(BOOTSTRAP.name)?.is_some() {
        return Ok(Some(Found::Variables));
    }
    if set("PMIX_NAMESPACE") && set("PMIX_RANK") {
        return Ok(Some(Found::Pmix));
    }
    if set("PMI_FD") && set("PMI_RANK") {
        return Ok(Some(Found::Pmi1));
    }
    // `srun` sets it for each task; a batch script that starts one process has a step of one task or none.
    let tasks = number("SLURM_STEP_NUM_TASKS")?;
    if set("SLURM_STEP_ID") && tasks > 1 {
        return Err(BootstrapError::Strangers {
            launcher: "srun",
            n: tasks,
            right: "give it --mpi=pmi2 or --mpi=pmix",
        });
    }
    let n = number("WORLD_SIZE")?;
    if n > 1 && set("RANK") && set("LOCAL_RANK") {
        return Err(BootstrapError::Strangers {
            launcher: "a launcher that sets RANK and WORLD_SIZE",
            n,
            right: "use crosswarp run",
        });
    }
    Ok(None)
}

/// A launcher, before anything is said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Variables,
    Pmix,
    Pmi1,
}

impl Found {
    /// Which of the processes this is, if that is known so early.
    pub(crate) fn rank(self) -> Option<usize> {
        let name = match self {
            Self::Variables => "RANK",
            Self::Pmix => "PMIX_RANK",
            Self::Pmi1 => "PMI_RANK",
        };
        variables::number(name).ok().flatten()
    }

    fn open(self) -> Result<Box<dyn Bootstrap>, BootstrapError> {
        Ok(match self {
            Self::Variables => Box::new(variables::Variables::open()?),
            Self::Pmix => Box::new(pmix::Pmix::open()?),
            Self::Pmi1 => Box::new(pmi1::Pmi1::open()?),
        })
    }
}

/// The address of this host that other hosts reach, for launchers who have to name one: as for its agent.
///
/// # Errors
/// [`BootstrapError`].
pub fn address_of_host() -> Result<IpAddr, BootstrapError> {
    address::of_this_host(None)
}

/// Brings the processes of a launcher together. If that fails here, the launcher is asked to end all.
///
/// # Errors
/// [`BootstrapError`].
pub(crate) fn start(found: Found) -> Result<Handed, BootstrapError> {
    let chosen = chosen();
    if found == Found::Variables {
        // Rank 0 that has listened and goes before the others come would be looked for by them to the end.
        return bring_together(|| found.open(), Ok(chosen?));
    }
    bring_together(|| found.open(), chosen)
}

/// Brings the `n` processes together that have `id`, of which this is number `rank`: of one host, or, if the id was made with
/// a place to meet at, of several. `own` listens there.
///
/// # Errors
/// [`BootstrapError`].
pub(crate) fn start_by_id(
    rank: usize,
    n: usize,
    id: [u8; 16],
    (place, own): (Option<IdPlace>, Option<IdListener>),
) -> Result<Handed, BootstrapError> {
    if n == 0 || n > MAX_PES || rank >= n {
        return Err(BootstrapError::NumberOfPes { n_pes: n });
    }
    let open = || -> Result<Box<dyn Bootstrap>, _> {
        let this = by_id::ById::open(rank, n, id, (place, own), START)?;
        Ok(Box::new(this))
    };
    bring_together(open, chosen())
}

/// Brings the `n` processes together of which this is number `rank`, and that exchange bytes by `gather`.
///
/// # Errors
/// [`BootstrapError`].
pub(crate) fn start_by_exchange<'a>(
    rank: usize,
    n: usize,
    gather: &'a mut AllGather<'a>,
) -> Result<Handed, BootstrapError> {
    if n == 0 || n > MAX_PES || rank >= n {
        return Err(BootstrapError::NumberOfPes { n_pes: n });
    }
    let this = by_exchange::ByExchange::new(rank, n, gather);
    bring_together(|| Ok(Box::new(this)), chosen())
}

/// What the user has chosen for worlds of several hosts.
type Chosen = Result<(Network, Life), BootstrapError>;

fn chosen() -> Chosen {
    Ok((Network::chosen()?, Life::chosen()?))
}

/// One that can't take part, be it for what is `chosen`, says so to the others, which wait for it.
fn bring_together<'a>(
    open: impl FnOnce() -> Result<Box<dyn Bootstrap + 'a>, BootstrapError>,
    chosen: Chosen,
) -> Result<Handed, BootstrapError> {
    let mut launcher = open()?;
    let met = chosen.and_then(|(network, life)| meet(&mut *launcher, network, life));
    match &met {
        Ok(_) => launcher.finish(),
        Err(error) => launcher.abort(error),
    }
    met
}

fn meet(
    launcher: &mut dyn Bootstrap,
    network: Network,
    life: Life,
) -> Result<Handed, BootstrapError> {
    let (me, n_pes) = (launcher.rank(), launcher.n());
    if n_pes == 0 || n_pes > MAX_PES || me >= n_pes {
        return Err(BootstrapError::NumberOfPes { n_pes });
    }
    let key = Key::random().map_err(exchange("the launcher"))?;
    let (hosts, key) = meet_hosts(launcher, key, network)?;
    if hosts.n() > 1 {
        // Before the agent is forked, which then has it, too.
        network.open()?;
    }
    let host = hosts.of(me);
    let first = |host| hosts.members(host).next().unwrap_or(0);
    let leaders: Vec<usize> = (0..hosts.n()).map(first).collect();

    // Heaps have one size on all hosts.
    let mine = Config::default().heap_bytes(hosts.members(host).count())?;
    let bytes = launcher.gather(&(mine as u64).to_le_bytes(), &leaders)?;
    let bytes = bytes.iter().map(|card| match card.as_slice().try_into() {
        Ok(bytes) => Ok(u64::from_le_bytes(bytes) as usize),
        Err(_) => Err(strange(me)),
    });
    let bytes = bytes.collect::<Result<Vec<_>, _>>()?;
    let heap_bytes = bytes.into_iter().min().unwrap_or(mine);

    // What is started here ends when the line to it closes, until it has met all PEs of this host.
    let mut agent = None;
    let mut card = String::new();
    if leaders[host] == me {
        let part = host::Part {
            address: match hosts.n() {
                1 => IpAddr::V4(Ipv4Addr::LOCALHOST),
                _ => address::of_this_host(launcher.address())?,
            },
            hosts: hosts.clone(),
            host,
            heap_bytes,
            key,
            network,
            life,
        };
        let started = agent::start(part)?;
        card = format!("{}\n{}", started.address, started.path.display());
        agent = Some(started);
    }
    let cards = launcher.gather(card.as_bytes(), &leaders)?;
    let cards = cards.iter().zip(&leaders).map(|(card, &leader)| {
        let text = std::str::from_utf8(card).ok();
        let parts = text.and_then(|text| text.split_once('\n'));
        let parts = parts.and_then(|(address, path)| Some((address.parse().ok()?, path)));
        parts.ok_or(strange(leader))
    });
    let cards = cards.collect::<Result<Vec<(SocketAddr, &str)>, _>>()?;
    let agents: Vec<SocketAddr> = cards.iter().map(|&(address, _)| address).collect();
    if let Some(agent) = &mut agent {
        agent.tell(&agents)?;
    }
    let fds = agent::receive(Path::new(cards[host].1), me, &hosts)?;
    Ok(fds.handed(me, hosts, agents))
}

/// A name for this host. What shares memory here shares the system, its network and its files.
fn this_host() -> io::Result<String> {
    let system = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let mut host = system.trim().to_owned();
    for space in ["net", "mnt"] {
        let space = std::fs::read_link(format!("/proc/self/ns/{space}"))?;
        host += &format!(" {}", space.display());
    }
    Ok(host)
}

/// A PE that says what no PE says.
fn strange(pe: usize) -> BootstrapError {
    exchange(format!("PE {pe}"))(invalid("it says what no PE of this version says"))
}

/// Which PE is on which host, and the key.
fn meet_hosts(
    launcher: &mut dyn Bootstrap,
    key: Key,
    network: Network,
) -> Result<(Hosts, Key), BootstrapError> {
    let (me, n_pes) = (launcher.rank(), launcher.n());
    let ours = env!("CARGO_PKG_VERSION");
    let host = match read(HOST.name)? {
        Some(name) => format!("name {name}"),
        None => launcher.host()?,
    };
    // What a user makes up can be long; what differs has to go on differing.
    if host.len() > 255 || host.contains('\n') {
        return Err(BootstrapError::Config(ConfigError {
            name: HOST.name,
            value: host,
            wanted: "a name of at most 250 letters",
        }));
    }
    // Others' keys are never looked at.
    let said = match me {
        0 => hex(&key.0),
        _ => String::new(),
    };
    let card = format!("{ours}\n{n_pes}\n{network}\n{host}\n{said}");
    let everybody: Vec<usize> = (0..n_pes).collect();
    let cards = launcher.gather(card.as_bytes(), &everybody)?;
    let mut names: Vec<&str> = Vec::new();
    let mut of = Vec::with_capacity(n_pes);
    let mut said = None;
    for (pe, card) in cards.iter().enumerate() {
        let text = std::str::from_utf8(card).map_err(|_| strange(pe))?;
        let mut lines = text.split('\n');
        let mut line = || lines.next().unwrap_or("");
        let (theirs, size, carries, name, key) = (line(), line(), line(), line(), line());
        if theirs != ours {
            let theirs = theirs.to_owned();
            return Err(BootstrapError::Version { pe, theirs, ours });
        }
        if size.parse() != Ok(n_pes) {
            let wrong = invalid(format!("it is one of {size} PEs, this one of {n_pes}"));
            return Err(exchange(format!("PE {pe}"))(wrong));
        }
        if carries != network.to_string() {
            return Err(BootstrapError::Networks {
                pe,
                theirs: carries.to_owned(),
                ours: network.to_string(),
            });
        }
        let known = names.iter().position(|&known| known == name);
        of.push(known.unwrap_or(names.len()));
        if known.is_none() {
            names.push(name);
        }
        if pe == 0 {
            said = unhex(key).and_then(|bytes| bytes.try_into().ok());
        }
    }
    let key = launcher.key(said.ok_or_else(|| strange(0))?);
    let Some(text) = read(HOSTS)? else {
        return Ok((Hosts::of_each(&of), key));
    };
    let hosts = Hosts::parse(HOSTS, &text, n_pes)?;
    if text.contains('+') && hosts.n() == 1 {
        return Err(BootstrapError::Config(ConfigError {
            name: HOSTS,
            value: text,
            wanted: "the PEs of each host, as many as the launcher has started, or the number of hosts",
        }));
    }
    Ok((hosts, key))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect::<Option<Vec<u8>>>()
        .filter(|_| text.len().is_multiple_of(2))
}

/// How many descriptors a PE gets: control, the heaps of its host's `local` PEs, two ends of sockets, the lifeline and,
/// if there are `several` hosts, the key.
fn descriptors(local: usize, several: bool) -> usize {
    1 + local + 2 + 1 + usize::from(several)
}

/// Sends `bytes` with their length in front.
fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = (bytes.len() as u32).to_le_bytes();
    to.write_all(&[&length, bytes].concat())
}

/// Reads what [`write_frame`] has sent, and not a byte more.
fn read_frame(from: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(invalid(format!("a message of {length} bytes")));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Writes a reason that nobody else may get to tell: the launcher may end this process at once.
fn say(reason: &BootstrapError) {
    eprintln!("crosswarp: {reason}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Ranks that are threads.
    struct Fake {
        rank: usize,
        host: &'static str,
        others: Vec<Sender<(usize, Vec<u8>)>>,
        cards: Receiver<(usize, Vec<u8>)>,
    }

    impl Bootstrap for Fake {
        fn rank(&self) -> usize {
            self.rank
        }
        fn n(&self) -> usize {
            self.others.len()
        }
        fn host(&mut self) -> Result<String, BootstrapError> {
            Ok(self.host.into())
        }
        fn gather(&mut self, card: &[u8], from: &[usize]) -> Result<Vec<Vec<u8>>, BootstrapError> {
            for other in &self.others {
                other.send((self.rank, card.to_vec())).unwrap();
            }
            let mut cards = vec![Vec::new(); from.len()];
            for _ in from {
                let (rank, card) = self.cards.recv().unwrap();
                cards[rank] = card;
            }
            Ok(cards)
        }
        fn abort(&mut self, _reason: &BootstrapError) {}
        fn finish(&mut self) {}
    }

    #[test]
    fn hosts_are_told_apart_by_what_the_launcher_says() {
        let names = ["b", "a", "b", "c", "a"];
        let (others, cards): (Vec<_>, Vec<_>) = names.iter().map(|_| channel()).unzip();
        let ranks = names.into_iter().zip(cards).enumerate();
        let met: Vec<_> = ranks
            .map(|(rank, (host, cards))| {
                let others = others.clone();
                std::thread::spawn(move || {
                    let mut fake = Fake {
                        rank,
                        host,
                        others,
                        cards,
                    };
                    meet_hosts(&mut fake, Key([rank as u8 + 1; BYTES]), Network::Tcp).unwrap()
                })
            })
            .collect();
        for met in met {
            let (hosts, key) = met.join().unwrap();
            assert_eq!(key.0, [1; BYTES], "rank 0's");
            let of: Vec<usize> = (0..5).map(|pe| hosts.of(pe)).collect();
            assert_eq!(of, [0, 1, 0, 2, 1]);
            assert_eq!(hosts.members(0).collect::<Vec<_>>(), [0, 2]);
        }
    }

    #[test]
    fn bytes_are_written_in_digits() {
        assert_eq!(hex(&[0, 255, 16]), "00ff10");
        assert_eq!(unhex("00ff10"), Some(vec![0, 255, 16]));
        for wrong in ["0", "0g", "0011f", "é"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
