//! Global and static variables as symmetric memory.
//!
//! The specification makes the program's global and static variables symmetric. When the library is
//! initialised, the writable segment of the program (its `.data` and `.bss`), and those of its own shared
//! libraries, change their backing: a memfd gets the same content and is mapped over the same addresses,
//! in one step each. The other PEs map that memfd too, so put, get, atomics and signals reach a static
//! variable as they reach the heap. Addresses in it stay as they are; where two PEs' segments lie at
//! different addresses (position-independent programs under address randomisation), offsets translate.
//!
//! What is left alone: what the loader has made read-only (RELRO), thread-local variables, the data of
//! the system's libraries (below `/lib` and `/usr/lib`; the C and C++ libraries wherever they are) and of
//! this library.
//!
//! Limits. All PEs must run the same program with the same libraries, or nothing is shared (said so if
//! debugging) and PEs of several hosts are refused. Other threads must not write to global variables during initialisation. Libraries opened
//! later (`dlopen`) are not shared. A child made by `fork` shares the variables with its parent until it
//! calls `exec`.
#![allow(unsafe_code)] // maps memory over the program's own

use crate::objects::Object;
use crate::{debug, objects};
use crosswarp_shmem::{CollectiveError, Pe, ShareError, raw};
use rustix::fd::{AsFd, OwnedFd};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::{io, slice};
use thiserror::Error;

