//! The way between hosts without a GPU: memory of the host and threads that do what `device/pe/route.cuh` and
//! `device/pe/inbox.cuh` do play it. Hosts are played as everywhere, over a network that delays, reorders and loses
//! acknowledgements, and over TCP.
#![allow(unsafe_code)] // plays memory that the host knows by its address

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crosswarp_shmem::{Pe, ThreadWorld};

use crate::driver::error::CudaError;
use crate::layout::{AtomicOp, INBOX_ENTRIES, InboxEntry, ROUTE_BODY, ROUTE_ENTRIES, RouteOp};
use crate::pe::route::board::{Board, Words};
use crate::pe::route::carry;
use crate::pe::route::channel::Places;
use crate::pe::route::gpu::{Gpu, Spread};
use crate::pe::route::inbox::InboxPlace;
use crate::pe::route::proxy::{Proxy, ProxyError};
use crate::pe::route::ring::Entry;
use crate::pe::route::ring::kernel::{stores, words_of};

/// What has not come by then never will.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A PE's GPU: its memory, and what its kernels know.
struct Kernels {
    board: Arc<Board>,
    heap: Box<[AtomicU64]>,
    issued: AtomicU64,
    inbox: Box<[AtomicU64]>,
    inbox_head: AtomicU64,
    inbox_tail: AtomicU64,
    inbox_lock: AtomicU64,
}

fn zeros(n: usize) -> Box<[AtomicU64]> {
    (0..n).map(|_| AtomicU64::new(0)).collect()
}

