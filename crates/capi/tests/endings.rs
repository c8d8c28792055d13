//! How programs end: finalised, by `global_exit`, by `exit` and failures, and by misuse.

mod support;

use crosswarp_shmem::Wait;
use std::process::{Command, Output};
use support::{Language, compile, launch};

#[test]
fn the_job_ends_as_the_specification_says() {
    let program = compile("endings.c", Language::C11, "so", &[]);
    for (how, n, code) in [
        ("finalize", 3, 0),
        // Frees the PEs that wait in a barrier.
        ("global_exit 0", 4, 0),
        ("global_exit 7", 4, 7),
        ("global_exit all 9", 3, 9),
        // Without finalize: nobody waits for anybody, so all is well.
        ("exit", 3, 0),
        ("exit 5", 3, 5),
        ("return without finalize", 2, 0),
        ("abort", 3, 134),
        ("segfault", 3, 139),
    ] {
        let outcome = launch(n, &program, &[how]);
        assert_eq!(outcome.code(), code, "{how}: {outcome:?}");
        assert!(outcome.timed_out.is_none(), "{how}");
        // It has waited before, but that is not why it ended.
        if let Some(failure) = outcome.failure {
            assert_eq!(failure.last_wait, None, "{how}");
        }
    }
    // A PE that leaves while others wait for it: they must end, with a failure.
    let outcome = launch(3, &program, &["exit while others wait"]);
    assert!(
        outcome.timed_out.is_none() && outcome.code() != 0,
        "{outcome:?}"
    );
    let wait = outcome.failure.unwrap().last_wait;
    assert!(
        matches!(wait, Some(Wait::Collective { pe: 1, .. })),
        "{wait:?}"
    );
}

#[test]
fn a_child_that_a_pe_forks_ends_nobody_by_its_exit() {
    let program = compile(
        "forked.c",
        Language::C11,
        "so",
        &["-Wno-deprecated-declarations"],
    );
    let outcome = launch(2, &program, &[]);
    assert_eq!(outcome.code(), 0, "{outcome:?}");
}

/// Runs one PE alone; what it says on standard error.
fn misuse(program: &std::path::Path, how: &str, debug: bool) -> Output {
    let mut command = Command::new(program);
    command
        .arg(how)
        .env("CROSSWARP_HEAP", "1M")
        .env("CROSSWARP_WAIT_TIMEOUT", "0.1")
        .env_remove("SHMEM_DEBUG");
    if debug {
        command.env("SHMEM_DEBUG", "1");
    }
    command.output().unwrap()
}

#[test]
fn misuse_is_named_and_ends_the_process() {
    let program = compile("misuse.c", Language::C11, "so", &[]);
    for (how, debug, said) in [
        (
            "before init",
            false,
            "crosswarp: shmem_my_pe: called before shmem_init",
        ),
        (
            "after finalize",
            false,
            "crosswarp: PE 0: shmem_long_p: called after shmem_finalize",
        ),
        (
            "no such PE",
            true,
            "crosswarp: PE 0: shmem_long_p: pe is 5, but there are PEs 0 to 0",
        ),
        (
            "negative PE",
            true,
            "crosswarp: PE 0: shmem_int_get: pe is -1, but there are PEs 0 to 0",
        ),
        (
            "not symmetric",
            true,
            "crosswarp: PE 0: shmem_long_put: dest is 0x",
        ),
        (
            "beyond the end",
            true,
            "crosswarp: PE 0: shmem_putmem: dest is 0x",
        ),
        (
            "misaligned atomic",
            true,
            "crosswarp: PE 0: shmem_long_atomic_inc: dest is 0x",
        ),
        (
            "bad comparison",
            false,
            "crosswarp: PE 0: shmem_long_wait_until: cmp is 77, none of SHMEM_CMP_*",
        ),
        (
            "bad signal",
            false,
            "crosswarp: PE 0: shmem_long_put_signal: sig_op is 9",
        ),
        (
            "invalid context",
            false,
            "crosswarp: PE 0: shmem_ctx_long_p: ctx is SHMEM_CTX_INVALID",
        ),
        (
            "bad stride",
            true,
            "crosswarp: PE 0: shmem_long_iput: dst is 0, but a stride is at least 1",
        ),
        ("free twice", false, "crosswarp: PE 0: shmem_free: "),
        (
            "realloc freed",
            false,
            "crosswarp: PE 0: shmem_realloc: no symmetric allocation begins at address 0x",
        ),
        (
            "realloc stack",
            false,
            "crosswarp: PE 0: shmem_realloc: no symmetric allocation begins at address 0x",
        ),
        (
            "team destroy",
            false,
            "crosswarp: PE 0: shmem_team_destroy: the team 0x",
        ),
        (
            "team number",
            false,
            "crosswarp: PE 0: shmem_team_my_pe: the team 0x",
        ),
        (
            "team sync",
            false,
            "crosswarp: PE 0: shmem_team_sync: the team 0x",
        ),
        (
            "team reduce",
            false,
            "crosswarp: PE 0: shmem_long_sum_reduce: the team 0x",
        ),
        (
            "team context",
            false,
            "crosswarp: PE 0: shmem_team_create_ctx: the team 0x",
        ),
        (
            "context destroy",
            false,
            "crosswarp: PE 0: shmem_ctx_destroy: the context 0x",
        ),
        (
            "context put",
            false,
            "crosswarp: PE 0: shmem_ctx_long_p: the context 0x",
        ),
        (
            "context quiet",
            false,
            "crosswarp: PE 0: shmem_ctx_quiet: the context 0x",
        ),
        (
            "context of the stack",
            false,
            "crosswarp: PE 0: shmem_ctx_long_p: the context 0x",
        ),
        ("not symmetric", false, "crosswarp: PE 0: the address 0x"),
        ("no such PE", false, "crosswarp: PE 0: PE 5 does not exist"),
        (
            "negative PE",
            false,
            "crosswarp: PE 0: PE -1 does not exist in a world of 1",
        ),
        (
            "destroy the world",
            false,
            "crosswarp: PE 0: shmem_team_destroy: this team is the library's own",
        ),
        (
            "bad root",
            false,
            "crosswarp: PE 0: shmem_long_broadcast: PE_root is 3, but there are PEs 0 to 0",
        ),
    ] {
        let output = misuse(&program, how, debug);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.starts_with(said), "{how}: {error}");
        assert_eq!(error.lines().count(), 1, "{how}: {error}");
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(6), "{how}");
    }
}

