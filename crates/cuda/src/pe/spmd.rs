//! One program on many GPUs: the world is made around it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crosswarp_shmem::{InitError, Pe, WorldError, init, under_launcher};

use crate::driver::device::Device;
use crate::driver::error::DriverError;
use crate::pe::error::DeviceWorldError;
use crate::pe::world::DeviceWorld;

/// A device world that did not come about or did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum SpmdError {
    /// No usable driver or GPU.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// This process could not join the launcher's world.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The threads could not be started, or one panicked.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The GPUs could not be joined.
    #[error(transparent)]
    Device(#[from] DeviceWorldError),
    /// `pes` contradicts the launcher.
    #[error("{asked} PEs contradict the {running} that the launcher has started")]
    Pes {
        /// PEs asked for.
        asked: usize,
        /// PEs there are.
        running: usize,
    },
}

/// Runs one function as every PE of a [`DeviceWorld`]: the whole set-up in one call.
///
/// Under the launcher (`crosswarp run -n 2 program`) this process is one PE of the launcher's world.
/// Otherwise the PEs are threads of this process. PE `i` takes GPU `i`, counted around: with more PEs
/// than GPUs some share one.
///
/// ```
/// use crosswarp_cuda::{Device, Spmd, Stream};
/// type Failure = Box<dyn std::error::Error + Send + Sync>;
/// fn main() -> Result<(), Failure> {
///     if Device::all().is_err() { return Ok(()) }
///     let numbers = Spmd::new().pes(2).run(|world| -> Result<u32, Failure> {
///         let me = world.pe().my_pe();
///         let stream = Stream::new(&world.device())?;
///         let number = world.heap().alloc_zeroed::<u32>(1)?;
///         // Mine to the other PE.
///         world.put(&stream, &number, &[10 + me as u32], 1 - me)?;
///         world.pe().barrier()?;
///         let mut got = [0];
///         world.get(&stream, &mut got, &number, me)?;
///         Ok(got[0])
///     })?;
///     assert_eq!(numbers, [11, 10]);
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Spmd {
    pes: Option<usize>,
    heap_limit: Option<usize>,
    wait_limit: Option<Duration>,
}

impl Spmd {
    /// One PE per GPU, a heap of up to the whole memory, waits inside kernels without end.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many PEs.
    pub fn pes(mut self, pes: usize) -> Self {
        self.pes = Some(pes);
        self
    }

    /// Most bytes of device heap per PE.
    pub fn heap_limit(mut self, bytes: usize) -> Self {
        self.heap_limit = Some(bytes);
        self
    }

    /// After how long waits inside kernels give up.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = Some(limit);
        self
    }

    /// Runs `work` on every PE; returns what the PEs of this process returned, by PE.
    ///
    /// Errors: those of the set-up, and of `work`: the one that came first, since others may only be
    /// its echo. A PE that fails ends the others' waits on the host.
    pub fn run<R: Send, E: From<SpmdError> + Send>(
        &self,
        work: impl Fn(DeviceWorld<'_>) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let gpus = Device::all().map_err(SpmdError::from)?;
        let on_pe = |pe: &Pe| -> Result<R, E> {
            let gpu = gpus[pe.my_pe() % gpus.len()];
            let world = DeviceWorld::new(pe, gpu, self.heap_limit, self.wait_limit);
            work(world.map_err(SpmdError::from)?)
        };
        if under_launcher() {
            let pe = init().map_err(SpmdError::from)?;
            let running = pe.n_pes();
            if let Some(asked) = self.pes.filter(|&asked| asked != running) {
                return Err(SpmdError::Pes { asked, running }.into());
            }
            let result = on_pe(&pe);
            if result.is_err() {
                // A PE that ends without having left is a failure to the launcher, which then ends the
                // others.
                std::mem::forget(pe);
            }
            return result.map(|value| vec![value]);
        }
        let first = Mutex::new(None);
        let results = crosswarp_shmem::spmd(self.pes.unwrap_or(gpus.len()), |pe| {
            on_pe(pe)
                .map_err(|error| {
                    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(error);
                })
                .ok()
        })
        .map_err(SpmdError::from)?;
        match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(results.into_iter().flatten().collect()),
        }
    }
}
