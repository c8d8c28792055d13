//! NPY files, mapped and lent as typed slices, or read piece by piece.
// Mapping a file is unsafe in itself: see the one block below.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;
use crosswarp::prim::Source;
use crosswarp::shmem::under_launcher;
use memmap2::{Mmap, MmapMut};

use super::dtype::{Dtype, Shape};
use super::error::{NpyError, NpyProblem};
use super::header::Header;

/// An NPY file, mapped: pages are read when they are touched, and never twice. What comes through a pipe is read to its
/// end instead.
///
/// The file must not be changed or cut while it is mapped, as with any mapped file.
#[derive(Debug)]
pub struct NpyMap {
    path: PathBuf,
    /// Nothing of what came through a pipe.
    file: Option<File>,
    map: Arc<Mmap>,
    header: Header,
}

impl NpyMap {
    /// Maps `path`, or standard input for `-`, and checks its header against its length.
    ///
    /// # Errors
    /// [`NpyError`], naming the file and what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, NpyError> {
        let is_stdin = path == Path::new("-");
        let path = if is_stdin {
            Path::new("standard input")
        } else {
            path
        };
        let failed = |problem| NpyError {
            path: path.to_owned(),
            problem,
        };
        let io = |error| failed(NpyProblem::Open(error));
        let stdin = || Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?));
        let file = if is_stdin {
            stdin().map_err(io)?
        } else {
            // The kind is looked up before opening: opening a named pipe would wait for its writer. One without a name
            // (`/dev/stdin`) has no path that leads to it.
            let kind = std::fs::metadata(path).map_err(io)?.file_type();
            let is_open_pipe = kind.is_fifo() && path.canonicalize().is_err();
            if !kind.is_file() && !is_open_pipe {
                return Err(failed(NpyProblem::NotAFile));
            }
            File::open(path).map_err(io)?
        };
        let kind = file.metadata().map_err(io)?.file_type();
        if !kind.is_file() {
            if !kind.is_fifo() && !kind.is_socket() {
                return Err(failed(NpyProblem::NotAFile));
            }
            if under_launcher() {
                return Err(failed(NpyProblem::PipeOfMany));
            }
            // What came through standard input is there for whoever asks again.
            static CAME: OnceLock<Arc<Mmap>> = OnceLock::new();
            let map = match CAME.get().filter(|_| is_stdin) {
                Some(map) => Arc::clone(map),
                None => Arc::new(from_pipe(file).map_err(failed)?),
            };
            if is_stdin {
                CAME.get_or_init(|| Arc::clone(&map));
            }
            let header = Header::parse(&map).map_err(failed)?;
            return Ok(Self {
                path: path.to_owned(),
                file: None,
                map,
                header,
            });
        }
        // SAFETY: the mapping is private to this object, read-only, and lives as long as
        // the slices lent from it. That nobody changes or cuts the file meanwhile cannot
        // be enforced by any process on Linux; it is the documented contract of the type.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        let header = Header::parse(&map).map_err(failed)?;
        check_length(&header, map.len()).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            map: Arc::new(map),
            header,
        })
    }

    /// The element type.
    pub fn dtype(&self) -> Dtype {
        self.header.dtype
    }

    /// The shape, slowest axis first.
    pub fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// The data as elements of `T`, which has the size of the file's type: the caller
    /// has looked at [`NpyMap::dtype`].
    ///
    /// # Errors
    /// [`NpyProblem::Misaligned`] if the writer put the data at an odd place.
    ///
    /// # Panics
    /// If `T` has another size than the file's type.
    pub fn elements<T: Pod>(&self) -> Result<&[T], NpyError> {
        assert_eq!(size_of::<T>(), self.header.dtype.size());
        let offset = self.header.data_offset;
        bytemuck::try_cast_slice(&self.map[offset..]).map_err(|_| {
            self.error(NpyProblem::Misaligned {
                offset,
                align: align_of::<T>(),
            })
        })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes().len() / self.header.dtype.size()
    }

    /// Fills `to` with the elements from number `first` on, which is quicker than touching them for the first time in
    /// [`NpyMap::elements`], and does not ask where they lie.
    ///
    /// # Errors
    /// The system's: a disk that fails, or a file that is cut meanwhile.
    ///
    /// # Panics
    /// If `T` has another size than the file's type, or the file was opened with fewer elements.
    pub fn read<T: Pod>(&self, first: usize, to: &mut [T]) -> io::Result<()> {
        assert_eq!(size_of::<T>(), self.header.dtype.size());
        let start = first * size_of::<T>();
        let to: &mut [u8] = bytemuck::cast_slice_mut(to);
        match &self.file {
            Some(file) => file.read_exact_at(to, (self.header.data_offset + start) as u64),
            None => {
                to.copy_from_slice(&self.bytes()[start..start + to.len()]);
                Ok(())
            }
        }
    }

    /// The data as bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.map[self.header.data_offset..]
    }

    /// The shape as rows × columns.
    ///
    /// # Errors
    /// [`NpyProblem::Shape`] unless there are two axes.
    pub fn rows_columns(&self) -> Result<(usize, usize), NpyError> {
        match self.header.shape.0[..] {
            [rows, columns] => Ok((rows, columns)),
            _ => Err(self.wrong_shape("(rows, columns)")),
        }
    }

    /// The error for a shape that is not the `expected` one.
    pub fn wrong_shape(&self, expected: impl Into<String>) -> NpyError {
        self.error(NpyProblem::Shape {
            found: self.header.shape.clone(),
            expected: expected.into(),
        })
    }

    /// The error for a type that is not one of the `accepted`.
    pub fn wrong_dtype(&self, accepted: &'static str) -> NpyError {
        self.error(NpyProblem::Dtype {
            found: self.header.dtype,
            accepted,
        })
    }

    fn error(&self, problem: NpyProblem) -> NpyError {
        NpyError {
            path: self.path.clone(),
            problem,
        }
    }
}

