//! OpenSSH between the hosts, which is what runs use where no other remote shell is named.

use crate::bed::{Bed, Run, address};
use crate::common::{signal, until};
use crate::ends::ended;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Servers on all hosts, and what lets clients in. They end with this.
struct Servers {
    servers: Vec<Child>,
    folder: tempfile::TempDir,
}

impl Servers {
    /// `None`, said by name, without OpenSSH; a failure if `CROSSWARP_REQUIRE_HOSTS` is set.
    fn start(bed: &Bed, hosts: usize) -> Option<Self> {
        let sshd = Path::new("/usr/sbin/sshd");
        let client = Command::new("ssh").arg("-V").stderr(Stdio::null()).status();
        if !sshd.exists() || client.is_err() {
            let required = std::env::var_os("CROSSWARP_REQUIRE_HOSTS").is_some();
            assert!(!required, "no OpenSSH");
            eprintln!("skipped: OpenSSH's server or client is not there");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &file(key)])
                .status();
            assert!(made.unwrap().success());
        }
        let write = |name: &str, text: String| std::fs::write(file(name), text).unwrap();
        write(
            "ssh_config",
            format!(
                "IdentityFile {}\nIdentitiesOnly yes\nBatchMode yes\nStrictHostKeyChecking no\n\
                 UserKnownHostsFile /dev/null\nLogLevel ERROR\n",
                file("user")
            ),
        );
        // Who says `ssh` in this folder's name gets it with these settings.
        let which = Command::new("sh").args(["-c", "command -v ssh"]).output();
        let ssh = String::from_utf8(which.unwrap().stdout).unwrap();
        write(
            "ssh",
            format!(
                "#!/bin/sh\nexec {} -F {} \"$@\"\n",
                ssh.trim(),
                file("ssh_config")
            ),
        );
        let runs = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(file("ssh"), runs).unwrap();
        std::fs::create_dir_all("/run/sshd").unwrap();
        let server = |host: usize| {
            let name = format!("sshd_config{host}");
            write(
                &name,
                format!(
                    "ListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}.pub\nStrictModes no\n\
                     UsePAM no\nPidFile none\nPermitRootLogin prohibit-password\n",
                    address(host),
                    file("host"),
                    file("user")
                ),
            );
            bed.script(&["run", &host.to_string()])
                .arg(sshd)
                .args(["-D", "-f", &file(&name)])
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        let servers: Vec<Child> = (1..=hosts).map(server).collect();
        for host in 1..=hosts {
            until("a server does not listen", || listens(bed, host));
        }
        Some(Self { servers, folder })
    }

    /// `PATH` with the client that is let in.
    fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap();
        format!("{}:{path}", self.folder.path().display())
    }

    fn end(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether somebody listens at port 22 of a host's address.
fn listens(bed: &Bed, host: usize) -> bool {
    let sockets = bed.run(host, &["cat", "/proc/net/tcp"]).stdout;
    let address: Ipv4Addr = address(host).parse().unwrap();
    // As the kernel prints it: address and port in hexadecimal digits, the state `TCP_LISTEN`.
    let at = format!("{:08X}:0016", u32::from_le_bytes(address.octets()));
    let sockets = String::from_utf8(sockets).unwrap();
    sockets.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1) == Some(&&*at) && fields.get(3) == Some(&"0A")
    })
}

#[test]
fn runs_go_by_ssh() {
    let Some(bed) = Bed::up(2) else { return };
    let Some(mut servers) = Servers::start(&bed, 2) else {
        return;
    };
    let bed = bed.with("PATH", servers.path()).by_default();
    // Standard streams, labels, and words that a shell would take apart.
    let mut run = bed.start_role(&[1, 2], &["--label"], "line");
    writeln!(run.input.as_mut().unwrap(), "by ssh").unwrap();
    let (code, out, err) = run.end();
    assert_eq!(code, 0, "{err}");
    for pe in 0..3 {
        let line = format!("[{pe}] line by ssh");
        assert!(out.lines().any(|said| said == line), "{out}");
    }
    let say = ["sh", "-c", "printf '%s\n' \"$0\"", "a 'b' \"c\" $d; e"];
    let (code, out, err) = bed.start(&[1, 1], &[], &say).end();
    assert_eq!(code, 0, "{err}");
    assert_eq!(out.matches("a 'b' \"c\" $d; e\n").count(), 2, "{out}");
    let fails = ["sh", "-c", "test $CROSSWARP_PE = 0 || exit 7"];
    let (code, _, err) = bed.start(&[1, 1], &[], &fails).end();
    assert_eq!(code, 7, "{err}");
    // What is killed on either side leaves nothing on the other. Servers that serve end with their clients.
    let (run, pids) = waiting(&bed);
    signal("KILL", pids[1]);
    let killed = format!("host {}: PE 1 was killed by signal 9 (SIGKILL)", address(2));
    let (code, _, err) = run.end();
    assert!(code != 0 && err.contains(&killed), "{err}");
    let (run, _) = waiting(&bed);
    signal("KILL", run.root());
    servers.end();
    ended(&bed, run, &[]);
}

/// A PE that waits on each of two hosts, and their processes.
fn waiting(bed: &Bed) -> (Run, [u32; 2]) {
    let run = bed.start_role(&[1, 1], &[], "wait");
    let mut pids = [0; 2];
    for ready in run.marked("ready", 2) {
        let (pe, pid) = ready.split_once(' ').unwrap();
        pids[pe.parse::<usize>().unwrap()] = pid.parse().unwrap();
    }
    (run, pids)
}
