//! Colour maps.

use super::rgb::{Rgb, mix};

/// The colour map of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum ColourMap {
    /// Dark blue over green to yellow, even to the eye and safe for the colour-blind.
    Viridis,
    /// Elevation tints with hill shading.
    Terrain,
    /// Blue below 0, white at 0, red above.
    Diverging,
}

/// Samples of the viridis map (van der Walt and Smith, 2015) at equal steps.
const VIRIDIS: [Rgb; 9] = [
    [68, 1, 84],
    [71, 45, 123],
    [59, 82, 139],
    [44, 114, 142],
    [33, 145, 140],
    [40, 174, 128],
    [94, 201, 98],
    [173, 220, 48],
    [253, 231, 37],
];

/// Lowland greens over dry browns to pale rock.
const TERRAIN: [Rgb; 8] = [
    [42, 104, 88],
    [88, 147, 99],
    [154, 186, 118],
    [219, 214, 157],
    [211, 178, 120],
    [170, 124, 88],
    [178, 157, 146],
    [245, 243, 240],
];

/// RdBu of ColorBrewer (Brewer and Harrower, 2003), from its blue to its red.
const DIVERGING: [Rgb; 9] = [
    [33, 102, 172],
    [67, 147, 195],
    [146, 197, 222],
    [209, 229, 240],
    [247, 247, 247],
    [253, 219, 199],
    [244, 165, 130],
    [214, 96, 77],
    [178, 24, 43],
];

impl ColourMap {
    /// What suits values of this range: two-sided ones are shown as such.
    pub fn suiting((low, high): (f64, f64)) -> Self {
        if low < 0.0 && high > 0.0 && (-low).min(high) >= 0.25 * (-low).max(high) {
            Self::Diverging
        } else {
            Self::Viridis
        }
    }

    /// Where `value` of a range lies along the map.
    pub fn share(self, value: f64, (low, high): (f64, f64)) -> f64 {
        match self {
            // Both halves have the same scale, so that equal distances from 0 are equally strong.
            Self::Diverging => 0.5 + 0.5 * value / low.abs().max(high.abs()),
            Self::Viridis | Self::Terrain => (value - low) / (high - low),
        }
    }

    /// Of contour lines: seen on all colours of the map.
    pub fn contour(self) -> Rgb {
        match self {
            Self::Diverging => [40, 46, 56],
            Self::Viridis | Self::Terrain => [255; 3],
        }
    }

    /// The colour at `t` in 0..=1.
    pub fn at(self, t: f64) -> Rgb {
        let anchors: &[Rgb] = match self {
            Self::Viridis => &VIRIDIS,
            Self::Terrain => &TERRAIN,
            Self::Diverging => &DIVERGING,
        };
        let place = t.clamp(0.0, 1.0) * (anchors.len() - 1) as f64;
        let below = (place as usize).min(anchors.len() - 2);
        mix(anchors[below], anchors[below + 1], place - below as f64)
    }

    /// Whether slopes are shaded as if lit from the north-west.
    pub fn shaded(self) -> bool {
        self == Self::Terrain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_order() {
        assert_eq!(ColourMap::Viridis.at(0.0), VIRIDIS[0]);
        assert_eq!(ColourMap::Viridis.at(1.0), VIRIDIS[8]);
        assert_eq!(ColourMap::Viridis.at(-3.0), VIRIDIS[0]);
        assert_eq!(ColourMap::Terrain.at(f64::INFINITY), TERRAIN[7]);
        assert_eq!(ColourMap::Diverging.share(0.0, (-1.0, 4.0)), 0.5);
        assert_eq!(ColourMap::Diverging.share(-4.0, (-4.0, 1.0)), 0.0);
        assert_eq!(ColourMap::suiting((-1.0, 1.0)), ColourMap::Diverging);
        assert_eq!(ColourMap::suiting((-0.1, 1.0)), ColourMap::Viridis);
        // A perceptual map grows lighter all the way.
        let light = |rgb: Rgb| {
            0.2126 * f64::from(rgb[0]) + 0.7152 * f64::from(rgb[1]) + 0.0722 * f64::from(rgb[2])
        };
        let steps: Vec<f64> = (0..=100)
            .map(|k| light(ColourMap::Viridis.at(f64::from(k) / 100.0)))
            .collect();
        assert!(steps.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
