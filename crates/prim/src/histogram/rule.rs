//! What a rule is: the arithmetic that assigns samples to bins.

/// The most bins of a histogram: 2 GiB of totals.
pub const MOST_BINS: usize = 1 << 28;

/// What [`BinRule::bin`] returns for a sample that belongs to no bin. Any number that is not below the
/// number of bins means the same.
pub const DROPPED: u32 = u32::MAX;

/// Assigns keys to bins.
pub trait BinRule<K>: Clone + Sync + 'static {
    /// What names of kernels call it.
    const NAME: &'static str;
    /// The bin of `key`, or a number that is not below the number of bins.
    fn bin(&self, key: K) -> u32;
    /// [`bin`](Self::bin) of each sample's key, at most `most`. A rule may have a way for many that fills vectors.
    #[inline(always)]
    fn bins<T>(&self, samples: &[T], key: impl Fn(&T) -> K, most: u32, found: &mut [u32]) {
        for (found, sample) in found.iter_mut().zip(samples) {
            *found = self.bin(key(sample)).min(most);
        }
    }
    /// Whether the rule moves keys before it bins them. What is compiled for rules that do not leaves that out.
    fn moves_keys(&self) -> bool {
        false
    }
    /// The tables that kernels need.
    fn tables(&self) -> Option<Tables<K>> {
        None
    }
    /// The kernels' argument, with the addresses of the tables in device memory.
    fn argument(&self, edges: u64, cells: u64) -> Vec<u8>;
}

/// Work to be done with a rule, compiled for each kind.
pub trait Visit<K> {
    type Output;
    fn visit<R: BinRule<K>>(self, rule: &R) -> Self::Output;
}

/// The tables that kernels need, besides their argument.
#[derive(Clone, Debug, Default)]
pub struct Tables<K> {
    pub edge: Vec<K>,
    pub cell: Vec<u32>,
}
