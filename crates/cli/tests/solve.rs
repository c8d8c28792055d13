//! `crosswarp solve`, end to end.

mod common;

use common::{
    ENDLESS, example, heeding_signals, ignores_interrupts, ignoring_interrupts, json, names,
    outcome, read_npy_f32, signal, wait_for, write_npy,
};
use sha2::Digest;

#[test]
fn the_seed_problem_prints_its_published_errors() {
    let (code, out, err) = outcome("solve laplace1d --pes 2");
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[..8],
        [
            "Iteration = 0 error = 0.00272958",
            "Iteration = 10 error = 0.00034546",
            "Iteration = 20 error = 0.000210903",
            "Iteration = 30 error = 0.000157015",
            "Iteration = 40 error = 0.000127122",
            "Iteration = 50 error = 0.00010783",
            "Converged after 57 sweeps: error 9.91605e-05 <= tolerance 0.0001",
            "The solution is about 0.0071 (rms) away, or more: 71 times the tolerance",
        ]
    );
    assert!(
        lines[8].starts_with("4,194,304 points f32 on 2 PEs (threads), "),
        "{}",
        lines[8]
    );
    assert_eq!(lines.len(), 9);
}

#[test]
fn sweeps_per_pass_has_kept_its_old_name() {
    for option in ["--sweeps-per-pass", "--block"] {
        let (code, out, err) = outcome(&format!("solve laplace1d --points 1000 {option} 3"));
        assert_eq!((code, err.as_str()), (0, ""), "{option}");
        assert!(out.contains(", 3 sweeps per pass;"), "{option}: {out}");
    }
    let (_, help, _) = outcome("solve --help");
    assert!(help.contains("--sweeps-per-pass <T>") && !help.contains("--block"));
}

