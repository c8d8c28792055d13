//! The names against those of NVSHMEM, the library against the table, and the headers against compilers.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;
use support::*;

/// Families of names, their sizes and where they are.
const FAMILIES: &str = include_str!("families.txt");

const TYPES: &str = "bfloat16 half float double char schar short int long longlong uchar ushort uint ulong ulonglong \
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 size ptrdiff";
const OPERATIONS: &str = "and or xor min max sum prod";
const BITS: &str = "8 16 32 64 128";

fn names(kind: &str) -> BTreeSet<&'static str> {
    let lines = NAMES.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter(|(of, _)| *of == kind)
        .map(|(_, name)| name)
        .collect()
}

/// All names that a pattern may stand for.
fn expand(pattern: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([pattern.to_owned()]);
    for (word, stands_for) in [("TYPE", TYPES), ("OP", OPERATIONS), ("BITS", BITS)] {
        let each = |name: String| -> Vec<String> {
            match name.contains(word) {
                true => stands_for
                    .split_whitespace()
                    .map(|one| name.replace(word, one))
                    .collect(),
                false => vec![name],
            }
        };
        all = all.into_iter().flat_map(each).collect();
    }
    all
}

#[test]
fn the_table_has_nvshmems_names() {
    let (host, kernels) = (names("host"), names("kernel"));
    let (mut of_host, mut of_kernels) = (0, 0);
    for line in FAMILIES.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(' ').collect();
        let [pattern, n, place] = columns[..] else {
            panic!("{line}")
        };
        let n: usize = n.parse().unwrap();
        let among = |names: &BTreeSet<&str>| {
            expand(pattern)
                .iter()
                .filter(|name| names.contains(name.as_str()))
                .count()
        };
        let (on_host, in_kernels) = match place {
            "H" => (n, 0),
            "D" => (0, n),
            "HD" => (n, n),
            "inline" | "absent" => (0, 0),
            _ => panic!("{line}"),
        };
        assert_eq!(
            (among(&host), among(&kernels)),
            (on_host, in_kernels),
            "{line}"
        );
        of_host += on_host;
        of_kernels += in_kernels;
    }
    // And no others.
    assert_eq!((host.len(), kernels.len()), (of_host, of_kernels));
}

#[test]
fn the_library_exports_the_table() {
    let own = std::env::current_exe().unwrap();
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(own.with_file_name("libcrosswarp_nvshmem.so"));
    let output = succeed(&mut nm);
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let missing: Vec<_> = names("host")
        .into_iter()
        .filter(|name| !exported.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let others: Vec<_> = exported
        .iter()
        .filter(|name| name.starts_with("nvshmem") && !names("host").contains(**name))
        .collect();
    // What the header's own parts call, and the name of NVIDIA's that says to compile again.
    assert_eq!(
        others,
        [
            &"nvshmem_cw_prepare_1",
            &"nvshmem_cw_register_1",
            &"nvshmem_cw_register_of_hosts_1",
            &"nvshmem_cw_smallest_1",
            &"nvshmem_cw_spmd",
            &"nvshmem_cw_unregister_1",
            &"nvshmemid_hostlib_init_attr"
        ]
    );
}

/// Every path that programs include, by both kinds of compiler.
#[test]
fn every_header_compiles() {
    let Some(nvcc) = nvcc("every_header_compiles") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let include = prefix().join("include");
    let mut text = String::new();
    for file in crosswarp_nvshmem::installation::files() {
        if let Some(path) = file
            .path
            .strip_prefix("include/")
            .filter(|path| path.ends_with(".h"))
        {
            let _ = writeln!(text, "#include <{path}>");
        }
    }
    text += "int main(void) {\n    nvshmem_init();\n    nvshmem_barrier_all();\n    nvshmem_finalize();\n    return 0;\n}\n";
    for (name, extra) in [
        ("c.c", "-std=c11"),
        ("eleven.cpp", "-std=c++11"),
        ("twenty.cpp", "-std=c++20"),
    ] {
        let source = folder.path().join(name);
        std::fs::write(&source, &text).unwrap();
        let compiler = if name == "c.c" { "gcc" } else { "g++" };
        silently(
            Command::new(compiler)
                .args([
                    extra,
                    "-Wall",
                    "-Wextra",
                    "-c",
                    "-o",
                    "/dev/null",
                    "-isystem",
                ])
                .arg(toolkit(&nvcc))
                .arg("-I")
                .arg(&include)
                .arg(&source),
        );
    }
    let source = folder.path().join("all.cu");
    std::fs::write(&source, &text).unwrap();
    silently(compiler(&nvcc, &["-std=c++17", "-c", "-o", "/dev/null"]).arg(&source));
}

/// Every name is there for kernels, and none of them needs a definition that is missing.
#[test]
fn kernels_know_every_name() {
    let Some(nvcc) = nvcc("kernels_know_every_name") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("#include <nvshmemx.h>\n");
    for name in names("kernel") {
        let _ = writeln!(text, "static_assert(sizeof(&{name}) == 8, \"\");");
    }
    text += "__global__ void kernel(int* x) { nvshmem_int_p(x, 1, 0); }\n";
    let source = folder.path().join("names.cu");
    std::fs::write(&source, text).unwrap();
    silently(compiler(&nvcc, &["-std=c++17", "-c", "-o", "/dev/null"]).arg(&source));
}

/// Units of a program, in both modes and, if all is wanted, by every standard: without a warning, and each registered.
#[test]
fn units_compile_in_both_modes() {
    let Some(nvcc) = nvcc("units_compile_in_both_modes") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let units = [
        (
            "one",
            "#include <nvshmem.h>\n#include <cstdio>\n__global__ void one(float* x) { nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, x, x, 1); }\nint main() {\n    nvshmem_init();\n    std::printf(\"%d of %d\\n\", nvshmem_my_pe(), nvshmem_n_pes());\n    nvshmem_finalize();\n}\n",
        ),
        (
            "two",
            "#include <nvshmemx.h>\n__global__ void two(long* x) { nvshmemx_long_put_signal_nbi_warp(x, x, 1, (uint64_t*)x, 1, NVSHMEM_SIGNAL_ADD, 0); }\n",
        ),
        (
            "three",
            "#include <nvshmem.h>\nvoid three() { nvshmem_barrier_all(); }\n",
        ),
    ];
    for (name, text) in units {
        std::fs::write(folder.path().join(format!("{name}.cu")), text).unwrap();
    }
    let standards: &[&str] = match all() {
        true => &["-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20"],
        // What the oldest takes, the others do.
        false => &["-std=c++11"],
    };
    for standard in standards {
        let forms = [
            ("-rdc=false", "-DOF_ONE_HOST"),
            ("-rdc=true", "-DOF_ONE_HOST"),
            ("-rdc=false", "-DNVSHMEM_CW_HOSTS"),
            ("-rdc=true", "-DNVSHMEM_CW_HOSTS"),
        ];
        for (mode, hosts) in forms {
            let mut objects = Vec::new();
            for (name, _) in units {
                let object = folder.path().join(format!("{name}.o"));
                silently(
                    compiler(&nvcc, &[standard, mode, hosts, "-c", "-o"])
                        .arg(&object)
                        .arg(folder.path().join(format!("{name}.cu"))),
                );
                objects.push(object);
            }
            let program = folder.path().join("program");
            // The device archive, too, as build files for the original have it.
            silently(
                compiler(&nvcc, &[mode, "-o"])
                    .arg(&program)
                    .args(&objects)
                    .args(linked_by_nvcc())
                    .arg("-lnvshmem_device"),
            );
            let output = succeed(&mut Command::new(&program));
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "0 of 1\n",
                "{standard} {mode} {hosts}"
            );
        }
    }
    // The device linker keeps one of each function, so all units have to be for one host or for several.
    let object = |name: &str, hosts: &str| {
        let object = folder.path().join(format!("{name}.o"));
        let arguments = ["-std=c++17", "-rdc=true", hosts, "-c", "-o"];
        let source = folder.path().join(format!("{name}.cu"));
        silently(compiler(&nvcc, &arguments).arg(&object).arg(source));
        object
    };
    let objects = [
        object("one", "-DOF_ONE_HOST"),
        object("two", "-DNVSHMEM_CW_HOSTS"),
    ];
    let mut linker = compiler(&nvcc, &["-dlink", "-o", "/dev/null"]);
    let output = linker.args(&objects).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "both kinds are linked");
    assert!(
        said.contains("Size doesn't match for 'nvshmem_cw_state_1'"),
        "{said}"
    );
}

