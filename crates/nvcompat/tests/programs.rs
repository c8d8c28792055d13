//! Programs written for NVSHMEM: those of `tests/programs` compile; what needs no GPU runs, and what needs one says so.

mod support;

use crosswarp_cuda::Device;
use crosswarp_shmem::Launch;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::*;

const WATCHDOG: Duration = Duration::from_secs(300);

/// Programs of the host alone need no nvcc: they declare what they call.
fn compile(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, text).unwrap();
    succeed(
        Command::new("gcc")
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .args(linked()),
    );
    program
}

const QUESTIONS: &str = r#"
#include <stdio.h>
void nvshmem_init(void); void nvshmem_finalize(void);
int nvshmem_my_pe(void); int nvshmem_n_pes(void); int nvshmem_team_my_pe(int); int nvshmem_team_n_pes(int);
int nvshmemx_init_status(void); int nvshmem_team_translate_pe(int, int, int);
int nvshmem_team_split_strided(int, int, int, int, const void *, long, int *);
int nvshmem_team_split_2d(int, int, const void *, long, int *, const void *, long, int *);
void nvshmem_team_destroy(int);
#define CHECK(what) if (!(what)) { fprintf(stderr, "not so: %s\n", #what); return 1; }
int main(void) {
    CHECK(nvshmemx_init_status() == 0);
    nvshmem_init();
    nvshmem_init();
    CHECK(nvshmemx_init_status() == 1);
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    for (int team = 0; team < 3; ++team) CHECK(nvshmem_team_my_pe(team) == me && nvshmem_team_n_pes(team) == n);
    CHECK(nvshmem_team_my_pe(3) == 0 && nvshmem_team_n_pes(3) == 1);
    CHECK(nvshmem_team_my_pe(-1) == -1 && nvshmem_team_my_pe(63) == -1 && nvshmem_team_n_pes(1000) == -1);
    int even, x, y, again[40];
    CHECK(nvshmem_team_split_strided(0, 0, 2, (n + 1) / 2, NULL, 0, &even) == 0);
    CHECK(me % 2 == 0 ? nvshmem_team_my_pe(even) == me / 2 : even == -1);
    if (even != -1) {
        int last = nvshmem_team_n_pes(even) - 1, alone;
        CHECK(nvshmem_team_translate_pe(even, last, 0) == 2 * last);
        CHECK(nvshmem_team_translate_pe(0, 1, even) == -1);
        CHECK(nvshmem_team_split_strided(even, last, 1, 1, NULL, 0, &alone) == 0);
        CHECK((alone != -1) == (me == 2 * last));
    }
    CHECK(nvshmem_team_split_2d(0, 2, NULL, 0, &x, NULL, 0, &y) == 0);
    CHECK(nvshmem_team_my_pe(x) == me % 2 && nvshmem_team_my_pe(y) == me / 2 && x != y);
    for (int i = 0; i < 40; ++i) CHECK(nvshmem_team_split_strided(0, 0, 1, n, NULL, 0, &again[i]) == 0);
    for (int i = 0; i < 40; ++i) nvshmem_team_destroy(again[i]);
    for (int i = 0; i < 40; ++i) CHECK(nvshmem_team_split_strided(0, 0, 1, n, NULL, 0, &again[i]) == 0);
    CHECK(nvshmem_team_split_strided(0, 0, 1, n + 1, NULL, 0, &even) != 0 && even == -1);
    /* As many as there can be, less one: of the two of a split in two directions there is neither then. */
    int last;
    while (nvshmem_team_split_strided(0, 0, 1, n, NULL, 0, &even) == 0) last = even;
    nvshmem_team_destroy(last);
    CHECK(nvshmem_team_split_2d(0, 2, NULL, 0, &x, NULL, 0, &y) != 0 && x == -1 && y == -1);
    CHECK(nvshmem_team_split_strided(0, 0, 1, n, NULL, 0, &even) == 0 && even == last);
    nvshmem_finalize();
    CHECK(nvshmemx_init_status() == 1);
    nvshmem_finalize();
    CHECK(nvshmemx_init_status() == 0);
    return 0;
}
"#;