/// Some elements of files that are one array, in this order. The files have a type of the size of `T`.
pub struct Elements<'a> {
    files: &'a [NpyMap],
    range: Range<usize>,
}

impl<'a> Elements<'a> {
    /// Elements `range` of the array.
    pub fn new(files: &'a [NpyMap], range: Range<usize>) -> Self {
        Self { files, range }
    }
}

impl<T: Pod> Source<T> for Elements<'_> {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn read(&self, first: usize, mut to: &mut [T]) -> io::Result<()> {
        let mut at = self.range.start + first;
        for file in self.files {
            let here = file.len().saturating_sub(at).min(to.len());
            if here > 0 {
                let (mine, rest) = to.split_at_mut(here);
                file.read(at, mine)?;
                (at, to) = (at + here, rest);
            }
            at = at.saturating_sub(file.len());
        }
        Ok(())
    }

    fn lent(&self, range: Range<usize>) -> Option<&[T]> {
        let mut at = self.range.start + range.start;
        for file in self.files {
            if at + range.len() <= file.len() {
                return file.elements::<T>().ok()?.get(at..at + range.len());
            }
            // Not if they lie in two files.
            at = at.checked_sub(file.len())?;
        }
        None
    }
}

/// Reads the header and the data, behind which there must be nothing.
fn from_pipe(mut pipe: File) -> Result<Mmap, NpyProblem> {
    let mut head = Vec::new();
    let mut more = |head: &mut Vec<u8>, length: usize| {
        let missing = length.saturating_sub(head.len()) as u64;
        (&mut pipe)
            .take(missing)
            .read_to_end(head)
            .map_err(NpyProblem::Open)
    };
    more(&mut head, Header::PREFIX)?;
    let length = Header::length(&head);
    more(&mut head, length)?;
    let header = Header::parse(&head)?;
    let bytes = whole_length(&header)?;
    let mut memory = MmapMut::map_anon(bytes).map_err(NpyProblem::Open)?;
    memory[..head.len()].copy_from_slice(&head);
    let mut found = head.len();
    while found < bytes {
        match pipe.read(&mut memory[found..]) {
            Ok(0) => check_length(&header, found)?,
            Ok(read) => found += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(NpyProblem::Open(error)),
        }
    }
    let mut behind = Vec::new();
    pipe.take(1 << 20)
        .read_to_end(&mut behind)
        .map_err(NpyProblem::Open)?;
    check_length(&header, found + behind.len())?;
    memory.make_read_only().map_err(NpyProblem::Open)
}

/// Bytes of a file with this header.
fn whole_length(header: &Header) -> Result<usize, NpyProblem> {
    let lengths = &header.shape.0;
    if lengths.contains(&0) {
        return Err(NpyProblem::NoElements {
            found: header.shape.clone(),
        });
    }
    let bytes = lengths
        .iter()
        .try_fold(header.dtype.size(), |product, &n| product.checked_mul(n));
    let expected = bytes.and_then(|bytes| bytes.checked_add(header.data_offset));
    expected
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or(NpyProblem::TooLarge)
}

