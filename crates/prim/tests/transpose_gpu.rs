//! Transpositions on GPUs: the same as on the CPU. Without a GPU (or NVRTC) each test says by name that it
//! was skipped.
#![allow(unsafe_code)] // Launches a graph.

use bytemuck::Pod;
use crosswarp_cuda::{Buffer, Device, DeviceWorld, Graph, Nvrtc, Stream, skip};
use crosswarp_prim::internal::{TextbookTile, TextbookTransposer};
use crosswarp_prim::{
    DeviceTransposeError, DeviceTransposer, Layout, TransposeError, Transposer, WorldTransposer,
    part_len, rows_of,
};

fn gpu(test: &str) -> Option<(DeviceTransposer, Stream)> {
    if let Err(reason) = Device::count() {
        skip::skip_gpu(test, 1, format!("no GPU: {reason}"));
        return None;
    }
    if let Err(reason) = Nvrtc::get() {
        skip::skip_gpu(test, 1, reason);
        return None;
    }
    let device = Device::get(0).unwrap();
    Some((
        DeviceTransposer::new(&device).unwrap(),
        Stream::new(&device).unwrap(),
    ))
}

/// Elements that all differ in as many bytes as they have, as far as that goes.
fn numbered<T: Pod>(len: usize) -> Vec<T> {
    let mut values = vec![T::zeroed(); len];
    for (k, byte) in bytemuck::cast_slice_mut::<T, u8>(&mut values)
        .iter_mut()
        .enumerate()
    {
        *byte = (k as u32).wrapping_mul(2_654_435_761).to_be_bytes()[k % 3];
    }
    values
}

/// Runs `$function::<T>` for elements of every size, that of a complex number with its alignment.
macro_rules! every_size {
    ($function:ident($($argument:expr),*)) => {
        $function::<u8>($($argument),*);
        $function::<u16>($($argument),*);
        $function::<u32>($($argument),*);
        $function::<u64>($($argument),*);
        $function::<[u64; 2]>($($argument),*);
    };
}

type Gpu = (DeviceTransposer, Stream);

fn out_of_place<T: Pod + PartialEq>(
    (transposer, stream): &Gpu,
    [rows, columns, batch]: [usize; 3],
    [pad_in, pad_out, gap, skip]: [usize; 4],
) {
    let from = Layout::new(rows, columns)
        .with_leading_dimension(columns + pad_in)
        .with_batch(batch);
    let from = from.with_batch_stride(from.batch_stride + gap);
    let to = Layout::new(columns, rows)
        .with_leading_dimension(rows + pad_out)
        .with_batch(batch);
    let input = numbered::<T>(skip + from.span().unwrap());
    let mut expected = numbered::<T>(skip + to.span().unwrap() + 3);
    let (device_in, device_out) = (
        Buffer::from_slice(stream, &input).unwrap(),
        Buffer::from_slice(stream, &expected).unwrap(),
    );
    Transposer::new()
        .transpose(&input[skip..], &from, &mut expected[skip..], &to)
        .unwrap();
    transposer
        .transpose(
            stream,
            device_in.range(skip..),
            &from,
            device_out.range(skip..),
            &to,
        )
        .unwrap();
    assert!(
        device_out.to_vec(stream).unwrap() == expected,
        "{from:?} to {to:?} from {skip}"
    );
}

fn in_place<T: Pod + PartialEq>(
    (transposer, stream): &Gpu,
    n: usize,
    pad: usize,
    batch: usize,
    skip: usize,
) {
    let layout = Layout::new(n, n)
        .with_leading_dimension(n + pad)
        .with_batch(batch);
    let mut expected = numbered::<T>(skip + layout.span().unwrap() + 1);
    let array = Buffer::from_slice(stream, &expected).unwrap();
    Transposer::new()
        .transpose_in_place(&mut expected[skip..], &layout)
        .unwrap();
    transposer
        .transpose_in_place(stream, array.range(skip..), &layout)
        .unwrap();
    assert!(
        array.to_vec(stream).unwrap() == expected,
        "{layout:?} from {skip}"
    );
}

#[test]
fn every_size_and_shape_as_on_the_cpu() {
    let Some(gpu) = gpu("every_size_and_shape_as_on_the_cpu") else {
        return;
    };
    for (rows, columns) in [
        (1, 1),
        (1, 300),
        (300, 1),
        (64, 64),
        (256, 512),
        (257, 255),
        (640, 16),
        (33, 1000),
        (10, 2000),
        (2000, 7),
        (32, 513),
        (300, 31),
    ] {
        for pads in [
            [0, 0, 0, 0],
            [16, 32, 16, 16],
            [1, 0, 0, 0],
            [0, 3, 1, 0],
            [5, 7, 2, 1],
        ] {
            every_size!(out_of_place(&gpu, [rows, columns, 1], pads));
        }
        every_size!(out_of_place(&gpu, [rows, columns, 3], [0, 0, 16, 0]));
        every_size!(out_of_place(&gpu, [rows, columns, 2], [1, 2, 3, 1]));
    }
    every_size!(out_of_place(&gpu, [7, 5, 1000], [0, 0, 0, 0]));
    every_size!(out_of_place(&gpu, [40, 3, 1000], [0, 0, 0, 0]));
    every_size!(out_of_place(&gpu, [0, 5, 2], [0, 0, 0, 0]));
}

