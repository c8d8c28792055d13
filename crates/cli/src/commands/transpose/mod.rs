//! `crosswarp transpose`: the matrices of an NPY file, transposed into another.

mod gpu;
mod panels;

use std::time::Instant;

use bytemuck::Pod;
use crosswarp::cuda::{Buffer, DeviceSym, DeviceWorld, DeviceWorldError, Stream};
use crosswarp::prim::{
    DeviceTransposeError, TransposeError, Transposer, WorldTransposer, part_len, rows_of,
};
use crosswarp::shmem::{Pe, under_launcher};
use serde::Serialize;

use self::gpu::stream_through;
use self::panels::{PANEL_BYTES, panels};
use super::error::CommandError;
use crate::args::transpose::TransposeArgs;
use crate::console;
use crate::format::{pes, si};
use crate::input::npy::{Dtype, NpyMap, Shape};
use crate::output::json::{self, Run};
use crate::output::npy::NpyWriter;
use crate::output::staged::StagedFile;
use crate::processor::physical_cores;
use crate::world::backend::Backend;
use crate::world::pes::{in_world_of, kind_name};

/// Transposes the file and says how fast.
pub fn transpose(args: &TransposeArgs) -> Result<i32, CommandError> {
    let file = NpyMap::open(&args.file)?;
    let matrices = Matrices::of(&file)?;
    let report = match file.dtype().size() {
        1 => of_size::<u8>(args, &file, matrices),
        2 => of_size::<u16>(args, &file, matrices),
        4 => of_size::<u32>(args, &file, matrices),
        8 => of_size::<u64>(args, &file, matrices),
        _ => of_size::<u128>(args, &file, matrices),
    }?;
    let Some(report) = report else {
        return Ok(0);
    };
    if args.json {
        console::line(report.json())?;
    } else {
        console::line(report.summary(args))?;
    }
    Ok(0)
}

/// What the file holds.
#[derive(Clone, Copy)]
struct Matrices {
    dtype: Dtype,
    batch: usize,
    rows: usize,
    columns: usize,
    /// Whether the file has an axis for the matrices.
    stacked: bool,
}

impl Matrices {
    fn of(file: &NpyMap) -> Result<Self, CommandError> {
        let (batch, rows, columns, stacked) = match file.shape().0[..] {
            [rows, columns] => (1, rows, columns, false),
            [batch, rows, columns] => (batch, rows, columns, true),
            _ => {
                let wanted = "(rows, columns) or (matrices, rows, columns)";
                return Err(file.wrong_shape(wanted).into());
            }
        };
        Ok(Self {
            dtype: file.dtype(),
            batch,
            rows,
            columns,
            stacked,
        })
    }

    /// The shape of the output.
    fn transposed(&self) -> Shape {
        let mut axes = vec![self.columns, self.rows];
        if self.stacked {
            axes.insert(0, self.batch);
        }
        Shape(axes)
    }

    fn bytes(&self) -> usize {
        self.batch * self.rows * self.columns * self.dtype.size()
    }
}

/// How it went.
struct Report {
    matrices: Matrices,
    backend: Backend,
    run: Run,
}

impl Report {
    fn new(
        matrices: Matrices,
        backend: Backend,
        (pes, world): (usize, &'static str),
        start: Instant,
    ) -> Self {
        let seconds = start.elapsed().as_secs_f64();
        Self {
            matrices,
            backend,
            run: Run {
                pes,
                world,
                seconds,
                // Each is read and written.
                bytes_per_second: Some(2.0 * matrices.bytes() as f64 / seconds),
            },
        }
    }

    fn json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            dtype: &'a str,
            shape: Vec<usize>,
            backend: &'a str,
            #[serde(flatten)]
            run: &'a Run,
        }
        json::line(&Object {
            dtype: self.matrices.dtype.name(),
            shape: self.matrices.transposed().0,
            backend: self.backend.name(),
            run: &self.run,
        })
    }

    fn summary(&self, args: &TransposeArgs) -> String {
        format!(
            "Wrote {}: {} {}\non {}, {} ({}), {:.3} ms, {}",
            console::name(&args.output),
            self.matrices.transposed(),
            self.matrices.dtype,
            self.backend.describe(),
            pes(self.run.pes),
            self.run.world,
            self.run.seconds * 1e3,
            si(self.run.bytes_per_second.unwrap_or(0.0), "B/s"),
        )
    }
}

/// Transposes elements that have the size of `T`; the report, if this is PE 0.
fn of_size<T: Pod + Send + Sync>(
    args: &TransposeArgs,
    file: &NpyMap,
    matrices: Matrices,
) -> Result<Option<Report>, CommandError> {
    let backend = Backend::choose(&args.backend)?;
    let asked = args.backend.pes;
    let on_gpus = matches!(backend, Backend::Cuda(_));
    if under_launcher() || (on_gpus && asked.is_some_and(|pes| pes > 1)) {
        let pes = asked.unwrap_or(1) as usize;
        return in_world_of(asked, pes, |pe| {
            over_pes::<T>(pe, &backend, args, file, matrices)
        });
    }
    let input = file.elements::<T>()?;
    let mut writer = writer(args, matrices)?;
    let start = Instant::now();
    let panels = panels(
        matrices.batch,
        matrices.rows,
        matrices.columns,
        size_of::<T>(),
    );
    let mut pes = 1;
    match &backend {
        Backend::Cuda(devices) => stream_through(&devices[0], input, &panels, &mut writer)?,
        Backend::Cpu { .. } => {
            pes = asked.map_or_else(physical_cores, |pes| pes as usize);
            let transposer = Transposer::new().threads(pes);
            let mut buffer = Vec::new();
            for panel in panels {
                let (from, to) = (panel.layout, panel.layout.transposed());
                buffer.resize(panel.len(), T::zeroed());
                transposer.transpose(&input[panel.first..], &from, &mut buffer, &to)?;
                writer.put(&buffer)?;
            }
        }
    }
    writer.finish()?;
    Ok(Some(Report::new(
        matrices,
        backend,
        (pes, "threads"),
        start,
    )))
}

