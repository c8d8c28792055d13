//! Codes of UCX as errors.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::NonNull;

/// Why UCX did not do something: a negative code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(i8);

/// Not complete yet. The one code that is no error and not zero.
pub(super) const IN_PROGRESS: i8 = 1;
/// The lowest code, and so the lowest address that is a code and no pointer.
const LOWEST: isize = -100;

impl Status {
    pub(crate) const NO_MEMORY: Self = Self(-4);
    pub(crate) const INVALID_PARAMETER: Self = Self(-5);
    pub(crate) const UNREACHABLE: Self = Self(-6);
    pub(crate) const MESSAGE_TRUNCATED: Self = Self(-9);
    pub(crate) const BUSY: Self = Self(-15);
    pub(crate) const CANCELED: Self = Self(-16);
    pub(crate) const NOT_CONNECTED: Self = Self(-24);
    pub(crate) const CONNECTION_RESET: Self = Self(-25);
    pub(crate) const ENDPOINT_TIMEOUT: Self = Self(-80);

    /// The error that `code` is, if it is one.
    pub(super) fn of(code: i8) -> Option<Self> {
        (code < 0).then_some(Self(code))
    }

    /// Its number, as `ucs/type/status.h` has it.
    pub(crate) fn code(self) -> i8 {
        self.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match *self {
            Self(-2) => "no resource is free",
            Self(-3) => "input/output error",
            Self::NO_MEMORY => "out of memory",
            Self::INVALID_PARAMETER => "invalid parameter",
            Self::UNREACHABLE => "the peer can not be reached",
            Self(-7) => "invalid address",
            Self(-8) => "not implemented",
            Self::MESSAGE_TRUNCATED => "the message is longer than its buffer",
            Self(-11) => "the buffer is too small",
            Self(-12) => "there is no such element",
            Self(-14) => "there is no such device",
            Self::BUSY => "busy",
            Self::CANCELED => "canceled",
            Self(-19) => "out of range",
            Self(-20) => "timed out",
            Self(-22) => "unsupported",
            Self(-23) => "the peer refused",
            Self::NOT_CONNECTED => "not connected",
            Self::CONNECTION_RESET => "the peer closed the connection",
            Self::ENDPOINT_TIMEOUT => "the peer does not answer",
            Self(code) => return write!(f, "UCX error {code}"),
        };
        write!(f, "{words} (UCX error {})", self.0)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({self})")
    }
}

impl std::error::Error for Status {}

/// A code as a function of UCX returns it, or hands it to a callback: the lowest eight bits count, the rest of the
/// register is arbitrary.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(super) struct RawStatus(c_int);

impl RawStatus {
    pub(super) const OK: Self = Self(0);
    pub(super) const IN_PROGRESS: Self = Self(IN_PROGRESS as c_int);

    pub(super) fn code(self) -> i8 {
        self.0 as i8
    }

    /// Success, also when it is only under way.
    pub(super) fn check(self) -> Result<(), Status> {
        Status::of(self.code()).map_or(Ok(()), Err)
    }
}

/// What a function returned that may start an operation: none if it is complete, else UCX's handle of it.
pub(super) fn started(returned: *mut c_void) -> Result<Option<NonNull<c_void>>, Status> {
    match returned.addr() as isize {
        code @ LOWEST..0 => Err(Status(code as i8)),
        _ => Ok(NonNull::new(returned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lowest_bits_of_a_code_count() {
        assert_eq!(RawStatus(0x7f00).check(), Ok(()));
        assert_eq!(RawStatus(0x7f01).code(), IN_PROGRESS);
        assert_eq!(RawStatus(0x12ff_fffb_u32 as c_int).check(), Err(Status(-5)));
        assert_eq!(RawStatus(0x00e7).check(), Err(Status::CONNECTION_RESET));
    }

    #[test]
    fn addresses_at_the_very_top_are_codes() {
        let at = |address: isize| started(std::ptr::without_provenance_mut(address as usize));
        assert_eq!(at(0), Ok(None));
        assert_eq!(at(-5), Err(Status::INVALID_PARAMETER));
        assert_eq!(at(-100), Err(Status(-100)));
        assert_eq!(
            at(-101).unwrap().unwrap().as_ptr().addr(),
            -101_isize as usize
        );
        assert!(at(0x1000).unwrap().is_some());
    }
}