#[test]
fn json_has_exactly_the_documented_fields() {
    let object = json("solve laplace1d --points 10000 --tolerance 1e-3 --json --pes 3");
    let fields: Vec<&str> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = [
        "schema",
        "problem",
        "dtype",
        "values_dtype",
        "backend",
        "pes",
        "world",
        "method",
        "sweeps",
        "cycles",
        "converged",
        "norm",
        "remaining_error_estimate",
        "relative_residual",
        "convergence_factor",
        "levels",
        "setup_seconds",
        "floor_reached",
        "floor",
        "effective_limit",
        "projected",
        "history",
        "field_sha256",
        "seconds",
        "cell_updates_per_second",
        "strategy",
        "not_taken",
    ];
    expected.sort_unstable();
    assert_eq!(fields, expected);
    assert_eq!(object["problem"], "laplace1d");
    assert_eq!(object["dtype"], "f32");
    assert_eq!(object["backend"], "cpu");
    assert_eq!(object["method"], "jacobi");
    for of_multigrid in [
        "cycles",
        "relative_residual",
        "convergence_factor",
        "levels",
        "floor",
        "effective_limit",
        "projected",
    ] {
        assert!(object[of_multigrid].is_null(), "{of_multigrid}");
    }
    assert_eq!(object["floor_reached"], false);
    assert!(
        object["remaining_error_estimate"].as_f64().unwrap() > object["norm"].as_f64().unwrap()
    );
    assert!(object["strategy"].is_null());
    assert_eq!(object["not_taken"], serde_json::json!([]));
    assert_eq!(object["pes"], 3);
    assert_eq!(object["world"], "threads");
    assert_eq!(object["converged"], true);
    let history = object["history"].as_array().unwrap();
    assert_eq!(history.len() as u64, object["sweeps"].as_u64().unwrap());
    assert_eq!(history.last().unwrap()[1], object["norm"]);
    assert_eq!(history[0][0], 0);
    assert!(object["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(object["field_sha256"].as_str().unwrap().len(), 64);
}

/// The fields of a result that must not depend on who computed it.
fn answer(object: &serde_json::Value) -> (serde_json::Value, serde_json::Value, serde_json::Value) {
    (
        object["sweeps"].clone(),
        object["history"].clone(),
        object["field_sha256"].clone(),
    )
}

#[test]
fn the_answer_is_the_same_for_any_number_of_pes_threads_or_processes() {
    let fill = format!("solve {} --json", example("jacksboro.toml").display());
    for line in [
        "solve laplace1d --points 300001 --json",
        "solve laplace2d --preset nvidia --nx 200 --ny 97 --max-sweeps 75 --json",
        &fill,
    ] {
        let one = json(&format!("{line} --pes 1"));
        for pes in [2, 3, 7] {
            assert_eq!(
                answer(&json(&format!("{line} --pes {pes}"))),
                answer(&one),
                "{line}, {pes} threads"
            );
        }
        let processes = json(&format!("run -n 3 -- crosswarp {line}"));
        assert_eq!(processes["world"], "processes");
        assert_eq!(processes["pes"], 3);
        assert_eq!(answer(&processes), answer(&one), "{line}, processes");
    }
}

#[test]
fn the_hash_is_that_of_the_field_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.npy");
    let line = format!(
        "solve laplace2d --nx 40 --ny 30 --max-sweeps 50 --json -o {}",
        path.display()
    );
    let object = json(&line);
    let (shape, values) = read_npy_f32(&path);
    assert_eq!(shape, [30, 40]);
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let hash: String = sha2::Sha256::digest(&bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(object["field_sha256"], hash.as_str());
    // The default boundary: sin(pi*x) on the top row.
    assert!((values[20] - (std::f32::consts::PI * 20.0 / 39.0).sin()).abs() < 1e-6);
}

#[test]
fn without_convergence_everything_is_written_and_the_code_is_3() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let line = format!(
        "solve laplace2d --nx 33 --ny 21 --max-sweeps 7 --pes 2 -o {} --png {} --plot {} --history {} --vti {}",
        at("f.npy"),
        at("f.png"),
        at("f.svg"),
        at("f.csv"),
        at("f.vti")
    );
    let (code, out, err) = outcome(&line);
    assert_eq!((code, err.as_str()), (3, ""));
    assert!(
        out.contains("Did not converge in 7 sweeps: error "),
        "{out}"
    );
    assert!(out.contains("\nWrote "), "{out}");
    assert_eq!(
        names(folder.path()),
        ["f.csv", "f.npy", "f.png", "f.svg", "f.vti"]
    );

    let csv = std::fs::read_to_string(at("f.csv")).unwrap();
    assert_eq!(csv.lines().count(), 8);
    let svg = std::fs::read_to_string(at("f.svg")).unwrap();
    roxmltree::Document::parse(&svg).unwrap();
    let vti = std::fs::read(at("f.vti")).unwrap();
    assert!(vti.starts_with(b"<?xml") && vti.ends_with(b"</VTKFile>\n"));
    let (_, field) = read_npy_f32(&folder.path().join("f.npy"));
    // VTK's first row is the lowest.
    let rows: Vec<f32> = field.chunks(33).rev().flatten().copied().collect();
    let data: &[u8] = bytemuck::cast_slice(&rows);
    assert!(vti.windows(data.len()).any(|window| window == data));
    let png = std::fs::File::open(at("f.png"))
        .map(std::io::BufReader::new)
        .unwrap();
    let mut reader = png::Decoder::new(png).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
}

#[test]
fn fill_keeps_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let filled = folder.path().join("filled.npy");
    let (values, known) = (
        example("jacksboro/jacksboro_dem.npy"),
        example("jacksboro/jacksboro_known.npy"),
    );
    let line = format!(
        "solve fill --values {} --known {} -o {}",
        values.display(),
        known.display(),
        filled.display()
    );
    let (code, out, _) = outcome(&line);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("403 x 344 cells f32"), "{out}");
    let (shape, before) = read_npy_f32(&values);
    let (_, after) = read_npy_f32(&filled);
    assert_eq!(shape, [344, 403]);
    let known = std::fs::read(&known).unwrap();
    let known = &known[known.len() - before.len()..];
    let bounds = (
        before.iter().copied().fold(f32::MAX, f32::min),
        before.iter().copied().fold(f32::MIN, f32::max),
    );
    for k in 0..before.len() {
        if known[k] != 0 {
            assert_eq!(before[k], after[k]);
        } else {
            // The maximum principle: a harmonic function has its extremes on the rim.
            assert!((bounds.0..=bounds.1).contains(&after[k]));
        }
    }
}

