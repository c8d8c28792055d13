//! Measured roofs: what the machine does when nothing else is in the way.
#![allow(unsafe_code)] // Launches kernels; calls functions compiled for vectors that were found.

use std::convert::Infallible;
use std::time::Duration;

use crosswarp_cuda::{Buffer, Device, Launch, Module, Stream};

use super::error::LadderError;
use super::kernels::CEILINGS;
use crate::measure::{Plan, READ, host, in_graph, on_stream};
use crate::models::roofline::Ceilings;

/// The roofs of a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuCeilings {
    /// Reading alone, bytes a second.
    pub read: f64,
    /// Copying by the driver, bytes read and written a second.
    pub copy: f64,
    /// Fused multiply-adds in single precision, operations a second.
    pub f32_rate: f64,
    /// One dependent load from memory, seconds.
    pub latency: f64,
}

/// Bytes read, or copied: far beyond every cache.
const BYTES: usize = 1 << 30;
const ROUNDS: u32 = 256;
/// Fused multiply-adds of a thread in a round, two operations each.
const OPERATIONS: f64 = 2.0 * 8.0 * 16.0;
const CHAIN: usize = 1 << 25;
const STEPS: u32 = 4096;

impl GpuCeilings {
    /// Measures them, within a second; needs 2 GiB of the GPU's memory.
    pub fn measure(device: &Device, stream: &Stream) -> Result<Self, LadderError> {
        let plan = Plan {
            warm_up: Duration::from_millis(20),
            samples: 7,
            budget: Duration::from_millis(100),
            ..Plan::default()
        };
        let module = Module::compile(device, &CEILINGS)?;
        let sms = device.properties().multiprocessors;
        // A chain through all places: a linear congruential generator of full period.
        let pattern: Vec<u64> = (0..CHAIN as u64)
            .map(|k| (k.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x6b)) % CHAIN as u64)
            .collect();
        let source = Buffer::<u64>::new(device, BYTES / 8)?;
        for part in 0..BYTES / 8 / CHAIN {
            stream.write(source.range(part * CHAIN..(part + 1) * CHAIN), &pattern)?;
        }
        let target = Buffer::<u64>::new(device, BYTES / 8)?;
        let out = Buffer::<u64>::zeroed(stream, 1)?;

        let kernel = Module::compile(device, &READ)?.function("read")?;
        let launch = Launch::new(&kernel).block(512).grid(sms * 8).prepare()?;
        let quads = (BYTES / 16) as u64;
        // SAFETY: the kernel reads `quads` times 16 bytes of `source` and writes at most 4 of `out`; all
        // live to the end of this function, which every measurement of it does not outlast.
        let read = unsafe {
            in_graph(
                &plan,
                stream,
                None,
                |stream, _| -> Result<(), LadderError> {
                    Ok(launch.launch(stream, (&source, quads, &out))?)
                },
            )
        }?;

        // Not in a graph, where the driver leaves copies to the copy engines, which are slower.
        let copy = on_stream(&plan, stream, None, |stream, _| {
            stream.copy(&target, &source)
        })?;

        let kernel = module.function("arithmetic")?;
        let (threads, blocks) = (512, sms * 4);
        let launch = Launch::new(&kernel).block(threads).grid(blocks).prepare()?;
        // SAFETY: the kernel writes at most 4 bytes of `out`, which lives to the end of this function.
        let arithmetic = unsafe {
            in_graph(
                &plan,
                stream,
                None,
                |stream, _| -> Result<(), LadderError> {
                    Ok(launch.launch(stream, (0.5f32, 0.25f32, ROUNDS, &out))?)
                },
            )
        }?;
        let operations = OPERATIONS * f64::from(ROUNDS) * f64::from(threads) * f64::from(blocks);

        let kernel = module.function("chase")?;
        let launch = Launch::new(&kernel).prepare()?;
        stream.zero(&out)?;
        // SAFETY: the kernel reads elements of `source` whose numbers are below CHAIN, as all its values
        // and the first place are, and writes 8 bytes of `out`.
        let chase = unsafe {
            in_graph(
                &plan,
                stream,
                None,
                |stream, _| -> Result<(), LadderError> {
                    Ok(launch.launch(stream, (&source, STEPS, &out))?)
                },
            )
        }?;
        Ok(Self {
            // A roof is the best that was seen.
            read: BYTES as f64 / read.min,
            copy: 2.0 * BYTES as f64 / copy.min,
            f32_rate: operations / arithmetic.min,
            latency: chase.median / f64::from(STEPS),
        })
    }

    /// The roof of problems that read far more than they write.
    pub fn reading(&self) -> Ceilings {
        Ceilings {
            bandwidth: self.read,
            rate: self.f32_rate,
        }
    }

    /// The roof of problems that write as much as they read.
    pub fn copying(&self) -> Ceilings {
        Ceilings {
            bandwidth: self.copy,
            rate: self.f32_rate,
        }
    }
}

