//! The same over UCX, which is not to use that these hosts are one machine.

use crate::bed::{Bed, address};
use crate::common::signal;
use crate::ends::{ended, waiting};
use crate::{mark, passes_on, same_on_all};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

fn up(n: usize) -> Option<Bed> {
    Bed::up(n).and_then(Bed::over_ucx)
}

#[test]
fn a_solve_has_the_same_bits_over_ucx() {
    let Some(bed) = up(3) else { return };
    let solve = "solve laplace1d --points 20000 --max-sweeps 300 --tolerance 1e-30 --json -o {out}";
    same_on_all(&bed, solve);
}

#[test]
fn ucxs_log_is_not_among_what_a_program_prints() {
    let Some(bed) = up(2) else { return };
    let bed = bed.with("UCX_LOG_LEVEL", "info");
    let (_, out, err) = bed.start(&[1, 1], &[], &["echo", "printed"]).end();
    assert_eq!(out, "printed\nprinted\n", "{err}");
    // The launchers' own, whose library is opened for their agents.
    assert!(err.contains("UCX  INFO"), "{err}");
}

#[test]
fn agents_serve_over_ucx() {
    let Some(bed) = up(3) else { return };
    let folder = tempfile::tempdir().unwrap();
    passes_on(&bed, &[1, 1], &format!("target-computes {}", mark(&folder)));
    let folder = tempfile::tempdir().unwrap();
    passes_on(
        &bed,
        &[1, 1],
        &format!("initiator-computes {}", mark(&folder)),
    );
    passes_on(&bed, &[2, 1], "sums");
    passes_on(&bed, &[1, 2], "order");
    passes_on(&bed, &[1, 1, 1], "order");
}

#[test]
fn what_dies_over_ucx_ends_all() {
    let Some(bed) = up(2) else { return };
    let (run, pids) = waiting(&bed);
    signal("KILL", pids[3]);
    let killed = format!("host {}: PE 3 was killed by signal 9 (SIGKILL)", address(2));
    ended(&bed, run, &[&killed]);
    let lost = format!("host {} (PEs 2 to 3) is lost", address(2));
    let (run, _) = waiting(&bed);
    signal("KILL", bed.agent(2));
    ended(&bed, run, &[&lost]);
    let (run, _) = waiting(&bed);
    bed.cut(1, 2);
    bed.cut(2, 1);
    ended(&bed, run, &[&lost]);
}

#[test]
fn without_ucx_the_run_says_what_to_install() {
    let Some(bed) = Bed::up(2) else { return };
    let bed = bed
        .with("CROSSWARP_NETWORK", "ucx")
        .with("CROSSWARP_UCX", "/nowhere/libucp.so.0");
    let (code, out, err) = bed.start(&[1, 1], &[], &["echo", "started"]).end();
    assert_ne!(code, 0, "{err}");
    assert!(!out.contains("started"), "{out}");
    let why = "CROSSWARP_NETWORK is ucx, but UCX (libucp.so.0, 1.13 or newer) was not found";
    assert!(err.contains(why), "{err}");
    assert!(err.contains("apt install libucx0"), "{err}");
    bed.is_empty();
}

/// Listening sockets of the processes of a host.
fn ports(bed: &Bed, host: usize) -> Vec<String> {
    let listing = bed.run(host, &["cat", "/proc/net/tcp"]).stdout;
    let listing = String::from_utf8(listing).unwrap();
    let ports = listing.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
        let (_, port) = local.split_once(':')?;
        // `TCP_LISTEN`
        (state == "0A").then(|| u16::from_str_radix(port, 16).ok())?
    });
    ports
        .map(|port| format!("{}:{port}", address(host)))
        .collect()
}

#[test]
#[ignore = "a process of a host that has no part in the run"]
fn intruder() {
    let ports = std::env::var("PORTS").unwrap();
    for port in ports.split(',') {
        for bytes in [1 << 20, 5] {
            // One that is of another interface refuses at once, and one that listens may close, or read no more,
            // before all is sent.
            let Ok(mut stream) = TcpStream::connect(port) else {
                continue;
            };
            stream
                .set_write_timeout(Some(Duration::from_secs(2)))
                .unwrap();
            let garbage: Vec<u8> = (0..bytes).map(|i: u32| (i * 167) as u8).collect();
            let _ = stream.write_all(&garbage);
            println!("sent");
        }
    }
}

#[test]
fn garbage_at_ucxs_ports_does_no_harm() {
    let Some(bed) = up(3) else { return };
    let mut run = bed.start_role(&[1, 1], &[], "line");
    run.marked("agents ", 2);
    let test = std::env::current_exe().unwrap();
    for host in [1, 2] {
        let script = format!(
            "PORTS={} exec {} --ignored --exact ucx::intruder --nocapture",
            ports(&bed, host).join(","),
            test.display()
        );
        let intruder = bed.run(3, &["sh", "-c", &script]);
        let out = String::from_utf8_lossy(&intruder.stdout);
        // The agent's own, and those that UCX listens at.
        assert!(out.matches("sent").count() > 2, "{out}");
    }
    writeln!(run.input.as_mut().unwrap(), "still here").unwrap();
    let (code, out, err) = run.end();
    assert_eq!(code, 0, "{err}");
    assert_eq!(out.matches("line still here").count(), 2, "{out}");
    bed.is_empty();
}
