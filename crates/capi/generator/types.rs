//! The types of the specification and the sets of them the table's rows are repeated for.

/// A type as the specification, C and Rust call it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// `{T}` in names.
    pub name: &'static str,
    /// `T` in C prototypes.
    pub c: &'static str,
    /// `T` in C++ prototypes.
    pub cxx: &'static str,
    /// The header's name for C's own type in C++, where C++ has another for the same (an extension of
    /// compilers).
    pub c_in_cxx: Option<&'static str>,
    /// `T` in Rust.
    pub rust: &'static str,
    /// The C type it is the same as on this platform: type-generic selections may name each type once.
    pub same_as: &'static str,
}

const fn ty(
    name: &'static str,
    c: &'static str,
    rust: &'static str,
    same_as: &'static str,
) -> Type {
    Type {
        name,
        c,
        cxx: c,
        c_in_cxx: None,
        rust,
        same_as,
    }
}

const fn complex(
    name: &'static str,
    c: &'static str,
    cxx: &'static str,
    c_in_cxx: &'static str,
    rust: &'static str,
) -> Type {
    Type {
        name,
        c,
        cxx,
        c_in_cxx: Some(c_in_cxx),
        rust,
        same_as: name,
    }
}

/// Every type. 64-bit Linux: `long` and pointers have 64 bits, `char` is signed (on x86-64).
pub const TYPES: &[Type] = &[
    ty("float", "float", "f32", "float"),
    ty("double", "double", "f64", "double"),
    ty("longdouble", "long double", "LongDouble", "longdouble"),
    ty("char", "char", "i8", "char"),
    ty("schar", "signed char", "i8", "schar"),
    ty("short", "short", "i16", "short"),
    ty("int", "int", "i32", "int"),
    ty("long", "long", "i64", "long"),
    ty("longlong", "long long", "i64", "longlong"),
    ty("uchar", "unsigned char", "u8", "uchar"),
    ty("ushort", "unsigned short", "u16", "ushort"),
    ty("uint", "unsigned int", "u32", "uint"),
    ty("ulong", "unsigned long", "u64", "ulong"),
    ty("ulonglong", "unsigned long long", "u64", "ulonglong"),
    ty("int8", "int8_t", "i8", "schar"),
    ty("int16", "int16_t", "i16", "short"),
    ty("int32", "int32_t", "i32", "int"),
    ty("int64", "int64_t", "i64", "long"),
    ty("uint8", "uint8_t", "u8", "uchar"),
    ty("uint16", "uint16_t", "u16", "ushort"),
    ty("uint32", "uint32_t", "u32", "uint"),
    ty("uint64", "uint64_t", "u64", "ulong"),
    ty("size", "size_t", "u64", "ulong"),
    ty("ptrdiff", "ptrdiff_t", "i64", "long"),
    complex(
        "complexf",
        "float _Complex",
        "shmem_complexf_t",
        "shmem_c_complexf_t",
        "Complex<f32>",
    ),
    complex(
        "complexd",
        "double _Complex",
        "shmem_complexd_t",
        "shmem_c_complexd_t",
        "Complex<f64>",
    ),
    // By size: untyped in C.
    ty("8", "void", "u8", "8"),
    ty("16", "void", "u16", "16"),
    ty("32", "void", "u32", "32"),
    ty("64", "void", "u64", "64"),
    ty("128", "void", "[u64; 2]", "128"),
    ty("mem", "void", "u8", "mem"),
];

const RMA: &str = "float double longdouble char schar short int long longlong uchar ushort uint ulong \
    ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size ptrdiff";
const AMO: &str = "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff";

/// The types of a set of the table.
///
/// Panics on an unknown set or type: the table is wrong and the build must stop.
pub fn set(name: &str) -> Vec<Type> {
    let names = match name {
        "rma" => RMA.to_owned(),
        "arith" => format!("{RMA} complexd complexf"),
        "amo" => AMO.to_owned(),
        // The short ones are deprecated where the specification has them (one value), and extensions for
        // sets; a type-generic form takes both.
        "wait" => format!("{AMO} short ushort"),
        "amo_all" => format!("float double {AMO}"),
        "bits" => "uint ulong ulonglong int32 int64 uint32 uint64".to_owned(),
        "unsigned" => {
            "uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 \
            uint64 size"
                .to_owned()
        }
        "size" => "8 16 32 64 128".to_owned(),
        "word" => "32 64".to_owned(),
        "mem" => "mem".to_owned(),
        "long" => "long".to_owned(),
        "old_amo" => "int long longlong".to_owned(),
        "old_amo_all" => "int long longlong float double".to_owned(),
        "old_bits" => "short int long longlong".to_owned(),
        "old_real" => "short int long longlong float double longdouble".to_owned(),
        "old_arith" => {
            "short int long longlong float double longdouble complexf complexd".to_owned()
        }
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
