//! Integer expressions as C writes them: the index of an access, from the names of the pattern.
//!
//! Operators with C's precedence: `* / %`, `+ -`, `<< >>`, `&`, `^`, `|`, unary `-` and `~`, and
//! parentheses; numbers are decimal or `0x` hexadecimal. Arithmetic is in 64 bits.

/// A parsed expression over named variables.
///
/// ```
/// use crosswarp_lab::models::index_expression::IndexExpression;
/// let index = IndexExpression::parse("lane * 32 + (i ^ lane)", &["lane", "i"]).unwrap();
/// assert_eq!(index.value(&[3, 5]), Some(102));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexExpression {
    /// In postfix order.
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Number(i64),
    Variable(usize),
    Negate,
    Invert,
    Binary(Operator),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    And,
    Xor,
    Or,
}

/// By text; the higher the number, the tighter it binds. Two characters before one.
const OPERATORS: [(&str, Operator, u8); 10] = [
    ("<<", Operator::ShiftLeft, 4),
    (">>", Operator::ShiftRight, 4),
    ("*", Operator::Multiply, 6),
    ("/", Operator::Divide, 6),
    ("%", Operator::Remainder, 6),
    ("+", Operator::Add, 5),
    ("-", Operator::Subtract, 5),
    ("&", Operator::And, 3),
    ("^", Operator::Xor, 2),
    ("|", Operator::Or, 1),
];

/// Deepest nesting of parentheses and signs; beyond any real index, and within the stack.
const DEEPEST: u32 = 100;

/// What is wrong with an expression's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}': {reason} at column {column}")]
pub struct IndexError {
    /// The text.
    pub text: String,
    /// What is wrong.
    pub reason: String,
    /// Where, from 1.
    pub column: usize,
}

impl IndexExpression {
    /// Reads `text`, in which `names` may occur.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, IndexError> {
        let mut parser = Parser {
            rest: text,
            names,
            steps: Vec::new(),
        };
        let parsed = parser.binary(0, 0).and_then(|()| {
            if parser.rest.trim_start().is_empty() {
                Ok(())
            } else {
                Err("an operator is missing".to_owned())
            }
        });
        match parsed {
            Ok(()) => Ok(Self {
                steps: parser.steps,
            }),
            Err(reason) => {
                let at = text.len() - parser.rest.trim_start().len();
                Err(IndexError {
                    text: text.to_owned(),
                    reason,
                    column: text[..at].chars().count() + 1,
                })
            }
        }
    }

    /// Its value, with `values` for the names it was parsed with, in their order; `None` on division
    /// by zero, overflow and shifts by less than 0 or more than 63.
    ///
    /// # Panics
    /// If there are fewer values than names.
    pub fn value(&self, values: &[i64]) -> Option<i64> {
        let mut stack = Vec::new();
        for step in &self.steps {
            let result = match *step {
                Step::Number(number) => number,
                Step::Variable(place) => values[place],
                Step::Negate => stack.pop().and_then(i64::checked_neg)?,
                Step::Invert => !stack.pop()?,
                Step::Binary(operator) => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    apply(operator, left, right)?
                }
            };
            stack.push(result);
        }
        stack.pop()
    }
}

fn apply(operator: Operator, left: i64, right: i64) -> Option<i64> {
    let places = || u32::try_from(right).ok().filter(|&places| places < 64);
    match operator {
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::ShiftLeft => left.checked_mul(1i64.checked_shl(places()?)?),
        Operator::ShiftRight => Some(left >> places()?),
        Operator::And => Some(left & right),
        Operator::Xor => Some(left ^ right),
        Operator::Or => Some(left | right),
    }
}

struct Parser<'a> {
    rest: &'a str,
    names: &'a [&'a str],
    steps: Vec<Step>,
}

