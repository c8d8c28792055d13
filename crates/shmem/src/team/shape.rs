//! Strided sets of PEs.

/// Which PEs of the world a team has: `start`, `start + stride`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) start: usize,
    pub(crate) stride: isize,
    pub(crate) size: usize,
}

impl Shape {
    pub(crate) fn world(n: usize) -> Self {
        Self {
            start: 0,
            stride: 1,
            size: n,
        }
    }

    /// `None` if not all of them lie in `0..n`.
    pub(crate) fn new(start: usize, stride: isize, size: usize, n: usize) -> Option<Self> {
        // The stride of a single PE means nothing; without a stride there is no second one.
        let stride = if size == 1 { 1 } else { stride };
        let steps = isize::try_from(size.checked_sub(1)?).ok()?;
        let last = isize::try_from(start)
            .ok()?
            .checked_add(steps.checked_mul(stride)?)?;
        let inside = start < n && usize::try_from(last).is_ok_and(|last| last < n);
        (inside && stride != 0).then_some(Self {
            start,
            stride,
            size,
        })
    }

    #[inline(always)]
    pub(crate) fn world_pe(&self, i: usize) -> usize {
        // Inside the world by construction; wrapping, so that there is no check on the way.
        self.start
            .wrapping_add_signed((i as isize).wrapping_mul(self.stride))
    }

    pub(crate) fn index_of(&self, world_pe: usize) -> Option<usize> {
        let distance = world_pe as isize - self.start as isize;
        let index = usize::try_from(distance / self.stride).ok()?;
        (distance % self.stride == 0 && index < self.size).then_some(index)
    }

    /// The shape among the PEs of this one, as PEs of the world.
    pub(crate) fn of(&self, inner: Self) -> Self {
        Self {
            start: self.world_pe(inner.start),
            stride: self.stride * inner.stride,
            size: inner.size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the plain list of PEs.
        #[test]
        fn shapes_are_what_they_say(
            n in 1usize..20, start in 0usize..22, stride in -5isize..6, size in 0usize..22,
            inner in (0usize..20, -3isize..4, 1usize..8),
        ) {
            let pes: Vec<isize> =
                (0..size as isize).map(|i| start as isize + i * stride).collect();
            let legal = size > 0
                && (size == 1 || stride != 0)
                && pes.iter().all(|&pe| (0..n as isize).contains(&pe));
            let shape = Shape::new(start, stride, size, n);
            prop_assert_eq!(shape.is_some(), legal);
            let Some(shape) = shape else { return Ok(()) };
            for pe in 0..n {
                let place = pes.iter().position(|&member| member == pe as isize);
                prop_assert_eq!(shape.index_of(pe), place);
            }
            if let Some(inner) = Shape::new(inner.0, inner.1, inner.2, size) {
                let both = shape.of(inner);
                for i in 0..inner.size {
                    prop_assert_eq!(both.world_pe(i), shape.world_pe(inner.world_pe(i)));
                    prop_assert_eq!(both.index_of(both.world_pe(i)), Some(i));
                }
            }
        }
    }

    #[test]
    fn absurd_shapes_are_refused_without_overflow() {
        let max = isize::MAX;
        for (start, stride, size) in [
            (0, max, 3),
            (usize::MAX, 1, 1),
            (0, 1, usize::MAX),
            (1, isize::MIN, 2),
            (max as usize, max, 2),
        ] {
            assert_eq!(Shape::new(start, stride, size, 8), None);
        }
    }
}
