//! Formulas in the coordinates of a grid point.
//!
//! The variables are `x` = column · spacing, `y` = row · spacing, `i` = column and
//! `j` = row; row 0 is the top row, so `y` grows downwards. In three dimensions there are also
//! `z` = plane · spacing and `k` = plane, plane 0 being the front. Constants are `pi` (`PI`, `π`),
//! `e` (`E`) and `TAU` (`τ`, 2π); numbers may have exponents (`1e-4`).
//!
//! Operators, from the one that binds tightest:
//!
//! | operator | several of them | |
//! |---|---|---|
//! | `^` | from the right: `2^3^2` is `2^(3^2)` | its exponent may have a sign: `2^-1` |
//! | signs `-`, `+` | | `-x^2` is `-(x^2)`, `2*-x` is `2*(-x)` |
//! | `*`, `/` | from the left | |
//! | `+`, `-` | from the left | |
//!
//! Functions are in [`function`]. All is computed in `f64`, one operation after the other as written;
//! `^` is `pow`. What is not exact by definition comes from the crate `libm`, so the bits are the same
//! on every system.

mod function;
mod parse;
#[cfg(test)]
mod random;

use crate::input::spacing::Spacing;
use std::sync::Arc;

/// A formula that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("formula '{formula}'{}: {reason}", column.map_or_else(String::new, |column| format!(", column {column}")))]
pub struct FormulaError {
    /// The text given.
    pub formula: String,
    /// Where it is wrong, in characters from 1, if in one place.
    pub column: Option<usize>,
    /// What is wrong with it.
    pub reason: String,
}

/// A point of a grid.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Column, from the left.
    pub column: usize,
    /// Row, from the top.
    pub row: usize,
    /// Plane, from the front; of a plane 0.
    pub plane: usize,
    /// Distance of neighbouring points.
    pub spacing: Spacing,
}

/// A formula in `x`, `y`, `z`, `i`, `j`, `k`, compiled.
#[derive(Clone, Debug)]
pub struct Formula {
    text: String,
    /// In postfix order; shared, since every clone of a formula is the same.
    steps: Arc<[Step]>,
    /// Most operands that wait at once.
    depth: usize,
    /// The first `z` or `k`, and its column in the text.
    third: Option<(char, usize)>,
}

/// A step of a formula in postfix order.
#[derive(Clone, Copy, Debug)]
enum Step {
    Number(f64),
    Variable(Variable),
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

#[derive(Clone, Copy, Debug)]
enum Variable {
    X,
    Y,
    Z,
    Column,
    Row,
    Plane,
}

/// Longest formula taken, in bytes.
const LONGEST: usize = 2000;
/// Deepest nesting of parentheses and exponents taken: the parser recurses.
const DEEPEST: usize = 50;
/// Points evaluated together: a step's choice costs as much for all of them as for one.
const TOGETHER: usize = 64;

impl Formula {
    /// Compiles `formula`.
    ///
    /// # Errors
    /// [`FormulaError`] with the formula and what is wrong with it.
    pub fn parse(formula: &str) -> Result<Self, FormulaError> {
        let failed = |(column, reason)| FormulaError {
            formula: shorten(formula),
            column,
            reason,
        };
        if formula.trim().is_empty() {
            return Err(failed((None, "it is empty".into())));
        }
        if formula.len() > LONGEST {
            let reason = format!("it is longer than {LONGEST} bytes");
            return Err(failed((None, reason)));
        }
        let parse::Parsed {
            steps,
            depth,
            third,
        } = parse::parse(formula).map_err(failed)?;
        Ok(Self {
            text: formula.to_owned(),
            steps: steps.into(),
            depth,
            third,
        })
    }

    /// Refuses `z` and `k`, which a plane does not have.
    ///
    /// # Errors
    /// [`FormulaError`] with the place of the first one.
    pub fn check_of_plane(&self) -> Result<(), FormulaError> {
        match self.third {
            None => Ok(()),
            Some((name, column)) => Err(FormulaError {
                formula: shorten(&self.text),
                column: Some(column),
                reason: format!(
                    "'{name}' is of laplace3d; the variables of a plane are x, y, i and j"
                ),
            }),
        }
    }

