//! Where libraries are looked for that are opened at run time: UCX here; NVRTC, NCCL, cuBLAS in the crates above.
//!
//! The order, of every library:
//!
//! 1. The variable of that library (`CROSSWARP_NVRTC`, ...), an absolute path. If set it is the only place.
//! 2. The dynamic loader: LD_LIBRARY_PATH and the system's folders. If LD_LIBRARY_PATH has an entry that is refused
//!    (see below), the loader is not asked, for it would use it; the other entries and the system's folders are
//!    searched here.
//! 3. Where it is installed as a whole ([`Installed`]), newest first. Of NVIDIA's: CUDA_HOME, CUDA_PATH,
//!    /usr/local/cuda, /usr/local/cuda-*.
//! 4. Python's site-packages, where wheels put it: of the installation that says it has this program ([`set_home`]), of
//!    VIRTUAL_ENV, CONDA_PREFIX, ~/.local, pyenv, the folders
//!    above those on PATH that hold a python3, /usr/local, /usr and /opt/*.
//! 5. The module search path of the python3 on PATH.
//!
//! The names of a newer version come before those of an older one, wherever they are, except that Python is asked last.
//!
//! Refused are relative paths, and what another user could have put there ([`trust`]). What was refused, and why, is
//! in the error, and `crosswarp info` says it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::library::trust::{self, Owner};

static HOME: OnceLock<PathBuf> = OnceLock::new();

/// Says in which installation this program is: the folder above `bin` and `lib`, of a Python environment for example,
/// where the interpreter alone cannot tell. The first call of a process counts.
pub fn set_home(folder: PathBuf) {
    let _ = HOME.set(folder);
}

/// The installation, if it was said.
pub fn home() -> Option<&'static Path> {
    HOME.get().map(PathBuf::as_path)
}

/// A library to look for.
#[derive(Debug, Clone, Copy)]
pub struct Sought {
    /// The variable that names its file.
    pub variable: &'static str,
    /// File names, best first.
    pub names: &'static [&'static str],
    /// File names of older versions, for where there is no other.
    pub older: &'static [&'static str],
    /// Where whatever it is part of is installed.
    pub installed: Installed,
    /// Its wheel.
    pub wheel: Wheel,
}

/// Where a toolkit is installed.
#[derive(Debug, Clone, Copy)]
pub struct Installed {
    /// All of these places, in words.
    pub words: &'static str,
    /// Variables that name its folder.
    pub variables: &'static [&'static str],
    /// Its folder without a version. Beside it are those with one: `cuda`, `cuda-13.0`.
    pub folder: &'static str,
    /// Its folders for libraries.
    pub libraries: &'static [&'static str],
}

/// Where in a site-packages folder a wheel puts a library.
#[derive(Debug, Clone, Copy)]
pub enum Wheel {
    /// In `nvidia/cu13/lib` and the like, newest first, then in `lib` of this folder under `nvidia`.
    Nvidia(&'static str),
    /// In `lib` of this folder.
    Folder(&'static str),
}

/// A library to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
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

/// A place that is not tried, and why.
pub type Refused = (String, String);

/// The search's inputs: environment variables and the root of the file tree.
pub struct Search {
    /// See [`set_home`].
    home: Option<PathBuf>,
    variables: HashMap<&'static str, OsString>,
    root: PathBuf,
    loader: bool,
}

/// The variables the search reads, beside those of the libraries.
const VARIABLES: [&str; 6] = [
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "HOME",
    "PATH",
    "LD_LIBRARY_PATH",
];

/// Where the loader looks without any variable.
const SYSTEM: [&str; 6] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
];

/// Folders that may hold a library, in order, and those that are refused.
#[derive(Default)]
struct Folders {
    good: Vec<(PathBuf, Owner)>,
    refused: Vec<Refused>,
}

impl Search {
    /// For `sought`, with this process's environment and file tree.
    pub fn of_this_machine(sought: &Sought) -> Self {
        let variables = VARIABLES
            .iter()
            .chain(sought.installed.variables)
            .chain([&sought.variable])
            .filter_map(|&name| Some((name, std::env::var_os(name)?)))
            .collect();
        Self {
            home: home().map(PathBuf::from),
            variables,
            root: "/".into(),
            loader: true,
        }
    }

