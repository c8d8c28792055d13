//! The GPU of a world: opened when it is first needed, in the current context of the thread that needs it.
#![allow(unsafe_code)] // Writes variables of the program's kernels; takes the program's streams; launches kernels.

use crate::driver::{self, ContextGuard};
use crate::environment;
use crate::memory_words::Memory;
use crate::say::say;
use crate::teams::{MOST_TEAMS, Shape};
use crate::types::{ELEMENTS, Status};
use crate::under_way::UnderWay;
use crate::units::{self, Told};
use crosswarp_cuda::internal::{ROUTE_BYTES, TEAM_BYTES, WORLD_BYTES};
use crosswarp_cuda::{
    Buffer, Device, DeviceSym, DeviceTeam, DeviceWorld, Function, KernelArgs, Launch, Source,
    Stream,
};
use crosswarp_shmem::{CollectiveError, Pe, WorldKind};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};

mod words;

pub(crate) use words::WORDS;
use words::Words;

/// Bytes of the variable in which a unit's kernels find their world; see `device/state.cuh`.
pub(crate) const STATE_BYTES: usize = 128;
/// The same of units whose kernels reach PEs of other hosts: behind the rest there is the way to them.
pub(crate) const HOSTS_STATE_BYTES: usize = 256;
const _: () = assert!(WORLD_BYTES + 24 == STATE_BYTES);
const _: () = assert!(STATE_BYTES + ROUTE_BYTES + 24 == HOSTS_STATE_BYTES);

const REDUCE: &str = include_str!("../../kernels/reduce.cu");

/// Name and text of the reductions of an element type.
pub(crate) fn reduction(element: &str) -> (String, String) {
    (
        format!("reduce_{element}.cu"),
        REDUCE.replace("ELEMENT", element),
    )
}

/// The opened GPU.
pub(crate) struct Gpu {
    // In this order: what works on the heap, then the heap.
    words: Words,
    reductions: Mutex<Reductions>,
    /// The library's own stream, for what is called without one.
    pub(crate) stream: Stream,
    /// Of that stream.
    pub(crate) under_way: UnderWay,
    pub(crate) world: DeviceWorld<'static>,
    me: usize,
    /// By the address of this PE's part.
    objects: Mutex<HashMap<u64, DeviceSym<u8>>>,
    /// Heap offsets: of the table of teams, and of their memory, `team_bytes` each.
    table: usize,
    places: usize,
    team_bytes: usize,
    /// What kernels know of where the heap has memory, and where they find it.
    memory: Mutex<Memory>,
    /// This PE is a thread in a world of which two share a GPU: what its kernels are told.
    threads_share: Option<Shown>,
    told: Told,
}

/// See [`Shown`].
static SHOWN: Mutex<Vec<(usize, [u8; STATE_BYTES])>> = Mutex::new(Vec::new());

fn shown() -> MutexGuard<'static, Vec<(usize, [u8; STATE_BYTES])>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What kernels of a PE are told, where other PEs of the process may come with the same variable: known to these while it
/// lives.
struct Shown([u8; STATE_BYTES]);

impl Shown {
    fn new(me: usize, state: [u8; STATE_BYTES]) -> Self {
        shown().push((me, state));
        Self(state)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        shown().retain(|(_, state)| *state != self.0);
    }
}

/// Why threads whose kernels are units of the program need a GPU each.
const SHARED_VARIABLE: &str = "the program's own kernels find out which PE they are in a variable that is one for all of a \
    process on a GPU (kernels of modules that each PE loads have one each)";

/// What is wrong with kernels in a world of several hosts.
pub(crate) const OF_ONE_HOST: &str = "reach PEs of one host alone; compile all units with -DNVSHMEM_CW_HOSTS \
     (NVCC_APPEND_FLAGS has nvcc do so)";

/// What may hang in a world of several hosts.
const LAZY: &str = "CUDA loads each kernel when it is first launched, which waits for kernels that run, and these may wait for \
     PEs of other hosts; set CUDA_MODULE_LOADING=EAGER before the program starts";

/// Of an element type, by its name: the reduction and the scattered one.
type Reductions = HashMap<&'static str, [Function; 2]>;

type Reason = (Status, String);
type Failure = Box<dyn std::error::Error>;

fn internal(error: impl Display) -> Reason {
    (Status::Internal, error.to_string())
}

