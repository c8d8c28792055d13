//! PMI-1, the wire protocol of MPICH's `mpiexec` (hydra), which `srun --mpi=pmi2` speaks as well.
//!
//! Lines of `name=value` words over a socket that the launcher has left open, its number in `PMI_FD`. What is `put`
//! can be got by all after the next `barrier_in`. Names and values have a greatest length, so cards are cut up.
#![allow(unsafe_code)] // takes ownership of an inherited file descriptor

use super::{Bootstrap, BootstrapError, CARD, exchange, hex, invalid, say, unhex};
use crate::bootstrap::variables::{needed, number};
use crate::world::config::ConfigError;
use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

/// Values of a launcher that says no length.
const SHORT: usize = 64;
/// Longer lines are none of the launcher.
const LINE: u64 = 64 << 10;

/// See the [module](self).
pub(super) struct Pmi1 {
    wire: BufReader<File>,
    rank: usize,
    n: usize,
    /// The name of the space that values are put into.
    space: String,
    /// The longest value.
    longest: usize,
    round: usize,
}

impl Pmi1 {
    /// Says hello to the launcher.
    ///
    /// # Errors
    /// [`BootstrapError`].
    pub(super) fn open() -> Result<Self, BootstrapError> {
        const FD: &str = "PMI_FD";
        let fd = needed(FD)? as RawFd;
        let closed = || ConfigError {
            name: FD,
            value: fd.to_string(),
            wanted: "an open file descriptor (of the process that the launcher has started, not of its children)",
        };
        if fd < 3 {
            return Err(closed().into());
        }
        // SAFETY: only borrowed for the call that asks whether it is open at all.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC).map_err(|_| closed())?;
        // SAFETY: open, and left by the launcher for this one use: `init` comes here once.
        let wire = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let size = number("PMI_SIZE")?.unwrap_or(1);
        Self::over(wire, needed("PMI_RANK")?, size).map_err(exchange("PMI"))
    }

    fn over(wire: File, rank: usize, n: usize) -> io::Result<Self> {
        let mut this = Self {
            wire: BufReader::new(wire),
            rank,
            n,
            space: String::new(),
            longest: SHORT,
            round: 0,
        };
        this.ask("init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        let maxes = this.ask("get_maxes", "maxes")?;
        let longest = field(&maxes, "vallen_max").and_then(|longest| longest.parse().ok());
        // The end of a string counts, in some launchers.
        this.longest = longest.map_or(SHORT, |longest: usize| longest.saturating_sub(1).max(16));
        let answer = this.ask("get_my_kvsname", "my_kvsname")?;
        let space = field(&answer, "kvsname").ok_or_else(|| invalid("it has no name"))?;
        this.space = space.to_owned();
        Ok(this)
    }

    /// Sends a command and returns the answer, which must be of this kind.
    fn ask(&mut self, command: &str, kind: &str) -> io::Result<String> {
        let line = format!("cmd={command}\n");
        self.wire.get_mut().write_all(line.as_bytes())?;
        let mut answer = String::new();
        io::Read::take(&mut self.wire, LINE).read_line(&mut answer)?;
        let name = command.split(' ').next().unwrap_or(command);
        if answer.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("the launcher closed it during '{name}'"),
            ));
        }
        let right = field(&answer, "cmd") == Some(kind);
        match field(&answer, "rc").unwrap_or("0") {
            "0" if right => Ok(answer),
            _ => Err(invalid(format!(
                "'{name}' was answered by '{}'",
                answer.trim_end()
            ))),
        }
    }

    fn put(&mut self, key: &str, value: &str) -> io::Result<()> {
        let space = self.space.clone();
        self.ask(
            &format!("put kvsname={space} key={key} value={value}"),
            "put_result",
        )?;
        Ok(())
    }

    fn get(&mut self, key: &str) -> io::Result<String> {
        let space = self.space.clone();
        let answer = self.ask(&format!("get kvsname={space} key={key}"), "get_result")?;
        let value = field(&answer, "value");
        Ok(value
            .ok_or_else(|| invalid("a value is missing"))?
            .to_owned())
    }

    fn cards(&mut self, card: &[u8], from: &[usize]) -> io::Result<Vec<Vec<u8>>> {
        self.round += 1;
        let round = self.round;
        let name = |rank: usize, piece: usize| format!("cw{round}.{rank}.{piece}");
        if from.contains(&self.rank) {
            // The length comes first, so that readers know when they have all.
            let digits = format!("{}-{}", card.len(), hex(card));
            for (piece, digits) in digits.as_bytes().chunks(self.longest).enumerate() {
                let digits = String::from_utf8_lossy(digits).into_owned();
                self.put(&name(self.rank, piece), &digits)?;
            }
        }
        self.ask("barrier_in", "barrier_out")?;
        let mut cards = Vec::with_capacity(from.len());
        for &rank in from {
            let strange = || invalid(format!("rank {rank} has put something else"));
            let mut text = self.get(&name(rank, 0))?;
            let (length, _) = text.split_once('-').ok_or_else(strange)?;
            let all = length.len() + 1;
            let length: usize = length.parse().map_err(|_| strange())?;
            if length > CARD {
                return Err(strange());
            }
            for piece in 1.. {
                if text.len() >= all + 2 * length {
                    break;
                }
                let more = self.get(&name(rank, piece))?;
                if more.is_empty() {
                    return Err(strange());
                }
                text.push_str(&more);
            }
            cards.push(text.get(all..).and_then(unhex).ok_or_else(strange)?);
        }
        Ok(cards)
    }
}

