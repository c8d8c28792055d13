//! What a cubin says about its kernels: registers, shared memory, local memory, launch bounds.
//!
//! A cubin is an ELF file. Per kernel `k` there is the code, `.text.k`; its static shared memory,
//! `.nv.shared.k`, as a section without contents; and `.nv.info.k`, records of attributes. Registers
//! and stack of all kernels are in records of `.nv.info`, by symbol number. A record is a byte of
//! format, a byte of attribute and 16 bits: the value itself, or (format 4) the length of the value
//! that follows. The attributes' numbers are those `cuobjdump -elf` prints names for.

use crate::arch::Arch;

/// What one kernel needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelResources {
    /// The kernel's name.
    pub name: String,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, bytes, without what the system reserves.
    pub static_shared: u32,
    /// Local memory of a thread, bytes: spilled registers and arrays that are indexed at run time.
    pub local: u32,
    /// Constant memory of the kernel's module, bytes, without parameters.
    pub constant: u32,
    /// The most threads a block may have, where the kernel declares launch bounds.
    pub max_threads: Option<u32>,
    /// Its parameters.
    pub parameters: u32,
}

/// Bytes that are no cubin this reader understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a readable cubin: {reason} at byte {offset}")]
pub struct CubinError {
    /// What is wrong.
    pub reason: &'static str,
    /// Where.
    pub offset: usize,
}

const MACHINE_CUDA: u16 = 190;
/// Places in the file's header.
const ABI_VERSION: usize = 8;
const FLAGS: usize = 48;
const NOBITS: u32 = 8;
const SYMTAB: u32 = 2;
const FORMAT_SIZED: u8 = 4;
const MAX_THREADS: u8 = 0x05;
const REQUIRED_THREADS: u8 = 0x10;
const MIN_STACK_SIZE: u8 = 0x12;
/// One a parameter: index, number (16 bits) and offset, size and place.
const PARAMETER: u8 = 0x17;
const REGISTER_COUNT: u8 = 0x2f;
/// What a kernel's shared section holds for the system, in files that have [`RESERVED_SECTION`].
const RESERVED_SHARED: u32 = 1024;
const RESERVED_SECTION: &str = ".nv.shared.reserved.0";

/// The architecture that `cubin` is compiled for.
///
/// Errors: [`CubinError`] for anything that is no cubin.
pub fn cubin_arch(cubin: &[u8]) -> Result<Arch, CubinError> {
    Elf::read(cubin)?;
    let byte = |at: usize| {
        let truncated = CubinError {
            reason: "truncated",
            offset: at,
        };
        cubin.get(at).copied().ok_or(truncated)
    };
    // The second byte of the flags, with CUDA 12 and older the first.
    let older = byte(ABI_VERSION)? < 8;
    let number = byte(if older { FLAGS } else { FLAGS + 1 })?;
    Ok(Arch::from_number(number.into()))
}

/// The resources of every kernel of `cubin`, by name.
///
/// Errors: [`CubinError`] for anything truncated or damaged; never a panic.
pub fn kernel_resources(cubin: &[u8]) -> Result<Vec<KernelResources>, CubinError> {
    let elf = Elf::read(cubin)?;
    let reserved = if elf.section(RESERVED_SECTION).is_some() {
        RESERVED_SHARED
    } else {
        0
    };
    let constant = elf
        .section(".nv.constant3")
        .map_or(0, |section| section.size);
    let symbols = elf.symbol_names()?;
    let common = match elf.section(".nv.info") {
        Some(section) => records(elf.contents(section)?)?,
        None => Vec::new(),
    };
    let mut kernels = Vec::new();
    for text in &elf.sections {
        let Some(name) = text.name.strip_prefix(".text.") else {
            continue;
        };
        // Functions that are called and not launched have code, but no attributes of their own.
        let Some(info) = elf.section(&format!(".nv.info.{name}")) else {
            continue;
        };
        let of_kernel = |attribute| {
            common.iter().find_map(|record| {
                let mut words = record.words();
                let symbol = words.next()? as usize;
                (record.attribute == attribute && symbols.get(symbol) == Some(&name))
                    .then(|| words.next())?
            })
        };
        let own = records(elf.contents(info)?)?;
        let threads = |attribute| {
            let record = own.iter().find(|record| record.attribute == attribute)?;
            Some(record.words().take(3).fold(1u32, u32::saturating_mul))
        };
        let shared = elf
            .section(&format!(".nv.shared.{name}"))
            .map_or(0, |section| section.size);
        kernels.push(KernelResources {
            name: name.to_string(),
            // Older files have the registers only in the top byte of the code section's info.
            registers: of_kernel(REGISTER_COUNT).unwrap_or(text.info >> 24),
            static_shared: shared.saturating_sub(reserved),
            local: of_kernel(MIN_STACK_SIZE).unwrap_or(0),
            constant,
            max_threads: threads(REQUIRED_THREADS).or_else(|| threads(MAX_THREADS)),
            parameters: own.iter().filter(|r| r.attribute == PARAMETER).count() as u32,
        });
    }
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

struct Section<'a> {
    name: &'a str,
    kind: u32,
    offset: usize,
    size: u32,
    link: usize,
    info: u32,
}

