//! The stream-ordered verbs, on every kind of device world this machine can make: several PEs on one
//! GPU, several GPUs as threads, several GPUs as processes. Without a GPU each test says so by name and
//! does nothing.

#![allow(unsafe_code)] // launches graphs

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytemuck::Pod;
use crosswarp_cuda::{
    Arch, Buffer, Cache, Device, DeviceNumber, DeviceSym, DeviceTeam, DeviceWorld,
    DeviceWorldError, Graph, Launch, Module, Nccl, NcclError, Nvrtc, ON_STREAM, Options, Source,
    Stream,
};
use crosswarp_shmem::op::{self, ReduceOp};
use crosswarp_shmem::{Cmp, Launch as Processes, Pe, SignalOp, ThreadWorld};

/// A hang is a failure, not a hanging test.
const LIMIT: Duration = Duration::from_secs(20);
/// Elements per PE: below, at and above what travels in slots, odd ones, and enough for all blocks.
const LENGTHS: [usize; 7] = [1, 3, 256, 512, 513, 2051, 70_001];

struct Case<'c> {
    pe: &'c Pe,
    world: &'c DeviceWorld<'c>,
    stream: &'c Stream,
    /// The team under test and the world's PE of each of its ranks.
    team: &'c DeviceTeam,
    members: Vec<usize>,
}

/// Element `i` of what `pe` sends: small integers, so that every type holds sums and products of them.
fn value(pe: usize, i: usize) -> u32 {
    (pe * 5 + i * 3 + i / 7) as u32 % 11 + 1
}

