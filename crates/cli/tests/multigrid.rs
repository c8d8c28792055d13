//! `crosswarp solve` by multigrid, end to end: what it says, what it takes, and that its bits are one's own.

mod common;

use std::path::Path;

use common::{crosswarp, example, json, outcome, read_npy_f32, write_npy};
use serde_json::Value;

/// The fields of a result that must not depend on who computed it.
fn answer(object: &Value) -> [Value; 4] {
    ["cycles", "history", "levels", "field_sha256"].map(|name| object[name].clone())
}

fn read_npy_f64(path: &Path) -> Vec<f64> {
    let file = std::fs::File::open(path).map(std::io::BufReader::new);
    npyz::NpyFile::new(file.unwrap())
        .unwrap()
        .into_vec()
        .unwrap()
}

#[test]
fn every_cycle_is_a_line_and_the_solution_is_said() {
    let (code, out, err) = outcome("solve laplace2d --nx 65 --ny 40 --pes 2 --dtype f64");
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    let cycles = lines.len() - 2;
    assert!((4..=20).contains(&cycles), "{out}");
    for (number, line) in (1..).zip(&lines[..cycles]) {
        let residual = line.strip_prefix(&format!("Cycle {number}: relative residual "));
        let residual = residual.unwrap_or_else(|| panic!("{line}"));
        assert!(residual.contains('.') && residual.contains("e-0"), "{line}");
    }
    let solved = lines[cycles];
    assert!(
        solved.starts_with(&format!("Solved in {cycles} cycles of "))
            && solved.contains(" levels: relative residual ")
            && solved.ends_with(" <= 1e-08"),
        "{solved}"
    );
    let machine = lines[cycles + 1];
    assert!(
        machine.starts_with("65 x 40 cells f64 on 2 PEs (threads), CPU, V(2,2); "),
        "{machine}"
    );
}

#[test]
fn the_solution_is_that_of_the_equation() {
    // sin(pi x) sinh(pi (1 - y)) / sinh(pi) of Laplace's equation, to the error of five points.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.npy");
    let line = format!(
        "solve laplace2d --nx 65 --ny 65 --boundary top=sin(pi*x) --dtype f64 -o {}",
        path.display()
    );
    assert_eq!(outcome(&line).0, 0);
    let pi = std::f64::consts::PI;
    for (k, value) in read_npy_f64(&path).into_iter().enumerate() {
        let (x, y) = ((k % 65) as f64 / 64.0, (k / 65) as f64 / 64.0);
        let exact = (pi * x).sin() * (pi * (1.0 - y)).sinh() / pi.sinh();
        assert!((value - exact).abs() < 2e-4, "{x} {y}: {value} {exact}");
    }
}

#[test]
fn conjugate_gradients_take_fewer_steps_to_the_same_field() {
    let line = "solve laplace2d --nx 101 --ny 87 --dtype f64 --json --boundary left=periodic \
                --boundary right=periodic --boundary top=x*(1-x)";
    let alone = json(line);
    let with = json(&format!("{line} --method mgcg"));
    assert_eq!(
        (alone["method"].as_str(), with["method"].as_str()),
        (Some("mg"), Some("mgcg"))
    );
    assert_eq!(with["converged"], true);
    assert!(
        with["cycles"].as_u64() < alone["cycles"].as_u64(),
        "{with} {alone}"
    );
    assert_eq!(
        answer(&with),
        answer(&json(&format!("{line} --method mgcg --pes 3")))
    );
    let (code, _, err) = outcome("solve laplace2d --method mgcg --tolerance 1e-4");
    assert_eq!(code, 2);
    assert!(err.contains("it does not go with --method mgcg"), "{err}");
}

