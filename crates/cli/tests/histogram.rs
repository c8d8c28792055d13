//! `crosswarp histogram`, end to end.

mod common;

use common::{json, outcome, write_npy};
use half::f16;

fn samples() -> Vec<i32> {
    (0..20_000u32)
        .map(|k| (k.wrapping_mul(2_654_435_761) >> 20) as i32 - 2000)
        .collect()
}

/// Counts by the definition.
fn expected(samples: &[i32], low: i64, high: i64, bins: i64) -> Vec<u64> {
    let mut counts = vec![0; bins as usize];
    for &x in samples
        .iter()
        .filter(|&&x| (low..=high).contains(&i64::from(x)))
    {
        let bin = (i64::from(x) - low) * bins / (high - low);
        counts[bin.min(bins - 1) as usize] += 1;
    }
    counts
}

fn totals(object: &serde_json::Value) -> Vec<u64> {
    let totals = object["totals"].as_array().unwrap();
    totals.iter().map(|total| total.as_u64().unwrap()).collect()
}

#[test]
fn counts_are_exact_for_any_number_of_pes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let samples = samples();
    write_npy(&path, &[100, 200], samples.iter().copied());
    for pes in [1, 2, 3] {
        let object = json(&format!(
            "histogram {} --bins 37 --range -1500:1700 --pes {pes} --json",
            path.display()
        ));
        let counts = expected(&samples, -1500, 1700, 37);
        assert_eq!(totals(&object), counts);
        let dropped = 20_000 - counts.iter().sum::<u64>();
        assert_eq!(object["dropped"].as_u64(), Some(dropped));
    }
    // All samples are inside the range found.
    let object = json(&format!("histogram {} --bins 10 --json", path.display()));
    assert_eq!(object["dropped"].as_u64(), Some(0));
    let (low, high) = (samples.iter().min().unwrap(), samples.iter().max().unwrap());
    assert_eq!(
        totals(&object),
        expected(&samples, (*low).into(), (*high).into(), 10)
    );
    // The launcher's processes count the same.
    let (code, out, err) = outcome(&format!(
        "run -n 2 -- crosswarp histogram {} --bins 10 --json",
        path.display()
    ));
    assert_eq!(code, 0, "{err}");
    assert_eq!(
        totals(&serde_json::from_str(&out).unwrap()),
        totals(&object)
    );
}

#[test]
fn every_kind_of_bins_and_every_type() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_npy(&at("u8.npy"), &[6], [0u8, 1, 1, 255, 7, 1]);
    write_npy(&at("u16.npy"), &[3], [0u16, 65535, 9]);
    write_npy(&at("f32.npy"), &[5], [0.1f32, 0.5, f32::NAN, 2.0, -1.0]);
    write_npy(&at("f64.npy"), &[4], [0.1f64, 0.5, 1.0, f64::INFINITY]);
    write_npy(&at("edges.npy"), &[4], [0.0f64, 0.1, 1.0, f64::INFINITY]);
    write_npy(
        &at("weights.npy"),
        &[6],
        [1u16, 10, 100, 1000, 10_000, 60_000],
    );
    let run = |options: &str| {
        let words: Vec<String> = options
            .split(' ')
            .map(|word| {
                if word.ends_with(".npy") {
                    at(word).display().to_string()
                } else {
                    word.into()
                }
            })
            .collect();
        json(&format!("histogram {} --json", words.join(" ")))
    };
    let counts = totals(&run("u8.npy --integer --range 0:256"));
    assert_eq!(
        (counts.len(), counts[0], counts[1], counts[7], counts[255]),
        (256, 1, 3, 1, 1)
    );
    assert_eq!(
        totals(&run("u8.npy --bins 2 --range 1:3 --out-of-range clamp")),
        [4, 2]
    );
    assert_eq!(
        totals(&run("u8.npy --bins 2 --range 0:8 --weights weights.npy")),
        [1 + 10 + 100 + 60_000, 10_000]
    );
    assert_eq!(totals(&run("u16.npy --bins 2")), [2, 1]);
    // 0.1f32 is above 0.1, 0.1f64 is the edge itself.
    assert_eq!(totals(&run("f32.npy --edges edges.npy")), [0, 2, 1]);
    let object = run("f64.npy --edges edges.npy");
    assert_eq!(totals(&object), [0, 2, 2]);
    assert_eq!(object["edges"], serde_json::json!([0.0, 0.1, 1.0, "inf"]));
    let found = run("f32.npy --bins 3 --range -1:2 --out-of-range clamp");
    assert_eq!(
        (totals(&found), found["dropped"].as_u64()),
        (vec![1, 2, 1], Some(1))
    );
    assert_eq!(totals(&run("f32.npy --bins 1")), [4]);
}

