//! What PEs of the tests do: this executable is the program.

use crate::common::wait_for;
use crosswarp::shmem::{Cmp, Pe, SignalOp, init};
use std::io::{BufRead, Write};
use std::time::Duration;

#[test]
#[ignore = "one PE of the runs that the tests start"]
fn pe() {
    let pe = init().unwrap();
    let role = std::env::var("ROLE").unwrap();
    let (role, argument) = role.split_once(' ').unwrap_or((&role, ""));
    match role {
        "wait" => wait(&pe),
        "line" => line(&pe),
        "code" => pe.global_exit(argument.parse().unwrap()),
        "asked" => asked(&pe),
        "target-computes" => target_computes(&pe, argument),
        "initiator-computes" => initiator_computes(&pe, argument),
        "sums" => sums(&pe),
        "order" => order(&pe),
        "meet" => meet(&pe),
        "ring" => ring(&pe),
        _ => panic!("no role '{role}'"),
    }
}

/// Says something that the test waits for, on a line of its own. Not by `println!`: the test harness may hold it.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{text}").unwrap();
    out.flush().unwrap();
}

/// Waits for what never comes.
fn wait(pe: &Pe) {
    let flag = pe.alloc_zeroed::<u64>(1).unwrap();
    pe.barrier().unwrap();
    say(&format!("ready {} {}", pe.my_pe(), std::process::id()));
    let error = pe.signal_wait_until(&flag, Cmp::Ne, 0).unwrap_err();
    panic!("{error}");
}

/// PE 0 hands a line of standard input to all.
fn line(pe: &Pe) {
    let text = pe.alloc_zeroed::<u8>(64).unwrap();
    pe.barrier().unwrap();
    say(&format!(
        "agents {}",
        std::env::var("CROSSWARP_AGENTS").unwrap()
    ));
    if pe.my_pe() == 0 {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).unwrap();
        for to in 0..pe.n_pes() {
            pe.put(text.range(0..line.len()), line.as_bytes(), to);
        }
    } else {
        let mut none = String::new();
        assert_eq!(std::io::stdin().lock().read_line(&mut none).unwrap(), 0);
    }
    pe.barrier().unwrap();
    let mut got = [0; 64];
    pe.read(&mut got, &text);
    let got = String::from_utf8_lossy(&got);
    say(&format!("line {}", got.trim_end_matches('\0').trim()));
}

