//! Multigrid: what it converges to, how fast, and with which bits.

use std::f64::consts::PI;
use std::sync::Arc;

use crosswarp_shmem::spmd;
use crosswarp_solve::{Boundary, Cycles, Method, Options, Problem2d, Real, RowSource, solve_2d};

/// Field and relative residuals.
struct Solved<F> {
    field: Vec<F>,
    history: Vec<f64>,
    converged: bool,
    floor_reached: bool,
}

fn options(tolerance: f64) -> Options<'static> {
    Options {
        method: Method::Multigrid(Cycles{pre: std::env::var("PRE").map_or(2,|v|v.parse().unwrap()), post: std::env::var("POST").map_or(2,|v|v.parse().unwrap())}),
        ..Options::new(tolerance, 40)
    }
}

fn solve<F: Real>(problem: &Problem2d<F>, tolerance: f64, pes: usize) -> Solved<F> {
    let mut all = spmd(pes, |pe| {
        let solution = solve_2d(pe, problem, &options(tolerance), |_| {}).unwrap();
        Solved {
            field: solution.gather_all(pe).unwrap(),
            history: solution.history.clone(),
            converged: solution.converged,
            floor_reached: solution.floor_reached,
        }
    })
    .unwrap();
    all.swap_remove(0)
}

fn by_cell<F: Real>(of: impl Fn(usize, usize) -> f64 + Send + Sync + 'static) -> RowSource<F> {
    Arc::new(move |y, row: &mut [F]| {
        row.iter_mut()
            .enumerate()
            .for_each(|(x, value)| *value = F::from_f64(of(x, y)));
    })
}

/// u = sin πx sin πy + ½ sin 3πx sin πy on the unit square with `n` intervals, zero on the sides.
fn two_waves<F: Real>(n: usize) -> (Problem2d<F>, Vec<f64>) {
    let h = 1.0 / n as f64;
    let wave = move |a: f64, x: usize, y: usize| {
        (a * PI * x as f64 * h).sin() * (PI * y as f64 * h).sin()
    };
    let exact = move |x: usize, y: usize| wave(1.0, x, y) + 0.5 * wave(3.0, x, y);
    let source = move |x, y| -PI * PI * (2.0 * wave(1.0, x, y) + 5.0 * wave(3.0, x, y));
    let problem = Problem2d {
        source: Some(by_cell(source)),
        spacing: h,
        ..Problem2d::laplace(n + 1, n + 1)
    };
    let field = (0..=n)
        .flat_map(|y| (0..=n).map(move |x| exact(x, y)))
        .collect();
    (problem, field)
}

fn relative_error<F: Real>(field: &[F], exact: &[f64]) -> f64 {
    let squares = |of: &dyn Fn(usize) -> f64| {
        (0..exact.len()).map(|i| of(i).powi(2)).sum::<f64>().sqrt()
    };
    squares(&|i| field[i].to_f64() - exact[i]) / squares(&|i| exact[i])
}

#[test]
fn two_waves_come_out_with_the_error_of_five_points() {
    let (problem, exact) = two_waves::<f64>(256);
    let solved = solve(&problem, 1e-8, 1);
    println!("{:?}", solved.history);
    assert!(solved.converged && solved.history.len() <= 11);
    let error = relative_error(&solved.field, &exact);
    assert!((error / 4.737e-5 - 1.0).abs() < 0.01, "{error}");
}

#[test]
fn sizes_show_the_rates() {
    for (nx, ny) in [(577usize, 600usize)] {
        let problem = Problem2d {
            source: Some(by_cell::<f64>(|x, y| ((x * 7 + y * 13) % 11) as f64 - 5.0)),
            ..Problem2d::laplace(nx, ny)
        };
        let s = solve(&problem, 1e-8, 1);
        println!("dirichlet {nx}x{ny}: {} {:?}", s.history.len(), s.history.last());
        let p = Problem2d { left: Boundary::Neumann(vec![0.0; ny]), right: Boundary::Neumann(vec![0.0; ny]), ..problem.clone() };
        let s = solve(&p, 1e-8, 1);
        println!("neumann x {nx}x{ny}: {} {:?}", s.history.len(), s.history.last());
        let p = Problem2d { left: Boundary::Periodic, right: Boundary::Periodic, ..problem.clone() };
        let s = solve(&p, 1e-8, 1);
        println!("periodic x {nx}x{ny}: {} {:?}", s.history.len(), s.history.last());
        for share in [2u64, 4, 20, 200, 2000] {
        let p = Problem2d { fixed: Some(Arc::new(move |y, row: &mut [u8]| { for (x, v) in row.iter_mut().enumerate() { let mut z = (x as u64) << 32 | y as u64; z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9); z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb); z ^= z >> 31; *v = u8::from(z % share == 0); } })), ..problem.clone() };
        let s = solve(&p, 1e-8, 1);
        println!("random 1/{share} {nx}x{ny}: {} {:?}", s.history.len(), s.history.last());
        }
        let p = Problem2d { fixed: Some(Arc::new(move |y, row: &mut [u8]| { for (x, v) in row.iter_mut().enumerate() { *v = u8::from((x * 7919 + y * 104729 + x * y) % 20 == 0); } })), ..problem.clone() };
        let s = solve(&p, 1e-8, 1);
        println!("mask {nx}x{ny}: {} {:?}", s.history.len(), s.history.last());
    }
}
    #[test]
    fn timing() {
        for n in [2048usize] {
            let (problem, exact) = two_waves::<f64>(n);
            for _ in 0..2 {
            let t = std::time::Instant::now();
            let s = solve(&problem, 1e-8, 1);
            println!("{n}: {} cycles, all {:?} error {:e}", s.history.len(), t.elapsed(), relative_error(&s.field, &exact));
            }
            spmd(1, |pe| { for tol in [1e-2, 1e-8] { let s = solve_2d(pe, &problem, &options(tol), |_| {}).unwrap(); println!("solve {} cycles {} s", s.sweeps, s.seconds); } }).unwrap();
        }
    }
