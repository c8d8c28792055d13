//! A histogram as bars over the axis of its edges.

use super::axes::{Axes, Scale};
use super::chart::Chart;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
/// Most bars of a drawing: neighbouring bins are drawn together, as tall as their sum.
const MOST_BARS: usize = 512;

/// What is drawn.
pub struct Bars<'a> {
    /// The heading.
    pub title: &'a str,
    /// Of the samples.
    pub unit: Option<&'a str>,
    /// What the bars' heights are.
    pub quantity: &'a str,
    /// One more than `totals`.
    pub edges: &'a [f64],
    /// One a bin, at least one.
    pub totals: &'a [u64],
}

/// The drawing.
pub fn chart(bars: &Bars) -> Chart {
    // Where an edge is infinite, or the whole span is, the axis is that of the bins' numbers.
    let (low, high) = (bars.edges[0], bars.edges[bars.totals.len()]);
    let finite = bars.edges.iter().all(|edge| edge.is_finite());
    let by_value = finite && (high - low).is_finite() && high > low;
    let place = |edge: usize| match by_value {
        true => bars.edges[edge],
        false => edge as f64,
    };
    let step = bars.totals.len().div_ceil(MOST_BARS);
    // Bins of different widths are drawn as densities, so that areas are in proportion: over decades where they span
    // two of positive numbers or more.
    let equal = !by_value || have_equal_widths(bars.edges);
    let decades = !equal && low > 0.0 && high / low >= 100.0;
    let width = |from: f64, to: f64| match (equal, decades) {
        (true, _) => 1.0,
        (false, true) => (to / from).log10(),
        (false, false) => to - from,
    };
    let drawn: Vec<(f64, f64, f64)> = bars
        .totals
        .chunks(step)
        .enumerate()
        .map(|(k, totals)| {
            let sum: f64 = totals.iter().map(|&total| total as f64).sum();
            let (from, to) = (place(k * step), place(k * step + totals.len()));
            let height = sum / width(from, to);
            (from, to, if height.is_finite() { height } else { 0.0 })
        })
        .collect();
    let tallest = drawn.iter().map(|bar| bar.2).fold(0.0, f64::max);
    let tallest = if tallest > 0.0 { tallest } else { 1.0 };
    let per = match (equal, decades) {
        (true, _) => "",
        (false, true) => " per decade",
        (false, false) => " per unit",
    };
    let value = match bars.unit {
        Some(unit) => format!("value ({unit})"),
        None => "value".to_owned(),
    };
    let axes = Axes {
        x: if decades {
            Scale::log([low, high])
        } else {
            Scale::linear(place(0), place(bars.totals.len()))
        },
        y: Scale::linear(0.0, 1.05 * tallest),
        x_label: if by_value { &value } else { "bin" },
        y_label: &format!("{}{per}", bars.quantity),
        powers: false,
    };
    let mut chart = Chart::new(bars.title, WIDTH, HEIGHT);
    let plot = chart.plot(&axes);
    for &(from, to, total) in drawn.iter().filter(|bar| bar.2 > 0.0) {
        let (left, top) = plot.at(&axes, from, total);
        let (right, bottom) = plot.at(&axes, to, 0.0);
        let width = right - left;
        // A gap between bars where there is room for it.
        let width = if width > 3.0 { width - 1.0 } else { width };
        chart.cell("bar", (left, top), (width, bottom - top), "");
    }
    chart
}

/// Whether the bins have one width, but for the rounding of their edges.
fn have_equal_widths(edges: &[f64]) -> bool {
    let mean = (edges[edges.len() - 1] - edges[0]) / (edges.len() - 1) as f64;
    let size = edges[0].abs().max(edges[edges.len() - 1].abs());
    let rounding = 1e-6 * mean + 4.0 * f64::EPSILON * size;
    edges
        .windows(2)
        .all(|pair| (pair[1] - pair[0] - mean).abs() <= rounding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::staged::StagedFile;

    #[test]
    fn every_histogram_makes_well_formed_xml_with_its_bars() {
        let many: Vec<u64> = (0..5000).collect();
        let many_edges: Vec<f64> = (0..=5000).map(f64::from).collect();
        for (edges, totals, drawn) in [
            (&[0.0, 1.0][..], &[7u64][..], 1),
            (&[0.0, 1.0, 1.0, 4.0], &[1, 0, u64::MAX], 2),
            (&[f64::NEG_INFINITY, 0.0, f64::INFINITY], &[3, 4], 2),
            (&[-1e308, 0.0, 1e308], &[3, 4], 2),
            (&[-8e307, f64::INFINITY, 8e307], &[3, 4], 2),
            (&[-8e307, 0.0, 8e307], &[3, 4], 2),
            (&[0.0, 1.0, 2.0], &[0, 0], 0),
            (&many_edges, &many, 500),
        ] {
            let drawing = Bars {
                title: "a < b & \"c\"",
                unit: None,
                quantity: "count",
                edges,
                totals,
            };
            let chart = chart(&drawing);
            let text = chart.standalone();
            let document = roxmltree::Document::parse(&text).unwrap();
            let bars = document
                .descendants()
                .filter(|node| node.attribute("class") == Some("bar"));
            assert_eq!(bars.count(), drawn);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            let folder = tempfile::tempdir().unwrap();
            let file = StagedFile::create(&folder.path().join("bars.png")).unwrap();
            chart.write_png(file).unwrap();
        }
    }

    #[test]
    fn areas_are_in_proportion() {
        let text = chart(&Bars {
            title: "",
            unit: None,
            quantity: "count",
            edges: &[0.0, 1.0, 3.0],
            totals: &[10, 5],
        })
        .standalone();
        let document = roxmltree::Document::parse(&text).unwrap();
        let sizes: Vec<[f64; 2]> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("bar"))
            .map(|bar| {
                ["width", "height"].map(|name| bar.attribute(name).unwrap().parse().unwrap())
            })
            .collect();
        let [first, second] = sizes[..] else {
            panic!("{sizes:?}")
        };
        // Without the gaps, to a tenth of a unit.
        assert!((2.0 * (first[0] + 1.0) - (second[0] + 1.0)).abs() < 0.3);
        assert!((first[1] - 4.0 * second[1]).abs() < 0.3);
        assert!(text.contains("count per unit"));
    }

    #[test]
    fn decades_of_equal_counts_are_bars_of_one_size() {
        let text = chart(&Bars {
            title: "",
            unit: None,
            quantity: "count",
            edges: &[0.001, 0.01, 0.1, 1.0, 10.0],
            totals: &[200; 4],
        })
        .standalone();
        let document = roxmltree::Document::parse(&text).unwrap();
        let sizes: Vec<[&str; 2]> = document
            .descendants()
            .filter(|node| node.attribute("class") == Some("bar"))
            .map(|bar| ["width", "height"].map(|name| bar.attribute(name).unwrap()))
            .collect();
        assert_eq!(sizes.len(), 4);
        let number = |text: &str| text.parse::<f64>().unwrap();
        for size in &sizes {
            assert!((number(size[0]) - number(sizes[0][0])).abs() < 0.3);
            assert!((number(size[1]) - number(sizes[0][1])).abs() < 0.3);
        }
        assert!(text.contains("count per decade"));
    }
}
