//! `crosswarp solve laplace3d`, end to end.

mod common;

use std::f64::consts::PI;
use std::path::Path;

use common::{crosswarp, json, outcome, write_npy};
use serde_json::Value;

/// The fields of a result that must not depend on who computed it.
fn answer(object: &Value) -> [Value; 4] {
    ["cycles", "history", "levels", "field_sha256"].map(|name| object[name].clone())
}

fn read(path: &Path) -> (Vec<u64>, Vec<f64>) {
    let file = std::fs::File::open(path).map(std::io::BufReader::new);
    let file = npyz::NpyFile::new(file.unwrap()).unwrap();
    (file.shape().to_vec(), file.into_vec().unwrap())
}

/// x, y and z of the cells of a field of (planes, rows, columns), `h` apart, in order.
fn points([nx, ny, nz]: [usize; 3], h: f64) -> Vec<[f64; 3]> {
    let planes = (0..nz).flat_map(|z| (0..ny).map(move |y| (y, z)));
    let all = planes.flat_map(|(y, z)| (0..nx).map(move |x| [x, y, z]));
    all.map(|place| place.map(|i| i as f64 * h)).collect()
}

#[test]
fn two_waves_come_out_to_the_error_of_seven_points() {
    // Relative error of the equations of seven points at h = 1/32, whose eigenvectors both waves are.
    let half = |a: f64| (64.0 * (a * PI / 64.0).sin()).powi(2);
    let of = |exact: f64, discrete: f64| (exact / discrete - 1.0).powi(2);
    let (one, three) = (
        of(3.0 * PI * PI, 3.0 * half(1.0)),
        of(11.0 * PI * PI, half(3.0) + 2.0 * half(1.0)),
    );
    let expected = ((one + 0.25 * three) / 1.25f64).sqrt();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("u.npy");
    let source =
        "--source=-3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)-5.5*pi^2*sin(3*pi*x)*sin(pi*y)*sin(pi*z)";
    let line = format!("solve laplace3d --nx 33 --ny 33 --nz 33 --dtype f64 {source} --json");
    let object = json(&format!("{line} -o {}", path.display()));
    assert_eq!(
        (&object["problem"], &object["method"], &object["converged"]),
        (&"laplace3d".into(), &"mg".into(), &true.into())
    );
    assert!(object["cycles"].as_u64().unwrap() <= 12, "{object}");
    let (shape, field) = read(&path);
    assert_eq!(shape, [33; 3]);
    let (mut error, mut norm) = (0.0, 0.0);
    for ([x, y, z], value) in points([33; 3], 1.0 / 32.0).into_iter().zip(field) {
        let exact = ((PI * x).sin() + 0.5 * (3.0 * PI * x).sin()) * (PI * y).sin() * (PI * z).sin();
        error += (value - exact).powi(2);
        norm += exact.powi(2);
    }
    let relative = (error / norm).sqrt();
    assert!(
        (relative / expected - 1.0).abs() < 0.01,
        "{relative} {expected}"
    );
    for pes in [2, 3, 5] {
        assert_eq!(
            answer(&json(&format!("{line} --pes {pes}"))),
            answer(&object)
        );
    }
    let processes = json(&format!("run -n 3 -- crosswarp {line}"));
    assert_eq!(processes["world"], "processes");
    assert_eq!(answer(&processes), answer(&object));
}

#[test]
fn other_methods_are_checkpointed_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let line = "solve laplace3d --nx 20 --ny 17 --nz 30 --dtype f64 --source x-y*z --json";
    let answer = |object: &Value| {
        ["method", "sweeps", "cycles", "history", "field_sha256"].map(|name| object[name].clone())
    };
    for method in ["cg", "chebyshev", "mgcg"] {
        let (steps, most) = match method {
            "mgcg" => ("cycles", "--max-cycles 3"),
            _ => ("sweeps", "--max-sweeps 11"),
        };
        let whole = json(&format!("{line} --method {method}"));
        assert_eq!(whole["method"], method);
        assert!(whole[steps].as_u64().unwrap() > 4);
        assert!(whole["converged"].as_bool().unwrap());
        let (code, ..) = outcome(&format!(
            "{line} --method {method} {most} --pes 2 --checkpoint {}",
            state.display()
        ));
        assert_eq!(code, 3);
        // The checkpoint says which method it is of, but for cycles.
        let said = if method == "mgcg" {
            "--method mgcg"
        } else {
            ""
        };
        let resumed = json(&format!(
            "{line} {said} --pes 3 --resume {}",
            state.display()
        ));
        assert_eq!(answer(&resumed), answer(&whole));
    }
}

#[test]
fn a_resumed_solve_with_nothing_left_to_do_reports_the_same_floor() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    for kind in ["laplace2d", "laplace3d --nz 30"] {
        for method in ["cg", "chebyshev"] {
            let line = format!(
                "solve {kind} --nx 20 --ny 17 --dtype f64 --source x-y --method {method} --max-sweeps 11 --json"
            );
            let (code, out, _) = outcome(&format!("{line} --checkpoint {}", state.display()));
            assert_eq!(code, 3);
            let stopped: Value = serde_json::from_str(&out).unwrap();
            let (code, out, _) = outcome(&format!("{line} --resume {}", state.display()));
            assert_eq!(code, 3);
            let resumed: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(resumed["floor"], stopped["floor"], "{kind}, {method}");
        }
    }
}

