//! The structures and numbers that the host and kernels share: here once, for both sides.
//!
//! Two device headers are made from this file: `codes.cuh` ([`CODES`]), which `base.cuh` includes, and `layout.cuh`
//! ([`HEADER`]), which includes that. `device/` has copies for those who compile with nvcc. Sizes and places of fields
//! are written out, so that both compilers check them.

use crate::shared_structures;

/// The kinds of collectives, with their names in messages.
macro_rules! kinds {
    ($($rust:ident = $device:literal, $value:literal, $name:literal;)+) => {
        /// What PEs do together (`crosswarp::kind`); 0 is nothing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code)] // Some are the kernels' alone.
        pub(crate) enum Kind {
            $($rust = $value,)+
        }
        impl Kind {
            /// The kind with this number.
            pub(crate) fn of(number: u64) -> Option<Self> {
                match number {
                    $($value => Some(Self::$rust),)+
                    _ => None,
                }
            }

            /// In words.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$rust => $name,)+
                }
            }
        }
        const KINDS: &str = concat!(
            "// What PEs do together, for the host to print and for `mark_of`.\nenum class kind : u64 {\n",
            $("    ", $device, " = ", $value, ",\n",)+
            "};\n",
        );
    };
}

/// Enumerations, in namespace `crosswarp`.
macro_rules! enumerations {
    ($(
        $(#[doc = $doc:literal])+
        $rust:ident = $device:literal: { $($member:ident = $name:literal, $value:literal;)+ }
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            #[allow(dead_code)] // Some are the kernels' alone.
            pub(crate) enum $rust {
                $($member = $value,)+
            }
        )+
        const ENUMERATIONS: &str = concat!($(
            $("//", $doc, "\n",)+
            "enum class ", $device, " : int {\n",
            $("    ", $name, " = ", $value, ",\n",)+
            "};\n",
        )+);
    };
}

/// The types that reductions combine, with the numbers by which PEs compare what they do.
macro_rules! element_types {
    ($($rust:ty = $device:literal, $value:literal;)+) => {
        /// A type's number (`crosswarp::detail::type_code`).
        pub trait TypeCode {
            const CODE: usize;
        }
        $(impl TypeCode for $rust {
            const CODE: usize = $value;
        })+
        /// The types' names in kernels, each at the place of its number less 1.
        pub(crate) const ELEMENT_TYPES: &[&str] = &[$($device,)+];
        const _: () = {
            let codes: &[usize] = &[$($value,)+];
            let mut place = 0;
            while place < codes.len() {
                assert!(codes[place] == place + 1);
                place += 1;
            }
        };
        const TYPE_CODES: &str = concat!(
            "// Numbers of the types that reductions combine; 0: another one.\n",
            "template <class T> constexpr u32 type_code = 0;\n",
            $("template <> constexpr u32 type_code<", $device, "> = ", $value, ";\n",)+
        );
    };
}

enumerations! {
    /// Operations of `reduce`, as PEs compare what they do.
    OpCode = "op_code": {
        Sum = "sum", 0;
        Prod = "prod", 1;
        Min = "min", 2;
        Max = "max", 3;
        And = "bit_and", 4;
        Or = "bit_or", 5;
        Xor = "bit_xor", 6;
    }

    /// What `signal_wait_until` and its kin compare with, as in OpenSHMEM's SHMEM_CMP_*.
    Comparison = "cmp": {
        Eq = "eq", 0;
        Ne = "ne", 1;
        Gt = "gt", 2;
        Ge = "ge", 3;
        Lt = "lt", 4;
        Le = "le", 5;
    }

    /// What a kernel asks of its host to do at a PE of another host (pe/route.cuh).
    RouteOp = "route_op": {
        Put = "put", 1;
        Word = "word", 2;
        Get = "get", 3;
        Fetch = "fetch", 4;
        PutStrided = "put_strided", 5;
        GetStrided = "get_strided", 6;
        Atomic = "atomic", 7;
        AtomicFetch = "atomic_fetch", 8;
    }

    /// Atomic operations that a GPU executes for PEs of other hosts.
    AtomicOp = "atomic_op": {
        Swap = "swap", 0;
        CompareSwap = "compare_swap", 1;
        Add = "add", 2;
        And = "bit_and", 3;
        Or = "bit_or", 4;
        Xor = "bit_xor", 5;
        AddF32 = "add_f32", 6;
        AddF64 = "add_f64", 7;
        AddF16 = "add_f16", 8;
    }
}

element_types! {
    i32 = "i32", 1;
    u32 = "u32", 2;
    i64 = "i64", 3;
    u64 = "u64", 4;
    f32 = "float", 5;
    f64 = "double", 6;
}

shared_structures! {
    const NUMBERS = "", "";

    numbers {
        /// The payload of one PE that travels in slots, in bytes: up to this one block does the work.
        pub(crate) SMALL_BYTES: usize = "small_bytes": "int" = 2048;
        /// Bytes of a vector, the widest access; slots are vectors.
        pub(crate) VECTOR_BYTES: usize = "vector_bytes": "int" = 16;
        /// Of a slot, the bytes of payload; the rest is the number of the rendezvous.
        pub(crate) UNIT_BYTES: usize = "unit_bytes": "int" = 8;
        /// Vectors of a piece of a large reduction.
        pub(crate) STAGED_VECTORS: usize = "staged_vectors": "int" = 2048;
        /// Sets of slots for such pieces.
        pub(crate) STAGED_SETS: usize = "staged_sets": "int" = 2;
        /// Sets of slots behind a grid's state, with a slot per block each.
        pub(crate) GRID_SETS: usize = "grid_sets": "int" = 2;
        /// Threads of a block of the stream-ordered collectives, for which these are compiled.
        pub(crate) STREAM_THREADS: u32 = "stream_threads": "int" = 256;
        /// Words of an exact sum in memory: 96 limbs, as the lanes of a warp hold them, and 4 words of what was seen
        /// beside finite values.
        pub(crate) EXACT_SUM_WORDS: usize = "exact_sum_words": "int" = 100;
        /// `wait_record::state`: nothing was given up.
        pub(crate) RECORD_NONE: u32 = "record_none": "u32" = 0;
        /// `wait_record::state`: the record is complete.
        pub(crate) RECORD_COMPLETE: u32 = "record_complete": "u32" = 2;
        /// `wait_record::what`: for a value.
        pub(crate) WAIT_VALUE: u32 = "wait_value": "u32" = 1;
        /// `wait_record::what`: for a PE, in a rendezvous of a team.
        pub(crate) WAIT_RENDEZVOUS: u32 = "wait_rendezvous": "u32" = 2;
        /// `wait_record::what`: no wait, but a PE came to the rendezvous with another collective.
        pub(crate) WAIT_MISMATCH: u32 = "wait_mismatch": "u32" = 3;
        /// Whom a wait is for beside one PE: a value that anyone may write, so it is hopeless only when all others are
        /// gone.
        pub(crate) ANYONE: i32 = "anyone": "int" = -1;
        /// Whom a wait is for: something that takes every PE of the world.
        pub(crate) EVERYONE: i32 = "everyone": "int" = -2;
        /// Words of the list of PEs that are gone. Of this one: not 0 if any PE is gone.
        pub(crate) GONE_ANY: usize = "gone_any": "int" = 0;
        /// 1 + the PE that ends all waits, because it failed or because this PE takes its world down.
        pub(crate) GONE_END: usize = "gone_end": "int" = 1;
        /// From here on a word per PE; the two before it, at `anyone` and `everyone`, are of waits for those. A word is 0, or
        /// 1 + the PE because of which such a wait can not end: it has left, and what it sent has arrived.
        pub(crate) GONE_FOR: usize = "gone_for": "int" = 4;
        /// A collective in a word: below this bit its size in bytes.
        pub(crate) COLLECTIVE_DETAIL_BIT: u32 = "collective_detail_bit": "int" = 40;
        /// Below this bit the root, or what is combined; from it on the kind.
        pub(crate) COLLECTIVE_KIND_BIT: u32 = "collective_kind_bit": "int" = 60;
        /// What is combined: below this bit the type's number; from it on 1 + the operation's.
        pub(crate) REDUCE_OP_BIT: u32 = "reduce_op_bit": "int" = 4;
        /// `wait_record::what`: for a PE of another host to do what it was asked.
        pub(crate) WAIT_REMOTE: u32 = "wait_remote": "u32" = 4;
        /// Entries of the ring by which kernels reach PEs of other hosts.
        pub(crate) ROUTE_ENTRIES: usize = "route_entries": "int" = 1024;
        /// Words of an entry, each shifted up by one; its lowest bit is 1 in the ring's first round, 0 in its second, and so
        /// on, so that who reads knows when the word has come.
        pub(crate) ROUTE_WORDS: usize = "route_words": "int" = 8;
        /// An entry's first word: below this bit the `route_op`; from it on an `atomic_op`.
        pub(crate) ROUTE_ATOMIC_BIT: u32 = "route_atomic_bit": "int" = 8;
        /// From here on the logarithm of a word's bytes.
        pub(crate) ROUTE_WIDTH_BIT: u32 = "route_width_bit": "int" = 12;
        /// The highest bit of `operand`, for which its own word has no room.
        pub(crate) ROUTE_OPERAND_BIT: u32 = "route_operand_bit": "int" = 16;
        /// The highest bit of `expected`.
        pub(crate) ROUTE_EXPECTED_BIT: u32 = "route_expected_bit": "int" = 17;
        /// From here on the PE.
        pub(crate) ROUTE_PE_BIT: u32 = "route_pe_bit": "int" = 20;
        /// Most bytes of an element of a strided entry, and of what travels at a time.
        pub(crate) ROUTE_BODY: usize = "route_body": "int" = 8192;
        /// Entries of the inbox of atomic operations from other hosts.
        pub(crate) INBOX_ENTRIES: usize = "inbox_entries": "int" = 256;
    }
}

kinds! {
    Sync = "sync", 1, "sync";
    Barrier = "barrier", 2, "barrier";
    Broadcast = "broadcast", 3, "broadcast";
    Fcollect = "fcollect", 4, "fcollect";
    Alltoall = "alltoall", 5, "alltoall";
    Reduce = "reduce", 6, "reduction";
    Reducescatter = "reducescatter", 7, "reducescatter";
}

shared_structures! {
    const STRUCTURES = "", "";

    /// A set of PEs that meet: `start`, `start + stride`, … (`size` of them).
    pub(crate) TeamState = "team", align 8, size 40, with "
    __device__ int pe(int rank) const { return start + rank * stride; }
": {
        /// This PE's rank in it.
        0 pub(crate) me: i32 = "i32",
        4 pub(crate) size: i32 = "i32",
        8 pub(crate) start: i32 = "i32",
        12 pub(crate) stride: i32 = "i32",
        /// Heap offset of the team's `team_scratch`, the same on all its PEs.
        16 pub(crate) scratch: u64 = "u64",
        /// Heap offset of the slots for large reductions (pe/staged.cuh), 0 for none.
        24 pub(crate) stage: u64 = "u64",
        /// Most blocks of a PE that these are for.
        32 pub(crate) stage_blocks: u64 = "u64",
    }

    /// Each PE's scratch for one team, in its symmetric heap, zero at first: this header, then `size` arrival words,
    /// then two sets of slots, for `size` payloads of up to `small_bytes` each.
    pub(crate) TeamScratch = "team_scratch", align 128, size 128, with "": {
        /// Rendezvous so far; written by this PE only.
        0 pub(crate) generation: u64 = "u64",
        /// With a time limit: whether the last rendezvous came about.
        8 pub(crate) came_about: u64 = "u64",
        16 pub(crate) pad: [u64; 14] = "u64"[14],
    }

    /// What a kernel leaves behind when a wait ends in vain. In memory the host can read.
    pub(crate) WaitRecord = "wait_record", align 8, size 48, with "": {
        /// Of `record_none` and so on.
        0 pub(crate) state: u32 = "u32",
        /// Of `wait_value` and so on.
        4 pub(crate) what: u32 = "u32",
        /// The PE that waited.
        8 pub(crate) pe: i32 = "i32",
        /// The PE waited for, or `anyone` or `everyone`.
        12 pub(crate) peer: i32 = "i32",
        /// Heap offset of the word.
        16 pub(crate) offset: u64 = "u64",
        /// In a rendezvous its number; of a mismatch this PE's collective (detail::collective).
        24 pub(crate) expected: u64 = "u64",
        /// The word's last value.
        32 pub(crate) seen: u64 = "u64",
        /// The PE that failed or left, so that the wait was hopeless; -1: it ran out of time.
        40 pub(crate) gone: i32 = "i32",
        44 pub(crate) pad: i32 = "i32",
    }

    /// Who a PE's kernels are, and where everything is; the host writes it into every module.
    pub(crate) WorldState = "world_state", align 8, size 104, with "": {
        0 pub(crate) my_pe: i32 = "i32",
        4 pub(crate) n_pes: i32 = "i32",
        /// Address of this PE's heap; those of the others are `stride` apart, in PE order.
        8 pub(crate) heap: u64 = "u64",
        16 pub(crate) stride: u64 = "u64",
        24 pub(crate) heap_bytes: u64 = "u64",
        /// Time limit of waits; 0: none.
        32 pub(crate) timeout_ns: u64 = "u64",
        /// In host memory.
        40 pub(crate) record: u64 = "wait_record*",
        /// In this GPU's memory: 1 after a wait of this PE ended in vain.
        48 pub(crate) gave_up: u64 = "u32*",
        /// In host memory, the list of PEs that are gone: see `gone_any`.
        56 pub(crate) gone: u64 = "const u32*",
        /// The team of all PEs.
        64 pub(crate) all: TeamState = "team",
    }

    /// An atomic operation from another host.
    pub(crate) InboxEntry = "inbox_entry", align 8, size 32, with "": {
        /// An `atomic_op`, and from bit 8 on the logarithm of the word's bytes.
        0 pub(crate) op: u64 = "u64",
        /// Heap offset of the word.
        8 pub(crate) offset: u64 = "u64",
        16 pub(crate) operand: u64 = "u64",
        24 pub(crate) expected: u64 = "u64",
    }

    /// How kernels reach PEs of other hosts; the host writes it into every module that was compiled for that.
    pub(crate) RouteState = "route_state", align 8, size 104, with "": {
        /// Of each PE: not 0 if its memory is mapped here. In this GPU's memory.
        0 pub(crate) mapped: u64 = "const u8*",
        /// Entries, in host memory.
        8 pub(crate) ring: u64 = "u64*",
        /// Entries so far; in this GPU's memory.
        16 pub(crate) issued: u64 = "u64*",
        /// Entries that the host has taken, in host memory: what they put from may be reused.
        24 pub(crate) taken: u64 = "const u64*",
        /// What kernels have last seen there; in this GPU's memory.
        32 pub(crate) taken_seen: u64 = "u64*",
        /// Entries up to this one are complete; in host memory.
        40 pub(crate) completed: u64 = "const u64*",
        /// Of each entry of the ring that fetches: 1 + its number when the value beside it is there, 0 when it was taken. In
        /// host memory.
        48 pub(crate) fetched: u64 = "u64*",
        /// Atomic operations from other hosts, for this GPU to execute; in its memory.
        56 pub(crate) inbox: u64 = "const inbox_entry*",
        /// How many have come; in this GPU's memory.
        64 pub(crate) inbox_head: u64 = "const u64*",
        /// How many are done; in this GPU's memory.
        72 pub(crate) inbox_tail: u64 = "u64*",
        /// Not 0 while somebody executes them.
        80 pub(crate) inbox_lock: u64 = "u32*",
        /// As `inbox_tail`, in host memory.
        88 pub(crate) inbox_done: u64 = "u64*",
        /// What was there before each; in host memory.
        96 pub(crate) inbox_results: u64 = "u64*",
    }

    /// What the blocks of a grid meet by, zero before its first use; `grid_sets` sets of slots follow.
    pub(crate) GridState = "grid_state", align 128, size 128, with "": {
        /// Bit 31 flips when all have arrived; the other bits count.
        0 pub(crate) arrived: u32 = "u32",
        4 pub(crate) pad: [u32; 31] = "u32"[31],
    }
}

