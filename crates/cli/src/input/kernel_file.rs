//! A kernel of the user's: what its file says that it needs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crosswarp::cuda::{
    Arch, Cache, CompileError, CubinError, KernelResources, Options, Source, cubin_arch,
    kernel_resources,
};

use crate::input::files;

/// Why a file has no such kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The source has errors; each of the compiler's lines names the file.
    #[error("{source}{advice}")]
    Source {
        /// The compiler's lines.
        source: CompileError,
        /// What would be right, if it is no source of kernels alone.
        advice: String,
    },
    /// The cubin does not run there.
    #[error("{} is compiled for {of}, which does not run on {arch}", path.display())]
    OtherArch {
        /// The file.
        path: PathBuf,
        /// Its architecture.
        of: Arch,
        /// The one asked for.
        arch: Arch,
    },
    /// The source cannot be compiled.
    #[error("cannot compile {}: {source}", path.display())]
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

/// A file with kernels, and the architecture that they are compiled for.
pub struct KernelFile {
    path: PathBuf,
    /// The architecture.
    pub arch: Arch,
    /// Its kernels, by name.
    pub kernels: Vec<KernelResources>,
}

impl KernelFile {
    /// Reads a cubin, or compiles a source for `arch`. Without `arch` a source is compiled for `otherwise`.
    pub fn read(path: &Path, arch: Option<Arch>, otherwise: Arch) -> Result<Self, KernelError> {
        let source = path.extension().is_some_and(|extension| extension == "cu");
        let (cubin, arch) = if source {
            let arch = arch.unwrap_or(otherwise);
            (compile(path, arch)?, arch)
        } else {
            let cubin = read(path)?;
            let for_arch = cubin_arch(&cubin).map_err(|source| KernelError::Cubin {
                path: path.to_owned(),
                source,
            })?;
            let arch = arch.unwrap_or(for_arch);
            // Within a major version, cubins also run on what came later.
            if arch.major != for_arch.major || arch.minor < for_arch.minor {
                return Err(KernelError::OtherArch {
                    path: path.to_owned(),
                    of: for_arch,
                    arch,
                });
            }
            (cubin, arch)
        };
        let kernels = kernel_resources(&cubin).map_err(|source| KernelError::Cubin {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            arch,
            kernels,
        })
    }

    /// The kernel `name`, as it is written in the source or in the cubin, or the only one.
    pub fn kernel(&self, name: Option<&str>) -> Result<KernelResources, KernelError> {
        let fits = |kernel: &&KernelResources| {
            name.is_none_or(|name| kernel.name == name || plain_name(&kernel.name) == name)
        };
        let found: Vec<&KernelResources> = self.kernels.iter().filter(fits).collect();
        if let [kernel] = found[..] {
            return Ok(kernel.clone());
        }
        let names = |kernels: &[&KernelResources]| -> Vec<String> {
            kernels.iter().map(|kernel| kernel.name.clone()).collect()
        };
        let (wanted, has) = match (name, &found[..]) {
            (Some(name), []) => (
                format!("no kernel {name}"),
                names(&self.kernels.iter().collect::<Vec<_>>()),
            ),
            (Some(name), several) => (format!("several kernels {name}"), names(several)),
            (None, several) => ("name the kernel".to_owned(), names(several)),
        };
        Err(KernelError::Which {
            path: self.path.clone(),
            wanted,
            has,
        })
    }
}

/// The name in the source of a kernel that is called `name` in the cubin: without namespaces, parameters and
/// template arguments, which C++ compilers add as the Itanium ABI says (`_Z3sumPKfi`,
/// `_ZN4mine4manyILi4EEEvPf`).
pub fn plain_name(name: &str) -> &str {
    let Some(mut rest) = name.strip_prefix("_Z") else {
        return name;
    };
    rest = rest.strip_prefix('N').unwrap_or(rest);
    let mut plain = name;
    // Lengths and as many letters, a nested name after the other.
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (length, after) = rest.split_at(digits);
        let length = length.parse::<usize>().ok();
        let Some((part, after)) = length.and_then(|length| after.split_at_checked(length)) else {
            return plain;
        };
        (plain, rest) = (part, after);
    }
}

fn read(path: &Path) -> Result<Vec<u8>, KernelError> {
    files::read(path, files::KERNEL).map_err(|source| KernelError::Read {
        path: path.to_owned(),
        source,
    })
}