fn check_length(header: &Header, file_bytes: usize) -> Result<(), NpyProblem> {
    let expected = whole_length(header)? as u64;
    let found = file_bytes as u64;
    match found.cmp(&expected) {
        std::cmp::Ordering::Less => Err(NpyProblem::Truncated { expected, found }),
        std::cmp::Ordering::Greater => Err(NpyProblem::Trailing {
            extra: found - expected,
            expected,
        }),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(bytes: &[u8]) -> Result<NpyMap, NpyError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, bytes).unwrap();
        NpyMap::open(&path)
    }

    fn message(bytes: &[u8]) -> String {
        open(bytes).unwrap_err().problem.to_string()
    }

    fn file(shape: &[usize], data: &[u8]) -> Vec<u8> {
        let mut bytes = Header::write(Dtype::F32, &Shape(shape.to_vec()));
        bytes.extend(data);
        bytes
    }

    #[test]
    fn lends_the_elements() {
        let map = open(&file(&[2, 1], bytemuck::cast_slice(&[1.5f32, -2.0]))).unwrap();
        assert_eq!(map.elements::<f32>().unwrap(), [1.5, -2.0]);
        assert_eq!(map.rows_columns().unwrap(), (2, 1));
        assert_eq!(map.bytes().len(), 8);
    }

    #[test]
    fn a_file_written_by_npyz_is_read() {
        use npyz::WriterBuilder;
        let mut bytes = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(&[2, 3]);
        let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
        writer.extend([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        writer.finish().unwrap();
        let map = open(&bytes).unwrap();
        assert_eq!(
            (map.dtype(), map.shape().to_string()),
            (Dtype::F64, "(2, 3)".into())
        );
        assert_eq!(
            map.elements::<f64>().unwrap(),
            [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        );
    }

    #[test]
    fn lengths_are_checked() {
        assert_eq!(
            message(&file(&[2, 2], &[0; 15])),
            "truncated: 144 bytes expected, 143 found"
        );
        assert_eq!(
            message(&file(&[2, 2], &[0; 18])),
            "2 bytes follow the data (144 bytes expected)"
        );
        assert_eq!(message(&file(&[0, 2], &[])), "shape (0, 2) has no elements");
        let huge = usize::MAX / 3;
        assert_eq!(
            message(&file(&[huge, huge], &[])),
            "the shape has more elements than can be addressed"
        );
        assert_eq!(
            message(&file(&[usize::MAX >> 3, 1], &[])),
            "the shape has more elements than can be addressed"
        );
        assert_eq!(
            message(b""),
            "not an NPY file (the first bytes are not \\x93NUMPY)"
        );
    }

    #[test]
    fn elements_are_read_across_files() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<_> = [vec![0u8, 1, 2], vec![3], vec![4, 5]]
            .iter()
            .enumerate()
            .map(|(k, data)| {
                let path = folder.path().join(k.to_string());
                let header = Header::write(Dtype::U8, &Shape(vec![data.len()]));
                std::fs::write(&path, [header, data.clone()].concat()).unwrap();
                NpyMap::open(&path).unwrap()
            })
            .collect();
        for start in 0..=6 {
            for end in start..=6 {
                for first in 0..=end - start {
                    let elements = Elements::new(&files, start..end);
                    assert_eq!(Source::<u8>::len(&elements), end - start);
                    let mut found = vec![9u8; end - start - first];
                    elements.read(first, &mut found).unwrap();
                    let expected: Vec<u8> = (start + first..end).map(|k| k as u8).collect();
                    assert_eq!(found, expected);
                    let lent = Source::<u8>::lent(&elements, first..end - start);
                    assert!(
                        lent.is_none_or(|lent| lent == expected),
                        "{start} {end} {first}"
                    );
                    let in_one = [(0, 3), (3, 4), (4, 6)]
                        .iter()
                        .any(|&(from, to)| from <= start + first && end <= to);
                    if start + first < end {
                        assert_eq!(lent.is_some(), in_one);
                    }
                }
            }
        }
    }

    #[test]
    fn pipes_are_read_as_files_are() {
        let piped = |bytes: Vec<u8>| {
            let (reader, mut writer) = io::pipe().unwrap();
            let sender = std::thread::spawn(move || io::Write::write_all(&mut writer, &bytes));
            let result = from_pipe(std::os::fd::OwnedFd::from(reader).into());
            // A reader that has gone is no failure here.
            let _ = sender.join().unwrap();
            result.map(|map| map.to_vec())
        };
        let good = file(&[2, 1], bytemuck::cast_slice(&[1.5f32, -2.0]));
        assert_eq!(piped(good.clone()).unwrap(), good);
        for cut in [0, 5, 9, 11, 50, 127, 130, good.len() - 1] {
            let bytes = good[..cut].to_vec();
            assert_eq!(
                piped(bytes.clone()).unwrap_err().to_string(),
                message(&bytes),
                "{cut}"
            );
        }
        let longer = [&good[..], &[0; 3]].concat();
        assert_eq!(
            piped(longer.clone()).unwrap_err().to_string(),
            message(&longer)
        );
        let huge = file(&[usize::MAX / 3, usize::MAX / 3], &[]);
        assert_eq!(piped(huge.clone()).unwrap_err().to_string(), message(&huge));
    }

    #[test]
    fn files_that_cannot_be_mapped() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            NpyMap::open(folder.path()).unwrap_err().problem,
            NpyProblem::NotAFile
        ));
        let missing = NpyMap::open(&folder.path().join("none.npy"))
            .unwrap_err()
            .to_string();
        assert!(
            missing.contains("none.npy: cannot read: No such file"),
            "{missing}"
        );
    }

    #[test]
    fn odd_offsets_are_refused_not_misread() {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n";
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.extend([0; 4]);
        let offset = bytes.len() - 4;
        let map = open(&bytes).unwrap();
        assert_ne!(offset % 4, 0);
        assert!(matches!(
            map.elements::<f32>().unwrap_err().problem,
            NpyProblem::Misaligned { .. }
        ));
    }
}
