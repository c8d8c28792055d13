//! A GPU as a PE: the world as kernels see it, launches that start on all PEs together, and access to
//! the symmetric device heap from the host.
#![allow(unsafe_code)] // Calls into libcuda; launches.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytemuck::Pod;
use crosswarp_shmem::{CollectiveError, Pe, Sym, WorldKind};

use crate::compile::module::Module;
use crate::compile::program::Options;
use crate::compile::source::Source;
use crate::driver::device::Device;
use crate::driver::libcuda::cu;
use crate::driver::memory::{PinnedBuffer, same_length};
use crate::driver::stream::{Event, Stream};
use crate::launch::args::KernelArgs;
use crate::launch::{Launch, PreparedLaunch};
use crate::layout::{
    ROUTE_SYMBOL, ROUTED, RouteState, WORLD_OF_HOSTS_SYMBOL, WORLD_SYMBOL, WorldState,
};
use crate::pe::error::DeviceWorldError;
use crate::pe::heap::{DROP_LIMIT, DeviceHeap, DeviceSym, drain};
use crate::pe::kernels::Kernels;
use crate::pe::nccl::communicator::Communicator;
use crate::pe::route::Route;
use crate::pe::team::DeviceTeam;
use crate::pe::view::DeviceSymRef;
use crate::pe::wait::{SyncError, Waits};

/// One PE's GPU in a world of PEs.
///
/// Several PEs may share a GPU if they are threads of one process (that is how one-GPU machines are
/// tested).
pub struct DeviceWorld<'w> {
    // Freed in this order, after the drop below: NCCL works on the heap; the record of waits goes after what
    // may use it.
    pub(crate) nccl: Option<Communicator>,
    /// To PEs of other hosts; it works on the heap, too.
    route: Option<Route>,
    heap: DeviceHeap<'w>,
    waits: Waits,
    all: DeviceTeam,
    /// Of the stream-ordered verbs; there when `new` returns, and in a world of several hosts.
    kernels: Option<Kernels>,
    /// For strided copies from and to the host; made when first used.
    pub(crate) staging: Mutex<Option<PinnedBuffer<u8>>>,
    /// The PEs on my GPU, this one included.
    sharing: Vec<usize>,
    /// Two PEs that share any GPU of the world, the same ones on every PE.
    shared_gpu: Option<(usize, usize)>,
    /// Multiprocessors of the largest GPU of the world.
    multiprocessors: usize,
    /// Blocks of the grids that PEs start for one another, as many as every PE's share of its GPU has multiprocessors.
    blocks: usize,
    /// The memory of teams, and how many PEs each has: the same ones on every PE.
    teams: Mutex<Vec<(DeviceSym<u8>, usize)>>,
    word: Sym<u64>,
    words: Sym<u64>,
    /// Whether processes that share a GPU may wait for one another in its kernels.
    pub(crate) processes_may_share: bool,
}

impl<'w> DeviceWorld<'w> {
    /// Makes `device` the GPU of `pe`. Collective: every PE brings its GPU.
    ///
    /// `heap_limit`: most bytes of device heap per PE (default: the smallest GPU's memory).
    /// `wait_limit`: after how long waits inside kernels give up (default: never).
    ///
    /// Of the heap it takes 10 KiB per PE, and for large reductions 64 KiB × SMs × PEs (divided by the PEs
    /// on a GPU; 33 MiB for four H200s) if that is at most a quarter.
    ///
    /// Compiles (once per machine) and loads the kernels of the stream-ordered verbs, so that none of
    /// them is loaded when another PE's kernel already waits for it.
    pub fn new(
        pe: &'w Pe,
        device: Device,
        heap_limit: Option<usize>,
        wait_limit: Option<Duration>,
    ) -> Result<Self, DeviceWorldError> {
        let heap = DeviceHeap::new(pe, device, heap_limit)?;
        Self::with_verbs(heap, wait_limit)
    }

