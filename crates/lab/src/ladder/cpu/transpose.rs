//! Transposes on the processor.

use crosswarp_prim::{Layout, Transposer};

use super::super::inputs::{check_transpose, element, transpose_work};
use super::super::rung::RungKind;
use super::ladder_run::{LadderRun, RungSpec, on_threads};

fn along_rows(to: &mut [f32], from: &[f32], n: usize) {
    for row in 0..n {
        for column in 0..n {
            to[column * n + row] = from[row * n + column];
        }
    }
}

fn along_columns(to: &mut [f32], from: &[f32], n: usize) {
    for (column, out) in to.chunks_exact_mut(n).enumerate() {
        for (row, value) in out.iter_mut().enumerate() {
            *value = from[row * n + column];
        }
    }
}

const TILE: usize = 16;

/// Rows `first..` of the result, tile by tile.
fn tiled(to: &mut [f32], from: &[f32], n: usize, first: usize) {
    for (band, rows) in to.chunks_mut(TILE * n).enumerate() {
        let left = first + band * TILE;
        for top in (0..n).step_by(TILE) {
            for (column, out) in rows.chunks_exact_mut(n).enumerate() {
                let height = TILE.min(n - top);
                for (row, value) in out[top..top + height].iter_mut().enumerate() {
                    *value = from[(top + row) * n + left + column];
                }
            }
        }
    }
}

fn threads(to: &mut [f32], from: &[f32], n: usize, threads: usize) {
    // Whole tiles for each thread.
    let rows = n.div_ceil(threads).next_multiple_of(TILE);
    let parts = to.chunks_mut(rows * n).enumerate().collect();
    on_threads(parts, |(number, part): (usize, &mut [f32])| {
        tiled(part, from, n, number * rows);
    });
}

pub fn run(run: &mut LadderRun) {
    let n = run.size();
    run.group = format!("transpose of {n} x {n} f32");
    let from: Vec<f32> = (0..n * n).map(element).collect();
    let mut to = vec![0.0f32; n * n];
    let count = run.threads;
    use RungKind::{Crosswarp, Textbook};
    let mut rung = |name, kind, why, transpose: &dyn Fn(&mut [f32], &[f32])| {
        let spec = RungSpec {
            name,
            kind,
            why,
            work: transpose_work(n),
        };
        to.fill(f32::NAN);
        run.rung(
            spec,
            &mut to,
            |to| transpose(to, std::hint::black_box(&from)),
            |to| check_transpose(to, n),
        );
    };
    rung(
        "reading rows",
        Textbook,
        "Each store goes to another line, which is gone from the cache before its next element.",
        &|to, from| along_rows(to, from, n),
    );
    rung(
        "writing rows",
        Textbook,
        "The same for the loads, of which more are in flight than of stores.",
        &|to, from| along_columns(to, from, n),
    );
    rung(
        "tiles",
        Textbook,
        "Tiles of 16 x 16: a line is used whole while it is in the cache.",
        &|to, from| tiled(to, from, n, 0),
    );
    rung(
        "threads",
        Textbook,
        "Every core has its rows of the result; from here the memory is the limit.",
        &|to, from| threads(to, from, n, count),
    );
    let layout = Layout::new(n, n);
    let transposer = Transposer::new().threads(count);
    rung(
        "crosswarp",
        Crosswarp,
        "Tiles transposed in vector registers, and stores that pass the caches by.",
        // Both layouts are those of n × n elements, so there is no error; the check would show it.
        &|to, from| drop(transposer.transpose(from, &layout, to, &layout)),
    );
}