/// The rules of NumPy: the last bin has both its edges, and without a range the samples' own is taken, not
/// stretched; around equal samples it is 1 wide.
#[test]
fn bins_are_those_of_numpy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let run = |options: &str| json(&format!("histogram {} {options} --json", path.display()));
    let thirds = |options: &str| {
        let object = run(options);
        assert_eq!(totals(&object), [1, 1, 2], "{options}");
        assert_eq!(object["edges"], serde_json::json!([0.0, 1.0, 2.0, 3.0]));
    };
    let edges = folder.path().join("edges.npy");
    write_npy(&edges, &[4], [0.0f64, 1.0, 2.0, 3.0]);
    let by_edges = format!("--edges {}", edges.display());
    let all = [
        "--bins 3",
        "--bins 3 --range 0:3",
        "--bins 3 --pes 2",
        &by_edges,
    ];
    write_npy(&path, &[4], [0.0f32, 1.0, 2.0, 3.0]);
    all.iter().for_each(|options| thirds(options));
    write_npy(&path, &[4], [0.0f64, 1.0, 2.0, 3.0]);
    all.iter().for_each(|options| thirds(options));
    write_npy(&path, &[4], [0u8, 1, 2, 3]);
    all.iter().for_each(|options| thirds(options));
    write_npy(&path, &[4], [0u16, 1, 2, 3]);
    all.iter().for_each(|options| thirds(options));
    write_npy(&path, &[4], [0i32, 1, 2, 3]);
    all.iter().for_each(|options| thirds(options));
    // Every value has a bin of its own; the end of a range has none.
    let values = run("--integer");
    assert_eq!(totals(&values), [1, 1, 1, 1]);
    assert_eq!(totals(&run("--integer --range 0:3")), [1, 1, 1]);
    write_npy(&path, &[2], [i32::MIN, i32::MAX]);
    assert_eq!(totals(&run("--bins 4")), [1, 0, 0, 1]);

    write_npy(&path, &[3], [7.0f64, 7.0, f64::NAN]);
    let equal = run("--bins 4");
    assert_eq!(totals(&equal), [0, 0, 2, 0]);
    assert_eq!(
        equal["edges"],
        serde_json::json!([6.5, 6.75, 7.0, 7.25, 7.5])
    );
    write_npy(&path, &[2], [7i32, 7]);
    let equal = run("--bins 2");
    assert_eq!(totals(&equal), [2, 0]);
    assert_eq!(equal["edges"], serde_json::json!([7.0, 7.5, 8.0]));
    write_npy(&path, &[2], [1e20f64, 1e20]);
    let (code, _, err) = outcome(&format!("histogram {}", path.display()));
    assert_eq!((code, err.lines().count()), (2, 1), "{err}");
    assert!(
        err.contains("all samples are 1e20") || err.contains("all samples are 1e+20"),
        "{err}"
    );
}