    /// A world with this heap.
    pub(crate) fn with_verbs(
        heap: DeviceHeap<'w>,
        wait_limit: Option<Duration>,
    ) -> Result<Self, DeviceWorldError> {
        let mut world = Self::of_heap(heap, wait_limit)?;
        if world.kernels.is_none() {
            world.load_kernels()?;
        }
        Ok(world)
    }

    /// The same for who launches kernels of its own and needs no stream-ordered verbs but puts, gets and quiet: compiling
    /// theirs takes longer than that of most kernels. In a world of several hosts they are there, since these three need
    /// them. Collective. The other verbs panic.
    #[doc(hidden)]
    pub fn without_verbs(
        pe: &'w Pe,
        device: Device,
        heap_limit: Option<usize>,
        wait_limit: Option<Duration>,
    ) -> Result<Self, DeviceWorldError> {
        Self::of_heap(DeviceHeap::new(pe, device, heap_limit)?, wait_limit)
    }

    fn of_heap(
        heap: DeviceHeap<'w>,
        wait_limit: Option<Duration>,
    ) -> Result<Self, DeviceWorldError> {
        let (pe, device) = (heap.pe(), heap.device());
        let n = pe.n_pes();
        let (word, words) = (pe.alloc(1)?, pe.alloc(n)?);
        let gather = |value| gather(pe, &word, &words, value);
        // Numbers of GPUs differ between processes, bus addresses do not.
        let mut hasher = DefaultHasher::new();
        device.properties().pci.hash(&mut hasher);
        // Nor do hosts share GPUs, whatever their addresses: the first PE names the host.
        pe.shared_team().world_pe(0).hash(&mut hasher);
        let (mine, gpus) = (hasher.finish(), gather(hasher.finish())?);
        let sharing: Vec<usize> = (0..n).filter(|&other| gpus[other] == mine).collect();
        let shared_gpu = (0..n)
            .flat_map(|pe| (pe + 1..n).map(move |other| (pe, other)))
            .find(|&(pe, other)| gpus[pe] == gpus[other]);
        let blocks = gather(u64::from(device.properties().multiprocessors) / sharing.len() as u64)?;
        let blocks = blocks.into_iter().min().unwrap_or(0).max(1) as usize;
        let multiprocessors = gather(u64::from(device.properties().multiprocessors))?;
        let multiprocessors = multiprocessors.into_iter().max().unwrap_or(0) as usize;
        let all = DeviceTeam::of_all(&heap, blocks, multiprocessors)?;
        let left = pe.alloc_zeroed(n)?;
        let waits = Waits::new(pe, &device, wait_limit, left);
        // What fails on one PE alone fails on all.
        let ready = gather(waits.is_ok().into())?;
        let waits = waits?;
        let at = (heap.address(0, pe.my_pe()), heap.stride() as u64);
        let route = Route::start(pe, &device, at, waits.left(), waits.ender(pe));
        let routed = gather(route.is_ok().into())?;
        let route = route?;
        if let Some(pe) = routed.iter().position(|&ready| ready == 0) {
            return Err(DeviceWorldError::PeerNotReady { pe });
        }
        if let Some(pe) = ready.iter().position(|&ready| ready == 0) {
            return Err(DeviceWorldError::PeerNotReady { pe });
        }
        let mut world = Self {
            nccl: None,
            route,
            heap,
            waits,
            all,
            kernels: None,
            staging: Mutex::new(None),
            sharing,
            shared_gpu,
            multiprocessors,
            blocks,
            teams: Mutex::new(Vec::new()),
            word,
            words,
            processes_may_share: false,
        };
        // Either is also the rendezvous after which peers may write to this PE's scratch.
        if world.route.is_some() {
            world.load_kernels()?;
        } else {
            world.gather(0)?;
        }
        Ok(world)
    }

