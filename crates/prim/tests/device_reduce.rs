//! Reductions on a GPU: the CPU's bits, for every operation and type. Without a GPU (or NVRTC) each test
//! says by name that it was skipped.
#![allow(unsafe_code)] // Runs graphs and expressions.

use crosswarp_cuda::{Buffer, Device, Graph, Nvrtc, Stream, skip};
use crosswarp_prim::cuda::{DeviceReducer, PIECE_BYTES, Segments};
use crosswarp_prim::{DType, Element, Op, ReduceError, Reducer, Value};
use crosswarp_shmem::spmd;
use half::{bf16, f16};

struct Gpu {
    device: Device,
    stream: Stream,
    reducer: DeviceReducer,
}

fn gpu(test: &str) -> Option<Gpu> {
    if let Err(reason) = Device::count() {
        skip::skip_gpu(test, 1, format!("no GPU: {reason}"));
        return None;
    }
    if let Err(reason) = Nvrtc::get() {
        skip::skip_gpu(test, 1, reason);
        return None;
    }
    let device = Device::get(0).unwrap();
    Some(Gpu {
        device,
        stream: Stream::new(&device).unwrap(),
        reducer: DeviceReducer::new(&device),
    })
}

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Values of one kind, from random bits.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Of similar size, either sign.
    Ordinary,
    /// Of all sizes, finite.
    Finite,
    /// Any bits: NaNs and infinities too.
    Bits,
    /// Subnormal, or −0.0.
    Tiny,
    /// Each value again with the other sign.
    Cancelling,
    /// Near the end of the range: leaves overflow.
    Huge,
    /// Squares of `f32` underflow, those of some values or of all.
    Small,
    /// Ordinary ones, but for a few that are infinite or NaN.
    Rare,
}

const KINDS: [Kind; 7] = [
    Kind::Ordinary,
    Kind::Finite,
    Kind::Bits,
    Kind::Tiny,
    Kind::Cancelling,
    Kind::Huge,
    Kind::Small,
];

fn make<T: Element>(kind: Kind, len: usize, seed: u64) -> Vec<T> {
    let mut random = random(seed);
    let width = 8 * size_of::<T>() as u32;
    let sign = 1u64 << (width - 1);
    // (bits of the fraction, bits of 1.0) of the floating-point formats.
    let format = match T::DTYPE {
        DType::F16 => Some((10, 0x3c00)),
        DType::Bf16 => Some((7, 0x3f80)),
        DType::F32 => Some((23, 0x3f80_0000)),
        DType::F64 => Some((52, 0x3ff0_0000_0000_0000u64)),
        _ => None,
    };
    let mut one = || {
        let bits = random() >> (64 - width);
        let Some((fraction, one)) = format else {
            return match kind {
                Kind::Tiny => bits & 1,
                Kind::Ordinary | Kind::Rare => bits & 0x7f,
                _ => bits,
            };
        };
        let mantissa = bits & ((1 << fraction) - 1);
        match kind {
            Kind::Rare if random().is_multiple_of(100_000) => {
                let exponents = (sign - 1) >> fraction;
                (bits & sign) | exponents << fraction | u64::from(bits & 0x300 == 0)
            }
            Kind::Ordinary | Kind::Rare => (bits & sign) | one | mantissa,
            Kind::Bits => bits,
            Kind::Tiny if bits & 0x70 == 0 => (bits & sign) | (mantissa & 0xf),
            Kind::Tiny => sign,
            Kind::Huge => {
                let exponents = (sign - 1) >> fraction;
                (bits & sign) | (exponents - 1 - random() % 3) << fraction | mantissa
            }
            Kind::Small => {
                let below = 58 + random() % 12;
                (bits & sign) | (one >> fraction).saturating_sub(below) << fraction | mantissa
            }
            Kind::Finite | Kind::Cancelling => {
                let exponents = (sign - 1) >> fraction;
                let exponent = (random() >> 20) % exponents;
                (bits & sign) | exponent << fraction | mantissa
            }
        }
    };
    let mut bits: Vec<u64> = (0..len).map(|_| one()).collect();
    if let (Kind::Cancelling, Some(_)) = (kind, format) {
        for k in 0..len / 2 {
            bits[len - 1 - k] = bits[k] ^ sign;
        }
    }
    bits.into_iter().map(T::from_bits64).collect()
}

fn bits(value: &Result<Value, ReduceError>) -> Result<(DType, u64), String> {
    value
        .as_ref()
        .map(|value| (value.dtype(), value.bits()))
        .map_err(ToString::to_string)
}