#[test]
fn beginning_teams_and_end_touch_no_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "questions", QUESTIONS);
    // No driver would let itself be used with this.
    for n in [1, 2, 5] {
        let outcome = Launch::new(n, "env")
            .args(["CUDA_VISIBLE_DEVICES=".as_ref(), program.as_os_str()])
            .heap_bytes(1 << 20)
            .timeout(WATCHDOG)
            .run()
            .unwrap();
        assert_eq!(outcome.code(), 0, "{n} PEs: {outcome:?}");
    }
}

const AS_THREADS: &str = r#"
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
struct id { int version; char bytes[124]; };
struct attributes { int version; void *mpi_comm; struct id id; int rank, n; };
int nvshmem_cw_spmd(int, void (*)(void *), void *);
void nvshmem_init(void); void nvshmem_finalize(void); int nvshmem_init_thread(int, int *);
int nvshmem_my_pe(void); int nvshmem_n_pes(void); int nvshmem_team_my_pe(int); int nvshmem_team_n_pes(int);
int nvshmemx_init_status(void); int nvshmemx_get_uniqueid(struct id *);
int nvshmemx_set_attr_uniqueid_args(int, int, const struct id *, struct attributes *);
int nvshmemx_init_attr(unsigned, struct attributes *);
int nvshmem_team_split_2d(int, int, const void *, long, int *, const void *, long, int *);
void nvshmem_team_destroy(int);
static atomic_int seen, failures;
#define CHECK(what) if (!(what)) { fprintf(stderr, "not so: %s\n", #what); ++failures; }
/* A thread beside the PEs makes no second world. */
static void pe(void *argument);
static void *beside(void *argument) {
    int provided = -1;
    CHECK(nvshmem_cw_spmd(2, pe, argument) != 0);
    CHECK(nvshmem_init_thread(3, &provided) != 0 && provided == -1);
    CHECK(nvshmemx_init_status() == 0);
    return NULL;
}
/* As much stack as main has, or most of it. */
static void deep(void) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
    size_t bytes = limit.rlim_cur == RLIM_INFINITY ? 8u << 20 : limit.rlim_cur;
    bytes -= bytes / 4;
    volatile char *field = alloca(bytes);
    for (size_t i = 0; i < bytes; i += 1024) field[bytes - 1 - i] = 1;
}
static void pe(void *argument) {
    int n = *(int *)argument, provided = -1, x, y;
    struct attributes attributes;
    struct id id;
    CHECK(nvshmemx_init_status() == 0);
    /* By an id it would be another world. */
    CHECK(nvshmemx_get_uniqueid(&id) == 0 && nvshmemx_set_attr_uniqueid_args(0, 1, &id, &attributes) == 0);
    CHECK(nvshmemx_init_attr(8, &attributes) != 0);
    nvshmem_init();
    int me = nvshmem_my_pe();
    CHECK(nvshmem_n_pes() == n && me >= 0 && me < n);
    seen |= 1 << me;
    deep();
    if (me == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, beside, argument) == 0 && pthread_join(thread, NULL) == 0);
    }
    CHECK(nvshmem_team_split_2d(0, 2, NULL, 0, &x, NULL, 0, &y) == 0);
    CHECK(nvshmem_team_my_pe(x) == me % 2 && nvshmem_team_my_pe(y) == me / 2);
    nvshmem_team_destroy(x);
    nvshmem_team_destroy(y);
    CHECK(nvshmem_cw_spmd(2, pe, argument) != 0);
    /* Again, and as often ended. */
    CHECK(nvshmem_init_thread(3, &provided) == 0 && provided == 3);
    nvshmem_finalize();
    CHECK(nvshmemx_init_status() == 1 && nvshmem_my_pe() == me);
    nvshmem_finalize();
    CHECK(nvshmemx_init_status() == 0 && nvshmem_init_thread(3, &provided) != 0);
}
/* Who leaves without a word is missed by name, not waited for. */
static void leaves(void *argument) {
    int x, y;
    nvshmem_init();
    if (nvshmem_my_pe() == 1) return;
    CHECK(nvshmem_team_split_2d(0, 2, NULL, 0, &x, NULL, 0, &y) != 0);
}
static void joins(void *argument) {
    nvshmem_init();
    CHECK(nvshmem_n_pes() == *(int *)argument);
    /* Some leave it to the world's end. */
    if (nvshmem_my_pe() % 2 == 0) nvshmem_finalize();
}
static long addresses(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    return pages;
}
int main(int argc, char **argv) {
    int n = 5;
    if (argc > 1) {
        n = 4;
        CHECK(nvshmem_cw_spmd(n, joins, &n) == 0);
        return failures != 0;
    }
    CHECK(nvshmem_cw_spmd(0, pe, &n) != 0 && nvshmem_cw_spmd(3, NULL, &n) != 0);
    CHECK(nvshmem_cw_spmd(n, pe, &n) == 0 && seen == 31);
    n = 2, seen = 0;
    CHECK(nvshmem_cw_spmd(n, pe, &n) == 0 && seen == 3);
    CHECK(nvshmem_cw_spmd(n, leaves, &n) == 0);
    CHECK(nvshmemx_init_status() == 0);
    /* A world's memory goes with it: all heaps of one are as large as the machine's memory. */
    long before = addresses();
    for (int i = 0; i < 8; ++i) CHECK(nvshmem_cw_spmd(n, joins, &n) == 0);
    CHECK(addresses() - before < 4 * sysconf(_SC_PHYS_PAGES));
    nvshmem_init();
    CHECK(nvshmem_my_pe() == 0 && nvshmem_n_pes() == 1 && nvshmem_cw_spmd(n, pe, &n) != 0);
    nvshmem_finalize();
    return failures != 0;
}
"#;

