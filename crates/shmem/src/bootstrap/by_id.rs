//! Processes that know their rank, their number and an id that nobody else has.
//!
//! Rank 0 listens at an abstract socket named by the id, which is gone with it; the others connect, say their rank and
//! send their cards, and it answers with all cards. It admits processes of its own user alone.
//!
//! Those of other hosts come over the network, if rank 0 has made the id with a [place](IdListener) to come to. They prove
//! that they know the id, which is their secret, as PEs do to [agents](crate::transport::tcp::key).

use super::variables::{self, job_key, talk_to_all};
use super::{
    Bootstrap, BootstrapError, CARD, address, exchange, invalid, read_frame, this_host, write_frame,
};
use crate::transport::tcp::key::{BYTES, Key};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How often the others look whether rank 0 listens.
const LOOK: Duration = Duration::from_millis(10);
/// How long one may take to say which rank it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where processes of other hosts meet that of this one which has made an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdPlace {
    /// Which host it is on: the same bytes on this host and on no other.
    pub host: [u8; 16],
    /// Where it listens.
    pub address: std::net::SocketAddr,
}

/// Listens at an [`IdPlace`], from the making of an id on.
#[derive(Debug)]
pub struct IdListener {
    socket: TcpListener,
    place: IdPlace,
}

/// A name for this host, of as many bytes as an id.
fn tag() -> io::Result<[u8; 16]> {
    let mut hasher = SipHasher24::new();
    hasher.write(this_host()?.as_bytes());
    Ok(hasher.finish128().as_bytes())
}

impl IdListener {
    /// Listens at this host's address, at a port that the system chooses.
    ///
    /// # Errors
    /// [`BootstrapError`]: no address, or none to listen at.
    pub fn open() -> Result<Self, BootstrapError> {
        Self::at(address::of_this_host(None)?)
    }

    fn at(address: IpAddr) -> Result<Self, BootstrapError> {
        let host = tag().map_err(failed)?;
        let socket = TcpListener::bind((address, 0)).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let place = IdPlace { host, address };
        Ok(Self { socket, place })
    }

    /// One at the place of another that has ended, if nobody else listens there.
    fn again(place: IdPlace) -> Option<Self> {
        let socket = TcpListener::bind(place.address).ok()?;
        Some(Self { socket, place })
    }

    /// What the others need to know beside the id.
    pub fn place(&self) -> IdPlace {
        self.place
    }
}

/// To a process of this host or of another.
trait Link: Read + Write {
    /// Has the other side see the end.
    fn close(&self);
}

impl Link for UnixStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Link for std::net::TcpStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// See the [module](self).
pub(super) struct ById {
    rank: usize,
    n: usize,
    /// The id, where it is the secret of several hosts.
    secret: Option<Key>,
    /// To rank 0; rank 0's to the others, by rank.
    links: Links,
}

fn failed(error: io::Error) -> BootstrapError {
    exchange("the sockets by which they meet")(error)
}

impl ById {
    /// Meets the others within `limit`.
    ///
    /// # Errors
    /// [`BootstrapError`].
    pub(super) fn open(
        rank: usize,
        n: usize,
        id: [u8; 16],
        (place_of_id, own): (Option<IdPlace>, Option<IdListener>),
        limit: Duration,
    ) -> Result<Self, BootstrapError> {
        let secret = place_of_id.map(|_| Key(id));
        if let Some(far) = place_of_id
            && rank != 0
            && far.host != tag().map_err(failed)?
        {
            let link = variables::connect(far.address, Key(id), rank);
            let link = link.map_err(|error| match error.kind() {
                // Its process listens since it made the id, and has not begun.
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => BootstrapError::Missing {
                    missing: vec![0],
                    n,
                    seconds: super::START.as_secs(),
                },
                _ => exchange(format!("PE 0's address, {}", far.address))(error),
            })?;
            return Ok(Self {
                rank,
                n,
                secret,
                links: vec![Box::new(link)],
            });
        }
        let name = format!("crosswarp-{}", super::hex(&id));
        let place = SocketAddr::from_abstract_name(name).map_err(failed)?;
        let deadline = Instant::now() + limit;
        let seconds = limit.as_secs();
        let links: Links = match rank {
            0 => {
                let listener = UnixListener::bind_addr(&place).map_err(failed)?;
                // Who has let its listener go, by making other ids, takes the address again. If that is another's by now,
                // PEs of other hosts say so.
                let here = place_of_id.filter(|place| tag().is_ok_and(|tag| tag == place.host));
                let again = || IdListener::again(here?);
                let own = own.or_else(again);
                let far = own.as_ref().map(|own| (&own.socket, Key(id)));
                admit(&listener, far, n, deadline)
                    .map_err(failed)?
                    .map_err(|missing| BootstrapError::Missing {
                        missing,
                        n,
                        seconds,
                    })?
            }
            _ => loop {
                match UnixStream::connect_addr(&place) {
                    Ok(mut link) => {
                        link.write_all(&(rank as u64).to_le_bytes())
                            .map_err(failed)?;
                        // It answers when all have come.
                        link.set_read_timeout(Some(limit + PATIENCE))
                            .map_err(failed)?;
                        break vec![Box::new(link)];
                    }
                    Err(_) if Instant::now() < deadline => std::thread::sleep(LOOK),
                    Err(_) => {
                        return Err(BootstrapError::Missing {
                            missing: vec![0],
                            n,
                            seconds,
                        });
                    }
                }
            },
        };
        Ok(Self {
            rank,
            n,
            secret,
            links,
        })
    }
}

