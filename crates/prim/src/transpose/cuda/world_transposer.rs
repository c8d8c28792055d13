//! Transposing a matrix whose rows lie on the GPUs of several PEs.
#![allow(unsafe_code)] // Reason: launches kernels.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::internal::compile_together;
use crosswarp_cuda::{
    Buffer, BufferRef, ByValue, DeviceSym, DeviceWorld, DeviceWorldError, Function, Launch,
    LaunchError, Module, PreparedLaunch, Source, Stream,
};

use super::arguments::Part;
use super::device_transposer::{
    ARGUMENTS_HEADER, DeviceTransposeError, SHAPES_HEADER, TILE_HEADER, grid, place_of, shape,
};
use super::tile_shapes::WORLD_TILES;
use crate::rows_of;
use crate::transpose::layout::check_element;
use crate::transpose::team::{agree, gather};

/// A source for each size of elements, so that only what is used is compiled.
macro_rules! sources {
    ($($place:literal: $element:literal),+) => {
        [$(
            Source::new(
                concat!("transpose/world_", $element, ".cu"),
                concat!(
                    "#include \"transpose/world.cuh\"\n",
                    "TRANSPOSE_WORLD_TILES_", $element, "(TRANSPOSE_PUT)\n"
                ),
            )
            .with_headers(&[
                ARGUMENTS_HEADER,
                TILE_HEADER,
                SHAPES_HEADER,
                (
                    "transpose/world.cuh",
                    include_str!("../../../kernels/transpose/world.cuh"),
                ),
            ])
            .with_shapes(&[shape(
                concat!("transpose_put_", $element),
                WORLD_TILES[$place].threads,
                WORLD_TILES[$place].any_bytes($element),
            )]),
        )+]
    };
}

/// The kernels, by size of elements.
pub(crate) const WORLD: [Source<'static>; 5] = sources!(0: 1, 1: 2, 2: 4, 3: 8, 4: 16);

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
    /// By size of elements: of all, or of one.
    functions: [Option<Function>; 5],
    made_for: Option<usize>,
}

impl<'a, 'w> WorldTransposer<'a, 'w> {
    /// Compiles (once per machine, side by side) and loads the kernels. Collective.
    ///
    /// # Errors
    /// On every PE if any PE fails.
    pub fn new(world: &'a DeviceWorld<'w>) -> Result<Self, DeviceWorldError> {
        Self::with(world, 0..5, None)
    }

    /// The same for elements of `element` bytes alone (1, 2, 4, 8 or 16): the first time on a machine this takes a
    /// fraction of the time. Collective, by the same size on every PE.
    ///
    /// # Errors
    /// As [`new`](Self::new); and [`TransposeError::ElementSize`] of other sizes.
    ///
    /// [`TransposeError::ElementSize`]: crate::TransposeError::ElementSize
    pub fn of_size(
        world: &'a DeviceWorld<'w>,
        element: usize,
    ) -> Result<Self, DeviceTransposeError> {
        // One PE's mistake is an error on all: the others do not wait for it below.
        let same = world.pe().agree(0, element as u64);
        check_element(element)?;
        same.map_err(DeviceWorldError::from)?;
        let place = place_of(element);
        Ok(Self::with(world, place..place + 1, Some(element))?)
    }

    fn with(
        world: &'a DeviceWorld<'w>,
        places: Range<usize>,
        made_for: Option<usize>,
    ) -> Result<Self, DeviceWorldError> {
        DeviceWorld::needs_one_host(world.pe(), "transposing")?;
        let loaded = load(world, places);
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
            None => Ok(Self {
                world,
                functions,
                made_for,
            }),
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
        let tile = WORLD_TILES[place_of(element)];
        let Some(function) = &self.functions[place_of(element)] else {
            return Err(DeviceTransposeError::Size {
                element,
                made_for: self.made_for.unwrap_or_default(),
            });
        };
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

/// Loads the kernels of these sizes and has each run once, on nothing: its first launch loads its code, which waits for
/// kernels that run, and those may be peers' that wait for this PE.
fn load(
    world: &DeviceWorld<'_>,
    places: Range<usize>,
) -> Result<[Option<Function>; 5], DeviceWorldError> {
    let device = world.device();
    compile_together(&device, &WORLD[places.clone()]);
    let stream = Stream::new(&device)?;
    let nothing = Buffer::<u8>::new(&device, 1)?;
    let mut functions = [const { None }; 5];
    for place in places {
        let module = Module::compile(&device, &WORLD[place])?;
        world.install(&module)?;
        let shape = &WORLD[place].shapes[0];
        let function = module.function(shape.kernel)?;
        let part = Part {
            input: nothing.address(),
            ..Part::zeroed()
        };
        let launch = Launch::new(&function)
            .block(shape.threads)
            .shared(shape.dynamic_shared);
        // SAFETY: the parameter is a `part`; without columns the kernel ends at once.
        unsafe { launch.launch(&stream, (ByValue(part),)) }?;
        functions[place] = Some(function);
    }
    stream.synchronize()?;
    Ok(functions)
}
