//! The cache of cubins on disk.
//!
//! One file per cubin, named after a SHA-256 hash of everything that goes into it. The file is a
//! header (magic, hash of the payload) and the payload. It is written under another name and then
//! renamed, so that a reader, in this process or another, sees a whole file or none. A file that
//! does not match its hash counts as absent and is replaced. Reading a file marks it as used; when the files
//! outgrow the bound, those unused for longest go.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::arch::Arch;
use crate::compile::bundle::Bundle;
use crate::compile::key::{HASH, Key, key};
use crate::compile::program::{CompileError, Options, compile_with, supporting};
use crate::compile::source::Source;

const MAGIC: [u8; 8] = *b"cwcubin1";
const SUFFIX: &str = ".cubin";
/// All entries together, bytes.
const BOUND: u64 = 256 << 20;
/// An unfinished file this old was left by a process that died.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A folder of compiled code.
///
/// Safe to share between threads, processes and versions of this crate. A folder that can not be
/// used (not writable, or writable by other users, who could plant code there) is no error: then
/// everything is compiled afresh.
///
/// ```
/// use crosswarp_cuda::{Arch, Cache, Options, Source};
/// let folder = tempfile::tempdir().unwrap();
/// let cache = Cache::at(folder.path().join("cubins"));
/// let source = Source::new("nop.cu", "extern \"C\" __global__ void nop() {}");
/// // The second call reads the file that the first has left.
/// let first = cache.compile(&source, Arch::new(9, 0), &Options::new());
/// let second = cache.compile(&source, Arch::new(9, 0), &Options::new());
/// assert_eq!(first, second);
/// ```
#[derive(Debug, Clone)]
pub struct Cache {
    folder: Option<PathBuf>,
    bound: u64,
    /// What is looked up before.
    bundle: Option<&'static Bundle>,
}

type Compiled = Result<Vec<u8>, CompileError>;

static TELL: OnceLock<fn(Option<&Path>)> = OnceLock::new();

impl Cache {
    /// The user's cache: `$CROSSWARP_CACHE`, else `$XDG_CACHE_HOME/crosswarp`, else
    /// `~/.cache/crosswarp`; none of them set, nothing is cached. Kernels of the program's [`Bundle`] are taken from
    /// there.
    pub fn of_user() -> Self {
        Self {
            bundle: Bundle::of_program(),
            ..Self::of_compiler()
        }
    }

    /// The user's cache, of what this machine has compiled alone.
    pub(crate) fn of_compiler() -> Self {
        Self {
            folder: user_folder(|name| std::env::var_os(name).map(PathBuf::from)),
            bound: BOUND,
            bundle: None,
        }
    }

    /// A cache in `folder`, which is created with mode 0700 when it is first needed.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: Some(folder.into()),
            bound: BOUND,
            bundle: None,
        }
    }

    /// Has `tell` called when this process compiles for the first time, which takes seconds; with the folder that keeps
    /// what is compiled, if any does. The first `tell` of a process counts.
    pub fn on_first_compilation(tell: fn(Option<&Path>)) {
        let _ = TELL.set(tell);
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// [`compile`](crate::compile()), or the file of an earlier such call. What the program's bundle has needs no NVRTC.
    pub fn compile(
        &self,
        source: &Source<'_>,
        arch: Arch,
        options: &Options,
    ) -> Result<Vec<u8>, CompileError> {
        let bundled = self
            .bundle
            .and_then(|bundle| bundle.get(source, arch, options));
        if let Some(cubin) = bundled {
            return Ok(cubin);
        }
        let nvrtc = supporting(arch)?;
        let key = key(source, arch, options, Some(nvrtc.version()));
        if let Some(cubin) = self.get(&hex(&key)) {
            return Ok(cubin);
        }
        once_at_a_time((self.folder.clone(), key), || {
            // Another thread may have left it since.
            if let Some(cubin) = self.get(&hex(&key)) {
                return Ok(cubin);
            }
            static FIRST: Once = Once::new();
            if let Some(tell) = TELL.get() {
                FIRST.call_once(|| tell(self.folder()));
            }
            let cubin = compile_with(nvrtc, source, arch, options)?;
            // What can not be kept is compiled again next time.
            let _ = self.put(&hex(&key), &cubin);
            Ok(cubin)
        })
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        let folder = self.folder.as_deref().filter(|folder| is_private(folder))?;
        let path = folder.join(format!("{key}{SUFFIX}"));
        let mut bytes = fs::read(&path).ok()?;
        let header = bytes.get(..MAGIC.len() + HASH)?;
        let payload = &bytes[MAGIC.len() + HASH..];
        if header[..MAGIC.len()] != MAGIC || header[MAGIC.len()..] != Sha256::digest(payload)[..] {
            return None;
        }
        // Marks it as used; a file that may not be touched is still good to read.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes.split_off(MAGIC.len() + HASH))
    }

    /// Whether what is compiled can be kept: the folder is there or can be made, it is ours, and we may write to it.
    pub(crate) fn keeps(&self) -> bool {
        self.folder.as_deref().is_some_and(|folder| {
            make_private(folder).is_ok()
                && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
        })
    }

    fn put(&self, key: &str, payload: &[u8]) -> io::Result<()> {
        let Some(folder) = self.folder.as_deref() else {
            return Ok(());
        };
        make_private(folder)?;
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unfinished = folder.join(format!(".{key}.{}.{count}.tmp", std::process::id()));
        let written = write_new(&unfinished, payload)
            .and_then(|()| fs::rename(&unfinished, folder.join(format!("{key}{SUFFIX}"))));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        self.trim(folder);
        written
    }

    /// Removes the entries unused for longest until the rest fits the bound, and abandoned files.
    fn trim(&self, folder: &Path) {
        let mut entries = Vec::new();
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let Ok(about) = entry.metadata() else {
                continue;
            };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if is_entry(name) {
                entries.push((used, about.len(), entry.path()));
            } else if name.starts_with('.')
                && name.ends_with(".tmp")
                && used.elapsed().is_ok_and(|age| age > ABANDONED)
            {
                let _ = fs::remove_file(entry.path());
            }
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|entry| entry.1).sum();
        // The newest entry stays even if it alone is over the bound.
        for (_, size, path) in entries.iter().rev().skip(1).rev() {
            if total <= self.bound {
                break;
            }
            let _ = fs::remove_file(path);
            total -= size;
        }
    }
}

