//! Transposes on the GPU.
#![allow(unsafe_code)] // Launches kernels.

use crosswarp_cuda::{Buffer, BufferRef, Launch, Module, Stream};
use crosswarp_prim::{DeviceTransposeError, DeviceTransposer, Layout};

use super::super::error::LadderError;
use super::super::inputs::{check_transpose, element, transpose_work};
use super::super::kernels::TRANSPOSE;
use super::super::peers::cublas::Cublas;
use super::super::rung::RungKind;
use super::ladder_run::{Call, LadderRun, RungSpec};
use crate::measure::RotatingBuffers;

const TILE: u32 = 32;
const BLOCK: (u32, u32) = (32, 8);

const VARIANTS: [(&str, &str); 5] = [
    (
        "naive_read",
        "Rows are read side by side; each lane's store goes to another line.",
    ),
    (
        "naive_write",
        "The other way round: scattered loads can be in flight together, and lines are used again from the cache.",
    ),
    (
        "tile",
        "Both sides go along rows, but a column of the tile lies in one bank: 32-way conflicts.",
    ),
    (
        "tile_padded",
        "A word of padding a row moves the columns over all banks.",
    ),
    (
        "tile_swizzled",
        "Element (r, c) is kept at c ^ r: no conflicts, and no padding.",
    ),
];

pub fn run(run: &mut LadderRun) -> Result<(), LadderError> {
    let n = run.size();
    run.group = format!("transpose of {n} x {n} f32");
    let from: Vec<f32> = (0..n * n).map(element).collect();
    let mut bench = Bench {
        from: &run.inputs(&from)?,
        to: &Buffer::new(&run.device, n * n)?,
        run: &mut *run,
    };
    let module = Module::compile(&bench.run.device, &TRANSPOSE)?;
    for (kernel, why) in VARIANTS {
        bench.variant(&module, kernel, why)?;
    }
    bench.own()?;
    bench.peer()
}

struct Bench<'c, 'o> {
    run: &'c mut LadderRun<'o>,
    from: &'c RotatingBuffers<f32>,
    to: &'c Buffer<f32>,
}

impl Bench<'_, '_> {
    fn variant(
        &mut self,
        module: &Module,
        name: &str,
        why: &'static str,
    ) -> Result<(), LadderError> {
        let kernel = module.function(name)?;
        // At most 2^16, see `Subject::check`.
        let n = self.run.size() as u32;
        let tiles = n.div_ceil(TILE);
        let launch = Launch::new(&kernel).grid((tiles, tiles)).block(BLOCK);
        let launch = launch.prepare()?;
        let (from, to) = (self.from, BufferRef::from(self.to));
        let mut call = |stream: &Stream, number: usize| {
            // SAFETY: both matrices have n × n elements, and live as long as `call`, which the
            // measurement does not outlast.
            unsafe { launch.launch(stream, (to, from.get(number), n, n)) }?;
            Ok(())
        };
        let spec = RungSpec {
            name: &name.replace('_', " "),
            kind: RungKind::Textbook,
            why,
            work: transpose_work(n as usize),
            occupancy: self.run.occupancy(&kernel, BLOCK.0 * BLOCK.1, 0),
        };
        // SAFETY: all buffers and kernels of `call` are borrowed or owned here.
        unsafe { self.measure(spec, &mut call) }
    }

    fn own(&mut self) -> Result<(), LadderError> {
        let failed = |error: DeviceTransposeError| LadderError::Rung {
            rung: "crosswarp",
            reason: error.to_string(),
        };
        let transposer =
            DeviceTransposer::of_size(&self.run.device, size_of::<f32>()).map_err(failed)?;
        let n = self.run.size();
        let layout = Layout::new(n, n);
        let (from, to) = (self.from, self.to);
        let mut call = |stream: &Stream, number: usize| {
            transposer
                .transpose(stream, from.get(number), &layout, to, &layout)
                .map_err(failed)
        };
        let spec = RungSpec {
            name: "crosswarp",
            kind: RungKind::Crosswarp,
            why: "Larger tiles, 16-byte accesses on both sides, and enough of them in flight.",
            work: transpose_work(n),
            occupancy: None,
        };
        // SAFETY: all buffers and kernels of `call` are borrowed or owned here.
        unsafe { self.measure(spec, &mut call) }
    }

    fn peer(&mut self) -> Result<(), LadderError> {
        let cublas = match Cublas::find(&self.run.stream) {
            Ok(cublas) => cublas,
            Err(reason) => {
                self.run.notes.push(format!("cuBLAS: {reason}"));
                return Ok(());
            }
        };
        let n = self.run.size();
        let (from, to) = (self.from, BufferRef::from(self.to));
        let mut call = |_: &Stream, number: usize| {
            // SAFETY: both matrices have n × n elements, and live as long as `call`.
            unsafe { cublas.transpose(to.address(), from.get(number).address(), n) }
        };
        let spec = RungSpec {
            name: "cuBLAS",
            kind: RungKind::Peer,
            why: "NVIDIA's geam with one factor of zero: the usual way to transpose out of a library.",
            work: transpose_work(n),
            occupancy: None,
        };
        // SAFETY: as above.
        unsafe { self.measure(spec, &mut call) }
    }

    /// # Safety
    /// As [`LadderRun::rung`].
    unsafe fn measure(&mut self, spec: RungSpec, call: &mut Call) -> Result<(), LadderError> {
        let (to, n) = (self.to, self.run.size());
        let mut poison = |stream: &Stream| Ok(stream.zero(to)?);
        let mut verify = |stream: &Stream| Ok(check_transpose(&to.to_vec(stream)?, n));
        // SAFETY: the caller's promise.
        unsafe {
            self.run
                .rung(spec, self.from.count(), call, &mut poison, &mut verify)
        }
    }
}
