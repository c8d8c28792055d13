//! Units of the program that have kernels: each has a variable in which these find their world.
//!
//! Threads load and unload libraries with units while others tell units which PE they are. The system's loader has a lock of
//! its own, which it holds while it calls constructors and destructors, and so [`register`] and
//! [`unregister`](nvshmem_cw_unregister_1); and who asks for a variable's address may come to that lock, too. So:
//!
//! 1. No lock of this crate's is held while a unit's address is asked for, or a library held or let go.
//! 2. The lock of `UNITS` is held to look or to change, never to wait for anything.
//! 3. A unit's address is asked for while its library is [held](Library::hold): then nobody unloads it, and its loading has
//!    ended, for to hold it the loader's lock is needed. With relocatable device code it has no address before.
#![allow(unsafe_code)] // Exports the functions that units call; calls the loader.

use crate::say::say;
use std::ffi::{CStr, CString, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives the address of a unit's variable on the current device; null if there is none.
pub(crate) type Address = extern "C" fn() -> *mut c_void;

#[derive(Clone)]
struct Unit {
    address: Address,
    /// Whether its kernels reach PEs of other hosts.
    of_hosts: bool,
    /// No other unit ever has it.
    number: u64,
    /// The file of its library; `None` for the program's own, which stays.
    library: Option<Arc<CStr>>,
}

static UNITS: Mutex<Vec<Unit>> = Mutex::new(Vec::new());
/// How many units there have been so far.
static REGISTERED: AtomicU64 = AtomicU64::new(0);

fn units() -> MutexGuard<'static, Vec<Unit>> {
    UNITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the loader has the file with this address, and the file's name. Whoever asks keeps it loaded.
fn file_of(address: *const c_void) -> Option<(*mut c_void, Arc<CStr>)> {
    // SAFETY: plain pointers, of which all zeros are values.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: looks the address up, and fills the structure in.
    if unsafe { libc::dladdr(address, &mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's text, which is there as long as the file is loaded.
    let name: CString = unsafe { CStr::from_ptr(found.dli_fname) }.to_owned();
    Some((found.dli_fbase, Arc::from(name)))
}

/// The library with this address; `None` if it is the program's own.
fn library_of(address: Address) -> Option<Arc<CStr>> {
    let (base, name) = file_of(address as *const c_void)?;
    // SAFETY: asks the system for a number: where the program begins to run.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) } as usize;
    let program = file_of(ptr::with_exposed_provenance(entry));
    (program.map(|(base, _)| base) != Some(base)).then_some(name)
}

/// A unit that has been loaded, before `main` or later.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_register_1(address: Address) {
    register(address, false);
}

/// The same of one whose kernels reach PEs of other hosts.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_register_of_hosts_1(address: Address) {
    register(address, true);
}

/// Has the driver load all kernels of a module with it, unless the user has said how. Kernels that reach PEs of other hosts
/// wait for a thread of this process, which copies for them; were a kernel loaded at its first launch, behind such a one
/// that runs, the launch would wait for that, and the thread for the launch, which holds the driver.
///
/// The driver reads the variable when it begins, which is after the constructors of the program.
fn load_kernels_at_once() {
    const MODE: &str = "CUDA_MODULE_LOADING";
    let alone = std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    if alone && std::env::var_os(MODE).is_none() {
        // SAFETY: there is no other thread that could read the environment.
        unsafe { std::env::set_var(MODE, "EAGER") };
    }
}

fn register(address: Address, of_hosts: bool) {
    if of_hosts {
        load_kernels_at_once();
    }
    let library = library_of(address);
    let mut units = units();
    let number = REGISTERED.load(Ordering::Relaxed);
    units.push(Unit {
        address,
        of_hosts,
        number,
        library,
    });
    // Release: who sees it sees the unit. It is told at the program's next call.
    REGISTERED.store(number + 1, Ordering::Release);
}

/// A unit that is unloaded.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_unregister_1(address: Address) {
    units().retain(|unit| !ptr::fn_addr_eq(unit.address, address));
}

/// Whether there are any.
pub(crate) fn any() -> bool {
    !units().is_empty()
}

/// Whether there are any whose kernels reach PEs of one host alone.
pub(crate) fn any_of_one_host() -> bool {
    units().iter().any(|unit| !unit.of_hosts)
}

/// A library that stays loaded while this lives. Dropped, it may be unloaded, which runs its destructors: nothing may be
/// locked then.
struct Library(NonNull<c_void>);

