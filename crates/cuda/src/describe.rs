//! What this machine offers and lacks, for people.

use std::fmt;
use std::path::PathBuf;

use crate::arch::Arch;
use crate::compile::bundle::Bundle;
use crate::compile::cache::Cache;
use crate::compile::nvrtc::{Nvrtc, NvrtcError};
use crate::driver::device::{Device, DeviceProperties, Link};
use crate::driver::error::DriverError;

/// The GPUs, driver and compiler of this machine. Its `Display` is the text of `crosswarp info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The driver's CUDA version, or why there is no GPU to use.
    pub driver: Result<(u32, u32), DriverError>,
    /// The GPUs, in order.
    pub devices: Vec<DeviceProperties>,
    /// How GPU `i` reaches GPU `j`: `links[i][j]`.
    pub links: Vec<Vec<Link>>,
    /// The compiler, or where it was looked for.
    pub nvrtc: Result<Compiler, NvrtcError>,
    /// Places where NVRTC is not looked for or taken from, and why.
    pub refused: Vec<(String, String)>,
    /// Where cubins are cached.
    pub cache: Option<PathBuf>,
    /// What was compiled beforehand: see [`Bundle::of_program`].
    pub bundle: Option<Bundled>,
}

/// The bundle found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundled {
    /// Its file.
    pub path: PathBuf,
    /// What it has code for; that serves later ones of the same major number, too.
    pub archs: Vec<Arch>,
}

/// The run-time compiler found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    /// Its version.
    pub version: (u32, u32),
    /// Its file.
    pub path: PathBuf,
    /// What it compiles for.
    pub archs: Vec<Arch>,
}

/// Looks at the machine; creates nothing on any GPU.
///
/// ```
/// println!("{}", crosswarp_cuda::describe());
/// ```
pub fn describe() -> Description {
    let devices = Device::all();
    let links = devices.iter().flatten().map(|from| {
        let to = devices.iter().flatten();
        to.map(|to| from.link(to).unwrap_or(Link::None)).collect()
    });
    Description {
        links: links.collect(),
        devices: devices
            .iter()
            .flatten()
            .map(|device| device.properties().clone())
            .collect(),
        driver: devices.and_then(|_| Device::driver_version()),
        nvrtc: Nvrtc::get().map(|nvrtc| Compiler {
            version: nvrtc.version(),
            path: nvrtc.path().into(),
            archs: nvrtc.archs().to_vec(),
        }),
        refused: Nvrtc::refused(),
        cache: Cache::of_user().folder().map(PathBuf::from),
        bundle: Bundle::of_program().map(|bundle| Bundled {
            path: bundle.path().into(),
            archs: bundle.archs().collect(),
        }),
    }
}

