//! Transpositions on one GPU.
#![allow(unsafe_code)] // Reason: launches kernels.

use bytemuck::Pod;
use crosswarp_cuda::internal::compile_together;
use crosswarp_cuda::{
    BufferRef, ByValue, CudaError, Device, Error, Function, Launch, LaunchError, Module, Shape,
    Source, Stream,
};

use crate::transpose::cuda::arguments::{self, Matrices, Squares};
use crate::transpose::cuda::tile_shapes::{self, TILES, Tile, Tiles};
use crate::transpose::layout;
use crate::{Layout, TransposeError};

pub(super) const fn shape(
    kernel: &'static str,
    threads: u32,
    dynamic_shared: u32,
) -> Shape<'static> {
    Shape {
        kernel,
        threads,
        dynamic_shared,
    }
}

pub(crate) const TILE_HEADER: (&str, &str) = (
    "transpose/tile.cuh",
    include_str!("../../../kernels/transpose/tile.cuh"),
);
pub(crate) const ARGUMENTS_HEADER: (&str, &str) = ("transpose/arguments.cuh", arguments::HEADER);
pub(crate) const SHAPES_HEADER: (&str, &str) = ("transpose/tile_shapes.cuh", tile_shapes::HEADER);
const HEADERS: &[(&str, &str)] = &[
    ARGUMENTS_HEADER,
    TILE_HEADER,
    SHAPES_HEADER,
    (
        "transpose/shifted_tile.cuh",
        include_str!("../../../kernels/transpose/shifted_tile.cuh"),
    ),
    (
        "transpose/matrices.cuh",
        include_str!("../../../kernels/transpose/matrices.cuh"),
    ),
    (
        "transpose/squares.cuh",
        include_str!("../../../kernels/transpose/squares.cuh"),
    ),
    (
        "transpose/narrow.cuh",
        include_str!("../../../kernels/transpose/narrow.cuh"),
    ),
];

/// Of narrow matrices: most elements of the narrow side, and most bytes; threads of a block, and places of the long side
/// that it takes (`narrow_threads` in the kernels).
const NARROW_SIDE: usize = 32;
const NARROW_BYTES: usize = 128;
const NARROW_THREADS: u32 = 256;
/// From how many times the narrow side on.
const NARROW_RATIO: usize = 4;

/// Shared memory of a block of narrow matrices: rows an odd number of elements apart.
const fn narrow_shared(side: usize, element: usize) -> u32 {
    NARROW_THREADS * ((side | 1) * element) as u32
}

/// Whether matrices of this shape are narrow ones.
fn is_narrow(rows: usize, columns: usize, element: usize) -> bool {
    let (side, long) = (rows.min(columns), rows.max(columns));
    side <= NARROW_SIDE && side * element <= NARROW_BYTES && long / NARROW_RATIO >= side
}

/// A source for each size of elements, so that only what is used is compiled. `$header` makes two kernels by `$make`, most
/// often of whole tiles, whose shape `$whole` tells, and of any.
macro_rules! sources {
    (
        $header:literal, $make:literal: $whole:ident $whole_kind:literal, $any:ident $any_kind:literal;
        $($place:literal: $element:literal),+
    ) => {
        [$(
            Source::new(
                concat!("transpose/", $header, "_", $element, ".cu"),
                concat!(
                    "#include \"transpose/", $header, ".cuh\"\n",
                    "TRANSPOSE_TILES_", $element, "(", $make, ")\n"
                ),
            )
            .with_headers(HEADERS)
            .with_shapes(&[
                $whole(concat!("transpose", $whole_kind, "_", $element), &TILES[$place]),
                $any(concat!("transpose", $any_kind, "_", $element), &TILES[$place]),
            ]),
        )+]
    };
}

