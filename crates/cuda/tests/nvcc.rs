//! The device headers under nvcc with relocatable device code: units that include them link. Without nvcc (on PATH or
//! in CUDA_HOME) the test says that it was skipped.
#![allow(unsafe_code)] // Launches kernels.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crosswarp_cuda::{
    Buffer, Device, DeviceWorld, Launch, Module, Stream, find_program, kernel_resources, skip,
};
use crosswarp_shmem::spmd;

fn nvcc() -> Result<PathBuf, String> {
    let home = std::env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin/nvcc"));
    match home.filter(|nvcc| nvcc.is_absolute() && nvcc.exists()) {
        Some(nvcc) => Ok(nvcc),
        None => find_program("nvcc"),
    }
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// How often the symbol table of `elf` (64 bits, little-endian) has a defined symbol `name`.
fn definitions(elf: &[u8], name: &str) -> usize {
    let number = |at: usize, bytes: usize| {
        let bytes = elf[at..at + bytes].iter().rev();
        bytes.fold(0usize, |number, &byte| number << 8 | byte as usize)
    };
    let section = |index: usize| {
        let at = number(40, 8) + index * number(58, 2);
        (
            number(at + 4, 4),
            number(at + 24, 8),
            number(at + 32, 8),
            number(at + 40, 4),
        )
    };
    let mut count = 0;
    for (kind, offset, size, link) in (0..number(60, 2)).map(section) {
        // Of symbols: name at 0, section at 6.
        let symbols = (offset..offset + size).step_by(24).filter(|_| kind == 2);
        for symbol in symbols.filter(|&symbol| number(symbol + 6, 2) != 0) {
            let text = &elf[section(link).1 + number(symbol, 4)..];
            count += usize::from(text.starts_with(format!("{name}\0").as_bytes()));
        }
    }
    count
}

#[test]
fn relocatable_units_share_one_world() {
    const TEST: &str = "relocatable_units_share_one_world";
    let nvcc = match nvcc() {
        Ok(nvcc) => nvcc,
        Err(reason) => return skip::skip_tool(TEST, reason),
    };
    let device = Device::get(0);
    let arch = device
        .as_ref()
        .map_or("sm_90".to_owned(), |device| device.arch().to_string());
    let folder = tempfile::tempdir().unwrap();
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("device");
    for unit in ["one", "two"] {
        let text = format!(
            "#include \"pe.cuh\"\nextern \"C\" __global__ void {unit}(int* out) {{ *out = crosswarp::n_pes(); }}\n"
        );
        let source = folder.path().join(unit).with_extension("cu");
        std::fs::write(&source, text).unwrap();
        succeed(
            Command::new(&nvcc)
                .args(["-std=c++17", "-rdc=true", "-arch", &arch, "-I"])
                .arg(&headers)
                .arg("-c")
                .arg(&source)
                .current_dir(folder.path()),
        );
    }
    succeed(
        Command::new(&nvcc)
            .args([
                "-arch",
                &arch,
                "-dlink",
                "one.o",
                "two.o",
                "-cubin",
                "-o",
                "both.cubin",
            ])
            .current_dir(folder.path()),
    );
    let cubin = std::fs::read(folder.path().join("both.cubin")).unwrap();
    let kernels = kernel_resources(&cubin).unwrap();
    let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(definitions(&cubin, "crosswarp_world"), 1);

    let Ok(device) = device else { return };
    spmd(1, |pe| {
        let limit = Some(Duration::from_secs(60));
        let world = DeviceWorld::new(pe, device, Some(64 << 20), limit).unwrap();
        let module = Module::load(&device, &cubin).unwrap();
        world.install(&module).unwrap();
        let stream = Stream::new(&device).unwrap();
        let out = Buffer::<i32>::zeroed(&stream, 1).unwrap();
        for unit in ["one", "two"] {
            stream.zero(&out).unwrap();
            let kernel = module.function(unit).unwrap();
            // SAFETY: the parameter is an address of one integer, which lives until it has been read.
            unsafe { Launch::new(&kernel).launch(&stream, (&out,)) }.unwrap();
            assert_eq!(out.to_vec(&stream).unwrap(), [1], "{unit}");
        }
    })
    .unwrap();
}
