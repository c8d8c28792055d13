//! Other launchers on hosts that are namespaces: they start worlds over these, and what dies there ends all of it.
//! A launcher that is not installed is skipped by name, or fails if CROSSWARP_REQUIRE_HOSTS is 1.

use crate::bed::{Bed, Run, address, in_role};
use crate::common::{has_ended, signal, until};
use crate::slurm::Slurm;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Who starts the processes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// Somebody who sets the variables that `torchrun` sets.
    Variables,
    /// PyTorch's, one on each host.
    Torchrun,
    /// MPICH's, which speaks PMI-1.
    Hydra,
    /// Open MPI's, which has PMIx.
    OpenMpi,
    /// Slurm's, with this exchange.
    Srun(&'static str),
}

const ALL: [By; 6] = [
    By::Variables,
    By::Torchrun,
    By::Hydra,
    By::OpenMpi,
    By::Srun("pmi2"),
    By::Srun("pmix"),
];

impl By {
    fn is_there(self) -> bool {
        let name = match self {
            Self::Variables => return true,
            Self::Torchrun => "torchrun",
            Self::Hydra => "mpiexec.hydra",
            Self::OpenMpi => "mpirun.openmpi",
            Self::Srun(_) => "srun",
        };
        let there = match self {
            Self::Srun(_) => Slurm::is_installed(),
            // `torchrun` has no `--version`.
            _ => Command::new(name).arg("--help").output().is_ok(),
        };
        let required = std::env::var_os("CROSSWARP_REQUIRE_HOSTS").is_some();
        assert!(there || !required, "{name} is not there");
        if !there {
            eprintln!("skipped: {name} is not there");
        }
        there
    }

    /// What has to serve on the first hosts before it starts anything.
    fn needs(self, bed: &Bed, folder: &Path, hosts: usize) -> Option<Slurm> {
        matches!(self, Self::Srun(_)).then(|| Slurm::start(bed, folder, hosts))
    }