#[test]
fn sides_by_line_by_file_and_by_npy() {
    // u = 1 + 2x - y + 3z solves it, and the derivative at the back is 3.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let size = [9, 12, 10];
    let u = |[x, y, z]: [f64; 3]| 1.0 + 2.0 * x - y + 3.0 * z;
    let exact: Vec<f64> = points(size, 0.25).into_iter().map(u).collect();
    let cell = |x: usize, y: usize, z: usize| exact[(z * 12 + y) * 9 + x];
    let right = (0..120).map(|k| cell(8, k % 12, k / 12));
    write_npy(&at("right.npy"), &[10, 12], right);
    let bottom = (0..90).map(|k| cell(k % 9, 11, k / 9));
    write_npy(&at("bottom.npy"), &[10, 9], bottom);
    let front = (0..108).map(|k| cell(k % 9, k / 9, 0));
    write_npy(&at("front.npy"), &[12, 9], front);
    let (right, bottom, front) = (at("right.npy"), at("bottom.npy"), at("front.npy"));
    let line = format!(
        "solve laplace3d --nx 9 --ny 12 --nz 10 --spacing 0.25,0.25,0.25 --dtype f64 --stop residual=1e-12 \
         --boundary left=1-y+3*z --boundary right={} --boundary top=1+i/2+3*k/4 --boundary bottom={} \
         --boundary front={} --boundary back=neumann:3 --json -o {}",
        right.display(),
        bottom.display(),
        front.display(),
        at("line.npy").display()
    );
    let by_line = json(&line);
    let (shape, field) = read(&at("line.npy"));
    assert_eq!(shape, [10, 12, 9]);
    for (k, (value, exact)) in field.iter().zip(&exact).enumerate() {
        assert!(
            (value - exact).abs() < 1e-9,
            "cell {k}: {value}, not {exact}"
        );
    }
    std::fs::write(
        at("p.toml"),
        "kind = 'laplace3d'\nnx = 9\nny = 12\nnz = 10\nspacing = [0.25, 0.25, 0.25]\ndtype = 'f64'\n\
         stop = { residual = 1e-12 }\n[boundary]\nleft = '1-y+3*z'\nright = 'right.npy'\n\
         top = '1+i/2+3*k/4'\nbottom = 'bottom.npy'\nfront = 'front.npy'\nback = 'neumann:3'\n",
    )
    .unwrap();
    let by_file = json(&format!("solve {} --json --pes 2", at("p.toml").display()));
    assert_eq!(answer(&by_line), answer(&by_file));
    // A coefficient that changes along y, a term cu, mixed sides and points that keep their value.
    let fixed = (0..9 * 12 * 10).map(|k| f64::from(u8::from(k % 17 == 0)));
    write_npy(&at("fixed.npy"), &[10, 12, 9], fixed);
    std::fs::write(
        at("q.toml"),
        "kind = 'laplace3d'\nnx = 9\nny = 12\nnz = 10\nspacing = 0.25\ndtype = 'f64'\n\
         coefficient = '1+y'\nreaction = 2\nsource = '-1-2*(1+2*x-y+3*z)'\nstop = { residual = 1e-12 }\n\
         [boundary]\nleft = '1-y+3*z'\nright = 'right.npy'\ntop = 'neumann:1'\nbottom = 'robin:0,2,-2'\n\
         front = 'front.npy'\nback = 'robin:0,1,3'\n\
         [fixed]\nmask = 'fixed.npy'\nvalues = '1+2*x-y+3*z'\n",
    )
    .unwrap();
    let general = json(&format!(
        "solve {} --json --pes 2 -o {}",
        at("q.toml").display(),
        at("general.npy").display()
    ));
    assert_eq!(general["converged"], true);
    for (k, (value, exact)) in read(&at("general.npy")).1.iter().zip(&exact).enumerate() {
        assert!(
            (value - exact).abs() < 1e-9,
            "cell {k}: {value}, not {exact}"
        );
    }
    // A source of a file is the same as one by formula.
    let source = points(size, 0.25).into_iter().map(|[x, _, z]| x * z);
    write_npy(&at("f.npy"), &[10, 12, 9], source);
    let with = |source: &str| {
        json(&format!(
            "solve laplace3d --nx 9 --ny 12 --nz 10 --spacing 0.25 --dtype f64 --source {source} --json"
        ))
    };
    let file = with(&at("f.npy").display().to_string());
    assert_eq!(file["converged"], true);
    assert_eq!(answer(&file), answer(&with("x*z")));
}

