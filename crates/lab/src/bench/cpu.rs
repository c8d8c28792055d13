//! Measuring processors: the verbs between PEs, sums, histograms, transpositions and solves, with plain loops beside
//! them. The rows of the CPU tables in docs/performance.md.

use std::hint::black_box;
use std::time::Instant;

use crosswarp_prim::histogram::{Bins, Histogram};
use crosswarp_prim::{Layout, Reducer, Transposer};
use crosswarp_shmem::op::Sum;
use crosswarp_shmem::{Cmp, Pe, SignalOp};

use super::error::BenchError;
use super::jacobi::{JacobiProblem, timed};
use crate::measure::{Row, Timing, fixed_runs};

/// Samples of a row that takes microseconds.
const SAMPLES: u32 = 31;
/// Of one that takes longer.
const FEW: u32 = 9;
/// Elements of a collective of many.
const MANY: usize = 65_536;
/// Bytes from each PE to each in an exchange.
const EXCHANGED: usize = 64 << 10;

/// Measures the rows of a processor, on the PEs of a world: PE 0 shows them. `side`: of the plane that is solved.
/// Collective.
///
/// # Errors
/// Those of the heap and of the collectives, and the solver's.
pub fn cpu(pe: &Pe, side: usize, world: &str, mut show: impl FnMut(Row)) -> Result<(), BenchError> {
    let mut rows = Rows {
        pe,
        world,
        show: &mut |row| {
            if pe.my_pe() == 0 {
                show(row);
            }
        },
    };
    rows.verbs()?;
    rows.collectives()?;
    rows.arrays()?;
    for problem in [JacobiProblem::Line, JacobiProblem::Plane(side)] {
        let solved = timed(pe, None, problem)?;
        rows.row(&solved.name, solved.time, solved.bytes);
    }
    rows.plain_sweep(side)
}

struct Rows<'a> {
    pe: &'a Pe,
    world: &'a str,
    show: &'a mut dyn FnMut(Row),
}

