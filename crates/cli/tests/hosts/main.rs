//! Several hosts, end to end, on network namespaces (`bed.rs`). They share one machine's memory and files, but nothing
//! of a network: what crosses between them goes through TCP.
//!
//! Needs root and iproute2; where there are none the tests say so and pass, or fail with CROSSWARP_REQUIRE_HOSTS=1.

mod bed;
#[path = "../common/mod.rs"]
mod common;
mod ends;
mod intruders;
mod others;
mod roles;
mod slurm;
mod ssh;
mod ucx;

use bed::{Bed, address, in_role};
use common::{example, outcome, signal, write_npy};
use std::path::Path;

/// The object a run has printed, less what differs from run to run.
fn object(out: &str) -> serde_json::Value {
    let mut object: serde_json::Value =
        serde_json::from_str(out.trim()).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    let fields = object.as_object_mut().unwrap();
    fields.retain(|name, _| !name.contains("second") && !["pes", "world"].contains(&name.as_str()));
    object
}

/// Runs `line`, in which `{out}` is a file to write, on one host without a launcher and on 1, 2 and 3 hosts: what it
/// prints and writes is the same.
fn same_on_all(bed: &Bed, line: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(format!("{name}.npy"));
    let words = |to: &Path| line.replace("{out}", to.to_str().unwrap());
    // A solve that has not converged says so by its code.
    let (expected, out, _) = outcome(&format!("{} --pes 1", words(&file("alone"))));
    let (alone, written) = (object(&out), std::fs::read(file("alone")).ok());
    assert_eq!(written.is_some(), line.contains("{out}"));
    for (name, pes) in [("one", &[2][..]), ("two", &[1, 2]), ("three", &[2, 1, 1])] {
        let words = words(&file(name));
        let program: Vec<&str> = ["crosswarp"].into_iter().chain(words.split(' ')).collect();
        let (code, out, err) = bed.start(pes, &[], &program).end();
        assert_eq!(code, expected, "{line} on {pes:?}: {err}");
        assert_eq!(object(&out), alone, "{line} on {pes:?}");
        let same = std::fs::read(file(name)).ok() == written;
        assert!(same, "{line} on {pes:?}: another file");
    }
    bed.is_empty();
}

#[test]
fn a_solve_has_the_same_bits_on_any_number_of_hosts() {
    let Some(bed) = Bed::up(3) else { return };
    same_on_all(
        &bed,
        "solve laplace1d --points 20000 --max-sweeps 300 --tolerance 1e-30 --json -o {out}",
    );
    let problem = example("jacksboro.toml");
    same_on_all(
        &bed,
        &format!(
            "solve {} --max-sweeps 200 --json -o {{out}}",
            problem.display()
        ),
    );
    same_on_all(
        &bed,
        "solve laplace2d --nx 333 --ny 257 --dtype f64 --max-sweeps 300 --tolerance 1e-30 --json -o {out}",
    );
}

#[test]
fn files_are_read_to_the_same_bits_on_any_number_of_hosts() {
    let Some(bed) = Bed::up(3) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let value = |i: u32| f64::from(i.wrapping_mul(2_654_435_761)).sin() * 1e3;
    write_npy(&path, &[500, 211], (0..500 * 211).map(value));
    let path = path.display();
    for op in ["sum", "norm2", "argmax"] {
        same_on_all(&bed, &format!("reduce {op} {path} --json"));
    }
    same_on_all(
        &bed,
        &format!("histogram {path} --bins 37 --range -1000:1000 --json"),
    );
    same_on_all(&bed, &format!("transpose {path} -o {{out}} --json"));
}

/// Runs a role that has to end well on these hosts.
fn passes(pes: &[usize], role: &str) {
    let bed = Bed::up(pes.len());
    bed.into_iter().for_each(|bed| passes_on(&bed, pes, role));
}

/// Beside other work a host may be silent for long.
const PATIENT: [&str; 2] = ["--patience", "60"];

/// The same in this bed.
fn passes_on(bed: &Bed, pes: &[usize], role: &str) {
    let (code, out, err) = bed.start_role(pes, &PATIENT, role).end();
    assert_eq!(code, 0, "{role} on {pes:?}: {out}\n{err}");
    bed.is_empty();
}

/// A file that is not there yet.
fn mark(folder: &tempfile::TempDir) -> String {
    folder.path().join("mark").to_str().unwrap().to_owned()
}

#[test]
fn a_pe_that_computes_is_served_by_its_agent() {
    let folder = tempfile::tempdir().unwrap();
    passes(&[1, 1], &format!("target-computes {}", mark(&folder)));
}

#[test]
fn a_signal_arrives_while_its_sender_computes() {
    let folder = tempfile::tempdir().unwrap();
    passes(&[1, 1], &format!("initiator-computes {}", mark(&folder)));
}

#[test]
fn local_and_remote_atomics_add_up() {
    passes(&[2, 1], "sums");
}

#[test]
fn a_loopback_address_stands_for_the_host_where_the_run_is_started() {
    let Some(bed) = Bed::up(2) else { return };
    let hosts = format!("127.0.1.1:2,{}:1", address(2));
    let run = bed.start_on(&hosts, &PATIENT, &in_role("sums"));
    let (code, out, err) = run.end();
    assert_eq!(code, 0, "{out}\n{err}");
    bed.is_empty();
}

