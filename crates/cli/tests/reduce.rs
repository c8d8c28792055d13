//! `crosswarp reduce`, end to end.

mod common;

use common::{json, outcome, write_npy};
use half::{bf16, f16};

#[test]
fn json_has_exactly_the_documented_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    write_npy(&path, &[5], [1.5f32, 2.0, -4.0, 0.25, 8.0]);
    let object = json(&format!("reduce sum {} --json", path.display()));
    let fields: Vec<&str> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = [
        "schema",
        "op",
        "backend",
        "dtype",
        "count",
        "value",
        "bits",
        "pes",
        "world",
        "seconds",
        "bytes_per_second",
    ];
    expected.sort_unstable();
    assert_eq!(fields, expected);
    assert_eq!(
        (object["op"].as_str(), object["dtype"].as_str()),
        (Some("sum"), Some("f32"))
    );
    assert_eq!(
        (object["count"].as_u64(), object["value"].as_f64()),
        (Some(5), Some(7.75))
    );
    assert_eq!(object["bits"], format!("{:#010x}", 7.75f32.to_bits()));
}

#[test]
fn every_operation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    write_npy(&path, &[2, 3], [3.0f64, -4.0, 0.0, 12.0, -4.0, 12.0]);
    for (op, value) in [
        ("sum", 19.0),
        ("prod", 0.0),
        ("min", -4.0),
        ("max", 12.0),
        ("argmin", 1.0),
        ("argmax", 3.0),
        ("mean", 19.0 / 6.0),
        ("norm2", 329f64.sqrt()),
    ] {
        let object = json(&format!("reduce {op} {} --json", path.display()));
        assert_eq!(object["value"].as_f64(), Some(value), "{op}");
        assert_eq!(object["op"], op);
    }
    let object = json(&format!("reduce dot {0} {0} --json", path.display()));
    assert_eq!(object["value"].as_f64(), Some(329.0));
    let (code, out, _) = outcome(&format!(
        "reduce argmax {} --pes 1 --backend cpu",
        path.display()
    ));
    assert_eq!(code, 0);
    assert!(
        out.starts_with(
            "argmax = 3  (0x0000000000000003)\n6 elements f64 on 1 PE (threads), CPU, "
        ),
        "{out}"
    );
}

#[test]
fn the_bits_do_not_depend_on_pes_files_or_world() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let values: Vec<f32> = (0..50_000u32)
        .map(|k| ((k.wrapping_mul(2_654_435_761)) as f32 - 2e9) * 1e-3)
        .collect();
    write_npy(&at("all.npy"), &[50_000], values.iter().copied());
    write_npy(&at("1.npy"), &[17], values[..17].iter().copied());
    write_npy(&at("2.npy"), &[2, 4000], values[17..8017].iter().copied());
    write_npy(&at("3.npy"), &[41_983], values[8017..].iter().copied());
    let all = at("all.npy").display().to_string();
    let parts = ["1.npy", "2.npy", "3.npy"]
        .map(|name| at(name).display().to_string())
        .join(" ");
    for op in ["sum", "mean", "norm2", "min", "argmax", "sum --exact"] {
        let bits = |rest: &str| json(&format!("reduce {op} --json {rest}"))["bits"].clone();
        let one = bits(&format!("{all} --pes 1"));
        assert_eq!(bits(&format!("{all} --pes 3")), one, "{op}");
        assert_eq!(bits(&format!("{parts} --pes 4")), one, "{op}");
        let processes = json(&format!("run -n 3 -- crosswarp reduce {op} --json {parts}"));
        assert_eq!(processes["bits"], one, "{op}");
    }
    let exact: f64 = values.iter().map(|&v| f64::from(v)).sum();
    assert_eq!(
        json(&format!("reduce sum --exact --json {all}"))["value"]
            .as_f64()
            .unwrap() as f32,
        exact as f32
    );
}

#[test]
fn every_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let line = format!("reduce max {} --json", path.display());
    macro_rules! check {
        ($type:ident) => {
            write_npy(&path, &[3], [1 as $type, 7 as $type, 2 as $type]);
            let object = json(&line);
            assert_eq!(
                (object["dtype"].as_str(), object["value"].as_f64()),
                (Some(stringify!($type)), Some(7.0))
            );
        };
    }
    check!(i8);
    check!(i16);
    check!(i32);
    check!(i64);
    check!(u8);
    check!(u16);
    check!(u32);
    check!(u64);
    check!(f32);
    check!(f64);
    write_npy(&path, &[2], [f16::from_f32(0.5), f16::from_f32(7.0)]);
    assert_eq!(json(&line)["dtype"], "f16");
    write_npy(
        &path,
        &[2],
        [bf16::from_f32(0.5).to_bits(), bf16::from_f32(7.0).to_bits()],
    );
    let object = json(&format!("{line} --dtype bf16"));
    assert_eq!(
        (object["dtype"].as_str(), object["value"].as_f64()),
        (Some("bf16"), Some(7.0))
    );
    write_npy(&path, &[2], [u64::MAX, 1]);
    assert_eq!(json(&line)["value"].to_string(), u64::MAX.to_string());
}

