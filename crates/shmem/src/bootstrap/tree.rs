//! What the agents of a world tell each other: all are connected to that of host 0, which passes on what concerns all.
//!
//! Both sides give signs of life. Who has given none for its [patience](Life) is lost, unless it has said that all its PEs have
//! ended: some launchers clear a host up as soon as its processes have.

use crate::transport::beat::Life;
use crate::transport::tcp::key::{Key, Who, knock};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long an agent may take to answer a new connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes of a message.
const BYTES: usize = 9;

/// A message between agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The agent is there.
    Beat,
    /// All PEs of its host have ended.
    Done,
    /// The world has ended in the name of this PE.
    End(usize),
    /// A PE asks for the end of all, with this code.
    Exit(i32),
    /// This host has not been heard of for too long: to host 0.
    Misses(usize),
}

/// One thing an agent hears of.
pub(super) enum Event {
    /// The agent of host 0 has connected.
    Root(TcpStream),
    /// A PE of this host has ended.
    Ended(usize),
    /// Another agent has said something.
    Says(usize, Word),
    /// Another agent does not answer.
    Lost(usize, String),
    /// This agent has not heard of that host's for too long.
    Misses(usize),
}

impl Word {
    fn bytes(self) -> [u8; BYTES] {
        let (kind, number) = match self {
            Self::Beat => (0, 0),
            Self::Done => (1, 0),
            Self::End(pe) => (2, pe as u64),
            Self::Exit(status) => (3, u64::from(status as u32)),
            Self::Misses(host) => (4, host as u64),
        };
        let mut bytes = [kind; BYTES];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; BYTES]) -> Option<Self> {
        let [kind, number @ ..] = bytes;
        let number = u64::from_le_bytes(number);
        Some(match kind {
            0 => Self::Beat,
            1 => Self::Done,
            2 => Self::End(number as usize),
            3 => Self::Exit(number as u32 as i32),
            4 => Self::Misses(number as usize),
            _ => return None,
        })
    }
}

/// The way to another host's agent.
#[derive(Clone)]
pub(super) struct Link(Arc<Mutex<TcpStream>>);

impl Link {
    /// To the agent of `host`, which listens at `address`.
    ///
    /// # Errors
    /// What the system says, or what [`knock`] finds.
    pub(super) fn connect(
        host: usize,
        address: SocketAddr,
        (key, life): (Key, Life),
        heard: &Sender<Event>,
    ) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
        stream.set_read_timeout(Some(CONNECT))?;
        knock(&mut stream, key, Who::Launcher)?;
        Self::over(host, stream, life, heard)
    }

    /// Over a connection to the agent of `host`: hears what it says, and gives signs of life.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn over(
        host: usize,
        stream: TcpStream,
        life: Life,
        heard: &Sender<Event>,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(life.patience))?;
        stream.set_write_timeout(Some(life.patience))?;
        let (mut hears, heard) = (stream.try_clone()?, heard.clone());
        let listen = move || {
            loop {
                let mut bytes = [0; BYTES];
                let word = hears
                    .read_exact(&mut bytes)
                    .map(|()| Word::from_bytes(bytes));
                let event = match word {
                    Ok(Some(Word::Beat)) => continue,
                    Ok(Some(word)) => Event::Says(host, word),
                    Ok(None) => Event::Lost(host, "it says what no agent says".into()),
                    Err(error) => Event::Lost(host, life.silence(&error, "agent")),
                };
                let last = matches!(event, Event::Lost(..));
                if heard.send(event).is_err() || last {
                    return;
                }
            }
        };
        let this = Self(Arc::new(Mutex::new(stream)));
        let beats = this.clone();
        let beat = move || {
            while beats.tell(Word::Beat) {
                std::thread::sleep(life.beat);
            }
        };
        std::thread::Builder::new()
            .name("words".into())
            .spawn(listen)?;
        std::thread::Builder::new()
            .name("beat".into())
            .spawn(beat)?;
        Ok(this)
    }

    /// Whether that worked. An agent that is gone is noticed by who listens to it.
    pub(super) fn tell(&self, word: Word) -> bool {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&word.bytes()).is_ok()
    }

    /// Ends it for all threads.
    pub(super) fn close(&self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    #[test]
    fn words_arrive_and_an_end_is_heard_of() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let ((sender, heard), (back, heard_back)) = (channel(), channel());
        let life = Life::default();
        let near = Link::over(1, near, life, &sender).unwrap();
        let far = Link::over(0, far, life, &back).unwrap();
        let words = [
            Word::End(70_000),
            Word::Exit(-1),
            Word::Misses(3),
            Word::Done,
        ];
        for word in words {
            assert!(far.tell(word));
        }
        for word in words {
            let Ok(Event::Says(1, heard)) = heard.recv() else {
                panic!("something else came")
            };
            assert_eq!(heard, word);
        }
        near.close();
        let Ok(Event::Lost(0, reason)) = heard_back.recv() else {
            panic!("something else came")
        };
        assert_eq!(reason, "its agent has ended");
    }

    #[test]
    fn no_other_bytes_are_words() {
        for kind in 5..=255 {
            assert_eq!(Word::from_bytes([kind; BYTES]), None);
        }
    }
}
