//! Inputs that are not in a cache when they are read.

use crosswarp_cuda::{Buffer, CudaError, Device, Pod, Stream};

/// The bytes over which inputs rotate so that each call finds none of its input in the level-2 cache:
/// eight times its size.
pub fn cold_bytes(device: &Device) -> usize {
    8 * device.properties().l2
}

/// Equal buffers used in turn, so that a call's input is no longer in the cache when its turn comes.
pub struct RotatingBuffers<T: Pod> {
    buffers: Vec<Buffer<T>>,
}

impl<T: Pod> RotatingBuffers<T> {
    /// As many copies of `values` as make up `bytes`, at least one.
    pub fn new(stream: &Stream, values: &[T], bytes: usize) -> Result<Self, CudaError> {
        let count = bytes.div_ceil(size_of_val(values).max(1)).max(1);
        let first = Buffer::from_slice(stream, values)?;
        let mut buffers = vec![first];
        for _ in 1..count {
            let copy = Buffer::new(stream.device(), values.len())?;
            stream.copy(&copy, &buffers[0])?;
            buffers.push(copy);
        }
        stream.synchronize()?;
        Ok(Self { buffers })
    }

    /// The buffer of call `number`.
    pub fn get(&self, number: usize) -> &Buffer<T> {
        &self.buffers[number % self.buffers.len()]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.buffers.len()
    }
}
