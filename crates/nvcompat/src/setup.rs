//! Beginning, end, and questions about the world.
#![allow(unsafe_code)] // Writes results through C's pointers; calls the C library's exit.

use crate::environment;
use crate::mpi;
use crate::openshmem;
use crate::say::say;
use crate::state::{Asked, Thread, World, change, world, world_for};
use crate::types::{InitAttributes, Status, UniqueId, status};
use crosswarp_shmem::{BootstrapError, IdListener, IdPlace, Pe, init_by_id, init_by_id_at};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};

/// `NVSHMEM_MAJOR_VERSION`, `NVSHMEM_MINOR_VERSION`.
const SPECIFICATION: (c_int, c_int) = (1, 3);
/// `NVSHMEM_VENDOR_…_VERSION`.
const VENDOR: [c_int; 3] = [3, 4, 5];
/// `NVSHMEM_VENDOR_STRING`.
const NAME: &CStr = c"Crosswarp: runs programs written for NVSHMEM";
const THREAD_MULTIPLE: c_int = 3;

const WITH_COMMUNICATOR: c_uint = 2;
const WITH_OPENSHMEM: c_uint = 4;
const WITH_ID: c_uint = 8;

/// Joins the world, or counts one more initialisation of it.
fn begin(
    name: &str,
    asked: Asked,
    join: impl FnOnce() -> Result<Pe, String>,
) -> Result<(), Status> {
    let begun = change(|place| {
        let wrong = |reason: &str| (Status::InvalidValue, reason.to_owned());
        if place.threads_run {
            let reason = "the process has a world of threads, and only these threads are PEs";
            return Err(wrong(reason));
        }
        if place.thread.is_some() && asked != Asked::OfLauncher {
            let reason = "this thread is a PE, and joins its world by nvshmem_init";
            return Err(wrong(reason));
        }
        match &place.world {
            Some(world) if world.asked != asked => {
                let reason = "there is a world already, which was asked for in another way; finalize it first";
                return Err(wrong(reason));
            }
            Some(_) => {}
            None => {
                let failed = |reason| (Status::Internal, reason);
                let pe = match &mut place.thread {
                    None => join().map_err(failed)?,
                    Some(thread) => match std::mem::replace(thread, Thread::HasJoined) {
                        Thread::Joins(pe) => *pe,
                        Thread::HasJoined => {
                            return Err(wrong("a PE that is a thread joins its world once"));
                        }
                    },
                };
                place.world = Some(Arc::new(
                    World::new(pe, asked, place.thread.is_some()).map_err(failed)?,
                ));
            }
        }
        place.open += 1;
        let first = place.world.as_ref().filter(|_| place.open == 1);
        Ok(first.is_some_and(|world| world.pe.my_pe() == 0))
    });
    match begun {
        Ok(greets) => {
            if greets {
                environment::greet();
            }
            Ok(())
        }
        Err((status, reason)) => {
            say(format_args!("{name}: {reason}"));
            Err(status)
        }
    }
}

fn by_launcher(name: &str) -> Result<(), Status> {
    begin(name, Asked::OfLauncher, || {
        crosswarp_shmem::init().map_err(|error| error.to_string())
    })
}

/// `nvshmem_init`: as documented, a failure ends the process, since no status can be returned.
pub(crate) unsafe fn init() {
    if by_launcher("nvshmem_init").is_err() {
        // SAFETY: ends the process; nothing of ours is half done.
        unsafe { libc::exit(1) }
    }
}

/// `nvshmem_init_thread`: every level is provided.
pub(crate) unsafe fn init_thread(_requested: c_int, provided: *mut c_int) -> c_int {
    let outcome = by_launcher("nvshmem_init_thread");
    if outcome.is_ok() && !provided.is_null() {
        // SAFETY: valid for writing, by the caller.
        unsafe { provided.write(THREAD_MULTIPLE) };
    }
    status(outcome)
}

/// `nvshmem_query_thread`.
pub(crate) unsafe fn query_thread(provided: *mut c_int) {
    // SAFETY: valid for writing, by the caller.
    unsafe { provided.write(THREAD_MULTIPLE) };
}