/// By the folder that is to keep it.
type UnderWay = BTreeMap<(Option<PathBuf>, Key), Arc<OnceLock<Compiled>>>;

/// What threads of this process are compiling. There is nothing a failed one could leave undone.
fn under_way() -> MutexGuard<'static, UnderWay> {
    static UNDER_WAY: Mutex<UnderWay> = Mutex::new(BTreeMap::new());
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `compile` gives. Threads that ask for the same at the same time, as PEs do, get what one of them has compiled.
fn once_at_a_time(place: (Option<PathBuf>, Key), compile: impl FnOnce() -> Compiled) -> Compiled {
    let slot = under_way().entry(place.clone()).or_default().clone();
    let compiled = slot.get_or_init(|| {
        let compiled = compile();
        // Who comes from now on finds the file.
        under_way().remove(&place);
        compiled
    });
    compiled.clone()
}

fn user_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|path: &PathBuf| !path.as_os_str().is_empty());
    // The XDG rule: a path that is not absolute counts as unset.
    let absolute = |name| set(name).filter(|path| path.is_absolute());
    set("CROSSWARP_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|base| base.join("crosswarp")))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache/crosswarp")))
}

/// Whether only this user can have put files into `folder`.
fn is_private(folder: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    fs::metadata(folder)
        .is_ok_and(|about| about.is_dir() && about.uid() == me && about.mode() & 0o022 == 0)
}

/// Makes the folder, unless it is there; an error if it is not ours alone.
fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    if !is_private(folder) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

