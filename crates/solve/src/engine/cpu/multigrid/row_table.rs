//! Rows of an operator of which many are the same.
//!
//! Where nothing but the sides tells cells apart, a level has a dozen different rows. They are stored once, so they cost
//! no memory to speak of and stay in the cache.

use std::alloc::{Layout, handle_alloc_error};
use std::collections::HashMap;
use std::ops::Range;

use super::written::Written;
use crate::element::Real;
use crate::field::zeros::Zeros;

/// Rows of several parts each; every part has `nx` columns and one more on both sides.
pub(crate) struct RowTable<T> {
    parts: usize,
    nx: usize,
    first: isize,
    /// Which of `rows` each row is.
    index: Vec<u32>,
    /// The first is all zero.
    rows: Rows<T>,
    /// The columns that are not zero of each of them.
    written: Vec<Written>,
    /// Rows by their checksum.
    known: HashMap<u32, u32>,
    /// What is written of a row.
    packed: Vec<T>,
}

impl<T: Real> RowTable<T> {
    /// All rows zero.
    pub fn new(rows: Range<isize>, nx: usize, parts: usize) -> RowTable<T> {
        RowTable {
            parts,
            nx,
            first: rows.start,
            index: vec![0; rows.len()],
            rows: Rows::new(rows.len(), parts * (nx + 2)),
            written: vec![Written::none(nx)],
            known: HashMap::new(),
            packed: Vec::new(),
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
    pub fn distinct(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.rows.places.len()).map(|at| self.rows.get(at as u32))
    }

    /// The columns of row `y` beyond which all is zero, but for those on both sides.
    pub fn written(&self, y: isize) -> &Written {
        &self.written[self.index[self.slot(y)] as usize]
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
        self.rows.get(self.index[self.slot(y)])
    }

    /// Part `part` of row `y`, columns −1 to nx.
    #[inline(always)]
    pub fn part(&self, y: isize, part: usize) -> &[T] {
        &self.whole(y)[part * (self.nx + 2)..(part + 1) * (self.nx + 2)]
    }

    /// All [`parts`](Self::parts) of row `y`, as [`part`](Self::part) gives them. Not by closures: the compiler calls them, for each
    /// row, which took 6 % of a solve of 513².
    #[inline(always)]
    pub fn all<const N: usize>(&self, y: isize) -> [&[T]; N] {
        let (row, len) = (self.whole(y), self.nx + 2);
        let mut parts: [&[T]; N] = [&[]; N];
        for (at, part) in parts.iter_mut().enumerate() {
            *part = &row[at * len..][..len];
        }
        parts
    }

    /// Part `part` of the row above row `y`; zero if that is not stored.
    #[inline(always)]
    pub fn part_above(&self, y: isize, part: usize) -> &[T] {
        let columns = part * (self.nx + 2)..(part + 1) * (self.nx + 2);
        if y > self.first {
            self.part(y - 1, part)
        } else {
            &self.rows.get(0)[columns]
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
        let (nx, len) = (self.nx, self.nx + 2);
        let mut all = Written::none(nx);
        all.add(0..nx);
        self.set_written(y, &all, |part| {
            let part = &row[part * len..][..len];
            (&part[1..=nx], [part[0], part[nx + 1]])
        });
    }

    /// The same, rounded, of a row whose parts are zero but for the columns `written` and those on both sides. `part`: the columns
    /// of a part, and the two.
    pub fn set_written<'a, F: Real>(
        &mut self,
        y: isize,
        written: &Written,
        part: impl Fn(usize) -> (&'a [F], [F; 2]),
    ) {
        let rounded = |value: F| T::from_f64(value.to_f64());
        let slot = self.slot(y);
        self.packed.clear();
        for (columns, [before, after]) in (0..self.parts).map(part) {
            self.packed.push(rounded(before));
            for run in written.runs() {
                let columns = columns[run].iter();
                self.packed.extend(columns.map(|&value| rounded(value)));
            }
            self.packed.push(rounded(after));
        }
        let bytes = bytemuck::cast_slice::<T, u8>(&self.packed);
        if bytes.iter().fold(0, |all, byte| all | byte) == 0 {
            self.index[slot] = 0;
            return;
        }
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(bytes);
        if !written.are_all() {
            for run in written.runs() {
                checksum.update(bytemuck::bytes_of(&[run.start, run.end]));
            }
        }
        let checksum = checksum.finalize();
        let put = |row: &mut [T]| {
            let mut packed = &self.packed[..];
            for part in row.chunks_exact_mut(self.nx + 2) {
                let mut take = |out: &mut [T]| {
                    let (taken, rest) = packed.split_at(out.len());
                    out.copy_from_slice(taken);
                    packed = rest;
                };
                take(&mut part[..1]);
                for run in written.runs() {
                    take(&mut part[run.start + 1..run.end + 1]);
                }
                take(&mut part[self.nx + 1..]);
            }
        };
        if let Some(&at) = self.known.get(&checksum) {
            let mut row = vec![T::ZERO; self.elements()];
            put(&mut row);
            if are_same(self.rows.get(at), &row) {
                self.index[slot] = at;
                return;
            }
        }
        let at = self.rows.push();
        put(self.rows.get_mut(at));
        self.written.push(written.clone());
        self.known.insert(checksum, at);
        self.index[slot] = at;
    }
}

/// Whether two rows have the same bits.
fn are_same<T: Real>(one: &[T], other: &[T]) -> bool {
    bytemuck::cast_slice::<T, u8>(one) == bytemuck::cast_slice::<T, u8>(other)
}

/// Rows of zeros one after the other, in chunks: large ones are huge pages, which are made in a third of the time.
struct Rows<T> {
    elements: usize,
    /// Rows, at most, but for the first.
    most: usize,
    chunks: Vec<Zeros<T>>,
    /// The chunk of each row and its first element there.
    places: Vec<(u32, usize)>,
}

/// Rows of the first chunk: where sides alone tell rows apart there are hardly more. Where there are, all may differ.
const FIRST_ROWS: usize = 16;
/// Bytes of a chunk, at most, if more than a row fits. Pages are made when they are written.
const LARGEST_CHUNK: usize = 32 << 20;

impl<T: Real> Rows<T> {
    /// One row of so many elements, and room for `most` more.
    fn new(most: usize, elements: usize) -> Rows<T> {
        let mut rows = Rows {
            elements,
            most,
            chunks: Vec::new(),
            places: Vec::new(),
        };
        rows.push();
        rows
    }

    /// Adds a row. Its number.
    fn push(&mut self) -> u32 {
        let next = self.places.last().map(|(_, start)| start + self.elements);
        let room = self.chunks.last().map_or(0, |chunk| chunk.len());
        let start = next.filter(|start| start + self.elements <= room);
        let start = start.unwrap_or_else(|| {
            let wanted = match self.places.len() {
                0 => FIRST_ROWS.min(self.most + 1),
                have => (self.most + 1).saturating_sub(have),
            };
            let most = LARGEST_CHUNK / size_of::<T>() / self.elements;
            let len = self.elements * wanted.min(most).max(1);
            let chunk = Zeros::new(len).unwrap_or_else(|_| match Layout::array::<T>(len) {
                Ok(layout) => handle_alloc_error(layout),
                Err(error) => panic!("{error}"),
            });
            self.chunks.push(chunk);
            0
        });
        self.places.push((self.chunks.len() as u32 - 1, start));
        self.places.len() as u32 - 1
    }

    #[inline(always)]
    fn get(&self, at: u32) -> &[T] {
        let (chunk, start) = self.places[at as usize];
        &self.chunks[chunk as usize][start..start + self.elements]
    }

    fn get_mut(&mut self, at: u32) -> &mut [T] {
        let (chunk, start) = self.places[at as usize];
        &mut self.chunks[chunk as usize][start..start + self.elements]
    }
}
