//! Where a command works: what the options `--backend`, `--device` and `--pes` come to on this machine.

use std::path::Path;

use crosswarp::cuda::{Bundle, Cache, Device, Nvrtc};
use crosswarp::shmem::Pe;

use crate::args::backend::{BackendArgs, BackendKind};
use crate::console;
use crate::processor::physical_cores;

/// Why there is no place to work.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// A GPU's number for the CPU.
    #[error("--device {0} is a GPU's number, --backend cpu uses none")]
    DeviceOfCpu(usize),
    /// A GPU was asked for, and there is none or its compiler is missing.
    #[error(transparent)]
    Cuda(#[from] crosswarp::cuda::Error),
}

/// What there is.
#[derive(Clone, Debug)]
pub enum Backend {
    /// The CPU; with why not a GPU, if one would have been taken.
    Cpu { no_gpu: Option<String> },
    /// These GPUs, at least one.
    Cuda(Vec<Device>),
}

impl Backend {
    /// Looks for what was asked for.
    ///
    /// # Errors
    /// [`BackendError`]
    pub fn choose(asked: &BackendArgs) -> Result<Self, BackendError> {
        match (asked.backend, asked.device) {
            (BackendKind::Cpu, Some(device)) => Err(BackendError::DeviceOfCpu(device)),
            (BackendKind::Cpu, None) => Ok(Self::Cpu { no_gpu: None }),
            (BackendKind::Cuda, _) | (_, Some(_)) => Ok(gpus(asked.device).map(Self::Cuda)?),
            (BackendKind::Auto, None) => Ok(match gpus(None) {
                Ok(devices) => Self::Cuda(devices),
                Err(reason) => Self::Cpu {
                    no_gpu: Some(reason.to_string()),
                },
            }),
        }
    }

    /// As [`choose`](Self::choose), with the CPU for `auto`: for solves by cycles, and for work that is over as soon as
    /// the processor has read every byte once, since a GPU would get the bytes only after the processor has copied them.
    /// Measured on 16 cores beside an H200, with a file in the page cache: a histogram of 512 MB takes 17 ms, through
    /// the GPU 150; of sums see `bench/results/README.md`.
    ///
    /// # Errors
    /// As for [`choose`](Self::choose).
    pub fn choose_when_asked(asked: &BackendArgs) -> Result<Self, BackendError> {
        match (asked.backend, asked.device) {
            (BackendKind::Auto, None) => Ok(Self::Cpu { no_gpu: None }),
            _ => Self::choose(asked),
        }
    }

    /// PEs if no number is given.
    pub fn default_pes(&self) -> usize {
        match self {
            Self::Cpu { .. } => physical_cores(),
            Self::Cuda(devices) => devices.len(),
        }
    }

    /// This PE's GPU, if it has one.
    pub fn device(&self, pe: &Pe) -> Option<Device> {
        match self {
            Self::Cpu { .. } => None,
            Self::Cuda(devices) => Some(devices[pe.my_pe() % devices.len()]),
        }
    }

    /// The name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cpu { .. } => "cpu",
            Self::Cuda(_) => "cuda",
        }
    }

    /// For people: where the work was done, and why not on a GPU if one was wished for.
    pub fn describe(&self) -> String {
        match self {
            Self::Cpu { no_gpu: None } => "CPU".to_owned(),
            Self::Cpu {
                no_gpu: Some(reason),
            } => {
                // The reasons go on to say what to install; here they are a remark.
                let reason = reason.split([':', ';']).next().unwrap_or(reason);
                format!("CPU ({reason})")
            }
            Self::Cuda(devices) => devices[0].properties().name.clone(),
        }
    }
}

fn gpus(device: Option<usize>) -> Result<Vec<Device>, crosswarp::cuda::Error> {
    let devices = match device {
        Some(ordinal) => vec![Device::get(ordinal)?],
        None => Device::all()?,
    };
    Cache::on_first_compilation(tell_of_compilation);
    let bundle = Bundle::of_program();
    let bundled = |device: &Device| bundle.is_some_and(|bundle| bundle.serves(device.arch()));
    if !devices.iter().all(bundled) {
        Nvrtc::get().map_err(crosswarp::cuda::CompileError::from)?;
    }
    Ok(devices)
}

/// Says why nothing happens for seconds: [`Cache::on_first_compilation`].
pub fn tell_of_compilation(folder: Option<&Path>) {
    if console::is_follower() {
        return;
    }
    let kept = match folder {
        Some(folder) => format!("once: they are kept in {}", folder.display()),
        None => "in every run: there is no folder to keep them in (CROSSWARP_CACHE)".to_owned(),
    };
    console::complain(format_args!("compiling kernels, {kept}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(backend: BackendKind, device: Option<usize>) -> BackendArgs {
        BackendArgs {
            backend,
            device,
            pes: None,
        }
    }

    #[test]
    fn the_cpu_is_always_there_and_is_no_gpu() {
        let cpu = Backend::choose(&args(BackendKind::Cpu, None)).unwrap();
        assert_eq!((cpu.name(), cpu.describe().as_str()), ("cpu", "CPU"));
        assert_eq!(cpu.default_pes(), physical_cores());
        let error = Backend::choose(&args(BackendKind::Cpu, Some(0))).unwrap_err();
        assert!(matches!(error, BackendError::DeviceOfCpu(0)));
    }

    #[test]
    fn one_pass_over_a_file_is_the_cpus_unless_said_otherwise() {
        let auto = Backend::choose_when_asked(&args(BackendKind::Auto, None)).unwrap();
        assert_eq!((auto.name(), auto.describe().as_str()), ("cpu", "CPU"));
        let both = |args: BackendArgs| {
            let name = |chosen: Result<Backend, BackendError>| chosen.map(|b| b.name()).ok();
            (
                name(Backend::choose_when_asked(&args)),
                name(Backend::choose(&args)),
            )
        };
        for asked in [
            args(BackendKind::Cuda, None),
            args(BackendKind::Auto, Some(0)),
        ] {
            let (one_pass, other) = both(asked);
            assert_eq!(one_pass, other);
        }
    }

    #[test]
    fn auto_takes_a_gpu_exactly_if_cuda_would() {
        let auto = Backend::choose(&args(BackendKind::Auto, None)).unwrap();
        match Backend::choose(&args(BackendKind::Cuda, None)) {
            Ok(cuda) => assert_eq!(
                (auto.name(), auto.default_pes()),
                ("cuda", cuda.default_pes())
            ),
            Err(error) => {
                assert_eq!(auto.name(), "cpu");
                assert!(
                    auto.describe().starts_with("CPU (no "),
                    "{}",
                    auto.describe()
                );
                assert!(error.to_string().len() > auto.describe().len());
            }
        }
    }
}
