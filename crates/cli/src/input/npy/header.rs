//! The header of an NPY file: a Python dictionary of exactly three keys.
//!
//! The grammar read here is the part that `numpy.save` writes for plain numbers. It
//! is bounded in length and depth, so no file can make it allocate or recurse.

use super::dtype::{Dtype, Shape};
use super::error::NpyProblem;

pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Most header bytes that are looked at; plain number types need fewer than 200.
const LONGEST_HEADER: usize = 1 << 16;
const MOST_DIMENSIONS: usize = 32;

/// The type of numpy's type string.
fn dtype_of(descr: &str) -> Result<Dtype, NpyProblem> {
    let order = descr.chars().next().unwrap_or(' ');
    let code = descr.get(1..).unwrap_or("");
    if code.starts_with('O') || descr == "O" {
        return Err(NpyProblem::Objects);
    }
    match (Dtype::of_code(code), order) {
        (Some(dtype), '<' | '|' | '=') => Ok(dtype),
        (Some(dtype), '>') if dtype.size() == 1 => Ok(dtype),
        (Some(_), '>') => Err(NpyProblem::BigEndian {
            descr: descr.to_owned(),
        }),
        _ => Err(NpyProblem::NotANumber {
            descr: format!("'{}'", excerpt(descr)),
        }),
    }
}

/// What the header says, and where the data begin.
#[derive(Debug)]
pub struct Header {
    pub dtype: Dtype,
    pub shape: Shape,
    pub data_offset: usize,
}

impl Header {
    /// Bytes with which [`Header::length`] can tell.
    pub const PREFIX: usize = 12;

    /// How many bytes a header that begins like this has, as far as [`Header::parse`] looks at them.
    pub fn length(prefix: &[u8]) -> usize {
        let length = match *prefix {
            [_, _, _, _, _, _, 1, 0, a, b, ..] => 10 + usize::from(u16::from_le_bytes([a, b])),
            [_, _, _, _, _, _, 2 | 3, 0, a, b, c, d, ..] => {
                (u32::from_le_bytes([a, b, c, d]) as usize).saturating_add(12)
            }
            _ => 0,
        };
        length.min(12 + LONGEST_HEADER)
    }

    /// Reads the header at the start of `file`, the whole file's bytes.
    pub fn parse(file: &[u8]) -> Result<Self, NpyProblem> {
        if !file.starts_with(MAGIC) {
            return Err(NpyProblem::NotNpy);
        }
        let truncated = |expected: usize| NpyProblem::Truncated {
            expected: expected as u64,
            found: file.len() as u64,
        };
        let &[_, _, _, _, _, _, major, minor, ref rest @ ..] = file else {
            return Err(truncated(10));
        };
        let (text_start, length) = match (major, minor) {
            (1, 0) => {
                let &[a, b, ..] = rest else {
                    return Err(truncated(10));
                };
                (10, usize::from(u16::from_le_bytes([a, b])))
            }
            (2 | 3, 0) => {
                let &[a, b, c, d, ..] = rest else {
                    return Err(truncated(12));
                };
                (12, u32::from_le_bytes([a, b, c, d]) as usize)
            }
            _ => return Err(NpyProblem::Version { major, minor }),
        };
        if length > LONGEST_HEADER {
            return Err(NpyProblem::HeaderTooLong {
                bytes: length,
                limit: LONGEST_HEADER,
            });
        }
        let data_offset = text_start + length;
        let text = file
            .get(text_start..data_offset)
            .ok_or(truncated(data_offset))?;
        let text =
            std::str::from_utf8(text).map_err(|_| NpyProblem::Header("it is not text".into()))?;
        let (dtype, shape) = Dictionary { rest: text }.parse()?;
        Ok(Self {
            dtype,
            shape,
            data_offset,
        })
    }

    /// The bytes of a version 1.0 header; the data after it are 64-byte aligned, as numpy writes them.
    pub fn write(dtype: Dtype, shape: &Shape) -> Vec<u8> {
        let dictionary = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}",
            dtype.descr()
        );
        let length = (10 + dictionary.len() + 1).next_multiple_of(64) - 10;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend(
            u16::try_from(length)
                .expect("two axes take fewer than 128 bytes")
                .to_le_bytes(),
        );
        bytes.extend(format!("{dictionary:<width$}\n", width = length - 1).bytes());
        bytes
    }
}