/// The value of a word of an answer. A value may have any characters up to the end of the line if it is the last.
fn field<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let mut words = answer.trim_end().split(' ');
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The node of `rank` in a mapping such as `(vector,(0,2,4))`: from node 0 on, on 2 nodes, 4 processes each. Blocks
/// follow each other, again and again.
fn node(mapping: &str, rank: usize) -> Option<usize> {
    let blocks = mapping.strip_prefix("(vector,")?.strip_suffix(')')?;
    let blocks = blocks.split("),").map(|block| {
        let block = block.trim_matches(['(', ')', ' ']);
        let numbers: Option<Vec<usize>> = block.split(',').map(|n| n.trim().parse().ok()).collect();
        <[usize; 3]>::try_from(numbers?).ok()
    });
    let blocks = blocks.collect::<Option<Vec<_>>>()?;
    let sizes = blocks
        .iter()
        .map(|&[_, nodes, each]| nodes.checked_mul(each));
    let all = sizes.sum::<Option<usize>>().filter(|&all| all > 0)?;
    let mut rank = rank % all;
    for [first, nodes, each] in blocks {
        if rank < nodes * each {
            return Some(first + rank / each);
        }
        rank -= nodes * each;
    }
    None
}

impl Bootstrap for Pmi1 {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n(&self) -> usize {
        self.n
    }

    fn host(&mut self) -> Result<String, BootstrapError> {
        let mapping = self.get("PMI_process_mapping").ok();
        let node = match mapping.and_then(|mapping| node(&mapping, self.rank)) {
            Some(node) => Some(node),
            None => number("SLURM_NODEID")?,
        };
        let node = node.ok_or_else(|| {
            let what =
                "the launcher does not say which processes share a host; set CROSSWARP_HOSTS";
            exchange("PMI")(invalid(what))
        })?;
        Ok(format!("node {node}"))
    }

    fn gather(&mut self, card: &[u8], from: &[usize]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        self.cards(card, from).map_err(exchange("PMI"))
    }

    fn abort(&mut self, reason: &BootstrapError) {
        say(reason);
        // Not answered.
        let _ = self.wire.get_mut().write_all(b"cmd=abort exitcode=1\n");
    }

    fn finish(&mut self) {
        // A launcher that has gone is noticed soon enough.
        let _ = self.ask("finalize", "finalize_ack");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, Barrier, Mutex};

