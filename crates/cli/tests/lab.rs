//! The commands of the lab that need no GPU: tables, JSON, pictures.

mod common;

use std::fs;

use common::crosswarp;
use crosswarp::cuda::skip::skip_gpu;

/// Runs to success; what it printed.
fn stdout(command: &mut assert_cmd::Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_published_occupancy_comes_out() {
    let args = "occupancy --gpu v100 --threads 256 --registers 62 --grid 4096";
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
    let layout = |words: &str| stdout(crosswarp().arg("banks").args(words.split(' ')));
    assert!(
        layout("--tile 16 --width 8")
            .ends_with("\n512 requests, 16 times what they take without conflicts\n")
    );
    assert!(
        layout("--tile 64 --pad 1")
            .ends_with("\n64 requests, 1 times what they take without conflicts\n")
    );
    assert!(
        layout("--tile 64 --swizzle")
            .ends_with("\n64 requests, 1 times what they take without conflicts\n")
    );
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
        "roofline --gpu h200 --latency 600 --point saxpy=12e9,2e9,3e-3 --point gemm=2e8,1.37e11";
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
    let roof = draw("roofline --gpu a100 --point a=1e9,1e9,1e-3 --point b=1,1");
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
fn pictures_also_come_in_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let ink = |args: &str| {
        let path = folder.path().join("picture.png");
        stdout(crosswarp().args(args.split(' ')).arg("--png").arg(&path));
        let file = std::io::BufReader::new(fs::File::open(path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let (width, height) = (reader.info().width, reader.info().height);
        assert!(width > 1000 && height > 600, "{width} x {height}");
        move |colour: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == colour).count()
    };
    // The colours of conflicts, of a curve and its mark, of textbook rungs and the dashed line to the roof.
    let tile = ink("banks tile");
    assert!(tile([0xcf, 0x22, 0x2e]) > 32 * 500);
    assert_eq!(ink("banks tile-padded")([0xcf, 0x22, 0x2e]), 0);
    let curve = ink("occupancy --arch 8.0 --curve shared");
    assert!(curve([0x09, 0x69, 0xda]) > 1000 && curve([0xbc, 0x4c, 0x00]) > 50);
    let roof = ink("roofline --gpu a100 --point a=1e9,1e9,1e-3 --point b=1e9,1e8");
    assert!(roof([0x09, 0x69, 0xda]) > 50 && roof([0xbc, 0x4c, 0x00]) > 50);
}

#[test]
fn files_with_kernels_are_read() {
    if let Err(reason) = crosswarp::cuda::Nvrtc::get() {
        skip_gpu("files_with_kernels_are_read", 1, reason);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.cu");
    let write = |text: &str| fs::write(&path, text).unwrap();
    let of_file = |args: &str| {
        let mut command = crosswarp();
        command
            .arg("occupancy")
            .arg(&path)
            .args(args.split_whitespace());
        command
    };
    write(
        "__global__ void one(float* x) { x[threadIdx.x] = 1; }\n\
         __global__ void __launch_bounds__(1024) two(float* x) { x[threadIdx.x] = 2; }\n",
    );
    let table = stdout(&mut of_file("--arch 8.0"));
    assert!(table.contains("two.cu for sm_80"), "{table}");
    let line = table.lines().find(|line| line.ends_with(" two")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3..6], ["1024", "2", "100"], "{line}");
    let one = stdout(&mut of_file("--arch 8.0 --kernel one --threads 32"));
    assert!(
        one.starts_with("one (two.cu) on sm_80: 32 threads"),
        "{one}"
    );

    let complaint = |args: &str| {
        let output = of_file(args).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(complaint("--kernel three").contains("no kernel three; it has _Z3onePf"));
    write("__global__ void k(int* x) { x[0] = y; }");
    let message = complaint("");
    assert_eq!(message.matches("two.cu").count(), 1, "{message}");
    write("#include <cstdio>\nint main() {}");
    assert!(complaint("").contains("nvcc -cubin -arch=sm_"), "{message}");
}

#[test]
fn mistakes_are_one_line_that_says_what_would_be_right() {
    for (args, code, part) in [
        (
            "occupancy --arch 6.0",
            2,
            "compute capability 6.0 are not known",
        ),
        ("occupancy --gpu g80", 2, "known are v100"),
        ("occupancy --gpu v100 --threads 1025", 2, "1..=1024"),
        ("occupancy --gpu v100 --registers 256", 2, "1..=255"),
        ("occupancy --gpu v100 --grid 0", 2, "1.."),
        (
            "occupancy --arch 8.0 --cluster 2",
            2,
            "came with compute capability 9.0",
        ),
        (
            "occupancy --gpu h100 --shared 232449",
            2,
            "a block on sm_90 has at most 232448",
        ),
        ("occupancy --svg x.svg", 2, "draw a curve: --curve"),
        ("occupancy absent.cu", 1, "cannot read absent.cu: No such"),
        (
            "banks --index lane*row",
            2,
            "'row' is none of lane, i at column 6",
        ),
        ("banks --index lane-1", 2, "lane 0, i = 0: the index is -1"),
        ("banks --svg x.svg", 2, "name it"),
        ("banks --tile 24 --swizzle", 2, "wanted is a power of two"),
        ("banks --pad 1", 2, "--tile"),
        (
            "roofline --gpu h100 --latency 480 --file k.cu --threads 1025",
            2,
            "1025 is not in 1..=1024",
        ),
        ("banks tile --width 8", 2, "cannot be used with '--width"),
        ("banks --width 8", 2, "--width is of --index or --tile"),
        ("divergence --threads 100", 2, "a power of two up to 1024"),
        (
            "roofline --bandwidth 100",
            2,
            "--bandwidth and --rate go together",
        ),
        (
            "roofline --gpu h200 --point a=1",
            2,
            "NAME=BYTES,OPERATIONS",
        ),
        (
            "roofline --gpu h100 --file absent.cu",
            2,
            "--latency of device memory",
        ),
        (
            "bench compare absent.json absent.json",
            1,
            "cannot read absent.json: No such file",
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