    /// Starts PEs in `role` on the first hosts, so many on each: one run, or one for each PE. A host is lost of which nothing
    /// has been heard for `patience` seconds.
    fn start(
        self,
        bed: &Bed,
        folder: &Path,
        pes: &[usize],
        role: &str,
        patience: &str,
        slurm: Option<&Slurm>,
    ) -> Vec<Run> {
        let program = in_role(role);
        let n: usize = pes.iter().sum();
        let all = [
            ("CROSSWARP_HEAP", "64M"),
            ("CROSSWARP_BEAT", "0.5"),
            ("CROSSWARP_PATIENCE", patience),
        ];
        let on = |host: usize| {
            let mut command = bed.script(&["run", &host.to_string()]);
            command.envs(all).env_remove("RUST_BACKTRACE");
            command
        };
        let rsh = folder.join("rsh");
        std::fs::write(&rsh, format!("#!/bin/sh\nexec {} \"$@\"\n", Bed::rsh())).unwrap();
        std::fs::set_permissions(&rsh, std::fs::Permissions::from_mode(0o700)).unwrap();
        let list: Vec<String> = (1..)
            .zip(pes)
            .map(|(host, pes)| format!("{}:{pes}", address(host)))
            .collect();
        let secret = folder.join("secret");
        std::fs::write(&secret, "00112233445566778899aabbccddeeff\n").unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        let meets = format!("{}:29600", address(1));
        match self {
            Self::Variables => {
                let mut runs = Vec::new();
                for (host, &local) in (1..).zip(pes) {
                    for pe in 0..local {
                        let mut command = on(host);
                        let words = [
                            ("RANK", runs.len().to_string()),
                            ("WORLD_SIZE", n.to_string()),
                            ("LOCAL_RANK", pe.to_string()),
                            ("LOCAL_WORLD_SIZE", local.to_string()),
                            ("CROSSWARP_BOOTSTRAP", meets.clone()),
                        ];
                        command.envs(words).env("CROSSWARP_SECRET_FILE", &secret);
                        runs.push(Run::of(command.args(&program)));
                    }
                }
                runs
            }
            Self::Torchrun => {
                let start = |(host, local): (usize, &usize)| {
                    let mut command = on(host);
                    command.env("CROSSWARP_BOOTSTRAP", &meets);
                    command.env("CROSSWARP_SECRET_FILE", &secret);
                    command.args(["torchrun", "--no_python", "--monitor_interval", "0.1"]);
                    // What PEs say on standard output comes back, too. (Debian's, which a newer Python runs than it was
                    // made for, takes no other value, nor the default.)
                    command.args(["--redirects", "1", "--tee", "1", "--log_dir"]);
                    command.arg(folder).args(["--rdzv_backend", "static"]);
                    // Its own exchange is at another port of the first host.
                    command.args(["--master_addr", &address(1), "--master_port", "29500"]);
                    command.args(["--nnodes", &pes.len().to_string()]);
                    command.args(["--node_rank", &(host - 1).to_string()]);
                    command.args(["--nproc_per_node", &local.to_string()]);
                    Run::of(command.args(&program))
                };
                (1..).zip(pes).map(start).collect()
            }
            Self::Hydra => {
                let mut command = on(1);
                command.args(["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec"]);
                command.arg(&rsh).args(["-iface", "eth0", "-hosts"]);
                command.arg(list.join(",")).args(["-n", &n.to_string()]);
                vec![Run::of(command.args(&program))]
            }
            Self::OpenMpi => {
                let mut command = on(1);
                command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
                command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                command.args(["mpirun.openmpi", "--oversubscribe", "--map-by", "slot"]);
                command.args(["--mca", "plm", "rsh", "--mca", "plm_rsh_agent"]);
                command.arg(&rsh);
                for what in ["oob", "btl"] {
                    command.args(["--mca", &format!("{what}_tcp_if_include"), "eth0"]);
                }
                for (name, _) in all {
                    command.args(["-x", name]);
                }
                command.args(["-H", &list.join(","), "-np", &n.to_string()]);
                vec![Run::of(command.args(&program))]
            }
            Self::Srun(exchange) => {
                // A line for each process, which is where it goes.
                let places = (1..)
                    .zip(pes)
                    .flat_map(|(host, &n)| vec![bed.host_name(host); n]);
                let file = folder.join("places");
                std::fs::write(&file, places.collect::<Vec<_>>().join("\n")).unwrap();
                let slurm = slurm.expect("its daemons");
                let mut command = on(1);
                command.env("SLURM_CONF", slurm.conf(bed, 1));
                command.env("SLURM_HOSTFILE", &file);
                command.args(["srun", "--distribution=arbitrary", "-n", &n.to_string()]);
                // As it may be set: who is alone then ends all.
                command.args([&format!("--mpi={exchange}"), "--kill-on-bad-exit=1"]);
                vec![Run::of(command.args(&program))]
            }
        }
    }
}

/// The world that `by` starts on these hosts ends well.
fn passes(by: By, pes: &[usize], role: &str) {
    let Some(bed) = by.is_there().then(|| Bed::up(pes.len())).flatten() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let slurm = by.needs(&bed, folder.path(), pes.len());
    // Beside other work a host may be silent for long.
    for run in by.start(&bed, folder.path(), pes, role, "250", slurm.as_ref()) {
        // An agent of torchrun reads most of torch on each host, before a PE starts: beside other work, for minutes.
        let limit = std::time::Duration::from_secs(if by == By::Torchrun { 300 } else { 60 });
        let (code, out, err) = run.end_within(limit);
        assert_eq!(code, 0, "{role} on {pes:?} by {by:?}: {out}\n{err}");
    }
    if let Some(slurm) = slurm {
        slurm.end(&bed, pes.len());
    }
    bed.is_empty();
}

#[test]
fn variables_start_worlds_over_hosts() {
    passes(By::Variables, &[2, 1], "sums");
    passes(By::Variables, &[1, 1, 1], "order");
}

#[test]
fn torchrun_starts_worlds_over_hosts() {
    passes(By::Torchrun, &[2, 1], "sums");
    passes(By::Torchrun, &[1, 1, 1], "order");
}

