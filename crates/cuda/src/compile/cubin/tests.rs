use super::*;
use proptest::prelude::*;

/// One section of a made-up cubin.
struct Part {
    name: &'static str,
    kind: u32,
    link: u32,
    info: u32,
    /// For sections without contents, only the length counts.
    contents: Vec<u8>,
}

fn part(name: &'static str, contents: Vec<u8>) -> Part {
    Part {
        name,
        kind: 1,
        link: 0,
        info: 0,
        contents,
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A record with a value.
fn record(attribute: u8, value: &[u32]) -> Vec<u8> {
    let mut bytes = vec![FORMAT_SIZED, attribute, (4 * value.len()) as u8, 0];
    bytes.extend(words(value));
    bytes
}

/// An ELF file with the header, then the contents, then the section headers.
fn elf(mut parts: Vec<Part>) -> Vec<u8> {
    parts.insert(0, part("", Vec::new()));
    let mut names = Vec::new();
    let mut name_offsets = Vec::new();
    parts.push(part(".shstrtab", Vec::new()));
    for part in &parts {
        name_offsets.push(names.len() as u32);
        names.extend(part.name.bytes().chain([0]));
    }
    let last = parts.len() - 1;
    parts[last].contents = names;

    let mut file = vec![0u8; 64];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[18..20].copy_from_slice(&MACHINE_CUDA.to_le_bytes());
    let mut headers = Vec::new();
    for (part, name) in parts.iter().zip(name_offsets) {
        headers.extend(words(&[name, part.kind, 0, 0, 0, 0]));
        headers.extend((file.len() as u64).to_le_bytes());
        headers.extend((part.contents.len() as u64).to_le_bytes());
        headers.extend(words(&[part.link, part.info, 0, 0, 0, 0]));
        if part.kind != NOBITS {
            file.extend(&part.contents);
        }
    }
    let table = file.len() as u64;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[58..60].copy_from_slice(&64u16.to_le_bytes());
    file[60..62].copy_from_slice(&(parts.len() as u16).to_le_bytes());
    file[62..64].copy_from_slice(&(last as u16).to_le_bytes());
    file.extend(headers);
    file
}

/// Two kernels and a function that is only called, as a compiler for 9.0 writes them.
fn sample() -> Vec<u8> {
    let symbols = [0u32, 1, 7]
        .iter()
        .flat_map(|&name| words(&[name, 0, 0, 0, 0, 0]))
        .collect();
    let info = [
        record(REGISTER_COUNT, &[1, 40]),
        record(MIN_STACK_SIZE, &[1, 400]),
        record(REGISTER_COUNT, &[2, 10]),
    ];
    let barriers = [3, 0x4c, 1, 0]; // A record with its value inside.
    let shared = |size| Part {
        kind: NOBITS,
        ..part(".nv.shared.second", vec![0; size])
    };
    elf(vec![
        part(".strtab", b"\0first\0second\0".to_vec()),
        Part {
            kind: SYMTAB,
            link: 1,
            ..part(".symtab", symbols)
        },
        part(".nv.info", info.concat()),
        part(
            ".nv.info.first",
            [
                &barriers[..],
                // Two parameters of 8 and 4 bytes, as a compiler writes them: the last first.
                &record(PARAMETER, &[0, 0x0008_0001, 0x0011_f000]),
                &record(PARAMETER, &[0, 0x0000_0000, 0x0021_f000]),
                &record(MAX_THREADS, &[64, 4, 1]),
            ]
            .concat(),
        ),
        part(".nv.info.second", barriers.to_vec()),
        part(".nv.constant3", vec![0; 256]),
        part(".text.second", vec![0; 16]),
        part(".text.first", vec![0; 16]),
        part(".text.called", vec![0; 16]),
        shared(1024 + 1200),
        Part {
            kind: NOBITS,
            ..part(RESERVED_SECTION, Vec::new())
        },
    ])
}

#[test]
fn a_made_up_cubin_is_read() {
    let kernel =
        |name: &str, registers, static_shared, local, max_threads, parameters| KernelResources {
            name: name.into(),
            registers,
            static_shared,
            local,
            constant: 256,
            max_threads,
            parameters,
        };
    assert_eq!(
        kernel_resources(&sample()).unwrap(),
        [
            kernel("first", 40, 0, 400, Some(256), 2),
            kernel("second", 10, 1200, 0, None, 0)
        ]
    );
}

#[test]
fn registers_may_be_in_the_code_sections_header() {
    let text = Part {
        info: 79 << 24 | 5,
        ..part(".text.k", Vec::new())
    };
    let shared = Part {
        kind: NOBITS,
        ..part(".nv.shared.k", vec![0; 1200])
    };
    let kernels =
        kernel_resources(&elf(vec![text, shared, part(".nv.info.k", Vec::new())])).unwrap();
    assert_eq!((kernels[0].registers, kernels[0].static_shared), (79, 1200));
}

#[test]
fn other_files_are_refused() {
    for bytes in [
        &b""[..],
        b"\x7fELF",
        b"not a cubin at all, but long enough to hold a header, is it not?!",
    ] {
        assert!(kernel_resources(bytes).is_err());
    }
    let mut other = sample();
    other[18] = 62; // x86-64
    assert_eq!(
        kernel_resources(&other).unwrap_err().reason,
        "another machine than CUDA"
    );
}

#[test]
fn every_truncation_is_refused() {
    let whole = sample();
    for length in 0..whole.len() {
        assert!(kernel_resources(&whole[..length]).is_err(), "{length}");
    }
}

proptest! {
    #[test]
    fn damage_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = sample();
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        let _ = kernel_resources(&bytes);
    }
}

#[test]
fn the_architecture_is_in_the_header() {
    let mut cubin = sample();
    cubin[ABI_VERSION] = 8;
    cubin[FLAGS..FLAGS + 4].copy_from_slice(&0x0600_5a04u32.to_le_bytes());
    assert_eq!(cubin_arch(&cubin), Ok(Arch::new(9, 0)));
    cubin[ABI_VERSION] = 7;
    cubin[FLAGS..FLAGS + 4].copy_from_slice(&0x0050_0550u32.to_le_bytes());
    assert_eq!(cubin_arch(&cubin), Ok(Arch::new(8, 0)));
    assert!(cubin_arch(b"text").is_err());
}
