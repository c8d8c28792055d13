//! Jacobi sweeps on the GPU.
#![allow(unsafe_code)] // Launches kernels.

use crosswarp_cuda::{Buffer, Function, Launch, Module, PreparedLaunch, Stream, grid_state_bytes};

use super::super::error::LadderError;
use super::super::inputs::{Relaxed, SWEEPS, first_field, grouped, jacobi_work, relax};
use super::super::kernels::JACOBI1D;
use super::super::rung::RungKind;
use super::super::solver;
use super::ladder_run::{LadderRun, RungSpec, resident};

const THREADS: u32 = 256;
/// Threads of a block, and points of a thread, of `persistent_registers`.
const REGISTERS: (u32, u32) = (1024, 32);

pub fn run(run: &mut LadderRun) -> Result<(), LadderError> {
    let n = run.size();
    run.group = format!(
        "{SWEEPS} Jacobi sweeps over {} points, f32, norm of each",
        grouped(n)
    );
    let first: Vec<f32> = (0..n).map(first_field).collect();
    let module = Module::compile(&run.device, &JACOBI1D)?;
    let stream = run.stream.clone();
    let device = run.device;
    let most_blocks = n.div_ceil(THREADS as usize);
    let mut bench = Bench {
        n: n as u32,
        first: Buffer::from_slice(&stream, &first)?,
        memory: Memory {
            fields: [Buffer::new(&device, n)?, Buffer::new(&device, n)?],
            norms: Buffer::new(&device, SWEEPS)?,
            edges: Buffer::new(&device, 4 * most_blocks)?,
            state: Buffer::zeroed(&stream, grid_state_bytes(most_blocks))?,
        },
        expected: relax(first),
        run,
    };
    bench.sweep_by_sweep(
        &module.function("per_point")?,
        "per point",
        "A launch a sweep, and every point an atomic on one norm: 4 million additions in a queue.",
    )?;
    bench.sweep_by_sweep(
        &module.function("per_block")?,
        "per block",
        "The block adds up its changes first: one atomic for 256 points. Now memory and launches count.",
    )?;
    bench.persistent(
        &module.function("persistent")?,
        "One launch for all sweeps: a grid barrier of a microsecond instead of a launch.",
    )?;
    bench.in_registers(
        &module.function("persistent_registers")?,
        "The field stays in registers, and only edges of threads and blocks are passed on: memory is read and written once for all sweeps.",
    )?;
    let marked = bench.run.mark()?;
    let (time, check) = solver::jacobi1d(n, 1, Some(device), &bench.run.options.plan)?;
    if marked {
        return Ok(());
    }
    let spec = RungSpec {
        name: "crosswarp",
        kind: RungKind::Crosswarp,
        why: "The solver: exact norms and stopping, several sweeps a pass; by the host's clock, so with its launches and its wait.",
        work: jacobi_work(n),
        occupancy: None,
    };
    bench.run.done(spec, time, None, check);
    Ok(())
}

struct Bench<'c, 'o> {
    run: &'c mut LadderRun<'o>,
    n: u32,
    first: Buffer<f32>,
    memory: Memory,
    expected: Relaxed,
}

/// What the kernels work on.
struct Memory {
    fields: [Buffer<f32>; 2],
    norms: Buffer<f32>,
    edges: Buffer<f32>,
    state: Buffer<u8>,
}

impl Bench<'_, '_> {
    fn sweep_by_sweep(
        &mut self,
        kernel: &Function,
        name: &str,
        why: &'static str,
    ) -> Result<(), LadderError> {
        let blocks = self.n.div_ceil(THREADS);
        let launch = Launch::new(kernel).grid(blocks).block(THREADS).prepare()?;
        let n = self.n;
        // All sweeps are alike, and a profiler takes its time with each launch.
        let sweeps = if self.run.marks() { 1 } else { SWEEPS };
        self.rung(name, why, kernel, THREADS, SWEEPS % 2, &|memory, stream| {
            for sweep in 0..sweeps {
                let [now, next] = [0, 1].map(|k| &memory.fields[(sweep + k) % 2]);
                let norm = memory.norms.range(sweep..=sweep);
                // SAFETY: both fields have n points, `norm` is one number; `rung` keeps all alive.
                unsafe { launch.launch(stream, (now, next, n, norm)) }?;
            }
            Ok(())
        })
    }