/// Every operation on arrays of `len` elements, each from its offset on of a buffer.
fn check<T: Element>(gpu: &Gpu, kind: Kind, len: usize, offsets: [usize; 2]) {
    let arrays: [Vec<T>; 2] =
        std::array::from_fn(|k| make(kind, offsets[k] + len, 1 + (k + len) as u64));
    let buffers = arrays
        .each_ref()
        .map(|array| Buffer::from_slice(&gpu.stream, array).unwrap());
    let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
    for &op in Op::ALL {
        let host = [0, 1].map(|k| &arrays[k][offsets[k]..]);
        let there = [0, 1].map(|k| buffers[k].range(offsets[k]..));
        let cpu = Reducer::new().reduce(op, &host[..op.inputs()]);
        let cuda = gpu
            .reducer
            .reduce(op, &mut workspace, &there[..op.inputs()]);
        let what = format!("{op} of {len} {} {kind:?} from {offsets:?}", T::DTYPE);
        assert_eq!(bits(&cuda), bits(&cpu), "{what}");
    }
}

macro_rules! for_every_type {
    ($function:ident($($argument:expr),*)) => {
        $function::<f16>($($argument),*);
        $function::<bf16>($($argument),*);
        $function::<f32>($($argument),*);
        $function::<f64>($($argument),*);
        $function::<i8>($($argument),*);
        $function::<i16>($($argument),*);
        $function::<i32>($($argument),*);
        $function::<i64>($($argument),*);
        $function::<u8>($($argument),*);
        $function::<u16>($($argument),*);
        $function::<u32>($($argument),*);
        $function::<u64>($($argument),*);
    };
}

#[test]
fn every_operation_and_type_around_every_boundary() {
    let Some(gpu) = gpu("every_operation_and_type_around_every_boundary") else {
        return;
    };
    // Lanes, loads, leaves, units of 2-byte types, one block, one round of blocks.
    let mut lengths = vec![0, 1, 2, 3, 7, 8, 9, 31, 127, 128, 129, 1000];
    for border in [2048, 4096, 8 * 2048, 8 * 4096, 132 * 2048, 132 * 8 * 2048] {
        lengths.extend([border - 1, border, border + 1]);
    }
    lengths.extend([2 * 2048 + 77, 100_003, 1_000_000]);
    for &len in &lengths {
        for_every_type!(check(&gpu, Kind::Ordinary, len, [0; 2]));
    }
}

#[test]
fn values_of_all_kinds() {
    let Some(gpu) = gpu("values_of_all_kinds") else {
        return;
    };
    for kind in KINDS {
        for len in [5, 2048, 2050, 30_000, 700_001] {
            for_every_type!(check(&gpu, kind, len, [0; 2]));
        }
    }
}

#[test]
fn arrays_may_begin_anywhere() {
    let Some(gpu) = gpu("arrays_may_begin_anywhere") else {
        return;
    };
    // Two inputs that are as far from a multiple of 16 bytes, and that are not.
    let alike = [1, 2, 3, 5, 8, 15].map(|offset| [offset; 2]);
    for offsets in [&alike[..], &[[0, 1], [3, 0], [9, 2]]].concat() {
        for len in [0, 1, 130, 2049, 50_000, 300_000] {
            for_every_type!(check(&gpu, Kind::Ordinary, len, offsets));
        }
    }
}

#[test]
fn large_arrays() {
    let Some(gpu) = gpu("large_arrays") else {
        return;
    };
    check::<f32>(&gpu, Kind::Finite, 40_000_003, [0; 2]);
    check::<f16>(&gpu, Kind::Ordinary, 50_000_001, [0; 2]);
    check::<f64>(&gpu, Kind::Bits, 10_000_000, [1; 2]);
    check::<i32>(&gpu, Kind::Bits, 30_000_001, [0; 2]);
}

/// Every operation of an array cut at `cuts`, a PE and a GPU for each part.
fn check_team<T: Element>(kind: Kind, len: usize, cuts: &[usize]) {
    let x = make::<T>(kind, len, 7);
    let y = make::<T>(kind, len, 8);
    let mut cuts = cuts.to_vec();
    cuts.extend([0, len]);
    cuts.sort_unstable();
    let devices = Device::all().unwrap();
    let alone: Vec<_> = Op::ALL
        .iter()
        .map(|&op| Reducer::new().reduce(op, &[&x[..], &y][..op.inputs()]))
        .collect();
    let together = spmd(cuts.len() - 1, |pe| {
        let device = devices[pe.my_pe() % devices.len()];
        let stream = Stream::new(&device).unwrap();
        let reducer = DeviceReducer::new(&device);
        let mut workspace = reducer.workspace(&stream).unwrap();
        let part = cuts[pe.my_pe()]..cuts[pe.my_pe() + 1];
        let buffers = [&x, &y].map(|x| Buffer::from_slice(&stream, &x[part.clone()]).unwrap());
        let views = buffers.each_ref().map(Into::into);
        let reduce = |&op: &Op| reducer.reduce_on(pe, op, &mut workspace, &views[..op.inputs()]);
        Op::ALL.iter().map(reduce).collect::<Vec<_>>()
    })
    .unwrap();
    for (pe, results) in together.iter().enumerate() {
        for ((op, alone), together) in Op::ALL.iter().zip(&alone).zip(results) {
            let what = format!("{op} of {len} {} on PE {pe}, cuts {cuts:?}", T::DTYPE);
            assert_eq!(bits(together), bits(alone), "{what}");
        }
    }
}

