//! Signs of life between the hosts of a world.
//!
//! Two kinds. The first launcher and each host's, or the agents of other launchers, give them over the connection that
//! they have. And every host gives them to every other by datagrams, so that a link that is cut between any two is
//! noticed, in one direction or both, without a connection for each pair: each host counts by itself how long it has
//! not heard of each other one, so whatever does not come through is missed where it should arrive. Who misses a host
//! says so to the first launcher, or the first host's agent, which ends the world unless it knows that the host is
//! done.
//!
//! A datagram has the code of all it says under the job's key, and a number that grows, so that strangers can't give
//! signs in a host's name, nor repeat them. It is sent four times a beat, for datagrams may be lost. A host is missed
//! only once it has been heard of: where a firewall drops datagrams there are only the signs over connections.

use crate::transport::tcp::key::{BYTES, Key};
use crate::world::config::{BEAT, ConfigError, PATIENCE, read, seconds};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How often signs of life are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Time between two.
    pub(crate) beat: Duration,
    /// A host that has given none for so long is lost.
    pub(crate) patience: Duration,
}

impl Default for Life {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(1),
            patience: Duration::from_secs(5),
        }
    }
}

impl Life {
    /// As the environment says.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub(crate) fn chosen() -> Result<Self, ConfigError> {
        Self::of(read)
    }

    /// As `value` says by the names of the settings.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub(crate) fn of(
        value: impl Fn(&'static str) -> Result<Option<String>, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let time = |name, otherwise| match value(name)? {
            Some(text) => seconds(name, text),
            None => Ok(otherwise),
        };
        let default = Self::default();
        let life = Self {
            beat: time(BEAT.name, default.beat)?,
            patience: time(PATIENCE.name, default.patience)?,
        };
        match life.patience > life.beat {
            true => Ok(life),
            false => Err(ConfigError {
                name: PATIENCE.name,
                value: life.patience.as_secs_f64().to_string(),
                wanted: "more seconds than the beat (--beat, CROSSWARP_BEAT; 1 unless set)",
            }),
        }
    }

    /// Why nothing comes any more over a connection whose reads wait for the patience; `who` is at its other end.
    pub(crate) fn silence(self, error: &io::Error, who: &str) -> String {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("it has not answered for {} s", self.patience.as_secs_f64())
            }
            io::ErrorKind::UnexpectedEof => format!("its {who} has ended"),
            _ => error.to_string(),
        }
    }
}

/// Signs within a beat.
const SIGNS: u32 = 4;
/// So many that have come during a round are heard after its end.
const MOST_LATE: u32 = 4096;
/// Bytes of one: from, to, number, code.
const SIGN: usize = 4 + 4 + 8 + BYTES;
/// Tells its code from those of [`knock`](crate::transport::tcp::key::knock).
const SIDE: u8 = 4;

fn sign(key: Key, from: usize, to: usize, number: u64) -> [u8; SIGN] {
    let mut sign = [0; SIGN];
    sign[..4].copy_from_slice(&(from as u32).to_le_bytes());
    sign[4..8].copy_from_slice(&(to as u32).to_le_bytes());
    sign[8..16].copy_from_slice(&number.to_le_bytes());
    let code = key.code(SIDE, [&sign[..16], &[], &[]]);
    sign[16..].copy_from_slice(&code);
    sign
}

/// Who has sent `sign` to `to`, and its number; `None`: a stranger, or it is meant for another.
fn signed(key: Key, to: usize, sign: &[u8]) -> Option<(usize, u64)> {
    let (said, code) = sign.split_at_checked(16)?;
    if !key.is_code(SIDE, [said, &[], &[]], code) {
        return None;
    }
    let (from, rest) = said.split_first_chunk()?;
    let (meant, rest) = rest.split_first_chunk()?;
    let (number, _) = rest.split_first_chunk()?;
    let meant = u32::from_le_bytes(*meant) as usize == to;
    meant.then_some((
        u32::from_le_bytes(*from) as usize,
        u64::from_le_bytes(*number),
    ))
}

/// What a host knows of another.
#[derive(Clone, Copy, Default)]
struct Heard {
    /// The last number.
    number: u64,
    /// Rounds since then.
    missed: u32,
    lost: bool,
}

/// One host's signs of life, to and from all others.
pub(crate) struct Signs {
    pub(crate) socket: UdpSocket,
    pub(crate) key: Key,
    pub(crate) host: usize,
    /// Where all hosts hear them.
    pub(crate) hosts: Vec<SocketAddr>,
    pub(crate) life: Life,
}

