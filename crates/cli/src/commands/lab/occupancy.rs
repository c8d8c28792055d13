//! `crosswarp occupancy`: how many blocks an SM holds, and what stops more.

use std::fmt::Write as _;
use std::path::Path;

use crosswarp::cuda::{Arch, KernelResources};
use crosswarp::lab::models::occupancy::{
    ArchLimits, Axis, BlockNeeds, CurvePoint, LimitedBy, Occupancy, clusters, curve,
    most_registers, most_shared,
};
use serde_json::{Value, json};

use super::gpu::ModelledGpu;
use crate::args::occupancy::OccupancyArgs;
use crate::commands::error::CommandError;
use crate::console;
use crate::defaults;
use crate::drawing::axes::{Axes, Scale};
use crate::drawing::chart::Chart;
use crate::drawing::files::PictureFiles;
use crate::format::{counted, general, grouped};
use crate::input::kernel_file::{KernelFile, plain_name};
use crate::output::json;

/// Prints the answer, and draws the curve if asked for.
pub fn occupancy(args: &OccupancyArgs) -> Result<i32, CommandError> {
    if args.pictures.wanted() && args.curve.is_none() {
        return Err(CommandError::Usage(
            "--svg and --png draw a curve: --curve threads, registers or shared".to_owned(),
        ));
    }
    if let Some(table) = all_kernels(args)? {
        console::line(table)?;
        return Ok(0);
    }
    let pictures =
        PictureFiles::create(args.pictures.svg.as_deref(), args.pictures.png.as_deref())?;
    let block = BlockOnSm::new(args)?;
    if let Some(over) = args.curve {
        pictures.draw(|| block.picture(over))?;
    }
    if args.json {
        console::line(json::line(&block.json(args)))?;
        return Ok(0);
    }
    console::line(block.table(args).trim_end())?;
    if let Some(over) = args.curve {
        console::line(format_args!("\n{}", block.curve_table(over).trim_end()))?;
    }
    Ok(0)
}

/// The GPU that is asked for; else one of the file's architecture, if there is a file.
fn modelled(args: &OccupancyArgs, of_file: Option<Arch>) -> ModelledGpu {
    let device = ModelledGpu::choose(args.device, args.arch);
    match of_file {
        Some(arch) if arch != device.arch => ModelledGpu::choose(None, Some(arch)),
        _ => device,
    }
}

/// The file, compiled for the architecture asked for.
fn read(args: &OccupancyArgs, path: &Path) -> Result<KernelFile, CommandError> {
    let asked = args.device.map(|sheet| sheet.arch).or(args.arch);
    let otherwise = ModelledGpu::choose(None, None).arch;
    Ok(KernelFile::read(path, asked, otherwise)?)
}

/// A line for each kernel, of a file that has several and of which none is asked for.
fn all_kernels(args: &OccupancyArgs) -> Result<Option<String>, CommandError> {
    let of_one = args.kernel.is_some() || args.json || args.curve.is_some();
    let Some(path) = args.file.as_deref().filter(|_| !of_one) else {
        return Ok(None);
    };
    let file = read(args, path)?;
    if file.kernels.len() < 2 {
        return Ok(None);
    }
    let mut out = format!(
        "{} for {}; --kernel NAME shows one in full\n\nregisters    shared  local  threads  blocks  occupancy  limited by     kernel",
        file_name(path),
        file.arch
    );
    let mangled: Vec<String> = file
        .kernels
        .iter()
        .map(|kernel| kernel.name.clone())
        .collect();
    for kernel in file.kernels {
        let local = kernel.local;
        // By the name in the source, where one kernel alone has it.
        let plain = plain_name(&kernel.name);
        let alike = mangled
            .iter()
            .filter(|name| plain_name(name) == plain)
            .count();
        let name = if alike == 1 { plain } else { &kernel.name }.to_owned();
        let block = BlockOnSm::about(args, modelled(args, Some(file.arch)), Some(kernel))?;
        let (needs, o) = (&block.needs, &block.occupancy);
        let _ = write!(
            out,
            "\n{:>9}  {:>8}  {local:>5}  {:>7}  {:>6}  {:>7} %  {:<13}  {name}",
            needs.registers,
            needs.shared,
            needs.threads,
            o.blocks,
            general(100.0 * o.fraction(), 4),
            limit_name(o.limited_by),
        );
    }
    Ok(Some(out))
}

