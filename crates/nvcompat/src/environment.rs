//! The `NVSHMEM_…` variables that mean something here.

use crosswarp_shmem::internal::parse_bytes;

/// A variable that means something, and what.
const KNOWN: &[(&str, &str)] = &[
    (
        "NVSHMEM_MAX_MEMORY_PER_GPU",
        "most bytes of symmetric heap per PE; K, M, G and T may follow (default: the GPU's memory)",
    ),
    (
        "NVSHMEM_SYMMETRIC_SIZE",
        "accepted; the heap grows by itself",
    ),
    ("NVSHMEM_INFO", "if set, print this text at the start"),
    ("NVSHMEM_VERSION", "if set, print the version at the start"),
    (
        "NVSHMEM_DISABLE_P2P",
        "refused if set: PEs reach each other's memory directly",
    ),
];

fn read(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    let value = value.to_string_lossy().into_owned();
    (!value.is_empty()).then_some(value)
}

fn is_set(name: &str) -> bool {
    read(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

/// Most bytes of heap per PE.
pub(crate) fn heap_limit() -> Result<Option<usize>, String> {
    if is_set("NVSHMEM_DISABLE_P2P") {
        return Err(
            "NVSHMEM_DISABLE_P2P is set, but PEs reach each other's memory directly or not at all"
                .into(),
        );
    }
    let name = "NVSHMEM_MAX_MEMORY_PER_GPU";
    let Some(text) = read(name) else {
        return Ok(None);
    };
    let bytes = parse_bytes(&text).filter(|&bytes| bytes > 0);
    let wanted = || format!("{name} is '{text}', but it is a number of bytes such as 4G");
    bytes.map(Some).ok_or_else(wanted)
}

/// What is to be said at the start, by PE 0.
pub(crate) fn greet() {
    if is_set("NVSHMEM_VERSION") || is_set("NVSHMEM_INFO") {
        println!("{}", greeting());
    }
    if is_set("NVSHMEM_INFO") {
        print!("{}", info());
    }
}

/// The version in a line.
pub(crate) fn greeting() -> String {
    format!(
        "Crosswarp {}: runs programs written for NVSHMEM 3.4.5; not affiliated with NVIDIA",
        env!("CARGO_PKG_VERSION")
    )
}

/// The variables that mean something.
pub(crate) fn variables() -> String {
    let lines = KNOWN
        .iter()
        .map(|(name, meaning)| format!("{name:<27} {meaning}\n"));
    lines.collect()
}

/// The variables: those that mean something, and those that are set and mean nothing.
pub(crate) fn info() -> String {
    let mut text = variables();
    let mut others: Vec<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with("NVSHMEM_") && name != "NVSHMEM_HOME")
        .filter(|name| KNOWN.iter().all(|(known, _)| known != name))
        .collect();
    others.sort();
    for name in others {
        text += &format!("{name:<27} is set, and means nothing here\n");
    }
    text
}
