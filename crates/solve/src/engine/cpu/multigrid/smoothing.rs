//! How often and how strongly a cycle relaxes.

use crate::element::Real;

/// Every second point, as the squares of a chess board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Those with an even sum of column and row (in a box of column, row and plane),
    Red,
    /// and with an odd one.
    Black,
}

impl Colour {
    pub fn other(self) -> Colour {
        match self {
            Colour::Red => Colour::Black,
            Colour::Black => Colour::Red,
        }
    }

    /// Whether it has the odd columns of row `row` (in a box of the sum of row and plane).
    #[inline(always)]
    pub fn has_odd_columns(self, row: usize) -> bool {
        (row % 2 == 1) == (self == Colour::Red)
    }
}

/// A relaxation: u + ω D⁻¹ (b − Au).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub omega: f64,
    /// Of these points alone; none: of all.
    pub colour: Option<Colour>,
}

impl Step {
    pub fn of_all(omega: f64) -> Step {
        let colour = None;
        Step { omega, colour }
    }
}

/// The relaxations of a cycle, 1 to 3 each.
#[derive(Clone, Debug)]
pub(crate) struct Smoothing {
    /// Before the coarse correction,
    pub pre: Vec<Step>,
    /// and after it.
    pub post: Vec<Step>,
}

impl Smoothing {
    /// For cycles, of points that have two colours: in red-black order, if relaxations between two corrections are as many
    /// of one colour as of the other; else `symmetric`. `omegas`: of the first relaxation after a correction, and of others.
    pub fn of_colours(symmetric: &Smoothing, omegas: [f64; 2]) -> Smoothing {
        let (pre, post) = (symmetric.pre.len(), symmetric.post.len());
        match (pre + post).is_multiple_of(2) {
            true => Smoothing::red_black(pre, post, omegas),
            false => symmetric.clone(),
        }
    }

    /// With the ω of a Chebyshev polynomial: the smallest largest damping of the eigenvalues of D⁻¹A in an interval that
    /// is the same for all problems, so that nothing has to be measured.
    pub fn chebyshev(pre: usize, post: usize, interval: [f64; 2]) -> Smoothing {
        let of = |steps: usize| {
            let (centre, half) = (
                0.5 * (interval[0] + interval[1]),
                0.5 * (interval[1] - interval[0]),
            );
            (0..steps)
                .map(|step| {
                    // cos((2k + 1)π / 2n) for the few n there are.
                    let node = match (steps, step) {
                        (1, _) | (3, 1) => 0.0,
                        (2, 0) => std::f64::consts::FRAC_1_SQRT_2,
                        (2, _) => -std::f64::consts::FRAC_1_SQRT_2,
                        (_, 0) => 0.866_025_403_784_438_6,
                        _ => -0.866_025_403_784_438_6,
                    };
                    Step::of_all(1.0 / (centre + half * node))
                })
                .collect()
        };
        Smoothing {
            pre: of(pre),
            post: of(post),
        }
    }

    /// Gauss-Seidel in red-black order: of points coupled along the axes only, none of a colour depends on another one of
    /// it, so they may be relaxed in any order. Colours take turns, from the relaxations after a correction to those
    /// before the next one, too: the last after it is black, the first before it is red.
    ///
    /// Takes a grid that [can be coloured so](super::shape::Shape::has_two_colours). Not symmetric: as a preconditioner it
    /// would have to end with the colour it began with, which does half as much.
    ///
    /// The last relaxation before a correction has ω = 1: the equations of its points hold then, so that half of the residual
    /// is known, and follows from the field alone.
    fn red_black(pre: usize, post: usize, [first, others]: [f64; 2]) -> Smoothing {
        let colours = |count: usize| [Colour::Red, Colour::Black].into_iter().cycle().take(count);
        let step = |omega: f64, colour| Step {
            omega,
            colour: Some(colour),
        };
        let before = colours(pre).enumerate();
        let before =
            before.map(|(at, colour)| step(if at + 1 == pre { 1.0 } else { others }, colour));
        // Black ones last.
        let after = colours(post + post % 2).skip(post % 2).enumerate();
        let after = after.map(|(at, colour)| step(if at == 0 { first } else { others }, colour));
        Smoothing {
            pre: before.collect(),
            post: after.collect(),
        }
    }

    /// The relaxations of the finest level behind the solution of full multigrid, which begin the first cycle: those before a
    /// correction, of which the first one of a colour solves its equations, as behind any other correction. So a pass that
    /// corrects need not do so at half of the points.
    pub fn begun(&self) -> Vec<Step> {
        let mut steps = self.pre.clone();
        if let Some(first) = steps.first_mut().filter(|step| step.colour.is_some()) {
            first.omega = 1.0;
        }
        steps
    }

    /// The colour whose equations hold before the coarse correction.
    pub fn solved_before(&self) -> Option<Colour> {
        self.pre.last().and_then(|last| last.colour)
    }

    /// Rows that the relaxed field before the coarse correction has to reach beyond the own ones, where the same rows
    /// are relaxed again after it.
    pub(super) fn margin_down(&self) -> usize {
        self.post.len().max(2)
    }

    /// The ω of steps that relax all points.
    pub(super) fn omegas<T: Real>(steps: &[Step]) -> Vec<T> {
        debug_assert!(steps.iter().all(|step| step.colour.is_none()));
        steps.iter().map(|step| T::from_f64(step.omega)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_turns() {
        for (pre, post) in (1..=3).flat_map(|pre| (1..=3).map(move |post| (pre, post))) {
            let symmetric = Smoothing::chebyshev(pre, post, [0.5, 2.0]);
            let smoothing = Smoothing::of_colours(&symmetric, [1.4, 1.2]);
            let begun = smoothing.begun();
            let Smoothing { pre, post } = smoothing;
            let all = [&post[..], &pre[..]].concat();
            if all.len() % 2 == 1 {
                // Also after two cycles one colour would come twice in a row.
                assert!(all.iter().all(|step| step.colour.is_none()));
                assert_eq!(begun[0].omega, pre[0].omega);
                continue;
            }
            let colours: Vec<_> = all.iter().map(|step| step.colour.unwrap()).collect();
            assert_eq!(pre[0].colour, Some(Colour::Red));
            assert!(colours.windows(2).all(|two| two[0] != two[1]));
            assert_ne!(colours[0], colours[colours.len() - 1]);
            let omegas = all.iter().map(|step| step.omega).collect::<Vec<_>>();
            let expected = (0..omegas.len()).map(|at| if at == 0 { 1.4 } else { 1.2 });
            let expected = expected.take(omegas.len() - 1).chain([1.0]);
            assert_eq!(omegas, expected.collect::<Vec<_>>());
            let rest = |steps: &[Step]| steps[1..].iter().map(|s| s.omega).collect::<Vec<_>>();
            assert_eq!((begun[0].omega, rest(&begun)), (1.0, rest(&pre)));
        }
    }

    #[test]
    fn colours_are_those_of_a_chess_board() {
        for row in 0..4 {
            for column in 0..4 {
                let red = (row + column) % 2 == 0;
                let has = |colour: Colour| colour.has_odd_columns(row) == (column % 2 == 1);
                assert_eq!((has(Colour::Red), has(Colour::Black)), (red, !red));
            }
        }
    }
}
