//! Programs that were linked with another OpenSHMEM library.

use object::read::elf::{Dyn, ElfFile64};
use std::path::Path;

/// The libraries of other implementations, up to the first dot.
const OTHERS: [&str; 4] = ["libsma", "liboshmem", "libshmem", "libopenshmem"];

/// Whether a library of this name (such as `libsma.so.4`) is another implementation of OpenSHMEM.
pub fn is_other_openshmem(library: &str) -> bool {
    let stem = library.split('.').next().unwrap_or(library);
    OTHERS.contains(&stem)
}

/// The other implementation of OpenSHMEM that the program in `file` was linked with, if it was with one
/// and not with Crosswarp's: under Crosswarp's launcher each PE of it is alone.
pub fn other_openshmem_of(file: &Path) -> Option<String> {
    let needed = needed(file)?;
    match needed
        .iter()
        .any(|name| name.starts_with("libcrosswarp_shmem"))
    {
        true => None,
        false => needed.into_iter().find(|name| is_other_openshmem(name)),
    }
}

/// The names of the libraries that a program was linked with.
fn needed(file: &Path) -> Option<Vec<String>> {
    let bytes = crate::memory::static_names::read(file)?;
    let elf = ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
    let endian = elf.endian();
    let sections = elf.elf_section_table();
    let (entries, strings) = sections.dynamic(endian, &*bytes).ok()??;
    let strings = sections.strings(endian, &*bytes, strings).ok()?;
    let needed = entries
        .iter()
        .filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED)
        .filter_map(|entry| entry.string(endian, strings).ok());
    Some(
        needed
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_implementations_are_known_by_name() {
        for name in ["libsma.so.4", "liboshmem.so.40", "libshmem.so"] {
            assert!(is_other_openshmem(name), "{name}");
        }
        for name in [
            "libcrosswarp_shmem.so",
            "libsmart.so",
            "libnvshmem_host.so.3",
        ] {
            assert!(!is_other_openshmem(name), "{name}");
        }
    }

    #[test]
    fn a_program_says_what_it_was_linked_with() {
        let own = std::env::current_exe().unwrap();
        assert!(needed(&own).unwrap().contains(&"libc.so.6".to_owned()));
        assert_eq!(other_openshmem_of(&own), None);
        assert_eq!(needed(Path::new("/etc/passwd")), None);
    }
}
