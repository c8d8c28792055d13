//! The structures and numbers that the host and kernels share.

use bytemuck::{Pod, Zeroable};

/// The variable that `pe/world.cuh` defines in every module that includes it.
pub(crate) const WORLD_SYMBOL: &str = "crosswarp_world";

/// `crosswarp::world_state`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct WorldState {
    pub(crate) my_pe: i32,
    pub(crate) n_pes: i32,
    pub(crate) heap: u64,
    pub(crate) stride: u64,
    pub(crate) heap_bytes: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) record: u64,
    pub(crate) gave_up: u64,
    pub(crate) gone: u64,
    pub(crate) all: TeamState,
}

/// `crosswarp::team`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct TeamState {
    pub(crate) me: i32,
    pub(crate) size: i32,
    pub(crate) start: i32,
    pub(crate) stride: i32,
    /// Heap offset of the `crosswarp::team_scratch`.
    pub(crate) scratch: u64,
    /// Heap offset of the slots for large reductions, 0 for none, and how many blocks they are for.
    pub(crate) stage: u64,
    pub(crate) stage_blocks: u64,
}

/// `crosswarp::wait_record`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct WaitRecord {
    pub(crate) state: u32,
    pub(crate) what: u32,
    pub(crate) pe: i32,
    pub(crate) peer: i32,
    pub(crate) offset: u64,
    pub(crate) expected: u64,
    pub(crate) seen: u64,
    pub(crate) gone: i32,
    pub(crate) pad: i32,
}

/// The payload of one PE that travels in slots (`small_bytes` in `pe/collective.cuh`): up to this one
/// block does the work.
pub(crate) const SMALL_BYTES: usize = 2048;
/// Bytes of one PE's payload slots, and of the header, in `pe/collective.cuh`.
pub(crate) const SLOT_BYTES: usize = 2048 / 8 * 16;
pub(crate) const SCRATCH_HEADER: usize = 128;
/// Bytes of one PE's slots for one block, in `pe/staged.cuh`.
pub(crate) const STAGED_BYTES: usize = 2 * 2048 * 16;
/// Bytes of `crosswarp::grid_state`'s counter, and of a block's slots behind it, in `grid.cuh`.
pub(crate) const GRID_HEADER: usize = 128;
pub(crate) const GRID_SLOTS: usize = 2 * 16;

#[cfg(test)]
mod tests {
    //! That both sides lay them out alike: the compiler of the kernels checks the host's numbers.

    use std::fmt::Write;
    use std::mem::offset_of;

    use super::*;
    use crate::arch::Arch;
    use crate::compile::nvrtc::Nvrtc;
    use crate::compile::program::{Options, compile};
    use crate::compile::source::Source;

    // The compiler's own `offsetof`: without a toolkit header there is no other.
    /// A `static_assert` for the structure's size and the place of each field.
    macro_rules! same {
        ($text:ident, $rust:ident, $device:literal: $($field:ident)*) => {
            let size = size_of::<$rust>();
            writeln!($text, "static_assert(sizeof(cw::{}) == {size}, \"size\");", $device).unwrap();
            $(
                let (at, field) = (offset_of!($rust, $field), stringify!($field));
                writeln!(
                    $text,
                    "static_assert(__INTADDR__(&((cw::{}*)0)->{field}) == {at}, \"{field}\");",
                    $device
                ).unwrap();
            )*
        };
    }

    fn asserts() -> String {
        let mut text = String::from("#include \"pe.cuh\"\n");
        same!(text, WorldState, "world_state": my_pe n_pes heap stride heap_bytes timeout_ns record gave_up gone all);
        same!(text, TeamState, "team": me size start stride scratch stage stage_blocks);
        same!(text, WaitRecord, "wait_record": state what pe peer offset expected seen gone pad);
        let small = SMALL_BYTES;
        for (device, host) in [
            ("cw::small_bytes", small),
            ("cw::small_units * sizeof(cw::detail::vec16)", SLOT_BYTES),
            ("sizeof(cw::team_scratch)", SCRATCH_HEADER),
            (
                "cw::staged_sets * cw::staged_vectors * sizeof(cw::detail::vec16)",
                STAGED_BYTES,
            ),
            ("sizeof(cw::grid_state)", GRID_HEADER),
            ("2 * 16", GRID_SLOTS),
            ("(int)cw::detail::kind::broadcast", 3),
            ("(int)cw::detail::kind::fcollect", 4),
            ("(int)cw::detail::kind::alltoall", 5),
            ("(int)cw::detail::kind::reduce", 6),
        ] {
            writeln!(text, "static_assert({device} == {host}, \"{device}\");").unwrap();
        }
        text.push_str("extern \"C\" __global__ void nothing() {}\n");
        text
    }

    #[test]
    fn kernels_and_host_lay_structures_out_alike() {
        if let Err(reason) = Nvrtc::get() {
            crate::skip::skip_gpu("kernels_and_host_lay_structures_out_alike", 1, reason);
            return;
        }
        let text = asserts();
        let compiled = |text: &str| {
            let source = Source::new("layout.cu", text);
            compile(&source, Arch::new(8, 0), &Options::new())
        };
        compiled(&text).unwrap_or_else(|error| panic!("{error}"));
        // A field elsewhere would be seen.
        let moved = text.replace("->gone) == 56", "->gone) == 60");
        assert_ne!(moved, text);
        assert!(compiled(&moved).is_err());
    }
}
