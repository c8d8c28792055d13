//! Output files that appear whole or not at all.
//!
//! A [`StagedFile`] is opened before the work starts, so that a path that cannot be written is reported before anything
//! is computed, and takes its name only when it is complete. Links are followed first: the file that a link leads to is
//! replaced, not the link. Until then it is an unnamed file of that folder (`O_TMPFILE`), so a process killed while it
//! writes leaves nothing behind; only where it replaces a file does it have a name of its own between two system calls.
//! On file systems without unnamed files it has that name from the start (`.NAME.` and 16 random digits and `.tmp`),
//! and a kill leaves it. The name is made new (`O_EXCL`), so that no other file is touched and no link followed.
//!
//! What is not a regular file (a device, a pipe), and what this process has open (`/dev/stdout`), is written in place.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};

/// Why an output file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file cannot be created where it was asked for.
    #[error("{}: cannot create the file: {source}", path.display())]
    Create {
        /// The path asked for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Writing failed: a full disk, say.
    #[error("{}: cannot write: {source}{left}", path.display())]
    Write {
        /// The path asked for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
        /// What is there now.
        left: &'static str,
    },
}

impl OutputError {
    /// Wraps a failed write to `path`.
    pub fn write(path: &Path, source: io::Error) -> Self {
        let left = match std::fs::metadata(path) {
            Ok(there) if there.is_file() => "; the older file is still there",
            // A device or a pipe: what it got, it has.
            Ok(_) => "",
            Err(_) => "; no file was left there",
        };
        Self::Write {
            path: path.to_owned(),
            source,
            left,
        }
    }
}

/// Links that are followed, as many as the kernel does.
const MOST_LINKS: usize = 40;

/// What a path leads to.
enum Target {
    /// A regular file, or one that can be made: its own name, without links, and the permissions there are to keep.
    File(PathBuf, Option<u32>),
    /// A device or a pipe.
    Special(PathBuf),
    /// What this process has open under a number.
    Open(PathBuf, u32),
}

impl Target {
    fn of(path: &Path) -> io::Result<Target> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            if let Some(number) = own_descriptor(&path) {
                return Ok(Target::Open(path, number));
            }
            match path.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    let to = path.read_link()?;
                    path = folder(&path).join(to);
                }
                Ok(found) if found.is_dir() => {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                Ok(found) if found.is_file() => {
                    return Ok(Target::File(
                        path,
                        Some(found.permissions().mode() & 0o7777),
                    ));
                }
                Ok(_) => return Ok(Target::Special(path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Target::File(path, None));
                }
                Err(error) => return Err(error),
            }
        }
        Err(rustix::io::Errno::LOOP.into())
    }
}

/// The number of a path such as `/proc/self/fd/1`, which is a link that leads to no name.
fn own_descriptor(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let folder = folder(path).canonicalize().ok()?;
    let own = Path::new("/proc/self/fd").canonicalize().ok()?;
    let of_thread = Path::new("/proc/thread-self/fd").canonicalize().ok();
    (folder == own || Some(folder) == of_thread).then_some(number)
}

enum Stage {
    /// An unnamed file of the target's folder.
    Unnamed,
    /// A file with a name of its own beside the target.
    Beside(PathBuf),
    /// Written in place, or already there.
    InPlace,
}

/// A buffered output file that gets its name in [`StagedFile::commit`]; dropped before, it is gone.
pub struct StagedFile {
    /// As the user gave it.
    target: PathBuf,
    /// Without links.
    resolved: PathBuf,
    /// The permissions it will have, unless those of a new file.
    mode: Option<u32>,
    stage: Stage,
    file: BufWriter<File>,
}

const BUFFER_BYTES: usize = 1 << 20;

impl StagedFile {
    /// Opens a file that will become `target`.
    ///
    /// # Errors
    /// [`OutputError::Create`] if the folder does not exist or may not be written.
    pub fn create(target: &Path) -> Result<Self, OutputError> {
        Self::open(target).map_err(|source| OutputError::Create {
            path: target.to_owned(),
            source,
        })
    }

    /// Whether `target` could be written; nothing is, and nobody who reads from it notices.
    ///
    /// # Errors
    /// As [`StagedFile::create`].
    pub fn check(target: &Path) -> Result<(), OutputError> {
        let checked = match Target::of(target) {
            Ok(Target::File(..)) => return Self::create(target).map(drop),
            Ok(Target::Special(path)) => {
                rustix::fs::access(&path, Access::WRITE_OK).map_err(io::Error::from)
            }
            Ok(Target::Open(..)) => Ok(()),
            Err(error) => Err(error),
        };
        checked.map_err(|source| OutputError::Create {
            path: target.to_owned(),
            source,
        })
    }

