//! Bank conflicts: how often shared memory has to be asked for one access of a warp.
//!
//! Shared memory has 32 banks, 4 bytes wide; byte address `a` lies in bank `a / 4 % 32`. One request
//! reaches one 4-byte word of each bank, and hands it to every lane that asked for it (broadcast). An
//! access of 8 bytes a lane is served half a warp at a time, one of 16 bytes a quarter, so that no
//! phase asks for more than 128 bytes; where each lane wants the same as its neighbour (lanes 2k and
//! 2k + 1), two phases become one. Within a phase the degree of conflict is the largest number of
//! different words that lanes want from one bank.
//!
//! (CUDA C++ Programming Guide, "Shared Memory", compute capability 5.x and later, for accesses of 4
//! bytes; the phases of wider ones agree with the latencies measured on an H200, where each further
//! request takes two cycles: `bench/results/banks-h200-2026-11-21.txt`, `bench/schemes/banks.cu`.)

use crate::models::index_expression::IndexExpression;

/// Lanes of a warp.
pub const LANES: usize = 32;
/// Banks of shared memory.
pub const BANKS: usize = 32;

/// Bytes that each lane accesses at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// One word.
    Bytes4,
    /// Two words, e.g. `float2` or `double`.
    Bytes8,
    /// Four words, e.g. `float4`.
    Bytes16,
}

impl Width {
    /// 4, 8 or 16.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bytes4 => 4,
            Self::Bytes8 => 8,
            Self::Bytes16 => 16,
        }
    }

    /// Phases that an access takes whose lanes want different things.
    pub const fn phases(self) -> usize {
        self.bytes() as usize / 4
    }
}

/// One access of a warp: the byte address of each lane, `None` for a lane that takes no part.
pub type Addresses = [Option<u64>; LANES];

/// The words that the lanes of one phase want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// By bank: the different words wanted, each with the lanes that want it; ascending.
    pub banks: Vec<Vec<(u64, Vec<usize>)>>,
}

impl Phase {
    /// Requests it takes: the most words wanted from one bank; 0 if no lane takes part.
    pub fn degree(&self) -> usize {
        self.banks.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn of(addresses: &Addresses, width: Width, lanes: std::ops::Range<usize>) -> Self {
        let mut banks: Vec<Vec<(u64, Vec<usize>)>> = vec![Vec::new(); BANKS];
        for lane in lanes {
            let Some(address) = addresses[lane] else {
                continue;
            };
            for word in address / 4..address / 4 + width.bytes() / 4 {
                let bank = &mut banks[(word % BANKS as u64) as usize];
                match bank.binary_search_by_key(&word, |wanted| wanted.0) {
                    Ok(place) => bank[place].1.push(lane),
                    Err(place) => bank.insert(place, (word, vec![lane])),
                }
            }
        }
        Self { banks }
    }
}

/// One access of a warp, phase by phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// One, two or four.
    pub phases: Vec<Phase>,
}

impl Access {
    /// The access of `width` bytes at `addresses`, each a multiple of `width`.
    pub fn new(addresses: &Addresses, width: Width) -> Self {
        let merged = addresses
            .chunks_exact(2)
            .all(|pair| pair[0] == pair[1] || pair.contains(&None));
        let count = match width.phases() {
            1 => 1,
            phases if merged => phases / 2,
            phases => phases,
        };
        let together = LANES / count;
        let phases = (0..count)
            .map(|phase| Phase::of(addresses, width, phase * together..(phase + 1) * together))
            .collect();
        Self { phases }
    }

    /// The degree of conflict: that of the worst phase, 1 for none.
    pub fn degree(&self) -> usize {
        self.phases.iter().map(Phase::degree).max().unwrap_or(0)
    }

    /// Requests it takes in all.
    pub fn requests(&self) -> usize {
        self.phases.iter().map(Phase::degree).sum()
    }

    /// Lanes that take part.
    pub fn lanes(&self) -> usize {
        let mut lanes: Vec<usize> = self
            .phases
            .iter()
            .flat_map(|phase| phase.banks.iter().flatten())
            .flat_map(|(_, lanes)| lanes.iter().copied())
            .collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes.len()
    }
}

/// A pattern of accesses: one access of warp 0 per iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// What it is, in a few words.
    pub title: String,
    /// Bytes of each lane's access.
    pub width: Width,
    /// Label and addresses of each iteration.
    pub accesses: Vec<(String, Addresses)>,
}

