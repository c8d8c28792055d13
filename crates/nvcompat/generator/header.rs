//! The parts of the header that the table gives: prototypes of the host and of kernels, and definitions for kernels.

use crate::functions::{Form, Row};
use std::fmt::Write;

/// Prototypes of what runs on the host alone.
pub fn host(groups: &[(String, Vec<Row>)]) -> String {
    each(
        groups,
        |row, form| match form {
            Form::Host => !row.is_both(),
            form => form == Form::OnStream,
        },
        |prototype, _| format!("NVSHMEM_CW_HOST {prototype};"),
    )
}

/// Prototypes of names that stand for a function of the host and one of kernels.
pub fn both(groups: &[(String, Vec<Row>)]) -> String {
    each(
        groups,
        |row, form| row.is_both() && form == Form::Host,
        |prototype, _| format!("NVSHMEM_CW_BOTH {prototype};"),
    )
}

/// Prototypes of what runs in kernels alone.
pub fn kernels(groups: &[(String, Vec<Row>)]) -> String {
    each(
        groups,
        |row, form| form.in_kernels() && !(row.is_both() && form == Form::Thread),
        |prototype, _| format!("NVSHMEM_CW_KERNELS {prototype};"),
    )
}

/// Definitions of what runs in kernels.
pub fn definitions(groups: &[(String, Vec<Row>)]) -> String {
    each(
        groups,
        |_, form| form.in_kernels(),
        |prototype, function| {
            let kind = match function.row.is_both() && function.form == Form::Thread {
                true => "NVSHMEM_CW_DEFINE_BOTH",
                false => "NVSHMEM_CW_DEFINE",
            };
            format!("{kind} {prototype} {{ {} }}", function.body())
        },
    )
}

fn each(
    groups: &[(String, Vec<Row>)],
    wanted: impl Fn(&Row, Form) -> bool,
    line: impl Fn(String, &crate::functions::Function<'_>) -> String,
) -> String {
    let mut out = String::new();
    for (group, rows) in groups {
        let mut lines = String::new();
        for row in rows {
            for function in row.functions() {
                if wanted(row, function.form) {
                    let text = line(function.prototype(), &function);
                    // Not everywhere are there such types.
                    match function.ty.map(|ty| ty.name) {
                        Some("half" | "bfloat16") => {
                            let _ = writeln!(lines, "#ifdef NVSHMEM_CW_HALF\n{text}\n#endif");
                        }
                        _ => {
                            let _ = writeln!(lines, "{text}");
                        }
                    }
                }
            }
        }
        if !lines.is_empty() {
            let _ = write!(out, "\n/* {group} */\n{lines}");
        }
    }
    out
}
