//! Rows with even and odd columns apart, and what the equations of a colour, which has one half of each row, say about them.

use std::cell::Cell;
use std::io;

use super::finest::Finest;
use crate::field::storage::{Field, SharedRows};

/// The last rows of the field and of the right side, even and odd columns apart.
pub(super) struct HalfRows {
    halves: Field<f64>,
    kept: isize,
    /// Whether there are right sides of the last pass.
    has_right_sides: bool,
}

/// Halves of a row: of the field, and of the right side; even columns, then odd ones.
const HALVES: isize = 4;
pub(super) const OF_RIGHT_SIDE: usize = 2;

impl HalfRows {
    /// For rows of `nx` columns and up to `steps` steps.
    pub fn new(nx: usize, steps: usize) -> io::Result<HalfRows> {
        // One for each step, for what is loaded and restricted, and the one above that. A power of two: rows are found
        // without a division.
        let kept = (steps + 3).next_power_of_two() as isize;
        Ok(HalfRows {
            halves: Field::new(0..HALVES * kept, nx.div_ceil(2))?,
            kept,
            has_right_sides: false,
        })
    }

    /// For a pass with a right side, or without.
    pub fn shared(&mut self, with_right_side: bool) -> Ring<'_> {
        if self.has_right_sides && !with_right_side {
            for at in self.halves.rows() {
                self.halves.with_padding_mut(at, 1).fill(0.0);
            }
        }
        self.has_right_sides = with_right_side;
        Ring {
            halves: self.halves.shared(),
            kept: self.kept,
        }
    }
}

/// [`HalfRows`] in use.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    halves: SharedRows<'a, f64>,
    kept: isize,
}

impl<'a> Ring<'a> {
    /// Half of row `y`, an element more on both sides.
    #[inline(always)]
    pub fn half(&self, y: isize, half: usize) -> &'a [Cell<f64>] {
        let at = HALVES * (y & (self.kept - 1)) + half as isize;
        self.halves.with_padding(at, 1)
    }

    /// What belongs to the equations of half of row `y` of a level.
    #[inline(always)]
    pub fn equations(&self, finest: &Finest, y: isize, half: usize) -> Equations<'a> {
        let (up, down) = finest.shape.y.neighbours(y);
        Equations {
            here: &self.half(y, half)[1..],
            beside: &self.half(y, 1 - half)[half..],
            up: &self.half(up, half)[1..],
            down: &self.half(down, half)[1..],
            right_side: &self.half(y, OF_RIGHT_SIDE + half)[1..],
        }
    }
}

/// The points of half a row, from element 0 on, and all they are coupled to.
#[derive(Clone, Copy)]
pub(super) struct Equations<'a> {
    here: &'a [Cell<f64>],
    /// The neighbours to the west; those to the east are one further.
    beside: &'a [Cell<f64>],
    up: &'a [Cell<f64>],
    down: &'a [Cell<f64>],
    right_side: &'a [Cell<f64>],
}

impl Equations<'_> {
    /// `n` from `start` on.
    #[inline(always)]
    pub fn part(self, start: usize, n: usize) -> Self {
        Equations {
            here: &self.here[start..][..n],
            beside: &self.beside[start..][..n + 1],
            up: &self.up[start..][..n],
            down: &self.down[start..][..n],
            right_side: &self.right_side[start..][..n],
        }
    }

    /// Solves them.
    #[inline(always)]
    pub fn solve(self, inverse: f64, start: usize, n: usize) {
        let of = self.part(start, n);
        for i in 0..n {
            of.here[i].set(of.solution(inverse, i));
        }
    }

    /// Goes `omega` times as far as to their solution.
    #[inline(always)]
    pub fn relax(self, inverse: f64, omega: f64, start: usize, n: usize) {
        let of = self.part(start, n);
        for i in 0..n {
            let before = of.here[i].get();
            of.here[i].set(before + omega * (of.solution(inverse, i) - before));
        }
    }

    #[inline(always)]
    fn solution(&self, inverse: f64, i: usize) -> f64 {
        let across = self.right_side[i].get() + (self.beside[i + 1].get() + self.beside[i].get());
        // On GPUs the row to the south is the newest, which is waited for.
        inverse * ((across + self.up[i].get()) + self.down[i].get())
    }

    /// The residual.
    #[inline(always)]
    pub fn residual(&self, i: usize) -> f64 {
        let across = self.beside[i + 1].get() + self.beside[i].get();
        let sum = across + (self.down[i].get() + self.up[i].get());
        (sum - 4.0 * self.here[i].get()) + self.right_side[i].get()
    }
}

/// Writes the even elements of `from` to half `half` of row `y`, from element `start` on, and the odd ones to the next half.
#[inline(always)]
pub(super) fn every_second(from: &[f64], ring: Ring<'_>, y: isize, half: usize, start: usize) {
    let pairs = from.as_chunks::<2>().0;
    let n = pairs.len();
    let even = &ring.half(y, half)[1 + start..][..n];
    let odd = &ring.half(y, half + 1)[1 + start..][..n];
    for i in 0..n {
        even[i].set(pairs[i][0]);
        odd[i].set(pairs[i][1]);
    }
}
