//! What needs NVRTC but no GPU. Without NVRTC each test says by name that it was skipped.

use std::path::PathBuf;
use std::process::Command;

use crosswarp_cuda::{
    Arch, Bundle, Cache, CompileError, KERNELS, Nvrtc, Options, Severity, Source, compile,
    compile_bundle, cubin_arch, kernel_resources, kernel_table, skip,
};

fn nvrtc(test: &str) -> Option<&'static Nvrtc> {
    match Nvrtc::get() {
        Ok(nvrtc) => Some(nvrtc),
        Err(reason) => {
            skip::skip_gpu(test, 1, reason);
            None
        }
    }
}

/// A tool of the CUDA toolkit, from PATH or from beside NVRTC (the wheels share a folder).
fn tool(nvrtc: &Nvrtc, name: &str) -> Option<PathBuf> {
    let beside = nvrtc.path().parent()?.parent()?.join("bin").join(name);
    let on_path = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|p| p.exists());
    beside.exists().then_some(beside).or(on_path)
}

const ERRORS: Source<'static> = Source::new(
    "errors.cu",
    "#include \"mine.cuh\"\nextern \"C\" __global__ void k(int* p) {\n    *p = nowhere;\n}\n",
)
.with_headers(&[("mine.cuh", "#pragma once\nstruct S { Missing m; };\n")]);

#[test]
fn a_compile_error_is_shown_with_its_line() {
    let Some(nvrtc) = nvrtc("a_compile_error_is_shown_with_its_line") else {
        return;
    };
    let Err(CompileError::Source(messages)) = compile(&ERRORS, nvrtc.archs()[0], &Options::new())
    else {
        panic!("compiled")
    };
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages
            .iter()
            .all(|message| message.severity == Severity::Error)
    );
    assert_eq!(
        (messages[0].file.as_str(), messages[0].line),
        ("mine.cuh", 2)
    );
    assert_eq!(messages[0].source_line, "struct S { Missing m; };");
    assert_eq!(
        (messages[1].file.as_str(), messages[1].line),
        ("errors.cu", 3)
    );
    assert_eq!(messages[1].source_line, "    *p = nowhere;");
}

#[test]
fn an_unknown_architecture_is_named_with_the_known_ones() {
    if nvrtc("an_unknown_architecture_is_named_with_the_known_ones").is_none() {
        return;
    }
    let error = compile(&KERNELS[0], Arch::new(3, 0), &Options::new()).unwrap_err();
    let line = error.to_string();
    assert!(
        line.contains("does not compile for sm_30, only for sm_"),
        "{line}"
    );
}

#[test]
fn a_kernel_that_asks_for_too_much_fails_with_the_assemblers_words() {
    if nvrtc("a_kernel_that_asks_for_too_much_fails_with_the_assemblers_words").is_none() {
        return;
    }
    let text = "extern \"C\" __global__ void k(int* p) { __shared__ int s[20000]; s[threadIdx.x] = *p; __syncthreads(); *p = s[*p]; }";
    let error = compile(
        &Source::new("big.cu", text),
        Arch::new(9, 0),
        &Options::new(),
    )
    .unwrap_err();
    assert!(
        matches!(&error, CompileError::Failed { log, .. } if log.contains("shared")),
        "{error}"
    );
}

#[test]
fn damaged_and_missing_cache_files_are_rebuilt() {
    let Some(nvrtc) = nvrtc("damaged_and_missing_cache_files_are_rebuilt") else {
        return;
    };
    let arch = nvrtc.archs()[0];
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cubins"));
    let source = KERNELS[0];
    let first = cache.compile(&source, arch, &Options::new()).unwrap();
    let file = || {
        let files: Vec<_> = std::fs::read_dir(cache.folder().unwrap())
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        assert_eq!(files.len(), 1);
        files[0].clone()
    };
    let written = std::fs::read(file()).unwrap();
    assert!(written.ends_with(&first) && written.len() > first.len());
    for damage in [&b"short"[..], &written[..written.len() - 1], &[7; 100_000]] {
        std::fs::write(file(), damage).unwrap();
        assert_eq!(
            cache.compile(&source, arch, &Options::new()).unwrap(),
            first
        );
        assert_eq!(
            std::fs::read(file()).unwrap(),
            written,
            "the entry was not replaced"
        );
    }
    let before = std::fs::metadata(file()).unwrap().modified().unwrap();
    assert_eq!(
        cache.compile(&source, arch, &Options::new()).unwrap(),
        first
    );
    assert!(std::fs::metadata(file()).unwrap().modified().unwrap() >= before);
}

