//! Collectives from a source to a destination.

use crosswarp::prim::DType;
use crosswarp::{Team, op};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::world::Handle;
use crate::world::place::{Place, equal};
use crate::world::verb::verb;

/// A collective from a source to a destination.
#[derive(Clone, Copy)]
pub(super) enum Collective<'a> {
    Broadcast(usize),
    Fcollect,
    Alltoall,
    Reduce(&'a str),
}

impl Handle {
    /// Does a collective on a team of this PE's.
    pub(super) fn on(
        &self,
        py: Python<'_>,
        team: &Team<'_>,
        collective: Collective<'_>,
        dest: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (me, dest, source) = (self.pe()?, self.symmetric(dest)?, self.symmetric(source)?);
        let (n, bytes) = (team.n_pes(), source.bytes());
        let expected = match collective {
            Collective::Fcollect => bytes * n,
            _ => bytes,
        };
        equal(dest.bytes(), expected, "the destination")?;
        match collective {
            Collective::Broadcast(root) if root >= n => {
                let text = format!("there is no PE {root} in a team of {n}");
                return Err(Failure::Input(text).into());
            }
            Collective::Alltoall if !source.len.is_multiple_of(n) => {
                let text = format!(
                    "{} elements cannot be cut into {n} equal blocks",
                    source.len
                );
                return Err(Failure::Input(text).into());
            }
            Collective::Reduce(_) if dest.dtype != source.dtype => {
                let text = format!("a reduction of {} into {}", source.dtype, dest.dtype);
                return Err(Failure::Type(text).into());
            }
            _ => {}
        }
        verb(py, me, || {
            // SAFETY: both are symmetric, of the lengths that were just looked at.
            unsafe {
                match collective {
                    Collective::Broadcast(root) => {
                        team.broadcast_raw(dest.at(), source.at(), bytes, root, true)?;
                    }
                    Collective::Fcollect => team.fcollect_raw(dest.at(), source.at(), bytes)?,
                    Collective::Alltoall => team.alltoall_raw(dest.at(), source.at(), bytes / n)?,
                    Collective::Reduce(what) => reduce(team, what, dest, source)?,
                }
            }
            Ok(())
        })
    }
}

/// Both places are symmetric, of one type and length.
fn reduce(team: &Team<'_>, what: &str, dest: Place, source: Place) -> Result<(), Failure> {
    macro_rules! with {
        ($op:expr) => {
            match dest.dtype {
                DType::F32 => with!(f32, $op),
                DType::F64 => with!(f64, $op),
                _ => integers!($op),
            }
        };
        ($T:ident, $op:expr) => {
            // SAFETY: by the caller.
            unsafe { team.reduce_op_raw::<$T, _>(dest.at(), source.at(), source.len, $op) }
        };
    }
    macro_rules! integers {
        ($op:expr) => {
            match dest.dtype {
                DType::I8 => with!(i8, $op),
                DType::I16 => with!(i16, $op),
                DType::I32 => with!(i32, $op),
                DType::I64 => with!(i64, $op),
                DType::U8 => with!(u8, $op),
                DType::U16 => with!(u16, $op),
                DType::U32 => with!(u32, $op),
                DType::U64 => with!(u64, $op),
                other => {
                    return Err(Failure::Type(format!(
                        "there is no {what} of {other} over PEs"
                    )))
                }
            }
        };
    }
    match what {
        "sum" => with!(op::Sum),
        "prod" => with!(op::Prod),
        "min" => with!(op::Min),
        "max" => with!(op::Max),
        "and" => integers!(op::And),
        "or" => integers!(op::Or),
        "xor" => integers!(op::Xor),
        _ => {
            let known = "there are 'sum', 'prod', 'min', 'max', 'and', 'or', 'xor'";
            return Err(Failure::Input(format!(
                "there is no reduction {what:?} over PEs; {known}"
            )));
        }
    }?;
    Ok(())
}
