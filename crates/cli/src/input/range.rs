//! A range as it is typed, `LOW:HIGH`.

use std::str::FromStr;

/// The ends of a range, which are read as numbers once their type is known.
#[derive(Clone, Debug)]
pub struct RangeText {
    /// Where it begins.
    pub low: String,
    /// Where it ends.
    pub high: String,
}

impl FromStr for RangeText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (low, high) = text
            .split_once(':')
            .ok_or("a range is LOW:HIGH, as in 0:256 or -1.5:1.5")?;
        for end in [low, high] {
            end.parse::<f64>()
                .map_err(|_| format!("{end:?} is no number"))?;
        }
        let (low, high) = (low.to_owned(), high.to_owned());
        Ok(Self { low, high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_two_numbers() {
        assert!("0:256".parse::<RangeText>().is_ok() && "-1e3:-0.5".parse::<RangeText>().is_ok());
        for wrong in ["", "3", "a:b", "1:", "1:2:3"] {
            assert!(wrong.parse::<RangeText>().is_err(), "{wrong}");
        }
    }
}
