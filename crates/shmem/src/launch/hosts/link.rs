//! A host's way to the root.

use super::words::{Report, say};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Root(Arc<Mutex<TcpStream>>);

impl Root {
    /// By this connection.
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Says something. A root that is gone is noticed by who listens to it.
    pub(crate) fn tell(&self, report: &Report) {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = say(&mut *stream, report);
    }
}