const fn whole(kernel: &'static str, tiles: &Tiles) -> Shape<'static> {
    shape(
        kernel,
        tiles.whole.threads,
        tiles.whole.bytes(tiles.element),
    )
}
const fn any(kernel: &'static str, tiles: &Tiles) -> Shape<'static> {
    shape(
        kernel,
        tiles.any.threads,
        tiles.any.shifted_bytes(tiles.element),
    )
}
const fn square(kernel: &'static str, tiles: &Tiles) -> Shape<'static> {
    let bytes = 2 * tiles.square.bytes(tiles.element);
    shape(kernel, 2 * tiles.square.threads, bytes)
}
const fn any_square(kernel: &'static str, tiles: &Tiles) -> Shape<'static> {
    let bytes = 2 * tiles.any_square.any_bytes(tiles.element);
    shape(kernel, 2 * tiles.any_square.threads, bytes)
}

/// The kernels of matrices, by size of elements.
pub(crate) const MATRICES: [Source<'static>; 5] = sources!(
    "matrices", "TRANSPOSE": whole "", any "_any";
    0: 1, 1: 2, 2: 4, 3: 8, 4: 16
);

const fn narrow(kernel: &'static str, tiles: &Tiles) -> Shape<'static> {
    let most = NARROW_BYTES / tiles.element;
    let side = if most < NARROW_SIDE {
        most
    } else {
        NARROW_SIDE
    };
    shape(kernel, NARROW_THREADS, narrow_shared(side, tiles.element))
}

/// Those of few rows and of few columns.
pub(crate) const NARROW: [Source<'static>; 5] = sources!(
    "narrow", "TRANSPOSE_NARROW": narrow "_flat", narrow "_tall";
    0: 1, 1: 2, 2: 4, 3: 8, 4: 16
);

/// Those of squares in place.
pub(crate) const SQUARES: [Source<'static>; 5] = sources!(
    "squares", "TRANSPOSE_SQUARES": square "_square", any_square "_any_square";
    0: 1, 1: 2, 2: 4, 3: 8, 4: 16
);

/// A transposition on a GPU that did not come about.
#[derive(Debug, thiserror::Error)]
pub enum DeviceTransposeError {
    /// The matrices are not fit for it.
    #[error(transparent)]
    Transpose(#[from] TransposeError),
    /// The transposer has no kernels for elements of this size.
    #[error(
        "this transposer is for elements of {made_for} bytes, not of {element}; `new` makes one for all sizes"
    )]
    Size {
        /// Bytes of an element.
        element: usize,
        /// Bytes of those that it was made for.
        made_for: usize,
    },
    /// A kernel could not be launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// Its kernels could not be compiled or loaded.
    #[error(transparent)]
    Load(Box<Error>),
    /// The PEs' world failed.
    #[error(transparent)]
    World(#[from] crosswarp_cuda::DeviceWorldError),
}

impl From<Error> for DeviceTransposeError {
    fn from(error: Error) -> Self {
        Self::Load(Box::new(error))
    }
}

/// Transpositions of matrices in a GPU's memory whose elements have 1, 2, 4, 8 or 16 bytes.
///
/// Calls are given to a stream and return at once; a [`Graph`](crosswarp_cuda::Graph) can record them.
/// Any number of streams may be used at once.
///
/// Matrices move tile by tile, in accesses of 16 bytes. Where rows do not begin at multiples of 16 bytes, in
/// input or output, bytes are shifted in registers, and the accesses are still of 16 bytes but for the ends of
/// rows; in place, single elements are put right in shared memory if they have 4 bytes or more. Narrow matrices (a side
/// of up to 32 elements and 128 bytes) move element by element, by neighbouring threads.
///
/// ```
/// use crosswarp_cuda::{Buffer, Device, Stream};
/// use crosswarp_prim::{DeviceTransposer, Layout};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let stream = Stream::new(&device)?;
///     let transposer = DeviceTransposer::new(&device)?;
///     let input = Buffer::from_slice(&stream, &[1u8, 2, 3, 4, 5, 6])?;
///     let output = Buffer::zeroed(&stream, 6)?;
///     let from = Layout::new(2, 3);
///     transposer.transpose(&stream, &input, &from, &output, &from.transposed())?;
///     assert_eq!(output.to_vec(&stream)?, [1, 4, 2, 5, 3, 6]);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct DeviceTransposer {
    device: Device,
    /// By size of elements: of all, or of one.
    sizes: [Option<Kernels>; 5],
    made_for: Option<usize>,
}

/// The kernels of one element size.
#[derive(Debug)]
struct Kernels {
    whole: Function,
    any: Function,
    square: Function,
    any_square: Function,
    flat: Function,
    tall: Function,
}

impl Kernels {
    fn load(device: &Device, place: usize) -> Result<Self, Error> {
        let element = TILES[place].element;
        let [matrices, squares, narrow] =
            [&MATRICES, &SQUARES, &NARROW].map(|of| Module::compile(device, &of[place]));
        let (matrices, squares, narrow) = (matrices?, squares?, narrow?);
        Ok(Self {
            whole: matrices.function(&format!("transpose_{element}"))?,
            any: matrices.function(&format!("transpose_any_{element}"))?,
            square: squares.function(&format!("transpose_square_{element}"))?,
            any_square: squares.function(&format!("transpose_any_square_{element}"))?,
            flat: narrow.function(&format!("transpose_flat_{element}"))?,
            tall: narrow.function(&format!("transpose_tall_{element}"))?,
        })
    }
}

/// The place of an element size among 1, 2, 4, 8, 16, which it is one of.
pub(crate) fn place_of(element: usize) -> usize {
    element.trailing_zeros() as usize
}

/// Bytes up to which tiles of any kind take all of the matrices that whole ones do not fill: a launch more takes longer.
const ONE_LAUNCH: usize = 16 << 20;

/// Blocks of a grid.
pub(crate) fn grid(blocks: Option<usize>) -> Result<u32, TransposeError> {
    blocks
        .and_then(|blocks| u32::try_from(blocks).ok())
        .ok_or(TransposeError::TooLarge)
}

impl DeviceTransposer {
    /// Compiles (once per machine, side by side) and loads the kernels.
    ///
    /// # Errors
    /// Those of [`Module::compile`].
    pub fn new(device: &Device) -> Result<Self, Error> {
        let mut sources = MATRICES.to_vec();
        sources.extend(SQUARES);
        sources.extend(NARROW);
        compile_together(device, &sources);
        let mut sizes = [const { None }; 5];
        for (place, kernels) in sizes.iter_mut().enumerate() {
            *kernels = Some(Kernels::load(device, place)?);
        }
        Ok(Self {
            device: *device,
            sizes,
            made_for: None,
        })
    }

    /// The same for elements of `element` bytes alone (1, 2, 4, 8 or 16): the first time on a machine this takes a
    /// fraction of the time.
    ///
    /// # Errors
    /// As [`new`](Self::new); and [`TransposeError::ElementSize`] of other sizes.
    pub fn of_size(device: &Device, element: usize) -> Result<Self, DeviceTransposeError> {
        layout::check_element(element)?;
        let place = place_of(element);
        compile_together(device, &[MATRICES[place], SQUARES[place], NARROW[place]]);
        let mut sizes = [const { None }; 5];
        sizes[place] = Some(Kernels::load(device, place)?);
        Ok(Self {
            device: *device,
            sizes,
            made_for: Some(element),
        })
    }

    /// The tiles and kernels for elements of `element` bytes, which is a size that there is.
    fn kernels(&self, element: usize) -> Result<(&'static Tiles, &Kernels), DeviceTransposeError> {
        let place = place_of(element);
        match &self.sizes[place] {
            Some(kernels) => Ok((&TILES[place], kernels)),
            None => Err(DeviceTransposeError::Size {
                element,
                made_for: self.made_for.unwrap_or_default(),
            }),
        }
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Transposes every matrix of `input` into `output`, in order with `stream`'s other work. Elements of
    /// `output` in the gaps of its layout are left alone.
    ///
    /// # Errors
    /// [`DeviceTransposeError`]; nothing is launched then. [`TransposeError::Overlap`] if the two share
    /// memory.
    pub fn transpose<'a, 'b, T: Pod>(
        &self,
        stream: &Stream,
        input: impl Into<BufferRef<'a, T>>,
        from: &Layout,
        output: impl Into<BufferRef<'b, T>>,
        to: &Layout,
    ) -> Result<(), DeviceTransposeError> {
        let (input, output) = (input.into(), output.into());
        let Some(mut matrices) = matrices(input, from, output, to)? else {
            return Ok(());
        };
        let element = size_of::<T>();
        let (tiles, kernels) = self.kernels(element)?;
        let Matrices {
            input,
            output,
            in_stride,
            out_stride,
            in_batch,
            out_batch,
            ..
        } = matrices;
        let places = input | output | in_stride | out_stride | in_batch | out_batch;
        let (rows, columns) = (from.rows, from.columns);
        // Each element is moved as one there.
        if is_narrow(rows, columns, element) && places.is_multiple_of(element as u64) {
            let flat = rows <= columns;
            let function = if flat { &kernels.flat } else { &kernels.tall };
            let tiles = rows.max(columns).div_ceil(NARROW_THREADS as usize);
            let launch = Launch::new(function)
                .grid(grid(tiles.checked_mul(from.batch))?)
                .block(NARROW_THREADS)
                .shared(narrow_shared(rows.min(columns), element));
            // SAFETY: as below.
            unsafe { launch.launch(stream, (ByValue(matrices),)) }?;
            return Ok(());
        }
        let (whole, any) = (tiles.whole, tiles.any);
        // Both kinds of tiles end where the whole ones do; all sides are powers of two.
        let down = whole.rows.max(any.rows);
        let across = whole.columns.max(any.columns);
        let (down, across) = (from.rows / down * down, from.columns / across * across);
        // Small ones have one launch.
        let use_whole = (down, across) == (from.rows, from.columns)
            || from.batch * from.rows * from.columns * element > ONE_LAUNCH;
        if use_whole
            && places.is_multiple_of(16)
            && down * across > 0
            && self.fits(whole.bytes(element))
        {
            (matrices.whole_rows, matrices.whole_columns) = (down as u64, across as u64);
        }
        let blocks = |tile: Tile| {
            let count = |size: u64, side: usize| size as usize / side;
            count(matrices.whole_rows, tile.rows) * count(matrices.whole_columns, tile.columns)
        };
        let all = from.rows.div_ceil(any.rows) * from.columns.div_ceil(any.columns);
        // Both grids are known to be possible before the first is launched.
        let whole_grid = grid(blocks(whole).checked_mul(from.batch))?;
        let any_grid = grid((all - blocks(any)).checked_mul(from.batch))?;
        for (function, blocks, threads, bytes) in [
            (
                &kernels.whole,
                whole_grid,
                whole.threads,
                whole.bytes(element),
            ),
            (
                &kernels.any,
                any_grid,
                any.threads,
                any.shifted_bytes(element),
            ),
        ] {
            if blocks > 0 {
                let launch = Launch::new(function)
                    .grid(blocks)
                    .block(threads)
                    .shared(bytes);
                // SAFETY: the parameter is a `matrices`, checked against both buffers, which outlive
                // the kernel: freeing them waits for it.
                unsafe { launch.launch(stream, (ByValue(matrices),)) }?;
            }
        }
        Ok(())
    }

    /// Transposes every matrix of `array`, all of them square, into its own place, in order with
    /// `stream`'s other work.
    ///
    /// # Errors
    /// As [`transpose`](Self::transpose); [`TransposeError::NotSquare`].
    pub fn transpose_in_place<'a, T: Pod>(
        &self,
        stream: &Stream,
        array: impl Into<BufferRef<'a, T>>,
        layout: &Layout,
    ) -> Result<(), DeviceTransposeError> {
        let array = array.into();
        let element = size_of::<T>();
        layout::check_in_place(element, array.len(), layout)?;
        let side = layout.rows;
        if side == 0 || layout.batch == 0 {
            return Ok(());
        }
        let (tiles, kernels) = self.kernels(element)?;
        let mut squares = Squares {
            data: array.address(),
            bytes: (layout.span()? * element) as u64,
            stride: layout.row_bytes(element) as u64,
            batch: batch_bytes(layout, element),
            side: side as u64,
            whole: 0,
        };
        let (square, any) = (tiles.square, tiles.any_square);
        let places = squares.data | squares.stride | squares.batch;
        if places.is_multiple_of(16) && self.fits(2 * square.bytes(element)) {
            squares.whole = (side / square.rows * square.rows) as u64;
        }
        let pairs = |side: usize, tile: Tile| {
            let down = side.div_ceil(tile.rows);
            down * (down + 1) / 2
        };
        let whole = squares.whole as usize;
        let whole_grid = grid(pairs(whole, square).checked_mul(layout.batch))?;
        let any_grid = grid((pairs(side, any) - pairs(whole, any)).checked_mul(layout.batch))?;
        for (function, blocks, threads, bytes) in [
            (
                &kernels.square,
                whole_grid,
                square.threads,
                square.bytes(element),
            ),
            (
                &kernels.any_square,
                any_grid,
                any.threads,
                any.any_bytes(element),
            ),
        ] {
            if blocks > 0 {
                let launch = Launch::new(function)
                    .grid(blocks)
                    .block(2 * threads)
                    .shared(2 * bytes);
                // SAFETY: the parameter is a `squares`, checked against the buffer, which outlives the
                // kernel. The two kernels share no tile.
                unsafe { launch.launch(stream, (ByValue(squares),)) }?;
            }
        }
        Ok(())
    }

    /// Whether a block can have this much shared memory.
    fn fits(&self, bytes: u32) -> bool {
        bytes <= self.device.properties().shared_per_block_optin
    }
}

impl Drop for DeviceTransposer {
    fn drop(&mut self) {
        // Its module goes with it, and kernels may still be running.
        let _ = self.device.synchronize();
    }
}

/// Bytes between matrices; 0 for a single one, which then has no say in alignment.
fn batch_bytes(layout: &Layout, element: usize) -> u64 {
    match layout.batch {
        1 => 0,
        _ => (layout.batch_stride * element) as u64,
    }
}

/// The kernels' parameter, without whole tiles; `None` if there are no elements.
pub(super) fn matrices<T: Pod>(
    input: BufferRef<'_, T>,
    from: &Layout,
    output: BufferRef<'_, T>,
    to: &Layout,
) -> Result<Option<Matrices>, DeviceTransposeError> {
    let element = size_of::<T>();
    layout::check(element, (input.len(), from), (output.len(), to))?;
    let (in_bytes, out_bytes) = (from.span()? * element, to.span()? * element);
    if in_bytes == 0 {
        return Ok(None);
    }
    let (start, end) = (input.address(), input.address() + in_bytes as u64);
    if start < output.address() + out_bytes as u64 && output.address() < end {
        return Err(TransposeError::Overlap.into());
    }
    Ok(Some(Matrices {
        input: start,
        output: output.address(),
        in_bytes: in_bytes as u64,
        in_stride: from.row_bytes(element) as u64,
        out_stride: to.row_bytes(element) as u64,
        in_batch: batch_bytes(from, element),
        out_batch: batch_bytes(to, element),
        rows: from.rows as u64,
        columns: from.columns as u64,
        whole_rows: 0,
        whole_columns: 0,
    }))
}