/// Small, for it also runs under compute-sanitizer.
#[test]
fn narrow_matrices_as_on_the_cpu() {
    let Some(gpu) = gpu("narrow_matrices_as_on_the_cpu") else {
        return;
    };
    for (rows, columns) in [(8, 300), (300, 7), (1, 257), (2, 9)] {
        every_size!(out_of_place(&gpu, [rows, columns, 2], [0, 0, 0, 0]));
        every_size!(out_of_place(&gpu, [rows, columns, 2], [3, 2, 5, 1]));
    }
}

#[test]
fn squares_in_place_as_on_the_cpu() {
    let Some(gpu) = gpu("squares_in_place_as_on_the_cpu") else {
        return;
    };
    for n in [1, 2, 15, 16, 31, 64, 100, 128, 256, 257, 512, 700] {
        every_size!(in_place(&gpu, n, 0, 1, 0));
        every_size!(in_place(&gpu, n, 16, 3, 16));
        every_size!(in_place(&gpu, n, 1, 2, 1));
    }
}

#[test]
fn textbook_tiles_do_the_same() {
    let Some((transposer, stream)) = gpu("textbook_tiles_do_the_same") else {
        return;
    };
    let from = Layout::new(70, 133)
        .with_leading_dimension(140)
        .with_batch(2);
    let input = numbered::<u32>(from.span().unwrap());
    let mut expected = vec![0; from.transposed().span().unwrap()];
    Transposer::new()
        .transpose(&input, &from, &mut expected, &from.transposed())
        .unwrap();
    let input = Buffer::from_slice(&stream, &input).unwrap();
    for tile in [TextbookTile::Padded, TextbookTile::Unpadded] {
        let output = Buffer::zeroed(&stream, expected.len()).unwrap();
        let textbook = TextbookTransposer::new(transposer.device(), tile).unwrap();
        textbook
            .transpose(&stream, &input, &from, &output, &from.transposed())
            .unwrap();
        assert!(output.to_vec(&stream).unwrap() == expected, "{tile:?}");
    }
}

#[test]
fn a_transposer_of_one_size_does_the_same_and_refuses_others() {
    let Some((all, stream)) = gpu("a_transposer_of_one_size_does_the_same_and_refuses_others")
    else {
        return;
    };
    let one = DeviceTransposer::of_size(all.device(), 4).unwrap();
    let from = Layout::new(130, 70);
    let input = Buffer::from_slice(&stream, &numbered::<u32>(9100)).unwrap();
    let outputs = [&all, &one].map(|transposer| {
        let output = Buffer::zeroed(&stream, 9100).unwrap();
        transposer
            .transpose(&stream, &input, &from, &output, &from.transposed())
            .unwrap();
        output.to_vec(&stream).unwrap()
    });
    assert!(outputs[0] == outputs[1]);
    let wide = Buffer::<u64>::zeroed(&stream, 9).unwrap();
    let error = one
        .transpose_in_place(&stream, &wide, &Layout::new(3, 3))
        .unwrap_err();
    assert!(
        matches!(
            error,
            DeviceTransposeError::Size {
                element: 8,
                made_for: 4
            }
        ),
        "{error}"
    );
    assert!(matches!(
        DeviceTransposer::of_size(all.device(), 3),
        Err(DeviceTransposeError::Transpose(
            TransposeError::ElementSize { bytes: 3 }
        ))
    ));
}

#[test]
fn graphs_and_streams_at_once() {
    let Some((transposer, stream)) = gpu("graphs_and_streams_at_once") else {
        return;
    };
    let from = Layout::new(1000, 777);
    let input = numbered::<u16>(777_000);
    let mut expected = vec![0; 777_000];
    Transposer::new()
        .transpose(&input, &from, &mut expected, &from.transposed())
        .unwrap();
    let input = Buffer::from_slice(&stream, &input).unwrap();
    let other = Stream::new(transposer.device()).unwrap();
    let outputs = [(); 2].map(|()| Buffer::zeroed(&stream, 777_000).unwrap());
    // The other stream knows nothing of the zeros that this one is still writing.
    stream.synchronize().unwrap();
    let graph = Graph::capture(&stream, |stream| {
        transposer.transpose(stream, &input, &from, &outputs[0], &from.transposed())
    })
    .unwrap();
    transposer
        .transpose(&other, &input, &from, &outputs[1], &from.transposed())
        .unwrap();
    // SAFETY: the buffers live until the stream has been waited for; nothing else uses them.
    unsafe { graph.launch(&stream) }.unwrap();
    assert!(outputs[0].to_vec(&stream).unwrap() == expected);
    assert!(outputs[1].to_vec(&other).unwrap() == expected);
}

