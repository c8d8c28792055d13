//! Finding a kernel.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crosswarp_cuda::{Device, Function, Launch, Module, Shape, Source};

use crate::element::Real;
use crate::engine::cuda::sources::KERNELS;
use crate::gpu::error::GpuError;

/// Kernels by GPU and name. They stay: to load them again takes longer than the cycles of a small plane.
static LOADED: Mutex<Option<HashMap<(usize, &'static str), Function>>> = Mutex::new(None);

/// Looks at the kernels that are loaded, or adds to them.
fn with_loaded<R>(work: impl FnOnce(&mut HashMap<(usize, &'static str), Function>) -> R) -> R {
    // Each change is one step, so a panic leaves nothing half done.
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    work(loaded.get_or_insert_default())
}

/// The kernel `name` for fields of `F`, and the threads of its block.
pub(crate) fn find<F: Real>(device: &Device, name: &str) -> Result<(Function, u32), GpuError> {
    shared(device, &of_type::<F>(name))
}

/// A kernel that is the same for all fields. It is loaded: a first launch that loads it waits for all kernels of the GPU, which
/// may be those of other PEs that wait for this one.
pub(crate) fn find_plain(device: &Device, name: &str) -> Result<Function, GpuError> {
    let (kernel, _) = shared(device, name)?;
    Launch::new(&kernel).load()?;
    Ok(kernel)
}

/// As [`find`], in a module that nobody else uses, so that the kernel can be told which PE it is of.
pub(crate) fn find_of_pe<F: Real>(
    device: &Device,
    name: &str,
) -> Result<(Function, u32), GpuError> {
    load(device, &of_type::<F>(name))
}

/// As [`find_plain`], in such a module.
pub(crate) fn find_plain_of_pe(device: &Device, name: &str) -> Result<Function, GpuError> {
    let (kernel, _) = load(device, name)?;
    Launch::new(&kernel).load()?;
    Ok(kernel)
}

/// What the kernel `name` for fields of `F` is called.
pub(crate) fn of_type<F: Real>(name: &str) -> String {
    format!("{name}_{}", F::NAME)
}

/// Compiles the sources of these kernels side by side, so that finding the kernels takes no time.
pub(crate) fn compile_together<'n>(device: &Device, names: impl IntoIterator<Item = &'n str>) {
    let mut names: Vec<&str> = names.into_iter().collect();
    with_loaded(|loaded| names.retain(|name| !loaded.contains_key(&(device.ordinal(), *name))));
    let sources: Vec<_> = sources_of(names).into_iter().copied().collect();
    crosswarp_cuda::internal::compile_together(device, &sources);
}

/// The sources that hold these kernels, each once.
fn sources_of<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<&'static Source<'static>> {
    let mut sources: Vec<&Source<'_>> = Vec::new();
    for name in names {
        let source = source_of(name);
        if !sources.iter().any(|other| other.name == source.name) {
            sources.push(source);
        }
    }
    sources
}

fn source_of(name: &str) -> &'static Source<'static> {
    let holds = |source: &&Source<'_>| source.shapes.iter().any(|shape| shape.kernel == name);
    KERNELS
        .iter()
        .find(holds)
        .unwrap_or_else(|| panic!("no source has a kernel {name}"))
}

/// The kernel, which stays loaded.
fn shared(device: &Device, name: &str) -> Result<(Function, u32), GpuError> {
    let shape = shape_of(name);
    let key = (device.ordinal(), shape.kernel);
    if let Some(function) = with_loaded(|loaded| loaded.get(&key).cloned()) {
        return Ok((function, shape.threads));
    }
    // Without the lock: others may compile or load meanwhile.
    let (function, threads) = load(device, name)?;
    let kept = with_loaded(|loaded| loaded.entry(key).or_insert(function).clone());
    Ok((kept, threads))
}

fn load(device: &Device, name: &str) -> Result<(Function, u32), GpuError> {
    let module = Module::compile(device, source_of(name)).map_err(crosswarp_cuda::Error::from)?;
    let function = module.function(name).map_err(crosswarp_cuda::Error::from)?;
    Ok((function, shape_of(name).threads))
}

fn shape_of(name: &str) -> &'static Shape<'static> {
    let mut shapes = source_of(name).shapes.iter();
    let shape = shapes.find(|shape| shape.kernel == name);
    shape.expect("it is a kernel of the source")
}
