//! Messages between two PEs (processes) on one core and on two, by two ways of waiting. One JSON line a row.
//!
//! `library` is `signal_wait_until`, which yields at once where the other PE waits awake on the same core;
//! `spins_out` looks 2000 times before each yield, whoever else is on its core. See bench/schemes/README.md.
//!
//! ```text
//! cargo run --release -p crosswarp-shmem --example waits
//! ```

use crosswarp_shmem::{Cmp, Error, Launch, Pe, SignalOp, Sym, init, under_launcher};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, sched_yield};
use std::time::Instant;

const MESSAGES: u64 = 2000;
const BARRIERS: u32 = 2000;
const REPETITIONS: usize = 7;
/// As many as the library's waits make where each PE can have a core.
const SPINS: u32 = 2000;

#[derive(Clone, Copy)]
enum WaitScheme {
    Library,
    SpinsOut,
}

/// Where the PEs run.
#[derive(Clone, Copy)]
enum Cores {
    Same,
    Apart,
    Free,
}

struct Exchange<'a> {
    pe: &'a Pe,
    number: Sym<u64>,
    arrived: Sym<u64>,
    /// Number of the last message in either direction.
    sent: u64,
}

impl Exchange<'_> {
    fn send(&self, number: u64) {
        let other = 1 - self.pe.my_pe();
        self.pe.put_signal(
            &self.number,
            &[number],
            &self.arrived,
            number,
            SignalOp::Set,
            other,
        );
    }

    fn receive(&self, number: u64, scheme: WaitScheme) -> Result<(), Error> {
        match scheme {
            WaitScheme::Library => {
                self.pe.signal_wait_until(&self.arrived, Cmp::Eq, number)?;
            }
            WaitScheme::SpinsOut => 'out: loop {
                for _ in 0..SPINS {
                    if self.pe.signal_fetch(&self.arrived) == number {
                        break 'out;
                    }
                    std::hint::spin_loop();
                }
                sched_yield();
            },
        }
        assert_eq!(
            self.pe.g(&self.number, self.pe.my_pe()),
            number,
            "a signal overtook its data"
        );
        Ok(())
    }

    /// Microseconds one way of each message there and back.
    fn messages(&mut self, scheme: WaitScheme) -> Result<Vec<f64>, Error> {
        self.pe.barrier()?;
        let mut times = Vec::new();
        for _ in 0..MESSAGES {
            self.sent += 1;
            let start = Instant::now();
            if self.pe.my_pe() == 0 {
                self.send(self.sent);
                self.receive(self.sent, scheme)?;
            } else {
                self.receive(self.sent, scheme)?;
                self.send(self.sent);
            }
            times.push(start.elapsed().as_secs_f64() * 1e6 / 2.0);
        }
        Ok(times)
    }

    /// Microseconds of a barrier, on average.
    fn barriers(&self) -> Result<f64, Error> {
        self.pe.barrier()?;
        let start = Instant::now();
        for _ in 0..BARRIERS {
            self.pe.barrier()?;
        }
        Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(BARRIERS))
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Binds this PE to the first of the cores it may use, or to the first and the second, or to none.
fn bind(pe: &Pe, allowed: &CpuSet, cores: Cores) {
    let mut numbers = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let nth = match cores {
        Cores::Same => 0,
        Cores::Apart => pe.my_pe(),
        Cores::Free => return sched_setaffinity(None, allowed).expect("the cores had at first"),
    };
    let mut only = CpuSet::new();
    only.set(numbers.nth(nth).expect("enough cores, as `main` found"));
    sched_setaffinity(None, &only).expect("a core that was allowed");
}

fn measure(pe: &Pe) -> Result<(), Error> {
    let allowed = sched_getaffinity(None).expect("the calling thread's own cores");
    let mut exchange = Exchange {
        pe,
        number: pe.alloc_zeroed(1)?,
        arrived: pe.alloc_zeroed(1)?,
        sent: 0,
    };
    for (cores, cores_name) in [
        (Cores::Same, "same"),
        (Cores::Apart, "apart"),
        (Cores::Free, "free"),
    ] {
        bind(pe, &allowed, cores);
        let schemes = [
            (WaitScheme::Library, "library"),
            (WaitScheme::SpinsOut, "spins_out"),
        ];
        // The schemes take turns, so that what else the machine does meets both.
        let mut middles = [Vec::new(), Vec::new()];
        let mut means = [Vec::new(), Vec::new()];
        let mut barriers = Vec::new();
        for _ in 0..REPETITIONS {
            for (k, (scheme, _)) in schemes.into_iter().enumerate() {
                let mut times = exchange.messages(scheme)?;
                means[k].push(times.iter().sum::<f64>() / times.len() as f64);
                middles[k].push(median(&mut times));
            }
            barriers.push(exchange.barriers()?);
        }
        if pe.my_pe() != 0 {
            continue;
        }
        let print = |what: &str, wait: &str, times: &mut [f64], rest: String| {
            let us = median(times);
            println!(
                "{{\"scheme\":\"waits\",\"what\":\"{what}\",\"wait\":\"{wait}\",\"cores\":\"{cores_name}\",\
                 \"pes\":2,\"repetitions\":{REPETITIONS},\"us\":{us:.3},\"us_min\":{:.3},\"us_max\":{:.3}{rest}}}",
                times[0],
                times[times.len() - 1]
            );
        };
        for (k, (_, name)) in schemes.into_iter().enumerate() {
            let mean = format!(",\"us_mean\":{:.3}", median(&mut means[k]));
            print("message", name, &mut middles[k], mean);
        }
        print("barrier", "library", &mut barriers, String::new());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if under_launcher() {
        return Ok(measure(&init()?)?);
    }
    if std::thread::available_parallelism()?.get() < 2 {
        return Err("two cores are needed: with fewer the library does not spin".into());
    }
    let outcome = Launch::new(2, std::env::current_exe()?).run()?;
    match outcome.failure {
        Some(failure) => Err(failure.to_string().into()),
        None => Ok(()),
    }
}
