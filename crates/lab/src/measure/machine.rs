//! What a figure was measured on.

use std::fs;

use crosswarp_cuda::Device;

/// A machine, in the words a reader needs to judge a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The processor's model.
    pub processor: String,
    /// Logical processors this process may use.
    pub cores: usize,
    /// The GPU's name and the driver's CUDA version, if it was measured.
    pub gpu: Option<String>,
}

impl Machine {
    /// This machine's processor.
    pub fn of_host() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map(|(_, name)| name.trim().to_owned());
        Self {
            processor: model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            gpu: None,
        }
    }

    /// This machine with one of its GPUs.
    pub fn with_gpu(device: &Device) -> Self {
        let driver = Device::driver_version().map_or(String::new(), |(major, minor)| {
            format!(", CUDA {major}.{minor}")
        });
        Self {
            gpu: Some(format!("{}{driver}", device.properties().name)),
            ..Self::of_host()
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.gpu {
            Some(gpu) => f.write_str(gpu),
            None => write!(f, "{}, {} logical processors", self.processor, self.cores),
        }
    }
}
