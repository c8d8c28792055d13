//! All kernels for an architecture, without a GPU: what each needs, and a file of them compiled.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use crate::arch::Arch;
use crate::compile::bundle::file_of;
use crate::compile::cache::Cache;
use crate::compile::cubin::{CubinError, KernelResources, kernel_resources};
use crate::compile::key::key;
use crate::compile::occupancy::{ArchLimits, BlockNeeds, Occupancy};
use crate::compile::program::CompileError;
use crate::compile::program::Options;
use crate::compile::source::Source;

/// Threads of a block where neither the source's shapes nor launch bounds say.
const THREADS: u32 = 256;

/// One kernel on one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRow {
    /// The source's name.
    pub source: String,
    /// What the cubin says.
    pub resources: KernelResources,
    /// Threads of a block that the occupancy is for: those of the source's [`Shape`](crate::Shape),
    /// else those of the kernel's launch bounds, else 256.
    pub threads: u32,
    /// Dynamic shared memory of a block that the occupancy is for, bytes.
    pub dynamic_shared: u32,
    /// Theoretical occupancy; `None` where the architecture's limits are not known.
    pub occupancy: Option<Occupancy>,
}

/// Why there is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A source does not compile.
    #[error("{name}: {error}")]
    Compile {
        /// The source's name.
        name: String,
        /// The compiler's reason.
        error: CompileError,
    },
    /// A cubin can not be read.
    #[error("{name}: {error}")]
    Cubin {
        /// The source's name.
        name: String,
        /// What is wrong with it.
        error: CubinError,
    },
}

/// Compiles `sources` (e.g. [`KERNELS`](crate::KERNELS)) for `arch` and lists their kernels, in the
/// order of the sources and by name within each. Needs NVRTC, but neither GPU nor driver.
///
/// ```
/// use crosswarp_cuda::{Arch, KERNELS, Nvrtc, kernel_table};
/// if Nvrtc::get().is_ok() {
///     let table = kernel_table(Arch::new(9, 0), KERNELS).unwrap();
///     assert!(table.iter().any(|row| row.resources.name == "threads"));
/// }
/// ```
pub fn kernel_table(arch: Arch, sources: &[Source<'_>]) -> Result<Vec<KernelRow>, TableError> {
    kernel_table_with(arch, sources, &|_, _| ())
}

/// The same; `progress` is told how many of how many sources are compiled.
///
/// # Errors
/// As there.
pub fn kernel_table_with(
    arch: Arch,
    sources: &[Source<'_>],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<KernelRow>, TableError> {
    let units: Vec<_> = sources
        .iter()
        .map(|&source| (source, Options::new()))
        .collect();
    let cubins = compile_all(&Cache::of_user(), &units, &[arch], progress)?;
    let mut rows = Vec::new();
    for (source, cubin) in sources.iter().zip(cubins) {
        let kernels = kernel_resources(&cubin).map_err(|error| TableError::Cubin {
            name: source.name.to_string(),
            error,
        })?;
        rows.extend(
            kernels
                .into_iter()
                .map(|resources| row(source, arch, resources)),
        );
    }
    Ok(rows)
}

/// Compiles `units` for each of `archs` with NVRTC, as many at a time as there are processors; what the file of a
/// [`Bundle`](crate::Bundle) of them holds. `progress` is told how many of how many are done.
///
/// # Errors
/// The first of `units` that does not compile.
pub fn compile_bundle(
    units: &[(Source<'_>, Options)],
    archs: &[Arch],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<u8>, TableError> {
    let cubins = compile_all(&Cache::of_compiler(), units, archs, progress)?;
    let keyed = archs
        .iter()
        .flat_map(|&arch| units.iter().map(move |unit| (unit, arch)));
    let keyed = keyed.map(|((source, options), arch)| (key(source, arch, options, None), arch));
    Ok(file_of(keyed.zip(&cubins)))
}

/// The cubins of `units` for the first architecture, then for the next one, as many compiled at a time as there are
/// processors. `progress` is told how many of how many are done.
///
/// # Errors
/// The first of `units` that does not compile.
pub fn compile_all(
    cache: &Cache,
    units: &[(Source<'_>, Options)],
    archs: &[Arch],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Vec<u8>>, TableError> {
    let jobs: Vec<_> = archs
        .iter()
        .flat_map(|&arch| units.iter().map(move |unit| (unit, arch)))
        .collect();
    let cubins: Vec<OnceLock<Result<Vec<u8>, TableError>>> =
        jobs.iter().map(|_| OnceLock::new()).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Relaxed: each number goes to one thread, which writes one place; the scope's end hands all of them on.
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&job| job < jobs.len());
    let work = || {
        while let Some(job) = take() {
            let ((source, options), arch) = jobs[job];
            let cubin = cache.compile(source, arch, options);
            let cubin = cubin.map_err(|error| TableError::Compile {
                name: source.name.to_string(),
                error,
            });
            if cubin.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            let _ = cubins[job].set(cubin);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        }
    };
    std::thread::scope(|scope| {
        let processors = available_parallelism().map_or(1, NonZero::get);
        for _ in 0..processors.min(jobs.len()) {
            scope.spawn(work);
        }
    });
    // Those before the first error were all begun, and so ended.
    cubins
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}

fn row(source: &Source<'_>, arch: Arch, resources: KernelResources) -> KernelRow {
    let shape = source
        .shapes
        .iter()
        .find(|shape| shape.kernel == resources.name);
    let threads = shape
        .map(|shape| shape.threads)
        .or(resources.max_threads)
        .unwrap_or(THREADS);
    let dynamic_shared = shape.map_or(0, |shape| shape.dynamic_shared);
    let needs = BlockNeeds {
        threads,
        registers: resources.registers,
        shared: resources.static_shared.saturating_add(dynamic_shared),
    };
    KernelRow {
        source: source.name.into(),
        threads,
        dynamic_shared,
        occupancy: ArchLimits::of(arch).map(|limits| Occupancy::new(limits, &needs)),
        resources,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::source::Shape;

    #[test]
    fn threads_come_from_the_shape_then_the_bounds() {
        let kernel = |name: &str, max_threads| KernelResources {
            name: name.into(),
            registers: 32,
            static_shared: 1000,
            local: 0,
            constant: 0,
            max_threads,
            parameters: 0,
        };
        let source = Source::new("s.cu", "").with_shapes(&[Shape {
            kernel: "a",
            threads: 512,
            dynamic_shared: 9000,
        }]);
        let rows = [("a", Some(1024)), ("b", Some(128)), ("c", None)]
            .map(|(name, bounds)| row(&source, Arch::new(9, 0), kernel(name, bounds)));
        assert_eq!(rows.each_ref().map(|row| row.threads), [512, 128, 256]);
        assert_eq!(rows.each_ref().map(|row| row.dynamic_shared), [9000, 0, 0]);
        assert_eq!(rows[0].occupancy.unwrap().by_shared, 233_472 / 11_136);
        assert!(
            row(&source, Arch::new(10, 7), kernel("a", None))
                .occupancy
                .is_none()
        );
    }
}
