//! Processes that know who they are from variables, as `torchrun` sets them, and meet at [`BOOTSTRAP`].
//!
//! Rank 0 listens there. The others prove that they know the [secret](SECRET_FILE), as PEs do to
//! [agents](crate::transport::tcp::key), and send their cards; it answers with all cards. Without a secret this works on
//! loopback addresses only. The secret itself, and the job's key, which comes from the secret and what rank 0 says, are
//! never sent then.

use super::{
    Bootstrap, BootstrapError, CARD, START, exchange, invalid, read_frame, unhex, write_frame,
};
use crate::transport::tcp::key::{ANSWER, BYTES, Door, Key, Who, knock};
use crate::world::config::{BOOTSTRAP, ConfigError, SECRET_FILE, read};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How long a stranger may take to prove itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most strangers at a time beside those awaited; further ones are turned away.
const MOST_STRANGERS: usize = 64;
/// How often one looks whether rank 0 listens, and rank 0 whether somebody has proven himself.
const LOOK: Duration = Duration::from_millis(20);

/// The variable as a number, if it is set.
pub(super) fn number(name: &'static str) -> Result<Option<usize>, ConfigError> {
    let Some(value) = read(name)? else {
        return Ok(None);
    };
    match value.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(ConfigError {
            name,
            value,
            wanted: "a number",
        }),
    }
}

/// The variable, which has to be set.
pub(super) fn needed(name: &'static str) -> Result<usize, ConfigError> {
    number(name)?.ok_or(ConfigError {
        name,
        value: String::new(),
        wanted: "a number, which the launcher sets",
    })
}

/// See the [module](self).
pub(super) struct Variables {
    rank: usize,
    n: usize,
    host: String,
    place: SocketAddr,
    /// This host's side of the exchange.
    address: IpAddr,
    secret: Option<Key>,
    way: Way,
}

enum Way {
    /// Rank 0's: connections to the others, by rank, once they have come.
    Serves(TcpListener, Vec<Option<TcpStream>>),
    /// To rank 0.
    Asks(TcpStream),
}

impl Variables {
    /// Looks at the variables, and listens or connects.
    ///
    /// # Errors
    /// [`BootstrapError`].
    pub(super) fn open() -> Result<Self, BootstrapError> {
        let (rank, n) = (needed("RANK")?, needed("WORLD_SIZE")?);
        let local = needed("LOCAL_RANK")?;
        let local_size = needed("LOCAL_WORLD_SIZE")?;
        // Ranks of one host follow each other.
        let Some(first) = rank.checked_sub(local).filter(|_| local < local_size) else {
            return Err(BootstrapError::Config(ConfigError {
                name: "LOCAL_RANK",
                value: local.to_string(),
                wanted: "at most RANK, and less than LOCAL_WORLD_SIZE",
            }));
        };
        if rank >= n {
            return Err(BootstrapError::Config(ConfigError {
                name: "RANK",
                value: rank.to_string(),
                wanted: "less than WORLD_SIZE",
            }));
        }
        let secret = match read(SECRET_FILE.name)? {
            Some(path) => Some(secret(path)?),
            None => None,
        };
        let place = place(secret.is_some())?;
        Self::at(place, (rank, n), format!("from {first}"), secret)
    }

    fn at(
        place: SocketAddr,
        (rank, n): (usize, usize),
        host: String,
        secret: Option<Key>,
    ) -> Result<Self, BootstrapError> {
        let failed = |error| exchange(place.to_string())(error);
        let (way, address) = match rank {
            0 => {
                let listener = TcpListener::bind(place).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let links = (0..n).map(|_| None).collect();
                (Way::Serves(listener, links), place.ip())
            }
            _ => {
                let key = secret.unwrap_or(Key([0; BYTES]));
                let link = connect(place, key, rank).map_err(failed)?;
                let address = link.local_addr().map_err(failed)?.ip();
                (Way::Asks(link), address)
            }
        };
        Ok(Self {
            rank,
            n,
            host,
            place,
            address,
            secret,
            way,
        })
    }

    fn exchange(&mut self, card: &[u8], from: &[usize]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let place = self.place;
        let failed = |error| exchange(place.to_string())(error);
        let key = self.secret.unwrap_or(Key([0; BYTES]));
        let (listener, links) = match &mut self.way {
            Way::Serves(listener, links) => (listener, links),
            Way::Asks(link) => {
                write_frame(link, card).map_err(failed)?;
                let cards = from.iter().map(|_| read_frame(link, CARD));
                return cards.collect::<io::Result<_>>().map_err(failed);
            }
        };
        admit(listener, links, key)?;
        let mut cards = vec![card.to_vec()];
        for (rank, link) in links.iter_mut().enumerate().skip(1) {
            let link = link
                .as_mut()
                .ok_or_else(|| failed(io::ErrorKind::NotConnected.into()))?;
            let card = read_frame(link, CARD);
            cards
                .push(card.map_err(|error| exchange(format!("{place}, from rank {rank}"))(error))?);
        }
        let mut wanted = Vec::with_capacity(from.len());
        for &rank in from {
            wanted.push(cards.get(rank).cloned().unwrap_or_default());
        }
        for link in links.iter_mut().flatten() {
            for card in &wanted {
                write_frame(link, card).map_err(failed)?;
            }
        }
        Ok(wanted)
    }
}

