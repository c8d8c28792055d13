//! How the parts of a plane lie on the chips.

use crosswarp_prim::leaf::{LANES as LEAF_COLUMNS, ROWS as LEAF_ROWS};

use crate::element::Real;
use crate::field::partition::Partition;
use crate::gpu::arguments::{
    DEEP_HALO_DEPTH_F32, DEEP_HALO_DEPTH_F64, DEEP_HALO_WARPS_ONE_F32, DEEP_HALO_WARPS_ONE_F64,
    DEEP_HALO_WARPS_TWO_F32, NARROW_UNIT_COLUMNS, TILE_WARPS, WIDE_UNIT_COLUMNS_F32,
    WIDE_UNIT_COLUMNS_F64,
};
use crate::gpu::error::GpuError;

/// Units of 16 rows that a block holds: `bands` of them below one another, `units` side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub bands: usize,
    pub units: usize,
}

impl Tile {
    /// The tiles for `bands` × `units` units on `blocks` blocks, with as few units as possible, and then as short an
    /// edge. Leaves of `parts` units stay whole. None if there are not enough blocks.
    fn of(bands: usize, units: usize, parts: usize, blocks: usize) -> Option<Tile> {
        let sizes = (1..=TILE_WARPS).flat_map(|bands| {
            (parts..=TILE_WARPS / bands)
                .step_by(parts)
                .map(move |units| Tile { bands, units })
        });
        sizes
            .filter(|tile| bands.div_ceil(tile.bands) * units.div_ceil(tile.units) <= blocks)
            .min_by_key(|tile| {
                let width = tile.units * LEAF_COLUMNS / parts;
                // A column at the edge costs more than one of a row: measured, about six times.
                (tile.bands * tile.units, width + 6 * tile.bands * LEAF_ROWS)
            })
    }
}

/// Units that a leaf has where a lane has `columns`.
const fn units_of_leaf(columns: usize) -> usize {
    LEAF_COLUMNS / (32 * columns)
}

/// Units that a leaf has where they are narrow.
const NARROW: usize = units_of_leaf(NARROW_UNIT_COLUMNS);

/// Blocks with deep halos, where that is faster than tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeepHalo {
    /// Of a block.
    pub leaves: usize,
    /// Cells, and sweeps from one exchange to the next: `T` of the kernel.
    pub depth: usize,
    /// Of a block.
    pub warps: usize,
}

impl DeepHalo {
    /// Measured on H200s, µs a sweep of a grid that wraps around, with tiles and with deep halos. `f32`, 1024² on four
    /// GPUs, a leaf an SM: 1.78 and 0.88; on two, two leaves: 1.78 and 1.29; on one, four leaves: 1.9 and 1.8 to 2.1.
    /// `f64`, 512² on one, a leaf: 2.35 and 1.1.
    fn of<F: Real>(leaves: usize) -> Option<DeepHalo> {
        let (depth, warps) = match (size_of::<F>(), leaves) {
            (4, 1) => (DEEP_HALO_DEPTH_F32, DEEP_HALO_WARPS_ONE_F32),
            (4, 2) => (DEEP_HALO_DEPTH_F32, DEEP_HALO_WARPS_TWO_F32),
            (8, 1) => (DEEP_HALO_DEPTH_F64, DEEP_HALO_WARPS_ONE_F64),
            _ => return None,
        };
        Some(DeepHalo {
            leaves,
            depth,
            warps,
        })
    }

    /// Whether every cell within `depth` of a PE's part, beyond the grid's ends included, is a copy of a neighbour's,
    /// and of one only.
    fn suits(self, partition: &Partition, nx: usize, wraps: Wraps) -> bool {
        // The ghost, and the cell it is a copy of, are not copied beyond the end; lanes at the right one take one more.
        let around = |cells: usize| cells >= self.depth + 4;
        partition.max_depth(wraps.y) >= self.depth
            && (!wraps.y || around(partition.total()))
            && (!wraps.x || around(nx))
    }
}

/// What blocks hold, and when they exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Tiles of units, `parts` to a leaf, that exchange edges after every sweep.
    Tiles { tile: Tile, parts: usize },
    /// Leaves with halos several cells deep, exchanged after as many sweeps.
    DeepHalo(DeepHalo),
}

/// How a plane lies on the chips.
pub(crate) struct Placement {
    pub blocks: Blocks,
    /// Rows of the PE with most.
    pub max_rows: usize,
    /// Rows of leaves of it.
    pub max_bands: usize,
    /// Leaves across.
    pub leaves: usize,
}