/// Sharing the static data failed.
#[derive(Debug, Error)]
pub(crate) enum StaticDataError {
    /// The system refused memory or a mapping.
    #[error("cannot make the program's static data symmetric: {0}")]
    Memory(#[from] io::Error),
    /// The PEs could not exchange it.
    #[error("cannot exchange the PEs' static data: {0}")]
    Share(#[from] ShareError),
    /// Hosts run different builds of the program.
    #[error("the PEs run different programs or libraries; those of several hosts must be the same")]
    Programs,
    /// The rendezvous of the PEs failed.
    #[error(transparent)]
    Meeting(#[from] CollectiveError),
}

/// A page-aligned range of writable memory of a loaded object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    start: usize,
    end: usize,
    /// Where the part begins that no file fills: pages there that were never touched are zero.
    zeros: usize,
}

impl Segment {
    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Makes the static data of the program symmetric. Collective; to be called before other threads of the
/// program write to it.
pub(crate) fn share(pe: &mut Pe) -> Result<(), StaticDataError> {
    let segments = segments();
    // 56 bits of a digest: PEs with another program must not register.
    match pe.agree(digest() >> 8, segments.len() as u64) {
        Ok(()) => {}
        // On one host that is a choice; between hosts it is a copy that was forgotten.
        Err(CollectiveError::Mismatch { .. }) if pe.shared_team().n_pes() < pe.n_pes() => {
            return Err(StaticDataError::Programs);
        }
        Err(CollectiveError::Mismatch { .. }) => {
            if debug::enabled() {
                crate::misuse::say(format_args!(
                    "the PEs run different programs, so static data are not symmetric"
                ));
            }
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    for segment in segments {
        let memory = replace(segment)?;
        let base = NonNull::new(ptr::with_exposed_provenance_mut::<u8>(segment.start));
        let base = base.expect("no segment begins at address 0");
        // SAFETY: `replace` has mapped the whole of `memory` shared at `base`, where the program keeps
        // it for its whole life; segments of different objects do not overlap.
        unsafe { pe.register_segment(base, segment.len(), memory.as_fd())? };
    }
    Ok(())
}

/// Changes the backing of `segment` to a new memfd with the same content.
fn replace(segment: Segment) -> io::Result<OwnedFd> {
    let len = segment.len();
    let memory = raw::memfd("crosswarp-static", len)?;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let copy = unsafe {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        rustix::mm::mmap(ptr::null_mut(), len, protection, flags, &memory, 0)?
    };
    let page = rustix::param::page_size();
    let touched = touched_pages(segment, page);
    // From here to the end nothing may write to the segment, which in a static program holds this
    // library's and the C library's variables too: only system calls follow.
    for index in 0..len / page {
        let at = segment.start + index * page;
        if at >= segment.zeros && !touched.get(index).is_none_or(|&touched| touched) {
            continue;
        }
        // By the kernel, not by `memcpy`: a program built with the address sanitizer would report the gaps
        // that it keeps between variables.
        // SAFETY: a mapped page; nobody else writes to it (see the module's limits).
        let content = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(at), page) };
        if rustix::io::pwrite(&memory, content, (index * page) as u64)? != page {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    // SAFETY: moves the copy over the pages it was made of, so every address keeps its content; the
    // kernel does it in one step.
    unsafe {
        let place = ptr::with_exposed_provenance_mut::<c_void>(segment.start);
        rustix::mm::mremap_fixed(copy, len, len, MremapFlags::MAYMOVE, place)?;
    }
    Ok(memory)
}

/// Which pages of `segment` have content, so that a large `.bss` need not be touched to be copied.
/// Empty if the kernel does not say.
fn touched_pages(segment: Segment, page: usize) -> Vec<bool> {
    let mut entries = vec![0u8; segment.len() / page * 8];
    let read = File::open("/proc/self/pagemap")
        .and_then(|map| map.read_exact_at(&mut entries, (segment.start / page * 8) as u64));
    match read {
        // Bit 63: present; bit 62: swapped out. (The page numbers below are hidden, these are not.)
        Ok(()) => entries
            .chunks_exact(8)
            .map(|entry| entry[7] & 0xc0 != 0)
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// The segments to share, the program's own first, in the order of loading.
fn segments() -> Vec<Segment> {
    let mut list = Vec::new();
    visit_own(|object| list.extend(writable(object.base, object.headers)));
    list
}

/// Calls `see` with the program and its own libraries.
fn visit_own(mut see: impl FnMut(&Object<'_>)) {
    objects::visit(|object| {
        let own = !object.is_this_library() && !object.is_system();
        if object.is_program() || own {
            see(object);
        }
    });
}

/// Of the build of the program and its own libraries (FNV-1a): where their parts lie, and their notes, of which one
/// is the linker's hash of all content.
fn digest() -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| digest = (digest ^ word).wrapping_mul(0x100_0000_01b3);
    visit_own(|object| {
        for header in object.headers {
            let start = object.base + header.p_vaddr as usize;
            match header.p_type {
                libc::PT_LOAD => {
                    for word in [header.p_vaddr, header.p_filesz, header.p_memsz] {
                        add(word);
                    }
                }
                libc::PT_NOTE if object.contains(start) => {
                    let at = ptr::with_exposed_provenance::<u8>(start);
                    // SAFETY: read-only content of a loaded segment, as long as its header says.
                    let notes = unsafe { slice::from_raw_parts(at, header.p_filesz as usize) };
                    notes.iter().for_each(|&byte| add(byte.into()));
                }
                _ => {}
            }
        }
    });
    digest
}

/// The writable pages of one object, less those that the loader has made read-only.
fn writable(base: usize, headers: &[libc::Elf64_Phdr]) -> Vec<Segment> {
    let page = rustix::param::page_size();
    let down = |address: usize| address / page * page;
    let range = |header: &libc::Elf64_Phdr, bytes: u64| {
        let start = base + header.p_vaddr as usize;
        (start, start + bytes as usize)
    };
    let relro = headers
        .iter()
        .find(|header| header.p_type == libc::PT_GNU_RELRO);
    let loaded = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0);
    let mut list = Vec::new();
    for header in loaded {
        let (start, end) = range(header, header.p_memsz);
        let (_, filled) = range(header, header.p_filesz);
        let mut segment = Segment {
            start: down(start),
            end: end.next_multiple_of(page),
            zeros: filled.next_multiple_of(page),
        };
        if let Some(relro) = relro {
            // The linker puts it at the beginning of the segment; the loader protects whole pages of it.
            let (from, to) = range(relro, relro.p_memsz);
            if (segment.start..segment.end).contains(&down(from)) {
                segment.start = segment.start.max(down(to));
            }
        }
        if segment.start < segment.end {
            list.push(segment);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    static INITIALISED: AtomicU64 = AtomicU64::new(41);
    static ZERO: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];

    #[test]
    fn the_program_comes_first_and_its_variables_lie_inside() {
        let list = segments();
        for variable in [&INITIALISED, &ZERO[0], &ZERO[4095]] {
            let at = ptr::from_ref(variable).addr();
            assert!(
                (list[0].start..list[0].end).contains(&at),
                "{at:#x} {list:?}"
            );
        }
        let page = rustix::param::page_size();
        assert!(
            list.iter()
                .all(|s| s.start % page == 0 && s.end % page == 0)
        );
    }

    #[test]
    fn read_only_pages_at_the_beginning_are_left_out() {
        let header = |p_type, p_flags, p_vaddr, p_filesz, p_memsz| libc::Elf64_Phdr {
            p_type,
            p_flags,
            p_offset: 0,
            p_vaddr,
            p_paddr: 0,
            p_filesz,
            p_memsz,
            p_align: 0x1000,
        };
        let headers = [
            header(libc::PT_LOAD, libc::PF_R | libc::PF_X, 0, 0x1000, 0x1000),
            header(
                libc::PT_LOAD,
                libc::PF_R | libc::PF_W,
                0x2d00,
                0x500,
                0x5000,
            ),
            header(libc::PT_GNU_RELRO, libc::PF_R, 0x2d00, 0x300, 0x300),
        ];
        let expected = Segment {
            start: 0x40_3000,
            end: 0x40_8000,
            zeros: 0x40_4000,
        };
        assert_eq!(writable(0x40_0000, &headers), [expected]);
    }
}