#[test]
fn cuts_between_pes_do_not_show() {
    if gpu("cuts_between_pes_do_not_show").is_none() {
        return;
    }
    for (len, cuts) in [
        (5000, vec![1, 2049]),
        (100_000, vec![33_333, 66_666]),
        (2000, vec![100, 200, 200, 1999]),
        (4097, vec![2048]),
        (0, vec![0]),
    ] {
        for kind in [Kind::Ordinary, Kind::Huge, Kind::Small] {
            check_team::<f32>(kind, len, &cuts);
            check_team::<f64>(kind, len, &cuts);
        }
        check_team::<bf16>(Kind::Huge, len, &cuts);
        check_team::<f16>(Kind::Ordinary, len, &cuts);
        check_team::<u8>(Kind::Ordinary, len, &cuts);
        check_team::<i64>(Kind::Ordinary, len, &cuts);
    }
}

#[test]
fn counts_that_only_the_gpu_knows() {
    let Some(gpu) = gpu("counts_that_only_the_gpu_knows") else {
        return;
    };
    let x = make::<f32>(Kind::Ordinary, 300_000, 3);
    let there = Buffer::from_slice(&gpu.stream, &x).unwrap();
    let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
    let result = Buffer::<u64>::zeroed(&gpu.stream, 1).unwrap();
    for count in [0, 1, 2047, 20_000, 299_999, 300_000, 1 << 40] {
        let counts = Buffer::from_slice(&gpu.stream, &[count as u64]).unwrap();
        let len = count.min(x.len());
        for &op in Op::ALL {
            let inputs = [(&there).into(); 2];
            let count = Some((&counts).into());
            gpu.reducer
                .enqueue::<f32>(
                    op,
                    &mut workspace,
                    &inputs[..op.inputs()],
                    count,
                    (&result).into(),
                )
                .unwrap();
            let found = result.to_vec(&gpu.stream).unwrap()[0];
            match Reducer::new().reduce(op, &[&x[..len], &x[..len]][..op.inputs()]) {
                Ok(value) => {
                    assert_eq!(DeviceReducer::value::<f32>(op, found), value, "{op} {len}")
                }
                Err(_) => assert_eq!(found, u64::MAX, "{op} {len}"),
            }
        }
    }
}

#[test]
fn a_graph_runs_again_on_new_values() {
    let Some(gpu) = gpu("a_graph_runs_again_on_new_values") else {
        return;
    };
    let len = 200_000;
    let there = Buffer::<f32>::zeroed(&gpu.stream, len).unwrap();
    let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
    let ops = [Op::Sum, Op::Norm2, Op::Argmin, Op::Prod, Op::ExactSum];
    let results = Buffer::<u64>::zeroed(&gpu.stream, ops.len()).unwrap();
    for op in ops {
        // Compiles, and makes room for the product.
        gpu.reducer
            .reduce(op, &mut workspace, &[(&there).into()])
            .unwrap();
    }
    let graph = Graph::capture(&gpu.stream, |_| {
        for (k, &op) in ops.iter().enumerate() {
            let out = results.range(k..=k);
            gpu.reducer
                .enqueue::<f32>(op, &mut workspace, &[(&there).into()], None, out)?;
        }
        Ok::<_, ReduceError>(())
    })
    .unwrap();
    for seed in 1..5 {
        let x = make::<f32>(Kind::Ordinary, len, seed);
        gpu.stream.write(&there, &x).unwrap();
        // SAFETY: workspace, buffers and kernels outlive the run, and nothing else uses the workspace.
        unsafe { graph.launch(&gpu.stream) }.unwrap();
        let found = results.to_vec(&gpu.stream).unwrap();
        for (&op, &found) in ops.iter().zip(&found) {
            let value = Reducer::new().reduce(op, &[&x[..]]).unwrap();
            assert_eq!(DeviceReducer::value::<f32>(op, found), value, "{op} {seed}");
        }
    }
}

