//! Who does not know the job's secret gets nowhere, and does no harm.

use crate::bed::Bed;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Bytes of what an agent says first, and of the answer.
const CHALLENGE: usize = 24;
const ANSWER: usize = 37;

#[test]
#[ignore = "a process of a host that has no part in the run"]
fn intruder() {
    let agent = std::env::var("AGENT").unwrap();
    let connect = || {
        let stream = TcpStream::connect(&agent).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    };
    // One that says nothing, and stays.
    let _silent = connect();
    // Somebody who speaks the protocol, but guesses the secret's code, as a PE and as a launcher.
    for who in [1, 2] {
        let mut stream = connect();
        let mut challenge = [0; CHALLENGE];
        stream.read_exact(&mut challenge).unwrap();
        let mut answer = [0x5a; ANSWER];
        answer[..5].copy_from_slice(&[who, 0, 0, 0, 0]);
        stream.write_all(&answer).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "it was let in");
    }
    // The answer to another connection, or this one's challenge sent back.
    let mut stream = connect();
    let mut challenge = [0; CHALLENGE];
    stream.read_exact(&mut challenge).unwrap();
    let answer: Vec<u8> = challenge.iter().chain(&challenge).copied().collect();
    stream.write_all(&answer[..ANSWER]).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "it was let in");
    // Garbage, more than an answer, and something that is cut short.
    for bytes in [1 << 20, 5] {
        let mut stream = connect();
        let garbage: Vec<u8> = (0..bytes).map(|i: u32| (i * 167) as u8).collect();
        // The agent may have closed it before all is sent.
        let _ = stream.write_all(&garbage);
    }
    println!("refused");
}

#[test]
fn strangers_are_refused_and_the_run_goes_on() {
    let Some(bed) = Bed::up(3) else { return };
    let mut run = bed.start_role(&[1, 1], &[], "line");
    let agents = run.marked("agents ", 1).remove(0);
    let test = std::env::current_exe().unwrap();
    for agent in agents.split(',') {
        let script = format!(
            "AGENT={agent} exec {} --ignored --exact intruders::intruder --nocapture",
            test.display()
        );
        let intruder = bed.run(3, &["sh", "-c", &script]);
        let out = String::from_utf8_lossy(&intruder.stdout);
        let err = String::from_utf8_lossy(&intruder.stderr);
        assert!(out.contains("refused"), "{out}\n{err}");
    }
    writeln!(run.input.as_mut().unwrap(), "still here").unwrap();
    let (code, out, err) = run.end();
    assert_eq!(code, 0, "{err}");
    assert_eq!(out.matches("line still here").count(), 2, "{out}");
    bed.is_empty();
}
