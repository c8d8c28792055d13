//! Formulas in the coordinates of a grid point.
//!
//! The variables are `x` = column · spacing, `y` = row · spacing, `i` = column and
//! `j` = row; row 0 is the top row, so `y` grows downwards. The usual operators, `^`,
//! functions (`sin`, `cosh`, `exp`, `sqrt`, `atan2`, `min`, …) and the constants `pi`
//! and `e` are understood; numbers may have exponents (`1e-4`). As in a textbook,
//! `-x^2` is `-(x^2)`. Where writers of formulas disagree (`2^3^2`, `2*-x^2`), the
//! formula is refused and parentheses are asked for.

use std::sync::Arc;

use exmex::{
    Express, FlatEx, FloatOpsFactory, MakeOperators, MatchLiteral, Operator,
    literal_matcher_from_pattern,
};

/// A formula that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("formula '{formula}': {reason}")]
pub struct ExpressionError {
    /// The text given.
    pub formula: String,
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
    /// Distance of neighbouring points.
    pub spacing: f64,
}

/// A formula in `x`, `y`, `i`, `j`, compiled.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    /// Shared: it is large, and every clone of a formula is the same.
    compiled: Arc<FlatEx<f64, Operators, Numbers>>,
    /// The variables used, in the order in which the evaluator wants their values.
    variables: Vec<Variable>,
}

#[derive(Clone, Copy, Debug)]
enum Variable {
    X,
    Y,
    Column,
    Row,
}

/// Longest formula taken, in bytes.
const LONGEST: usize = 2000;
/// Deepest nesting of parentheses taken: the compiler recurses.
const DEEPEST: usize = 50;

impl Expression {
    /// Compiles `formula`.
    ///
    /// # Errors
    /// [`ExpressionError`] with the formula and what is wrong with it.
    pub fn parse(formula: &str) -> Result<Self, ExpressionError> {
        let failed = |reason: String| ExpressionError {
            formula: shorten(formula),
            reason,
        };
        if formula.trim().is_empty() {
            return Err(failed("it is empty".into()));
        }
        if formula.len() > LONGEST {
            return Err(failed(format!("it is longer than {LONGEST} bytes")));
        }
        if depth(formula) > DEEPEST {
            return Err(failed(format!(
                "parentheses are nested deeper than {DEEPEST}"
            )));
        }
        let unambiguous = disambiguate(formula).map_err(failed)?;
        let compiled = FlatEx::<f64, Operators, Numbers>::parse(&unambiguous)
            .map_err(|error| failed(error.msg().trim().to_owned()))?;
        let variables = compiled.var_names().iter().map(|name| match name.as_str() {
            "x" => Ok(Variable::X),
            "y" => Ok(Variable::Y),
            "i" => Ok(Variable::Column),
            "j" => Ok(Variable::Row),
            other => Err(failed(format!(
                "'{other}' is not known; the variables are x, y, i and j"
            ))),
        });
        let variables = variables.collect::<Result<_, _>>()?;
        Ok(Self {
            text: formula.to_owned(),
            compiled: Arc::new(compiled),
            variables,
        })
    }

    /// The text that was compiled.
    #[cfg(test)]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value at `point`.
    ///
    /// # Errors
    /// [`ExpressionError`] if the value is not finite there.
    pub fn at(&self, point: Point) -> Result<f64, ExpressionError> {
        let mut values = [0.0; 4];
        for (value, variable) in values.iter_mut().zip(&self.variables) {
            *value = match variable {
                Variable::X => point.column as f64 * point.spacing,
                Variable::Y => point.row as f64 * point.spacing,
                Variable::Column => point.column as f64,
                Variable::Row => point.row as f64,
            };
        }
        let place = || format!("at column {}, row {}", point.column, point.row);
        let failed = |reason| ExpressionError {
            formula: shorten(&self.text),
            reason,
        };
        match self.compiled.eval(&values[..self.variables.len()]) {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(value) => Err(failed(format!("its value {} is {value}", place()))),
            Err(error) => Err(failed(format!("{}: {error}", place()))),
        }
    }
}

fn shorten(formula: &str) -> String {
    if formula.chars().count() <= 60 {
        return formula.to_owned();
    }
    formula.chars().take(60).chain(['…']).collect()
}

