//! What kernels and the host call a collective by: its kind, its operation and the type of its elements.

use std::fmt;

use bytemuck::Pod;
use crosswarp_shmem::op::ReduceOp;

use crate::layout::Kind;

/// Numbers that [`DeviceWorld::reduce_on_stream`](crate::DeviceWorld::reduce_on_stream) combines: `i32`, `u32`, `i64`,
/// `u64`, `f32`, `f64`.
pub trait DeviceNumber: Pod + sealed::Index {}

mod sealed {
    /// Place of the type in [`super::NUMBERS`].
    pub trait Index {
        const INDEX: usize;
    }
}

macro_rules! numbers {
    ($($number:ty = $index:literal: $name:literal),*) => {
        /// The types' names in the kernels' names.
        pub(crate) const NUMBERS: [&str; 6] = [$($name),*];
        $(
            impl sealed::Index for $number {
                const INDEX: usize = $index;
            }
            impl DeviceNumber for $number {}
        )*
    };
}
numbers!(i32 = 0: "i32", u32 = 1: "u32", i64 = 2: "i64", u64 = 3: "u64", f32 = 4: "float", f64 = 5: "double");

/// The operation's number in `on_stream.cu`.
pub(crate) const fn code<T: Pod, O: ReduceOp<T>>() -> i32 {
    // The identifier's upper half counts the operations from 1, in the same order.
    (O::ID >> 8) as i32 - 1
}

/// A collective that moves or combines elements.
#[derive(Clone, Copy)]
pub(crate) enum Collective {
    /// From this rank.
    Broadcast {
        root: usize,
    },
    Fcollect,
    Alltoall,
    /// Of the type at this place in [`NUMBERS`], by the operation with this number.
    Reduce {
        number: usize,
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
            Self::Reduce { number, op } => {
                collective_word(Kind::Reduce, (op as u64 + 1) << 4 | (number as u64 + 1))
            }
        }
    }
}

/// A word of `crosswarp::detail::collective`, to be read.
pub(crate) struct CollectiveWord(pub(crate) u64);

/// Makes that word. `detail`: the root, or operation and type.
pub(crate) const fn collective_word(kind: Kind, detail: u64) -> u64 {
    (kind as u64) << 60 | (detail & 0xf_ffff) << 40
}

impl fmt::Display for CollectiveWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, detail, bytes) = (
            self.0 >> 60,
            self.0 >> 40 & 0xf_ffff,
            self.0 & 0xff_ffff_ffff,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Arch;
    use crate::compile::nvrtc::Nvrtc;
    use crate::compile::program::{Options, compile};
    use crate::compile::source::Source;
    use crosswarp_shmem::op;

    #[test]
    fn operations_have_the_kernels_numbers() {
        assert_eq!(
            [
                code::<i32, op::Sum>(),
                code::<f64, op::Prod>(),
                code::<u32, op::Min>(),
                code::<f32, op::Max>(),
                code::<u64, op::And>(),
                code::<i64, op::Or>(),
                code::<u32, op::Xor>(),
            ],
            [0, 1, 2, 3, 4, 5, 6]
        );
    }

    #[test]
    fn kernels_have_the_same_numbers_and_words() {
        if let Err(reason) = Nvrtc::get() {
            crate::skip::skip_gpu("kernels_have_the_same_numbers_and_words", 1, reason);
            return;
        }
        let mut text = String::from("#include \"pe.cuh\"\nusing namespace crosswarp;\n");
        for (place, name) in NUMBERS.iter().enumerate() {
            let device = format!("detail::type_code<{name}> == {}", place + 1);
            text += &format!("static_assert({device}, \"{device}\");\n");
        }
        let ops = [
            ("sum_op", code::<i32, op::Sum>()),
            ("prod_op", code::<i32, op::Prod>()),
            ("min_op", code::<i32, op::Min>()),
            ("max_op", code::<i32, op::Max>()),
            ("and_op", code::<i32, op::And>()),
            ("or_op", code::<i32, op::Or>()),
            ("xor_op", code::<i32, op::Xor>()),
        ];
        for (name, code) in ops {
            text += &format!("static_assert({name}::code == {code}, \"{name}\");\n");
        }
        text += "extern \"C\" __global__ void nothing() {}\n";
        let compiled = |text: &str| {
            let source = Source::new("numbers.cu", text);
            compile(&source, Arch::new(8, 0), &Options::new())
        };
        compiled(&text).unwrap_or_else(|error| panic!("{error}"));
        let wrong = text.replace("xor_op::code == 6", "xor_op::code == 5");
        assert_ne!(wrong, text);
        assert!(compiled(&wrong).is_err());
    }
}
