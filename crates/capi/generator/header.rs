//! Writes `shmem.h`: a hand-written beginning and end, between them what the table gives.

use crate::functions::{Parameter, Row, has_t, with_t};
use crate::types::{Type, set};
use std::fmt::Write;

/// The header's text: `before` and `after` enclose it.
pub fn header(rows: &[Row], before: &str, after: &str) -> String {
    let mut out = before.to_owned();
    out += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
    prototypes(&mut out, rows);
    out += "\n#ifdef __cplusplus\n} /* extern \"C\" */\n";
    c_types_in_cxx(&mut out, rows);
    out += "#endif\n";
    out += "\n#if defined(__cplusplus) && !defined(SHMEM_NO_GENERICS)\n";
    overloads(&mut out, rows);
    out += "\n#elif !defined(SHMEM_NO_GENERICS) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n";
    selections(&mut out, rows);
    out += "#endif\n";
    out += after;
    out
}

/// The header of the profiling names.
pub fn profiling_header(rows: &[Row], before: &str, after: &str) -> String {
    let mut out = before.to_owned();
    for row in rows {
        for (ty, context) in row.variants() {
            let c = prototype(row, ty, context, |ty| ty.c, true);
            match ty.filter(|ty| ty.c != ty.cxx) {
                Some(_) => {
                    let cxx = prototype(row, ty, context, |ty| ty.cxx, true);
                    let _ = write!(out, "#ifdef __cplusplus\n{cxx}\n#else\n{c}\n#endif\n");
                }
                None => {
                    let _ = writeln!(out, "{c}");
                }
            }
        }
    }
    out += after;
    out
}

/// The profiling name of a function.
pub fn profiling_name(name: &str) -> String {
    format!("p{name}")
}

fn prototypes(out: &mut String, rows: &[Row]) {
    let mut group = "";
    for row in rows {
        if row.group != group {
            group = &row.group;
            let _ = write!(out, "\n/* {group} */\n");
        }
        for (ty, context) in row.variants() {
            let c = prototype(row, ty, context, |ty| ty.c, false);
            match ty.filter(|ty| ty.c != ty.cxx) {
                Some(_) => {
                    let cxx = prototype(row, ty, context, |ty| ty.cxx, false);
                    let _ = write!(out, "#ifdef __cplusplus\n{cxx}\n#else\n{c}\n#endif\n");
                }
                None => {
                    let _ = writeln!(out, "{c}");
                }
            }
        }
    }
}

/// One prototype with its semicolon.
fn prototype(
    row: &Row,
    ty: Option<&Type>,
    context: bool,
    language: impl Fn(&Type) -> &'static str,
    profiling: bool,
) -> String {
    let mut name = row.function(ty, context);
    if profiling {
        name = profiling_name(&name);
    }
    let t = ty.map_or("", language);
    let noreturn = if row.noreturn { "SHMEM_NORETURN " } else { "" };
    let mut parameters: Vec<String> = Vec::new();
    if context {
        parameters.push("shmem_ctx_t ctx".into());
    }
    parameters.extend(
        row.parameters
            .iter()
            .map(|parameter| declare(&with_t(&parameter.ty, t), &parameter.name)),
    );
    if row.variadic {
        parameters.push("...".into());
    }
    if parameters.is_empty() {
        parameters.push("void".into());
    }
    format!(
        "{noreturn}{}({});",
        declare(&with_t(&row.result, t), &name),
        parameters.join(", ")
    )
}

/// `long *` and `x` give `long *x`; `long` and `x` give `long x`.
fn declare(ty: &str, name: &str) -> String {
    match ty.ends_with('*') {
        true => format!("{ty}{name}"),
        false => format!("{ty} {name}"),
    }
}

