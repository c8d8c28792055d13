//! Transpositions on the CPU against the definition, element by element.

use bytemuck::Pod;
use crosswarp_prim::{Layout, Simd, TransposeError, Transposer, part_len, rows_of};
use proptest::prelude::*;

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

/// `output` with the transposed matrices in it: the definition.
fn expected<T: Pod>(input: &[T], from: &Layout, output: &[T], to: &Layout) -> Vec<T> {
    let mut output = output.to_vec();
    for b in 0..from.batch {
        for row in 0..from.rows {
            for column in 0..from.columns {
                output[b * to.batch_stride + column * to.leading_dimension + row] =
                    input[b * from.batch_stride + row * from.leading_dimension + column];
            }
        }
    }
    output
}

fn out_of_place<T: Pod + PartialEq + std::fmt::Debug>(
    [rows, columns, batch]: [usize; 3],
    [pad_in, pad_out, gap, skip]: [usize; 4],
    threads: usize,
) {
    let from = Layout::new(rows, columns)
        .with_leading_dimension(columns + pad_in)
        .with_batch(batch);
    let from = from.with_batch_stride(from.batch_stride + gap);
    let to = Layout::new(columns, rows)
        .with_leading_dimension(rows + pad_out)
        .with_batch(batch);
    // `skip` elements before the matrix: rows that begin at any place within a cache line.
    let input = numbered::<T>(skip + from.span().unwrap());
    let before = numbered::<T>(skip + to.span().unwrap() + 3);
    let expected = expected(&input[skip..], &from, &before[skip..], &to);
    for simd in Simd::available() {
        let mut output = before.clone();
        let transposer = Transposer::new().simd(simd).threads(threads);
        transposer
            .transpose(&input[skip..], &from, &mut output[skip..], &to)
            .unwrap();
        assert!(output[skip..] == expected[..], "{simd}: {from:?} to {to:?}");
        assert_eq!(output[..skip], before[..skip]);
    }
}