#[test]
fn what_is_printed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    write_npy(folder.path().join("a.npy").as_path(), &[4], [1u8, 2, 2, 9]);
    let (code, out, err) = outcome(&format!(
        "histogram {} --bins 4 --range 0:4 --pes 1 -o {} --csv {} --plot {} --png {}",
        at("a.npy"),
        at("t.npy"),
        at("t.csv"),
        at("t.svg"),
        at("t.png"),
    ));
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "0 .. 1  0");
    assert_eq!(lines[1], format!("1 .. 2  1  {}", "█".repeat(20)));
    assert_eq!(lines[2], format!("2 .. 3  2  {}", "█".repeat(40)));
    assert!(
        lines[4] == "4 samples u8 in 4 bins, 1 dropped"
            && lines[5].starts_with("1 PE (threads) on "),
        "{out}"
    );
    let bytes = std::fs::read(at("t.npy")).unwrap();
    let written: Vec<u64> = npyz::NpyFile::new(&bytes[..]).unwrap().into_vec().unwrap();
    assert_eq!(written, [0, 1, 2, 0]);
    let csv = std::fs::read_to_string(at("t.csv")).unwrap();
    assert_eq!(csv, "lower,upper,count\n0,1,0\n1,2,1\n2,3,2\n3,4,0\n");
    assert!(
        std::fs::read_to_string(at("t.svg"))
            .unwrap()
            .starts_with("<svg")
    );
    assert!(std::fs::read(at("t.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn wrong_input_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let place = |name: &str| folder.path().join(name);
    write_npy(&place("a.npy"), &[4], [1u8, 2, 2, 9]);
    write_npy(&place("f16.npy"), &[1], [f16::ONE]);
    write_npy(&place("nan.npy"), &[1], [f64::NAN]);
    write_npy(&place("w.npy"), &[3], [1u8, 2, 3]);
    write_npy(&place("fw.npy"), &[4], [1f32, 2.0, 3.0, 4.0]);
    write_npy(&place("edges.npy"), &[3], [1.0f64, 3.0, 2.0]);
    for (line, code, message) in [
        (
            format!("{} --bins 0", at("a.npy")),
            2,
            "0 bins: from 1 to 268435456 are possible",
        ),
        (
            format!("{} --range 5:5", at("a.npy")),
            2,
            "the range from 5 to 5 is empty",
        ),
        (
            format!("{} --range 0:0.5", at("a.npy")),
            2,
            "needs integers, 0.5 is none",
        ),
        (
            format!("{} --edges {}", at("a.npy"), at("edges.npy")),
            2,
            "edge 2 (2) is not at or above edge 1 (3)",
        ),
        (
            at("f16.npy"),
            1,
            "dtype f16, but an integer type, bool, f32 or f64",
        ),
        (at("nan.npy"), 2, "no finite range"),
        (format!("{} --integer", at("nan.npy")), 2, "no finite range"),
        (
            format!("{} --weights {}", at("a.npy"), at("w.npy")),
            1,
            "(3,)",
        ),
        (
            format!("{} --weights {}", at("a.npy"), at("fw.npy")),
            1,
            "scale them to integers",
        ),
        (
            format!("{} -o x --csv x", at("a.npy")),
            2,
            "cannot be the same file",
        ),
    ] {
        let (found, out, err) = outcome(&format!("histogram {line}"));
        assert_eq!((found, out.as_str()), (code, ""), "{line}: {err}");
        assert!(
            err.contains(message) && err.lines().count() == 1,
            "{line}: {err}"
        );
    }
}

/// Every integer type and bool, by the same numbers.
#[test]
fn every_integer_type_has_the_same_counts() {
    let folder = tempfile::tempdir().unwrap();
    let counts = |name: &str, extra: &str| {
        let path = folder.path().join(name);
        let object = json(&format!(
            "histogram {} --integer --pes 2 {extra} --json",
            path.display()
        ));
        (object["edges"][0].clone(), object["totals"].clone())
    };
    macro_rules! check {
        ($($type:ident)*) => {$(
            let values = [3u8, 1, 3, 2, 3, 5].map(|x| x as $type);
            write_npy(&folder.path().join("x.npy"), &[6], values);
            let expected = (serde_json::json!(1.0), serde_json::json!([1, 1, 3, 0, 1]));
            assert_eq!(counts("x.npy", ""), expected, stringify!($type));
        )*};
    }
    check!(i8 i16 i32 i64 u8 u16 u32 u64);
    let path = folder.path().join("b.npy");
    write_npy(&path, &[4], [true, false, true, true]);
    assert_eq!(
        counts("b.npy", ""),
        (serde_json::json!(0.0), serde_json::json!([1, 3]))
    );
    // The ends of 64 bits, and a range that 32 bits have not.
    write_npy(
        &folder.path().join("wide.npy"),
        &[4],
        [i64::MIN, -1, 0, i64::MAX],
    );
    let path = folder.path().join("wide.npy");
    let object = json(&format!("histogram {} --bins 2 --json", path.display()));
    assert_eq!(object["totals"], serde_json::json!([2, 2]));
    assert_eq!(object["dropped"], 0);
    let (code, _, err) = outcome(&format!(
        "histogram {} --bins 2 --range -9223372036854775809:5",
        path.display()
    ));
    assert_eq!(code, 2);
    assert!(err.contains("is no bound for these samples"), "{err}");
}