impl Rows<'_> {
    fn row(&mut self, what: &str, time: Timing, bytes: usize) {
        let row = Row::new(what, time)
            .with("scope", "cpu")
            .with("pes", self.pe.n_pes())
            .with("world", self.world)
            .bytes(bytes as u64);
        (self.show)(row);
    }

    /// Seconds of a call of `work`, which all PEs make `calls` times after a barrier; PE 0's are told.
    fn together(
        &mut self,
        what: &str,
        bytes: usize,
        (samples, calls): (u32, u32),
        mut work: impl FnMut(&Pe) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let pe = self.pe;
        let time = fixed_runs(2, samples, calls, |_| -> Result<f64, BenchError> {
            pe.barrier()?;
            let start = Instant::now();
            for _ in 0..calls {
                work(pe)?;
            }
            Ok(start.elapsed().as_secs_f64() / f64::from(calls))
        })?;
        self.row(what, time, bytes);
        Ok(())
    }

    /// The same of what PE 0 does alone while the others wait.
    fn of_first(
        &mut self,
        what: &str,
        bytes: usize,
        repeat: (u32, u32),
        mut work: impl FnMut(&Pe) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        self.together(what, bytes, repeat, |pe| match pe.my_pe() {
            0 => work(pe),
            _ => Ok(()),
        })
    }

    /// Between PE 0 and PE 1, or with itself in a world of one.
    fn verbs(&mut self) -> Result<(), BenchError> {
        let (pe, other) = (self.pe, 1 % self.pe.n_pes());
        let word = pe.alloc_zeroed::<u64>(1)?;
        let repeat = (SAMPLES, 10_000);
        self.of_first("put of 8 B", 8, repeat, |pe| {
            pe.p(&word, black_box(7), other);
            Ok(())
        })?;
        self.of_first("put of 8 B + quiet", 8, repeat, |pe| {
            pe.p(&word, black_box(7), other);
            Ok(pe.quiet()?)
        })?;
        self.of_first("get of 8 B", 8, repeat, |pe| {
            black_box(pe.g(&word, other));
            Ok(())
        })?;
        self.of_first("fetch_add", 8, repeat, |pe| {
            black_box(pe.atomic_fetch_add(word.at(0), 1, other));
            Ok(())
        })?;
        let lock = pe.alloc_lock()?;
        self.of_first("lock + unlock", 8, repeat, |pe| {
            drop(pe.lock(&lock)?);
            Ok(())
        })?;
        pe.free_lock(lock)?;
        if pe.n_pes() > 1 {
            pe.write(&word, &[0]);
            let mut turn = 0;
            self.together("signal there and back", 8, (SAMPLES, 1000), |pe| {
                turn += 1;
                match pe.my_pe() {
                    0 => {
                        pe.signal(&word, turn, SignalOp::Set, 1);
                        pe.signal_wait_until(&word, Cmp::Eq, turn)?;
                    }
                    1 => {
                        pe.signal_wait_until(&word, Cmp::Eq, turn)?;
                        pe.signal(&word, turn, SignalOp::Set, 0);
                    }
                    _ => {}
                }
                Ok(())
            })?;
        }
        pe.free(word)?;
        Ok(())
    }

    fn collectives(&mut self) -> Result<(), BenchError> {
        let pe = self.pe;
        let len = MANY.max(EXCHANGED / 8 * pe.n_pes());
        let (dest, source) = (pe.alloc_zeroed::<f64>(len)?, pe.alloc_zeroed::<f64>(len)?);
        self.together("barrier", 0, (SAMPLES, 1000), |pe| Ok(pe.barrier()?))?;
        for (what, len, calls) in [("sum of 1 f64", 1, 1000), ("sum of 65,536 f64", MANY, 30)] {
            let (dest, source) = (dest.range(..len), source.range(..len));
            self.together(what, 8 * len, (SAMPLES, calls), |pe| {
                Ok(pe.world().reduce(dest, source, Sum)?)
            })?;
        }
        let all = EXCHANGED / 8 * pe.n_pes();
        let (to, from) = (dest.range(..all), source.range(..all));
        self.together("alltoall of 64 KiB", EXCHANGED, (SAMPLES, 100), |pe| {
            Ok(pe.world().alltoall(to, from)?)
        })?;
        pe.free(source)?;
        pe.free(dest)?;
        Ok(())
    }

    /// On PE 0, in one thread.
    fn arrays(&mut self) -> Result<(), BenchError> {
        let first = self.pe.my_pe() == 0;
        let of = |len: usize| if first { len } else { 0 };
        let reducer = Reducer::new();
        for (power, calls) in [(16, 1000), (27, 1)] {
            let values: Vec<f32> = (0..of(1 << power)).map(|k| (k % 1000) as f32).collect();
            let bytes = 4 << power;
            let what = format!("sum of 2^{power} f32, one thread");
            self.of_first(&what, bytes, (FEW, calls), |_| {
                black_box(reducer.sum(black_box(&values))?);
                Ok(())
            })?;
            let what = format!("the same by iter().sum(), 2^{power}");
            self.of_first(&what, bytes, (FEW, calls), |_| {
                black_box(black_box(&values).iter().sum::<f32>());
                Ok(())
            })?;
        }
        let samples: Vec<i32> = (0..of(1 << 26)).map(|k| (k * 7919 % 256) as i32).collect();
        let bins = Bins::<i32>::integers(0, 256)?;
        let histogram = Histogram::new(&bins);
        self.of_first("histogram of 2^26 i32, 256 bins", 4 << 26, (FEW, 1), |_| {
            black_box(histogram.count(&samples)?);
            Ok(())
        })?;
        let side = 4096;
        let matrix = vec![1.0f32; of(side * side)];
        let mut transposed = vec![0.0f32; of(side * side)];
        let layout = Layout::new(side, side);
        let bytes = 8 * side * side;
        self.of_first("transposition of 4096 x 4096 f32", bytes, (FEW, 1), |_| {
            Transposer::new().transpose(&matrix, &layout, &mut transposed, &layout.transposed())?;
            Ok(())
        })
    }

    /// A sweep of plain loops over a plane, each PE over its share of the rows: what temporal blocking stands beside.
    fn plain_sweep(&mut self, side: usize) -> Result<(), BenchError> {
        let pe = self.pe;
        let rows = side / pe.n_pes() + 2;
        let mut field = vec![1.0f32; rows * side];
        let mut next = field.clone();
        self.together("plain sweep", 4 * side * side, (FEW, 1), |pe| {
            for y in 1..rows - 1 {
                let at = y * side;
                let (above, here) = (&field[at - side..at], &field[at..at + side]);
                let below = &field[at + side..at + 2 * side];
                let to = &mut next[at..at + side];
                for x in 1..side - 1 {
                    to[x] = 0.25 * (here[x - 1] + here[x + 1] + above[x] + below[x]);
                }
            }
            std::mem::swap(&mut field, &mut next);
            Ok(pe.barrier()?)
        })
    }
}
