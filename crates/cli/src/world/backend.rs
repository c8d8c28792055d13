//! Where a primitive works: the options `--backend`, `--device`, `--pes`, and what they come to on
//! this machine.

use clap::{Args, ValueEnum};
use crosswarp::cuda::{Device, Nvrtc};
use crosswarp::shmem::Pe;

use crate::commands::error::CliError;
use crate::processor::physical_cores;

/// The options.
#[derive(Args, Debug)]
pub struct BackendArgs {
    /// Where to work; the result is the same
    #[arg(long, value_enum, default_value = "auto")]
    pub backend: BackendKind,
    /// Number of the GPU [default: PEs are dealt out over all]
    #[arg(long, value_name = "N")]
    pub device: Option<usize>,
    /// Number of PEs, threads of this process [default: the physical cores, or the GPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub pes: Option<u32>,
}

/// What can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BackendKind {
    /// The GPUs if there are any and they pay, else the CPU
    Auto,
    /// The CPU
    Cpu,
    /// The GPUs
    Cuda,
}

/// What there is.
#[derive(Clone, Debug)]
pub enum Backend {
    /// The CPU; with why not a GPU, if one would have been taken.
    Cpu { no_gpu: Option<String> },
    /// These GPUs, at least one.
    Cuda(Vec<Device>),
}

impl BackendArgs {
    /// Looks for what was asked for.
    ///
    /// # Errors
    /// [`CliError::Usage`] for `--device` on the CPU; [`CliError::Cuda`] if a GPU was asked for, and
    /// there is none or its compiler is missing.
    pub fn choose(&self) -> Result<Backend, CliError> {
        match (self.backend, self.device) {
            (BackendKind::Cpu, Some(device)) => Err(CliError::Usage(format!(
                "--device {device} is a GPU's number, --backend cpu uses none"
            ))),
            (BackendKind::Cpu, None) => Ok(Backend::Cpu { no_gpu: None }),
            (BackendKind::Cuda, _) | (_, Some(_)) => Ok(self.gpus().map(Backend::Cuda)?),
            (BackendKind::Auto, None) => Ok(match self.gpus() {
                Ok(devices) => Backend::Cuda(devices),
                Err(reason) => Backend::Cpu {
                    no_gpu: Some(reason.to_string()),
                },
            }),
        }
    }

    /// As [`choose`](Self::choose), for work that is over as soon as the processor has read every byte once:
    /// `auto` is the CPU, since a GPU would get the bytes only after the processor has copied them.
    /// Measured on 16 cores beside an H200, with a file in the page cache: a histogram of 512 MB takes 17 ms, through
    /// the GPU 150; of sums see `bench/results/README.md`.
    ///
    /// # Errors
    /// As for [`choose`](Self::choose).
    pub fn choose_for_one_pass(&self) -> Result<Backend, CliError> {
        match (self.backend, self.device) {
            (BackendKind::Auto, None) => Ok(Backend::Cpu { no_gpu: None }),
            _ => self.choose(),
        }
    }

    fn gpus(&self) -> Result<Vec<Device>, crosswarp::cuda::Error> {
        let devices = match self.device {
            Some(ordinal) => vec![Device::get(ordinal)?],
            None => Device::all()?,
        };
        Nvrtc::get().map_err(crosswarp::cuda::CompileError::from)?;
        Ok(devices)
    }
}

impl Backend {
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
        let cpu = args(BackendKind::Cpu, None).choose().unwrap();
        assert_eq!((cpu.name(), cpu.describe().as_str()), ("cpu", "CPU"));
        assert_eq!(cpu.default_pes(), physical_cores());
        let error = args(BackendKind::Cpu, Some(0)).choose().unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn one_pass_over_a_file_is_the_cpus_unless_said_otherwise() {
        let auto = args(BackendKind::Auto, None).choose_for_one_pass().unwrap();
        assert_eq!((auto.name(), auto.describe().as_str()), ("cpu", "CPU"));
        let both = |args: BackendArgs| {
            let name = |chosen: Result<Backend, CliError>| chosen.map(|b| b.name()).ok();
            (name(args.choose_for_one_pass()), name(args.choose()))
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
        let auto = args(BackendKind::Auto, None).choose().unwrap();
        match args(BackendKind::Cuda, None).choose() {
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