#[test]
fn pes_are_threads_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "as_threads", AS_THREADS);
    let command = || {
        let mut command = Command::new(&program);
        command.env("CUDA_VISIBLE_DEVICES", "");
        command
    };
    // PEs that pass messages: those who carry them end, too.
    succeed(command().arg("joins").env("CROSSWARP_FAKE_HOSTS", "2"));
    let output = succeed(&mut command());
    let said = String::from_utf8_lossy(&output.stderr);
    // Of five PEs and of two.
    for (text, times) in [
        ("joins its world by nvshmem_init", 7),
        ("is a PE already", 8),
        ("joins its world once", 7),
        ("both are needed", 2),
        ("has a world of threads; the next begins", 2),
        ("only these threads are PEs", 2),
    ] {
        assert_eq!(said.matches(text).count(), times, "{text}: {said}");
    }
    for pe in 0..5 {
        let line = format!("crosswarp: PE {pe}: nvshmem_init_thread: ");
        assert!(said.contains(&line), "{said}");
    }
    assert!(said.contains("PE 0: nvshmem_team_split_2d: "), "{said}");
}

const BY_ID: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
struct id { int version; char bytes[124]; };
struct attributes { int version; void *mpi_comm; struct id id; int rank, n; };
int nvshmemx_get_uniqueid(struct id *); int nvshmemx_init_status(void);
int nvshmemx_set_attr_uniqueid_args(int, int, const struct id *, struct attributes *);
int nvshmemx_init_attr(unsigned, struct attributes *);
int nvshmem_my_pe(void); int nvshmem_n_pes(void); void nvshmem_finalize(void); int nvshmem_team_n_pes(int);
#define CHECK(what) if (!(what)) { fprintf(stderr, "not so: %s\n", #what); exit(1); }
int main(int count, char **words) {
    struct id first, second, none;
    CHECK(nvshmemx_get_uniqueid(&first) == 0 && nvshmemx_get_uniqueid(&second) == 0 && memcmp(&first, &second, sizeof first));
    memset(&none, 0, sizeof none);
    int n = 3, status, failed = 0;
    for (int rank = 0; rank < n; ++rank) {
        if (fork() != 0) continue;
        /* Hosts that this one plays: the first has rank 1 alone. */
        if (count > 1) setenv("CROSSWARP_HOST", rank == 1 ? words[1] : "other", 1);
        struct attributes attributes;
        memset(&attributes, 0xa5, sizeof attributes);
        CHECK(nvshmemx_set_attr_uniqueid_args(rank, n, &none, &attributes) == 0);
        CHECK(nvshmemx_init_attr(8, &attributes) != 0);
        CHECK(nvshmemx_set_attr_uniqueid_args(rank, n, &first, &attributes) == 0);
        CHECK(nvshmemx_init_attr(8, &attributes) == 0);
        CHECK(nvshmem_my_pe() == rank && nvshmem_n_pes() == n);
        CHECK(nvshmem_team_n_pes(2) == (count == 1 ? n : rank == 1 ? 1 : 2));
        /* Once more, and in another way. */
        CHECK(nvshmemx_init_attr(8, &attributes) == 0);
        nvshmem_finalize();
        attributes.rank = (rank + 1) % n;
        CHECK(nvshmemx_init_attr(8, &attributes) != 0);
        nvshmem_finalize();
        /* A new world, of two. */
        if (rank < 2) {
            CHECK(nvshmemx_set_attr_uniqueid_args(1 - rank, 2, &second, &attributes) == 0);
            CHECK(nvshmemx_init_attr(8, &attributes) == 0);
            CHECK(nvshmem_my_pe() == 1 - rank && nvshmem_n_pes() == 2);
            nvshmem_finalize();
        }
        exit(0);
    }
    while (wait(&status) > 0) failed |= status != 0;
    return failed;
}
"#;

