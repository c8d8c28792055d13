//! Worlds that come about by the program's MPI or beside its OpenSHMEM, and teams without a parent: without a GPU.

mod support;

use crosswarp_cuda::{find_program, skip};
use crosswarp_shmem::Launch;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::*;

const WATCHDOG: Duration = Duration::from_secs(300);

/// What the programs call, without the headers, which want the toolkit's.
const DECLARATIONS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct id { int version; char bytes[124]; };
struct attributes { int version; void *mpi_comm; struct id id; int rank, n; };
struct config { int version, contexts; unsigned long id; };
void nvshmem_init(void); void nvshmem_finalize(void); int nvshmem_my_pe(void); int nvshmem_n_pes(void);
int nvshmemx_init_attr(unsigned, struct attributes *); int nvshmemx_init_status(void);
int nvshmemx_set_attr_mpi_comm_args(void *, struct attributes *);
int nvshmem_team_my_pe(int); int nvshmem_team_n_pes(int); int nvshmem_team_translate_pe(int, int, int);
int nvshmem_team_split_strided(int, int, int, int, const void *, long, int *); void nvshmem_team_destroy(int);
int nvshmemx_team_get_uniqueid(unsigned long *); int nvshmemx_team_init(int *, struct config *, long, int, int);
#define CHECK(what) if (!(what)) { fprintf(stderr, "not so: %s\n", #what); abort(); }
"#;

fn compile(compiler: &str, folder: &Path, name: &str, text: &str, more: &[&str]) -> PathBuf {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, format!("{DECLARATIONS}{text}")).unwrap();
    succeed(
        Command::new(compiler)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .args(more)
            .args(linked()),
    );
    program
}