/// The stream with this handle. That of the thread's last call is kept, which is often the same.
///
/// # Safety
/// As [`Stream::borrowed`].
unsafe fn borrowed(device: &Device, handle: *mut c_void) -> Stream {
    thread_local! {
        static LAST: RefCell<Option<Stream>> = const { RefCell::new(None) };
    }
    // SAFETY: the caller's promise; between calls, where it need not hold, nobody uses what is kept.
    let new = || unsafe { Stream::borrowed(device, handle.cast()) };
    let kept = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        let same = |stream: &&Stream| stream.handle() == handle.cast() && stream.device() == device;
        match last.as_ref().filter(same) {
            Some(stream) => stream.clone(),
            None => last.insert(new()).clone(),
        }
    });
    // At the end of the thread nothing is kept any more.
    kept.unwrap_or_else(|_| new())
}

impl Gpu {
    /// Opens the GPU of `pe`, which is in teams of these handles and shapes. `smallest`: of all PEs' values. Collective.
    pub(crate) fn open(
        pe: &'static Pe,
        teams: &[(usize, Shape)],
        smallest: impl Fn(i64) -> Result<i64, CollectiveError>,
    ) -> Result<Self, Reason> {
        let several = pe.shared_team().n_pes() < pe.n_pes();
        let reach = !(several && units::any_of_one_host());
        // One PE's failure is one of all, or the others would wait.
        let all = smallest(reach.into()).map_err(internal)?;
        if all == 0 || !reach {
            let reason =
                format!("PEs are on several hosts, and kernels of the program {OF_ONE_HOST}");
            return Err((Status::NotSupported, reason));
        }
        let found = || -> Result<_, Reason> {
            Device::count().map_err(|error| {
                let reason = format!("NVSHMEM's functions that need a GPU find none: {error}");
                (Status::GpuNotSelected, reason)
            })?;
            let guard = ContextGuard::keep();
            let limit = environment::heap_limit().map_err(|error| (Status::InvalidValue, error))?;
            // Where the program has chosen none, the CUDA runtime would take the first.
            let device = Device::get(ContextGuard::device().unwrap_or(0)).map_err(internal)?;
            Ok((guard, device, limit))
        };
        let found = found();
        let ready = smallest(found.is_ok().into()).map_err(internal)?;
        let (_guard, device, limit) = found?;
        if ready == 0 {
            return Err((Status::GpuNotSelected, "another PE has found no GPU".into()));
        }
        if several {
            let at_once = !units::any() || driver::loads_kernels_at_once();
            let all = smallest(at_once.into()).map_err(internal)?;
            if all == 0 && pe.my_pe() == 0 {
                say(format_args!("{LAZY}"));
            }
        }
        let mut device_world =
            DeviceWorld::with_room(pe, device, limit, pe.wait_timeout()).map_err(internal)?;
        let shared = device_world.two_on_a_gpu();
        let threads = shared.is_some() && pe.kind() == WorldKind::Threads;
        let told_apart = !(threads && units::any());
        let all = smallest(told_apart.into()).map_err(internal)?;
        if let Some((one, other)) = shared
            && (all == 0 || !told_apart)
        {
            let reason = format!(
                "PEs {one} and {other} are threads that share a GPU, and {SHARED_VARIABLE}; start as many as there are GPUs"
            );
            return Err((Status::NotSupported, reason));
        }
        if let Some((one, other)) = shared
            && !threads
        {
            device_world.let_processes_share_gpus();
            if pe.my_pe() == one {
                say(format_args!(
                    "PEs {one} and {other} are processes that share a GPU: kernels that wait for one another go on only \
                     when the driver changes from one process to the other, which takes milliseconds a wait"
                ));
            }
        }
        let team_bytes = device_world.team_bytes(pe.n_pes()).next_multiple_of(128);
        let heap = device_world.heap();
        let table = heap
            .alloc_zeroed::<u8>(TEAM_BYTES * MOST_TEAMS)
            .map_err(internal)?;
        let places = heap
            .alloc_zeroed::<u8>(team_bytes * MOST_TEAMS)
            .map_err(internal)?;
        // What can fail on one PE alone.
        let load = || -> Result<_, Failure> {
            let stream = Stream::new(&device)?;
            let room = heap.stride() - heap.memory().1;
            let told = Memory::words(heap.memory(), room);
            let place = Buffer::from_slice(&stream, &told)?;
            let words = Words::load(&device_world, &stream)?;
            let all = match threads {
                true => Self::load_reductions(&device_world, pe.my_pe())?,
                false => HashMap::new(),
            };
            Ok((stream, Memory { told, place }, words, all))
        };
        let loaded = load();
        let ready = smallest(loaded.is_ok().into()).map_err(internal)?;
        let (stream, memory, words, reductions) = loaded.map_err(internal)?;
        if ready == 0 {
            return Err((
                Status::Internal,
                "another PE could not load its kernels".into(),
            ));
        }
        let mut gpu = Self {
            words,
            reductions: Mutex::new(reductions),
            stream,
            under_way: UnderWay::default(),
            me: pe.my_pe(),
            objects: Mutex::default(),
            table: table.offset(),
            places: places.offset(),
            team_bytes,
            threads_share: None,
            told: Told::default(),
            memory: Mutex::new(memory),
            world: device_world,
        };
        if threads {
            gpu.threads_share = Some(Shown::new(gpu.me, gpu.state()));
        }
        for &(index, shape) in teams {
            gpu.set_team(index, Some(shape)).map_err(internal)?;
        }
        // Kernels of others may use this PE's part of teams when it is there.
        pe.barrier().map_err(internal)?;
        Ok(gpu)
    }