/// Tiles are templates, and there from C++17 on: every form of every function, in both modes, without a warning.
#[test]
fn tiles_compile_in_both_modes() {
    let Some(nvcc) = nvcc("tiles_compile_in_both_modes") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from(
        "#include <nvshmemx.h>\n#include <device/tile/nvshmemx_tile_api.hpp>\nusing namespace nvshmemx;\n\
         template <class T> using tile = Tensor<T, Layout<shape<ConstInt<8>, int>, stride<long, ConstInt<1>>>>;\n\
         template <class T> __global__ void all(tile<T> s, tile<T> d, shape<int, int> at, int *status) {\n    \
         using S = tile<T>;\n    using B = shape<int, int>;\n    \
         constexpr auto push = tile_coll_algo_t::NVLS_ONE_SHOT_PUSH_NBI;\n",
    );
    for form in ["", "_warp", "_warpgroup", "_block"] {
        for (call, of, arguments) in [
            ("put", "tile_algo_t::PEER_PUSH_NBI", "s, d, at, at, 1"),
            ("put", "tile_algo_t::REMOTE_PUSH_NBI", "s, d, at, at, 1"),
            ("get", "tile_algo_t::PEER_PULL_NBI", "s, d, at, at, 1"),
            ("get", "tile_algo_t::REMOTE_PULL_NBI", "s, d, at, at, 1"),
            ("allgather", "push", "NVSHMEM_TEAM_WORLD, s, d, at, at"),
            ("broadcast", "push", "NVSHMEM_TEAM_WORLD, s, d, at, at"),
        ] {
            let _ = writeln!(
                text,
                "    *status |= tile_{call}{form}<S, S, B, {of}>({arguments}, 0);"
            );
        }
        let _ = writeln!(
            text,
            "    *status |= tile_collective_wait{form}<push>(NVSHMEM_TEAM_WORLD, 0);"
        );
    }
    text += "}\ntemplate __global__ void all(tile<__half>, tile<__half>, shape<int, int>, int *);\n\
        int main() {\n    auto layout = make_layout(make_shape(ConstInt<8>(), 4), make_stride(8L, ConstInt<1>()));\n    \
        return Tensor((float *)nullptr, layout).data != nullptr;\n}\n";
    let source = folder.path().join("tiles.cu");
    std::fs::write(&source, text).unwrap();
    for mode in ["-rdc=false", "-rdc=true"] {
        silently(compiler(&nvcc, &["-std=c++17", mode, "-c", "-o", "/dev/null"]).arg(&source));
    }
}