#[test]
fn methods_of_one_level_have_the_bits_of_any_pes_and_go_on_from_their_checkpoints() {
    let line = "solve laplace2d --nx 61 --ny 47 --dtype f64 --json --coefficient 1+x --boundary left=neumann:1 \
                --boundary top=1";
    for method in ["cg", "chebyshev"] {
        let line = format!("{line} --method {method} --stop residual=1e-10");
        let one = json(&format!("{line} --pes 1"));
        assert_eq!(one["method"], method);
        assert_eq!(one["converged"], true);
        assert!(one["cycles"].is_null() && one["levels"].is_null());
        assert!(one["sweeps"].as_u64().unwrap() > 50);
        assert_eq!(answer(&one), answer(&json(&format!("{line} --pes 3"))));
        let processes = json(&format!("run -n 2 -- crosswarp {line}"));
        assert_eq!(answer(&one), answer(&processes));
        // A checkpoint says which method goes on.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").display().to_string();
        let (code, ..) = outcome(&format!("{line} --max-sweeps 20 --checkpoint {path}"));
        assert_eq!(code, 3);
        let resumed = line.replace(&format!("--method {method} "), "");
        let resumed = json(&format!("{resumed} --resume {path}"));
        assert_eq!(resumed["method"], method);
        assert_eq!(answer(&one), answer(&resumed));
        let (code, out, _) = outcome(&line.replace("--json", ""));
        assert!(
            code == 0 && out.contains(" sweeps: relative residual "),
            "{out}"
        );
    }
}

#[test]
fn json_tells_of_cycles() {
    let object = json("solve laplace2d --nx 100 --ny 90 --stop residual=1e-6 --json");
    assert_eq!(object["method"], "mg");
    assert_eq!(object["backend"], "cpu");
    assert_eq!(object["converged"], true);
    assert_eq!(object["floor_reached"], false);
    for of_jacobi in ["sweeps", "norm", "remaining_error_estimate", "strategy"] {
        assert!(object[of_jacobi].is_null(), "{of_jacobi}");
    }
    let history = object["history"].as_array().unwrap();
    let cycles = object["cycles"].as_u64().unwrap();
    assert_eq!(history.len() as u64, cycles);
    assert_eq!(history[0][0], 1);
    let last = history.last().unwrap();
    assert_eq!(
        (last[0].as_u64(), &last[1]),
        (Some(cycles), &object["relative_residual"])
    );
    assert!(object["relative_residual"].as_f64().unwrap() <= 1e-6);
    assert!(object["levels"].as_u64().unwrap() >= 3);
    let factor = object["convergence_factor"].as_f64().unwrap();
    let residual = |k: usize| history[k][1].as_f64().unwrap();
    let at = history.len() - 1;
    let count = at.clamp(1, 4);
    let mean = (residual(at) / residual(at - count)).powf(1.0 / count as f64);
    assert!(
        (factor / mean - 1.0).abs() < 1e-12 && factor < 0.4,
        "{factor} {mean}"
    );
}

#[test]
fn threads_and_processes_have_the_bits_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let values = folder.path().join("v.npy");
    let rough = |k: usize| match (k * 7919) % 13 {
        0 => ((k % 61) as f32 * 0.3).sin() * 50.0,
        _ => f32::NAN,
    };
    write_npy(&values, &[75, 61], (0..75 * 61).map(rough));
    for problem in [
        "laplace2d --nx 150 --ny 97".to_owned(),
        format!("fill --values {}", values.display()),
        example("electrodes.toml").display().to_string(),
        "laplace2d --nx 97 --ny 90 --boundary left=1 --boundary top=neumann:sin(3*x) --dtype f64"
            .to_owned(),
    ] {
        let line = format!("solve {problem} --stop residual=1e-7 --json");
        let one = json(&format!("{line} --pes 1"));
        assert_eq!(one["converged"], true, "{problem}");
        for pes in [2, 3, 5] {
            let several = json(&format!("{line} --pes {pes}"));
            assert_eq!(answer(&several), answer(&one), "{problem}, {pes} threads");
        }
        let processes = json(&format!("run -n 2 -- crosswarp {line}"));
        assert_eq!(processes["world"], "processes");
        assert_eq!(answer(&processes), answer(&one), "{problem}, processes");
    }
}

#[test]
fn a_derivative_on_a_side_is_that_of_the_field() {
    // u = 3x - 2y solves Laplace's equation; outwards its derivatives are 3 on the right and -2 at the bottom.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = "kind = 'laplace2d'\nnx = 33\nny = 21\nspacing = 0.25\ndtype = 'f64'\nmethod = 'mg'\n\
         stop = { residual = 1e-12 }\nsmooth = [2, 1]\n[boundary]\nleft = '-2*y'\nright = 'neumann:3'\n\
         top = '3*x'\nbottom = 'neumann:g.npy'\n";
    std::fs::write(at("p.toml"), file).unwrap();
    write_npy(&at("g.npy"), &[33], [-2f64; 33]);
    let line = format!(
        "solve {} -o {}",
        at("p.toml").display(),
        at("f.npy").display()
    );
    let (code, out, err) = outcome(&line);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains(", V(2,1); ") && out.contains(" <= 1e-12\n"),
        "{out}"
    );
    for (k, value) in read_npy_f64(&at("f.npy")).into_iter().enumerate() {
        let (x, y) = ((k % 33) as f64 / 4.0, (k / 33) as f64 / 4.0);
        assert!(
            (value - (3.0 * x - 2.0 * y)).abs() < 1e-8,
            "{x} {y}: {value}"
        );
    }
}

