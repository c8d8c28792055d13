//! The settings of a world: one table that defines name, default and meaning of each.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// One environment variable Crosswarp reads.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name of the variable.
    pub name: &'static str,
    /// What holds without it, in words.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// Symmetric heap of each PE.
pub const HEAP: Setting = Setting {
    name: "CROSSWARP_HEAP",
    default: "physical memory divided by the PEs (reserved, not touched)",
    help: "bytes of symmetric heap per PE; K, M, G and T (powers of 1024) may follow",
};

/// The same by the name that OpenSHMEM gives it.
pub const SYMMETRIC_SIZE: Setting = Setting {
    name: "SHMEM_SYMMETRIC_SIZE",
    default: "what CROSSWARP_HEAP says, which comes first",
    help: "bytes of symmetric heap per PE that allocations can use, written like those of CROSSWARP_HEAP",
};

/// [`SYMMETRIC_SIZE`] before OpenSHMEM 1.4, deprecated but not gone; the new name comes first.
const OLD_SYMMETRIC_SIZE: &str = "SMA_SYMMETRIC_SIZE";

/// When waits give up.
pub const WAIT_TIMEOUT: Setting = Setting {
    name: "CROSSWARP_WAIT_TIMEOUT",
    default: "never",
    help: "seconds after which a wait gives up with an error that names it",
};

/// Cuts worlds into hosts that share nothing.
pub const FAKE_HOSTS: Setting = Setting {
    name: "CROSSWARP_FAKE_HOSTS",
    default: "all PEs are on one host",
    help: "for tests: a number of hosts, or the PEs of each such as 1+3, that share no memory; tcp: or ucx: before it names their network",
};

/// What carries messages between hosts.
pub const NETWORK: Setting = Setting {
    name: "CROSSWARP_NETWORK",
    default: "tcp",
    help: "what carries messages between hosts: tcp, or ucx (libucp.so.0, which CROSSWARP_UCX can name)",
};

/// How often hosts give signs of life.
pub const BEAT: Setting = Setting {
    name: "CROSSWARP_BEAT",
    default: "1",
    help: "seconds between two signs of life of a host; the same on all hosts",
};

/// How long one may give none.
pub const PATIENCE: Setting = Setting {
    name: "CROSSWARP_PATIENCE",
    default: "5",
    help: "seconds without a sign of life after which a host is lost, more than CROSSWARP_BEAT; the same on all hosts",
};

/// Where PEs meet that no launcher introduces to each other.
pub const BOOTSTRAP: Setting = Setting {
    name: "CROSSWARP_BOOTSTRAP",
    default: "PEs meet through their launcher: crosswarp run, PMI or PMIx",
    help: "ADDRESS:PORT where rank 0 listens for the others, for processes that are told who they are by RANK, \
           WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE only; not MASTER_PORT",
};

/// What they prove to belong together by.
pub const SECRET_FILE: Setting = Setting {
    name: "CROSSWARP_SECRET_FILE",
    default: "none: CROSSWARP_BOOTSTRAP must be a loopback address",
    help: "a file that only its owner may read, the same for all PEs, with 32 hexadecimal digits, as from openssl rand -hex 16",
};

/// The host that this process says it is on.
pub const HOST: Setting = Setting {
    name: "CROSSWARP_HOST",
    default: "what the launcher says",
    help: "name of the host a PE counts as being on; those with the same name share memory",
};

/// The network that agents listen on.
pub const INTERFACE: Setting = Setting {
    name: "CROSSWARP_INTERFACE",
    default: "where CROSSWARP_BOOTSTRAP is reached, else this host's name, else the first interface that is up",
    help: "under other launchers than crosswarp run: the interface, or the network such as 10.0.0.0/8, that hosts talk over",
};

/// Tells how many PEs each host has, as in `2+2`: to a process of a world of several hosts by the launcher, or, in
/// place of what another launcher says, by the user.
pub(crate) const HOSTS: &str = "CROSSWARP_HOSTS";

/// Every setting, for help texts.
pub const SETTINGS: [Setting; 11] = [
    HEAP,
    SYMMETRIC_SIZE,
    WAIT_TIMEOUT,
    FAKE_HOSTS,
    NETWORK,
    BEAT,
    PATIENCE,
    BOOTSTRAP,
    SECRET_FILE,
    HOST,
    INTERFACE,
];

/// What carries messages between hosts; the same on all of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Network {
    /// Sockets of our own.
    #[default]
    Tcp,
    /// UCX, opened at run time.
    Ucx,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Ucx => "ucx",
        })
    }
}

impl FromStr for Network {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "tcp" => Ok(Self::Tcp),
            "ucx" => Ok(Self::Ucx),
            _ => Err(ConfigError {
                name: NETWORK.name,
                value: text.to_owned(),
                wanted: "tcp or ucx",
            }),
        }
    }
}

impl Network {
    /// The one that the environment asks for.
    ///
    /// # Errors
    /// [`ConfigError`]: there is no such.
    pub(crate) fn chosen() -> Result<Self, ConfigError> {
        read(NETWORK.name)?.map_or(Ok(Self::default()), |text| text.parse())
    }
}

/// A setting whose value makes no sense.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{name} is '{value}', but must be {wanted}")]
pub struct ConfigError {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What would be right.
    pub wanted: &'static str,
}

/// Options of a world; unset ones come from the environment, then from defaults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Config {
    pub(crate) heap_bytes: Option<usize>,
    pub(crate) wait_timeout: Option<Duration>,
    /// As [`FAKE_HOSTS`].
    pub(crate) fake_hosts: Option<&'static str>,
}