/// The start of a text from a file, fit for one line of a message.
fn excerpt(text: &str) -> String {
    let clean: String = text
        .chars()
        .take(40)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().count() > 40 {
        clean + "…"
    } else {
        clean
    }
}

struct Dictionary<'a> {
    rest: &'a str,
}

impl Dictionary<'_> {
    fn parse(mut self) -> Result<(Dtype, Shape), NpyProblem> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key.as_str() {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                _ => return Err(broken(format!("unknown key '{}'", excerpt(&key)))),
            }
            if !self.take(',') {
                self.expect('}')?;
                break;
            }
        }
        if !self.rest.trim_matches([' ', '\n', '\t', '\0']).is_empty() {
            return Err(broken(format!(
                "'{}' follows the dictionary",
                excerpt(self.rest.trim())
            )));
        }
        let dtype = descr.ok_or_else(|| broken("no 'descr'"))?;
        let fortran = fortran.ok_or_else(|| broken("no 'fortran_order'"))?;
        let shape = shape.ok_or_else(|| broken("no 'shape'"))?;
        // One axis or none is laid out the same way in both orders.
        if fortran && shape.0.len() > 1 {
            return Err(NpyProblem::FortranOrder);
        }
        Ok((dtype, shape))
    }

    fn take(&mut self, wanted: char) -> bool {
        let trimmed = self.rest.trim_start();
        let after = trimmed.strip_prefix(wanted);
        self.rest = after.unwrap_or(trimmed);
        after.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), NpyProblem> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(broken(format!(
            "'{wanted}' expected at '{}'",
            excerpt(self.rest)
        )))
    }

    fn string(&mut self) -> Result<String, NpyProblem> {
        let quote = if self.take('"') {
            '"'
        } else {
            self.expect('\'')?;
            '\''
        };
        let end = self
            .rest
            .find(quote)
            .ok_or_else(|| broken("a string has no end"))?;
        let text = self.rest[..end].to_owned();
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    fn descr(&mut self) -> Result<Dtype, NpyProblem> {
        if self.rest.trim_start().starts_with('[') {
            return Err(NpyProblem::NotANumber {
                descr: excerpt(self.rest.trim_start()),
            });
        }
        dtype_of(&self.string()?)
    }

    fn boolean(&mut self) -> Result<bool, NpyProblem> {
        let trimmed = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(after) = trimmed.strip_prefix(word) {
                self.rest = after;
                return Ok(value);
            }
        }
        Err(broken(format!(
            "True or False expected at '{}'",
            excerpt(trimmed)
        )))
    }

    fn shape(&mut self) -> Result<Shape, NpyProblem> {
        self.expect('(')?;
        let mut lengths = Vec::new();
        while !self.take(')') {
            if lengths.len() == MOST_DIMENSIONS {
                return Err(broken(format!("more than {MOST_DIMENSIONS} axes")));
            }
            lengths.push(self.length()?);
            // Python 2 wrote long integers with an L.
            self.take('L');
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(Shape(lengths))
    }

    fn length(&mut self) -> Result<usize, NpyProblem> {
        let trimmed = self.rest.trim_start();
        let digits = trimmed.len()
            - trimmed
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        if digits == 0 {
            return Err(broken(format!(
                "an axis length expected at '{}'",
                excerpt(trimmed)
            )));
        }
        self.rest = &trimmed[digits..];
        trimmed[..digits].parse().map_err(|_| NpyProblem::TooLarge)
    }
}