/// A block on an SM, and how it comes out.
struct BlockOnSm {
    title: String,
    limits: &'static ArchLimits,
    needs: BlockNeeds,
    occupancy: Occupancy,
    multiprocessors: Option<u32>,
    kernel: Option<KernelResources>,
}

impl BlockOnSm {
    /// Of the kernel that is asked for, or of numbers alone.
    fn new(args: &OccupancyArgs) -> Result<Self, CommandError> {
        match &args.file {
            Some(path) => {
                let file = read(args, path)?;
                let kernel = file.kernel(args.kernel.as_deref())?;
                Self::about(args, modelled(args, Some(file.arch)), Some(kernel))
            }
            None => Self::about(args, modelled(args, None), None),
        }
    }

    fn about(
        args: &OccupancyArgs,
        device: ModelledGpu,
        kernel: Option<KernelResources>,
    ) -> Result<Self, CommandError> {
        let limits = device.limits()?;
        let of_kernel =
            |number: fn(&KernelResources) -> Option<u32>| kernel.as_ref().and_then(number);
        let needs = BlockNeeds {
            threads: args
                .threads
                .or_else(|| of_kernel(|kernel| kernel.max_threads))
                .unwrap_or(defaults::BLOCK.threads),
            registers: args
                .registers
                .or_else(|| of_kernel(|kernel| Some(kernel.registers)))
                .unwrap_or(defaults::BLOCK.registers),
            shared: args
                .shared
                .or_else(|| of_kernel(|kernel| Some(kernel.static_shared)))
                .unwrap_or(defaults::BLOCK.shared),
        };
        if needs.shared > limits.shared_per_block {
            return Err(CommandError::Usage(format!(
                "{} bytes of shared memory: a block on {} has at most {}",
                needs.shared, limits.arch, limits.shared_per_block
            )));
        }
        if args.cluster.is_some() && device.arch.major < 9 {
            return Err(CommandError::Usage(format!(
                "{} has no clusters; they came with compute capability 9.0",
                device.arch
            )));
        }
        Ok(Self {
            title: match (&args.file, &kernel) {
                (Some(path), Some(kernel)) => {
                    format!("{} ({})", plain_name(&kernel.name), file_name(path))
                }
                _ => "a block".to_owned(),
            },
            limits,
            needs,
            occupancy: Occupancy::new(limits, &needs),
            multiprocessors: args.sms.or(device.multiprocessors),
            kernel,
        })
    }

    fn heading(&self) -> String {
        format!("{} on {}", self.title, self.setting())
    }

    fn setting(&self) -> String {
        format!(
            "{}: {}, {} a thread, {} of shared memory",
            self.limits.arch,
            counted(self.needs.threads.into(), "thread"),
            counted(self.needs.registers.into(), "register"),
            counted(self.needs.shared.into(), "byte"),
        )
    }

    fn table(&self, args: &OccupancyArgs) -> String {
        let o = &self.occupancy;
        let mut out = self.heading();
        out.push_str("\n\nlimit            blocks of an SM");
        for (name, blocks, limit) in [
            ("blocks", o.by_blocks, LimitedBy::Blocks),
            ("registers", o.by_registers, LimitedBy::Registers),
            ("shared memory", o.by_shared, LimitedBy::Shared),
            ("warps", o.by_warps, LimitedBy::Warps),
        ] {
            // All that tie: a block more needs less of each.
            let mark = if limit == o.limited_by || blocks == o.blocks {
                "  <- limits"
            } else {
                ""
            };
            let _ = write!(out, "\n{name:<17}{blocks:>15}{mark}");
        }
        let _ = write!(
            out,
            "\n\ntheoretical occupancy  {} % ({} of {} warps, {})\n",
            general(100.0 * o.fraction(), 4),
            o.warps,
            o.max_warps,
            counted(o.blocks.into(), "block")
        );
        if o.blocks == 0 {
            out.push_str("no block fits           a launch fails\n");
        }
        if let Some(more) = self.one_more() {
            let _ = writeln!(out, "one more block         {more}");
        }
        if let Some((grid, sms)) = args.grid.zip(self.multiprocessors) {
            let waves = o.waves(grid, sms);
            let _ = writeln!(
                out,
                "waves                  {waves:.2} ({} over {sms} SMs, {} at a time)",
                counted(grid, "block"),
                u64::from(o.blocks) * u64::from(sms)
            );
        } else if args.grid.is_some() {
            out.push_str("waves                  unknown: how many --sms?\n");
        }
        if let Some(size) = args.cluster {
            out.push_str(&self.cluster_line(size, &args.gpcs));
        }
        if let Some(blocks) = args.min_blocks {
            out.push_str(&self.bounds_lines(blocks));
        }
        if let Some(local) = self
            .kernel
            .as_ref()
            .map(|kernel| kernel.local)
            .filter(|&l| l > 0)
        {
            let _ = writeln!(
                out,
                "local memory           {local} bytes a thread: spilled registers, or arrays indexed at run time"
            );
        }
        out
    }

