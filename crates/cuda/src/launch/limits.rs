//! The limits of a launch that follow from the descriptions of the GPU and of the kernel alone.

use std::fmt;

use crate::compile::module::FunctionAttributes;
use crate::driver::device::DeviceProperties;

/// Sizes in x, y and z. Made from a number, a pair or a triple; what is missing is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim3 {
    /// Fastest-running.
    pub x: u32,
    /// Second.
    pub y: u32,
    /// Slowest.
    pub z: u32,
}

impl Dim3 {
    /// x × y × z.
    pub const fn count(self) -> u64 {
        // Two of 32 bits fit in 64; a third is cut off, where every limit is passed anyway.
        (self.x as u64 * self.y as u64).saturating_mul(self.z as u64)
    }

    const fn axes(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

/// What a launch is limited in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Blocks of the grid along an axis, 0 to 2.
    Grid(usize),
    /// Threads of a block along an axis, 0 to 2.
    Block(usize),
    /// Threads of a block on this GPU.
    Threads,
    /// Threads of a block of this kernel, by its registers and launch bounds.
    KernelThreads,
    /// Static and dynamic shared memory of a block, bytes.
    Shared,
    /// Blocks of a cluster, for this kernel, block and shared memory.
    Cluster,
    /// Blocks of a cooperative grid, all of which must be resident at once.
    CoResident,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AXES: [&str; 3] = ["x", "y", "z"];
        match self {
            Limit::Grid(axis) => write!(f, "blocks of the grid in {}", AXES[*axis]),
            Limit::Block(axis) => write!(f, "threads of a block in {}", AXES[*axis]),
            Limit::Threads => f.write_str("threads of a block on this GPU"),
            Limit::KernelThreads => {
                f.write_str("threads of a block of this kernel (registers, launch bounds)")
            }
            Limit::Shared => f.write_str("bytes of static and dynamic shared memory of a block"),
            Limit::Cluster => {
                f.write_str("blocks of a cluster of this kernel, block and shared memory")
            }
            Limit::CoResident => {
                f.write_str("blocks of a cooperative grid, which must all be resident at once")
            }
        }
    }
}

/// How many threads, in which groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub grid: Dim3,
    pub block: Dim3,
    pub cluster: Option<Dim3>,
    pub dynamic_shared: u32,
    pub cooperative: bool,
}

/// What is wrong with a launch, without the kernel's name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Limit(Limit, u64, u64),
    Empty(&'static str),
    Uneven(usize, u32, u32),
    Unsupported(&'static str),
}

/// The limits that follow from the descriptions of the GPU and of the kernel alone.
pub(crate) fn check(
    device: &DeviceProperties,
    kernel: &FunctionAttributes,
    shape: &Shape,
) -> Result<(), Refusal> {
    let within = |limit, value: u64, most: u64| {
        if value > most {
            Err(Refusal::Limit(limit, value, most))
        } else {
            Ok(())
        }
    };
    for (what, dims) in [
        ("grid", shape.grid),
        ("block", shape.block),
        ("cluster", shape.cluster.unwrap_or(1.into())),
    ] {
        if dims.axes().contains(&0) {
            return Err(Refusal::Empty(what));
        }
    }
    for axis in 0..3 {
        within(
            Limit::Grid(axis),
            shape.grid.axes()[axis].into(),
            device.max_grid[axis].into(),
        )?;
        within(
            Limit::Block(axis),
            shape.block.axes()[axis].into(),
            device.max_block[axis].into(),
        )?;
    }
    let threads = shape.block.count();
    within(Limit::Threads, threads, device.max_threads_per_block.into())?;
    within(Limit::KernelThreads, threads, kernel.max_threads.into())?;
    let shared = u64::from(kernel.static_shared) + u64::from(shape.dynamic_shared);
    within(
        Limit::Shared,
        shared,
        device
            .shared_per_block_optin
            .max(device.shared_per_block)
            .into(),
    )?;
    if let Some(cluster) = shape.cluster {
        if !device.cluster_launch {
            return Err(Refusal::Unsupported("clusters"));
        }
        for axis in 0..3 {
            let (grid, cluster) = (shape.grid.axes()[axis], cluster.axes()[axis]);
            if grid % cluster != 0 {
                return Err(Refusal::Uneven(axis, grid, cluster));
            }
        }
    }
    if shape.cooperative && !device.cooperative_launch {
        return Err(Refusal::Unsupported("cooperative launches"));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