impl Case<'_> {
    fn me(&self) -> usize {
        self.pe.my_pe()
    }

    /// Writes this PE's part of `dest` and waits.
    fn fill<T: Pod>(&self, dest: &DeviceSym<T>, values: &[T]) {
        self.world
            .put(self.stream, dest, 0, values, self.me())
            .unwrap();
    }

    /// The first `n` elements of this PE's part, after the stream's work.
    fn seen<T: Pod>(&self, what: &str, source: &DeviceSym<T>, n: usize) -> Vec<T> {
        let waited = self.world.synchronize(self.stream);
        waited.unwrap_or_else(|error| panic!("{what} on PE {}: {error}", self.me()));
        let mut values = vec![T::zeroed(); n];
        self.world
            .get(self.stream, &mut values, source, 0, self.me())
            .unwrap();
        values
    }

    fn check<T: Pod + PartialEq + std::fmt::Debug>(&self, what: &str, seen: &[T], expected: &[T]) {
        let me = self.me();
        assert_eq!(seen.len(), expected.len(), "{what} on PE {me}");
        let wrong = seen.iter().zip(expected).filter(|(a, b)| a != b).count();
        if let Some(i) = (0..seen.len()).find(|&i| seen[i] != expected[i]) {
            panic!(
                "{what} on PE {me}: {wrong} of {} wrong, first at {i}: {:?} instead of {:?}",
                seen.len(),
                seen[i],
                expected[i]
            );
        }
    }

    /// Every member is done with its buffers before the next case writes to them.
    fn meet(&self, what: &str) {
        let met = self.world.barrier_on_stream(self.stream, self.team);
        met.unwrap_or_else(|error| panic!("after {what} on PE {}: {error}", self.me()));
        let waited = self.world.synchronize(self.stream);
        waited.unwrap_or_else(|error| panic!("after {what} on PE {}: {error}", self.me()));
    }

    /// Broadcast, fcollect and alltoall of `T`s made from `value`.
    fn moves<T: Pod + PartialEq + std::fmt::Debug>(
        &self,
        dest: &DeviceSym<T>,
        source: &DeviceSym<T>,
        make: impl Fn(u32) -> T,
    ) {
        let (world, stream, team) = (self.world, self.stream, self.team);
        let (size, rank) = (self.members.len(), team.my_pe());
        assert_eq!(self.members[rank], self.me());
        let name = std::any::type_name::<T>();
        let of = |pe: usize, range: std::ops::Range<usize>| -> Vec<T> {
            range.map(|i| make(value(pe, i))).collect()
        };
        for n in LENGTHS {
            let what = format!("{n} × {name} among {:?}", self.members);
            self.fill(source, &of(self.me(), 0..n * size));
            self.fill(dest, &vec![make(77); n * size]);
            self.meet(&what);

            let root = size - 1;
            world
                .broadcast_on_stream(stream, team, dest.range(..n), source.range(..n), root)
                .unwrap();
            let seen = self.seen(&what, dest, n);
            self.check(
                &format!("broadcast {what}"),
                &seen,
                &of(self.members[root], 0..n),
            );
            self.meet(&what);

            world
                .fcollect_on_stream(stream, team, dest.range(..n * size), source.range(..n))
                .unwrap();
            let seen = self.seen(&what, dest, n * size);
            let all: Vec<T> = self.members.iter().flat_map(|&pe| of(pe, 0..n)).collect();
            self.check(&format!("fcollect {what}"), &seen, &all);
            self.meet(&what);

            let (to, from) = (dest.range(..n * size), source.range(..n * size));
            world.alltoall_on_stream(stream, team, to, from).unwrap();
            let seen = self.seen(&what, dest, n * size);
            let mine = n * rank..n * (rank + 1);
            let all: Vec<T> = self
                .members
                .iter()
                .flat_map(|&pe| of(pe, mine.clone()))
                .collect();
            self.check(&format!("alltoall {what}"), &seen, &all);
            self.meet(&what);
        }
        // An odd place, so that wide units do not fit.
        if size_of::<T>() < 8 {
            self.fill(source, &of(self.me(), 0..10));
            self.meet("odd places");
            let (to, from) = (dest.range(3..8), source.range(1..6));
            world
                .broadcast_on_stream(stream, team, to, from, 0)
                .unwrap();
            let seen = self.seen("odd places", dest, 8);
            self.check(
                "broadcast to an odd place",
                &seen[3..],
                &of(self.members[0], 1..6),
            );
            self.meet("odd places");
        }
    }

    fn reduces<T: DeviceNumber + PartialEq + std::fmt::Debug, O: ReduceOp<T>>(
        &self,
        dest: &DeviceSym<T>,
        source: &DeviceSym<T>,
        op: O,
        make: impl Fn(u32) -> T,
    ) {
        let types = (std::any::type_name::<O>(), std::any::type_name::<T>());
        for n in LENGTHS {
            let what = format!("reduce {types:?} of {n} among {:?}", self.members);
            let mine: Vec<T> = (0..n).map(|i| make(value(self.me(), i))).collect();
            let expected: Vec<T> = (0..n)
                .map(|i| {
                    let values = self.members.iter().map(|&pe| make(value(pe, i)));
                    values.reduce(O::apply).unwrap()
                })
                .collect();
            self.fill(source, &mine);
            self.meet(&what);
            let (to, from) = (dest.range(..n), source.range(..n));
            self.world
                .reduce_on_stream(self.stream, self.team, op, to, from)
                .unwrap();
            let seen = self.seen(&what, dest, n);
            self.check(&what, &seen, &expected);
            self.meet(&what);
            // In place.
            self.world
                .reduce_on_stream(self.stream, self.team, op, from, from)
                .unwrap();
            let seen = self.seen(&what, source, n);
            self.check(&format!("{what} in place"), &seen, &expected);
            self.meet(&what);
        }
    }

    fn collectives(&self) {
        let heap = self.world.heap();
        let most = LENGTHS[LENGTHS.len() - 1] * self.members.len();
        let bytes = heap.alloc::<u8>(most).unwrap();
        let more_bytes = heap.alloc::<u8>(most).unwrap();
        self.moves(&bytes, &more_bytes, |v| v as u8);
        self.pe.barrier().unwrap();
        heap.free(more_bytes).unwrap();
        heap.free(bytes).unwrap();
        macro_rules! numbers {
            ($($number:ty: $($op:ident)*;)*) => {$({
                let (dest, source) = (heap.alloc::<$number>(most).unwrap(), heap.alloc(most).unwrap());
                self.moves(&dest, &source, |v| v as $number);
                $( self.reduces(&dest, &source, op::$op, |v| v as $number - 4 as $number); )*
                self.pe.barrier().unwrap();
                heap.free(source).unwrap();
                heap.free(dest).unwrap();
            })*};
        }
        // Some values are negative, so that the order of signed types shows; unsigned ones wrap.
        numbers! {
            i32: Sum Prod Min Max And Or Xor;
            i64: Sum Prod Min Max And Or Xor;
            f32: Sum Prod Min Max;
            f64: Sum Prod Min Max;
        }
        macro_rules! unsigned {
            ($($number:ty)*) => {$({
                let (dest, source) = (heap.alloc::<$number>(most).unwrap(), heap.alloc(most).unwrap());
                let make = |v: u32| (v as $number).wrapping_sub(4);
                self.reduces(&dest, &source, op::Sum, make);
                self.reduces(&dest, &source, op::Prod, make);
                self.reduces(&dest, &source, op::Min, make);
                self.reduces(&dest, &source, op::Max, make);
                self.reduces(&dest, &source, op::And, make);
                self.reduces(&dest, &source, op::Or, make);
                self.reduces(&dest, &source, op::Xor, make);
                self.pe.barrier().unwrap();
                heap.free(source).unwrap();
                heap.free(dest).unwrap();
            })*};
        }
        unsigned!(u32 u64);
    }

    /// Ring: puts and gets from and to private and symmetric memory, plain and strided, and signals.
    fn one_sided(&self) {
        let (world, stream, me, n) = (self.world, self.stream, self.me(), self.pe.n_pes());
        let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
        let len = 100_000;
        let of = |pe: usize| -> Vec<u32> { (0..len).map(|i| value(pe, i)).collect() };
        let heap = world.heap();
        let (source, dest) = (
            heap.alloc::<u32>(len).unwrap(),
            heap.alloc::<u32>(len).unwrap(),
        );
        let signal = heap.alloc::<u64>(4).unwrap();
        let private = Buffer::from_slice(stream, &of(me)).unwrap();
        let got = Buffer::<u32>::zeroed(stream, len).unwrap();
        self.fill(&source, &of(me));
        self.fill(&dest, &vec![0; len]);
        self.fill(&signal, &[0; 4]);
        self.pe.barrier().unwrap();

        // Symmetric and private sources, each announced by a signal: set, then add.
        world
            .put_on_stream(stream, dest.range(..len / 2), source.range(..len / 2), next)
            .unwrap();
        world
            .signal_on_stream(stream, signal.at(1), 7, SignalOp::Set, next)
            .unwrap();
        world
            .put_on_stream(
                stream,
                dest.range(len / 2..),
                private.range(len / 2..),
                next,
            )
            .unwrap();
        world
            .signal_on_stream(stream, signal.at(1), 5, SignalOp::Add, next)
            .unwrap();
        world
            .signal_wait_on_stream(stream, signal.at(1), Cmp::Eq, 12)
            .unwrap();
        let seen = self.seen("put", &dest, len);
        self.check("put", &seen, &of(previous));
        world.get_on_stream(stream, &got, &source, next).unwrap();
        world.synchronize(stream).unwrap();
        self.check("get", &got.to_vec(stream).unwrap(), &of(next));
        self.pe.barrier().unwrap();

        // Every third of mine to every second of the next PE's.
        self.fill(&dest, &vec![0; len]);
        self.pe.barrier().unwrap();
        world
            .iput_on_stream(
                stream,
                dest.range(1..2001),
                2,
                source.range(..2998),
                3,
                next,
            )
            .unwrap();
        world
            .iget_on_stream(stream, &got, 4, source.range(5..1005), 5, next)
            .unwrap();
        world.barrier_on_stream(stream, world.everyone()).unwrap();
        let seen = self.seen("iput", &dest, 2001);
        let expected: Vec<u32> = (0..2001)
            .map(|i| {
                if i % 2 == 1 {
                    value(previous, i / 2 * 3)
                } else {
                    0
                }
            })
            .collect();
        self.check("iput", &seen, &expected);
        let picked: Vec<u32> = got
            .to_vec(stream)
            .unwrap()
            .into_iter()
            .step_by(4)
            .take(200)
            .collect();
        let expected: Vec<u32> = (0..200).map(|i| value(next, 5 + 5 * i)).collect();
        self.check("iget", &picked, &expected);
        // Every comparison that holds goes on.
        self.fill(&signal, &[9; 4]);
        for (how, than) in [
            (Cmp::Eq, 9),
            (Cmp::Ne, 8),
            (Cmp::Gt, 8),
            (Cmp::Ge, 9),
            (Cmp::Lt, 10),
            (Cmp::Le, 9),
        ] {
            world
                .signal_wait_on_stream(stream, signal.at(0), how, than)
                .unwrap();
        }
        self.seen("comparisons", &signal, 4);
        world.sync_on_stream(stream, world.everyone()).unwrap();
        world.synchronize(stream).unwrap();
        self.pe.barrier().unwrap();
    }

    /// Put, signal, wait, sums small and large, and a barrier, captured once and run three times.
    fn graph(&self) {
        let (world, stream, me, n) = (self.world, self.stream, self.me(), self.pe.n_pes());
        let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
        let len = 5000;
        let heap = world.heap();
        let (source, dest) = (
            heap.alloc::<i64>(len).unwrap(),
            heap.alloc::<i64>(len).unwrap(),
        );
        let sums = heap.alloc::<i64>(len).unwrap();
        let few = heap.alloc::<i64>(8).unwrap();
        let signal = heap.alloc::<u64>(1).unwrap();
        self.fill(&signal, &[0]);
        self.pe.barrier().unwrap();
        let everyone = world.everyone();
        let graph = Graph::capture(stream, |stream| -> Result<(), DeviceWorldError> {
            world.barrier_on_stream(stream, everyone)?;
            world.put_on_stream(stream, &dest, &source, next)?;
            world.signal_on_stream(stream, &signal, 1, SignalOp::Add, next)?;
            world.signal_wait_on_stream(stream, &signal, Cmp::Ge, 1)?;
            world.barrier_on_stream(stream, everyone)?;
            world.sum_on_stream(stream, everyone, &sums, &dest)?;
            world.reduce_on_stream(stream, everyone, op::Max, &few, dest.range(10..18))?;
            world.barrier_on_stream(stream, everyone)
        })
        .unwrap_or_else(|error| panic!("capture on PE {me}: {error}"));
        assert_eq!(graph.len(), 8);
        for round in 0..3 {
            let of = |pe: usize, i: usize| i64::from(value(pe, i + round));
            self.fill(&source, &(0..len).map(|i| of(me, i)).collect::<Vec<_>>());
            self.pe.barrier().unwrap();
            // SAFETY: heap, module and team outlive the run; all PEs launch.
            unsafe { graph.launch(stream) }.unwrap();
            let what = format!("graph, round {round}");
            let seen = self.seen(&what, &dest, len);
            let put: Vec<i64> = (0..len).map(|i| of(previous, i)).collect();
            self.check(&format!("{what}: put"), &seen, &put);
            let all: Vec<i64> = (0..len).map(|i| (0..n).map(|pe| of(pe, i)).sum()).collect();
            self.check(&format!("{what}: sum"), &self.seen(&what, &sums, len), &all);
            let most: Vec<i64> = (10..18)
                .map(|i| (0..n).map(|pe| of(pe, i)).max().unwrap())
                .collect();
            self.check(&format!("{what}: max"), &self.seen(&what, &few, 8), &most);
            let counted = self.seen(&what, &signal, 1)[0];
            assert_eq!(counted, round as u64 + 1, "{what}: signals");
        }
        self.pe.barrier().unwrap();
    }
}

