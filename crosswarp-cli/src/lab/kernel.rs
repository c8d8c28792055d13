//! A kernel of the user's: what its file says that it needs.

use std::path::{Path, PathBuf};

use crosswarp::cuda::{
    Arch, Cache, CompileError, CubinError, KernelResources, Options, Source, kernel_resources,
};

/// Why a file has no such kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The source does not compile.
    #[error("{}: {source}", path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// The compiler's reason.
        source: CompileError,
    },
    /// The file is no cubin.
    #[error("{}: {source} (a CUDA source ends in .cu)", path.display())]
    Cubin {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: CubinError,
    },
    /// There is no such kernel, or there are several.
    #[error("{}: {wanted}; it has {}", path.display(), if has.is_empty() { "no kernel".to_owned() } else { has.join(", ") })]
    Which {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        wanted: String,
        /// The kernels there are.
        has: Vec<String>,
    },
}

/// The kernel `name` of `path`, or the only one; a source is compiled for `arch`.
pub fn resources(
    path: &Path,
    name: Option<&str>,
    arch: Arch,
) -> Result<KernelResources, KernelError> {
    let is_source = path.extension().is_some_and(|extension| extension == "cu");
    let cubin = if is_source {
        compile(path, arch)?
    } else {
        std::fs::read(path).map_err(|source| KernelError::Read {
            path: path.to_owned(),
            source,
        })?
    };
    let mut kernels = kernel_resources(&cubin).map_err(|source| KernelError::Cubin {
        path: path.to_owned(),
        source,
    })?;
    let found = match name {
        Some(name) => kernels.iter().position(|kernel| kernel.name == name),
        None if kernels.len() == 1 => Some(0),
        None => None,
    };
    match found {
        Some(place) => Ok(kernels.swap_remove(place)),
        None => Err(KernelError::Which {
            path: path.to_owned(),
            wanted: name.map_or("name the kernel".to_owned(), |name| {
                format!("no kernel {name}")
            }),
            has: kernels.into_iter().map(|kernel| kernel.name).collect(),
        }),
    }
}

fn compile(path: &Path, arch: Arch) -> Result<Vec<u8>, KernelError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|source| KernelError::Read {
            path: path.to_owned(),
            source,
        })
    };
    let text = read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let headers = headers(folder, &text);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = Source::new(&name, &text).with_headers(&headers);
    Cache::of_user()
        .compile(&source, arch, &Options::new())
        .map_err(|source| KernelError::Compile {
            path: path.to_owned(),
            source,
        })
}

/// The headers that `text` includes by `#include "name"` and that lie in `folder`, and theirs.
fn headers(folder: &Path, text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut texts = vec![text.to_owned()];
    while let Some(text) = texts.pop() {
        for line in text.lines() {
            let included = line
                .trim()
                .strip_prefix('#')
                .and_then(|line| line.trim_start().strip_prefix("include"))
                .and_then(|rest| rest.trim().strip_prefix('"')?.split_once('"'));
            let Some((name, _)) = included else { continue };
            if found.iter().any(|(known, _)| known == name) {
                continue;
            }
            // One that is not there is the compiler's to report, or one of Crosswarp's own.
            if let Ok(header) = std::fs::read_to_string(folder.join(name)) {
                texts.push(header.clone());
                found.push((name.to_owned(), header));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_beside_the_source_once() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.cuh", "#include \"b.cuh\"\n# include \"a.cuh\"\n");
        write("b.cuh", "#include \"absent.cuh\"\n#include <c.cuh>\n");
        write("c.cuh", "");
        let found = headers(
            folder.path(),
            "#include \"a.cuh\"\n#include \"b.cuh\"\nint x;",
        );
        let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["a.cuh", "b.cuh"]);
    }

    #[test]
    fn what_is_no_kernel_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cubin");
        let arch = Arch::new(9, 0);
        assert!(matches!(
            resources(&path, None, arch),
            Err(KernelError::Read { .. })
        ));
        std::fs::write(&path, b"text").unwrap();
        assert!(matches!(
            resources(&path, None, arch),
            Err(KernelError::Cubin { .. })
        ));
    }
}
