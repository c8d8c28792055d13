//! Where NVRTC may be.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A file that exists (or that the user named).
    File(PathBuf),
    /// A name for the dynamic loader.
    Loader(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "{}", path.display()),
            Place::Loader(name) => write!(f, "{name} on the loader's path"),
        }
    }
}

/// File names, best first. `libnvrtc.so` alone is what a toolkit's development package links.
const NAMES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so"];
const OLDER: &str = "libnvrtc.so.12";

/// The search's inputs: environment variables and the root of the file tree.
pub(crate) struct Search {
    variables: HashMap<&'static str, OsString>,
    root: PathBuf,
    loader: bool,
}

/// The variables the search reads.
const VARIABLES: [&str; 8] = [
    "CROSSWARP_NVRTC",
    "CUDA_HOME",
    "CUDA_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "HOME",
    "PATH",
];

impl Search {
    /// With this process's environment and file tree.
    pub fn of_this_machine() -> Self {
        let variables = VARIABLES
            .iter()
            .filter_map(|&name| Some((name, std::env::var_os(name)?)))
            .collect();
        Self {
            variables,
            root: "/".into(),
            loader: true,
        }
    }

    /// With the variables given, under the folder `root`, for tests.
    #[cfg(test)]
    pub fn new(root: &Path, variables: &[(&'static str, &str)]) -> Self {
        Self {
            variables: variables
                .iter()
                .map(|&(name, value)| (name, value.into()))
                .collect(),
            root: root.into(),
            loader: true,
        }
    }

    /// The same without the loader's path, for tests.
    #[cfg(test)]
    pub fn without_loader(self) -> Self {
        Self {
            loader: false,
            ..self
        }
    }

    /// A variable that names a path; an empty one counts as unset.
    fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables
            .get(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }

    /// The libraries to try, in order.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let chosen = self.path("CROSSWARP_NVRTC");
        // A library the user names is the only one tried: falling back would hide the mistake.
        let search = chosen.is_none();
        let named = chosen.into_iter().map(Place::File);
        let loader = move |name: &str| (search && self.loader).then(|| Place::Loader(name.into()));
        let newest = move || {
            let folders = if search { self.folders() } else { Vec::new() };
            let files = folders.into_iter().filter_map(|folder| {
                NAMES
                    .iter()
                    .map(|name| folder.join(name))
                    .find(|file| file.exists())
            });
            NAMES
                .iter()
                .filter_map(move |name| loader(name))
                .chain(files.map(Place::File))
        };
        let older = move || {
            let folders = if search { self.folders() } else { Vec::new() };
            let files = folders
                .into_iter()
                .map(|folder| folder.join(OLDER))
                .filter(|file| file.exists());
            loader(OLDER).into_iter().chain(files.map(Place::File))
        };
        // Python is asked only when nothing else has it: starting it takes tens of milliseconds.
        let python = move || {
            let folders = if search {
                self.python_path()
            } else {
                Vec::new()
            };
            folders
                .into_iter()
                .flat_map(|site| wheel_folders(&site))
                .filter_map(|folder| {
                    NAMES
                        .iter()
                        .chain([&OLDER])
                        .map(|name| folder.join(name))
                        .find(|file| file.exists())
                })
                .map(Place::File)
        };
        named
            .chain(std::iter::once_with(newest).flatten())
            .chain(std::iter::once_with(older).flatten())
            .chain(std::iter::once_with(python).flatten())
    }

    /// The kinds of places that hold no library, and why nothing of them was tried.
    pub fn empty_places(&self) -> Vec<(String, String)> {
        let kinds = [
            "CUDA toolkits in CUDA_HOME, CUDA_PATH, /usr/local/cuda*",
            "Python site-packages under VIRTUAL_ENV, CONDA_PREFIX, ~/.local, pyenv, /usr, /usr/local, \
             /opt, and of the python3 on PATH",
        ];
        let reason = match self.path("CROSSWARP_NVRTC") {
            Some(_) => "not searched, because CROSSWARP_NVRTC is set",
            None => "no other libnvrtc.so there",
        };
        kinds
            .iter()
            .map(|&kind| (kind.into(), reason.into()))
            .collect()
    }

    /// Every folder that may hold the library and exists, in order.
    fn folders(&self) -> Vec<PathBuf> {
        let mut folders = self.toolkits();
        folders.extend(
            self.site_packages()
                .iter()
                .flat_map(|site| wheel_folders(site)),
        );
        folders
    }

    fn toolkits(&self) -> Vec<PathBuf> {
        let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
            .iter()
            .filter_map(|name| self.path(name))
            .collect();
        let local = self.root.join("usr/local");
        toolkits.push(local.join("cuda"));
        // Newest first, by version and not by text: cuda-13.0 before cuda-9.2.
        let mut versions = children(&local, |name| name.starts_with("cuda-"));
        versions.sort_by_key(|path| std::cmp::Reverse(version_in(path)));
        toolkits.extend(versions);
        let mut folders: Vec<PathBuf> = toolkits
            .iter()
            .flat_map(|toolkit| {
                [
                    "lib64",
                    "targets/x86_64-linux/lib",
                    "targets/sbsa-linux/lib",
                    "lib",
                ]
                .map(|sub| toolkit.join(sub))
            })
            .filter(|folder| folder.is_dir())
            .collect();
        dedup(&mut folders);
        folders
    }

    /// The site-packages folders with NVIDIA's wheels in them, in order.
    pub(crate) fn site_packages(&self) -> Vec<PathBuf> {
        let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
            .iter()
            .filter_map(|name| self.path(name))
            .collect();
        let home = self.path("HOME");
        prefixes.extend(home.iter().map(|home| home.join(".local")));
        let pyenv = self
            .path("PYENV_ROOT")
            .or_else(|| home.map(|home| home.join(".pyenv")));
        prefixes.extend(
            pyenv
                .iter()
                .flat_map(|pyenv| children(&pyenv.join("versions"), |_| true)),
        );
        // The programs on PATH belong to an environment in the folder above.
        if let Some(path) = self.variables.get("PATH") {
            let python = |folder: &PathBuf| folder.join("python3").exists();
            prefixes.extend(
                std::env::split_paths(path)
                    .filter(python)
                    .filter_map(|bin| bin.parent().map(PathBuf::from)),
            );
        }
        prefixes.extend(["usr/local", "usr"].map(|folder| self.root.join(folder)));
        let opt = children(&self.root.join("opt"), |_| true);
        prefixes.extend(
            opt.iter()
                .flat_map(|folder| [folder.clone(), folder.join(".venv"), folder.join("venv")]),
        );

        let mut sites = Vec::new();
        for prefix in prefixes {
            for lib in ["lib", "lib64"] {
                let mut pythons = children(&prefix.join(lib), |name| name.starts_with("python3"));
                pythons.sort_by_key(|path| std::cmp::Reverse(version_in(path)));
                sites.extend(pythons.iter().flat_map(|python| {
                    ["site-packages", "dist-packages"].map(|sub| python.join(sub))
                }));
            }
        }
        sites.retain(|site| site.join("nvidia").is_dir());
        dedup(&mut sites);
        sites
    }

    /// The folders of the module search path of the `python3` on PATH.
    pub(crate) fn python_path(&self) -> Vec<PathBuf> {
        if self.root != Path::new("/") {
            return Vec::new();
        }
        let script = "import sys\nfor p in sys.path: print(p)";
        let Ok(output) = Command::new("python3").args(["-c", script]).output() else {
            return Vec::new();
        };
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines()
            .filter(|line| line.starts_with('/'))
            .map(PathBuf::from)
            .collect()
    }
}

/// Where the NVIDIA wheels of a site-packages folder put NVRTC, newest first.
fn wheel_folders(site: &Path) -> Vec<PathBuf> {
    let nvidia = site.join("nvidia");
    let mut cuda = children(&nvidia, |name| {
        name.starts_with("cu") && name[2..].parse::<u32>().is_ok()
    });
    cuda.sort_by_key(|path| std::cmp::Reverse(version_in(path)));
    cuda.push(nvidia.join("cuda_nvrtc"));
    cuda.into_iter()
        .map(|folder| folder.join("lib"))
        .filter(|folder| folder.is_dir())
        .collect()
}

fn children(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

/// The numbers in a path's last name, e.g. [13, 0] for `cuda-13.0`.
fn version_in(path: &Path) -> Vec<u32> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

fn dedup(paths: &mut Vec<PathBuf>) {
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    fn files(search: Search, root: &Path) -> Vec<String> {
        let file = |place| match place {
            Place::File(path) => Some(
                path.strip_prefix(root)
                    .unwrap_or(&path)
                    .display()
                    .to_string(),
            ),
            Place::Loader(_) => None,
        };
        search.places().filter_map(file).collect()
    }

    #[test]
    fn the_order_is_toolkits_then_wheels_and_13_before_12() {
        let root = tree(&[
            "usr/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            "usr/lib/python3.9/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            "usr/lib/python3/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            "opt/app/.venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            "usr/local/cuda-9.2/lib64/libnvrtc.so",
            "usr/local/cuda-13.0/lib64/libnvrtc.so.13",
            "usr/local/cuda-12.4/lib64/libnvrtc.so.12",
            "home/u/.local/lib/python3.10/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            "home/u/.pyenv/versions/3.13.1/lib/python3.13/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            "kit/lib64/libnvrtc.so.13",
            "env/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
        ]);
        let at = |path: &str| root.path().join(path).display().to_string();
        let (home, kit, env) = (at("home/u"), at("kit"), at("env"));
        let search = Search::new(
            root.path(),
            &[("HOME", &home), ("CUDA_HOME", &kit), ("VIRTUAL_ENV", &env)],
        );
        assert_eq!(
            files(search, root.path()),
            [
                "kit/lib64/libnvrtc.so.13",
                "usr/local/cuda-13.0/lib64/libnvrtc.so.13",
                "usr/local/cuda-9.2/lib64/libnvrtc.so",
                "env/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "home/u/.local/lib/python3.10/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "home/u/.pyenv/versions/3.13.1/lib/python3.13/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "usr/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "usr/lib/python3.9/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "opt/app/.venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "usr/local/cuda-12.4/lib64/libnvrtc.so.12",
                "usr/lib/python3/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            ]
        );
    }

    #[test]
    fn the_loader_comes_before_the_folders() {
        let root = tree(&[
            "usr/local/cuda/lib64/libnvrtc.so.13",
            "usr/local/cuda/lib64/libnvrtc.so.12",
        ]);
        let places: Vec<String> = Search::new(root.path(), &[])
            .places()
            .map(|p| p.to_string())
            .collect();
        let file = |name: &str| {
            root.path()
                .join("usr/local/cuda/lib64")
                .join(name)
                .display()
                .to_string()
        };
        let loader = |name: &str| format!("{name} on the loader's path");
        assert_eq!(
            places,
            [
                loader("libnvrtc.so.13"),
                loader("libnvrtc.so"),
                file("libnvrtc.so.13"),
                loader("libnvrtc.so.12"),
                file("libnvrtc.so.12"),
            ]
        );
    }

    #[test]
    fn a_named_library_is_the_only_one_tried() {
        let root = tree(&["usr/local/cuda/lib64/libnvrtc.so.13"]);
        let search = Search::new(
            root.path(),
            &[("CROSSWARP_NVRTC", "/nowhere/libnvrtc.so.13")],
        );
        assert_eq!(files(search, root.path()), ["/nowhere/libnvrtc.so.13"]);
        let unset = Search::new(root.path(), &[("CROSSWARP_NVRTC", "")]);
        assert_eq!(
            files(unset, root.path()),
            ["usr/local/cuda/lib64/libnvrtc.so.13"]
        );
    }
}
