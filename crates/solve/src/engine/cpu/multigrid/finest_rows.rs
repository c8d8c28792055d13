//! The finest operator, row by row, on its way to the next level.

use super::blocks::BLOCK;
use super::finest::Finest;
use super::operator_rows::{EAST, EXCESS, OperatorRows, SOUTH, SplitRow};
use super::shape::Shape;

/// What a cell is for its neighbours: it has an equation, it keeps its value, or there is none.
const FREE: u8 = 0;
const FIXED: u8 = 1;
const NONE: u8 = 2;

impl Finest {
    /// What the cells of row `y` from column `start` on are; there is none beyond the ends of the axis, unless it wraps around.
    fn kinds(&self, y: isize, start: isize, out: &mut [u8]) {
        if !self.shape.y.has(y) || self.row_is_fixed(y) {
            out.fill(if self.shape.y.has(y) { FIXED } else { NONE });
            return;
        }
        let (n, columns) = (self.shape.x.len as isize, self.columns());
        let mask = self.mask(y);
        let free = columns.start as isize..columns.end as isize;
        let inside = start.max(free.start)..(start + out.len() as isize).min(free.end);
        let of_byte = |fixed: u8| if fixed != 0 { FIXED } else { FREE };
        let kind = |x: isize| mask.map_or(FREE, |mask| of_byte(mask[x as usize]));
        for (x, out) in (start..).zip(&mut *out) {
            if !inside.contains(&x) {
                *out = match x.rem_euclid(n) {
                    _ if !self.shape.x.has(x) => NONE,
                    x if free.contains(&x) => kind(x),
                    _ => FIXED,
                };
            }
        }
        if inside.is_empty() {
            return;
        }
        let out = &mut out[(inside.start - start) as usize..(inside.end - start) as usize];
        match mask {
            None => out.fill(FREE),
            Some(mask) => {
                let mask = &mask[inside.start as usize..inside.end as usize];
                for (out, &fixed) in out.iter_mut().zip(mask) {
                    *out = of_byte(fixed);
                }
            }
        }
    }

    /// Puts `n` columns of row `y`, from `start` on, into `out`.
    fn put_columns(&self, y: isize, start: usize, n: usize, out: &mut SplitRow) {
        // From the column before `start` on, and above and below.
        let (mut here, [mut above, mut below]) = ([NONE; BLOCK + 2], [[NONE; BLOCK]; 2]);
        self.kinds(y, start as isize - 1, &mut here[..n + 2]);
        self.kinds(y - 1, start as isize, &mut above[..n]);
        self.kinds(y + 1, start as isize, &mut below[..n]);
        // Couplings to the left of each column and of the one after the last, below and above; the excess.
        let mut left = [self.part(1, y); BLOCK + 1];
        let [mut south, mut north, mut excess] = [[1.0; BLOCK], [1.0; BLOCK], [0.0; BLOCK]];
        match &self.coefficients {
            None => {
                for x in [0, self.shape.x.len - 1] {
                    if (start..start + n).contains(&x) {
                        let side = self.part(0, x as isize);
                        (south[x - start], north[x - start]) = (side, side);
                    }
                }
            }
            Some(coefficients) => {
                let rows = coefficients.here().row(y);
                left[..=n].copy_from_slice(&rows.east[start..=start + n]);
                for (to, from) in [
                    (&mut south, rows.south),
                    (&mut north, rows.north),
                    (&mut excess, rows.excess),
                ] {
                    to[..n].copy_from_slice(&from[start + 1..=start + n]);
                }
            }
        }
        let mut parts = [[0.0; BLOCK]; 3];
        let [to_east, to_south, ties] = &mut parts;
        let tie = |kind: u8, coupling: f64| if kind == FIXED { coupling } else { 0.0 };
        for k in 0..BLOCK {
            let is_free = here[k + 1] == FREE;
            let coupled = |kind: u8, coupling: f64| match is_free && kind == FREE {
                true => coupling,
                false => 0.0,
            };
            to_east[k] = coupled(here[k + 2], left[k + 1]);
            to_south[k] = coupled(below[k], south[k]);
            let across = excess[k] + tie(here[k + 2], left[k + 1]) + tie(here[k], left[k]);
            let all = across + tie(below[k], south[k]) + tie(above[k], north[k]);
            ties[k] = if is_free { all } else { 0.0 };
        }
        let [to_east, to_south, ties] = parts.each_ref().map(|part| &part[..n]);
        out.put(start, &[(EAST, to_east), (SOUTH, to_south), (EXCESS, ties)]);
    }
}

impl OperatorRows for Finest {
    const CORNERS: bool = false;

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn row(&self, y: isize, out: &mut SplitRow) {
        if self.row_is_fixed(y) {
            return;
        }
        for columns in self.blocks.of(y).ranges() {
            for start in columns.clone().step_by(BLOCK) {
                self.put_columns(y, start, BLOCK.min(columns.end - start), out);
            }
        }
    }

    fn identity(&self, y: isize) -> u64 {
        let inside = y.rem_euclid(self.shape.y.len as isize);
        if self.fixed.is_some() {
            return inside as u64;
        }
        // Without a mask only what is beside a row tells it from others.
        let kind = |y: isize| match (self.shape.y.has(y), self.row_is_fixed(y)) {
            (false, _) => 0,
            (_, true) => 1,
            _ => 2,
        };
        let kinds = kind(y - 1)
            + 3 * kind(y)
            + 9 * kind(y + 1)
            + 27 * u64::from(self.part(1, inside) != 1.0);
        match &self.coefficients {
            None => kinds,
            // The row above couples it upwards. There are fewer different rows than 2^29.
            Some(of) => {
                let of = of.here();
                kinds + 64 * (of.identity(y) + (of.identity_above(y) << 29))
            }
        }
    }
}