const BY_COMMUNICATOR: &str = r#"
#include <mpi.h>
int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank, size, team;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm all = MPI_COMM_WORLD, turned, pairs;
    /* As others leave it, but for what is asked for. */
    struct attributes attributes;
    memset(&attributes, 0xa5, sizeof attributes);
    attributes.mpi_comm = &all;
    CHECK(nvshmemx_init_attr(2, &attributes) == 0);
    CHECK(nvshmem_my_pe() == rank && nvshmem_n_pes() == size);
    CHECK(nvshmem_team_n_pes(0) == size);
    /* Of the host: two ranks at most where the test says so. */
    int two = getenv("CROSSWARP_HOST") != NULL, here = nvshmem_team_n_pes(2);
    CHECK(two ? here == (rank / 2 < size / 2 ? 2 : size % 2) : here == size);
    CHECK(nvshmem_team_my_pe(2) == (two ? rank % 2 : rank));
    CHECK(nvshmem_team_split_strided(0, 0, 2, (size + 1) / 2, NULL, 0, &team) == 0);
    CHECK(rank % 2 == 0 ? nvshmem_team_my_pe(team) == rank / 2 : team == -1);
    nvshmem_finalize();
    CHECK(nvshmemx_init_status() == 0);
    /* Another world, the ranks the other way round. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    CHECK(nvshmemx_set_attr_mpi_comm_args(&turned, &attributes) == 0);
    CHECK(nvshmemx_init_attr(2, &attributes) == 0);
    CHECK(nvshmem_my_pe() == size - 1 - rank && nvshmem_n_pes() == size);
    nvshmem_finalize();
    /* Worlds of a part each, at the same time. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &pairs);
    attributes.mpi_comm = &pairs;
    CHECK(nvshmemx_init_attr(2, &attributes) == 0);
    CHECK(nvshmem_my_pe() == rank / 2 && nvshmem_n_pes() == (size + 1 - rank % 2) / 2);
    nvshmem_finalize();
    MPI_Finalize();
    printf("PE %d came to the end\n", rank);
    return 0;
}
"#;

/// By an MPI with this compiler and launcher.
fn by_communicator(test: &str, mpicc: &str, launcher: &[&str], rank: &str) {
    for tool in [mpicc, launcher[0]] {
        if let Err(reason) = find_program(tool) {
            return skip::skip_tool(test, reason);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    // Debian has the headers in a package of their own.
    let header = folder.path().join("header.c");
    std::fs::write(&header, "#include <mpi.h>\n").unwrap();
    let found = Command::new(mpicc).arg("-E").arg(&header).output().unwrap();
    if !found.status.success() {
        return skip::skip_tool(test, format!("{mpicc} finds no mpi.h"));
    }
    let program = compile(
        mpicc,
        folder.path(),
        "by_communicator",
        BY_COMMUNICATOR,
        &[],
    );
    // On one host, and on hosts of two ranks each, which this one plays.
    let several = format!("exec env CROSSWARP_HOST=$(({rank} / 2)) \"$0\"");
    let ways: [&[&str]; 2] = [&[], &["sh", "-c", &several]];
    for (n, way) in [1, 3, 4].iter().flat_map(|n| ways.map(|way| (*n, way))) {
        let output = succeed(
            Command::new(launcher[0])
                .args(&launcher[1..])
                .arg(n.to_string())
                .args(way)
                .arg(&program)
                // No driver would let itself be used with this.
                .env("CUDA_VISIBLE_DEVICES", "")
                // An interface that every machine has.
                .env("CROSSWARP_INTERFACE", "lo")
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        );
        let said = String::from_utf8_lossy(&output.stdout);
        let ended = said.matches("came to the end").count();
        assert_eq!(ended, n, "{way:?}: {said}");
    }
}

#[test]
fn a_communicator_of_mpich_makes_a_world() {
    by_communicator(
        "a_communicator_of_mpich_makes_a_world",
        "mpicc.mpich",
        &["mpiexec.hydra", "-n"],
        "PMI_RANK",
    );
}

#[test]
fn a_communicator_of_open_mpi_makes_a_world() {
    by_communicator(
        "a_communicator_of_open_mpi_makes_a_world",
        "mpicc.openmpi",
        &["mpirun.openmpi", "--oversubscribe", "-np"],
        "OMPI_COMM_WORLD_RANK",
    );
}

const WITHOUT_MPI: &str = r#"
int main(void) {
    int comm = 0;
    struct attributes attributes;
    attributes.mpi_comm = &comm;
    CHECK(nvshmemx_init_attr(2, &attributes) != 0);
    CHECK(nvshmemx_init_attr(4, NULL) != 0);
    CHECK(nvshmemx_init_attr(6, &attributes) != 0);
    return nvshmemx_init_status();
}
"#;

#[test]
fn what_the_program_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("gcc", folder.path(), "without", WITHOUT_MPI, &[]);
    let output = succeed(&mut Command::new(program));
    let said = String::from_utf8_lossy(&output.stderr);
    for reason in [
        "the program has no MPI: MPI_Comm_rank is not in it",
        "the program has no OpenSHMEM: shmem_my_pe is not in it",
        "one way to start at a time",
    ] {
        assert_eq!(said.matches(reason).count(), 1, "{reason}: {said}");
    }
}

const BESIDE_OPENSHMEM: &str = r#"
void shmem_init(void); void shmem_finalize(void); int shmem_my_pe(void); int shmem_n_pes(void);
void *shmem_malloc(size_t); void shmem_barrier_all(void); long shmem_long_g(const long *, int);
int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long *word = shmem_malloc(sizeof *word);
    for (int round = 0; round < 2; ++round) {
        CHECK(nvshmemx_init_attr(4, NULL) == 0);
        CHECK(nvshmem_my_pe() == me && nvshmem_n_pes() == n);
        CHECK(nvshmem_team_n_pes(2) == (getenv("CROSSWARP_HOST") == NULL ? n : me / 2 < n / 2 ? 2 : n % 2));
        *word = 10 * nvshmem_my_pe() + round;
        shmem_barrier_all();
        CHECK(shmem_long_g(word, (me + 1) % n) == 10 * ((me + 1) % n) + round);
        shmem_barrier_all();
        nvshmem_finalize();
        CHECK(nvshmemx_init_status() == 0);
    }
    shmem_finalize();
    return 0;
}
"#;

#[test]
fn a_world_comes_about_beside_openshmem() {
    const TEST: &str = "a_world_comes_about_beside_openshmem";
    // Made by a build of crosswarp-capi; programs find it by the other name.
    let own = std::env::current_exe().unwrap();
    let library = own.with_file_name("libcrosswarp_shmem_c.so");
    if !library.exists() {
        return skip::skip_tool(TEST, format!("no {}", library.display()));
    }
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("libcrosswarp_shmem.so");
    std::os::unix::fs::symlink(&library, &named).unwrap();
    let path = format!("-Wl,-rpath,{}", folder.path().display());
    let more = [named.to_str().unwrap(), &path];
    let program = compile("gcc", folder.path(), "beside", BESIDE_OPENSHMEM, &more);
    // On one host, and on hosts of two PEs each, which this one plays.
    let several = "[ -z \"$1\" ] || export CROSSWARP_INTERFACE=lo CROSSWARP_HOST=$((CROSSWARP_PE / 2)); exec \"$0\"";
    for (n, hosts) in [
        (1, ""),
        (3, ""),
        (1, "several"),
        (3, "several"),
        (4, "several"),
    ] {
        let outcome = Launch::new(n, "sh")
            .args([
                "-c".as_ref(),
                several.as_ref(),
                program.as_os_str(),
                hosts.as_ref(),
            ])
            .heap_bytes(1 << 20)
            .timeout(WATCHDOG)
            .run()
            .unwrap();
        assert_eq!(outcome.code(), 0, "{n} PEs, {hosts}: {outcome:?}");
    }
}

const TEAMS: &str = r#"
int nvshmemx_qp_create(int, int **);
int main(void) {
    nvshmem_init();
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), team, other, part;
    unsigned long one, two;
    CHECK(nvshmemx_team_get_uniqueid(&one) == 0 && nvshmemx_team_get_uniqueid(&two) == 0 && one && one != two);
    /* Queue pairs have handles, and mean nothing. */
    int *pairs = NULL;
    CHECK(nvshmemx_qp_create(0, &pairs) != 0 && nvshmemx_qp_create(2, NULL) != 0 && pairs == NULL);
    CHECK(nvshmemx_qp_create(2, &pairs) == 0 && pairs[0] != pairs[1]);
    free(pairs);
    /* Of these, no id; one that is not looked at; numbers that do not exist. */
    struct config config = {1, 0, 0};
    CHECK(nvshmemx_team_init(&team, &config, 2, n, me) != 0 && team == -1);
    config.id = 77;
    CHECK(nvshmemx_team_init(&team, &config, 1, n, me) != 0 && team == -1);
    CHECK(nvshmemx_team_init(&team, &config, 2, n + 1, me) != 0 && nvshmemx_team_init(&team, &config, 2, n, n) != 0);
    CHECK(nvshmemx_team_init(&team, &config, 2, n, me) == 0);
    CHECK(nvshmem_team_my_pe(team) == me && nvshmem_team_n_pes(team) == n);
    /* The same id once more, and for others. */
    CHECK(nvshmemx_team_init(&other, &config, 2, n, me) == 0 && other != team);
    nvshmem_team_destroy(other);
    if (me < n - 1) CHECK(nvshmemx_team_init(&other, &config, 2, n - 1, me) == 0 && nvshmem_team_n_pes(other) == n - 1);
    if (me < n - 1) nvshmem_team_destroy(other);
    /* Some make teams that the others know nothing of, at the same time. */
    for (int round = 0; round < 20; ++round) {
        int odd = me % 2, size = (n + 1 - odd) / 2;
        config.id = 1000 + 2 * round + odd;
        CHECK(nvshmemx_team_init(&other, &config, 2, size, me / 2) == 0);
        CHECK(other != team && nvshmem_team_my_pe(other) == me / 2 && nvshmem_team_n_pes(other) == size);
        CHECK(nvshmem_team_translate_pe(other, size - 1, 0) == 2 * (size - 1) + odd);
        CHECK(nvshmem_team_split_strided(other, 0, 1, 1, NULL, 0, &part) == 0 && (part != -1) == (me == odd));
        if (part != -1) nvshmem_team_destroy(part);
        nvshmem_team_destroy(other);
        CHECK(nvshmem_team_my_pe(other) == -1);
    }
    /* Downwards there is none of more than one; all say so, and go on. */
    config.id = 2000;
    CHECK((nvshmemx_team_init(&other, &config, 2, n, n - 1 - me) == 0) == (n == 1));
    /* One says another size: nobody waits for ever, and those who agree come to the same. */
    for (int round = 0; n > 2 && round < 20; ++round) {
        config.id = 2500 + round;
        int differs = round % n, odd_one = me == differs;
        int failed = nvshmemx_team_init(&other, &config, 2, odd_one ? n : n - 1, odd_one ? n - 1 : me - (me > differs)) != 0;
        CHECK(failed == (other == -1) && (failed || !odd_one));
        if (!failed) nvshmem_team_destroy(other);
        /* Invitations stay where they are until all have looked. */
        CHECK(nvshmem_team_split_strided(0, 0, 1, 1, NULL, 0, &part) == 0);
        if (part != -1) nvshmem_team_destroy(part);
        config.id = 2600 + round;
        CHECK(nvshmemx_team_init(&other, &config, 2, n, me) == 0);
        nvshmem_team_destroy(other);
    }
    /* As many as there can be, and one more. */
    int made = 0;
    for (config.id = 3000; nvshmemx_team_init(&other, &config, 2, n, me) == 0; ++config.id) ++made;
    CHECK(made > 40 && other == -1);
    nvshmem_finalize();
    return 0;
}
"#;

#[test]
fn members_make_a_team_without_a_parent() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("gcc", folder.path(), "teams", TEAMS, &[]);
    for n in [1, 2, 5] {
        let outcome = Launch::new(n, &program)
            .heap_bytes(1 << 20)
            .timeout(WATCHDOG)
            .run()
            .unwrap();
        assert_eq!(outcome.code(), 0, "{n} PEs: {outcome:?}");
    }
}