fn is_entry(name: &str) -> bool {
    name.strip_suffix(SUFFIX)
        .is_some_and(|key| key.len() == 2 * HASH && key.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn write_new(path: &Path, payload: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(&MAGIC)?;
    file.write_all(&Sha256::digest(payload))?;
    file.write_all(payload)?;
    // The file system's own clock is coarser than the one that marks entries as used.
    file.set_modified(SystemTime::now())
}

fn hex(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn name(byte: u8) -> String {
        format!("{byte:02x}").repeat(HASH)
    }

    fn fresh() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("a/b"));
        (folder, cache)
    }

    #[test]
    fn what_was_put_is_got_from_a_private_folder() {
        let (_folder, cache) = fresh();
        assert_eq!(cache.get(&name(1)), None);
        cache.put(&name(1), b"code").unwrap();
        assert_eq!(cache.get(&name(1)).as_deref(), Some(&b"code"[..]));
        cache.put(&name(2), b"").unwrap();
        assert_eq!(cache.get(&name(2)).as_deref(), Some(&b""[..]));
        let mode = fs::metadata(cache.folder().unwrap()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        let left: Vec<_> = fs::read_dir(cache.folder().unwrap())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert!(
            left.iter().all(|name| is_entry(name.to_str().unwrap())),
            "{left:?}"
        );
    }

    #[test]
    fn a_cache_without_a_folder_of_its_own_keeps_nothing() {
        let (folder, cache) = fresh();
        assert!(cache.keeps());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(!Cache::at(folder.path().join("file/a")).keeps());
        fs::set_permissions(cache.folder().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!cache.keeps());
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let (_folder, cache) = fresh();
        cache.put(&name(1), b"some code").unwrap();
        let path = cache.folder().unwrap().join(format!("{}{SUFFIX}", name(1)));
        let good = fs::read(&path).unwrap();
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            assert_eq!(cache.get(&name(1)), None, "byte {index}");
            fs::write(&path, &good[..index]).unwrap();
            assert_eq!(cache.get(&name(1)), None, "cut at {index}");
        }
        cache.put(&name(1), b"some code").unwrap();
        assert_eq!(cache.get(&name(1)).as_deref(), Some(&b"some code"[..]));
    }

    #[test]
    fn the_entries_unused_for_longest_go_first() {
        let (_folder, cache) = fresh();
        let cache = Cache {
            bound: 3 * (1000 + 40),
            ..cache
        };
        let age = |key: u8, seconds: u64| {
            let path = cache
                .folder()
                .unwrap()
                .join(format!("{}{SUFFIX}", name(key)));
            File::open(path)
                .unwrap()
                .set_modified(SystemTime::now() - Duration::from_secs(seconds))
                .unwrap();
        };
        for key in 0..3 {
            cache.put(&name(key), &[key; 1000]).unwrap();
        }
        (0..3).for_each(|key| age(key, 100 - u64::from(key)));
        assert!(cache.get(&name(0)).is_some(), "marks entry 0 as used");
        let stranger = cache.folder().unwrap().join("notes.txt");
        fs::write(&stranger, [0; 5000]).unwrap();
        let abandoned = cache.folder().unwrap().join(".x.1.2.tmp");
        fs::write(&abandoned, "").unwrap();
        File::open(&abandoned)
            .unwrap()
            .set_modified(SystemTime::now() - 2 * ABANDONED)
            .unwrap();

        cache.put(&name(3), &[3; 1000]).unwrap();
        let kept: Vec<bool> = (0..4).map(|key| cache.get(&name(key)).is_some()).collect();
        assert_eq!(kept, [true, false, true, true]);
        assert!(stranger.exists() && !abandoned.exists());

        cache.put(&name(4), &[4; 9000]).unwrap();
        let kept: Vec<bool> = (0..5).map(|key| cache.get(&name(key)).is_some()).collect();
        assert_eq!(kept, [false, false, false, false, true]);
    }

    #[test]
    fn a_folder_open_to_others_is_not_used() {
        let (_folder, cache) = fresh();
        cache.put(&name(1), b"code").unwrap();
        fs::set_permissions(cache.folder().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(cache.get(&name(1)), None);
        assert!(cache.put(&name(2), b"code").is_err());
    }

    #[test]
    fn a_folder_that_can_not_be_made_is_an_ignored_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let cache = Cache::at(file.join("below"));
        assert!(cache.put(&name(1), b"code").is_err());
        assert_eq!(cache.get(&name(1)), None);
        let none = Cache {
            folder: None,
            bundle: None,
            bound: BOUND,
        };
        assert!(none.put(&name(1), b"code").is_ok());
        assert_eq!(none.get(&name(1)), None);
    }

    #[test]
    fn writers_and_readers_at_once_see_whole_entries() {
        let (_folder, cache) = fresh();
        let payload = vec![7u8; 100_000];
        cache.put(&name(1), &payload).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..50).for_each(|_| cache.put(&name(1), &payload).unwrap()));
            }
            for _ in 0..300 {
                assert!(cache.get(&name(1)).is_some_and(|bytes| bytes == payload));
            }
        });
    }

    #[test]
    fn threads_that_want_the_same_share_a_compilation() {
        let (one, other) = ((None, [1; HASH]), (None, [2; HASH]));
        let (compiled, begun) = (AtomicU64::new(0), std::sync::Barrier::new(2));
        let compile = |text: &'static str| {
            compiled.fetch_add(1, Ordering::Relaxed);
            Ok(text.as_bytes().to_vec())
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                once_at_a_time(one.clone(), || {
                    begun.wait();
                    // The other has found it under way: the map, this thread and the other one.
                    while Arc::strong_count(&under_way()[&one]) < 3 {
                        std::thread::yield_now();
                    }
                    compile("first")
                })
            });
            begun.wait();
            let same = once_at_a_time(one.clone(), || compile("second"));
            assert_eq!(same, Ok(b"first".to_vec()));
            assert_eq!(first.join().unwrap(), same);
        });
        let different = once_at_a_time(other, || compile("different"));
        assert_eq!(different, Ok(b"different".to_vec()));
        // Nothing is kept when the compilation is over.
        let again = once_at_a_time(one.clone(), || compile("again"));
        assert_eq!(again, Ok(b"again".to_vec()));
        assert_eq!(compiled.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn the_users_folder_follows_the_environment() {
        let with = |set: &[(&str, &str)]| {
            user_folder(|name| {
                set.iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| value.into())
            })
        };
        let home = ("HOME", "/home/u");
        assert_eq!(with(&[home]), Some("/home/u/.cache/crosswarp".into()));
        assert_eq!(
            with(&[home, ("XDG_CACHE_HOME", "/c")]),
            Some("/c/crosswarp".into())
        );
        assert_eq!(
            with(&[home, ("XDG_CACHE_HOME", "c")]),
            Some("/home/u/.cache/crosswarp".into())
        );
        assert_eq!(
            with(&[home, ("CROSSWARP_CACHE", "/x"), ("XDG_CACHE_HOME", "/c")]),
            Some("/x".into())
        );
        assert_eq!(
            with(&[home, ("CROSSWARP_CACHE", "")]),
            Some("/home/u/.cache/crosswarp".into())
        );
        assert_eq!(with(&[]), None);
    }
}
