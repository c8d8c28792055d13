//! Options and settings that take one of a few names, for types that know nothing of the command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Deserializer};

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

/// The name of `value`, which is among `choices`.
pub fn name_of<T: Copy + PartialEq>(choices: &[Choice<T>], value: T) -> &'static str {
    let found = choices.iter().find(|choice| choice.value == value);
    found.expect("every value has a name").name
}

/// Reads a setting of a file that may be left out.
pub fn optional<'de, T: Copy, D: Deserializer<'de>>(
    choices: &[Choice<T>],
    file: D,
) -> Result<Option<T>, D::Error> {
    let name = String::deserialize(file)?;
    match choices.iter().find(|choice| choice.name == name) {
        Some(choice) => Ok(Some(choice.value)),
        None => {
            let names = choices.iter().map(|choice| format!("`{}`", choice.name));
            let names = names.collect::<Vec<_>>().join(" or ");
            let text = format!("unknown variant `{name}`, expected {names}");
            Err(serde::de::Error::custom(text))
        }
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