/// A kernel of a user's that meets in a team it is given.
const MEETS: Source<'static> = Source::new(
    "meets.cu",
    r#"
    #include "pe.cuh"
    extern "C" __global__ void meets(cw::team t, int* dest, const int* source, cw::u64 n) {
        cw::sum<cw::block>(dest, source, n, t);
    }"#,
);

/// One PE's part of the whole suite, on a GPU of `sharing` PEs.
fn suite(pe: &Pe, device: Device, sharing: usize) {
    let stream = Stream::new(&device).unwrap();
    let world = DeviceWorld::new(pe, device, Some(256 << 20), Some(LIMIT)).unwrap();
    let case = Case {
        pe,
        world: &world,
        stream: &stream,
        team: world.everyone(),
        members: (0..pe.n_pes()).collect(),
    };
    case.one_sided();
    case.collectives();
    case.graph();
    teams(pe, &world, &stream);
    // The driver has 8 queues for the streams of a GPU; two waiting kernels in one would hang.
    if sharing <= 2 {
        two_worlds(pe, device, &world, &stream);
    }
}

/// The collectives with NCCL for the larger ones. Every result is exact, so the order of sums does not
/// show; lengths lie on both sides of the limit, and the bitwise operations are never NCCL's.
fn nccl_suite(pe: &Pe, device: Device) {
    let stream = Stream::new(&device).unwrap();
    let mut world = DeviceWorld::new(pe, device, Some(256 << 20), Some(LIMIT)).unwrap();
    for min_bytes in [1, 2048] {
        world.use_nccl(min_bytes).unwrap();
        let case = Case {
            pe,
            world: &world,
            stream: &stream,
            team: world.everyone(),
            members: (0..pe.n_pes()).collect(),
        };
        case.collectives();
    }
    // Not the team of all.
    teams(pe, &world, &stream);
}

