//! Lists of types for programs that go through all of them: a macro a set, which calls another with name and C type.

use crate::types::set;
use std::fmt::Write;

pub fn sets() -> String {
    let mut out = String::from("// Made from the table's sets of types.\n");
    for name in ["rma", "arith", "bitwise", "amo", "amo_all", "bits", "wait"] {
        let _ = write!(out, "#define EACH_{name}(X)");
        for ty in set(name) {
            let _ = write!(out, " \\\n    X({}, {})", ty.name, ty.c);
        }
        out += "\n";
    }
    out
}
