//! The objects of this process: the program and its libraries, as the loader has them.
#![allow(unsafe_code)] // reads the loader's descriptions and what they point to

use std::ffi::{CStr, c_int, c_void};
use std::{ptr, slice};

/// One loaded object. The loader's memory is only read while it lists the objects, so nothing of this
/// outlives [`visit`]'s closure.
pub(crate) struct Object<'a> {
    name: &'a CStr,
    pub(crate) base: usize,
    pub(crate) headers: &'a [libc::Elf64_Phdr],
}

/// What `shmem.h` leaves in every object file: the name of a note, and its type.
const NOTE: (&[u8], u32) = (b"Crosswarp\0", 1);

/// Entries of the dynamic section.
const DT_NEEDED: i64 = 1;
const DT_STRTAB: i64 = 5;
const DT_STRSZ: i64 = 10;
const DT_SONAME: i64 = 14;

/// Libraries of the C and C++ implementations, up to the first dot or dash of their names, wherever they are
/// installed: their variables are theirs, and a child made by `fork` must have its own.
const RUNTIME: [&[u8]; 22] = [
    b"ld",
    b"libc",
    b"libm",
    b"libmvec",
    b"libpthread",
    b"libdl",
    b"librt",
    b"libutil",
    b"libresolv",
    b"libanl",
    b"libnsl",
    b"libstdc++",
    b"libgcc_s",
    b"libgomp",
    b"libatomic",
    b"libquadmath",
    b"libgfortran",
    b"libasan",
    b"libubsan",
    b"libtsan",
    b"libc++",
    b"libomp",
];

/// Calls `see` with each object, in the order of loading: the program first.
pub(crate) fn visit(mut see: impl FnMut(&Object<'_>)) {
    extern "C" fn one<F: FnMut(&Object<'_>)>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        see: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid description and hands on the closure given below.
        let (info, see) = unsafe { (&*info, &mut *see.cast::<F>()) };
        // SAFETY: as many headers as the loader says.
        let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let name = match info.dlpi_name.is_null() {
            true => c"",
            // SAFETY: a C string that lives as long as the object.
            false => unsafe { CStr::from_ptr(info.dlpi_name) },
        };
        see(&Object {
            name,
            base: info.dlpi_addr as usize,
            headers,
        });
        0
    }
    fn listed<F: FnMut(&Object<'_>)>(see: &mut F) {
        // SAFETY: `one` gets the closure, of this very type, and nothing else uses it meanwhile.
        unsafe { libc::dl_iterate_phdr(Some(one::<F>), ptr::from_mut(see).cast()) };
    }
    listed(&mut see);
}

impl Object<'_> {
    /// The program itself has no name.
    pub(crate) fn is_program(&self) -> bool {
        self.name.is_empty()
    }

    /// Whether `address` is in one of its segments.
    pub(crate) fn contains(&self, address: usize) -> bool {
        self.headers.iter().any(|header| {
            let start = self.base + header.p_vaddr as usize;
            header.p_type == libc::PT_LOAD
                && (start..start + header.p_memsz as usize).contains(&address)
        })
    }

    /// Whether this library is in it.
    pub(crate) fn is_this_library(&self) -> bool {
        self.contains(own_address())
    }

    /// Whether it belongs to the system rather than to the program: by its path, by its name wherever it
    /// is, or because it has the C library's functions.
    pub(crate) fn is_system(&self) -> bool {
        let path = self.name.to_bytes();
        let system = [&b"/lib"[..], b"/usr/lib", b"linux-vdso", b"linux-gate"];
        let c_library = libc::getauxval as unsafe extern "C" fn(_) -> _ as usize;
        let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        system.iter().any(|prefix| path.starts_with(prefix))
            || self.contains(c_library)
            || is_runtime(file)
            || self.strings(DT_SONAME).iter().any(|name| is_runtime(name))
    }

    /// The names of the libraries it was linked with.
    pub(crate) fn needed(&self) -> Vec<Vec<u8>> {
        self.strings(DT_NEEDED)
    }

    /// Its own name as a library.
    pub(crate) fn soname(&self) -> Option<Vec<u8>> {
        self.strings(DT_SONAME).pop()
    }

    /// Whether any part of it was compiled with this library's `shmem.h`.
    pub(crate) fn has_our_note(&self) -> bool {
        let notes = self
            .headers
            .iter()
            .filter(|header| header.p_type == libc::PT_NOTE);
        notes.into_iter().any(|header| {
            let start = ptr::with_exposed_provenance::<u8>(self.base + header.p_vaddr as usize);
            // SAFETY: a loaded, readable segment as long as it says.
            holds_our_note(unsafe { slice::from_raw_parts(start, header.p_memsz as usize) })
        })
    }

    /// The strings of the dynamic section's entries with this tag.
    fn strings(&self, tag: i64) -> Vec<Vec<u8>> {
        let dynamic = self
            .headers
            .iter()
            .find(|header| header.p_type == libc::PT_DYNAMIC);
        let Some(dynamic) = dynamic else {
            return Vec::new();
        };
        let entries =
            ptr::with_exposed_provenance::<[i64; 2]>(self.base + dynamic.p_vaddr as usize);
        // SAFETY: a loaded segment of pairs of words, as long as it says.
        let entries = unsafe {
            slice::from_raw_parts(entries, dynamic.p_memsz as usize / size_of::<[i64; 2]>())
        };
        let value = |tag| {
            entries
                .iter()
                .find(|entry| entry[0] == tag)
                .map(|entry| entry[1] as usize)
        };
        let (Some(table), Some(bytes)) = (value(DT_STRTAB), value(DT_STRSZ)) else {
            return Vec::new();
        };
        // glibc adds the base in place, but not where the section is read-only.
        let table = match self.contains(table) {
            true => table,
            false => self.base + table,
        };
        if !self.contains(table) || !self.contains(table + bytes.max(1) - 1) {
            return Vec::new();
        }
        // SAFETY: inside a loaded segment.
        let table =
            unsafe { slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(table), bytes) };
        let string = |at: usize| CStr::from_bytes_until_nul(table.get(at..)?).ok();
        entries
            .iter()
            .filter(|entry| entry[0] == tag)
            .filter_map(|entry| Some(string(entry[1] as usize)?.to_bytes().to_owned()))
            .collect()
    }
}