/// Where to meet.
fn place(is_secret: bool) -> Result<SocketAddr, BootstrapError> {
    let text = read(BOOTSTRAP.name)?.unwrap_or_default();
    let wrong = |wanted| ConfigError {
        name: BOOTSTRAP.name,
        value: text.clone(),
        wanted,
    };
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    let place =
        found.ok_or_else(|| wrong("ADDRESS:PORT, and the address one that is known here"))?;
    if number("MASTER_PORT")? == Some(usize::from(place.port())) {
        return Err(wrong("another port than MASTER_PORT, which belongs to the launcher").into());
    }
    if !is_secret && !place.ip().is_loopback() {
        let wanted = "a loopback address, unless CROSSWARP_SECRET_FILE names a file with a secret";
        return Err(wrong(wanted).into());
    }
    Ok(place)
}

/// The secret in a file that nobody else may read.
fn secret(path: String) -> Result<Key, ConfigError> {
    let wrong = |wanted| ConfigError {
        name: SECRET_FILE.name,
        value: path.clone(),
        wanted,
    };
    let unreadable = |_| wrong("a file that can be read");
    let mode = std::fs::metadata(&path)
        .map_err(unreadable)?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        return Err(wrong("a file that only its owner may read (chmod 600)"));
    }
    let file = std::fs::File::open(&path).map_err(unreadable)?;
    let mut text = String::new();
    // One more than there may be, with room for the end of a line.
    file.take(64)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    let key = unhex(text.trim()).and_then(|bytes| bytes.try_into().ok());
    let wanted = "a file with 32 hexadecimal digits, as from openssl rand -hex 16";
    key.map(Key).ok_or_else(|| wrong(wanted))
}