/// Sources that only tests launch. Not among them are those of the conformance suite, which compiles them itself:
/// their many kernels take a minute an architecture.
const OTHERS: [Source<'static>; 1] = [Source::new("gpu.cu", include_str!("kernels/gpu.cu"))];

#[test]
fn every_kernel_compiles_for_every_architecture_from_7_5() {
    let Some(nvrtc) = nvrtc("every_kernel_compiles_for_every_architecture_from_7_5") else {
        return;
    };
    for arch in [75, 80, 89, 90, 100, 120].map(Arch::from_number) {
        if !nvrtc.archs().contains(&arch) {
            println!("skipped: {arch}: not known to this NVRTC");
            continue;
        }
        let sources = [KERNELS, &OTHERS].concat();
        let rows = kernel_table(arch, &sources).unwrap_or_else(|error| panic!("{arch}: {error}"));
        for row in &rows {
            assert!(row.resources.registers > 0, "{row:?}");
            assert!(
                row.occupancy.is_some_and(|occupancy| occupancy.blocks > 0),
                "{row:?}"
            );
        }
    }
}

const RESOURCES: Source<'static> = Source::new(
    "resources.cu",
    r#"
    __constant__ float table[64];
    extern "C" __global__ void __launch_bounds__(256) small(float* p, int n) {
        __shared__ float s[300];
        int i = threadIdx.x;
        s[i] = p[i] * table[i % 64];
        __syncthreads();
        p[i] = s[n - i];
    }
    extern "C" __global__ void local(float* p, const int* index) {
        float a[100];
        for (int i = 0; i < 100; i++) a[i] = p[i] * 2;
        for (int i = 0; i < 100; i++) p[index[i]] = a[index[i + 100]];
    }
    extern "C" __global__ void __launch_bounds__(1024) spill(double* p) {
        double a[48], sum = 0;
        for (int i = 0; i < 48; i++) a[i] = p[i * blockDim.x + threadIdx.x];
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 48; i++) { a[i] = a[i] * a[(i * 7 + r) % 48] + sum; sum += a[i]; }
        for (int i = 0; i < 48; i++) p[i * blockDim.x + threadIdx.x] = a[i];
    }
    extern "C" __global__ void dynamic(int* p) {
        extern __shared__ int d[];
        d[threadIdx.x] = p[threadIdx.x];
        __syncthreads();
        p[threadIdx.x] = d[blockDim.x - 1 - threadIdx.x];
    }
    "#,
);

/// The truth is NVIDIA's `cuobjdump -res-usage`.
#[test]
fn resources_agree_with_cuobjdump() {
    let Some(nvrtc) = nvrtc("resources_agree_with_cuobjdump") else {
        return;
    };
    let Some(cuobjdump) = tool(nvrtc, "cuobjdump") else {
        skip::skip_tool("resources_agree_with_cuobjdump", "no cuobjdump");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for &arch in nvrtc.archs() {
        let cubin = compile(&RESOURCES, arch, &Options::new()).unwrap();
        let file = folder.path().join("k.cubin");
        std::fs::write(&file, &cubin).unwrap();
        let output = Command::new(&cuobjdump)
            .arg("-res-usage")
            .arg(&file)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // The tool counts what the system reserves, the same for every kernel, as shared memory.
        let field = |kernel: &str, name: &str| -> u32 {
            let line = text
                .split(&format!("Function {kernel}:"))
                .nth(1)
                .and_then(|rest| rest.trim_start().lines().next());
            let value = line.and_then(|line| line.split(&format!("{name}:")).nth(1));
            let digits = value.map(|value| value.split_whitespace().next().unwrap_or_default());
            digits
                .and_then(|digits| digits.parse().ok())
                .unwrap_or_else(|| panic!("no {name} of {kernel} in {text}"))
        };
        assert_eq!(cubin_arch(&cubin), Ok(arch));
        let reserved = field("dynamic", "SHARED");
        let kernels = kernel_resources(&cubin).unwrap();
        assert_eq!(
            kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>(),
            ["dynamic", "local", "small", "spill"]
        );
        for kernel in &kernels {
            assert_eq!(
                kernel.registers,
                field(&kernel.name, "REG"),
                "{arch} {}",
                kernel.name
            );
            assert_eq!(
                kernel.local,
                field(&kernel.name, "STACK"),
                "{arch} {}",
                kernel.name
            );
            assert_eq!(
                kernel.static_shared,
                field(&kernel.name, "SHARED") - reserved,
                "{arch} {}",
                kernel.name
            );
            assert_eq!(kernel.constant, 256);
        }
        let bounds: Vec<_> = kernels.iter().map(|kernel| kernel.max_threads).collect();
        assert_eq!(bounds, [None, None, Some(256), Some(1024)], "{arch}");
        assert_eq!(kernels[2].static_shared, 1200, "{arch}");
        assert!(kernels[1].local >= 400 && kernels[0].local == 0, "{arch}");
    }
}

const PARAMETERS: Source<'static> = Source::new(
    "parameters.cu",
    r#"
    struct big { char bytes[4000]; };
    struct odd { char bytes[3]; };
    extern "C" __global__ void none() {}
    extern "C" __global__ void one(float* out) { *out = 1; }
    // What is not used counts as well.
    extern "C" __global__ void many(char, odd, double*, big, int, const int*) {}
"#,
);

