//! The collectives in stream order, checked against the same done on the host.

use bytemuck::Pod;
use crosswarp_cuda::{DeviceNumber, DeviceSym, DeviceTeam, DeviceWorld, Stream};
use crosswarp_shmem::Pe;
use crosswarp_shmem::op::{self, ReduceOp};

/// Elements per PE: below, at and above what travels in slots, odd ones, and enough for all blocks.
const LENGTHS: [usize; 10] = [1, 3, 256, 512, 513, 2051, 8192, 16_384, 16_385, 70_001];

pub struct Case<'c> {
    pub pe: &'c Pe,
    pub world: &'c DeviceWorld<'c>,
    pub stream: &'c Stream,
    /// The team under test and the world's PE of each of its ranks.
    pub team: &'c DeviceTeam,
    pub members: Vec<usize>,
}

/// Element `i` of what `pe` sends: small integers, so that every type holds sums and products of them.
pub fn value(pe: usize, i: usize) -> u32 {
    (pe * 5 + i * 3 + i / 7) as u32 % 11 + 1
}

impl<'c> Case<'c> {
    /// Of all PEs.
    pub fn of_all(world: &'c DeviceWorld<'c>, stream: &'c Stream) -> Self {
        Self {
            pe: world.pe(),
            world,
            stream,
            team: world.everyone(),
            members: (0..world.pe().n_pes()).collect(),
        }
    }

    pub fn me(&self) -> usize {
        self.pe.my_pe()
    }

    /// Writes this PE's part of `dest` and waits.
    pub fn fill<T: Pod>(&self, dest: &DeviceSym<T>, values: &[T]) {
        self.world
            .put(self.stream, dest.range(..values.len()), values, self.me())
            .unwrap();
    }

    /// The first `n` elements of this PE's part, after the stream's work.
    pub fn seen<T: Pod>(&self, what: &str, source: &DeviceSym<T>, n: usize) -> Vec<T> {
        let waited = self.world.synchronize(self.stream);
        waited.unwrap_or_else(|error| panic!("{what} on PE {}: {error}", self.me()));
        let mut values = vec![T::zeroed(); n];
        self.world
            .get(self.stream, &mut values, source.range(..n), self.me())
            .unwrap();
        values
    }

    pub fn check<T: Pod + PartialEq + std::fmt::Debug>(
        &self,
        what: &str,
        seen: &[T],
        expected: &[T],
    ) {
        let me = self.me();
        assert_eq!(seen.len(), expected.len(), "{what} on PE {me}");
        let wrong = seen.iter().zip(expected).filter(|(a, b)| a != b).count();
        if let Some(i) = (0..seen.len()).find(|&i| seen[i] != expected[i]) {
            panic!(
                "{what} on PE {me}: {wrong} of {} wrong, first at {i}: {:?} instead of {:?}",
                seen.len(),
                seen[i],
                expected[i]
            );
        }
    }

    /// Every member is done with its buffers before the next case writes to them.
    pub fn meet(&self, what: &str) {
        let met = self.world.barrier_on_stream(self.stream, self.team);
        met.unwrap_or_else(|error| panic!("after {what} on PE {}: {error}", self.me()));
        let waited = self.world.synchronize(self.stream);
        waited.unwrap_or_else(|error| panic!("after {what} on PE {}: {error}", self.me()));
    }