    /// With the variables given, under the folder `root`, for tests.
    pub fn new(root: &Path, variables: &[(&'static str, &str)]) -> Self {
        Self {
            home: None,
            variables: variables
                .iter()
                .map(|&(name, value)| (name, value.into()))
                .collect(),
            root: root.into(),
            loader: true,
        }
    }

    /// The same without the loader's path, for tests.
    pub fn without_loader(self) -> Self {
        Self {
            loader: false,
            ..self
        }
    }

    /// A variable that is not empty.
    fn value(&self, name: &str) -> Option<&OsString> {
        self.variables.get(name).filter(|value| !value.is_empty())
    }

    /// The absolute path in a variable. A relative one is noted.
    fn path(&self, name: &str, refused: &mut Vec<Refused>) -> Option<PathBuf> {
        let path = PathBuf::from(self.value(name)?);
        if path.is_absolute() {
            return Some(path);
        }
        refused.push((format!("{name}={}", path.display()), RELATIVE.into()));
        None
    }

    /// Tries `open` at every place, in order, until it succeeds.
    ///
    /// Errors: every place looked at and what was the matter there.
    pub fn find<T>(
        &self,
        sought: &Sought,
        mut open: impl FnMut(&Place) -> Result<T, String>,
    ) -> Result<T, Vec<Refused>> {
        let mut looked = Vec::new();
        for place in self.places(sought) {
            match place {
                Err(refused) => looked.push(refused),
                Ok(place) => match open(&place) {
                    Ok(found) => return Ok(found),
                    Err(reason) => looked.push((place.to_string(), reason)),
                },
            }
        }
        looked.extend(self.empty_places(sought));
        // Folders are visited once for every generation of names.
        let mut seen = std::collections::HashSet::new();
        looked.retain(|place| seen.insert(place.clone()));
        Err(looked)
    }

    /// What is refused of all that would be looked at.
    pub fn refused(&self, sought: &Sought) -> Vec<Refused> {
        if self.value(sought.variable).is_some() {
            return self
                .named(sought)
                .and_then(Result::err)
                .into_iter()
                .collect();
        }
        let mut refused = self.loader_refusals();
        let folders = self.folders(sought);
        let all: Vec<&str> = sought.names.iter().chain(sought.older).copied().collect();
        let files = in_folders(folders, &all);
        refused.extend(files.into_iter().filter_map(Result::err));
        refused
    }

    /// The file that the user names.
    fn named(&self, sought: &Sought) -> Option<Result<Place, Refused>> {
        let path = PathBuf::from(self.value(sought.variable)?);
        Some(match path.is_absolute() {
            true => Ok(Place::File(path)),
            false => Err((
                format!("{}={}", sought.variable, path.display()),
                format!("{RELATIVE}; give an absolute one"),
            )),
        })
    }

    /// The places to try, in order, and those that are refused.
    pub fn places<'s>(
        &'s self,
        sought: &'s Sought,
    ) -> impl Iterator<Item = Result<Place, Refused>> + 's {
        let named = self.named(sought);
        // A library the user names is the only one tried: falling back would hide the mistake.
        let search = named.is_none();
        let of = move |names: &'static [&'static str]| {
            if !search || names.is_empty() {
                return Vec::new();
            }
            self.by_loader(names)
        };
        let files = move |names: &'static [&'static str]| {
            if !search || names.is_empty() {
                return Vec::new();
            }
            in_folders(self.folders(sought), names)
        };
        // Python is asked only when nothing else has it: starting it takes tens of milliseconds.
        let python = move || {
            if !search {
                return Vec::new();
            }
            let mut folders = Folders::default();
            for site in self.python_path(&mut folders.refused) {
                let wheels = wheel_folders(&site, sought.wheel);
                folders
                    .good
                    .extend(wheels.into_iter().map(|folder| (folder, Owner::Known)));
            }
            let all: Vec<&str> = sought.names.iter().chain(sought.older).copied().collect();
            in_folders(folders, &all)
        };
        named
            .into_iter()
            .chain(std::iter::once_with(move || of(sought.names)).flatten())
            .chain(std::iter::once_with(move || files(sought.names)).flatten())
            .chain(std::iter::once_with(move || of(sought.older)).flatten())
            .chain(std::iter::once_with(move || files(sought.older)).flatten())
            .chain(std::iter::once_with(python).flatten())
    }

    /// The entries of LD_LIBRARY_PATH for which the loader is not asked.
    fn loader_refusals(&self) -> Vec<Refused> {
        self.loader_entries()
            .filter_map(|entry| {
                let reason = trust::check(&entry, Owner::Any).err()?;
                Some((format!("'{}' in LD_LIBRARY_PATH", entry.display()), reason))
            })
            .collect()
    }

    /// The folders in LD_LIBRARY_PATH, which has colons and semicolons; an empty one is the current folder.
    fn loader_entries(&self) -> impl Iterator<Item = PathBuf> {
        use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
        let value = self.value("LD_LIBRARY_PATH").cloned().unwrap_or_default();
        let some = !value.is_empty();
        let entries: Vec<PathBuf> = value
            .as_bytes()
            .split(|&byte| byte == b':' || byte == b';')
            .map(|entry| OsString::from_vec(entry.to_vec()).into())
            .collect();
        entries.into_iter().filter(move |_| some)
    }

    fn by_loader(&self, names: &[&str]) -> Vec<Result<Place, Refused>> {
        if !self.loader {
            return Vec::new();
        }
        let refused = self.loader_refusals();
        if refused.is_empty() {
            return names
                .iter()
                .map(|&name| Ok(Place::Loader(name.into())))
                .collect();
        }
        // The loader would use what is refused.
        let entries = self.loader_entries().map(|entry| (entry, Owner::Any));
        let good = entries.filter(|(entry, owner)| trust::check(entry, *owner).is_ok());
        let system = SYSTEM.map(|folder| (self.root.join(folder), Owner::Known));
        let folders = Folders {
            good: good.chain(system).collect(),
            refused,
        };
        in_folders(folders, names)
    }

    /// The kinds of places that hold no library, and why nothing of them was tried.
    fn empty_places(&self, sought: &Sought) -> Vec<Refused> {
        let kinds = [
            sought.installed.words,
            "Python site-packages under VIRTUAL_ENV, CONDA_PREFIX, ~/.local, pyenv, /usr, /usr/local, \
             /opt, and of the python3 on PATH",
        ];
        let reason = match self.value(sought.variable) {
            Some(_) => format!("not searched, because {} is set", sought.variable),
            None => format!("no other {} there", sought.names[0]),
        };
        kinds
            .iter()
            .map(|&kind| (kind.into(), reason.clone()))
            .collect()
    }

    /// Every folder that may hold the library and exists, in order.
    fn folders(&self, sought: &Sought) -> Folders {
        let mut folders = Folders::default();
        self.installed(&sought.installed, &mut folders);
        for (site, owner) in self.site_packages(sought.wheel, &mut folders.refused) {
            let wheels = wheel_folders(&site, sought.wheel);
            folders
                .good
                .extend(wheels.into_iter().map(|folder| (folder, owner)));
        }
        folders
    }

    fn installed(&self, installed: &Installed, folders: &mut Folders) {
        let mut toolkits: Vec<(PathBuf, Owner)> = installed
            .variables
            .iter()
            .filter_map(|name| Some((self.path(name, &mut folders.refused)?, Owner::Any)))
            .collect();
        let newest = self.root.join(installed.folder);
        let name = newest.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!("{name}-");
        let beside = newest.parent().unwrap_or(&self.root);
        // Newest first, by version and not by text: cuda-13.0 before cuda-9.2.
        let mut versions = children(beside, |name| name.starts_with(&prefix));
        versions.sort_by_key(|path| std::cmp::Reverse(version_in(path)));
        toolkits.push((newest, Owner::Known));
        toolkits.extend(versions.into_iter().map(|path| (path, Owner::Known)));
        let mut seen = std::collections::HashSet::new();
        for (toolkit, owner) in toolkits {
            for sub in installed.libraries {
                let folder = toolkit.join(sub);
                if folder.is_dir() && seen.insert(folder.clone()) {
                    folders.good.push((folder, owner));
                }
            }
        }
    }

    /// The site-packages folders with the folder of such wheels in them, in order.
    fn site_packages(&self, wheel: Wheel, refused: &mut Vec<Refused>) -> Vec<(PathBuf, Owner)> {
        let named = ["VIRTUAL_ENV", "CONDA_PREFIX"].map(|name| self.path(name, refused));
        let mut prefixes: Vec<(PathBuf, Owner)> = std::iter::once(self.home.clone())
            .chain(named)
            .flatten()
            .map(|prefix| (prefix, Owner::Any))
            .collect();
        let mut known = Vec::new();
        let home = self.path("HOME", refused);
        known.extend(home.iter().map(|home| home.join(".local")));
        let pyenv = self
            .path("PYENV_ROOT", refused)
            .or_else(|| home.map(|home| home.join(".pyenv")));
        known.extend(
            pyenv
                .iter()
                .flat_map(|pyenv| children(&pyenv.join("versions"), |_| true)),
        );
        // The programs on PATH belong to an environment in the folder above.
        for folder in self.value("PATH").iter().flat_map(std::env::split_paths) {
            if !folder.is_absolute() {
                refused.push((format!("'{}' on PATH", folder.display()), RELATIVE.into()));
            } else if folder.join("python3").exists() {
                known.extend(folder.parent().map(PathBuf::from));
            }
        }
        known.extend(["usr/local", "usr"].map(|folder| self.root.join(folder)));
        let opt = children(&self.root.join("opt"), |_| true);
        known.extend(
            opt.iter()
                .flat_map(|folder| [folder.clone(), folder.join(".venv"), folder.join("venv")]),
        );
        prefixes.extend(known.into_iter().map(|prefix| (prefix, Owner::Known)));

        let mut sites = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (prefix, owner) in prefixes {
            for lib in ["lib", "lib64"] {
                let mut pythons = children(&prefix.join(lib), |name| name.starts_with("python3"));
                pythons.sort_by_key(|path| std::cmp::Reverse(version_in(path)));
                let folders = pythons.iter().flat_map(|python| {
                    ["site-packages", "dist-packages"].map(|sub| python.join(sub))
                });
                for site in folders {
                    if site.join(wheel.folder()).is_dir() && seen.insert(site.clone()) {
                        sites.push((site, owner));
                    }
                }
            }
        }
        sites
    }

    /// The folders of the module search path of the `python3` on PATH.
    fn python_path(&self, refused: &mut Vec<Refused>) -> Vec<PathBuf> {
        let Some(path) = self.value("PATH").filter(|_| self.root == Path::new("/")) else {
            return Vec::new();
        };
        let python = match trust::program_on(path, "python3") {
            Ok(python) => python,
            Err(reason) => {
                refused.push(("python3".into(), reason));
                return Vec::new();
            }
        };
        let script = "import sys\nfor p in sys.path: print(p)";
        let output = match Command::new(&python).args(["-c", script]).output() {
            Ok(output) if output.status.success() => output,
            Ok(output) => {
                // Its last line says what failed.
                let words = String::from_utf8_lossy(&output.stderr).into_owned();
                let last: String = words
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .chars()
                    .take(200)
                    .collect();
                let reason = format!("{}: {}", output.status, last.escape_debug());
                refused.push((python.display().to_string(), reason));
                return Vec::new();
            }
            Err(error) => {
                refused.push((python.display().to_string(), error.to_string()));
                return Vec::new();
            }
        };
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines()
            .filter(|line| line.starts_with('/'))
            .map(PathBuf::from)
            .collect()
    }
}

