//! What the GPU's counters say of each rung.
//!
//! A profiler lists launches, not rungs: library calls launch kernels of any name. So the rungs are run once
//! more with a mark before each, a launch of [`MARK`] whose grid has as many blocks as the rung's number.

use super::{Ladder, Occupied};
use crate::profile::Launched;

/// The kernel that marks.
pub const MARK: &str = "rung_mark";

impl Ladder {
    /// Adds the occupancy that a profiler has seen while [`run_marked`](super::run_marked) ran this ladder's
    /// rungs: of each rung's main kernel, the one in which it spends most of its time. Of rungs of
    /// libraries, everything known of the kernel comes from there.
    pub fn add_counters(&mut self, launches: &[Launched]) {
        let mut number = 0;
        let numbered = launches.iter().filter_map(|launched| {
            if launched.kernel != MARK {
                return Some((number, launched));
            }
            number = launched.grid;
            None
        });
        let numbered: Vec<(u64, &Launched)> = numbered.collect();
        for (index, rung) in self.rungs.iter_mut().enumerate() {
            let of_rung = numbered
                .iter()
                .filter(|(number, _)| *number == index as u64 + 1)
                .map(|(_, launched)| *launched);
            let Some((main, achieved)) = main_kernel(of_rung) else {
                continue;
            };
            let known = rung.occupied.or_else(|| occupied(main));
            rung.occupied = known.map(|occupied| Occupied {
                achieved: Some(achieved),
                ..occupied
            });
        }
    }
}

fn seconds(launched: &Launched) -> f64 {
    launched.metric("Duration").unwrap_or(0.0)
}

/// A launch of the kernel that takes longest in all its launches, and its mean occupancy over that time.
fn main_kernel<'l>(launches: impl Iterator<Item = &'l Launched>) -> Option<(&'l Launched, f64)> {
    let launches: Vec<&Launched> = launches.collect();
    let all = |of: &Launched, weight: fn(&Launched) -> f64| -> f64 {
        let same = launches.iter().filter(|one| one.kernel == of.kernel);
        same.map(|one| weight(one)).sum()
    };
    let main = launches
        .iter()
        .max_by(|a, b| all(a, seconds).total_cmp(&all(b, seconds)))?;
    let time = all(main, seconds);
    let weighted = all(main, |one| {
        seconds(one) * one.metric("Achieved Occupancy").unwrap_or(f64::NAN)
    });
    let achieved = weighted / time / 100.0;
    achieved.is_finite().then_some((*main, achieved))
}

fn occupied(launched: &Launched) -> Option<Occupied> {
    let whole = |name| launched.metric(name).map(|value| value as u32);
    let shared = [
        "Static Shared Memory Per Block",
        "Dynamic Shared Memory Per Block",
    ];
    Some(Occupied {
        threads: launched.threads,
        registers: whole("Registers Per Thread")?,
        shared: shared.iter().filter_map(|name| whole(name)).sum(),
        local: 0,
        theoretical: launched.metric("Theoretical Occupancy")? / 100.0,
        achieved: None,
    })
}
