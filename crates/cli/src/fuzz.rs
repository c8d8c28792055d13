//! Every reader of a user's text or file, fed with changed copies of the inputs in `tests/fuzz/corpus`.
//!
//! A reader may take or refuse an input; it may not panic, hang or take memory that the input's size does not
//! explain (`tests/fuzz/run.sh` sets the limit). `cargo test` feeds a fixed number of inputs, always the same;
//! with `CROSSWARP_FUZZ_SECONDS` others each time, for so long. An input that fails is left in the folder for
//! temporary files; it belongs into the corpus once the fault is mended.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use crosswarp::shmem::spmd;
use crosswarp::solve::{Norm, Options, Problem1d, Problem2d, solve_1d, solve_2d};

use crate::args::{Cli, Command};
use crate::commands::solve::problem::from_args;
use crate::input::formula::{Formula, Point};
use crate::input::npy::{Dtype, NpyMap};
use crate::input::png;
use crate::input::spacing::Spacing;
use crate::problem::Problem;
use crate::problem::field::{Field, geo_tags};
use crate::problem::method::{Given, Method, Refusal};
use crate::problem::{file, load};
use crate::random::Random;

const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    3,
    0x7f,
    0xff,
    0x100,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 36,
    u64::MAX >> 3,
    u64::MAX / 4 + 1,
    u64::MAX >> 1,
    1 << 63,
    u64::MAX,
];
const WORDS: [&str; 28] = [
    "0",
    "-1",
    "1e308",
    "1.5e308",
    "1e-308",
    "nan",
    "inf",
    "4000000000",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "(",
    ")",
    ",",
    "=",
    "[",
    "\"",
    "'",
    "\n",
    "\0",
    "\u{1b}[31m",
    "é",
    "^",
    "-",
    "1e999",
    "/dev/null",
    "--json",
    "{",
];

/// A changed copy of one of `inputs`.
fn mutated(random: &mut Random, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = inputs[random.below(inputs.len())].clone();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(16)).min(bytes.len());
        match random.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let word = random.one_of(&WORDS);
                bytes.splice(at..end.min(at + random.below(4)), word.bytes());
            }
            5 => {
                // In either order of bytes, as binary formats have numbers.
                let number = random.one_of(&NUMBERS);
                let wide = random.one_of(&[1, 2, 4, 8]);
                let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
                let number = if random.below(2) == 0 {
                    &little[..wide]
                } else {
                    &big[8 - wide..]
                };
                let end = (at + wide).min(bytes.len());
                bytes.splice(at..end, number.iter().copied());
            }
            6 => {
                let other = &inputs[random.below(inputs.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            7 => bytes.truncate(at),
            _ => {
                let piece = bytes[at..end].to_vec();
                (0..random.below(40)).for_each(|_| drop(bytes.splice(at..at, piece.clone())));
            }
        }
    }
    bytes
}

/// The inputs of a target: its files, or their lines.
fn corpus(target: &str, by_lines: bool) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let files = fs::read_dir(folder.join(target)).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.iter().map(|path| fs::read(path).unwrap());
    let inputs: Vec<Vec<u8>> = if by_lines {
        let lines = |file: Vec<u8>| -> Vec<Vec<u8>> {
            file.split(|&byte| byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect()
        };
        files.flat_map(lines).collect()
    } else {
        files.collect()
    };
    assert!(!inputs.is_empty(), "no inputs for {target}");
    inputs
}

