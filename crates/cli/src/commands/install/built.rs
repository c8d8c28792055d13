//! A library that comes with the command, or that cargo builds.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::error::InstallError;
use crate::console;

/// A package with a shared library and an archive.
pub struct Built {
    /// The package.
    pub package: &'static str,
    /// Where its sources were.
    pub sources: &'static str,
    /// The shared library as it is installed.
    pub installed: &'static str,
    /// As cargo names it.
    pub of_cargo: &'static str,
    /// Where it is installed, seen from the command's folder.
    pub folders: &'static [&'static str],
}

/// The shared library, and the archive if there is one.
pub type Files = (PathBuf, Option<PathBuf>);

impl Built {
    /// The files that came with the command in the file `own`.
    pub fn beside(&self, own: &Path) -> Option<Files> {
        let folder = own.parent()?;
        // As installed, then as cargo names and places it.
        let installed = self.folders.iter().map(|below| folder.join(below));
        let built = [
            folder.join(self.installed),
            folder.join("deps").join(self.of_cargo),
        ];
        let mut places = installed.map(|lib| lib.join(self.installed)).chain(built);
        let shared = places.find(|path| path.is_file())?;
        let archive = shared.with_extension("a");
        Some((shared, archive.is_file().then_some(archive)))
    }

    /// Has cargo build them in `target`.
    pub fn build(&self, target: &Path) -> Result<Files, InstallError> {
        let sources = Path::new(self.sources);
        if !sources.join("Cargo.toml").is_file() {
            return Err(InstallError::NoLibrary {
                library: self.installed,
                sources: sources.to_owned(),
            });
        }
        console::complain(format_args!(
            "{} is not beside this command: cargo builds it, which takes a minute or more",
            self.installed
        ));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args([
                "build",
                "--release",
                "--message-format=json-render-diagnostics",
                "--manifest-path",
            ])
            .arg(sources.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(target)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| InstallError::NoCargo {
                library: self.installed,
                source,
            })?;
        if !output.status.success() {
            return Err(InstallError::Build);
        }
        self.files(&String::from_utf8_lossy(&output.stdout))
            .ok_or(InstallError::Unnamed)
    }

    /// The files that cargo's messages name.
    fn files(&self, messages: &str) -> Option<Files> {
        let (mut shared, mut archive) = (None, None);
        for line in messages.lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let ours = message["package_id"]
                .as_str()
                .is_some_and(|id| id.contains(self.package));
            if !ours {
                continue;
            }
            let files = message["filenames"].as_array().into_iter().flatten();
            for path in files.filter_map(Value::as_str).map(PathBuf::from) {
                match path.extension().and_then(OsStr::to_str) {
                    Some("so") => shared = Some(path),
                    Some("a") => archive = Some(path),
                    _ => {}
                }
            }
        }
        Some((shared?, archive))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_messages_name_the_libraries() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"path+file:///a/libc#0.2.0","filenames":["/t/liblibc.so"]}
not a message
{"reason":"compiler-artifact","package_id":"path+file:///a/capi#crosswarp-capi@0.1.0","filenames":["/t/libx.rlib","/t/libx.so","/t/libx.a"]}
{"reason":"build-finished","success":true}"#;
        let built = Built {
            package: "crosswarp-capi",
            sources: "",
            installed: "",
            of_cargo: "",
            folders: &[],
        };
        let expected: Files = ("/t/libx.so".into(), Some("/t/libx.a".into()));
        assert_eq!(built.files(messages), Some(expected));
        assert_eq!(built.files("{}"), None);
    }
}
