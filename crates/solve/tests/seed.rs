//! The 1-D problem the project started from.

use crosswarp_shmem::spmd;
use crosswarp_solve::{Norm, Options, Problem1d, solve_1d};

/// Norms printed by the seed program every 10 sweeps, six significant digits.
const PRINTED: [f64; 6] = [
    0.00272958,
    0.00034546,
    0.000210903,
    0.000157015,
    0.000127122,
    0.00010783,
];

#[test]
fn four_million_points_stop_after_57_sweeps_with_the_printed_errors() {
    let problem = Problem1d {
        points: 4_194_304,
        left: 5.0f32,
        right: 10.0,
        norm: Norm::Rms,
    };
    let solutions = spmd(3, |pe| {
        let solution = solve_1d(pe, &problem, &Options::new(1e-4, 1000), |_| {}).unwrap();
        (solution.sweeps, solution.converged, solution.history)
    })
    .unwrap();
    for (sweeps, converged, history) in &solutions {
        assert_eq!((*sweeps, *converged, history.len()), (57, true, 57));
        assert_eq!(history, &solutions[0].2);
        for (sweep, &printed) in (0..).step_by(10).zip(&PRINTED) {
            assert!(
                (history[sweep] / printed - 1.0).abs() < 5e-6,
                "sweep {sweep}: {} {printed}",
                history[sweep]
            );
        }
        assert!(history[55] > 1e-4 && history[56] <= 1e-4);
    }
}
