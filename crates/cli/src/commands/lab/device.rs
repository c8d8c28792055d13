//! The GPU a model speaks of: named, described, or the one that is there.

use crosswarp::cuda::{Arch, ArchLimits, Device};
use crosswarp::lab::models::roofline::DataSheet;

use crate::commands::error::CliError;

/// Compute capability and SMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modelled {
    /// The compute capability.
    pub arch: Arch,
    /// Streaming multiprocessors, if known.
    pub multiprocessors: Option<u32>,
}

impl Modelled {
    /// By data sheet, by compute capability, else this machine's first GPU, else compute capability 9.0.
    pub fn choose(device: Option<&DataSheet>, arch: Option<Arch>) -> Self {
        if let Some(sheet) = device {
            return Self {
                arch: sheet.arch,
                multiprocessors: Some(sheet.multiprocessors),
            };
        }
        if let Some(arch) = arch {
            return Self {
                arch,
                multiprocessors: None,
            };
        }
        match Device::get(0) {
            Ok(device) => Self {
                arch: device.arch(),
                multiprocessors: Some(device.properties().multiprocessors),
            },
            Err(_) => Self {
                arch: Arch::new(9, 0),
                multiprocessors: None,
            },
        }
    }

    /// The limits of an SM.
    pub fn limits(&self) -> Result<&'static ArchLimits, CliError> {
        ArchLimits::of(self.arch).ok_or_else(|| {
            let known: Vec<String> = ArchLimits::all()
                .iter()
                .map(|limits| format!("{}.{}", limits.arch.major, limits.arch.minor))
                .collect();
            CliError::Usage(format!(
                "the limits of compute capability {}.{} are not known, only those of {}",
                self.arch.major,
                self.arch.minor,
                known.join(", ")
            ))
        })
    }
}
