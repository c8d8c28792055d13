//! Random formulas against two evaluators that share nothing with the parser: trees that were never text,
//! and texts taken apart at the operator that binds least.

use super::{Formula, Point};
use crate::input::spacing::Spacing;
use crate::random::Random;

const POINT: Point = Point {
    column: 3,
    row: 5,
    plane: 2,
    spacing: Spacing {
        x: 0.37,
        y: 0.37,
        z: 0.21,
    },
};

const ONE: [&str; 26] = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "exp",
    "floor", "fract", "ln", "log", "log10", "log2", "round", "signum", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
];
const TWO: [&str; 5] = ["atan2", "hypot", "max", "min", "pow"];
const NAMES: [&str; 13] = [
    "x", "y", "z", "i", "j", "k", "pi", "PI", "π", "e", "E", "TAU", "τ",
];

fn named(name: &str) -> Option<f64> {
    use std::f64::consts::{E, PI, TAU};
    Some(match name {
        "x" => 3.0 * 0.37,
        "y" => 5.0 * 0.37,
        "z" => 2.0 * 0.21,
        "i" => 3.0,
        "j" => 5.0,
        "k" => 2.0,
        "pi" | "PI" | "π" => PI,
        "e" | "E" => E,
        "TAU" | "τ" => TAU,
        _ => return None,
    })
}

fn applied(name: &str, arguments: &[f64]) -> Option<f64> {
    Some(match (name, arguments) {
        ("abs", [a]) => a.abs(),
        ("acos", [a]) => libm::acos(*a),
        ("acosh", [a]) => libm::acosh(*a),
        ("asin", [a]) => libm::asin(*a),
        ("asinh", [a]) => libm::asinh(*a),
        ("atan", [a]) => libm::atan(*a),
        ("atanh", [a]) => libm::atanh(*a),
        ("cbrt", [a]) => libm::cbrt(*a),
        ("ceil", [a]) => a.ceil(),
        ("cos", [a]) => libm::cos(*a),
        ("cosh", [a]) => libm::cosh(*a),
        ("exp", [a]) => libm::exp(*a),
        ("floor", [a]) => a.floor(),
        ("fract", [a]) => a - a.trunc(),
        ("ln" | "log", [a]) => libm::log(*a),
        ("log10", [a]) => libm::log10(*a),
        ("log2", [a]) => libm::log2(*a),
        ("round", [a]) => a.round(),
        ("signum", [a]) if a.is_nan() => *a,
        ("signum", [a]) => 1f64.copysign(*a),
        ("sin", [a]) => libm::sin(*a),
        ("sinh", [a]) => libm::sinh(*a),
        ("sqrt", [a]) => a.sqrt(),
        ("tan", [a]) => libm::tan(*a),
        ("tanh", [a]) => libm::tanh(*a),
        ("trunc", [a]) => a.trunc(),
        ("atan2", [a, b]) => libm::atan2(*a, *b),
        ("hypot", [a, b]) => libm::hypot(*a, *b),
        ("pow", [a, b]) => libm::pow(*a, *b),
        ("max" | "min", [a, b]) if a.is_nan() || b.is_nan() => f64::NAN,
        ("max", [a, b]) if a == b => {
            if a.is_sign_negative() {
                *b
            } else {
                *a
            }
        }
        ("min", [a, b]) if a == b => {
            if a.is_sign_negative() {
                *a
            } else {
                *b
            }
        }
        ("max", [a, b]) => {
            if a > b {
                *a
            } else {
                *b
            }
        }
        ("min", [a, b]) => {
            if a < b {
                *a
            } else {
                *b
            }
        }
        _ => return None,
    })
}