impl Signs {
    /// Gives and hears them from now on, until this process ends; tells `lost` of each host that is not heard of any
    /// more.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn begin(self, lost: impl Fn(usize) + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("signs of life".into());
        thread.spawn(move || self.go_on(lost))?;
        Ok(())
    }

    fn go_on(self, lost: impl Fn(usize)) {
        let round = self.life.beat / SIGNS;
        // A process that did not run for a while has not listened, so what counts is rounds, not the time.
        let most = (self.life.patience.as_secs_f64() / round.as_secs_f64()).ceil() as u32;
        let mut heard = vec![Heard::default(); self.hosts.len()];
        for number in 1.. {
            for (to, address) in self.hosts.iter().enumerate() {
                if to != self.host {
                    // What does not leave is missed over there.
                    let sign = sign(self.key, self.host, to, number);
                    let _ = self.socket.send_to(&sign, address);
                }
            }
            self.hear(round, &mut heard);
            for (from, heard) in heard
                .iter_mut()
                .enumerate()
                .filter(|(_, heard)| heard.number > 0)
            {
                heard.missed += 1;
                if heard.missed > most && !heard.lost {
                    heard.lost = true;
                    lost(from);
                }
            }
        }
    }

    /// Hears what comes within `time`, and all that has come before.
    fn hear(&self, time: Duration, heard: &mut [Heard]) {
        let end = Instant::now() + time;
        let mut bytes = [0; SIGN + 1];
        // Strangers can't keep it here.
        let mut late = 0;
        while late < MOST_LATE {
            // The least that is no error: a look.
            let left = end
                .saturating_duration_since(Instant::now())
                .max(Duration::from_micros(1));
            let _ = self.socket.set_read_timeout(Some(left));
            match self.socket.recv_from(&mut bytes) {
                Ok((length, _)) => {
                    late += u32::from(Instant::now() >= end);
                    if let Some((from, number)) = signed(self.key, self.host, &bytes[..length])
                        && let Some(known) = heard.get_mut(from)
                        && number > known.number
                    {
                        (known.number, known.missed) = (number, 0);
                    }
                }
                // An answer of a host that has ended, for one; else nothing more has come.
                Err(_) if Instant::now() < end => {}
                Err(_) => return,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_patience_is_longer_than_a_beat() {
        let life = |beat: &str, patience: &str| {
            Life::of(|name| {
                let text = if name == BEAT.name { beat } else { patience };
                Ok((!text.is_empty()).then(|| text.to_owned()))
            })
        };
        assert_eq!(life("", ""), Ok(Life::default()));
        let quick = life("0.1", "0.5").unwrap();
        assert_eq!(quick.patience, Duration::from_millis(500));
        for (beat, patience) in [("1", "1"), ("", "0.5"), ("5", ""), ("2", "-3"), ("x", "3")] {
            assert!(life(beat, patience).is_err(), "{beat} {patience}");
        }
    }

    #[test]
    fn signs_count_by_the_key_and_for_one_host() {
        let (key, another) = (Key::random().unwrap(), Key::random().unwrap());
        let sign = sign(key, 3, 1, 70_000);
        assert_eq!(signed(key, 1, &sign), Some((3, 70_000)));
        assert_eq!(signed(another, 1, &sign), None);
        assert_eq!(signed(key, 2, &sign), None);
        for i in 0..SIGN {
            let mut changed = sign;
            changed[i] ^= 1;
            assert_eq!(signed(key, 1, &changed), None);
            assert_eq!(signed(key, 1, &sign[..i]), None);
        }
    }

    #[test]
    fn a_host_that_falls_silent_is_missed_and_a_stranger_does_not_stand_in() {
        let key = Key::random().unwrap();
        let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (here, there) = (socket(), socket());
        let at = |socket: &UdpSocket| socket.local_addr().unwrap();
        let hosts = vec![at(&here), at(&there)];
        // Longer than this test is kept from running.
        let life = Life {
            beat: Duration::from_millis(200),
            patience: Duration::from_millis(400),
        };
        let (missed, hears) = channel();
        let signs = Signs {
            socket: here,
            key,
            host: 0,
            hosts: hosts.clone(),
            life,
        };
        signs.begin(move |host| missed.send(host).unwrap()).unwrap();
        // Nobody is missed who was never heard of, or whose signs are a stranger's.
        there
            .send_to(&sign(Key::random().unwrap(), 1, 0, 1), hosts[0])
            .unwrap();
        assert!(hears.recv_timeout(2 * life.patience).is_err());
        there.send_to(&sign(key, 1, 0, 1), hosts[0]).unwrap();
        // A repeated one is none.
        let repeats = std::thread::spawn(move || {
            for _ in 0..8 {
                std::thread::sleep(life.beat / 2);
                there.send_to(&sign(key, 1, 0, 1), hosts[0]).unwrap();
            }
        });
        assert_eq!(hears.recv().unwrap(), 1);
        repeats.join().unwrap();
    }
}
