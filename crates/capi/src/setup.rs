//! Beginning, end, and questions about the world.
#![allow(unsafe_code)] // writes results through C's pointers; calls the C library's exit

use crate::world::{self, Name, enter_unchecked};
use crate::{debug, misuse, mixture, static_data, team};
use crosswarp_shmem::Pe;
use crosswarp_shmem::internal::{SETTINGS, SYMMETRIC_SIZE, name_static_data};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Instant;

/// How often the library was initialised more than finalised.
static OPEN: AtomicU32 = AtomicU32::new(0);
static THREAD_LEVEL: AtomicI32 = AtomicI32::new(0);
static START: OnceLock<Instant> = OnceLock::new();

/// `SHMEM_MAJOR_VERSION`, `SHMEM_MINOR_VERSION`.
const SPECIFICATION: (c_int, c_int) = (1, 5);
/// `SHMEM_VENDOR_STRING`.
const NAME: &CStr = c"Crosswarp";

const THREAD_SINGLE: c_int = 0;
const THREAD_MULTIPLE: c_int = 3;

/// `shmem_init`.
pub(crate) unsafe fn init(name: Name) {
    // SAFETY: a place for the answer.
    unsafe { init_thread(name, THREAD_SINGLE, &mut 0) };
}

/// `shmem_init_thread`: every level is provided. Returns 0.
pub(crate) unsafe fn init_thread(name: Name, requested: c_int, provided: *mut c_int) -> c_int {
    if world::finalized() {
        misuse::end(name, format_args!("called after shmem_finalize"));
    }
    if !(THREAD_SINGLE..=THREAD_MULTIPLE).contains(&requested) {
        misuse::end(
            name,
            format_args!("requested is {requested}, none of SHMEM_THREAD_*"),
        );
    }
    if OPEN.fetch_add(1, Ordering::AcqRel) == 0 {
        THREAD_LEVEL.store(requested, Ordering::Release);
        open(name);
    }
    // SAFETY: valid for writing, by the caller.
    unsafe { provided.write(THREAD_LEVEL.load(Ordering::Acquire)) };
    0
}

/// Joins the world: 1. the PE, 2. its static data, before anyone may use either, 3. the teams,
/// 4. everyone: no PE returns before all are there.
fn open(name: Name) {
    START.get_or_init(Instant::now);
    let fail = |what: &dyn std::fmt::Display| -> ! {
        misuse::say(format_args!("{name}: {what}"));
        // SAFETY: ends the process; nothing of ours is half done.
        unsafe { libc::exit(1) }
    };
    misuse::watch_panics();
    let mut pe = crosswarp_shmem::init().unwrap_or_else(|error| fail(&error));
    if let Err(error) = static_data::share(&mut pe) {
        fail(&error);
    }
    name_static_data("/proc/self/exe");
    greet(&pe);
    if pe.my_pe() == 0 {
        mixture::look(name);
    }
    let pe = world::open(pe, debug::enabled());
    team::open(pe);
    if let Err(error) = pe.barrier() {
        fail(&error);
    }
}

/// What `SHMEM_VERSION` and `SHMEM_INFO` ask for, from PE 0.
fn greet(pe: &Pe) {
    if pe.my_pe() != 0 {
        return;
    }
    let (version, info) = (
        debug::set("SHMEM_VERSION") || debug::set("SMA_VERSION"),
        debug::set("SHMEM_INFO") || debug::set("SMA_INFO"),
    );
    if version || info {
        println!(
            "Crosswarp {}, OpenSHMEM {}.{}",
            env!("CARGO_PKG_VERSION"),
            SPECIFICATION.0,
            SPECIFICATION.1
        );
    }
    if info {
        println!("SHMEM_SYMMETRIC_SIZE  bytes of symmetric heap per PE; K, M, G and T may follow");
        println!("SHMEM_VERSION         if set, print the version at start-up");
        println!("SHMEM_INFO            if set, print this text at start-up");
        println!("SHMEM_DEBUG           if set, check arguments and print debugging messages");
        // SHMEM_SYMMETRIC_SIZE stands above.
        for setting in SETTINGS
            .iter()
            .filter(|setting| setting.name != SYMMETRIC_SIZE.name)
        {
            println!(
                "{:<21} {} (default: {})",
                setting.name, setting.help, setting.default
            );
        }
    }
}

/// `shmem_query_thread`.
pub(crate) unsafe fn query_thread(name: Name, provided: *mut c_int) {
    enter_unchecked(name);
    // SAFETY: valid for writing, by the caller.
    unsafe { provided.write(THREAD_LEVEL.load(Ordering::Acquire)) };
}