#[test]
fn a_fill_has_a_natural_rim_and_voids_need_no_mask() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (columns, rows) = (24, 18);
    // Two known columns: between them linear, beyond them constant if nothing flows across the rim.
    let given = |void: f32| {
        (0..columns * rows).map(move |k| match k % columns {
            6 => 10.0,
            16 => 20.0,
            _ => void,
        })
    };
    let shape = [rows as u64, columns as u64];
    write_npy(Path::new(&at("nan.npy")), &shape, given(f32::NAN));
    write_npy(Path::new(&at("void.npy")), &shape, given(-9999.0));
    write_npy(
        Path::new(&at("known.npy")),
        &shape,
        given(0.0).map(|v| u8::from(v > 0.0)),
    );
    let fill = |options: &str| {
        let path = at("f.npy");
        let (code, out, err) = outcome(&format!("solve fill {options} -o {path}"));
        assert_eq!((code, err.as_str()), (0, ""), "{options}");
        (out, read_npy_f32(Path::new(&path)).1)
    };
    let by_nan = format!("--values {}", at("nan.npy"));
    let (out, field) = fill(&by_nan);
    assert!(out.contains(", V(2,2), natural rim; "), "{out}");
    for (k, value) in field.iter().enumerate() {
        let expected = ((k % columns) as f32 + 4.0).clamp(10.0, 20.0);
        assert!((value - expected).abs() < 1e-4, "{k}: {value} {expected}");
    }
    let of_value = format!("--values {} --nodata -9999", at("void.npy"));
    let of_mask = format!("--values {} --known {}", at("void.npy"), at("known.npy"));
    for same in [&of_value, &of_mask] {
        assert_eq!(fill(same).1, field, "{same}");
    }
    // The rim's voids lie between the nearest known rim cells then, also around the corners.
    for options in ["--rim interpolated", "--tolerance 1e-7"] {
        let (out, field) = fill(&format!("{by_nan} {options}"));
        assert!(out.contains(", interpolated rim; "), "{out}");
        assert!(
            (field[11] - 15.0).abs() < 1e-4 && (field[23] - 20.0).abs() < 1e-4,
            "{field:?}"
        );
    }
    write_npy(
        Path::new(&at("none.npy")),
        &shape,
        vec![f32::NAN; columns * rows],
    );
    for (options, expected) in [
        ("", "no cell of the grid is known: at least one must be"),
        (
            " --rim interpolated",
            "no cell on the rim of the grid is known: at least one must be",
        ),
    ] {
        let line = format!("solve fill --values {}{options}", at("none.npy"));
        assert_eq!(
            outcome(&line),
            (2, String::new(), format!("crosswarp: {expected}\n"))
        );
    }
}

#[test]
fn an_incompatible_source_is_projected_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    let sides =
        "left = 'neumann:1'\nright = 'neumann:0'\ntop = 'neumann:0'\nbottom = 'neumann:0'\n";
    for (head, rest) in [
        ("kind = 'laplace2d'\nnx = 20\nny = 24\n", ""),
        (
            "kind = 'laplace3d'\nnx = 20\nny = 24\nnz = 12\n",
            "front = 'neumann:0'\nback = 'neumann:0'\n",
        ),
    ] {
        let file = |key: &str| {
            let text = format!("{head}{key}\n[boundary]\n{sides}{rest}");
            std::fs::write(&path, text).unwrap();
            format!("solve {}", path.display())
        };
        let (code, _, err) = outcome(&file(""));
        assert_eq!(code, 2);
        assert!(
            err.contains("must cancel, and 1e0 of them is left"),
            "{err}"
        );
        // All that there is flows in on the left.
        let by_file = json(&format!("{} --json", file("project_source = true")));
        assert_eq!(
            (&by_file["projected"], &by_file["converged"]),
            (&1.0.into(), &true.into())
        );
        let line = format!("{} --project-source", file("project_source = false"));
        let by_line = json(&format!("{line} --json"));
        assert_eq!(answer(&by_line), answer(&by_file));
        let (code, out, _) = outcome(&line);
        assert_eq!(code, 0);
        assert!(
            out.contains("\nNo field solves what was asked for: 1.0e+00 of "),
            "{out}"
        );
    }
    let refused = outcome("solve laplace2d --project-source --method jacobi");
    let expected =
        "crosswarp: --project-source belongs to multigrid: it does not go with --method jacobi\n";
    assert_eq!(refused, (2, String::new(), expected.to_owned()));
}