#[test]
fn values_without_a_json_number_are_texts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    write_npy(&path, &[2], [f32::NAN, 1.0]);
    let object = json(&format!("reduce sum {} --json", path.display()));
    assert_eq!(
        (object["value"].as_str(), object["bits"].as_str()),
        (Some("nan"), Some("0x7fc00000"))
    );
}

#[test]
fn errors_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    write_npy(&folder.path().join("f.npy"), &[3], [1f32, 2.0, 3.0]);
    write_npy(&folder.path().join("g.npy"), &[4], [1f32; 4]);
    write_npy(&folder.path().join("d.npy"), &[3], [1f64; 3]);
    write_npy(&folder.path().join("b.npy"), &[3], [true, false, true]);
    let whole = std::fs::read(at("f.npy")).unwrap();
    std::fs::write(at("cut.npy"), &whole[..whole.len() - 5]).unwrap();
    std::fs::write(at("text.npy"), "hello").unwrap();
    for (line, code, expected) in [
        (
            format!("reduce sum {}", at("cut.npy")),
            1,
            format!(
                "{}: truncated: {} bytes expected, {} found",
                at("cut.npy"),
                whole.len(),
                whole.len() - 5
            ),
        ),
        (
            format!("reduce sum {}", at("text.npy")),
            1,
            format!(
                "{}: not an NPY file (the first bytes are not \\x93NUMPY)",
                at("text.npy")
            ),
        ),
        (
            format!("reduce sum {} {}", at("f.npy"), at("d.npy")),
            1,
            format!("{}: dtype f64, but f32 is accepted here", at("d.npy")),
        ),
        (
            format!("reduce sum {}", at("b.npy")),
            1,
            format!(
                "{}: dtype bool, but a number type (f16, f32, f64, i8 to i64, u8 to u64) is accepted here",
                at("b.npy")
            ),
        ),
        (
            format!("reduce dot {} {}", at("f.npy"), at("g.npy")),
            1,
            format!("{}: shape (4,), but (3,) is needed", at("g.npy")),
        ),
        (
            format!("reduce dot {}", at("f.npy")),
            2,
            "dot needs two files, 1 given".to_owned(),
        ),
        (
            format!("reduce mean --exact {}", at("f.npy")),
            2,
            "--exact applies to sum, not to mean".to_owned(),
        ),
        (
            format!("reduce sum --dtype bf16 {}", at("f.npy")),
            1,
            format!(
                "{}: dtype f32, but u16 (holding bf16) is accepted here",
                at("f.npy")
            ),
        ),
        (
            format!("reduce sum {}", folder.path().display()),
            1,
            format!(
                "{}: not a regular file, nor a pipe by the name -",
                folder.path().display()
            ),
        ),
    ] {
        assert_eq!(
            outcome(&line),
            (code, String::new(), format!("crosswarp: {expected}\n")),
            "{line}"
        );
    }
}

#[test]
fn the_backend_does_not_change_the_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    write_npy(&path, &[30_001], (0..30_001).map(|k| (k as f32).sin()));
    let line = |rest: &str| format!("reduce norm2 {} --json {rest}", path.display());
    let cpu = json(&line("--backend cpu"));
    assert_eq!(cpu["backend"], "cpu");
    assert_eq!(json(&line(""))["bits"], cpu["bits"]);
    let (code, out, err) = outcome(&line("--backend cuda --pes 3"));
    if code == 0 {
        let cuda: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (&cuda["bits"], &cuda["backend"]),
            (&cpu["bits"], &"cuda".into())
        );
    } else {
        // Without a GPU: one line that says what is missing.
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (1, "", 1),
            "{err}"
        );
        assert!(err.contains("install") || err.contains("GPU"), "{err}");
    }
    let (code, _, err) = outcome(&line("--backend cpu --device 0"));
    assert_eq!(code, 2);
    assert!(err.contains("--backend cpu uses none"), "{err}");
}
