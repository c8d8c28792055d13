//! What ends a run, and that nothing is left behind on any host.

use crate::bed::{Bed, Run, address};
use crate::common::signal;

/// A run of two PEs on each of two hosts, which wait, and the processes of its PEs.
pub fn waiting(bed: &Bed) -> (Run, [u32; 4]) {
    let run = bed.start_role(&[2, 2], &[], "wait");
    let mut pids = [0; 4];
    for ready in run.marked("ready", 4) {
        let (pe, pid) = ready.split_once(' ').unwrap();
        pids[pe.parse::<usize>().unwrap()] = pid.parse().unwrap();
    }
    (run, pids)
}

/// The run has ended in failure, has said all of `words`, and has left nothing.
pub fn ended(bed: &Bed, run: Run, words: &[&str]) {
    let (code, _, err) = run.end();
    assert_ne!(code, 0, "{err}");
    for word in words {
        assert!(err.contains(word), "'{word}' is not in: {err}");
    }
    bed.is_empty();
}

#[test]
fn a_pe_that_is_killed_ends_all() {
    let Some(bed) = Bed::up(2) else { return };
    for pe in [0, 3] {
        let (run, pids) = waiting(&bed);
        signal("KILL", pids[pe]);
        let host = address(1 + pe / 2);
        let killed = format!("host {host}: PE {pe} was killed by signal 9 (SIGKILL)");
        ended(&bed, run, &[&killed]);
    }
}

#[test]
fn a_launcher_that_is_killed_ends_all() {
    let Some(bed) = Bed::up(2) else { return };
    for (host, pes) in [(1, "PEs 0 to 1"), (2, "PEs 2 to 3")] {
        let (run, _) = waiting(&bed);
        signal("KILL", bed.agent(host));
        let lost = format!("host {} ({pes}) is lost", address(host));
        ended(&bed, run, &[&lost]);
    }
}

#[test]
fn a_root_that_is_killed_leaves_nothing() {
    let Some(bed) = Bed::up(2) else { return };
    let (run, _) = waiting(&bed);
    signal("KILL", run.root());
    ended(&bed, run, &[]);
}

/// A remote shell that has more to say than a run waits for, after its host's launcher.
#[test]
fn a_shell_that_goes_on_talking_does_not_keep_the_run() {
    let Some(bed) = Bed::up(2) else { return };
    let bed = bed.by_default();
    let folder = tempfile::tempdir().unwrap();
    let talks = folder.path().join("talks");
    let script = format!("{} \"$@\"\nwhile echo on; do sleep 0.2; done\n", Bed::rsh());
    std::fs::write(&talks, script).unwrap();
    let rsh = format!("sh {}", talks.display());
    let run = bed.start(&[1, 1], &["--rsh", &rsh], &["echo", "said"]);
    let (code, out, err) = run.end();
    assert_eq!(code, 0, "{err}");
    assert_eq!(out.matches("said").count(), 2, "{out}");
    bed.is_empty();
}

#[test]
fn a_host_that_is_cut_off_ends_all() {
    let Some(bed) = Bed::up(2) else { return };
    let (run, _) = waiting(&bed);
    bed.cut(1, 2);
    bed.cut(2, 1);
    let lost = format!("host {} (PEs 2 to 3) is lost", address(2));
    ended(&bed, run, &[&lost]);
}

/// Hosts 2 and 3, which host 1 reaches both, are cut off from each other.
#[test]
fn a_cut_between_two_hosts_ends_all() {
    let Some(bed) = Bed::up(3) else { return };
    let names = |host: usize| format!("host {} (PE {}) is lost: ", address(host), host - 1);
    // What host 3 sends does not come; nor does either's.
    for cuts in [&[(3, 2)][..], &[(2, 3), (3, 2)]] {
        let run = bed.start_role(&[1, 1, 1], &["--patience", "4", "--beat", "0.5"], "wait");
        run.marked("ready", 3);
        // They have heard of each other by now, or will not miss each other.
        std::thread::sleep(std::time::Duration::from_secs(1));
        cuts.iter().for_each(|&(from, to)| bed.cut(from, to));
        let (code, _, err) = run.end();
        assert_ne!(code, 0, "{err}");
        let lost = |host, by| {
            let by = address(by);
            err.contains(&format!(
                "{}host {by} has not heard of it for 4 s",
                names(host)
            ))
        };
        assert!(lost(3, 2) || cuts.len() == 2 && lost(2, 3), "{err}");
        bed.is_empty();
        for (from, to) in [(2, 3), (3, 2)] {
            bed.mend(from, to);
        }
    }
}

#[test]
fn a_patience_is_longer_than_a_beat() {
    let Some(bed) = Bed::up(2) else { return };
    for options in [["--patience", "1"], ["--beat", "5"]] {
        let (code, _, err) = bed.start(&[1, 1], &options, &["true"]).end();
        assert_ne!(code, 0, "{err}");
        assert!(
            err.contains("CROSSWARP_PATIENCE is") && err.contains("the beat"),
            "{err}"
        );
    }
    let bed = bed.with("CROSSWARP_BEAT", "30");
    assert_ne!(bed.start(&[1, 1], &[], &["true"]).end().0, 0);
    assert_eq!(
        bed.start(&[1, 1], &["--patience", "60"], &["true"]).end().0,
        0
    );
    bed.is_empty();
}

#[test]
fn a_host_that_is_not_heard_ends_all() {
    let Some(bed) = Bed::up(2) else { return };
    let (run, _) = waiting(&bed);
    bed.cut(2, 1);
    let lost = format!("host {} (PEs 2 to 3) is lost", address(2));
    ended(&bed, run, &[&lost]);
}

#[test]
fn a_host_that_hears_nothing_ends_all() {
    let Some(bed) = Bed::up(2) else { return };
    let (run, _) = waiting(&bed);
    bed.cut(1, 2);
    // Whichever side notices first.
    ended(&bed, run, &[&address(2), "PE"]);
}