    /// Loads the stream-ordered verbs on all PEs; the first one first, since it then compiles alone and
    /// the others find the cache filled.
    fn load_kernels(&mut self) -> Result<(), DeviceWorldError> {
        let load = |world: &Self| {
            let device = world.device();
            let sharing = (world.sharing.len(), world.blocks as u32);
            let over_hosts = !world.is_of_one_host();
            let kernels = Kernels::load(&device, sharing, over_hosts, &world.options())?;
            for module in kernels.modules() {
                world.install(module)?;
            }
            if let Some(route) = &world.route {
                route.set_execute(kernels.function("execute_inbox")?);
            }
            Ok::<_, DeviceWorldError>(kernels)
        };
        let first = (self.pe().my_pe() == 0).then(|| load(self));
        self.gather(0)?;
        let kernels = first.unwrap_or_else(|| load(self));
        let loaded = self.gather(u64::from(kernels.is_ok()))?;
        self.kernels = Some(kernels?);
        match loaded.iter().position(|&loaded| loaded == 0) {
            Some(pe) => Err(DeviceWorldError::PeerNotReady { pe }),
            None => Ok(()),
        }
    }

    /// The stream-ordered verbs' kernels.
    pub(crate) fn kernels(&self) -> &Kernels {
        let kernels = self.kernels.as_ref();
        kernels.expect("who calls verbs has not made the world without them")
    }

    /// Two PEs that share a GPU, if any do; the same answer on every PE.
    pub(crate) fn shared_gpu(&self) -> Option<(usize, usize)> {
        self.shared_gpu
    }

    /// The team of all PEs.
    pub fn everyone(&self) -> &DeviceTeam {
        &self.all
    }

    /// PEs on this PE's GPU, itself included.
    pub fn pes_on_gpu(&self) -> usize {
        self.sharing.len()
    }