type Links = Vec<Box<dyn Link>>;
/// Who has come to rank 0, by rank.
type Come = Vec<Option<Box<dyn Link>>>;

fn take(come: &mut Come, rank: usize, link: Box<dyn Link>) -> io::Result<()> {
    match rank.checked_sub(1).and_then(|index| come.get_mut(index)) {
        Some(place) if place.is_none() => *place = Some(link),
        _ => {
            let n = come.len() + 1;
            let text = format!("a second process says that it is rank {rank} of {n}");
            return Err(invalid(text));
        }
    }
    Ok(())
}

/// Waits for ranks 1 to `n` − 1, those of other hosts at `far`; or says who has not come.
fn admit(
    listener: &UnixListener,
    far: Option<(&TcpListener, Key)>,
    n: usize,
    deadline: Instant,
) -> io::Result<Result<Links, Vec<usize>>> {
    listener.set_nonblocking(true)?;
    if let Some((far, _)) = far {
        far.set_nonblocking(true)?;
    }
    let (sender, receiver) = channel();
    // Counts the threads that talk to those of other hosts.
    let talks = Arc::new(());
    let mut links: Come = (1..n).map(|_| None).collect();
    while links.iter().any(Option::is_none) {
        let left = deadline.saturating_duration_since(Instant::now());
        // Who has proven himself to a thread is not seen by the poll.
        let pause = if far.is_some() { left.min(LOOK) } else { left };
        let pause = Timespec::try_from(pause).map_err(io::Error::other)?;
        let mut watched = vec![PollFd::new(listener, PollFlags::IN)];
        watched.extend(far.map(|(far, _)| PollFd::new(far, PollFlags::IN)));
        rustix::io::retry_on_intr(|| poll(&mut watched, Some(&pause)))?;
        if let Some((far, key)) = far {
            talk_to_all(far, key, &sender, (&talks, n))?;
            while let Ok((rank, link)) = receiver.try_recv() {
                take(&mut links, rank, Box::new(link))?;
            }
        }
        let (mut link, _) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(_) if !left.is_zero() => continue,
            Err(_) => {
                let missing = links.iter().enumerate().filter(|(_, link)| link.is_none());
                return Ok(Err(missing.map(|(index, _)| index + 1).collect()));
            }
        };
        link.set_nonblocking(false)?;
        link.set_read_timeout(Some(PATIENCE))?;
        let mut rank = [0; 8];
        let ours = socket_peercred(&link)?.uid == rustix::process::geteuid();
        if !ours || link.read_exact(&mut rank).is_err() {
            continue;
        }
        link.set_read_timeout(Some(super::START))?;
        let rank = u64::from_le_bytes(rank) as usize;
        take(&mut links, rank, Box::new(link))?;
    }
    Ok(Ok(links.into_iter().flatten().collect()))
}

impl Bootstrap for ById {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n(&self) -> usize {
        self.n
    }

    fn host(&mut self) -> Result<String, BootstrapError> {
        this_host().map_err(failed)
    }

    fn key(&self, said: [u8; BYTES]) -> Key {
        self.secret
            .map_or(Key(said), |secret| job_key(secret, said))
    }

    fn gather(&mut self, card: &[u8], from: &[usize]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        if self.rank != 0 {
            let link = &mut self.links[0];
            write_frame(link, card).map_err(failed)?;
            let cards = from.iter().map(|_| read_frame(link, CARD));
            return cards.collect::<io::Result<_>>().map_err(failed);
        }
        let mut cards = vec![card.to_vec()];
        for link in &mut self.links {
            cards.push(read_frame(link, CARD).map_err(failed)?);
        }
        let wanted: Vec<Vec<u8>> = from.iter().map(|&rank| cards[rank].clone()).collect();
        for link in &mut self.links {
            for card in &wanted {
                write_frame(link, card).map_err(failed)?;
            }
        }
        Ok(wanted)
    }

