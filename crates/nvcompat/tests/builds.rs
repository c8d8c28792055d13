//! Ways in which programs are built: by CMake's package, by clang, and as libraries that are loaded late.

mod support;

use crosswarp_cuda::{find_program, skip};
use std::path::Path;
use std::process::Command;
use support::*;

/// A unit whose kernel uses what the header has of its own.
const UNIT: &str = r#"
#include <nvshmem.h>
#include <nvshmemx.h>
__global__ void unit(float *x, uint64_t *signal) {
    nvshmem_float_p(x, 1.f, 0);
    nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, x, x, 1);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
}
"#;
const MAIN: &str = r#"
#include <cstdio>
int main() {
    nvshmem_init();
    std::printf("%d of %d\n", nvshmem_my_pe(), nvshmem_n_pes());
    nvshmem_finalize();
}
"#;

fn runs(program: &Path) {
    let output = succeed(&mut Command::new(program));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 of 1\n");
}

const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.24)
project(units LANGUAGES CXX CUDA)
find_package(NVSHMEM 3.0 REQUIRED CONFIG)
add_executable(whole unit.cu)
target_link_libraries(whole PRIVATE nvshmem::nvshmem_host)
add_executable(relocatable unit.cu other.cu)
set_target_properties(relocatable PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_link_libraries(relocatable PRIVATE nvshmem::nvshmem_host nvshmem::nvshmem_device)
add_executable(both unit.cu)
target_link_libraries(both PRIVATE nvshmem::nvshmem)
"#;

#[test]
fn cmake_finds_the_package_and_its_targets() {
    const TEST: &str = "cmake_finds_the_package_and_its_targets";
    let Some(nvcc) = nvcc(TEST) else { return };
    if let Err(reason) = find_program("cmake") {
        return skip::skip_tool(TEST, reason);
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("CMakeLists.txt", PROJECT.to_owned()),
        ("unit.cu", format!("{UNIT}{MAIN}")),
        (
            "other.cu",
            "#include <nvshmem.h>\n__global__ void other(int *x) { nvshmem_int_p(x, 1, 0); }\n"
                .to_owned(),
        ),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let build = folder.path().join("build");
    // Wheels have their libraries where neither nvcc nor CMake looks.
    let home = nvcc.parent().and_then(Path::parent).unwrap();
    let cmake = || {
        let mut command = Command::new("cmake");
        command
            .env("LIBRARY_PATH", home.join("lib"))
            .env("CUDAToolkit_ROOT", home);
        command
    };
    succeed(
        cmake()
            .arg("-S")
            .arg(folder.path())
            .arg("-B")
            .arg(&build)
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()))
            .arg(format!("-DCMAKE_CUDA_COMPILER={}", nvcc.display()))
            .arg("-DCMAKE_CUDA_ARCHITECTURES=90"),
    );
    succeed(cmake().arg("--build").arg(&build));
    for program in ["whole", "relocatable", "both"] {
        runs(&build.join(program));
    }
}

/// Kernels of their own calls only, each alone in its file, so that what is called counts.
const KERNELS: [(&str, &str, u32); 8] = [
    ("get", "nvshmemx_float_get_nbi_block(x, y, n, 1)", 32),
    (
        "float_sum",
        "nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, x, y, n)",
        136,
    ),
    ("put", "nvshmemx_float_put_nbi_block(x, y, n, 1)", 32),
    (
        "signal",
        "nvshmemx_putmem_signal_block(x, y, n, s, 1, NVSHMEM_SIGNAL_SET, 1)",
        32,
    ),
    (
        "sum",
        "nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, (int *)x, (int *)y, n)",
        128,
    ),
    (
        "broadcast",
        "nvshmemx_float_broadcast_warp(NVSHMEM_TEAM_WORLD, x, y, n, 0)",
        64,
    ),
    (
        "broadcast_of_a_block",
        "nvshmemx_float_broadcast_block(NVSHMEM_TEAM_WORLD, x, y, n, 0)",
        64,
    ),
    (
        "alltoall",
        "nvshmemx_float_alltoall_block(NVSHMEM_TEAM_WORLD, x, y, n)",
        128,
    ),
];

/// A multiprocessor of compute capability 9.0 has 65,536 registers (CUDA programming guide, table of technical
/// specifications): two blocks of 1024 threads have 32 each, one of 1024 alone 64, one of 512 128, one of 480 136. The
/// compiler counts what a kernel's calls take; a kernel with more can't be launched, or half as many blocks run.
#[test]
fn large_blocks_have_the_registers_that_calls_take() {
    let Some(nvcc) = nvcc("large_blocks_have_the_registers_that_calls_take") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, call, most) in KERNELS {
        let source = folder.path().join(format!("{name}.cu"));
        let text = format!(
            "#include <nvshmem.h>\n#include <nvshmemx.h>\n\
             __global__ void kernel(float *x, float *y, size_t n, uint64_t *s) {{ {call}; }}\n"
        );
        std::fs::write(&source, text).unwrap();
        let mut command = compiler(&nvcc, &["-std=c++17", "-cubin", "-Xptxas", "-v", "-o"]);
        let output = succeed(command.arg(source.with_extension("cubin")).arg(&source));
        let said = String::from_utf8_lossy(&output.stderr);
        let used = said
            .lines()
            .filter_map(|line| line.split_once("Used ")?.1.split_once(" registers"))
            .filter_map(|(count, _)| count.parse::<u32>().ok())
            .max();
        let used = used.unwrap_or_else(|| panic!("no registers in:\n{said}"));
        assert!(used <= most, "{name}: {used} registers, at most {most}");
    }
}

