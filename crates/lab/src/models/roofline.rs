//! The roofline: what a machine's bandwidth and arithmetic allow a kernel of given intensity.
//!
//! A kernel that does `f` floating-point operations on `b` bytes moved through device memory can not run
//! faster than `max(b / bandwidth, f / rate)`; `f / b` is its arithmetic intensity, and the intensity at
//! which both terms are equal is the ridge. (S. Williams, A. Waterman, D. Patterson, "Roofline: an
//! insightful visual performance model for multicore architectures", 2009.)

use std::sync::OnceLock;

use crosswarp_cuda::Arch;

/// What a machine can do at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceilings {
    /// Memory bandwidth, bytes a second.
    pub bandwidth: f64,
    /// Floating-point operations a second.
    pub rate: f64,
}

/// What limits a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The bytes it moves.
    Memory,
    /// Its arithmetic.
    Compute,
}

impl Bound {
    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Compute => "compute",
        }
    }
}

/// The counted work of one call: what must be done, not what a variant happens to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Bytes moved through device memory: each input read once, each output written once.
    pub bytes: f64,
    /// Floating-point (or, for integers, arithmetic) operations.
    pub operations: f64,
}

impl Work {
    /// Operations a byte.
    pub fn intensity(&self) -> f64 {
        self.operations / self.bytes
    }
}

impl Ceilings {
    /// The intensity from which on arithmetic limits, operations a byte.
    pub fn ridge(&self) -> f64 {
        self.rate / self.bandwidth
    }

    /// What limits `work`.
    pub fn bound(&self, work: &Work) -> Bound {
        if work.bytes / self.bandwidth >= work.operations / self.rate {
            Bound::Memory
        } else {
            Bound::Compute
        }
    }

    /// The least time `work` can take, seconds.
    pub fn least_time(&self, work: &Work) -> f64 {
        (work.bytes / self.bandwidth).max(work.operations / self.rate)
    }

    /// The ceilings raised as far as `work`, seen to be done in `seconds`, shows to be needed: of the two
    /// the one that limits it.
    #[must_use]
    pub fn raised_to(self, work: &Work, seconds: f64) -> Self {
        match self.bound(work) {
            Bound::Memory => Self {
                bandwidth: self.bandwidth.max(work.bytes / seconds),
                ..self
            },
            Bound::Compute => Self {
                rate: self.rate.max(work.operations / seconds),
                ..self
            },
        }
    }

    /// The most operations a second at `intensity`.
    pub fn attainable(&self, intensity: f64) -> f64 {
        (intensity * self.bandwidth).min(self.rate)
    }

    /// Bytes that must be in flight to use the whole bandwidth, if one takes `latency` seconds (J.
    /// Little's law: load = rate × time).
    pub fn bytes_in_flight(&self, latency: f64) -> f64 {
        self.bandwidth * latency
    }
}

/// A GPU as its data sheet describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSheet {
    /// Short name, lower case, as on the command line.
    pub key: &'static str,
    /// The maker's name.
    pub name: &'static str,
    /// Compute capability.
    pub arch: Arch,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory bandwidth, GB/s.
    pub memory_gbs: f64,
    /// Single precision, no matrix units, GFLOP/s.
    pub f32_gflops: f64,
    /// Double precision, no matrix units, GFLOP/s.
    pub f64_gflops: f64,
}

const TABLE: &str = include_str!("../../data/data_sheets.csv");

impl DataSheet {
    /// Every GPU of the table (`data/data_sheets.csv`, with its sources).
    pub fn all() -> &'static [Self] {
        static PARSED: OnceLock<Vec<DataSheet>> = OnceLock::new();
        PARSED.get_or_init(|| TABLE.lines().skip(1).filter_map(parse).collect())
    }

    /// The one with this key.
    pub fn of(key: &str) -> Option<&'static Self> {
        Self::all().iter().find(|sheet| sheet.key == key)
    }

    /// Its ceilings in single precision.
    pub fn ceilings(&self) -> Ceilings {
        Ceilings {
            bandwidth: 1e9 * self.memory_gbs,
            rate: 1e9 * self.f32_gflops,
        }
    }
}

fn parse(line: &'static str) -> Option<DataSheet> {
    let mut fields = line.splitn(8, ',');
    Some(DataSheet {
        key: fields.next()?,
        name: fields.next()?,
        arch: fields.next()?.parse().ok()?,
        multiprocessors: fields.next()?.parse().ok()?,
        memory_gbs: fields.next()?.parse().ok()?,
        f32_gflops: fields.next()?.parse().ok()?,
        f64_gflops: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPTERON_X2: Ceilings = Ceilings {
        bandwidth: 15e9,
        rate: 17.6e9,
    };

    #[test]
    fn the_papers_first_machine() {
        // Figure 1a of the paper: 17.6 GFLOP/s, 15 GB/s measured, a ridge a little above 1.
        assert!((OPTERON_X2.ridge() - 1.17).abs() < 0.01);
        assert_eq!(OPTERON_X2.attainable(0.5), 7.5e9);
        assert_eq!(OPTERON_X2.attainable(8.0), 17.6e9);
    }

    #[test]
    fn the_table_is_read_whole() {
        let rows = TABLE.lines().count() - 1;
        assert_eq!(DataSheet::all().len(), rows);
        for sheet in DataSheet::all() {
            // Peak rates are two operations per lane and cycle at some clock between 1 and 3 GHz.
            let lanes = match sheet.arch.number() {
                70 | 75 | 80 => 64.0,
                _ => 128.0,
            };
            let clock = sheet.f32_gflops / (2.0 * lanes * f64::from(sheet.multiprocessors));
            assert!((1.0..3.0).contains(&clock), "{}: {clock} GHz", sheet.key);
            assert!(crosswarp_cuda::ArchLimits::of(sheet.arch).is_some());
        }
        assert_eq!(DataSheet::of("v100").unwrap().multiprocessors, 80);
    }

    #[test]
    fn a_roof_is_raised_to_what_was_seen() {
        let roof = Ceilings {
            bandwidth: 10.0,
            rate: 100.0,
        };
        let (read, multiply) = (
            Work {
                bytes: 30.0,
                operations: 1.0,
            },
            Work {
                bytes: 1.0,
                operations: 300.0,
            },
        );
        assert_eq!(roof.raised_to(&read, 4.0), roof);
        assert_eq!(roof.raised_to(&read, 2.0).bandwidth, 15.0);
        assert_eq!(roof.raised_to(&multiply, 2.0).rate, 150.0);
        assert_eq!(roof.raised_to(&read, 2.0).least_time(&read), 2.0);
    }

    #[test]
    fn little() {
        // 4.8 TB/s at 600 ns: 2.88 MB.
        let h200 = DataSheet::of("h200").unwrap().ceilings();
        assert!((h200.bytes_in_flight(600e-9) - 2.88e6).abs() < 1.0);
    }

    proptest! {
        #[test]
        fn the_roof_is_where_both_terms_meet(
            bandwidth in 1e9..1e13f64, rate in 1e9..1e15f64, bytes in 1.0..1e12f64, operations in 1.0..1e15f64,
        ) {
            let ceilings = Ceilings { bandwidth, rate };
            let work = Work { bytes, operations };
            let at_best = operations / ceilings.least_time(&work);
            let roof = ceilings.attainable(work.intensity());
            prop_assert!((at_best / roof - 1.0).abs() < 1e-12);
            let memory = work.intensity() <= ceilings.ridge();
            prop_assert_eq!(ceilings.bound(&work) == Bound::Memory, memory);
        }
    }
}
