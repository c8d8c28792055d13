//! Parts of the set-up, made by several threads of a PE.

use std::{panic, thread};

/// Bytes that threads make at once, where they have more than one item each.
const AT_ONCE: usize = 256 << 20;

/// Items, of so many bytes each, that threads make before these are taken: one of a single thread, which finds it in its
/// cache then.
pub(crate) fn at_once(threads: usize, bytes: usize) -> usize {
    match threads {
        0 | 1 => 1,
        _ => (AT_ONCE / bytes.max(1)).clamp(threads, 8 * threads),
    }
}

/// What `make` makes of each of `items`, in their order. `threads`: so many make at once.
pub(crate) fn side_by_side<I: Copy + Sync, T: Send>(
    threads: usize,
    items: &[I],
    make: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let threads = threads.min(items.len()).max(1);
    // A thread makes every so many-th of these.
    let of = |first: usize| -> Vec<T> {
        let mine = items.iter().skip(first).step_by(threads);
        mine.map(|&item| make(item)).collect()
    };
    let mut made: Vec<_> = thread::scope(|scope| {
        let begun: Vec<_> = (1..threads)
            .map(|first| {
                let of = &of;
                let begun = thread::Builder::new().spawn_scoped(scope, move || of(first));
                (first, begun)
            })
            .collect();
        let mine = of(0);
        let others = begun.into_iter().map(|(first, other)| match other {
            Ok(other) => other.join().unwrap_or_else(|it| panic::resume_unwind(it)),
            // Where there is no room for another thread this one makes its part.
            Err(_) => of(first),
        });
        [mine]
            .into_iter()
            .chain(others)
            .map(Vec::into_iter)
            .collect()
    });
    (0..items.len())
        .map(|at| made[at % threads].next().expect("one for each item"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_items() {
        for threads in [0, 1, 2, 3, 8] {
            for count in [0, 1, 2, 7, 100] {
                let items: Vec<usize> = (0..count).collect();
                let expected: Vec<usize> = items.iter().map(|item| 3 * item).collect();
                let made = side_by_side(threads, &items, |item| 3 * item);
                assert_eq!(made, expected, "{threads} threads, {count} items");
            }
        }
    }

    #[test]
    fn what_is_made_at_once_has_a_bound() {
        assert_eq!([0, 1].map(|threads| at_once(threads, 1)), [1, 1]);
        assert_eq!(at_once(16, 1 << 10), 128);
        assert_eq!(at_once(16, 8 << 20), 32);
        // Each thread has one.
        assert_eq!(at_once(16, 1 << 30), 16);
    }

    #[test]
    #[should_panic(expected = "as it is")]
    fn a_panic_is_passed_on() {
        side_by_side(3, &[1, 2, 3, 4], |item| assert_ne!(item, 3, "as it is"));
    }
}
