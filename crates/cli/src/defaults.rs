//! What holds where an option is not given. Problems and commands take it from here, and so does the help.

use crosswarp::lab::models::occupancy::BlockNeeds;
use crosswarp::solve::Norm;

use crate::input::stopping::Smoothing;

/// Stopping of one kind of problem by Jacobi sweeps.
#[derive(Debug)]
pub struct Stopping {
    /// The name in the help.
    pub problem: &'static str,
    /// Which norm is compared with the tolerance.
    pub norm: Norm,
    /// The norm at which to stop.
    pub tolerance: f64,
    /// Most sweeps.
    pub max_sweeps: u64,
}

/// A line between two fixed ends.
pub const LINE: Stopping = Stopping {
    problem: "laplace1d",
    norm: Norm::Rms,
    tolerance: 1e-4,
    max_sweeps: 1_000_000,
};

/// A plane.
pub const PLANE: Stopping = Stopping {
    problem: "laplace2d",
    norm: Norm::Rms,
    tolerance: 1e-7,
    max_sweeps: 1_000_000,
};

/// The published problem: its program's.
pub const PRESET: Stopping = Stopping {
    problem: "preset",
    norm: Norm::L2,
    tolerance: 1e-8,
    max_sweeps: 1000,
};

/// Unknown cells from known ones.
pub const FILL: Stopping = Stopping {
    problem: "fill",
    norm: Norm::Rms,
    tolerance: 1e-4,
    max_sweeps: 1_000_000,
};

/// Relative residual at which multigrid stops.
pub const RELATIVE_RESIDUAL: f64 = 1e-8;
/// Most cycles of multigrid.
pub const MAX_CYCLES: u64 = 100;
/// Relaxations of a cycle of multigrid.
pub const SMOOTHING: Smoothing = Smoothing { pre: 2, post: 2 };
/// Points of a line.
pub const POINTS: usize = 4_194_304;
/// Value of a line's left end.
pub const LEFT: f64 = 5.0;
/// Value of a line's right end.
pub const RIGHT: f64 = 10.0;
/// Columns, and rows, of a plane.
pub const PLANE_SIDE: usize = 256;
/// Columns, rows and planes of a box.
pub const BOX_SIDE: usize = 65;
/// Columns, and rows, of the published problem.
pub const PRESET_SIDE: usize = 16_384;
/// Steps between checkpoints.
pub struct CheckpointEvery {
    /// Of Jacobi.
    pub sweeps: u64,
    /// Of multigrid.
    pub cycles: u64,
}

/// Steps between checkpoints: a cycle does far more than a sweep.
pub const CHECKPOINT_EVERY: CheckpointEvery = CheckpointEvery {
    sweeps: 10_000,
    cycles: 5,
};
/// Bins of a histogram.
pub const HISTOGRAM_BINS: usize = 64;
/// What a block needs, where neither options nor a kernel say it.
pub const BLOCK: BlockNeeds = BlockNeeds {
    threads: 256,
    registers: 32,
    shared: 0,
};

/// The values of every problem for the help: the most common one, then the problems that differ.
pub fn by_problem<T: PartialEq>(value: fn(&Stopping) -> T, text: fn(&T) -> String) -> String {
    let all = [LINE, PLANE, PRESET, FILL].map(|of| (of.problem, value(&of)));
    let count = |value: &T| all.iter().filter(|(_, other)| other == value).count();
    // Of several the first: `max_by_key` would take the last.
    let most = all.iter().map(|(_, value)| count(value)).max().unwrap_or(0);
    let common = all.iter().map(|(_, value)| value);
    let Some(common) = common.clone().find(|value| count(value) == most) else {
        return String::new();
    };
    let others = all.iter().filter(|(_, value)| value != common);
    let others = others.map(|(problem, value)| format!("; {problem}: {}", text(value)));
    text(common) + &others.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_problems_that_differ() {
        let text = by_problem(|of| of.max_sweeps, u64::to_string);
        assert_eq!(
            text,
            format!("{}; preset: {}", LINE.max_sweeps, PRESET.max_sweeps)
        );
        assert_eq!(by_problem(|_| 7, i32::to_string), "7");
    }
}
