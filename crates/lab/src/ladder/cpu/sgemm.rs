//! Matrix products on the processor.
#![allow(unsafe_code)] // Calls functions compiled for vectors that were found.

use super::super::inputs::{check_product, factor_rows, product_work};
use super::super::rung::RungKind;
use super::ladder_run::{LadderRun, RungSpec, on_threads};

/// Row times column.
fn naive(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    for (row, out) in c.chunks_exact_mut(n).enumerate() {
        for (column, value) in out.iter_mut().enumerate() {
            let mut sum = 0.0;
            for k in 0..n {
                sum += a[row * n + k] * b[k * n + column];
            }
            *value = sum;
        }
    }
}

/// Rows of b are added to the row of c, a multiple of each.
fn by_rows(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    for (row, out) in c.chunks_exact_mut(n).enumerate() {
        out.fill(0.0);
        for k in 0..n {
            let factor = a[row * n + k];
            for (value, b) in out.iter_mut().zip(&b[k * n..(k + 1) * n]) {
                *value += factor * b;
            }
        }
    }
}

const ROWS: usize = 4;
const COLUMNS: usize = 64;

vectorised! {
    /// Blocks of 4 rows and 64 columns of c stay in registers; n is a multiple of 128.
    fn in_registers(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
        for (band, out) in c.chunks_exact_mut(ROWS * n).enumerate() {
            for left in (0..n).step_by(COLUMNS) {
                let mut sum = [[0.0f32; COLUMNS]; ROWS];
                for k in 0..n {
                    let row = &b[k * n + left..k * n + left + COLUMNS];
                    for (r, sum) in sum.iter_mut().enumerate() {
                        let factor = a[(band * ROWS + r) * n + k];
                        for (value, b) in sum.iter_mut().zip(row) {
                            *value = factor.mul_add(*b, *value);
                        }
                    }
                }
                for (r, sum) in sum.iter().enumerate() {
                    out[r * n + left..r * n + left + COLUMNS].copy_from_slice(sum);
                }
            }
        }
    }
}

fn threads(a: &[f32], b: &[f32], c: &mut [f32], n: usize, threads: usize) {
    let rows = n.div_ceil(threads).next_multiple_of(ROWS);
    let parts = a.chunks(rows * n).zip(c.chunks_mut(rows * n)).collect();
    on_threads(parts, |(a, c): (&[f32], &mut [f32])| {
        in_registers(a, b, c, n)
    });
}

/// c = a · b.
type Product<'p> = dyn Fn(&[f32], &[f32], &mut [f32]) + 'p;

pub fn run(run: &mut LadderRun) {
    let n = run.size();
    run.group = format!("product of two {n} x {n} matrices, f32");
    let (a, b) = (factor_rows(0..n, n, 0), factor_rows(0..n, n, 1));
    let mut c = vec![0.0f32; n * n];
    let count = run.threads;
    let mut rung = |name, why, product: &Product| {
        let spec = RungSpec {
            name,
            kind: RungKind::Textbook,
            why,
            work: product_work(n),
        };
        c.fill(f32::NAN);
        run.rung(
            spec,
            &mut c,
            |c| product(std::hint::black_box(&a), std::hint::black_box(&b), c),
            |c| check_product(&a, &b, c, n),
        );
    };
    rung(
        "naive",
        "Down a column of b every load is of another line, and the sum is one chain.",
        &|a, b, c| naive(a, b, c, n),
    );
    rung(
        "by rows",
        "The inner loop runs along rows of b and c, so it vectorises; c is loaded and stored each time.",
        &|a, b, c| by_rows(a, b, c, n),
    );
    rung(
        "in registers",
        "A block of c stays in registers, and each load of b serves four rows.",
        &|a, b, c| in_registers(a, b, c, n),
    );
    rung("threads", "Every core has its rows of c.", &|a, b, c| {
        threads(a, b, c, n, count)
    });
}
