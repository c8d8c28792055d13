//! `crosswarp info`: what this machine offers and what would be used.

use std::fs;

use crosswarp::prim::Simd;
use crosswarp::shmem::SETTINGS;

use crate::commands::error::CliError;
use crate::console;
use crate::processor::{logical_processors, physical_cores};

/// Prints a table.
pub fn info() -> Result<i32, CliError> {
    let memory = rustix::system::sysinfo();
    let gib = |units: u64| units as f64 * f64::from(memory.mem_unit) / (1u64 << 30) as f64;
    let mut rows = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("system", system()),
        ("processor", processor()),
        (
            "cores",
            format!(
                "{} physical, {} logical (default --pes {})",
                physical_cores(),
                logical_processors(),
                physical_cores()
            ),
        ),
        ("vectors", Simd::detect().to_string()),
        ("caches", caches()),
        (
            "memory",
            format!(
                "{:.1} GiB, {:.1} GiB free",
                gib(memory.totalram as u64),
                gib(memory.freeram as u64)
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
    for (name, value) in rows {
        console::line(format_args!("{name:<24}{value}"))?;
    }
    console::line(format_args!(
        "\n{}",
        crosswarp::cuda::describe().to_string().trim_end()
    ))?;
    Ok(0)
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

/// The caches of the first processor, as `L1 48K, L2 1024K, L3 32768K`.
fn caches() -> String {
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
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        "unknown".to_owned()
    } else {
        all.join(", ")
    }
}
