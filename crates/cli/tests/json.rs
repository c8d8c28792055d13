//! What `--json` prints: one object a line, with the schema's number and the fields that commands share.

mod common;

use common::{outcome, write_npy};
use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// The objects that a command printed, one a line.
fn objects(line: &str) -> Vec<Object> {
    let (code, out, err) = outcome(line);
    assert!(code == 0 || code == 3, "{line}: {err}");
    assert!(!out.is_empty(), "{line}: {err}");
    out.lines()
        .map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")))
        .collect()
}

fn has_schema(line: &str, objects: &[Object]) {
    for object in objects {
        assert_eq!(object.get("schema"), Some(&2.into()), "{line}: {object:?}");
    }
}

#[test]
fn every_object_has_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.json");
    let row = r#"{"what": "sum", "us": 2.0}"#;
    std::fs::write(&rows, row).unwrap();
    let rows = rows.display();
    for (line, count) in [
        ("info --json", 1),
        ("banks --json", 5),
        ("banks tile --json", 1),
        ("divergence --json", 1),
        ("occupancy --arch 9.0 --json", 1),
        ("roofline --gpu h200 --json", 1),
        (&format!("bench compare {rows} {rows} --json"), 1),
    ] {
        let found = objects(line);
        assert_eq!(found.len(), count, "{line}");
        has_schema(line, &found);
    }
    let compared = &objects(&format!("bench compare {rows} {rows} --json"))[0];
    for name in ["before_seconds", "after_seconds"] {
        assert!((compared[name].as_f64().unwrap() - 2e-6).abs() < 1e-15);
    }
    // 4000 bytes at 4 GB/s take a microsecond.
    let line = "roofline --bandwidth 4 --rate 100 --point a=4000,8 --json";
    let roof = &objects(line)[0];
    assert_eq!(roof["bytes_per_second"], 4e9);
    let point = &roof["points"][0];
    assert!(
        (point["least_seconds"].as_f64().unwrap() - 1e-6).abs() < 1e-15,
        "{point}"
    );
    let line = "ladder histogram --cpu --quick --size 1024 --json";
    let found = objects(line);
    has_schema(line, &found);
    for row in found {
        let seconds = row["seconds"].as_f64().unwrap();
        let microseconds = row["us"].as_f64().unwrap();
        assert!((1e6 * seconds / microseconds - 1.0).abs() < 1e-9);
        let rate = row["bytes"].as_f64().unwrap() / seconds;
        assert!((row["bytes_per_second"].as_f64().unwrap() / rate - 1.0).abs() < 1e-9);
        assert!(row["about"]["commit"].is_string(), "{row:?}");
        assert!(!row.contains_key("gbs"), "{row:?}");
    }
}

#[test]
fn commands_on_pes_say_how_they_were_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_npy(&at("a.npy"), &[40, 30], (0..1200).map(|k| k as f32));
    let (input, output) = (at("a.npy"), at("b.npy"));
    let (input, output) = (input.display(), output.display());
    for (line, bytes) in [
        (
            "solve laplace2d --nx 20 --ny 10 --max-sweeps 5".to_owned(),
            None,
        ),
        (
            "solve laplace2d --nx 20 --ny 10 --method mg".to_owned(),
            None,
        ),
        (format!("reduce sum {input}"), Some(4800.0)),
        (format!("reduce dot {input} {input}"), Some(9600.0)),
        (format!("histogram {input} --bins 3"), Some(4800.0)),
        (format!("transpose {input} -o {output}"), Some(9600.0)),
    ] {
        for (prefix, world) in [("", "threads"), ("run -n 2 -- crosswarp ", "processes")] {
            let line = format!("{prefix}{line} --backend cpu --pes 2 --json");
            let found = objects(&line);
            has_schema(&line, &found);
            let [object] = &found[..] else {
                panic!("{line}: {found:?}")
            };
            assert_eq!(object["pes"], 2, "{line}");
            assert_eq!(object["world"], world, "{line}");
            assert_eq!(object["backend"], "cpu", "{line}");
            let seconds = object["seconds"].as_f64().unwrap();
            assert!(seconds > 0.0, "{line}");
            let rate = object.get("bytes_per_second").and_then(Value::as_f64);
            assert_eq!(rate, bytes.map(|bytes: f64| bytes / seconds), "{line}");
        }
    }
}