    fn open(target: &Path) -> io::Result<Self> {
        let (resolved, mode, stage, file) = match Target::of(target)? {
            Target::File(path, mode) => {
                let (stage, file) = open_stage(&path)?;
                (path, mode, stage, file)
            }
            Target::Special(path) => {
                let file = File::options().write(true).open(&path)?;
                (path, None, Stage::InPlace, file)
            }
            // The same open file, so that what else is written to it stays in order.
            Target::Open(path, 1) => {
                let file = io::stdout().as_fd().try_clone_to_owned()?.into();
                (path, None, Stage::InPlace, file)
            }
            Target::Open(path, 2) => {
                let file = io::stderr().as_fd().try_clone_to_owned()?.into();
                (path, None, Stage::InPlace, file)
            }
            Target::Open(path, _) => {
                let file = File::options().append(true).open(&path)?;
                (path, None, Stage::InPlace, file)
            }
        };
        Ok(Self {
            target: target.to_owned(),
            resolved,
            mode,
            stage,
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
        })
    }

    /// The path the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The permissions the file will have, whatever there is now.
    #[must_use]
    pub fn with_mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Writes `bytes`; a failure names the file.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.file
            .write_all(bytes)
            .map_err(|source| OutputError::write(&self.target, source))
    }

    /// Writes out what is buffered and gives the file its name, in place of any older file.
    pub fn commit(mut self) -> Result<(), OutputError> {
        self.publish(false)
            .map_err(|source| OutputError::write(&self.target, source))
    }

    /// The same; when it returns, the file and its name are on the disk.
    pub fn commit_to_disk(mut self) -> Result<(), OutputError> {
        self.publish(true)
            .map_err(|source| OutputError::write(&self.target, source))
    }

    fn publish(&mut self, to_disk: bool) -> io::Result<()> {
        self.file.flush()?;
        if matches!(self.stage, Stage::InPlace) {
            return Ok(());
        }
        let file = self.file.get_ref();
        if let Some(mode) = self.mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        if to_disk {
            file.sync_all()?;
        }
        if matches!(self.stage, Stage::Unnamed) {
            match link_unnamed(file, &self.resolved) {
                Ok(()) => self.stage = Stage::InPlace,
                // A link may not replace a file, a rename may: hence the name in between.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let name = make_beside(&self.resolved, |name| link_unnamed(file, name))?.0;
                    self.stage = Stage::Beside(name);
                }
                Err(error) => return Err(error),
            }
        }
        if let Stage::Beside(name) = &self.stage {
            std::fs::rename(name, &self.resolved)?;
            self.stage = Stage::InPlace;
        }
        if to_disk {
            File::open(folder(&self.resolved))?.sync_all()?;
        }
        Ok(())
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if let Stage::Beside(path) = &self.stage {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn open_stage(target: &Path) -> io::Result<(Stage, File)> {
    let mode = Mode::from_raw_mode(0o666);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, folder(target), flags, mode) {
        // Without /proc the unnamed file could never be given a name.
        Ok(file) if Path::new("/proc/self/fd").is_dir() => Ok((Stage::Unnamed, file.into())),
        Ok(_) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => open_beside(target),
        Err(errno) => Err(errno.into()),
    }
}

fn open_beside(target: &Path) -> io::Result<(Stage, File)> {
    let (path, file) = make_beside(target, |name| {
        // Fails if there is anything of that name, a link included.
        OpenOptions::new().write(true).create_new(true).open(name)
    })?;
    Ok((Stage::Beside(path), file))
}

fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(
        CWD,
        unnamed.as_str(),
        CWD,
        path,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

/// The folder of `target`, as a path to open.
fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What `make` makes under a random name in the folder of `target`, and that name. A name that exists is left alone.
fn make_beside<T>(
    target: &Path,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    const ATTEMPTS: usize = 16;
    for _ in 0..ATTEMPTS {
        // Seeded by the system, another for every call.
        let random = std::hash::RandomState::new().build_hasher().finish();
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{random:016x}.tmp"));
        let path = folder(target).join(name);
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (path, made)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn appears_only_when_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("field.npy");
        std::fs::write(&path, "old").unwrap();
        let mut staged = StagedFile::create(&path).unwrap();
        staged.put(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        staged.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["field.npy"]);
    }

    #[test]
    fn dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut staged = StagedFile::create(&folder.path().join("field.npy")).unwrap();
        staged.put(&vec![0; 3 << 20]).unwrap();
        drop(staged);
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn files_with_a_name_meanwhile_go_the_same_way() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("field.npy");
        let open = || {
            let (stage, file) = open_beside(&target).unwrap();
            StagedFile {
                target: target.clone(),
                resolved: target.clone(),
                mode: None,
                stage,
                file: BufWriter::new(file),
            }
        };
        let mut staged = open();
        staged.put(b"half").unwrap();
        let [name] = &names(folder.path())[..] else {
            panic!("one file")
        };
        assert!(name.starts_with(".field.npy.") && name.ends_with(".tmp"));
        drop(staged);
        assert_eq!(names(folder.path()), [""; 0]);
        let mut staged = open();
        staged.put(b"whole").unwrap();
        staged.commit().unwrap();
        assert_eq!(names(folder.path()), ["field.npy"]);
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
    }

    #[test]
    fn missing_folder_is_said_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no/such/f.npy");
        let error = StagedFile::create(&path).err().unwrap().to_string();
        assert!(
            error.contains("no/such/f.npy: cannot create the file: No such file"),
            "{error}"
        );
    }

    #[test]
    fn full_device_is_an_error() {
        let mut staged = StagedFile::create(Path::new("/dev/full")).unwrap();
        let error = staged.put(&vec![1; 2 << 20]).unwrap_err().to_string();
        assert_eq!(
            error,
            "/dev/full: cannot write: No space left on device (os error 28)"
        );
    }

    #[test]
    fn a_failed_write_says_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.npy");
        let message = || OutputError::write(&path, io::ErrorKind::StorageFull.into()).to_string();
        assert!(message().ends_with("; no file was left there"));
        std::fs::write(&path, "old").unwrap();
        assert!(message().ends_with("; the older file is still there"));
    }

    fn write(path: &Path, bytes: &[u8]) {
        let mut staged = StagedFile::create(path).unwrap();
        staged.put(bytes).unwrap();
        staged.commit().unwrap();
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("far")).unwrap();
        std::fs::write(at("far/file"), "old").unwrap();
        symlink("far/second", at("first")).unwrap();
        symlink("file", at("far/second")).unwrap();
        symlink("far/made", at("dangling")).unwrap();
        symlink("endless", at("endless")).unwrap();
        write(&at("first"), b"new");
        assert!(at("first").is_symlink() && at("far/second").is_symlink());
        assert_eq!(std::fs::read(at("far/file")).unwrap(), b"new");
        write(&at("dangling"), b"made");
        assert!(at("dangling").is_symlink());
        assert_eq!(std::fs::read(at("far/made")).unwrap(), b"made");
        assert!(StagedFile::create(&at("endless")).is_err());
    }

    #[test]
    fn files_beside_are_not_touched_and_permissions_stay() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let victim = at("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::fs::write(at("f"), "old").unwrap();
        std::fs::set_permissions(at("f"), Permissions::from_mode(0o640)).unwrap();
        // What earlier versions used.
        std::fs::write(at("f.tmp"), "mine").unwrap();
        symlink(&victim, at(&format!(".f.{}.tmp", std::process::id()))).unwrap();
        let before = names(folder.path()).len();
        write(&at("f"), b"new");
        assert_eq!(std::fs::read(at("f")).unwrap(), b"new");
        assert_eq!(std::fs::read(at("f.tmp")).unwrap(), b"mine");
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert_eq!(names(folder.path()).len(), before);
        let mode = at("f").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
    }

    /// A name that is taken, by a link too, is not opened.
    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let mut tried = Vec::new();
        let made = make_beside(&folder.path().join("f"), |name| {
            if tried.len() < 3 {
                std::os::unix::fs::symlink(&victim, name)?;
            }
            tried.push(name.to_owned());
            OpenOptions::new().write(true).create_new(true).open(name)
        });
        let (name, mut file) = made.unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!((tried.len(), &tried[3]), (4, &name));
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn devices_and_pipes_are_written_in_place() {
        use std::io::Read as _;
        use std::os::unix::fs::FileTypeExt as _;
        write(Path::new("/dev/null"), b"gone");
        StagedFile::check(Path::new("/dev/null")).unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(CWD, &pipe, kind, Mode::from_raw_mode(0o600), 0).unwrap();
        StagedFile::check(&pipe).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        write(&pipe, b"through");
        assert_eq!(reader.join().unwrap(), "through");
        assert!(pipe.metadata().unwrap().file_type().is_fifo());
        assert_eq!(names(folder.path()), ["pipe"]);
    }

    #[test]
    #[ignore = "the process that the test below starts and kills"]
    fn stages_and_waits() {
        let path = std::env::var_os("CROSSWARP_TEST_STAGED").unwrap();
        let mut staged = StagedFile::create(Path::new(&path)).unwrap();
        staged.put(&vec![7; 3 << 20]).unwrap();
        staged.flush().unwrap();
        println!("staged");
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_kill_leaves_the_old_file_and_nothing_else() {
        use std::io::{BufRead as _, BufReader};
        use std::process::{Command, Stdio};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "old").unwrap();
        // Tests are named without the crate.
        let tests = module_path!().split_once("::").unwrap().1;
        let waits = format!("{tests}::stages_and_waits");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", &waits, "--nocapture"])
            .env("CROSSWARP_TEST_STAGED", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            lines
                .map_while(Result::ok)
                .any(|line| line.contains("staged") && !line.contains("tests"))
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["f"]);
    }
}
