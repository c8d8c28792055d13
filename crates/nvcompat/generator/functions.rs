//! From the table's rows to single functions.

use crate::table::TABLE;
use crate::types::{Type, set};

/// One parameter: its C type with `T` still in it, and its name.
#[derive(Clone)]
pub struct Parameter {
    pub ty: String,
    pub name: String,
}

/// Where a function runs and who calls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Host,
    Thread,
    Warp,
    Warpgroup,
    Block,
    OnStream,
}

impl Form {
    fn of(letter: char) -> Self {
        match letter {
            'h' => Self::Host,
            'd' => Self::Thread,
            'w' => Self::Warp,
            'g' => Self::Warpgroup,
            'b' => Self::Block,
            's' => Self::OnStream,
            _ => panic!("no form '{letter}'"),
        }
    }

    /// What it puts for `{x}` and `{f}` in names.
    fn marks(self) -> (&'static str, &'static str) {
        match self {
            Self::Host | Self::Thread => ("", ""),
            Self::Warp => ("x", "_warp"),
            Self::Warpgroup => ("x", "_warpgroup"),
            Self::Block => ("x", "_block"),
            Self::OnStream => ("x", "_on_stream"),
        }
    }

    pub fn in_kernels(self) -> bool {
        matches!(
            self,
            Self::Thread | Self::Warp | Self::Warpgroup | Self::Block
        )
    }
}

/// One row of the table.
pub struct Row {
    /// The types it is repeated for; empty for a single function.
    types: Vec<Type>,
    forms: Vec<Form>,
    /// The name with its marks.
    name: String,
    result: String,
    parameters: Vec<Parameter>,
    /// The function in kernels, with `S` in it.
    in_kernels: String,
    /// The Rust function, with `T` in it.
    on_host: String,
}

/// One function: a row's, of a type, in a form.
pub struct Function<'r> {
    pub row: &'r Row,
    pub ty: Option<&'r Type>,
    pub form: Form,
    pub name: String,
}

impl Row {
    pub fn has(&self, form: Form) -> bool {
        self.forms.contains(&form)
    }

    /// Whether one name stands for a function of the host and one of kernels.
    pub fn is_both(&self) -> bool {
        self.has(Form::Host) && self.has(Form::Thread)
    }

    /// Every function of the row.
    pub fn functions(&self) -> Vec<Function<'_>> {
        let types: Vec<Option<&Type>> = match self.types.is_empty() {
            true => vec![None],
            false => self.types.iter().map(Some).collect(),
        };
        let mut all = Vec::new();
        for ty in types {
            for &form in &self.forms {
                let (x, f) = form.marks();
                let name = self
                    .name
                    .replace("{x}", x)
                    .replace("{f}", f)
                    .replace("{T}", ty.map_or("", |ty| ty.name));
                all.push(Function {
                    row: self,
                    ty,
                    form,
                    name,
                });
            }
        }
        all
    }
}