fn in_place<T: Pod + PartialEq + std::fmt::Debug>(
    n: usize,
    pad: usize,
    batch: usize,
    threads: usize,
) {
    let layout = Layout::new(n, n)
        .with_leading_dimension(n + pad)
        .with_batch(batch);
    let before = numbered::<T>(layout.span().unwrap() + 1);
    let expected = expected(&before, &layout, &before, &layout);
    for simd in Simd::available() {
        let mut array = before.clone();
        let transposer = Transposer::new().simd(simd).threads(threads);
        transposer.transpose_in_place(&mut array, &layout).unwrap();
        assert!(array == expected, "{simd}: {layout:?}");
    }
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

#[test]
fn shapes_around_every_tile() {
    for side in [1, 15, 16, 17, 63, 64, 65, 129] {
        for other in [1, 31, 32, 33, 64, 127] {
            every_size!(out_of_place([side, other, 1], [0, 0, 0, 0], 1));
            every_size!(out_of_place([other, side, 1], [3, 1, 0, 1], 1));
        }
        every_size!(in_place(side, 0, 1, 1));
        every_size!(in_place(side, 5, 2, 1));
    }
    // Longer than a run and wider than a band of the smallest elements.
    every_size!(out_of_place([1100, 70, 1], [1, 0, 0, 0], 1));
    every_size!(out_of_place([70, 4200, 1], [0, 3, 0, 0], 1));
    every_size!(in_place(513, 1, 1, 1));
}

#[test]
fn the_leading_dimension_of_a_single_row_may_be_any() {
    let row = Layout::new(1, 3).with_leading_dimension(usize::MAX);
    let column = Layout::new(3, 1).with_leading_dimension(2);
    let mut output = [0u32; 5];
    let transposer = Transposer::new();
    assert_eq!(
        transposer.transpose(&[1, 2, 3], &row, &mut output, &column),
        Ok(())
    );
    assert_eq!(output, [1, 0, 2, 0, 3]);
    let mut back = [0; 3];
    assert_eq!(
        transposer.transpose(&output, &column, &mut back, &row),
        Ok(())
    );
    assert_eq!(back, [1, 2, 3]);
    let one = Layout::new(1, 1).with_leading_dimension(usize::MAX);
    assert_eq!(transposer.transpose_in_place(&mut [7u32], &one), Ok(()));
}

#[test]
fn large_outputs_go_past_the_caches_and_over_threads() {
    out_of_place::<u8>([3001, 3003, 1], [0, 0, 0, 0], 3);
    out_of_place::<u16>([2048, 2304, 1], [0, 0, 0, 0], 2);
    out_of_place::<u32>([1500, 1537, 1], [1, 1, 0, 1], 3);
    out_of_place::<u64>([40, 130, 300], [0, 0, 7, 0], 4);
    out_of_place::<u128>([700, 900, 1], [0, 0, 0, 1], 2);
    in_place::<u32>(1601, 3, 1, 3);
    in_place::<u64>(100, 0, 120, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_layout(
        shape in [0usize..90, 0usize..90, 0usize..4],
        pads in [0usize..9, 0usize..9, 0usize..9, 0usize..9],
    ) {
        every_size!(out_of_place(shape, pads, 1));
    }

    #[test]
    fn any_square(n in 0usize..150, pad in 0usize..9, batch in 0usize..4) {
        every_size!(in_place(n, pad, batch, 1));
    }
}

fn distributed<T: Pod + PartialEq + Send + Sync + std::fmt::Debug>(
    rows: usize,
    columns: usize,
    pes: usize,
) {
    let matrix = numbered::<T>(rows * columns);
    let (from, to) = (Layout::new(rows, columns), Layout::new(columns, rows));
    let expected = expected(&matrix, &from, &vec![T::zeroed(); rows * columns], &to);
    let parts = crosswarp_shmem::spmd(pes, |pe| {
        let output = pe
            .alloc::<T>(part_len(rows, columns, pes).unwrap())
            .unwrap();
        let mine = rows_of(rows, pes, pe.my_pe());
        let input = &matrix[mine.start * columns..mine.end * columns];
        Transposer::new()
            .transpose_on(pe, rows, columns, input, &output)
            .unwrap();
        let mut part = vec![T::zeroed(); rows_of(columns, pes, pe.my_pe()).len() * rows];
        pe.read(
            &mut part,
            output.range(..rows_of(columns, pes, pe.my_pe()).len() * rows),
        );
        part
    });
    assert!(
        parts.unwrap().concat() == expected,
        "{rows} x {columns} on {pes}"
    );
}

#[test]
fn rows_on_several_pes() {
    for pes in [1, 2, 3, 5] {
        for (rows, columns) in [(1, 1), (7, 3), (100, 260), (4500, 3)] {
            every_size!(distributed(rows, columns, pes));
        }
    }
}

#[test]
fn pes_that_disagree_all_hear_of_it() {
    let outcomes = crosswarp_shmem::spmd(2, |pe| {
        let output = pe.alloc::<u32>(8).unwrap();
        let rows = 2 + 2 * pe.my_pe();
        let shape = Transposer::new().transpose_on(pe, rows, 4, &[0; 16], &output);
        let short = vec![0; 4 - pe.my_pe()];
        let part = Transposer::new().transpose_on(pe, 2, 4, &short, &output);
        let good = Transposer::new().transpose_on(pe, 2, 4, &[1; 4], &output);
        (shape, part, good)
    });
    let mismatch = TransposeError::Mismatch {
        rows: 2,
        columns: 4,
        pe: 1,
        other_rows: 4,
        other_columns: 4,
    };
    let part = TransposeError::Part {
        pe: 1,
        what: "input",
        needed: 4,
        len: 3,
    };
    for outcome in outcomes.unwrap() {
        assert_eq!(outcome, (Err(mismatch.clone()), Err(part.clone()), Ok(())));
    }
}

#[test]
fn what_is_wrong_is_said_and_nothing_written() {
    let check = |from: Layout, to: Layout, lens: [usize; 2], message: &str| {
        let mut output = vec![7u16; lens[1]];
        let error = Transposer::new()
            .transpose(&vec![1u16; lens[0]], &from, &mut output, &to)
            .unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(output.iter().all(|&value| value == 7));
    };
    let (m, t) = (Layout::new(3, 4), Layout::new(4, 3));
    check(
        m,
        t,
        [11, 12],
        "the input has 11 elements, its layout needs 12",
    );
    check(
        m,
        t,
        [12, 11],
        "the output has 11 elements, its layout needs 12",
    );
    check(
        m,
        m,
        [12, 12],
        "input of (matrices, rows, columns) [1, 3, 4] and output of [1, 3, 4]: rows and columns must be exchanged, the number of matrices equal",
    );
    check(
        m.with_leading_dimension(3),
        t,
        [12, 12],
        "leading dimension 3 is smaller than the 4 columns",
    );
    check(
        m.with_batch(2).with_batch_stride(11),
        t.with_batch(2),
        [24, 24],
        "batch stride 11 is smaller than a matrix, 12 elements",
    );
    check(
        m.with_leading_dimension(usize::MAX / 2),
        t,
        [12, 12],
        "the matrices have more elements than can be addressed",
    );
    let three = Transposer::new().transpose(
        &[[0u8; 3]; 4],
        &Layout::new(2, 2),
        &mut [[0u8; 3]; 4],
        &Layout::new(2, 2),
    );
    assert_eq!(three, Err(TransposeError::ElementSize { bytes: 3 }));
    let oblong = Transposer::new().transpose_in_place(&mut [0u8; 12], &m);
    assert_eq!(
        oblong,
        Err(TransposeError::NotSquare {
            rows: 3,
            columns: 4
        })
    );
}
