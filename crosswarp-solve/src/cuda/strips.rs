//! How a band is cut into strips, one for each warp of a pass.

use bytemuck::{Pod, Zeroable};
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

/// Columns a warp of a pass owns.
pub(crate) const STRIP_COLUMNS: usize = 128;

/// `crosswarp::strips`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Strips {
    pub rows: i32,
    pub edge_rows: i32,
}

/// How a band of `rows` rows and `nx` columns is cut into at most `warps` strips, if it can be, and how many they are.
///
/// Strips at the left and right end take longer a row; measured, half the rows make up for it.
pub(crate) fn cut(nx: usize, rows: usize, warps: usize) -> (Strips, usize) {
    let across = nx.div_ceil(STRIP_COLUMNS);
    let ends = across.min(2);
    let leaves = rows.div_ceil(LEAF_ROWS).max(1);
    let strips = |of_leaves: usize| {
        let of_edge = (of_leaves / 2).max(1);
        let count = (across - ends) * leaves.div_ceil(of_leaves) + ends * leaves.div_ceil(of_edge);
        let cut = Strips {
            rows: (of_leaves * LEAF_ROWS) as i32,
            edge_rows: (of_edge * LEAF_ROWS) as i32,
        };
        (cut, count)
    };
    (1..leaves)
        .map(strips)
        .find(|&(_, count)| count <= warps)
        .unwrap_or_else(|| strips(leaves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_are_whole_leaves_cover_the_band_and_fit_where_they_can() {
        for (nx, rows) in [
            (3, 3),
            (129, 47),
            (1000, 700),
            (16384, 16384),
            (128, 100_000),
        ] {
            for warps in [1, 7, 528, 1584] {
                let (cut, count) = cut(nx, rows, warps);
                assert!(cut.rows % 16 == 0 && cut.edge_rows % 16 == 0 && cut.edge_rows > 0);
                let across = nx.div_ceil(STRIP_COLUMNS);
                let of = |each: i32| rows.div_ceil(each as usize);
                let ends = across.min(2);
                assert_eq!(
                    count,
                    (across - ends) * of(cut.rows) + ends * of(cut.edge_rows)
                );
                assert!(
                    count <= warps || cut.rows as usize >= rows,
                    "{nx} x {rows}, {warps}"
                );
            }
        }
    }
}
