//! The tiles of transpositions, for each size of elements: the header `transpose/tile_shapes.cuh` is made from it.

/// A tile's shape, and the threads that work on it.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    pub rows: usize,
    pub columns: usize,
    pub threads: u32,
}

impl Tile {
    const fn new(rows: usize, columns: usize, threads: u32) -> Self {
        Self {
            rows,
            columns,
            threads,
        }
    }

    /// Shared memory of a whole tile, and of any.
    pub(crate) const fn bytes(&self, element: usize) -> u32 {
        (self.rows * self.columns * element) as u32
    }

    /// Of a tile of rows that begin anywhere, out of place (`shifted_tile` of `transpose/shifted_tile.cuh`).
    pub(crate) const fn shifted_bytes(&self, element: usize) -> u32 {
        let per_chunk = 16 / element;
        let chunks = self.columns * (self.rows / per_chunk + 1) + self.columns / per_chunk;
        (16 * chunks) as u32
    }

    pub(crate) const fn any_bytes(&self, element: usize) -> u32 {
        (self.columns * (self.rows * element + 128)) as u32
    }
}

/// The tiles of one element size.
pub(crate) struct Tiles {
    pub element: usize,
    /// Whole tiles. Shapes and threads by measurement of 16384² on an H200, GB/s read and written, against
    /// the device's copy: 1 byte 256 × 256 by 128 threads 4006 of 4160; 2 bytes 4089 (64 × 128: 4005) of
    /// 4184; 4 bytes 4130 (32 × 32 with the same threads an SM: 3900) of 4233; 8 bytes 4169 (in other
    /// processes, with buffers elsewhere, down to 3920) of 4248; 16 bytes 4047 (16 × 16: 4023) of 4277.
    /// Segments of 256 bytes and more on both sides is what all good ones share. Cache hints cost 1 to 3 %
    /// everywhere; walking along rows instead of down columns 2 to 5 %; fewer blocks on an SM 3 to 6 %; a
    /// persistent grid that loads tiles by bulk copies, two to four ahead, 5 % and more.
    pub whole: Tile,
    /// Rows that begin anywhere, by measurement of 16383 × 16381: 1 byte 2982 GB/s (256 × 256: 2730), 2 bytes
    /// 3461, 4 bytes 3614 (64 × 64: 3499), 8 bytes 3890 (64 × 32: 3831), 16 bytes 3929. Moving each element
    /// by itself through shared memory instead: 1458, 2767, 3017, 3397 and 3867.
    pub any: Tile,
    pub square: Tile,
    pub any_square: Tile,
}

/// The tables, here and as macros there, each row of which calls a macro.
macro_rules! tiles {
    (
        one_gpu {
            $($element:literal: $whole:tt, $any:tt, $square:tt, $any_square:tt;)+
        }
        world {
            $($world_element:literal: $world:tt;)+
        }
    ) => {
        pub(crate) const TILES: [Tiles; 5] = [$(
            Tiles {
                element: $element,
                whole: Tile::new $whole,
                any: Tile::new $any,
                square: Tile::new $square,
                any_square: Tile::new $any_square,
            },
        )+];

        /// Those of one GPU, made smaller for 1 byte, since the links are an order slower than memory and tiles at the
        /// edges take the same shape.
        pub(crate) const WORLD_TILES: [Tile; 5] = [$(Tile::new $world,)+];

        pub(crate) const HEADER: &str = concat!(
            "// The tiles of transpositions: bytes of an element; rows, columns and threads of its tiles.
// Made from src/transpose/cuda/tile_shapes.rs, which is to be changed instead.
#pragma once

#define SHAPE(ROWS, COLUMNS, THREADS) ROWS, COLUMNS, THREADS

// Of one GPU: whole tiles, any, and the same of squares in place.
",
            $(
                "#define TRANSPOSE_TILES_", $element, "(X) X(", $element, ", SHAPE", stringify!($whole), ", SHAPE",
                stringify!($any), ", SHAPE", stringify!($square), ", SHAPE", stringify!($any_square), ")\n",
            )+
            "
// Of several PEs.
",
            $(
                "#define TRANSPOSE_WORLD_TILES_", $world_element, "(X) X(", $world_element, ", SHAPE",
                stringify!($world), ")\n",
            )+
        );
    };
}

tiles! {
    one_gpu {
        1: (256, 256, 128), (128, 256, 144), (256, 256, 256), (128, 128, 64);
        2: (128, 128, 256), (128, 128, 272), (128, 128, 256), (64, 64, 64);
        4: (64, 64, 256), (128, 64, 176), (64, 64, 128), (64, 64, 128);
        8: (64, 32, 512), (64, 64, 352), (32, 32, 128), (32, 32, 128);
        16: (64, 16, 512), (32, 32, 256), (32, 32, 256), (16, 16, 64);
    }
    world {
        1: (128, 128, 64);
        2: (128, 128, 256);
        4: (64, 64, 256);
        8: (64, 32, 256);
        16: (64, 16, 256);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(
            folder,
            "kernels/transpose/tile_shapes.cuh",
            super::HEADER,
        );
    }
}