/// The roofs of a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostCeilings {
    /// Reading alone on all threads, bytes a second.
    pub read: f64,
    /// Copying on all threads, bytes read and written a second.
    pub copy: f64,
    /// Fused multiply-adds in single precision on all threads, operations a second.
    pub f32_rate: f64,
    /// Threads used.
    pub threads: usize,
}

/// Bytes for all threads together: beyond the caches of most machines.
const HOST_BYTES: usize = 256 << 20;
const HOST_ROUNDS: usize = 20_000;
const CHAINS: usize = 128;

vectorised! {
    /// The bits of all of `x`, so that all of it is read.
    fn read(x: &[u64]) -> u64 {
        let mut all = [0u64; 64];
        for chunk in x.chunks_exact(64) {
            for k in 0..64 {
                all[k] ^= chunk[k];
            }
        }
        all.iter().fold(0, |a, b| a ^ b)
    }
}

vectorised! {
    fn arithmetic(a: f32, b: f32) -> f32 {
        let mut x = [1.0f32; CHAINS];
        for _ in 0..HOST_ROUNDS {
            for value in &mut x {
                *value = value.mul_add(a, b);
            }
        }
        x.iter().sum()
    }
}

impl HostCeilings {
    /// Measures them on `threads` threads, within a second.
    pub fn measure(threads: usize) -> Self {
        let plan = Plan {
            warm_up: Duration::from_millis(50),
            samples: 7,
            budget: Duration::from_millis(250),
            ..Plan::default()
        };
        let words = HOST_BYTES / 8 / 2 / threads / 64 * 64;
        let mut parts: Vec<(Vec<u64>, Vec<u64>)> = (0..threads)
            .map(|_| ((0..words as u64).collect(), vec![1; words]))
            .collect();
        let mut on_all = |work: &(dyn Fn(&mut Vec<u64>, &mut Vec<u64>) + Sync)| {
            let Ok(time) = host(&plan, |_| {
                std::thread::scope(|scope| {
                    for (a, b) in &mut parts {
                        scope.spawn(move || work(a, b));
                    }
                });
                Ok::<_, Infallible>(())
            });
            // A roof is the best that was seen.
            time.min
        };
        let bytes = (words * 8 * 2 * threads) as f64;
        let read_time = on_all(&|a, b| {
            std::hint::black_box(read(a) ^ read(b));
        });
        let copy_time = on_all(&|a, b| b.copy_from_slice(std::hint::black_box(a)));
        let rate_time = on_all(&|_, _| {
            std::hint::black_box(arithmetic(std::hint::black_box(0.5), 0.25));
        });
        Self {
            read: bytes / read_time,
            copy: bytes / copy_time,
            f32_rate: (2 * CHAINS * HOST_ROUNDS * threads) as f64 / rate_time,
            threads,
        }
    }

    /// The roof of problems that read far more than they write.
    pub fn reading(&self) -> Ceilings {
        Ceilings {
            bandwidth: self.read,
            rate: self.f32_rate,
        }
    }

    /// The roof of problems that write as much as they read.
    pub fn copying(&self) -> Ceilings {
        Ceilings {
            bandwidth: self.copy,
            rate: self.f32_rate,
        }
    }

    /// The better of two measurements of the same machine, of each roof.
    pub fn best(&self, other: &Self) -> Self {
        Self {
            read: self.read.max(other.read),
            copy: self.copy.max(other.copy),
            f32_rate: self.f32_rate.max(other.f32_rate),
            threads: self.threads,
        }
    }

    fn text(&self, what: &str) -> String {
        format!(
            "{what}, measured on {} threads, or the best rung",
            self.threads
        )
    }

    /// What [`reading`](Self::reading) is.
    pub fn text_reading(&self) -> String {
        self.text("a loop that only reads")
    }

    /// What [`copying`](Self::copying) is.
    pub fn text_copying(&self) -> String {
        self.text("a copy, bytes read and written")
    }

    /// What the rate is.
    pub fn text_arithmetic(&self) -> String {
        self.text("a copy; fused multiply-adds in vectors")
    }
}