/// # Safety
/// `bytes` bytes are at both addresses, of atomics. Words that lie evenly are copied whole.
unsafe fn copy(to: u64, from: u64, bytes: usize) {
    let words = match (to | from) % 8 {
        0 => bytes / 8,
        _ => 0,
    };
    // SAFETY: by the caller.
    let word = |at: u64, i: usize| unsafe { &*((at as *const AtomicU64).add(i)) };
    // SAFETY: as above.
    let byte = |at: u64, i: usize| unsafe { &*((at as *const AtomicU8).add(i)) };
    for i in 0..words {
        word(to, i).store(word(from, i).load(Ordering::Relaxed), Ordering::Relaxed);
    }
    for i in 8 * words..bytes {
        byte(to, i).store(byte(from, i).load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// The thread's side.
struct HostGpu(Arc<Kernels>);

impl HostGpu {
    /// Copies `bytes` bytes, elements of `like`, whose addresses `at` gives.
    unsafe fn elements(like: Spread, bytes: usize, at: impl Fn(usize) -> (u64, u64)) {
        // As a copy engine: after all that was done before, and before all that is done after.
        fence(Ordering::SeqCst);
        let width = if like.width == like.stride {
            bytes
        } else {
            like.width
        };
        for i in 0..bytes.checked_div(width).unwrap_or(0) {
            let (to, from) = at(i);
            // SAFETY: by the caller.
            unsafe { copy(to, from, width) };
        }
        fence(Ordering::SeqCst);
    }
}

impl Gpu for HostGpu {
    type Message = Box<[u8]>;

    fn message(&self, bytes: usize) -> Box<[u8]> {
        vec![0; bytes].into()
    }

    unsafe fn write(
        &mut self,
        to: Spread,
        from: NonNull<u8>,
        bytes: usize,
    ) -> Result<(), CudaError> {
        let from = from.as_ptr() as u64;
        let at = |i| {
            (
                to.address + (i * to.stride) as u64,
                from + (i * to.width) as u64,
            )
        };
        // SAFETY: by the caller.
        unsafe { Self::elements(to, bytes, at) };
        Ok(())
    }

    unsafe fn read(&mut self, to: &mut [u8], from: Spread) -> Result<(), CudaError> {
        let (start, bytes) = (to.as_mut_ptr() as u64, to.len());
        let at = |i| {
            (
                start + (i * from.width) as u64,
                from.address + (i * from.stride) as u64,
            )
        };
        // SAFETY: by the caller.
        unsafe { Self::elements(from, bytes, at) };
        Ok(())
    }

    fn execute_inbox(&mut self) -> Result<(), CudaError> {
        self.0.serve_inbox();
        Ok(())
    }
}

impl Kernels {
    fn new(heap_words: usize) -> Self {
        Self {
            board: Arc::new(Board::new(|len| Ok(Words::on_host(len))).unwrap()),
            heap: zeros(heap_words),
            issued: AtomicU64::new(0),
            inbox: zeros(INBOX_ENTRIES * size_of::<InboxEntry>() / 8),
            inbox_head: AtomicU64::new(0),
            inbox_tail: AtomicU64::new(0),
            inbox_lock: AtomicU64::new(0),
        }
    }

    fn address(&self, word: usize) -> u64 {
        self.heap[word..].as_ptr() as u64
    }

    fn read(&self, words: std::ops::Range<usize>) -> Vec<u64> {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        self.heap[words].iter().map(load).collect()
    }

    fn fill(&self, at: usize, words: &[u64]) {
        let places = &self.heap[at..];
        let stores = places.iter().zip(words);
        stores.for_each(|(to, &word)| to.store(word, Ordering::Relaxed));
    }

    /// Waits as threads of kernels do, who execute the inbox.
    fn wait(&self, ready: impl Fn() -> bool) {
        self.wait_by(ready, || self.serve_inbox());
    }

    fn wait_by(&self, ready: impl Fn() -> bool, meanwhile: impl Fn()) {
        let start = Instant::now();
        while !ready() {
            meanwhile();
            std::thread::yield_now();
            assert!(start.elapsed() < WATCHDOG, "a wait that does not end");
        }
    }

    fn wait_word(&self, word: &AtomicU64, least: u64) {
        self.wait(|| word.load(Ordering::Acquire) >= least);
    }

    /// As `issue`.
    fn issue(&self, entry: Entry) -> u64 {
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        if number >= ROUTE_ENTRIES as u64 {
            self.wait_word(self.board.taken(), number + 1 - ROUTE_ENTRIES as u64);
        }
        let strided = matches!(entry.op, RouteOp::PutStrided | RouteOp::GetStrided);
        for (at, word) in stores(self.board.ring(), number, words_of(&entry, strided)) {
            at.store(word, Ordering::Relaxed);
        }
        number
    }

    fn put(&self, pe: usize, dest: u64, source: u64, bytes: usize) {
        fence(Ordering::SeqCst);
        let entry = Entry {
            local: source,
            offset: dest,
            n: bytes as u64,
            ..entry(RouteOp::Put, pe)
        };
        let number = self.issue(entry);
        self.wait_word(self.board.taken(), number + 1);
    }

    fn get(&self, pe: usize, dest: u64, source: u64, bytes: usize) {
        fence(Ordering::SeqCst);
        let entry = Entry {
            local: dest,
            offset: source,
            n: bytes as u64,
            ..entry(RouteOp::Get, pe)
        };
        let number = self.issue(entry);
        self.wait_word(self.board.completed(), number + 1);
    }

    /// `n` elements of `width` bytes; address or offset, and stride in bytes, here and there.
    fn strided(
        &self,
        op: RouteOp,
        pe: usize,
        here: (u64, u64),
        there: (u64, u64),
        width: u64,
        n: u64,
    ) {
        fence(Ordering::SeqCst);
        let entry = Entry {
            local: here.0,
            offset: there.0,
            operand: here.1,
            expected: there.1,
            n,
            width,
            ..entry(op, pe)
        };
        let number = self.issue(entry);
        match op {
            RouteOp::PutStrided => self.wait_word(self.board.taken(), number + 1),
            _ => self.wait_word(self.board.completed(), number + 1),
        }
    }

    fn p(&self, pe: usize, dest: u64, value: u64) {
        let entry = Entry {
            offset: dest,
            operand: value,
            ..entry(RouteOp::Word, pe)
        };
        self.issue(entry);
    }

    fn g(&self, pe: usize, source: u64) -> u64 {
        let entry = Entry {
            offset: source,
            ..entry(RouteOp::Fetch, pe)
        };
        self.take_fetched(self.issue(entry))
    }

    fn change(&self, op: RouteOp, pe: usize, dest: u64, change: AtomicOp, words: [u64; 2]) -> u64 {
        let entry = Entry {
            offset: dest,
            operand: words[0],
            expected: words[1],
            change: change as u64,
            ..entry(op, pe)
        };
        let number = self.issue(entry);
        match op {
            RouteOp::AtomicFetch => self.take_fetched(number),
            _ => 0,
        }
    }

    fn take_fetched(&self, number: u64) -> u64 {
        let [place, word] = self.board.fetched(number);
        self.wait_word(place, number + 1);
        let value = word.load(Ordering::Acquire);
        place.store(0, Ordering::Relaxed);
        value
    }

    fn quiet(&self) {
        let issued = self.issued.load(Ordering::Relaxed);
        self.wait_word(self.board.completed(), issued);
    }

    /// As there.
    fn serve_inbox(&self) {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        if load(&self.inbox_head) == load(&self.inbox_tail) {
            return;
        }
        let (order, failed) = (Ordering::SeqCst, Ordering::SeqCst);
        if self
            .inbox_lock
            .compare_exchange(0, 1, order, failed)
            .is_err()
        {
            return;
        }
        fence(Ordering::SeqCst);
        let mut tail = load(&self.inbox_tail);
        let head = load(&self.inbox_head);
        fence(Ordering::SeqCst);
        while tail != head {
            let words = size_of::<InboxEntry>() / 8;
            let entry = &self.inbox[tail as usize % INBOX_ENTRIES * words..][..words];
            let [op, offset, operand, expected] = [0, 1, 2, 3].map(|i| load(&entry[i]));
            assert_eq!(op >> 8, 3, "words of 8 bytes");
            let at = &self.heap[offset as usize / 8];
            let known = |change: AtomicOp| op & 0xff == change as u64;
            let before = if known(AtomicOp::Swap) {
                at.swap(operand, order)
            } else if known(AtomicOp::CompareSwap) {
                let swapped = at.compare_exchange(expected, operand, order, failed);
                swapped.unwrap_or_else(|before| before)
            } else if known(AtomicOp::Add) {
                at.fetch_add(operand, order)
            } else {
                panic!("no operation of these tests: {op}")
            };
            self.board
                .inbox_result(tail)
                .store(before, Ordering::Relaxed);
            tail += 1;
        }
        fence(Ordering::SeqCst);
        self.board.inbox_done().store(tail, Ordering::Relaxed);
        self.inbox_tail.store(tail, Ordering::Relaxed);
        self.inbox_lock.store(0, order);
    }
}

/// An entry about words of 8 bytes.
fn entry(op: RouteOp, pe: usize) -> Entry {
    Entry {
        op,
        pe,
        local: 0,
        offset: 0,
        n: 0,
        operand: 0,
        expected: 0,
        width: 8,
        change: 0,
    }
}

/// A thread beside a PE, which ends with this, also where a test has failed.
struct Beside {
    board: Arc<Board>,
    thread: Option<JoinHandle<Result<(), ProxyError>>>,
}

impl Beside {
    fn start(pe: &Pe, kernels: &Arc<Kernels>, places: Places) -> Self {
        let inbox = InboxPlace {
            entries: kernels.inbox.as_ptr() as u64,
            head: (&raw const kernels.inbox_head) as u64,
        };
        let proxy = Proxy::new(
            pe.courier().expect("PEs of several hosts"),
            Arc::clone(&kernels.board),
            HostGpu(Arc::clone(kernels)),
            inbox,
            (kernels.address(0), size_of_val(&*kernels.heap) as u64),
            places,
        );
        Self {
            board: Arc::clone(&kernels.board),
            thread: Some(std::thread::spawn(move || proxy.run())),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.board.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return;
        };
        let ended = thread.join();
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Runs `body` as each of `n` PEs of these hosts, with a GPU of so many words of heap and bytes of heap on the host.
fn play(
    (hosts, n): (&'static str, usize),
    (heap_words, heap_bytes): (usize, usize),
    body: impl Fn(&Pe, &Kernels) + Sync,
) {
    let world = ThreadWorld::new(n)
        .heap_bytes(heap_bytes)
        .wait_timeout(WATCHDOG)
        .fake_hosts(hosts);
    let played = world.spmd(|pe| {
        let left = pe.alloc_zeroed::<u64>(n).unwrap();
        let (places, _rings, _words) = Places::make(pe, &left).unwrap();
        let kernels = Arc::new(Kernels::new(heap_words));
        let beside = Beside::start(pe, &kernels, places);
        pe.barrier().unwrap();
        body(pe, &kernels);
        kernels.quiet();
        pe.barrier().unwrap();
        drop(beside);
        pe.barrier().unwrap();
    });
    played.unwrap();
}

/// Two PEs, over the network that delays and over TCP, with the smallest and with large bodies.
fn two(heap_words: usize, body: impl Fn(&Pe, &Kernels) + Sync) {
    for hosts in ["2", "tcp:2"] {
        for heap_bytes in [1 << 20, 64 << 20] {
            play((hosts, 2), (heap_words, heap_bytes), &body);
        }
    }
}

/// What a test puts at word `i`.
fn value(seed: u64, i: usize) -> u64 {
    (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn values(seed: u64, n: usize) -> Vec<u64> {
    (0..n).map(|i| value(seed, i)).collect()
}

#[test]
fn puts_and_gets_of_any_length_arrive_whole() {
    // Several messages, of either size of bodies, and some bytes more.
    const WORDS: usize = 600 << 10 >> 3;
    let lengths = [1, 7, 8, 4096, ROUTE_BODY, ROUTE_BODY + 1, 8 * WORDS - 3];
    two(3 * WORDS, |pe, kernels| {
        let (me, other) = (pe.my_pe(), 1 - pe.my_pe());
        for (seed, bytes) in (0..).zip(lengths) {
            // A third of the heap each: what is put from, what is put to, what is got to.
            let mine = values(seed + 100 * me as u64, WORDS);
            let theirs = values(seed + 100 * other as u64, WORDS);
            kernels.fill(0, &mine);
            kernels.fill(WORDS, &vec![0; 2 * WORDS]);
            pe.barrier().unwrap();
            kernels.put(other, 8 * WORDS as u64, kernels.address(0), bytes);
            // It may be changed at once.
            kernels.fill(0, &vec![0; WORDS]);
            kernels.quiet();
            pe.barrier().unwrap();
            let bytes_of = |words: &[u64]| bytemuck::cast_slice::<_, u8>(words).to_vec();
            let mut expected = bytes_of(&theirs);
            expected[bytes..].fill(0);
            assert!(
                bytes_of(&kernels.read(WORDS..2 * WORDS)) == expected,
                "{bytes} bytes put"
            );
            kernels.get(other, kernels.address(2 * WORDS), 8 * WORDS as u64, bytes);
            let mut expected = bytes_of(&mine);
            expected[bytes..].fill(0);
            assert!(
                bytes_of(&kernels.read(2 * WORDS..3 * WORDS)) == expected,
                "{bytes} bytes got"
            );
            pe.barrier().unwrap();
        }
    });
}

#[test]
fn elements_go_where_their_strides_say() {
    const N: usize = 5000;
    two(8 * N, |pe, kernels| {
        let other = 1 - pe.my_pe();
        kernels.fill(0, &values(1, 2 * N));
        // Every second word to every third.
        let (here, there) = ((kernels.address(0), 16), (8 * 2 * N as u64, 24));
        kernels.strided(RouteOp::PutStrided, other, here, there, 8, N as u64);
        kernels.quiet();
        pe.barrier().unwrap();
        let got = kernels.read(2 * N..5 * N);
        for (i, word) in got.into_iter().enumerate() {
            let expected = if i % 3 == 0 { value(1, 2 * (i / 3)) } else { 0 };
            assert_eq!(word, expected, "word {i}");
        }
        let (here, there) = ((kernels.address(5 * N), 16), (8 * 2 * N as u64, 24));
        kernels.strided(RouteOp::GetStrided, other, here, there, 8, N as u64);
        let got = kernels.read(5 * N..7 * N);
        for (i, word) in got.into_iter().enumerate() {
            let expected = if i % 2 == 0 { value(1, i) } else { 0 };
            assert_eq!(word, expected, "word {i}");
        }
    });
}

/// Many threads of each PE, with more entries than the ring has, and everything to everybody.
#[test]
fn rings_that_go_round_lose_nothing() {
    const THREADS: usize = 4;
    const EACH: usize = ROUTE_ENTRIES;
    for (hosts, n) in [("2", 2), ("tcp:3", 3)] {
        let words = n * THREADS * 2 * EACH;
        play((hosts, n), (words, 8 << 20), |pe, kernels| {
            let me = pe.my_pe();
            let at = |from: usize, thread: usize| (from * THREADS + thread) * 2 * EACH;
            let others = |pe: usize| (0..n).filter(move |&other| other != pe);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || {
                        for i in 0..EACH {
                            for to in others(me) {
                                let dest = 8 * (at(me, thread) + i) as u64;
                                kernels.p(to, dest, value(me as u64, i));
                            }
                            if i % 64 == 63 {
                                // What was put before it is there before it is asked for.
                                let from = others(me).next().unwrap();
                                kernels.quiet();
                                let got = kernels.g(from, 8 * (at(me, thread) + i) as u64);
                                assert_eq!(got, value(me as u64, i));
                            }
                        }
                    });
                }
            });
            kernels.quiet();
            pe.barrier().unwrap();
            for from in others(me) {
                for thread in 0..THREADS {
                    let got = kernels.read(at(from, thread)..at(from, thread) + EACH);
                    assert_eq!(got, values(from as u64, EACH));
                }
            }
        });
    }
}

#[test]
fn atomics_of_all_pes_add_up() {
    const ROUNDS: u64 = 300;
    for (hosts, n) in [("2", 2), ("3", 3)] {
        play((hosts, n), (16, 8 << 20), |pe, kernels| {
            let me = pe.my_pe();
            let others: Vec<usize> = (0..n).filter(|&other| other != me).collect();
            let mut last = vec![0; n];
            for round in 0..ROUNDS {
                for &to in &others {
                    kernels.change(RouteOp::Atomic, to, 0, AtomicOp::Add, [3, 0]);
                    let old = kernels.change(RouteOp::AtomicFetch, to, 8, AtomicOp::Add, [1, 0]);
                    assert!(old >= round && (round == 0 || old > last[to]));
                    last[to] = old;
                    // By compare and swap, which only exact looks get through.
                    let mut seen = kernels.g(to, 16);
                    loop {
                        let words = [seen + 1, seen];
                        let op = AtomicOp::CompareSwap;
                        let before = kernels.change(RouteOp::AtomicFetch, to, 16, op, words);
                        if before == seen {
                            break;
                        }
                        seen = before;
                    }
                    // The highest bits travel apart.
                    let high = 1 << 63 | round;
                    let place = 8 * (3 + me) as u64;
                    kernels.change(RouteOp::AtomicFetch, to, place, AtomicOp::Swap, [high, 0]);
                    assert_eq!(kernels.g(to, place), high);
                }
            }
            kernels.quiet();
            pe.barrier().unwrap();
            let times = ROUNDS * (n as u64 - 1);
            assert_eq!(kernels.read(0..3), [3 * times, times, times]);
        });
    }
}

/// Who sees what was put after a fence sees what was put and added before it.
#[test]
fn what_comes_after_a_fence_is_seen_after_what_comes_before() {
    const ROUNDS: u64 = 200;
    const WORDS: usize = 3000;
    two(WORDS + 2, |pe, kernels| {
        let (sum, flag) = (8 * WORDS as u64, 8 * (WORDS + 1) as u64);
        for round in 1..=ROUNDS {
            if pe.my_pe() == 0 {
                kernels.fill(0, &vec![round; WORDS]);
                kernels.put(1, 0, kernels.address(0), 8 * WORDS);
                kernels.change(RouteOp::Atomic, 1, sum, AtomicOp::Add, [1, 0]);
                // A fence has nothing to do here: order is that of the ring.
                kernels.p(1, flag, round);
            } else {
                // One that does not look at the inbox, so that nobody but the thread sees to it.
                let flag = &kernels.heap[WORDS + 1];
                kernels.wait_by(|| flag.load(Ordering::Acquire) == round, || ());
                assert_eq!(kernels.heap[WORDS].load(Ordering::Relaxed), round);
                assert_eq!(kernels.read(0..WORDS), vec![round; WORDS]);
            }
            pe.barrier().unwrap();
        }
    });
}

/// Large puts and gets under way in both directions, small ones among them: nothing waits for ever for a place.
#[test]
fn large_puts_and_gets_pass_each_other() {
    const WORDS: usize = 4 << 20 >> 3;
    two(3 * WORDS + 8, |pe, kernels| {
        let other = 1 - pe.my_pe();
        kernels.fill(0, &values(pe.my_pe() as u64, WORDS));
        pe.barrier().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| kernels.put(other, 8 * WORDS as u64, kernels.address(0), 8 * WORDS));
            scope.spawn(|| kernels.get(other, kernels.address(2 * WORDS), 0, 8 * WORDS));
            scope.spawn(|| {
                for i in 0..500 {
                    kernels.change(
                        RouteOp::AtomicFetch,
                        other,
                        8 * 3 * WORDS as u64,
                        AtomicOp::Add,
                        [i, 0],
                    );
                }
            });
        });
        kernels.quiet();
        pe.barrier().unwrap();
        let theirs = values(other as u64, WORDS);
        assert!(kernels.read(WORDS..2 * WORDS) == theirs, "put");
        assert!(kernels.read(2 * WORDS..3 * WORDS) == theirs, "got");
        assert_eq!(
            kernels.heap[3 * WORDS].load(Ordering::Relaxed),
            499 * 500 / 2
        );
    });
}

/// An entry of the ring's next round has the same place for what it fetches; another PE may answer it before the earlier one
/// is answered.
#[test]
fn who_is_answered_late_gets_what_was_meant_for_it() {
    const ROUND: Duration = Duration::from_millis(200);
    play(("3", 3), (8, 1 << 20), |pe, kernels| {
        kernels.fill(0, &[100 + pe.my_pe() as u64]);
        // Nobody executes what PE 1 is asked for.
        kernels
            .inbox_lock
            .store((pe.my_pe() == 1).into(), Ordering::SeqCst);
        pe.barrier().unwrap();
        if pe.my_pe() == 0 {
            let add = Entry {
                operand: 1,
                change: AtomicOp::Add as u64,
                ..entry(RouteOp::AtomicFetch, 1)
            };
            let late = kernels.issue(add);
            (1..ROUTE_ENTRIES).for_each(|_| kernels.p(2, 8, 0));
            let early = kernels.issue(entry(RouteOp::Fetch, 2));
            // As long as an answer takes, if one came.
            let (start, [place, _]) = (Instant::now(), kernels.board.fetched(late));
            kernels.wait(|| place.load(Ordering::Relaxed) != 0 || start.elapsed() > ROUND);
            pe.barrier().unwrap();
            assert_eq!(kernels.take_fetched(late), 101);
            assert_eq!(kernels.take_fetched(early), 102);
        } else {
            pe.barrier().unwrap();
            kernels.inbox_lock.store(0, Ordering::SeqCst);
        }
    });
}

/// Elements larger than a message, which no kernel asks for, are an error that names the sender, and no panic.
#[test]
fn elements_that_no_message_holds_are_refused() {
    let world = ThreadWorld::new(2)
        .heap_bytes(1 << 20)
        .wait_timeout(WATCHDOG)
        .fake_hosts("2");
    let played = world.spmd(|pe| {
        let left = pe.alloc_zeroed::<u64>(2).unwrap();
        let (places, _rings, _words) = Places::make(pe, &left).unwrap();
        let width = places.body as u64 + 8;
        let kernels = Arc::new(Kernels::new(width as usize / 8));
        let mut beside = Beside::start(pe, &kernels, places);
        pe.barrier().unwrap();
        if pe.my_pe() == 0 {
            let ended = beside.thread.take().unwrap().join().unwrap();
            let Err(ProxyError::Message { pe: 1, what }) = ended else {
                panic!("{ended:?}")
            };
            assert_eq!(what, "elements larger than a message");
            pe.barrier().unwrap();
        } else {
            kernels.issue(Entry {
                local: kernels.address(0),
                n: 1,
                width,
                ..entry(RouteOp::GetStrided, 0)
            });
            pe.barrier().unwrap();
            // The thread need not wait for what never comes.
            pe.put(left.at(0), &[1], 1);
            drop(beside);
        }
        pe.barrier().unwrap();
    });
    played.unwrap();
}

#[test]
fn a_thread_that_ends_early_says_so_however_it_ends() {
    let fails = |serve: fn() -> Result<(), ProxyError>| {
        let mut failed = false;
        carry(0, serve, || failed = true);
        failed
    };
    assert!(fails(|| Err(ProxyError::Message {
        pe: 1,
        what: "of no kind"
    })));
    assert!(fails(|| panic!("on purpose")));
    assert!(!fails(|| Ok(())));
}

/// How fast large puts are: `cargo test --release -p crosswarp-cuda --lib -- --ignored --nocapture large_puts_are_timed`
#[test]
#[ignore = "measures, and asserts nothing about time: what it measures is private, so no bench reaches it"]
fn large_puts_are_timed() {
    const WORDS: usize = 16 << 20 >> 3;
    for heap_bytes in [1 << 20, 4 << 20, 16 << 20, 64 << 20] {
        play(("tcp:2", 2), (2 * WORDS, heap_bytes), |pe, kernels| {
            let n = pe.n_pes();
            let mut times = Vec::new();
            for _ in 0..15 {
                pe.barrier().unwrap();
                let start = Instant::now();
                if pe.my_pe() == 0 {
                    kernels.put(1, 8 * WORDS as u64, kernels.address(0), 8 * WORDS);
                    kernels.quiet();
                    times.push(start.elapsed().as_secs_f64());
                }
                pe.barrier().unwrap();
            }
            times.sort_by(f64::total_cmp);
            if pe.my_pe() == 0 {
                let rate = 8.0 * WORDS as f64 / times[times.len() / 2] / 1e6;
                println!("{n} PEs, heap of {heap_bytes} bytes: {rate:.0} MB/s");
            }
        });
    }
}
