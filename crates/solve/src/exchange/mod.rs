//! Bringing halos up to date.

pub(crate) mod device_put;
pub(crate) mod host_exchange;
pub(crate) mod put_signal;
