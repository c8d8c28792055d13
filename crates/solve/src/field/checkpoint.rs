//! Saving the state of a solve and going on from it.
//!
//! # The file
//! Little-endian throughout: the header (eight words of 64 bits: magic, version, identity, bits per element, columns,
//! rows, number of norms, exponent; of methods that look at the residual, which are version 3, four more: planes, fields,
//! 1 + the number of cycles after which conjugate gradients were taken or 0, and their ⟨z, r⟩), the norm of every sweep
//! (`f64`; in version 3 that before the first step and that after each), the fields row by row (in version 3 as `f64`, a
//! row being the rows of all fields), and the CRC-32 of all that (32 bits). How many fields there are tells the methods of
//! version 3 apart. The identity is a hash of everything that determines the sweeps: sizes, element type, sides, initial field,
//! mask, source, spacing and kind of norm; not of the tolerance, the sweep limit or the number of PEs, which may
//! change.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;

use crate::element::Real;
use crate::field::gather;
use crate::field::rows::LocalRows;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::staged_file::{OutputError, StagedFile};

const MAGIC: u64 = u64::from_le_bytes(*b"CROSSWRP");
/// Sweeps without an exponent (it is 0), and with one; methods that look at the residual.
const VERSIONS: [u64; 3] = [1, 2, OF_RESIDUALS];
const OF_RESIDUALS: u64 = 3;
const HEADER_WORDS: usize = 8;
/// Words of a header of version 3 that others do not have.
const STEPS_WORDS: usize = 4;

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
    #[error("checkpoint {} has format version {version}; this program reads versions 1 to 3", path.display())]
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
    /// A checkpoint of another kind of method.
    #[error("checkpoint {} holds {found}, but the method makes {expected}", path.display())]
    OtherMethod {
        /// The file.
        path: PathBuf,
        /// What is in the file: "Jacobi sweeps", "cycles", "steps of Chebyshev's iteration" or "steps of conjugate gradients
        /// without cycles".
        found: &'static str,
        /// What the method makes, in the same words.
        expected: &'static str,
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

/// What a checkpoint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointKind {
    /// Jacobi sweeps.
    Sweeps,
    /// Multigrid cycles, alone or as a preconditioner.
    Cycles,
    /// Steps of Chebyshev's iteration.
    Chebyshev,
    /// Steps of conjugate gradients without cycles.
    Gradients,
}

impl CheckpointKind {
    /// That of a checkpoint of `fields` fields.
    fn of(version: u64, fields: u64) -> Option<CheckpointKind> {
        match (version, fields) {
            (OF_RESIDUALS, 1 | 4) => Some(CheckpointKind::Cycles),
            (OF_RESIDUALS, 2) => Some(CheckpointKind::Chebyshev),
            (OF_RESIDUALS, 3) => Some(CheckpointKind::Gradients),
            (OF_RESIDUALS, _) => None,
            _ => Some(CheckpointKind::Sweeps),
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            CheckpointKind::Sweeps => "Jacobi sweeps",
            CheckpointKind::Cycles => "cycles",
            CheckpointKind::Chebyshev => "steps of Chebyshev's iteration",
            CheckpointKind::Gradients => "steps of conjugate gradients without cycles",
        }
    }
}

/// What a checkpoint must agree on with the problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub bits: u64,
    pub nx: u64,
    pub ny: u64,
    /// Planes; 1 of what is no box.
    pub nz: u64,
    pub hash: u64,
    /// The values are 2^−exponent times those of the problem.
    pub exponent: i32,
}

/// What a checkpoint of a method that looks at the residual holds besides the norms and the field.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StepsState {
    /// Fields, of `f64`: that of the problem (alone: of cycles); with it the step of Chebyshev's iteration; the residual and
    /// the direction of conjugate gradients; with cycles, α times A times the direction, too.
    pub fields: u64,
    /// The number of cycles after which conjugate gradients were taken.
    pub gradients_from: Option<u64>,
    /// ⟨z, r⟩ of conjugate gradients.
    pub inner: f64,
}

impl StepsState {
    fn words(&self, nz: u64) -> [u64; STEPS_WORDS] {
        let from = self.gradients_from.map_or(0, |from| from + 1);
        [nz, self.fields, from, self.inner.to_bits()]
    }

    fn of([nz, fields, from, inner]: [u64; STEPS_WORDS]) -> (u64, StepsState) {
        let state = StepsState {
            fields,
            gradients_from: from.checked_sub(1),
            inner: f64::from_bits(inner),
        };
        (nz, state)
    }
}

