//! What sums in kernels promise: an ordinary `sum` has the same bits each time in the same launch shape; `exact_sum` is
//! the exact sum, rounded once, at every level and in every launch shape. Without a GPU each test says by name that it
//! was skipped.

#![allow(unsafe_code)] // launches kernels

#[path = "../support/mod.rs"]
mod support;

mod reference;

use bytemuck::Pod;
use crosswarp_cuda::{
    Arch, Buffer, Device, DeviceWorld, Launch, Module, Options, Source, Stream, exact_sum_bytes,
    grid_state_bytes, kernel_resources,
};
use crosswarp_shmem::Pe;
use reference::{Float, cases};
use support::{LIMIT, as_process, as_processes, compiles, cubins, on_all_gpus, on_one_gpu};

const SUMS: Source<'static> = Source::new("sums.cu", include_str!("sums.cu"));

/// What a kernel found: the bits of both sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    exact: u64,
    ordinary: u64,
}

struct Gpu<'w> {
    stream: Stream,
    module: Module,
    world: &'w DeviceWorld<'w>,
    grid: Buffer<u8>,
    words: Buffer<u64>,
}

/// The level, and the launch shape: blocks and threads.
type Shape = (&'static str, u32, u32);

const SHAPES: [Shape; 9] = [
    ("warp", 1, 32),
    ("block", 1, 32),
    ("block", 1, 96),
    ("block", 1, 1024),
    ("grid", 1, 64),
    ("grid", 2, 32),
    ("grid", 7, 96),
    ("grid", 5, 512),
    ("grid", 8, 256),
];
const CLUSTERS: [Shape; 3] = [("cluster", 1, 64), ("cluster", 2, 96), ("cluster", 8, 128)];

impl Gpu<'_> {
    /// The sums of `values` at this level. All threads have the same.
    fn sums<T: Float + Pod>(&self, (level, blocks, threads): Shape, values: &[T]) -> Sums {
        let x = self.upload(values);
        let n = values.len() as u64;
        let out = Buffer::<u64>::zeroed(&self.stream, 2).unwrap();
        let differ = Buffer::<u32>::zeroed(&self.stream, 1).unwrap();
        let function = self.module.function(&format!("{level}_{}", T::NAME));
        let function = function.unwrap();
        let launch = Launch::new(&function).grid(blocks).block(threads);
        let launched = match level {
            "grid" => {
                let args = (&x, n, &out, &self.grid, &self.words, &differ);
                // SAFETY: the parameters are (const T*, u64, u64*, grid_state*, u64*, u32*); the states have room.
                unsafe { launch.cooperative().launch(&self.stream, args) }
            }
            "cluster" => {
                let launch = launch.cluster(blocks);
                // SAFETY: the parameters are (const T*, u64, u64*, u32*); x has n elements.
                unsafe { launch.launch(&self.stream, (&x, n, &out, &differ)) }
            }
            // SAFETY: as above.
            _ => unsafe { launch.launch(&self.stream, (&x, n, &out, &differ)) },
        };
        launched.unwrap();
        self.read(&out, &differ, &format!("{level} of {blocks} × {threads}"))
    }

    /// The sums over all PEs, of which this one has `part`, by a block of `threads`.
    fn sums_of_pes<T: Float + Pod>(
        &self,
        pe: &Pe,
        symmetric: u64,
        threads: u32,
        part: &[T],
    ) -> Sums {
        let x = self.upload(part);
        let out = Buffer::<u64>::zeroed(&self.stream, 2).unwrap();
        let differ = Buffer::<u32>::zeroed(&self.stream, 1).unwrap();
        let function = self.module.function(&format!("pes_{}", T::NAME)).unwrap();
        let launch = Launch::new(&function).block(threads);
        let args = (&x, part.len() as u64, &out, symmetric, &differ);
        // SAFETY: the parameters are (const T*, u64, u64*, u64*, u32*); x has as many elements, the symmetric array
        // `exact_sum_words` words and one more.
        unsafe { self.world.launch_together(launch, &self.stream, args) }.unwrap();
        let waited = self.world.synchronize(&self.stream);
        pe.barrier().unwrap();
        waited.unwrap();
        self.read(
            &out,
            &differ,
            &format!("PE {} of {}", pe.my_pe(), pe.n_pes()),
        )
    }

    /// The values in the GPU's memory, which has one at least.
    fn upload<T: Float + Pod>(&self, values: &[T]) -> Buffer<T> {
        let some = [T::from_bits(0)];
        let values = if values.is_empty() { &some } else { values };
        Buffer::from_slice(&self.stream, values).unwrap()
    }

    fn read(&self, out: &Buffer<u64>, differ: &Buffer<u32>, what: &str) -> Sums {
        let differ = differ.to_vec(&self.stream).unwrap()[0];
        assert_eq!(differ, 0, "{what}: threads with other sums than the first");
        let out = out.to_vec(&self.stream).unwrap();
        let (exact, ordinary) = (out[0], out[1]);
        Sums { exact, ordinary }
    }
}

