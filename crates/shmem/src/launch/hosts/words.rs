//! What the launchers of a world say to each other.

use crate::launch::Ended;
use crate::transport::beat::Life;
use crate::transport::tcp::key::{BYTES, Key};
use crate::wait::waiter::Wait;
use crate::world::config::Network;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Longer ones are none of ours.
const MOST: usize = 16 << 20;

/// A host's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Of the launcher; all are of one.
    pub(crate) version: String,
    pub(crate) key: Key,
    pub(crate) host: usize,
    /// The PEs of each host, as in `2+2`.
    pub(crate) sizes: String,
    pub(crate) n_pes: usize,
    /// Where the agent listens.
    pub(crate) address: SocketAddr,
    pub(crate) heap_bytes: usize,
    pub(crate) network: Network,
    pub(crate) life: Life,
    pub(crate) grace: Duration,
    pub(crate) label: bool,
    pub(crate) folder: OsString,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
}

/// What the root tells a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Where the agents of all hosts are; PEs may start.
    Start { agents: Vec<SocketAddr> },
    /// A signal has come.
    Signal { signal: i32 },
    /// A PE of another host will not come any more.
    Left { pe: usize },
    /// All PEs have to end, because of that PE.
    End { culprit: Option<usize> },
    /// All PEs have to end at once.
    Kill,
    /// The root is there.
    Beat,
}

/// What a host tells the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// A PE will not come any more.
    Left { pe: usize },
    /// A PE failed; if it `ends` all, it had not left the world. `culprit`: in whose name the world had ended before.
    Failed {
        failure: Ended,
        culprit: Option<usize>,
        ends: bool,
    },
    /// What a PE waited for when it was ended.
    Waits { pe: usize, wait: Option<Wait> },
    /// A PE asked for the end of all, with this code.
    Exit { status: i32 },
    /// The PEs could not be started.
    Error { text: String },
    /// All PEs have ended; the signal that came before all were started.
    Done { interrupted: Option<i32> },
    /// The host is there.
    Beat,
    /// It has not heard of this one for too long.
    Misses { host: usize },
}

/// What one of the root's threads has heard of a host.
#[derive(Debug)]
pub(crate) enum News {
    /// Its launcher listens at this port.
    Listens(u16),
    /// Its remote shell has closed its output.
    Closed,
    /// It has said something.
    Says(Report),
    /// It does not answer.
    Lost(String),
}

/// Builds the bytes of a message.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: usize) {
        self.0.extend_from_slice(&(number as u64).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn option(&mut self, number: Option<usize>) {
        self.number(usize::from(number.is_some()));
        self.number(number.unwrap_or(0));
    }

    fn wait(&mut self, wait: Option<Wait>) {
        for word in wait.map_or([0; 4], Wait::to_words) {
            self.number(word as usize);
        }
    }
}

/// Takes a message apart; `None` where it ends too early.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let bytes = self.take(8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn os(&mut self) -> Option<OsString> {
        Some(OsString::from_vec(self.bytes()?.to_vec()))
    }

    fn parse<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.text()?.parse().ok()
    }

    fn option(&mut self) -> Option<Option<usize>> {
        let (some, number) = (self.number()?, self.number()?);
        Some((some == 1).then_some(number))
    }

    fn duration(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(self.number()? as u64))
    }

    fn wait(&mut self) -> Option<Option<Wait>> {
        let mut words = [0; 4];
        for word in &mut words {
            *word = self.number()? as u64;
        }
        Some(Wait::from_words(words))
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let n = self.number()?;
        (0..n).map(|_| one(self)).collect()
    }
}

/// A message between launchers.
pub(crate) trait Words: Sized {
    fn write(&self, to: &mut Vec<u8>);
    fn read(from: &[u8]) -> Option<Self>;
}

