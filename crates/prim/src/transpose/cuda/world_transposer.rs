//! Transposing a matrix whose rows lie on the GPUs of several PEs.
#![allow(unsafe_code)] // Reason: launches kernels.

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{
    Buffer, BufferRef, ByValue, DeviceSym, DeviceWorld, DeviceWorldError, Function, Launch,
    LaunchError, Module, PreparedLaunch, Shape, Source, Stream,
};

use super::arguments::Part;
use super::device_transposer::{
    ARGUMENTS_HEADER, DeviceTransposeError, SHAPES_HEADER, TILE_HEADER, grid, place_of,
};
use super::tile_shapes::WORLD_TILES;
use crate::rows_of;
use crate::transpose::layout::check_element;
use crate::transpose::team::{agree, gather};

const NAMES: [&str; 5] = [
    "transpose_put_1",
    "transpose_put_2",
    "transpose_put_4",
    "transpose_put_8",
    "transpose_put_16",
];

const fn shapes() -> [Shape<'static>; 5] {
    let none = Shape {
        kernel: "",
        threads: 0,
        dynamic_shared: 0,
    };
    let mut shapes = [none; 5];
    let mut size = 0;
    while size < 5 {
        shapes[size] = Shape {
            kernel: NAMES[size],
            threads: WORLD_TILES[size].threads,
            dynamic_shared: WORLD_TILES[size].any_bytes(1 << size),
        };
        size += 1;
    }
    shapes
}

/// The kernels.
pub(crate) const TRANSPOSE_WORLD: Source<'static> = Source::new(
    "transpose/world.cu",
    include_str!("../../../kernels/transpose/world.cu"),
)
.with_headers(&[ARGUMENTS_HEADER, TILE_HEADER, SHAPES_HEADER])
.with_shapes(&shapes());

/// Transpositions of matrices whose rows lie on the GPUs of a [`DeviceWorld`].
///
/// One kernel a PE takes its rows tile by tile through shared memory and stores each tile where it
/// belongs, on whichever PE that is, in accesses of 16 bytes; so reading, transposing and sending overlap,
/// and no copy of the matrix is made in between.
///
/// ```
/// use crosswarp_cuda::{Buffer, Device, DeviceWorld, Stream};
/// use crosswarp_prim::{WorldTransposer, part_len, rows_of};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let pe = crosswarp_shmem::init()?;
///     let stream = Stream::new(&device)?;
///     let world = DeviceWorld::new(&pe, device, Some(64 << 20), None)?;
///     let (rows, columns, n) = (300, 500, pe.n_pes());
///     let mine = rows_of(rows, n, pe.my_pe());
///     let input = Buffer::<f32>::zeroed(&stream, mine.len() * columns)?;
///     let output = world.heap().alloc::<f32>(part_len(rows, columns, n).unwrap())?;
///     let transposer = WorldTransposer::new(&world)?;
///     transposer.transpose(&stream, rows, columns, &input, &output)?;
///     world.synchronize(&stream)?;
///     // Rows `rows_of(columns, n, pe.my_pe())` of the transposed matrix are in `output` now.
///     pe.barrier()?;
///     Ok(())
/// }
/// ```
pub struct WorldTransposer<'a, 'w> {
    world: &'a DeviceWorld<'w>,
    functions: Vec<Function>,
}

impl<'a, 'w> WorldTransposer<'a, 'w> {
    /// Compiles (once per machine) and loads the kernels. Collective.
    ///
    /// # Errors
    /// On every PE if any PE fails.
    pub fn new(world: &'a DeviceWorld<'w>) -> Result<Self, DeviceWorldError> {
        DeviceWorld::needs_one_host(world.pe(), "transposing")?;
        let loaded = load(world);
        // A PE that fails must not leave the others waiting.
        let memory = world.pe().alloc::<u64>(world.pe().n_pes() + 1)?;
        let n = world.pe().n_pes();
        world.pe().write(memory.at(n), &[u64::from(loaded.is_ok())]);
        world
            .pe()
            .world()
            .fcollect(memory.range(..n), memory.at(n))?;
        let mut all = vec![0; n];
        world.pe().read(&mut all, memory.range(..n));
        world.pe().free(memory)?;
        let functions = loaded?;
        match all.iter().position(|&well| well == 0) {
            Some(pe) => Err(DeviceWorldError::PeerNotReady { pe }),
            None => Ok(Self { world, functions }),
        }
    }

