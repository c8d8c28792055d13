//! What samples are compared as, and the rules there are for each such type.

use core::fmt::Debug;

use bytemuck::Pod;

use super::edges::{Celled, Edges};
use super::even::{EvenFloat, EvenInteger, EvenWide};
use super::rule::Visit;

/// What samples are compared as: integers of up to 16 bits widen to `i32`, wider ones to `i64`; `u64` is counted from
/// −2^63.
pub trait Key: Pod + PartialOrd + Debug + Celled + Send + Sync {
    #[doc(hidden)]
    type Even: Copy + Debug + Send + Sync;
    #[doc(hidden)]
    fn visit_even<V: Visit<Self>>(even: &Self::Even, visit: V) -> V::Output;
}

impl Key for i32 {
    type Even = EvenInteger;
    fn visit_even<V: Visit<Self>>(even: &EvenInteger, visit: V) -> V::Output {
        match even {
            EvenInteger::Shift(rule) => visit.visit(rule),
            EvenInteger::Multiply(rule) => visit.visit(rule),
            EvenInteger::Spread(rule) => visit.visit(rule),
            EvenInteger::ClosedShift(rule) => visit.visit(rule),
            EvenInteger::ClosedMultiply(rule) => visit.visit(rule),
        }
    }
}

impl Key for i64 {
    type Even = EvenWide;
    fn visit_even<V: Visit<Self>>(even: &EvenWide, visit: V) -> V::Output {
        visit.visit(even)
    }
}

macro_rules! floats {
    ($($float:ident),*) => {$(
        impl Key for $float {
            type Even = EvenFloat<$float>;
            fn visit_even<V: Visit<Self>>(even: &Self::Even, visit: V) -> V::Output {
                visit.visit(even)
            }
        }
    )*};
}
floats!(f32, f64);

/// The rule of some bins.
#[derive(Clone, Debug)]
pub enum Rule<K: Key> {
    Even(K::Even),
    Edges(Edges<K>),
}

impl<K: Key> Rule<K> {
    pub fn visit<V: Visit<K>>(&self, visit: V) -> V::Output {
        match self {
            Self::Even(even) => K::visit_even(even, visit),
            Self::Edges(edges) => visit.visit(edges),
        }
    }
}