/// Whether NCCL can be used here; if not, says why.
fn nccl(test: &str) -> bool {
    let reason = match (Nccl::get(), std::env::var("NCCL_NVLS_ENABLE").as_deref()) {
        (Err(reason), _) => reason.to_string(),
        (_, Ok("0")) => return true,
        _ => "NCCL_NVLS_ENABLE is not 0".into(),
    };
    println!("{test}: skipped: {reason}");
    false
}

/// A team of every second PE, from the host and in a user's kernel; the others go on meanwhile.
fn teams(pe: &Pe, world: &DeviceWorld<'_>, stream: &Stream) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let module = Module::compile(&world.device(), &MEETS).unwrap();
    world.install(&module).unwrap();
    let function = module.function("meets").unwrap();
    let prepared = world
        .prepare_together(Launch::new(&function).block(128))
        .unwrap();
    let team = world.team(0, 2, n.div_ceil(2)).unwrap();
    assert_eq!(team.is_some(), me % 2 == 0);
    let heap = world.heap();
    let len = 70_001;
    let (dest, source) = (
        heap.alloc::<i32>(2 * len * n).unwrap(),
        heap.alloc::<i32>(2 * len * n).unwrap(),
    );
    if let Some(team) = &team {
        let members: Vec<usize> = (0..n).step_by(2).collect();
        assert_eq!((team.my_pe(), team.n_pes()), (me / 2, members.len()));
        let case = Case {
            pe,
            world,
            stream,
            team,
            members,
        };
        case.moves(&dest, &source, |v| v as i32);
        case.reduces(&dest, &source, op::Sum, |v| v as i32);
        let of = |pe: usize| (0..100).map(move |i| value(pe, i) as i32);
        case.fill(&source, &of(me).collect::<Vec<_>>());
        case.meet("user kernel");
        let args = (
            team,
            heap.address_of(&dest, me),
            heap.address_of(&source, me),
            100u64,
        );
        // SAFETY: the parameters are (team, int*, const int*, u64); all of the team launch.
        unsafe { prepared.launch(stream, args) }.unwrap();
        let seen = case.seen("user kernel", &dest, 100);
        let expected: Vec<i32> = (0..100)
            .map(|i| case.members.iter().map(|&pe| value(pe, i) as i32).sum())
            .collect();
        case.check("user kernel", &seen, &expected);
        case.meet("user kernel");
    }
    pe.barrier().unwrap();
    // A team that has not this world's PEs is refused.
    assert!(
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.team(1, 1, n))).is_err()
    );
}

