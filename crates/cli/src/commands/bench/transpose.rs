//! `crosswarp bench transpose`: transpositions on this machine's GPUs beside a copy of the same bytes.

use bytemuck::Pod;
use crosswarp::cuda::{Buffer, CudaError, Device, DeviceWorld, DeviceWorldError, Event, Stream};
use crosswarp::lab::bench::BenchError;
use crosswarp::lab::measure::{Plan, Row, Spread, counted, on_stream};
use crosswarp::prim::{DeviceTransposer, Layout, TextbookTile, WorldTransposer, part_len, rows_of};
use crosswarp::shmem::Pe;

use crate::args::BenchTransposeArgs;
use crate::commands::bench::Rows;
use crate::commands::error::CliError;
use crate::world::in_world_of;

/// Measures and prints a table, or with `--json` one object a line.
pub fn transpose(args: &BenchTransposeArgs) -> Result<i32, CliError> {
    let devices = Device::all().map_err(crosswarp::cuda::Error::from)?;
    let pes = args.pes.unwrap_or(1) as usize;
    if pes == 1 && !crosswarp::shmem::under_launcher() {
        one_gpu(&mut Rows::new(args.json, &devices[0], 22), &devices[0])?;
        return Ok(0);
    }
    in_world_of(args.pes, pes, |pe| {
        let device = devices[pe.my_pe() % devices.len()];
        let mut out = (pe.my_pe() == 0).then(|| Rows::new(args.json, &device, 22));
        several_gpus(out.as_mut(), pe, device)?;
        Ok(0)
    })
}

fn bench(error: impl Into<BenchError>) -> CliError {
    CliError::Bench(error.into())
}

/// The row of an element's size, rows and columns.
fn row_of(what: &str, shape: [usize; 3], moved: usize, time: Spread) -> Row {
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

fn one_gpu(out: &mut Rows, device: &Device) -> Result<(), CliError> {
    let stream = Stream::new(device).map_err(bench)?;
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
    out: &mut Rows,
    transposer: &DeviceTransposer,
    stream: &Stream,
    rows: usize,
    columns: usize,
) -> Result<(), CliError> {
    let plan = Plan::default();
    let (from, element) = (Layout::new(rows, columns), size_of::<T>());
    let (len, to) = (rows * columns, from.transposed());
    let shape = [element, rows, columns];
    let moved = 2 * len * element;
    let input = filled::<T>(stream, len).map_err(bench)?;
    let output = Buffer::<T>::new(stream.device(), len).map_err(bench)?;
    let time = on_stream(&plan, stream, None, |stream, _| {
        stream.copy(&output, &input)
    })
    .map_err(bench)?;
    out.show(&row_of("copy", shape, moved, time))?;
    let time = on_stream(&plan, stream, None, |stream, _| {
        transposer.transpose(stream, &input, &from, &output, &to)
    })?;
    out.show(&row_of("transpose", shape, moved, time))?;
    if rows == columns {
        let time = on_stream(&plan, stream, None, |stream, _| {
            transposer.transpose_in_place(stream, &input, &from)
        })?;
        out.show(&row_of("transpose_in_place", shape, moved, time))?;
    }
    if element == 4 && rows == columns {
        // The textbook's tiles move words, so the buffers serve as words.
        let words = filled::<u32>(stream, len).map_err(bench)?;
        let turned = Buffer::<u32>::new(stream.device(), len).map_err(bench)?;
        for (tile, what) in [
            (TextbookTile::Padded, "transpose_padded"),
            (TextbookTile::Unpadded, "transpose_unpadded"),
        ] {
            let time = on_stream(&plan, stream, None, |stream, _| {
                transposer.transpose_by(tile, stream, &words, &from, &turned, &to)
            })?;
            out.show(&row_of(what, shape, moved, time))?;
        }
    }
    Ok(())
}

/// Samples of a transposition over PEs, of which each is this many calls.
const SAMPLES: u32 = 15;
const CALLS: u32 = 5;

/// The rows of a matrix over the PEs. The bytes are those that a PE sends to others, over its links.
fn several_gpus(mut out: Option<&mut Rows>, pe: &Pe, device: Device) -> Result<(), CliError> {
    let world = DeviceWorld::new(pe, device, None, None).map_err(bench)?;
    let transposer = WorldTransposer::new(&world).map_err(bench)?;
    // 256 MiB, 1 GiB and, if there are more than two PEs, 4 GiB in all.
    for n in [8192, 16384, 32768] {
        spread::<u32>(out.as_deref_mut(), &world, &transposer, n)?;
    }
    spread::<u8>(out.as_deref_mut(), &world, &transposer, 32768)?;
    spread::<u16>(out.as_deref_mut(), &world, &transposer, 32768)?;
    spread::<u64>(out.as_deref_mut(), &world, &transposer, 16384)?;
    spread::<u128>(out, &world, &transposer, 16384)
}

fn spread<T: Pod>(
    out: Option<&mut Rows>,
    world: &DeviceWorld<'_>,
    transposer: &WorldTransposer<'_, '_>,
    side: usize,
) -> Result<(), CliError> {
    let (pe, device, n) = (world.pe(), world.device(), world.pe().n_pes());
    let stream = Stream::new(&device).map_err(bench)?;
    let mine = rows_of(side, n, pe.my_pe()).len() * side;
    let input = filled::<T>(&stream, mine).map_err(bench)?;
    let len = part_len(side, side, n).unwrap_or(usize::MAX);
    let output = world
        .heap()
        .alloc::<T>(len)
        .map_err(|error| bench(DeviceWorldError::from(error)))?;
    let (start, end) = (
        Event::new(&device).map_err(bench)?,
        Event::new(&device).map_err(bench)?,
    );
    let time = counted(2, SAMPLES, CALLS, |_| -> Result<f64, CliError> {
        // One call before the clock starts, so that all PEs are there.
        transposer.transpose(&stream, side, side, &input, &output)?;
        stream.record(&start).map_err(bench)?;
        for _ in 0..CALLS {
            transposer.transpose(&stream, side, side, &input, &output)?;
        }
        stream.record(&end).map_err(bench)?;
        world.synchronize(&stream).map_err(bench)?;
        Ok(end.since(&start).map_err(bench)?.as_secs_f64() / f64::from(CALLS))
    })?;
    world
        .heap()
        .free(output)
        .map_err(|error| bench(DeviceWorldError::from(error)))?;
    if let Some(out) = out {
        let sent = mine * size_of::<T>() * (n - 1) / n;
        let what = format!("transpose_{n}_pes");
        let shape = [size_of::<T>(), side, side];
        out.show(&row_of(&what, shape, sent, time))?;
    }
    Ok(())
}
