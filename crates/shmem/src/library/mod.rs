//! Libraries that are opened at run time.
#![allow(unsafe_code)] // Opens libraries.

use std::ffi::OsStr;
use std::path::PathBuf;

use libloading::Library;

pub(crate) mod search;
pub(crate) mod trust;

/// Opens a library for the rest of the process: those sought here keep threads and caches that do not survive being
/// unloaded.
///
/// Errors: what the loader says.
pub fn open_library(name: &OsStr) -> Result<&'static Library, String> {
    // SAFETY: the initialisers run are those of UCX, NVRTC, NCCL or cuBLAS, written to be run by dlopen in any thread.
    let library = unsafe { Library::new(name) };
    match library {
        Ok(library) => Ok(Box::leak(Box::new(library))),
        Err(error) => Err(match std::error::Error::source(&error) {
            Some(source) => source.to_string(),
            None => error.to_string(),
        }),
    }
}

/// A function of the library; without it the library is `not` what it should be.
///
/// Errors: it has none.
///
/// # Safety
/// `T` must be the function's type.
pub unsafe fn symbol<T: Copy>(library: &Library, name: &str, not: &str) -> Result<T, String> {
    // SAFETY: passed on to the caller.
    let symbol = unsafe { library.get::<T>(name) };
    symbol
        .map(|symbol| *symbol)
        .map_err(|_| format!("has no function {name}: {not}"))
}

/// The file that is mapped at `address` in this process.
pub fn mapped_file(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        let path = &line[line.find('/')?..];
        range.contains(&address).then(|| path.into())
    })
}

/// Places looked at and what was the matter there, in one line.
pub fn list(looked: &[(String, String)]) -> String {
    let places = looked
        .iter()
        .map(|(place, reason)| format!("{place} ({reason})"));
    places.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_file_behind_an_address() {
        let file = mapped_file(mapped_file as *const () as usize).unwrap();
        assert_eq!(file, std::env::current_exe().unwrap());
        assert_eq!(mapped_file(1), None);
    }
}
