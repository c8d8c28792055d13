//! `long double`, which Rust does not have: the x87's 80-bit format in 16 bytes.
//!
//! Copies treat it as bytes. Arithmetic is a few x87 instructions. Only `p` and `g` pass it by value: in
//! memory on the caller's stack, and back in the register st(0).
#![allow(unsafe_code)] // x87 instructions and their calling convention

use crate::context::Context;
use crate::rma;
use bytemuck::{Pod, Zeroable};
use crosswarp_shmem::op::{Max, Min, Prod, ReduceOp, Sum};
use std::arch::asm;
use std::ffi::c_int;

/// The bytes of a `long double`, padding included.
#[derive(Clone, Copy, Debug, PartialEq, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct LongDouble([u64; 2]);

// SAFETY: 16 bytes of plain words; the processor takes any bits.
unsafe impl Pod for LongDouble {}

/// The type's number in operations' identifiers, beside those of crosswarp-shmem.
const TYPE: u16 = 15;

/// Runs x87 instructions on `a` and `b` (loaded in this order) that leave the result on the stack.
macro_rules! x87 {
    ($a:expr, $b:expr, $($instruction:literal),*) => {{
        let mut result = LongDouble::zeroed();
        // SAFETY: reads the two values and writes the result, which are 16 bytes each; the x87's stack is
        // empty before, as the calling convention has it, and after.
        unsafe {
            asm!(
                "fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", $($instruction,)* "fstp tbyte ptr [{r}]",
                a = in(reg) &$a, b = in(reg) &$b, r = in(reg) &mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }};
}

impl ReduceOp<LongDouble> for Sum {
    const ID: u16 = Sum::CODE << 8 | TYPE;
    fn apply(a: LongDouble, b: LongDouble) -> LongDouble {
        x87!(a, b, "faddp st(1), st")
    }
}

impl ReduceOp<LongDouble> for Prod {
    const ID: u16 = Prod::CODE << 8 | TYPE;
    fn apply(a: LongDouble, b: LongDouble) -> LongDouble {
        x87!(a, b, "fmulp st(1), st")
    }
}

// With b on top of a: the comparison sets the carry if b < a, or if they do not compare. The conditional
// move then puts a (min: if b is not less; max: if b is less) over b. NaN: one of the two is taken.
impl ReduceOp<LongDouble> for Min {
    const ID: u16 = Min::CODE << 8 | TYPE;
    fn apply(a: LongDouble, b: LongDouble) -> LongDouble {
        x87!(a, b, "fcomi st, st(1)", "fcmovnb st, st(1)", "fstp st(1)")
    }
}

impl ReduceOp<LongDouble> for Max {
    const ID: u16 = Max::CODE << 8 | TYPE;
    fn apply(a: LongDouble, b: LongDouble) -> LongDouble {
        x87!(a, b, "fcomi st, st(1)", "fcmovb st, st(1)", "fstp st(1)")
    }
}

/// `shmem_longdouble_p` behind its calling convention.
pub(crate) unsafe extern "C" fn put(dest: *mut LongDouble, pe: c_int, value: &LongDouble) {
    // SAFETY: by the C caller.
    unsafe { rma::p("shmem_longdouble_p", Context::DEFAULT, dest, *value, pe) };
}

/// `shmem_ctx_longdouble_p` behind its calling convention.
pub(crate) unsafe extern "C" fn ctx_put(
    ctx: Context,
    dest: *mut LongDouble,
    pe: c_int,
    value: &LongDouble,
) {
    // SAFETY: by the C caller.
    unsafe { rma::p("shmem_ctx_longdouble_p", ctx, dest, *value, pe) };
}

/// `shmem_longdouble_g` behind its calling convention.
pub(crate) unsafe extern "C" fn get(source: *const LongDouble, pe: c_int, value: &mut LongDouble) {
    // SAFETY: by the C caller.
    *value = unsafe { rma::g("shmem_longdouble_g", Context::DEFAULT, source, pe) };
}

/// `shmem_ctx_longdouble_g` behind its calling convention.
pub(crate) unsafe extern "C" fn ctx_get(
    ctx: Context,
    source: *const LongDouble,
    pe: c_int,
    value: &mut LongDouble,
) {
    // SAFETY: by the C caller.
    *value = unsafe { rma::g("shmem_ctx_longdouble_g", ctx, source, pe) };
}

/// Exports a function made of instructions only.
macro_rules! instructions {
    ($symbol:literal, $name:ident, $target:path, $($instruction:literal),*) => {
        #[unsafe(naked)]
        #[unsafe(export_name = $symbol)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!($($instruction),*, target = sym $target)
        }
    };
}

/// The value lies above the return address; its address becomes the argument after the last.
macro_rules! long_double_p {
    ($symbol:literal, $name:ident) => {
        $crate::long_double::instructions!(
            $symbol,
            $name,
            $crate::long_double::put,
            "lea rdx, [rsp + 8]",
            "jmp {target}"
        );
    };
}
macro_rules! long_double_ctx_p {
    ($symbol:literal, $name:ident) => {
        $crate::long_double::instructions!(
            $symbol,
            $name,
            $crate::long_double::ctx_put,
            "lea rcx, [rsp + 8]",
            "jmp {target}"
        );
    };
}
/// A place for the value on the stack (aligned to 16: a call has pushed 8), then into st(0).
macro_rules! long_double_g {
    ($symbol:literal, $name:ident) => {
        $crate::long_double::instructions!(
            $symbol,
            $name,
            $crate::long_double::get,
            "sub rsp, 24",
            "mov rdx, rsp",
            "call {target}",
            "fld tbyte ptr [rsp]",
            "add rsp, 24",
            "ret"
        );
    };
}
macro_rules! long_double_ctx_g {
    ($symbol:literal, $name:ident) => {
        $crate::long_double::instructions!(
            $symbol,
            $name,
            $crate::long_double::ctx_get,
            "sub rsp, 24",
            "mov rcx, rsp",
            "call {target}",
            "fld tbyte ptr [rsp]",
            "add rsp, 24",
            "ret"
        );
    };
}
pub(crate) use instructions;
pub(crate) use {long_double_ctx_g, long_double_ctx_p, long_double_g, long_double_p};

#[cfg(test)]
mod tests {
    use super::*;

    /// Through the processor's own conversion.
    fn of(value: f64) -> LongDouble {
        let mut result = LongDouble::zeroed();
        // SAFETY: reads one f64 and writes 10 of the 16 bytes; the x87's stack is empty before and after.
        unsafe {
            asm!("fld qword ptr [{a}]", "fstp tbyte ptr [{r}]", a = in(reg) &value, r = in(reg) &mut result,
                out("st(0)") _, options(nostack));
        }
        result
    }

    #[test]
    fn the_x87_adds_multiplies_and_compares() {
        for (a, b) in [(1.5, -2.0), (-2.0, 1.5), (0.0, 7.0), (3.0, 3.0)] {
            assert_eq!(Sum::apply(of(a), of(b)), of(a + b));
            assert_eq!(Prod::apply(of(a), of(b)), of(a * b));
            assert_eq!(Min::apply(of(a), of(b)), of(a.min(b)), "{a} {b}");
            assert_eq!(Max::apply(of(a), of(b)), of(a.max(b)), "{a} {b}");
        }
    }
}