/// Ends only when it is killed; says that it was asked to.
fn asked(pe: &Pe) {
    static ASKED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    extern "C" fn note(_: libc::c_int) {
        ASKED.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    let handler = note as extern "C" fn(libc::c_int);
    // SAFETY: the handler stores to an atomic and does nothing else.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
    }
    pe.barrier().unwrap();
    say(&format!("ready {}", pe.my_pe()));
    while !ASKED.load(std::sync::atomic::Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
    say("asked");
    std::thread::sleep(Duration::from_secs(600));
}

/// Does without a call of the library until `file` is there.
fn compute_until(file: &str) {
    wait_for(file);
}

/// The last PE makes no call while everything is done to its memory.
fn target_computes(pe: &Pe, file: &str) {
    let (words, signal) = (pe.alloc_zeroed::<u64>(4), pe.alloc_zeroed::<u64>(1));
    let (words, signal) = (words.unwrap(), signal.unwrap());
    // The lock's word is on PE 0: the last PE takes it from there, PE 0 has it from itself.
    let lock = pe.alloc_lock().unwrap();
    let last = pe.n_pes() - 1;
    pe.barrier().unwrap();
    if pe.my_pe() == last {
        compute_until(file);
    } else if pe.my_pe() == 0 {
        pe.put_signal(words.range(0..1), &[7], &signal, 3, SignalOp::Add, last);
        pe.quiet().unwrap();
        assert_eq!(pe.g(&signal, last), 3);
        let mut got = [0; 4];
        pe.get(&mut got, &words, last);
        assert_eq!(got, [7, 0, 0, 0]);
        assert_eq!(pe.atomic_fetch_add(words.at(0), 5, last), 7);
        assert_eq!(pe.atomic_fetch(words.at(0), last), 12);
        drop(pe.lock(&lock).unwrap());
        std::fs::write(file, "").unwrap();
    }
    pe.barrier().unwrap();
    assert_eq!(
        pe.g(words.at(0), pe.my_pe()),
        if pe.my_pe() == last { 12 } else { 0 }
    );
    // With the roles of the lock's owner and taker exchanged.
    let second = format!("{file}.2");
    if pe.my_pe() == 0 {
        compute_until(&second);
    } else if pe.my_pe() == last {
        drop(pe.lock(&lock).unwrap());
        std::fs::write(&second, "").unwrap();
    }
    pe.barrier().unwrap();
}

/// PE 0 makes no call after it has sent a signal, until that is there.
fn initiator_computes(pe: &Pe, file: &str) {
    let data = pe.alloc_zeroed::<u64>(100_000).unwrap();
    let signal = pe.alloc_zeroed::<u64>(1).unwrap();
    let last = pe.n_pes() - 1;
    pe.barrier().unwrap();
    // Small and large ones go different ways.
    for (round, n) in (1..).zip([1, 100_000]) {
        let file = format!("{file}.{round}");
        if pe.my_pe() == 0 {
            let source = vec![round; n];
            let to = data.range(0..n);
            pe.put_signal(to, &source, &signal, round, SignalOp::Set, last);
            compute_until(&file);
        } else if pe.my_pe() == last {
            pe.signal_wait_until(&signal, Cmp::Ge, round).unwrap();
            let mut got = vec![0; n];
            pe.read(&mut got, data.range(0..n));
            assert!(got.iter().all(|&word| word == round));
            std::fs::write(&file, "").unwrap();
        }
        pe.barrier().unwrap();
    }
}

/// Atomics from the word's own host and from others, at once.
fn sums(pe: &Pe) {
    const ROUNDS: u64 = 2000;
    let words = pe.alloc_zeroed::<u64>(2).unwrap();
    let narrow = pe.alloc_zeroed::<u32>(1).unwrap();
    let lock = pe.alloc_lock().unwrap();
    let guarded = pe.alloc_zeroed::<u64>(1).unwrap();
    let n = pe.n_pes() as u64;
    pe.barrier().unwrap();
    for owner in 0..pe.n_pes() {
        for _ in 0..ROUNDS {
            pe.atomic_add(words.at(0), 3, owner);
            pe.atomic_fetch_add(&narrow, 1, owner);
            // By compare and swap, which only exact looks get through.
            let mut seen = pe.atomic_fetch(words.at(1), owner);
            loop {
                let before = pe.atomic_compare_swap(words.at(1), seen, seen + 1, owner);
                if before == seen {
                    break;
                }
                seen = before;
            }
        }
        pe.barrier().unwrap();
    }
    assert_eq!(pe.g(words.at(0), pe.my_pe()), 3 * n * ROUNDS);
    assert_eq!(pe.g(words.at(1), pe.my_pe()), n * ROUNDS);
    assert_eq!(u64::from(pe.g(&narrow, pe.my_pe())), n * ROUNDS);
    for _ in 0..200 {
        let _held = pe.lock(&lock).unwrap();
        let value = pe.g(&guarded, 0);
        pe.p(&guarded, value + 1, 0);
        pe.quiet().unwrap();
    }
    pe.barrier().unwrap();
    assert_eq!(pe.g(&guarded, 0), 200 * n);
}

/// What a PE may not see: a flag before what was put before it.
fn order(pe: &Pe) {
    const ROUNDS: u64 = 1000;
    const WORDS: usize = 300;
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let data = pe.alloc_zeroed::<u64>(WORDS).unwrap();
    let flags = pe.alloc_zeroed::<u64>(3).unwrap();
    let taken = pe.alloc_zeroed::<u64>(1).unwrap();
    let fetch = |from: usize| {
        let mut got = vec![0; WORDS];
        pe.get(&mut got, &data, from);
        got
    };
    // PE 0 writes to the last PE, on another host; a third one, if there is one, looks from outside.
    let (last, third) = (n - 1, n - 2);
    pe.barrier().unwrap();
    for round in 1..=3 * ROUNDS {
        // By turns: fence and a flag, one message with its signal, quiet and a flag on a third PE.
        let way = (round % 3) as usize;
        let reader = if way == 2 { third } else { last };
        if me == 0 {
            let source = vec![round; WORDS];
            match way {
                0 => {
                    pe.put(&data, &source, last);
                    pe.fence().unwrap();
                    pe.p(flags.at(0), round, last);
                }
                1 => pe.put_signal(&data, &source, flags.at(1), round, SignalOp::Set, last),
                _ => {
                    pe.put(&data, &source, last);
                    pe.quiet().unwrap();
                    pe.p(flags.at(2), round, third);
                }
            }
        }
        if me == reader {
            pe.wait_until(flags.at(way), Cmp::Eq, round).unwrap();
            let got = fetch(last);
            assert!(
                got.iter().all(|&word| word == round),
                "round {round}: {got:?}"
            );
            pe.p(&taken, round, 0);
            pe.quiet().unwrap();
        }
        if me == 0 {
            pe.wait_until(&taken, Cmp::Eq, round).unwrap();
        }
    }
    pe.barrier().unwrap();
}

/// Barriers, and what has to be there after each.
fn meet(pe: &Pe) {
    let n = pe.n_pes();
    let words = pe.alloc_zeroed::<u64>(n).unwrap();
    for round in 1..=100 {
        for to in [(pe.my_pe() + 1) % n, (pe.my_pe() + n / 2) % n] {
            pe.p(words.at(pe.my_pe()), round, to);
        }
        pe.barrier().unwrap();
        for from in [(pe.my_pe() + n - 1) % n, (pe.my_pe() + n / 2) % n] {
            assert_eq!(pe.g(words.at(from), pe.my_pe()), round);
        }
        pe.barrier().unwrap();
    }
}

/// How many TCP connections this process has.
fn connections() -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    // Fields: number, local and remote address, state (1: established), queues, timer, retransmits, user, timeout,
    // inode.
    let established = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(3) == Some(&"01")).then(|| format!("socket:[{}]", fields[9]))
    });
    let established: Vec<String> = established.collect();
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    names
        .filter(|name| {
            established
                .iter()
                .any(|socket| name.as_os_str() == socket.as_str())
        })
        .count()
}

/// PEs deal with both their neighbours only: no connection to any other host comes of it.
fn ring(pe: &Pe) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let words = pe.alloc_zeroed::<u64>(2).unwrap();
    pe.barrier().unwrap();
    // Of the collectives: to the hosts 1, 2 and 4 further.
    let before = connections();
    assert!(before <= 3, "{before} connections before");
    for round in 1..=50 {
        for (i, to) in [(0, (me + 1) % n), (1, (me + n - 1) % n)] {
            pe.p(words.at(i), round, to);
        }
        for i in 0..2 {
            pe.wait_until(words.at(i), Cmp::Ge, round).unwrap();
        }
        pe.g(words.at(0), (me + 1) % n);
        pe.atomic_fetch(words.at(1), (me + n - 1) % n);
    }
    let after = connections();
    assert!(
        after >= 2 && after - before <= 2,
        "{before}, then {after} connections"
    );
    pe.barrier().unwrap();
}
