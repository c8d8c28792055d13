//! What a reader would paste: every fenced block of the documents says what it is, and those of commands run, page by
//! page and in order, from the root of a copy of the repository that only these tests write to.
//!
//! The words after a fence:
//!
//! - `sh`: commands. They run, unless a `needs-…` word of [`MARKS`] says what a bare machine lacks. The variable
//!   `CROSSWARP_MARKS` lists marks to run all the same: `CROSSWARP_MARKS=needs-minutes,needs-nvrtc`.
//! - `text`: output. With `checked` its lines are those of the commands before it, in order; `…` stands for any text in
//!   a line, and, alone in one, for any lines.
//! - `rust`, `c`, `cpp`, `toml`, `python`: with `file=PATH` its lines stand in that file, one after the other,
//!   indentation aside. The Python suite runs `python` ones, and those with a `needs-…` word where that is there.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a block may need, and why it cannot be had here.
const MARKS: [(&str, &str); 6] = [
    ("needs-gpu", "a GPU"),
    ("needs-hosts", "other hosts, or root to make some"),
    ("needs-launcher", "another launcher: Slurm, MPI, torchrun"),
    ("needs-minutes", "minutes, to compile or to download"),
    ("needs-nvrtc", "NVIDIA's run-time compiler"),
    (
        "needs-tools",
        "other programs: Nsight Compute, GDAL, OpenSSL",
    ),
];

const LANGUAGES: [&str; 8] = ["sh", "text", "rust", "c", "cpp", "toml", "python", "json"];

struct Block {
    line: usize,
    words: Vec<String>,
    text: String,
}

impl Block {
    fn language(&self) -> &str {
        self.words
            .first()
            .and_then(|word| word.split(',').next())
            .unwrap_or_default()
    }

    fn marks(&self) -> impl Iterator<Item = &str> {
        let words = self.words.iter().map(String::as_str);
        words.filter(|word| word.starts_with("needs-"))
    }

    fn file(&self) -> Option<&str> {
        self.words
            .iter()
            .find_map(|word| word.strip_prefix("file="))
    }
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

fn markdown_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages = vec![
        root.join("README.md"),
        root.join("CONTRIBUTING.md"),
        root.join("examples/README.md"),
    ];
    for krate in ["capi", "cli", "cuda"] {
        pages.push(root.join("crates").join(krate).join("README.md"));
    }
    markdown_below(&root.join("docs"), &mut pages);
    pages.sort();
    pages
}

fn blocks(page: &Path) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in fs::read_to_string(page).unwrap().lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(words)) => {
                let words = words.split_whitespace().map(str::to_owned).collect();
                open = Some(Block {
                    line: number + 1,
                    words,
                    text: String::new(),
                });
            }
            (Some(_), Some("")) => found.extend(open.take()),
            (Some(block), _) => writeln!(block.text, "{line}").unwrap(),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a fence is left open", page.display());
    found
}