    /// What lets one more block in, if one resource alone is in the way.
    fn one_more(&self) -> Option<String> {
        let wanted = self.occupancy.blocks + 1;
        match self.occupancy.limited_by {
            LimitedBy::Registers => most_registers(self.limits, &self.needs, wanted)
                .map(|most| format!("with at most {most} registers a thread")),
            LimitedBy::Shared => most_shared(self.limits, &self.needs, wanted).map(|most| {
                format!(
                    "with at most {} bytes of shared memory",
                    grouped(most.into())
                )
            }),
            LimitedBy::Warps | LimitedBy::Blocks => None,
        }
    }

    fn cluster_line(&self, size: u32, gpcs: &[u32]) -> String {
        let whole = [self.multiprocessors.unwrap_or(0)];
        let (gpcs, note) = match gpcs {
            [] if whole[0] == 0 => {
                return "clusters               unknown: how many --sms or --gpcs?\n".to_owned();
            }
            [] => (&whole[..], "at most; --gpcs N,N,... gives the card's own"),
            gpcs => (gpcs, "none crosses a GPC"),
        };
        let fit = clusters(self.occupancy.blocks, gpcs, size);
        format!(
            "clusters of {size:<2}         {} resident, {} left over ({note})\n",
            fit.resident,
            counted(fit.idle_blocks.into(), "block place")
        )
    }

    fn bounds_lines(&self, blocks: u32) -> String {
        let bounds = format!("__launch_bounds__({}, {blocks})", self.needs.threads);
        let Some(cap) = most_registers(self.limits, &self.needs, blocks) else {
            return format!("{bounds}  can not be met: other limits allow fewer blocks\n");
        };
        let registers = cap.min(self.needs.registers);
        let then = Occupancy::new(
            self.limits,
            &BlockNeeds {
                registers,
                ..self.needs
            },
        );
        let cost = match self.needs.registers.checked_sub(cap) {
            None | Some(0) => "which it keeps already".to_owned(),
            Some(over) => format!("{over} fewer than it uses: the compiler spills or recomputes"),
        };
        format!(
            "{bounds}  caps registers at {cap}, {cost}; occupancy {} %\n",
            general(100.0 * then.fraction(), 4)
        )
    }

    fn json(&self, args: &OccupancyArgs) -> Value {
        let o = &self.occupancy;
        let mut object = json!({
            "arch": self.limits.arch.to_string(),
            "threads": self.needs.threads,
            "registers": self.needs.registers,
            "shared": self.needs.shared,
            "limits": {
                "blocks": o.by_blocks,
                "registers": o.by_registers,
                "shared": o.by_shared,
                "warps": o.by_warps,
            },
            "limited_by": limit_name(o.limited_by),
            "blocks": o.blocks,
            "warps": o.warps,
            "occupancy": o.fraction(),
        });
        if let Some(kernel) = &self.kernel {
            object["kernel"] = kernel.name.clone().into();
        }
        if let Some((grid, sms)) = args.grid.zip(self.multiprocessors) {
            object["waves"] = o.waves(grid, sms).into();
        }
        if let (Some(size), Some(sms)) = (args.cluster, self.multiprocessors) {
            let whole = [sms];
            let gpcs = if args.gpcs.is_empty() {
                &whole[..]
            } else {
                &args.gpcs
            };
            object["clusters"] = clusters(o.blocks, gpcs, size).resident.into();
        }
        if let Some(blocks) = args.min_blocks {
            object["register_cap"] = most_registers(self.limits, &self.needs, blocks).into();
        }
        if let Some(over) = args.curve {
            object["curve"] = self
                .points(over)
                .iter()
                .map(|p| json!({"x": p.x, "blocks": p.occupancy.blocks, "occupancy": p.occupancy.fraction(), "limited_by": limit_name(p.occupancy.limited_by)}))
                .collect();
        }
        object
    }

