//! Colours of pixels.

/// Red, green, blue, 0 to 255 each, sRGB.
pub type Rgb = [u8; 3];

/// `a` at `t` = 0, `b` at `t` = 1.
pub fn mix(a: Rgb, b: Rgb, t: f64) -> Rgb {
    let t = t.clamp(0.0, 1.0);
    [0, 1, 2].map(|k| (f64::from(a[k]) + t * (f64::from(b[k]) - f64::from(a[k]))).round() as u8)
}
