//! What a measurement gives.

/// The time of one call, over all samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Median, seconds.
    pub median: f64,
    /// Least, seconds.
    pub min: f64,
    /// Greatest, seconds.
    pub max: f64,
    /// Samples.
    pub samples: u32,
    /// Calls of each sample; a sample is their mean.
    pub calls: u32,
}

impl Timing {
    /// Of samples of `calls` calls each, in seconds for one call; `None` of no samples.
    pub fn of(mut samples: Vec<f64>, calls: u32) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let middle = samples.len() / 2;
        Some(Self {
            median: if samples.len() % 2 == 1 {
                samples[middle]
            } else {
                (samples.get(middle.checked_sub(1)?)? + samples[middle]) / 2.0
            },
            min: *samples.first()?,
            max: *samples.last()?,
            samples: samples.len() as u32,
            calls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let odd = Timing::of(vec![3.0, 1.0, 2.0], 4).unwrap();
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 3.0));
        assert_eq!((odd.samples, odd.calls), (3, 4));
        assert_eq!(Timing::of(vec![4.0, 1.0, 2.0, 3.0], 1).unwrap().median, 2.5);
        assert_eq!(Timing::of(vec![], 1), None);
    }
}
