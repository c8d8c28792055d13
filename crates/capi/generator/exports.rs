//! Writes the exported functions in Rust: for each name two symbols, `shmem_…` and `pshmem_…`, that call
//! the implementation named in the table.

use crate::functions::{Row, with_t};
use crate::header::profiling_name;
use crate::types::Type;
use std::fmt::Write;

/// The text of the module with all exports.
pub fn exports(rows: &[Row]) -> String {
    let mut out = String::new();
    for row in rows {
        for (ty, context) in row.variants() {
            let name = row.function(ty, context);
            let by_value = |ty: &str| ty == "T";
            let long_double = ty.is_some_and(|ty| ty.name == "longdouble");
            if long_double
                && (by_value(&row.result) || row.parameters.iter().any(|p| by_value(&p.ty)))
            {
                // Rust has no such type to pass by value.
                long_double_by_value(&mut out, row, &name, context);
            } else {
                function(&mut out, row, ty, context, &name);
            }
        }
    }
    out
}

fn function(out: &mut String, row: &Row, ty: Option<&Type>, context: bool, name: &str) {
    let t = ty.map_or("", |ty| ty.rust);
    let mut parameters: Vec<String> = Vec::new();
    let mut arguments: Vec<String> = vec![format!("{name:?}")];
    if context {
        parameters.push("ctx: Context".into());
        arguments.push("ctx".into());
    } else if row.context {
        arguments.push("Context::DEFAULT".into());
    }
    for parameter in &row.parameters {
        parameters.push(format!(
            "{}: {}",
            rust_name(&parameter.name),
            rust_type(&parameter.ty, t)
        ));
        arguments.push(rust_name(&parameter.name));
    }
    let result = match row.result.as_str() {
        _ if row.noreturn => " -> !".to_owned(),
        "void" => String::new(),
        ty => format!(" -> {}", rust_type(ty, t)),
    };
    let turbofish = if ty.is_some() {
        format!("::<{t}>")
    } else {
        String::new()
    };
    for symbol in [name.to_owned(), profiling_name(name)] {
        let _ = writeln!(
            out,
            "#[unsafe(export_name = {symbol:?})] unsafe extern \"C\" fn export_{}({}){result} {{ unsafe {{ {}{turbofish}({}) }} }}",
            symbol.trim_start_matches('_'),
            parameters.join(", "),
            row.implementation,
            arguments.join(", "),
        );
    }
}

/// `p` and `g` of `long double`: x86-64 passes it in memory and returns it in an x87 register.
fn long_double_by_value(out: &mut String, row: &Row, name: &str, context: bool) {
    let which = match (row.implementation.as_str(), context) {
        ("rma::p", false) => "long_double_p",
        ("rma::p", true) => "long_double_ctx_p",
        ("rma::g", false) => "long_double_g",
        ("rma::g", true) => "long_double_ctx_g",
        (other, _) => panic!("no way to pass long double to {other}"),
    };
    for symbol in [name.to_owned(), profiling_name(name)] {
        let _ = writeln!(out, "{which}!({symbol:?}, export_{symbol});");
    }
}

/// Parameter names that are Rust keywords, or shout.
fn rust_name(name: &str) -> String {
    match name {
        "fetch" => "fetched".to_owned(),
        _ => name.to_ascii_lowercase(),
    }
}

fn rust_type(c: &str, t: &str) -> String {
    let c = with_t(c, "T");
    let (base, pointer) = match c.strip_suffix('*') {
        Some(base) => (base.trim(), true),
        None => (c.as_str(), false),
    };
    let (base, constant) = match base.strip_prefix("const ") {
        Some(base) => (base, true),
        None => (base, false),
    };
    let rust = match base {
        "T" => t,
        "void" => "c_void",
        "char" => "c_char",
        "int" => "c_int",
        "long" => "c_long",
        "double" => "f64",
        "size_t" => "usize",
        "ptrdiff_t" => "isize",
        "uint64_t" => "u64",
        "shmem_ctx_t" => "Context",
        "shmem_team_t" => "TeamHandle",
        "shmem_team_config_t" => "TeamConfig",
        "shmem_ctx_session_config_t" => "SessionConfig",
        other => panic!("no Rust type for '{other}'"),
    };
    match (pointer, constant) {
        (false, _) => rust.to_owned(),
        (true, true) => format!("*const {rust}"),
        (true, false) => format!("*mut {rust}"),
    }
}