/// C11: one macro per type-generic form, which selects by the type of the first typed argument.
fn selections(out: &mut String, rows: &[Row]) {
    *out += "/* Type-generic forms. A pointer selects by what it points to, whatever its qualifiers. */\n";
    *out += "#define SHMEM_C11_CASE(type, function) type *: function, const type *: function, \\\n\
        \x20   volatile type *: function, const volatile type *: function\n\
        #define SHMEM_C11_FIRST(a, ...) a\n\
        #define SHMEM_C11_SECOND(a, b, ...) b\n";
    let mut written: Vec<(Vec<&str>, String)> = Vec::new();
    let mut defined: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row.generic) {
        let types = distinct(&row.types);
        let key: Vec<&str> = types.iter().map(|ty| ty.name).collect();
        let cases = match written.iter().find(|(known, _)| *known == key) {
            Some((_, name)) => name.clone(),
            None => {
                let name = format!("SHMEM_C11_TYPES_{}", written.len() + 1);
                let list: Vec<String> = types
                    .iter()
                    .map(|ty| format!("    SHMEM_C11_CASE({}, before##{}##after)", ty.c, ty.name))
                    .collect();
                let _ = writeln!(
                    out,
                    "#define {name}(before, after) \\\n{}",
                    list.join(", \\\n")
                );
                written.push((key, name.clone()));
                name
            }
        };
        let generic = row.generic_name();
        assert!(
            !defined.contains(&generic),
            "two rows give the generic name {generic}"
        );
        let (before, after) = row.around_type(false);
        let plain = format!("{cases}({before}, {after})");
        let selected = match (row.context, row.selecting()) {
            (true, 0) => {
                let (ctx_before, ctx_after) = row.around_type(true);
                format!(
                    "_Generic((SHMEM_C11_FIRST(__VA_ARGS__, 0)), \\\n    shmem_ctx_t: _Generic((SHMEM_C11_SECOND(__VA_ARGS__, 0, 0)), \\\n        {cases}({ctx_before}, {ctx_after}), default: 0), \\\n    {plain})"
                )
            }
            (false, 0) => format!("_Generic((SHMEM_C11_FIRST(__VA_ARGS__, 0)), {plain})"),
            (false, 1) => format!("_Generic((SHMEM_C11_SECOND(__VA_ARGS__, 0, 0)), {plain})"),
            _ => panic!("{generic} selects by an argument no macro is written for"),
        };
        let _ = writeln!(out, "#define {generic}(...) {selected}(__VA_ARGS__)");
        defined.push(generic);
    }
}

/// C++: where a type of C has another in its place, overloads that take C's own, by name and (in
/// [`overloads`]) type-generic.
fn c_types_in_cxx(out: &mut String, rows: &[Row]) {
    *out +=
        "\n/* The same for C's own complex types, which C++ compilers know by an extension. */\n";
    *out += "#ifdef SHMEM_C_COMPLEX\n";
    for row in rows {
        for ty in &row.types {
            // Without a context: the rows with these types have none.
            c_type_in_cxx(out, row, ty, &row.function(Some(ty), false));
        }
    }
    *out += "#endif\n";
}

/// The overload `name` for C's own type, if it is another in C++: it passes its arguments on.
fn c_type_in_cxx(out: &mut String, row: &Row, ty: &Type, name: &str) {
    let Some(own) = ty.c_in_cxx else {
        return;
    };
    assert!(!row.context && !has_t(&row.result), "{name}: not foreseen");
    let mut parameters: Vec<String> = Vec::new();
    let mut arguments: Vec<String> = Vec::new();
    for Parameter { ty: declared, name } in &row.parameters {
        parameters.push(declare(&with_t(declared, own), name));
        arguments.push(match has_t(declared) {
            true => format!("reinterpret_cast<{}>({name})", with_t(declared, ty.cxx)),
            false => name.clone(),
        });
    }
    let returns = if row.result == "void" { "" } else { "return " };
    let _ = writeln!(
        out,
        "static inline {}({}) {{ {returns}{}({}); }}",
        declare(&row.result, name),
        parameters.join(", "),
        row.function(Some(ty), false),
        arguments.join(", ")
    );
}

/// C++: an overload per type of each type-generic form.
fn overloads(out: &mut String, rows: &[Row]) {
    // A plain function of the same name and parameters takes the overload's place.
    let long = set("long");
    for row in rows.iter().filter(|row| row.generic) {
        let generic = row.generic_name();
        for ty in distinct(&row.types) {
            for context in [false, true] {
                if context && !row.context {
                    continue;
                }
                if generic == "shmem_wait_until" && ty == long[0] {
                    continue;
                }
                let mut parameters: Vec<String> = Vec::new();
                let mut arguments: Vec<&str> = Vec::new();
                if context {
                    parameters.push("shmem_ctx_t ctx".into());
                    arguments.push("ctx");
                }
                for parameter in &row.parameters {
                    parameters.push(declare(&with_t(&parameter.ty, ty.cxx), &parameter.name));
                    arguments.push(&parameter.name);
                }
                let returns = if row.result == "void" { "" } else { "return " };
                debug_assert!(row.parameters.iter().any(|parameter| has_t(&parameter.ty)));
                let _ = writeln!(
                    out,
                    "static inline {}({}) {{ {returns}{}({}); }}",
                    declare(&with_t(&row.result, ty.cxx), &generic),
                    parameters.join(", "),
                    row.function(Some(&ty), context),
                    arguments.join(", ")
                );
            }
            if ty.c_in_cxx.is_some() {
                *out += "#ifdef SHMEM_C_COMPLEX\n";
                c_type_in_cxx(out, row, &ty, &generic);
                *out += "#endif\n";
            }
        }
    }
}

/// One of each C type: the first name that stands for it.
fn distinct(types: &[Type]) -> Vec<Type> {
    let mut kept: Vec<Type> = Vec::new();
    for ty in types {
        if !kept.iter().any(|known| known.same_as == ty.same_as) {
            kept.push(*ty);
        }
    }
    kept
}
