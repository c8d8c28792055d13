//! The GPU a model speaks of: named, described, or the one that is there.

use crosswarp::cuda::{Arch, ArchLimits, Device};
use crosswarp::lab::models::roofline::DataSheet;

/// A compute capability that no model knows.
#[derive(Debug, thiserror::Error)]
#[error("the limits of compute capability {}.{} are not known, only those of {}", .0.major, .0.minor, known())]
pub struct UnknownArch(Arch);

fn known() -> String {
    let all = ArchLimits::all().iter();
    let names: Vec<String> = all
        .map(|limits| format!("{}.{}", limits.arch.major, limits.arch.minor))
        .collect();
    names.join(", ")
}

/// Compute capability where there is no GPU and none is named.
const DEFAULT_ARCH: Arch = Arch::new(9, 0);

/// Compute capability and SMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelledGpu {
    /// The compute capability.
    pub arch: Arch,
    /// Streaming multiprocessors, if known.
    pub multiprocessors: Option<u32>,
}

impl ModelledGpu {
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
                arch: DEFAULT_ARCH,
                multiprocessors: None,
            },
        }
    }

    /// The limits of an SM.
    pub fn limits(&self) -> Result<&'static ArchLimits, UnknownArch> {
        ArchLimits::of(self.arch).ok_or(UnknownArch(self.arch))
    }
}
