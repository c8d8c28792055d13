//! Latency and bandwidth of the one-sided verbs, signals and collectives, for threads and processes:
//! `cargo bench -p crosswarp-shmem`. PE 0 measures; the others serve what it asks for. A bare flag there and
//! back and a barrier that only spins are measured beside them.
#![allow(unsafe_code)] // the raw layer is measured too; addresses are those of live objects

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use crosswarp_shmem::op::Sum;
use crosswarp_shmem::{Cmp, Launch, Lock, Pe, SignalOp, Sym, Team, ThreadWorld};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::cell::Cell;
use std::hint::black_box;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::time::{Duration, Instant};

const HEAP_BYTES: usize = 64 << 20;

/// What the serving PEs take part in, `count` times.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Request {
    Done = 1,
    Barrier,
    PingPong,
    BareFlag,
    SumOne,
    SumMany,
    AlltoallSmall,
    AlltoallLarge,
    TeamSync,
    SpinningBarrier,
    BroadcastSmall,
    BroadcastLarge,
    FcollectSmall,
    FetchAdd,
    Lock,
}

const REQUESTS: [Request; 15] = [
    Request::Done,
    Request::Barrier,
    Request::PingPong,
    Request::BareFlag,
    Request::SumOne,
    Request::SumMany,
    Request::AlltoallSmall,
    Request::AlltoallLarge,
    Request::TeamSync,
    Request::SpinningBarrier,
    Request::BroadcastSmall,
    Request::BroadcastLarge,
    Request::FcollectSmall,
    Request::FetchAdd,
    Request::Lock,
];

struct Bench<'a> {
    pe: &'a Pe,
    /// Request, count, sequence number.
    request: Sym<u64>,
    signal: Sym<u64>,
    source: Sym<f64>,
    dest: Sym<f64>,
    bytes: Sym<u8>,
    /// One word for each PE.
    flags: Sym<u64>,
    /// Number of the last spinning barrier.
    spun: Cell<u64>,
    lock: Lock,
    team: Team<'a>,
}

impl<'a> Bench<'a> {
    fn new(pe: &'a Pe) -> Self {
        Self {
            pe,
            request: pe.alloc_zeroed(3).unwrap(),
            signal: pe.alloc_zeroed(1).unwrap(),
            source: pe.alloc_zeroed(65_536).unwrap(),
            dest: pe.alloc_zeroed(65_536).unwrap(),
            bytes: pe.alloc_zeroed(4 << 20).unwrap(),
            flags: pe.alloc_zeroed(pe.n_pes()).unwrap(),
            spun: Cell::new(0),
            lock: pe.alloc_lock().unwrap(),
            team: pe.world().split_strided(0, 1, pe.n_pes()).unwrap().unwrap(),
        }
    }

    fn run(&self, request: Request, count: u64) {
        let (pe, n) = (self.pe, self.pe.n_pes());
        for i in 1..=count {
            match request {
                Request::Done => {}
                Request::Barrier => pe.barrier().unwrap(),
                Request::PingPong if pe.my_pe() == 0 => {
                    pe.signal(&self.signal, i, SignalOp::Set, 1);
                    pe.signal_wait_until(&self.signal, Cmp::Eq, i).unwrap();
                }
                Request::PingPong if pe.my_pe() == 1 => {
                    pe.signal_wait_until(&self.signal, Cmp::Eq, i).unwrap();
                    pe.signal(&self.signal, i, SignalOp::Set, 0);
                }
                Request::PingPong => {}
                // The machine's floor: a flag there and back, nothing but stores and loads.
                Request::BareFlag => {
                    let (me, flag) = (pe.my_pe(), self.signal.at(0));
                    if me == 0 {
                        pe.atomic_set(flag, i, 1);
                    }
                    while me < 2 && pe.atomic_fetch(flag, me) != i {
                        std::hint::spin_loop();
                    }
                    if me == 1 {
                        pe.atomic_set(flag, i, 0);
                    }
                }
                Request::SumOne => self.sum(1),
                Request::SumMany => self.sum(65_536),
                Request::AlltoallSmall => self.alltoall(n),
                Request::AlltoallLarge => self.alltoall(8192 * n),
                Request::TeamSync => self.team.sync().unwrap(),
                Request::SpinningBarrier => self.spinning_barrier(),
                Request::BroadcastSmall => self.broadcast(1),
                Request::BroadcastLarge => self.broadcast(8192),
                Request::FcollectSmall => {
                    let (dest, source) = (self.dest.range(..n), self.source.range(..1));
                    pe.world().fcollect(dest, source).unwrap();
                }
                Request::FetchAdd => {
                    black_box(pe.atomic_fetch_add(self.signal.at(0), 1, 0));
                }
                Request::Lock => drop(pe.lock(&self.lock).unwrap()),
            }
        }
    }

