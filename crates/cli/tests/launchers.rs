//! Worlds that other launchers start. `CROSSWARP_HOSTS` cuts this machine into hosts that talk over its loopback
//! interface. Tests whose launcher is not installed are skipped by name, or fail if `CROSSWARP_REQUIRE_HOSTS` is 1.

mod common;

use common::{crosswarp, names, outcome};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SOLVE: &str = "solve laplace1d --points 50000 --json";
/// Far more than any of these takes.
const LONG: Duration = Duration::from_secs(240);

/// The bits of the field, from the JSON of a solve.
fn field_hash(json: &str) -> &str {
    let (_, hash) = json.split_once("\"field_sha256\":\"").expect(json);
    &hash[..64]
}

/// What a solve by threads says.
fn expected() -> String {
    let (code, out, err) = outcome(&format!("{SOLVE} --pes 3"));
    assert_eq!((code, err.as_str()), (0, ""));
    field_hash(&out).to_owned()
}

/// This command with the variables that a launcher like `torchrun` sets for one of `n` processes, `each` to a host.
fn rank(rank: usize, n: usize, each: usize, port: u16) -> Command {
    let mut command = Command::new(crosswarp().get_program());
    command
        .env("CROSSWARP_HEAP", "64M")
        .env("CROSSWARP_BOOTSTRAP", format!("127.0.0.1:{port}"))
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", n.to_string())
        .env("LOCAL_RANK", (rank % each).to_string())
        .env("LOCAL_WORLD_SIZE", each.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// One that is free, most likely also a moment later.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn ranks(n: usize, each: usize, line: &str) -> Vec<Child> {
    let port = port();
    let start = |me| rank(me, n, each, port).args(line.split(' ')).spawn();
    (0..n).map(|me| start(me).unwrap()).collect()
}

/// Waits, but not for ever.
fn end(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LONG {
            child.kill().unwrap();
            panic!("process {} does not end", child.id());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn variables_start_a_world_of_one_or_several_hosts() {
    let expected = expected();
    for each in [4, 2, 1] {
        let folder = tempfile::tempdir().unwrap();
        let field = folder.path().join("line.npy");
        let line = format!("{SOLVE} -o {}", field.display());
        let outputs: Vec<Output> = ranks(4, each, &line).into_iter().map(end).collect();
        for (rank, output) in outputs.iter().enumerate() {
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{each} a host, {rank}: {err}");
            assert_eq!(err, "", "{each} a host, {rank}");
            assert_eq!(output.stdout.is_empty(), rank != 0, "PE 0 speaks");
        }
        let out = String::from_utf8_lossy(&outputs[0].stdout);
        assert_eq!(field_hash(&out), expected, "{each} a host");
        assert!(out.contains("\"world\":\"processes\""), "{out}");
        assert_eq!(
            names(folder.path()),
            ["line.npy"],
            "whole, and nothing else"
        );
    }
}

/// Starts a world of two hosts with a network for each, and waits for its end.
fn over(networks: [&str; 2]) -> Vec<Output> {
    let port = port();
    let start = |me: usize| {
        let mut command = rank(me, 2, 1, port);
        command.env("CROSSWARP_NETWORK", networks[me]);
        // UCX is not to use that the hosts are one machine.
        command.env("UCX_TLS", "tcp").args(SOLVE.split(' '));
        command.spawn().unwrap()
    };
    let started: Vec<Child> = (0..2).map(start).collect();
    started.into_iter().map(end).collect()
}

#[test]
fn all_hosts_have_one_network() {
    for output in over(["tcp", "ucx"]) {
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(err.contains("has CROSSWARP_NETWORK"), "{err}");
    }
    for output in over(["udp", "udp"]) {
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(err.contains("must be tcp or ucx"), "{err}");
    }
}

#[test]
fn worlds_go_over_ucx() {
    if let Err(why) = crosswarp::shmem::internal::ucx() {
        let required = std::env::var("CROSSWARP_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "{why}");
        return eprintln!("skipped: {why}");
    }
    let outputs = over(["ucx", "ucx"]);
    for output in &outputs {
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
    }
    let out = String::from_utf8_lossy(&outputs[0].stdout);
    assert_eq!(field_hash(&out), expected());
}

/// The only world under test that a secret opens; see also the unit tests of the exchange.
#[test]
fn a_secret_is_asked_for_beyond_this_machine() {
    let output = rank(0, 2, 1, 1)
        .env("CROSSWARP_BOOTSTRAP", "192.0.2.1:4567")
        .args(SOLVE.split(' '))
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(err.contains("unless CROSSWARP_SECRET_FILE names"), "{err}");

    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "00112233445566778899aabbccddeeff\n").unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
    let port = port();
    let started: Vec<Child> = (0..2)
        .map(|me| {
            let mut command = rank(me, 2, 1, port);
            command.env("CROSSWARP_SECRET_FILE", file.path());
            command.args(SOLVE.split(' ')).spawn().unwrap()
        })
        .collect();
    for output in started.into_iter().map(end) {
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
    }
}

#[test]
fn the_launchers_own_port_is_left_alone() {
    let output = rank(0, 2, 2, 4567)
        .env("MASTER_PORT", "4567")
        .args(SOLVE.split(' '))
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("another port than MASTER_PORT"), "{err}");
}

#[test]
fn a_pe_that_is_killed_ends_all_on_all_hosts() {
    for each in [2, 1] {
        let line = "solve laplace2d --nx 256 --ny 256 --max-sweeps 1000000000 --tolerance 1e-30";
        let mut started = ranks(2, each, line);
        // It says something when the world is there.
        let mut first = started.remove(0);
        let mut out = first.stdout.take().unwrap();
        std::io::Read::read_exact(&mut out, &mut [0; 8]).unwrap();
        let mut second = started.remove(0);
        second.kill().unwrap();
        let drain = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        let ended = end(first);
        assert!(!ended.status.success(), "{each} a host");
        // What the agent says comes from the process that started it, or from the one that was killed.
        let told = [ended.stderr, end(second).stderr].concat();
        let told = String::from_utf8_lossy(&told).into_owned();
        let words = "has ended without leaving the world";
        assert_eq!(told.matches(words).count(), 1, "{told}");
        assert!(told.contains("crosswarp: PE 1 (host"), "{told}");
        let _ = drain.join();
    }
}

#[test]
fn processes_that_can_not_find_each_other_do_not_start_alone() {
    let variables = |pairs: &[(&str, &str)]| {
        let mut command = crosswarp();
        command.args(SOLVE.split(' ')).envs(pairs.iter().copied());
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), err)
    };
    let slurm = [("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "4")];
    let (started, err) = variables(&slurm);
    assert!(!started && err.lines().count() == 1, "{err}");
    assert!(err.contains("srun has started 4 processes"), "{err}");
    assert!(err.contains("--mpi=pmi2 or --mpi=pmix"), "{err}");
    let (started, err) = variables(&[("RANK", "1"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "4")]);
    assert!(!started && err.contains("CROSSWARP_BOOTSTRAP"), "{err}");
    // A batch script's own process is one process, and so is a job of one.
    let (started, err) = variables(&[("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")]);
    assert!(started, "{err}");
    let (started, err) = variables(&[("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")]);
    assert!(started, "{err}");
}

/// A launcher and its options; `None`, said by name, if it is not there.
fn launcher(name: &str, works: &[&str]) -> Option<Command> {
    let mut command = Command::new(name);
    let there = command
        .args(works)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if there.status().is_ok_and(|status| status.success()) {
        return Some(Command::new(name));
    }
    let required = std::env::var("CROSSWARP_REQUIRE_HOSTS").is_ok_and(|value| value == "1");
    assert!(!required, "{name} does not work here");
    eprintln!("skipped: {name} does not work here");
    None
}

/// Solves on 4 PEs, on one host and on two.
fn solves(mut launcher: impl FnMut() -> Command) {
    let expected = expected();
    for hosts in ["1", "2", "1+3"] {
        let child = launcher()
            .arg(crosswarp().get_program())
            .args(SOLVE.split(' '))
            .env("CROSSWARP_HEAP", "64M")
            .env("CROSSWARP_HOSTS", hosts)
            .env("CROSSWARP_INTERFACE", "lo")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = end(child);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{hosts}: {err}");
        let out = String::from_utf8_lossy(&output.stdout);
        assert_eq!(out.matches("field_sha256").count(), 1, "{out}");
        assert_eq!(field_hash(&out), expected, "{hosts}");
        assert!(out.contains("\"pes\":4,\"world\":\"processes\""), "{out}");
    }
}

#[test]
fn mpichs_launcher_starts_worlds() {
    let name = "mpiexec.hydra";
    if launcher(name, &["--version"]).is_some() {
        solves(|| {
            let mut command = Command::new(name);
            command.args(["-n", "4"]);
            command
        });
    }
}

#[test]
fn open_mpis_launcher_starts_worlds() {
    let name = "mpirun.openmpi";
    if launcher(name, &["--version"]).is_some() {
        solves(|| {
            let mut command = Command::new(name);
            command.args(["--oversubscribe", "-n", "4"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
            command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command
        });
    }
}

#[test]
fn slurm_starts_worlds_by_pmi2_and_by_pmix() {
    for mpi in ["--mpi=pmi2", "--mpi=pmix"] {
        if launcher("srun", &["-n1", mpi, "true"]).is_some() {
            solves(|| {
                let mut command = Command::new("srun");
                command.args(["-N1", "-n4", "--overcommit", mpi]);
                command
            });
        }
    }
}