#[test]
fn f64_values_are_filled_in_f64_and_pictures_are_taken_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // A plane with a hole: linear functions are exact solutions.
    let plane = |k: usize| 2.0 * (k % 9) as f64 - 3.0 * (k / 9) as f64;
    write_npy(
        &at("v.npy"),
        &[8, 9],
        (0..72).map(|k| {
            if (k % 9, k / 9) == (4, 4) {
                f64::NAN
            } else {
                plane(k)
            }
        }),
    );
    let file = std::fs::File::create(at("k.png")).unwrap();
    let mut encoder = png::Encoder::new(file, 9, 8);
    encoder.set_color(png::ColorType::Grayscale);
    let pixels: Vec<u8> = (0..72)
        .map(|k| if (k % 9, k / 9) == (4, 4) { 0 } else { 200 })
        .collect();
    encoder
        .write_header()
        .unwrap()
        .write_image_data(&pixels)
        .unwrap();
    let line = format!(
        "solve fill --values {} --known {} --tolerance 1e-13 -o {} --png {} --json",
        at("v.npy").display(),
        at("k.png").display(),
        at("f.npy").display(),
        at("f.png").display()
    );
    let object = json(&line);
    assert_eq!(
        (object["dtype"].as_str(), object["problem"].as_str()),
        (Some("f64"), Some("fill"))
    );
    let file = npyz::NpyFile::new(
        std::fs::File::open(at("f.npy"))
            .map(std::io::BufReader::new)
            .unwrap(),
    )
    .unwrap();
    let filled: Vec<f64> = file.into_vec().unwrap();
    assert!((0..72).all(|k| (filled[k] - plane(k)).abs() < 1e-11));
}