    fn sum(&self, len: usize) {
        let (dest, source) = (self.dest.range(..len), self.source.range(..len));
        self.pe.world().reduce(dest, source, Sum).unwrap();
    }

    fn broadcast(&self, len: usize) {
        let (dest, source) = (self.dest.range(..len), self.source.range(..len));
        self.pe.world().broadcast(dest, source, 0).unwrap();
    }

    /// What a library does that never gives the core away.
    fn spinning_barrier(&self) {
        let (pe, me) = (self.pe, self.pe.my_pe());
        let number = self.spun.get() + 1;
        self.spun.set(number);
        for other in 0..pe.n_pes() {
            pe.atomic_set(self.flags.at(me), number, other);
        }
        for other in 0..pe.n_pes() {
            while pe.atomic_fetch(self.flags.at(other), me) < number {
                std::hint::spin_loop();
            }
        }
    }

    fn alltoall(&self, len: usize) {
        let (dest, source) = (self.dest.range(..len), self.source.range(..len));
        self.pe.world().alltoall(dest, source).unwrap();
    }

    /// Asks the others in and takes part; the time of `count` turns.
    fn measure(&self, sequence: &mut u64, request: Request, count: u64) -> Duration {
        *sequence += 1;
        self.pe.write(&self.signal, &[0]);
        for other in 1..self.pe.n_pes() {
            self.pe.p(self.signal.at(0), 0, other);
            self.pe
                .put(self.request.range(..2), &[request as u64, count], other);
            self.pe
                .signal(self.request.at(2), *sequence, SignalOp::Set, other);
        }
        if matches!(request, Request::Done) {
            return Duration::ZERO;
        }
        self.pe.barrier().unwrap();
        let start = Instant::now();
        self.run(request, count);
        let time = start.elapsed();
        self.pe.barrier().unwrap();
        time
    }

    fn serve(&self) {
        for sequence in 1.. {
            let arrived = self.request.at(2);
            self.pe
                .signal_wait_until(arrived, Cmp::Eq, sequence)
                .unwrap();
            let mut words = [0; 2];
            self.pe.read(&mut words, self.request.range(..2));
            match REQUESTS[words[0] as usize - 1] {
                Request::Done => return,
                request => {
                    self.pe.barrier().unwrap();
                    self.run(request, words[1]);
                    self.pe.barrier().unwrap();
                }
            }
        }
    }
}

/// The verbs by address, in the heap and in a registered segment, as the C interface calls them.
fn raw(pe: &Pe, segment: Option<*mut u64>, group: &mut BenchmarkGroup<'_, WallTime>) {
    let heap = pe.raw().heap().cast::<u64>();
    for (place, word) in [("heap", Some(heap)), ("segment", segment)] {
        let Some(word) = word else { continue };
        let raw = pe.raw();
        // SAFETY: the first words of the heap, which hold the request of a server that now waits for a
        // change of the third, and of the segment.
        unsafe {
            group.bench_function(format!("raw p 8 B, {place}"), |b| {
                b.iter(|| raw.p(black_box(word), black_box(1), 1));
            });
            group.bench_function(format!("raw put 8 B + quiet, {place}"), |b| {
                b.iter(|| {
                    let source = [1u64];
                    raw.put(
                        black_box(word).cast(),
                        source.as_ptr().cast(),
                        black_box(8),
                        1,
                    );
                    pe.quiet().unwrap();
                });
            });
            group.bench_function(format!("raw g 8 B, {place}"), |b| {
                b.iter(|| raw.g(black_box(word), 1));
            });
            group.bench_function(format!("raw fetch_add, {place}"), |b| {
                b.iter(|| raw.atomic_fetch_add(black_box(word), 1, 1));
            });
        }
    }
}