impl Function<'_> {
    fn c_type(&self) -> &'static str {
        self.ty.map_or("", |ty| ty.c)
    }

    /// Its prototype in C, without a semicolon.
    pub fn prototype(&self) -> String {
        let mut parameters: Vec<String> = self
            .row
            .parameters
            .iter()
            .map(|parameter| declare(&with_t(&parameter.ty, self.c_type()), &parameter.name))
            .collect();
        if self.form == Form::OnStream {
            parameters.push("cudaStream_t cstrm".into());
        }
        if parameters.is_empty() {
            parameters.push("void".into());
        }
        let result = with_t(&self.row.result, self.c_type());
        format!(
            "{}({})",
            declare(&result, &self.name),
            parameters.join(", ")
        )
    }

    /// Its body in kernels.
    pub fn body(&self) -> String {
        let scope = match self.form {
            Form::Warp => "crosswarp_nvshmem::warp",
            Form::Warpgroup => "crosswarp_nvshmem::warpgroup",
            Form::Block => "crosswarp_nvshmem::block",
            _ => "crosswarp_nvshmem::thread",
        };
        let (function, shared) = match self.row.in_kernels.split_once(" as ") {
            Some((function, "numbers")) => (function, self.ty.and_then(Type::as_numbers)),
            Some((function, "bits")) => (function, self.ty.and_then(Type::as_bits)),
            Some((_, other)) => panic!("types are shared as numbers or bits, not as {other}"),
            None => (self.row.in_kernels.as_str(), None),
        };
        let unit = shared.or(self.ty.and_then(|ty| ty.unit));
        let arguments: Vec<String> = self
            .row
            .parameters
            .iter()
            .map(|parameter| match unit {
                Some(unit) if has_t(&parameter.ty) => {
                    format!("({}){}", with_t(&parameter.ty, unit), parameter.name)
                }
                _ => parameter.name.clone(),
            })
            .collect();
        let returns = if self.row.result == "void" {
            ""
        } else {
            "return "
        };
        let function = with_word(function, "S", scope);
        format!(
            "{returns}crosswarp_nvshmem::{function}({});",
            arguments.join(", ")
        )
    }

    /// The exported Rust function.
    pub fn export(&self) -> String {
        let t = self.ty.map_or("", |ty| ty.rust);
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        if self.row.has(Form::OnStream) {
            arguments.push(match self.form {
                Form::OnStream => format!("On::Stream({:?}, cstrm)", self.name),
                _ => format!("On::Host({:?})", self.name),
            });
        }
        for parameter in &self.row.parameters {
            let name = parameter.name.to_ascii_lowercase();
            parameters.push(format!("{name}: {}", rust_type(&parameter.ty, t)));
            arguments.push(name);
        }
        if self.form == Form::OnStream {
            parameters.push("cstrm: Stream".into());
        }
        let result = match self.row.result.as_str() {
            "void" => String::new(),
            ty => format!(" -> {}", rust_type(ty, t)),
        };
        format!(
            "#[unsafe(export_name = {0:?})] unsafe extern \"C\" fn export_{0}({1}){result} {{ unsafe {{ {2}({3}) }} }}",
            self.name,
            parameters.join(", "),
            with_word(&self.row.on_host, "T", t),
            arguments.join(", "),
        )
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Whether a C type mentions `T`.
fn has_t(ty: &str) -> bool {
    words(ty).any(|word| word == "T")
}

/// A C type with `T` replaced.
fn with_t(ty: &str, t: &str) -> String {
    with_word(ty, "T", t)
}

/// The text with the word `word` replaced.
fn with_word(text: &str, word: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(found) = words(rest).find(|found| !found.is_empty()) {
        let at = found.as_ptr() as usize - rest.as_ptr() as usize;
        out += &rest[..at];
        out += if found == word { by } else { found };
        rest = &rest[at + found.len()..];
    }
    out + rest
}

/// `long *` and `x` give `long *x`; `long` and `x` give `long x`.
fn declare(ty: &str, name: &str) -> String {
    match ty.ends_with('*') {
        true => format!("{ty}{name}"),
        false => format!("{ty} {name}"),
    }
}

fn rust_type(c: &str, t: &str) -> String {
    if let Some(inner) = c.strip_suffix("**") {
        return format!("*mut {}", rust_type(&format!("{inner}*"), t));
    }
    let (base, pointer) = match c.strip_suffix('*') {
        Some(base) => (base.trim(), true),
        None => (c, false),
    };
    let (base, constant) = match base.strip_prefix("const ") {
        Some(base) => (base, true),
        None => (base, false),
    };
    let rust = match base {
        "T" => t,
        "void" => "c_void",
        "char" => "c_char",
        "int" | "nvshmem_team_t" | "nvshmemx_qp_handle_t" => "c_int",
        "unsigned int" => "c_uint",
        "long" => "c_long",
        "size_t" => "usize",
        "ptrdiff_t" => "isize",
        "uint64_t" | "nvshmemx_team_uniqueid_t" => "u64",
        "CUmodule" | "CUlibrary" => "*mut c_void",
        "nvshmemx_init_attr_t" => "InitAttributes",
        "nvshmemx_uniqueid_t" => "UniqueId",
        "nvshmem_team_config_t" => "TeamConfig",
        other => panic!("no Rust type for '{other}'"),
    };
    match (pointer, constant) {
        (false, _) => rust.to_owned(),
        (true, true) => format!("*const {rust}"),
        (true, false) => format!("*mut {rust}"),
    }
}

/// The whole table: groups of rows, with what is above each.
pub fn groups() -> Vec<(String, Vec<Row>)> {
    let mut groups: Vec<(String, Vec<Row>)> = Vec::new();
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix('#') {
            Some(comment) => groups.push((comment.trim().to_owned(), Vec::new())),
            None => groups
                .last_mut()
                .expect("a comment comes first")
                .1
                .push(row(line)),
        }
    }
    groups
}

fn row(line: &str) -> Row {
    let columns: Vec<&str> = line.split('|').map(str::trim).collect();
    let [types, forms, prototype, in_kernels, on_host] = columns[..] else {
        panic!("a row has five columns: {line}");
    };
    let (head, parameters) = prototype
        .strip_suffix(')')
        .and_then(|text| text.split_once('('))
        .unwrap_or_else(|| panic!("no prototype: {line}"));
    let (result, name) = split_name(head);
    let parameters = parameters
        .split(',')
        .map(str::trim)
        .filter(|&parameter| parameter != "void");
    Row {
        types: if types == "one" {
            Vec::new()
        } else {
            set(types)
        },
        forms: forms.chars().map(Form::of).collect(),
        name,
        result,
        parameters: parameters
            .map(|parameter| {
                let (ty, name) = split_name(parameter);
                Parameter { ty, name }
            })
            .collect(),
        in_kernels: in_kernels.to_owned(),
        on_host: on_host.to_owned(),
    }
}

/// `const T *source` is the type `const T *` and the name `source`.
fn split_name(text: &str) -> (String, String) {
    let at = text
        .rfind([' ', '*'])
        .unwrap_or_else(|| panic!("no type and name: {text}"));
    (text[..=at].trim().to_owned(), text[at + 1..].to_owned())
}
