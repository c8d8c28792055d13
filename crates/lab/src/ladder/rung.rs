//! One rung, and all of a ladder.

use crate::measure::{Machine, Row, Timing};
use crate::models::roofline::{Bound, Ceilings, Work};

/// Whose a rung is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RungKind {
    /// A variant of the textbook.
    Textbook,
    /// Wrong on purpose.
    Wrong,
    /// Crosswarp's own.
    Crosswarp,
    /// Another library's.
    Peer,
}

impl RungKind {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Textbook => "textbook",
            Self::Wrong => "wrong",
            Self::Crosswarp => "own",
            Self::Peer => "peer",
        }
    }
}

/// What became of the check of a rung's result.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// Equal to the reference, every bit.
    Exact,
    /// Off by this much, relative to the reference, which is within what its arithmetic allows.
    Within(f64),
    /// Off by this much, relative to the reference, and exactly what additions in f16 give.
    AsF16Rounds(f64),
    /// Not the result, relative error; for a rung that is wrong on purpose.
    WrongOnPurpose(f64),
    /// Not the result.
    Wrong(String),
}

impl Check {
    /// By the relative error of `got` and the most that is allowed.
    pub fn of(got: f64, expected: f64, allowed: f64) -> Self {
        if got == expected {
            return Self::Exact;
        }
        let error = ((got - expected) / expected).abs();
        if error <= allowed {
            Self::Within(error)
        } else {
            Self::Wrong(format!("{got:e} instead of {expected:e}"))
        }
    }

    /// Of two arrays that have to be equal.
    pub fn of_slices<T: PartialEq + std::fmt::Debug>(got: &[T], expected: &[T]) -> Self {
        if got.len() != expected.len() {
            return Self::Wrong(format!("{} instead of {}", got.len(), expected.len()));
        }
        match got.iter().zip(expected).position(|(a, b)| a != b) {
            None => Self::Exact,
            Some(place) => Self::Wrong(format!(
                "{:?} instead of {:?} at {place}",
                got[place], expected[place]
            )),
        }
    }

    /// Whether the rung did what it is there for.
    pub fn is_right(&self) -> bool {
        !matches!(self, Self::Wrong(_))
    }

    /// In a few words.
    pub fn text(&self) -> String {
        match self {
            Self::Exact => "exact".to_owned(),
            Self::Within(error) => format!("off by {error:.0e}"),
            Self::AsF16Rounds(error) => format!("off by {:.0} %, as f16 rounds", 100.0 * error),
            Self::WrongOnPurpose(error) => format!("wrong by {:.0} %", 100.0 * error),
            Self::Wrong(how) => format!("WRONG: {how}"),
        }
    }
}

/// How a kernel sits on an SM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelOccupancy {
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block, bytes, static and dynamic.
    pub shared: u32,
    /// Local memory of a thread, bytes.
    pub local: u32,
    /// Theoretical occupancy, 0 to 1.
    pub theoretical: f64,
    /// The mean share of warps that were resident while SMs were at work, 0 to 1, by the GPU's counters.
    pub achieved: Option<f64>,
}

/// In what the rungs of a ladder are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// GB/s.
    Gigabytes,
    /// GFLOP/s.
    Gigaflops,
}

impl Rate {
    /// The unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Gigabytes => "GB/s",
            Self::Gigaflops => "GFLOP/s",
        }
    }
}

/// One measured variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Its name: the kernel's, with blanks.
    pub name: String,
    /// Rungs of one group solve the same problem; speed-ups are within a group.
    pub group: String,
    /// Whose it is.
    pub kind: RungKind,
    /// Why it is as fast as it is, in a sentence.
    pub why: &'static str,
    /// What the problem needs.
    pub work: Work,
    /// The time of a call that finds its input in memory, not in a cache.
    pub time: Timing,
    /// The time of a call that comes after another on the same input, where that was measured.
    pub hot: Option<Timing>,
    /// Whether the result was right.
    pub check: Check,
    /// The main kernel on an SM, where there is one.
    pub occupancy: Option<KernelOccupancy>,
}

