//! Reductions of the columns of matrices, as they lie.
#![allow(unsafe_code)] // Launches kernels.

use std::sync::Arc;

use crosswarp_cuda::{BufferRef, ByValue, Device, Function, Launch, Module, Options, Pod, Source};

use crate::reduce::cuda::arguments::{Arguments, ColumnArguments, Finish, THREADS};
use crate::reduce::cuda::workspace::ReduceWorkspace;
use crate::sum::leaf::LEAF;
use crate::{Element, Op, ReduceError};

/// Columns that a block of `column_parts` takes.
const AT_ONCE: usize = 32;

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
            },
            columns: columns as u64,
            results: results.len() as u64,
            parts: workspace.queue.address(),
            result_bytes: size_of::<R>() as u64,
        };
        let launch = |function, blocks: usize| {
            // More blocks than there can be are refused.
            let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
            let launch = Launch::new(function).grid(blocks).block(THREADS);
            launch.overlapping().prepare()
        };
        let blocks = results.len().div_ceil(AT_ONCE).saturating_mul(parts);
        let made = launch(&self.parts, blocks)?;
        let totals = match parts {
            1 => None,
            _ => Some(launch(
                &self.totals,
                results.len().div_ceil(THREADS as usize / 32),
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
