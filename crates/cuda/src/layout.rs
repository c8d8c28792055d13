//! That structures which the host writes and kernels read (or the other way round) have one layout: the compiler of the
//! kernels checks the host's numbers.

use std::fmt::Write;
use std::mem::offset_of;

use crate::arch::Arch;
use crate::compile::nvrtc::Nvrtc;
use crate::compile::program::{Options, compile};
use crate::compile::source::Source;
use crate::pe::team::{
    GRID_HEADER, GRID_SLOTS, SCRATCH_HEADER, SLOT_BYTES, STAGED_BYTES, TeamState,
};
use crate::pe::wait::WaitRecord;
use crate::pe::world::WorldState;

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
    let small = crate::pe::kernels::SMALL_BYTES;
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