    pub(crate) fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    pub(crate) fn teams(&self) -> MutexGuard<'_, Vec<(DeviceSym<u8>, usize)>> {
        self.teams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The symmetric heap.
    pub fn heap(&self) -> &DeviceHeap<'w> {
        &self.heap
    }

    /// The PE this is.
    pub fn pe(&self) -> &'w Pe {
        self.heap.pe()
    }

    /// Its GPU.
    pub fn device(&self) -> Device {
        self.heap.device()
    }

    /// Tells the kernels of `module` who they are. Once per module, before its first launch.
    pub fn install(&self, module: &Module) -> Result<(), DeviceWorldError> {
        let global = match self.route {
            None => module.global(WORLD_SYMBOL)?,
            Some(_) => match module.global(WORLD_OF_HOSTS_SYMBOL) {
                Err(_) if module.global(WORLD_SYMBOL).is_ok() => {
                    return Err(DeviceWorldError::NotRouted);
                }
                found => found?,
            },
        };
        if global.size != size_of::<WorldState>() {
            return Err(DeviceWorldError::Layout {
                found: global.size,
                expected: size_of::<WorldState>(),
            });
        }
        let state = self.state();
        self.device().bind()?;
        // SAFETY: the variable has this many bytes; the copy is done when the call returns.
        unsafe {
            cu!(cuMemcpyHtoD_v2(
                global.address,
                (&raw const state).cast(),
                global.size
            ))
        }?;
        if let Some(state) = self.route_state()
            && let Ok(global) = module.global(ROUTE_SYMBOL)
        {
            let (found, expected) = (global.size, size_of::<RouteState>());
            if found != expected {
                return Err(DeviceWorldError::Layout { found, expected });
            }
            // SAFETY: as above.
            unsafe {
                cu!(cuMemcpyHtoD_v2(
                    global.address,
                    (&raw const state).cast(),
                    expected
                ))
            }?;
        }
        Ok(())
    }

    /// What kernels find in the variable of their module.
    pub(crate) fn state(&self) -> WorldState {
        let (me, n) = (self.pe().my_pe() as i32, self.pe().n_pes() as i32);
        WorldState {
            my_pe: me,
            n_pes: n,
            heap: self.heap.address(0, self.pe().my_pe()),
            stride: self.heap.stride() as u64,
            heap_bytes: self.heap.stride() as u64,
            timeout_ns: self.waits.limit_ns(),
            record: self.waits.record(),
            gave_up: self.waits.gave_up(),
            gone: self.waits.gone(),
            all: self.all.state(),
        }
    }

    /// What kernels find in the variable by which they reach PEs of other hosts.
    pub(crate) fn route_state(&self) -> Option<RouteState> {
        self.route.as_ref().map(Route::state)
    }

    /// What kernels that reach all PEs of this world are compiled with.
    pub fn options(&self) -> Options {
        match self.route {
            Some(_) => Options::new().define(ROUTED, 1),
            None => Options::new(),
        }
    }

    /// Refuses `what` in a world of several hosts, before anything is made for it: for kernels that access the memory of
    /// other PEs by address.
    ///
    /// Errors: [`DeviceWorldError::OtherHosts`], of the same kind on every PE.
    pub fn needs_one_host(pe: &Pe, what: &'static str) -> Result<(), DeviceWorldError> {
        let (me, host) = (pe.my_pe(), pe.shared_team());
        let members: Vec<usize> = (0..host.n_pes())
            .map(|member| host.world_pe(member))
            .collect();
        match (0..pe.n_pes()).find(|other| !members.contains(other)) {
            Some(other) => Err(DeviceWorldError::OtherHosts {
                pe: me,
                other,
                what,
            }),
            None => Ok(()),
        }
    }

    /// Whether this world has PEs of one host alone.
    pub(crate) fn is_of_one_host(&self) -> bool {
        self.route.is_none()
    }

    /// Whether the memory of `pe` is mapped here. Panics if it does not exist, in a world of several hosts.
    pub(crate) fn is_mapped(&self, pe: usize) -> bool {
        self.route.as_ref().is_none_or(|route| route.is_mapped(pe))
    }

    /// Compiles `source` (or takes the cache's copy), loads it and tells its kernels who they are:
    /// [`Module::compile`] and [`install`](Self::install). Not while a kernel waits for another PE.
    pub fn load(&self, source: &Source<'_>) -> Result<Module, DeviceWorldError> {
        let module = Module::compile_with(&self.device(), source, &self.options())?;
        self.install(&module)?;
        Ok(module)
    }

    /// Launches kernels that wait for one another, on every PE: [`prepare_together`] and then the
    /// launch. Collective.
    ///
    /// Errors: on every PE if any PE cannot launch; then none has.
    ///
    /// # Safety
    /// See [`prepare_together`].
    ///
    /// [`prepare_together`]: Self::prepare_together
    pub unsafe fn launch_together(
        &self,
        launch: Launch<'_>,
        stream: &Stream,
        args: impl KernelArgs,
    ) -> Result<(), DeviceWorldError> {
        let prepared = self.prepare_together(launch)?;
        // SAFETY: the caller's promise.
        Ok(unsafe { prepared.launch(stream, args) }?)
    }

    /// Prepares kernels that wait for one another, one on every PE: checks that all can run at once and
    /// has their code loaded everywhere, so that no PE's start waits for another's kernel. Collective.
    /// The launches themselves (as often as one likes) need no further rendezvous.
    ///
    /// Beside what [`PreparedLaunch::launch`] asks: once one PE launches, all must, and until these
    /// kernels have ended, no PE may call what waits for its whole device (allocating and freeing
    /// device memory, loading modules).
    ///
    /// Errors: on every PE if any PE cannot launch.
    pub fn prepare_together<'f>(
        &self,
        launch: Launch<'f>,
    ) -> Result<PreparedLaunch<'f>, DeviceWorldError> {
        let me = self.pe().my_pe();
        let alone = self.sharing.len() == 1;
        // A GPU of its own gets the driver's own guarantee. PEs that share one do not: cooperative
        // launches exclude one another, so there the sum below has to do.
        let launch = if alone { launch.cooperative() } else { launch };
        const MUCH: u64 = u32::MAX as u64;
        let ready = launch.max_resident().and_then(|most| {
            let prepared = launch.prepare()?;
            launch.load()?;
            // More than everything is enough to know.
            let need = launch.blocks().saturating_mul(1000) / most.max(1);
            Ok((prepared, need.min(MUCH)))
        });
        // Per mille of the GPU needed, or a mark of failure.
        const FAILED: u64 = u64::MAX;
        let needs = self.gather(ready.as_ref().map_or(FAILED, |&(_, need)| need))?;
        let (prepared, _) = ready?;
        if let Some(failed) = needs.iter().position(|&need| need == FAILED) {
            return Err(DeviceWorldError::PeerFailed { pe: failed });
        }
        let together: u64 = self.sharing.iter().map(|&pe| needs[pe]).sum();
        let refusal = if !alone && self.pe().kind() == WorldKind::Processes {
            let other = self
                .sharing
                .iter()
                .copied()
                .find(|&other| other != me)
                .unwrap_or(me);
            Some(DeviceWorldError::SharedByProcesses { pe: me, other })
        } else if together > 1000 {
            let (pes, percent) = (self.sharing.len(), together.div_ceil(10));
            Some(DeviceWorldError::NotCoResident { pes, percent })
        } else {
            None
        };
        // Other GPUs of the world may be fuller than mine.
        let refused = self.gather(u64::from(refusal.is_some()))?;
        if let Some(error) = refusal {
            return Err(error);
        }
        if let Some(failed) = refused.iter().position(|&refused| refused != 0) {
            return Err(DeviceWorldError::PeerFailed { pe: failed });
        }
        Ok(prepared)
    }

    /// Waits for `stream`, then says whether a wait inside a kernel of this PE was given up: because it ran out of
    /// time, because a PE that it needs has failed or left, or because PEs called different collectives.
    ///
    /// Waits inside kernels end whether or not this is called, so [`Stream::synchronize`] and the like end, too, but
    /// do not say that a wait ended in vain: the next call of this does.
    ///
    /// Errors: [`KernelTimeout`] or [`KernelLeft`] inside [`SyncError`]; the world is then as if the wait had not
    /// been. [`KernelMismatch`]: as they, but the team must not be used any more. [`WorkStuck`] if a PE has failed
    /// and the work does not end all the same.
    ///
    /// [`KernelTimeout`]: crate::KernelTimeout
    /// [`KernelLeft`]: crate::KernelLeft
    /// [`KernelMismatch`]: crate::KernelMismatch
    /// [`WorkStuck`]: crate::WorkStuck
    pub fn synchronize(&self, stream: &Stream) -> Result<(), SyncError> {
        self.settle(stream)?;
        self.waits.outcome(stream)
    }

    /// What a kernel has waited for in vain and nobody has been told, for the end of the process: the world's memory may have
    /// been taken away.
    #[doc(hidden)]
    pub fn waited_in_vain(&self) -> Option<SyncError> {
        self.waits.untold()
    }

    /// Waits until the GPU's work has ended, for half a minute at most; says whether it has. For drops of what kernels
    /// use: what they may still use then is better left to them.
    pub fn drain(&self) -> bool {
        drain(self.device(), DROP_LIMIT)
    }

    /// Waits for `stream` and says nothing about waits that were given up.
    pub(crate) fn settle(&self, stream: &Stream) -> Result<(), SyncError> {
        self.waits.until(self.pe(), "a stream", || stream.is_done())
    }

    /// As [`synchronize`](Self::synchronize), for what was given to `stream` before `event`. If a wait was given up, it
    /// waits for the whole stream.
    pub fn wait(&self, event: &Event, stream: &Stream) -> Result<(), SyncError> {
        self.waits
            .until(self.pe(), "an event", || event.is_done())?;
        if self.waits.any() {
            return self.synchronize(stream);
        }
        Ok(())
    }

    /// Copies `source` to `dest` on `pe`; done when the call returns.
    ///
    /// # Panics
    /// If `pe` does not exist or the lengths differ.
    pub fn put<'a, T: Pod>(
        &self,
        stream: &Stream,
        dest: impl Into<DeviceSymRef<'a, T>>,
        source: &[T],
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let dest = dest.into();
        same_length(dest.len(), source.len());
        if !self.is_mapped(pe) {
            return self.iput(stream, dest, 1, source, 1, source.len(), pe);
        }
        let to = dest.address(&self.heap, pe);
        let (from, bytes) = (source.as_ptr().cast(), size_of_val(source));
        // What is before it in the stream may not end; the copy itself does.
        self.settle(stream)?;
        self.device().bind()?;
        // SAFETY: the view is of as many elements; the source outlives the copy, for we wait for it.
        unsafe { cu!(cuMemcpyHtoDAsync_v2(to, from, bytes, stream.handle())) }?;
        Ok(stream.synchronize()?)
    }

    /// Copies `source` on `pe` to `dest`; done when the call returns.
    ///
    /// # Panics
    /// If `pe` does not exist or the lengths differ.
    pub fn get<'a, T: Pod>(
        &self,
        stream: &Stream,
        dest: &mut [T],
        source: impl Into<DeviceSymRef<'a, T>>,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let source = source.into();
        same_length(dest.len(), source.len());
        if !self.is_mapped(pe) {
            let n = dest.len();
            return self.iget(stream, dest, 1, source, 1, n, pe);
        }
        let from = source.address(&self.heap, pe);
        let (to, bytes) = (dest.as_mut_ptr().cast(), size_of_val(dest));
        self.settle(stream)?;
        self.device().bind()?;
        // SAFETY: the view is of as many elements; the destination outlives the copy, for we wait for it,
        // and any bits are a valid T.
        unsafe { cu!(cuMemcpyDtoHAsync_v2(to, from, bytes, stream.handle())) }?;
        Ok(stream.synchronize()?)
    }

    /// Every PE's `value`.
    pub(crate) fn gather(&self, value: u64) -> Result<Vec<u64>, CollectiveError> {
        gather(self.pe(), &self.word, &self.words, value)
    }
}