fn compile(path: &Path, arch: Arch) -> Result<Vec<u8>, KernelError> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let headers = headers(folder, &text)?;
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let name = path.to_string_lossy();
    let source = Source::new(&name, &text).with_headers(&headers);
    Cache::of_user()
        .compile(&source, arch, &Options::new())
        .map_err(|source| match source {
            CompileError::Source(_) => KernelError::Source {
                advice: advice(path, &text, arch),
                source,
            },
            source => KernelError::Compile {
                path: path.to_owned(),
                source,
            },
        })
}

/// What to do with a program that is more than kernels.
fn advice(path: &Path, text: &str, arch: Arch) -> String {
    let of_a_program = ["#include <", "<<<", " main("];
    if !of_a_program.iter().any(|part| text.contains(part)) {
        return String::new();
    }
    format!(
        "\nNVRTC compiles kernels, not programs with host code or the toolkit's headers; nvcc makes a cubin of \
         them, which this command reads: nvcc -cubin -arch={arch} {}",
        path.display()
    )
}

/// The headers that `text` includes by `#include "name"` and that lie in `folder`, and theirs.
///
/// # Errors
/// A header that is no regular file or too long; the compiler would read it without an end.
fn headers(folder: &Path, text: &str) -> Result<Vec<(String, String)>, KernelError> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut texts = vec![text.to_owned()];
    let mut room = files::KERNEL;
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
            let path = folder.join(name);
            match files::read_regular_text(&path, room) {
                Ok(header) => {
                    room -= header.len() as u64;
                    texts.push(header.clone());
                    found.push((name.to_owned(), header));
                }
                Err(source)
                    if matches!(
                        source.kind(),
                        ErrorKind::InvalidInput | ErrorKind::FileTooLarge
                    ) =>
                {
                    return Err(KernelError::Read { path, source });
                }
                // One that is not there is the compiler's to report, or one of Crosswarp's own.
                Err(_) => {}
            }
        }
    }
    Ok(found)
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
        )
        .unwrap();
        let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["a.cuh", "b.cuh"]);
    }

    #[test]
    fn what_is_no_kernel_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cubin");
        let read = || KernelFile::read(&path, None, Arch::new(9, 0));
        assert!(matches!(read(), Err(KernelError::Read { .. })));
        std::fs::write(&path, b"text").unwrap();
        assert!(matches!(read(), Err(KernelError::Cubin { .. })));
    }

    #[test]
    fn names_are_found_as_they_are_written() {
        for (mangled, plain) in [
            ("sum", "sum"),
            ("_Z3sumPKfPfi", "sum"),
            ("_Z4manyILi4EEvPf", "many"),
            ("_ZN4mine5inner4manyILi4EEEvPf", "many"),
            ("_Z", "_Z"),
            ("_Z99x", "_Z99x"),
            ("_ZN12_GLOBAL__N_14copyEv", "copy"),
        ] {
            assert_eq!(plain_name(mangled), plain);
        }
        let kernel = |name: &str| KernelResources {
            name: name.to_owned(),
            registers: 32,
            static_shared: 0,
            local: 0,
            constant: 0,
            max_threads: None,
            parameters: 0,
        };
        let file = KernelFile {
            path: PathBuf::from("k.cu"),
            arch: Arch::new(9, 0),
            kernels: ["_Z3sumPKf", "_Z4manyILi4EEvv", "_Z4manyILi8EEvv"]
                .map(kernel)
                .to_vec(),
        };
        assert_eq!(file.kernel(Some("sum")).unwrap().name, "_Z3sumPKf");
        assert_eq!(
            file.kernel(Some("_Z4manyILi8EEvv")).unwrap().name,
            "_Z4manyILi8EEvv"
        );
        for (name, message) in [
            (
                Some("many"),
                "k.cu: several kernels many; it has _Z4manyILi4EEvv, _Z4manyILi8EEvv",
            ),
            (
                Some("max"),
                "k.cu: no kernel max; it has _Z3sumPKf, _Z4many",
            ),
            (None, "k.cu: name the kernel; it has _Z3sumPKf"),
        ] {
            let error = file.kernel(name).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn programs_get_advice() {
        let advice = |text| advice(Path::new("a.cu"), text, Arch::new(8, 0));
        assert!(advice("#include <cstdio>\n").ends_with("nvcc -cubin -arch=sm_80 a.cu"));
        assert_eq!(advice("__global__ void k() { x; }"), "");
    }
}
