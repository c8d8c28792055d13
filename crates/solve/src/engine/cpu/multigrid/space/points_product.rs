//! The coarse operator that goes with interpolation that follows an operator of points: PᵀAP, point by point.

use std::ops::Range;

use super::points::{Nearby, Points, STEPS, Step};
use super::points_transfer::{NearbyWeights, PointWeights};
use super::side_by_side::{at_once, side_by_side};
use crate::engine::cpu::multigrid::neighbours::Neighbours;

impl PointWeights {
    /// Sets the coarse operator's planes `planes`, by `threads`.
    pub fn product(
        &self,
        operator: &Points,
        planes: Range<isize>,
        out: &mut Points,
        threads: usize,
    ) {
        let [columns, rows] = [0, 1].map(|axis: usize| self.coarse[axis].len);
        let planes: Vec<isize> = planes.collect();
        let make = |k| {
            let centre = self.fine[2].fine_of(k);
            let (weights, operator) = (self.near(k), operator.near(centre - 2..centre + 3));
            let mut fields = vec![vec![0.0; (columns + 2) * rows]; STEPS.len() + 1];
            for j in 0..rows {
                for i in 0..columns {
                    let of = [i as isize, j as isize, k];
                    let (parts, excess) = weights.product_at(&operator, of);
                    for (field, part) in fields.iter_mut().zip(parts.into_iter().chain([excess])) {
                        field[self.at(i, j)] = part;
                    }
                }
            }
            fields
        };
        let bytes = size_of::<f64>() * (columns + 2) * rows * (STEPS.len() + 1);
        for some in planes.chunks(at_once(threads, bytes)) {
            for (&k, made) in some.iter().zip(side_by_side(threads, some, make)) {
                for (field, made) in out.parts.iter_mut().chain([&mut out.excess]).zip(made) {
                    field.row_mut(k).copy_from_slice(&made);
                }
            }
        }
    }
}

impl NearbyWeights<'_> {
    /// The couplings and the excess of coarse point `of`.
    fn product_at(&self, operator: &Nearby<'_>, of: [isize; 3]) -> ([f64; STEPS.len()], f64) {
        let along: [Neighbours; 3] =
            std::array::from_fn(|axis| Neighbours::of(self.of.fine[axis], of[axis]));
        let centre = [2 * of[0], 2 * of[1], self.of.fine[2].fine_of(of[2])];
        let mut parents = [const { None::<Parents> }; 125];
        let number = |[px, py, pz]: Step| (((pz + 2) * 5 + py + 2) * 5 + px + 2) as usize;
        let mut parts = [0.0; 27];
        let (mut excess, mut size) = (0.0, 0.0);
        let range = |axis: usize| -isize::from(along[axis].before)..=isize::from(along[axis].after);
        for pz in range(2) {
            for py in range(1) {
                for px in range(0) {
                    let place = [px, py, pz];
                    let here = parents[number(place)]
                        .get_or_insert_with(|| self.parents(of, place))
                        .clone();
                    let own = here.weight_of([0; 3]);
                    if own == 0.0 {
                        continue;
                    }
                    let point: [isize; 3] =
                        std::array::from_fn(|axis| centre[axis] + along[axis].step(place[axis]));
                    let own_excess = operator.excess_of(point);
                    let (mut diagonal, mut of_one) = (own_excess, own_excess * here.one);
                    for (part, &step) in STEPS[..operator.parts()].iter().enumerate() {
                        for forward in [true, false] {
                            let coupling = operator.coupling(point, step, part, forward);
                            if coupling == 0.0 {
                                continue;
                            }
                            let sign = if forward { 1 } else { -1 };
                            let there: Step = std::array::from_fn(|axis| {
                                along[axis].next(place[axis], sign * step[axis])
                            });
                            let there = parents[number(there)]
                                .get_or_insert_with(|| self.parents(of, there));
                            diagonal += coupling;
                            of_one += coupling * (here.one - there.one);
                            there.add(own * coupling, &mut parts);
                        }
                    }
                    here.add(-(own * diagonal), &mut parts);
                    excess += own * of_one;
                    size += own * diagonal;
                }
            }
        }
        // What is left where all should cancel is rounding; a coupling made of it would tie what is not tied.
        let settle = |value: f64| {
            if value.abs() <= 1e-14 * size {
                0.0
            } else {
                value
            }
        };
        let forward = STEPS.map(|step| settle(parts[offset_number(step)]));
        (forward, settle(excess))
    }

    /// The coarse points that the point at `place` (0 and ±2: coarse points, ±1: between) around coarse point `of` takes
    /// values of, and with what weights.
    fn parents(&self, of: [isize; 3], place: Step) -> Parents {
        let (mut kind, mut base, mut before) = (0, of, [0; 3]);
        for axis in 0..3 {
            before[axis] = place[axis].div_euclid(2);
            base[axis] += before[axis];
            kind |= ((place[axis] & 1) as usize) << axis;
        }
        let mut parents = Parents {
            count: 0,
            offsets: [0; 8],
            weights: [0.0; 8],
            one: 0.0,
        };
        let place = self.place(base);
        for corner in (0..8usize).filter(|corner| corner & !kind == 0) {
            let weight = match kind {
                0 => 1.0,
                kind => self.at(kind, place, corner),
            };
            let step = std::array::from_fn(|axis| before[axis] + (corner >> axis & 1) as isize);
            parents.offsets[parents.count] = offset_number(step);
            parents.weights[parents.count] = weight;
            parents.count += 1;
            parents.one += weight;
        }
        parents
    }
}

/// The coarse points that a point takes values of, by [`offset_number`], and the weights.
#[derive(Clone)]
struct Parents {
    count: usize,
    offsets: [usize; 8],
    weights: [f64; 8],
    /// The interpolant of 1.
    one: f64,
}

/// A number for each step to a point around, and none.
#[inline(always)]
fn offset_number([dx, dy, dz]: Step) -> usize {
    (((dz + 1) * 3 + dy + 1) * 3 + dx + 1) as usize
}

impl Parents {
    fn weight_of(&self, step: Step) -> f64 {
        let wanted = offset_number(step);
        let mut offsets = self.offsets[..self.count].iter();
        let at = offsets.position(|&offset| offset == wanted);
        at.map_or(0.0, |at| self.weights[at])
    }

    /// Adds `times` each weight.
    #[inline(always)]
    fn add(&self, times: f64, parts: &mut [f64; 27]) {
        for (&offset, &weight) in self.offsets[..self.count].iter().zip(&self.weights) {
            parts[offset] += times * weight;
        }
    }
}
