//! Passes with the rows at the edge first, so that they travel while the others are made: strategy `host-exchange`.
#![allow(unsafe_code)] // A launch.

use std::ops::Range;

use crosswarp_cuda::{Buffer, ByValue, Stream};

use crate::element::Real;
use crate::engine::cuda::plane::field::PlaneField;
use crate::engine::cuda::plane::pass_kernel::{PassKernel, parts};
use crate::exchange::host_exchange::{BufferRows, HostExchange};
use crate::exchange::{HaloExchange, Place, Rows};
use crate::gpu::error::GpuError;

fn rows_of<'a, F: Real>(
    field: &'a PlaneField<F>,
    buffer: &'a Buffer<F>,
    place: &'a Place,
) -> BufferRows<'a, F> {
    BufferRows {
        buffer,
        first: field.layout.first,
        pitch: field.layout.pitch,
        place,
        stream: &field.stream,
    }
}

/// Fills the halos of the field before the next pass by copies, unless the pass before has sent them already.
pub(super) fn exchange<F: Real>(
    host: &mut HostExchange<'_, F>,
    field: &PlaneField<F>,
    rows: Rows,
) -> Result<(), GpuError> {
    let place = field.place();
    let mut before = rows_of(field, &field.before, &place);
    if !host.is_under_way() {
        host.edge_after(&field.stream)?;
        host.start(&before, rows)?;
    }
    host.finish(&mut before)
}

/// Gives the `depth` sweeps of a pass to the streams, the edge first, and has it copied to the neighbours, which are
/// told when it has arrived. The norms are added to the half `half` of the words, which begins at 0.
pub(super) fn launch<F: Real>(
    host: &mut HostExchange<'_, F>,
    field: &PlaneField<F>,
    pass: &PassKernel,
    half: usize,
    depth: usize,
) -> Result<(), GpuError> {
    let place = field.place();
    // As many as any pass needs.
    let most = pass.depth().min(field.partition.max_depth(field.wrap_y));
    let edge = host.edge_after(&field.stream)?.clone();
    let inner = match parts(&field.own) {
        Some([top, inner, bottom]) => {
            launch_rows(&edge, field, pass, half, top, depth)?;
            launch_rows(&edge, field, pass, half, bottom, depth)?;
            Some(inner)
        }
        None => {
            launch_rows(&edge, field, pass, half, field.own.clone(), depth)?;
            None
        }
    };
    host.start(&rows_of(field, &field.after, &place), Rows::halo(most))?;
    if let Some(inner) = inner {
        launch_rows(&field.stream, field, pass, half, inner, depth)?;
    }
    host.tell(&place)?;
    host.join(&field.stream)
}

/// Gives a pass over `rows`, which begin on a leaf and end with one or with the band, to `stream`.
fn launch_rows<F: Real>(
    stream: &Stream,
    field: &PlaneField<F>,
    pass: &PassKernel,
    half: usize,
    rows: Range<usize>,
    depth: usize,
) -> Result<(), GpuError> {
    let band = field.band(&field.before, &field.after, half);
    let order = pass.cutter.whole(rows);
    let launch = pass.launch().grid(order.blocks());
    let strips = ByValue(order.strips(0));
    // SAFETY: as in `PlanePasses::launch`; fewer rows have as many around them.
    unsafe { launch.launch(stream, (ByValue(band), strips, depth as i32)) }?;
    Ok(())
}
