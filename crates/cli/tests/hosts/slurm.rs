//! Slurm on the hosts: its key service and controller on the first, and a daemon that starts steps on each.

use crate::bed::{Bed, address};
use crate::common::{has_ended, until};
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// Daemons, and what they write and read. They end with this.
pub struct Slurm {
    daemons: Vec<Child>,
    folder: PathBuf,
    /// What each writes on standard error.
    logs: Vec<PathBuf>,
}

impl Slurm {
    /// Whether it is installed, with what its plugin for PMIx opens.
    pub fn is_installed() -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let there = |name: &str| {
            let mut folders = std::env::split_paths(&path);
            let system = ["/usr/sbin", "/usr/bin"].map(PathBuf::from);
            folders.any(|folder| folder.join(name).exists())
                || system.iter().any(|folder| folder.join(name).exists())
        };
        ["munged", "slurmctld", "slurmd", "srun", "sinfo"]
            .into_iter()
            .all(there)
    }

    /// Starts it in `folder` for the first `hosts` hosts, and waits until it takes jobs.
    pub fn start(bed: &Bed, folder: &Path, hosts: usize) -> Self {
        let folder = folder.join("slurm");
        // Who could write there could write keys.
        let private = |path: &Path| {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(path).unwrap();
        };
        private(&folder);
        let mut key = [0; 128];
        let mut random = std::fs::File::open("/dev/urandom").unwrap();
        random.read_exact(&mut key).unwrap();
        let mut file = std::fs::OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600);
        let written = file.open(folder.join("key"));
        std::io::Write::write_all(&mut written.unwrap(), &key).unwrap();
        let at = folder.display();
        let mut conf = format!(
            "ClusterName=bed\nSlurmctldHost={}({})\nSlurmUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={at}/munge.sock\n\
             StateSaveLocation={at}\nSlurmctldPidFile={at}/slurmctld.pid\n\
             SlurmdSpoolDir={at}/%n/spool\nSlurmdPidFile={at}/%n/slurmd.pid\n\
             MailProg=/bin/true\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\n\
             SwitchType=switch/none\nJobAcctGatherType=jobacct_gather/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
             SlurmdParameters=config_overrides\nReturnToService=2\nKillWait=2\n\
             PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=FORCE:4\n",
            bed.host_name(1),
            address(1)
        );
        for host in 1..=hosts {
            // More processors than there may be: PEs share them.
            let (name, address) = (bed.host_name(host), address(host));
            writeln!(conf, "NodeName={name} NodeAddr={address} CPUs=8").unwrap();
        }
        let mut slurm = Self {
            daemons: Vec::new(),
            folder,
            logs: Vec::new(),
        };
        for host in 1..=hosts {
            let folder = slurm.folder.join(bed.host_name(host));
            private(&folder.join("spool"));
            let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
            write("slurm.conf", &conf);
            write("cgroup.conf", "CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n");
            // Sockets of two hosts would meet in one folder.
            write(
                "mpi.conf",
                &format!("PMIxCliTmpDirBase={}\n", folder.display()),
            );
        }
        let file = |name: &str| slurm.folder.join(name).display().to_string();
        let munged = [
            "--foreground".to_owned(),
            // A folder that only root can enter is safe where only root runs.
            "--force".to_owned(),
            format!("--key-file={}", file("key")),
            format!("--socket={}", file("munge.sock")),
            format!("--pid-file={}", file("munged.pid")),
            format!("--seed-file={}", file("munged.seed")),
        ];
        slurm.daemon(bed, 1, "munged", &munged);
        until("Slurm's key service does not start", || {
            slurm.folder.join("munge.sock").exists()
        });
        slurm.daemon(bed, 1, "slurmctld", &["-D".to_owned()]);
        for host in 1..=hosts {
            slurm.daemon(bed, host, "slurmd", &["-D".to_owned()]);
        }
        until("Slurm's nodes do not become idle", || {
            let mut sinfo = bed.script(&["run", "1", "sinfo", "-hN", "-o", "%T"]);
            let states = sinfo
                .env("SLURM_CONF", slurm.conf(bed, 1))
                .output()
                .unwrap();
            let states = String::from_utf8(states.stdout).unwrap();
            states.lines().filter(|&state| state == "idle").count() == hosts
        });
        slurm
    }

    /// What `SLURM_CONF` is on a host.
    pub fn conf(&self, bed: &Bed, host: usize) -> PathBuf {
        self.folder.join(bed.host_name(host)).join("slurm.conf")
    }

    /// Waits until nothing but the daemons is left on the hosts, which have then told each other that all steps have ended,
    /// and ends them.
    pub fn end(self, bed: &Bed, hosts: usize) {
        let daemons = ["munged", "slurmctld", "slurmscriptd", "slurmd"];
        let is_daemon = |pid: u32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| daemons.contains(&name.trim()))
        };
        for host in 1..=hosts {
            until(&format!("a step goes on on host {host}"), || {
                let mut pids = bed.pids(host).into_iter();
                pids.all(|pid| is_daemon(pid) || has_ended(pid))
            });
        }
    }

    fn daemon(&mut self, bed: &Bed, host: usize, name: &str, args: &[String]) {
        let log = self.folder.join(format!("{name}{host}.log"));
        self.logs.push(log.clone());
        let log = std::fs::File::create(log).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let started = bed
            .script(&["run", &host.to_string(), name])
            .args(args)
            .env("PATH", format!("{path}:/usr/sbin"))
            .env("SLURM_CONF", self.conf(bed, host))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.daemons.push(started.unwrap());
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in &self.logs {
                let lines = std::fs::read_to_string(log).unwrap_or_default();
                let last: Vec<&str> = lines.lines().rev().take(5).collect();
                eprintln!("{}: {last:?}", log.display());
            }
        }
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