/// A page of every process as a segment beside the heap.
fn segment(pe: &mut Pe) -> *mut u64 {
    let memory = crosswarp_shmem::raw::memfd("crosswarp-bench", 4096).unwrap();
    let (read, write) = (ProtFlags::READ, ProtFlags::WRITE);
    // SAFETY: a fresh mapping of the file just made, which stays; it is registered as what it is.
    unsafe {
        let base = mmap(null_mut(), 4096, read | write, MapFlags::SHARED, &memory, 0);
        let base = NonNull::new(base.unwrap()).unwrap().cast::<u8>();
        pe.register_segment(base, 4096, memory.as_fd()).unwrap();
        base.as_ptr().cast()
    }
}

/// What every PE of a world does; `name` heads the results. `segment`: a word in one.
fn bench(pe: &Pe, name: &str, segment: Option<*mut u64>) {
    let bench = Bench::new(pe);
    if pe.my_pe() != 0 {
        return bench.serve();
    }
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .sample_size(20)
        .configure_from_args();
    let mut group = criterion.benchmark_group(name);
    let mut sequence = 0;
    let mut together = vec![
        ("barrier", Request::Barrier),
        ("barrier, spinning", Request::SpinningBarrier),
    ];
    if pe.n_pes() == 2 {
        let word = bench.request.at(0);
        let float = bench.source.at(0);
        group.bench_function("p 8 B", |b| b.iter(|| pe.p(float, black_box(1.0), 1)));
        group.bench_function("put 8 B + quiet", |b| {
            b.iter(|| {
                pe.put(float, black_box(&[1.0]), 1);
                pe.quiet().unwrap();
            });
        });
        group.bench_function("get 8 B", |b| b.iter(|| pe.g(black_box(float), 1)));
        group.bench_function("fetch_add", |b| b.iter(|| pe.atomic_fetch_add(word, 0, 1)));
        group.bench_function("lock + unlock", |b| {
            b.iter(|| drop(pe.lock(&bench.lock).unwrap()));
        });
        raw(pe, segment, &mut group);
        for bytes in [8usize, 512, 32 << 10, 4 << 20] {
            let mut local = vec![1u8; bytes];
            group.throughput(Throughput::Bytes(bytes as u64));
            group.bench_function(BenchmarkId::new("put", bytes), |b| {
                b.iter(|| pe.put(bench.bytes.range(..bytes), black_box(&local), 1));
            });
            group.bench_function(BenchmarkId::new("get", bytes), |b| {
                b.iter(|| pe.get(black_box(&mut local), bench.bytes.range(..bytes), 1));
            });
            let other = local.clone();
            group.bench_function(BenchmarkId::new("memcpy", bytes), |b| {
                b.iter(|| black_box(&mut local).copy_from_slice(black_box(&other)));
            });
        }
        together.extend([
            ("signal ping-pong (round trip)", Request::PingPong),
            ("bare flag ping-pong (round trip)", Request::BareFlag),
            ("sum of 1 double", Request::SumOne),
            ("sum of 65536 doubles", Request::SumMany),
            ("alltoall 8 B", Request::AlltoallSmall),
            ("alltoall 64 KiB", Request::AlltoallLarge),
            ("sync of a team", Request::TeamSync),
            ("broadcast 8 B", Request::BroadcastSmall),
            ("broadcast 64 KiB", Request::BroadcastLarge),
            ("fcollect 8 B", Request::FcollectSmall),
            ("fetch_add, contended", Request::FetchAdd),
            ("lock + unlock, contended", Request::Lock),
        ]);
    }
    group.finish();
    // A group of its own: these have no throughput.
    let mut group = criterion.benchmark_group(format!("{name}, together"));
    for (name, request) in together {
        group.bench_function(name, |b| {
            b.iter_custom(|count| bench.measure(&mut sequence, request, count));
        });
    }
    group.finish();
    bench.measure(&mut sequence, Request::Done, 0);
    criterion.final_summary();
}

fn main() {
    if crosswarp_shmem::under_launcher() {
        let mut pe = crosswarp_shmem::init().unwrap();
        let segment = segment(&mut pe);
        return bench(&pe, &format!("processes x{}", pe.n_pes()), Some(segment));
    }
    // Four and eight PEs on a machine with fewer cores: waiting must give the core away.
    for n in [2, 4, 8] {
        let world = ThreadWorld::new(n).heap_bytes(HEAP_BYTES);
        world
            .spmd(|pe| bench(pe, &format!("threads x{n}"), None))
            .unwrap();
        let outcome = Launch::new(n, std::env::current_exe().unwrap())
            .args(std::env::args_os().skip(1))
            .heap_bytes(HEAP_BYTES)
            .run()
            .unwrap();
        assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap());
    }
}