impl Words for Part {
    fn write(&self, to: &mut Vec<u8>) {
        let mut writer = Writer(std::mem::take(to));
        writer.bytes(self.version.as_bytes());
        writer.bytes(&self.key.0);
        writer.number(self.host);
        writer.bytes(self.sizes.as_bytes());
        writer.number(self.n_pes);
        writer.bytes(self.address.to_string().as_bytes());
        writer.number(self.heap_bytes);
        writer.bytes(self.network.to_string().as_bytes());
        writer.number(self.life.beat.as_nanos() as usize);
        writer.number(self.life.patience.as_nanos() as usize);
        writer.number(self.grace.as_millis().min(1 << 53) as usize);
        writer.number(usize::from(self.label));
        writer.bytes(self.folder.as_bytes());
        writer.number(self.environment.len());
        for (name, value) in &self.environment {
            writer.bytes(name.as_bytes());
            writer.bytes(value.as_bytes());
        }
        writer.bytes(self.program.as_bytes());
        writer.number(self.args.len());
        for arg in &self.args {
            writer.bytes(arg.as_bytes());
        }
        *to = writer.0;
    }

    fn read(from: &[u8]) -> Option<Self> {
        let mut reader = Reader(from);
        Some(Self {
            version: reader.text()?,
            key: Key(<[u8; BYTES]>::try_from(reader.bytes()?).ok()?),
            host: reader.number()?,
            sizes: reader.text()?,
            n_pes: reader.number()?,
            address: reader.parse()?,
            heap_bytes: reader.number()?,
            network: reader.parse()?,
            life: Life {
                beat: Duration::from_nanos(reader.number()? as u64),
                patience: Duration::from_nanos(reader.number()? as u64),
            },
            grace: reader.duration()?,
            label: reader.number()? == 1,
            folder: reader.os()?,
            environment: reader.list(|reader| Some((reader.os()?, reader.os()?)))?,
            program: reader.os()?,
            args: reader.list(Reader::os)?,
        })
    }
}

impl Words for Order {
    fn write(&self, to: &mut Vec<u8>) {
        let mut writer = Writer(std::mem::take(to));
        match self {
            Self::Start { agents } => {
                writer.number(1);
                writer.number(agents.len());
                for agent in agents {
                    writer.bytes(agent.to_string().as_bytes());
                }
            }
            Self::Signal { signal } => {
                writer.number(2);
                writer.number(*signal as usize);
            }
            Self::Left { pe } => {
                writer.number(3);
                writer.number(*pe);
            }
            Self::End { culprit } => {
                writer.number(4);
                writer.option(*culprit);
            }
            Self::Kill => writer.number(5),
            Self::Beat => writer.number(6),
        }
        *to = writer.0;
    }

    fn read(from: &[u8]) -> Option<Self> {
        let mut reader = Reader(from);
        Some(match reader.number()? {
            1 => Self::Start {
                agents: reader.list(Reader::parse)?,
            },
            2 => Self::Signal {
                signal: reader.number()? as i32,
            },
            3 => Self::Left {
                pe: reader.number()?,
            },
            4 => Self::End {
                culprit: reader.option()?,
            },
            5 => Self::Kill,
            6 => Self::Beat,
            _ => return None,
        })
    }
}

impl Words for Report {
    fn write(&self, to: &mut Vec<u8>) {
        let mut writer = Writer(std::mem::take(to));
        match self {
            Self::Left { pe } => {
                writer.number(1);
                writer.number(*pe);
            }
            Self::Failed {
                failure,
                culprit,
                ends,
            } => {
                writer.number(2);
                writer.number(failure.pe);
                writer.number(failure.status.into_raw() as u32 as usize);
                writer.wait(failure.last_wait);
                writer.option(*culprit);
                writer.number(usize::from(*ends));
            }
            Self::Waits { pe, wait } => {
                writer.number(3);
                writer.number(*pe);
                writer.wait(*wait);
            }
            Self::Exit { status } => {
                writer.number(4);
                writer.number(*status as u32 as usize);
            }
            Self::Error { text } => {
                writer.number(5);
                writer.bytes(text.as_bytes());
            }
            Self::Done { interrupted } => {
                writer.number(6);
                writer.option(interrupted.map(|signal| signal as usize));
            }
            Self::Beat => writer.number(7),
            Self::Misses { host } => {
                writer.number(8);
                writer.number(*host);
            }
        }
        *to = writer.0;
    }