const RELATIVE: &str = "a relative path, which depends on the current folder";

/// The first of `names` in every folder that has one, unless it is refused.
fn in_folders(folders: Folders, names: &[&str]) -> Vec<Result<Place, Refused>> {
    let files = folders.good.into_iter().filter_map(|(folder, owner)| {
        let file = names
            .iter()
            .map(|name| folder.join(name))
            .find(|file| file.exists())?;
        Some(match trust::check(&file, owner) {
            Ok(()) => Ok(Place::File(file)),
            Err(reason) => Err((file.display().to_string(), reason)),
        })
    });
    folders.refused.into_iter().map(Err).chain(files).collect()
}

impl Wheel {
    /// The folder of a site-packages folder that all its files are in.
    fn folder(self) -> &'static str {
        match self {
            Wheel::Nvidia(_) => "nvidia",
            Wheel::Folder(folder) => folder,
        }
    }
}

/// Where the wheels of a site-packages folder put libraries, newest first.
fn wheel_folders(site: &Path, wheel: Wheel) -> Vec<PathBuf> {
    let top = site.join(wheel.folder());
    let mut folders = Vec::new();
    match wheel {
        Wheel::Nvidia(folder) => {
            folders = children(&top, |name| {
                name.starts_with("cu") && name[2..].parse::<u32>().is_ok()
            });
            folders.sort_by_key(|path| std::cmp::Reverse(version_in(path)));
            folders.push(top.join(folder));
        }
        Wheel::Folder(_) => folders.push(top),
    }
    folders
        .into_iter()
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

#[cfg(test)]
mod tests {
    use super::*;

    const NVRTC: Sought = Sought {
        variable: "CROSSWARP_NVRTC",
        names: &["libnvrtc.so.13", "libnvrtc.so"],
        older: &["libnvrtc.so.12"],
        installed: Installed {
            words: "CUDA toolkits",
            variables: &["CUDA_HOME", "CUDA_PATH"],
            folder: "usr/local/cuda",
            libraries: &["lib64", "lib"],
        },
        wheel: Wheel::Nvidia("cuda_nvrtc"),
    };

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
            Ok(Place::File(path)) => Some(
                path.strip_prefix(root)
                    .unwrap_or(&path)
                    .display()
                    .to_string(),
            ),
            Ok(Place::Loader(_)) | Err(_) => None,
        };
        search.places(&NVRTC).filter_map(file).collect()
    }

    #[test]
    fn of_wheels_those_of_the_own_installation_come_first() {
        let nvrtc = |env: &str| {
            format!("{env}/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13")
        };
        let root = tree(&[&nvrtc("own"), &nvrtc("env")]);
        let at = |path: &str| root.path().join(path).display().to_string();
        let mut search = Search::new(root.path(), &[("VIRTUAL_ENV", &at("env"))]);
        search.home = Some(root.path().join("own"));
        assert_eq!(files(search, root.path()), [nvrtc("own"), nvrtc("env")]);
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
            .places(&NVRTC)
            .map(|place| place.unwrap().to_string())
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

    #[test]
    fn relative_paths_are_never_searched() {
        // Libraries where relative paths would lead, from a folder of the test's own.
        let root = tree(&[
            "bin/python3",
            "lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
            "lib64/libnvrtc.so.13",
        ]);
        let relative = pathdiff(root.path());
        let bin = format!("{relative}/bin");
        let search = Search::new(
            &root.path().join("elsewhere"),
            &[
                ("PATH", &format!(":{bin}:.")),
                ("CUDA_HOME", &relative),
                ("CUDA_PATH", "."),
                ("VIRTUAL_ENV", &relative),
                ("CONDA_PREFIX", &relative),
                ("HOME", &relative),
                ("PYENV_ROOT", &relative),
            ],
        )
        .without_loader();
        assert!(Path::new(&relative).join("lib64/libnvrtc.so.13").exists());
        let found: Vec<_> = search.places(&NVRTC).filter_map(Result::ok).collect();
        assert_eq!(found, []);
        let refused = search.refused(&NVRTC);
        for place in ["'' on PATH", "'.' on PATH", "CUDA_PATH=."] {
            assert!(
                refused
                    .iter()
                    .any(|(at, why)| at == place && why == RELATIVE),
                "{place}: {refused:?}"
            );
        }
        assert_eq!(refused.len(), 9, "{refused:?}");
        let named = Search::new(root.path(), &[("CROSSWARP_NVRTC", "lib64/libnvrtc.so.13")]);
        let places: Vec<_> = named.places(&NVRTC).collect();
        assert!(
            matches!(&places[..], [Err((at, why))]
                if at == "CROSSWARP_NVRTC=lib64/libnvrtc.so.13" && why.ends_with("give an absolute one")),
            "{places:?}"
        );
    }

    /// `path` seen from the current folder.
    fn pathdiff(path: &Path) -> String {
        let here = std::env::current_dir().unwrap();
        let up = "../".repeat(here.components().count() - 1);
        format!("{up}{}", path.display().to_string().trim_start_matches('/'))
    }

    #[test]
    fn folders_that_every_user_may_write_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let library = "usr/local/cuda/lib64/libnvrtc.so.13";
        let root = tree(&[library]);
        let open = root.path().join("usr/local/cuda/lib64");
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        let search = || Search::new(root.path(), &[]).without_loader();
        assert_eq!(files(search(), root.path()), [""; 0]);
        let reason = format!("every user may write {}", open.display());
        let file = root.path().join(library).display().to_string();
        assert_eq!(search().refused(&NVRTC), [(file.clone(), reason.clone())]);
        let error = search().find(&NVRTC, |_| Ok(())).unwrap_err();
        assert_eq!(error[0], (file, reason));
    }

    #[test]
    fn the_loader_is_not_asked_where_it_would_use_what_is_refused() {
        let root = tree(&[
            "kit/libnvrtc.so.13",
            "usr/lib64/libnvrtc.so",
            "usr/lib64/libnvrtc.so.12",
        ]);
        let kit = root.path().join("kit").display().to_string();
        for bad in ["", ".", "lib", "relative/lib"] {
            let search = Search::new(root.path(), &[("LD_LIBRARY_PATH", &format!("{kit}:{bad}"))]);
            let places: Vec<_> = search.places(&NVRTC).filter_map(Result::ok).collect();
            let loader = |place: &Place| matches!(place, Place::Loader(_));
            assert!(!places.iter().any(loader), "{bad}: {places:?}");
            assert_eq!(
                files(search, root.path()),
                [
                    "kit/libnvrtc.so.13",
                    "usr/lib64/libnvrtc.so",
                    "usr/lib64/libnvrtc.so.12"
                ]
            );
        }
        let good = Search::new(root.path(), &[("LD_LIBRARY_PATH", &kit)]);
        assert_eq!(good.refused(&NVRTC), []);
        assert!(matches!(
            good.places(&NVRTC).next(),
            Some(Ok(Place::Loader(_)))
        ));
    }
}
