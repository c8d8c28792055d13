//! What the verbs cost between hosts, beside a TCP connection of the same two: one JSON object a row.
//!
//!     cargo build --release -p crosswarp-shmem --example network
//!     crosswarp run --hosts a,b -- target/release/examples/network [ROUNDS]
//!     CROSSWARP_NETWORK=ucx crosswarp run --hosts a,b -- target/release/examples/network
//!
//! PE 0 measures with the last PE, which is on another host, while others wait in a barrier; in rows that end in
//! `by_all` every PE works on one of the other host. Medians and means over rounds (1000), in microseconds. In
//! `…_after_300_us` and `…_to_sleepers` PEs and agents have gone to sleep before each round, 20 ms before in the latter, by when
//! processors have, too. The last row is what a host's launcher, with the agent in it, takes of a processor while all PEs
//! sleep, in percent. The programs in `bench/peers/network*` write the same rows for other libraries, but for these.

use crosswarp_shmem::{Cmp, DeliveryError, Pe, SignalOp};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const LARGE: usize = 4 << 20;
/// After so long everybody has gone to sleep; a wait that lasts sleeps for half as long as it has lasted, or until it is
/// woken. After the longer time processors have gone to sleep as well.
const NAPS: [(&str, Duration); 2] = [
    ("after_300_us", Duration::from_micros(300)),
    ("to_sleepers", Duration::from_millis(20)),
];
/// How long nobody does anything.
const IDLE: Duration = Duration::from_secs(10);

/// Median, first and third quartile and mean, in µs, of what `round` takes.
fn rounds(n: usize, mut round: impl FnMut()) -> [f64; 4] {
    let time = |_| {
        let start = Instant::now();
        round();
        start.elapsed().as_secs_f64() * 1e6
    };
    summary((0..n.max(1)).map(time).collect())
}

/// The same of these times.
fn summary(mut times: Vec<f64>) -> [f64; 4] {
    let n = times.len();
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / n as f64;
    [times[n / 2], times[n / 4], times[3 * n / 4], mean]
}

/// Rounds with naps before them.
fn naps(count: usize) -> usize {
    count.div_ceil(20)
}

/// As [`rounds`], where PE 0 takes a nap before each, which the times leave out.
fn after_naps(pe: &Pe, nap: Duration, n: usize, mut round: impl FnMut()) -> [f64; 4] {
    let time = |_| {
        if pe.my_pe() == 0 {
            std::thread::sleep(nap);
        }
        rounds(1, &mut round)[0]
    };
    summary((0..n.max(1)).map(time).collect())
}

fn row(pe: &Pe, what: &str, us: [f64; 4]) {
    if pe.my_pe() == 0 {
        let [us, low, high, mean] = us;
        // The launcher says it to all PEs.
        let network = std::env::var("CROSSWARP_NETWORK").unwrap_or_default();
        println!(
            r#"{{"what":"{what}","us":{us:.2},"quartiles":[{low:.2},{high:.2}],"mean":{mean:.2},"pes":{},"network":"{network}"}}"#,
            pe.n_pes()
        );
    }
}

/// Where PE `pe` can be reached.
fn address(hosts: &str, agents: &str, pe: usize) -> IpAddr {
    let sizes = hosts.split('+').map(|size| size.parse::<usize>().unwrap());
    let mut last = 0;
    let host = sizes.take_while(|size| {
        last += size;
        last <= pe
    });
    let agent = agents.split(',').nth(host.count()).unwrap();
    agent.parse::<std::net::SocketAddr>().unwrap().ip()
}