/// Values as they were written, static variables by name, one thing as one thing.
#[test]
fn messages_say_what_the_program_says() {
    let program = compile("misuse.c", Language::C11, "words", &[]);
    for (how, debug, said) in [
        (
            "wait for -1",
            false,
            "in vain for the value 'flags+16' to be == -1\n",
        ),
        (
            "wait for the most",
            false,
            "in vain for the value 'sig' to be == 18446744073709551615\n",
        ),
        (
            "wait for any",
            false,
            "in vain for any of 6 values, the first of them the value 'flags', to be < what it should\n",
        ),
        (
            "wait on the heap",
            false,
            "in vain for the value at heap offset 0 to be <= -7\n",
        ),
        (
            "split from -1",
            true,
            "no team of -2 PEs from PE -1 at stride 1 in one of 1 PEs\n",
        ),
        ("beyond a variable", true, " ('flags+8'), and its "),
        (
            "misaligned variable",
            true,
            " ('bytes+1'), not a multiple of 4",
        ),
        (
            "not symmetric",
            false,
            ", and there is 1 segment of static data)",
        ),
    ] {
        let error = misuse(&program, how, debug).stderr;
        let error = String::from_utf8_lossy(&error);
        assert!(error.contains(said), "{how}: {error}");
    }
}

#[test]
fn the_environment_is_honoured() {
    let program = compile("misuse.c", Language::C11, "environment", &[]);
    let run = |variable: &str, value: &str, how: &str| {
        let mut command = Command::new(&program);
        command
            .arg(how)
            .env(variable, value)
            .env_remove("CROSSWARP_HEAP");
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (
            output.status.success(),
            text,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (ok, said, _) = run("SHMEM_VERSION", "1", "nothing");
    assert!(ok && said.contains("OpenSHMEM 1.5"), "{said}");
    let (ok, said, _) = run("SHMEM_INFO", "yes", "nothing");
    assert!(
        ok && said.matches("SHMEM_SYMMETRIC_SIZE ").count() == 1 && said.contains("SHMEM_DEBUG"),
        "{said}"
    );
    // 3.1m is 3250586 bytes, by the specification.
    assert!(run("SHMEM_SYMMETRIC_SIZE", "3.1m", "allocate 3250000").0);
    assert!(!run("SHMEM_SYMMETRIC_SIZE", "3.1m", "allocate 100000000").0);
    // The name of old, deprecated in 1.4 and still supported.
    assert!(run("SMA_SYMMETRIC_SIZE", "3.1m", "allocate 3250000").0);
    assert!(!run("SMA_SYMMETRIC_SIZE", "3.1m", "allocate 100000000").0);
    let (ok, _, error) = run("SHMEM_SYMMETRIC_SIZE", "20kk", "nothing");
    assert!(!ok && error.contains("20kk"), "{error}");
}