    /// A launcher's side of one process's connection; values have at most 31 characters.
    fn serve(near: UnixStream, values: &Mutex<HashMap<String, String>>, all: &Barrier) {
        let mut lines = BufReader::new(near.try_clone().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            let key = || field(&line, "key").unwrap().to_owned();
            let answer = match field(&line, "cmd").unwrap() {
                "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".into(),
                "get_maxes" => "cmd=maxes kvsname_max=64 keylen_max=32 vallen_max=32".into(),
                "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1".into(),
                "put" => {
                    let value = field(&line, "value").unwrap();
                    assert!(value.len() < 32 && key().len() < 32, "{line}");
                    assert_eq!(field(&line, "kvsname"), Some("kvs_1"));
                    let before = values.lock().unwrap().insert(key(), value.into());
                    assert_eq!(before, None, "{line}");
                    "cmd=put_result rc=0 msg=success".into()
                }
                "barrier_in" => {
                    all.wait();
                    "cmd=barrier_out".into()
                }
                "get" => match values.lock().unwrap().get(&key()) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                    None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".into(),
                },
                "finalize" => "cmd=finalize_ack".into(),
                other => panic!("{other}"),
            };
            (&near).write_all(format!("{answer}\n").as_bytes()).unwrap();
        }
    }

    #[test]
    fn cards_of_any_length_go_through_short_values() {
        let mapping = (
            "PMI_process_mapping".to_owned(),
            "(vector,(0,2,2))".to_owned(),
        );
        let values = Arc::new(Mutex::new(HashMap::from([mapping])));
        let all = Arc::new(Barrier::new(3));
        let ranks = (0..3).map(|rank| {
            let (values, all) = (Arc::clone(&values), Arc::clone(&all));
            let (near, far) = UnixStream::pair().unwrap();
            let server = std::thread::spawn(move || serve(near, &values, &all));
            let client = std::thread::spawn(move || {
                let mut pmi = Pmi1::over(File::from(OwnedFd::from(far)), rank, 3).unwrap();
                assert_eq!(pmi.host().unwrap(), format!("node {}", rank / 2));
                let card = |rank: usize| vec![rank as u8 + 1; [0, 1, CARD][rank]];
                let cards = pmi.gather(&card(rank), &[0, 1, 2]).unwrap();
                assert_eq!(cards, [card(0), card(1), card(2)]);
                assert_eq!(pmi.gather(&[7, rank as u8], &[1]).unwrap(), [[7, 1]]);
                pmi.finish();
            });
            (server, client)
        });
        for (server, client) in ranks.collect::<Vec<_>>() {
            client.join().unwrap();
            server.join().unwrap();
        }
    }

    #[test]
    fn a_launcher_that_refuses_or_goes_is_an_error() {
        for (answer, words) in [
            ("cmd=response_to_init rc=-1\n", "'init' was answered"),
            ("garbage\n", "'init' was answered by 'garbage'"),
            ("", "closed it during 'init'"),
        ] {
            let (near, far) = UnixStream::pair().unwrap();
            (&near).write_all(answer.as_bytes()).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
            let error = Pmi1::over(File::from(OwnedFd::from(far)), 0, 1)
                .err()
                .unwrap();
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    /// What `mpiexec` and `srun` have said of blocks, cycles and uneven nodes.
    #[test]
    fn mappings_say_the_node_of_a_process() {
        let nodes = |mapping, n| {
            (0..n)
                .map(|rank| node(mapping, rank))
                .collect::<Option<Vec<_>>>()
        };
        assert_eq!(nodes("(vector,(0,2,2))", 4), Some(vec![0, 0, 1, 1]));
        assert_eq!(nodes("(vector,(0,2,1))", 5), Some(vec![0, 1, 0, 1, 0]));
        assert_eq!(nodes("(vector,(0,1,3),(1,1,1))", 4), Some(vec![0, 0, 0, 1]));
        for wrong in [
            "",
            "(vector,)",
            "(vector,(0,0,0))",
            "(vector,(0,2))",
            "(list,(0,1,1))",
        ] {
            assert_eq!(node(wrong, 0), None, "{wrong}");
        }
    }
}