#[test]
fn what_can_not_be_is_refused() {
    let Some((transposer, stream)) = gpu("what_can_not_be_is_refused") else {
        return;
    };
    let buffer = Buffer::<u32>::zeroed(&stream, 100).unwrap();
    let square = Layout::new(5, 10);
    let refusal = |error: DeviceTransposeError| match error {
        DeviceTransposeError::Transpose(error) => error,
        other => panic!("{other}"),
    };
    let shared = transposer.transpose(
        &stream,
        buffer.range(..50),
        &square,
        buffer.range(49..),
        &square.transposed(),
    );
    assert_eq!(refusal(shared.unwrap_err()), TransposeError::Overlap);
    let short = transposer.transpose(
        &stream,
        buffer.range(..49),
        &square,
        buffer.range(50..),
        &square.transposed(),
    );
    let needed = TransposeError::Length {
        what: "input",
        needed: 50,
        len: 49,
    };
    assert_eq!(refusal(short.unwrap_err()), needed);
    let oblong = transposer.transpose_in_place(&stream, &buffer, &square);
    assert_eq!(
        refusal(oblong.unwrap_err()),
        TransposeError::NotSquare {
            rows: 5,
            columns: 10
        }
    );
    transposer
        .transpose(
            &stream,
            buffer.range(..50),
            &square,
            buffer.range(50..),
            &square.transposed(),
        )
        .unwrap();
}

/// The last PE alone has too little, or another shape: no PE transposes, none waits.
fn refused_on_every_pe(
    world: &DeviceWorld<'_>,
    transposer: &WorldTransposer<'_, '_>,
    stream: &Stream,
) {
    let (me, n) = (world.pe().my_pe(), world.pe().n_pes());
    let (rows, columns) = (64, 48);
    let last = me + 1 == n;
    let mine = rows_of(rows, n, me).len() * columns;
    let input = Buffer::<u32>::zeroed(stream, mine).unwrap();
    let len = part_len(rows, columns, n).unwrap();
    let output = world.heap().alloc::<u32>(len).unwrap();
    let short = input.range(..mine - usize::from(last));
    let refused = transposer.transpose(stream, rows, columns, short, &output);
    assert!(matches!(
        refused,
        Err(DeviceTransposeError::Transpose(TransposeError::Part { pe, what: "input", .. })) if pe == n - 1
    ));
    let fewer = columns - usize::from(last && n > 1);
    let refused = transposer.transpose(stream, rows, fewer, &input, &output);
    assert_eq!(refused.is_err(), n > 1);
    world.synchronize(stream).unwrap();
    world.heap().free(output).unwrap();
}

/// What one PE finds in its output, and what it should.
fn part_of<T: Pod + PartialEq>(
    world: &DeviceWorld<'_>,
    transposer: &WorldTransposer<'_, '_>,
    stream: &Stream,
    rows: usize,
    columns: usize,
) {
    let (me, n) = (world.pe().my_pe(), world.pe().n_pes());
    let matrix = numbered::<T>(rows * columns);
    let mut expected = vec![T::zeroed(); rows * columns];
    let from = Layout::new(rows, columns);
    Transposer::new()
        .transpose(&matrix, &from, &mut expected, &from.transposed())
        .unwrap();
    let (mine, theirs) = (rows_of(rows, n, me), rows_of(columns, n, me));
    let input =
        Buffer::from_slice(stream, &matrix[mine.start * columns..mine.end * columns]).unwrap();
    let output = world
        .heap()
        .alloc::<T>(part_len(rows, columns, n).unwrap())
        .unwrap();
    // Twice, for what one call leaves to the next.
    for _ in 0..2 {
        transposer
            .transpose(stream, rows, columns, &input, &output)
            .unwrap();
    }
    world.synchronize(stream).unwrap();
    let mut part = vec![T::zeroed(); theirs.len() * rows];
    world
        .get(stream, &mut part, output.range(..theirs.len() * rows), me)
        .unwrap();
    let same = part == expected[theirs.start * rows..theirs.end * rows];
    assert!(
        same,
        "PE {me} of {n}: {rows} x {columns} of {} bytes",
        size_of::<T>()
    );
    world.heap().free(output).unwrap();
}

#[test]
fn rows_on_the_gpus_of_several_pes() {
    if gpu("rows_on_the_gpus_of_several_pes").is_none() {
        return;
    }
    let gpus = Device::all().unwrap();
    for pes in [1, 2, 3, 4] {
        crosswarp_shmem::spmd(pes, |pe| {
            let device = gpus[pe.my_pe() % gpus.len()];
            let stream = Stream::new(&device).unwrap();
            let limit = std::time::Duration::from_secs(60);
            let world = DeviceWorld::new(pe, device, Some(256 << 20), Some(limit)).unwrap();
            let transposer = WorldTransposer::new(&world).unwrap();
            for (rows, columns) in [(1, 1), (3, 1000), (1024, 512), (511, 770), (1200, 4)] {
                every_size!(part_of(&world, &transposer, &stream, rows, columns));
            }
            refused_on_every_pe(&world, &transposer, &stream);
            part_of::<u32>(&world, &transposer, &stream, 64, 48);
            pe.barrier().unwrap();
        })
        .unwrap();
    }
}
