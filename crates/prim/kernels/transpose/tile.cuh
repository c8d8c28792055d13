// Tiles of a transposition, through shared memory.
//
// A tile of the input is loaded in chunks of 16 bytes along its rows. A thread holds the chunks of as
// many rows as a chunk has elements, which are a square block, and transposes it in registers. Shared
// memory then holds the tile transposed, a row of the output after the other, each in chunks. The chunks
// of a row are swizzled: their place is their number XOR the block's column (mod 8). Eight lanes access
// shared memory at a time (16 bytes each); when blocks are written they have eight columns and one chunk
// number, when rows are read one column and eight chunk numbers: always eight different places modulo 128
// bytes, so no two lanes meet in a bank.
#pragma once
#include "base.cuh"

namespace crosswarp {

struct alignas(16) chunk {
    u32 word[4];
};

template <int E> struct element_of { using type = typename unit_of_bytes<E>::type; };
template <> struct element_of<16> { using type = chunk; };

// Element `j` of a chunk.
template <int E> __device__ inline typename element_of<E>::type element(const chunk& c, int j) {
    using T = typename element_of<E>::type;
    if constexpr (E == 16) {
        return c;
    } else if constexpr (E == 8) {
        return (u64)c.word[2 * j] | (u64)c.word[2 * j + 1] << 32;
    } else {
        return (T)(c.word[j * E / 4] >> j * E % 4 * 8);
    }
}

// Transposes the square block that `16 / E` chunks are.
template <int E> __device__ inline void transpose_block(const chunk* rows, chunk* columns) {
    if constexpr (E >= 4) {
        constexpr int side = 16 / E, words = E / 4;
#pragma unroll
        for (int r = 0; r < side; ++r) {
#pragma unroll
            for (int c = 0; c < side; ++c) {
#pragma unroll
                for (int w = 0; w < words; ++w) columns[c].word[r * words + w] = rows[r].word[c * words + w];
            }
        }
    } else if constexpr (E == 2) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                u32 a = rows[2 * r].word[w], b = rows[2 * r + 1].word[w];
                columns[2 * w].word[r] = __byte_perm(a, b, 0x5410);
                columns[2 * w + 1].word[r] = __byte_perm(a, b, 0x7632);
            }
        }
    } else {
        // Four rows' words are a block of 4 × 4 bytes: two rounds of two permutations.
#pragma unroll
        for (int w = 0; w < 4; ++w) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                u32 a = rows[4 * r].word[w], b = rows[4 * r + 1].word[w];
                u32 c = rows[4 * r + 2].word[w], d = rows[4 * r + 3].word[w];
                u32 ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
                u32 cd_low = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
                columns[4 * w].word[r] = __byte_perm(ab_low, cd_low, 0x5410);
                columns[4 * w + 1].word[r] = __byte_perm(ab_low, cd_low, 0x7632);
                columns[4 * w + 2].word[r] = __byte_perm(ab_high, cd_high, 0x5410);
                columns[4 * w + 3].word[r] = __byte_perm(ab_high, cd_high, 0x7632);
            }
        }
    }
}

// The 16 bytes that begin `skew` bytes (0 to 15, whole elements of E bytes) into `low`, and go on in `high`.
template <int E> __device__ inline chunk shift(const chunk& low, const chunk& high, int skew) {
    const u32 word[8] = {low.word[0],  low.word[1],  low.word[2],  low.word[3],
                         high.word[0], high.word[1], high.word[2], high.word[3]};
    u32 odd[7], all[5];
#pragma unroll
    for (int i = 0; i < 7; ++i) odd[i] = E < 8 && skew & 4 ? word[i + 1] : word[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) all[i] = skew & 8 ? odd[i + 2] : odd[i];
    chunk shifted;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        shifted.word[i] = E < 4 ? __funnelshift_r(all[i], all[i + 1], skew % 4 * 8) : all[i];
    }
    return shifted;
}

