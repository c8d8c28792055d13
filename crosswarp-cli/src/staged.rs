//! Output files that appear whole or not at all.
//!
//! A [`StagedFile`] is opened before the work starts, so that a path that cannot be
//! written is reported before anything is computed, and takes its name only when it
//! is complete. On Linux it is an unnamed file of the target's folder until then
//! (`O_TMPFILE`): a process killed while it writes leaves nothing behind.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

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

enum Stage {
    /// An unnamed file of the target's folder.
    Unnamed,
    /// A file with a name of its own beside the target (file systems without `O_TMPFILE`).
    Beside(PathBuf),
    /// Not a regular file (a device, a pipe): written in place.
    InPlace,
}

/// A buffered output file that gets its name in [`StagedFile::commit`]; dropped before, it is gone.
pub struct StagedFile {
    target: PathBuf,
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
        let failed = |source| OutputError::Create {
            path: target.to_owned(),
            source,
        };
        let (stage, file) = match std::fs::metadata(target) {
            Ok(existing) if existing.is_dir() => {
                return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
            }
            Ok(existing) if !existing.is_file() => (
                Stage::InPlace,
                File::options().write(true).open(target).map_err(failed)?,
            ),
            _ => open_stage(target).map_err(failed)?,
        };
        Ok(Self {
            target: target.to_owned(),
            stage,
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
        })
    }

    /// The path the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes `bytes`; a failure names the file.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.file
            .write_all(bytes)
            .map_err(|source| OutputError::write(&self.target, source))
    }

    /// Writes out what is buffered and gives the file its name, in place of any older file.
    pub fn commit(mut self) -> Result<(), OutputError> {
        self.publish()
            .map_err(|source| OutputError::write(&self.target, source))
    }

    fn publish(&mut self) -> io::Result<()> {
        self.file.flush()?;
        match &self.stage {
            Stage::InPlace => Ok(()),
            Stage::Unnamed => {
                // A link may not replace a file, a rename may: hence the name in between.
                let beside = beside(&self.target);
                link_unnamed(self.file.get_ref(), &beside)?;
                std::fs::rename(&beside, &self.target).inspect_err(|_| {
                    let _ = std::fs::remove_file(&beside);
                })
            }
            Stage::Beside(beside) => {
                std::fs::rename(beside, &self.target)?;
                self.stage = Stage::InPlace;
                Ok(())
            }
        }
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
    let path = beside(target);
    let file = File::options().write(true).create_new(true).open(&path)?;
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

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `.NAME.PID.tmp` in the folder of `target`.
fn beside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    folder(target).join(name)
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
                stage,
                file: BufWriter::new(file),
            }
        };
        let mut staged = open();
        staged.put(b"half").unwrap();
        assert_eq!(
            names(folder.path()),
            [format!(".field.npy.{}.tmp", std::process::id())]
        );
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
}