/// `nvshmemx_init_attr`: of the attributes, what the flags ask for is looked at alone.
pub(crate) unsafe fn init_attr(flags: c_uint, attributes: *mut InitAttributes) -> c_int {
    const NAME: &str = "nvshmemx_init_attr";
    let refuse = |status: Status, reason: &str| {
        say(format_args!("{NAME}: {reason}"));
        status as c_int
    };
    // SAFETY: null, or the caller's structure.
    let attributes = unsafe { attributes.as_ref() };
    let outcome = match (
        flags & (WITH_COMMUNICATOR | WITH_OPENSHMEM | WITH_ID),
        attributes,
    ) {
        (0, _) => by_launcher(NAME),
        (WITH_OPENSHMEM, _) => begin(NAME, Asked::OfOpenShmem, || {
            // SAFETY: the program has begun it, and all its PEs come here.
            unsafe { openshmem::join() }
        }),
        (_, None) => return refuse(Status::InvalidValue, "the attributes are null"),
        (WITH_ID, Some(attributes)) => {
            let (rank, n) = (attributes.rank, attributes.n_pes);
            let Some((id, place)) = attributes.uniqueid.id() else {
                let reason =
                    "the unique id is none of nvshmemx_get_uniqueid, or never reached this PE";
                return refuse(Status::InvalidValue, reason);
            };
            begin(NAME, Asked::WithId { rank, n, id }, || {
                join_by_id(rank, n, id, place)
            })
        }
        (WITH_COMMUNICATOR, Some(attributes)) => begin(NAME, Asked::OfCommunicator, || {
            // SAFETY: the caller's communicator.
            unsafe { mpi::join(attributes.mpi_comm) }
        }),
        _ => return refuse(Status::InvalidValue, "one way to start at a time"),
    };
    status(outcome)
}

/// What listens for PEs of other hosts, or why they can't come.
type Listener = Result<IdListener, String>;

/// Those of the ids that this process has made, in their order. Programs make one on every PE and use that of PE 0, so the
/// oldest go.
static LISTENERS: Mutex<Vec<([u8; 16], Listener)>> = Mutex::new(Vec::new());
const MOST_LISTENERS: usize = 16;

/// The listener of `id`. Those of earlier ids end with it, as all do if the id is another process's: none of them was used.
fn listener_of(id: [u8; 16]) -> Option<Listener> {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    match listeners.iter().position(|(known, _)| *known == id) {
        Some(index) => listeners.drain(..=index).next_back().map(|(_, own)| own),
        None => {
            listeners.clear();
            None
        }
    }
}

fn join_by_id(rank: c_int, n: c_int, id: [u8; 16], place: Option<IdPlace>) -> Result<Pe, String> {
    let (Ok(me), Ok(n_pes)) = (usize::try_from(rank), usize::try_from(n)) else {
        return Err(format!("rank {rank} of {n}"));
    };
    let own = listener_of(id);
    let Some(place) = place else {
        return init_by_id(me, n_pes, id).map_err(|error| match own {
            Some(Err(reason)) => format!("{error} (PEs of other hosts could not come: {reason})"),
            _ => error.to_string(),
        });
    };
    init_by_id_at(me, n_pes, id, place, own.and_then(Result::ok)).map_err(|error| error.to_string())
}

/// `nvshmemx_qp_create`: handles, each another, that mean nothing; the program frees the array.
pub(crate) unsafe fn qp_create(num_qps: c_int, out_qp_array: *mut *mut c_int) -> c_int {
    /// The first that is none of the header's constants.
    const FIRST: c_int = 16;
    const NAME: &str = "nvshmemx_qp_create";
    let outcome = world_for(NAME).and_then(|_| {
        let count = usize::try_from(num_qps).ok().filter(|&count| count > 0);
        let (Some(count), false) = (count, out_qp_array.is_null()) else {
            say(format_args!(
                "{NAME}: {num_qps} queue pairs, to be written at {out_qp_array:?}"
            ));
            return Err(Status::InvalidValue);
        };
        // SAFETY: takes memory of the C library's, which the program gives back by its `free`.
        let handles = unsafe { libc::calloc(count, size_of::<c_int>()) }.cast::<c_int>();
        if handles.is_null() {
            return Err(Status::OutOfMemory);
        }
        for i in 0..num_qps {
            // SAFETY: there is room for so many.
            unsafe { handles.add(i as usize).write(FIRST + i) };
        }
        // SAFETY: valid for writing, by the caller.
        unsafe { out_qp_array.write(handles) };
        Ok(())
    });
    status(outcome)
}

pub(crate) fn new_id() -> Result<[u8; 16], String> {
    let mut id = [0; 16];
    // SAFETY: writes at most as many bytes as there are.
    match unsafe { libc::getrandom(id.as_mut_ptr().cast(), id.len(), 0) } {
        16 => Ok(id),
        _ => Err(format!(
            "no random bytes: {}",
            std::io::Error::last_os_error()
        )),
    }
}

/// `nvshmemx_get_uniqueid`: a new one; any PE may ask, and only one that is sent to all is used. PEs of other hosts find that
/// which asked, if this host has an address, and it is PE 0.
pub(crate) unsafe fn get_uniqueid(uniqueid: *mut UniqueId) -> c_int {
    let made = new_id().and_then(|id| match IdListener::open() {
        // What the user has chosen is wrong.
        Err(BootstrapError::Config(error)) => Err(error.to_string()),
        opened => Ok((id, opened.map_err(|error| error.to_string()))),
    });
    match made {
        Ok((id, listener)) => {
            let place = listener.as_ref().ok().map(IdListener::place);
            let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.push((id, listener));
            if listeners.len() > MOST_LISTENERS {
                drop(listeners.remove(0));
            }
            // SAFETY: valid for writing, by the caller.
            unsafe { uniqueid.write(UniqueId::new(id, place)) };
            0
        }
        Err(reason) => {
            say(format_args!("nvshmemx_get_uniqueid: {reason}"));
            Status::Internal as c_int
        }
    }
}

