//! Matrix products on the GPU.
#![allow(unsafe_code)] // Launches kernels.

use crosswarp_cuda::{Buffer, BufferRef, Launch, Module, Stream};

use super::super::error::LadderError;
use super::super::inputs::{check_product, factor_rows, product_work};
use super::super::kernels::SGEMM;
use super::super::peers::cublas::Cublas;
use super::super::rung::RungKind;
use super::ladder_run::{Call, LadderRun, RungSpec};

struct Variant {
    kernel: &'static str,
    block: (u32, u32),
    /// Rows and columns of c that a block computes.
    tile: u32,
    why: &'static str,
}

const VARIANTS: [Variant; 4] = [
    Variant {
        kernel: "naive",
        block: (32, 32),
        tile: 32,
        why: "Full occupancy, but two loads from the caches for every product.",
    },
    Variant {
        kernel: "tiled",
        block: (32, 32),
        tile: 32,
        why: "Tiles in shared memory: device memory is out of the way, shared memory's two loads a product are the limit.",
    },
    Variant {
        kernel: "register_starved",
        block: (256, 1),
        tile: 128,
        why: "8 x 8 sums a thread, but bounds of four blocks an SM allow 64 registers: the sums spill.",
    },
    Variant {
        kernel: "register_tiled",
        block: (256, 1),
        tile: 128,
        why: "The same code with bounds of two blocks: the lowest occupancy of all, and the most arithmetic a load.",
    },
];

pub fn run(run: &mut LadderRun) -> Result<(), LadderError> {
    let n = run.size();
    run.group = format!("product of two {n} x {n} matrices, f32");
    let (a, b) = (factor_rows(0..n, n, 0), factor_rows(0..n, n, 1));
    let stream = run.stream.clone();
    let mut bench = Bench {
        device_a: Buffer::from_slice(&stream, &a)?,
        device_b: Buffer::from_slice(&stream, &b)?,
        c: Buffer::new(&run.device, n * n)?,
        a,
        b,
        run,
    };
    let module = Module::compile(&bench.run.device, &SGEMM)?;
    for variant in &VARIANTS {
        bench.variant(&module, variant)?;
    }
    bench.peer()
}

struct Bench<'c, 'o> {
    run: &'c mut LadderRun<'o>,
    a: Vec<f32>,
    b: Vec<f32>,
    device_a: Buffer<f32>,
    device_b: Buffer<f32>,
    c: Buffer<f32>,
}

impl Bench<'_, '_> {
    fn variant(&mut self, module: &Module, variant: &Variant) -> Result<(), LadderError> {
        let kernel = module.function(variant.kernel)?;
        // At most 2^14, see `Subject::check`.
        let n = self.run.size() as u32;
        let tiles = n / variant.tile;
        let launch = Launch::new(&kernel)
            .grid((tiles, tiles))
            .block(variant.block)
            .prepare()?;
        let threads = variant.block.0 * variant.block.1;
        let spec = RungSpec {
            name: &variant.kernel.replace('_', " "),
            kind: RungKind::Textbook,
            why: variant.why,
            work: product_work(n as usize),
            occupancy: self.run.occupancy(&kernel, threads, 0),
        };
        let views = [&self.device_a, &self.device_b, &self.c].map(BufferRef::from);
        let mut call = |stream: &Stream, _: usize| {
            let [a, b, c] = views;
            // SAFETY: three matrices of n × n elements, n a multiple of 128; they live as long as `call`,
            // which the measurement does not outlast.
            unsafe { launch.launch(stream, (a, b, c, n)) }?;
            Ok(())
        };
        // SAFETY: all buffers and kernels of `call` are borrowed or owned here.
        unsafe { measure(self.run, spec, &self.a, &self.b, &self.c, &mut call) }
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
        let views = [&self.device_a, &self.device_b, &self.c].map(BufferRef::from);
        let mut call = |_: &Stream, _: usize| {
            let [a, b, c] = views.map(|view| view.address());
            // SAFETY: three matrices of n × n elements; they live as long as `call`.
            unsafe { cublas.product(a, b, c, n) }
        };
        let spec = RungSpec {
            name: "cuBLAS",
            kind: RungKind::Peer,
            why: "NVIDIA's library, in f32 without tensor cores: tiles per level, copies that run ahead, tuned code.",
            work: product_work(n),
            occupancy: None,
        };
        // SAFETY: as above.
        unsafe { measure(self.run, spec, &self.a, &self.b, &self.c, &mut call) }
    }
}

/// # Safety
/// As [`LadderRun::rung`].
unsafe fn measure(
    run: &mut LadderRun,
    spec: RungSpec,
    a: &[f32],
    b: &[f32],
    c: &Buffer<f32>,
    call: &mut Call,
) -> Result<(), LadderError> {
    let n = run.size();
    let mut poison = |stream: &Stream| Ok(stream.zero(c)?);
    let mut verify = |stream: &Stream| Ok(check_product(a, b, &c.to_vec(stream)?, n));
    // SAFETY: the caller's promise.
    unsafe { run.rung(spec, 1, call, &mut poison, &mut verify) }
}
