//! Says when a program was compiled, linked or started with another OpenSHMEM's tools.
//!
//! None of these is an error for certain, and nothing else tells the user: constants that differ, calls that
//! go to another library and a world of one PE where there should be more all look like a wrong program.

use crate::misuse;
use crate::objects;
use crate::world::Name;
use crosswarp_shmem::internal::is_other_openshmem;
use crosswarp_shmem::under_launcher;

/// How other launchers tell a process how many there are and which it is.
const LAUNCHERS: [(&str, &str, &str); 4] = [
    (
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "Open MPI's launcher",
    ),
    ("PMI_SIZE", "PMI_RANK", "a launcher for PMI"),
    (
        "MV2_COMM_WORLD_SIZE",
        "MV2_COMM_WORLD_RANK",
        "MVAPICH's launcher",
    ),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "Slurm's srun"),
];

/// To be called by PE 0 of a world.
pub(crate) fn look(name: Name) {
    if let Some((variable, size, launcher)) = other_launcher() {
        misuse::say(format_args!(
            "{name}: warning: started by {launcher} ({variable} is {size}), which Crosswarp does not know, so this is a world of 1 PE; start the program with Crosswarp's oshrun"
        ));
    }
    let (mut other, mut ours_compiled, mut linked) = (None, false, false);
    objects::visit(|object| {
        ours_compiled |= object.has_our_note();
        linked |= object.is_program()
            && (object.is_this_library()
                || object
                    .needed()
                    .iter()
                    .any(|name| name.starts_with(b"libcrosswarp_shmem")));
        if let Some(soname) = object
            .soname()
            .and_then(|name| String::from_utf8(name).ok())
            && is_other_openshmem(&soname)
        {
            other = Some(soname);
        }
    });
    if let Some(other) = other {
        misuse::say(format_args!(
            "{name}: warning: {other}, another OpenSHMEM library, is loaded too, and calls may go to either; compile and link the program with Crosswarp's oshcc"
        ));
    } else if linked && !ours_compiled {
        // What calls the library without being linked with it (an interpreter, say) may have no header.
        misuse::say(format_args!(
            "{name}: warning: no part of this program was compiled with Crosswarp's shmem.h, and another header's constants may differ; compile the program with Crosswarp's oshcc"
        ));
    }
}

/// The variable, how many processes it says there are, and whose it is. Said by the first of them only.
fn other_launcher() -> Option<(&'static str, usize, &'static str)> {
    if under_launcher() {
        return None;
    }
    let number = |name| std::env::var(name).ok()?.parse::<usize>().ok();
    LAUNCHERS
        .into_iter()
        .find_map(|(size_in, rank_in, launcher)| {
            let size = number(size_in).filter(|&size| size > 1)?;
            (number(rank_in)? == 0).then_some((size_in, size, launcher))
        })
}