    /// The address of heap offset `offset` on `pe`.
    fn at(&self, offset: usize, pe: usize) -> u64 {
        self.world.heap().address(offset, pe)
    }

    /// The heap offset of the `bytes` at an address in this PE's part, if they are memory.
    fn offset(&self, address: u64, bytes: usize) -> Option<usize> {
        let offset = address.checked_sub(self.at(0, self.me))? as usize;
        self.world.heap().has(offset, bytes).then_some(offset)
    }

    /// The address on `pe` of the `bytes` at an address in this PE's part.
    pub(crate) fn remote(&self, address: u64, bytes: usize, pe: i32) -> Result<u64, String> {
        let n = self.world.pe().n_pes();
        let pe = driver::number(pe)
            .filter(|&pe| pe < n)
            .ok_or_else(|| format!("PE {pe} does not exist in a world of {n}"))?;
        let offset = self
            .offset(address, bytes)
            .ok_or_else(|| format!("{bytes} bytes at {address:#x} are not symmetric memory"))?;
        Ok(self.at(offset, pe))
    }

    /// Whether `pe`, which exists, is on another host: its part is not mapped here.
    pub(crate) fn is_far(&self, pe: i32) -> bool {
        driver::number(pe).is_some_and(|pe| !self.world.maps(pe))
    }

    /// Copies `n` elements of `width` bytes between `local`, memory that this PE's GPU reaches, and what `pe`, of another
    /// host, has of the symmetric memory at `remote`: addresses, and bytes from one element to the next. `puts`: from here.
    ///
    /// # Safety
    /// So much is at `local`, until the stream has come to it.
    pub(crate) unsafe fn copy_over_hosts(
        &self,
        stream: &Stream,
        puts: bool,
        local: (u64, usize),
        (remote, stride): (u64, usize),
        (n, width): (usize, usize),
        pe: i32,
    ) -> Result<(), String> {
        let bytes = match n {
            0 => return Ok(()),
            n => (n - 1).saturating_mul(stride).saturating_add(width),
        };
        self.remote(remote, bytes, pe)?;
        // What the thread that carries it can't read or write would end the way for all.
        let here = (n - 1).saturating_mul(local.1).saturating_add(width);
        if !driver::are_known(local.0, here) {
            return Err(format!(
                "the {here} bytes at {:#x} are not all memory that a GPU reaches, and PE {pe} is on another host: use \
                 memory of the GPU, or of cudaMallocHost or cudaHostRegister",
                local.0
            ));
        }
        let remote = ((remote - self.at(0, self.me)) as usize, stride);
        // SAFETY: the remote side was checked, the local one is the caller's promise.
        let given = unsafe {
            self.world
                .copy_over_hosts(stream, puts, local, remote, (n, width), pe as usize)
        };
        given.map_err(|error| error.to_string())
    }

