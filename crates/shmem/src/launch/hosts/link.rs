//! The connection between the root and a host, as either end writes to it.

use super::words::{Words, say};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the [module](self). Its threads write one message at a time.
#[derive(Clone)]
pub(crate) struct Link(Arc<Mutex<TcpStream>>);

impl Link {
    /// By this connection.
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    fn stream(&self) -> MutexGuard<'_, TcpStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something; whether that worked. One that is gone is noticed by who listens to it.
    pub(crate) fn tell(&self, words: &impl Words) -> bool {
        say(&mut *self.stream(), words).is_ok()
    }

    /// Gives a sign of life after each such time from now on, from a thread of its own, until the connection ends.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn beat(
        &self,
        every: Duration,
        beat: impl Words + Send + 'static,
    ) -> std::io::Result<()> {
        let this = self.clone();
        let thread = std::thread::Builder::new().name("beat".into());
        thread.spawn(move || {
            while this.tell(&beat) {
                std::thread::sleep(every);
            }
        })?;
        Ok(())
    }

    /// Ends it for all threads, at both ends.
    pub(crate) fn close(&self) {
        let _ = self.stream().shutdown(Shutdown::Both);
    }
}
