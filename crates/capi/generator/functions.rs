//! From the table's rows to single functions.

use crate::table::TABLE;
use crate::types::{Type, set};

/// One parameter: its C type with `T` still in it, and its name.
#[derive(Clone)]
pub struct Parameter {
    pub ty: String,
    pub name: String,
}

/// One row of the table.
pub struct Row {
    /// The types it is repeated for; empty for a single function.
    pub types: Vec<Type>,
    /// Exists a second time with a context.
    pub context: bool,
    pub generic: bool,
    pub noreturn: bool,
    /// The name with `{c}` and `{T}` in it.
    name: String,
    pub result: String,
    pub parameters: Vec<Parameter>,
    /// Ends in `...`.
    pub variadic: bool,
    /// The Rust function behind it.
    pub implementation: String,
    /// The comment above its group.
    pub group: String,
}

impl Row {
    /// The function's name for one type.
    pub fn function(&self, ty: Option<&Type>, context: bool) -> String {
        self.name
            .replace("{c}", if context { "ctx_" } else { "" })
            .replace("{T}", ty.map_or("", |ty| ty.name))
    }

    /// The name of the type-generic form.
    pub fn generic_name(&self) -> String {
        self.name.replace("{c}", "").replace("{T}_", "")
    }

    /// What stands before and after the type's name.
    pub fn around_type(&self, context: bool) -> (String, String) {
        let name = self.name.replace("{c}", if context { "ctx_" } else { "" });
        let (before, after) = name.split_once("{T}").expect("a generic row has a type");
        (before.to_owned(), after.to_owned())
    }

    /// The first parameter whose type depends on `T`: what a type-generic selection looks at.
    pub fn selecting(&self) -> usize {
        let dependent = |parameter: &Parameter| has_t(&parameter.ty);
        self.parameters
            .iter()
            .position(dependent)
            .expect("a generic row has a typed parameter")
    }

    /// Every variant: type and whether it takes a context.
    pub fn variants(&self) -> Vec<(Option<&Type>, bool)> {
        let types: Vec<Option<&Type>> = match self.types.is_empty() {
            true => vec![None],
            false => self.types.iter().map(Some).collect(),
        };
        let contexts: &[bool] = if self.context {
            &[false, true]
        } else {
            &[false]
        };
        types
            .iter()
            .flat_map(|&ty| contexts.iter().map(move |&context| (ty, context)))
            .collect()
    }
}

/// Whether a C type mentions `T`.
pub fn has_t(ty: &str) -> bool {
    ty.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == "T")
}

/// A C type with `T` replaced.
pub fn with_t(ty: &str, t: &str) -> String {
    ty.split(' ')
        .map(|word| if word == "T" { t } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The whole table.
pub fn rows() -> Vec<Row> {
    let mut group = String::new();
    let mut rows = Vec::new();
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(comment) = line.strip_prefix('#') {
            group = comment.trim().to_owned();
            continue;
        }
        rows.push(row(line, &group));
    }
    rows
}

fn row(line: &str, group: &str) -> Row {
    let columns: Vec<&str> = line.split('|').map(str::trim).collect();
    let [types, flags, prototype, implementation] = columns[..] else {
        panic!("a row has four columns: {line}");
    };
    let (head, parameters) = prototype
        .strip_suffix(')')
        .and_then(|text| text.split_once('('))
        .unwrap_or_else(|| panic!("no prototype: {line}"));
    let (result, name) = split_name(head);
    let mut variadic = false;
    let mut list = Vec::new();
    for parameter in parameters.split(',').map(str::trim) {
        match parameter {
            "void" => {}
            "..." => variadic = true,
            _ => {
                let (ty, name) = split_name(parameter);
                list.push(Parameter { ty, name });
            }
        }
    }
    Row {
        types: if types == "one" {
            Vec::new()
        } else {
            set(types)
        },
        context: flags.contains('c'),
        generic: flags.contains('g'),
        noreturn: flags.contains('n'),
        name,
        result,
        parameters: list,
        variadic,
        implementation: implementation.to_owned(),
        group: group.to_owned(),
    }
}

/// `const T *source` is the type `const T *` and the name `source`.
fn split_name(text: &str) -> (String, String) {
    let at = text
        .rfind([' ', '*'])
        .unwrap_or_else(|| panic!("no type and name: {text}"));
    (text[..=at].trim().to_owned(), text[at + 1..].to_owned())
}