    /// The text that was compiled.
    #[cfg(test)]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value at `point`.
    ///
    /// # Errors
    /// [`FormulaError`] if the value is not finite there.
    pub fn at(&self, point: Point) -> Result<f64, FormulaError> {
        let mut value = [0.0];
        // Nearly all formulas have fewer operands; memory for more is asked for.
        let mut few = [0.0; 16];
        if let Some(stack) = few.get_mut(..self.depth) {
            self.evaluate(point, stack, 1, &mut value);
        } else {
            self.along_row(point, &mut value);
        }
        let [value] = value;
        if value.is_finite() {
            return Ok(value);
        }
        Err(FormulaError {
            formula: shorten(&self.text),
            column: None,
            reason: match self.third {
                None => format!(
                    "its value at column {}, row {} is {value}",
                    point.column, point.row
                ),
                Some(_) => format!(
                    "its value at column {}, row {}, plane {} is {value}",
                    point.column, point.row, point.plane
                ),
            },
        })
    }

    /// The values at `first` and the points right of it, finite or not.
    pub fn along_row(&self, first: Point, values: &mut [f64]) {
        let together = values.len().min(TOGETHER);
        let mut stack = vec![0.0; self.depth * together];
        for (piece, values) in values.chunks_mut(TOGETHER).enumerate() {
            let column = first.column + piece * TOGETHER;
            self.evaluate(Point { column, ..first }, &mut stack, together, values);
        }
    }

