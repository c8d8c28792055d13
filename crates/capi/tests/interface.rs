//! The header and the library against the specification's list of functions, and the header against
//! compilers.

mod support;

use std::collections::BTreeSet;
use std::process::Command;
use support::{Language, compile, launch, library, prefix, succeed};

/// Every function of OpenSHMEM 1.5 (with the deprecated ones) and 1.6, drawn from the specification's text:
/// a category and a name a line.
const SPECIFICATION: &str = include_str!("openshmem_symbols.txt");

fn specification() -> BTreeSet<&'static str> {
    let names = SPECIFICATION
        .lines()
        .filter_map(|line| line.split('\t').nth(1));
    names.collect()
}

/// What the library defines for programs.
fn exported() -> BTreeSet<String> {
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(library("so"));
    let output = succeed(nm);
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// What the header declares, as the compiler sees it.
fn declared(header: &str) -> BTreeSet<String> {
    let mut gcc = Command::new("gcc");
    gcc.args(["-E", "-P", "-DSHMEM_NO_GENERICS", "-x", "c", "-std=c11"])
        .arg(prefix().join("include").join(header));
    let output = succeed(gcc);
    let text = String::from_utf8(output.stdout).unwrap();
    let functions = text.split(';').filter_map(|declaration| {
        let (head, _) = declaration.split_once('(')?;
        let name = head.rsplit([' ', '*', '\n']).next()?;
        (!head.contains("__attribute") && !head.contains("__asm__") && !head.contains("typedef"))
            .then(|| name.to_owned())
    });
    functions.filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_library_exports_the_specification_and_its_profiling_twins() {
    let exported = exported();
    let missing: Vec<_> = specification()
        .into_iter()
        .filter(|&name| !exported.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let (twins, plain): (Vec<_>, Vec<_>) = exported
        .iter()
        .partition(|name| name.starts_with('p') && exported.contains(&name[1..]));
    assert_eq!(twins.len(), plain.len(), "{plain:?}");
    let known = specification();
    let further: Vec<_> = plain
        .into_iter()
        .filter(|name| !known.contains(name.as_str()))
        .collect();
    // The sets of short integers, which the type-generic forms take.
    let (short, others): (Vec<&str>, Vec<&str>) =
        further.iter().map(|name| name.as_str()).partition(|name| {
            let stem = name.replacen("ushort", "short", 1);
            stem.starts_with("shmem_short_test_") || stem.starts_with("shmem_short_wait_until_")
        });
    assert_eq!(short.len(), 2 * (6 + 6));
    assert_eq!(others, ["shmemx_wtime"]);
}

#[test]
fn header_and_library_have_the_same_functions() {
    let exported = exported();
    let (plain, both) = (declared("shmem.h"), declared("pshmem.h"));
    assert!(plain.len() > 1700 && plain.is_subset(&both));
    assert_eq!(both, exported);
}

#[test]
fn the_specification_numbers_1507_functions_and_109_deprecated_ones() {
    let count = |deprecated: bool| {
        let lines = SPECIFICATION.lines().filter(|line| !line.starts_with("95"));
        lines
            .filter(|line| line.starts_with("90") == deprecated)
            .count()
    };
    assert_eq!((count(false), count(true)), (1507, 109));
}

/// The header alone, warnings as errors; `complex.h`'s macro `I` must not come with it; the deprecated
/// constants are there; without generics it serves C99.
#[test]
fn the_header_stands_alone() {
    for language in [Language::C99, Language::C11, Language::Cxx17] {
        let program = compile("header.c", language, "alone", &[]);
        assert_eq!(launch(2, &program, &[]).code(), 0, "{language:?}");
    }
}