impl Library {
    /// `None` if no file of that name is loaded.
    fn hold(name: &CStr) -> Option<Self> {
        let found = libc::RTLD_NOLOAD | libc::RTLD_LAZY;
        // SAFETY: counts a library once more that is there; nothing is loaded.
        let handle = unsafe { libc::dlopen(name.as_ptr(), found) };
        NonNull::new(handle).map(Self)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: from `dlopen`, given back once.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

/// The units that know which PE they are of.
#[derive(Default)]
pub(crate) struct Told(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// How many there had been when all knew.
    all_of: u64,
    numbers: Vec<u64>,
}

impl Told {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether units have come since [`tell`](Self::tell) last told all, or [`pass_over`](Self::pass_over).
    pub(crate) fn misses_some(&self) -> bool {
        self.known().all_of != REGISTERED.load(Ordering::Acquire)
    }

    /// Leaves those that have come as they are.
    pub(crate) fn pass_over(&self) {
        self.known().all_of = REGISTERED.load(Ordering::Acquire);
    }

    /// Tells units that do not know it yet, by `install`. Two threads may tell the same one at the same time: they tell it
    /// the same, and none returns before the units know that it has found. `install` hears, too, whether the unit's kernels
    /// reach PEs of other hosts.
    pub(crate) fn tell(&self, mut install: impl FnMut(Address, bool) -> Result<(), String>) {
        let all_of = REGISTERED.load(Ordering::Acquire);
        let mut missing = units().clone();
        missing.retain({
            let known = self.known();
            move |unit| !known.numbers.contains(&unit.number)
        });
        let mut all = true;
        for unit in missing {
            let held = unit.library.as_deref().map(Library::hold);
            // Unloaded meanwhile, and then another may be in its place. One that can't be held though it is there is of a
            // namespace of its own: whoever made that keeps it.
            if !units().iter().any(|there| there.number == unit.number) {
                continue;
            }
            match install(unit.address, unit.of_hosts) {
                Ok(()) => self.known().numbers.push(unit.number),
                Err(error) => {
                    say(format_args!(
                        "kernels can't be told which PE they are: {error}"
                    ));
                    // The next call tries again.
                    all = false;
                }
            }
            drop(held);
        }
        // Of those that have gone nobody asks again. (One that came since, and that another thread has told, is told twice.)
        let there: Vec<u64> = units().iter().map(|unit| unit.number).collect();
        let mut known = self.known();
        known.numbers.retain(|number| there.contains(number));
        known.numbers.sort_unstable();
        known.numbers.dedup();
        if all {
            known.all_of = known.all_of.max(all_of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::thread::spawn;
    use std::time::Duration;

    /// What has not come by then never will.
    const WATCHDOG: Duration = Duration::from_secs(60);

    extern "C" fn first() -> *mut c_void {
        ptr::without_provenance_mut(1)
    }
    extern "C" fn second() -> *mut c_void {
        ptr::without_provenance_mut(2)
    }

    /// A library whose unit is registered for it, since it can't find this program's functions by name.
    fn library(folder: &std::path::Path) -> (Library, Address, Arc<CStr>) {
        let (source, path) = (folder.join("unit.c"), folder.join("unit.so"));
        std::fs::write(&source, "void *unit(void) { return (void *)unit; }\n").unwrap();
        let mut gcc = Command::new("gcc");
        let built = gcc
            .args(["-shared", "-fPIC", "-o"])
            .args([&path, &source])
            .status();
        assert!(built.unwrap().success());
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a library without constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        let library = Library(NonNull::new(handle).unwrap());
        // SAFETY: its function, of this type.
        let unit: Address = unsafe {
            std::mem::transmute::<*mut c_void, Address>(libc::dlsym(handle, c"unit".as_ptr()))
        };
        assert_eq!(library_of(unit).as_deref(), Some(name.as_c_str()));
        (library, unit, Arc::from(name))
    }

    /// One test, for the units are the process's.
    #[test]
    fn units_come_and_go_while_others_are_told() {
        // A function may have several addresses.
        let [first, second]: [Address; 2] = [first, second];
        assert_eq!(library_of(first), None);
        nvshmem_cw_register_1(first);
        let told = Told::default();
        assert!(told.misses_some());
        // While one is told, another comes and goes, as by a thread that loads a library and has the loader's lock.
        let mut calls = 0;
        told.tell(|address, _| {
            calls += 1;
            assert!(ptr::fn_addr_eq(address, first));
            let (done, waits) = channel();
            spawn(move || {
                nvshmem_cw_register_1(second);
                nvshmem_cw_unregister_1(second);
                done.send(any()).unwrap();
            });
            assert_eq!(waits.recv_timeout(WATCHDOG), Ok(true));
            Ok(())
        });
        assert_eq!(calls, 1);
        // One has come since, and gone; no unit is told twice.
        assert!(told.misses_some());
        told.tell(|_, _| panic!("nobody is left to tell"));
        assert!(!told.misses_some());

        // A library that another thread lets go stays until its unit has been told.
        let folder = tempfile::tempdir().unwrap();
        let (library, unit, name) = library(folder.path());
        nvshmem_cw_register_1(unit);
        let mut only = Some(library.0.addr());
        std::mem::forget(library);
        told.tell(|address, _| {
            let handle = only.take().expect("one unit");
            let closed = spawn(move || {
                let handle = ptr::with_exposed_provenance_mut(handle.get());
                // SAFETY: the handle of `library`, which was forgotten.
                unsafe { libc::dlclose(handle) }
            });
            assert_eq!(closed.join().unwrap(), 0);
            assert_eq!(address(), address as *mut c_void);
            Ok(())
        });
        assert!(only.is_none());
        assert!(Library::hold(&name).is_none(), "it is let go afterwards");
        // One whose library has gone without a word can't be held, and is as in a namespace of its own: it fails, and the
        // next call tries again.
        nvshmem_cw_unregister_1(unit);
        nvshmem_cw_register_1(second);
        told.tell(|_, _| Err("no address".into()));
        assert!(told.misses_some());
        told.tell(|_, _| Ok(()));
        assert!(!told.misses_some());
        assert_eq!(
            told.known().numbers.len(),
            2,
            "those that have gone are forgotten"
        );
        nvshmem_cw_unregister_1(first);
        nvshmem_cw_unregister_1(second);
        assert!(!any());
    }
}