    /// The values at `first` and at most `together` - 1 points right of it. `stack` has room for
    /// `depth` operands of `together` points each.
    fn evaluate(&self, first: Point, stack: &mut [f64], together: usize, values: &mut [f64]) {
        let count = values.len();
        let mut height = 0;
        for step in &*self.steps {
            let operands = match step {
                Step::Number(_) | Step::Variable(_) => {
                    height += 1;
                    1
                }
                Step::Negate | Step::One(_) => 1,
                _ => 2,
            };
            height -= operands - 1;
            // The topmost operands; the result takes the place of the lower one.
            let top = &mut stack[(height - 1) * together..][..operands * together];
            let (left, right) = top.split_at_mut(together);
            let left = &mut left[..count];
            let each = left.iter_mut();
            match *step {
                Step::Number(number) => left.fill(number),
                Step::Variable(variable) => {
                    let (row, plane) = (first.row as f64, first.plane as f64);
                    for (place, value) in each.enumerate() {
                        let column = (first.column + place) as f64;
                        *value = match variable {
                            Variable::X => column * first.spacing.x,
                            Variable::Y => row * first.spacing.y,
                            Variable::Z => plane * first.spacing.z,
                            Variable::Column => column,
                            Variable::Row => row,
                            Variable::Plane => plane,
                        };
                    }
                }
                Step::Negate => each.for_each(|value| *value = -*value),
                Step::Add => each.zip(right).for_each(|(left, right)| *left += *right),
                Step::Subtract => each.zip(right).for_each(|(left, right)| *left -= *right),
                Step::Multiply => each.zip(right).for_each(|(left, right)| *left *= *right),
                Step::Divide => each.zip(right).for_each(|(left, right)| *left /= *right),
                Step::One(function) => each.for_each(|value| *value = function(*value)),
                Step::Two(function) => each
                    .zip(right)
                    .for_each(|(left, right)| *left = function(*left, *right)),
            }
        }
        values.copy_from_slice(&stack[..count]);
    }
}

fn shorten(formula: &str) -> String {
    if formula.chars().count() <= 60 {
        return formula.to_owned();
    }
    formula.chars().take(60).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn value(formula: &str) -> f64 {
        let point = Point {
            column: 3,
            row: 5,
            plane: 7,
            spacing: Spacing::same(0.5),
        };
        Formula::parse(formula).unwrap().at(point).unwrap()
    }

    #[test]
    fn variables_functions_and_constants() {
        use std::f64::consts::{E, PI};
        for (formula, expected) in [
            ("x", 1.5),
            ("y", 2.5),
            ("i + 100*j", 503.0),
            ("z + 100*k", 703.5),
            ("x*y - y/x", 1.5 * 2.5 - 2.5 / 1.5),
            ("sin(pi*x) * exp(-y)", (PI * 1.5).sin() * (-2.5f64).exp()),
            (
                "e^2 + sqrt(4) + sinh(1) + cosh(1)",
                E.powf(2.0) + 2.0 + 1f64.sinh() + 1f64.cosh(),
            ),
            ("1e-4 + 2.5E3", 2500.0001),
            ("atan2(y, x)", 2.5f64.atan2(1.5)),
            ("max(x, y) - min(x, y)", 1.0),
            ("max(0,min(1,x))", 1.0),
            ("-x", -1.5),
            ("2 - -x", 3.5),
            ("8/2/2", 2.0),
            ("8 - 4 - 2", 2.0),
            ("8 - 4 + 2", 6.0),
            ("8/4*2", 4.0),
            ("2^(3^2)", 512.0),
            ("2^3^2", 512.0),
            ("2^-1", 0.5),
            ("2^-1*4", 2.0),
            ("-x^2", -2.25),
            ("2*-x^2", -4.5),
            ("exp(-x^2)", (-2.25f64).exp()),
            ("atan2(-x^2, -y)", (-2.25f64).atan2(-2.5)),
            ("(-x)^2", 2.25),
            ("2*-x", -3.0),
            ("2^-x", 2f64.powf(-1.5)),
            ("x^2 - y^2", 2.25 - 6.25),
            ("x*x*x - 3*x*y*y", 3.375 - 3.0 * 1.5 * 6.25),
            ("3e-1*x^2", 0.675),
            ("7", 7.0),
            (".5 + 5.", 5.5),
            ("π + PI + TAU/2 + τ/2", 4.0 * PI),
            ("pow(x, 2) + hypot(3, 4)", 7.25),
            ("log(e) + ln(E) + log2(8) + log10(100)", 7.0),
        ] {
            let got = value(formula);
            assert!(
                (got - expected).abs() <= 1e-12 * expected.abs(),
                "{formula} = {got}, not {expected}"
            );
        }
    }

    #[test]
    fn constants_beside_variables_are_not_moved_out_of_functions() {
        use std::f64::consts::PI;
        let x = 1.5f64;
        for (formula, expected) in [
            ("sin(x*2*pi)", (x * 2.0 * PI).sin()),
            ("sin(2*pi*x)", (2.0 * PI * x).sin()),
            ("sin(x+1+2)", (x + 3.0).sin()),
            ("exp(x*2*3)", (x * 6.0).exp()),
            ("cos(x-1-2)", (x - 3.0).cos()),
            ("sqrt(x*4*4)", (x * 16.0).sqrt()),
            ("2*sin(x*2*3)*4", 8.0 * (x * 6.0).sin()),
            ("1+exp(x+2+3)+1", (x + 5.0).exp() + 2.0),
            ("(x*2*3)^2", 81.0),
            ("abs(x-4-4)", 6.5),
        ] {
            let got = value(formula);
            assert!(
                (got - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                "{formula} = {got}, not {expected}"
            );
        }
    }

    #[test]
    fn errors_show_the_formula_and_the_place() {
        for (formula, message) in [
            ("", "formula '': it is empty"),
            (
                "sin(",
                "formula 'sin(', column 5: a value is missing at the end",
            ),
            (
                "x +",
                "formula 'x +', column 4: a value is missing at the end",
            ),
            (
                "x + * y",
                "formula 'x + * y', column 5: '*' stands where a value is needed",
            ),
            (
                "2*w + 1",
                "formula '2*w + 1', column 3: 'w' is not known; the variables are x, y, i and j, of laplace3d also z and k",
            ),
            (
                "2*pj",
                "formula '2*pj', column 3: 'pj' is not known; the variables are x, y, i and j, of",
            ),
            ("x y", "formula 'x y', column 3: an operator is missing"),
            ("2x", "formula '2x', column 2: an operator is missing"),
            ("1.2.3", "formula '1.2.3', column 4: an operator is missing"),
            ("π π", "formula 'π π', column 3: an operator is missing"),
            (
                "sin x",
                "formula 'sin x', column 1: 'sin' is a function: its argument needs parentheses",
            ),
            ("x(3)", "formula 'x(3)', column 2: an operator is missing"),
            (
                "foo(x)",
                "formula 'foo(x)', column 1: 'foo' is not a function; abs, acos, ",
            ),
            (
                "sin(x, y)",
                "formula 'sin(x, y)', column 1: 'sin' takes 1 argument, not 2",
            ),
            (
                "max(x)",
                "formula 'max(x)', column 1: 'max' takes 2 arguments, not 1",
            ),
            (
                "max(1,2,3)",
                "formula 'max(1,2,3)', column 1: 'max' takes 2 arguments, not 3",
            ),
            (
                "sin()",
                "formula 'sin()', column 5: ')' stands where a value is needed",
            ),
            (
                "x)",
                "formula 'x)', column 2: a parenthesis is closed that was not opened",
            ),
            (
                "2*(x + 1",
                "formula '2*(x + 1', column 3: this parenthesis is not closed",
            ),
            (
                "x, y",
                "formula 'x, y', column 2: a comma stands between the arguments of a function only",
            ),
            (
                "(x, y)",
                "formula '(x, y)', column 3: a comma stands between the arguments of a function only",
            ),
            (
                "3 $ 4",
                "formula '3 $ 4', column 3: '$' is not understood here",
            ),
            (
                "1e999",
                "formula '1e999', column 1: 1e999 is beyond the largest number, 1.8e308",
            ),
            (&"x+".repeat(2000), "it is longer than 2000 bytes"),
            (&"(".repeat(900), ", column 51: nested deeper than 50"),
            (&"2^".repeat(900), ", column 102: nested deeper than 50"),
        ] {
            let error = Formula::parse(formula).unwrap_err().to_string();
            assert!(
                error.contains(message) && !error.contains('\n'),
                "{formula}: {error}"
            );
        }
    }

    #[test]
    fn values_that_are_not_finite_are_refused_with_their_place() {
        let formula = Formula::parse("1/(x-1)").unwrap();
        let at = |column, row| {
            formula.at(Point {
                column,
                row,
                plane: 0,
                spacing: Spacing::same(1.0),
            })
        };
        assert!(at(3, 0).is_ok());
        assert_eq!(
            at(1, 4).unwrap_err().to_string(),
            "formula '1/(x-1)': its value at column 1, row 4 is inf"
        );
    }

    #[test]
    fn a_plane_has_no_third_axis() {
        for (formula, expected) in [
            (
                "x + z",
                "formula 'x + z', column 5: 'z' is of laplace3d; the variables of a plane are x, y, i and j",
            ),
            (
                "k*k",
                "formula 'k*k', column 1: 'k' is of laplace3d; the variables of a plane are x, y, i and j",
            ),
        ] {
            let error = Formula::parse(formula)
                .unwrap()
                .check_of_plane()
                .unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        assert!(Formula::parse("x + j").unwrap().check_of_plane().is_ok());
    }

    #[test]
    fn the_longest_formulas_compile() {
        let deep = format!("{}x{}", "(".repeat(DEEPEST), ")".repeat(DEEPEST));
        assert_eq!(value(&deep), 1.5);
        assert_eq!(value(&format!("{}x", "-".repeat(1001))), -1.5);
        let long = format!("x{}", "+x".repeat(900));
        assert_eq!(value(&long), 901.0 * 1.5);
        let powers = format!("x{}", "^1".repeat(DEEPEST));
        assert_eq!(value(&powers), 1.5);
    }

    #[test]
    fn a_row_has_the_values_of_its_points() {
        let formula = Formula::parse("sin(3*x + y)*i - j^2/(1 + x)").unwrap();
        let first = Point {
            column: 5,
            row: 7,
            plane: 2,
            spacing: Spacing::same(0.01),
        };
        for count in [0, 1, 63, 64, 65, 200] {
            let mut row = vec![0.0; count];
            formula.along_row(first, &mut row);
            for (place, value) in row.into_iter().enumerate() {
                let column = first.column + place;
                let alone = formula.at(Point { column, ..first }).unwrap();
                assert_eq!(value.to_bits(), alone.to_bits());
            }
        }
    }
}
