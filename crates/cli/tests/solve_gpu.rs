//! Solves on GPUs by processes, also of several hosts: the bits of the CPU, and the end of a run one of whose PEs is killed.
//!
//! Without a GPU the tests say so and pass. Processes that wait for one another inside kernels need a GPU each; with
//! one GPU there is one PE, or a strategy in which only the hosts wait.

mod common;

use std::process::{Command, Stdio};

use common::json;
use crosswarp::cuda::{Device, Nvrtc, skip};

/// The number of GPUs, at least one, or nothing and a line that says why the test is skipped.
fn gpus(test: &str) -> Option<usize> {
    let found = Device::count().map_err(|reason| reason.to_string());
    let found = found.and_then(|count| match Nvrtc::get() {
        Ok(_) if count > 0 => Ok(count),
        Ok(_) => Err("no GPU".to_owned()),
        Err(reason) => Err(reason.to_string()),
    });
    match found {
        Ok(count) => Some(count),
        Err(reason) => {
            skip::skip_gpu(test, 1, reason);
            None
        }
    }
}

#[test]
fn processes_give_the_bits_of_threads_and_of_the_cpu() {
    let Some(gpus) = gpus("processes_give_the_bits_of_threads_and_of_the_cpu") else {
        return;
    };
    for problem in [
        "laplace1d --points 300001 --tolerance 2e-4",
        "laplace2d --nx 700 --ny 500 --max-sweeps 203",
        "laplace2d --preset nvidia --nx 640 --ny 700 --max-sweeps 150 --dtype f64",
    ] {
        let solve = format!("solve {problem} --json --backend");
        let bits = |line: &str| {
            let solved = json(line);
            let of = |name: &str| solved[name].clone();
            assert_eq!(solved["world"] == "processes", line.starts_with("run"));
            [of("sweeps"), of("history"), of("field_sha256")]
        };
        let cpu = bits(&format!("{solve} cpu --pes 2"));
        assert_eq!(
            bits(&format!("{solve} cuda --pes {gpus}")),
            cpu,
            "threads, {problem}"
        );
        for strategy in ["auto", "sweep", "host-exchange", "device-put", "persistent"] {
            let line = format!("run -n {gpus} -- crosswarp {solve} cuda --strategy {strategy}");
            assert_eq!(bits(&line), cpu, "{line}");
        }
    }
}

/// Hosts that share nothing, one PE each: by the strategy that is chosen there, and by the one whose name is given. The
/// kernels of none wait for another PE, so PEs may share a GPU.
#[test]
fn gpus_of_hosts_give_the_bits_of_the_cpu() {
    let Some(gpus) = gpus("gpus_of_hosts_give_the_bits_of_the_cpu") else {
        return;
    };
    let hosts = gpus.max(2);
    let on_hosts = |line: &str| {
        let mut command = common::crosswarp();
        command.args(line.split(' '));
        command.env("CROSSWARP_FAKE_HOSTS", hosts.to_string());
        command.output().unwrap()
    };
    for problem in [
        "laplace1d --points 300001 --max-sweeps 300 --tolerance 0",
        "laplace2d --nx 700 --ny 500 --method jacobi --max-sweeps 203 --tolerance 0",
        "laplace2d --preset nvidia --nx 640 --ny 700 --max-sweeps 150 --tolerance 0 --dtype f64",
        "laplace2d --nx 513 --ny 513 --dtype f64",
        "laplace3d --nx 65 --ny 50 --nz 40",
    ] {
        let solve = format!("solve {problem} --json --history /dev/null --backend");
        let bits = |output: &std::process::Output| {
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(0 | 3)),
                "{problem}: {err}"
            );
            let solved: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            ["sweeps", "cycles", "history", "field_sha256"].map(|name| solved[name].clone())
        };
        let cpu = bits(&common::run(&format!("{solve} cpu --pes 2")));
        // Cycles have none.
        let strategies: &[&str] = match problem.contains("sweeps") {
            true => &["", " --strategy host-exchange"],
            false => &[""],
        };
        for strategy in strategies {
            let line = format!("run -n {hosts} -- crosswarp {solve} cuda{strategy}");
            assert_eq!(bits(&on_hosts(&line)), cpu, "{line}");
        }
    }
    if gpus > 1 {
        // They are of several hosts indeed: what needs one is refused.
        let problem = "laplace2d --method jacobi --max-sweeps 5";
        let line = format!(
            "run -n {hosts} -- crosswarp solve {problem} --backend cuda --strategy persistent"
        );
        let output = on_hosts(&line);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("is on another host"), "{err}");
    }
}

#[test]
fn a_solve_compiles_what_it_launches_and_no_more() {
    if gpus("a_solve_compiles_what_it_launches_and_no_more").is_none() {
        return;
    }
    for (problem, sources) in [
        ("laplace1d --points 3001", 1),
        ("laplace1d --points 3001 --strategy sweep", 1),
        // The large kernel, and what is between passes.
        ("laplace2d --method jacobi", 2),
        ("laplace2d --method jacobi --strategy sweep", 2),
        ("laplace2d --method jacobi --strategy device-put", 2),
        // A grid that wraps around: too large for the chip, it is passed over; on the chip its first sweep is not made there.
        ("laplace2d --preset nvidia", 2),
        ("laplace2d --preset nvidia --nx 256 --ny 256", 3),
        // Three kernels of the finest level, the tiles of the others, the small levels, what is beside passes.
        ("laplace2d", 6),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let output = common::crosswarp()
            .args(["solve", "--backend", "cuda", "--pes", "1"])
            .args(problem.split(' '))
            .args(["--quiet", "--dtype", "f64"])
            .env("CROSSWARP_CACHE", &cache)
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{err}");
        let compiled = cache.read_dir().unwrap().count();
        assert_eq!(compiled, sources, "{problem}: {err}");
    }
}

#[test]
fn killing_a_pe_ends_the_others_and_says_which() {
    let Some(gpus) = gpus("killing_a_pe_ends_the_others_and_says_which") else {
        return;
    };
    let pes = gpus.max(2);
    // Those that can wait in kernels.
    let strategies: &[&str] = match gpus {
        1 => &["sweep"],
        _ => &["sweep", "host-exchange", "device-put", "persistent"],
    };
    let problem = "laplace2d --nx 2000 --ny 2000 --tolerance 0 --max-sweeps 1000000000 --json";
    for strategy in strategies {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = folder.path().join("c").display().to_string();
        let line = format!(
            "run -n {pes} -- crosswarp solve {problem} --backend cuda --strategy {strategy} --checkpoint-every 1000"
        );
        let launcher = Command::new(assert_cmd::cargo::cargo_bin!("crosswarp"))
            .args(line.split(' '))
            .args(["--checkpoint", &checkpoint])
            .env("CROSSWARP_HEAP", "64M")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Then the sweeps run.
        common::wait_for(&checkpoint);
        let found = common::children(launcher.id());
        assert_eq!(found.len(), pes, "{strategy}: ended before it was killed");
        common::signal("KILL", found[1]);
        let output = launcher.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(137), "{strategy}: {err}");
        let said = "PE 1 was killed by signal 9 (SIGKILL)";
        assert!(err.contains(said), "{strategy}: {err}");
        assert!(found.into_iter().all(common::has_ended), "{strategy}");
    }
}
