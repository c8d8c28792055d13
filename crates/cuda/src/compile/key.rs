//! What names compiled code: a hash of everything that goes into it.

use sha2::{Digest, Sha256};

use crate::arch::Arch;
use crate::compile::program::{Options, headers_of};
use crate::compile::source::Source;

/// Bytes of a hash.
pub(crate) const HASH: usize = 32;

/// The hash of everything a cubin depends on.
pub(crate) type Key = [u8; HASH];

/// The hash of everything a cubin depends on, each part preceded by its length so that no two
/// different lists of parts are the same bytes. Without a version, code of any NVRTC will do.
pub(crate) fn key(
    source: &Source<'_>,
    arch: Arch,
    options: &Options,
    version: Option<(u32, u32)>,
) -> Key {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    part(source.name);
    part(source.text);
    let headers = headers_of(source);
    part(&headers.len().to_string());
    for (name, text) in headers {
        part(name);
        part(text);
    }
    for option in options.command_line(arch) {
        part(&option);
    }
    if let Some((major, minor)) = version {
        part(&format!("NVRTC {major}.{minor}"));
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_depends_on_every_part() {
        const ONE: Source<'static> = Source::new("a.cu", "text");
        const VERSION: Option<(u32, u32)> = Some((13, 0));
        let (arch, options) = (Arch::new(9, 0), Options::new());
        let of_source = |source: &Source<'_>| key(source, arch, &options, VERSION);
        let of_options = |options: &Options| key(&ONE, arch, options, VERSION);
        let base = of_source(&ONE);
        let other = [
            of_source(&Source::new("b.cu", "text")),
            of_source(&Source::new("a.cu", "texu")),
            of_source(&Source::new("a.cut", "ext")),
            of_source(&ONE.with_headers(&[("h", "t")])),
            of_source(&ONE.with_headers(&[("ht", "")])),
            of_options(&Options::new().define("A", 1)),
            of_options(&Options::new().define("A", 2)),
            key(&ONE, Arch::new(8, 0), &options, VERSION),
            key(&ONE, arch, &options, Some((13, 1))),
            key(&ONE, arch, &options, None),
        ];
        let different: std::collections::HashSet<&Key> = other.iter().chain([&base]).collect();
        assert_eq!(different.len(), other.len() + 1);
        // How a kernel is launched changes nothing in its code.
        let shapes = ONE.with_shapes(&[crate::Shape {
            kernel: "k",
            threads: 32,
            dynamic_shared: 0,
        }]);
        assert_eq!(of_source(&shapes), base);
    }
}
