//! Voids of an array on a GPU are filled with the bits of those that the host reads by rows.
//!
//! Needs a GPU and NVRTC; where there is none the tests say so and pass, or fail with CROSSWARP_REQUIRE_GPU=1.

mod cycles;

use std::sync::Arc;

use crosswarp_cuda::{Buffer, BufferRef, Stream};
use crosswarp_shmem::spmd;
use crosswarp_solve::{
    Cycles, DeviceVoids, Gpu, Method, Options, Problem2d, ProblemError, Real, Solution, SolveError,
    Strategy, fill_on_device, solve_2d,
};
use cycles::{alone, noise, options};

/// A GPU, or nothing where the test is skipped.
fn gpu(test: &str) -> Option<Gpu> {
    cycles::gpu(test, Strategy::Auto)
}

/// An array, and which of its cells are known if it does not say that by NaN.
struct Array<F> {
    size: [usize; 2],
    values: Vec<F>,
    known: Option<Vec<u8>>,
    nodata: Option<F>,
}

/// And the field.
type Filled<F> = (Solution<F>, Vec<F>);

impl<F: Real> Array<F> {
    fn new(size: [usize; 2], known: impl Fn(usize, usize) -> bool, void: f64) -> Array<F> {
        let [nx, ny] = size;
        let cells = (0..ny).flat_map(|y| (0..nx).map(move |x| (x, y)));
        let value = |(x, y)| match known(x, y) {
            true => (x as f64 / 9.0).sin() * 40.0 + (noise(x, y, 3) % 1000) as f64 / 7.0,
            false => void,
        };
        Array {
            size,
            values: cells.map(|cell| F::from_f64(value(cell))).collect(),
            known: None,
            nodata: None,
        }
    }

    /// The problem as the host reads it.
    fn problem(&self) -> Result<Problem2d<F>, ProblemError> {
        let [nx, ny] = self.size;
        let is_known = |(at, value): (usize, &F)| {
            let known = match &self.known {
                Some(known) => known[at] != 0,
                None => !value.to_f64().is_nan(),
            };
            u8::from(known && Some(*value) != self.nodata)
        };
        let known: Vec<u8> = self.values.iter().enumerate().map(is_known).collect();
        let values = self.values.clone();
        Problem2d::fill_natural(
            nx,
            ny,
            Arc::new(move |y, row: &mut [F]| row.copy_from_slice(&values[y * nx..][..nx])),
            Arc::new(move |y, row: &mut [u8]| row.copy_from_slice(&known[y * nx..][..nx])),
        )
    }

    /// What `gpu` makes of it, and the field.
    fn filled(&self, gpu: Gpu, options: &Options<'_>) -> Result<Option<Filled<F>>, SolveError> {
        let _alone = alone();
        let on_gpu = Options {
            gpu: Some(gpu),
            ..options.clone()
        };
        let stream = Stream::new(&gpu.device).unwrap();
        let values = Buffer::from_slice(&stream, &self.values).unwrap();
        let known = self.known.as_ref();
        let known = known.map(|known| Buffer::from_slice(&stream, known).unwrap());
        let field = Buffer::new(&gpu.device, self.values.len()).unwrap();
        let voids = DeviceVoids {
            values: (&values).into(),
            known: known.as_ref().map(BufferRef::from),
            nodata: self.nodata,
            field: (&field).into(),
        };
        let done = spmd(1, |pe| {
            let solution = fill_on_device(pe, self.size, &voids, &on_gpu, |_| {})?;
            Ok(solution.map(|solution| (solution, field.to_vec(&stream).unwrap())))
        });
        done.unwrap().swap_remove(0)
    }

    fn assert_same(&self, gpu: Gpu, name: &str, options: &Options<'_>) {
        let problem = self.problem().unwrap();
        let host = spmd(1, |pe| {
            let solution = solve_2d(pe, &problem, options, |_| {}).unwrap();
            let field = solution.gather_all(pe).unwrap();
            (solution, field)
        });
        let (expected, field) = host.unwrap().swap_remove(0);
        let filled = self.filled(gpu, options).unwrap();
        let (solution, found) = filled.unwrap_or_else(|| panic!("{name}: left to the host"));
        assert_eq!(solution.history, expected.history, "{name}");
        assert_eq!(solution.converged, expected.converged, "{name}");
        let bits = |value: &F| value.to_f64().to_bits();
        let other = (found.iter().zip(&field)).position(|(a, b)| bits(a) != bits(b));
        assert_eq!(other, None, "{name}: another value at that cell");
    }
}

