//! Atomics on words, and comparisons of them, by the words' types.

use crosswarp::prim::DType;
use crosswarp::shmem::AtomicInt;
use crosswarp::{Cmp, Pe};

use crate::error::Failure;

macro_rules! of_integer {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
            other => Err(Failure::Type(format!(
                "atomics and waits are of int32, int64, uint32 and uint64, not of {other}"
            ))),
        }
    };
}

pub(super) use of_integer;

pub(super) fn integer<T: TryFrom<i128>>(value: i128, dtype: DType) -> Result<T, Failure> {
    value
        .try_into()
        .map_err(|_| Failure::Input(format!("{value} is no {dtype}")))
}

pub(super) fn comparison(name: &str) -> Result<Cmp, Failure> {
    Ok(match name {
        "==" => Cmp::Eq,
        "!=" => Cmp::Ne,
        ">" => Cmp::Gt,
        ">=" => Cmp::Ge,
        "<" => Cmp::Lt,
        "<=" => Cmp::Le,
        _ => {
            let known = "there are '==', '!=', '>', '>=', '<', '<='";
            return Err(Failure::Input(format!(
                "there is no comparison {name:?}; {known}"
            )));
        }
    })
}

/// The value before. `word` is symmetric and aligned.
pub(super) fn atomic<T: AtomicInt>(
    me: &Pe,
    what: &str,
    word: *mut T,
    value: T,
    expected: T,
    pe: usize,
) -> Result<T, Failure> {
    let raw = me.raw();
    // SAFETY: by the caller.
    unsafe {
        Ok(match what {
            "fetch" => raw.atomic_fetch(word, pe),
            "set" => {
                raw.atomic_set(word, value, pe);
                value
            }
            "swap" => raw.atomic_swap(word, value, pe),
            "compare_swap" => raw.atomic_compare_swap(word, expected, value, pe),
            "add" => raw.atomic_fetch_add(word, value, pe),
            "and" => raw.atomic_fetch_and(word, value, pe),
            "or" => raw.atomic_fetch_or(word, value, pe),
            "xor" => raw.atomic_fetch_xor(word, value, pe),
            _ => return Err(Failure::Internal(format!("no atomic {what}"))),
        })
    }
}
