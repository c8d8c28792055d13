//! The architecture that code is compiled for.

use std::fmt;
use std::str::FromStr;

/// A compute capability, e.g. 9.0, and the real architecture of that number, `sm_90`.
///
/// ```
/// use crosswarp_cuda::Arch;
/// let hopper: Arch = "sm_90".parse().unwrap();
/// assert_eq!(hopper, Arch::new(9, 0));
/// assert_eq!(hopper, "9.0".parse().unwrap());
/// assert_eq!(hopper.to_string(), "sm_90");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// The number before the point.
    pub major: u32,
    /// The number after the point.
    pub minor: u32,
}

impl Arch {
    /// The architecture of compute capability `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// From the form NVRTC uses, 10 × major + minor.
    pub const fn from_number(number: u32) -> Self {
        Self::new(number / 10, number % 10)
    }

    /// 10 × major + minor.
    pub const fn number(self) -> u32 {
        10 * self.major + self.minor
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number())
    }
}

/// A text that names no architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no architecture; write sm_90, 90 or 9.0")]
pub struct ArchError {
    /// The text.
    pub text: String,
}

impl FromStr for Arch {
    type Err = ArchError;

    fn from_str(text: &str) -> Result<Self, ArchError> {
        let digits = |s: &str| {
            (!s.is_empty() && s.len() <= 3 && s.bytes().all(|b| b.is_ascii_digit()))
                .then(|| s.parse::<u32>().ok())?
        };
        let parsed = match text.split_once('.') {
            Some((major, minor)) if minor.len() == 1 => digits(major)
                .zip(digits(minor))
                .map(|(a, b)| Self::new(a, b)),
            Some(_) => None,
            None => digits(text.strip_prefix("sm_").unwrap_or(text)).map(Self::from_number),
        };
        parsed
            .filter(|arch| arch.major > 0)
            .ok_or_else(|| ArchError { text: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints_and_refuses_the_rest() {
        for number in [70, 75, 80, 86, 89, 90, 100, 103, 120, 121] {
            let arch = Arch::from_number(number);
            assert_eq!(arch.to_string().parse(), Ok(arch));
            assert_eq!(format!("{}.{}", arch.major, arch.minor).parse(), Ok(arch));
            assert_eq!(arch.number(), number);
        }
        for bad in [
            "", "sm_", "sm_x", "9.", ".0", "9.00", "-90", "sm_90a", "5", "99999",
        ] {
            assert!(bad.parse::<Arch>().is_err(), "{bad}");
        }
    }
}
