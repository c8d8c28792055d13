//! Processes of one host that know their rank, their number and an id that nobody else has.
//!
//! Rank 0 listens at an abstract socket named by the id, which is gone with it; the others connect, say their rank and
//! send their cards, and it answers with all cards. It admits processes of its own user alone.

use super::{Bootstrap, BootstrapError, CARD, exchange, invalid, read_frame, write_frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// How often the others look whether rank 0 listens.
const LOOK: Duration = Duration::from_millis(10);
/// How long one may take to say which rank it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the [module](self).
pub(super) struct ById {
    rank: usize,
    n: usize,
    /// To rank 0; rank 0's to the others, by rank.
    links: Vec<UnixStream>,
}

fn failed(error: io::Error) -> BootstrapError {
    exchange("a socket named by their id")(error)
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
        limit: Duration,
    ) -> Result<Self, BootstrapError> {
        let name = format!("crosswarp-{}", super::hex(&id));
        let place = SocketAddr::from_abstract_name(name).map_err(failed)?;
        let deadline = Instant::now() + limit;
        let seconds = limit.as_secs();
        let links = match rank {
            0 => {
                let listener = UnixListener::bind_addr(&place).map_err(failed)?;
                admit(&listener, n, deadline)
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
                        break vec![link];
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
        Ok(Self { rank, n, links })
    }
}

/// Waits for ranks 1 to `n` − 1; or says who has not come.
fn admit(
    listener: &UnixListener,
    n: usize,
    deadline: Instant,
) -> io::Result<Result<Vec<UnixStream>, Vec<usize>>> {
    listener.set_nonblocking(true)?;
    let mut links: Vec<Option<UnixStream>> = (1..n).map(|_| None).collect();
    while links.iter().any(Option::is_none) {
        let left = deadline.saturating_duration_since(Instant::now());
        let left_time = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut watched = [PollFd::new(listener, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut watched, Some(&left_time)))?;
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
        let rank = u64::from_le_bytes(rank) as usize;
        match rank.checked_sub(1).and_then(|index| links.get_mut(index)) {
            Some(place) if place.is_none() => {
                link.set_read_timeout(Some(super::START))?;
                *place = Some(link);
            }
            _ => {
                let text = format!("a second process says that it is rank {rank} of {n}");
                return Err(invalid(text));
            }
        }
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

    /// The socket is this host's.
    fn host(&mut self) -> Result<String, BootstrapError> {
        Ok("this".into())
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
        self.links.clear();
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

    #[test]
    fn all_get_the_cards_of_those_who_are_asked() {
        let id = id();
        let ranks: Vec<_> = (0..4)
            .map(|rank| {
                spawn(move || {
                    let mut this = ById::open(rank, 4, id, LONG).unwrap();
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
        let one = spawn(move || ById::open(1, 4, id, LONG).map(|_| ()));
        let error = ById::open(0, 4, id, limit).err().unwrap().to_string();
        assert!(
            error.contains("4 PEs were to meet, and ranks 2, 3 have not come"),
            "{error}"
        );
        // It met rank 0, which then went away: its first exchange would say so.
        one.join().unwrap().unwrap();
        let error = ById::open(1, 2, self::id(), limit)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("rank 0 has not come"), "{error}");
    }

    #[test]
    fn a_rank_is_there_once() {
        let id = id();
        let twice: Vec<_> = (0..2)
            .map(|_| spawn(move || ById::open(1, 3, id, LONG).map(|_| ())))
            .collect();
        let error = ById::open(0, 3, id, LONG).err().unwrap().to_string();
        assert!(
            error.contains("a second process says that it is rank 1 of 3"),
            "{error}"
        );
        for one in twice {
            let _ = one.join().unwrap();
        }
    }
}