struct Elf<'a> {
    bytes: &'a [u8],
    sections: Vec<Section<'a>>,
}

impl<'a> Elf<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, CubinError> {
        if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err(CubinError {
                reason: "no 64-bit little-endian ELF header",
                offset: 0,
            });
        }
        if u16_at(bytes, 18)? != MACHINE_CUDA {
            return Err(CubinError {
                reason: "another machine than CUDA",
                offset: 18,
            });
        }
        let table = word_at(bytes, 40)?;
        let (size, count, names) = (
            u16_at(bytes, 58)? as usize,
            u16_at(bytes, 60)? as usize,
            u16_at(bytes, 62)? as usize,
        );
        if size < 64 {
            return Err(CubinError {
                reason: "section headers too small",
                offset: 58,
            });
        }
        let header = |index: usize| -> Result<(usize, Section<'a>), CubinError> {
            let at = table.checked_add(index * size).ok_or(CubinError {
                reason: "address too large",
                offset: 40,
            })?;
            bytes_at::<64>(bytes, at)?;
            let section = Section {
                name: "",
                kind: u32_at(bytes, at + 4)?,
                offset: word_at(bytes, at + 24)?,
                size: u32::try_from(word_at(bytes, at + 32)?).map_err(|_| CubinError {
                    reason: "section too large",
                    offset: at + 32,
                })?,
                link: u32_at(bytes, at + 40)? as usize,
                info: u32_at(bytes, at + 44)?,
            };
            Ok((u32_at(bytes, at)? as usize, section))
        };
        let mut elf = Elf {
            bytes,
            sections: Vec::new(),
        };
        let names = elf.contents(&header(names)?.1)?;
        for index in 0..count {
            let (name, section) = header(index)?;
            elf.sections.push(Section {
                name: text_at(names, name)?,
                ..section
            });
        }
        Ok(elf)
    }

    fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    fn contents(&self, section: &Section<'a>) -> Result<&'a [u8], CubinError> {
        if section.kind == NOBITS {
            return Ok(&[]);
        }
        let end = section.offset.checked_add(section.size as usize);
        end.and_then(|end| self.bytes.get(section.offset..end))
            .ok_or(CubinError {
                reason: "section outside of the file",
                offset: section.offset,
            })
    }

    fn symbol_names(&self) -> Result<Vec<&'a str>, CubinError> {
        let Some(table) = self.sections.iter().find(|section| section.kind == SYMTAB) else {
            return Ok(Vec::new());
        };
        let names = self.sections.get(table.link).ok_or(CubinError {
            reason: "symbols without names",
            offset: table.offset,
        })?;
        let names = self.contents(names)?;
        let symbols = self.contents(table)?.chunks_exact(24);
        symbols
            .map(|symbol| text_at(names, u32_at(symbol, 0)? as usize))
            .collect()
    }
}

struct Record<'a> {
    attribute: u8,
    value: &'a [u8],
}

impl Record<'_> {
    fn words(&self) -> impl Iterator<Item = u32> + '_ {
        self.value
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    }
}

fn records(mut bytes: &[u8]) -> Result<Vec<Record<'_>>, CubinError> {
    let mut records = Vec::new();
    while let [format, attribute, low, high, rest @ ..] = bytes {
        let length = if *format == FORMAT_SIZED {
            u16::from_le_bytes([*low, *high]) as usize
        } else {
            0
        };
        let (value, after) = rest.split_at_checked(length).ok_or(CubinError {
            reason: "attribute record cut short",
            offset: records.len(),
        })?;
        records.push(Record {
            attribute: *attribute,
            value,
        });
        bytes = after;
    }
    Ok(records)
}

fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N], CubinError> {
    let slice = offset.checked_add(N).and_then(|end| bytes.get(offset..end));
    slice
        .and_then(|slice| slice.try_into().ok())
        .ok_or(CubinError {
            reason: "file cut short",
            offset,
        })
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16, CubinError> {
    bytes_at(bytes, offset).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Result<u32, CubinError> {
    bytes_at(bytes, offset).map(u32::from_le_bytes)
}

fn word_at(bytes: &[u8], offset: usize) -> Result<usize, CubinError> {
    let value = u64::from_le_bytes(bytes_at(bytes, offset)?);
    usize::try_from(value).map_err(|_| CubinError {
        reason: "address too large",
        offset,
    })
}

fn text_at(names: &[u8], offset: usize) -> Result<&str, CubinError> {
    let rest = names.get(offset..).unwrap_or_default();
    let end = rest.iter().position(|&byte| byte == 0);
    end.and_then(|end| std::str::from_utf8(&rest[..end]).ok())
        .ok_or(CubinError {
            reason: "damaged name",
            offset,
        })
}

#[cfg(test)]
mod tests;