fn depth(formula: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for c in formula.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The formula with signs and powers as the library reads them in a textbook's meaning.
///
/// The library binds a sign tighter than `^`; so a sign that opens a formula, a
/// parenthesis or an argument is turned into a subtraction from 0. Anything else that
/// it would read in an unusual way is an error.
fn disambiguate(formula: &str) -> Result<String, String> {
    /// What the part since the last `+ - * / ,` of one pair of parentheses holds.
    #[derive(Clone, Copy, Default)]
    struct Operand {
        signed: bool,
        power: bool,
    }
    let mut out = String::with_capacity(formula.len() + 8);
    let mut open = vec![Operand::default()];
    let mut previous = '(';
    let mut rest = formula.trim_start();
    while let Some(c) = rest.chars().next() {
        let length = token_length(rest);
        let (token, after) = rest.split_at(length);
        let after = after.trim_start();
        let depth = open.len();
        let operand = open
            .last_mut()
            .expect("a closing parenthesis too many was refused");
        match c {
            '(' => open.push(Operand::default()),
            ')' if depth == 1 => {
                return Err("a parenthesis is closed that was not opened".into());
            }
            ')' => _ = open.pop(),
            '+' | '-' if matches!(previous, '(' | ',') => out.push('0'),
            '+' | '-' if "+-*/^".contains(previous) => operand.signed = true,
            '^' if operand.signed || operand.power => {
                return Err(format!(
                    "put parentheses around what '{}' is to apply to",
                    if operand.signed { "-" } else { "^" }
                ));
            }
            '^' => operand.power = true,
            '+' | '-' | '*' | '/' | ',' => *operand = Operand::default(),
            _ if c.is_alphabetic() && !PLAIN_NAMES.contains(&token) && !after.starts_with('(') => {
                return Err(format!(
                    "'{token}' is not known; the variables are x, y, i and j"
                ));
            }
            _ => {}
        }
        out.push_str(token);
        out.push(' ');
        previous = c;
        rest = after;
    }
    Ok(out)
}

/// Names that stand without an argument.
const PLAIN_NAMES: [&str; 11] = ["x", "y", "i", "j", "pi", "e", "PI", "E", "TAU", "π", "τ"];

/// Bytes of the number, name or single character that `text` begins with.
fn token_length(text: &str) -> usize {
    let number = Numbers::is_literal(text).map_or(0, str::len);
    let name = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let one = text.chars().next().map_or(0, char::len_utf8);
    if number > 0 { number } else { name.max(one) }
}

literal_matcher_from_pattern!(Numbers, r"^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?");

/// The library's operators, and `pi`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Operators;

impl MakeOperators<f64> for Operators {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        let mut operators = FloatOpsFactory::<f64>::make();
        operators.push(Operator::make_constant("pi", std::f64::consts::PI));
        operators
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(formula: &str) -> f64 {
        let point = Point {
            column: 3,
            row: 5,
            spacing: 0.5,
        };
        Expression::parse(formula).unwrap().at(point).unwrap()
    }

    #[test]
    fn variables_functions_and_constants() {
        use std::f64::consts::{E, PI};
        for (formula, expected) in [
            ("x", 1.5),
            ("y", 2.5),
            ("i + 100*j", 503.0),
            ("x*y - y/x", 1.5 * 2.5 - 2.5 / 1.5),
            ("sin(pi*x) * exp(-y)", (PI * 1.5).sin() * (-2.5f64).exp()),
            (
                "e^2 + sqrt(4) + sinh(1) + cosh(1)",
                E.powf(2.0) + 2.0 + 1f64.sinh() + 1f64.cosh(),
            ),
            ("1e-4 + 2.5E3", 2500.0001),
            ("atan2(y, x)", 2.5f64.atan2(1.5)),
            ("max(x, y) - min(x, y)", 1.0),
            ("-x", -1.5),
            ("2 - -x", 3.5),
            ("8/2/2", 2.0),
            ("8 - 4 - 2", 2.0),
            ("8 - 4 + 2", 6.0),
            ("8/4*2", 4.0),
            ("2^(3^2)", 512.0),
            ("-x^2", -2.25),
            ("exp(-x^2)", (-2.25f64).exp()),
            ("atan2(-x^2, -y)", (-2.25f64).atan2(-2.5)),
            ("(-x)^2", 2.25),
            ("2*-x", -3.0),
            ("2^-x", 2f64.powf(-1.5)),
            ("x^2 - y^2", 2.25 - 6.25),
            ("x*x*x - 3*x*y*y", 3.375 - 3.0 * 1.5 * 6.25),
            ("3e-1*x^2", 0.675),
            ("7", 7.0),
        ] {
            let got = value(formula);
            assert!(
                (got - expected).abs() <= 1e-12 * expected.abs(),
                "{formula} = {got}, not {expected}"
            );
        }
    }

    #[test]
    fn errors_show_the_formula() {
        for (formula, part) in [
            ("", "it is empty"),
            ("sin(", "formula 'sin('"),
            ("x +", "formula 'x +'"),
            (
                "z + 1",
                "formula 'z + 1': 'z' is not known; the variables are x, y, i and j",
            ),
            ("pj*2", "'pj' is not known"),
            ("x y", "formula 'x y'"),
            (
                "2^3^2",
                "formula '2^3^2': put parentheses around what '^' is to apply to",
            ),
            ("2*-x^2", "put parentheses around what '-' is to apply to"),
            ("sin x", "'sin' is not known"),
            ("x)", "a parenthesis is closed that was not opened"),
            ("foo(x)", "formula 'foo(x)'"),
            ("3 $ 4", "formula '3 $ 4'"),
            (&"x+".repeat(2000), "longer than 2000 bytes"),
            (&"(".repeat(900), "nested deeper than 50"),
        ] {
            let error = Expression::parse(formula).unwrap_err().to_string();
            assert!(
                error.contains(part) && !error.contains('\n'),
                "{formula}: {error}"
            );
        }
    }

    #[test]
    fn values_that_are_not_finite_are_refused_with_their_place() {
        let formula = Expression::parse("1/(x-1)").unwrap();
        assert!(
            formula
                .at(Point {
                    column: 3,
                    row: 0,
                    spacing: 1.0
                })
                .is_ok()
        );
        let error = formula
            .at(Point {
                column: 1,
                row: 4,
                spacing: 1.0,
            })
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "formula '1/(x-1)': its value at column 1, row 4 is inf"
        );
    }

    #[test]
    fn the_longest_formulas_compile() {
        let deep = format!("{}x{}", "(".repeat(DEEPEST), ")".repeat(DEEPEST));
        assert_eq!(value(&deep), 1.5);
        let signs = format!("{}x", "-".repeat(1000));
        let _ = Expression::parse(&signs);
        let long = format!("x{}", "+x".repeat(900));
        assert_eq!(value(&long), 901.0 * 1.5);
    }
}
