//! Tells the command which commit it is built from, for the rows of its benchmarks.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A package from a registry may lie inside of somebody else's repository.
    let ours = git(&["ls-files", "--error-unmatch", "Cargo.toml"]).is_some();
    let commit = ours
        .then(|| git(&["rev-parse", "--short=12", "HEAD"]))
        .flatten();
    if commit.is_some() {
        // Written by every commit and checkout, and by nothing else.
        for path in ["HEAD", "logs/HEAD"] {
            if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", path]) {
                println!("cargo::rerun-if-changed={path}");
            }
        }
    }
    let commit = commit.as_deref().unwrap_or("unknown");
    println!("cargo::rustc-env=CROSSWARP_COMMIT={commit}");
}

/// What git prints, without the end of the line; nothing if it fails or is not there.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