#[test]
fn flags_never_come_before_what_they_are_for() {
    passes(&[1, 2], "order");
    passes(&[1, 1, 1], "order");
}

#[test]
fn many_pes_a_host_meet() {
    passes(&[8, 8], "meet");
}

#[test]
fn a_pe_connects_to_whom_it_deals_with() {
    passes(&[1; 8], "ring");
}

#[test]
fn standard_input_is_for_pe_0_and_outputs_have_labels() {
    let Some(bed) = Bed::up(2) else { return };
    let mut run = bed.start_role(&[1, 2], &["--label"], "line");
    use std::io::Write;
    writeln!(run.input.as_mut().unwrap(), "to all").unwrap();
    let (code, out, err) = run.end();
    assert_eq!(code, 0, "{err}");
    for pe in 0..3 {
        let line = format!("[{pe}] line to all");
        assert!(out.lines().any(|said| said == line), "{out}");
    }
    bed.is_empty();
}

#[test]
fn oshrun_takes_hosts() {
    let Some(bed) = Bed::up(2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let wrapper = concat!(env!("CARGO_MANIFEST_DIR"), "/../capi/wrappers/oshrun");
    std::fs::copy(wrapper, in_folder("oshrun")).unwrap();
    let own = assert_cmd::cargo::cargo_bin!("crosswarp");
    std::os::unix::fs::symlink(own, in_folder("crosswarp")).unwrap();
    let hosts = format!("{},{}:2", bed::address(1), bed::address(2));
    std::fs::write(in_folder("hosts"), hosts.replace(',', "\n")).unwrap();
    let rsh = Bed::rsh();
    // The variable has a value that a shell would take apart.
    let value = "a 'b' \"c\" $d";
    let passed = format!("NOT_SENT_BY_ITSELF={value}");
    for by in [["--hosts", &hosts], ["--host-file", &in_folder("hosts")]] {
        let output = bed.run(
            1,
            &[
                &["sh", &in_folder("oshrun")][..],
                &by,
                &["--rsh", &rsh, "-n", "3", "-l", "-x", &passed],
                &[
                    "sh",
                    "-c",
                    "ip -br addr show eth0; echo \"$NOT_SENT_BY_ITSELF.\"",
                ],
            ]
            .concat(),
        );
        assert!(output.status.success(), "{output:?}");
        let out = String::from_utf8(output.stdout).unwrap();
        for (pe, host) in [(0, 1), (1, 2), (2, 2)] {
            let mut said = out
                .lines()
                .filter(|line| line.starts_with(&format!("[{pe}] ")));
            let at = said.next().unwrap_or_default();
            assert!(at.contains(&format!(" {}/", bed::address(host))), "{out}");
            assert_eq!(said.next(), Some(&*format!("[{pe}] {value}.")), "{out}");
        }
    }
    let lone = bed.run(1, &["sh", &in_folder("oshrun"), "--rsh", "x", "true"]);
    assert_eq!(lone.status.code(), Some(2), "{lone:?}");
    bed.is_empty();
}

#[test]
fn exit_codes_are_the_runs() {
    let Some(bed) = Bed::up(2) else { return };
    let (code, _, err) = bed.start_role(&[1, 1], &[], "code 41").end();
    assert_eq!(code, 41, "{err}");
    let fails = ["sh", "-c", "test $CROSSWARP_PE = 0 || exit 7"];
    let (code, _, err) = bed.start(&[1, 1], &[], &fails).end();
    assert_eq!(code, 7, "{err}");
    assert!(err.contains("PE 1 ended with exit code 7"), "{err}");
    bed.is_empty();
}

#[test]
fn a_first_signal_asks_and_a_second_one_kills() {
    let Some(bed) = Bed::up(2) else { return };
    let run = bed.start_role(&[1, 2], &[], "asked");
    run.marked("ready", 3);
    signal("TERM", run.root());
    run.marked("asked", 3);
    signal("TERM", run.root());
    let (code, _, err) = run.end();
    assert_eq!(code, 128 + libc::SIGKILL, "{err}");
    bed.is_empty();
}

#[test]
fn the_grace_ends_pes_that_do_not_heed_a_signal() {
    let Some(bed) = Bed::up(2) else { return };
    let run = bed.start_role(&[1, 1], &["--grace", "0.2"], "asked");
    run.marked("ready", 2);
    signal("TERM", run.root());
    let (code, _, err) = run.end();
    assert_eq!(code, 128 + libc::SIGKILL, "{err}");
    bed.is_empty();
}

#[test]
fn a_time_limit_names_the_waits_of_all_hosts() {
    let Some(bed) = Bed::up(2) else { return };
    // Longer until the PEs have come to their waits in time.
    for seconds in (0..5).map(|i| 2 << i) {
        let run = bed.start_role(&[1, 1], &["--timeout", &seconds.to_string()], "wait");
        let (code, out, err) = run.end();
        assert_eq!(code, 124, "{err}");
        bed.is_empty();
        if out.matches("ready").count() == 2 {
            for pe in 0..2 {
                assert!(err.contains(&format!("PE {pe} last waited for")), "{err}");
            }
            return;
        }
    }
    panic!("no run was quick enough");
}
