//! `crosswarp info`: what this machine offers and what would be used.

use std::fs;

use crosswarp::cuda::{Arch, Description, describe};
use crosswarp::prim::Simd;
use crosswarp::shmem::internal::{SETTINGS, ucx};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::error::CommandError;
use super::source_commit::COMMIT;
use crate::args::info::InfoArgs;
use crate::console;
use crate::output::json;
use crate::processor::{logical_processors, physical_cores};

/// Prints a table, or with `--json` one object.
pub fn info(args: &InfoArgs) -> Result<i32, CommandError> {
    let host = Host::look();
    let gpus = describe();
    if args.json {
        console::line(json::line(&Object::new(&host, &gpus)))?;
    } else {
        print(&host, &gpus)?;
    }
    Ok(0)
}

/// What there is beside GPUs.
struct Host {
    system: String,
    processor: String,
    cores: usize,
    logical: usize,
    vectors: String,
    caches: Vec<String>,
    memory: u64,
    free_memory: u64,
}

impl Host {
    fn look() -> Self {
        let memory = rustix::system::sysinfo();
        let bytes = |units: u64| units * u64::from(memory.mem_unit);
        Self {
            system: system(),
            processor: processor(),
            cores: physical_cores(),
            logical: logical_processors(),
            vectors: Simd::detect().to_string(),
            caches: caches(),
            memory: bytes(memory.totalram as u64),
            free_memory: bytes(memory.freeram as u64),
        }
    }
}

fn print(host: &Host, gpus: &Description) -> Result<(), CommandError> {
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let mut rows = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("system", host.system.clone()),
        ("processor", host.processor.clone()),
        (
            "cores",
            format!(
                "{} physical, {} logical (default --pes {})",
                host.cores, host.logical, host.cores
            ),
        ),
        ("vectors", host.vectors.clone()),
        (
            "caches",
            if host.caches.is_empty() {
                "unknown".to_owned()
            } else {
                host.caches.join(", ")
            },
        ),
        (
            "memory",
            format!(
                "{:.1} GiB, {:.1} GiB free",
                gib(host.memory),
                gib(host.free_memory)
            ),
        ),
        (
            "backend",
            "GPUs if there are any, else the CPU (--backend)".to_owned(),
        ),
    ];
    for setting in SETTINGS {
        let value =
            std::env::var(setting.name).unwrap_or_else(|_| format!("unset: {}", setting.default));
        rows.push((setting.name, format!("{value}\n{:24}{}", "", setting.help)));
    }
    let ucx = match ucx() {
        Ok((version, file)) => format!("{version} ({})", file.display()),
        Err(why) => format!("none: {why}"),
    };
    rows.push(("UCX", ucx));
    for (name, value) in rows {
        console::line(format_args!("{name:<24}{value}"))?;
    }
    console::line(format_args!("\n{}", gpus.to_string().trim_end()))?;
    Ok(())
}

#[derive(Serialize)]
struct Object<'a> {
    version: &'static str,
    commit: &'static str,
    system: &'a str,
    processor: &'a str,
    physical_cores: usize,
    logical_processors: usize,
    vectors: &'a str,
    caches: &'a [String],
    memory_bytes: u64,
    free_memory_bytes: u64,
    /// By name; null if not set.
    settings: Map<String, Value>,
    gpus: Vec<Value>,
    /// CUDA versions, as texts; null if there is none.
    driver: Option<String>,
    nvrtc: Option<String>,
    /// Architectures whose kernels were compiled beforehand.
    compiled: Vec<String>,
    /// Its version, as a text; null if there is none.
    ucx: Option<String>,
    /// What the machine lacks, and what mends it.
    lacks: Vec<String>,
}

impl<'a> Object<'a> {
    fn new(host: &'a Host, gpus: &Description) -> Self {
        let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        let settings = SETTINGS.map(|setting| {
            let value = std::env::var(setting.name).ok();
            (setting.name.to_owned(), value.into())
        });
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: COMMIT,
            system: &host.system,
            processor: &host.processor,
            physical_cores: host.cores,
            logical_processors: host.logical,
            vectors: &host.vectors,
            caches: &host.caches,
            memory_bytes: host.memory,
            free_memory_bytes: host.free_memory,
            settings: settings.into_iter().collect(),
            gpus: gpus
                .devices
                .iter()
                .map(|gpu| {
                    json!({
                        "name": gpu.name,
                        "arch": gpu.arch.to_string(),
                        "multiprocessors": gpu.multiprocessors,
                        "memory_bytes": gpu.memory,
                    })
                })
                .collect(),
            driver: gpus.driver.as_ref().ok().copied().map(version),
            nvrtc: gpus.nvrtc.as_ref().ok().map(|found| version(found.version)),
            compiled: match &gpus.bundle {
                Some(bundle) => bundle.archs.iter().map(Arch::to_string).collect(),
                None => Vec::new(),
            },
            ucx: ucx().ok().map(|(version, _)| version),
            lacks: gpus.lacks(),
        }
    }
}

fn system() -> String {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    format!(
        "{} {} {}",
        text(name.sysname()),
        text(name.release()),
        text(name.machine())
    )
}

fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    model
        .and_then(|rest| rest.split_once(':'))
        .map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// The caches of the first processor: `L1 48K`, `L2 1024K`, `L3 32768K`.
fn caches() -> Vec<String> {
    let read = |index: usize, file: &str| {
        fs::read_to_string(format!(
            "/sys/devices/system/cpu/cpu0/cache/index{index}/{file}"
        ))
        .ok()
        .map(|text| text.trim().to_owned())
    };
    let all = (0..8).filter_map(|index| {
        let (level, kind, size) = (
            read(index, "level")?,
            read(index, "type")?,
            read(index, "size")?,
        );
        (kind != "Instruction").then(|| format!("L{level} {size}"))
    });
    all.collect()
}
