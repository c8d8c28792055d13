//! The processors of this machine.

use std::collections::HashSet;
use std::path::Path;

/// Physical cores that this process may use, at least 1.
///
/// Hardware threads of one core count once (from `/sys`); a CPU affinity or a container's
/// limit lowers the number.
pub fn physical_cores() -> usize {
    let usable = logical_processors();
    let siblings = core_siblings(Path::new("/sys/devices/system/cpu"));
    if siblings == 0 {
        usable
    } else {
        siblings.min(usable)
    }
}

/// Hardware threads that this process may use, at least 1.
pub fn logical_processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Different cores among the processors listed in `folder`; 0 if it tells nothing.
fn core_siblings(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let lists = entries.flatten().filter_map(|entry| {
        let list = entry.path().join("topology/thread_siblings_list");
        std::fs::read_to_string(list)
            .ok()
            .map(|text| text.trim().to_owned())
    });
    lists
        .filter(|list| !list.is_empty())
        .collect::<HashSet<_>>()
        .len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_count_once() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(core_siblings(folder.path()), 0);
        for (cpu, list) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
            let topology = folder.path().join(format!("cpu{cpu}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            std::fs::write(topology.join("thread_siblings_list"), list).unwrap();
        }
        std::fs::create_dir(folder.path().join("cpufreq")).unwrap();
        assert_eq!(core_siblings(folder.path()), 2);
        assert!((1..=logical_processors()).contains(&physical_cores()));
    }
}