/// Processor time of all threads of a process so far, in seconds.
fn processor_seconds(pid: u32) -> std::io::Result<f64> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // Fields: time on a processor, time in a queue, time slices.
        let times = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let on = times.split(' ').next().and_then(|on| on.parse().ok());
        nanoseconds += on.unwrap_or(0u64);
    }
    Ok(nanoseconds as f64 * 1e-9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pe = crosswarp_shmem::init()?;
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(1000), |count| count.parse::<usize>())?;
    let there = n - 1;
    let words = pe.alloc_zeroed::<u64>(8)?;
    let large = pe.alloc_zeroed::<u8>(LARGE)?;
    let [at, signal, back] = [0, 1, 2].map(|i| words.at(i));
    pe.barrier()?;

    // A connection of their own, blocking.
    let (hosts, agents) = (
        std::env::var("CROSSWARP_HOSTS"),
        std::env::var("CROSSWARP_AGENTS"),
    );
    let (hosts, agents) = (hosts?, agents?);
    let mut stream = None;
    if me == there {
        let listener = TcpListener::bind((address(&hosts, &agents, there), 0))?;
        pe.p(words.at(3), u64::from(listener.local_addr()?.port()), 0);
        stream = Some(listener.accept()?.0);
    } else if me == 0 {
        let port = pe.wait_until(words.at(3), Cmp::Ne, 0)?;
        stream = Some(TcpStream::connect((
            address(&hosts, &agents, there),
            port as u16,
        ))?);
    }
    if let Some(stream) = &mut stream {
        stream.set_nodelay(true)?;
        let mut word = [0; 8];
        let mut ping = |first: bool| {
            if first {
                stream.write_all(&word).unwrap();
            }
            stream.read_exact(&mut word).unwrap();
            if !first {
                stream.write_all(&word).unwrap();
            }
        };
        let us = rounds(count, || ping(me == 0));
        row(&pe, "tcp_round_trip", us);
        for (name, nap) in NAPS {
            let us = after_naps(&pe, nap, naps(count), || ping(me == 0));
            row(&pe, &format!("tcp_round_trip_{name}"), us);
        }
        let mut data = vec![0; LARGE];
        let us = rounds(count / 20, || {
            if me == 0 {
                stream.write_all(&data).unwrap();
                stream.read_exact(&mut word).unwrap();
            } else {
                stream.read_exact(&mut data).unwrap();
                stream.write_all(&word).unwrap();
            }
        });
        row(&pe, "tcp_4_mib", us);
    }
    drop(stream);
    pe.barrier()?;

    if me == 0 {
        row(
            &pe,
            "get_8",
            rounds(count, || {
                pe.g(at, there);
            }),
        );
        row(
            &pe,
            "fetch_add_8",
            rounds(count, || {
                pe.atomic_fetch_add(at, 1, there);
            }),
        );
        let us = rounds(count, || {
            pe.p(at, 1, there);
            pe.quiet().unwrap();
        });
        row(&pe, "put_8_quiet", us);
        let us = rounds(count / 10, || {
            for i in 0..100 {
                pe.p(at, i, there);
            }
            pe.quiet().unwrap();
        });
        row(&pe, "puts_of_100", us.map(|us| us / 100.0));
        let mut got = [0; 100];
        let us = rounds(count / 10, || {
            let all = pe.scope(|ops| {
                for got in got.chunks_mut(1) {
                    ops.get(got, at, there);
                }
                Ok::<_, DeliveryError>(())
            });
            all.unwrap();
        });
        row(&pe, "gets_of_100", us.map(|us| us / 100.0));
        let us = rounds(count / 10, || {
            let all = pe.scope(|ops| {
                for got in &mut got {
                    ops.atomic_fetch_add(got, at, 1, there);
                }
                Ok::<_, DeliveryError>(())
            });
            all.unwrap();
        });
        row(&pe, "fetch_adds_of_100", us.map(|us| us / 100.0));
        let data = vec![1; LARGE];
        let us = rounds(count / 20, || {
            pe.put(&large, &data, there);
            pe.quiet().unwrap();
        });
        row(&pe, "put_4_mib_quiet", us);
        let mut data = vec![1; LARGE];
        row(
            &pe,
            "get_4_mib",
            rounds(count / 20, || pe.get(&mut data, &large, there)),
        );
    }
    pe.barrier()?;
    let partner = (me + n / 2) % n;
    let us = rounds(count, || {
        pe.atomic_fetch_add(at, 1, partner);
    });
    row(&pe, "fetch_add_8_by_all", us);
    pe.barrier()?;
    let us = rounds(count, || {
        pe.p(at, 1, partner);
        pe.quiet().unwrap();
    });
    row(&pe, "put_8_quiet_by_all", us);
    pe.barrier()?;
    let mut round = 0;
    if me == 0 {
        let us = rounds(count, || {
            round += 1;
            pe.put_signal(at, &[round], signal, round, SignalOp::Set, there);
            pe.signal_wait_until(back, Cmp::Eq, round).unwrap();
        });
        row(&pe, "put_signal_there_and_back", us);
    } else if me == there {
        for round in 1..=count as u64 {
            pe.signal_wait_until(signal, Cmp::Eq, round)?;
            pe.put_signal(at, &[round], back, round, SignalOp::Set, 0);
        }
    }
    pe.barrier()?;
    let us = rounds(count, || pe.barrier().unwrap());
    row(&pe, "barrier", us);

    let mut last = count as u64;
    for (name, nap) in NAPS {
        let us = after_naps(&pe, nap, naps(count), || {
            last += 1;
            if me == 0 {
                pe.put_signal(at, &[last], signal, last, SignalOp::Set, there);
                pe.signal_wait_until(back, Cmp::Eq, last).unwrap();
            } else if me == there {
                pe.signal_wait_until(signal, Cmp::Eq, last).unwrap();
                pe.put_signal(at, &[last], back, last, SignalOp::Set, 0);
            }
        });
        row(&pe, &format!("put_signal_{name}"), us);
        pe.barrier()?;
    }
    // Who has started this PE has the agent in it.
    let launcher = std::os::unix::process::parent_id();
    let before = processor_seconds(launcher)?;
    std::thread::sleep(IDLE);
    let percent = 100.0 * (processor_seconds(launcher)? - before) / IDLE.as_secs_f64();
    if me == 0 {
        println!(r#"{{"what":"idle_launcher","percent":{percent:.3},"pes":{n}}}"#);
    }
    pe.free(words)?;
    pe.free(large)?;
    Ok(())
}