    /// An object of this PE's part for the verbs in stream order.
    pub(crate) fn object<T: crosswarp_cuda::Pod>(
        &self,
        address: u64,
        len: usize,
    ) -> Result<DeviceSym<T>, String> {
        let bytes = len.saturating_mul(size_of::<T>());
        let at = self.remote(address, bytes, self.me as i32)?;
        let offset = (at - self.at(0, self.me)) as usize;
        Ok(self.world.heap().at(offset, len))
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<u64, DeviceSym<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `bytes` of the heap. Collective.
    pub(crate) fn allocate(
        &self,
        bytes: usize,
        align: usize,
    ) -> Result<u64, crosswarp_cuda::HeapError> {
        let heap = self.world.heap();
        let object = heap.alloc_aligned::<u8>(bytes, align)?;
        let address = self.at(object.offset(), self.me);
        self.objects().insert(address, object);
        self.say_memory();
        Ok(address)
    }

    /// Tells kernels where the heap has memory.
    fn tell_memory(&self) -> Result<(), String> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let heap = self.world.heap();
        let found = heap.memory();
        let room = heap.stride() - found.1;
        let words = Memory::words(found, room);
        if words == memory.told {
            return Ok(());
        }
        let _guard = ContextGuard::keep();
        let device = self.world.device();
        device.bind().map_err(|error| error.to_string())?;
        let (at, bytes) = (memory.place.address(), bytemuck::cast_slice(&words));
        // SAFETY: there are as many words there, on this device.
        unsafe { driver::write(at, bytes, self.stream.handle()) }
            .map_err(|error| error.to_string())?;
        memory.told = words;
        Ok(())
    }

    /// The same where it is too late to fail: kernels then have the answers of before.
    fn say_memory(&self) {
        if let Err(error) = self.tell_memory() {
            say(format_args!("nvshmem_ptr of kernels: {error}"));
        }
    }

    /// Clears `bytes` bytes of this PE's part from `address` on.
    pub(crate) fn clear(&self, address: u64, bytes: usize) -> Result<(), String> {
        let _guard = ContextGuard::keep();
        let device = self.world.device();
        device.bind().map_err(|error| error.to_string())?;
        // SAFETY: this PE's part, which nobody uses before the rendezvous of the caller.
        unsafe { driver::cu!(cuMemsetD8Async(address, 0, bytes, self.stream.handle())) }
            .map_err(|error| error.to_string())?;
        let ended = self.stream.synchronize();
        ended.map_err(|error| error.to_string())
    }

    /// Gives it back. Collective.
    pub(crate) fn release(&self, address: u64) -> Result<(), String> {
        let object = self.objects().remove(&address);
        let object = object.ok_or_else(|| format!("{address:#x} is not from nvshmem_malloc"))?;
        self.world
            .heap()
            .free(object)
            .map_err(|error| error.to_string())
    }

    /// Makes memory of the program's symmetric; where it is in this PE's part. Collective.
    pub(crate) fn register(&self, address: u64, bytes: usize) -> Result<u64, String> {
        let _guard = ContextGuard::keep();
        let registered = self.world.heap().register(address, bytes);
        self.say_memory();
        registered.map_err(|error| error.to_string())
    }

    /// Takes it out of symmetric memory. Collective.
    pub(crate) fn unregister(&self, address: u64, bytes: usize) -> Result<(), String> {
        let _guard = ContextGuard::keep();
        let done = self.world.heap().unregister(address, bytes);
        self.say_memory();
        done.map_err(|error| error.to_string())
    }

    /// Tells kernels what team `index` is; `None`: none of this PE's.
    pub(crate) fn set_team(
        &self,
        index: usize,
        shape: Option<(usize, usize, usize)>,
    ) -> Result<(), String> {
        let bytes = shape
            .and_then(|shape| self.team(index, shape))
            .map_or([0; TEAM_BYTES], |team| team.state_bytes());
        let _guard = ContextGuard::keep();
        self.world
            .device()
            .bind()
            .map_err(|error| error.to_string())?;
        let at = self.at(self.table + index * TEAM_BYTES, self.me);
        // SAFETY: the table has room for every index.
        unsafe { driver::write(at, &bytes, self.stream.handle()) }
            .map_err(|error| error.to_string())
    }

    /// Clears the memory of team `index` on this PE, for a new one.
    pub(crate) fn clear_team(&self, index: usize) -> Result<(), String> {
        let _guard = ContextGuard::keep();
        self.world
            .device()
            .bind()
            .map_err(|error| error.to_string())?;
        let at = self.at(self.places + index * self.team_bytes, self.me);
        // SAFETY: a team's memory, which is nobody's now.
        unsafe {
            driver::cu!(cuMemsetD8Async(
                at,
                0,
                self.team_bytes,
                self.stream.handle()
            ))
        }
        .map_err(|error| error.to_string())?;
        self.stream.synchronize().map_err(|error| error.to_string())
    }

    /// Team `index`, for the verbs in stream order.
    pub(crate) fn team(&self, index: usize, shape: (usize, usize, usize)) -> Option<DeviceTeam> {
        let place = self.places + index * self.team_bytes;
        DeviceTeam::at(self.world.heap(), shape, place)
    }