#[test]
fn usage_errors_are_one_line_and_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let side = folder.path().join("side.npy");
    write_npy(&side, &[5], [0f64; 5]);
    let same = folder.path().join("x").display().to_string();
    for (line, expected) in [
        (
            "solve laplace4d",
            "crosswarp: 'laplace4d' is not a problem; laplace1d, laplace2d, laplace3d, fill and FILE.toml are\n",
        ),
        (
            "solve laplace1d --nx 3",
            "crosswarp: --nx does not apply to laplace1d\n",
        ),
        (
            "solve laplace1d --points 2",
            "crosswarp: 2 points: a line needs at least 3, two ends and one between\n",
        ),
        (
            "solve laplace1d --left nan",
            "crosswarp: value 0 of the left boundary is NaN: boundary values must be finite\n",
        ),
        (
            "solve laplace1d --left 1e300 --dtype f32",
            "crosswarp: 1e300 is more than f32 can hold (3.4028235e38 at most); use --dtype f64\n",
        ),
        (
            "solve laplace2d --boundary top=-1e300 --dtype f32",
            "crosswarp: -1e300 is more than f32 can hold (3.4028235e38 at most); use --dtype f64\n",
        ),
        (
            "solve laplace2d --nx 2",
            "crosswarp: a grid of 2 x 256 points has no inner cell: both sizes must be at least 3\n",
        ),
        (
            "solve laplace2d --tolerance -1",
            "error: unexpected argument '-1' found\n",
        ),
        (
            "solve laplace2d --stop residual=nan",
            "crosswarp: a tolerance of NaN: it must be zero or positive\n",
        ),
        (
            "solve laplace2d --stop error=1",
            "error: invalid value 'error=1' for '--stop <KIND=VALUE>': 'error' is no reason to stop; residual, change and sweeps are\n",
        ),
        (
            "solve laplace2d --smooth 2,4",
            "crosswarp: 4 relaxations on one side of a cycle: 1 to 3 are possible\n",
        ),
        (
            "solve laplace2d --max-cycles 0",
            "error: invalid value '0' for '--max-cycles <N>': 0 is not in 1..18446744073709551615\n",
        ),
        (
            "solve laplace2d --method mg --tolerance 1e-3",
            "crosswarp: --tolerance belongs to Jacobi sweeps: it does not go with --method mg\n",
        ),
        (
            "solve laplace2d --boundary top=neumann:0 --tolerance 1e-3",
            "crosswarp: the top side has a derivative given, which Jacobi sweeps can't have: take multigrid\n",
        ),
        (
            "solve laplace2d --boundary left=neumann:1 --boundary right=neumann:0 --boundary top=neumann:0 --boundary bottom=neumann:0",
            "crosswarp: no field solves this: without any fixed value, sources and derivatives must cancel, and 1e0 of them is left\n",
        ),
        (
            "solve laplace2d --boundary top=neumann:1/x",
            "crosswarp: formula '1/x': its value at column 0, row 0 is inf\n",
        ),
        (
            "solve laplace2d --tolerance nan",
            "crosswarp: a tolerance of NaN: it must be zero or positive\n",
        ),
        (
            "solve laplace2d --max-sweeps 0",
            "crosswarp: at most 0 sweeps: at least one must be allowed\n",
        ),
        (
            "solve laplace2d --boundary left=periodic",
            "crosswarp: the left side is periodic but the right side is not: opposite sides wrap around together\n",
        ),
        (
            "solve laplace2d --boundary top=1/x",
            "crosswarp: formula '1/x': its value at column 0, row 0 is inf\n",
        ),
        (
            "solve laplace2d --boundary top=foo+1",
            "error: invalid value 'top=foo+1' for '--boundary <SIDE=KIND>': formula 'foo+1', column 1: 'foo' is not known; the variables are x, y, i and j, of laplace3d also z and k\n",
        ),
        (
            "solve fill --known k.npy",
            "crosswarp: fill needs --values FILE\n",
        ),
        (
            "solve laplace2d --preset nvidia --boundary top=1",
            "error: the argument '--preset <PRESET>' cannot be used with '--boundary <SIDE=KIND>'\n",
        ),
        (
            "solve laplace1d --pes 0",
            "error: invalid value '0' for '--pes <N>': 0 is not in 1..=4096\n",
        ),
        (
            &format!("solve laplace1d -o {same} --png {same}"),
            &format!("crosswarp: {same}: two outputs cannot be the same file\n"),
        ),
        (
            "run -n 2 -- crosswarp solve laplace1d --points 5000 --pes 3",
            "crosswarp: --pes 3 contradicts the 2 PEs that the launcher has started\n",
        ),
        (
            "frobnicate",
            "error: unrecognized subcommand 'frobnicate'\n",
        ),
    ] {
        let (code, out, err) = outcome(line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}: {err}");
        assert!(err.starts_with(expected), "{line}: {err:?}");
        if expected.starts_with("crosswarp") && !line.starts_with("run") {
            assert_eq!(err.lines().count(), 1, "{err}");
        }
    }
}

