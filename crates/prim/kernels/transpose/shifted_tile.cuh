// Tiles of a transposition between matrices whose rows begin anywhere.
//
// Only aligned chunks of 16 bytes are stored: in every row of the output a tile covers the chunks that begin
// in it, so it covers other elements in one row than in the next, by less than a chunk. To have them all, it
// loads one chunk's worth of rows more than it stores. The first tile of a row stores what lies before the
// first chunk, the last tile what remains.
//
// Input chunks are two aligned loads, shifted in registers; blocks of 16 / E chunks are transposed there, and
// put into shared memory, a row of the output after the other. Rows have an odd number of chunks, and every
// block one chunk of padding: eight lanes that write blocks side by side, or read along a row, meet in no bank.
#pragma once
#include "transpose/tile.cuh"

namespace crosswarp {

// Tiles of Rows × Columns elements of E bytes. Strides are in bytes. Between loading and storing the threads
// synchronise.
template <int E, int Rows, int Columns, int Threads> struct shifted_tile {
    static constexpr int rows = Rows, columns = Columns, threads = Threads;
    static constexpr int per_chunk = 16 / E;
    // Elements of 16 bytes are aligned.
    static constexpr int more = E == 16 ? 0 : 1;
    // Rows that are loaded.
    static constexpr int loaded = Rows + more * per_chunk;
    static constexpr int in_chunks = Columns / per_chunk, out_chunks = Rows / per_chunk;
    static constexpr int pitch = out_chunks + 1;
    static constexpr int bytes = (Columns * pitch + in_chunks) * 16;
    static_assert(out_chunks % 2 == 0, "an odd number of chunks in a row");
    using item = typename element_of<E>::type;

    static __device__ int place(int column, int c) { return column * pitch + column / per_chunk + c; }

    // Loads the tile that begins at `from`, of which `height` rows, at most `loaded`, are there. Nothing outside of
    // `begin` to `end` is read.
    static __device__ void load(chunk* shared, const char* from, u64 stride, int height, const char* begin,
                                const char* end, int thread) {
        constexpr int blocks = in_chunks * (out_chunks + more), mine = blocks / Threads;
        static_assert(mine * Threads == blocks, "threads share the blocks evenly");
        chunk block[mine][per_chunk];
        if (from - 16 >= begin && from + loaded * stride + 16 * (in_chunks + 1) <= end) {
            load_blocks<mine>(block, from, stride, loaded, thread, [](const char* at) {
                return *reinterpret_cast<const chunk*>(at);
            });
        } else {
            load_blocks<mine>(block, from, stride, height, thread,
                              [&](const char* at) { return load_within(at, begin, end); });
        }
#pragma unroll
        for (int m = 0; m < mine; ++m) {
            int i = thread + m * Threads, column = i % in_chunks * per_chunk;
            chunk turned[per_chunk];
            transpose_block<E>(block[m], turned);
#pragma unroll
            for (int k = 0; k < per_chunk; ++k) shared[place(column + k, i / in_chunks)] = turned[k];
        }
    }

    // `fetch` loads an aligned chunk. Rows beyond `height` are read as the last.
    template <int Mine, class Fetch>
    static __device__ void load_blocks(chunk (&block)[Mine][per_chunk], const char* from, u64 stride, int height,
                                       int thread, Fetch fetch) {
#pragma unroll
        for (int m = 0; m < Mine; ++m) {
            int i = thread + m * Threads, row = i / in_chunks * per_chunk, c = i % in_chunks;
#pragma unroll
            for (int k = 0; k < per_chunk; ++k) {
                const char* at = from + (u64)min(row + k, height - 1) * stride + c * 16;
                int skew = (int)reinterpret_cast<u64>(at) & 15;
                const char* low = at - skew;
                if constexpr (E == 16) {
                    block[m][k] = fetch(low);
                } else {
                    // No branch, so that loads overlap.
                    block[m][k] = shift<E>(fetch(low), fetch(low + (skew ? 16 : 0)), skew);
                }
            }
        }
    }

    // The elements of an aligned chunk that lie within `begin` to `end`.
    static __device__ __noinline__ chunk load_within(const char* at, const char* begin, const char* end) {
        chunk value = {};
        if (at >= begin && at + 16 <= end) {
            value = *reinterpret_cast<const chunk*>(at);
        } else if constexpr (E < 16) {
            for (int j = 0; j < per_chunk; ++j) {
                const char* single = at + j * E;
                if (single < begin || single + E > end) continue;
                u64 bits = *reinterpret_cast<const item*>(single);
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    if (j * E / 4 == w) value.word[w] |= (u32)bits << j * E % 4 * 8;
                    if (E == 8 && 2 * j + 1 == w) value.word[w] = (u32)(bits >> 32);
                }
            }
        }
        return value;
    }

    // Stores the rows of the output, which begin at `to`. `first`: no tile is before this one in its rows.
    static __device__ void store(const chunk* shared, char* to, u64 stride, int height, int width, bool first,
                                 int thread) {
        const int there = height * E;
#pragma unroll 4
        for (int i = thread; i < width * out_chunks; i += Threads) {
            int row = i / out_chunks, c = i % out_chunks;
            char* start = to + (u64)row * stride;
            // To the first chunk that begins here.
            int ahead = -(int)reinterpret_cast<u64>(start) & 15, at = ahead + 16 * c;
            const chunk* in = shared + place(row, c);
            chunk value = in[0];
            if constexpr (E < 16) value = shift<E>(value, in[1], ahead);
            if (at + 16 <= there) {
                *reinterpret_cast<chunk*>(start + at) = value;
            } else {
#pragma unroll
                for (int j = 0; j < per_chunk; ++j) {
                    if (at + j * E < there) reinterpret_cast<item*>(start + at)[j] = element<E>(value, j);
                }
            }
        }
        if (!first) return;
        for (int row = thread; row < width; row += Threads) {
            char* start = to + (u64)row * stride;
            int ahead = (-(int)reinterpret_cast<u64>(start) & 15) / E;
            const item* in = reinterpret_cast<const item*>(shared + place(row, 0));
            for (int j = 0; j < ahead && j < height; ++j) reinterpret_cast<item*>(start)[j] = in[j];
        }
    }
};

}  // namespace crosswarp