#[test]
fn parameters_are_counted() {
    let Some(nvrtc) = nvrtc("parameters_are_counted") else {
        return;
    };
    for &arch in nvrtc.archs() {
        let cubin = compile(&PARAMETERS, arch, &Options::new()).unwrap();
        let kernels = kernel_resources(&cubin).unwrap();
        let found: Vec<_> = kernels
            .iter()
            .map(|kernel| (kernel.name.as_str(), kernel.parameters))
            .collect();
        assert_eq!(found, [("many", 6), ("none", 0), ("one", 1)], "{arch}");
    }
}

/// A product and a sum stay two roundings, also where the source could be contracted.
#[test]
fn no_multiplication_is_contracted() {
    let Some(nvrtc) = nvrtc("no_multiplication_is_contracted") else {
        return;
    };
    let Some(cuobjdump) = tool(nvrtc, "cuobjdump") else {
        skip::skip_tool("no_multiplication_is_contracted", "no cuobjdump");
        return;
    };
    let text = "extern \"C\" __global__ void k(float* p, double* d) { p[0] = p[1] * p[2] + p[3]; d[0] = d[1] * d[2] + d[3]; }";
    let folder = tempfile::tempdir().unwrap();
    // The tool disassembles no architecture older than its own toolkit's.
    for &arch in nvrtc.archs().iter().filter(|arch| arch.number() >= 75) {
        let cubin = compile(&Source::new("k.cu", text), arch, &Options::new()).unwrap();
        let file = folder.path().join("k.cubin");
        std::fs::write(&file, cubin).unwrap();
        let output = Command::new(&cuobjdump)
            .arg("-sass")
            .arg(&file)
            .output()
            .unwrap();
        let code = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            code.contains("FMUL") && code.contains("FADD") && code.contains("DMUL"),
            "{arch}: {code}"
        );
        assert!(
            !code.contains("FFMA") && !code.contains("DFMA") && !code.contains(".FTZ"),
            "{arch}: {code}"
        );
    }
}

/// The examples' kernels, for every architecture that the project's own are compiled for.
#[test]
fn the_examples_compile() {
    if nvrtc("the_examples_compile").is_none() {
        return;
    }
    let sources = [
        Source::new("gpu_ring.cu", include_str!("../examples/gpu_ring.cu")),
        Source::new("halo.cu", include_str!("../examples/halo.cu")),
    ];
    for (major, minor) in [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)] {
        let table = kernel_table(Arch::new(major, minor), &sources);
        let table = table.unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<&str> = table
            .iter()
            .map(|row| row.resources.name.as_str())
            .collect();
        assert_eq!(names, ["ring", "halo"]);
    }
}

#[test]
fn a_bundle_has_what_the_compiler_gave() {
    let Some(_) = nvrtc("a_bundle_has_what_the_compiler_gave") else {
        return;
    };
    let source = Source::new("k.cu", "extern \"C\" __global__ void k(int* p) { *p = N; }");
    let units = [1, 2].map(|n| (source, Options::new().define("N", n)));
    let archs = [Arch::new(8, 0), Arch::new(9, 0)];
    let told = std::sync::Mutex::new(Vec::new());
    let progress = |done, all| told.lock().unwrap().push((done, all));
    let bytes = compile_bundle(&units, &archs, &progress).unwrap();
    let mut told = told.into_inner().unwrap();
    told.sort();
    assert_eq!(told, [(1, 4), (2, 4), (3, 4), (4, 4)]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels");
    std::fs::write(&path, bytes).unwrap();
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.path(), path);
    for (source, options) in &units {
        for arch in archs {
            let cubin = bundle.get(source, arch, options).unwrap();
            assert_eq!(cubin, compile(source, arch, options).unwrap());
        }
    }
    assert!(bundle.serves(Arch::new(8, 9)) && !bundle.serves(Arch::new(10, 0)));

    let wrong = Source::new("wrong.cu", "wrong");
    let units = [units[0].clone(), (wrong, Options::new())];
    let error = compile_bundle(&units, &archs, &|_, _| ()).unwrap_err();
    assert!(error.to_string().starts_with("wrong.cu"), "{error}");
}