/// `shmem_query_initialized` (1.6).
pub(crate) unsafe fn query_initialized(_name: Name, initialized: *mut c_int) {
    // SAFETY: valid for writing, by the caller.
    unsafe { initialized.write((OPEN.load(Ordering::Acquire) > 0).into()) };
}

/// `shmem_finalize`: contains a barrier. The last of as many calls as there were initialisations ends
/// this PE's part; its memory stays where it is. A further one does nothing.
pub(crate) unsafe fn finalize(name: Name) {
    if world::finalized() {
        return;
    }
    let pe = enter_unchecked(name);
    if OPEN.fetch_sub(1, Ordering::AcqRel) > 1 {
        return;
    }
    if let Err(error) = pe.barrier() {
        misuse::end(name, format_args!("{error}"));
    }
    world::close();
    pe.leave();
}

/// `start_pes`: initialises once; the end of the program finalises.
pub(crate) unsafe fn start_pes(name: Name, _npes: c_int) {
    if OPEN.load(Ordering::Acquire) > 0 {
        return;
    }
    // SAFETY: asks for nothing.
    unsafe { init(name) };
    let this_process = ptr::without_provenance_mut(std::process::id() as usize);
    // SAFETY: `finalize_implicitly` may run at any exit.
    unsafe { on_exit(finalize_implicitly, this_process) };
}

unsafe extern "C" {
    /// As `atexit`, with the exit status for the function.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// At a normal end only: a failing PE must not wait for the others. And at the end of `pe`, the process
/// that is the PE: a child that it has forked inherits this function, but is nobody in the world.
extern "C" fn finalize_implicitly(status: c_int, pe: *mut c_void) {
    if pe.addr() != std::process::id() as usize {
        return;
    }
    if status == 0 && OPEN.load(Ordering::Acquire) > 0 && !world::finalized() {
        // SAFETY: asks for nothing.
        unsafe { finalize("start_pes") };
    }
}

/// `shmem_global_exit`: ends all PEs; the run's exit code is `status`.
pub(crate) unsafe fn global_exit(name: Name, status: c_int) -> ! {
    let pe = enter_unchecked(name);
    world::close();
    // SAFETY: flushing all streams is allowed at any time.
    unsafe { libc::fflush(ptr::null_mut()) };
    pe.announce_exit(status);
    // SAFETY: the end of the process.
    unsafe { libc::exit(status) }
}

/// `shmem_my_pe`.
pub(crate) unsafe fn my_pe(name: Name) -> c_int {
    enter_unchecked(name).my_pe() as c_int
}

/// `shmem_n_pes`.
pub(crate) unsafe fn n_pes(name: Name) -> c_int {
    enter_unchecked(name).n_pes() as c_int
}

/// `shmem_pe_accessible`.
pub(crate) unsafe fn pe_accessible(name: Name, pe: c_int) -> c_int {
    (world::number(pe) < enter_unchecked(name).n_pes()).into()
}

/// `shmem_addr_accessible`.
pub(crate) unsafe fn addr_accessible(name: Name, addr: *const c_void, pe: c_int) -> c_int {
    let me = enter_unchecked(name);
    (world::number(pe) < me.n_pes() && me.raw().contains(addr, 1)).into()
}

/// `shmem_ptr`.
pub(crate) unsafe fn ptr(name: Name, dest: *const c_void, pe: c_int) -> *mut c_void {
    enter_unchecked(name)
        .raw()
        .ptr(dest.cast::<u8>(), world::number(pe))
        .cast()
}

/// `shmem_info_get_version`.
pub(crate) unsafe fn info_get_version(_name: Name, major: *mut c_int, minor: *mut c_int) {
    // SAFETY: valid for writing, by the caller.
    unsafe {
        major.write(SPECIFICATION.0);
        minor.write(SPECIFICATION.1);
    }
}

/// `shmem_info_get_name`.
pub(crate) unsafe fn info_get_name(_name: Name, name: *mut c_char) {
    let bytes = NAME.to_bytes_with_nul();
    // SAFETY: the caller's buffer has SHMEM_MAX_NAME_LEN characters, which is more.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), name, bytes.len()) };
}

/// `shmem_pcontrol`: for tools, which define it themselves.
pub(crate) unsafe fn pcontrol(_name: Name, _level: c_int) {}

/// The cache functions of machines of long ago.
pub(crate) unsafe fn nothing(_name: Name) {}

/// As [`nothing`].
pub(crate) unsafe fn nothing_with(_name: Name, _dest: *mut c_void) {}

/// `shmemx_wtime`: seconds since the library was initialised (or first asked).
pub(crate) unsafe fn wtime(_name: Name) -> f64 {
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}