fn of_type<F: Real>(gpu: Gpu) {
    let nan = f64::NAN;
    // Threads have so many columns at once: around that, and above it levels are made by the GPU.
    for size in [[3, 3], [255, 20], [256, 20], [257, 300], [700, 513]] {
        let [nx, ny] = size;
        for share in [2, 40, 1500] {
            let known = |x, y| noise(x, y, 7).is_multiple_of(share) || (x, y) == (2, 1);
            let name = format!("{nx} x {ny}, 1 of {share}");
            Array::<F>::new(size, known, nan).assert_same(gpu, &name, &options(1e-8));
        }
        // Rows without a known cell at the top, inside, and at the bottom.
        let known = |x, y| y % 5 == 1 && x % 3 != 0 && y + 2 < ny.max(4);
        let name = format!("rows of {nx} x {ny}");
        Array::<F>::new(size, known, nan).assert_same(gpu, &name, &options(1e-8));
    }
    let size = [300, 170];
    let known = |x, y| !noise(x, y, 7).is_multiple_of(3);
    let bytes = |known: &dyn Fn(usize, usize) -> bool| {
        let cells = (0..170).flat_map(|y| (0..300).map(move |x| (x, y)));
        let byte = |(x, y)| {
            if known(x, y) {
                (1 + noise(x, y, 1) % 255) as u8
            } else {
                0
            }
        };
        Some(cells.map(byte).collect::<Vec<u8>>())
    };
    // What is not known is not looked at.
    let masked = |x, y| known(x, y) && x > 0;
    let by_mask = Array::<F> {
        known: bytes(&masked),
        ..Array::new(size, masked, f64::INFINITY)
    };
    by_mask.assert_same(gpu, "by a mask", &options(1e-8));
    let nodata = F::from_f64(-9999.0);
    let by_value = Array::<F> {
        nodata: Some(nodata),
        ..Array::new(size, known, -9999.0)
    };
    by_value.assert_same(gpu, "by a value", &options(1e-8));
    let by_both = Array::<F> {
        nodata: Some(nodata),
        known: bytes(&|x, _| x % 7 != 0),
        ..Array::new(size, known, -9999.0)
    };
    by_both.assert_same(gpu, "by a mask and a value", &options(1e-8));
}

#[test]
fn voids_of_f32_have_the_bits_of_the_host() {
    if let Some(gpu) = gpu("voids_of_f32_have_the_bits_of_the_host") {
        of_type::<f32>(gpu);
    }
}

#[test]
fn voids_of_f64_have_the_bits_of_the_host() {
    if let Some(gpu) = gpu("voids_of_f64_have_the_bits_of_the_host") {
        of_type::<f64>(gpu);
    }
}

#[test]
fn what_the_host_says_more_of_is_left_to_it() {
    let Some(gpu) = gpu("what_the_host_says_more_of_is_left_to_it") else {
        return;
    };
    let size = [40, 30];
    let left =
        |array: &Array<f64>, options: &Options<'_>| array.filled(gpu, options).unwrap().is_none();
    let usual = options(1e-8);
    let nothing = Array::new(size, |_, _| false, f64::NAN);
    assert!(left(&nothing, &usual));
    assert_eq!(nothing.problem().err(), Some(ProblemError::NoKnownCell));
    let infinite = Array::new(size, |x, y| (x, y) != (7, 5), f64::INFINITY);
    assert!(left(&infinite, &usual));
    let said = Some(ProblemError::Value { x: 7, y: 5 });
    assert_eq!(infinite.problem().err(), said);
    let gradients = Options {
        method: Method::ConjugateGradients(Cycles::default()),
        ..options(1e-8)
    };
    let some = Array::new(size, |x, y| (x + y) % 3 != 0, f64::NAN);
    assert!(left(&some, &gradients) && !left(&some, &usual));
    let all = Array::<f64>::new(size, |_, _| true, f64::NAN);
    let error = all.filled(gpu, &usual).err();
    let nothing_free = SolveError::Problem(ProblemError::NothingFree);
    assert_eq!(
        error.map(|error| error.to_string()),
        Some(nothing_free.to_string())
    );
}
