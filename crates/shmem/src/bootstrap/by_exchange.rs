//! Processes that the program itself lets exchange bytes, by its MPI, say: they may be on several hosts.
//!
//! All make the same exchanges. One that fails says so in the next one, which all others have got to, be it the first. So
//! nobody waits for it, and all fail. What is said in the last one, when the others have got their memory, is not looked at:
//! from there on the agents end the world of a PE that does not take part.

use super::{Bootstrap, BootstrapError, CARD, exchange, invalid, this_host};
use std::io;

/// Hands every process, in the order of their ranks, what each has brought. All bring as many bytes. All of them call it.
pub type AllGather<'a> = dyn FnMut(&[u8]) -> io::Result<Vec<Vec<u8>>> + 'a;

/// What is brought: one byte that says whether all is well, the length of a card, and room for one.
const BYTES: usize = 1 + 2 + CARD;
const WELL: u8 = 1;
const FAILED: u8 = 0;

/// See the [module](self).
pub(super) struct ByExchange<'a> {
    rank: usize,
    n: usize,
    gather: &'a mut AllGather<'a>,
    /// Whether there is nobody left to tell of a failure.
    over: bool,
}

impl<'a> ByExchange<'a> {
    pub(super) fn new(rank: usize, n: usize, gather: &'a mut AllGather<'a>) -> Self {
        Self {
            rank,
            n,
            gather,
            over: false,
        }
    }

    /// Every process's card.
    fn all(&mut self, mark: u8, card: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut mine = vec![0; BYTES];
        mine[0] = mark;
        mine[1..3].copy_from_slice(&(card.len() as u16).to_le_bytes());
        let place = mine.get_mut(3..3 + card.len());
        let too_long = || invalid(format!("a card of {} bytes", card.len()));
        place.ok_or_else(too_long)?.copy_from_slice(card);
        // Whatever goes wrong from here on, nobody can be told.
        self.over = true;
        let all = (self.gather)(&mine)?;
        if all.len() != self.n {
            let text = format!("cards of {} processes instead of {}", all.len(), self.n);
            return Err(invalid(text));
        }
        let cards = all.iter().enumerate().map(|(rank, brought)| {
            let strange = || invalid(format!("rank {rank} brings what no PE brings"));
            let (head, rest) = brought.split_first_chunk::<3>().ok_or_else(strange)?;
            let length = usize::from(u16::from_le_bytes([head[1], head[2]]));
            match head[0] {
                WELL => rest.get(..length).map(<[u8]>::to_vec).ok_or_else(strange),
                _ => Err(invalid(format!("rank {rank} has failed"))),
            }
        });
        let cards = cards.collect::<io::Result<_>>()?;
        self.over = false;
        Ok(cards)
    }
}

fn failed(error: io::Error) -> BootstrapError {
    exchange("the program's own exchange")(error)
}

impl Bootstrap for ByExchange<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n(&self) -> usize {
        self.n
    }

    fn host(&mut self) -> Result<String, BootstrapError> {
        this_host().map_err(failed)
    }

    fn gather(&mut self, card: &[u8], from: &[usize]) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let all = self.all(WELL, card).map_err(failed)?;
        let wanted = from.iter().map(|&rank| all.get(rank).cloned());
        Ok(wanted.map(Option::unwrap_or_default).collect())
    }

    fn abort(&mut self, _reason: &BootstrapError) {
        if !self.over {
            let _ = self.all(FAILED, &[]);
            self.over = true;
        }
    }

    /// One that fails after this ends the world of all, as any PE that ends.
    fn finish(&mut self) {
        let _ = self.all(WELL, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, Mutex};
    use std::thread::scope;

    /// What `play` makes of it on each of `n` threads, which exchange by what they share.
    fn among<R: Send>(n: usize, play: impl Fn(ByExchange<'_>) -> R + Sync) -> Vec<R> {
        let (meet, brought) = (Barrier::new(n), Mutex::new(vec![Vec::new(); n]));
        let rank = |rank: usize| {
            let mut gather = |mine: &[u8]| {
                brought.lock().unwrap()[rank] = mine.to_vec();
                meet.wait();
                let all = brought.lock().unwrap().clone();
                meet.wait();
                Ok(all)
            };
            play(ByExchange::new(rank, n, &mut gather))
        };
        scope(|threads| {
            let ranks: Vec<_> = (0..n).map(|i| threads.spawn(move || rank(i))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_get_the_cards_of_those_who_are_asked() {
        among(3, |mut this| {
            let card = |rank: usize| vec![rank as u8; rank * CARD / 2];
            let cards = this.gather(&card(this.rank), &[0, 1, 2]).unwrap();
            assert_eq!(cards, [card(0), card(1), card(2)]);
            assert_eq!(this.gather(&card(this.rank), &[2]).unwrap(), [card(2)]);
            this.finish();
        });
    }

    #[test]
    fn one_that_fails_fails_all() {
        let reason = || failed(io::ErrorKind::Other.into());
        let outcomes = among(3, |mut this| {
            this.gather(b"well", &[0]).unwrap();
            if this.rank == 1 {
                this.abort(&reason());
                return None;
            }
            let error = this.gather(b"well", &[0]).unwrap_err();
            // Each then gives up, and nobody waits for another one.
            this.abort(&error);
            Some(error.to_string())
        });
        let told =
            "no exchange with the other PEs through the program's own exchange: rank 1 has failed";
        let told = Some(told.to_owned());
        assert_eq!(outcomes, [told.clone(), None, told]);
    }

    /// Such as one whose variables make no sense: the others are in their first exchange by then.
    #[test]
    fn one_that_can_not_begin_fails_all() {
        let outcomes = among(3, |this| {
            let chosen = match this.rank {
                1 => Err(failed(io::ErrorKind::Other.into())),
                _ => super::super::chosen(),
            };
            let met = super::super::bring_together(|| Ok(Box::new(this)), chosen);
            met.err().unwrap().to_string()
        });
        for rank in [0, 2] {
            assert!(outcomes[rank].contains("rank 1 has failed"), "{outcomes:?}");
        }
        assert!(outcomes[1].contains("other error"), "{outcomes:?}");
    }

    #[test]
    fn what_is_too_long_or_strange_is_refused() {
        among(1, |mut this| {
            let error = this.gather(&[0; CARD + 1], &[0]).unwrap_err();
            assert!(error.to_string().contains("a card of 1025 bytes"));
            assert!(!this.over);
        });
        for strange in [vec![], vec![vec![1, 9, 0, 1]], vec![vec![1]]] {
            let mut gather = |_: &[u8]| Ok(strange.clone());
            let mut this = ByExchange::new(0, 1, &mut gather);
            assert!(this.gather(b"well", &[0]).is_err());
            assert!(this.over);
        }
    }
}