#[test]
fn the_summary_and_the_files_are_of_a_box() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let output = crosswarp()
        .args("solve laplace3d --nx 20 --ny 17 --nz 12 --pes 2 --slice x=0.4 --png".split(' '))
        .arg(at("f.png"))
        .arg("--vti")
        .arg(at("f.vti"))
        .arg("--plot")
        .arg(at("p.svg"))
        .arg("-o")
        .arg(at("f.npy"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("Solved in ")
            && text.contains("20 x 17 x 12 cells f32 on 2 PEs (threads), CPU, V(2,2); "),
        "{text}"
    );
    let vti = std::fs::read(at("f.vti")).unwrap();
    let vti = String::from_utf8_lossy(&vti);
    assert!(vti.contains(r#"WholeExtent="0 19 0 16 0 11""#), "{vti}");
    let (shape, cells) = common::read_npy_f32(&at("f.npy"));
    assert_eq!(shape, [12, 17, 20]);
    // The default front: an arch of height 1 in the middle.
    let front = cells[8 * 20 + 9];
    let expected = (PI * 9.0 / 19.0).sin() * (PI * 8.0 / 19.0).sin();
    assert!((f64::from(front) - expected).abs() < 1e-6, "{front}");
    assert!(cells[5 * 20 * 17 + 8 * 20 + 9] < front);
    let plot = std::fs::read_to_string(at("p.svg")).unwrap();
    assert!(plot.contains("20 x 17 x 12 cells"), "{plot}");
    assert!(std::fs::read(at("f.png")).unwrap().len() > 1000);
}

#[test]
fn what_a_box_cannot_have_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    write_npy(Path::new(&at("cube.npy")), &[4, 4, 4], [0f32; 64]);
    let cube = at("cube.npy");
    for (options, code, expected) in [
        (
            "--nx 2",
            2,
            "a grid of 2 x 65 x 65 points has no inner point: all sizes must be at least 3".to_owned(),
        ),
        (
            "--nz 0",
            2,
            "a grid of 65 x 65 x 0 points has no inner point: all sizes must be at least 3".to_owned(),
        ),
        (
            "--boundary top=periodic",
            2,
            "the top side is periodic but the bottom side is not: opposite sides wrap around together"
                .to_owned(),
        ),
        (
            "--method jacobi",
            2,
            "laplace3d is not solved by sweeps of Jacobi: it does not go with --method jacobi".to_owned(),
        ),
        (
            "--boundary top=robin:1,2,x",
            2,
            "the top side of laplace3d: A, B and G of robin:A,B,G must be numbers".to_owned(),
        ),
        (
            "--coefficient 0.5-x",
            2,
            "the coefficient at x = 32, y = 0, z = 0 (point numbers) is not positive and finite".to_owned(),
        ),
        (
            "--boundary top=neumann:x",
            2,
            "the top side of laplace3d: its derivative must be a number".to_owned(),
        ),
        (
            "--boundary front=1/x",
            2,
            "formula '1/x': its value at column 0, row 0 is inf".to_owned(),
        ),
        (
            "--source 1/(z-0.5)",
            2,
            "the source at x = 1, y = 1, z = 32 (point numbers) is not finite".to_owned(),
        ),
        (
            "--boundary back=periodic --boundary front=periodic --source 1/(z-1)",
            2,
            "the source at x = 1, y = 1, z = 64 (point numbers) is not finite".to_owned(),
        ),
        (
            "--boundary left=1e39",
            2,
            "1e39 is more than f32 can hold (3.4028235e38 at most); use --dtype f64".to_owned(),
        ),
        (
            &format!("--source {cube}"),
            1,
            format!("{cube}: shape (4, 4, 4), but (65, 65, 65) is needed"),
        ),
        (
            &format!("--boundary top={cube}"),
            1,
            format!("{cube}: shape (4, 4, 4), but (rows, columns) is needed"),
        ),
        (
            "--source f.tif",
            1,
            "f.tif: a box of numbers comes from an NPY file of three axes".to_owned(),
        ),
        (
            "--png f.png --slice z=1.1",
            2,
            "--slice z=1.1 lies outside the box: z goes from 0 to 1".to_owned(),
        ),
        (
            &format!("-o {}", at("o.tif")),
            2,
            "a box cannot be written as TIFF, which is a plane; -o FIELD.npy can".to_owned(),
        ),
    ] {
        let got = outcome(&format!("solve laplace3d {options}"));
        let expected = (code, String::new(), format!("crosswarp: {expected}\n"));
        assert_eq!(got, expected, "{options}");
    }
    let (code, _, err) = outcome("solve laplace3d --nx 60000 --ny 60000 --nz 60000");
    assert!(
        code == 1 && err.contains(" GiB for the field and its levels, this machine has "),
        "{err}"
    );
    let (code, _, err) = outcome("solve laplace3d --nx 99999999 --ny 99999999 --nz 99999999");
    assert!(code == 1 && err.contains(" GiB for "), "{err}");
    assert!(!Path::new("f.png").exists());
    let (code, out, _) = outcome("solve laplace3d --source 0");
    assert!(code == 0 && out.starts_with("Nothing to solve: "), "{out}");
}
