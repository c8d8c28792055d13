//! Where a heap has memory, in words that kernels read: `nvshmem_ptr` in them answers by these.

use crosswarp_cuda::Buffer;

/// The words that `is_memory` of `device/nvshmem.cuh` reads.
pub(crate) struct Memory {
    pub(crate) told: Vec<u64>,
    pub(crate) place: Buffer<u64>,
}

impl Memory {
    /// Those of a heap as [`DeviceHeap::memory`](crosswarp_cuda::DeviceHeap::memory) says, with `room` bytes for registered
    /// memory.
    pub(crate) fn words(
        (mapped, limit, unit, pieces): (usize, usize, usize, Vec<(usize, usize)>),
        room: usize,
    ) -> Vec<u64> {
        let bits = unit.trailing_zeros();
        let mut words = vec![0; 3 + (room >> bits).div_ceil(64)];
        words[..3].copy_from_slice(&[mapped as u64, limit as u64, u64::from(bits)]);
        for (at, bytes) in pieces {
            let first = (at - limit) >> bits;
            for unit in first..first + (bytes >> bits) {
                words[3 + unit / 64] |= 1 << (unit % 64);
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_of_each_unit_of_memory() {
        // A heap of up to 640 bytes, of which 128 are there, and room for 70 units of 16 bytes behind it.
        let pieces = vec![(640, 32), (640 + 63 * 16, 48)];
        let words = Memory::words((128, 640, 16, pieces), 70 * 16);
        assert_eq!(words, [128, 640, 4, 1 << 63 | 3, 3]);
        // What is no power of two has smaller units.
        let words = Memory::words((0, 48, 48, vec![(96, 48)]), 96);
        assert_eq!(words, [0, 48, 4, 0b111000]);
        // Without room there are none.
        assert_eq!(Memory::words((7, 64, 64, Vec::new()), 0), [7, 64, 6]);
    }
}