/// A formula that was never text.
enum Tree {
    Number(f64),
    Name(&'static str),
    Sign(char, Box<Tree>),
    Binary(char, Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

impl Tree {
    fn random(random: &mut Random, height: usize) -> Self {
        if height == 0 || random.below(6) == 0 {
            return match random.below(2) {
                0 => Self::Name(random.one_of(&NAMES)),
                _ => Self::Number(match random.below(4) {
                    0 => random.below(10) as f64,
                    1 => random.below(1000) as f64 / 64.0,
                    2 => f64::from_bits(random.next() >> 1),
                    _ => random.below(100_000) as f64 * 1e-7,
                })
                .finite(),
            };
        }
        let below = |random: &mut Random| Box::new(Self::random(random, height - 1));
        match random.below(9) {
            0 => Self::Sign(random.one_of(&['-', '-', '+']), below(random)),
            1 => Self::Call(random.one_of(&ONE), vec![*below(random)]),
            2 => Self::Call(random.one_of(&TWO), vec![*below(random), *below(random)]),
            _ => {
                let operator = random.one_of(&['+', '-', '*', '/', '^']);
                Self::Binary(operator, below(random), below(random))
            }
        }
    }

    /// Numbers that have no text become 1.
    fn finite(self) -> Self {
        match self {
            Self::Number(number) if !number.is_finite() => Self::Number(1.0),
            other => other,
        }
    }

    fn value(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Name(name) => named(name).unwrap(),
            Self::Sign('-', tree) => -tree.value(),
            Self::Sign(_, tree) => tree.value(),
            Self::Binary(operator, left, right) => binary(*operator, left.value(), right.value()),
            Self::Call(name, arguments) => {
                let values: Vec<f64> = arguments.iter().map(Self::value).collect();
                applied(name, &values).unwrap()
            }
        }
    }

    /// How tight it holds together without parentheses.
    fn tightness(&self) -> u8 {
        match self {
            Self::Binary('+' | '-', ..) => 1,
            Self::Binary('*' | '/', ..) => 2,
            Self::Sign(..) => 3,
            Self::Binary(..) => 4,
            _ => 5,
        }
    }

    /// Writes it for a place that takes `least` without parentheses; with more of them than needed where
    /// `generous`.
    fn write(&self, random: &mut Random, least: u8, generous: bool, out: &mut String) {
        let parentheses =
            usize::from(self.tightness() < least) + usize::from(generous && random.below(4) == 0);
        (0..parentheses).for_each(|_| out.push('('));
        self.space(random, out);
        match self {
            Self::Number(number) => out.push_str(&spelled(random, *number)),
            Self::Name(name) => out.push_str(name),
            Self::Sign(sign, tree) => {
                out.push(*sign);
                tree.write(random, 3, generous, out);
            }
            Self::Binary(operator, left, right) => {
                let (at_left, at_right) = match operator {
                    '+' | '-' => (1, 2),
                    '*' | '/' => (2, 3),
                    _ => (5, 3),
                };
                left.write(random, at_left, generous, out);
                self.space(random, out);
                out.push(*operator);
                right.write(random, at_right, generous, out);
            }
            Self::Call(name, arguments) => {
                out.push_str(name);
                self.space(random, out);
                for (place, argument) in arguments.iter().enumerate() {
                    out.push(if place == 0 { '(' } else { ',' });
                    argument.write(random, 1, generous, out);
                }
                out.push(')');
            }
        }
        self.space(random, out);
        (0..parentheses).for_each(|_| out.push(')'));
    }

    fn space(&self, random: &mut Random, out: &mut String) {
        out.push_str(random.one_of(&["", "", "", " ", "\t ", "\u{a0}"]));
    }
}

fn binary(operator: char, left: f64, right: f64) -> f64 {
    match operator {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        '/' => left / right,
        _ => libm::pow(left, right),
    }
}

/// One of the ways to write a number that is not negative.
fn spelled(random: &mut Random, number: f64) -> String {
    let plain = format!("{number}");
    match random.below(5) {
        0 => format!("{number:e}"),
        1 => format!("{number:E}"),
        2 => {
            let scientific = format!("{number:e}");
            let (mantissa, exponent) = scientific.split_once('e').unwrap();
            let point = if mantissa.contains('.') { "" } else { "." };
            let sign = if exponent.starts_with('-') { "" } else { "+0" };
            format!("{mantissa}{point}e{sign}{exponent}")
        }
        // Beyond the longest formula in decimals.
        _ if plain.len() > 30 => format!("{number:e}"),
        3 => plain
            .strip_prefix("0.")
            .map_or(plain.clone(), |rest| format!(".{rest}")),
        _ => plain,
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn parsed(text: &str) -> Result<f64, String> {
    let formula = Formula::parse(text).map_err(|error| error.to_string())?;
    let mut value = [0.0];
    formula.along_row(POINT, &mut value);
    Ok(value[0])
}

#[test]
fn formulas_have_the_values_of_the_trees_they_were_written_from() {
    let mut random = Random(1);
    let mut finite = 0;
    for round in 0..100_000 {
        let height = 1 + random.below(5);
        let tree = Tree::random(&mut random, height);
        let mut text = String::new();
        tree.write(&mut random, 1, round % 2 == 0, &mut text);
        if text.len() > super::LONGEST {
            continue;
        }
        let (expected, got) = (tree.value(), parsed(&text).unwrap());
        assert!(same(got, expected), "{text} = {got:e}, not {expected:e}");
        finite += u32::from(expected.is_finite());
    }
    assert!(finite > 50_000, "only {finite} had a value");
}

/// The value of a list of tokens, taken apart at the operator that binds least; `None` if it is no formula.
fn taken_apart(tokens: &[&str]) -> Option<f64> {
    let mut depth = 0i32;
    let mut outside = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        depth -= i32::from(*token == ")");
        if depth < 0 {
            return None;
        }
        if depth == 0 {
            outside.push(place);
        }
        depth += i32::from(*token == "(");
    }
    if depth != 0 {
        return None;
    }
    // An operator between two operands: not after another operator, not first.
    let between = |place: usize| {
        place > 0 && !matches!(tokens[place - 1], "+" | "-" | "*" | "/" | "^" | "," | "(")
    };
    let last = |wanted: [&str; 2]| {
        let places = outside.iter().rev().copied();
        let mut places = places.filter(|&place| wanted.contains(&tokens[place]) && between(place));
        places.next()
    };
    if let Some(place) = last(["+", "-"]).or_else(|| last(["*", "/"])) {
        let left = taken_apart(&tokens[..place])?;
        let right = taken_apart(&tokens[place + 1..])?;
        return Some(binary(tokens[place].chars().next()?, left, right));
    }
    match tokens {
        ["-", rest @ ..] => return Some(-taken_apart(rest)?),
        ["+", rest @ ..] => return taken_apart(rest),
        _ => {}
    }
    if let Some(place) = outside.iter().copied().find(|&place| tokens[place] == "^") {
        // What stands before the first power is one value, since nothing binds tighter.
        let left = taken_apart(&tokens[..place])?;
        let right = taken_apart(&tokens[place + 1..])?;
        return Some(binary('^', left, right));
    }
    match tokens {
        [name] if named(name).is_some() => named(name),
        [number] if number.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            number.parse().ok().filter(|value: &f64| value.is_finite())
        }
        ["(", inner @ .., ")"] => taken_apart(inner),
        [name, "(", inner @ .., ")"] => {
            let arguments = split_at_commas(inner)?;
            applied(name, &arguments)
        }
        _ => None,
    }
}

fn split_at_commas(tokens: &[&str]) -> Option<Vec<f64>> {
    let mut depth = 0;
    let mut values = Vec::new();
    let mut start = 0;
    for (place, token) in tokens.iter().enumerate() {
        match *token {
            "(" => depth += 1,
            ")" => depth -= 1,
            "," if depth == 0 => {
                values.push(taken_apart(&tokens[start..place])?);
                start = place + 1;
            }
            _ => {}
        }
    }
    values.push(taken_apart(&tokens[start..])?);
    Some(values)
}

#[test]
fn texts_are_taken_and_refused_as_by_taking_them_apart() {
    const TOKENS: [&str; 32] = [
        "x", "y", "i", "2", "3.5", ".25", "1e-3", "2E+2", "pi", "+", "-", "-", "*", "/", "^", "^",
        "(", "(", "(", ")", ")", ")", ",", "sin", "max", "atan2", "7.", "e", "foo", "$", "1e999",
        "abs",
    ];
    let ends_a_value =
        |token: &&str| *token == ")" || named(token).is_some() || token.parse::<f64>().is_ok();
    let mut random = Random(2);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..200_000 {
        let mut tokens: Vec<&str> = Vec::new();
        let wanted = 1 + random.below(12);
        while tokens.len() < wanted {
            // Mostly what may follow, so that enough of them are formulas.
            let after_value = tokens.last().is_some_and(ends_a_value);
            let token = random.one_of(&TOKENS);
            let operator = matches!(token, "+" | "-" | "*" | "/" | "^" | ")" | ",");
            if after_value == operator || random.below(40) == 0 {
                tokens.push(token);
                if applied(token, &[1.0])
                    .or(applied(token, &[1.0; 2]))
                    .is_some()
                {
                    tokens.push("(");
                }
            }
        }
        if random.below(8) > 0 && !tokens.last().is_some_and(ends_a_value) {
            tokens.push("y");
        }
        for _ in 0..tokens.iter().filter(|token| **token == "(").count() {
            if random.below(8) > 0 {
                tokens.push(")");
            }
        }
        let text = tokens.join(" ");
        match (taken_apart(&tokens), parsed(&text)) {
            (Some(expected), Ok(got)) => {
                assert!(same(got, expected), "{text} = {got:e}, not {expected:e}");
                taken += 1;
            }
            (None, Err(message)) => {
                let head = format!("formula '{}', column ", super::shorten(&text));
                let place = message
                    .strip_prefix(&head)
                    .and_then(|rest| rest.split_once(": "));
                let (column, _) = place.unwrap_or_else(|| panic!("{message}"));
                let column: usize = column.parse().unwrap();
                assert!(
                    (1..=text.chars().count() + 1).contains(&column),
                    "{message}"
                );
                refused += 1;
            }
            (expected, got) => panic!("{text}: {expected:?} by taking apart, but {got:?}"),
        }
    }
    assert!(
        taken > 15_000 && refused > 15_000,
        "{taken} taken, {refused} refused"
    );
}
