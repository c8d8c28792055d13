//! Programs written for NVSHMEM on hosts that share nothing, all played by this one: what needs no GPU.

mod support;

use crosswarp_shmem::{HostList, Launch, Outcome};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::*;

/// What has not ended by then hangs.
const WATCHDOG: Duration = Duration::from_secs(300);

#[test]
#[ignore = "the launcher of a host of the worlds below, which start it"]
fn host_of_a_world() {
    crosswarp_shmem::run_for_launcher().unwrap();
}

/// Runs `program` on `n` PEs on hosts as `CROSSWARP_FAKE_HOSTS` has them.
fn launch(hosts: &'static str, n: usize, program: &Path, arguments: &[&str]) -> Outcome {
    let test = std::env::current_exe().unwrap();
    let role = ["--ignored", "--exact", "host_of_a_world", "--nocapture"];
    let command = [test.into()].into_iter().chain(role.map(Into::into));
    let hosts = HostList::fake_as(Some(hosts), n, command.collect()).unwrap();
    Launch::new(n, "env")
        // No driver would let itself be used with this.
        .args(["CUDA_VISIBLE_DEVICES=".as_ref(), program.as_os_str()])
        .args(arguments)
        .heap_bytes(4 << 20)
        .timeout(WATCHDOG)
        .hosts(hosts.expect("several hosts"))
        .run()
        .unwrap()
}

fn compile(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, text).unwrap();
    let mut gcc = Command::new("gcc");
    succeed(
        gcc.arg(&source)
            .arg("-o")
            .arg(&program)
            .args(linked())
            .arg("-ldl"),
    );
    program
}

/// Its arguments: for each PE of the world, comma after comma, its number on its host, how many are there, and how many
/// PEs have its number on theirs; -1 where these are no row.
const TEAMS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
void nvshmem_init(void); void nvshmem_finalize(void); int nvshmem_my_pe(void); int nvshmem_n_pes(void);
int nvshmem_team_my_pe(int); int nvshmem_team_n_pes(int); int nvshmem_team_translate_pe(int, int, int);
int nvshmem_team_split_strided(int, int, int, int, const void *, long, int *); void nvshmem_team_destroy(int);
struct config { int version, contexts; unsigned long id; };
int nvshmemx_team_init(int *, struct config *, long, int, int);
#define CHECK(what) if (!(what)) { fprintf(stderr, "PE %d: not so: %s\n", me, #what); exit(1); }
enum { WORLD, SHARED, NODE, SAME };
int main(int count, char **words) {
    nvshmem_init();
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), number, here, same, part;
    CHECK(count == n + 1 && sscanf(words[me + 1], "%d,%d,%d", &number, &here, &same) == 3);
    CHECK(nvshmem_team_my_pe(WORLD) == me && nvshmem_team_n_pes(WORLD) == n);
    for (int team = SHARED; team <= NODE; ++team) {
        CHECK(nvshmem_team_my_pe(team) == number && nvshmem_team_n_pes(team) == here);
        CHECK(nvshmem_team_translate_pe(team, number, WORLD) == me);
        CHECK(nvshmem_team_translate_pe(team, 0, WORLD) == me - number);
        /* All of a host split its team, and what they get is theirs alone. */
        CHECK(nvshmem_team_split_strided(team, here - 1, 1, 1, NULL, 0, &part) == 0);
        CHECK((part != -1) == (number == here - 1));
        if (part != -1) nvshmem_team_destroy(part);
    }
    CHECK(nvshmem_team_n_pes(SAME) == same);
    if (same == -1) CHECK(nvshmem_team_my_pe(SAME) == -1);
    if (same > 0) {
        CHECK(nvshmem_team_translate_pe(SAME, nvshmem_team_my_pe(SAME), WORLD) == me);
        CHECK(nvshmem_team_translate_pe(SAME, nvshmem_team_my_pe(SAME), NODE) == number);
        for (int round = 0; round < 3; ++round) {
            CHECK(nvshmem_team_split_strided(SAME, 0, 1, same, NULL, 0, &part) == 0);
            CHECK(nvshmem_team_n_pes(part) == same);
            nvshmem_team_destroy(part);
        }
    }
    /* Teams across hosts, with and without a parent. */
    CHECK(nvshmem_team_split_strided(WORLD, 0, 2, (n + 1) / 2, NULL, 0, &part) == 0);
    CHECK(me % 2 ? part == -1 : nvshmem_team_my_pe(part) == me / 2);
    nvshmem_team_destroy(part);
    for (int round = 0; round < 5; ++round) {
        struct config config = {1, 0, 100 + 2 * round + me % 2};
        CHECK(nvshmemx_team_init(&part, &config, 2, (n + 1 - me % 2) / 2, me / 2) == 0);
        CHECK(nvshmem_team_my_pe(part) == me / 2);
        nvshmem_team_destroy(part);
    }
    nvshmem_finalize();
    return 0;
}
"#;