impl Parser<'_> {
    /// An operand, and operators after it that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8, depth: u32) -> Result<(), String> {
        self.operand(depth)?;
        loop {
            self.rest = self.rest.trim_start();
            let found = OPERATORS
                .iter()
                .find(|(text, ..)| self.rest.starts_with(text));
            let Some(&(text, operator, tightness)) = found else {
                return Ok(());
            };
            if tightness < least {
                return Ok(());
            }
            self.rest = &self.rest[text.len()..];
            // All are left-associative.
            self.binary(tightness + 1, depth)?;
            self.steps.push(Step::Binary(operator));
        }
    }

    fn operand(&mut self, depth: u32) -> Result<(), String> {
        if depth > DEEPEST {
            return Err("nested too deeply".to_owned());
        }
        self.rest = self.rest.trim_start();
        let rest = self.rest;
        let word = |accept: fn(char) -> bool| {
            let end = rest.find(|c: char| !accept(c)).unwrap_or(rest.len());
            rest.split_at(end)
        };
        match rest.chars().next() {
            None => Err("a value is missing".to_owned()),
            Some('(') => {
                self.rest = &rest[1..];
                self.binary(0, depth + 1)?;
                self.rest = self.rest.trim_start();
                self.rest = self
                    .rest
                    .strip_prefix(')')
                    .ok_or_else(|| "')' is missing".to_owned())?;
                Ok(())
            }
            Some(sign @ ('-' | '~')) => {
                self.rest = &rest[1..];
                self.operand(depth + 1)?;
                self.steps.push(if sign == '-' {
                    Step::Negate
                } else {
                    Step::Invert
                });
                Ok(())
            }
            Some(c) if c.is_ascii_digit() => {
                let (digits, after) = word(|c| c.is_ascii_alphanumeric());
                let number = match digits.strip_prefix("0x") {
                    Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16),
                    None => digits.parse(),
                };
                let number = number.map_err(|_| format!("'{digits}' is no integer"))?;
                self.rest = after;
                self.steps.push(Step::Number(number));
                Ok(())
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let (name, after) = word(|c| c.is_ascii_alphanumeric() || c == '_');
                let place = self.names.iter().position(|known| *known == name);
                let place = place
                    .ok_or_else(|| format!("'{name}' is none of {}", self.names.join(", ")))?;
                self.rest = after;
                self.steps.push(Step::Variable(place));
                Ok(())
            }
            Some(c) => Err(format!("'{c}' begins no value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<i64> {
        IndexExpression::parse(text, &["lane", "i"])
            .unwrap()
            .value(&[7, 3])
    }

    #[test]
    fn precedence_is_that_of_c() {
        for (text, expected) in [
            ("2 + 3 * lane", 2 + 3 * 7),
            ("lane * 33 + i", 7 * 33 + 3),
            ("1 << i + 1", 1 << (3 + 1)),
            ("lane & 5 ^ i | 8", 14),
            ("lane - i - 1", 7 - 3 - 1),
            ("100 / lane % 4", 100 / 7 % 4),
            ("-(lane ^ i) + ~0", -(7 ^ 3) + !0),
            ("0x1f&lane", 0x1f & 7),
            ("-lane % 4", -7 % 4),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_says_so() {
        for text in [
            "1 / (lane - 7)",
            "lane % 0",
            "1 << 64",
            "1 << -1",
            "0x7fffffffffffffff + 1",
            "(0-0x7fffffffffffffff-1) / -1",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        for (text, reason, column) in [
            ("", "a value is missing", 1),
            ("lane +", "a value is missing", 7),
            ("lane * row", "'row' is none of lane, i", 8),
            ("(lane", "')' is missing", 6),
            ("lane i", "an operator is missing", 6),
            ("12ab", "'12ab' is no integer", 1),
            ("lane $ 2", "an operator is missing", 6),
            ("é", "'é' begins no value", 1),
        ] {
            let error = IndexExpression::parse(text, &["lane", "i"]).unwrap_err();
            assert_eq!(
                (error.reason.as_str(), error.column),
                (reason, column),
                "{text}"
            );
        }
        let deep = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        assert!(IndexExpression::parse(&deep, &[]).is_err());
        assert!(IndexExpression::parse(&"-".repeat(100_000), &[]).is_err());
    }
}
