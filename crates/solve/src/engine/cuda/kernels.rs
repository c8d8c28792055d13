//! Finding a kernel.

use crosswarp_cuda::{Device, Function, Launch, Module, Source};

use crate::element::Real;
use crate::engine::cuda::sources::KERNELS;
use crate::gpu::error::GpuError;

/// The kernel `name` for fields of `F`, and the threads of its block.
pub(crate) fn find<F: Real>(device: &Device, name: &str) -> Result<(Function, u32), GpuError> {
    find_named(device, &of_type::<F>(name))
}

/// A kernel that is the same for all fields. It is loaded: a first launch that loads it waits for all kernels of the GPU, which
/// may be those of other PEs that wait for this one.
pub(crate) fn find_plain(device: &Device, name: &str) -> Result<Function, GpuError> {
    let (kernel, _) = find_named(device, name)?;
    Launch::new(&kernel).load()?;
    Ok(kernel)
}

/// What the kernel `name` for fields of `F` is called.
pub(crate) fn of_type<F: Real>(name: &str) -> String {
    format!("{name}_{}", F::NAME)
}

/// Compiles the sources of these kernels side by side, so that finding the kernels takes no time.
pub(crate) fn compile_together<'n>(device: &Device, names: impl IntoIterator<Item = &'n str>) {
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

fn find_named(device: &Device, name: &str) -> Result<(Function, u32), GpuError> {
    let source = source_of(name);
    let module = Module::compile(device, source).map_err(crosswarp_cuda::Error::from)?;
    let function = module.function(name).map_err(crosswarp_cuda::Error::from)?;
    let mut shapes = source.shapes.iter();
    let shape = shapes.find(|shape| shape.kernel == name);
    let shape = shape.expect("it is a kernel of the source");
    Ok((function, shape.threads))
}
