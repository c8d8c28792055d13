//! The problems that have a ladder.

use crosswarp_cuda::Source;

use super::error::LadderError;
use super::kernels;

/// What a ladder is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Sum of an array.
    Reduce,
    /// Counts of samples by bin.
    Histogram,
    /// Transpose of a matrix.
    Transpose,
    /// Jacobi sweeps in one dimension.
    Jacobi1d,
    /// Product of two square matrices.
    Sgemm,
}

impl Subject {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reduce => "reduce",
            Self::Histogram => "histogram",
            Self::Transpose => "transpose",
            Self::Jacobi1d => "jacobi1d",
            Self::Sgemm => "sgemm",
        }
    }

    /// The kernels of its rungs on a GPU.
    pub const fn kernels(self) -> &'static [Source<'static>] {
        match self {
            Self::Reduce => &[kernels::REDUCE, kernels::REDUCE_F16],
            Self::Histogram => &[kernels::HISTOGRAM],
            Self::Transpose => &[kernels::TRANSPOSE],
            Self::Jacobi1d => &[kernels::JACOBI1D],
            Self::Sgemm => &[kernels::SGEMM],
        }
    }

    /// What its size counts.
    pub const fn size_is(self) -> &'static str {
        match self {
            Self::Reduce => "elements",
            Self::Histogram => "samples",
            Self::Transpose | Self::Sgemm => "rows and columns",
            Self::Jacobi1d => "points",
        }
    }

    /// The size used if none is given, on a GPU or on the processor.
    pub const fn default_size(self, gpu: bool) -> usize {
        match (self, gpu) {
            (Self::Reduce, true) => 1 << 24,
            (Self::Reduce | Self::Histogram, _) => 1 << 26,
            (Self::Transpose, true) => 8192,
            (Self::Transpose, false) => 4096,
            (Self::Jacobi1d, _) => 1 << 22,
            (Self::Sgemm, true) => 4096,
            (Self::Sgemm, false) => 512,
        }
    }

    /// `size` if the rungs can take it.
    pub fn check(self, size: usize) -> Result<usize, LadderError> {
        let (unit, least, most) = match self {
            Self::Reduce | Self::Histogram => (1024, 1024, 1 << 30),
            Self::Transpose => (32, 32, 1 << 16),
            Self::Jacobi1d => (1024, 4096, 1 << 28),
            Self::Sgemm => (128, 128, 1 << 14),
        };
        if size.is_multiple_of(unit) && (least..=most).contains(&size) {
            Ok(size)
        } else {
            Err(LadderError::Size {
                subject: self.name(),
                size,
                unit,
                least,
                most,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_rung_could_take_are_refused() {
        assert!(Subject::Reduce.check(1 << 24).is_ok());
        for (subject, size) in [
            (Subject::Reduce, 0),
            (Subject::Reduce, 1 << 31),
            (Subject::Sgemm, 100),
            (Subject::Transpose, 33),
        ] {
            let error = subject.check(size).unwrap_err().to_string();
            assert!(error.contains("a multiple of"), "{error}");
        }
        for subject in [
            Subject::Reduce,
            Subject::Histogram,
            Subject::Transpose,
            Subject::Jacobi1d,
            Subject::Sgemm,
        ] {
            for gpu in [false, true] {
                assert!(subject.check(subject.default_size(gpu)).is_ok());
            }
        }
    }
}