/// Feeds `reader` with the corpus as it is and with `count` changed copies.
fn feed(
    target: &str,
    inputs: &[Vec<u8>],
    count: usize,
    change: impl Fn(&mut Random, Vec<u8>) -> Vec<u8>,
    mut reader: impl FnMut(&[u8]),
) {
    let seconds = std::env::var("CROSSWARP_FUZZ_SECONDS").ok();
    let limit = seconds.map(|text| Duration::from_secs(text.parse().expect("a number of seconds")));
    let seed = match limit {
        Some(_) => SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64,
        None => 1,
    };
    let mut random = Random(seed);
    let kept = std::env::temp_dir().join(format!("crosswarp-fuzz-{target}-{seed}"));
    let (fed, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let started = Instant::now();
    std::thread::scope(|scope| {
        // An input that takes a minute is one without an end.
        scope.spawn(|| {
            let mut before = (0, Instant::now());
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                let now = fed.load(Ordering::Relaxed);
                if now != before.0 {
                    before = (now, Instant::now());
                } else if before.1.elapsed() > Duration::from_secs(60) {
                    eprintln!("{target}: no end with {}", kept.display());
                    std::process::abort();
                }
            }
        });
        let mut one = |bytes: &[u8]| {
            // Written before, since a process that is killed for its memory can not.
            if limit.is_some() {
                fs::write(&kept, bytes).unwrap();
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| reader(bytes)));
            fed.fetch_add(1, Ordering::Relaxed);
            if outcome.is_err() {
                fs::write(&kept, bytes).unwrap();
                ended.store(true, Ordering::Relaxed);
                panic!("{target}: {} in {}", bytes.escape_ascii(), kept.display());
            }
        };
        inputs.iter().for_each(|input| one(input));
        let mut left = count;
        while limit.map_or(left > 0, |limit| started.elapsed() < limit) {
            left = left.saturating_sub(1);
            let bytes = mutated(&mut random, inputs);
            one(&change(&mut random, bytes));
        }
        ended.store(true, Ordering::Relaxed);
    });
    // Absent if nothing was written.
    let _ = fs::remove_file(&kept);
    println!("{target}: {} inputs", fed.into_inner());
}

fn as_it_is(_: &mut Random, bytes: Vec<u8>) -> Vec<u8> {
    bytes
}

/// A reader of files: each input is one.
fn of_files(name: &str, mut reader: impl FnMut(&Path)) -> impl FnMut(&[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    move |bytes| {
        // The folder lives as long as the reader.
        let _ = &folder;
        fs::write(&path, bytes).unwrap();
        reader(&path);
    }
}

/// Whether a message is fit for one line, but for what stands in the input.
fn check(error: &impl std::fmt::Display) {
    let text = crate::console::escaped(&error.to_string(), &[]);
    assert!(!text.is_empty() && text.len() < 100_000, "{text}");
}

#[test]
fn npy() {
    let reader = of_files("a.npy", |path| match NpyMap::open(path) {
        Ok(map) => {
            // Data that begin at an odd place are refused here.
            let sum = match map.dtype() {
                Dtype::F32 => map.elements::<f32>().map(|cells| cells.len()),
                Dtype::F64 => map.elements::<f64>().map(|cells| cells.len()),
                _ => Ok(map.bytes().len() / map.dtype().size()),
            };
            if let Ok(count) = sum {
                assert_eq!(count, map.shape().0.iter().product::<usize>());
            }
        }
        Err(error) => check(&error),
    });
    feed("npy", &corpus("npy", false), 20_000, as_it_is, reader);
}

#[test]
fn toml() {
    let reader = of_files("p.toml", |path| match file::read(path) {
        Ok((problem, given)) => match Method::decide(&problem, &Given::default(), &given) {
            Ok(method) => loaded(&problem, &method),
            Err(Refusal::Line(error) | Refusal::File(error)) => check(&error),
        },
        Err(error) => check(&error),
    });
    feed("toml", &corpus("toml", false), 5_000, as_it_is, reader);
}

#[test]
fn png() {
    let reader = of_files("a.png", |path| {
        match png::read_values(path) {
            Ok(plane) => assert_eq!(plane.cells.len(), plane.columns * plane.rows),
            Err(error) => check(&error),
        }
        for size in [(3, 2), (9, 2), (2, 1)] {
            match png::read_mask(path, size) {
                Ok(plane) => assert_eq!((plane.columns, plane.rows), size),
                Err(error) => check(&error),
            }
        }
    });
    feed("png", &corpus("png", false), 10_000, with_checksums, reader);
}

#[test]
fn tiff() {
    let decoded = std::cell::Cell::new(0);
    let reader = of_files("a.tif", |path| {
        let plane = Field::open(path).and_then(|field| {
            let size = field.size();
            Ok((size, field.decode(Some(3.0))?))
        });
        match plane {
            Ok(((columns, rows), cells)) => {
                // The last row is there if all are.
                cells.rows::<f64>()(rows - 1, &mut vec![0.0; columns]);
                decoded.set(decoded.get() + 1);
            }
            Err(error) => check(&error),
        }
        if let Err(error) = geo_tags(path) {
            check(&error);
        }
    });
    feed("tiff", &corpus("tiff", false), 10_000, as_it_is, reader);
    assert!(decoded.get() >= 3, "the corpus is planes");
}

/// Three of four times with the checksums of PNG's chunks made right, so that changes get past them.
fn with_checksums(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 8;
    while random.below(16) > 0 && bytes.len() >= at + 12 {
        let length = u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let Some(end) = (at + 8)
            .checked_add(length as usize)
            .filter(|end| end + 4 <= bytes.len())
        else {
            break;
        };
        let checksum = crc32fast::hash(&bytes[at + 4..end]);
        bytes[end..end + 4].copy_from_slice(&checksum.to_be_bytes());
        at = end + 4;
    }
    bytes
}

#[test]
fn checkpoint() {
    let line = Problem1d {
        points: 40,
        left: 5.0f32,
        right: 10.0,
        norm: Norm::Rms,
    };
    let plane = Problem2d::<f32>::nvidia(6, 5);
    let resumed = std::cell::Cell::new(0);
    let reader = of_files("c.ckpt", |path| {
        let options = Options {
            resume: Some(path.to_owned()),
            ..Options::new(0.0, 4)
        };
        let outcomes = spmd(1, |pe| {
            [
                solve_1d(pe, &line, &options, |_| {}).map(|_| ()),
                solve_2d(pe, &plane, &options, |_| {}).map(|_| ()),
            ]
        });
        for outcome in outcomes.unwrap().into_iter().flatten() {
            match outcome {
                Ok(()) => resumed.set(resumed.get() + 1),
                Err(error) => check(&error),
            }
        }
    });
    let with_checksum = |random: &mut Random, mut bytes: Vec<u8>| {
        if let Some(end) = bytes.len().checked_sub(4).filter(|_| random.below(4) > 0) {
            let checksum = crc32fast::hash(&bytes[..end]);
            bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        }
        bytes
    };
    feed(
        "checkpoint",
        &corpus("checkpoint", false),
        500,
        with_checksum,
        reader,
    );
    assert!(resumed.get() >= 2, "the corpus is of these problems");
}

#[test]
fn expression() {
    let reader = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        match Formula::parse(&text) {
            Ok(formula) => {
                let first = Point {
                    column: 0,
                    row: 7,
                    plane: 1,
                    spacing: Spacing::same(0.5),
                };
                formula.along_row(first, &mut [0.0; 70]);
            }
            Err(error) => check(&error),
        }
    };
    feed(
        "expression",
        &corpus("expression", true),
        50_000,
        as_it_is,
        reader,
    );
}