// Tiles of Rows × Columns elements of E bytes, each worked on by Threads threads, `thread` of them
// calling. Strides are in bytes. Between loading and storing the threads synchronise.
template <int E, int Rows, int Columns, int Threads> struct tile {
    static constexpr int rows = Rows, columns = Columns, threads = Threads;
    static constexpr int per_chunk = 16 / E;
    static constexpr int in_chunks = Columns / per_chunk, out_chunks = Rows / per_chunk;
    // Chunks between rows in shared memory: whole tiles, and any.
    static constexpr int pitch = out_chunks, any_pitch = out_chunks + 8;
    static constexpr int bytes = Columns * pitch * 16, any_bytes = Columns * any_pitch * 16;
    static_assert(in_chunks % 8 == 0 && out_chunks % 8 == 0, "the swizzle takes eight chunks");

    static __device__ int swizzle(int column, int c) { return c ^ (column / per_chunk & 7); }

    // A whole tile; unless Shifted, all of its rows begin at multiples of 16 bytes.
    template <bool Shifted = false>
    static __device__ void load(chunk* shared, const char* from, u64 stride, int thread) {
        constexpr int blocks = in_chunks * out_chunks, mine = blocks / Threads;
        static_assert(mine * Threads == blocks, "threads share the blocks evenly");
        chunk block[mine][per_chunk];
#pragma unroll
        for (int m = 0; m < mine; ++m) {
            int i = thread + m * Threads, row = i / in_chunks * per_chunk, c = i % in_chunks;
#pragma unroll
            for (int k = 0; k < per_chunk; ++k) {
                const char* at = from + (u64)(row + k) * stride + c * 16;
                if constexpr (Shifted) {
                    int skew = (int)reinterpret_cast<u64>(at) & 15;
                    const chunk* low = reinterpret_cast<const chunk*>(at - skew);
                    block[m][k] = shift<E>(low[0], low[1], skew);
                } else {
                    block[m][k] = *reinterpret_cast<const chunk*>(at);
                }
            }
        }
#pragma unroll
        for (int m = 0; m < mine; ++m) {
            int i = thread + m * Threads, place = i / in_chunks, column = i % in_chunks * per_chunk;
            chunk turned[per_chunk];
            transpose_block<E>(block[m], turned);
#pragma unroll
            for (int k = 0; k < per_chunk; ++k) {
                shared[(column + k) * pitch + swizzle(column, place)] = turned[k];
            }
        }
    }

    static __device__ void store(const chunk* shared, char* to, u64 stride, int thread) {
#pragma unroll
        for (int m = 0; m < Columns * out_chunks / Threads; ++m) {
            int i = thread + m * Threads, row = i / out_chunks, c = i % out_chunks;
            *reinterpret_cast<chunk*>(to + (u64)row * stride + c * 16) = shared[row * pitch + swizzle(row, c)];
        }
    }

    // Whether a tile at any address can be loaded as a whole one, shifted: it is whole, and so are the
    // aligned chunks that it lies in. Larger elements are as fast one by one.
    static __device__ bool shiftable(const char* from, u64 stride, int height, int width, const char* begin,
                                     const char* end) {
        const char* last = from + (u64)(Rows - 1) * stride;
        return E <= 2 && height == Rows && width == Columns && from - 16 >= begin &&
               last + 16 * (in_chunks + 1) <= end;
    }

    // The part of `height` × `width` elements of a tile at any address. If `shifted`, a whole tile in its
    // place in shared memory, the output's rows being shifted when they are stored. Otherwise loads the
    // aligned chunks that the rows lie in, and moves each element by itself to where it lies in the
    // aligned chunks of the output's rows, which begin at `to`, `to_stride` apart. Nothing outside of
    // `begin` to `end` is read.
    static __device__ void load_any(chunk* shared, bool shifted, const char* from, u64 stride, int height,
                                    int width, const char* to, u64 to_stride, const char* begin,
                                    const char* end, int thread) {
        if constexpr (E <= 2) {
            if (shifted) {
                load<true>(shared, from, stride, thread);
                return;
            }
        }
        const char* last = from + (u64)(height - 1) * stride;
        // All chunks of most tiles can be read as they are, which lets loads overlap.
        if (from - 16 >= begin && last + 16 * (in_chunks + 1) <= end) {
            load_chunks<true>(shared, from, stride, height, width, to, to_stride, begin, end, thread);
        } else {
            load_chunks<false>(shared, from, stride, height, width, to, to_stride, begin, end, thread);
        }
    }

    template <bool Inside>
    static __device__ void load_chunks(chunk* shared, const char* from, u64 stride, int height, int width,
                                       const char* to, u64 to_stride, const char* begin, const char* end,
                                       int thread) {
        constexpr int batch = 4, rounds = Rows * in_chunks / Threads / batch;
        static_assert(rounds * batch * Threads == Rows * in_chunks, "threads share the chunks evenly");
        // Where chunk `c` of row `row` begins, in bytes from the row's beginning.
        auto first_of = [&](int row, int c) {
            return 16 * c - (((int)reinterpret_cast<u64>(from) + row * (int)stride) & 15);
        };
        auto fetch = [&](int row, int c) {
            // Rows beyond the last are read as the last, and not placed.
            row = row < height ? row : height - 1;
            const char* at = from + (u64)row * stride + first_of(row, c);
            if (Inside || (at >= begin && at + 16 <= end)) return *reinterpret_cast<const chunk*>(at);
            chunk value = {};
            if constexpr (E < 16) {
#pragma unroll
                for (int j = 0; j < per_chunk; ++j) {
                    const char* single = at + j * E;
                    if (single < begin || single + E > end) continue;
                    u64 bits = *reinterpret_cast<const typename element_of<E>::type*>(single);
                    value.word[j * E / 4] |= (u32)bits << j * E % 4 * 8;
                    if constexpr (E == 8) value.word[2 * j + 1] = (u32)(bits >> 32);
                }
            }
            return value;
        };
        auto place = [&](int row, int c, const chunk& value) {
            if (row >= height) return;
            int first = first_of(row, c);
            char* bytes = reinterpret_cast<char*>(shared);
#pragma unroll
            for (int j = 0; j < per_chunk; ++j) {
                int at = first + j * E, column = at / E;
                if (at < 0 || column >= width) continue;
                int skew = ((int)reinterpret_cast<u64>(to) + column * (int)to_stride) & 15;
                int byte = skew + row * E;
                int index = column * any_pitch + swizzle(column, byte / 16);
                *reinterpret_cast<typename element_of<E>::type*>(bytes + index * 16 + byte % 16) =
                    element<E>(value, j);
            }
        };
        // A warp takes eight chunks of four rows: the words of the rows share a chunk of the output.
        for (int round = 0; round < rounds; ++round) {
            chunk value[batch];
            int row[batch], c[batch];
#pragma unroll
            for (int m = 0; m < batch; ++m) {
                int i = thread + (round * batch + m) * Threads, group = i / 32;
                c[m] = i % 8 + group % (in_chunks / 8) * 8;
                row[m] = i / 8 % 4 + group / (in_chunks / 8) * 4;
                value[m] = fetch(row[m], c[m]);
            }
#pragma unroll
            for (int m = 0; m < batch; ++m) place(row[m], c[m], value[m]);
        }
        // Rows that do not begin with a chunk reach into one more.
        for (int row = thread; row < height; row += Threads) {
            if (first_of(row, in_chunks) < width * E) place(row, in_chunks, fetch(row, in_chunks));
        }
    }

    // Stores a whole tile, whose rows begin anywhere, from where `load` left it.
    static __device__ void store_shifted(const chunk* shared, char* to, u64 stride, int thread) {
        for (int i = thread; i < Columns * (out_chunks + 1); i += Threads) {
            int row = i / (out_chunks + 1), c = i % (out_chunks + 1);
            char* start = to + (u64)row * stride;
            int skew = (int)reinterpret_cast<u64>(start) & 15;
            // The last of one chunk and the first of the next.
            chunk low = shared[row * pitch + swizzle(row, c > 0 ? c - 1 : 0)];
            chunk high = shared[row * pitch + swizzle(row, c < out_chunks ? c : out_chunks - 1)];
            chunk value = skew == 0 ? high : shift<E>(low, high, 16 - skew);
            char* out = start + 16 * c - skew;
            if ((c > 0 && c < out_chunks) || (skew == 0 && c == 0)) {
                *reinterpret_cast<chunk*>(out) = value;
            } else {
                // The row's own part of its first and last chunk.
#pragma unroll
                for (int j = 0; j < per_chunk; ++j) {
                    if (c == 0 ? j * E >= skew : j * E < skew) {
                        reinterpret_cast<typename element_of<E>::type*>(out)[j] = element<E>(value, j);
                    }
                }
            }
        }
    }

    static __device__ void store_any(const chunk* shared, bool shifted, char* to, u64 stride, int height,
                                     int width, int thread) {
        if constexpr (E <= 2) {
            if (shifted) {
                store_shifted(shared, to, stride, thread);
                return;
            }
        }
        const char* bytes = reinterpret_cast<const char*>(shared);
        for (int i = thread; i < width * (out_chunks + 1); i += Threads) {
            int row = i / (out_chunks + 1), c = i % (out_chunks + 1);
            char* start = to + (u64)row * stride;
            int first = 16 * c - (int)(reinterpret_cast<u64>(start) & 15);
            int low = first < 0 ? -first : 0, high = height * E - first < 16 ? height * E - first : 16;
            const char* in = bytes + (row * any_pitch + swizzle(row, c)) * 16;
            char* out = start + first;
            if (low == 0 && high == 16) {
                *reinterpret_cast<chunk*>(out) = *reinterpret_cast<const chunk*>(in);
                continue;
            }
            // The ends of a row: the largest pieces that are aligned.
            for (int at = low; at < high;) {
                int size = at & -at;
                if (size == 0 || size > 8) size = 8;
                while (size > high - at) size /= 2;
                if (size == 8) copy_piece<u64>(out + at, in + at);
                if (size == 4) copy_piece<u32>(out + at, in + at);
                if (size == 2) copy_piece<u16>(out + at, in + at);
                if (size == 1) copy_piece<u8>(out + at, in + at);
                at += size;
            }
        }
    }

    template <class T> static __device__ void copy_piece(char* to, const char* from) {
        *reinterpret_cast<T*>(to) = *reinterpret_cast<const T*>(from);
    }
};

}  // namespace crosswarp