/// Why an expression makes no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text is no expression.
    #[error(transparent)]
    Expression(#[from] crate::models::index_expression::IndexError),
    /// There is no such element.
    #[error("lane {lane}, i = {i}: the index {}", value.map_or_else(|| "overflows or divides by zero".to_owned(), |value| format!("is {value}, below 0 or beyond 2^40")))]
    Index {
        /// The lane.
        lane: usize,
        /// The iteration.
        i: usize,
        /// The index, if it has a value.
        value: Option<i64>,
    },
}

/// Elements of shared memory are far fewer; beyond this an index is a mistake.
const MOST_INDEX: i64 = 1 << 40;

impl Pattern {
    /// Lane `lane` accesses element `index`, an expression in `lane` and `i`, of elements of `width`
    /// bytes, for `i` from 0 to `iterations` - 1.
    pub fn of_index(index: &str, width: Width, iterations: usize) -> Result<Self, PatternError> {
        let expression = IndexExpression::parse(index, &["lane", "i"])?;
        let mut accesses = Vec::with_capacity(iterations);
        for i in 0..iterations {
            let mut addresses = [None; LANES];
            for (lane, address) in addresses.iter_mut().enumerate() {
                let value = expression.value(&[lane as i64, i as i64]);
                let element = value
                    .filter(|value| (0..MOST_INDEX).contains(value))
                    .ok_or(PatternError::Index { lane, i, value })?;
                *address = Some(element.unsigned_abs() * width.bytes());
            }
            accesses.push((format!("i = {i}"), addresses));
        }
        Ok(Self {
            title: format!("element {index}, {} bytes a lane", width.bytes()),
            width,
            accesses,
        })
    }

    /// The requests it takes over the least that as many phases could take; 1 without conflicts.
    pub fn slowdown(&self) -> f64 {
        let mut requests = 0;
        let mut phases = 0;
        for access in self.analyse() {
            requests += access.requests();
            phases += access.phases.iter().filter(|p| p.degree() > 0).count();
        }
        requests as f64 / phases.max(1) as f64
    }

    /// Each access, phase by phase.
    pub fn analyse(&self) -> impl Iterator<Item = Access> + '_ {
        self.accesses
            .iter()
            .map(|(_, addresses)| Access::new(addresses, self.width))
    }
}

/// How a tile of 32 rows lies in shared memory, row after row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Elements of a row.
    pub columns: usize,
    /// Elements between rows that are not used.
    pub padding: usize,
    /// Whether element (r, c) is kept at column `c ^ (r % columns)`.
    pub swizzled: bool,
}

/// A tile that can not be laid out so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A number of columns that is 0 or too large.
    #[error("a tile of {0} columns: wanted is 1 to 1024")]
    Columns(usize),
    /// Padding that is too large.
    #[error("{0} elements of padding: wanted is 0 to 1024")]
    Padding(usize),
    /// A swizzle that would leave the row.
    #[error("a swizzled tile of {0} columns: wanted is a power of two")]
    Swizzle(usize),
}

impl Layout {
    /// A warp that reads the tile's columns one after the other, lane r the element of row r.
    pub fn columns(&self, width: Width) -> Result<Pattern, LayoutError> {
        if !(1..=1024).contains(&self.columns) {
            return Err(LayoutError::Columns(self.columns));
        }
        if self.padding > 1024 {
            return Err(LayoutError::Padding(self.padding));
        }
        if self.swizzled && !self.columns.is_power_of_two() {
            return Err(LayoutError::Swizzle(self.columns));
        }
        let mut title = format!(
            "columns of a tile of {LANES} x {} elements of {} bytes",
            self.columns,
            width.bytes()
        );
        if self.padding > 0 {
            title += &format!(", rows {} longer", self.padding);
        }
        if self.swizzled {
            title += ", kept at column ^ row";
        }
        Ok(Pattern {
            title,
            width,
            accesses: self.accesses(width),
        })
    }

    fn accesses(&self, width: Width) -> Vec<(String, Addresses)> {
        let place = |row: usize, column: usize| {
            let column = match self.swizzled {
                true => column ^ (row % self.columns),
                false => column,
            };
            Some(width.bytes() * (row * (self.columns + self.padding) + column) as u64)
        };
        (0..self.columns)
            .map(|column| {
                let addresses = std::array::from_fn(|row| place(row, column));
                (format!("column {column}"), addresses)
            })
            .collect()
    }
}