fn own_address() -> usize {
    own_address as fn() -> usize as usize
}

fn is_runtime(name: &[u8]) -> bool {
    let stem = name.split(|byte| b".-".contains(byte)).next();
    RUNTIME.contains(&stem.unwrap_or(name)) || name.starts_with(b"libnss_")
}

fn holds_our_note(mut notes: &[u8]) -> bool {
    let padded = |bytes: u32| (bytes as usize).next_multiple_of(4);
    while let Some((head, rest)) = notes.split_first_chunk::<12>() {
        let word =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name_bytes, text_bytes) = (word(0), word(4));
        if (rest.get(..name_bytes as usize), word(8)) == (Some(NOTE.0), NOTE.1) {
            return true;
        }
        let Some(next) = rest.get(padded(name_bytes) + padded(text_bytes)..) else {
            return false;
        };
        notes = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_comes_first_and_knows_its_libraries() {
        let mut seen = Vec::new();
        visit(|object| {
            seen.push((
                object.is_program(),
                object.is_system(),
                object.needed(),
                object.soname(),
            ));
        });
        assert!(seen[0].0 && !seen[1..].iter().any(|object| object.0));
        assert!(seen[0].2.contains(&b"libc.so.6".to_vec()), "{:?}", seen[0]);
        let c = seen
            .iter()
            .find(|object| object.3.as_deref() == Some(b"libc.so.6"));
        assert!(c.is_some_and(|object| object.1));
    }

    #[test]
    fn runtimes_are_known_by_name() {
        for name in [
            "libc.so.6",
            "ld-linux-x86-64.so.2",
            "libc.musl-x86_64.so.1",
            "libstdc++.so.6",
            "libgomp.so.1",
        ] {
            assert!(is_runtime(name.as_bytes()), "{name}");
        }
        for name in [
            "libcounter.so",
            "libcrosswarp_shmem.so",
            "libmine.so",
            "ldap.so",
        ] {
            assert!(!is_runtime(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn the_note_is_found_among_others() {
        let mut notes = Vec::new();
        let mut add = |name: &[u8], kind: u32, text: &[u8]| {
            for word in [name.len() as u32, text.len() as u32, kind] {
                notes.extend(word.to_ne_bytes());
            }
            for part in [name, text] {
                notes.extend(part);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
            (holds_our_note(&notes), notes.len())
        };
        assert!(!add(b"GNU\0", 3, &[7; 20]).0);
        assert!(!add(NOTE.0, 2, b"").0);
        let (found, len) = add(NOTE.0, 1, &[1, 0, 0, 0]);
        assert!(found);
        assert!(!holds_our_note(&notes[..len - 20]));
        assert!(!holds_our_note(&[0xff; 40]));
    }
}
