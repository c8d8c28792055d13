//! Structures that Rust and CUDA C++ share, written once: for the sibling crates' launch arguments, too, and so hidden
//! from the documentation.

/// Structures of Rust, and the text that declares them in CUDA C++.
///
/// `const NAME = head, tail` names the text and what stands around the declarations; the header it makes includes
/// `base.cuh`. Each structure: its name here and there, alignment, size, and after `with` the text that ends it there.
/// `template` is what precedes it there, and the arguments of the instance whose layout is checked. Each field: its
/// place, name and type here, its type there. Both compilers check every place and size.
#[macro_export]
#[doc(hidden)]
macro_rules! shared_structures {
    (
        $text_vis:vis const $text:ident = $head:expr, $tail:expr;
        $(
            $(#[doc = $doc:literal])+
            $vis:vis $rust:ident = $device:literal, $(template $template:literal $instance:literal,)?
            align $align:tt, size $size:literal, with $more:literal: {
                $(
                    $(#[doc = $note:literal])*
                    $at:literal $field_vis:vis $field:ident: $host:ty = $type:literal $([$n:literal])?,
                )+
            }
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            #[repr(C, align($align))]
            #[derive(Clone, Copy, Debug, PartialEq, ::bytemuck::Pod, ::bytemuck::Zeroable)]
            #[allow(dead_code)] // Some are read and written by kernels alone.
            $vis struct $rust {
                $($(#[doc = $note])* $field_vis $field: $host,)+
            }
            const _: () = {
                assert!(::core::mem::size_of::<$rust>() == $size);
                $(assert!(::core::mem::offset_of!($rust, $field) == $at);)+
            };
        )+
        $text_vis const $text: &str = concat!($head, $(
            $("//", $doc, "\n",)+
            $($template, " ",)? "struct alignas(", $align, ") ", $device, " {\n",
            $(
                $("    //", $note, "\n",)*
                "    ", $type, " ", stringify!($field), $("[", $n, "]",)? ";\n",
            )+
            $more,
            "};\n",
            "static_assert(sizeof(", $device, $($instance,)? ") == ", $size, ", \"size of ", $device, "\");\n",
            $crate::shared_structures!(@places $device, ($($instance)?), $(($at, $field))+), "\n",
        )+ $tail);
    };
    (@places $device:literal, $instance:tt, $(($at:literal, $field:ident))+) => {
        concat!($(
            "static_assert(CROSSWARP_OFFSET(", $device, $crate::shared_structures!(@instance $instance), ", ",
            stringify!($field), ") == ", $at, ", \"", $device, "::", stringify!($field), "\");\n",
        )+)
    };
    (@instance ()) => { "" };
    (@instance ($instance:literal)) => { $instance };
}

/// Fails unless the file at `path` of the crate in `folder` is `made`. With CROSSWARP_WRITE_LAYOUT=1 it is written
/// first.
pub fn assert_copy(folder: &str, path: &str, made: &str) {
    let copy = format!("{folder}/{path}");
    if std::env::var("CROSSWARP_WRITE_LAYOUT").is_ok_and(|value| value == "1") {
        std::fs::write(&copy, made).expect("the copy can be written");
    }
    assert!(
        std::fs::read_to_string(&copy).is_ok_and(|text| text == made),
        "{path} is not what is made; write it with CROSSWARP_WRITE_LAYOUT=1"
    );
}
