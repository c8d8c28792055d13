// One block examines some of the samples and decides how all of them are counted.
#pragma once
#include "histogram/arguments.cuh"
#include "histogram/hot_bins.cuh"

namespace crosswarp {
namespace histogram {

// Words of a group with counters of 2^width bits.
__device__ inline u32 group_words(u32 group_bits, u32 width) { return 1u << (group_bits + width - 5); }

constexpr u32 examined = 8192;
// Samples in a cell beyond which their pairs are no longer counted: one hot bin is not to hide the others.
constexpr u32 hot_cell = 32;
// Samples of a bin in a block's share up to which counters of 4 and of 8 bits are preferred, and up to which
// they are acceptable, so as not to need more ranges.
struct limits {
    float four, eight;
};
__device__ constexpr limits preferred = {6, 128}, acceptable = {10, 1024};
// Examined samples that may lie in groups with more.
constexpr u32 few = examined / 64;
// Examined samples in one cell from which on merging pays.
constexpr u32 hottest = examined / 40;
// What adding a sample costs beside finding its bin, which all ranges do. (One H200, one to ten ranges: 0.8 and
// 1.4 · 10⁻¹² s.)
constexpr float adding = 0.6f;

// The sum of `value` over the threads before this one, and over all.
__device__ inline u32 sum_before(u32 value, u32& all) {
    __shared__ u32 of_warp[threads / 32];
    const u32 lane = threadIdx.x % 32;
    u32 sum = value;
#pragma unroll
    for (u32 d = 1; d < 32; d *= 2) {
        u32 other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
    }
    if (lane == 31) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    u32 of = of_warp[lane], before = lane < threadIdx.x / 32 ? of : 0;
#pragma unroll
    for (u32 d = 16; d > 0; d /= 2) {
        before += __shfl_xor_sync(~0u, before, d);
        of += __shfl_xor_sync(~0u, of, d);
    }
    __syncthreads();
    all = of;
    return before + sum - value;
}

__device__ inline u32 cell_of(u32 bin) {
    // Rounds of MurmurHash3's mixing (Appleby, 2011).
    bin = (bin ^ bin >> 16) * 0x85ebca6b;
    bin = (bin ^ bin >> 13) * 0xc2b2ae35;
    return bin >> (32 - cell_bits);
}

// Decides how `blocks` blocks count.
//
// A group's samples among the examined ones say how many are expected in each of its bins. If they crowd in
// single bins, that shows in pairs of samples in the same cell of a table indexed by a hash of the bin: there
// are as many as chance brings together, and those of equal bins. Repetitions of a sample's neighbour are
// not counted as pairs, so sorted samples count as what they are elsewhere.
template <class Rule, class T>
__device__ void choose_plan(const T* samples, u64 n, const Rule& rule, ranges wide, ranges narrow, grouping by,
                     u32 blocks, plan* out) {
    constexpr u32 size = vector_of<T>::size, vectors = examined / size;
    u32* cell = reinterpret_cast<u32*>(dynamic_shared);
    __shared__ u32 seen[most_groups], cell_pairs[most_groups];
    __shared__ u32 begin[most_ranges + 1], group[most_ranges + 1], mass[most_ranges], hot;
    const u32 thread = threadIdx.x;
    let_next_begin();
    for (u32 i = thread; i < (1u << cell_bits) / 4; i += threads) dynamic_shared[i] = make_uint4(0, 0, 0, 0);
    seen[thread] = cell_pairs[thread] = 0;
    if (thread <= most_ranges) begin[thread] = group[thread] = ~0u;
    if (thread < most_ranges) mass[thread] = 0;
    if (thread == 0) hot = 0;
    __syncthreads();
    const cut<T> parts(samples, n);
    const u64 apart = parts.vectors / vectors;
    const u32 some = static_cast<u32>(apart < 1u << 16 ? apart : 1u << 16);
#pragma unroll
    for (u32 i = thread; i < vectors; i += threads) {
        // Not at equal distances, so that periodic samples do not mislead.
        u32 past = __umulhi(i * 0x9e3779b1u, some);
        vector_of<T> v = load_vector(parts.vector(apart * i + past));
        u32 before = dropped;
#pragma unroll
        for (int k = 0; k < size; ++k) {
            u32 b = rule.bin(static_cast<typename Rule::key>(v.sample[k]));
            if (b < bins_of(rule)) {
                atomicAdd(&seen[b >> by.group_bits], 1u);
                if (b != before) {
                    u32 others = atomicAdd(&cell[cell_of(b)], 1u);
                    if (others == hottest) hot = 1;
                    if (others && others < hot_cell) atomicAdd(&cell_pairs[b >> by.group_bits], others);
                }
            }
            before = b;
        }
    }
    __syncthreads();

    // The share of a bin of this thread's group: the mean, or, where clearly more, the mean of its samples' bins.
    const u32 groups = ((bins_of(rule) - 1) >> by.group_bits) + 1;
    const float c = seen[thread], bins = 1u << by.group_bits;
    const float chance = c * (float(examined) / (2 << cell_bits)), alike = c * c / (2 * bins);
    const float excess = cell_pairs[thread] - chance - 3 * sqrtf(chance) - 4;
    const float share = fmaxf(c / (examined * bins), excess > 0 ? 2 * excess / (c * examined) : 0);
    const float of_block = share * n / blocks;  // samples of the bin, were there one range
    auto crowded = [&](ranges in, float limit) {
        u32 all;
        sum_before(of_block * in.count > limit ? seen[thread] : 0, all);
        return all > few;
    };
    const bool crowd4 = narrow.count == 0 || crowded(narrow, (preferred.four + acceptable.four) / 2);
    const bool crowd8 = crowded(wide, 2 * preferred.eight);

    // The fewest ranges in which counters have room.
    u32 width = 0, bytes = 0, all = 0, count = max(narrow.count, 1u);
    bool fits = false;
    for (; !fits && count <= wide.count; count += !fits) {
        for (int t = 0; !fits && t < 2; ++t) {
            const limits most = t == 0 ? preferred : acceptable;
            const float load = of_block * count;
            width = load <= most.four ? 2 : load <= most.eight ? 3 : 5;
            bytes = thread < groups ? group_words(by.group_bits, width) * 4 : 0;
            bytes = sum_before(bytes, all);
            fits = (all + count - 1) / count + group_words(by.group_bits, 5) * 4 <= by.room;
        }
    }
    // Whether bins of groups with small counters are alike enough for that.
    u32 pairs, expected;
    sum_before(width < 5 ? cell_pairs[thread] : 0, pairs);
    sum_before(width < 5 ? u32(chance + 2 * alike + 0.5f) : 0, expected);
    const bool scattered = pairs > expected + 5 * sqrtf(expected) + 64;

    const u32 each = (all + count - 1) / count, mine = bytes / each;
    if (fits && thread < groups) {
        atomicMin(&begin[mine], bytes);
        atomicMin(&group[mine], thread);
        atomicAdd(&mass[mine], seen[thread]);
    }
    __syncthreads();
    if (fits && thread < groups) out->group[thread] = bytes - begin[mine] + width;
    if (thread == 0) {
        out->bits = !crowd4 && !scattered ? 4 : !crowd8 || scattered || !fits ? 8 : 0;
        if (!fits) return;
        out->ranges = count;
        out->merging = count == 1 && hot;
        float sum = 0;
        const float worth = blocks / (examined * (count + adding));
        for (u32 r = 0; r < count; ++r) {
            out->first_group[r] = group[r];
            out->first_block[r] = u32(sum * worth + 0.5f);
            sum += examined + adding * mass[r];
        }
        out->first_group[count] = groups;
        out->first_block[count] = blocks;
    }
}

}  // namespace histogram
}  // namespace crosswarp