#[test]
fn files_that_are_no_use_are_one_line_and_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_npy(&at("int.npy"), &[4, 4], [0i64; 16]);
    write_npy(&at("line.npy"), &[16], [0f32; 16]);
    write_npy(&at("field.npy"), &[4, 4], [0f32; 16]);
    write_npy(&at("mask.npy"), &[4, 5], [1u8; 20]);
    let nan: Vec<f32> = (0..16)
        .map(|k| if k == 6 { f32::NAN } else { 1.0 })
        .collect();
    write_npy(&at("nan.npy"), &[4, 4], nan);
    write_npy(&at("all.npy"), &[4, 4], [1u8; 16]);
    std::fs::write(at("bad.toml"), "kind = 'laplace2d'\nnx = 'many'\n").unwrap();
    let path = |name: &str| at(name).display().to_string();
    let fill = |values: &str, known: &str| {
        format!(
            "solve fill --values {} --known {}",
            path(values),
            path(known)
        )
    };
    for (line, code, expected) in [
        (
            fill("int.npy", "mask.npy"),
            1,
            format!(
                "{}: dtype i64, but f32, f64 or an integer of 8, 16 or 32 bits is accepted here",
                path("int.npy")
            ),
        ),
        (
            fill("line.npy", "mask.npy"),
            1,
            format!(
                "{}: shape (16,), but (rows, columns) is needed",
                path("line.npy")
            ),
        ),
        (
            fill("field.npy", "mask.npy"),
            1,
            format!("{}: shape (4, 5), but (4, 4) is needed", path("mask.npy")),
        ),
        (
            fill("field.npy", "field.npy"),
            1,
            format!(
                "{}: dtype f32, but u8 or bool is accepted here",
                path("field.npy")
            ),
        ),
        (
            fill("none.npy", "mask.npy"),
            1,
            format!(
                "{}: cannot read: No such file or directory (os error 2)",
                path("none.npy")
            ),
        ),
        (
            fill("nan.npy", "all.npy"),
            2,
            "the value at column 2, row 1 is not finite, or leaves the range of the type"
                .to_owned(),
        ),
        (
            format!("solve {}", path("bad.toml")),
            1,
            format!(
                "{}:2: invalid type: string \"many\", expected usize",
                path("bad.toml")
            ),
        ),
        (
            format!("solve laplace1d --points 5000 -o {}", path("no/f.npy")),
            1,
            format!(
                "{}: cannot create the file: No such file or directory (os error 2)",
                path("no/f.npy")
            ),
        ),
        (
            format!(
                "solve laplace2d --nx 9 --ny 9 --boundary top={}",
                path("line.npy")
            ),
            1,
            format!(
                "{}: shape (16,), but (9,) for the top side is needed",
                path("line.npy")
            ),
        ),
        (
            format!(
                "solve laplace1d --points 5000 --resume {}",
                path("field.npy")
            ),
            1,
            format!("{} is not a Crosswarp checkpoint", path("field.npy")),
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
fn fields_too_large_for_the_machine_are_refused_at_once() {
    for line in [
        "solve laplace1d --points 18446744073709551615",
        "solve laplace2d --nx 3 --ny 100000000000000 --method jacobi",
        "solve laplace2d --nx 3 --ny 100000000000000",
        "solve laplace2d --preset nvidia --nx 4294967296 --ny 4294967296",
    ] {
        let (code, out, err) = outcome(line);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(
            (err.contains(" GiB for two copies of the field, this machine has ")
                || err.contains(" GiB for the field and its levels, this machine has ")),
            "{err}"
        );
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

#[test]
fn a_full_disk_is_said() {
    let (code, out, err) = outcome("solve laplace2d --nx 64 --ny 64 --max-sweeps 3 -o /dev/full");
    assert_eq!(
        (code, err.as_str()),
        (
            1,
            "crosswarp: /dev/full: cannot write: No space left on device (os error 28)\n"
        )
    );
    assert!(!out.contains("Wrote"));
}

#[test]
fn standard_output_that_cannot_be_written_is_an_error() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosswarp"));
    let output = command
        .args(["solve", "laplace1d", "--points", "5000"])
        .stdout(full)
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), err.as_str()),
        (
            Some(1),
            "crosswarp: cannot write to standard output: No space left on device (os error 28)\n"
        )
    );
}

#[test]
fn a_reader_that_goes_ends_the_solve_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosswarp"));
    // Far from converged: only the closed output can end it this soon.
    command.args([
        "solve",
        "laplace2d",
        "--tolerance",
        "0",
        "--max-sweeps",
        "1000000000",
    ]);
    let output = command.stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(141), 0));
}

