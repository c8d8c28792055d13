//! The commands of the lab that need no GPU: tables, JSON, pictures.

mod common;

use std::fs;

use common::crosswarp;

/// Runs to success; what it printed.
fn stdout(command: &mut assert_cmd::Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_published_occupancy_comes_out() {
    let args = "occupancy --device v100 --threads 256 --registers 62 --grid 4096";
    insta::assert_snapshot!(stdout(crosswarp().args(args.split(' '))));
    let json: serde_json::Value =
        serde_json::from_str(&stdout(crosswarp().args(args.split(' ')).arg("--json"))).unwrap();
    let limits = &json["limits"];
    assert_eq!(
        (
            &limits["blocks"],
            &limits["registers"],
            &limits["shared"],
            &limits["warps"]
        ),
        (&32.into(), &4.into(), &32.into(), &8.into())
    );
    assert_eq!(
        (&json["occupancy"], &json["waves"]),
        (&0.5.into(), &12.8.into())
    );
}

#[test]
fn bounds_clusters_and_curves() {
    let args = "occupancy --arch 9.0 --threads 512 --registers 40 --min-blocks 4 --cluster 16 \
                --gpcs 16,16,16,16,16,16,18,18 --curve registers";
    insta::assert_snapshot!(stdout(crosswarp().args(args.split_whitespace())));
}

#[test]
fn the_textbooks_bank_conflicts_come_out() {
    insta::assert_snapshot!(stdout(crosswarp().arg("banks")));
    insta::assert_snapshot!(stdout(crosswarp().args(["banks", "strided-tree"])));
    let own = ["banks", "--index", "lane * 8", "--width", "16", "--json"];
    let json: serde_json::Value = serde_json::from_str(&stdout(crosswarp().args(own))).unwrap();
    assert_eq!(
        json["accesses"][0]["phases"],
        serde_json::json!([8, 8, 8, 8])
    );
}

#[test]
fn divergence_and_roofline() {
    insta::assert_snapshot!(stdout(crosswarp().arg("divergence")));
    let args =
        "roofline --device h200 --latency 600 --point saxpy=12e9,2e9,3e-3 --point gemm=2e8,1.37e11";
    insta::assert_snapshot!(stdout(crosswarp().args(args.split(' '))));
}

#[test]
fn pictures_are_well_formed_and_have_their_marks() {
    let folder = tempfile::tempdir().unwrap();
    let draw = |args: &str| {
        let path = folder.path().join("picture.svg");
        stdout(crosswarp().args(args.split(' ')).arg("--svg").arg(&path));
        fs::read_to_string(path).unwrap()
    };
    let count = |svg: &str, class: &str| {
        let document = roxmltree::Document::parse(svg).unwrap();
        let of_class = |node: &roxmltree::Node| node.attribute("class") == Some(class);
        document.descendants().filter(of_class).count()
    };
    let tile = draw("banks tile");
    assert_eq!((count(&tile, "hot"), count(&tile, "idle")), (32, 31 * 32));
    let swizzled = draw("banks tile-swizzled");
    assert_eq!(
        (count(&swizzled, "good"), count(&swizzled, "hot")),
        (1024, 0)
    );
    let curve = draw("occupancy --arch 8.0 --curve shared");
    assert_eq!((count(&curve, "curve"), count(&curve, "mark")), (1, 1));
    let roof = draw("roofline --device a100 --point a=1e9,1e9,1e-3 --point b=1,1");
    assert_eq!(
        (
            count(&roof, "roof"),
            count(&roof, "textbook"),
            count(&roof, "goal")
        ),
        (1, 1, 1)
    );
}

#[test]
fn mistakes_are_one_line_that_says_what_would_be_right() {
    for (args, code, part) in [
        (
            "occupancy --arch 6.0",
            2,
            "compute capability 6.0 are not known",
        ),
        ("occupancy --device g80", 2, "known are v100"),
        ("occupancy --device v100 --threads 1025", 2, "1..=1024"),
        ("occupancy --device v100 --registers 256", 2, "1..=255"),
        ("occupancy --device v100 --grid 0", 2, "1.."),
        (
            "occupancy --arch 8.0 --cluster 2",
            2,
            "came with compute capability 9.0",
        ),
        ("occupancy absent.cu", 1, "absent.cu: No such file"),
        (
            "banks --index lane*row",
            2,
            "'row' is none of lane, i at column 6",
        ),
        ("banks --index lane-1", 2, "lane 0, i = 0: the index is -1"),
        ("banks --json", 2, "name it"),
        ("divergence --threads 100", 2, "a power of two up to 1024"),
        (
            "roofline --bandwidth 100",
            2,
            "--bandwidth and --rate go together",
        ),
        (
            "roofline --device h200 --point a=1",
            2,
            "NAME=BYTES,OPERATIONS",
        ),
        (
            "bench compare absent.json absent.json",
            1,
            "absent.json: No such file",
        ),
    ] {
        let output = crosswarp().args(args.split(' ')).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert!(message.contains(part), "{args}: {message}");
    }
}

#[test]
fn two_runs_of_a_bench_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, us: f64| {
        let path = folder.path().join(name);
        let row = |what: &str, us: f64| {
            format!(
                "{{\"what\":\"{what}\",\"elements\":1024,\"us\":{us},\"us_min\":{},\"us_max\":{},\"machine\":\"{name}\"}}\n",
                us * 0.99,
                us * 1.01
            )
        };
        fs::write(&path, row("sum", us) + &row("max", 5.0) + &row(name, 1.0)).unwrap();
        path
    };
    let (before, after) = (file("before", 10.0), file("after", 4.0));
    let text = stdout(
        crosswarp()
            .args(["bench", "compare"])
            .args([&before, &after]),
    );
    insta::assert_snapshot!(text);
}