    fn read(from: &[u8]) -> Option<Self> {
        let mut reader = Reader(from);
        Some(match reader.number()? {
            1 => Self::Left {
                pe: reader.number()?,
            },
            2 => Self::Failed {
                failure: Ended {
                    pe: reader.number()?,
                    status: ExitStatus::from_raw(reader.number()? as u32 as i32),
                    last_wait: reader.wait()?,
                },
                culprit: reader.option()?,
                ends: reader.number()? == 1,
            },
            3 => Self::Waits {
                pe: reader.number()?,
                wait: reader.wait()?,
            },
            4 => Self::Exit {
                status: reader.number()? as u32 as i32,
            },
            5 => Self::Error {
                text: reader.text()?,
            },
            6 => Self::Done {
                interrupted: reader.option()?.map(|signal| signal as i32),
            },
            7 => Self::Beat,
            8 => Self::Misses {
                host: reader.number()?,
            },
            _ => return None,
        })
    }
}

/// Sends a message with its length in front.
///
/// # Errors
/// What the system says.
pub(crate) fn say(to: &mut impl Write, words: &impl Words) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    words.write(&mut bytes);
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&bytes)
}

/// Reads the next message, and not a byte more.
///
/// # Errors
/// What the system says; `InvalidData` if it is no such message.
pub(crate) fn hear<T: Words>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    if length > MOST {
        return Err(bad("a message is too long"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    T::read(&bytes).ok_or_else(|| bad("a message is none of a launcher"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: Words + PartialEq + std::fmt::Debug>(words: T) {
        let mut bytes = Vec::new();
        say(&mut bytes, &words).unwrap();
        assert_eq!(hear::<T>(&mut &bytes[..]).unwrap(), words);
        // Cut off anywhere, it is an error.
        for length in 0..bytes.len() {
            assert!(hear::<T>(&mut &bytes[..length]).is_err());
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        there_and_back(Part {
            version: "1".into(),
            key: Key([7; BYTES]),
            host: 1,
            sizes: "1+3".into(),
            n_pes: 4,
            address: "10.0.0.1:80".parse().unwrap(),
            heap_bytes: 1 << 40,
            network: Network::Ucx,
            life: Life {
                beat: Duration::from_millis(250),
                patience: Duration::from_secs(1 << 20),
            },
            grace: Duration::from_secs(3),
            label: true,
            folder: "/ä".into(),
            environment: vec![("A".into(), OsString::from_vec(vec![0xff]))],
            program: "p".into(),
            args: vec!["".into(), "x y".into()],
        });
        let wait = Some(Wait::Collective { number: 3, pe: 1 });
        for report in [
            Report::Left { pe: 3 },
            Report::Failed {
                failure: Ended {
                    pe: 2,
                    status: ExitStatus::from_raw(9),
                    last_wait: wait,
                },
                culprit: Some(0),
                ends: true,
            },
            Report::Waits { pe: 0, wait: None },
            Report::Exit { status: -1 },
            Report::Error { text: "no".into() },
            Report::Done {
                interrupted: Some(15),
            },
            Report::Beat,
            Report::Misses { host: 2 },
        ] {
            there_and_back(report);
        }
        let agents = vec!["[::1]:3".parse().unwrap()];
        for order in [
            Order::Start { agents },
            Order::Signal { signal: 2 },
            Order::Left { pe: 1 },
            Order::End { culprit: None },
            Order::Kill,
            Order::Beat,
        ] {
            there_and_back(order);
        }
    }
}