#[test]
fn an_interrupt_writes_the_checkpoint_and_the_solve_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("c").display().to_string();
    let line = "solve laplace2d --nx 97 --ny 80 --tolerance 1e-5 --dtype f64 --json";
    let whole = json(line);

    let mut command = heeding_signals();
    command.args(ENDLESS.split(' ')).args([
        "--checkpoint",
        &checkpoint,
        "--checkpoint-every",
        "10",
    ]);
    let running = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&checkpoint);
    signal("INT", running.id());
    let output = running.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(
        err.starts_with("crosswarp: interrupted after ")
            && err.ends_with(&format!("go on with --resume {checkpoint}\n")),
        "{err}"
    );

    // A checkpoint before the end of the real solve, made by a limit on the sweeps.
    let short = json(&format!(
        "{line} --max-sweeps 150 --checkpoint {checkpoint} --checkpoint-every 60 --pes 3"
    ));
    assert_eq!(short["converged"], false);
    let resumed = json(&format!("{line} --resume {checkpoint} --pes 2"));
    assert_eq!(answer(&resumed), answer(&whole));
    let (code, _, err) = outcome(&format!(
        "solve laplace2d --nx 97 --ny 81 --resume {checkpoint}"
    ));
    assert_eq!(code, 1);
    assert!(err.contains("holds"), "{err}");
}

#[test]
fn as_much_is_said_as_is_asked_for() {
    let line = "solve laplace2d --nx 97 --ny 80 --max-sweeps 700";
    let lines = |more: &str| {
        let (code, out, err) = outcome(&format!("{line} {more}"));
        assert_eq!((code, err.as_str()), (3, ""));
        let of = |line: &&str| line.starts_with("Iteration = ");
        (out.lines().filter(of).count(), out)
    };
    let (count, out) = lines("--report-every 7");
    assert_eq!(count, 100);
    assert!(out.contains("Iteration = 693 error = "), "{out}");
    assert_eq!(lines("--quiet"), (0, String::new()));
    let (code, out, _) = outcome("solve laplace2d --nx 97 --ny 80 --report-every 3");
    assert_eq!(code, 0);
    assert!(
        out.starts_with("Cycle 3: ") && !out.contains("Cycle 4: "),
        "{out}"
    );
}

#[test]
fn cycles_go_on_from_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (cycles, sweeps) = (path("cycles"), path("sweeps"));
    let line = "solve laplace2d --nx 297 --ny 280 --dtype f64 --json";
    let whole = json(line);
    let short = json(&format!(
        "{line} --max-cycles 3 --checkpoint {cycles} --checkpoint-every 2 --pes 3"
    ));
    assert_eq!(
        (&short["cycles"], &short["converged"]),
        (&3.into(), &false.into())
    );
    let resumed = json(&format!("{line} --resume {cycles} --pes 2"));
    assert_eq!(answer(&resumed), answer(&whole));

    // What the checkpoint holds decides on the method.
    json(&format!("{line} --max-sweeps 20 --checkpoint {sweeps}"));
    let resumed = json(&format!("{line} --resume {sweeps} --max-sweeps 30"));
    assert_eq!(resumed["method"], "jacobi");
    let (code, _, err) = outcome(&format!("{line} --method mg --resume {sweeps}"));
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("--resume belongs to Jacobi sweeps: it does not go with --method mg"),
        "{err}"
    );
}

#[test]
fn frames_are_the_field_on_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let line = "solve laplace2d --nx 97 --ny 80";
    for (method, most, shown) in [
        ("jacobi", "--max-sweeps", [4, 8]),
        ("mg", "--max-cycles", [2, 4]),
    ] {
        let (all, last) = (path("all.npy"), path("last.npy"));
        let (every, steps) = (shown[0], shown[1]);
        let picture = path("all.png");
        outcome(&format!(
            "{line} --pes 2 --method {method} {most} {} --frames {every} -o {all} --png {picture}",
            steps + 1
        ));
        for steps in shown {
            outcome(&format!(
                "{line} --method {method} {most} {steps} -o {last}"
            ));
            let frame = path(&format!("all-{steps:06}.npy"));
            assert!(
                std::fs::read(frame).unwrap() == std::fs::read(&last).unwrap(),
                "{method}, after {steps}"
            );
            assert!(std::fs::exists(path(&format!("all-{steps:06}.png"))).unwrap());
        }
        assert!(!std::fs::exists(path(&format!("all-{:06}.npy", steps + 1))).unwrap());
    }
    let (code, _, err) = outcome(&format!("{line} --frames 5"));
    assert_eq!(code, 2);
    assert!(err.contains("-o, --png or --vti says where"), "{err}");
}

