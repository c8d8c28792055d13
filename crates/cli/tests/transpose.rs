//! `crosswarp transpose`, end to end; npyz, which is not ours, writes and reads the files.

mod common;

use common::{json, names, outcome, write_npy};

/// Shape and elements of a file.
fn read<T: npyz::Deserialize>(path: &std::path::Path) -> (Vec<u64>, Vec<T>) {
    let bytes = std::fs::read(path).unwrap();
    let file = npyz::NpyFile::new(&bytes[..]).unwrap();
    (file.shape().to_vec(), file.into_vec().unwrap())
}

/// The transposed matrices, by the definition.
fn expected<T: Copy>(values: &[T], batch: usize, rows: usize, columns: usize) -> Vec<T> {
    let at = |b, r, c| values[(b * rows + r) * columns + c];
    let all = |b| (0..columns).flat_map(move |c| (0..rows).map(move |r| (b, r, c)));
    (0..batch)
        .flat_map(all)
        .map(|(b, r, c)| at(b, r, c))
        .collect()
}

#[test]
fn every_type_and_both_shapes() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.npy"), folder.path().join("b.npy"));
    macro_rules! check {
        ($type:ty, $name:literal, $of:expr) => {
            let of: fn(u32) -> $type = $of;
            let values: Vec<$type> = (0..3 * 70 * 131).map(of).collect();
            for (batch, shape) in [(1, vec![70, 131]), (3, vec![3, 70, 131])] {
                let values = &values[..batch * 70 * 131];
                write_npy(&from, &shape, values.iter().copied());
                let line = format!("transpose {} -o {} --json", from.display(), to.display());
                let object = json(&line);
                let mut turned = shape.clone();
                turned.swap(shape.len() - 1, shape.len() - 2);
                assert_eq!(
                    (object["dtype"].as_str(), &object["shape"]),
                    (Some($name), &turned.clone().into())
                );
                let (shape, elements) = read::<$type>(&to);
                assert_eq!(shape, turned);
                assert!(elements == expected(values, batch, 70, 131), $name);
            }
        };
    }
    check!(bool, "bool", |k| k % 3 == 1);
    check!(i8, "i8", |k| k as i8);
    check!(u16, "u16", |k| k as u16);
    check!(half::f16, "f16", |k| half::f16::from_f32(k as f32));
    check!(f32, "f32", |k| k as f32);
    check!(i32, "i32", |k| -(k as i32));
    check!(f64, "f64", |k| f64::from(k));
    check!(u64, "u64", |k| u64::from(k) << 33);
}

#[test]
fn complex_numbers_move_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.npy"), folder.path().join("b.npy"));
    // The format as numpy documents it, version 1.0; both parts of an element are numbers.
    let file = |code: &str, shape: &str, elements: &[[f64; 2]]| -> Vec<u8> {
        let header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").bytes());
        for part in elements.as_flattened() {
            match code {
                "<c8" => bytes.extend((*part as f32).to_le_bytes()),
                _ => bytes.extend(part.to_le_bytes()),
            }
        }
        bytes
    };
    let values: Vec<[f64; 2]> = (0..50 * 33)
        .map(|k| [k.into(), -0.5 * f64::from(k)])
        .collect();
    let turned = expected(&values, 1, 50, 33);
    for (code, name) in [("<c8", "complex64"), ("<c16", "complex128")] {
        std::fs::write(&from, file(code, "(50, 33)", &values)).unwrap();
        let line = format!("transpose {} -o {} --json", from.display(), to.display());
        assert_eq!(json(&line)["dtype"], name);
        assert!(
            std::fs::read(&to).unwrap() == file(code, "(33, 50)", &turned),
            "{name}"
        );
        let (code, _, err) = outcome(&format!("reduce sum {}", from.display()));
        assert!(
            code == 1 && err.contains(&format!("dtype {name}, but a number type")),
            "{err}"
        );
    }
}

#[test]
fn processes_write_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_npy(
        &at("a.npy"),
        &[2, 301, 45],
        (0..2 * 301 * 45).map(|k| k as f32),
    );
    let a = at("a.npy").display().to_string();
    let (code, out, err) = outcome(&format!(
        "transpose {a} --backend cpu --output {}",
        at("b.npy").display()
    ));
    assert_eq!((code, err.as_str()), (0, ""));
    let start = format!("Wrote {}: (2, 45, 301) f32\non CPU", at("b.npy").display());
    assert!(out.starts_with(&start), "{out}");
    let line = format!(
        "run -n 3 -- crosswarp transpose {a} -o {} --json",
        at("c.npy").display()
    );
    let object = json(&line);
    assert_eq!(
        (object["pes"].as_u64(), object["world"].as_str()),
        (Some(3), Some("processes"))
    );
    assert!(std::fs::read(at("b.npy")).unwrap() == std::fs::read(at("c.npy")).unwrap());
    // Twice is nothing, also onto the file itself.
    let (code, ..) = outcome(&format!("transpose {0} -o {0}", at("c.npy").display()));
    assert_eq!(code, 0);
    assert!(read::<f32>(&at("a.npy")) == read::<f32>(&at("c.npy")));
}

#[test]
fn errors_are_one_line_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    write_npy(&folder.path().join("line.npy"), &[3], [1f32, 2.0, 3.0]);
    write_npy(&folder.path().join("m.npy"), &[2, 2], [1f32; 4]);
    let whole = std::fs::read(at("m.npy")).unwrap();
    std::fs::write(at("cut.npy"), &whole[..whole.len() - 1]).unwrap();
    let mut fortran = whole.clone();
    let place = whole.windows(5).position(|word| word == b"False").unwrap();
    fortran[place..place + 5].copy_from_slice(b"True ");
    std::fs::write(at("fortran.npy"), fortran).unwrap();
    for (name, expected) in [
        (
            "line.npy",
            "shape (3,), but (rows, columns) or (matrices, rows, columns) is needed",
        ),
        ("cut.npy", "truncated: 144 bytes expected, 143 found"),
        (
            "none.npy",
            "cannot read: No such file or directory (os error 2)",
        ),
    ] {
        let (code, out, err) = outcome(&format!("transpose {} -o {}", at(name), at("out.npy")));
        let line = format!("crosswarp: {}: {expected}\n", at(name));
        assert_eq!((code, out, err), (1, String::new(), line));
    }
    let (code, _, err) = outcome(&format!(
        "transpose {} -o {}",
        at("fortran.npy"),
        at("out.npy")
    ));
    assert!(code == 1 && err.contains("Fortran order"), "{err}");
    let (code, _, err) = outcome(&format!(
        "transpose {} -o {}",
        at("m.npy"),
        at("no/out.npy")
    ));
    assert!(
        code == 1 && err.contains("no/out.npy: cannot create the file"),
        "{err}"
    );
    assert_eq!(
        names(folder.path()),
        ["cut.npy", "fortran.npy", "line.npy", "m.npy"]
    );
}
