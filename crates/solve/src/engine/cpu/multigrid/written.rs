//! The columns of a row that something was written to.

use std::ops::Range;

/// Points that are computed at once.
pub(super) const LANES: usize = 8;

/// Columns of a row, by groups of [`LANES`]; the others are zero. Where a mask fixes most cells, rows on the way to the next
/// level are cleared, converted and stored by these.
#[derive(Clone, Default)]
pub(crate) struct Written {
    groups: Vec<bool>,
    nx: usize,
}

impl Written {
    /// None of `nx` columns.
    pub fn none(nx: usize) -> Written {
        let mut none = Written::default();
        none.clear(nx);
        none
    }

    /// The same, in place.
    pub fn clear(&mut self, nx: usize) {
        self.nx = nx;
        self.groups.clear();
        self.groups.resize(nx.div_ceil(LANES), false);
    }

    /// Adds columns that the row has, at least one.
    #[inline(always)]
    pub fn add(&mut self, columns: Range<usize>) {
        self.groups[columns.start / LANES..=(columns.end - 1) / LANES].fill(true);
    }

    /// Whether some of these columns, of at least one, may be among them.
    #[inline(always)]
    pub fn has_some(&self, columns: Range<usize>) -> bool {
        self.groups[columns.start / LANES..=(columns.end - 1) / LANES].contains(&true)
    }

    /// Makes `part`, which is zero but in these columns if it has `len` elements, all zero. Column 0 is element `first`.
    pub fn zero(&self, part: &mut Vec<f64>, len: usize, first: usize) {
        if part.len() == len {
            let columns = self.runs().map(|run| first + run.start..first + run.end);
            columns.for_each(|columns| part[columns].fill(0.0));
        } else {
            part.clear();
            part.resize(len, 0.0);
        }
    }

    /// Whether no column is left out.
    pub fn are_all(&self) -> bool {
        self.groups.iter().all(|&written| written)
    }

    /// The columns, in order.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        let equal = self.groups.chunk_by(|one, other| one == other);
        let runs = equal.scan(0, |start, groups| {
            let run = *start..*start + groups.len();
            *start = run.end;
            Some((groups[0], run))
        });
        let written = runs.filter(|(written, _)| *written);
        written.map(|(_, run)| run.start * LANES..(run.end * LANES).min(self.nx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_what_was_written_and_little_more() {
        let mut written = Written::default();
        let runs = |written: &Written| written.runs().collect::<Vec<_>>();
        written.clear(45);
        assert!(runs(&written).is_empty() && !written.are_all());
        for columns in [0..1, 8..16, 30..34, 44..45] {
            written.add(columns);
        }
        assert_eq!(runs(&written), [0..16, 24..45]);
        written.add(17..20);
        assert!(runs(&written).into_iter().eq(std::iter::once(0..45)));
        assert!(written.are_all());
        written.clear(7);
        assert!(runs(&written).is_empty());
    }
}
