//! A plane of a box, as a user writes it.

use std::str::FromStr;

/// `AXIS=VALUE` of `--slice`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slice {
    /// The axis across it: 0, 1 and 2 for x, y and z.
    axis: usize,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    /// In units of the spacing.
    At(f64),
    /// The number of a point.
    Number(usize),
}

/// A plane of points of one box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The axis across it.
    pub axis: usize,
    /// The number of its points on that axis.
    pub at: usize,
}

/// Why `AXIS=VALUE` is not understood, or not in the box.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    /// Something else.
    #[error("x=0.5 (also y, z) or i=12 (also j, k: the number of a plane) is needed")]
    NotASlice,
    /// Outside.
    #[error("--slice {axis}={value} lies outside the box: {axis} goes from 0 to {last}")]
    Outside {
        /// Its name.
        axis: char,
        /// As given.
        value: f64,
        /// The greatest.
        last: f64,
    },
}

impl FromStr for Slice {
    type Err = SliceError;

    fn from_str(text: &str) -> Result<Self, SliceError> {
        let (name, value) = text.split_once('=').ok_or(SliceError::NotASlice)?;
        let (name, value) = (name.trim(), value.trim());
        let index = |names: [&str; 3]| names.iter().position(|known| *known == name);
        if let Some(axis) = index(["x", "y", "z"]) {
            let at: f64 = value.parse().map_err(|_| SliceError::NotASlice)?;
            let place = Place::At(at);
            return Ok(Self { axis, place });
        }
        let axis = index(["i", "j", "k"]).ok_or(SliceError::NotASlice)?;
        let number = value.parse().map_err(|_| SliceError::NotASlice)?;
        let place = Place::Number(number);
        Ok(Self { axis, place })
    }
}

impl Slice {
    /// The points nearest to it in a box of `size`.
    ///
    /// # Errors
    /// [`SliceError::Outside`].
    pub fn cut(self, size: [usize; 3], spacing: [f64; 3]) -> Result<Cut, SliceError> {
        let Self { axis, place } = self;
        let last = size[axis] - 1;
        match place {
            Place::Number(at) if at <= last => Ok(Cut { axis, at }),
            Place::Number(at) => Err(SliceError::Outside {
                axis: ['i', 'j', 'k'][axis],
                value: at as f64,
                last: last as f64,
            }),
            Place::At(value) => {
                let at = (value / spacing[axis]).round();
                if at >= 0.0 && at <= last as f64 {
                    return Ok(Cut {
                        axis,
                        at: at as usize,
                    });
                }
                Err(SliceError::Outside {
                    axis: ['x', 'y', 'z'][axis],
                    value,
                    last: last as f64 * spacing[axis],
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_lie_at_places_or_have_numbers() {
        let cut = |text: &str| {
            let slice = text.parse::<Slice>().map_err(|error| error.to_string())?;
            let cut = slice.cut([5, 9, 3], [0.5, 0.25, 1.0]);
            cut.map(|cut| (cut.axis, cut.at))
                .map_err(|error| error.to_string())
        };
        assert_eq!(cut("x=0.6"), Ok((0, 1)));
        assert_eq!(cut("y = 2"), Ok((1, 8)));
        assert_eq!(cut("k=2"), Ok((2, 2)));
        let needed = "x=0.5 (also y, z) or i=12 (also j, k: the number of a plane) is needed";
        for text in ["", "z", "w=1", "i=1.5", "k=-1", "x=a"] {
            assert_eq!(cut(text), Err(needed.to_owned()), "{text}");
        }
        let outside = "--slice y=2.2 lies outside the box: y goes from 0 to 2";
        assert_eq!(cut("y=2.2"), Err(outside.to_owned()));
        let outside = "--slice k=3 lies outside the box: k goes from 0 to 2";
        assert_eq!(cut("k=3"), Err(outside.to_owned()));
        assert!(cut("x=NaN").is_err() && cut("x=-1").is_err());
    }
}