    fn abort(&mut self, _reason: &BootstrapError) {
        self.finish();
    }

    fn finish(&mut self) {
        for link in self.links.drain(..) {
            link.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::spawn;

    const LONG: Duration = Duration::from_secs(60);

    fn id() -> [u8; 16] {
        crate::transport::tcp::key::Key::random().unwrap().0
    }

    /// At an address that every machine has.
    fn listener() -> IdListener {
        IdListener::at([127, 0, 0, 1].into()).unwrap()
    }

    #[test]
    fn all_get_the_cards_of_those_who_are_asked() {
        let id = id();
        let ranks: Vec<_> = (0..4)
            .map(|rank| {
                spawn(move || {
                    let mut this = ById::open(rank, 4, id, (None, None), LONG).unwrap();
                    let card = |rank: usize| vec![rank as u8; rank * CARD / 3];
                    let cards = this.gather(&card(rank), &[0, 1, 2, 3]).unwrap();
                    assert_eq!(cards, [card(0), card(1), card(2), card(3)]);
                    assert_eq!(this.gather(&card(rank), &[2]).unwrap(), [card(2)]);
                    this.finish();
                })
            })
            .collect();
        for rank in ranks {
            rank.join().unwrap();
        }
    }

    #[test]
    fn who_has_not_come_is_named() {
        let id = id();
        // Long enough for a thread to start on a busy machine.
        let limit = Duration::from_secs(2);
        let one = spawn(move || ById::open(1, 4, id, (None, None), LONG).map(|_| ()));
        let error = ById::open(0, 4, id, (None, None), limit)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("4 PEs were to meet, and ranks 2, 3 have not come"),
            "{error}"
        );
        // It met rank 0, which then went away: its first exchange would say so.
        one.join().unwrap().unwrap();
        let error = ById::open(1, 2, self::id(), (None, None), limit)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("rank 0 has not come"), "{error}");
    }

    #[test]
    fn a_rank_is_there_once() {
        let id = id();
        let twice: Vec<_> = (0..2)
            .map(|_| spawn(move || ById::open(1, 3, id, (None, None), LONG).map(|_| ())))
            .collect();
        let error = ById::open(0, 3, id, (None, None), LONG)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("a second process says that it is rank 1 of 3"),
            "{error}"
        );
        for one in twice {
            let _ = one.join().unwrap();
        }
    }

    /// Ranks 2 and 3 are told that the place is another host's.
    #[test]
    fn those_of_other_hosts_come_over_the_network() {
        let id = id();
        let own = listener();
        let near = own.place();
        let far = IdPlace {
            host: [7; 16],
            ..near
        };
        // A stranger keeps nobody away.
        let _stranger = std::net::TcpStream::connect(near.address).unwrap();
        let mut own = Some(own);
        let ranks: Vec<_> = (0..4)
            .map(|rank| {
                let place = if rank < 2 { near } else { far };
                let own = (rank == 0).then(|| own.take()).flatten();
                spawn(move || {
                    let mut this = ById::open(rank, 4, id, (Some(place), own), LONG).unwrap();
                    let card = |rank: usize| vec![rank as u8; rank * CARD / 3];
                    let cards = this.gather(&card(rank), &[0, 1, 2, 3]).unwrap();
                    assert_eq!(cards, [card(0), card(1), card(2), card(3)]);
                    let key = this.key([5; BYTES]);
                    this.finish();
                    key
                })
            })
            .collect();
        let keys: Vec<Key> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert!(keys[0] != Key(id) && keys[0] != Key([5; BYTES]));
    }

    #[test]
    fn who_has_another_id_is_turned_away() {
        let (id, own) = (id(), listener());
        let near = own.place();
        let far = IdPlace {
            host: [7; 16],
            ..near
        };
        let wrong =
            spawn(move || ById::open(1, 2, self::id(), (Some(far), None), LONG).map(|_| ()));
        let zero = spawn(move || ById::open(0, 2, id, (Some(far), Some(own)), LONG).map(|_| ()));
        assert!(wrong.join().unwrap().is_err());
        let one = ById::open(1, 2, id, (Some(far), None), LONG);
        assert!(one.is_ok() && zero.join().unwrap().is_ok());
    }

    /// Rank 0 has let its listener go, as after making many ids.
    #[test]
    fn rank_0_listens_again() {
        let (id, near) = (id(), listener().place());
        let far = IdPlace {
            host: [7; 16],
            ..near
        };
        let one = spawn(move || ById::open(1, 2, id, (Some(far), None), LONG).map(|_| ()));
        let zero = ById::open(0, 2, id, (Some(near), None), LONG);
        assert!(zero.is_ok() && one.join().unwrap().is_ok());
    }
}
