//! Saving the state of a solve and going on from it.
//!
//! # The file
//! Little-endian throughout: the header (eight words of 64 bits: magic, version, identity, bits per element, columns,
//! rows, sweeps done, exponent), the norm of every sweep (`f64`), the field row by row, and the CRC-32 of all that (32
//! bits). The identity is a hash of everything that determines the sweeps: sizes, element type, sides, initial field,
//! mask, source, spacing and kind of norm; not of the tolerance, the sweep limit or the number of PEs, which may
//! change.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::field::gather;
use crate::field::rows::LocalRows;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::staged_file::{OutputError, StagedFile};

const MAGIC: u64 = u64::from_le_bytes(*b"CROSSWRP");
/// Without an exponent (it is 0), and with one.
const VERSIONS: [u64; 2] = [1, 2];
const HEADER_WORDS: usize = 8;

/// A checkpoint that could not be written or is no use.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused.
    #[error("checkpoint {}: can not {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Not a checkpoint of this kind at all.
    #[error("{} is not a Crosswarp checkpoint", path.display())]
    NotACheckpoint {
        /// The file.
        path: PathBuf,
    },
    /// A later format.
    #[error("checkpoint {} has format version {version}; this program reads versions 1 and 2", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// The file is shorter or longer than its header says.
    #[error("checkpoint {} has {length} bytes, but its header asks for {expected}: it is truncated or damaged", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: u64,
        /// The length it should have.
        expected: u64,
    },
    /// A folder, a pipe or a device.
    #[error("checkpoint {} is not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// More sweeps than this machine can hold the norms of.
    #[error(
        "checkpoint {} claims {sweeps} sweeps, whose norms do not fit the memory of this machine ({memory} bytes)",
        path.display()
    )]
    Sweeps {
        /// The file.
        path: PathBuf,
        /// Their number.
        sweeps: u64,
        /// Memory of the machine.
        memory: u64,
    },
    /// The checksum does not match.
    #[error("checkpoint {} is damaged: its checksum is {found:08x}, its content has {computed:08x}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The checksum in the file.
        found: u32,
        /// The checksum of the content.
        computed: u32,
    },
    /// A checkpoint of another grid or element type.
    #[error("checkpoint {} holds {found}, but the problem is {expected}", path.display())]
    OtherGrid {
        /// The file.
        path: PathBuf,
        /// Grid and type in the file.
        found: String,
        /// Grid and type of the problem.
        expected: String,
    },
    /// A checkpoint of another problem on the same grid.
    #[error("checkpoint {} is of another problem: boundaries, initial field, mask, source, spacing or norm differ", path.display())]
    OtherProblem {
        /// The file.
        path: PathBuf,
    },
    /// A checkpoint whose values are held in another scale.
    #[error("checkpoint {} holds 2^{} times its values, this solve 2^{}: it is of another problem or by an earlier version", path.display(), -.found, -.expected)]
    OtherScale {
        /// The file.
        path: PathBuf,
        /// The exponent in the file.
        found: i64,
        /// That of the problem.
        expected: i64,
    },
    /// Another PE has the reason.
    #[error("checkpoint {} failed on another PE, which tells why", path.display())]
    Elsewhere {
        /// The file.
        path: PathBuf,
    },
}

/// What a checkpoint must agree on with the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub bits: u64,
    pub nx: u64,
    pub ny: u64,
    pub hash: u64,
    /// The values are 2^−exponent times those of the problem.
    pub exponent: i32,
}