/// All levels below the PE, of all cases: each launch shape twice, once more with the values the other way round.
fn levels<T: Float + Pod>(gpu: &Gpu<'_>, shapes: &[Shape]) {
    for (name, values) in cases::<T>() {
        let expected = T::exact_sum(&values);
        let backwards: Vec<T> = values.iter().rev().copied().collect();
        for &shape in shapes {
            let sums = gpu.sums(shape, &values);
            assert_eq!(
                sums.exact,
                expected,
                "{name} ({}): exact sum of {shape:?} is {:x}, not {expected:x}",
                T::NAME,
                sums.exact
            );
            let again = gpu.sums(shape, &values);
            assert_eq!(sums, again, "{name} ({}): {shape:?} twice", T::NAME);
            let exact = gpu.sums(shape, &backwards).exact;
            assert_eq!(exact, expected, "{name} ({}): {shape:?} backwards", T::NAME);
        }
    }
}

/// Values on PEs in equal parts, then nearly all on the last one.
fn pes<T: Float + Pod>(gpu: &Gpu<'_>, pe: &Pe, symmetric: u64) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    for (name, values) in cases::<T>() {
        let expected = T::exact_sum(&values);
        let equal = |i: usize| values.len() * i / n;
        let last = |i: usize| {
            if i == n {
                values.len()
            } else {
                i.min(values.len())
            }
        };
        let parts = [
            &values[equal(me)..equal(me + 1)],
            &values[last(me)..last(me + 1)],
        ];
        for part in parts {
            for threads in [32, 128] {
                let sums = gpu.sums_of_pes(pe, symmetric, threads, part);
                assert_eq!(
                    sums.exact,
                    expected,
                    "{name} ({}) on {n} PEs: {:x}, not {expected:x}",
                    T::NAME,
                    sums.exact
                );
                let again = gpu.sums_of_pes(pe, symmetric, threads, part);
                assert_eq!(sums, again, "{name} ({}) on {n} PEs, twice", T::NAME);
            }
        }
    }
}

/// Compiles for every GPU here, before there is a world whose limits of time it would count against. The PEs find the
/// code in the user's cache.
fn compile_first() {
    for device in Device::all().unwrap_or_default() {
        cubins(&[SUMS], &[device.arch()], &Options::new());
    }
}

/// One PE's part of the whole suite: sums over PEs; those below the PE where there is one.
fn suite(pe: &Pe, device: Device) {
    let code = cubins(&[SUMS], &[device.arch()], &Options::new());
    let module = Module::load(&device, &code[0]).unwrap();
    let stream = Stream::new(&device).unwrap();
    let world = DeviceWorld::new(pe, device, Some(64 << 20), Some(LIMIT)).unwrap();
    world.install(&module).unwrap();
    let words = exact_sum_bytes() / size_of::<u64>();
    let symmetric = world.heap().alloc_zeroed::<u64>(words + 1).unwrap();
    let at = world.heap().address_of(&symmetric, pe.my_pe());
    let gpu = Gpu {
        grid: Buffer::zeroed(&stream, grid_state_bytes(8)).unwrap(),
        words: Buffer::zeroed(&stream, words).unwrap(),
        world: &world,
        module,
        stream,
    };
    pes::<f32>(&gpu, pe, at);
    pes::<f64>(&gpu, pe, at);
    if pe.n_pes() == 1 {
        let mut shapes = SHAPES.to_vec();
        if device.properties().cluster_launch {
            shapes.extend(CLUSTERS);
        }
        levels::<f32>(&gpu, &shapes);
        levels::<f64>(&gpu, &shapes);
        // Each use leaves them as they were.
        let left = gpu.words.to_vec(&gpu.stream).unwrap();
        assert!(left.iter().all(|&word| word == 0), "{left:?}");
    }
}

#[test]
fn the_kernels_compile() {
    let archs = [Arch::new(8, 0), Arch::new(9, 0)];
    for (arch, cubin) in archs.iter().zip(compiles(
        "the_kernels_compile",
        &[SUMS],
        &archs,
        &Options::new(),
    )) {
        let kernels = kernel_resources(&cubin).unwrap();
        let mut levels = vec!["warp", "block", "grid", "pes"];
        if *arch == archs[1] {
            levels.push("cluster");
        }
        for name in levels
            .iter()
            .flat_map(|level| [format!("{level}_float"), format!("{level}_double")])
        {
            assert!(
                kernels.iter().any(|kernel| kernel.name == name),
                "{name} for {arch}"
            );
        }
        assert_eq!(kernels.len(), 2 * levels.len(), "{arch}");
    }
}

#[test]
fn one_gpu_1_pe() {
    compile_first();
    on_one_gpu("one_gpu_1_pe", 1, suite);
}

#[test]
fn one_gpu_2_pes() {
    compile_first();
    on_one_gpu("one_gpu_2_pes", 2, suite);
}

#[test]
fn one_gpu_3_pes() {
    compile_first();
    on_one_gpu("one_gpu_3_pes", 3, suite);
}

#[test]
fn one_gpu_4_pes() {
    compile_first();
    on_one_gpu("one_gpu_4_pes", 4, suite);
}

#[test]
fn gpus_as_threads() {
    compile_first();
    on_all_gpus("gpus_as_threads", suite);
}

#[test]
fn gpus_as_processes() {
    compile_first();
    as_processes("gpus_as_processes", "pe_of_a_process_world", 1);
}

#[test]
#[ignore = "one PE of the process world above, which starts it"]
fn pe_of_a_process_world() {
    as_process(suite);
}
