//! `crosswarp transpose`: the matrices of an NPY file, transposed into another.

use std::time::Instant;

use bytemuck::Pod;
use crosswarp::prim::{Layout, Transposer, part_len, rows_of};
use crosswarp::shmem::{Pe, under_launcher};

use crate::args::TransposeArgs;
use crate::console;
use crate::error::CliError;
use crate::general::{pes, si};
use crate::npy::{Dtype, NpyMap, NpyWriter, Shape};
use crate::staged::StagedFile;
use crate::topology::physical_cores;
use crate::world::{in_world, kind_name};

/// Bytes of output that are made, then written, at a time.
const PANEL_BYTES: usize = 64 << 20;

/// Transposes the file and says how fast.
pub fn transpose(args: &TransposeArgs) -> Result<i32, CliError> {
    let file = NpyMap::open(&args.file)?;
    let matrices = Matrices::of(&file)?;
    let report = match file.dtype().size() {
        1 => of_size::<u8>(args, &file, matrices),
        2 => of_size::<u16>(args, &file, matrices),
        4 => of_size::<u32>(args, &file, matrices),
        _ => of_size::<u64>(args, &file, matrices),
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
    fn of(file: &NpyMap) -> Result<Self, CliError> {
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
    pes: usize,
    world: &'static str,
    seconds: f64,
}

impl Report {
    /// Bytes read and written by second, the files included.
    fn rate(&self) -> f64 {
        2.0 * self.matrices.bytes() as f64 / self.seconds
    }

    fn json(&self) -> String {
        serde_json::json!({
            "dtype": self.matrices.dtype.name(),
            "shape": self.matrices.transposed().0,
            "pes": self.pes,
            "world": self.world,
            "seconds": self.seconds,
            "bytes_per_second": self.rate(),
        })
        .to_string()
    }

    fn summary(&self, args: &TransposeArgs) -> String {
        format!(
            "Wrote {}: {} {}\non {} ({}), {:.3} ms, {}",
            args.output.display(),
            self.matrices.transposed(),
            self.matrices.dtype,
            pes(self.pes),
            self.world,
            self.seconds * 1e3,
            si(self.rate(), "B/s"),
        )
    }
}

/// Transposes elements that have the size of `T`; the report, if this is PE 0.
fn of_size<T: Pod>(
    args: &TransposeArgs,
    file: &NpyMap,
    matrices: Matrices,
) -> Result<Option<Report>, CliError> {
    if under_launcher() {
        return in_world(args.pes, |pe| in_processes::<T>(pe, args, file, matrices));
    }
    let threads = args.pes.map_or_else(physical_cores, |pes| pes as usize);
    let input = file.elements::<T>()?;
    let mut writer = writer(args, matrices)?;
    let start = Instant::now();
    let transposer = Transposer::new().threads(threads);
    let mut buffer = Vec::new();
    panels(input, matrices, |panel, from| {
        let to = from.transposed();
        buffer.resize(to.rows * to.columns, T::zeroed());
        transposer.transpose(panel, &from, &mut buffer, &to)?;
        Ok(writer.put(&buffer)?)
    })?;
    writer.finish()?;
    Ok(Some(Report {
        matrices,
        pes: threads,
        world: "threads",
        seconds: start.elapsed().as_secs_f64(),
    }))
}

fn writer(args: &TransposeArgs, matrices: Matrices) -> Result<NpyWriter, CliError> {
    let staged = StagedFile::create(&args.output)?;
    Ok(NpyWriter::new(
        staged,
        matrices.dtype,
        &matrices.transposed(),
    )?)
}

/// Cuts the matrices into panels whose transposed parts follow one another in the output, and hands
/// each with its layout to `work`: some columns of all rows, or, where one column is more than
/// [`PANEL_BYTES`], some rows of one column.
fn panels<'a, T: Pod>(
    input: &'a [T],
    matrices: Matrices,
    mut work: impl FnMut(&'a [T], Layout) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let Matrices {
        batch,
        rows,
        columns,
        ..
    } = matrices;
    let most = PANEL_BYTES / size_of::<T>();
    // Whole cache lines of output and of input, where there are as many.
    let width = match most / rows {
        0 => 1,
        wide if wide >= 128 => wide / 128 * 128,
        narrow => narrow,
    };
    let height = if width == 1 { rows.min(most) } else { rows };
    for matrix in 0..batch {
        for column in (0..columns).step_by(width) {
            for row in (0..rows).step_by(height) {
                let (height, width) = (height.min(rows - row), width.min(columns - column));
                let first = (matrix * rows + row) * columns + column;
                let layout = Layout::new(height, width).with_leading_dimension(columns);
                work(&input[first..first + layout.span()?], layout)?;
            }
        }
    }
    Ok(())
}

/// The same by the processes of `crosswarp run`, matrix by matrix: each PE reads its rows and puts what
/// it transposes to the PEs whose rows of the output they are, and PE 0 writes those.
fn in_processes<T: Pod>(
    pe: &Pe,
    args: &TransposeArgs,
    file: &NpyMap,
    matrices: Matrices,
) -> Result<Option<Report>, CliError> {
    let Matrices {
        batch,
        rows,
        columns,
        ..
    } = matrices;
    let input = file.elements::<T>()?;
    let mut writer = match pe.my_pe() {
        0 => Some(writer(args, matrices)?),
        _ => None,
    };
    let n = pe.n_pes();
    let mine = rows_of(rows, n, pe.my_pe());
    let len = part_len(rows, columns, n).ok_or(crosswarp::prim::TransposeError::TooLarge)?;
    let output = pe
        .alloc::<T>(len)
        .map_err(crosswarp::prim::TransposeError::from)?;
    let start = Instant::now();
    let mut buffer = vec![T::zeroed(); len.min((PANEL_BYTES / size_of::<T>()).max(1))];
    for matrix in input.chunks_exact(rows * columns).take(batch) {
        let part = &matrix[mine.start * columns..mine.end * columns];
        Transposer::new().transpose_on(pe, rows, columns, part, &output)?;
        let Some(writer) = &mut writer else {
            continue;
        };
        for owner in 0..n {
            let len = rows_of(columns, n, owner).len() * rows;
            for first in (0..len).step_by(buffer.len()) {
                let piece = buffer.len().min(len - first);
                pe.get(
                    &mut buffer[..piece],
                    output.range(first..first + piece),
                    owner,
                );
                writer.put(&buffer[..piece])?;
            }
        }
    }
    if let Some(writer) = writer {
        writer.finish()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    // The others' parts are read up to here.
    pe.barrier()
        .map_err(crosswarp::prim::TransposeError::from)?;
    Ok((pe.my_pe() == 0).then(|| Report {
        matrices,
        pes: n,
        world: kind_name(pe),
        seconds,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_follow_one_another_in_the_output() {
        // A matrix of few and one of very many rows; the elements are not looked at.
        for (rows, columns) in [(3, 40_000_000), (100_000, 1500), (40_000_000, 2)] {
            let matrices = Matrices {
                dtype: Dtype::U8,
                batch: 1,
                rows,
                columns,
                stacked: false,
            };
            let input = vec![0u8; rows * columns];
            let mut next = 0;
            panels(&input, matrices, |panel, layout| {
                let first = panel.as_ptr() as usize - input.as_ptr() as usize;
                assert_eq!(first % columns * rows + first / columns, next);
                let size = layout.rows * layout.columns;
                assert!(size <= PANEL_BYTES && (layout.rows == rows || layout.columns == 1));
                next += size;
                Ok(())
            })
            .unwrap();
            assert_eq!(next, rows * columns);
        }
    }
}
