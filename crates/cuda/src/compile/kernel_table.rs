//! What every kernel needs on an architecture, without a GPU.

use crate::arch::Arch;
use crate::compile::cache::Cache;
use crate::compile::cubin::{CubinError, KernelResources, kernel_resources};
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
    let cache = Cache::of_user();
    let mut rows = Vec::new();
    for source in sources {
        let name = || source.name.to_string();
        let cubin = cache
            .compile(source, arch, &Options::new())
            .map_err(|error| TableError::Compile {
                name: name(),
                error,
            })?;
        let kernels = kernel_resources(&cubin).map_err(|error| TableError::Cubin {
            name: name(),
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