#[test]
fn a_constant_coefficient_does_not_change_the_floor() {
    // Sides of 0, so that the field is the source's alone, and as many times smaller as the coefficient is larger.
    let sides = ["top", "bottom", "left", "right"].map(|side| format!(" --boundary {side}=0"));
    let line = format!(
        "solve laplace2d --nx 129 --ny 129 --dtype f64 --source -2*sin(3*x)*y --stop residual=1e-10 --json{}",
        sides.concat()
    );
    let floor = |object: &Value| object["floor"].as_f64().unwrap();
    let plain = json(&line);
    for coefficient in ["1e-6", "1e4"] {
        let object = json(&format!("{line} --coefficient {coefficient}"));
        assert_eq!(object["converged"], true, "{object}");
        let ratio = floor(&object) / floor(&plain);
        assert!((ratio - 1.0).abs() < 1e-6, "{coefficient}: {ratio}");
    }
}

#[test]
fn what_rounding_does_not_allow_is_said() {
    let line = "solve laplace2d --nx 60 --ny 50 --dtype f64";
    let (code, out, _) = outcome(&format!("{line} --stop residual=1e-30"));
    assert_eq!(code, 3);
    assert!(
        out.contains("Solved as far as rounding allows in ")
            && out.contains(" > 1e-30, and rounding can leave up to "),
        "{out}"
    );
    let object = json(&format!("{line} --stop residual=1e-30 --json"));
    let (floor, limit) = (&object["floor"], &object["effective_limit"]);
    let (floor, limit) = (floor.as_f64().unwrap(), limit.as_f64().unwrap());
    assert!(
        floor > 1e-16 && floor < 1e-12 && limit == 2.0 * floor,
        "{object}"
    );
    assert!(
        object["relative_residual"].as_f64().unwrap() <= limit,
        "{object}"
    );
    let object_at_ease = json(&format!("{line} --json"));
    assert_eq!(object_at_ease["effective_limit"], 1e-8);
    assert_eq!(
        (&object["floor_reached"], &object["converged"]),
        (&true.into(), &false.into())
    );
    let (code, out, _) = outcome(&format!("{line} --max-cycles 2"));
    assert_eq!(code, 3);
    assert!(out.contains("\nDid not converge in 2 cycles of "), "{out}");
    let (code, out, _) = outcome("solve laplace2d --nx 20 --ny 20 --boundary top=0");
    assert_eq!(code, 0);
    assert!(
        out.starts_with("Nothing to solve: the residual of the first guess is 0\n"),
        "{out}"
    );
}