    fn persistent(&mut self, kernel: &Function, why: &'static str) -> Result<(), LadderError> {
        let blocks = resident(kernel, THREADS, 0)?.min(self.n.div_ceil(THREADS));
        let launch = Self::cooperative(kernel, blocks, THREADS)?;
        let n = self.n;
        self.rung(
            "persistent",
            why,
            kernel,
            THREADS,
            SWEEPS % 2,
            &|memory, stream| {
                let [now, next] = &memory.fields;
                // SAFETY: both fields have n points, there are SWEEPS norms, and `state` is that of a grid of
                // at least `blocks` blocks; `rung` keeps all alive.
                unsafe {
                    launch.launch(
                        stream,
                        (now, next, n, &memory.norms, SWEEPS as u32, &memory.state),
                    )
                }?;
                Ok(())
            },
        )
    }

    fn in_registers(&mut self, kernel: &Function, why: &'static str) -> Result<(), LadderError> {
        let (threads, own) = REGISTERS;
        let blocks = self.n.div_ceil(threads * own);
        let most = resident(kernel, threads, 0)?;
        if blocks > most {
            let points = u64::from(most) * u64::from(threads * own);
            let note =
                format!("persistent registers: the registers of this GPU hold {points} points");
            self.run.notes.push(note);
            return Ok(());
        }
        let launch = Self::cooperative(kernel, blocks, threads)?;
        let n = self.n;
        self.rung(
            "persistent registers",
            why,
            kernel,
            threads,
            0,
            &|memory, stream| {
                // SAFETY: the field has n points, there are SWEEPS norms, four edges a block, and `state` is
                // that of a grid of at least `blocks` blocks; `rung` keeps all alive.
                unsafe {
                    launch.launch(
                        stream,
                        (
                            &memory.fields[0],
                            n,
                            &memory.norms,
                            SWEEPS as u32,
                            &memory.edges,
                            &memory.state,
                        ),
                    )
                }?;
                Ok(())
            },
        )
    }

    fn cooperative(
        kernel: &Function,
        blocks: u32,
        threads: u32,
    ) -> Result<PreparedLaunch<'_>, LadderError> {
        let launch = Launch::new(kernel).grid(blocks).block(threads);
        Ok(launch.cooperative().prepare()?)
    }

    /// Measures `solve`, which leaves the field in number `result`.
    fn rung(
        &mut self,
        name: &str,
        why: &'static str,
        kernel: &Function,
        threads: u32,
        result: usize,
        solve: &dyn Fn(&Memory, &Stream) -> Result<(), LadderError>,
    ) -> Result<(), LadderError> {
        let spec = RungSpec {
            name,
            kind: RungKind::Textbook,
            why,
            work: jacobi_work(self.n as usize),
            occupancy: self.run.occupancy(kernel, threads, 0),
        };
        let (run, memory) = (&mut *self.run, &self.memory);
        // The sweeps alone: a call goes on from the field that the one before has left.
        let mut call = |stream: &Stream, _: usize| solve(memory, stream);
        // SAFETY: `self` owns the buffers, and the kernels are borrowed for longer than this function.
        let Some((time, hot)) = (unsafe { run.times(1, &mut call) })? else {
            return Ok(());
        };
        let stream = &run.stream;
        stream.copy(&memory.fields[0], &self.first)?;
        stream.copy(&memory.fields[1], &self.first)?;
        stream.zero(&memory.norms)?;
        solve(memory, stream)?;
        let field = memory.fields[result].to_vec(stream)?;
        let check = self.expected.check(&field, &memory.norms.to_vec(stream)?);
        self.run.done(spec, time, Some(hot), check);
        Ok(())
    }
}
