//! Sizes that overflow: every function of the table that takes one refuses it with a message, whether checking
//! is on or not, as it refuses what is only too long; the allocating ones return null.

#[path = "../generator/functions.rs"]
#[allow(dead_code)] // the generator uses more of it
mod functions;
mod support;
#[path = "../generator/table.rs"]
mod table;
#[path = "../generator/types.rs"]
#[allow(dead_code)] // as above
mod types;

use functions::{Row, has_t, rows, with_t};
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use support::{Language, compile, prefix};
use types::Type;

/// Parameters that count or measure something.
const SIZES: [&str; 9] = [
    "nelems", "nreduce", "bsize", "nblocks", "dst", "sst", "size", "count", "PE_size",
];

/// Bytes of an element, in C.
fn element(ty: Option<&Type>) -> String {
    match ty {
        Some(ty) if ty.c == "void" => ty
            .name
            .parse()
            .map_or(1, |bits: usize| bits / 8)
            .to_string(),
        Some(ty) if matches!(ty.rust, "i8" | "u8") => "1".to_owned(),
        Some(ty) => format!("sizeof({})", ty.c),
        None => "1".to_owned(),
    }
}

/// What `parameter` is in a call in which `wild` is too large.
fn argument(parameter: &str, ty: Option<&Type>, wild: &str) -> String {
    let strided = matches!(wild, "dst" | "sst");
    match parameter {
        "dst" | "sst" if parameter == wild => "PTRDIFF_MAX".to_owned(),
        // 8 objects of more than an eighth of all there can be.
        "size" | "count" if parameter == wild => "SIZE_MAX / 8 + 2".to_owned(),
        // So many that their bytes, if they overflowed, were those of one or two elements.
        _ if parameter == wild => match element(ty).as_str() {
            "1" => "SIZE_MAX".to_owned(),
            bytes => format!("SIZE_MAX / {bytes} + 2"),
        },
        "nelems" | "nblocks" if strided => "3".to_owned(),
        "dest" | "ivars" | "cmp_values" => "to".to_owned(),
        "source" => "from".to_owned(),
        "nelems" | "nreduce" | "bsize" | "nblocks" | "dst" | "sst" | "PE_size" | "signal" => {
            "1".to_owned()
        }
        "pe" | "PE_root" | "PE_start" | "logPE_stride" | "cmp_value" | "hints" => "0".to_owned(),
        "size" | "count" => "8".to_owned(),
        "alignment" => "64".to_owned(),
        "ptr" => "shmem_malloc(8)".to_owned(),
        "team" => "SHMEM_TEAM_WORLD".to_owned(),
        "status" | "pSync" | "pWrk" => "NULL".to_owned(),
        "indices" => "indices".to_owned(),
        "cmp" => "SHMEM_CMP_EQ".to_owned(),
        "sig_addr" => "&sig".to_owned(),
        "sig_op" => "SHMEM_SIGNAL_SET".to_owned(),
        _ => panic!("no argument for {parameter}"),
    }
}

fn call(row: &Row, ty: Option<&Type>, context: bool, wild: &str) -> String {
    let c = ty.map_or("void", |ty| ty.c);
    let mut arguments = Vec::new();
    if context {
        arguments.push("SHMEM_CTX_DEFAULT".to_owned());
    }
    for parameter in &row.parameters {
        let value = argument(&parameter.name, ty, wild);
        arguments.push(match has_t(&parameter.ty) && parameter.ty.contains('*') {
            true => format!("({}){value}", with_t(&parameter.ty, c)),
            false => value,
        });
    }
    format!("{}({})", row.function(ty, context), arguments.join(", "))
}

/// Each call with what to call it: the function, and which of its arguments is too large.
fn calls() -> Vec<(String, String)> {
    let mut calls = Vec::new();
    for row in rows() {
        let variants = row.variants();
        let ends = [variants[0], variants[variants.len() - 1]];
        let ends = &ends[..variants.len().min(2)];
        let wild = row.parameters.iter().filter(|parameter| {
            let wide = matches!(parameter.ty.as_str(), "size_t" | "ptrdiff_t");
            wide && SIZES.contains(&parameter.name.as_str())
        });
        for parameter in wild {
            for &(ty, context) in ends {
                let text = call(&row, ty, context, &parameter.name);
                let null = row.parameters.iter().any(|p| p.name == "size");
                let text = match null {
                    // Of one PE's 8 bytes there can be as many as a size says.
                    true => format!("null({text})"),
                    false => format!("(void){text}"),
                };
                calls.push((
                    format!("{} {}", row.function(ty, context), parameter.name),
                    text,
                ));
            }
        }
    }
    calls
}

#[test]
fn sizes_that_overflow_are_refused() {
    let calls = calls();
    let mut text = String::from(
        "#include <shmem.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        static long to[64], from[64];\nstatic uint64_t sig;\nstatic size_t indices[64];\n\
        static void null(void *object) { exit(object == NULL ? 0 : 3); }\n\
        int main(int argc, char **argv)\n{\n    (void)argc, (void)indices, (void)null;\n    shmem_init();\n\
        \x20   switch (atoi(argv[1])) {\n",
    );
    for (number, (_, call)) in calls.iter().enumerate() {
        writeln!(text, "    case {number}: {call}; break;").unwrap();
    }
    text += "    default: return 4;\n    }\n    return 5;\n}\n";
    let source = prefix().join("sizes.c");
    std::fs::write(&source, text).unwrap();
    let program = compile(
        source.to_str().unwrap(),
        Language::C11,
        "sizes",
        &["-Wno-deprecated-declarations"],
    );
    // The table is known to have these; a test of nothing would pass.
    let has = |name: &str| calls.iter().any(|(what, _)| what.starts_with(name));
    assert!(calls.len() > 100 && has("shmem_float_put nelems") && has("shmem_calloc count"));
    let mut wrong = Vec::new();
    for (number, (what, call)) in calls.iter().enumerate() {
        for debug in [false, true] {
            let mut command = Command::new(&program);
            command.arg(number.to_string()).env("CROSSWARP_HEAP", "1M");
            command.env_remove("SHMEM_DEBUG");
            if debug {
                command.env("SHMEM_DEBUG", "1");
            }
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let refused = match call.starts_with("null") {
                true => output.status.code() == Some(0) && said.is_empty(),
                false => {
                    output.status.signal() == Some(6)
                        && said.starts_with("crosswarp: PE 0: ")
                        && (said.contains("symmetric memory") || said.contains("can be addressed"))
                        && said.lines().count() == 1
                }
            };
            if !refused {
                wrong.push(format!("{what}, debug {debug}: {}, {said}", output.status));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        2 * calls.len(),
        wrong.join("\n")
    );
}