/// Teams.
impl DeviceWorld<'_> {
    /// The team of `size` PEs from `start` on, `stride` apart; `None` on PEs that are not in it.
    ///
    /// Collective over the world: all PEs call with the same numbers, while no kernel waits for
    /// another PE (it takes device memory). The team's scratch, 8 KiB × `size` and some on every PE, is taken until
    /// [`destroy_team`](Self::destroy_team). A team with PEs of several hosts takes 512 KiB × `size` more for large
    /// reductions, if there is room and that is at most a sixteenth of the heap.
    ///
    /// Errors: no room. Panics if the team is empty, `stride` is 0, or it has PEs that do not exist.
    pub fn team(
        &self,
        start: usize,
        stride: usize,
        size: usize,
    ) -> Result<Option<DeviceTeam>, DeviceWorldError> {
        let last = size
            .checked_sub(1)
            .and_then(|steps| steps.checked_mul(stride)?.checked_add(start));
        let n = self.pe().n_pes();
        assert!(
            stride > 0 && last.is_some_and(|last| last < n),
            "team of {size} PEs from {start} on, {stride} apart, in a world of {n}"
        );
        self.pe()
            .agree(start as u64, (stride as u64) << 32 | size as u64)?;
        let mut members = (0..size).map(|rank| start + rank * stride);
        let member = members.clone().any(|pe| pe == self.pe().my_pe());
        let mut over_hosts = member && members.any(|pe| !self.is_mapped(pe));
        if !self.is_of_one_host() {
            // PEs that are not in it do not see it: they hear.
            over_hosts = self.gather(over_hosts.into())?.contains(&1);
        }
        let make = match over_hosts {
            true => DeviceTeam::make_over_hosts,
            false => DeviceTeam::make,
        };
        let (team, scratch) = make(self.heap(), start, stride, size, self.multiprocessors())?;
        self.teams().push((scratch, size));
        Ok(team)
    }

    /// Gives a team's memory back. Collective over the world, like [`team`](Self::team): its members bring it, the
    /// others `None`. Every kernel that uses it must have ended.
    ///
    /// Errors: [`DeviceWorldError::TeamMismatch`] on every PE if the PEs do not bring one team, whole; it then stays.
    pub fn destroy_team(&self, team: Option<DeviceTeam>) -> Result<(), DeviceWorldError> {
        // An offset, 0 for none, or a mark of what can not be destroyed: a team of another world, or of all.
        const WRONG: u64 = u64::MAX;
        let mine = team.as_ref().map_or(0, |team| {
            match team.is_of(self.heap()) && team.state().scratch != self.everyone().state().scratch
            {
                true => team.state().scratch + 1,
                false => WRONG,
            }
        });
        let all = self.gather(mine)?;
        // What follows is the same on every PE: so is the list of teams.
        let scratch = all.iter().copied().max().unwrap_or(0);
        let members = all.iter().filter(|&&brought| brought == scratch).count();
        let one = all
            .iter()
            .all(|&brought| brought == 0 || brought == scratch);
        let mut teams = self.teams();
        let place = teams
            .iter()
            .position(|(sym, size)| sym.offset() as u64 + 1 == scratch && *size == members);
        let (true, Some(place)) = (one, place) else {
            return Err(DeviceWorldError::TeamMismatch);
        };
        let (sym, _) = teams.remove(place);
        Ok(self.heap().free(sym)?)
    }
}

