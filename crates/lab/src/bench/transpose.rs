//! Measuring transpositions on GPUs beside a copy of the same bytes.

use bytemuck::Pod;
use crosswarp_cuda::{Buffer, CudaError, Device, DeviceWorld, DeviceWorldError, Event, Stream};
use crosswarp_prim::internal::{TextbookTile, TextbookTransposer};
use crosswarp_prim::{DeviceTransposer, Layout, WorldTransposer, part_len, rows_of};
use crosswarp_shmem::Pe;

use super::error::BenchError;
use crate::measure::{Plan, Row, Timing, fixed_runs, on_stream};

/// The row of an element's size, rows and columns.
fn row_of(what: &str, shape: [usize; 3], moved: usize, time: Timing) -> Row {
    let [element, rows, columns] = shape;
    Row::new(what, time)
        .with("element", element)
        .with("rows", rows)
        .with("columns", columns)
        .bytes(moved as u64)
}

/// A buffer of numbers that repeat only after 16 MiB.
fn filled<T: Pod>(stream: &Stream, len: usize) -> Result<Buffer<T>, CudaError> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let words: Vec<u64> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
    .take(2 << 20)
    .collect();
    let mut first = vec![T::zeroed(); (16 << 20) / size_of::<T>()];
    bytemuck::cast_slice_mut::<T, u8>(&mut first).copy_from_slice(bytemuck::cast_slice(&words));
    let buffer = Buffer::new(stream.device(), len)?;
    let mut done = first.len().min(len);
    stream.write(buffer.range(..done), &first[..done])?;
    while done < len {
        let more = done.min(len - done);
        stream.copy(buffer.range(done..done + more), buffer.range(..more))?;
        done += more;
    }
    stream.synchronize()?;
    Ok(buffer)
}

/// Measures on one GPU and hands every row to `report`.
///
/// # Errors
/// The GPU's.
pub fn transpose(device: &Device, mut report: impl FnMut(Row)) -> Result<(), BenchError> {
    let out = &mut report as &mut dyn FnMut(Row);
    let stream = Stream::new(device)?;
    let transposer = DeviceTransposer::new(device)?;
    for n in [4096, 8192, 16384, 32768] {
        square::<u32>(out, &transposer, &stream, n, n)?;
    }
    square::<u8>(out, &transposer, &stream, 16384, 16384)?;
    square::<u16>(out, &transposer, &stream, 16384, 16384)?;
    square::<u64>(out, &transposer, &stream, 16384, 16384)?;
    square::<u128>(out, &transposer, &stream, 16384, 16384)?;
    // Rows that begin anywhere, and tiles at every edge.
    square::<u8>(out, &transposer, &stream, 16383, 16381)?;
    square::<u16>(out, &transposer, &stream, 16383, 16381)?;
    square::<u32>(out, &transposer, &stream, 16383, 16381)?;
    square::<u64>(out, &transposer, &stream, 16383, 16381)?;
    square::<u128>(out, &transposer, &stream, 16383, 16381)
}

/// The rows of one shape.
fn square<T: Pod>(
    out: &mut dyn FnMut(Row),
    transposer: &DeviceTransposer,
    stream: &Stream,
    rows: usize,
    columns: usize,
) -> Result<(), BenchError> {
    let plan = Plan::default();
    let (from, element) = (Layout::new(rows, columns), size_of::<T>());
    let (len, to) = (rows * columns, from.transposed());
    let shape = [element, rows, columns];
    let moved = 2 * len * element;
    let input = filled::<T>(stream, len)?;
    let output = Buffer::<T>::new(stream.device(), len)?;
    let time = on_stream(&plan, stream, None, |stream, _| {
        stream.copy(&output, &input)
    })?;
    out(row_of("copy", shape, moved, time));
    let time = on_stream(&plan, stream, None, |stream, _| {
        transposer.transpose(stream, &input, &from, &output, &to)
    })?;
    out(row_of("transpose", shape, moved, time));
    if rows == columns {
        let time = on_stream(&plan, stream, None, |stream, _| {
            transposer.transpose_in_place(stream, &input, &from)
        })?;
        out(row_of("transpose_in_place", shape, moved, time));
    }
    if element == 4 && rows == columns {
        // The textbook's tiles move words, so the buffers serve as words.
        let words = filled::<u32>(stream, len)?;
        let turned = Buffer::<u32>::new(stream.device(), len)?;
        for (tile, what) in [
            (TextbookTile::Padded, "transpose_padded"),
            (TextbookTile::Unpadded, "transpose_unpadded"),
        ] {
            let textbook = TextbookTransposer::new(stream.device(), tile)?;
            let time = on_stream(&plan, stream, None, |stream, _| {
                textbook.transpose(stream, &words, &from, &turned, &to)
            })?;
            out(row_of(what, shape, moved, time));
        }
    }
    Ok(())
}

/// Samples of a transposition over PEs, of which each is this many calls.
const SAMPLES: u32 = 15;
const CALLS: u32 = 5;

/// Measures matrices of which each PE of a world holds rows on its GPU, and hands every row to `report`, on every PE
/// alike but for the times. The bytes are those that a PE sends to others, over its links. Collective.
///
/// # Errors
/// The GPU's, and those of the PEs' communication.
pub fn transpose_over_pes(
    pe: &Pe,
    device: Device,
    mut report: impl FnMut(Row),
) -> Result<(), BenchError> {
    let out = &mut report as &mut dyn FnMut(Row);
    let world = DeviceWorld::new(pe, device, None, None)?;
    let transposer = WorldTransposer::new(&world)?;
    // 256 MiB, 1 GiB and, if there are more than two PEs, 4 GiB in all.
    for n in [8192, 16384, 32768] {
        spread::<u32>(out, &world, &transposer, n)?;
    }
    spread::<u8>(out, &world, &transposer, 32768)?;
    spread::<u16>(out, &world, &transposer, 32768)?;
    spread::<u64>(out, &world, &transposer, 16384)?;
    spread::<u128>(out, &world, &transposer, 16384)
}

fn spread<T: Pod>(
    out: &mut dyn FnMut(Row),
    world: &DeviceWorld<'_>,
    transposer: &WorldTransposer<'_, '_>,
    side: usize,
) -> Result<(), BenchError> {
    let (pe, device, n) = (world.pe(), world.device(), world.pe().n_pes());
    let stream = Stream::new(&device)?;
    let mine = rows_of(side, n, pe.my_pe()).len() * side;
    let input = filled::<T>(&stream, mine)?;
    let len = part_len(side, side, n).unwrap_or(usize::MAX);
    let output = world
        .heap()
        .alloc::<T>(len)
        .map_err(DeviceWorldError::from)?;
    let (start, end) = (Event::new(&device)?, Event::new(&device)?);
    let time = fixed_runs(2, SAMPLES, CALLS, |_| -> Result<f64, BenchError> {
        // One call before the clock starts, so that all PEs are there.
        transposer.transpose(&stream, side, side, &input, &output)?;
        stream.record(&start)?;
        for _ in 0..CALLS {
            transposer.transpose(&stream, side, side, &input, &output)?;
        }
        stream.record(&end)?;
        world.synchronize(&stream)?;
        Ok(end.since(&start)?.as_secs_f64() / f64::from(CALLS))
    })?;
    world.heap().free(output).map_err(DeviceWorldError::from)?;
    let sent = mine * size_of::<T>() * (n - 1) / n;
    let what = format!("transpose_{n}_pes");
    let shape = [size_of::<T>(), side, side];
    out(row_of(&what, shape, sent, time));
    Ok(())
}
