//! The types of NVSHMEM's interface and the sets of them the table's rows are repeated for.

/// A type as names, C and Rust call it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// `{T}` in names.
    pub name: &'static str,
    /// `T` in C and C++.
    pub c: &'static str,
    /// `T` in Rust.
    pub rust: &'static str,
    /// What pointers to `T` are cast to in kernels, where `T` is `void`.
    pub unit: Option<&'static str>,
}

const fn ty(name: &'static str, c: &'static str, rust: &'static str) -> Type {
    Type {
        name,
        c,
        rust,
        unit: None,
    }
}

const fn sized(name: &'static str, unit: &'static str, rust: &'static str) -> Type {
    Type {
        name,
        c: "void",
        rust,
        unit: Some(unit),
    }
}

impl Type {
    /// The C type that numbers of this size and kind are combined as.
    pub fn as_numbers(&self) -> Option<&'static str> {
        Some(match self.rust {
            "i8" => "signed char",
            "i16" => "short",
            "i32" => "int",
            "i64" => "long long",
            "f32" => "float",
            "f64" => "double",
            "F16" | "Bf16" => return None,
            _ => return self.as_bits(),
        })
    }

    /// The unsigned C type of this size; `None` for 128 bits, which have none.
    pub fn as_bits(&self) -> Option<&'static str> {
        Some(match self.rust {
            "i8" | "u8" => "unsigned char",
            "i16" | "u16" | "F16" | "Bf16" => "unsigned short",
            "i32" | "u32" | "f32" => "unsigned int",
            "i64" | "u64" | "f64" => "unsigned long long",
            _ => return None,
        })
    }
}

/// Every type. 64-bit Linux: `long` and pointers have 64 bits, `char` is signed (on x86-64).
pub const TYPES: &[Type] = &[
    ty("bfloat16", "__nv_bfloat16", "Bf16"),
    ty("half", "__half", "F16"),
    ty("float", "float", "f32"),
    ty("double", "double", "f64"),
    ty("char", "char", "i8"),
    ty("schar", "signed char", "i8"),
    ty("short", "short", "i16"),
    ty("int", "int", "i32"),
    ty("long", "long", "i64"),
    ty("longlong", "long long", "i64"),
    ty("uchar", "unsigned char", "u8"),
    ty("ushort", "unsigned short", "u16"),
    ty("uint", "unsigned int", "u32"),
    ty("ulong", "unsigned long", "u64"),
    ty("ulonglong", "unsigned long long", "u64"),
    ty("int8", "int8_t", "i8"),
    ty("int16", "int16_t", "i16"),
    ty("int32", "int32_t", "i32"),
    ty("int64", "int64_t", "i64"),
    ty("uint8", "uint8_t", "u8"),
    ty("uint16", "uint16_t", "u16"),
    ty("uint32", "uint32_t", "u32"),
    ty("uint64", "uint64_t", "u64"),
    ty("size", "size_t", "u64"),
    ty("ptrdiff", "ptrdiff_t", "i64"),
    // By size: untyped in C.
    sized("8", "nvshmem_cw_unit8", "u8"),
    sized("16", "nvshmem_cw_unit16", "u16"),
    sized("32", "nvshmem_cw_unit32", "u32"),
    sized("64", "nvshmem_cw_unit64", "u64"),
    sized("128", "nvshmem_cw_unit128", "u128"),
    sized("mem", "nvshmem_cw_unit8", "u8"),
];

const UNSIGNED: &str =
    "uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size";
const AMO: &str = "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff";

/// The types of a set of the table.
///
/// Panics on an unknown set or type: the table is wrong and the build must stop.
pub fn set(name: &str) -> Vec<Type> {
    let arith = format!("bfloat16 half float double char schar short int long longlong {UNSIGNED}");
    let names = match name {
        "rma" => format!("{arith} ptrdiff"),
        "arith" => arith,
        "bitwise" => UNSIGNED.to_owned(),
        "amo" => AMO.to_owned(),
        "amo_all" => format!("float double {AMO}"),
        "bits" => "uint ulong ulonglong int32 int64 uint32 uint64".to_owned(),
        "wait" => format!("short ushort {AMO}"),
        "size" => "8 16 32 64 128".to_owned(),
        "mem" => "mem".to_owned(),
        _ => panic!("unknown set of types '{name}'"),
    };
    names
        .split_whitespace()
        .map(|name| {
            *TYPES
                .iter()
                .find(|ty| ty.name == name)
                .unwrap_or_else(|| panic!("unknown type '{name}'"))
        })
        .collect()
}