impl Rung {
    /// Work over time, in the units of `rate`.
    pub fn rate(&self, rate: Rate) -> f64 {
        let work = match rate {
            Rate::Gigabytes => self.work.bytes,
            Rate::Gigaflops => self.work.operations,
        };
        work / self.time.median / 1e9
    }
}

/// A ladder whose rungs were run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// The subject's name.
    pub subject: &'static str,
    /// What was computed, in a line.
    pub title: String,
    /// On what.
    pub machine: Machine,
    /// Whether the rungs are the GPU's.
    pub gpu: bool,
    /// The measured roof.
    pub ceilings: Ceilings,
    /// How the roof was measured, in a line.
    pub ceilings_are: String,
    /// In what rungs are counted.
    pub rate: Rate,
    /// What is missing and why, and what else a reader has to know.
    pub notes: Vec<String>,
    /// From the bottom up.
    pub rungs: Vec<Rung>,
}

impl Ladder {
    /// The least time over the time taken: 1 at the roof.
    pub fn of_roof(&self, rung: &Rung) -> f64 {
        self.ceilings.least_time(&rung.work) / rung.time.median
    }

    /// What limits the problem.
    pub fn bound(&self, rung: &Rung) -> Bound {
        self.ceilings.bound(&rung.work)
    }

    /// How many times faster rung number `index` is than the one before in its group, unless that is wrong
    /// on purpose.
    pub fn speedup(&self, index: usize) -> Option<f64> {
        let before = self.rungs.get(index.checked_sub(1)?)?;
        let rung = &self.rungs[index];
        let comparable = before.group == rung.group && before.kind != RungKind::Wrong;
        comparable.then(|| before.time.median / rung.time.median)
    }

    /// The groups, in order.
    pub fn groups(&self) -> impl Iterator<Item = &[Rung]> {
        self.rungs.chunk_by(|a, b| a.group == b.group)
    }

    /// One row per rung and state of the cache, for files that `crosswarp bench compare` reads.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, rung) in self.rungs.iter().enumerate() {
            let states = [("cold", Some(rung.time)), ("hot", rung.hot)];
            for (cache, time) in states {
                let Some(time) = time else { continue };
                let mut row = Row::new(format!("{}: {}", self.subject, rung.name), time)
                    .with("problem", rung.group.clone())
                    .with("cache", cache)
                    .with("kind", rung.kind.name())
                    .bytes(rung.work.bytes as u64)
                    .operations(rung.work.operations as u64)
                    .about("result", rung.check.text())
                    .about("why", rung.why);
                if cache == "cold" {
                    row = row.about("of_roof", self.of_roof(rung));
                    if let Some(speedup) = self.speedup(index) {
                        row = row.about("speedup", speedup);
                    }
                }
                if let Some(occupancy) = &rung.occupancy {
                    row = row
                        .about("occupancy", occupancy.theoretical)
                        .about("achieved_occupancy", occupancy.achieved)
                        .about("threads", occupancy.threads)
                        .about("registers", occupancy.registers)
                        .about("shared", occupancy.shared);
                }
                rows.push(row);
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks() {
        assert_eq!(Check::of(5.0, 5.0, 0.0), Check::Exact);
        assert!(matches!(Check::of(5.05, 5.0, 0.02), Check::Within(_)));
        for wrong in [6.0, f64::NAN, f64::INFINITY] {
            assert!(!Check::of(wrong, 5.0, 0.02).is_right());
        }
        assert!(!Check::of(1.0, 0.0, 0.02).is_right());
        assert_eq!(Check::of_slices(&[1, 2], &[1, 2]), Check::Exact);
        let wrong = Check::of_slices(&[1, 3], &[1, 2]);
        assert_eq!(wrong.text(), "WRONG: 3 instead of 2 at 1");
        assert!(!Check::of_slices(&[1], &[1, 2]).is_right());
    }
}