/// From 22 on clang takes the headers of CUDA 13, but includes one of cuRAND.
#[test]
fn clang_compiles_kernels() {
    const TEST: &str = "clang_compiles_kernels";
    let Some(nvcc) = nvcc(TEST) else { return };
    let found = ["clang++-24", "clang++-23", "clang++-22"].map(find_program);
    let Some(clang) = found.into_iter().find_map(Result::ok) else {
        return skip::skip_tool(TEST, "no clang++-22 or newer");
    };
    let toolkit = toolkit(&nvcc);
    if !toolkit.join("curand_mtgp32_kernel.h").exists() {
        return skip::skip_tool(TEST, "no cuRAND, a header of which clang includes");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut text = format!("{UNIT}{MAIN}");
    // Every name is there for kernels.
    for line in NAMES.lines() {
        if let Some(name) = line.strip_prefix("kernel ") {
            text += &format!("static_assert(sizeof(&{name}) == 8, \"\");\n");
        }
    }
    let (source, object) = (folder.path().join("unit.cu"), folder.path().join("unit.o"));
    std::fs::write(&source, text).unwrap();
    for standard in ["-std=c++14", "-std=c++20"] {
        succeed(
            Command::new(&clang)
                .args(["-x", "cuda", "--cuda-gpu-arch=sm_90", standard])
                .arg(format!(
                    "--cuda-path={}",
                    toolkit.parent().unwrap().display()
                ))
                .args(["-Wall", "-Werror", "-Wno-unknown-cuda-version", "-I"])
                .arg(prefix().join("include"))
                .arg("-c")
                .arg(&source)
                .arg("-o")
                .arg(&object),
        );
    }
    let program = folder.path().join("program");
    succeed(
        Command::new("g++")
            .arg(&object)
            .arg("-o")
            .arg(&program)
            .arg("-L")
            .arg(runtime_folder(&nvcc))
            .args(["-lcudart_static", "-lrt", "-ldl", "-lpthread"])
            .args(linked()),
    );
    runs(&program);
}

/// A program that counts what registers itself, and passes it on.
const LATE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
void nvshmem_init(void); void nvshmem_finalize(void);
static int known, told;
static void pass_on(const char *name, void *(*address)(void)) {
    ++told;
    ((void (*)(void *(*)(void)))dlsym(RTLD_NEXT, name))(address);
}
void nvshmem_cw_register_1(void *(*address)(void)) { ++known; pass_on("nvshmem_cw_register_1", address); }
void nvshmem_cw_unregister_1(void *(*address)(void)) { --known; pass_on("nvshmem_cw_unregister_1", address); }
#define CHECK(what) if (!(what)) { fprintf(stderr, "not so: %s (%d known)\n", #what, known); return 1; }
int main(int count, char **words) {
    nvshmem_init();
    CHECK(known == 0 && count == 2);
    for (int round = 1; round <= 2; ++round) {
        void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) { fprintf(stderr, "%s\n", dlerror()); return 1; }
        CHECK(known == 2 && ((int (*)(void))dlsym(library, "who"))() == 0);
        CHECK(dlclose(library) == 0);
        /* The CUDA runtime keeps some libraries; then they stay known, too. */
        CHECK(known == 0 || (known == 2 && dlopen(words[1], RTLD_NOW | RTLD_NOLOAD) != NULL));
    }
    nvshmem_finalize();
    return 0;
}
"#;

#[test]
fn units_of_a_library_that_is_loaded_late_are_known() {
    let Some(nvcc) = nvcc("units_of_a_library_that_is_loaded_late_are_known") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(
        path("unit.cu"),
        format!("{UNIT}extern \"C\" int who() {{ return nvshmem_my_pe(); }}\n"),
    )
    .unwrap();
    std::fs::write(
        path("other.cu"),
        "#include <nvshmem.h>\n__global__ void other(int *x) { nvshmem_int_p(x, 1, 0); }\n",
    )
    .unwrap();
    std::fs::write(path("late.c"), LATE).unwrap();
    succeed(
        Command::new("gcc")
            .args(["-rdynamic", "-o"])
            .arg(path("late"))
            .arg(path("late.c"))
            .args(linked())
            .arg("-ldl"),
    );
    // Wheels have no name for the shared runtime that linkers look for.
    let lib = runtime_folder(&nvcc);
    let runtimes = std::fs::read_dir(&lib).unwrap();
    for file in runtimes.map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_string_lossy();
        if name.starts_with("libcudart.so") {
            let _ = std::os::unix::fs::symlink(&file, path("libcudart.so"));
        }
    }
    for mode in ["-rdc=false", "-rdc=true"] {
        let objects = ["unit", "other"].map(|name| {
            let object = path(&format!("{name}.o"));
            succeed(
                compiler(&nvcc, &[mode, "-Xcompiler", "-fPIC", "-c", "-o"])
                    .arg(&object)
                    .arg(path(&format!("{name}.cu"))),
            );
            object
        });
        for runtime in ["-cudart=static", "-cudart=shared"] {
            let library = path(&format!("lib{mode}{runtime}.so"));
            succeed(
                compiler(&nvcc, &[mode, runtime, "-shared", "-o"])
                    .arg(&library)
                    .args(&objects)
                    .args(linked_by_nvcc())
                    .arg("-L")
                    .arg(folder.path()),
            );
            let mut late = Command::new(path("late"));
            succeed(late.arg(&library).env("LD_LIBRARY_PATH", &lib));
        }
    }
}
