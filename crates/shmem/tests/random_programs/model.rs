//! The model: every PE's memory as words, and what each operation does to it.

/// Pseudo-random numbers (splitmix64), the same on every PE.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Often small, sometimes up to `most`: sizes on both sides of every limit.
    pub fn size(&mut self, most: usize) -> usize {
        let most = [3, 8, 40, most][self.below(4)].min(most);
        self.below(most + 1)
    }
}

/// An atomic read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rmw {
    Add,
    And,
    Or,
    Xor,
    Inc,
}

pub const RMWS: [Rmw; 5] = [Rmw::Add, Rmw::And, Rmw::Or, Rmw::Xor, Rmw::Inc];

impl Rmw {
    pub fn apply(self, old: u64, value: u64) -> u64 {
        match self {
            Self::Add => old.wrapping_add(value),
            Self::And => old & value,
            Self::Or => old | value,
            Self::Xor => old ^ value,
            Self::Inc => old.wrapping_add(1),
        }
    }
}

/// One PE's one-sided operation. Fetching ones carry no result: the model computes it.
#[derive(Clone, Debug)]
pub enum Access {
    Put {
        at: usize,
        values: Vec<u64>,
        nbi: bool,
    },
    Iput {
        at: usize,
        stride: usize,
        values: Vec<u64>,
    },
    P {
        at: usize,
        value: u64,
    },
    /// The upper or lower half of a word.
    Half {
        at: usize,
        upper: bool,
        value: u32,
    },
    Get {
        at: usize,
        len: usize,
    },
    Iget {
        at: usize,
        stride: usize,
        len: usize,
    },
    Rmw {
        at: usize,
        op: Rmw,
        value: u64,
        fetching: bool,
    },
    Swap {
        at: usize,
        value: u64,
    },
    /// `hit`: whether what is expected is there.
    CompareSwap {
        at: usize,
        value: u64,
        hit: bool,
    },
    /// Data with an addition to the target's signal word.
    PutSignal {
        at: usize,
        values: Vec<u64>,
        add: u64,
    },
}

/// Every PE's memory.
pub type Memory = Vec<Vec<u64>>;

/// Applies `access` to `memory`, one PE's; what it returns, as far as it returns something.
pub fn apply(memory: &mut [u64], signal: &mut u64, access: &Access) -> Vec<u64> {
    match *access {
        Access::Put { at, ref values, .. } => memory[at..at + values.len()].copy_from_slice(values),
        Access::Iput {
            at,
            stride,
            ref values,
        } => {
            for (i, &value) in values.iter().enumerate() {
                memory[at + i * stride] = value;
            }
        }
        Access::P { at, value } => memory[at] = value,
        Access::Half { at, upper, value } => {
            let shift = if upper { 32 } else { 0 };
            let kept = memory[at] & !(0xffff_ffff << shift);
            memory[at] = kept | u64::from(value) << shift;
        }
        Access::Get { at, len } => return memory[at..at + len].to_vec(),
        Access::Iget { at, stride, len } => {
            return (0..len).map(|i| memory[at + i * stride]).collect();
        }
        Access::Rmw { at, op, value, .. } => {
            let old = memory[at];
            memory[at] = op.apply(old, value);
            return vec![old];
        }
        Access::Swap { at, value } => return vec![std::mem::replace(&mut memory[at], value)],
        Access::CompareSwap { at, value, hit } => {
            let old = memory[at];
            if hit {
                memory[at] = value;
            }
            return vec![old];
        }
        Access::PutSignal {
            at,
            ref values,
            add,
        } => {
            memory[at..at + values.len()].copy_from_slice(values);
            *signal = signal.wrapping_add(add);
        }
    }
    vec![]
}
