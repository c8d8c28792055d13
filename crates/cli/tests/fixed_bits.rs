//! The bits of fixed problems: they change with the numerics' contract only, never with the machine, the number of PEs
//! or the structure of the code.

mod common;

use common::{example, json, outcome, write_npy};
use half::f16;
use insta::assert_snapshot;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

/// Hexadecimal, as `sha256sum` prints it.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        })
}

/// One line of a solve: sweeps, the last norm, the hash of every norm that is reported, the field's.
fn solved(problem: &str, pes: usize) -> String {
    let object = json(&format!("solve {problem} --backend cpu --pes {pes} --json"));
    let history = sha256(object["history"].to_string().as_bytes());
    format!(
        "{} sweeps, norm {}, norms {}, field {}",
        object["sweeps"],
        object["norm"],
        &history[..16],
        object["field_sha256"].as_str().unwrap()
    )
}

#[test]
fn solves() {
    let files = [
        ("seed_1d.toml", ""),
        ("jacksboro.toml", ""),
        ("heated_plate.toml", "--max-sweeps 2000"),
        ("channel.toml", "--max-sweeps 2000"),
        ("electrodes.toml", "--max-sweeps 2000"),
    ]
    .map(|(file, options)| format!("{} {options}", example(file).display()));
    let given = [
        "laplace1d --points 100000 --max-sweeps 300 --tolerance 1e-30",
        "laplace2d --preset nvidia --nx 1000 --ny 700 --max-sweeps 500 --tolerance 1e-30",
        "laplace2d --nx 333 --ny 257 --dtype f64 --max-sweeps 500 --tolerance 1e-30",
        "laplace2d --nx 200 --ny 130 --boundary top=1e-22 --max-sweeps 300 --tolerance 1e-30",
        "laplace2d --nx 200 --ny 130 --boundary top=sin(3*x) --max-sweeps 300",
    ]
    .map(String::from);
    let mut lines = String::new();
    for problem in files.iter().chain(&given) {
        let line = solved(problem, 1);
        assert_eq!(solved(problem, 3), line, "3 PEs: {problem}");
        let name = problem.rsplit('/').next().unwrap();
        writeln!(lines, "{name}: {line}").unwrap();
    }
    assert_snapshot!(lines);
}

/// Numbers in (-1, 1) from a linear congruential generator (Knuth's MMIX), as f64 with 32 random bits.
fn numbers(count: usize) -> Vec<f64> {
    let mut state = 42u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as f64 / f64::from(1u32 << 31) - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Writes the test's arrays to `folder`.
fn write_arrays(folder: &Path) {
    let numbers = numbers(300_007);
    let count = [numbers.len() as u64];
    let of = |scale: f64| numbers.iter().map(move |x| x * scale);
    write_npy(&folder.join("f64.npy"), &count, of(1e9));
    write_npy(&folder.join("f32.npy"), &count, of(3.0).map(|x| x as f32));
    write_npy(
        &folder.join("f16.npy"),
        &count,
        of(100.0).map(f16::from_f64),
    );
    write_npy(
        &folder.join("near_one.npy"),
        &count,
        of(1e-3).map(|x| 1.0 + x as f32),
    );
    write_npy(&folder.join("i32.npy"), &count, of(1e6).map(|x| x as i32));
    let plane = numbers[..499 * 601].iter().map(|&x| x as f32);
    write_npy(&folder.join("plane.npy"), &[499, 601], plane);
}

#[test]
fn reductions_counts_and_transpositions() {
    let folder = tempfile::tempdir().unwrap();
    write_arrays(folder.path());
    let mut lines = String::new();
    for dtype in ["f64", "f32", "f16", "i32", "near_one"] {
        let path = folder.path().join(format!("{dtype}.npy"));
        for op in [
            "sum",
            "sum --exact",
            "prod",
            "min",
            "argmax",
            "mean",
            "norm2",
        ] {
            // Of the others the product is infinite or 0.
            if (op == "prod") != (dtype == "near_one")
                || dtype == "i32" && ["sum --exact", "mean", "norm2"].contains(&op)
            {
                continue;
            }
            let value = |pes: usize| {
                let path = path.display();
                let object = json(&format!(
                    "reduce {op} {path} --backend cpu --pes {pes} --json"
                ));
                format!("{} {}", object["value"], object["bits"])
            };
            let one = value(1);
            assert_eq!(value(3), one, "3 PEs: {op} of {dtype}");
            writeln!(lines, "{op} of {dtype}: {one}").unwrap();
        }
    }
    for (dtype, bins) in [
        ("f32", "--bins 100"),
        ("f64", "--bins 7"),
        ("i32", "--bins 1000 --range -100000:200000"),
    ] {
        let path = folder.path().join(format!("{dtype}.npy"));
        let csv = folder.path().join("counts.csv");
        let line = format!(
            "histogram {} {bins} --backend cpu --csv {}",
            path.display(),
            csv.display()
        );
        let (code, _, err) = outcome(&line);
        assert_eq!(code, 0, "{err}");
        writeln!(
            lines,
            "{bins} of {dtype}: {}",
            sha256(&std::fs::read(csv).unwrap())
        )
        .unwrap();
    }
    let [plane, turned] = ["plane.npy", "turned.npy"].map(|name| folder.path().join(name));
    let (code, _, err) = outcome(&format!(
        "transpose {} -o {} --backend cpu",
        plane.display(),
        turned.display()
    ));
    assert_eq!(code, 0, "{err}");
    writeln!(
        lines,
        "transposed: {}",
        sha256(&std::fs::read(turned).unwrap())
    )
    .unwrap();
    assert_snapshot!(lines);
}
