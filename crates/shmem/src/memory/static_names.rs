//! The names of a program's static variables, from the symbol table of its file.
//!
//! Messages name a place in static data by them. The file is read only when a message asks.

use object::elf::{PF_W, PT_GNU_RELRO, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Object, ObjectSymbol, SymbolKind};
use std::path::{Path, PathBuf};

/// Larger programs are not read to name a variable.
const MOST_BYTES: u64 = 1 << 30;

/// Names the static data of the program in `file` in every message of this process from now on; once,
/// later calls do nothing.
///
/// The first registered segments must be the program's own writable ones, in the order of its file.
pub fn name_static_data(file: impl Into<PathBuf>) {
    let file = file.into();
    crate::memory::position::name_static_data(move |offset| name(&file, offset));
}

/// The variable that holds byte `offset` of the program's static data, such as `flag` or `flags+8`.
fn name(file: &Path, offset: usize) -> Option<String> {
    let bytes = read(file)?;
    let elf = ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
    let address = address(&elf, offset as u64)?;
    let holds = |symbol: &object::read::elf::ElfSymbol64<'_, '_>| {
        let size = symbol.size().max(1);
        symbol.kind() == SymbolKind::Data
            && (symbol.address()..symbol.address() + size).contains(&address)
    };
    let symbol = elf.symbols().find(holds)?;
    let name = symbol.name().ok()?;
    // Those of static variables in functions are numbered by the compiler.
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    Some(match address - symbol.address() {
        0 => name.to_owned(),
        inside => format!("{name}+{inside}"),
    })
}

/// What is in a program's file, if it is a file of a reasonable size.
pub(crate) fn read(file: &Path) -> Option<Vec<u8>> {
    let about = std::fs::metadata(file).ok()?;
    (about.is_file() && about.len() <= MOST_BYTES).then(|| std::fs::read(file).ok())?
}

/// The address in the file's own numbering of byte `offset` of the data that are shared: the pages of its
/// writable segments, less those at the beginning that the loader makes read-only.
fn address(elf: &ElfFile64<'_>, offset: u64) -> Option<u64> {
    let page = rustix::param::page_size() as u64;
    let endian = elf.endian();
    let headers = elf.elf_program_headers();
    let relro = headers
        .iter()
        .find(|header| header.p_type(endian) == PT_GNU_RELRO);
    let relro = relro.map(|header| (header.p_vaddr(endian), header.p_memsz(endian)));
    let mut left = offset;
    for header in headers {
        if header.p_type(endian) != PT_LOAD || header.p_flags(endian) & PF_W == 0 {
            continue;
        }
        let (start, bytes) = (header.p_vaddr(endian), header.p_memsz(endian));
        let end = start.checked_add(bytes)?.checked_next_multiple_of(page)?;
        let mut start = start / page * page;
        if let Some((from, len)) = relro
            && (start..end).contains(&(from / page * page))
        {
            start = start.max(from.checked_add(len)? / page * page);
        }
        match end.checked_sub(start) {
            Some(len) if left < len => return Some(start + left),
            Some(len) => left -= len,
            None => {}
        }
    }
    None
}