#[test]
fn an_interrupt_that_was_ignored_at_the_start_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("c").display().to_string();
    let mut command = ignoring_interrupts();
    command
        .args(ENDLESS.split(' '))
        .args(["--checkpoint", &checkpoint, "--checkpoint-every", "10"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let running = command.spawn().unwrap();
    // By then the solve has taken over what it will.
    wait_for(&checkpoint);
    let ignored = ignores_interrupts(running.id());
    signal("INT", running.id());
    // The first signal it heeds, so it ends in good order.
    signal("TERM", running.id());
    let output = running.wait_with_output().unwrap();
    assert!(ignored, "SIGINT has a handler");
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(143), "{err}");
    assert!(err.starts_with("crosswarp: interrupted after "), "{err}");
}

#[test]
fn an_interrupted_world_of_processes_writes_its_checkpoint_too() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("c").display().to_string();
    let mut command = heeding_signals();
    command
        .args("run -n 3 -- crosswarp".split(' '))
        .args(ENDLESS.split(' '))
        .args(["--checkpoint", &checkpoint, "--checkpoint-every", "10"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let running = command.spawn().unwrap();
    wait_for(&checkpoint);
    signal("INT", running.id());
    let output = running.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(
        err.starts_with("crosswarp: interrupted after ") && err.lines().count() == 1,
        "{err}"
    );
    assert_eq!(names(folder.path()), ["c"]);
}

#[test]
fn problem_files_solve_and_flags_win() {
    for (name, problem) in [
        ("heated_plate", "laplace2d"),
        ("channel", "laplace2d"),
        ("electrodes", "laplace2d"),
        ("jacksboro", "fill"),
        ("seed_1d", "laplace1d"),
    ] {
        let path = example(&format!("{name}.toml"));
        let object = json(&format!(
            "solve {} --max-sweeps 40 --norm l2 --json",
            path.display()
        ));
        assert_eq!(object["problem"], problem);
        assert_eq!(object["sweeps"], 40, "{name}");
    }
}

#[test]
fn a_field_whose_digits_stand_still_is_said_to_be_unfinished() {
    let line = "solve laplace2d --nx 64 --ny 64 --boundary top=300000 --method jacobi --pes 1";
    let (code, out, _) = outcome(line);
    assert_eq!(code, 0);
    assert!(
        out.contains("error 0 <=") && out.contains("\nNo digit of f32 changes any more"),
        "{out}"
    );
}

#[test]
fn norms_of_all_steps_are_told_when_asked_for() {
    let (_, out, _) = outcome("solve laplace1d --points 4096 --json");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(object["history"].is_null() && object["norm"].is_f64());
}

#[test]
fn the_default_plane_ends_within_its_sweeps() {
    let (code, out, _) = outcome("solve laplace2d --nx 64 --ny 64 --method jacobi");
    assert_eq!(code, 0);
    assert!(
        out.contains("Converged after ") && out.contains(" <= tolerance 1e-07\n"),
        "{out}"
    );
}

#[test]
fn a_side_of_2_to_the_minus_70_is_solved_as_a_side_of_1() {
    let solve = |top: f64, tolerance: f64| {
        json(&format!(
            "solve laplace2d --nx 65 --ny 40 --boundary top={top:e} --tolerance {tolerance:e} --json --pes 2"
        ))
    };
    let power = 2f64.powi(-70);
    let (one, small) = (solve(1.0, 1e-5), solve(power, 1e-5 * power));
    assert_eq!(one["converged"], true);
    assert_eq!(one["sweeps"], small["sweeps"]);
    let norms = |object: &serde_json::Value| -> Vec<f64> {
        let history = object["history"].as_array().unwrap();
        history.iter().map(|row| row[1].as_f64().unwrap()).collect()
    };
    let scaled: Vec<f64> = norms(&one).iter().map(|norm| norm * power).collect();
    assert_eq!(norms(&small), scaled);
}
