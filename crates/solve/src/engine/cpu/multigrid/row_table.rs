//! Rows of an operator of which many are the same.
//!
//! Where nothing but the sides tells cells apart, a level has a dozen different rows. They are stored once, so they cost
//! no memory to speak of and stay in the cache.

use std::collections::HashMap;
use std::ops::Range;

use crate::element::Real;

/// Rows of several parts each; every part has `nx` columns and one more on both sides.
pub(crate) struct RowTable<T> {
    parts: usize,
    nx: usize,
    first: isize,
    /// Which of `rows` each row is.
    index: Vec<u32>,
    /// The first is all zero.
    rows: Vec<Vec<T>>,
    /// Rows by their checksum.
    known: HashMap<u32, u32>,
}

impl<T: Real> RowTable<T> {
    /// All rows zero.
    pub fn new(rows: Range<isize>, nx: usize, parts: usize) -> RowTable<T> {
        RowTable {
            parts,
            nx,
            first: rows.start,
            index: vec![0; rows.len()],
            rows: vec![vec![T::ZERO; parts * (nx + 2)]],
            known: HashMap::new(),
        }
    }

    fn slot(&self, y: isize) -> usize {
        (y - self.first) as usize
    }

    /// The stored rows.
    pub fn rows(&self) -> Range<isize> {
        self.first..self.first + self.index.len() as isize
    }

    /// Parts of a row.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Elements of a row.
    pub fn elements(&self) -> usize {
        self.parts * (self.nx + 2)
    }

    /// The different rows, by their numbers.
    pub fn distinct(&self) -> &[Vec<T>] {
        &self.rows
    }

    /// Rows with the same number are the same.
    pub fn identity(&self, y: isize) -> u32 {
        self.index[self.slot(y)]
    }

    /// That of the row above row `y`: of zeros if it is not stored.
    pub fn identity_above(&self, y: isize) -> u32 {
        if y > self.first {
            self.identity(y - 1)
        } else {
            0
        }
    }

    /// All parts of row `y`, one after the other.
    #[inline(always)]
    pub fn whole(&self, y: isize) -> &[T] {
        &self.rows[self.index[self.slot(y)] as usize]
    }

    /// Part `part` of row `y`, columns −1 to nx.
    #[inline(always)]
    pub fn part(&self, y: isize, part: usize) -> &[T] {
        &self.whole(y)[part * (self.nx + 2)..(part + 1) * (self.nx + 2)]
    }

    /// Part `part` of the row above row `y`; zero if that is not stored.
    #[inline(always)]
    pub fn part_above(&self, y: isize, part: usize) -> &[T] {
        let columns = part * (self.nx + 2)..(part + 1) * (self.nx + 2);
        if y > self.first {
            self.part(y - 1, part)
        } else {
            &self.rows[0][columns]
        }
    }

    /// Makes row `to` the same as row `from`.
    pub fn copy(&mut self, from: isize, to: isize) {
        let (from, to) = (self.slot(from), self.slot(to));
        self.index[to] = self.index[from];
    }

    /// Sets row `y`: all parts, with the columns on both sides.
    pub fn set(&mut self, y: isize, row: &[T]) {
        assert_eq!(row.len(), self.elements());
        let slot = self.slot(y);
        let bytes = bytemuck::cast_slice::<T, u8>(row);
        let checksum = crc32fast::hash(bytes);
        let same = self
            .known
            .get(&checksum)
            .copied()
            .filter(|&at| bytemuck::cast_slice::<T, u8>(&self.rows[at as usize]) == bytes);
        self.index[slot] = same.unwrap_or_else(|| {
            let at = self.rows.len() as u32;
            self.rows.push(row.to_vec());
            self.known.insert(checksum, at);
            at
        });
    }
}