/// Combines the checksums of parts into an identity; the order of the parts does not matter, their index does.
pub(crate) fn mix(index: u64, checksum: u32) -> u64 {
    // The finaliser of SplitMix64.
    let mut hash = (index << 32 | u64::from(checksum)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Writes the state to `path`; PE 0 writes, all take part.
///
/// The file appears under its name only once it is complete and on the disk; on failure the old one stays and nothing
/// else is left. The inner error is about the file, the outer one about the PEs.
pub(crate) fn save<F: Real, R: LocalRows<F>>(
    pe: &Pe,
    reduction: &Reduction<'_>,
    field: &R,
    path: &Path,
    identity: &Identity,
    history: &[f64],
) -> Result<Result<(), CheckpointError>, R::Error> {
    let failed = |error| match error {
        OutputError::Create { path, source } => CheckpointError::Io {
            path,
            action: "create",
            source,
        },
        OutputError::Write { path, source, .. } => CheckpointError::Io {
            path,
            action: "write",
            source,
        },
    };
    let mut written = Ok(());
    if pe.my_pe() == 0 {
        let mut writer = Writer::create(path);
        if let Ok(writer) = &mut writer {
            written = writer.begin(identity, history);
        }
        let streamed = gather::stream(pe, field, |values| match &mut writer {
            Ok(writer) => writer.write(bytemuck::cast_slice(values)),
            Err(_) => Ok(()),
        })?;
        let written_all = match writer {
            Ok(writer) => written.and(streamed).and_then(|()| writer.finish()),
            Err(error) => Err(error),
        };
        return Ok(finish_save(reduction, path, written_all.map_err(failed))?);
    }
    if let Err(impossible) = gather::stream(pe, field, |_| Ok::<(), std::convert::Infallible>(()))?
    {
        match impossible {}
    }
    Ok(finish_save(reduction, path, Ok(()))?)
}

/// All PEs learn whether PE 0 succeeded.
fn finish_save(
    reduction: &Reduction<'_>,
    path: &Path,
    mine: Result<(), CheckpointError>,
) -> Result<Result<(), CheckpointError>, PeError> {
    let mut failures = [u64::from(mine.is_err())];
    reduction.sum(&mut failures)?;
    Ok(match mine {
        Ok(()) if failures[0] > 0 => Err(CheckpointError::Elsewhere {
            path: path.to_owned(),
        }),
        mine => mine,
    })
}

/// A file being written, and the checksum of what it holds so far.
struct Writer {
    file: StagedFile,
    checksum: Hasher,
}

impl Writer {
    fn create(path: &Path) -> Result<Writer, OutputError> {
        Ok(Writer {
            file: StagedFile::create(path)?,
            checksum: Hasher::new(),
        })
    }

    fn begin(&mut self, identity: &Identity, history: &[f64]) -> Result<(), OutputError> {
        let Identity {
            bits,
            nx,
            ny,
            hash,
            exponent,
        } = *identity;
        let version = VERSIONS[usize::from(exponent != 0)];
        let (sweeps, exponent) = (history.len() as u64, i64::from(exponent) as u64);
        for word in [MAGIC, version, hash, bits, nx, ny, sweeps, exponent] {
            self.write(&word.to_le_bytes())?;
        }
        for norm in history {
            self.write(&norm.to_le_bytes())?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.checksum.update(bytes);
        self.file.put(bytes)
    }

    fn finish(mut self) -> Result<(), OutputError> {
        let checksum = self.checksum.finalize();
        self.file.put(&checksum.to_le_bytes())?;
        self.file.commit_to_disk()
    }
}

/// Checks the checkpoint `path`, loads this PE's rows from it and returns the norms of the sweeps done.
///
/// Collective. Every PE reads the whole file, so that each knows the reason of a refusal by itself. The inner error is
/// about the file, the outer one about the PEs; when the inner one is an error it is so on every PE.
pub(crate) fn resume<F: Real, R: LocalRows<F>>(
    reduction: &Reduction<'_>,
    field: &mut R,
    path: &Path,
    identity: &Identity,
) -> Result<Result<Vec<f64>, CheckpointError>, R::Error> {
    let mut unpacked = Ok(());
    let loaded = load(field, path, identity, reduction.n_pes(), &mut unpacked);
    unpacked?;
    let mut failures = [u64::from(loaded.is_err())];
    reduction.sum(&mut failures)?;
    Ok(match loaded {
        Ok(_) if failures[0] > 0 => Err(CheckpointError::Elsewhere {
            path: path.to_owned(),
        }),
        loaded => loaded,
    })
}

/// `unpacked`: whether the field took its rows.
fn load<F: Real, R: LocalRows<F>>(
    field: &mut R,
    path: &Path,
    identity: &Identity,
    n_pes: usize,
    unpacked: &mut Result<(), R::Error>,
) -> Result<Vec<f64>, CheckpointError> {
    let failed = |action| {
        move |source| CheckpointError::Io {
            path: path.to_owned(),
            action,
            source,
        }
    };
    let path_buf = || path.to_owned();
    let file = open_regular(path)
        .map_err(failed("open"))?
        .ok_or_else(|| CheckpointError::NotAFile { path: path_buf() })?;
    let length = file.metadata().map_err(failed("open"))?.len();
    if length < 8 * HEADER_WORDS as u64 {
        return Err(CheckpointError::NotACheckpoint { path: path_buf() });
    }
    let mut reader = Reader {
        file: BufReader::with_capacity(1 << 18, file),
        checksum: Hasher::new(),
    };
    let mut header = [0u64; HEADER_WORDS];
    for word in &mut header {
        *word = reader.word().map_err(failed("read"))?;
    }
    let [magic, version, hash, bits, nx, ny, sweeps, exponent] = header;
    if magic != MAGIC {
        return Err(CheckpointError::NotACheckpoint { path: path_buf() });
    }
    if !VERSIONS.contains(&version) {
        return Err(CheckpointError::Version {
            path: path_buf(),
            version,
        });
    }
    if (bits, nx, ny) != (identity.bits, identity.nx, identity.ny) {
        let describe = |nx, ny, bits| format!("{nx} x {ny} points of f{bits}");
        return Err(CheckpointError::OtherGrid {
            path: path_buf(),
            found: describe(nx, ny, bits),
            expected: describe(identity.nx, identity.ny, identity.bits),
        });
    }
    // The sizes are those of a checked problem, but the count of sweeps may be anything.
    let field_bytes = nx * ny * (bits / 8);
    let expected = sweeps
        .checked_mul(8)
        .and_then(|norms| norms.checked_add(field_bytes + 8 * HEADER_WORDS as u64 + 4))
        .unwrap_or(u64::MAX);
    if length != expected {
        return Err(CheckpointError::Length {
            path: path_buf(),
            length,
            expected,
        });
    }
    // A file with holes has any length. Every PE holds the norms.
    let memory = memory();
    let held = (8 * sweeps).saturating_mul(n_pes as u64);
    let mut history = Vec::new();
    if held > memory || history.try_reserve_exact(sweeps as usize).is_err() {
        return Err(CheckpointError::Sweeps {
            path: path_buf(),
            sweeps,
            memory,
        });
    }
    for _ in 0..sweeps {
        history.push(f64::from_bits(reader.word().map_err(failed("read"))?));
    }
    let own = field.own();
    let rows = field.partition().total();
    let rows_at_once = ((1 << 16) / field.row_len()).max(1);
    let mut values = Vec::new();
    for first in (0..rows).step_by(rows_at_once) {
        let end = (first + rows_at_once).min(rows);
        values.clear();
        values.resize((end - first) * field.row_len(), F::ZERO);
        reader
            .fill(bytemuck::cast_slice_mut(&mut values))
            .map_err(failed("read"))?;
        let mine = first.max(own.start)..end.min(own.end);
        if !mine.is_empty() {
            let part = (mine.start - first) * field.row_len()..(mine.end - first) * field.row_len();
            if unpacked.is_ok() {
                *unpacked = field.unpack(mine.start as isize, &values[part]);
            }
        }
    }
    let computed = reader.checksum.clone().finalize();
    let mut found = [0; 4];
    reader.fill(&mut found).map_err(failed("read"))?;
    let found = u32::from_le_bytes(found);
    if found != computed {
        return Err(CheckpointError::Damaged {
            path: path_buf(),
            found,
            computed,
        });
    }
    let (found, expected) = (exponent as i64, i64::from(identity.exponent));
    if found != expected {
        return Err(CheckpointError::OtherScale {
            path: path_buf(),
            found,
            expected,
        });
    }
    if hash != identity.hash {
        return Err(CheckpointError::OtherProblem { path: path_buf() });
    }
    Ok(history)
}

/// Opens a regular file; `None` for a pipe, device or folder, which is not waited for.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    // Before opening, since that can have an effect on a device; after it, since the name may then be another file's.
    // Without waiting, as opening a pipe would for its writer.
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Memory of this machine and what it can swap, in bytes.
fn memory() -> u64 {
    let found = rustix::system::sysinfo();
    (found.totalram + found.totalswap).saturating_mul(u64::from(found.mem_unit))
}

/// A file being read, and the checksum of what was read so far.
struct Reader {
    file: BufReader<File>,
    checksum: Hasher,
}

impl Reader {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(bytes)?;
        self.checksum.update(bytes);
        Ok(())
    }

    fn word(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

#[cfg(target_endian = "big")]
compile_error!(
    "checkpoints are written as the elements lie in memory, which must be little-endian"
);