#[test]
fn mpichs_launcher_starts_worlds_over_hosts() {
    passes(By::Hydra, &[2, 1], "sums");
    passes(By::Hydra, &[1, 1, 1], "order");
}

#[test]
fn open_mpis_launcher_starts_worlds_over_hosts() {
    passes(By::OpenMpi, &[2, 1], "sums");
    passes(By::OpenMpi, &[1, 1, 1], "order");
}

#[test]
fn srun_starts_worlds_over_hosts() {
    for exchange in ["pmi2", "pmix"] {
        passes(By::Srun(exchange), &[2, 1], "sums");
        passes(By::Srun(exchange), &[1, 1, 1], "order");
    }
}

/// Two PEs that wait, one a host; `harm` is done to their hosts, given their processes. Both end, and one of `words` is
/// said of it, unless a launcher that ends PEs by itself was quicker.
fn ends(by: By, harm: impl Fn(&Bed, [u32; 2]), words: &[&str]) {
    let Some(bed) = by.is_there().then(|| Bed::up(2)).flatten() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let slurm = by.needs(&bed, folder.path(), 2);
    let runs = by.start(&bed, folder.path(), &[1, 1], "wait", "4", slurm.as_ref());
    let mut pids = [0; 2];
    for run in &runs {
        for ready in run.marked("ready", 2 / runs.len()) {
            let (pe, pid) = ready.split_once(' ').unwrap();
            pids[pe.parse::<usize>().unwrap()] = pid.parse().unwrap();
        }
    }
    // They have heard of each other by now, or will not miss each other.
    std::thread::sleep(std::time::Duration::from_secs(1));
    harm(&bed, pids);
    until(&format!("PEs go on, started by {by:?}"), || {
        pids.into_iter().all(has_ended)
    });
    // What else there is of the launcher is its own to end, once it can.
    bed.mend(1, 2);
    bed.mend(2, 1);
    let mut said = String::new();
    for run in runs {
        let (code, out, err) = run.end();
        assert_ne!(code, 0, "{by:?}: {out}\n{err}");
        said += &err;
    }
    let told = words.iter().any(|word| said.contains(word));
    assert!(
        told || by != By::Variables,
        "none of {words:?}, started by {by:?}: {said}"
    );
    if let Some(slurm) = slurm {
        slurm.end(&bed, 2);
    }
    bed.is_empty();
}

fn cut(ways: &'static [(usize, usize)]) -> impl Fn(&Bed, [u32; 2]) {
    move |bed, _| ways.iter().for_each(|&(from, to)| bed.cut(from, to))
}

/// A cut is noticed, whoever has started the PEs. Which side speaks depends on what it can still hear.
const LOST: &[&str] = &["host 1 (PEs 1) is lost", "host 0 (PEs 0) is lost"];

#[test]
fn a_host_that_is_cut_off_ends_worlds_of_variables() {
    ends(By::Variables, cut(&[(1, 2), (2, 1)]), LOST);
    ends(By::Variables, cut(&[(2, 1)]), LOST);
}

#[test]
fn a_host_that_is_cut_off_ends_worlds_of_other_launchers() {
    ends(By::Hydra, cut(&[(1, 2), (2, 1)]), LOST);
    ends(By::OpenMpi, cut(&[(1, 2), (2, 1)]), LOST);
    ends(By::Srun("pmix"), cut(&[(1, 2), (2, 1)]), LOST);
}

#[test]
fn a_pe_that_is_killed_ends_worlds_of_other_launchers() {
    for by in ALL {
        let kill = |_: &Bed, pids: [u32; 2]| signal("KILL", pids[1]);
        ends(by, kill, &["PE 1 (host 1) has ended without leaving"]);
    }
}

#[test]
fn an_agent_that_is_killed_ends_worlds_of_other_launchers() {
    let is_agent = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "crosswarp agent")
    };
    for by in ALL {
        let kill = |bed: &Bed, _: [u32; 2]| {
            let agent = bed.pids(2).into_iter().find(is_agent);
            signal("KILL", agent.expect("an agent"));
        };
        ends(by, kill, LOST);
    }
}