    /// Broadcast, fcollect and alltoall of `T`s made from `value`.
    pub fn moves<T: Pod + PartialEq + std::fmt::Debug>(
        &self,
        dest: &DeviceSym<T>,
        source: &DeviceSym<T>,
        make: impl Fn(u32) -> T,
    ) {
        let (world, stream, team) = (self.world, self.stream, self.team);
        let (size, rank) = (self.members.len(), team.my_pe());
        assert_eq!(self.members[rank], self.me());
        let name = std::any::type_name::<T>();
        let of = |pe: usize, range: std::ops::Range<usize>| -> Vec<T> {
            range.map(|i| make(value(pe, i))).collect()
        };
        for n in LENGTHS {
            let what = format!("{n} × {name} among {:?}", self.members);
            self.fill(source, &of(self.me(), 0..n * size));
            self.fill(dest, &vec![make(77); n * size]);
            self.meet(&what);

            let root = size - 1;
            world
                .broadcast_on_stream(stream, team, dest.range(..n), source.range(..n), root)
                .unwrap();
            let seen = self.seen(&what, dest, n);
            self.check(
                &format!("broadcast {what}"),
                &seen,
                &of(self.members[root], 0..n),
            );
            self.meet(&what);

            world
                .fcollect_on_stream(stream, team, dest.range(..n * size), source.range(..n))
                .unwrap();
            let seen = self.seen(&what, dest, n * size);
            let all: Vec<T> = self.members.iter().flat_map(|&pe| of(pe, 0..n)).collect();
            self.check(&format!("fcollect {what}"), &seen, &all);
            self.meet(&what);

            let (to, from) = (dest.range(..n * size), source.range(..n * size));
            world.alltoall_on_stream(stream, team, to, from).unwrap();
            let seen = self.seen(&what, dest, n * size);
            let mine = n * rank..n * (rank + 1);
            let all: Vec<T> = self
                .members
                .iter()
                .flat_map(|&pe| of(pe, mine.clone()))
                .collect();
            self.check(&format!("alltoall {what}"), &seen, &all);
            self.meet(&what);
        }
        // An odd place, so that wide units do not fit.
        if size_of::<T>() < 8 {
            self.fill(source, &of(self.me(), 0..10));
            self.meet("odd places");
            let (to, from) = (dest.range(3..8), source.range(1..6));
            world
                .broadcast_on_stream(stream, team, to, from, 0)
                .unwrap();
            let seen = self.seen("odd places", dest, 8);
            self.check(
                "broadcast to an odd place",
                &seen[3..],
                &of(self.members[0], 1..6),
            );
            self.meet("odd places");
        }
    }

    pub fn reduces<T: DeviceNumber + PartialEq + std::fmt::Debug, O: ReduceOp<T>>(
        &self,
        dest: &DeviceSym<T>,
        source: &DeviceSym<T>,
        op: O,
        make: impl Fn(u32) -> T,
    ) {
        let types = (std::any::type_name::<O>(), std::any::type_name::<T>());
        for n in LENGTHS {
            let what = format!("reduce {types:?} of {n} among {:?}", self.members);
            let mine: Vec<T> = (0..n).map(|i| make(value(self.me(), i))).collect();
            let expected: Vec<T> = (0..n)
                .map(|i| {
                    let values = self.members.iter().map(|&pe| make(value(pe, i)));
                    values.reduce(O::apply).unwrap()
                })
                .collect();
            self.fill(source, &mine);
            self.meet(&what);
            let (to, from) = (dest.range(..n), source.range(..n));
            self.world
                .reduce_on_stream(self.stream, self.team, to, from, op)
                .unwrap();
            let seen = self.seen(&what, dest, n);
            self.check(&what, &seen, &expected);
            self.meet(&what);
            // In place.
            self.world
                .reduce_on_stream(self.stream, self.team, from, from, op)
                .unwrap();
            let seen = self.seen(&what, source, n);
            self.check(&format!("{what} in place"), &seen, &expected);
            self.meet(&what);
        }
    }