/// A second world beside the first, with its own heap and modules; both at work at the same time, in
/// two streams.
fn two_worlds(pe: &Pe, device: Device, first: &DeviceWorld<'_>, stream: &Stream) {
    let second = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
    let other = Stream::new(&device).unwrap();
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let len = 30_000;
    let parts = [(first, stream), (&second, &other)].map(|(world, stream)| {
        let heap = world.heap();
        let (a, b) = (
            heap.alloc::<f64>(len).unwrap(),
            heap.alloc::<f64>(len).unwrap(),
        );
        (world, stream, a, b)
    });
    for (which, (world, stream, a, _)) in parts.iter().enumerate() {
        let mine: Vec<f64> = (0..len).map(|i| f64::from(value(me + which, i))).collect();
        world.put(stream, a, 0, &mine, me).unwrap();
    }
    pe.barrier().unwrap();
    for _ in 0..10 {
        for (world, stream, a, b) in &parts {
            world.sum_on_stream(stream, world.everyone(), b, a).unwrap();
            world.barrier_on_stream(stream, world.everyone()).unwrap();
        }
    }
    for (which, (world, stream, _, b)) in parts.iter().enumerate() {
        world
            .synchronize(stream)
            .unwrap_or_else(|error| panic!("world {which}, PE {me}: {error}"));
        let mut seen = vec![0.0; len];
        world.get(stream, &mut seen, b, 0, me).unwrap();
        for (i, &sum) in seen.iter().enumerate() {
            let expected: u32 = (0..n).map(|pe| value(pe + which, i)).sum();
            assert_eq!(
                sum,
                f64::from(expected),
                "world {which}, PE {me}, element {i}"
            );
        }
    }
    // The team of one world is refused by the other.
    let mixed = std::panic::AssertUnwindSafe(|| first.barrier_on_stream(stream, second.everyone()));
    assert!(std::panic::catch_unwind(mixed).is_err());
    pe.barrier().unwrap();
}

