//! Signs of life between the launchers, or the agents, of a world's hosts.

use std::io;
use std::time::Duration;

/// Time between two.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// A host that has given none for so long is lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Why nothing comes any more over a connection whose reads wait for [`PATIENCE`]; `who` is at its other end.
pub(crate) fn silence(error: &io::Error, who: &str) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("it has not answered for {} s", PATIENCE.as_secs())
        }
        io::ErrorKind::UnexpectedEof => format!("its {who} has ended"),
        _ => error.to_string(),
    }
}
