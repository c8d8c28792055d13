//! Structures that Rust and CUDA C++ share, written once: for the sibling crates' launch arguments, too, and so hidden
//! from the documentation.

pub use crate::compile::kernel_table::{compile_all, kernel_table_with};
pub use crate::compile::module::compile_together;
pub use crate::kernels::units;
pub use crate::pe::by_address::{ROUTE_BYTES, TEAM_BYTES, WORLD_BYTES};

/// Numbers and structures of Rust, and the text that declares them in CUDA C++.
///
/// `const NAME = head, tail` names the text and what stands around the declarations; the header it makes includes
/// `base.cuh`. There follow, each if there are any, `numbers`, structures, and `generic` structures.
///
/// A number: its name and type here, its name and type there, its value.
///
/// A structure: its name here and there, alignment, size, and after `with` the text that ends it there. `template` is
/// what precedes it there, and the arguments of the instance whose layout is checked. Each field: its place, name and
/// type here, its type there; a length may be the name of a number. Both compilers check every place and size.
///
/// A generic structure: its name and its parameter here, its name there, where the parameter has the same name; after
/// `of` the types that it is made for, here and there. Its size and each field's place are a number of bytes, and how
/// often the size of the parameter is added to them. It must have no padding. Both compilers check every instance.
#[macro_export]
#[doc(hidden)]
macro_rules! shared_structures {
    (
        $text_vis:vis const $text:ident = $head:expr, $tail:expr;
        $(numbers {
            $(
                $(#[doc = $number_doc:literal])+
                $number_vis:vis $number:ident: $number_host:ty = $number_device:literal: $number_type:literal
                    = $value:literal;
            )+
        })?
        $(
            $(#[doc = $doc:literal])+
            $vis:vis $rust:ident = $device:literal, $(template $template:literal $instance:literal,)?
            align $align:tt, size $size:literal, with $more:literal: {
                $(
                    $(#[doc = $note:literal])*
                    $at:literal $field_vis:vis $field:ident: $host:ty = $type:literal $([$n:literal])?,
                )+
            }
        )*
        $(generic {
            $(
                $(#[doc = $generic_doc:literal])+
                $generic_vis:vis $generic:ident<$parameter:ident> = $generic_device:literal,
                of [$($of:ty = $of_device:literal),+], size $bytes:literal + $times:literal: $fields:tt
            )+
        })?
    ) => {
        $($(
            $(#[doc = $number_doc])+
            #[allow(dead_code)] // Some are the kernels' alone.
            $number_vis const $number: $number_host = $value;
        )+)?
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
        )*
        $($(
            $crate::shared_structures!(@generic [$(#[doc = $generic_doc])+] $generic_vis $generic $parameter $fields);
            $($crate::shared_structures!(@instance_of $generic $parameter [$of] $bytes $times $fields);)+
        )+)?
        $text_vis const $text: &str = concat!($head, $($(
            $("//", $number_doc, "\n",)+
            "constexpr ", $number_type, " ", $number_device, " = ", $value, ";\n",
        )+ "\n",)? $(
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
        )* $($(
            $("//", $generic_doc, "\n",)+
            "template <class ", stringify!($parameter), "> struct ", $generic_device, " {\n",
            $crate::shared_structures!(@generic_fields $fields),
            "};\n",
            $(
                "static_assert(sizeof(", $generic_device, "<", $of_device, ">) == ", $bytes, " + ", $times,
                " * sizeof(", $of_device, "),\n              \"size of ", $generic_device, "\");\n",
                $crate::shared_structures!(@generic_places $generic_device $of_device $fields),
            )+
            "\n",
        )+)? $tail);
    };
    (@places $device:literal, $instance:tt, $(($at:literal, $field:ident))+) => {
        concat!($(
            "static_assert(CROSSWARP_OFFSET(", $device, $crate::shared_structures!(@instance $instance), ", ",
            stringify!($field), ") == ", $at, ", \"", $device, "::", stringify!($field), "\");\n",
        )+)
    };
    (@instance ()) => { "" };
    (@instance ($instance:literal)) => { $instance };
    (@generic [$($doc:tt)+] $vis:vis $rust:ident $parameter:ident {
        $($(#[doc = $note:literal])* $at:literal + $of:literal $field_vis:vis $field:ident: $host:ty = $type:literal,)+
    }) => {
        $($doc)+
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis struct $rust<$parameter> {
            $($(#[doc = $note])* $field_vis $field: $host,)+
        }
    };
    (@instance_of $rust:ident $parameter:ident [$instance:ty] $bytes:literal $times:literal {
        $($(#[doc = $note:literal])* $at:literal + $of:literal $field_vis:vis $field:ident: $host:ty = $type:literal,)+
    }) => {
        #[allow(unsafe_code)] // Reason: the derive macro does not promise layouts of generic structures.
        const _: () = {
            type $parameter = $instance;
            const fn is_pod<T: ::bytemuck::Pod>() {}
            $(is_pod::<$host>();)+
            let size = ::core::mem::size_of::<$rust<$parameter>>();
            assert!(size == $bytes + $times * ::core::mem::size_of::<$parameter>());
            assert!(size == 0 $(+ ::core::mem::size_of::<$host>())+);
            $(
                let place = $at + $of * ::core::mem::size_of::<$parameter>();
                assert!(::core::mem::offset_of!($rust<$parameter>, $field) == place);
            )+
            // SAFETY: all zeros are values of every field, which are plain data.
            unsafe impl ::bytemuck::Zeroable for $rust<$instance> {}
            // SAFETY: `repr(C)`, fields are plain data, and by the assertion there is no padding.
            unsafe impl ::bytemuck::Pod for $rust<$instance> {}
        };
    };
    (@generic_fields {
        $($(#[doc = $note:literal])* $at:literal + $of:literal $field_vis:vis $field:ident: $host:ty = $type:literal,)+
    }) => {
        concat!($($("    //", $note, "\n",)* "    ", $type, " ", stringify!($field), ";\n",)+)
    };
    (@generic_places $device:literal $instance:literal {
        $($(#[doc = $note:literal])* $at:literal + $of:literal $field_vis:vis $field:ident: $host:ty = $type:literal,)+
    }) => {
        concat!($(
            "static_assert(CROSSWARP_OFFSET(", $device, "<", $instance, ">, ", stringify!($field), ") == ", $at, " + ",
            $of, " * sizeof(", $instance, "),\n              \"", $device, "::", stringify!($field), "\");\n",
        )+)
    };
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

#[cfg(test)]
pub(crate) mod tests {
    use crate::arch::Arch;
    use crate::compile::nvrtc::Nvrtc;
    use crate::compile::program::{CompileError, Options, compile};
    use crate::compile::source::Source;
    use crate::skip::skip_gpu;

    /// The header compiles; and not if its places and sizes are others, each of which is an error. How many there are.
    pub(crate) fn check_each_place_and_size(header: &str) -> usize {
        let compiled = |header: &str| {
            let text = format!("{header}\nextern \"C\" __global__ void nothing() {{}}\n");
            let source = Source::new("layout.cu", &text);
            compile(&source, Arch::new(8, 0), &Options::new())
        };
        compiled(header).unwrap_or_else(|error| panic!("{error}"));
        let stated: Vec<_> = header.match_indices(" == ").map(|(at, _)| at + 4).collect();
        // All wrong in one: as many errors as there are statements.
        let mut wrong = header.to_owned();
        for &at in stated.iter().rev() {
            wrong.insert(at, '1');
        }
        let Err(CompileError::Source(errors)) = compiled(&wrong) else {
            panic!("wrong places compile")
        };
        assert_eq!(errors.len(), stated.len());
        stated.len()
    }

    crate::shared_structures! {
        const TEXT = "#include \"base.cuh\"\nnamespace crosswarp {\n", "}\n";

        numbers {
            /// How many.
            PLACES: usize = "places": "int" = 3;
        }

        /// Of one layout.
        Fixed = "fixed", align 8, size 32, with "": {
            0 place: [u64; PLACES] = "u64"["places"],
            24 last: u64 = "u64",
        }

        generic {
            /// Of a layout for each type.
            Counted<T> = "counted", of [f32 = "float", f64 = "double", Fixed = "fixed"], size 8 + 2: {
                0 + 0 low: T = "T",
                0 + 1 high: T = "T",
                /// Behind them.
                0 + 2 count: u32 = "u32",
                4 + 2 pad: u32 = "u32",
            }
        }
    }

    #[test]
    fn kernels_check_the_instances_of_generic_structures() {
        let counted = Counted {
            low: 1.0f32,
            high: 2.0,
            count: 3,
            pad: 0,
        };
        let words: [u32; 4] = bytemuck::cast(counted);
        assert_eq!(words, [1.0f32.to_bits(), 2.0f32.to_bits(), 3, 0]);
        if let Err(reason) = Nvrtc::get() {
            skip_gpu(
                "kernels_check_the_instances_of_generic_structures",
                1,
                reason,
            );
            return;
        }
        // A size and each field: of one structure, and of three instances.
        assert_eq!(check_each_place_and_size(TEXT), 3 + 3 * 5);
    }
}
