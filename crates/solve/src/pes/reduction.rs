//! Sums and minima of a few words over all PEs.

use crosswarp_shmem::{Pe, Sym, op};

use crate::pes::error::PeError;

/// Symmetric words for small reductions over the whole world.
pub(crate) struct Reduction<'a> {
    pe: &'a Pe,
    words: Sym<u64>,
}

impl<'a> Reduction<'a> {
    /// Collective: room for `capacity` words.
    pub(crate) fn new(pe: &'a Pe, capacity: usize) -> Result<Reduction<'a>, PeError> {
        Ok(Reduction {
            pe,
            words: pe.alloc(capacity)?,
        })
    }

    /// This PE.
    pub(crate) fn pe(&self) -> &'a Pe {
        self.pe
    }

    /// PEs that take part: all of the world.
    pub(crate) fn n_pes(&self) -> usize {
        self.pe.n_pes()
    }

    /// Collective: gives the memory back.
    pub(crate) fn free(self) -> Result<(), PeError> {
        Ok(self.pe.free(self.words)?)
    }

    /// Collective: word by word the wrapping sum over all PEs, on every PE.
    pub(crate) fn sum(&self, words: &mut [u64]) -> Result<(), PeError> {
        if self.pe.n_pes() > 1 {
            let part = self.words.range(..words.len());
            self.pe.write(part, words);
            self.pe.world().reduce(part, part, op::Sum)?;
            self.pe.read(words, part);
        }
        Ok(())
    }

    /// Collective: the smallest `word` of all PEs, on every PE.
    pub(crate) fn min(&self, word: u64) -> Result<u64, PeError> {
        let mut words = [word];
        if self.pe.n_pes() > 1 {
            let part = self.words.range(..1);
            self.pe.write(part, &words);
            self.pe.world().reduce(part, part, op::Min)?;
            self.pe.read(&mut words, part);
        }
        Ok(words[0])
    }

    /// Collective: the largest `value`, none of which is negative or NaN, of all PEs, on every PE.
    pub(crate) fn largest(&self, value: f64) -> Result<f64, PeError> {
        // Such values are in the order of their bits, and the largest bits the complement of the smallest complement.
        Ok(f64::from_bits(!self.min(!value.to_bits())?))
    }
}
