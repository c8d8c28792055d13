//! Failures of the driver.

/// A call of the CUDA driver that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {name} ({code}): {message}")]
pub struct CudaError {
    /// The driver's function, e.g. `cuMemAlloc_v2`.
    pub call: &'static str,
    /// The `CUresult` it returned.
    pub code: i32,
    /// Its name, e.g. `CUDA_ERROR_OUT_OF_MEMORY`.
    pub name: String,
    /// The driver's own text for it.
    pub message: String,
}

impl CudaError {
    /// Whether device memory ran out.
    pub fn is_out_of_memory(&self) -> bool {
        self.code == cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY as i32
    }
}

/// Why there is no usable GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// `libcuda` could not be opened.
    #[error(
        "no CUDA driver: libcuda.so.1 is not on the loader's path; install an NVIDIA driver of \
         version 580 or newer (in a container, start it with GPU access, e.g. --gpus all)"
    )]
    NoLibrary,
    /// `libcuda` lacks a function, so it is not NVIDIA's driver, or a damaged one.
    #[error(
        "libcuda was found but has no function {symbol}; install an NVIDIA driver of version 580 or newer"
    )]
    MissingSymbol {
        /// The missing function.
        symbol: &'static str,
    },
    /// The driver's CUDA version is lower than the one this crate is written for.
    #[error(
        "the CUDA driver is too old: it has CUDA {}.{}, needed is CUDA {}.{} or newer (driver 580); \
         update the NVIDIA driver",
        found / 1000, found % 1000 / 10, needed / 1000, needed % 1000 / 10
    )]
    TooOld {
        /// The driver's version, as 1000 × major + 10 × minor.
        found: i32,
        /// The lowest version that will do, likewise.
        needed: i32,
    },
    /// The driver is there, a GPU is not.
    #[error(
        "no GPU: the CUDA driver is installed but sees no device (CUDA_VISIBLE_DEVICES={})",
        visible.as_deref().unwrap_or("unset")
    )]
    NoDevice {
        /// The value of `CUDA_VISIBLE_DEVICES`, which hides devices.
        visible: Option<String>,
    },
    /// A device number that this machine does not have.
    #[error("there is no GPU {ordinal}: this machine has {count}, numbered from 0")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// Another failure while the driver started or was asked about its devices.
    #[error(transparent)]
    Failed(#[from] CudaError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_mends_it() {
        let old = DriverError::TooOld {
            found: 12040,
            needed: 13000,
        };
        assert_eq!(
            old.to_string(),
            "the CUDA driver is too old: it has CUDA 12.4, needed is CUDA 13.0 or newer (driver 580); \
             update the NVIDIA driver"
        );
        let hidden = DriverError::NoDevice {
            visible: Some(String::new()),
        };
        assert!(hidden.to_string().ends_with("(CUDA_VISIBLE_DEVICES=)"));
        assert!(
            DriverError::NoDevice { visible: None }
                .to_string()
                .ends_with("=unset)")
        );
    }
}