/// The repository as a reader has it, in a folder of its own: what commands write lands beside copies and links.
fn clone() -> tempfile::TempDir {
    let (root, folder) = (root(), tempfile::tempdir().unwrap());
    let status = Command::new("cp")
        .arg("-r")
        .arg(root.join("examples"))
        .arg(folder.path())
        .status();
    assert!(status.unwrap().success());
    for name in [
        "Cargo.toml",
        "Cargo.lock",
        "crates",
        "bench",
        "docs",
        "README.md",
        ".ci",
    ] {
        symlink(root.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs one block by bash, its first failing command ends it; gives its output, both streams together.
fn paste(commands: &str, folder: &Path) -> Result<String, String> {
    let program = assert_cmd::cargo::cargo_bin!("crosswarp");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut child = Command::new("timeout")
        .args(["600", "bash", "-euo", "pipefail", "-c", commands])
        .current_dir(folder)
        .env("PATH", path)
        .env("CROSSWARP_HEAP", "64M")
        .env("CARGO_TARGET_DIR", root().join("target"))
        .env("CARGO_INSTALL_ROOT", folder.join("cargo"))
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    let status = child.wait().unwrap();
    if status.success() {
        Ok(output)
    } else {
        Err(format!("{status}\n{output}"))
    }
}

/// Whether `line` is `pattern`, in which `…` stands for any text.
fn matches_line(pattern: &str, line: &str) -> bool {
    let pieces: Vec<&str> = pattern.trim_end().split('…').collect();
    let line = line.trim_end();
    if pieces.len() == 1 {
        return pieces[0] == line;
    }
    let Some(mut rest) = line.strip_prefix(pieces[0]) else {
        return false;
    };
    for piece in &pieces[1..pieces.len() - 1] {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(pieces[pieces.len() - 1])
}

/// The first line of `expected` that `output` does not have in its place.
fn missing<'a>(expected: &'a str, output: &str) -> Option<&'a str> {
    let mut lines = output.lines();
    let mut skipping = false;
    for pattern in expected.lines() {
        if pattern == "…" {
            skipping = true;
        } else if skipping {
            if !lines.any(|line| matches_line(pattern, line)) {
                return Some(pattern);
            }
            skipping = false;
        } else if !lines.next().is_some_and(|line| matches_line(pattern, line)) {
            return Some(pattern);
        }
    }
    None
}

fn shown(page: &Path, block: &Block) -> String {
    format!(
        "{}:{}",
        page.strip_prefix(root()).unwrap().display(),
        block.line
    )
}

#[test]
fn every_block_says_what_it_is() {
    let mut wrong = Vec::new();
    let mut used = Vec::new();
    for page in pages() {
        for block in blocks(&page) {
            if !LANGUAGES.contains(&block.language()) {
                wrong.push(format!(
                    "{}: a fence needs one of {LANGUAGES:?}",
                    shown(&page, &block)
                ));
                continue;
            }
            for mark in block.marks() {
                used.push(mark.to_owned());
                let runs = ["sh", "python"].contains(&block.language());
                if !runs || !MARKS.iter().any(|(name, _)| *name == mark) {
                    wrong.push(format!(
                        "{}: there is no mark '{mark}' of {}",
                        shown(&page, &block),
                        block.language()
                    ));
                }
            }
            if block.language() == "sh" && block.text.lines().any(|line| line.starts_with("$ ")) {
                wrong.push(format!(
                    "{}: a prompt cannot be pasted",
                    shown(&page, &block)
                ));
            }
        }
    }
    for (mark, what) in MARKS {
        if !used.iter().any(|name| name == mark) {
            wrong.push(format!(
                "no block needs {what}: strike '{mark}' off the list"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_quoted_stands_in_the_file() {
    let mut wrong = Vec::new();
    for page in pages() {
        for block in blocks(&page) {
            let Some(file) = block.file() else { continue };
            let Ok(text) = fs::read_to_string(root().join(file)) else {
                wrong.push(format!("{}: there is no {file}", shown(&page, &block)));
                continue;
            };
            let trimmed = |text: &str| {
                text.lines()
                    .map(|line| line.trim().to_owned())
                    .collect::<Vec<_>>()
            };
            let (quoted, lines) = (trimmed(&block.text), trimmed(&text));
            if !lines.windows(quoted.len()).any(|part| part == quoted) {
                wrong.push(format!(
                    "{}: these lines are not in {file}",
                    shown(&page, &block)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_run_as_pasted() {
    let allowed = std::env::var("CROSSWARP_MARKS").unwrap_or_default();
    let allowed: Vec<&str> = allowed.split(',').collect();
    let mut wrong = Vec::new();
    for page in pages() {
        let folder = clone();
        let mut output = None;
        for block in blocks(&page) {
            match block.language() {
                "sh" if block.marks().all(|mark| allowed.contains(&mark)) => {
                    output = match paste(&block.text, folder.path()) {
                        Ok(output) => Some(output),
                        Err(error) => {
                            wrong.push(format!("{}: {error}", shown(&page, &block)));
                            None
                        }
                    }
                }
                "sh" => output = None,
                "text" if block.words.iter().any(|word| word == "checked") => {
                    let Some(output) = &output else { continue };
                    if let Some(line) = missing(&block.text, output) {
                        wrong.push(format!(
                            "{}: '{line}' is not in its place in\n{output}",
                            shown(&page, &block)
                        ));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_are_compared_as_said() {
    assert!(matches_line("a … c", "a b c") && !matches_line("a … c", "a b d"));
    assert!(matches_line("same", "same") && !matches_line("same", "the same"));
    assert_eq!(missing("one\n…\nfour\n", "one\ntwo\nthree\nfour\n"), None);
    assert_eq!(missing("one\nthree\n", "one\ntwo\nthree\n"), Some("three"));
    assert_eq!(missing("…\nfive\n", "one\n"), Some("five"));
}