/// `nvshmemx_set_attr_uniqueid_args`: the attributes need not be initialised.
pub(crate) unsafe fn set_attr_uniqueid_args(
    rank: c_int,
    n_pes: c_int,
    uniqueid: *const UniqueId,
    attributes: *mut InitAttributes,
) -> c_int {
    if uniqueid.is_null() || attributes.is_null() {
        say(format_args!(
            "nvshmemx_set_attr_uniqueid_args: a null pointer"
        ));
        return Status::InvalidValue as c_int;
    }
    // SAFETY: valid for reading and writing, by the caller; nothing is read of the attributes.
    unsafe {
        (&raw mut (*attributes).version).write(1);
        (&raw mut (*attributes).mpi_comm).write(std::ptr::null_mut());
        (&raw mut (*attributes).uniqueid).write(uniqueid.read());
        (&raw mut (*attributes).rank).write(rank);
        (&raw mut (*attributes).n_pes).write(n_pes);
    }
    0
}

/// `nvshmemx_set_attr_mpi_comm_args`.
pub(crate) unsafe fn set_attr_mpi_comm_args(
    comm: *mut std::ffi::c_void,
    attributes: *mut InitAttributes,
) -> c_int {
    if attributes.is_null() {
        say(format_args!(
            "nvshmemx_set_attr_mpi_comm_args: a null pointer"
        ));
        return Status::InvalidValue as c_int;
    }
    // SAFETY: valid for writing, by the caller.
    unsafe { (&raw mut (*attributes).mpi_comm).write(comm) };
    0
}

/// `nvshmem_finalize`: the last of as many calls as there were initialisations. Collective.
///
/// 1. This PE's GPU works off what it has, for others may wait for it in kernels.
/// 2. All meet: nobody needs anybody's memory any more.
/// 3. The GPU's part of the world ends, then the world.
pub(crate) unsafe fn finalize() {
    const NAME: &str = "nvshmem_finalize";
    let Ok(world) = world_for(NAME) else { return };
    let last = change(|place| {
        place.open = place.open.saturating_sub(1);
        place.open == 0
    });
    if !last {
        return;
    }
    if let Some(gpu) = world.opened_gpu() {
        gpu.world.drain();
        if let Err(reason) = gpu.quiet() {
            say(format_args!("{NAME}: {reason}"));
        }
    }
    if let Err(error) = world.pe.barrier() {
        say(format_args!("{NAME}: {error}"));
    }
    world.close_gpu();
    world.pe.leave();
    change(|place| place.world = None);
}

/// `nvshmemx_init_status`.
pub(crate) unsafe fn init_status() -> c_int {
    match world() {
        None => 0,
        Some(world) if world.opened_gpu().is_some() => 2,
        Some(_) => 1,
    }
}

/// `nvshmem_global_exit`: ends all PEs; the run's exit code is `status`.
pub(crate) unsafe fn global_exit(status: c_int) {
    if let Some(world) = world() {
        world.pe.announce_exit(status);
    }
    // SAFETY: the end of the process, which the program asks for.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status)
    }
}

/// `nvshmem_my_pe`; −1 without a world.
pub(crate) unsafe fn my_pe() -> c_int {
    world_for("nvshmem_my_pe").map_or(-1, |world| world.pe.my_pe() as c_int)
}

/// `nvshmem_n_pes`; −1 without a world.
pub(crate) unsafe fn n_pes() -> c_int {
    world_for("nvshmem_n_pes").map_or(-1, |world| world.pe.n_pes() as c_int)
}

/// `nvshmem_info_get_version`.
pub(crate) unsafe fn info_get_version(major: *mut c_int, minor: *mut c_int) {
    // SAFETY: valid for writing, by the caller.
    unsafe {
        major.write(SPECIFICATION.0);
        minor.write(SPECIFICATION.1);
    }
}

/// `nvshmem_info_get_name`.
pub(crate) unsafe fn info_get_name(name: *mut c_char) {
    let bytes = NAME.to_bytes_with_nul();
    // SAFETY: the caller's buffer has NVSHMEM_MAX_NAME_LEN characters, which is more.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), name, bytes.len()) };
}

/// `nvshmemx_vendor_get_version_info`.
pub(crate) unsafe fn vendor_get_version_info(
    major: *mut c_int,
    minor: *mut c_int,
    patch: *mut c_int,
) {
    for (to, number) in [major, minor, patch].into_iter().zip(VENDOR) {
        // SAFETY: valid for writing, by the caller.
        unsafe { to.write(number) };
    }
}