/// Connects to rank 0 as soon as it listens.
pub(super) fn connect(place: SocketAddr, key: Key, rank: usize) -> io::Result<TcpStream> {
    let deadline = Instant::now() + START;
    loop {
        match TcpStream::connect_timeout(&place, PATIENCE) {
            Ok(mut link) => {
                link.set_nodelay(true)?;
                // It answers when it has got as far as this.
                link.set_read_timeout(Some(START))?;
                knock(&mut link, key, Who::Pe(rank as u32))?;
                return Ok(link);
            }
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// For rank 0: waits until all others have come. Strangers are turned away, and keep nobody waiting.
fn admit(
    listener: &TcpListener,
    links: &mut [Option<TcpStream>],
    key: Key,
) -> Result<(), BootstrapError> {
    let place = listener.local_addr().map_err(exchange(BOOTSTRAP.name))?;
    let failed = |error: io::Error| exchange(place.to_string())(error);
    let deadline = Instant::now() + START;
    let (sender, receiver) = channel::<(usize, TcpStream)>();
    // Counts the threads below: each holds one.
    let talks = Arc::new(());
    while let Some(first) = (1..links.len()).find(|&rank| links[rank].is_none()) {
        while let Ok((rank, link)) = receiver.try_recv() {
            match links.get_mut(rank) {
                Some(place) if rank > 0 && place.is_none() => *place = Some(link),
                _ => tracing::warn!("a second process says that it is rank {rank}"),
            }
        }
        if Instant::now() >= deadline {
            let missing = links.iter().skip(1).filter(|link| link.is_none()).count();
            return Err(BootstrapError::Late {
                missing,
                n: links.len(),
                first,
                place,
                seconds: START.as_secs(),
            });
        }
        let mut watched = [PollFd::new(listener, PollFlags::IN)];
        let look =
            Timespec::try_from(LOOK).map_err(|_| failed(io::ErrorKind::InvalidInput.into()))?;
        let _ = poll(&mut watched, Some(&look));
        talk_to_all(listener, key, &sender, (&talks, links.len())).map_err(failed)?;
    }
    Ok(())
}

/// Has a thread talk to each of those who have connected; who proves itself is sent, with its rank. `talks` counts the
/// threads, `n` are awaited.
pub(super) fn talk_to_all(
    listener: &TcpListener,
    key: Key,
    sender: &Sender<(usize, TcpStream)>,
    (talks, n): (&Arc<()>, usize),
) -> io::Result<()> {
    while let Ok((link, _)) = listener.accept() {
        if Arc::strong_count(talks) > n + MOST_STRANGERS {
            continue;
        }
        let (sender, talk) = (sender.clone(), Arc::clone(talks));
        let talks = move || {
            if let Ok(admitted) = open_door(link, key) {
                let _ = sender.send(admitted);
            }
            drop(talk);
        };
        let thread = std::thread::Builder::new().name("bootstrap".into());
        thread.spawn(talks)?;
    }
    Ok(())
}

/// The job's key, of a secret that is never sent and what rank 0 has said.
pub(super) fn job_key(secret: Key, said: [u8; BYTES]) -> Key {
    let mut hasher = SipHasher24::new_with_key(&secret.0);
    hasher.write(b"job");
    hasher.write(&said);
    Key(hasher.finish128().as_bytes())
}

fn open_door(mut link: TcpStream, key: Key) -> io::Result<(usize, TcpStream)> {
    link.set_nonblocking(false)?;
    link.set_nodelay(true)?;
    link.set_read_timeout(Some(PATIENCE))?;
    link.set_write_timeout(Some(PATIENCE))?;
    let (door, challenge) = Door::open(key)?;
    link.write_all(&challenge)?;
    let mut answer = [0; ANSWER];
    link.read_exact(&mut answer)?;
    let stranger = || invalid("a stranger");
    let admitted = door.admit(&answer).ok_or_else(stranger)?;
    let Who::Pe(rank) = admitted.who else {
        return Err(stranger());
    };
    link.write_all(&admitted.reply)?;
    link.set_read_timeout(Some(START))?;
    Ok((rank as usize, link))
}

impl Bootstrap for Variables {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n(&self) -> usize {
        self.n
    }

    fn host(&mut self) -> Result<String, BootstrapError> {
        Ok(self.host.clone())
    }

    fn gather(&mut self, card: &[u8], from: &[usize]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.exchange(card, from)
    }

    fn key(&self, said: [u8; BYTES]) -> Key {
        self.secret
            .map_or(Key(said), |secret| job_key(secret, said))
    }

    fn address(&self) -> Option<IpAddr> {
        Some(self.address)
    }

    fn abort(&mut self, _reason: &BootstrapError) {
        self.finish();
    }

    fn finish(&mut self) {
        // The others' part of the exchange ends with this.
        match &mut self.way {
            Way::Serves(_, links) => links.clear(),
            Way::Asks(link) => drop(link.shutdown(Shutdown::Both)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::spawn;

    /// A port that is free, most likely also a moment later.
    fn free() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    }

    fn open(
        place: SocketAddr,
        rank: usize,
        n: usize,
        key: Key,
    ) -> Result<Variables, BootstrapError> {
        Variables::at(place, (rank, n), "from 0".into(), Some(key))
    }

    #[test]
    fn all_get_the_cards_of_those_who_are_asked() {
        let (place, secret) = (free(), Key::random().unwrap());
        // Neither garbage nor silence keeps anybody away.
        let silent = spawn(move || connect_raw(place, b""));
        let garbage = spawn(move || connect_raw(place, &[7; 99]));
        let ranks: Vec<_> = (0..3)
            .map(|rank| {
                spawn(move || {
                    let mut this = open(place, rank, 3, secret).unwrap();
                    let card = |rank: usize| vec![rank as u8; rank * CARD / 2];
                    let cards = this.gather(&card(rank), &[0, 1, 2]).unwrap();
                    assert_eq!(cards, [card(0), card(1), card(2)]);
                    assert_eq!(this.gather(&card(rank), &[2]).unwrap(), [card(2)]);
                    let key = this.key([5; BYTES]);
                    this.finish();
                    key
                })
            })
            .collect();
        let keys: Vec<Key> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert!(keys[0] != secret && keys[0] != Key([5; BYTES]));
        let _ = (silent.join(), garbage.join());
    }

    fn connect_raw(place: SocketAddr, bytes: &[u8]) -> TcpStream {
        loop {
            if let Ok(mut stream) = TcpStream::connect(place) {
                let _ = stream.write_all(bytes);
                return stream;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn who_does_not_know_the_secret_is_turned_away() {
        let (place, secret) = (free(), Key::random().unwrap());
        let wrong = spawn(move || {
            open(place, 1, 2, Key([1; BYTES]))
                .err()
                .unwrap()
                .to_string()
        });
        let mut zero = open(place, 0, 2, secret).unwrap();
        let gathered = spawn(move || zero.gather(b"0", &[0, 1]).unwrap());
        assert!(wrong.join().unwrap().contains("another job"));
        let mut one = open(place, 1, 2, secret).unwrap();
        assert_eq!(one.gather(b"1", &[0, 1]).unwrap(), [b"0", b"1"]);
        assert_eq!(gathered.join().unwrap(), [b"0", b"1"]);
    }

    #[test]
    fn secrets_are_read_from_files_of_ones_own() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = || file.path().to_str().unwrap().to_owned();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        write("000102030405060708090a0b0c0d0e0f\n");
        let expected: [u8; BYTES] = std::array::from_fn(|i| i as u8);
        assert_eq!(secret(path()).unwrap().0, expected);
        for wrong in [
            "",
            "00",
            "g00102030405060708090a0b0c0d0e0f",
            "000102030405060708090a0b0c0d0e0f00",
        ] {
            write(wrong);
            assert!(
                secret(path()).unwrap_err().to_string().contains("32 hex"),
                "{wrong}"
            );
        }
        write("000102030405060708090a0b0c0d0e0f\n");
        let open = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(file.path(), open).unwrap();
        assert!(
            secret(path())
                .unwrap_err()
                .to_string()
                .contains("chmod 600")
        );
    }
}
