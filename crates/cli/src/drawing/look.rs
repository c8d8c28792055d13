//! What a user may say of a picture.

use clap::Args;

use super::colour_map::ColourMap;

/// How a picture is to look, where that is not found from the field.
#[derive(Args, Clone, Debug, Default)]
pub struct Look {
    /// Heading of the picture, or plot [default: what was solved]
    #[arg(long, value_name = "TEXT", help_heading = "Outputs")]
    pub title: Option<String>,
    /// Unit of the values, shown at their scale in the picture
    #[arg(long, value_name = "TEXT", requires = "png", help_heading = "Outputs")]
    pub unit: Option<String>,
    /// Least value of the picture's scale; what is less is shown as that [default: the field's least]
    #[arg(
        long,
        value_name = "VALUE",
        requires = "png",
        allow_hyphen_values = true,
        help_heading = "Outputs"
    )]
    pub vmin: Option<f64>,
    /// Greatest value of the picture's scale [default: the field's greatest]
    #[arg(
        long,
        value_name = "VALUE",
        requires = "png",
        allow_hyphen_values = true,
        help_heading = "Outputs"
    )]
    pub vmax: Option<f64>,
    /// Colours of the picture [default: diverging where values lie on both sides of 0, else viridis]
    #[arg(long, value_enum, requires = "png", help_heading = "Outputs")]
    pub colours: Option<ColourMap>,
}

impl Look {
    /// Why the ends that were asked for are no range.
    pub fn fault(&self) -> Option<String> {
        for (name, value) in [("--vmin", self.vmin), ("--vmax", self.vmax)] {
            if let Some(value) = value.filter(|value| !value.is_finite()) {
                return Some(format!("{name} {value} is not a finite number"));
            }
        }
        match (self.vmin, self.vmax) {
            (Some(low), Some(high)) if low >= high => {
                Some(format!("--vmin {low} is not below --vmax {high}"))
            }
            _ => None,
        }
    }

    /// The range shown of a field with this one; never empty.
    pub fn range(&self, (low, high): (f64, f64)) -> (f64, f64) {
        let (low, high) = (self.vmin.unwrap_or(low), self.vmax.unwrap_or(high));
        if low < high {
            return (low, high);
        }
        // An end that was asked for lies beyond the whole field.
        let width = 1e-3 * low.abs().max(high.abs()).max(1e-3);
        match self.vmin {
            Some(_) => (low, low + width),
            None => (high - width, high),
        }
    }

    /// `what` with the unit.
    pub fn with_unit(&self, what: &str) -> String {
        match &self.unit {
            Some(unit) => format!("{what} ({unit})"),
            None => what.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_never_empty() {
        let of = |vmin, vmax| Look {
            vmin,
            vmax,
            ..Look::default()
        };
        assert_eq!(of(None, Some(3.0)).range((1.0, 5.0)), (1.0, 3.0));
        for look in [
            of(Some(9.0), None),
            of(None, Some(-2.0)),
            of(Some(0.0), None),
        ] {
            let (low, high) = look.range((0.0, 0.0));
            assert!(low < high);
            let (low, high) = look.range((1.0, 5.0));
            assert!(low < high, "{look:?}");
        }
        assert!(of(Some(1.0), Some(1.0)).fault().is_some());
        assert!(of(Some(f64::NAN), None).fault().is_some());
        assert!(of(Some(-1.0), Some(1.0)).fault().is_none());
    }
}