#[test]
fn streams_do_not_disturb_each_other() {
    let Some(gpu) = gpu("streams_do_not_disturb_each_other") else {
        return;
    };
    let x = make::<f64>(Kind::Ordinary, 500_000, 5);
    let there = Buffer::from_slice(&gpu.stream, &x).unwrap();
    let ops = [Op::Sum, Op::Max, Op::Norm2, Op::ExactSum];
    let expected = ops.map(|op| Reducer::new().reduce(op, &[&x[..]]).unwrap().bits());
    const ROUNDS: usize = 50;
    let lanes: Vec<_> = (0..4)
        .map(|_| {
            let stream = Stream::new(&gpu.device).unwrap();
            let results = Buffer::<u64>::zeroed(&stream, ROUNDS * ops.len()).unwrap();
            let workspace = gpu.reducer.workspace(&stream).unwrap();
            (stream, results, workspace)
        })
        .collect();
    let mut lanes = lanes;
    for round in 0..ROUNDS {
        for (_, results, workspace) in &mut lanes {
            for (k, &op) in ops.iter().enumerate() {
                let at = round * ops.len() + k;
                let out = results.range(at..=at);
                gpu.reducer
                    .enqueue::<f64>(op, workspace, &[(&there).into()], None, out)
                    .unwrap();
            }
        }
    }
    for (stream, results, _) in &lanes {
        for found in results.to_vec(stream).unwrap().chunks(ops.len()) {
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn host_arrays_pass_through_in_pieces() {
    let Some(gpu) = gpu("host_arrays_pass_through_in_pieces") else {
        return;
    };
    fn check<T: Element>(gpu: &Gpu, kind: Kind, len: usize) {
        let x = make::<T>(kind, len, 9);
        for &op in Op::ALL {
            let inputs = &[&x[..], &x][..op.inputs()];
            let alone = Reducer::new().reduce(op, inputs);
            let together = spmd(2, |pe| {
                let mut workspace = gpu
                    .reducer
                    .workspace(&Stream::new(&gpu.device).unwrap())
                    .unwrap();
                let part = [0..len / 3, len / 3..len][pe.my_pe()].clone();
                let parts: Vec<_> = inputs.iter().map(|x| &x[part.clone()]).collect();
                gpu.reducer.reduce_host_on(pe, op, &mut workspace, &parts)
            })
            .unwrap();
            for found in together {
                assert_eq!(bits(&found), bits(&alone), "{op} of {len} {}", T::DTYPE);
            }
        }
    }
    // More than three pieces on one PE.
    let piece = PIECE_BYTES;
    check::<f64>(&gpu, Kind::Ordinary, piece / 8 * 5 + 1000);
    check::<i16>(&gpu, Kind::Ordinary, piece / 2 * 2 + 3);
    for kind in [Kind::Ordinary, Kind::Huge, Kind::Small] {
        check::<f32>(&gpu, kind, piece / 4 * 3 + 10_000);
        check::<f32>(&gpu, kind, 10_000);
        check::<f32>(&gpu, kind, 1);
    }
}

/// Every operation of segments between `cuts`, as rows if they are `rows` long.
fn check_segments<T: Element>(gpu: &Gpu, kind: Kind, cuts: &[usize], rows: Option<usize>) {
    let len = *cuts.last().unwrap();
    let arrays = [1, 2].map(|seed| make::<T>(kind, len, seed));
    let buffers = arrays
        .each_ref()
        .map(|array| Buffer::from_slice(&gpu.stream, array).unwrap());
    let offsets: Vec<u64> = cuts.iter().map(|&cut| cut as u64).collect();
    let offsets = Buffer::from_slice(&gpu.stream, &offsets).unwrap();
    let results = Buffer::<u64>::zeroed(&gpu.stream, cuts.len() - 1).unwrap();
    let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
    for &op in Op::ALL {
        let views = buffers.each_ref().map(Into::into);
        let segments = match rows {
            Some(columns) => Segments::Rows(columns),
            None => Segments::Offsets((&offsets).into()),
        };
        let inputs = &views[..op.inputs()];
        let mut enqueue = || {
            let results = (&results).into();
            gpu.reducer
                .enqueue_segments::<T>(op, &mut workspace, inputs, segments, results)
        };
        if op == Op::Prod || (op == Op::ExactSum && T::DTYPE.is_float()) {
            assert!(matches!(enqueue(), Err(ReduceError::NotSegmented { .. })));
            continue;
        }
        // Twice: the first leaves the state as it found it.
        enqueue().unwrap();
        enqueue().unwrap();
        let found = results.to_vec(&gpu.stream).unwrap();
        for (k, (cut, &found)) in cuts.windows(2).zip(&found).enumerate() {
            let parts = arrays.each_ref().map(|array| &array[cut[0]..cut[1]]);
            let what = format!("{op} of segment {k}, {cut:?}, {} {kind:?}", T::DTYPE);
            match Reducer::new().reduce(op, &parts[..op.inputs()]) {
                Ok(value) => {
                    let found = DeviceReducer::value::<T>(op, found);
                    assert_eq!(
                        (found.dtype(), found.bits()),
                        (value.dtype(), value.bits()),
                        "{what}"
                    );
                }
                Err(_) => assert_eq!(found, u64::MAX, "{what}"),
            }
        }
        // Results behind one another have the low bytes.
        let mut enqueue = |narrow: &Buffer<u32>| {
            let workspace = &mut workspace;
            gpu.reducer.enqueue_segments_as::<T, u32>(
                op,
                workspace,
                inputs,
                segments,
                narrow.into(),
            )
        };
        let narrow = Buffer::zeroed(&gpu.stream, found.len()).unwrap();
        enqueue(&narrow).unwrap();
        let low: Vec<u32> = found.iter().map(|&bits| bits as u32).collect();
        assert!(
            narrow.to_vec(&gpu.stream).unwrap() == low,
            "{op} of {}",
            T::DTYPE
        );
    }
}

fn rows(columns: usize, rows: usize) -> Vec<usize> {
    (0..=rows).map(|k| k * columns).collect()
}

#[test]
fn segments_have_the_bits_of_arrays_of_their_own() {
    let Some(gpu) = gpu("segments_have_the_bits_of_arrays_of_their_own") else {
        return;
    };
    let mut random = random(99);
    let mut cut = |lengths: &mut dyn Iterator<Item = usize>| {
        let mut cuts = vec![0];
        for length in lengths {
            cuts.push(cuts.last().unwrap() + random() as usize % (length + 1));
        }
        cuts
    };
    let tiny = cut(&mut std::iter::repeat_n(40, 5000));
    // Mostly tiny, some of several leaves, few huge.
    let uneven = cut(&mut (0..3000).map(|k| match k % 1000 {
        17 => 600_000,
        k if k % 100 == 5 => 20_000,
        _ => 8,
    }));
    let mixed = [0, 0, 3, 3, 2051, 10_000, 10_001, 500_000, 500_000];
    macro_rules! check {
        ($($type:ident)*) => {$(
            check_segments::<$type>(&gpu, Kind::Ordinary, &tiny, None);
            check_segments::<$type>(&gpu, Kind::Ordinary, &uneven, None);
            check_segments::<$type>(&gpu, Kind::Bits, &mixed, None);
            for kind in [Kind::Huge, Kind::Small] {
                check_segments::<$type>(&gpu, kind, &tiny, None);
                check_segments::<$type>(&gpu, kind, &uneven, None);
                check_segments::<$type>(&gpu, kind, &mixed, None);
            }
            check_segments::<$type>(&gpu, Kind::Cancelling, &mixed, None);
            check_segments::<$type>(&gpu, Kind::Ordinary, &rows(4096, 70), Some(4096));
            check_segments::<$type>(&gpu, Kind::Bits, &rows(300_001, 3), Some(300_001));
            check_segments::<$type>(&gpu, Kind::Finite, &rows(5, 300), Some(5));
            // Few rows, which warps share.
            check_segments::<$type>(&gpu, Kind::Ordinary, &rows(10_007, 10), Some(10_007));
        )*};
    }
    check!(f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);
    // Rows of a few leaves: so many that a warp has each, and few.
    for kind in KINDS.into_iter().chain([Kind::Rare]) {
        for count in [700, 9] {
            // Most begin at no 16 bytes; the last leaf of the second is shorter than what lies before these.
            check_segments::<f32>(&gpu, kind, &rows(4101, count), Some(4101));
            check_segments::<f64>(&gpu, kind, &rows(4097, count), Some(4097));
            check_segments::<f16>(&gpu, kind, &rows(5001, count), Some(5001));
            check_segments::<i64>(&gpu, kind, &rows(4100, count), Some(4100));
        }
    }
}

#[test]
fn many_short_rows_have_the_bits_of_arrays_of_their_own() {
    let Some(gpu) = gpu("many_short_rows_have_the_bits_of_arrays_of_their_own") else {
        return;
    };
    // More than a GPU has warps at a time, of each number of threads a row, aligned to each load and to none.
    let many = 9001;
    for columns in [
        1, 2, 3, 10, 12, 16, 17, 20, 32, 33, 36, 64, 65, 66, 68, 127, 128, 129, 132,
    ] {
        check_segments::<f32>(&gpu, Kind::Ordinary, &rows(columns, many), Some(columns));
        check_segments::<i16>(&gpu, Kind::Bits, &rows(columns, many), Some(columns));
        check_segments::<f64>(&gpu, Kind::Ordinary, &rows(columns, many), Some(columns));
    }
    for columns in [16, 31, 48, 100, 300, 512] {
        check_segments::<f16>(&gpu, Kind::Ordinary, &rows(columns, many), Some(columns));
        check_segments::<bf16>(&gpu, Kind::Bits, &rows(columns, many), Some(columns));
        check_segments::<u8>(&gpu, Kind::Bits, &rows(columns, many), Some(columns));
        check_segments::<i64>(&gpu, Kind::Bits, &rows(columns, many), Some(columns));
    }
    // Rows that their threads leave to warps: in some blocks more than these note, in others few.
    for kind in KINDS.into_iter().chain([Kind::Rare]) {
        for columns in [7, 40, 130] {
            check_segments::<f32>(&gpu, kind, &rows(columns, many), Some(columns));
            check_segments::<f64>(&gpu, kind, &rows(columns, many), Some(columns));
        }
    }
    // So many rows that only smaller warps can have all of them at once, on some GPU.
    for count in [1500, 2500, 3000] {
        check_segments::<f32>(&gpu, Kind::Ordinary, &rows(2100, count), Some(2100));
        check_segments::<f64>(&gpu, Kind::Rare, &rows(700, count), Some(700));
    }
    // The last row is not whole.
    let mut cuts = rows(20, many);
    *cuts.last_mut().unwrap() -= 3;
    check_segments::<f32>(&gpu, Kind::Ordinary, &cuts, Some(20));
}

/// Every operation of the columns of matrices of this shape.
fn check_columns<T: Element>(gpu: &Gpu, kind: Kind, shape: [usize; 3]) {
    check_columns_from::<T>(gpu, kind, shape, 0);
}

/// The same of matrices that begin with element `offset` of a buffer.
fn check_columns_from<T: Element>(
    gpu: &Gpu,
    kind: Kind,
    [batch, rows, columns]: [usize; 3],
    offset: usize,
) {
    let whole = [3, 4].map(|seed| make::<T>(kind, offset + batch * rows * columns, seed));
    let buffers = whole
        .each_ref()
        .map(|array| Buffer::from_slice(&gpu.stream, array).unwrap());
    let arrays = whole.each_ref().map(|array| &array[offset..]);
    let results = Buffer::<u64>::zeroed(&gpu.stream, batch * columns).unwrap();
    let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
    for &op in Op::ALL {
        let views = buffers.each_ref().map(|buffer| buffer.range(offset..));
        let mut enqueue = || {
            let (inputs, results) = (&views[..op.inputs()], (&results).into());
            let (workspace, shape) = (&mut workspace, [batch, rows, columns]);
            gpu.reducer
                .enqueue_columns::<T, u64>(op, workspace, inputs, shape, results)
        };
        if op == Op::Prod || (op == Op::ExactSum && T::DTYPE.is_float()) {
            assert!(matches!(enqueue(), Err(ReduceError::NotSegmented { .. })));
            continue;
        }
        enqueue().unwrap();
        let found = results.to_vec(&gpu.stream).unwrap();
        // The first, the last, and some between.
        for s in (0..found.len()).filter(|s| s % 7 == 0 || s + 1 == found.len()) {
            let (matrix, column) = (s / columns, s % columns);
            let parts = arrays.each_ref().map(|array| {
                let part = array[matrix * rows * columns + column..].iter();
                part.step_by(columns)
                    .take(rows)
                    .copied()
                    .collect::<Vec<T>>()
            });
            let slices = parts.each_ref().map(|part| &part[..]);
            let expected = Reducer::new().reduce(op, &slices[..op.inputs()]).unwrap();
            let found = DeviceReducer::value::<T>(op, found[s]);
            assert_eq!(
                (found.dtype(), found.bits()),
                (expected.dtype(), expected.bits()),
                "{op} of column {s} of {batch} × {rows} × {columns} from {offset}, {} {kind:?}",
                T::DTYPE
            );
        }
    }
}

#[test]
fn columns_have_the_bits_of_arrays_of_their_own() {
    let Some(gpu) = gpu("columns_have_the_bits_of_arrays_of_their_own") else {
        return;
    };
    macro_rules! check {
        ($($type:ident)*) => {$(
            for shape in [[1, 1, 1], [1, 7, 33], [3, 129, 5], [2, 2048, 40], [1, 2049, 64], [1, 70_001, 3], [1, 9000, 100]] {
                check_columns::<$type>(&gpu, Kind::Ordinary, shape);
            }
            // From one thread for a column to 128, and a block for the parts of one.
            for shape in [[1, 10, 600], [2, 16, 300], [1, 17, 300], [3, 40, 90], [1, 300, 70], [1, 3000, 10], [1, 5000, 7],
                [1, 5000, 4], [1, 5000, 2], [1, 5000, 1], [1, 530_000, 2]] {
                check_columns::<$type>(&gpu, Kind::Ordinary, shape);
            }
            for kind in [Kind::Huge, Kind::Small, Kind::Bits, Kind::Cancelling] {
                check_columns::<$type>(&gpu, kind, [2, 10, 37]);
                check_columns::<$type>(&gpu, kind, [2, 100, 37]);
                check_columns::<$type>(&gpu, kind, [1, 5000, 3]);
                check_columns::<$type>(&gpu, kind, [2, 5000, 3]);
                check_columns::<$type>(&gpu, kind, [1, 5000, 37]);
            }
        )*};
    }
    check!(f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);
}

/// Narrow and wide matrices, and elements that are loaded one, two or four at a time: by where matrices begin, how long
/// rows are, and where the last one ends.
#[test]
fn columns_of_every_width_from_anywhere() {
    let Some(gpu) = gpu("columns_of_every_width_from_anywhere") else {
        return;
    };
    macro_rules! check {
        ($($type:ident)*) => {$(
            for columns in 1..=40 {
                for (batch, rows) in [(1, 2049), (3, 131), (2, 18)] {
                    check_columns::<$type>(&gpu, Kind::Ordinary, [batch, rows, columns]);
                }
            }
            for columns in [1, 6, 7, 12, 34, 36, 40] {
                for offset in 1..4 {
                    let rows = 2051 + columns;
                    check_columns_from::<$type>(&gpu, Kind::Ordinary, [1, rows, columns], offset);
                    check_columns_from::<$type>(&gpu, Kind::Ordinary, [2, 140, columns], offset);
                    check_columns_from::<$type>(&gpu, Kind::Ordinary, [2, 9, columns], offset);
                }
            }
            // Several narrow parts for a block; parts added up by one, some, and all threads of a warp.
            for kind in [Kind::Ordinary, Kind::Bits, Kind::Huge] {
                check_columns::<$type>(&gpu, kind, [300, 500, 3]);
                check_columns::<$type>(&gpu, kind, [1, 9000, 35]);
                check_columns::<$type>(&gpu, kind, [1, 60_000, 2]);
            }
        )*};
    }
    check!(f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);
    // So much that parts are added up by a launch of their own.
    check_columns::<f32>(&gpu, Kind::Ordinary, [1, 4500, 1000]);
    check_columns::<i64>(&gpu, Kind::Ordinary, [1, 1_100_000, 2]);
    // Blocks that go from columns to columns, on any GPU, with and without a slow way.
    for kind in [Kind::Ordinary, Kind::Rare, Kind::Bits] {
        check_columns::<f32>(&gpu, kind, [1, 3, 600_002]);
        check_columns::<f64>(&gpu, kind, [2, 2, 150_001]);
        check_columns::<f16>(&gpu, kind, [1, 2, 600_001]);
        check_columns::<f16>(&gpu, kind, [1, 2, 1_200_004]);
        check_columns::<i32>(&gpu, kind, [3, 2, 200_001]);
    }
    // Few parts of long columns take a slow way.
    check_columns::<f32>(&gpu, Kind::Rare, [1, 700_000, 2]);
    check_columns::<f64>(&gpu, Kind::Rare, [1, 700_000, 2]);
    check_columns::<f32>(&gpu, Kind::Rare, [1, 40_000, 40]);
    check_columns::<f64>(&gpu, Kind::Rare, [1, 40_000, 40]);
    // Each number of rows for which a thread may have all rows, or some of them.
    for rows in 1..=260 {
        check_columns::<f32>(&gpu, Kind::Ordinary, [1, rows, 36]);
        check_columns::<f64>(&gpu, Kind::Ordinary, [1, rows, 35]);
        check_columns::<f16>(&gpu, Kind::Ordinary, [2, rows, 34]);
    }
}

/// Sums of wide matrices that have a kernel of their own: more than 16 MiB, and so many columns that no multiprocessor of a
/// large GPU is idle. Of one part and two, where elements are loaded one, two or four at a time.
#[test]
fn columns_of_large_wide_matrices() {
    let Some(gpu) = gpu("columns_of_large_wide_matrices") else {
        return;
    };
    macro_rules! check {
        ($($type:ident)*) => {$(
            for shape in [[1, 140, 62_000], [1, 2050, 9600], [1, 2050, 9601], [2, 2060, 5003]] {
                check_columns::<$type>(&gpu, Kind::Ordinary, shape);
            }
            for kind in [Kind::Rare, Kind::Bits, Kind::Huge] {
                check_columns_from::<$type>(&gpu, kind, [1, 2050, 9602], 2);
            }
        )*};
    }
    check!(f16 bf16 f32 f64);
}

/// Each number of threads for a column, and totals by a block, of values that are computed again. Small, for it also runs
/// under compute-sanitizer.
#[test]
fn few_rows_and_few_columns() {
    let Some(gpu) = gpu("few_rows_and_few_columns") else {
        return;
    };
    for kind in [Kind::Ordinary, Kind::Huge, Kind::Bits] {
        for shape in [
            [1, 10, 300],
            [1, 30, 70],
            [1, 50, 70],
            [1, 2100, 9],
            [1, 2100, 5],
            [1, 2100, 3],
            [1, 2100, 34],
            [1, 530_000, 1],
        ] {
            check_columns::<f32>(&gpu, kind, shape);
        }
        check_columns::<f64>(&gpu, kind, [1, 530_000, 1]);
        check_columns::<i16>(&gpu, kind, [1, 530_000, 1]);
    }
}

/// Offsets that go down are no segments; then the results mean nothing, but neither memory nor later calls suffer.
#[test]
fn offsets_that_go_down_do_no_harm() {
    let Some(gpu) = gpu("offsets_that_go_down_do_no_harm") else {
        return;
    };
    let len = 1 << 20;
    let x = Buffer::from_slice(&gpu.stream, &make::<f32>(Kind::Ordinary, len, 3)).unwrap();
    let sawtooth: Vec<u64> = (0..=5000)
        .map(|k| if k % 2 == 0 { 0 } else { 2 * len as u64 })
        .collect();
    let offsets = Buffer::from_slice(&gpu.stream, &sawtooth).unwrap();
    let results = Buffer::<u64>::zeroed(&gpu.stream, 5000).unwrap();
    let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
    for op in [Op::Sum, Op::Argmin] {
        let mut enqueue = |segments, results| {
            gpu.reducer
                .enqueue_segments::<f32>(op, &mut workspace, &[(&x).into()], segments, results)
                .unwrap();
        };
        enqueue(Segments::Offsets((&offsets).into()), (&results).into());
        let whole = results.to_vec(&gpu.stream).unwrap()[0];
        enqueue(Segments::Rows(len), results.range(..1));
        assert_eq!(results.to_vec(&gpu.stream).unwrap()[0], whole, "{op}");
    }
}

#[test]
fn expressions_of_elements_are_summed() {
    let Some(gpu) = gpu("expressions_of_elements_are_summed") else {
        return;
    };
    fn check<T: Element>(gpu: &Gpu, len: usize, expression: &str, f: impl Fn(T) -> T::Sum)
    where
        T::Sum: Element,
    {
        let x = make::<T>(Kind::Ordinary, len, 4);
        let there = Buffer::from_slice(&gpu.stream, &x).unwrap();
        let result = Buffer::<u64>::zeroed(&gpu.stream, 1).unwrap();
        let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
        // SAFETY: the expressions below compute and do nothing else.
        unsafe {
            gpu.reducer.enqueue_expression::<T>(
                expression,
                &mut workspace,
                (&there).into(),
                (&result).into(),
            )
        }
        .unwrap();
        let found = result.to_vec(&gpu.stream).unwrap()[0];
        let terms: Vec<T::Sum> = x.into_iter().map(f).collect();
        let expected = Reducer::new().reduce(Op::Sum, &[&terms[..]]).unwrap();
        assert_eq!(found, expected.bits(), "{expression} of {len}");
    }
    for len in [1, 2049, 300_001] {
        check::<f32>(&gpu, len, "x * x * x - 1", |x| x * x * x - 1.0);
        check::<f64>(&gpu, len, "sqrt(x < 0 ? -x : x)", |x| x.abs().sqrt());
        check::<f16>(&gpu, len, "x > 0 ? x : 0", |x| x.to_f32().max(0.0));
    }
    let there = Buffer::<f32>::zeroed(&gpu.stream, 4).unwrap();
    let result = Buffer::<u64>::zeroed(&gpu.stream, 1).unwrap();
    let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
    let (there, result) = ((&there).into(), (&result).into());
    // SAFETY: it does not compile.
    let enqueued = unsafe {
        gpu.reducer
            .enqueue_expression::<f32>("y +", &mut workspace, there, result)
    };
    let error = enqueued.unwrap_err();
    assert!(error.to_string().contains("error"), "{error}");
}

#[test]
fn wrong_inputs_are_refused() {
    let Some(gpu) = gpu("wrong_inputs_are_refused") else {
        return;
    };
    let there = Buffer::from_slice(&gpu.stream, &[1.0f32, 2.0, 3.0]).unwrap();
    let mut workspace = gpu.reducer.workspace(&gpu.stream).unwrap();
    let mut reduce = |op, inputs: &[_]| gpu.reducer.reduce::<f32>(op, &mut workspace, inputs);
    let whole = there.range(..);
    assert!(matches!(
        reduce(Op::Dot, &[whole]),
        Err(ReduceError::Inputs {
            expected: 2,
            got: 1,
            ..
        })
    ));
    assert!(matches!(
        reduce(Op::Dot, &[whole, whole.range(1..)]),
        Err(ReduceError::Length {
            left: 3,
            right: 2,
            ..
        })
    ));
    assert_eq!(
        reduce(Op::Min, &[whole.range(3..)]),
        Err(ReduceError::Empty { op: Op::Min })
    );
    let empty = reduce(Op::Sum, &[whole.range(3..)]).unwrap();
    assert_eq!(empty.bits(), 0);
}