impl Description {
    /// One line for each thing the machine lacks, and what mends it.
    pub fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        lacks.extend(self.driver.as_ref().err().map(DriverError::to_string));
        let nvrtc = self.nvrtc.as_ref().err().map(NvrtcError::to_string);
        lacks.extend(nvrtc.map(|why| match &self.bundle {
            Some(_) => format!("for kernels of your own: {why}"),
            None => why,
        }));
        for (ordinal, device) in self.devices.iter().enumerate() {
            if let Ok(nvrtc) = &self.nvrtc
                && !nvrtc.archs.contains(&device.arch)
            {
                lacks.push(format!(
                    "GPU {ordinal} is {}, for which NVRTC {}.{} does not compile; install another version",
                    device.arch, nvrtc.version.0, nvrtc.version.1
                ));
            }
            let abilities = [
                (
                    device.virtual_memory,
                    "virtual memory management, so no symmetric heap",
                ),
                (device.posix_handles, "sharing of memory between processes"),
                (
                    device.cooperative_launch,
                    "cooperative launches, so no grid barriers",
                ),
                (
                    device.cluster_launch,
                    "clusters (compute capability 9.0 or higher)",
                ),
            ];
            for (_, what) in abilities.iter().filter(|(there, _)| !there) {
                lacks.push(format!("GPU {ordinal} has no {what}"));
            }
        }
        for (from, row) in self.links.iter().enumerate() {
            for (to, _) in row
                .iter()
                .enumerate()
                .filter(|(_, link)| **link == Link::None)
            {
                lacks.push(format!("GPU {from} can not reach the memory of GPU {to}"));
            }
        }
        lacks
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok((major, minor)) = self.driver {
            writeln!(f, "driver   CUDA {major}.{minor}")?;
        }
        if let Ok(nvrtc) = &self.nvrtc {
            writeln!(
                f,
                "NVRTC    {}.{}, {}",
                nvrtc.version.0,
                nvrtc.version.1,
                nvrtc.path.display()
            )?;
        }
        for (place, reason) in &self.refused {
            writeln!(f, "refused  {place}: {reason}")?;
        }
        if let Some(cache) = &self.cache {
            writeln!(f, "cache    {}", cache.display())?;
        }
        if let Some(Bundled { path, archs }) = &self.bundle {
            let archs: Vec<String> = archs.iter().map(Arch::to_string).collect();
            writeln!(f, "compiled {}, for {}", path.display(), archs.join(", "))?;
        }
        for (ordinal, device) in self.devices.iter().enumerate() {
            writeln!(
                f,
                "GPU {ordinal}    {}, {:.1} GiB, {} SMs at {:.2} GHz, compute capability {}.{}, L2 {} MiB, \
                 shared memory {} KiB a block, PCI {}",
                device.name,
                device.memory as f64 / f64::from(1 << 30),
                device.multiprocessors,
                f64::from(device.clock_khz) / 1e6,
                device.arch.major,
                device.arch.minor,
                device.l2 >> 20,
                device.shared_per_block_optin >> 10,
                device.pci,
            )?;
        }
        if self.links.len() > 1 {
            write!(f, "peers   ")?;
            (0..self.links.len()).try_for_each(|to| write!(f, " {:>7}", format!("GPU {to}")))?;
            writeln!(f)?;
            for (from, row) in self.links.iter().enumerate() {
                write!(f, "  {:<6}", format!("GPU {from}"))?;
                for link in row {
                    let text = match link {
                        Link::Same => "-",
                        Link::NvLink => "NVLink",
                        Link::Pcie => "PCIe",
                        Link::None => "none",
                    };
                    write!(f, " {text:>7}")?;
                }
                writeln!(f)?;
            }
            writeln!(f, "         (atomics work over NVLink only)")?;
        }
        self.lacks()
            .iter()
            .try_for_each(|line| writeln!(f, "missing  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_described() {
        let text = describe().to_string();
        assert!(text.lines().all(|line| line.len() > 3), "{text}");
    }

    #[test]
    fn a_machine_with_two_gpus_reads_well() {
        let device = crate::launch::limits::tests::hopper();
        let description = Description {
            driver: Ok((13, 0)),
            devices: vec![
                device.clone(),
                DeviceProperties {
                    arch: Arch::new(7, 0),
                    cluster_launch: false,
                    ..device
                },
            ],
            links: vec![vec![Link::Same, Link::NvLink], vec![Link::None, Link::Same]],
            nvrtc: Ok(Compiler {
                version: (13, 0),
                path: "/lib/libnvrtc.so.13".into(),
                archs: vec![Arch::new(9, 0)],
            }),
            refused: vec![("'.' on PATH".into(), "a relative path".into())],
            cache: Some("/cache".into()),
            bundle: Some(Bundled {
                path: "/share/kernels.bundle".into(),
                archs: vec![Arch::new(8, 0), Arch::new(9, 0)],
            }),
        };
        assert_eq!(
            description.to_string(),
            "driver   CUDA 13.0\n\
             NVRTC    13.0, /lib/libnvrtc.so.13\n\
             refused  '.' on PATH: a relative path\n\
             cache    /cache\n\
             compiled /share/kernels.bundle, for sm_80, sm_90\n\
             GPU 0    NVIDIA H200, 140.0 GiB, 132 SMs at 1.98 GHz, compute capability 9.0, L2 60 MiB, shared memory 227 KiB a block, PCI 0000:01:00.0\n\
             GPU 1    NVIDIA H200, 140.0 GiB, 132 SMs at 1.98 GHz, compute capability 7.0, L2 60 MiB, shared memory 227 KiB a block, PCI 0000:01:00.0\n\
             peers      GPU 0   GPU 1\n  GPU 0        -  NVLink\n  GPU 1     none       -\n         (atomics work over NVLink only)\n\
             missing  GPU 1 is sm_70, for which NVRTC 13.0 does not compile; install another version\n\
             missing  GPU 1 has no clusters (compute capability 9.0 or higher)\n\
             missing  GPU 1 can not reach the memory of GPU 0\n"
        );
    }

    #[test]
    fn what_is_missing_is_said_with_its_remedy() {
        let description = Description {
            driver: Err(DriverError::NoLibrary),
            devices: Vec::new(),
            links: Vec::new(),
            nvrtc: Err(NvrtcError {
                looked: vec![("/x".into(), "nothing there".into())],
            }),
            refused: Vec::new(),
            cache: None,
            bundle: None,
        };
        let text = description.to_string();
        assert!(
            text.contains("missing  no CUDA driver") && text.contains("install an NVIDIA driver"),
            "{text}"
        );
        assert!(
            text.contains("pip install nvidia-cuda-nvrtc") && text.contains("/x (nothing there)"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2);
    }
}
