//! Colour maps.

use super::rgb::{Rgb, mix};

/// The colour map of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum ColourMap {
    #[default]
    /// Dark blue over green to yellow, even to the eye and safe for the colour-blind.
    Viridis,
    /// Elevation tints with hill shading.
    Terrain,
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

impl ColourMap {
    /// The colour at `t` in 0..=1.
    pub fn at(self, t: f64) -> Rgb {
        let anchors: &[Rgb] = match self {
            Self::Viridis => &VIRIDIS,
            Self::Terrain => &TERRAIN,
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