fn devices(test: &str) -> Option<Vec<Device>> {
    match Device::all() {
        Ok(devices) => Some(devices),
        Err(reason) => {
            println!("{test}: skipped: {reason}");
            None
        }
    }
}

/// Kernels that wait must fit the GPU together: one test at a time.
static GPUS: Mutex<()> = Mutex::new(());

fn gpus() -> MutexGuard<'static, ()> {
    GPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads(n: usize, body: impl Fn(&Pe) + Sync) {
    let _alone = gpus();
    let world = ThreadWorld::new(n)
        .heap_bytes(1 << 20)
        .wait_timeout(2 * LIMIT);
    world.spmd(body).unwrap();
}

/// Runs an ignored test of this file as every PE of a process world.
fn processes(n: usize, test: &str) {
    let quietly = "exec \"$0\" --ignored --exact \"$1\" --nocapture > /dev/null";
    let program = std::env::current_exe().unwrap();
    let _alone = gpus();
    let outcome = Processes::new(n, "sh")
        .args([
            "-c".as_ref(),
            quietly.as_ref(),
            program.as_os_str(),
            test.as_ref(),
        ])
        .heap_bytes(1 << 20)
        .timeout(Duration::from_secs(300))
        .run()
        .unwrap();
    assert!(outcome.timed_out.is_none(), "{:?}", outcome.timed_out);
    assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap());
}

fn on_one_gpu(test: &str, n: usize) {
    let Some(devices) = devices(test) else { return };
    threads(n, |pe| suite(pe, devices[0], n));
}

/// Needs the compiler but no GPU; what follows needs both.
#[test]
fn compiles() {
    match Nvrtc::get() {
        Ok(_) => {
            for source in [&ON_STREAM, &MEETS] {
                let compiled = Cache::of_user().compile(source, Arch::new(9, 0), &Options::new());
                compiled.unwrap_or_else(|error| panic!("{error}"));
            }
        }
        Err(reason) => println!("compiles: skipped: {reason}"),
    }
}