/// The textbook's patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Textbook {
    /// A tree over 256 floats whose stride doubles: thread t adds element `2·s·t + s` to `2·s·t`.
    StridedTree,
    /// A tree over 256 floats whose stride halves: thread t adds element `t + s` to `t`.
    SequentialTree,
    /// Columns of a tile of 32 × 32 floats: lane l reads row l.
    Tile,
    /// The same, each row one float longer.
    TilePadded,
    /// The same, element (r, c) kept at column `c ^ r`.
    TileSwizzled,
}

impl Textbook {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::StridedTree,
        Self::SequentialTree,
        Self::Tile,
        Self::TilePadded,
        Self::TileSwizzled,
    ];

    /// Its accesses by warp 0: the reads of element `2·s·t + s` or `t + s` of a tree, one per step, or of a
    /// tile's columns, one per column.
    pub fn pattern(self) -> Pattern {
        const THREADS: usize = 256;
        let float = |element: usize| Some(4 * element as u64);
        let strides = (0..THREADS.trailing_zeros()).map(|step| 1usize << step);
        let tree = |stride: usize, active: usize, element: &dyn Fn(usize) -> usize| {
            let addresses =
                std::array::from_fn(|lane| float(element(lane)).filter(|_| lane < active));
            (format!("s = {stride}"), addresses)
        };
        let columns = |padding: usize, swizzled: bool| {
            let layout = Layout {
                columns: LANES,
                padding,
                swizzled,
            };
            layout.accesses(Width::Bytes4)
        };
        let (title, accesses) = match self {
            Self::StridedTree => (
                "strided tree over 256 floats",
                strides
                    .map(|s| tree(s, THREADS / (2 * s), &|t| 2 * s * t + s))
                    .collect(),
            ),
            Self::SequentialTree => (
                "sequential tree over 256 floats",
                strides.rev().map(|s| tree(s, s, &|t| t + s)).collect(),
            ),
            Self::Tile => ("columns of a tile of 32 x 32 floats", columns(0, false)),
            Self::TilePadded => (
                "columns of a tile of 32 x 33 floats (padded)",
                columns(1, false),
            ),
            Self::TileSwizzled => (
                "columns of a tile of 32 x 32 floats, column ^ row (swizzled)",
                columns(0, true),
            ),
        };
        Pattern {
            title: title.to_owned(),
            width: Width::Bytes4,
            accesses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn degrees(pattern: &Pattern) -> Vec<usize> {
        pattern.analyse().map(|access| access.degree()).collect()
    }

    fn of(index: &str, width: Width) -> Access {
        let pattern = Pattern::of_index(index, width, 1).unwrap();
        pattern.analyse().next().unwrap()
    }

    #[test]
    fn layouts_are_those_of_the_textbook_and_more() {
        let layout = |columns, padding, swizzled| Layout {
            columns,
            padding,
            swizzled,
        };
        let worst = |layout: Layout, width| {
            let pattern = layout.columns(width).unwrap();
            degrees(&pattern).into_iter().max().unwrap()
        };
        assert_eq!(worst(layout(32, 0, false), Width::Bytes4), 32);
        assert_eq!(worst(layout(32, 1, false), Width::Bytes4), 1);
        assert_eq!(worst(layout(32, 0, true), Width::Bytes4), 1);
        // Rows of 16 words: every second one begins at the same bank.
        assert_eq!(worst(layout(16, 0, false), Width::Bytes4), 16);
        assert_eq!(worst(layout(16, 1, false), Width::Bytes4), 1);
        // An access width of padding, whatever the width.
        for width in [Width::Bytes8, Width::Bytes16] {
            assert_eq!(worst(layout(32, 0, false), width), LANES / width.phases());
            assert_eq!(worst(layout(32, 1, false), width), 1);
        }
        for (wrong, error) in [
            (layout(0, 0, false), LayoutError::Columns(0)),
            (layout(1025, 0, false), LayoutError::Columns(1025)),
            (layout(32, 1025, false), LayoutError::Padding(1025)),
            (layout(24, 0, true), LayoutError::Swizzle(24)),
        ] {
            assert_eq!(wrong.columns(Width::Bytes4), Err(error));
        }
    }

    #[test]
    fn the_textbook_cases_come_out() {
        // M. Harris, "Optimizing Parallel Reduction in CUDA": the strided tree conflicts, the
        // sequential one does not. The later steps have fewer lanes than ways.
        let strided = degrees(&Textbook::StridedTree.pattern());
        assert_eq!(strided, [2, 4, 8, 8, 8, 4, 2, 1]);
        let sequential = degrees(&Textbook::SequentialTree.pattern());
        assert_eq!(sequential, [1; 8]);
        // The transpose of NVIDIA's CUDA samples.
        assert_eq!(degrees(&Textbook::Tile.pattern()), [32; 32]);
        assert_eq!(degrees(&Textbook::TilePadded.pattern()), [1; 32]);
        assert_eq!(degrees(&Textbook::TileSwizzled.pattern()), [1; 32]);
    }

    #[test]
    fn the_programming_guides_figures_come_out() {
        // Strides of one, two and three words; a permutation; all lanes one word; two words of a bank.
        for (index, degree) in [
            ("lane", 1),
            ("2 * lane", 2),
            ("3 * lane", 1),
            ("lane ^ 5", 1),
            ("7", 1),
            ("lane & 1 << 5", 1),
            ("lane % 2 * 32", 2),
            ("lane * 32", 32),
        ] {
            assert_eq!(of(index, Width::Bytes4).degree(), degree, "{index}");
        }
    }

    #[test]
    fn wide_accesses_are_served_in_parts() {
        let consecutive = of("lane", Width::Bytes8);
        assert_eq!((consecutive.degree(), consecutive.requests()), (1, 2));
        let consecutive = of("lane", Width::Bytes16);
        assert_eq!((consecutive.degree(), consecutive.requests()), (1, 4));
        // Rows of 32 words: each lane of a quarter wants the same four banks.
        assert_eq!(of("lane * 8", Width::Bytes16).degree(), 8);
        assert_eq!(of("lane * 9", Width::Bytes16).degree(), 1);
        assert_eq!(of("lane * 16", Width::Bytes8).degree(), 16);
        // Neighbours that want the same: half the phases. All as measured on an H200.
        for (index, width, requests) in [
            ("0", Width::Bytes16, 2),
            ("lane / 2", Width::Bytes16, 2),
            ("lane % 8", Width::Bytes16, 4),
            ("2 * lane", Width::Bytes16, 8),
            ("8 * lane", Width::Bytes16, 32),
            ("0", Width::Bytes8, 1),
            ("lane / 2", Width::Bytes8, 1),
            ("lane % 16", Width::Bytes8, 2),
            ("2 * lane", Width::Bytes8, 4),
            ("16 * lane", Width::Bytes8, 32),
        ] {
            assert_eq!(of(index, width).requests(), requests, "{index} {width:?}");
        }
    }

    #[test]
    fn indices_without_a_place_are_refused() {
        let error = Pattern::of_index("lane - 1", Width::Bytes4, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "lane 0, i = 0: the index is -1, below 0 or beyond 2^40"
        );
        assert!(Pattern::of_index("1 / i", Width::Bytes4, 1).is_err());
        assert!(Pattern::of_index("lane << 60", Width::Bytes4, 1).is_err());
    }

    proptest! {
        #[test]
        fn the_degree_counts_distinct_words_of_a_bank(
            elements in proptest::collection::vec(proptest::option::of(0..4096u64), LANES),
            wide in 0..3usize,
        ) {
            let width = [Width::Bytes4, Width::Bytes8, Width::Bytes16][wide];
            let addresses: Addresses =
                std::array::from_fn(|lane| elements[lane].map(|element| element * width.bytes()));
            let access = Access::new(&addresses, width);
            let together = LANES / access.phases.len();
            for (place, phase) in access.phases.iter().enumerate() {
                // By brute force: for each bank, the set of words.
                let expected = (0..BANKS as u64).map(|bank| {
                    let mut words: Vec<u64> = (place * together..(place + 1) * together)
                        .filter_map(|lane| addresses[lane])
                        .flat_map(|address| (0..width.bytes() / 4).map(move |k| address / 4 + k))
                        .filter(|word| word % 32 == bank)
                        .collect();
                    words.sort_unstable();
                    words.dedup();
                    words.len()
                });
                prop_assert_eq!(phase.degree(), expected.max().unwrap());
            }
            let active = addresses.iter().flatten().count();
            prop_assert_eq!(access.lanes(), active);
            prop_assert!(access.degree() <= together);
        }

        #[test]
        fn odd_strides_never_conflict(stride in 0..500u64, offset in 0..100u64) {
            let odd = 2 * stride + 1;
            let access = of(&format!("{odd} * lane + {offset}"), Width::Bytes4);
            prop_assert_eq!(access.degree(), 1);
        }
    }
}