#[test]
fn arguments() {
    let reader = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let words = ["crosswarp"].into_iter().chain(text.split(' '));
        match Cli::try_parse_from(words) {
            Ok(cli) => {
                if let Command::Solve(args) = cli.command {
                    match from_args(&args) {
                        Ok(asked) => loaded(&asked.problem, &asked.method),
                        Err(error) => check(&error),
                    }
                }
            }
            Err(error) => _ = error.render(),
        }
    };
    feed(
        "arguments",
        &corpus("arguments", true),
        3_000,
        as_it_is,
        reader,
    );
}

/// Goes on as a solve does, if the sides are short enough for this many rounds.
fn loaded(problem: &Problem, method: &Method) {
    let long = match problem {
        Problem::Plane(plane) => plane.nx.min(1 << 20) * plane.ny.min(1 << 20) > 1 << 20,
        Problem::Nvidia { nx, ny } => nx.min(&(1 << 20)) * ny.min(&(1 << 20)) > 1 << 20,
        _ => false,
    };
    if !long && let Err(error) = load::load::<f32>(problem, method) {
        check(&error);
    }
}

#[test]
fn cubin() {
    let reader = |bytes: &[u8]| {
        let outcome = crosswarp::cuda::cubin_arch(bytes)
            .and_then(|_| crosswarp::cuda::kernel_resources(bytes));
        if let Err(error) = outcome {
            check(&error);
        }
    };
    feed("cubin", &corpus("cubin", false), 5_000, as_it_is, reader);
}

#[test]
fn profile() {
    let reader = |bytes: &[u8]| match crosswarp::lab::measure::nsight::parse(
        &String::from_utf8_lossy(bytes),
    ) {
        Ok(launches) => launches
            .iter()
            .for_each(|launched| _ = launched.model_waves()),
        Err(error) => check(&error),
    };
    feed(
        "profile",
        &corpus("profile", false),
        5_000,
        as_it_is,
        reader,
    );
}

#[test]
fn rows() {
    let reader = |bytes: &[u8]| {
        if let Err(error) = crosswarp::lab::measure::Rows::read(&String::from_utf8_lossy(bytes)) {
            check(&error);
        }
    };
    feed("rows", &corpus("rows", false), 5_000, as_it_is, reader);
}