#[test]
fn teams_know_of_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "teams", TEAMS);
    for (hosts, arguments) in [
        ("2", &["0,1,2", "0,1,2"][..]),
        ("2", &["0,2,2", "1,2,2", "0,2,2", "1,2,2"]),
        ("1+3", &["0,1,2", "0,3,2", "1,3,1", "2,3,1"]),
        // PEs 0, 1 and 3 are each the first of a host, and no row.
        ("1+2+2", &["0,1,-1", "0,2,-1", "1,2,2", "0,2,-1", "1,2,2"]),
    ] {
        let n = arguments.len();
        let outcome = launch(hosts, n, &program, arguments);
        let ended = (outcome.code(), &outcome.lost);
        assert_eq!(ended, (0, &None), "{n} PEs on {hosts}: {outcome:?}");
    }
}

const UNIT: &str = r#"
#include <stdio.h>
#include <string.h>
void nvshmem_init(void); void nvshmem_finalize(void); void *nvshmem_malloc(unsigned long); void nvshmem_barrier_all(void);
int nvshmem_my_pe(void); int nvshmem_n_pes(void);
void nvshmem_cw_register_1(void *(*)(void)); void nvshmem_cw_register_of_hosts_1(void *(*)(void));
static void *address(void) { return NULL; }
int main(int count, char **words) {
    nvshmem_init();
    /* Of one PE, and all get to know. */
    if (nvshmem_my_pe() == nvshmem_n_pes() - 1)
        (strcmp(words[1], "one") ? nvshmem_cw_register_of_hosts_1 : nvshmem_cw_register_1)(address);
    freopen(words[2], "a", stderr);
    void *none = nvshmem_malloc(100);
    nvshmem_barrier_all();
    nvshmem_finalize();
    return none != NULL || count != 3;
}
"#;

#[test]
fn kernels_that_reach_one_host_alone_are_refused_on_all_pes() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "unit", UNIT);
    for (kind, reason) in [
        ("one", "compile all units with -DNVSHMEM_CW_HOSTS"),
        ("several", "that need a GPU find none"),
    ] {
        let said = folder.path().join(kind);
        let outcome = launch("1+2", 3, &program, &[kind, said.to_str().unwrap()]);
        assert_eq!(outcome.code(), 0, "{outcome:?}");
        let said = std::fs::read_to_string(&said).unwrap();
        for pe in 0..3 {
            let line = said
                .lines()
                .find(|line| line.starts_with(&format!("crosswarp: PE {pe}: ")));
            assert!(line.is_some_and(|line| line.contains(reason)), "{said}");
        }
    }
}

/// Beside a command that says what it is asked to do.
#[test]
fn nvshmrun_takes_hosts() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let files = crosswarp_nvshmem::installation::files();
    let script = files.iter().find(|file| file.path == "bin/nvshmrun");
    let path = |name: &str| folder.path().join(name);
    for (name, content) in [
        ("nvshmrun", script.unwrap().content.as_slice()),
        ("crosswarp", b"#!/bin/sh\necho \"$*\"\n"),
    ] {
        std::fs::write(path(name), content).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path(name), executable).unwrap();
    }
    let run = |arguments: &str| {
        let mut command = Command::new(path("nvshmrun"));
        let arguments = arguments.split(' ').chain(["./a", "-n", "b c"]);
        command.args(arguments).output().unwrap()
    };
    for (arguments, expected) in [
        ("-np 2", "run -n 2"),
        ("--", "run -n 1"),
        ("-n 4 -ppn 4", "run -n 4"),
        ("-hosts a,b", "run --hosts a,b"),
        ("-n 4 -hosts a,b", "run -n 4 --hosts a,b"),
        ("-ppn 2 -hosts a,b", "run --hosts a:2,b:2"),
        ("-n 3 -ppn 2 -hosts a,b,c", "run -n 3 --hosts a:2,b:1"),
    ] {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, format!("{expected} -- ./a -n b c\n"), "{arguments}");
    }
    for (arguments, reason) in [
        ("-n 4 -ppn 2", "name the hosts by -hosts"),
        ("-x", "no option '-x'"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(reason), "{said}");
    }
}

/// A unit's constructor, as the header makes it.
const CONSTRUCTOR: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void nvshmem_cw_register_1(void *(*)(void)); void nvshmem_cw_register_of_hosts_1(void *(*)(void));
static void *address(void) { return NULL; }
static void *idle(void *nothing) { pause(); return nothing; }
__attribute__((constructor)) static void unit(void) {
    pthread_t thread;
    if (getenv("THREADS")) pthread_create(&thread, NULL, idle, NULL);
    (getenv("ONE_HOST") ? nvshmem_cw_register_1 : nvshmem_cw_register_of_hosts_1)(address);
}
int main(void) {
    const char *mode = getenv("CUDA_MODULE_LOADING");
    puts(mode ? mode : "unset");
}
"#;

#[test]
fn units_of_several_hosts_have_their_kernels_loaded_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "unit", CONSTRUCTOR);
    for (variable, expected) in [
        (("NOTHING", ""), "EAGER\n"),
        (("CUDA_MODULE_LOADING", "LAZY"), "LAZY\n"),
        (("ONE_HOST", "1"), "unset\n"),
        // Others may read the environment.
        (("THREADS", "1"), "unset\n"),
    ] {
        let mut command = Command::new(&program);
        command.env_remove("CUDA_MODULE_LOADING");
        let output = command.env(variable.0, variable.1).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, expected, "{variable:?}");
    }
}