    /// What kernels find in their unit's variable.
    pub(crate) fn state(&self) -> [u8; STATE_BYTES] {
        let mut state = [0; STATE_BYTES];
        state[..WORLD_BYTES].copy_from_slice(&self.world.state_bytes());
        let table = self.at(self.table, self.me);
        state[WORLD_BYTES..WORLD_BYTES + 8].copy_from_slice(&table.to_ne_bytes());
        let n = (MOST_TEAMS as i32).to_ne_bytes();
        state[WORLD_BYTES + 8..WORLD_BYTES + 12].copy_from_slice(&n);
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let place = memory.place.address().to_ne_bytes();
        state[WORLD_BYTES + 16..WORLD_BYTES + 24].copy_from_slice(&place);
        state
    }

    /// Tells the kernels whose variable, of `bytes` bytes, is at `at`. The device is current.
    ///
    /// # Safety
    /// There is such a variable.
    unsafe fn write_state(&self, at: u64, bytes: usize) -> Result<(), String> {
        let mut state = [0; HOSTS_STATE_BYTES];
        state[..STATE_BYTES].copy_from_slice(&self.state());
        // In a world of one host there is no way to others, and kernels look for none.
        if let Some(route) = self.world.route_bytes() {
            state[STATE_BYTES..STATE_BYTES + ROUTE_BYTES].copy_from_slice(&route);
        }
        // SAFETY: the caller's promise.
        unsafe { driver::write(at, &state[..bytes], self.stream.handle()) }
            .map_err(|error| error.to_string())
    }

    /// Tells the kernels of units that were registered since who they are. Nothing is locked: see [`units`].
    pub(crate) fn install_new_units(&self) {
        if !self.told.misses_some() {
            return;
        }
        if self.threads_share.is_some() {
            if units::any() {
                say(format_args!(
                    "PEs are threads that share a GPU, and {SHARED_VARIABLE}"
                ));
            }
            return self.told.pass_over();
        }
        self.told.tell(|address, of_hosts| {
            if self.world.route_bytes().is_some() && !of_hosts {
                // It will not be otherwise at the next call.
                say(format_args!("kernels that were loaded late {OF_ONE_HOST}"));
                return Ok(());
            }
            let _guard = ContextGuard::keep();
            self.world
                .device()
                .bind()
                .map_err(|error| error.to_string())?;
            let at = address() as u64;
            if at == 0 {
                return Err("a unit's variable has no address on this device".into());
            }
            let bytes = if of_hosts {
                HOSTS_STATE_BYTES
            } else {
                STATE_BYTES
            };
            // SAFETY: its layout is in the name of the function that registers it.
            unsafe { self.write_state(at, bytes) }
        });
    }