#[test]
fn worlds_come_about_by_unique_id_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "by_id", BY_ID);
    for hosts in [&[][..], &["one"]] {
        // An interface that every machine has.
        let mut command = Command::new(&program);
        command.args(hosts).env("CROSSWARP_INTERFACE", "lo");
        let output = succeed(&mut command);
        let said = String::from_utf8_lossy(&output.stderr);
        for (text, times) in [
            ("none of nvshmemx_get_uniqueid", 3),
            ("asked for in another way", 3),
        ] {
            assert_eq!(said.matches(text).count(), times, "{hosts:?}: {said}");
        }
    }
}

/// Hosts that this one plays: PE 2's is between those of another host, which are no team then.
const NO_ROW: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
struct id { int version; char bytes[124]; };
struct attributes { int version; void *mpi_comm; struct id id; int rank, n; };
int nvshmemx_get_uniqueid(struct id *);
int nvshmemx_set_attr_uniqueid_args(int, int, const struct id *, struct attributes *);
int nvshmemx_init_attr(unsigned, struct attributes *);
int nvshmem_team_my_pe(int); int nvshmem_team_n_pes(int); void nvshmem_finalize(void);
#define CHECK(what) if (!(what)) { fprintf(stderr, "rank %d: not so: %s\n", rank, #what); exit(1); }
enum { WORLD, SHARED, NODE, SAME };
int main(void) {
    struct id id;
    int rank = -1, status, failed = 0;
    CHECK(nvshmemx_get_uniqueid(&id) == 0);
    for (rank = 0; rank < 4; ++rank) {
        if (fork() != 0) continue;
        setenv("CROSSWARP_HOST", rank == 2 ? "one" : "other", 1);
        struct attributes attributes;
        CHECK(nvshmemx_set_attr_uniqueid_args(rank, 4, &id, &attributes) == 0);
        CHECK(nvshmemx_init_attr(8, &attributes) == 0);
        CHECK(nvshmem_team_n_pes(WORLD) == 4);
        for (int team = SHARED; team <= NODE; ++team) {
            CHECK(nvshmem_team_my_pe(team) == (rank == 2 ? 0 : -1));
            CHECK(nvshmem_team_n_pes(team) == (rank == 2 ? 1 : -1));
        }
        /* The first of each host, and then the others. */
        CHECK(nvshmem_team_n_pes(SAME) == (rank % 2 == 0 ? 2 : 1));
        CHECK(nvshmem_team_my_pe(SAME) == (rank == 2 ? 1 : 0));
        nvshmem_finalize();
        exit(0);
    }
    while (wait(&status) > 0) failed |= status != 0;
    return failed;
}
"#;

