//! Files that a command reads whole: never more than a limit, and only regular ones where a pipe or a device
//! would keep it waiting.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Most bytes of a problem file.
pub const PROBLEM: u64 = 1 << 20;
/// Most bytes of a file of measured rows.
pub const ROWS: u64 = 64 << 20;
/// Most bytes of a kernel's source or cubin, and of all headers of a source together.
pub const KERNEL: u64 = 64 << 20;

/// Opens a regular file; a pipe, device or folder is an error and not waited for.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    // Before opening, since that can have an effect on a device; after it, since the name may then be
    // another file's. Without waiting, as opening a pipe would for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(refused())
    }
}

/// The bytes of a file of any kind, at most `limit`.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, limit)
}

/// The text of a file of any kind, at most `limit` bytes.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// The text of a regular file, at most `limit` bytes.
pub fn read_regular_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read_from(open_regular(path)?, limit)?)
}

fn read_from(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("longer than {} MiB, the most that is read", limit >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "not text (UTF-8)");
    String::from_utf8(bytes).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_an_end_are_refused() {
        let zero = Path::new("/dev/zero");
        let error = read(zero, 1 << 20).unwrap_err().to_string();
        assert_eq!(error, "longer than 1 MiB, the most that is read");
        let error = open_regular(zero).unwrap_err().to_string();
        assert_eq!(error, "not a regular file");
        let folder = tempfile::tempdir().unwrap();
        assert!(open_regular(folder.path()).is_err());
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(open_regular(&pipe).is_err());
    }

    #[test]
    fn the_limit_itself_is_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "four").unwrap();
        assert_eq!(read_text(file.path(), 4).unwrap(), "four");
        assert_eq!(read_regular_text(file.path(), 4).unwrap(), "four");
        assert!(read(file.path(), 3).is_err());
        fs::write(file.path(), [0xff]).unwrap();
        assert_eq!(
            read_text(file.path(), 4).unwrap_err().to_string(),
            "not text (UTF-8)"
        );
    }
}
