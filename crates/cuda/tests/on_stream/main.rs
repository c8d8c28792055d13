//! The stream-ordered verbs, on every kind of device world this machine can make: several PEs on one
//! GPU, several GPUs as threads, several GPUs as processes. Without a GPU each test says so by name and
//! does nothing.

#![allow(unsafe_code)] // launches graphs

mod case;
mod nccl;
#[path = "../support/mod.rs"]
mod support;

use bytemuck::Pod;
use case::{Case, value};
use crosswarp_cuda::{
    Arch, Buffer, Device, DeviceNumber, DeviceSym, DeviceWorld, DeviceWorldError, Graph, Launch,
    Options, Source, Stream,
};
use crosswarp_shmem::op::{self, ReduceOp};
use crosswarp_shmem::{Cmp, Pe, SignalOp};
use support::{
    LIMIT, as_process, as_processes, compiles, on_all_gpus, on_gpus_of_hosts, on_hosts, on_one_gpu,
    verbs_with,
};

/// Of large broadcasts: enough for shares, and odd.
const BROADCAST_BYTES: usize = (4 << 20) + 99;

impl Case<'_> {
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

    /// Strided copies from and to buffers, the heap and the host, of elements of several sizes.
    fn strided(&self) {
        self.strided_of(|v| v as u8);
        self.strided_of(|v| v as u16);
        self.strided_of(|v| v);
        self.strided_of(|v| [v, 2 * v, v + 7]);
        self.strided_of(|v| u64::from(v) << 40 | 1);
        self.strided_of(|v| [u64::from(v), 3]);
    }

    fn strided_of<T: Pod + PartialEq + std::fmt::Debug>(&self, make: impl Fn(u32) -> T) {
        let (world, stream, me, n) = (self.world, self.stream, self.me(), self.pe.n_pes());
        let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
        // Several times what goes through page-locked memory at once, for the largest elements.
        let len = 1_300_000;
        let of = |pe: usize| -> Vec<T> { (0..len).map(|i| make(value(pe, i))).collect() };
        let heap = world.heap();
        let (source, dest) = (heap.alloc::<T>(len).unwrap(), heap.alloc::<T>(len).unwrap());
        let buffer = Buffer::<T>::zeroed(stream, len).unwrap();
        let zeros = vec![T::zeroed(); len];
        self.fill(&source, &of(me));
        let name = std::any::type_name::<T>();

        // Every third of `pe`'s to every second from the first on, nothing else written.
        let third_to_second = |pe: usize| -> Vec<T> {
            let mut all = zeros.clone();
            for (i, element) in all[1..2001].iter_mut().step_by(2).enumerate() {
                *element = make(value(pe, 3 * i));
            }
            all
        };
        for from_host in [false, true] {
            self.fill(&dest, &zeros);
            self.pe.barrier().unwrap();
            let to = dest.range(1..2001);
            if from_host {
                let mine = &of(me)[..2998];
                world.iput(stream, to, 2, mine, 3, 1000, next).unwrap();
            } else {
                let mine = source.range(..2998);
                world
                    .iput_on_stream(stream, to, 2, mine, 3, 1000, next)
                    .unwrap();
            }
            world.barrier_on_stream(stream, world.everyone()).unwrap();
            let what = format!("iput of {name}, from the host: {from_host}");
            let seen = self.seen(&what, &dest, len);
            self.check(&what, &seen, &third_to_second(previous));
            self.pe.barrier().unwrap();
        }
        world
            .iget_on_stream(stream, &buffer, 4, source.range(5..1005), 5, 200, next)
            .unwrap();
        let mut host = zeros.clone();
        world
            .iget(stream, &mut host, 4, source.range(5..1005), 5, 200, next)
            .unwrap();
        let mut expected = zeros.clone();
        for (i, element) in expected.iter_mut().step_by(4).take(200).enumerate() {
            *element = make(value(next, 5 + 5 * i));
        }
        let what = format!("iget of {name}");
        self.check(&what, &buffer.to_vec(stream).unwrap(), &expected);
        self.check(&format!("{what} to the host"), &host, &expected);

        // In several parts: all there, and back.
        self.pe.barrier().unwrap();
        world.iput(stream, &dest, 1, &of(me), 1, len, next).unwrap();
        self.pe.barrier().unwrap();
        let mut host = zeros.clone();
        world
            .iget(stream, &mut host, 1, &dest, 1, len, next)
            .unwrap();
        self.check(&format!("{name} there and back"), &host, &of(me));
        self.pe.barrier().unwrap();
        heap.free(dest).unwrap();
        heap.free(source).unwrap();
    }

    /// Broadcasts of which more than two PEs pull shares, of odd lengths, in place and not; and one to an odd place, which
    /// the root pushes.
    fn large_broadcasts(&self, dest: &DeviceSym<u8>, source: &DeviceSym<u8>) {
        let (world, stream, pes) = (self.world, self.stream, self.members.len());
        let most = BROADCAST_BYTES;
        let of = |pe: usize| (0..most).map(move |i| value(pe, i) as u8);
        let untouched = vec![77; most];
        for root in [0, 1, pes - 1] {
            for (first, n, in_place) in [
                (0, most, false),
                (0, 1 << 20, true),
                (16, (1 << 20) + 1, false),
                (1, most - 2, true),
                (0, 0, false),
            ] {
                let root = root % pes;
                let what = format!("broadcast of {n} from {first} of rank {root}");
                self.fill(source, &of(self.me()).collect::<Vec<_>>());
                self.fill(dest, &untouched);
                self.meet(&what);
                let to = if in_place { source } else { dest };
                let (there, here) = (to.range(first..first + n), source.range(first..first + n));
                world
                    .broadcast_on_stream(stream, self.team, there, here, root)
                    .unwrap();
                let mut expected = match in_place {
                    true => of(self.me()).collect(),
                    false => untouched.clone(),
                };
                let sent = of(self.members[root]);
                for (to, from) in expected.iter_mut().zip(sent).skip(first).take(n) {
                    *to = from;
                }
                let seen = self.seen(&what, to, most);
                self.check(&what, &seen, &expected);
                self.meet(&what);
            }
        }
    }

    /// Sums large enough to go through slots by stores alone, of odd lengths, in place and not.
    fn large_sums(&self) {
        self.large_sum(|v| v as f32);
        self.large_sum(|v| v as f64);
        self.large_sum(|v| v);
    }

    fn large_sum<T: DeviceNumber + PartialEq + std::fmt::Debug>(&self, make: impl Fn(u32) -> T)
    where
        op::Sum: ReduceOp<T>,
    {
        let (world, stream, pes) = (self.world, self.stream, self.pe.n_pes());
        let most = (16 << 20) / size_of::<T>() + 100_003;
        let heap = world.heap();
        let (source, dest) = (
            heap.alloc::<T>(most).unwrap(),
            heap.alloc::<T>(most).unwrap(),
        );
        let mine: Vec<T> = (0..most).map(|i| make(value(self.me(), i))).collect();
        let sum = |i| (0..pes).map(|pe| make(value(pe, i))).reduce(op::Sum::apply);
        let all: Vec<T> = (0..most).map(|i| sum(i).unwrap()).collect();
        for (n, in_place) in [(most, false), (most - 100_000, true), (most - 1, true)] {
            let what = format!("large sum of {n} {}", std::any::type_name::<T>());
            self.fill(&source, &mine);
            self.meet(&what);
            let to = if in_place { &source } else { &dest }.range(..n);
            world
                .sum_on_stream(stream, self.team, to, source.range(..n))
                .unwrap();
            let seen = self.seen(&what, if in_place { &source } else { &dest }, n);
            self.check(&what, &seen, &all[..n]);
            self.meet(&what);
        }
        heap.free(dest).unwrap();
        heap.free(source).unwrap();
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
            world.reduce_on_stream(stream, everyone, &few, dest.range(10..18), op::Max)?;
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

/// One PE's part of the whole suite.
fn suite(pe: &Pe, device: Device) {
    let stream = Stream::new(&device).unwrap();
    let world = DeviceWorld::new(pe, device, Some(512 << 20), Some(LIMIT)).unwrap();
    let case = Case::of_all(&world, &stream);
    case.one_sided();
    case.strided();
    case.collectives();
    case.large_sums();
    case.graph();
    teams(pe, &world, &stream);
    large_broadcasts(pe, &world, &stream);
    two_worlds(pe, device, &world, &stream);
    mixed_worlds(pe, device, &world, &stream);
}

/// The same where PEs are of several hosts.
fn suite_over_hosts(pe: &Pe, device: Device) {
    let stream = Stream::new(&device).unwrap();
    let world = DeviceWorld::new(pe, device, Some(512 << 20), Some(LIMIT)).unwrap();
    let case = Case::of_all(&world, &stream);
    case.one_sided();
    case.strided();
    case.collectives();
    case.large_sums();
    case.graph();
    teams(pe, &world, &stream);
    large_broadcasts(pe, &world, &stream);
}

/// A team of every second PE, from the host and in a user's kernel; the others go on meanwhile.
fn teams(pe: &Pe, world: &DeviceWorld<'_>, stream: &Stream) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let module = world.load(&MEETS).unwrap();
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

/// Of all PEs, and of all but the first, where a rank is not the PE's number.
fn large_broadcasts(pe: &Pe, world: &DeviceWorld<'_>, stream: &Stream) {
    let n = pe.n_pes();
    let heap = world.heap();
    let dest = heap.alloc::<u8>(BROADCAST_BYTES).unwrap();
    let source = heap.alloc::<u8>(BROADCAST_BYTES).unwrap();
    Case::of_all(world, stream).large_broadcasts(&dest, &source);
    if n > 1 {
        let team = world.team(1, 1, n - 1).unwrap();
        if let Some(team) = &team {
            let case = Case {
                pe,
                world,
                stream,
                team,
                members: (1..n).collect(),
            };
            case.large_broadcasts(&dest, &source);
        }
    }
    pe.barrier().unwrap();
    heap.free(dest).unwrap();
    heap.free(source).unwrap();
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
        world.put(stream, a, &mine, me).unwrap();
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
        world.get(stream, &mut seen, b, me).unwrap();
        for (i, &sum) in seen.iter().enumerate() {
            let expected: u32 = (0..n).map(|pe| value(pe + which, i)).sum();
            assert_eq!(
                sum,
                f64::from(expected),
                "world {which}, PE {me}, element {i}"
            );
        }
    }
    pe.barrier().unwrap();
    for (world, _, a, b) in parts {
        world.heap().free(a).unwrap();
        world.heap().free(b).unwrap();
    }
}

/// The team of one world is refused by another.
fn mixed_worlds(pe: &Pe, device: Device, world: &DeviceWorld<'_>, stream: &Stream) {
    let second = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
    let mixed = std::panic::AssertUnwindSafe(|| world.barrier_on_stream(stream, second.everyone()));
    assert!(std::panic::catch_unwind(mixed).is_err());
    pe.barrier().unwrap();
}

#[test]
fn sources_compile() {
    let archs = [Arch::new(9, 0)];
    // For one host, and for several.
    for options in [Options::new(), Options::new().define("CROSSWARP_ROUTED", 1)] {
        let sources = [verbs_with(&options), vec![MEETS]].concat();
        compiles("sources_compile", &sources, &archs, &options);
    }
}

#[test]
fn one_gpu_1_pe() {
    on_one_gpu("one_gpu_1_pe", 1, suite);
}

#[test]
fn one_gpu_2_pes() {
    on_one_gpu("one_gpu_2_pes", 2, suite);
}

#[test]
fn one_gpu_4_pes() {
    on_one_gpu("one_gpu_4_pes", 4, suite);
}

/// Streams of several threads begin at the same moment, each with kernels that wait for another's. Where
/// the driver puts two such streams into one hardware queue, they wait for ever; without turns
/// (`Stream::turn`) a third of the rounds did.
#[test]
fn streams_begin_at_once() {
    on_one_gpu("streams_begin_at_once", 3, |pe, device| {
        let stream = Stream::new(&device).unwrap();
        let world = DeviceWorld::new(pe, device, Some(128 << 20), Some(LIMIT)).unwrap();
        for _ in 0..50 {
            two_worlds(pe, device, &world, &stream);
        }
    });
}

#[test]
fn one_gpu_2_pes_of_2_hosts() {
    on_hosts("one_gpu_2_pes_of_2_hosts", 2, "2", suite_over_hosts);
}

#[test]
fn one_gpu_3_pes_of_2_hosts() {
    on_hosts("one_gpu_3_pes_of_2_hosts", 3, "1+2", suite_over_hosts);
}

#[test]
fn gpus_of_hosts() {
    on_gpus_of_hosts("gpus_of_hosts", suite_over_hosts);
}

#[test]
fn gpus_as_threads() {
    on_all_gpus("gpus_as_threads", suite);
}

#[test]
fn gpus_as_processes() {
    as_processes("gpus_as_processes", "pe_of_a_process_world", 1);
}

#[test]
#[ignore = "one PE of the process world above, which starts it"]
fn pe_of_a_process_world() {
    as_process(suite);
}
