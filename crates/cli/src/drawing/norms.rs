//! The norm over the sweeps or cycles, with a line at the tolerance.

use super::axes::{Axes, Scale};
use super::chart::Chart;
use crate::format::general;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
/// Most steps of the curve: a long history shows its least and greatest norm of each.
const MOST_STEPS: usize = 1000;
/// How far, in ratio, the outermost values stay from the frame.
const MARGIN: f64 = 1.122;

/// What the plot says beside the curve.
pub struct PlotTexts<'a> {
    /// The heading.
    pub title: &'a str,
    /// What is counted from left to right.
    pub step: &'a str,
    /// The name of the norm.
    pub norm: &'a str,
}

/// The plot of `norms`, one per step from 0 on, with a line at `tolerance`.
pub fn chart(texts: &PlotTexts, norms: &[f64], tolerance: f64) -> Chart {
    let shown = norms.iter().copied().chain([tolerance]);
    let axes = Axes {
        x: Scale::counts(norms.len().saturating_sub(1) as f64),
        y: Scale::log(shown.flat_map(|value| [value / MARGIN, value * MARGIN])),
        x_label: texts.step,
        y_label: texts.norm,
        powers: true,
    };
    let mut chart = Chart::new(texts.title, WIDTH, HEIGHT);
    let plot = chart.plot(&axes);
    if tolerance > 0.0 {
        let (left, y) = plot.at(&axes, 0.0, tolerance);
        let (right, _) = plot.at(&axes, f64::MAX, tolerance);
        chart.line("goal", (left, y), (right, y));
        let text = format!("tolerance {}", general(tolerance, 6));
        // At the left, where the curve begins high above; it ends at the line at the right.
        chart.text("aim", "start", left + 8.0, y - 7.0, &text);
    }
    let points: Vec<(f64, f64)> = curve(norms)
        .into_iter()
        .map(|(sweep, norm)| plot.at(&axes, sweep as f64, norm))
        .collect();
    match points[..] {
        [] => {}
        [(x, y)] => chart.dot("point", x, y, 4.0, ""),
        _ => chart.polyline("curve", &points),
    }
    chart
}

/// The sweeps and norms that are drawn; zeros and values that are not finite are left out.
fn curve(norms: &[f64]) -> Vec<(usize, f64)> {
    let step = norms.len().div_ceil(MOST_STEPS).max(1);
    let mut points = Vec::new();
    for (place, chunk) in norms.chunks(step).enumerate() {
        let drawn = chunk
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, norm)| *norm > 0.0 && norm.is_finite());
        let least = drawn.clone().min_by(|a, b| a.1.total_cmp(&b.1));
        let greatest = drawn.max_by(|a, b| a.1.total_cmp(&b.1));
        let (Some(least), Some(greatest)) = (least, greatest) else {
            continue;
        };
        let mut both = vec![least, greatest];
        both.sort_by_key(|pair| pair.0);
        both.dedup_by_key(|pair| pair.0);
        points.extend(both.iter().map(|&(k, norm)| (place * step + k, norm)));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: PlotTexts = PlotTexts {
        title: "a < b & \"c\"\u{1}",
        step: "sweep",
        norm: "rms",
    };

    fn of_class<'a, 'i>(
        document: &'a roxmltree::Document<'i>,
        class: &str,
    ) -> Option<roxmltree::Node<'a, 'i>> {
        document
            .descendants()
            .find(|node| node.attribute("class") == Some(class))
    }

    #[test]
    fn every_history_makes_well_formed_xml() {
        let decay: Vec<f64> = (0..5000).map(|k| (-f64::from(k) / 300.0).exp()).collect();
        for (norms, tolerance) in [
            (decay.as_slice(), 1e-6),
            (&[], 0.0),
            (&[1.0], 1e-3),
            (&[0.0, 0.0], 0.0),
            (&[f64::NAN, f64::INFINITY, 1e-300, 1e300], 1.0),
            (&[1e-4, 1e-4], 1e-4),
        ] {
            let text = chart(&TEXTS, norms, tolerance).standalone();
            let document = roxmltree::Document::parse(&text).unwrap();
            assert_eq!(
                document.root_element().attribute("aria-label"),
                Some("a < b & \"c\" ")
            );
            let goal = of_class(&document, "goal").is_some();
            assert_eq!(goal, tolerance > 0.0);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(text.len() < 60_000);
        }
    }

    #[test]
    fn the_curve_falls_from_left_to_right() {
        let text = chart(&TEXTS, &[1.0, 0.1, 0.01], 0.0).standalone();
        let document = roxmltree::Document::parse(&text).unwrap();
        let curve = of_class(&document, "curve").unwrap();
        let points: Vec<(f64, f64)> = curve
            .attribute("points")
            .unwrap()
            .split(' ')
            .map(|p| p.split_once(',').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        assert_eq!(points.len(), 3);
        assert!(
            points
                .windows(2)
                .all(|p| p[0].0 < p[1].0 && p[0].1 < p[1].1)
        );
        // Equal ratios are equal steps.
        assert!(((points[1].1 - points[0].1) - (points[2].1 - points[1].1)).abs() < 0.2);
    }
}