impl Config {
    /// Heap bytes per PE, a multiple of the page size, at least one page.
    pub(crate) fn heap_bytes(&self, n_pes: usize) -> Result<usize, ConfigError> {
        let bytes = match self.heap_bytes {
            Some(bytes) => bytes,
            None => match (size(HEAP.name)?, symmetric_size()?) {
                (Some(bytes), _) => bytes,
                // Objects that come to that size must fit, and each is rounded up to lines.
                (None, Some(bytes)) => bytes.saturating_add(bytes / 8).saturating_add(1 << 20),
                (None, None) => physical_memory() / n_pes,
            },
        };
        let page = rustix::param::page_size();
        Ok(bytes
            .clamp(page, isize::MAX as usize / 2)
            .next_multiple_of(page))
    }

    /// What [`FAKE_HOSTS`] says.
    pub(crate) fn fake_hosts(&self) -> Result<Option<String>, ConfigError> {
        match self.fake_hosts {
            Some(text) => Ok(Some(text.to_owned())),
            None => read(FAKE_HOSTS.name),
        }
    }

    pub(crate) fn wait_timeout(&self) -> Result<Option<Duration>, ConfigError> {
        if self.wait_timeout.is_some() {
            return Ok(self.wait_timeout);
        }
        let Some(text) = read(WAIT_TIMEOUT.name)? else {
            return Ok(None);
        };
        seconds(WAIT_TIMEOUT.name, text).map(Some)
    }
}

/// The variable, or `None` if it is unset or empty.
pub(crate) fn read(name: &'static str) -> Result<Option<String>, ConfigError> {
    match std::env::var(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(raw)) => Err(ConfigError {
            name,
            value: raw.to_string_lossy().into_owned(),
            wanted: "readable text",
        }),
    }
}

/// The time that `text`, the value of `name`, says.
pub(crate) fn seconds(name: &'static str, text: String) -> Result<Duration, ConfigError> {
    let seconds: Option<f64> = text.trim().parse().ok().filter(|&s| s > 0.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or(ConfigError {
        name,
        value: text,
        wanted: "a positive number of seconds",
    })
}

/// What OpenSHMEM's variable says, by its new or old name.
fn symmetric_size() -> Result<Option<usize>, ConfigError> {
    match size(SYMMETRIC_SIZE.name)? {
        Some(bytes) => Ok(Some(bytes)),
        None => size(OLD_SYMMETRIC_SIZE),
    }
}

/// The variable as a number of bytes.
fn size(name: &'static str) -> Result<Option<usize>, ConfigError> {
    let wrong = |value| ConfigError {
        name,
        value,
        wanted: "a number of bytes such as 268435456, 256M or 1G",
    };
    read(name)?
        .map(|text| parse_bytes(&text).ok_or_else(|| wrong(text)))
        .transpose()
}

/// Parses `123`, `64K`, `1.5G`, `2GiB`, `2GB` (all powers of 1024); `None` for anything else.
///
/// ```
/// use crosswarp_shmem::internal::parse_bytes;
/// assert_eq!(parse_bytes("1.5G"), Some(3 << 29));
/// assert_eq!(parse_bytes("-1"), None);
/// ```
pub fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1u64,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
        _ => return None,
    };
    let bytes = match number.parse::<u64>() {
        Ok(number) => number.checked_mul(unit)?,
        Err(_) => {
            let bytes = number.parse::<f64>().ok()? * unit as f64;
            (bytes < u64::MAX as f64).then_some(bytes as u64)?
        }
    };
    usize::try_from(bytes).ok()
}

fn physical_memory() -> usize {
    let info = rustix::system::sysinfo();
    (info.totalram as usize).saturating_mul(info.mem_unit as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            (" 64k ", Some(65536)),
            ("2GiB", Some(2 << 30)),
            ("0.5M", Some(1 << 19)),
            ("", None),
            ("G", None),
            ("1.2.3", None),
            ("12X", None),
            ("99999999999999999999", None),
            ("99999999T", None),
        ] {
            assert_eq!(parse_bytes(text), bytes, "{text:?}");
        }
    }

    /// In a process of its own, for the environment is everybody's.
    #[test]
    fn the_specifications_size_counts_for_allocations() {
        for (ours, theirs, at_least) in [("", "1.5M", 3 << 19), ("8M", "64M", 8 << 20)] {
            let test = std::env::current_exe().unwrap();
            let status = std::process::Command::new(test)
                .args(["--ignored", "--exact", "config::tests::asks_for_the_heap"])
                .env(HEAP.name, ours)
                .env(SYMMETRIC_SIZE.name, theirs)
                .env("AT_LEAST", at_least.to_string())
                .stdout(std::process::Stdio::null())
                .status();
            assert!(status.unwrap().success(), "{ours} {theirs}");
        }
    }

    #[test]
    #[ignore = "run by the test above, with variables set"]
    fn asks_for_the_heap() {
        let bytes: usize = std::env::var("AT_LEAST").unwrap().parse().unwrap();
        crate::spmd(2, |pe| {
            assert!(pe.heap_bytes() < 2 * bytes);
            // All of it as one object, if the size is the specification's.
            let object = bytes - if bytes == 8 << 20 { bytes / 8 } else { 0 };
            let object = pe.raw().malloc(object, 1).unwrap();
            pe.raw().free(object).unwrap();
        })
        .unwrap();
    }

    #[test]
    fn heaps_are_whole_pages() {
        let page = rustix::param::page_size();
        for (asked, got) in [(0, page), (1, page), (page + 1, 2 * page)] {
            let config = Config {
                heap_bytes: Some(asked),
                wait_timeout: None,
                fake_hosts: None,
            };
            assert_eq!(config.heap_bytes(3), Ok(got));
        }
    }
}