#[test]
fn plots_and_tables_count_cycles() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let output = crosswarp()
        .args("solve laplace2d --nx 60 --ny 50 --plot".split(' '))
        .arg(at("p.svg"))
        .arg("--history")
        .arg(at("h.csv"))
        .arg("--png")
        .arg(at("f.png"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let csv = std::fs::read_to_string(at("h.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("cycle,relative_residual"));
    assert!(lines.next().unwrap().starts_with("1,0."), "{csv}");
    let svg = std::fs::read_to_string(at("p.svg")).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.text())
        .collect();
    let says = |text: &str| texts.iter().any(|found| found.contains(text));
    assert!(
        says("relative residual") && says("cycle") && !says("sweep"),
        "{texts:?}"
    );
}

#[test]
fn jacobi_says_how_far_the_solution_is() {
    let line = "solve laplace2d --boundary top=sin(pi*x) --nx 64 --ny 64";
    let (code, out, _) = outcome(&format!("{line} --tolerance 1e-4"));
    assert_eq!(code, 0);
    let told = out
        .lines()
        .find(|line| line.starts_with("The solution is about "));
    let told = told.unwrap_or_else(|| panic!("{out}"));
    assert!(
        told.contains(" (rms) away, or more: ")
            && told.ends_with(" times the tolerance; --method mg goes all the way"),
        "{told}"
    );
    // Near the end only the slowest part is left, and the estimate is right.
    let folder = tempfile::tempdir().unwrap();
    let field = |options: &str, name: &str| {
        let path = folder.path().join(name);
        let object = json(&format!(
            "{line} --dtype f64 --json {options} -o {}",
            path.display()
        ));
        (object, read_npy_f64(&path))
    };
    let (object, near) = field("--tolerance 1e-6", "near.npy");
    let (_, solution) = field("--stop residual=1e-12", "solution.npy");
    let squares = near.iter().zip(&solution).map(|(a, b)| (a - b) * (a - b));
    let error = (squares.sum::<f64>() / near.len() as f64).sqrt();
    let estimate = object["remaining_error_estimate"].as_f64().unwrap();
    assert!((estimate / error - 1.0).abs() < 0.05, "{estimate} {error}");
    // Far from large, nothing more is said.
    let (_, out, _) = outcome("solve laplace2d --nx 5 --ny 5 --tolerance 1e-3");
    assert!(out.contains(" (rms) away, or more\n"), "{out}");
}

#[test]
fn coefficients_and_mixed_sides_by_line_and_by_file() {
    // u = 1 + 2x - y, whatever the coefficient is where nothing flows along its steps: kappa is of y only, and u too but
    // for a flow in x that is the same everywhere.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let line = format!(
        "solve laplace2d --nx 41 --ny 31 --spacing 0.1,0.2 --dtype f64 --stop residual=1e-12 \
         --boundary left=robin:1,1,1-y-2 --boundary right=9-y --boundary top=1+2*x \
         --boundary bottom=neumann:-1 --reaction 2 --source=-2*(1+2*x-y) -o {} --json",
        at("line.npy").display()
    );
    let by_line = json(&line);
    for (k, value) in read_npy_f64(&at("line.npy")).into_iter().enumerate() {
        let (x, y) = ((k % 41) as f64 * 0.1, (k / 41) as f64 * 0.2);
        let exact = 1.0 + 2.0 * x - y;
        assert!(
            (value - exact).abs() < 1e-9,
            "cell {k}: {value}, not {exact}"
        );
    }
    std::fs::write(
        at("p.toml"),
        "kind = 'laplace2d'\nnx = 41\nny = 31\nspacing = [0.1, 0.2]\ndtype = 'f64'\n\
         reaction = 2\nsource = '-2*(1+2*x-y)'\nstop = { residual = 1e-12 }\n\
         [boundary]\nleft = 'robin:1,1,1-y-2'\nright = '9-y'\ntop = '1+2*x'\nbottom = 'neumann:-1'\n",
    )
    .unwrap();
    let by_file = json(&format!("solve {} --json --pes 3", at("p.toml").display()));
    assert_eq!(answer(&by_line), answer(&by_file));
    // A coefficient from a file is the same as one by formula.
    let kappa: Vec<f64> = (0..41 * 31).map(|k| 1.0 + (k / 41) as f64 * 0.2).collect();
    write_npy(&at("kappa.npy"), &[31, 41], &kappa);
    let with = |kappa: &str| {
        json(&format!(
            "solve laplace2d --nx 41 --ny 31 --spacing 0.1,0.2 --coefficient {kappa} --boundary left=1 --json"
        ))
    };
    let file = with(&at("kappa.npy").display().to_string());
    assert_eq!(answer(&file), answer(&with("1+y")));
}

#[test]
fn conjugate_gradients_are_said_where_they_take_over() {
    let line = "solve laplace2d --nx 60 --ny 60 --spacing 1,5 --boundary left=1";
    let object = json(&format!("{line} --json"));
    assert_eq!(object["method"], "mgcg");
    let (code, out, _) = outcome(line);
    assert_eq!(code, 0);
    assert!(out.contains(", conjugate gradients after cycle "), "{out}");
    let object = json(&format!("{line} --json --method mg --max-cycles 200"));
    assert_eq!(object["method"], "mg");
}