/// The device header `codes.cuh`.
pub(crate) const CODES: &str =
    match std::str::from_utf8(&joined::<{ length(CODES_PARTS) }>(CODES_PARTS)) {
        Ok(text) => text,
        Err(_) => panic!("parts are text"),
    };

const CODES_PARTS: &[&str] = &[
    "// Numbers of operations and comparisons. Made from src/layout.rs, which is to be changed instead.
#pragma once

namespace crosswarp {

",
    ENUMERATIONS,
    "\n}  // namespace crosswarp\n",
];

/// The device header `layout.cuh`.
pub(crate) const HEADER: &str = match std::str::from_utf8(&joined::<{ length(PARTS) }>(PARTS)) {
    Ok(text) => text,
    Err(_) => panic!("parts are text"),
};

const PARTS: &[&str] = &[
    "// What the host and kernels share. Made from src/layout.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp {

",
    NUMBERS,
    "namespace detail {\n",
    KINDS,
    TYPE_CODES,
    "}  // namespace detail\n\n",
    STRUCTURES,
    "}  // namespace crosswarp\n",
];

const fn length(parts: &[&str]) -> usize {
    let (mut bytes, mut part) = (0, 0);
    while part < parts.len() {
        bytes += parts[part].len();
        part += 1;
    }
    bytes
}

const fn joined<const N: usize>(parts: &[&str]) -> [u8; N] {
    let (mut text, mut at, mut part) = ([0; N], 0, 0);
    while part < parts.len() {
        let mut byte = 0;
        while byte < parts[part].len() {
            text[at] = parts[part].as_bytes()[byte];
            at += 1;
            byte += 1;
        }
        part += 1;
    }
    text
}

/// Bytes of the state of a grid of up to `blocks` blocks, `cw::grid_state` in kernels.
pub const fn grid_state_bytes(blocks: usize) -> usize {
    size_of::<GridState>() + GRID_SETS * VECTOR_BYTES * blocks
}

/// Bytes of the words that exact sums are combined in: the `state` of a grid, zero before its first use, and the
/// symmetric words of PEs (`cw::exact_combine` in kernels).
pub const fn exact_sum_bytes() -> usize {
    EXACT_SUM_WORDS * size_of::<u64>()
}

/// The variable with the [`WorldState`] in every module that includes `pe.cuh`.
pub(crate) const WORLD_SYMBOL: &str = "crosswarp_world";

/// The same in modules that were compiled with [`ROUTED`].
pub(crate) const WORLD_OF_HOSTS_SYMBOL: &str = "crosswarp_world_of_hosts";

/// The variable with the [`RouteState`] in those of them that reach other PEs.
pub(crate) const ROUTE_SYMBOL: &str = "crosswarp_route";

/// The macro with which kernels reach PEs of other hosts, too.
pub(crate) const ROUTED: &str = "CROSSWARP_ROUTED";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::nvrtc::Nvrtc;
    use crate::internal::tests::check_each_place_and_size;
    use crate::skip::skip_gpu;

    /// With CROSSWARP_WRITE_LAYOUT=1 it writes the copy.
    #[test]
    fn the_copies_of_the_headers_are_what_is_made() {
        crate::internal::assert_copy(env!("CARGO_MANIFEST_DIR"), "device/codes.cuh", CODES);
        crate::internal::assert_copy(env!("CARGO_MANIFEST_DIR"), "device/layout.cuh", HEADER);
    }

    /// Each place and size that the header states is checked by the kernels' compiler; Rust's checks are above.
    #[test]
    fn kernels_check_every_place_and_size() {
        if let Err(reason) = Nvrtc::get() {
            skip_gpu("kernels_check_every_place_and_size", 1, reason);
            return;
        }
        assert!(check_each_place_and_size(HEADER) > 30);
    }
}
