//! A token goes around the ring of PEs: PE 0 sends 100 to its right-hand neighbour, each PE adds one to what it gets
//! and passes it on.
//!
//! ```text
//! cargo run -p crosswarp --no-default-features --example ring          # four PEs, as threads
//! crosswarp run -n 3 -- target/debug/examples/ring                     # three PEs, as processes
//! ```

use crosswarp::shmem::under_launcher;
use crosswarp::{Cmp, Error, Pe, SignalOp, init, spmd};

/// What each PE does.
fn ring(pe: &Pe) -> Result<(), Error> {
    let (me, right) = (pe.my_pe(), (pe.my_pe() + 1) % pe.n_pes());
    // One word each on every PE: the token, and the signal that it has come.
    let token = pe.alloc_zeroed::<u64>(1)?;
    let arrived = pe.alloc_zeroed::<u64>(1)?;
    if me == 0 {
        pe.put_signal(&token, &[100], &arrived, 1, SignalOp::Set, right);
    }
    pe.signal_wait_until(&arrived, Cmp::Eq, 1)?;
    let got = pe.g(&token, me);
    println!("PE {me} got {got}");
    if me != 0 {
        pe.put_signal(&token, &[got + 1], &arrived, 1, SignalOp::Set, right);
    }
    // Nobody leaves before its word has arrived.
    pe.barrier()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if under_launcher() {
        ring(&init()?)?;
    } else {
        for outcome in spmd(4, ring)? {
            outcome?;
        }
    }
    Ok(())
}