#[test]
fn pes_of_a_host_that_are_no_row_are_no_team() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "no_row", NO_ROW);
    let output = succeed(Command::new(&program).env("CROSSWARP_INTERFACE", "lo"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the PEs of this host, [0, 1, 3], are not equally far from one another"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

const MAKES_AN_ID: &str = r#"
int nvshmemx_get_uniqueid(void *);
int main(void) {
    char id[128];
    return nvshmemx_get_uniqueid(id) != 0 ? 3 : 0;
}
"#;

#[test]
fn an_interface_that_is_not_there_fails_the_making_of_an_id() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "makes_an_id", MAKES_AN_ID);
    let output = Command::new(&program)
        .env("CROSSWARP_INTERFACE", "no such interface")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("nvshmemx_get_uniqueid: ") && said.contains("CROSSWARP_INTERFACE"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Two processes make a world by unique id, and meet once. Then PE 1 does what the first argument says, and PE 0 waits for it.
/// Ends with 7 if a wait failed before that.
const GONE: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
struct id { int version; char bytes[124]; };
struct attributes { int version; void *mpi_comm; struct id id; int rank, n; };
int nvshmemx_get_uniqueid(struct id *);
int nvshmemx_set_attr_uniqueid_args(int, int, const struct id *, struct attributes *);
int nvshmemx_init_attr(unsigned, struct attributes *);
int nvshmem_team_split_strided(int, int, int, int, const void *, long, int *); void nvshmem_team_destroy(int);
void nvshmem_finalize(void);
#define CHECK(what) if (!(what)) { fprintf(stderr, "not so: %s\n", #what); exit(1); }
int main(int count, char **words) {
    struct id id;
    int pipes[2], met[2], status, ended, team;
    char byte = 0;
    CHECK(count == 2 && nvshmemx_get_uniqueid(&id) == 0 && pipe(pipes) == 0 && pipe(met) == 0);
    pid_t processes[2];
    for (int rank = 0; rank < 2; ++rank) {
        if ((processes[rank] = fork()) != 0) continue;
        struct attributes attributes;
        CHECK(nvshmemx_set_attr_uniqueid_args(rank, 2, &id, &attributes) == 0);
        if (nvshmemx_init_attr(8, &attributes) != 0) _exit(7);
        if (nvshmem_team_split_strided(0, 0, 1, 2, NULL, 0, &team) != 0) _exit(7);
        nvshmem_team_destroy(team);
        /* PE 0 has met it by then, and PE 1 is past its own waits when it hears of that. */
        if (rank == 0) CHECK(write(met[1], &byte, 1) == 1);
        if (rank == 1) {
            close(met[1]);
            if (read(met[0], &byte, 1) != 1) _exit(7);
        }
        if (rank == 0) {
            /* In vain. */
            CHECK(nvshmem_team_split_strided(0, 0, 1, 2, NULL, 0, &team) != 0 && team == -1);
            CHECK(write(pipes[1], &byte, 1) == 1);
            _exit(0);
        }
        if (strcmp(words[1], "dies") == 0) kill(getpid(), SIGKILL);
        if (strcmp(words[1], "leaves") == 0) { nvshmem_finalize(); _exit(0); }
        /* Never comes, as long as PE 0 waits. */
        close(pipes[1]);
        if (read(pipes[0], &byte, 1) < 0) _exit(1);
        _exit(0);
    }
    close(pipes[1]);
    close(met[1]);
    CHECK(waitpid(processes[0], &status, 0) == processes[0] && waitpid(processes[1], &ended, 0) == processes[1]);
    if ((WIFEXITED(status) && WEXITSTATUS(status) == 7) || (WIFEXITED(ended) && WEXITSTATUS(ended) == 7)) return 7;
    /* By itself, or ended by the world, but not by what has gone wrong in this test. */
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
    return 0;
}
"#;

#[test]
fn a_pe_that_is_gone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "gone", GONE);
    for (what, reason) in [
        ("dies", "PE 1 (host 0) has ended without leaving the world"),
        ("never comes", "PE 0: nvshmem_team_split_strided: "),
        ("leaves", "PE 0: nvshmem_team_split_strided: "),
    ] {
        // The limit holds for all waits. On a busy machine one of those that are not in vain may take as long; then a
        // longer one is tried.
        let mut limits = [2, 8, 32, 128].into_iter();
        let output = loop {
            let mut command = Command::new(&program);
            command.arg(what).env("CUDA_VISIBLE_DEVICES", "");
            if what == "never comes" {
                let limit = limits.next().expect("the PEs meet within minutes");
                command.env("CROSSWARP_WAIT_TIMEOUT", limit.to_string());
            }
            let output = command.output().unwrap();
            if what != "never comes" || output.status.code() != Some(7) {
                assert!(output.status.success(), "{what}: {output:?}");
                break output;
            }
        };
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.contains(reason));
        assert!(
            line.is_some_and(|line| line.contains("PE 1")),
            "{what}: {said}"
        );
    }
}