impl Drop for DeviceWorld<'_> {
    fn drop(&mut self) {
        // 1. Before the wait for the GPU: a kernel of another PE on it may be waiting for this PE.
        self.waits.leave(self.pe());
        // 2. Work of this PE's may still be needed by others, so it may end by itself: waits inside kernels give up
        //    when their time is up or their PEs are gone.
        let patience = self.waits.limit().map_or(DROP_LIMIT, |limit| {
            limit.saturating_add(DROP_LIMIT / 10).min(DROP_LIMIT)
        });
        let mut drained = !std::thread::panicking() && drain(self.device(), patience);
        // 3. What waits for a PE that never comes is told to give up.
        if !drained {
            self.waits.end_all(self.pe());
            drained = drain(self.device(), DROP_LIMIT / 10);
        }
        self.heap.drained = Some(drained);
        if drained {
            return;
        }
        // 4. A kernel that waits for something else can not be ended: what it may use stays, for freeing any of it
        //    would wait for the kernel.
        self.waits.leak();
        if let Some(route) = &mut self.route {
            route.leak();
        }
        std::mem::forget((self.nccl.take(), self.kernels.take()));
        let staging = self.staging.get_mut();
        std::mem::forget(staging.unwrap_or_else(PoisonError::into_inner).take());
        let line = format!(
            "the work of PE {}'s GPU does not end, so the device memory of its world stays taken until the process ends",
            self.pe().my_pe()
        );
        match tracing::dispatcher::has_been_set() {
            true => tracing::warn!("{line}"),
            false => eprintln!("crosswarp: warning: {line}"),
        }
    }
}

/// Every PE's `value`, by way of one word and one word per PE.
fn gather(
    pe: &Pe,
    word: &Sym<u64>,
    words: &Sym<u64>,
    value: u64,
) -> Result<Vec<u64>, CollectiveError> {
    pe.write(word, &[value]);
    pe.world().fcollect(words, word)?;
    let mut all = vec![0; pe.n_pes()];
    pe.read(&mut all, words);
    Ok(all)
}
