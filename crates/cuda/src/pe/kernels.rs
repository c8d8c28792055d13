//! The kernels of the stream-ordered verbs: loaded once per device world, launched without further
//! checks.
#![allow(unsafe_code)] // Launches kernels of this crate.

use crate::compile::module::{Function, Module};
use crate::compile::program::Options;
use crate::driver::device::Device;
use crate::driver::stream::Stream;
use crate::launch::Launch;
use crate::launch::args::KernelArgs;
use crate::layout::{ELEMENT_TYPES, STREAM_THREADS};
use crate::pe::error::DeviceWorldError;
use crate::pe::sources::{MEETING, ON_STREAM, OVER_HOSTS};
use crate::pe::team::UNIT_BLOCKS;

/// The kernels of one collective for payloads of `T`.
pub(super) struct Pair {
    pub(super) block: Function,
    pub(super) grid: Function,
}

/// The kernels of one collective that moves bytes.
pub(super) struct Move {
    /// Units of 1, 4 and 8 bytes.
    pub(super) block: [Function; 3],
    pub(super) grid: Function,
}

/// The kernels that reach PEs of other hosts.
pub(super) struct Routed {
    pub(super) copy: Function,
    pub(super) strided: Function,
    pub(super) quiet: Function,
}

/// The kernel `name`, which one of `modules` has. Asked of what is known of them: the driver's "not found" would be an
/// error to who watches its calls.
fn function_of(modules: &[Module], name: &str) -> Result<Function, DeviceWorldError> {
    let has = |module: &&Module| module.kernels().iter().any(|kernel| kernel == name);
    let module = modules.iter().find(has);
    Ok(module
        .unwrap_or_else(|| panic!("no source has a kernel {name}"))
        .function(name)?)
}

/// The verbs' kernels, loaded, and how they are launched.
pub(crate) struct Kernels {
    modules: Vec<Module>,
    pub(super) signal: Function,
    pub(super) signal_wait: Function,
    pub(super) barrier: Function,
    pub(super) sync: Function,
    pub(super) nothing: Function,
    /// There in a world of several hosts.
    pub(super) routed: Option<Routed>,
    pub(super) broadcast: Move,
    pub(super) fcollect: Move,
    pub(super) alltoall: Move,
    pub(super) reduce: [Pair; 6],
    /// Units of 1, 2, 4, 8 and 16 bytes.
    strided: [Function; 5],
    /// Blocks of a grid, at most: a PE's share of one per SM, the smallest of all PEs, for the blocks of a number meet.
    /// The launches are not cooperative: those exclude
    /// one another on a GPU, so two worlds or teams in two streams each could wait for the other.
    /// Instead the sizes see to it that the grids of two streams fit at once.
    pub(super) blocks: u32,
}

impl Kernels {
    /// Compiles and loads all, on a GPU that `sharing` PEs share, for grids of up to `blocks` blocks; `over_hosts`: in a
    /// world of several hosts. Not while a kernel waits for another PE: loading may wait for it.
    pub(crate) fn load(
        device: &Device,
        (sharing, blocks): (usize, u32),
        over_hosts: bool,
        options: &Options,
    ) -> Result<Self, DeviceWorldError> {
        let sources = if over_hosts { OVER_HOSTS } else { ON_STREAM };
        let modules = Module::compile_all(device, sources, options)?;
        let load = |name: &str, threads: u32, blocks: u32| -> Result<Function, DeviceWorldError> {
            let function = function_of(&modules, name)?;
            let launch = Launch::new(&function).grid(blocks).block(threads);
            // All PEs' kernels of this GPU at once; their launch bounds see to it that kernels of
            // different names fit beside each other as well as those of one name.
            let (needed, most) = (u64::from(blocks) * sharing as u64, launch.max_resident()?);
            if needed > most {
                let percent = (needed * 100).div_ceil(most.max(1));
                return Err(DeviceWorldError::NotCoResident {
                    pes: sharing,
                    percent,
                });
            }
            launch.prepare()?;
            launch.load()?;
            Ok(function)
        };
        let block =
            |name: &str, unit: &str| load(&format!("{name}_block_{unit}"), STREAM_THREADS, 1);
        let grid =
            |name: &str, unit: &str| load(&format!("{name}_grid_{unit}"), STREAM_THREADS, blocks);
        let moves = |name: &str| -> Result<Move, DeviceWorldError> {
            Ok(Move {
                block: [block(name, "u8")?, block(name, "u32")?, block(name, "u64")?],
                grid: grid(name, "u8")?,
            })
        };
        let reduce = |place: usize| -> Result<Pair, DeviceWorldError> {
            let in_units = format!("reduce_block_{}", ELEMENT_TYPES[place]);
            Ok(Pair {
                block: load(&in_units, STREAM_THREADS, blocks.min(UNIT_BLOCKS as u32))?,
                grid: grid("reduce", ELEMENT_TYPES[place])?,
            })
        };
        let routed = || -> Result<Routed, DeviceWorldError> {
            load("execute_inbox", 1, 1)?;
            Ok(Routed {
                copy: load("routed_copy", 1, 1)?,
                strided: load("routed_strided", 1, 1)?,
                quiet: load("routed_quiet", 1, 1)?,
            })
        };
        let strided = |unit: &str| load(&format!("strided_{unit}"), STREAM_THREADS, blocks);
        Ok(Self {
            strided: [
                strided("u8")?,
                strided("u16")?,
                strided("u32")?,
                strided("u64")?,
                strided("vec16")?,
            ],
            signal: load("signal", 1, 1)?,
            signal_wait: load("signal_wait", 1, 1)?,
            barrier: load("barrier", MEETING, 1)?,
            sync: load("sync", MEETING, 1)?,
            nothing: load("nothing", MEETING, 1)?,
            routed: over_hosts.then(routed).transpose()?,
            broadcast: moves("broadcast")?,
            fcollect: moves("fcollect")?,
            alltoall: moves("alltoall")?,
            reduce: [
                reduce(0)?,
                reduce(1)?,
                reduce(2)?,
                reduce(3)?,
                reduce(4)?,
                reduce(5)?,
            ],
            modules,
            blocks,
        })
    }

    pub(crate) fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The kernel of that name.
    pub(crate) fn function(&self, name: &str) -> Result<Function, DeviceWorldError> {
        function_of(&self.modules, name)
    }

    /// Copies `units` units of the kernel at place `kernel`, strided.
    ///
    /// # Safety
    /// As [`launch`](Self::launch).
    pub(crate) unsafe fn copy_strided(
        &self,
        stream: &Stream,
        kernel: usize,
        units: usize,
        args: impl KernelArgs,
    ) -> Result<(), DeviceWorldError> {
        let blocks = units
            .div_ceil(STREAM_THREADS as usize)
            .min(self.blocks as usize) as u32;
        // SAFETY: the caller's promise.
        unsafe {
            self.launch(
                &self.strided[kernel],
                (blocks, STREAM_THREADS),
                stream,
                args,
            )
        }
    }

    /// # Safety
    /// Arguments as `function`'s parameters in `kernels/on_stream`, addressing memory of the world's heap.
    pub(super) unsafe fn launch(
        &self,
        function: &Function,
        (blocks, threads): (u32, u32),
        stream: &Stream,
        args: impl KernelArgs,
    ) -> Result<(), DeviceWorldError> {
        let launch = Launch::new(function).grid(blocks).block(threads);
        // SAFETY: the caller's promise; heap and module live until the world ends, which waits for
        // the GPU's work.
        Ok(unsafe { launch.prepared_before().launch(stream, args) }?)
    }
}
