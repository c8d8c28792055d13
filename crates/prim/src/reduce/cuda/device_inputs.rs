//! A PE's part of an array as its GPU works on it.

use std::cell::RefCell;
use std::ops::Range;

use crosswarp_cuda::BufferRef;

use crate::reduce::cuda::launcher::Launcher;
use crate::reduce::cuda::workspace::ReduceWorkspace;
use crate::reduce::part::RemotePart;
use crate::reduce::partial;
use crate::staged_upload::{PIECE_BYTES, in_pieces};
use crate::sum::leaf::LEAF;
use crate::{Element, Op, ReduceError};

/// Inputs in device memory.
pub(crate) struct InDeviceMemory<'a, T: Element> {
    pub launcher: &'a Launcher,
    pub workspace: RefCell<&'a mut ReduceWorkspace>,
    pub inputs: &'a [BufferRef<'a, T>],
}

impl<T: Element> RemotePart<T> for InDeviceMemory<'_, T> {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn len(&self, k: usize) -> usize {
        self.inputs[k].len()
    }

    fn fetch(&self, k: usize, range: Range<usize>) -> Result<Vec<T>, ReduceError> {
        let mut values = vec![T::zeroed(); range.len()];
        let workspace = self.workspace.borrow();
        workspace
            .stream
            .read(&mut values, self.inputs[k].range(range))?;
        Ok(values)
    }

    fn partial(&self, op: Op, range: Range<usize>) -> Result<Vec<u64>, ReduceError> {
        let workspace = &mut **self.workspace.borrow_mut();
        let inputs: Vec<_> = self.inputs.iter().map(|x| x.range(range.clone())).collect();
        self.launcher.words(op, workspace, &inputs)
    }
}

/// Inputs in host memory, brought to the GPU piece by piece.
pub(crate) struct StreamedFromHost<'a, T: Element> {
    pub launcher: &'a Launcher,
    pub workspace: RefCell<&'a mut ReduceWorkspace>,
    pub inputs: &'a [&'a [T]],
}

impl<T: Element> RemotePart<T> for StreamedFromHost<'_, T> {
    fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn len(&self, k: usize) -> usize {
        self.inputs[k].len()
    }

    fn fetch(&self, k: usize, range: Range<usize>) -> Result<Vec<T>, ReduceError> {
        Ok(self.inputs[k][range].to_vec())
    }

    fn partial(&self, op: Op, range: Range<usize>) -> Result<Vec<u64>, ReduceError> {
        let workspace = &mut **self.workspace.borrow_mut();
        let start = range.start;
        let piece = PIECE_BYTES / size_of::<T>() / LEAF * LEAF;
        // Of no elements, so that there is something to add to.
        let mut total = None;
        let mut add = |words: Vec<u64>, offset: usize| match &mut total {
            None => total = Some(words),
            Some(total) => partial::combine::<T>(op, total, &words, offset as u64),
        };
        if range.is_empty() {
            let nothing = crosswarp_cuda::Buffer::<T>::new(self.launcher.device(), 0)?;
            return self.launcher.words(op, workspace, &[(&nothing).into(); 2]);
        }
        in_pieces(
            self.launcher.device(),
            self.inputs,
            range,
            piece,
            |views, at| {
                add(self.launcher.words(op, workspace, views)?, at.start - start);
                Ok::<_, ReduceError>(())
            },
        )?;
        Ok(total.unwrap_or_default())
    }
}
