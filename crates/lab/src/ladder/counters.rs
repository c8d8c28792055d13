//! What the GPU's counters say of each rung.
//!
//! A profiler lists launches, not rungs: library calls launch kernels of any name. So the rungs are run once
//! more with a mark before each, a launch of [`MARK`] whose grid has as many blocks as the rung's number.

use super::rung::{KernelOccupancy, Ladder};
use crate::measure::nsight::ProfiledLaunch;

/// The kernel that marks.
pub const MARK: &str = "rung_mark";

/// The profiler's sections with the metrics that [`Ladder::add_counters`] looks for, and one more metric;
/// few, for each takes further runs of each launch.
pub const COUNTER_SECTIONS: [&str; 2] = ["LaunchStats", "Occupancy"];
/// The time of a launch, by the profiler's name.
pub const DURATION: &str = "gpu__time_duration.sum";

impl Ladder {
    /// Adds the occupancy that a profiler has seen while [`run_marked`](super::run_marked) ran this ladder's
    /// rungs: of each rung's main kernel, the one in which it spends most of its time. Of rungs of
    /// libraries, everything known of the kernel comes from there.
    pub fn add_counters(&mut self, launches: &[ProfiledLaunch]) {
        let mut number = 0;
        let numbered = launches.iter().filter_map(|launched| {
            if launched.kernel != MARK {
                return Some((number, launched));
            }
            number = launched.grid;
            None
        });
        let numbered: Vec<(u64, &ProfiledLaunch)> = numbered.collect();
        for (index, rung) in self.rungs.iter_mut().enumerate() {
            let of_rung = numbered
                .iter()
                .filter(|(number, _)| *number == index as u64 + 1)
                .map(|(_, launched)| *launched);
            let Some((main, achieved)) = main_kernel(of_rung) else {
                continue;
            };
            let known = rung.occupancy.or_else(|| occupancy(main));
            rung.occupancy = known.map(|occupancy| KernelOccupancy {
                achieved: Some(achieved),
                ..occupancy
            });
        }
    }
}

fn seconds(launched: &ProfiledLaunch) -> f64 {
    launched.metric(DURATION).unwrap_or(0.0)
}

/// A launch of the kernel that takes longest in all its launches, and its mean occupancy over that time.
fn main_kernel<'l>(
    launches: impl Iterator<Item = &'l ProfiledLaunch>,
) -> Option<(&'l ProfiledLaunch, f64)> {
    let launches: Vec<&ProfiledLaunch> = launches.collect();
    let all = |of: &ProfiledLaunch, weight: fn(&ProfiledLaunch) -> f64| -> f64 {
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

fn occupancy(launched: &ProfiledLaunch) -> Option<KernelOccupancy> {
    let whole = |name| launched.metric(name).map(|value| value as u32);
    let shared = [
        "Static Shared Memory Per Block",
        "Dynamic Shared Memory Per Block",
    ];
    Some(KernelOccupancy {
        threads: launched.threads,
        registers: whole("Registers Per Thread")?,
        shared: shared.iter().filter_map(|name| whole(name)).sum(),
        local: 0,
        theoretical: launched.metric("Theoretical Occupancy")? / 100.0,
        achieved: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Check, Rate, Rung, RungKind};
    use super::*;
    use crate::measure::nsight::parse;
    use crate::measure::{Machine, Timing};
    use crate::models::roofline::{Ceilings, Work};

    fn rung(occupancy: Option<KernelOccupancy>) -> Rung {
        Rung {
            name: "a rung".to_owned(),
            group: String::new(),
            kind: RungKind::Textbook,
            why: "",
            work: Work {
                bytes: 1.0,
                operations: 1.0,
            },
            time: Timing::of(vec![1.0], 1).unwrap(),
            hot: None,
            check: Check::Exact,
            occupancy,
        }
    }

    /// The lines of a launch: kernel, blocks, µs, achieved occupancy.
    fn lines(id: usize, (kernel, blocks, us, achieved): (&str, u32, f64, f64)) -> String {
        let metrics = [
            (DURATION, "us", us),
            ("Achieved Occupancy", "%", achieved),
            ("Theoretical Occupancy", "%", 75.0),
            ("Registers Per Thread", "register/thread", 40.0),
            ("Static Shared Memory Per Block", "Kbyte/block", 1.0),
        ];
        let line = |(name, unit, value): &(&str, &str, f64)| {
            format!(
                "\"{id}\",\"{kernel}\",\"(256, 1, 1)\",\"({blocks}, 1, 1)\",\"9.0\",\"{name}\",\"{unit}\",\"{value}\"\n"
            )
        };
        metrics.iter().map(line).collect()
    }

    #[test]
    fn launches_are_those_of_the_mark_before() {
        let header = "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"CC\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
        let launches = [
            ("set_up", 7, 900.0, 10.0),
            (MARK, 1, 1.0, 1.0),
            ("sum", 100, 30.0, 80.0),
            ("sum", 100, 10.0, 60.0),
            ("second", 1, 5.0, 2.0),
            (MARK, 2, 1.0, 1.0),
            (MARK, 3, 1.0, 1.0),
            ("library", 64, 9.0, 50.0),
        ];
        let table: String = launches
            .into_iter()
            .enumerate()
            .map(|(id, launch)| lines(id, launch))
            .collect();
        let launches = parse(&format!("{header}{table}")).unwrap();
        let known = KernelOccupancy {
            threads: 256,
            registers: 32,
            shared: 0,
            local: 0,
            theoretical: 1.0,
            achieved: None,
        };
        let mut ladder = Ladder {
            subject: "reduce",
            title: String::new(),
            machine: Machine::of_host(),
            gpu: true,
            ceilings: Ceilings {
                bandwidth: 1.0,
                rate: 1.0,
            },
            ceilings_are: String::new(),
            rate: Rate::Gigabytes,
            notes: Vec::new(),
            rungs: vec![rung(Some(known)), rung(None), rung(None)],
        };
        ladder.add_counters(&launches);
        let occupancy = |index: usize| ladder.rungs[index].occupancy;
        let first = occupancy(0).unwrap();
        assert!((first.achieved.unwrap() - 0.75).abs() < 1e-9, "{first:?}");
        assert_eq!((first.registers, first.theoretical), (32, 1.0));
        assert_eq!(occupancy(1), None);
        let library = KernelOccupancy {
            threads: 256,
            registers: 40,
            shared: 1000,
            local: 0,
            theoretical: 0.75,
            achieved: Some(0.5),
        };
        assert_eq!(occupancy(2), Some(library));
    }
}
