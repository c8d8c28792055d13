// The tiles of transpositions: bytes of an element; rows, columns and threads of its tiles.
// Made from src/transpose/cuda/tile_shapes.rs, which is to be changed instead.
#pragma once

#define SHAPE(ROWS, COLUMNS, THREADS) ROWS, COLUMNS, THREADS

// Of one GPU: whole tiles, any, and the same of squares in place.
#define TRANSPOSE_TILES_1(X) X(1, SHAPE(256, 256, 128), SHAPE(128, 256, 144), SHAPE(256, 256, 256), SHAPE(128, 128, 64))
#define TRANSPOSE_TILES_2(X) X(2, SHAPE(128, 128, 256), SHAPE(128, 128, 272), SHAPE(128, 128, 256), SHAPE(64, 64, 64))
#define TRANSPOSE_TILES_4(X) X(4, SHAPE(64, 64, 256), SHAPE(128, 64, 176), SHAPE(64, 64, 128), SHAPE(64, 64, 128))
#define TRANSPOSE_TILES_8(X) X(8, SHAPE(64, 32, 512), SHAPE(64, 64, 352), SHAPE(32, 32, 128), SHAPE(32, 32, 128))
#define TRANSPOSE_TILES_16(X) X(16, SHAPE(64, 16, 512), SHAPE(32, 32, 256), SHAPE(32, 32, 256), SHAPE(16, 16, 64))

// Of several PEs.
#define TRANSPOSE_WORLD_TILES_1(X) X(1, SHAPE(128, 128, 64))
#define TRANSPOSE_WORLD_TILES_2(X) X(2, SHAPE(128, 128, 256))
#define TRANSPOSE_WORLD_TILES_4(X) X(4, SHAPE(64, 64, 256))
#define TRANSPOSE_WORLD_TILES_8(X) X(8, SHAPE(64, 32, 256))
#define TRANSPOSE_WORLD_TILES_16(X) X(16, SHAPE(64, 16, 256))