    /// Minima and maxima of all pairs of values whose order has special rules, in both orders.
    fn extremes<T: DeviceNumber>(&self, specials: [T; 9], bits: impl Fn(T) -> u64)
    where
        op::Min: ReduceOp<T>,
        op::Max: ReduceOp<T>,
    {
        let (heap, size) = (self.world.heap(), self.members.len());
        // Among two PEs, element i is pair i.
        let of = |rank: usize, i: usize| specials[i / 9_usize.pow(rank as u32 % 2) % 9];
        for n in [81, 4050] {
            let (dest, source) = (heap.alloc::<T>(n).unwrap(), heap.alloc::<T>(n).unwrap());
            let mine: Vec<T> = (0..n).map(|i| of(self.team.my_pe(), i)).collect();
            self.fill(&source, &mine);
            for greatest in [false, true] {
                let what = format!("extremes of {n}, greatest: {greatest}");
                self.meet(&what);
                let (world, stream, team) = (self.world, self.stream, self.team);
                let expected: Vec<u64> = (0..n)
                    .map(|i| {
                        let values = (0..size).map(|rank| of(rank, i));
                        let apply = match greatest {
                            false => op::Min::apply,
                            true => op::Max::apply,
                        };
                        bits(values.reduce(apply).unwrap())
                    })
                    .collect();
                match greatest {
                    false => world.reduce_on_stream(stream, team, &dest, &source, op::Min),
                    true => world.reduce_on_stream(stream, team, &dest, &source, op::Max),
                }
                .unwrap();
                let seen: Vec<u64> = self.seen(&what, &dest, n).into_iter().map(&bits).collect();
                self.check(&what, &seen, &expected);
            }
            self.meet("extremes");
            self.pe.barrier().unwrap();
            heap.free(source).unwrap();
            heap.free(dest).unwrap();
        }
    }

    /// The rule of the host's `Min` and `Max`: a NaN wins, −0 < +0.
    fn float_extremes(&self) {
        const TINY: (f32, f64) = (f32::from_bits(1), f64::from_bits(1));
        let inf = f32::INFINITY;
        self.extremes(
            [-inf, -1.0, -TINY.0, -0.0, 0.0, TINY.0, 1.0, inf, f32::NAN],
            |x| u64::from(x.to_bits()),
        );
        let inf = f64::INFINITY;
        self.extremes(
            [-inf, -1.0, -TINY.1, -0.0, 0.0, TINY.1, 1.0, inf, f64::NAN],
            f64::to_bits,
        );
    }

    pub fn collectives(&self) {
        self.float_extremes();
        let heap = self.world.heap();
        let most = LENGTHS[LENGTHS.len() - 1] * self.members.len();
        let bytes = heap.alloc::<u8>(most).unwrap();
        let more_bytes = heap.alloc::<u8>(most).unwrap();
        self.moves(&bytes, &more_bytes, |v| v as u8);
        self.pe.barrier().unwrap();
        heap.free(more_bytes).unwrap();
        heap.free(bytes).unwrap();
        macro_rules! numbers {
            ($($number:ty: $($op:ident)*;)*) => {$({
                let (dest, source) = (heap.alloc::<$number>(most).unwrap(), heap.alloc(most).unwrap());
                self.moves(&dest, &source, |v| v as $number);
                $( self.reduces(&dest, &source, op::$op, |v| v as $number - 4 as $number); )*
                self.pe.barrier().unwrap();
                heap.free(source).unwrap();
                heap.free(dest).unwrap();
            })*};
        }
        // Some values are negative, so that the order of signed types shows; unsigned ones wrap.
        numbers! {
            i32: Sum Prod Min Max And Or Xor;
            i64: Sum Prod Min Max And Or Xor;
            f32: Sum Prod Min Max;
            f64: Sum Prod Min Max;
        }
        macro_rules! unsigned {
            ($($number:ty)*) => {$({
                let (dest, source) = (heap.alloc::<$number>(most).unwrap(), heap.alloc(most).unwrap());
                let make = |v: u32| (v as $number).wrapping_sub(4);
                self.reduces(&dest, &source, op::Sum, make);
                self.reduces(&dest, &source, op::Prod, make);
                self.reduces(&dest, &source, op::Min, make);
                self.reduces(&dest, &source, op::Max, make);
                self.reduces(&dest, &source, op::And, make);
                self.reduces(&dest, &source, op::Or, make);
                self.reduces(&dest, &source, op::Xor, make);
                self.pe.barrier().unwrap();
                heap.free(source).unwrap();
                heap.free(dest).unwrap();
            })*};
        }
        unsigned!(u32 u64);
    }
}
