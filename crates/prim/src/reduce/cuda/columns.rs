//! Reductions of the columns of matrices, as they lie.
#![allow(unsafe_code)] // Launches kernels.

use std::sync::Arc;

use crosswarp_cuda::{BufferRef, ByValue, Device, Function, Launch, Module, Options, Pod, Source};

use crate::reduce::cuda::arguments::{Arguments, ColumnArguments, Finish, THREADS};
use crate::reduce::cuda::workspace::ReduceWorkspace;
use crate::sum::leaf::LEAF;
use crate::{Element, Op, ReduceError};

/// Rows that a thread has under way (`rows_in_flight` in the kernels).
const IN_FLIGHT: usize = 16;
/// Columns of long matrices that a block of `column_parts` takes: its warps read whole lines of 128 bytes.
const WIDE: usize = 32;
/// From how many parts on a block adds up a column's parts, and not a warp.
const MANY_PARTS: usize = 128;

/// Columns that a block of `column_parts` takes, of `columns` in all: a power of two from 2 on.
fn at_once(rows: usize, columns: usize) -> usize {
    // Of few rows, as many as leave each thread no more rows than it has under way.
    let threads = THREADS as usize;
    let by_rows = (threads * IN_FLIGHT / rows.next_power_of_two()).clamp(WIDE, threads);
    // Of few columns, as many as there are.
    columns.next_power_of_two().clamp(2, by_rows)
}

/// The kernels of one operation on one type.
pub(crate) struct ColumnProgram {
    parts: Function,
    totals: Function,
}

/// Bytes of what is known of a part of a column (`BODY::part` in the kernels).
fn part_bytes<T: Element>(op: Op) -> usize {
    match op {
        Op::Min | Op::Max | Op::Argmin | Op::Argmax => 16,
        _ if !T::DTYPE.is_float() => 24,
        _ => size_of::<T>().max(4),
    }
}

impl ColumnProgram {
    pub fn load(
        device: &Device,
        source: &Source<'static>,
        options: &Options,
    ) -> Result<Self, ReduceError> {
        let module =
            Module::compile_with(device, source, options).map_err(crosswarp_cuda::Error::from)?;
        let function = |name| module.function(name).map_err(crosswarp_cuda::Error::from);
        Ok(Self {
            parts: function("column_parts")?,
            totals: function("column_totals")?,
        })
    }

    /// [`DeviceReducer::enqueue_columns`](crate::cuda::DeviceReducer::enqueue_columns) of inputs of `n` elements.
    pub fn enqueue<T: Element, R: Pod>(
        self: &Arc<Self>,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        [batch, rows, columns]: [usize; 3],
        results: BufferRef<'_, R>,
    ) -> Result<(), ReduceError> {
        assert!(rows > 0, "columns have elements");
        assert_eq!(results.len(), batch * columns, "a result for each column");
        assert_eq!(
            inputs[0].len(),
            batch * rows * columns,
            "matrices of this shape"
        );
        assert!(
            matches!(size_of::<R>(), 1 | 2 | 4 | 8),
            "results of 1 to 8 bytes"
        );
        if results.is_empty() {
            return Ok(());
        }
        workspace.keep(Arc::clone(self) as _);
        let parts = rows.div_ceil(LEAF);
        if parts > 1 {
            let bytes = parts * results.len() * part_bytes::<T>(op);
            workspace.reserve_queue(bytes.div_ceil(size_of::<u64>()))?;
        }
        let at_once = at_once(rows, results.len());
        let warps_of_block = THREADS as usize / 32;
        let warps = if parts < MANY_PARTS {
            1
        } else {
            warps_of_block
        };
        let arguments = ColumnArguments {
            all: Arguments {
                x: inputs[0].address(),
                y: inputs[inputs.len() - 1].address(),
                n: rows as u64,
                count: 0,
                state: 0,
                out: results.address(),
                finish: Finish::of(op) as u64,
                ahead: 0,
                result_bytes: size_of::<R>() as u64,
            },
            columns: columns as u64,
            results: results.len() as u64,
            parts: workspace.queue.address(),
            at_once: at_once as u64,
            warps: warps as u64,
        };
        let launch = |function, blocks: usize| {
            // More blocks than there can be are refused.
            let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
            let launch = Launch::new(function).grid(blocks).block(THREADS);
            launch.overlapping().prepare()
        };
        let blocks = results.len().div_ceil(at_once).saturating_mul(parts);
        let made = launch(&self.parts, blocks)?;
        let totals = match parts {
            1 => None,
            _ => Some(launch(
                &self.totals,
                results.len().div_ceil(warps_of_block / warps),
            )?),
        };
        // SAFETY: the kernels' one parameter is this structure. They read the elements of matrices of this shape, which the
        // inputs have, and write one result for each column; of columns of several parts the first writes, and the second
        // reads, as many parts as there is room for. The rest is as in `Launcher::launch`; the parts are used by one
        // reduction at a time, since the workspace is borrowed exclusively and has one stream.
        unsafe {
            made.launch(&workspace.stream, (ByValue(arguments),))?;
            if let Some(totals) = totals {
                totals.launch(&workspace.stream, (ByValue(arguments),))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_rows_and_columns_to_work_on() {
        for (rows, columns, expected) in [
            (10, 10_000_000, 256),
            (16, 300, 256),
            (17, 300, 128),
            (64, 300, 64),
            (65, 300, 32),
            (10_000, 10_000, 32),
            (10_000_000, 10, 16),
            (10_000_000, 1, 2),
            (1, 1, 2),
            (10, 3, 4),
        ] {
            let at_once = at_once(rows, columns);
            assert_eq!(at_once, expected, "{rows} x {columns}");
            // With fewer than 8 threads for a column each has its rows in flight at once: a leaf's lanes have one row each.
            let ways = THREADS as usize / at_once;
            assert!(ways <= 128 && (ways >= 8 || rows <= ways * IN_FLIGHT));
        }
    }
}
