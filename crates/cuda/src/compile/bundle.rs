//! Code that was compiled beforehand: a file of compressed cubins that comes with a program.
//!
//! An entry is found by a SHA-256 hash of everything that went into it, so a file that was made from other sources has
//! nothing to give, and what it lacks is compiled as usual.
//!
//! The file, all numbers little-endian: a [`Head`]; the index, an [`Entry`] for each cubin; then the cubins, several one
//! after the other compressed as one XZ stream, a block. Cubins of one source for many types are alike: block by block
//! they take a third of what they take one by one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytemuck::{Pod, Zeroable};
use crosswarp_shmem::internal::library::{Owner, check, home};
use lzma_rust2::{LzmaOptions, XzOptions, XzReader, XzWriter};
use sha2::{Digest, Sha256};

use crate::arch::Arch;
use crate::compile::key::{Key, key};
use crate::compile::program::Options;
use crate::compile::source::Source;

const MAGIC: [u8; 8] = *b"cwkern1\n";
/// The most bytes of a block, and of an index: a larger number is damage.
const BOUND: u64 = 64 << 20;
/// A block ends with the cubin that makes it this long. (8 MiB take some 50 ms to read, and 0.7 % more of the file; 4 MiB 25,
/// and 5 % more.)
const BLOCK: usize = 10 << 20;
/// Blocks that are kept.
const RECENT: usize = 3;
/// Bytes of an instruction.
const INSTRUCTION: usize = 16;
/// XZ's own default.
const PRESET: u32 = 6;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Head {
    magic: [u8; 8],
    index_bytes: u64,
    index_hash: [u8; 32],
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    key: Key,
    cubin_hash: [u8; 32],
    arch: [u32; 2],
    /// Of the block: where it is, from the end of the index on, and its bytes, compressed and in full.
    block: u64,
    stored: u64,
    full: u64,
    /// Of the cubin, in the block.
    start: u64,
    len: u64,
}

/// Why a file is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The system's reason.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It does not begin as one, or its index does not match its hash.
    #[error("{} is no whole file of kernels", .0.display())]
    Damaged(PathBuf),
}

/// A file of compiled kernels, open for reading.
#[derive(Debug)]
pub struct Bundle {
    file: File,
    path: PathBuf,
    /// Where the cubins begin.
    start: u64,
    entries: BTreeMap<Key, Entry>,
    archs: BTreeSet<Arch>,
    /// The blocks that were asked for last, and where they are: what one command needs lies side by side. Threads read
    /// different ones at the same time.
    recent: Mutex<VecDeque<(u64, Arc<Block>)>>,
}

/// A block, once it is read; nothing if it can't be.
type Block = OnceLock<Option<Vec<u8>>>;

