//! How a solve uses GPUs.

use std::fmt;
use std::str::FromStr;

/// How the sweeps of a solve on GPUs are launched, and how halos travel. The result does not depend on it.
///
/// Methods with a residual put halos from kernels under `auto`, where that is possible, and `device-put`, and have them copied
/// through the hosts under all others. Under `auto` they deal levels of 2²¹ cells or more to the PEs, if the levels are made
/// for the solve; else those of 2¹² or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The fastest known for the problem and the number of PEs.
    #[default]
    Auto,
    /// One launch a sweep: the obvious scheme, for comparison. Halos travel through the host.
    Sweep,
    /// Passes of several sweeps, the rows at the edge first; while the others are made, the host has the edge copied to
    /// the neighbours' GPUs, waits, and tells their hosts: the scheme of programs that use MPI. GPUs as for
    /// `device-put`.
    HostExchange,
    /// Passes of several sweeps; beside each a kernel puts halos into the neighbours' memory. GPUs that reach each
    /// other's memory, one for each PE or PEs that are threads.
    DevicePut,
    /// One kernel for a whole solve, or a thousand sweeps of it: the field stays on the chip, blocks and PEs exchange
    /// halos and norms and decide on the stop among themselves. Only for fields that fit; GPUs as for `device-put`.
    Persistent,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: &[Strategy] = &[
        Strategy::Auto,
        Strategy::Sweep,
        Strategy::HostExchange,
        Strategy::DevicePut,
        Strategy::Persistent,
    ];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Auto => "auto",
            Strategy::Sweep => "sweep",
            Strategy::HostExchange => "host-exchange",
            Strategy::DevicePut => "device-put",
            Strategy::Persistent => "persistent",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A strategy that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no strategy `{0}`: it is one of {list}", list = Strategy::ALL.iter().map(|s| s.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownStrategy(String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Strategy, UnknownStrategy> {
        Strategy::ALL
            .iter()
            .copied()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_known_by_their_names() {
        for &strategy in Strategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        let error = "fast".parse::<Strategy>().unwrap_err().to_string();
        assert!(error.starts_with("there is no strategy `fast`"), "{error}");
    }
}
