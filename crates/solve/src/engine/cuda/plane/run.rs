//! A plane on the chip that runs until stopped.

use crosswarp_prim::Superaccumulator;

use crate::element::Real;
use crate::engine::cuda::on_chip::plane::OnChipPlane;
use crate::engine::cuda::plane::field::{PlaneField, column0};
use crate::engine::slab::{Run, RunUntilStopped};
use crate::gpu::error::GpuError;

/// The kernel, and the band that it takes from memory and brings back.
pub(super) struct PlaneRun<'s, 'w, F: Real> {
    pub on_chip: &'s mut OnChipPlane<'w, F>,
    pub field: &'s mut PlaneField<F>,
}

impl<F: Real> RunUntilStopped<F> for PlaneRun<'_, '_, F> {
    type Error = GpuError;

    fn run(&mut self, run: &Run<'_>, sums: &mut Vec<Superaccumulator<F>>) -> Result<(), GpuError> {
        let PlaneRun { on_chip, field } = self;
        let mut band = field.band(&field.before, &field.after, 0);
        let threshold = Some(run.threshold);
        if on_chip.begun() != Some(run.most) {
            on_chip.begin(&field.stream, band, column0, run.most, threshold)?;
        }
        let (made, stops) = on_chip.finish(&field.stream)?;
        if made < run.most {
            // More may have been made: again, from the chunk of the stop on.
            let chunk = (made - 1) / OnChipPlane::<F>::CHUNK;
            if chunk > 0 {
                band.before = column0(on_chip.kept(chunk));
            }
            let left = made - chunk * OnChipPlane::<F>::CHUNK;
            on_chip.begin(&field.stream, band, column0, left, None)?;
            on_chip.finish(&field.stream)?;
        }
        std::mem::swap(&mut field.before, &mut field.after);
        let band = field.band(&field.before, &field.after, 0);
        if field.wrap_x && field.wrap_y && !field.own.is_empty() {
            // The corners: ghosts of ghosts.
            field.wrap(band, 1)?;
        }
        if !stops && run.next > 0 {
            // The host reads the sums meanwhile.
            on_chip.begin(&field.stream, band, column0, run.next, threshold)?;
        }
        on_chip.sums(made, sums);
        Ok(())
    }
}