const MEMORY: &str = r#"
#include <stdio.h>
void nvshmem_init(void); void nvshmem_finalize(void); void *nvshmem_malloc(unsigned long); void nvshmem_barrier_all(void);
int main(void) {
    nvshmem_init();
    void *none = nvshmem_malloc(100);
    nvshmem_barrier_all();
    nvshmem_finalize();
    return none != 0;
}
"#;

#[test]
fn without_a_gpu_a_line_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "memory", MEMORY);
    let output = succeed(Command::new(program).env("CUDA_VISIBLE_DEVICES", ""));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("crosswarp: PE 0: NVSHMEM's functions that need a GPU find none"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn variables_are_listed_and_those_without_meaning_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "memory", MEMORY);
    let mut command = Command::new(&program);
    let output = succeed(
        command
            .env("CUDA_VISIBLE_DEVICES", "")
            .env("NVSHMEM_INFO", "1")
            .env("NVSHMEM_SYMMETRIC_SIZE", "1G")
            .env("NVSHMEM_IB_ENABLE_IBGDA", "true"),
    );
    let said = String::from_utf8_lossy(&output.stdout);
    for line in [
        "Crosswarp ",
        "NVSHMEM_MAX_MEMORY_PER_GPU",
        "NVSHMEM_SYMMETRIC_SIZE      accepted",
        "NVSHMEM_IB_ENABLE_IBGDA     is set, and means nothing here",
    ] {
        let found = said.lines().filter(|said| said.starts_with(line)).count();
        assert_eq!(found, 1, "{line}: {said}");
    }
    let output = succeed(Command::new(program).env("CUDA_VISIBLE_DEVICES", ""));
    assert_eq!(output.stdout, b"");
}

const UNITS: &str = "int nvshmem_my_pe(void); int main(void) { return nvshmem_my_pe() != -1; }";

#[test]
fn without_a_world_a_line_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(&mut Command::new(compile(folder.path(), "early", UNITS)));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("nvshmem_my_pe was called before nvshmem_init"),
        "{said}"
    );
}

/// The programs of `tests/programs`; on GPUs, where there are some.
#[test]
fn programs_compile_and_run() {
    let Some(nvcc) = nvcc("programs_compile_and_run") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut names: Vec<PathBuf> = std::fs::read_dir(sources)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .collect();
    names.sort();
    if !all() {
        names.retain(|path| path.ends_with("ring.cu"));
    }
    assert!(!names.is_empty());
    let gpus = Device::count().unwrap_or(0);
    // The matrix is eight programs.
    let parts = |source: &Path| match source.ends_with("matrix.cu") {
        true => 0..8,
        false => 0..1,
    };
    let programs = names
        .iter()
        .flat_map(|source| parts(source).map(move |part| (source, part)));
    for (source, part) in programs {
        let name = source.file_stem().unwrap().to_string_lossy();
        let program = folder.path().join(format!("{name}_{part}"));
        let define = format!("-DPART={part}");
        // With the lists of types that were made from the table.
        let arguments = ["-std=c++17", &define, "-I", env!("OUT_DIR"), "-o"];
        succeed(
            compiler(&nvcc, &arguments)
                .arg(&program)
                .arg(source)
                .args(linked_by_nvcc()),
        );
        if name == "late" {
            let mut unit = program.clone().into_os_string();
            unit.push(".unit.so");
            let arguments = [
                "-std=c++17",
                "-DPART=1",
                "-shared",
                "-Xcompiler",
                "-fPIC",
                "-o",
            ];
            succeed(
                compiler(&nvcc, &arguments)
                    .arg(unit)
                    .arg(source)
                    .args(linked_by_nvcc()),
            );
        }
        // These have a launcher of their own to be, or are it.
        if gpus == 0 || name == "unique_id" {
            continue;
        }
        if name == "gone" {
            succeed(&mut Command::new(&program));
            continue;
        }
        for n in 1..=gpus {
            let outcome = Launch::new(n, &program)
                .heap_bytes(1 << 20)
                .timeout(WATCHDOG)
                .run()
                .unwrap();
            assert_eq!(
                outcome.code(),
                0,
                "{} on {n} PEs: {outcome:?}",
                program.display()
            );
        }
    }
}