/// Combines the checksums of parts into an identity; the order of the parts does not matter, their index does.
pub(crate) fn mix(index: u64, checksum: u32) -> u64 {
    // The finaliser of SplitMix64.
    let mut hash = (index << 32 | u64::from(checksum)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Writes the state to `path`; PE 0 writes, all take part. `steps`: of version 3, whose rows hold all their fields' rows.
///
/// The file appears under its name only once it is complete and on the disk; on failure the old one stays and nothing
/// else is left. The inner error is about the file, the outer one about the PEs.
pub(crate) fn save<F: Real, R: LocalRows<F>>(
    reduction: &Reduction<'_>,
    field: &R,
    path: &Path,
    identity: &Identity,
    history: &[f64],
    steps: Option<StepsState>,
) -> Result<Result<(), CheckpointError>, R::Error> {
    let pe = reduction.pe();
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
            written = writer.begin(identity, history, steps);
        }
        let streamed = gather::stream(pe, field, |values| match &mut writer {
            Ok(writer) => writer.write(bytemuck::cast_slice(values)),
            Err(_) => Ok(()),
        })?;
        let written_all = match writer {
            Ok(writer) => written.and(streamed).and_then(|()| writer.finish()),
            Err(error) => Err(error),
        };
        return Ok(agreed(reduction, path, written_all.map_err(failed))?);
    }
    if let Err(impossible) = gather::stream(pe, field, |_| Ok::<(), std::convert::Infallible>(()))?
    {
        match impossible {}
    }
    Ok(agreed(reduction, path, Ok(()))?)
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

    fn begin(
        &mut self,
        identity: &Identity,
        history: &[f64],
        steps: Option<StepsState>,
    ) -> Result<(), OutputError> {
        let Identity {
            bits,
            nx,
            ny,
            nz,
            hash,
            exponent,
        } = *identity;
        let version = match steps {
            None => VERSIONS[usize::from(exponent != 0)],
            Some(_) => OF_RESIDUALS,
        };
        let (sweeps, exponent) = (history.len() as u64, i64::from(exponent) as u64);
        for word in [MAGIC, version, hash, bits, nx, ny, sweeps, exponent] {
            self.write(&word.to_le_bytes())?;
        }
        for word in steps.iter().flat_map(|steps| steps.words(nz)) {
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

/// Checks the checkpoint `path`, of sweeps, loads this PE's rows from it and returns the norms of the sweeps done.
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
    let n_pes = reduction.n_pes();
    let loaded = Opened::new(path, identity, n_pes, CheckpointKind::Sweeps)
        .and_then(|opened| opened.load(field, &mut unpacked));
    unpacked?;
    Ok(agreed(reduction, path, loaded)?)
}

/// The same of one of `kind`, of version 3, with what else it holds: `rows` says where the rows go once that is known.
pub(crate) fn resume_steps<R: LocalRows<f64, Error = PeError>>(
    reduction: &Reduction<'_>,
    path: &Path,
    identity: &Identity,
    kind: CheckpointKind,
    rows: impl FnOnce(&StepsState) -> io::Result<R>,
) -> Result<Result<(Vec<f64>, StepsState), CheckpointError>, PeError> {
    let mut unpacked = Ok(());
    let n_pes = reduction.n_pes();
    let loaded = Opened::new(path, identity, n_pes, kind).and_then(|opened| {
        let state = opened.steps;
        let mut rows = rows(&state).map_err(failed(path, "make room for"))?;
        Ok((opened.load(&mut rows, &mut unpacked)?, state))
    });
    unpacked?;
    agreed(reduction, path, loaded)
}

/// `mine`, if all PEs have succeeded. Collective.
fn agreed<T>(
    reduction: &Reduction<'_>,
    path: &Path,
    mine: Result<T, CheckpointError>,
) -> Result<Result<T, CheckpointError>, PeError> {
    let mut failures = [u64::from(mine.is_err())];
    reduction.sum(&mut failures)?;
    Ok(match mine {
        Ok(_) if failures[0] > 0 => Err(CheckpointError::Elsewhere {
            path: path.to_owned(),
        }),
        mine => mine,
    })
}

/// What the checkpoint `path` holds.
///
/// Errors: it is none, or of a later format, or can not be read.
pub fn checkpoint_kind(path: &Path) -> Result<CheckpointKind, CheckpointError> {
    let (mut reader, header, _) = open(path)?;
    let mut extra = [0u64; STEPS_WORDS];
    if header[1] == OF_RESIDUALS {
        for word in &mut extra {
            *word = reader.word().map_err(failed(path, "read"))?;
        }
    }
    CheckpointKind::of(header[1], StepsState::of(extra).1.fields).ok_or_else(|| {
        CheckpointError::NotACheckpoint {
            path: path.to_owned(),
        }
    })
}

/// A checkpoint whose header has been read and checked for what it is.
fn open(path: &Path) -> Result<(Reader, [u64; HEADER_WORDS], u64), CheckpointError> {
    let failed = |action| failed(path, action);
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
    let [magic, version, ..] = header;
    if magic != MAGIC {
        return Err(CheckpointError::NotACheckpoint { path: path_buf() });
    }
    if !VERSIONS.contains(&version) {
        return Err(CheckpointError::Version {
            path: path_buf(),
            version,
        });
    }
    Ok((reader, header, length))
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> CheckpointError + use<> {
    let path = path.to_owned();
    move |source| CheckpointError::Io {
        path,
        action,
        source,
    }
}

/// A checkpoint that is of the right method, grid and length.
struct Opened<'a> {
    path: &'a Path,
    identity: &'a Identity,
    reader: Reader,
    steps: StepsState,
    norms: Vec<f64>,
    hash: u64,
    exponent: i64,
}

impl<'a> Opened<'a> {
    /// Reads all but the field, for one of `n_pes` PEs.
    fn new(
        path: &'a Path,
        identity: &'a Identity,
        n_pes: usize,
        kind: CheckpointKind,
    ) -> Result<Opened<'a>, CheckpointError> {
        let failed = |action| failed(path, action);
        let path_buf = || path.to_owned();
        let (mut reader, header, length) = open(path)?;
        let [_, version, hash, bits, nx, ny, sweeps, exponent] = header;
        let mut extra = [0u64; STEPS_WORDS];
        let (nz, state, words, element) = if version == OF_RESIDUALS {
            for word in &mut extra {
                *word = reader.word().map_err(failed("read"))?;
            }
            let (nz, state) = StepsState::of(extra);
            let steps = sweeps.saturating_sub(1);
            let possible = steps > 0 && state.gradients_from.is_none_or(|from| from <= steps);
            if !possible {
                return Err(CheckpointError::NotACheckpoint { path: path_buf() });
            }
            (nz, state, HEADER_WORDS + STEPS_WORDS, 8)
        } else {
            let one = StepsState {
                fields: 1,
                ..StepsState::default()
            };
            (1, one, HEADER_WORDS, identity.bits / 8)
        };
        let Some(found) = CheckpointKind::of(version, state.fields) else {
            return Err(CheckpointError::NotACheckpoint { path: path_buf() });
        };
        if found != kind {
            return Err(CheckpointError::OtherMethod {
                path: path_buf(),
                found: found.in_words(),
                expected: kind.in_words(),
            });
        }
        if (bits, nx, ny, nz) != (identity.bits, identity.nx, identity.ny, identity.nz) {
            let describe = |nx, ny, nz, bits| match nz {
                1 => format!("{nx} x {ny} points of f{bits}"),
                nz => format!("{nx} x {ny} x {nz} points of f{bits}"),
            };
            return Err(CheckpointError::OtherGrid {
                path: path_buf(),
                found: describe(nx, ny, nz, bits),
                expected: describe(identity.nx, identity.ny, identity.nz, identity.bits),
            });
        }
        // The sizes are those of a checked problem, but the counts of sweeps and fields may be anything.
        let expected = (nx * ny * nz * element)
            .checked_mul(state.fields)
            .and_then(|field| field.checked_add(8 * words as u64 + 4))
            .and_then(|rest| sweeps.checked_mul(8)?.checked_add(rest))
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
        let mut norms = Vec::new();
        if held > memory || norms.try_reserve_exact(sweeps as usize).is_err() {
            return Err(CheckpointError::Sweeps {
                path: path_buf(),
                sweeps,
                memory,
            });
        }
        for _ in 0..sweeps {
            norms.push(f64::from_bits(reader.word().map_err(failed("read"))?));
        }
        Ok(Opened {
            path,
            identity,
            reader,
            steps: state,
            norms,
            hash,
            exponent: exponent as i64,
        })
    }

    /// Reads the rows into `field`, and checks the rest. The norms. `unpacked`: whether the field took its rows.
    fn load<F: Real, R: LocalRows<F>>(
        mut self,
        field: &mut R,
        unpacked: &mut Result<(), R::Error>,
    ) -> Result<Vec<f64>, CheckpointError> {
        let path_buf = || self.path.to_owned();
        let failed = |action| failed(self.path, action);
        let reader = &mut self.reader;
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
                let part =
                    (mine.start - first) * field.row_len()..(mine.end - first) * field.row_len();
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
        let expected = i64::from(self.identity.exponent);
        if self.exponent != expected {
            return Err(CheckpointError::OtherScale {
                path: path_buf(),
                found: self.exponent,
                expected,
            });
        }
        if self.hash != self.identity.hash {
            return Err(CheckpointError::OtherProblem { path: path_buf() });
        }
        Ok(self.norms)
    }
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
