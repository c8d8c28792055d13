//! From a formula's text to its steps, by recursive descent: a function a level of the grammar.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/") signed }
//! signed  = { "+" | "-" } power
//! power   = value [ "^" signed ]
//! value   = number | variable | constant | function "(" sum { "," sum } ")" | "(" sum ")"
//! ```

use std::f64::consts::{E, PI, TAU};

use super::function::{function, names};
use super::{DEEPEST, Step, Variable, shorten};

/// What is wrong, and in which column.
type Problem = (Option<usize>, String);

/// What a text says.
pub struct Parsed {
    pub steps: Vec<Step>,
    /// How many operands wait at most.
    pub depth: usize,
    /// The first `z` or `k`, and its column.
    pub third: Option<(char, usize)>,
}

/// The steps of `text`.
pub fn parse(text: &str) -> Result<Parsed, Problem> {
    let mut parser = Parser {
        text,
        rest: text.trim_start(),
        steps: Vec::new(),
        waiting: 0,
        depth: 0,
        nested: 0,
        third: None,
    };
    parser.sum()?;
    match parser.rest.chars().next() {
        None => Ok(Parsed {
            steps: parser.steps,
            depth: parser.depth,
            third: parser.third,
        }),
        Some(_) => Err(parser.unexpected(parser.rest)),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// What is still to be read; begins with a token.
    rest: &'a str,
    steps: Vec<Step>,
    /// Operands that wait for an operator.
    waiting: usize,
    /// The most there were.
    depth: usize,
    /// Parentheses and exponents around this place.
    nested: usize,
    third: Option<(char, usize)>,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<(), Problem> {
        self.product()?;
        loop {
            let step = match self.rest.chars().next() {
                Some('+') => Step::Add,
                Some('-') => Step::Subtract,
                _ => return Ok(()),
            };
            self.advance(1);
            self.product()?;
            self.push(step);
        }
    }

    fn product(&mut self) -> Result<(), Problem> {
        self.signed()?;
        loop {
            let step = match self.rest.chars().next() {
                Some('*') => Step::Multiply,
                Some('/') => Step::Divide,
                _ => return Ok(()),
            };
            self.advance(1);
            self.signed()?;
            self.push(step);
        }
    }

    fn signed(&mut self) -> Result<(), Problem> {
        let mut negative = false;
        while let Some(sign @ ('+' | '-')) = self.rest.chars().next() {
            negative ^= sign == '-';
            self.advance(1);
        }
        self.power()?;
        if negative {
            self.push(Step::Negate);
        }
        Ok(())
    }

    fn power(&mut self) -> Result<(), Problem> {
        self.value()?;
        if self.rest.starts_with('^') {
            let sign = self.rest;
            self.advance(1);
            self.nest(sign)?;
            self.signed()?;
            self.nested -= 1;
            self.push(Step::Two(libm::pow));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<(), Problem> {
        let here = self.rest;
        match here.chars().next() {
            None => Err(self.wrong(here, "a value is missing at the end")),
            Some('(') => self.parentheses(false).map(|_| ()),
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.name(),
            Some(c @ ('*' | '/' | '^' | ')' | ',')) => {
                Err(self.wrong(here, &format!("'{c}' stands where a value is needed")))
            }
            Some(_) => Err(self.unexpected(here)),
        }
    }

    /// A value in parentheses, or the arguments of a function; how many.
    fn parentheses(&mut self, of_function: bool) -> Result<usize, Problem> {
        let opening = self.rest;
        self.nest(opening)?;
        self.advance(1);
        self.sum()?;
        let mut count = 1;
        while of_function && self.rest.starts_with(',') {
            self.advance(1);
            self.sum()?;
            count += 1;
        }
        match self.rest.chars().next() {
            Some(')') => self.advance(1),
            None => return Err(self.wrong(opening, "this parenthesis is not closed")),
            Some(_) => return Err(self.unexpected(self.rest)),
        }
        self.nested -= 1;
        Ok(count)
    }

    fn number(&mut self) -> Result<(), Problem> {
        let here = self.rest;
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(here);
        let mut length = whole;
        if here[length..].starts_with('.') {
            let after = digits(&here[length + 1..]);
            if whole + after == 0 {
                return Err(self.wrong(here, "'.' stands where a value is needed"));
            }
            length += 1 + after;
        }
        if let Some(exponent) = here[length..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let after = digits(&exponent[sign..]);
            if after > 0 {
                length += 1 + sign + after;
            }
        }
        let number = here[..length].parse::<f64>().unwrap_or(f64::INFINITY);
        if number.is_infinite() {
            let number = shorten(&here[..length]);
            let reason = format!("{number} is beyond the largest number, 1.8e308");
            return Err(self.wrong(here, &reason));
        }
        self.advance(length);
        self.push(Step::Number(number));
        Ok(())
    }

    fn name(&mut self) -> Result<(), Problem> {
        let here = self.rest;
        let length = here
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(here.len());
        let name = &here[..length];
        let step = match name {
            "x" => Step::Variable(Variable::X),
            "y" => Step::Variable(Variable::Y),
            "z" => Step::Variable(Variable::Z),
            "i" => Step::Variable(Variable::Column),
            "j" => Step::Variable(Variable::Row),
            "k" => Step::Variable(Variable::Plane),
            "pi" | "PI" | "π" => Step::Number(PI),
            "e" | "E" => Step::Number(E),
            "TAU" | "τ" => Step::Number(TAU),
            _ => {
                self.advance(length);
                return self.call(here, name);
            }
        };
        if let Step::Variable(Variable::Z | Variable::Plane) = step {
            let letter = name.chars().next().zip(Some(self.column(here)));
            self.third = self.third.or(letter);
        }
        self.advance(length);
        self.push(step);
        Ok(())
    }

    /// `name` at `here` is no variable and no constant.
    fn call(&mut self, here: &str, name: &str) -> Result<(), Problem> {
        let called = self.rest.starts_with('(');
        let name_shown = shorten(name);
        let (step, arguments) = match function(name) {
            Some(found) if called => found,
            Some(_) => {
                let reason = format!("'{name}' is a function: its argument needs parentheses");
                return Err(self.wrong(here, &reason));
            }
            None if called => {
                let reason = format!("'{name_shown}' is not a function; {} are", names());
                return Err(self.wrong(here, &reason));
            }
            None => {
                let reason = format!(
                    "'{name_shown}' is not known; the variables are x, y, i and j, of laplace3d also z and k"
                );
                return Err(self.wrong(here, &reason));
            }
        };
        let given = self.parentheses(true)?;
        if given != arguments {
            let plural = if arguments == 1 { "" } else { "s" };
            let reason = format!("'{name}' takes {arguments} argument{plural}, not {given}");
            return Err(self.wrong(here, &reason));
        }
        self.push(step);
        Ok(())
    }

    fn push(&mut self, step: Step) {
        match step {
            Step::Number(_) | Step::Variable(_) => self.waiting += 1,
            Step::Negate | Step::One(_) => {}
            Step::Add | Step::Subtract | Step::Multiply | Step::Divide | Step::Two(_) => {
                self.waiting -= 1;
            }
        }
        self.depth = self.depth.max(self.waiting);
        self.steps.push(step);
    }

    fn nest(&mut self, here: &str) -> Result<(), Problem> {
        self.nested += 1;
        if self.nested > DEEPEST {
            return Err(self.wrong(here, &format!("nested deeper than {DEEPEST}")));
        }
        Ok(())
    }

    /// Goes on behind `bytes` bytes and the spaces after them.
    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    /// The problem at the start of `here`, an end of the text.
    fn wrong(&self, here: &str, reason: &str) -> Problem {
        (Some(self.column(here)), reason.to_owned())
    }

    /// The column of the start of `here`, an end of the text.
    fn column(&self, here: &str) -> usize {
        let before = &self.text[..self.text.len() - here.len()];
        before.chars().count() + 1
    }

    /// The problem that something stands at the start of `here` which does not belong there.
    fn unexpected(&self, here: &str) -> Problem {
        let reason = match here.chars().next() {
            Some(')') => "a parenthesis is closed that was not opened".to_owned(),
            Some(',') => "a comma stands between the arguments of a function only".to_owned(),
            Some(c) if c.is_alphanumeric() || matches!(c, '.' | '(') => {
                "an operator is missing".to_owned()
            }
            Some(c) => format!("'{c}' is not understood here"),
            None => "a value is missing at the end".to_owned(),
        };
        self.wrong(here, &reason)
    }
}