fn writer(args: &TransposeArgs, matrices: Matrices) -> Result<NpyWriter, CommandError> {
    let staged = StagedFile::create(&args.output)?;
    Ok(NpyWriter::new(
        staged,
        matrices.dtype,
        &matrices.transposed(),
    )?)
}

/// The same by several PEs, matrix by matrix: each PE reads its rows and puts what it transposes to the
/// PEs whose rows of the output they are, and PE 0 writes those.
fn over_pes<T: Pod>(
    pe: &Pe,
    backend: &Backend,
    args: &TransposeArgs,
    file: &NpyMap,
    matrices: Matrices,
) -> Result<Option<Report>, CommandError> {
    let (rows, columns, n) = (matrices.rows, matrices.columns, pe.n_pes());
    let input = file.elements::<T>()?;
    let mut writer = match pe.my_pe() {
        0 => Some(writer(args, matrices)?),
        _ => None,
    };
    let mine = rows_of(rows, n, pe.my_pe());
    let len = part_len(rows, columns, n).ok_or(TransposeError::TooLarge)?;
    let world = match backend.device(pe) {
        Some(device) => Some(DeviceWorld::new(pe, device, None, None).map_err(device_error)?),
        None => None,
    };
    let gpu = match &world {
        Some(world) => Some(Gpu::<T>::new(world, mine.len() * columns, len)?),
        None => None,
    };
    let output = match gpu {
        Some(_) => None,
        None => Some(pe.alloc::<T>(len).map_err(TransposeError::from)?),
    };
    let start = Instant::now();
    let mut buffer = vec![T::zeroed(); len.min((PANEL_BYTES / size_of::<T>()).max(1))];
    for matrix in input.chunks_exact(rows * columns) {
        let part = &matrix[mine.start * columns..mine.end * columns];
        if let Some(output) = &output {
            Transposer::new().transpose_on(pe, rows, columns, part, output)?;
        }
        if let Some(gpu) = &gpu {
            gpu.transpose(rows, columns, part)?;
        }
        let Some(writer) = &mut writer else {
            continue;
        };
        for owner in 0..n {
            let len = rows_of(columns, n, owner).len() * rows;
            for first in (0..len).step_by(buffer.len()) {
                let piece = &mut buffer[..(len - first).min(PANEL_BYTES / size_of::<T>())];
                if let Some(output) = &output {
                    pe.get(piece, output.range(first..first + piece.len()), owner);
                }
                if let Some(gpu) = &gpu {
                    gpu.get(piece, first, owner)?;
                }
                writer.put(piece)?;
            }
        }
    }
    if let Some(writer) = writer {
        writer.finish()?;
    }
    let report = Report::new(matrices, backend.clone(), (n, kind_name(pe)), start);
    // The others' parts are read up to here.
    pe.barrier().map_err(TransposeError::from)?;
    Ok((pe.my_pe() == 0).then_some(report))
}

fn device_error(error: impl Into<DeviceTransposeError>) -> CommandError {
    error.into().into()
}

/// What a PE with a GPU works with.
struct Gpu<'a, 'w, T: Pod> {
    world: &'a DeviceWorld<'w>,
    transposer: WorldTransposer<'a, 'w>,
    stream: Stream,
    input: Buffer<T>,
    output: DeviceSym<T>,
}

impl<'a, 'w, T: Pod> Gpu<'a, 'w, T> {
    fn new(
        world: &'a DeviceWorld<'w>,
        in_len: usize,
        out_len: usize,
    ) -> Result<Self, CommandError> {
        let (device, heap) = (world.device(), world.heap());
        let output = heap
            .alloc(out_len)
            .map_err(|error| device_error(DeviceWorldError::from(error)))?;
        Ok(Self {
            world,
            transposer: WorldTransposer::of_size(world, size_of::<T>())?,
            stream: Stream::new(&device).map_err(device_error)?,
            input: Buffer::new(&device, in_len).map_err(device_error)?,
            output,
        })
    }

    fn transpose(&self, rows: usize, columns: usize, part: &[T]) -> Result<(), CommandError> {
        self.stream.write(&self.input, part).map_err(device_error)?;
        self.transposer
            .transpose(&self.stream, rows, columns, &self.input, &self.output)?;
        // Not the stream's own: that would not say that a PE never came.
        self.world
            .synchronize(&self.stream)
            .map_err(|error| device_error(DeviceWorldError::from(error)))
    }

    fn get(&self, piece: &mut [T], first: usize, owner: usize) -> Result<(), CommandError> {
        let from = self.output.range(first..first + piece.len());
        self.world
            .get(&self.stream, piece, from, owner)
            .map_err(device_error)
    }
}
