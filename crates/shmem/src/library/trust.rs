//! Whether code may be loaded from a path: who else could have put it there.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Whose files are taken, beside those that every user can write, which never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Root's and this user's.
    Known,
    /// Anyone's, where the user's environment names the folder: modules of a cluster belong to whoever installs them.
    Any,
}

/// Links that are followed, as many as the kernel does.
const MOST_LINKS: usize = 40;
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Refuses `path` if it is relative, or if it, a folder above it or a link on the way could be replaced by another
/// user.
///
/// A sticky folder (`/tmp`) may be above it, for there others can not replace what is not theirs. What does not exist
/// is refused only where others could make it.
pub fn check(path: &Path, owner: Owner) -> Result<(), String> {
    if !path.is_absolute() {
        return Err("a relative path, which depends on the current folder".into());
    }
    let mut rest: VecDeque<PathBuf> = parts(path).collect();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    // Whether others may make files in `at`.
    let mut shared = folder_of_others(&at, owner)?;
    while let Some(part) = rest.pop_front() {
        let next = at.join(&part);
        let Ok(found) = next.symlink_metadata() else {
            return match shared {
                true => Err(format!("{} can be made by every user", next.display())),
                false => Ok(()),
            };
        };
        if found.is_symlink() {
            check_owner(&next, found.uid(), owner)?;
            links += 1;
            if links > MOST_LINKS {
                return Err("too many links".into());
            }
            let target = next.read_link().map_err(|error| error.to_string())?;
            if target.is_absolute() {
                at = PathBuf::from("/");
                shared = false;
            }
            for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(part);
            }
            continue;
        }
        at = next;
        shared = folder_of_others(&at, owner)?;
    }
    Ok(())
}

/// The names of `path`, without the root.
fn parts(path: &Path) -> impl Iterator<Item = PathBuf> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    })
}

/// Refuses a file or folder of others. For a sticky folder, whether others may make files in it.
fn folder_of_others(path: &Path, owner: Owner) -> Result<bool, String> {
    let found = path.metadata().map_err(|error| error.to_string())?;
    check_owner(path, found.uid(), owner)?;
    let open = found.mode() & WRITABLE_BY_ALL != 0;
    let sticky = found.is_dir() && found.mode() & STICKY != 0;
    // Devices are not code.
    if open && !sticky {
        return Err(format!("every user may write {}", path.display()));
    }
    Ok(open)
}

fn check_owner(path: &Path, uid: u32, owner: Owner) -> Result<(), String> {
    let me = rustix::process::geteuid().as_raw();
    // Whoever owns the root folder can replace everything; in a user namespace that need not be user 0.
    let root = Path::new("/").metadata().map_or(0, |root| root.uid());
    if owner == Owner::Any || [0, me, root].contains(&uid) {
        return Ok(());
    }
    Err(format!("{} belongs to user {uid}", path.display()))
}

/// The program `name` in the first folder on `path` (as in PATH) that has it and is not refused. Else what was refused.
pub(crate) fn program_on(path: &std::ffi::OsStr, name: &str) -> Result<PathBuf, String> {
    let mut refused = Vec::new();
    for folder in std::env::split_paths(path) {
        let file = folder.join(name);
        let executable = file
            .metadata()
            .is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
        if !executable {
            continue;
        }
        match check(&file, Owner::Any) {
            Ok(()) => return Ok(file),
            Err(reason) => {
                refused.push(format!("{} on PATH is not used: {reason}", file.display()))
            }
        }
    }
    Err(match refused.is_empty() {
        true => format!("there is no {name} on PATH"),
        false => refused.join("; "),
    })
}

/// The program `name` on PATH. Relative entries of PATH, and files that every user may replace, are passed over.
///
/// Errors: one line that says so, with what was passed over and why.
pub fn find_program(name: &str) -> Result<PathBuf, String> {
    program_on(&std::env::var_os("PATH").unwrap_or_default(), name)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn refusal(path: &Path) -> String {
        check(path, Owner::Known).unwrap_err()
    }

    #[test]
    fn what_every_user_may_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        let file = inner.join("lib.so");
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "").unwrap();
        set(&inner, 0o755);
        set(&file, 0o644);
        assert_eq!(check(&file, Owner::Known), Ok(()));
        set(&file, 0o666);
        assert_eq!(
            refusal(&file),
            format!("every user may write {}", file.display())
        );
        set(&file, 0o644);
        set(&inner, 0o777);
        assert_eq!(
            refusal(&file),
            format!("every user may write {}", inner.display())
        );
        // As /tmp is: others may add to it, and replace only what is theirs.
        set(&inner, 0o1777);
        assert_eq!(check(&file, Owner::Known), Ok(()));
        let missing = inner.join("none");
        assert!(refusal(&missing).ends_with("can be made by every user"));
        set(&inner, 0o755);
        assert_eq!(check(&missing, Owner::Known), Ok(()));
    }

    #[test]
    fn links_are_looked_at_on_their_way() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("lib.so"), "").unwrap();
        set(&at("lib.so"), 0o644);
        fs::create_dir(at("open")).unwrap();
        symlink(at("lib.so"), at("open/link")).unwrap();
        symlink("open/link", at("good")).unwrap();
        symlink("open/../lib.so", at("around")).unwrap();
        assert_eq!(check(&at("good"), Owner::Known), Ok(()));
        assert_eq!(check(&at("around"), Owner::Known), Ok(()));
        set(&at("open"), 0o777);
        for link in ["good", "around"] {
            assert!(refusal(&at(link)).ends_with("/open"), "{link}");
        }
        symlink("endless", at("endless")).unwrap();
        assert_eq!(refusal(&at("endless")), "too many links");
    }

    #[test]
    fn relative_paths_are_refused() {
        for path in ["", ".", "lib", "../lib"] {
            assert!(refusal(Path::new(path)).starts_with("a relative path"));
        }
    }

    #[test]
    fn programs_come_from_absolute_folders_of_path() {
        let folder = tempfile::tempdir().unwrap();
        let (open, good) = (folder.path().join("open"), folder.path().join("good"));
        for (place, mode) in [(&open, 0o777), (&good, 0o755)] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("tool"), "").unwrap();
            set(&place.join("tool"), 0o755);
            set(place, mode);
        }
        let path = |folders: &[&Path]| std::env::join_paths(folders).unwrap();
        let both = path(&[Path::new("."), &open, &good]);
        assert_eq!(program_on(&both, "tool"), Ok(good.join("tool")));
        let reason = program_on(&path(&[&open]), "tool").unwrap_err();
        assert!(reason.contains("every user may write"), "{reason}");
        let reason = program_on(&path(&[&good]), "other").unwrap_err();
        assert_eq!(reason, "there is no other on PATH");
    }
}
