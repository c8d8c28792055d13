//! Options that take one of a few names, for types that know nothing of the command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A value, its name on the command line, and what the help says of it.
#[derive(Debug)]
pub struct Choice<T> {
    value: T,
    name: &'static str,
    help: &'static str,
}

impl<T> Choice<T> {
    /// The choice of `value` by `name`.
    pub const fn new(value: T, name: &'static str, help: &'static str) -> Self {
        Self { value, name, help }
    }
}

/// A parser that takes the names of `choices`.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let names = choices
        .iter()
        .map(|choice| PossibleValue::new(choice.name).help(choice.help));
    PossibleValuesParser::new(names).map(|name: String| {
        let found = choices.iter().find(|choice| choice.name == name);
        found.expect("only these names are taken").value
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};

    use super::*;
    use crate::args::reduce::OPERATIONS;
    use crosswarp::prim::Op;

    #[test]
    fn operations_have_the_names_they_print() {
        fn check<T: Display + Debug>(choices: &[Choice<T>]) {
            for choice in choices {
                assert_eq!(choice.value.to_string(), choice.name);
            }
        }
        check(OPERATIONS);
        // The exact sum is asked for by an option.
        assert_eq!(OPERATIONS.len(), Op::ALL.len() - 1);
    }
}