    /// Tells the kernels of the module whose variable, of `bytes` bytes, is at `at` who they are. The device is current.
    ///
    /// # Safety
    /// There is such a variable on this device.
    pub(crate) unsafe fn tell_module(&self, at: u64, bytes: usize) -> Result<(), String> {
        match bytes {
            HOSTS_STATE_BYTES => {}
            STATE_BYTES if self.world.route_bytes().is_none() => {}
            STATE_BYTES => return Err(format!("its kernels {OF_ONE_HOST}")),
            _ => {
                return Err(format!(
                    "its kernels expect {bytes} bytes where this library writes {STATE_BYTES}, or {HOSTS_STATE_BYTES} for \
                     several hosts; compile it again"
                ));
            }
        }
        let stream = self.stream.handle();
        // Held to the end: two PEs that bring the same variable at the same time are told from one another, too. What is
        // waited for under it are copies alone: a thread that is a PE is in one call at a time, so its own stream has
        // nothing that waits for others.
        let others = self.threads_share.as_ref().map(|_| shown());
        if let Some(others) = &others {
            let mut there = [0; STATE_BYTES];
            // SAFETY: the caller's promise.
            unsafe { driver::read(&mut there, at, stream) }.map_err(|error| error.to_string())?;
            let known = others.iter().find(|(_, state)| *state == there);
            if let Some(other) = known.map(|(pe, _)| *pe).filter(|&pe| pe != self.me) {
                return Err(format!(
                    "PE {other}, which shares the GPU, has told this module's kernels that they are its own; each PE loads \
                     the module for itself"
                ));
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.write_state(at, bytes) }
    }

    /// Refuses to wait for other PEs in a stream that work of a PE on the same GPU can hold up: these may be who it waits
    /// for.
    pub(crate) fn may_wait_in(&self, stream: &Stream) -> Result<(), String> {
        if self.threads_share.is_none() {
            return Ok(());
        }
        // SAFETY: it lives, of the context that is current.
        match unsafe { driver::stands_alone(stream.handle()) } {
            Ok(true) => Ok(()),
            Ok(false) => Err(
                "PEs are threads that share a GPU and its default streams, behind which this would wait for itself; take a \
                 stream of this PE's own, made by cudaStreamCreateWithFlags with cudaStreamNonBlocking"
                    .into(),
            ),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Runs `give` with the stream of the program, or with the library's own, which is then waited for.
    pub(crate) fn on<E: Display>(
        &self,
        stream: Option<*mut c_void>,
        give: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<(), String> {
        let device = self.world.device();
        let _held = device.hold().map_err(|error| error.to_string())?;
        match stream {
            Some(handle) => {
                // SAFETY: the program's stream, which lives during this call.
                let stream = unsafe { borrowed(&device, handle) };
                give(&stream).map_err(|error| error.to_string())
            }
            None => {
                let given = give(&self.stream).map_err(|error| error.to_string());
                if given.is_err() {
                    // What was given before it failed.
                    self.under_way.has_given();
                    return given;
                }
                self.wait()
            }
        }
    }

    /// Completes what was given to the library's own stream; and what went to PEs of other hosts, by kernels, too.
    pub(crate) fn quiet(&self) -> Result<(), String> {
        let _guard = ContextGuard::keep();
        let device = self.world.device();
        device.bind().map_err(|error| error.to_string())?;
        let given = self.world.quiet_on_stream(&self.stream);
        // Where a kernel has ended in vain nothing can be given any more, and the wait knows why.
        self.wait()?;
        given.map_err(|error| error.to_string())
    }

    /// Waits for the library's own stream.
    pub(crate) fn wait(&self) -> Result<(), String> {
        let _guard = ContextGuard::keep();
        let begun = self.under_way.begins();
        self.world
            .synchronize(&self.stream)
            .map_err(|error| error.to_string())?;
        self.under_way.ends(begun);
        Ok(())
    }

    /// # Safety
    /// Arguments as the kernel's parameters; addresses are of symmetric memory or of the program's.
    unsafe fn launch(
        &self,
        function: &Function,
        (blocks, threads): (u32, u32),
        stream: &Stream,
        args: impl KernelArgs,
    ) -> Result<(), String> {
        let launch = Launch::new(function).grid(blocks).block(threads);
        // SAFETY: the caller's promise; the module lives as long as its functions.
        unsafe { launch.launch(stream, args) }.map_err(|error| error.to_string())
    }

    /// Combines `n` elements of the type `element`, by the kernel of [`REDUCE`], compiled if it was not yet.
    pub(crate) fn reduce(
        &self,
        stream: &Stream,
        team: &DeviceTeam,
        (dest, source, n): (u64, u64, usize),
        (element, op, scatters): (&'static str, i32, bool),
    ) -> Result<(), String> {
        let mut known = self
            .reductions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(element) {
            let module = Self::load_reduction(&self.world, element);
            known.insert(element, module.map_err(|error| error.to_string())?);
        }
        let function = &known[element][usize::from(scatters)];
        // SAFETY: `(team, T*, const T*, u64, i32)`; the lengths are the program's.
        unsafe {
            self.launch(
                function,
                (1, 512),
                stream,
                (team, dest, source, n as u64, op),
            )
        }
    }

    fn load_reduction(
        world: &DeviceWorld<'static>,
        element: &str,
    ) -> Result<[Function; 2], Failure> {
        let (name, text) = reduction(element);
        let source = Source::new(&name, &text);
        let module = world.load(&source)?;
        Ok([
            module.function("reduce")?,
            module.function("reducescatter")?,
        ])
    }

    /// All reductions, with their code on the GPU. Loading waits for all kernels of a GPU: where PEs share it, nothing may
    /// be left to load when one's kernel waits for another PE.
    fn load_reductions(world: &DeviceWorld<'static>, me: usize) -> Result<Reductions, Failure> {
        // Each PE begins with another, so that they do not compile the same.
        let of = |i: usize| ELEMENTS[(me + i) % ELEMENTS.len()];
        let load = |i| -> Result<_, Failure> {
            let functions = Self::load_reduction(world, of(i))?;
            for function in &functions {
                Launch::new(function).load()?;
            }
            Ok((of(i), functions))
        };
        (0..ELEMENTS.len()).map(load).collect()
    }
}
