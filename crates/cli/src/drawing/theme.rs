//! The classes that pictures are drawn with: what each looks like, in light and dark.

use std::fmt::Write as _;

use super::rgb::Rgb;

/// The page.
pub const PAPER: Rgb = [0xff, 0xff, 0xff];
/// Text.
pub const INK: Rgb = [0x1f, 0x23, 0x28];
/// Curves and bars.
pub const BLUE: Rgb = [0x09, 0x69, 0xda];

/// A colour by name: in the light scheme, in the dark one.
const COLOURS: [(&str, Rgb, Rgb); 15] = [
    ("paper", PAPER, [0x0d, 0x11, 0x17]),
    ("ink", INK, [0xf0, 0xf6, 0xfc]),
    ("faint", [0x59, 0x63, 0x6e], [0x91, 0x98, 0xa1]),
    ("rule", [0xd1, 0xd9, 0xe0], [0x3d, 0x44, 0x4d]),
    ("frame", [0x81, 0x8b, 0x98], [0x65, 0x6c, 0x76]),
    ("blue", BLUE, [0x44, 0x93, 0xf8]),
    ("orange", [0xbc, 0x4c, 0x00], [0xf0, 0x88, 0x3e]),
    ("green", [0x1a, 0x7f, 0x37], [0x3f, 0xb9, 0x50]),
    ("violet", [0x82, 0x50, 0xdf], [0xab, 0x7d, 0xf8]),
    ("grey", [0xaf, 0xb8, 0xc1], [0x65, 0x6c, 0x76]),
    ("idle", [0xf0, 0xf3, 0xf6], [0x1c, 0x21, 0x28]),
    ("good", [0x54, 0xae, 0xff], [0x1f, 0x6f, 0xeb]),
    ("warm", [0xfb, 0x8f, 0x44], [0xdb, 0x6d, 0x28]),
    ("hot", [0xcf, 0x22, 0x2e], [0xda, 0x36, 0x33]),
    ("on", [0xff, 0xff, 0xff], [0xff, 0xff, 0xff]),
];

/// What is filled, with the colour's name.
const FILLS: [(&str, &str); 12] = [
    ("paper", "paper"),
    ("mark", "orange"),
    ("point", "blue"),
    ("bar", "blue"),
    ("textbook", "blue"),
    ("own", "green"),
    ("peer", "violet"),
    ("wrong", "grey"),
    ("idle", "idle"),
    ("good", "good"),
    ("warm", "warm"),
    ("hot", "hot"),
];

/// How a line is drawn.
pub struct Stroke {
    class: &'static str,
    colour: &'static str,
    /// Width of the line.
    pub width: f64,
    /// Lengths of dash and gap, if it is dashed.
    pub dash: Option<(f64, f64)>,
}

const STROKES: [Stroke; 7] = [
    stroke("rule", "rule", 1.0),
    stroke("fine", "idle", 1.0),
    stroke("frame", "frame", 1.0),
    stroke("leader", "frame", 0.8),
    stroke("curve", "blue", 2.2),
    stroke("roof", "ink", 2.2),
    Stroke {
        dash: Some((7.0, 5.0)),
        ..stroke("goal", "orange", 1.6)
    },
];

const fn stroke(class: &'static str, colour: &'static str, width: f64) -> Stroke {
    Stroke {
        class,
        colour,
        width,
        dash: None,
    }
}

/// Classes of text, with the colour's name; other text is ink.
const TEXTS: [(&str, &str); 4] = [
    ("faint", "faint"),
    ("alarm", "hot"),
    ("on", "on"),
    ("aim", "orange"),
];

/// The light colour of this name.
pub fn colour(name: &str) -> Rgb {
    let found = COLOURS.iter().find(|(known, ..)| *known == name);
    found.map_or([0; 3], |(_, light, _)| *light)
}

/// The light colour of a filled shape.
pub fn fill(class: &str) -> Rgb {
    let found = FILLS.iter().find(|(known, _)| *known == class);
    found.map_or([0; 3], |(_, name)| colour(name))
}

/// The light colour of a text whose classes are separated by blanks.
pub fn text(classes: &str) -> Rgb {
    let mut words = classes.split(' ');
    let found = words.find_map(|word| TEXTS.iter().find(|(known, _)| *known == word));
    colour(found.map_or("ink", |(_, name)| name))
}

/// The stroke of a line, and its light colour.
pub fn line(class: &str) -> (&'static Stroke, Rgb) {
    let found = STROKES.iter().find(|stroke| stroke.class == class);
    let stroke = found.unwrap_or(&STROKES[0]);
    (stroke, colour(stroke.colour))
}

/// The classes for a page or a picture of its own.
pub fn style() -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let mut put = |arguments: std::fmt::Arguments| {
        let _ = out.write_fmt(arguments);
    };
    let variables = |of: fn(&(&str, Rgb, Rgb)) -> Rgb| -> String {
        let one = |entry: &(&str, Rgb, Rgb)| {
            let [r, g, b] = of(entry);
            format!("--{}: #{r:02x}{g:02x}{b:02x}", entry.0)
        };
        COLOURS.iter().map(one).collect::<Vec<_>>().join("; ")
    };
    let (light, dark) = (variables(|entry| entry.1), variables(|entry| entry.2));
    put(format_args!("\n  .chart {{ {light} }}\n"));
    put(format_args!(
        "  @media (prefers-color-scheme: dark) {{ .chart {{ {dark} }} }}\n"
    ));
    put(format_args!(
        "  .chart text {{ font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: var(--ink) }}\n"
    ));
    put(format_args!(
        "  .chart .title {{ font-size: 16px; font-weight: 600 }} .chart .small {{ font-size: 12px }} .chart .strong {{ font-weight: 600 }}\n"
    ));
    put(format_args!(
        "  .chart .alarm, .chart .on {{ font-weight: 600 }} .chart .clear {{ paint-order: stroke; stroke: var(--paper); stroke-width: 5px }}\n"
    ));
    for (class, colour) in TEXTS {
        put(format_args!(
            "  .chart text.{class} {{ fill: var(--{colour}) }}\n"
        ));
    }
    for (class, colour) in FILLS {
        put(format_args!(
            "  .chart .{class} {{ fill: var(--{colour}) }}\n"
        ));
    }
    for Stroke {
        class,
        colour,
        width,
        dash,
    } in STROKES
    {
        let dash = dash.map_or(String::new(), |(on, off)| {
            format!("; stroke-dasharray: {on} {off}")
        });
        put(format_args!(
            "  .chart .{class} {{ fill: none; stroke: var(--{colour}); stroke-width: {width}; stroke-linejoin: round{dash} }}\n"
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_colour() {
        let names = FILLS.iter().chain(&TEXTS).map(|(_, name)| *name);
        for name in names.chain(STROKES.iter().map(|stroke| stroke.colour)) {
            assert!(COLOURS.iter().any(|(known, ..)| *known == name), "{name}");
        }
        assert_eq!(text("faint small"), colour("faint"));
        assert_eq!(text("strong"), colour("ink"));
        assert_eq!(fill("own"), [0x1a, 0x7f, 0x37]);
    }
}