#[test]
fn one_gpu_1_pe() {
    on_one_gpu("one_gpu_1_pe", 1);
}

#[test]
fn one_gpu_2_pes() {
    on_one_gpu("one_gpu_2_pes", 2);
}

#[test]
fn one_gpu_4_pes() {
    on_one_gpu("one_gpu_4_pes", 4);
}

#[test]
fn gpus_as_threads() {
    let Some(devices) = devices("gpus_as_threads") else {
        return;
    };
    if devices.len() < 2 {
        println!("gpus_as_threads: skipped: one GPU only");
        return;
    }
    threads(devices.len(), |pe| suite(pe, devices[pe.my_pe()], 1));
}

/// Refused on every PE, and the kernels go on as before.
#[test]
fn nccl_needs_a_gpu_per_pe() {
    let Some(devices) = devices("nccl_needs_a_gpu_per_pe") else {
        return;
    };
    threads(2, |pe| {
        let stream = Stream::new(&devices[0]).unwrap();
        let mut world = DeviceWorld::new(pe, devices[0], Some(64 << 20), Some(LIMIT)).unwrap();
        let refused = world.use_nccl(1);
        assert!(
            matches!(
                refused,
                Err(DeviceWorldError::Nccl(NcclError::SharedGpu {
                    pe: 0,
                    other: 1
                }))
            ),
            "{refused:?}"
        );
        let sums = world.heap().alloc::<u32>(1).unwrap();
        let mine = world.heap().alloc::<u32>(1).unwrap();
        world.put(&stream, &mine, 0, &[5], pe.my_pe()).unwrap();
        let everyone = world.everyone();
        world
            .sum_on_stream(&stream, everyone, &sums, &mine)
            .unwrap();
        world.synchronize(&stream).unwrap();
        let mut sum = [0];
        world.get(&stream, &mut sum, &sums, 0, pe.my_pe()).unwrap();
        assert_eq!(sum, [10]);
        pe.barrier().unwrap();
    });
}

/// Where NCCL can not be used for another reason, the error says which, on every PE.
#[test]
fn nccl_as_threads() {
    let Some(devices) = devices("nccl_as_threads") else {
        return;
    };
    if devices.len() < 2 {
        println!("nccl_as_threads: skipped: one GPU only");
        return;
    }
    if nccl("nccl_as_threads") {
        threads(devices.len(), |pe| nccl_suite(pe, devices[pe.my_pe()]));
        return;
    }
    threads(devices.len(), |pe| {
        let device = devices[pe.my_pe()];
        let mut world = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
        let refused = world.use_nccl(1);
        assert!(
            matches!(
                refused,
                Err(DeviceWorldError::Nccl(
                    NcclError::NotFound { .. } | NcclError::Multicast { .. }
                ))
            ),
            "{refused:?}"
        );
        pe.barrier().unwrap();
    });
}

#[test]
fn nccl_as_processes() {
    let Some(devices) = devices("nccl_as_processes") else {
        return;
    };
    if devices.len() < 2 {
        println!("nccl_as_processes: skipped: one GPU only");
        return;
    }
    if nccl("nccl_as_processes") {
        processes(devices.len(), "nccl_pe_of_a_process_world");
    }
}

#[test]
#[ignore = "one PE of the process world above, which starts it"]
fn nccl_pe_of_a_process_world() {
    let pe = crosswarp_shmem::init().unwrap();
    let device = Device::get(pe.my_pe()).unwrap();
    nccl_suite(&pe, device);
}

#[test]
fn gpus_as_processes() {
    let Some(devices) = devices("gpus_as_processes") else {
        return;
    };
    processes(devices.len(), "pe_of_a_process_world");
}

#[test]
#[ignore = "one PE of the process world above, which starts it"]
fn pe_of_a_process_world() {
    let pe = crosswarp_shmem::init().unwrap();
    let device = Device::get(pe.my_pe()).unwrap();
    suite(&pe, device, 1);
}
