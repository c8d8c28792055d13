//! Which PE runs on which host.

use crate::team::shape::Shape;
use crate::world::config::{Config, ConfigError, FAKE_HOSTS, Network};
use std::ops::Range;

/// The hosts of a world, numbered from 0 in the order of their first PEs.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// The host of each PE.
    of: Box<[u32]>,
    n: usize,
}

impl Hosts {
    /// One host with all `n_pes` PEs.
    pub(crate) fn one(n_pes: usize) -> Self {
        Self {
            of: vec![0; n_pes].into(),
            n: 1,
        }
    }

    /// Hosts with so many PEs each, in the order of the PEs. None of them has no PEs.
    pub(crate) fn with(sizes: &[usize]) -> Self {
        let hosts = sizes.iter().enumerate();
        let of = hosts.flat_map(|(host, &size)| std::iter::repeat_n(host as u32, size));
        Self {
            of: of.collect(),
            n: sizes.len(),
        }
    }

    /// Of `n_pes` threads of one process, as [`FAKE_HOSTS`] says; and the network, if it names one.
    pub(crate) fn fake(
        config: &Config,
        n_pes: usize,
    ) -> Result<(Self, Option<Network>), ConfigError> {
        match config.fake_hosts()? {
            Some(text) if n_pes > 0 => {
                let (network, hosts) = match text.split_once(':') {
                    Some((network, hosts)) => (Some(network.parse()?), hosts),
                    None => (None, &*text),
                };
                Ok((Self::parse(FAKE_HOSTS.name, hosts, n_pes)?, network))
            }
            _ => Ok((Self::one(n_pes), None)),
        }
    }

    /// What `text` says of `n_pes` PEs: a number of hosts with equally many PEs each (the first ones get what is
    /// left over), or the PEs of each host, as in `1+3`.
    pub(crate) fn parse(name: &'static str, text: &str, n_pes: usize) -> Result<Self, ConfigError> {
        let wrong = || ConfigError {
            name,
            value: text.to_owned(),
            wanted: "a number of hosts, or the PEs of each host such as 1+3",
        };
        let parts: Option<Vec<usize>> = text.split('+').map(|part| part.parse().ok()).collect();
        let parts = parts
            .filter(|parts| !parts.contains(&0))
            .ok_or_else(wrong)?;
        match *parts.as_slice() {
            // Worlds of fewer PEs have a PE on each host.
            [n] => {
                let n = n.min(n_pes);
                let size = |host| n_pes / n + usize::from(host < n_pes % n);
                Ok(Self::with(&(0..n).map(size).collect::<Vec<_>>()))
            }
            // A program may make worlds of other sizes too.
            _ if parts.iter().sum::<usize>() != n_pes => Ok(Self::one(n_pes)),
            _ => Ok(Self::with(&parts)),
        }
    }

    /// How many PEs there are.
    pub(crate) fn n_pes(&self) -> usize {
        self.of.len()
    }

    /// PEs that are each on the host of a number; hosts are numbered from 0 on in the order of their first PEs.
    pub(crate) fn of_each(of: &[usize]) -> Self {
        let n = of.iter().max().map_or(0, |last| last + 1);
        Self {
            of: of.iter().map(|&host| host as u32).collect(),
            n,
        }
    }

    /// The PEs of `host`.
    pub(crate) fn members(&self, host: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.of.len()).filter(move |&pe| self.of(pe) == host)
    }

    /// The PEs of `host`, of hosts that have their PEs side by side.
    pub(crate) fn pes(&self, host: usize) -> Range<usize> {
        let all = (0..self.of.len()).filter(|&pe| self.of(pe) == host);
        let first = all.clone().next().unwrap_or(0);
        first..first + all.count()
    }

    /// How many PEs each has, as [`parse`](Self::parse) takes it.
    pub(crate) fn sizes(&self) -> String {
        // A single number is one of hosts.
        if self.n == 1 {
            return "1".into();
        }
        let sizes = (0..self.n).map(|host| self.pes(host).len().to_string());
        sizes.collect::<Vec<_>>().join("+")
    }

    /// How many hosts there are.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// The host of `pe`.
    #[inline]
    pub(crate) fn of(&self, pe: usize) -> usize {
        self.of[pe] as usize
    }

    /// The PEs of `host`, if they are a strided set.
    pub(crate) fn shape(&self, host: usize) -> Option<Shape> {
        let mut pes = (0..self.of.len()).filter(|&pe| self.of(pe) == host);
        let (first, second) = (pes.next()?, pes.next());
        let stride = second.map_or(1, |second| second - first);
        let size = self.of.iter().filter(|&&of| of as usize == host).count();
        let strided = (0..size).all(|i| self.of.get(first + i * stride) == Some(&(host as u32)));
        let shape = || Shape::new(first, stride as isize, size, self.of.len());
        strided.then(shape).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str, n_pes: usize) -> Vec<usize> {
        let hosts = Hosts::parse("X", text, n_pes).unwrap();
        (0..n_pes).map(|pe| hosts.of(pe)).collect()
    }

    #[test]
    fn hosts_are_written_as_a_number_or_as_the_pes_of_each() {
        assert_eq!(hosts("2", 5), [0, 0, 0, 1, 1]);
        assert_eq!(hosts("1+3", 4), [0, 1, 1, 1]);
        assert_eq!(hosts("4", 2), [0, 1], "no host without a PE");
        assert_eq!(hosts("1+3", 3), [0, 0, 0], "a world of another size");
        for wrong in ["", "0", "1+", "2+0", "-1", "a"] {
            assert!(Hosts::parse("X", wrong, 4).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read_as_what_they_are() {
        for sizes in [&[3][..], &[1], &[1, 3], &[1, 1], &[2, 1, 1]] {
            let hosts = Hosts::with(sizes);
            let read = Hosts::parse("X", &hosts.sizes(), hosts.n_pes()).unwrap();
            assert_eq!((read.of, read.n), (hosts.of, hosts.n), "{sizes:?}");
        }
    }

    #[test]
    fn the_pes_of_a_host_are_a_strided_set_or_none() {
        let of = |of: &[u32]| Hosts {
            of: of.into(),
            n: 2,
        };
        let pes = |hosts: Hosts, host| {
            let shape = hosts.shape(host)?;
            Some(
                (0..shape.size)
                    .map(|i| shape.world_pe(i))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(pes(of(&[0, 0, 1, 1]), 1), Some(vec![2, 3]));
        assert_eq!(pes(of(&[0, 1, 0, 1]), 1), Some(vec![1, 3]));
        assert_eq!(pes(of(&[0, 0, 1, 0]), 1), Some(vec![2]));
        assert_eq!(pes(of(&[0, 0, 1, 0]), 0), None);
    }
}
