//! Panels streamed through one GPU.

use bytemuck::Pod;
use crosswarp::cuda::{Buffer, CudaError, Device, PinnedBuffer, Stream};
use crosswarp::prim::{DeviceTransposeError, DeviceTransposer, Layout};

use super::panels::{PANEL_BYTES, Panel};
use crate::commands::error::CommandError;
use crate::output::npy::NpyWriter;

/// What one panel goes through.
struct Slot<T: Pod> {
    host_in: PinnedBuffer<T>,
    device_in: Buffer<T>,
    device_out: Buffer<T>,
    host_out: PinnedBuffer<T>,
}

impl<T: Pod> Slot<T> {
    fn new(device: &Device, len: usize) -> Result<Self, CudaError> {
        Ok(Self {
            host_in: PinnedBuffer::zeroed(device, len)?,
            device_in: Buffer::new(device, len)?,
            device_out: Buffer::new(device, len)?,
            host_out: PinnedBuffer::zeroed(device, len)?,
        })
    }

    /// Gathers a panel's elements, without gaps.
    fn fill(&mut self, input: &[T], panel: &Panel) {
        let Layout {
            rows,
            columns,
            leading_dimension,
            ..
        } = panel.layout;
        if columns == leading_dimension {
            let len = panel.len();
            self.host_in[..len].copy_from_slice(&input[panel.first..panel.first + len]);
            return;
        }
        let to = self.host_in.chunks_exact_mut(columns).take(rows);
        for (row, to) in to.enumerate() {
            let first = panel.first + row * leading_dimension;
            to.copy_from_slice(&input[first..first + columns]);
        }
    }
}

/// Transposes panel by panel; while the GPU works on one, the host writes the one before and gathers the
/// next.
pub fn stream_through<T: Pod>(
    device: &Device,
    input: &[T],
    panels: &[Panel],
    writer: &mut NpyWriter,
) -> Result<(), CommandError> {
    let transposer = DeviceTransposer::of_size(device, size_of::<T>())?;
    let stream = Stream::new(device).map_err(DeviceTransposeError::from)?;
    let len = panels.iter().map(Panel::len).max().unwrap_or(0);
    debug_assert!(len * size_of::<T>() <= PANEL_BYTES);
    let slot = || Slot::<T>::new(device, len).map_err(DeviceTransposeError::from);
    let (mut mine, mut other) = (slot()?, slot()?);
    if let Some(first) = panels.first() {
        mine.fill(input, first);
    }
    for (k, panel) in panels.iter().enumerate() {
        let len = panel.len();
        let from =
            Layout::new(panel.layout.rows, panel.layout.columns).with_batch(panel.layout.batch);
        let Slot {
            host_in,
            device_in,
            device_out,
            host_out,
        } = &mut mine;
        let (device_in, device_out) = (device_in.range(..len), device_out.range(..len));
        let host = stream.scope(|copies| -> Result<_, DeviceTransposeError> {
            copies.write(device_in, &host_in[..len])?;
            transposer.transpose(
                copies.stream(),
                device_in,
                &from,
                device_out,
                &from.transposed(),
            )?;
            copies.read(&mut host_out[..len], device_out)?;
            let mut meanwhile = || -> Result<(), CommandError> {
                if let Some(before) = k.checked_sub(1) {
                    writer.put(&other.host_out[..panels[before].len()])?;
                }
                if let Some(next) = panels.get(k + 1) {
                    other.fill(input, next);
                }
                Ok(())
            };
            Ok(meanwhile())
        })?;
        host?;
        std::mem::swap(&mut mine, &mut other);
    }
    if let Some(last) = panels.last() {
        writer.put(&other.host_out[..last.len()])?;
    }
    Ok(())
}