fn broken(what: impl Into<String>) -> NpyProblem {
    NpyProblem::Header(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dictionary: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dictionary.len() as u16).to_le_bytes());
        bytes.extend(dictionary.bytes());
        bytes
    }

    fn message(dictionary: &str) -> String {
        Header::parse(&file(dictionary)).unwrap_err().to_string()
    }

    #[test]
    fn reads_what_numpy_writes() {
        let header = Header::parse(&file(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (344, 403), }   \n",
        ))
        .unwrap();
        assert_eq!(
            (header.dtype, header.shape.0.as_slice()),
            (Dtype::F32, [344, 403].as_slice())
        );
        let one =
            Header::parse(&file("{'descr':'|u1','fortran_order':True,'shape':(7L,)}")).unwrap();
        assert_eq!(
            (one.dtype, one.shape.to_string()),
            (Dtype::U8, "(7,)".into())
        );
        let scalar = Header::parse(&file(
            "{'shape': (), 'fortran_order': False, 'descr': \"<i8\"}\n",
        ))
        .unwrap();
        assert_eq!((scalar.dtype, scalar.shape.0.len()), (Dtype::I64, 0));
    }

    #[test]
    fn our_header_is_read_by_npyz() {
        for (dtype, shape) in [
            (Dtype::F32, vec![3, 5]),
            (Dtype::F64, vec![usize::MAX >> 8]),
            (Dtype::U8, vec![1, 2, 3]),
        ] {
            let bytes = Header::write(dtype, &Shape(shape.clone()));
            assert_eq!(bytes.len() % 64, 0);
            let theirs = npyz::NpyHeader::from_reader(bytes.as_slice()).unwrap();
            assert_eq!(
                theirs.shape(),
                shape.iter().map(|&n| n as u64).collect::<Vec<_>>()
            );
            assert_eq!(theirs.dtype().descr(), format!("'{}'", dtype.descr()));
            assert_eq!(theirs.order(), npyz::Order::C);
            let ours = Header::parse(&bytes).unwrap();
            assert_eq!(
                (ours.dtype, ours.shape.0, ours.data_offset),
                (dtype, shape, bytes.len())
            );
        }
    }

    #[test]
    fn malformed_headers_are_one_clear_line() {
        let long = "9".repeat(400);
        let deep = "(".repeat(9000);
        for (dictionary, expected) in [
            ("", "broken header: '{' expected at ''"),
            (
                "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
                "the array is in Fortran order; save it with numpy.ascontiguousarray",
            ),
            (
                "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}",
                "dtype '>f4' is big-endian; save it with a.astype(a.dtype.newbyteorder('<'))",
            ),
            (
                "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
                "the array holds Python objects, not numbers",
            ),
            (
                "{'descr': '<c32', 'fortran_order': False, 'shape': (2,)}",
                "dtype '<c32' is not a plain number type",
            ),
            (
                "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
                "dtype [('a', '<f4')], 'fortran_order': False, … is not a plain number type",
            ),
            (
                "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
                "broken header: True or False expected at '0, 'shape': (2,)}'",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
                "broken header: an axis length expected at '-2,)}'",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': 5}",
                "broken header: '(' expected at '5}'",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False}",
                "broken header: no 'shape'",
            ),
            (
                "{'descr': '<f4', 'evil': __import__('os')}",
                "broken header: unknown key 'evil'",
            ),
            ("{'descr': '<f4", "broken header: a string has no end"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
                "broken header: 'x' follows the dictionary",
            ),
            (
                &format!("{{'shape': ({long},)}}"),
                "the shape has more elements than can be addressed",
            ),
            (
                &format!("{{'shape': {deep}"),
                "broken header: an axis length expected at '((((((((((((((((((((((((((((((((((((((((…'",
            ),
        ] {
            assert_eq!(message(dictionary), expected);
        }
    }

    #[test]
    fn damaged_headers_are_errors_not_panics() {
        let whole = file("{'descr': '<f4', 'fortran_order': False, 'shape': (344, 403), }   \n");
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let pieces = [
            "'",
            "(",
            ")",
            "{",
            "}",
            ",",
            "\u{e9}",
            "9999999999999999999999",
            "-",
            "[",
            "\0",
            "True",
            "L",
        ];
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random(3) {
                let place = random(bytes.len());
                if random(2) == 0 {
                    bytes[place] = random(256) as u8;
                } else {
                    let piece = pieces[random(pieces.len())];
                    bytes.splice(place..(place + random(4)).min(bytes.len()), piece.bytes());
                }
            }
            refused += usize::from(Header::parse(&bytes).is_err());
        }
        assert!(refused > 10_000);
    }

    #[test]
    fn every_cut_of_a_file_is_refused() {
        let whole = Header::write(Dtype::F32, &Shape(vec![2, 2]));
        for length in 0..whole.len() {
            assert!(Header::parse(&whole[..length]).is_err(), "cut at {length}");
        }
        assert_eq!(
            Header::parse(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
                .unwrap_err()
                .to_string(),
            "the header claims 4294967295 bytes; an array of numbers needs fewer than 65536"
        );
        assert_eq!(
            Header::parse(b"\x93NUMPY\x07\x01").unwrap_err().to_string(),
            "NPY format version 7.1 is not known (1.0, 2.0 and 3.0 are)"
        );
    }
}