impl Bundle {
    /// Where it is below a prefix that has programs in `bin`.
    pub const PLACE: &str = "share/crosswarp/kernels.bundle";

    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, BundleError> {
        let path = path.into();
        let reason = |source| BundleError::File {
            path: path.clone(),
            source,
        };
        let file = File::open(&path).map_err(reason)?;
        let mut head = Head::zeroed();
        let read = file.read_exact_at(bytemuck::bytes_of_mut(&mut head), 0);
        let damaged = || BundleError::Damaged(path.clone());
        match read {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged()),
            other => other.map_err(reason)?,
        }
        let bytes = u64::from_le(head.index_bytes);
        let size = size_of::<Entry>() as u64;
        if head.magic != MAGIC || bytes > BOUND || !bytes.is_multiple_of(size) {
            return Err(damaged());
        }
        let mut index = vec![Entry::zeroed(); (bytes / size) as usize];
        let start = size_of::<Head>() as u64;
        let read = file.read_exact_at(bytemuck::cast_slice_mut(&mut index), start);
        let whole = Sha256::digest(bytemuck::cast_slice::<_, u8>(&index))[..] == head.index_hash;
        if read.is_err() || !whole {
            return Err(damaged());
        }
        let archs = index.iter().map(|entry| entry.arch.map(u32::from_le));
        Ok(Self {
            file,
            start: start + bytes,
            archs: archs
                .map(|[major, minor]| Arch::new(major, minor))
                .collect(),
            entries: index.into_iter().map(|entry| (entry.key, entry)).collect(),
            recent: Mutex::default(),
            path,
        })
    }

    /// The one that came with this program: `../share/crosswarp/kernels.bundle` from the program's folder, or
    /// `share/crosswarp/kernels.bundle` of the Python environment whose package this is; if it is there, whole, and no
    /// other user can have put it there.
    pub fn of_program() -> Option<&'static Self> {
        static BUNDLE: OnceLock<Option<Bundle>> = OnceLock::new();
        let open = || {
            let folder = match home() {
                Some(home) => home.to_owned(),
                None => std::env::current_exe().ok()?.parent()?.join(".."),
            };
            let path = folder.join(Self::PLACE).canonicalize().ok()?;
            check(&path, Owner::Any).ok()?;
            match Self::open(path) {
                Ok(bundle) => Some(bundle),
                Err(error) => {
                    tracing::warn!("{error}; kernels are compiled when they are used");
                    None
                }
            }
        };
        BUNDLE.get_or_init(open).as_ref()
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The architectures it has code for, in ascending order. Code for one runs on later ones of the same major number.
    pub fn archs(&self) -> impl Iterator<Item = Arch> {
        self.archs.iter().copied()
    }

    /// Whether it has code that runs on `arch`.
    pub fn serves(&self, arch: Arch) -> bool {
        self.archs.iter().any(|&have| runs_on(have, arch))
    }

    /// The cubin of `source` for `arch`, or for an earlier architecture of its major number.
    pub fn get(&self, source: &Source<'_>, arch: Arch, options: &Options) -> Option<Vec<u8>> {
        let serving = self.archs.iter().rev().filter(|&&have| runs_on(have, arch));
        serving
            .map(|&have| key(source, have, options, None))
            .find_map(|key| self.entry(&key))
    }

    fn entry(&self, key: &Key) -> Option<Vec<u8>> {
        let entry = self.entries.get(key)?;
        let block = u64::from_le(entry.block);
        let block = self.recent(block);
        let bytes = block.get_or_init(|| self.block(entry)).as_ref()?;
        let [start, len] = [entry.start, entry.len].map(|number| u64::from_le(number) as usize);
        let cubin = bytes.get(start..start.checked_add(len)?)?;
        (Sha256::digest(cubin)[..] == entry.cubin_hash).then(|| cubin.to_vec())
    }

    /// The block at `at`, read or not.
    fn recent(&self, at: u64) -> Arc<Block> {
        // Whoever fails with the lock has left it as it was, or without a block.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let place = recent.iter().position(|(of, _)| *of == at);
        let found = place.and_then(|place| recent.remove(place));
        let found = found.unwrap_or_else(|| (at, Arc::default()));
        let block = Arc::clone(&found.1);
        recent.truncate(RECENT - 1);
        recent.push_front(found);
        block
    }

    /// The block of `entry`.
    fn block(&self, entry: &Entry) -> Option<Vec<u8>> {
        let [block, stored, full] = [entry.block, entry.stored, entry.full].map(u64::from_le);
        if stored.max(full) > BOUND {
            return None;
        }
        let mut packed = vec![0; stored as usize];
        let at = self.start.checked_add(block)?;
        self.file.read_exact_at(&mut packed, at).ok()?;
        let mut bytes = Vec::with_capacity(full as usize);
        let reader = XzReader::new(&packed[..], false);
        // What is longer than it says is damaged; its cubins are found where they should be, or not at all.
        reader.take(full).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Whether code for `have` runs on `arch`.
fn runs_on(have: Arch, arch: Arch) -> bool {
    have.major == arch.major && have.minor <= arch.minor
}

/// What the file of these cubins holds.
pub(crate) fn file_of<'a>(cubins: impl Iterator<Item = ((Key, Arch), &'a Vec<u8>)>) -> Vec<u8> {
    let (mut index, mut all) = (Vec::<Entry>::new(), Vec::new());
    let (mut block, mut first) = (Vec::new(), 0);
    let mut cubins = cubins.peekable();
    while let Some(((key, arch), cubin)) = cubins.next() {
        block.resize(block.len().next_multiple_of(INSTRUCTION), 0);
        index.push(Entry {
            key,
            cubin_hash: Sha256::digest(cubin).into(),
            arch: [arch.major, arch.minor].map(u32::to_le),
            block: (all.len() as u64).to_le(),
            stored: 0,
            full: 0,
            start: (block.len() as u64).to_le(),
            len: (cubin.len() as u64).to_le(),
        });
        block.extend_from_slice(cubin);
        if block.len() >= BLOCK || cubins.peek().is_none() {
            let packed = compress(&block);
            for entry in &mut index[first..] {
                entry.stored = (packed.len() as u64).to_le();
                entry.full = (block.len() as u64).to_le();
            }
            all.extend(packed);
            first = index.len();
            block.clear();
        }
    }
    let index: &[u8] = bytemuck::cast_slice(&index);
    let head = Head {
        magic: MAGIC,
        index_bytes: (index.len() as u64).to_le(),
        index_hash: Sha256::digest(index).into(),
    };
    [bytemuck::bytes_of(&head), index, &all].concat()
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut options = XzOptions::with_preset(PRESET);
    // What a byte is likely to be follows from its place in an instruction: 4 % less.
    let lzma = &mut options.lzma_options;
    (lzma.lc, lzma.lp, lzma.pb) = (0, 4, 4);
    // A block and the cubin that ends it.
    lzma.dict_size = (BLOCK + (2 << 20)) as u32;
    // Half a percent less; reading takes as long.
    lzma.nice_len = LzmaOptions::NICE_LEN_MAX;
    let write = || {
        let mut writer = XzWriter::new(Vec::new(), options)?;
        writer.write_all(bytes)?;
        writer.finish()
    };
    write().expect("writing to memory does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Source<'static> = Source::new("a.cu", "a");
    const B: Source<'static> = Source::new("b.cu", "b");

    /// Two sources for 8.0 and 9.0, as if they had been compiled.
    fn bundle() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernels.bundle");
        let options = Options::new();
        let cubins: Vec<_> = [(A, 8), (B, 8), (A, 9), (B, 9)]
            .into_iter()
            .map(|(source, major)| {
                let arch = Arch::new(major, 0);
                let cubin = format!("{} for {arch}", source.text.repeat(1000)).into_bytes();
                ((key(&source, arch, &options, None), arch), cubin)
            })
            .collect();
        let bytes = file_of(cubins.iter().map(|(key, cubin)| (*key, cubin)));
        std::fs::write(&path, &bytes).unwrap();
        (folder, path, bytes)
    }

    #[test]
    fn what_was_compiled_for_an_earlier_minor_number_serves_a_later_one() {
        let (_folder, path, bytes) = bundle();
        assert!(bytes.len() < 1200, "{}", bytes.len());
        let bundle = Bundle::open(&path).unwrap();
        assert!(bundle.archs().eq([Arch::new(8, 0), Arch::new(9, 0)]));
        let got = |source: &Source<'_>, arch| {
            let cubin = bundle.get(source, arch, &Options::new())?;
            Some(String::from_utf8(cubin).unwrap())
        };
        let a = "a".repeat(1000);
        assert_eq!(got(&A, Arch::new(8, 6)).unwrap(), format!("{a} for sm_80"));
        assert_eq!(got(&A, Arch::new(9, 0)).unwrap(), format!("{a} for sm_90"));
        assert_eq!(got(&A, Arch::new(10, 0)), None);
        assert_eq!(got(&A, Arch::new(7, 5)), None);
        let options = Options::new().define("N", 1);
        assert_eq!(bundle.get(&A, Arch::new(9, 0), &options), None);
        let changed = Source::new("a.cu", "a changed");
        assert_eq!(got(&changed, Arch::new(9, 0)), None);
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let (_folder, path, good) = bundle();
        let all = |path: &Path| -> Option<Vec<Vec<u8>>> {
            let bundle = Bundle::open(path).ok()?;
            let get = |(source, major)| bundle.get(source, Arch::new(major, 0), &Options::new());
            [(&A, 8), (&B, 8), (&A, 9), (&B, 9)]
                .into_iter()
                .map(get)
                .collect()
        };
        let whole = all(&path).unwrap();
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 0x10;
            std::fs::write(&path, &bad).unwrap();
            // A flag of a compressed stream may mean nothing to its cubins.
            assert!(
                all(&path).is_none_or(|cubins| cubins == whole),
                "byte {index}"
            );
            std::fs::write(&path, &good[..index]).unwrap();
            assert_eq!(all(&path), None, "cut at {index}");
        }
    }
}