impl Placement {
    /// For a plane of `nx` columns and `blocks` blocks on every GPU.
    pub(crate) fn of<F: Real>(
        partition: &Partition,
        nx: usize,
        wraps: Wraps,
        blocks: usize,
    ) -> Result<Placement, GpuError> {
        let rows = |pe: usize| partition.rows(pe).len();
        let max_rows = (0..partition.active()).map(rows).max().unwrap_or(0);
        let max_bands = max_rows.div_ceil(LEAF_ROWS);
        let leaves = nx.div_ceil(LEAF_COLUMNS);
        let placed = |blocks: Blocks| Placement {
            blocks,
            max_rows,
            max_bands,
            leaves,
        };
        let deep = DeepHalo::of::<F>((max_bands * leaves).div_ceil(blocks));
        if let Some(deep) = deep.filter(|deep| deep.suits(partition, nx, wraps)) {
            return Ok(placed(Blocks::DeepHalo(deep)));
        }
        // Narrow units are ready sooner, wide ones leave room for more cells.
        let wide = units_of_leaf(if size_of::<F>() == 4 {
            WIDE_UNIT_COLUMNS_F32
        } else {
            WIDE_UNIT_COLUMNS_F64
        });
        let with = |parts: usize| {
            let tile = Tile::of(max_bands, leaves * parts, parts, blocks)?;
            Some(placed(Blocks::Tiles { tile, parts }))
        };
        with(NARROW)
            .or_else(|| with(wide))
            .ok_or_else(|| GpuError::TooLargeForChip {
                cells: max_rows * nx,
                most: blocks * TILE_WARPS / wide * LEAF_ROWS * LEAF_COLUMNS,
            })
    }

    /// Whether units are narrow.
    pub(crate) fn is_narrow(parts: usize) -> bool {
        parts == NARROW
    }
}

/// Where a grid wraps around.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wraps {
    pub x: bool,
    pub y: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_the_plane_keep_leaves_whole_and_fit() {
        for (bands, leaves) in [(1, 1), (16, 8), (64, 8), (64, 32), (3, 100), (500, 1)] {
            for parts in [1, 2, 4] {
                for blocks in [1, 33, 66, 132] {
                    let Some(tile) = Tile::of(bands, leaves * parts, parts, blocks) else {
                        assert!(
                            bands * leaves * parts > blocks * TILE_WARPS / 4,
                            "{bands} x {leaves} leaves of {parts} on {blocks}"
                        );
                        continue;
                    };
                    assert!(tile.units.is_multiple_of(parts));
                    assert!(tile.bands * tile.units <= TILE_WARPS);
                    let used = bands.div_ceil(tile.bands) * (leaves * parts).div_ceil(tile.units);
                    assert!(used <= blocks);
                }
            }
        }
        // 4096² on four GPUs, 1024² on one and on four.
        let tile = |bands, units| Some(Tile { bands, units });
        assert_eq!(Tile::of(64, 32, 1, 132), tile(4, 4));
        assert_eq!(Tile::of(64, 32, 4, 132), tile(2, 8));
        assert_eq!(Tile::of(16, 32, 4, 132), tile(1, 4));
    }

    #[test]
    fn halos_are_deep_where_leaves_are_few_and_neighbours_have_enough() {
        fn deep<F: Real>(total: usize, nx: usize, pes: usize, wrap: bool) -> Option<usize> {
            let wraps = Wraps { x: wrap, y: wrap };
            let cut = Placement::of::<F>(&Partition::new(total, LEAF_ROWS, pes), nx, wraps, 132);
            match cut.map(|cut| cut.blocks) {
                Ok(Blocks::DeepHalo(deep)) => Some(deep.leaves),
                _ => None,
            }
        }
        assert_eq!(deep::<f32>(1024, 1024, 1, true), None);
        assert_eq!(deep::<f32>(1024, 1024, 2, true), Some(2));
        assert_eq!(deep::<f32>(1024, 1024, 4, true), Some(1));
        assert_eq!(deep::<f64>(1024, 1024, 2, true), None);
        assert_eq!(deep::<f64>(1024, 1024, 4, true), Some(1));
        // Too few rows or columns to wrap around.
        assert_eq!(deep::<f32>(3, 200, 1, false), Some(1));
        assert_eq!(deep::<f32>(3, 200, 1, true), None);
        assert_eq!(deep::<f32>(200, 3, 2, false), Some(1));
        assert_eq!(deep::<f32>(200, 3, 2, true), None);
        // The last part has eight rows, of which two are no copies.
        assert_eq!(deep::<f32>(24, 64, 2, false), Some(1));
        assert_eq!(deep::<f32>(24, 64, 2, true), None);
    }
}