    /// Transposes a matrix of `rows` × `columns`, in order with `stream`'s other work.
    ///
    /// `input`: this PE's rows [`rows_of`]`(rows, …)`, without gaps, in memory of this PE alone. `output`:
    /// receives this PE's rows `rows_of(columns, …)` of the transposed matrix, `rows` elements each;
    /// [`part_len`] says how many elements it needs.
    ///
    /// Collective, by a stream of every PE; all PEs give the same shape. The PEs synchronise on the host first, to
    /// see that all can; then it returns, and the streams do the work. It begins when all have come to
    /// it, so that `output` may be in use on any PE until then; when it is done in a PE's stream, that
    /// PE's `output` is complete. Memory ordering: as `barrier`.
    ///
    /// # Errors
    /// On every PE if any PE fails, and then nothing is given to the streams: [`TransposeError::Part`] if a
    /// PE's input or output is too short, [`TransposeError::Mismatch`] of shapes,
    /// [`DeviceWorldError::PeerFailed`].
    ///
    /// [`TransposeError::Part`]: crate::TransposeError::Part
    /// [`TransposeError::Mismatch`]: crate::TransposeError::Mismatch
    /// [`part_len`]: crate::part_len
    pub fn transpose<'b, T: Pod>(
        &self,
        stream: &Stream,
        rows: usize,
        columns: usize,
        input: impl Into<BufferRef<'b, T>>,
        output: &DeviceSym<T>,
    ) -> Result<(), DeviceTransposeError> {
        let (input, element) = (input.into(), size_of::<T>());
        let world = self.world;
        let (me, n) = (world.pe().my_pe(), world.pe().n_pes());
        let mine = rows_of(rows, n, me);
        let launch = self.prepare(stream, rows, columns, element);
        // A PE that can not must not leave the others waiting: before anything is given to a stream, all
        // know whether all can.
        let ready = usize::from(launch.is_ok());
        let calls = gather(
            world.pe(),
            [rows, columns, input.len(), output.len(), ready],
        )?;
        let launch = launch?;
        let shapes: Vec<_> = calls.iter().map(|&[r, c, i, o, _]| [r, c, i, o]).collect();
        agree(&shapes)?;
        if let Some(pe) = calls.iter().position(|call| call[4] == 0) {
            return Err(DeviceWorldError::PeerFailed { pe }.into());
        }
        // Race prevented: a PE's output is written only when its stream has come here.
        world.sync_on_stream(stream, world.everyone())?;
        if let Some(launch) = launch {
            let part = Part {
                input: input.address(),
                output: world.heap().address_of(output, me),
                in_bytes: (mine.len() * columns * element) as u64,
                in_stride: (columns * element) as u64,
                rows: mine.len() as u64,
                first_row: mine.start as u64,
                all_rows: rows as u64,
                columns: columns as u64,
            };
            // SAFETY: the parameter is a `part`; the input has that many elements and outlives the
            // kernel; each PE's output has its rows, by `agree`, and is stored to within them.
            unsafe { launch.launch(stream, (ByValue(part),)) }?;
        }
        // The kernel's stores come before it in the stream, and so are complete, on every PE, after it.
        Ok(world.barrier_on_stream(stream, world.everyone())?)
    }

    /// The launch for this PE's rows, found possible; `None` if there is nothing to do.
    fn prepare(
        &self,
        stream: &Stream,
        rows: usize,
        columns: usize,
        element: usize,
    ) -> Result<Option<PreparedLaunch<'_>>, DeviceTransposeError> {
        check_element(element)?;
        let (me, n) = (self.world.pe().my_pe(), self.world.pe().n_pes());
        let (tile, function) = (
            WORLD_TILES[place_of(element)],
            &self.functions[place_of(element)],
        );
        let widest = columns.div_ceil(n);
        let down = rows_of(rows, n, me).len().div_ceil(tile.rows);
        let tiles = down.checked_mul(widest.div_ceil(tile.columns));
        let blocks = grid(tiles.and_then(|tiles| tiles.checked_mul(n)))?;
        if blocks == 0 {
            return Ok(None);
        }
        if stream.device() != &self.world.device() {
            return Err(LaunchError::WrongDevice {
                kernel: function.name().into(),
                kernel_device: self.world.device().ordinal(),
                stream_device: stream.device().ordinal(),
            }
            .into());
        }
        let launch = Launch::new(function)
            .grid(blocks)
            .block(tile.threads)
            .shared(tile.any_bytes(element));
        Ok(Some(launch.prepare()?))
    }
}

impl Drop for WorldTransposer<'_, '_> {
    fn drop(&mut self) {
        // Their module goes with the functions, and kernels may still be running, perhaps for ever.
        if !self.world.drain() {
            std::mem::forget(std::mem::take(&mut self.functions));
        }
    }
}

/// Loads the kernels and has each run once, on nothing: its first launch loads its code, which waits for
/// kernels that run, and those may be peers' that wait for this PE.
fn load(world: &DeviceWorld<'_>) -> Result<Vec<Function>, DeviceWorldError> {
    let device = world.device();
    let module = Module::compile(&device, &TRANSPOSE_WORLD)?;
    world.install(&module)?;
    let stream = Stream::new(&device)?;
    let nothing = Buffer::<u8>::new(&device, 1)?;
    let mut functions = Vec::new();
    for (size, name) in NAMES.iter().enumerate() {
        let function = module.function(name)?;
        let part = Part {
            input: nothing.address(),
            ..Part::zeroed()
        };
        let launch = Launch::new(&function)
            .block(WORLD_TILES[size].threads)
            .shared(WORLD_TILES[size].any_bytes(1 << size));
        // SAFETY: the parameter is a `part`; without columns the kernel ends at once.
        unsafe { launch.launch(&stream, (ByValue(part),)) }?;
        functions.push(function);
    }
    stream.synchronize()?;
    Ok(functions)
}
