//! Reductions from the host.
#![allow(unsafe_code)] // C's functions: the caller promises what NVSHMEM asks of the arguments

use crate::collective::give;
use crate::gpu::Gpu;
use crate::on::On;
use crate::types::{Bf16, F16};
use crosswarp_cuda::{DeviceTeam, Stream};
use crosswarp_shmem::op;
use std::ffi::c_int;

/// The operations, by their numbers in kernels.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Sum = 0,
    Prod = 1,
    Min = 2,
    Max = 3,
    And = 4,
    Or = 5,
    Xor = 6,
}

/// What can be combined.
pub(crate) trait Element: Sized {
    /// Its name in `kernels/reduce.cu`.
    const NAME: &'static str;
    /// What it is combined as bit by bit: unsigned, as in kernels, since PEs compare types.
    type Bits: Element;
    /// By the kernels of crosswarp-cuda, if these have the type.
    fn reduce(
        gpu: &Gpu,
        stream: &Stream,
        team: &DeviceTeam,
        places: (u64, u64, usize),
        op: Op,
    ) -> Result<(), String>;
}

macro_rules! own {
    ($($element:ty = $name:literal, $bits:ty);*) => {$(
        impl Element for $element {
            const NAME: &'static str = $name;
            type Bits = $bits;
            fn reduce(
                gpu: &Gpu,
                stream: &Stream,
                team: &DeviceTeam,
                (dest, source, n): (u64, u64, usize),
                op: Op,
            ) -> Result<(), String> {
                gpu.reduce(stream, team, (dest, source, n), ($name, op as i32, false))
            }
        }
    )*};
}
own!(
    i8 = "schar", u8;
    u8 = "uchar", u8;
    i16 = "short", u16;
    u16 = "u16", u16;
    F16 = "half", F16;
    Bf16 = "bfloat16", Bf16
);

macro_rules! shared {
    ($($element:ty = $name:literal, $bits:ty: $($op:ident)*;)*) => {$(
        impl Element for $element {
            const NAME: &'static str = $name;
            type Bits = $bits;
            fn reduce(
                gpu: &Gpu,
                stream: &Stream,
                team: &DeviceTeam,
                (dest, source, n): (u64, u64, usize),
                op: Op,
            ) -> Result<(), String> {
                let dest = gpu.object::<$element>(dest, n)?;
                let source = gpu.object::<$element>(source, n)?;
                let world = &gpu.world;
                match op {
                    $(Op::$op => world.reduce_on_stream(stream, team, &dest, &source, op::$op),)*
                    // Not of this type; no exported function asks for it.
                    #[allow(unreachable_patterns)]
                    _ => return Err("the type has no such operation".into()),
                }
                .map_err(|error| error.to_string())
            }
        }
    )*};
}
shared! {
    i32 = "i32", u32: Sum Prod Min Max;
    u32 = "u32", u32: Sum Prod Min Max And Or Xor;
    i64 = "i64", u64: Sum Prod Min Max;
    u64 = "u64", u64: Sum Prod Min Max And Or Xor;
    f32 = "float", f32: Sum Prod Min Max;
    f64 = "double", f64: Sum Prod Min Max;
}

fn reduce<T: Element>(
    on: On,
    team: c_int,
    (dest, source, n): (*mut T, *const T, usize),
    op: Op,
) -> c_int {
    give(on, team, |gpu, stream, team| {
        let (dest, source) = (dest.addr() as u64, source.addr() as u64);
        check::<T>(gpu, (dest, n), (source, n))?;
        T::reduce(gpu, stream, team, (dest, source, n), op)
    })
}

fn scatter<T: Element>(
    on: On,
    team: c_int,
    (dest, source, n): (*mut T, *const T, usize),
    op: Op,
) -> c_int {
    give(on, team, |gpu, stream, team| {
        let (dest, source) = (dest.addr() as u64, source.addr() as u64);
        let all = n.saturating_mul(team.n_pes());
        check::<T>(gpu, (dest, n), (source, all))?;
        gpu.reduce(stream, team, (dest, source, n), (T::NAME, op as i32, true))
    })
}

/// Whether both sides are symmetric.
fn check<T>(gpu: &Gpu, dest: (u64, usize), source: (u64, usize)) -> Result<(), String> {
    for (address, n) in [dest, source] {
        let _ = gpu.object::<u8>(address, n.saturating_mul(size_of::<T>()))?;
    }
    Ok(())
}

macro_rules! operations {
    ($($name:ident $scattered:ident = $op:ident of $as:ty),*) => {$(
        pub(crate) unsafe fn $name<T: Element>(on: On, team: c_int, dest: *mut T, source: *const T, n: usize) -> c_int {
            reduce::<$as>(on, team, (dest.cast(), source.cast(), n), Op::$op)
        }
        pub(crate) unsafe fn $scattered<T: Element>(
            on: On,
            team: c_int,
            dest: *mut T,
            source: *const T,
            n: usize,
        ) -> c_int {
            scatter::<$as>(on, team, (dest.cast(), source.cast(), n), Op::$op)
        }
    )*};
}
operations!(
    sum scatter_sum = Sum of T,
    prod scatter_prod = Prod of T,
    min scatter_min = Min of T,
    max scatter_max = Max of T,
    and scatter_and = And of T::Bits,
    or scatter_or = Or of T::Bits,
    xor scatter_xor = Xor of T::Bits
);

#[cfg(test)]
mod tests {
    use super::Element;
    use crate::types::{Bf16, ELEMENTS, F16};

    #[test]
    fn the_list_of_elements_has_all_names() {
        let names = [
            i8::NAME,
            u8::NAME,
            i16::NAME,
            u16::NAME,
            F16::NAME,
            Bf16::NAME,
            i32::NAME,
            u32::NAME,
            i64::NAME,
            u64::NAME,
            f32::NAME,
            f64::NAME,
        ];
        assert_eq!(ELEMENTS, names);
    }
}