    fn points(&self, over: Axis) -> Vec<CurvePoint> {
        curve(self.limits, &self.needs, over)
    }

    /// The curve's steps: the ranges over which blocks and limit stay the same.
    fn curve_table(&self, over: Axis) -> String {
        let mut out = format!(
            "{:<24}{:>7}{:>11}  limited by",
            axis_label(over),
            "blocks",
            "occupancy"
        );
        let points = self.points(over);
        let same = |a: &CurvePoint, b: &CurvePoint| {
            let key = |p: &CurvePoint| {
                let o = &p.occupancy;
                (o.blocks, o.warps, o.limited_by)
            };
            key(a) == key(b)
        };
        for step in points.chunk_by(same) {
            let (first, last) = (&step[0], &step[step.len() - 1]);
            let range = if first.x == last.x {
                first.x.to_string()
            } else {
                format!("{} to {}", first.x, last.x)
            };
            let o = &first.occupancy;
            let _ = write!(
                out,
                "\n{range:<24}{:>7}{:>9} %  {}",
                o.blocks,
                general(100.0 * o.fraction(), 4),
                limit_name(o.limited_by)
            );
        }
        out
    }

    fn picture(&self, over: Axis) -> Chart {
        let points = self.points(over);
        let last = points.last().map_or(1.0, |point| f64::from(point.x));
        let mut chart = Chart::new(&format!("Occupancy of {}", self.title), 860.0, 440.0);
        chart.text("faint", "start", 24.0, 52.0, &self.setting());
        let axes = Axes {
            x: Scale::linear(0.0, last),
            y: Scale::linear(0.0, 100.0),
            x_label: axis_label(over),
            y_label: "theoretical occupancy, %",
            powers: false,
        };
        let plot = chart.plot(&axes);
        // Steps: each value holds up to the next point's.
        let mut path: Vec<(f64, f64)> = Vec::new();
        for point in &points {
            let (x, y) = (f64::from(point.x), 100.0 * point.occupancy.fraction());
            match path[..] {
                [.., (_, a), (_, b)] if a == b && b == y => {
                    path.pop();
                }
                [.., (_, before)] if before != y => path.push((x, before)),
                _ => {}
            }
            path.push((x, y));
        }
        let path: Vec<(f64, f64)> = path.iter().map(|&(x, y)| plot.at(&axes, x, y)).collect();
        chart.polyline("curve", &path);
        let here = match over {
            Axis::Threads => self.needs.threads,
            Axis::Registers => self.needs.registers,
            Axis::Shared => self.needs.shared,
        };
        let percent = 100.0 * self.occupancy.fraction();
        let (x, y) = plot.at(&axes, f64::from(here).min(last), percent);
        let text = format!("{here}: {} %", general(percent, 4));
        chart.dot("mark", x, y, 5.0, &text);
        chart.text("strong", "start", x + 8.0, y - 8.0, &text);
        chart
    }
}

/// What the axis shows.
fn axis_label(axis: Axis) -> &'static str {
    match axis {
        Axis::Threads => "threads of a block",
        Axis::Registers => "registers of a thread",
        Axis::Shared => "shared memory, bytes",
    }
}

/// The limit in words.
fn limit_name(limit: LimitedBy) -> &'static str {
    match limit {
        LimitedBy::Warps => "warps",
        LimitedBy::Registers => "registers",
        LimitedBy::Shared => "shared memory",
        LimitedBy::Blocks => "blocks",
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
