//! How long and how often something is measured.

use std::time::Duration;

/// How long and how often something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Time for which it runs before anything counts: clocks rise, pages and code are loaded.
    pub warm_up: Duration,
    /// Samples, of which the median is the result.
    pub samples: u32,
    /// Least time of a sample; shorter calls are repeated within it.
    pub least: Duration,
    /// Most calls of a sample.
    pub most_calls: u32,
    /// Time for all samples; of calls so long that it does not suffice, at least three are taken.
    pub budget: Duration,
}

impl Default for Plan {
    /// 100 ms of warm-up, then 15 samples of at least 2 ms each.
    fn default() -> Self {
        Self {
            warm_up: Duration::from_millis(100),
            samples: 15,
            least: Duration::from_millis(2),
            most_calls: 1000,
            budget: Duration::from_millis(500),
        }
    }
}

impl Plan {
    /// 10 ms of warm-up and 5 samples of at least 0.5 ms: where there is much to measure.
    pub fn quick() -> Self {
        Self {
            warm_up: Duration::from_millis(10),
            samples: 5,
            least: Duration::from_micros(500),
            ..Self::default()
        }
    }

    /// Calls of a sample, if one takes `once`.
    pub(super) fn calls(&self, once: Duration) -> u32 {
        let needed = self.least.as_secs_f64() / once.as_secs_f64().max(1e-9);
        // Casts saturate.
        (needed.ceil() as u32).clamp(1, self.most_calls.max(1))
    }

    /// Samples, if one takes `sample`.
    pub(super) fn samples(&self, sample: Duration) -> u32 {
        let affordable = self.budget.as_secs_f64() / sample.as_secs_f64().max(1e-9);
        (affordable as u32)
            .clamp(3.min(self.samples), self.samples)
            .max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_are_repeated_within_a_sample() {
        let plan = Plan::default();
        assert_eq!(plan.calls(Duration::from_millis(5)), 1);
        assert_eq!(plan.calls(Duration::from_micros(100)), 20);
        assert_eq!(plan.calls(Duration::ZERO), 1000);
        assert_eq!(plan.samples(Duration::from_millis(2)), 15);
        assert_eq!(plan.samples(Duration::from_millis(100)), 5);
        assert_eq!(plan.samples(Duration::from_secs(9)), 3);
    }
}
