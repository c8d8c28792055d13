//! What kernels and the host call a collective by: its kind, its operation and the type of its elements.

use std::fmt;

use bytemuck::Pod;
use crosswarp_shmem::op::{self, ReduceOp};

use crate::layout::{
    COLLECTIVE_DETAIL_BIT, COLLECTIVE_KIND_BIT, Kind, OpCode, REDUCE_OP_BIT, TypeCode,
};

/// Numbers that [`DeviceWorld::reduce_on_stream`](crate::DeviceWorld::reduce_on_stream) combines: `i32`, `u32`, `i64`,
/// `u64`, `f32`, `f64`.
pub trait DeviceNumber: Pod + TypeCode {}
impl<T: Pod + TypeCode> DeviceNumber for T {}

/// The operation's number in kernels, an [`OpCode`].
pub(crate) const fn code<T: Pod, O: ReduceOp<T>>() -> i32 {
    // The identifier's upper half counts the operations from 1, in the same order.
    (O::ID >> 8) as i32 - 1
}
const _: () = {
    assert!(code::<i32, op::Sum>() == OpCode::Sum as i32);
    assert!(code::<i32, op::Prod>() == OpCode::Prod as i32);
    assert!(code::<i32, op::Min>() == OpCode::Min as i32);
    assert!(code::<i32, op::Max>() == OpCode::Max as i32);
    assert!(code::<i32, op::And>() == OpCode::And as i32);
    assert!(code::<i32, op::Or>() == OpCode::Or as i32);
    assert!(code::<i32, op::Xor>() == OpCode::Xor as i32);
};

/// A collective that moves or combines elements.
#[derive(Clone, Copy)]
pub(crate) enum Collective {
    /// From this rank.
    Broadcast {
        root: usize,
    },
    Fcollect,
    Alltoall,
    /// Of the type and by the operation with these numbers.
    Reduce {
        type_code: usize,
        op: i32,
    },
}

impl Collective {
    /// The word by which PEs compare what they call (`crosswarp::detail::collective`), for no bytes.
    pub(super) fn word(self) -> u64 {
        match self {
            Self::Broadcast { root } => collective_word(Kind::Broadcast, root as u64),
            Self::Fcollect => collective_word(Kind::Fcollect, 0),
            Self::Alltoall => collective_word(Kind::Alltoall, 0),
            Self::Reduce { type_code, op } => {
                let detail = (op as u64 + 1) << REDUCE_OP_BIT | type_code as u64;
                collective_word(Kind::Reduce, detail)
            }
        }
    }
}

/// A word of `crosswarp::detail::collective`, to be read.
pub(crate) struct CollectiveWord(pub(crate) u64);

/// Makes that word. `detail`: the root, or operation and type.
pub(crate) const fn collective_word(kind: Kind, detail: u64) -> u64 {
    (kind as u64) << COLLECTIVE_KIND_BIT | (detail & DETAIL_MASK) << COLLECTIVE_DETAIL_BIT
}

const DETAIL_MASK: u64 = (1 << (COLLECTIVE_KIND_BIT - COLLECTIVE_DETAIL_BIT)) - 1;

impl fmt::Display for CollectiveWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, detail, bytes) = (
            self.0 >> COLLECTIVE_KIND_BIT,
            self.0 >> COLLECTIVE_DETAIL_BIT & DETAIL_MASK,
            self.0 & ((1 << COLLECTIVE_DETAIL_BIT) - 1),
        );
        let kind = Kind::of(kind);
        let name = kind.map_or("collective", Kind::name);
        match kind {
            Some(Kind::Sync | Kind::Barrier) => write!(f, "a {name}"),
            Some(Kind::Broadcast) => {
                write!(f, "a {name} of {bytes} bytes from rank {detail}")
            }
            _ => write!(f, "a {name} of {bytes} bytes a PE"),
        }
    }
}
