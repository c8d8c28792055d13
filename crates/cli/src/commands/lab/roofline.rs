//! `crosswarp roofline`: what bandwidth and arithmetic allow.

use std::fmt::Write as _;

use crosswarp::cuda::{Device, Stream};
use crosswarp::lab::ladder::{GpuCeilings, HostCeilings};
use crosswarp::lab::measure::Machine;
use crosswarp::lab::models::occupancy::{BlockNeeds, Occupancy};
use crosswarp::lab::models::roofline::{Ceilings, Work};
use serde_json::{Value, json};

use super::gpu::ModelledGpu;
use crate::args::roofline::{Point, RooflineArgs};
use crate::commands::error::CommandError;
use crate::console;
use crate::defaults;
use crate::drawing::axes::{Axes, Scale};
use crate::drawing::chart::{Chart, Plot};
use crate::drawing::files::PictureFiles;
use crate::format::{figure, general, microseconds, with_separators};
use crate::input::kernel_file::{KernelFile, plain_name};
use crate::output::json;
use crate::processor::physical_cores;

/// Prints ceilings and points, and draws them if asked for.
pub fn roofline(args: &RooflineArgs) -> Result<i32, CommandError> {
    let pictures =
        PictureFiles::create(args.pictures.svg.as_deref(), args.pictures.png.as_deref())?;
    let roof = Roof::choose(args)?;
    let in_flight = BytesInFlight::new(args, &roof)?;
    pictures.draw(|| {
        let points: Vec<PlottedKernel> = args.point.iter().map(PlottedKernel::from).collect();
        picture(&roof, &points, WIDTH)
    })?;
    if args.json {
        console::line(json::line(&as_json(args, &roof, in_flight.as_ref())))?;
        return Ok(0);
    }
    let mut out = format!(
        "{}: {} GB/s, {} GFLOP/s; ridge at {} operations a byte",
        roof.name,
        figure(roof.ceilings.bandwidth / 1e9, 4),
        figure(roof.ceilings.rate / 1e9, 4),
        figure(roof.ceilings.ridge(), 4)
    );
    if let Some(in_flight) = &in_flight {
        out.push_str(&in_flight.text());
    }
    if !args.point.is_empty() {
        out.push_str(&table(&args.point, &roof.ceilings));
    }
    console::line(out)?;
    Ok(0)
}

/// Ceilings and whose they are.
pub struct Roof {
    /// Of what.
    pub name: String,
    /// The ceilings.
    pub ceilings: Ceilings,
    /// Of one load from memory, seconds, if measured.
    pub latency: Option<f64>,
    /// Streaming multiprocessors, of a GPU.
    pub multiprocessors: Option<u32>,
}

impl Roof {
    fn choose(args: &RooflineArgs) -> Result<Self, CommandError> {
        let sheet = args.device.map(|sheet| sheet.ceilings());
        let bandwidth = args.bandwidth.map(|gbs| 1e9 * gbs);
        let rate = args.rate.map(|gflops| 1e9 * gflops);
        let both = bandwidth
            .or(sheet.map(|sheet| sheet.bandwidth))
            .zip(rate.or(sheet.map(|sheet| sheet.rate)));
        let Some((bandwidth, rate)) = both else {
            return Self::measured(args);
        };
        let name = match args.device {
            Some(sheet) if args.bandwidth.is_none() && args.rate.is_none() => {
                format!("{} (data sheet, single precision)", sheet.name)
            }
            Some(sheet) => sheet.name.to_owned(),
            None => "given ceilings".to_owned(),
        };
        Ok(Self {
            name,
            ceilings: Ceilings { bandwidth, rate },
            latency: None,
            multiprocessors: args.device.map(|sheet| sheet.multiprocessors),
        })
    }
}

impl Roof {
    /// This machine's: the GPU's if there is one.
    fn measured(args: &RooflineArgs) -> Result<Self, CommandError> {
        if args.bandwidth.is_some() || args.rate.is_some() {
            return Err(CommandError::Usage(
                "--bandwidth and --rate go together, unless --gpu has the other".to_owned(),
            ));
        }
        Ok(match Device::get(0) {
            Ok(device) => {
                let stream = Stream::new(&device).map_err(crosswarp::cuda::Error::from)?;
                let found = GpuCeilings::measure(&device, &stream)?;
                Self {
                    name: format!(
                        "{} (measured: reading, fused multiply-adds in f32)",
                        device.properties().name
                    ),
                    ceilings: found.reading(),
                    latency: Some(found.latency),
                    multiprocessors: Some(device.properties().multiprocessors),
                }
            }
            Err(_) => Self {
                name: format!(
                    "{} (measured: reading, fused multiply-adds in f32)",
                    Machine::of_host()
                ),
                ceilings: HostCeilings::measure(physical_cores()).reading(),
                latency: None,
                multiprocessors: None,
            },
        })
    }
}

/// Little's law: the bytes that must be in flight, and those that a kernel keeps there.
struct BytesInFlight {
    latency: f64,
    needed: f64,
    multiprocessors: Option<u32>,
    kernel: Option<KernelInFlight>,
}

struct KernelInFlight {
    name: String,
    occupancy: Occupancy,
    bytes: f64,
}

impl BytesInFlight {
    fn new(args: &RooflineArgs, roof: &Roof) -> Result<Option<Self>, CommandError> {
        let given = args.latency.map(|nanoseconds| 1e-9 * nanoseconds);
        let Some(latency) = given.or(roof.latency) else {
            if args.file.is_some() {
                return Err(CommandError::Usage(
                    "--file shows the bytes that a kernel keeps in flight; how many are needed depends on \
                     the --latency of device memory (some 500 to 800 ns)"
                        .to_owned(),
                ));
            }
            return Ok(None);
        };
        let multiprocessors = roof.multiprocessors;
        let kernel = match (&args.file, multiprocessors) {
            (Some(path), Some(multiprocessors)) => {
                let device = ModelledGpu::choose(args.device, None);
                let file = KernelFile::read(path, Some(device.arch), device.arch)?;
                let needs = file.kernel(args.kernel.as_deref())?;
                let block = BlockNeeds {
                    threads: args
                        .threads
                        .or(needs.max_threads)
                        .unwrap_or(defaults::BLOCK.threads),
                    registers: needs.registers,
                    shared: needs.static_shared,
                };
                let occupancy = Occupancy::new(device.limits()?, &block);
                let threads = f64::from(occupancy.blocks) * f64::from(block.threads);
                Some(KernelInFlight {
                    name: plain_name(&needs.name).to_owned(),
                    occupancy,
                    bytes: threads * f64::from(args.load) * f64::from(multiprocessors),
                })
            }
            (Some(_), None) => {
                return Err(CommandError::Usage(
                    "--file needs a GPU: --gpu, or one in this machine".to_owned(),
                ));
            }
            (None, _) => None,
        };
        Ok(Some(Self {
            latency,
            needed: roof.ceilings.bytes_in_flight(latency),
            multiprocessors,
            kernel,
        }))
    }

    fn text(&self) -> String {
        let mut out = format!(
            "\nlatency {} ns: {} kB must be in flight for the whole bandwidth",
            figure(1e9 * self.latency, 4),
            figure(self.needed / 1e3, 4)
        );
        if let Some(sms) = self.multiprocessors {
            let _ = write!(
                out,
                ", {} kB on each of {sms} SMs",
                figure(self.needed / 1e3 / f64::from(sms), 4)
            );
        }
        if let Some(kernel) = &self.kernel {
            let _ = write!(
                out,
                "\n{}: {} % occupancy keeps {} kB in flight, enough for {} GB/s",
                kernel.name,
                general(100.0 * kernel.occupancy.fraction(), 4),
                figure(kernel.bytes / 1e3, 4),
                figure(
                    (kernel.bytes / self.latency).min(self.needed / self.latency) / 1e9,
                    4
                )
            );
        }
        out
    }
}

fn table(points: &[Point], ceilings: &Ceilings) -> String {
    let width = points.iter().map(|point| point.name.chars().count()).max();
    let width = width.unwrap_or(0).max(6);
    let mut out = format!(
        "\n\n{:<width$}  flop/byte  bound      least us          us    GB/s   GFLOP/s  of roof",
        "kernel"
    );
    for point in points {
        let work = point.work();
        let least = ceilings.least_time(&work);
        let _ = write!(
            out,
            "\n{:<width$}  {:>9}  {:<7}  {:>10}",
            point.name,
            figure(work.intensity(), 4),
            ceilings.bound(&work).name(),
            microseconds(least)
        );
        if let Some(seconds) = point.seconds {
            let _ = write!(
                out,
                "  {:>10}  {:>6}  {:>8}  {:>5.1} %",
                microseconds(seconds),
                figure(work.bytes / seconds / 1e9, 4),
                figure(work.operations / seconds / 1e9, 5),
                100.0 * least / seconds
            );
        }
    }
    out
}

fn as_json(args: &RooflineArgs, roof: &Roof, in_flight: Option<&BytesInFlight>) -> Value {
    let points: Vec<Value> = args
        .point
        .iter()
        .map(|point| {
            let work = point.work();
            let least = roof.ceilings.least_time(&work);
            json!({
                "name": point.name,
                "intensity": work.intensity(),
                "bound": roof.ceilings.bound(&work).name(),
                "least_seconds": least,
                "of_roof": point.seconds.map(|seconds| least / seconds),
            })
        })
        .collect();
    let mut object = json!({
        "roof": roof.name,
        "bytes_per_second": roof.ceilings.bandwidth,
        "gflops": roof.ceilings.rate / 1e9,
        "ridge": roof.ceilings.ridge(),
        "points": points,
    });
    if let Some(in_flight) = in_flight {
        object["bytes_in_flight"] = in_flight.needed.into();
        if let Some(kernel) = &in_flight.kernel {
            object["kernel_bytes_in_flight"] = kernel.bytes.into();
        }
    }
    object
}

impl Point {
    fn work(&self) -> Work {
        Work {
            bytes: self.bytes,
            operations: self.operations,
        }
    }
}

/// A kernel in the picture.
pub struct PlottedKernel {
    /// Short text beside it, or none.
    pub label: String,
    /// Longer text when pointed at.
    pub hint: String,
    /// Operations a byte.
    pub intensity: f64,
    /// Operations a second, if measured.
    pub rate: Option<f64>,
    /// The class that colours it.
    pub class: &'static str,
}

impl From<&Point> for PlottedKernel {
    fn from(point: &Point) -> Self {
        Self {
            label: point.name.clone(),
            hint: point.name.clone(),
            intensity: point.work().intensity(),
            rate: point.seconds.map(|seconds| point.operations / seconds),
            class: "textbook",
        }
    }
}

/// Width of a picture alone in its file.
pub const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
/// Between the middles of labels that stand one below the other.
const LABEL_GAP: f64 = 14.0;
/// Marks less far apart than this share a column of labels.
const ONE_COLUMN: f64 = 40.0;

/// The roofs, and the marks below them; one without a measured rate is a line up to the roof.
pub fn picture(roof: &Roof, marks: &[PlottedKernel], width: f64) -> Chart {
    let ridge = roof.ceilings.ridge();
    let intensities = marks.iter().map(|mark| mark.intensity);
    let x = Scale::log(intensities.chain([ridge / 20.0, ridge * 8.0]));
    let Scale::Log { low, high } = x else {
        unreachable!("Scale::log makes no other")
    };
    let rates = marks.iter().filter_map(|mark| mark.rate);
    let lowest = roof.ceilings.attainable(low);
    let y = Scale::log(
        rates
            .chain([lowest, 1.2 * roof.ceilings.rate])
            .map(|rate| rate / 1e9),
    );
    let axes = Axes {
        x,
        y,
        x_label: "arithmetic intensity, operations a byte",
        y_label: "GFLOP/s",
        powers: false,
    };
    let title = format!("Roofline: {}", roof.name);
    let mut chart = if width < WIDTH {
        Chart::untitled(&title, width, HEIGHT)
    } else {
        Chart::new(&title, width, HEIGHT)
    };
    let plot = chart.plot(&axes);
    let at = |intensity: f64, rate: f64| plot.at(&axes, intensity, rate / 1e9);
    let corner = at(ridge, roof.ceilings.rate);
    let left = at(low, lowest);
    chart.polyline("roof", &[left, corner, at(high, roof.ceilings.rate)]);
    let mut beside = Vec::new();
    for mark in marks {
        let top = at(mark.intensity, roof.ceilings.attainable(mark.intensity));
        match mark.rate {
            Some(rate) => {
                let (x, y) = at(mark.intensity, rate);
                chart.dot(mark.class, x, y, 5.0, &mark.hint);
                beside.push((x, y, mark.label.as_str()));
            }
            None => {
                let bottom = (top.0, at(mark.intensity, 0.0).1);
                chart.line("goal", bottom, top);
                chart.text("small", "start", top.0 + 6.0, bottom.1 - 8.0, &mark.label);
            }
        }
    }
    write_labels(&mut chart, &plot, beside);
    let bandwidth = figure(roof.ceilings.bandwidth / 1e9, 4) + " GB/s";
    let middle = (
        f64::midpoint(left.0, corner.0),
        f64::midpoint(left.1, corner.1),
    );
    // Left of the roof, unless the scale is there.
    let (anchor, x, y) = if middle.0 - 10.0 - strong_width(&bandwidth) < plot.left {
        ("start", middle.0 + 12.0, middle.1 + 12.0)
    } else {
        ("end", middle.0 - 10.0, middle.1 - 4.0)
    };
    chart.text("strong clear", anchor, x, y, &bandwidth);
    let rate = with_separators(&format!("{:.0}", roof.ceilings.rate / 1e9)) + " GFLOP/s";
    // Above the roof, unless the frame is there.
    let beside = if corner.1 < plot.top + 26.0 {
        18.0
    } else {
        -9.0
    };
    // It ends inside the frame.
    let x = (corner.0 + 8.0).min(plot.right() - 6.0 - strong_width(&rate));
    chart.text("strong clear", "start", x, corner.1 + beside, &rate);
    chart
}

/// About how wide a text of class `strong` is.
fn strong_width(text: &str) -> f64 {
    8.0 * text.chars().count() as f64
}

/// Writes the labels of marks beside them, those of near ones below one another, with a line to each that had to move.
fn write_labels(chart: &mut Chart, plot: &Plot, mut labels: Vec<(f64, f64, &str)>) {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    for column in labels.chunk_by_mut(|a, b| b.0 - a.0 < ONE_COLUMN) {
        column.sort_by(|a, b| a.1.total_cmp(&b.1));
        let places = spread(
            column.iter().map(|label| label.1),
            (plot.top + 8.0, plot.bottom() - 8.0),
        );
        let far = column.iter().map(|label| label.0).fold(0.0, f64::max);
        let near = column.iter().map(|label| label.0).fold(far, f64::min);
        let widest = column.iter().map(|label| label.2.chars().count()).max();
        let room = 30.0 + 7.0 * widest.unwrap_or(0) as f64;
        let (anchor, beside, end) = if far + room > plot.right() {
            ("end", near - 24.0, near - 21.0)
        } else {
            ("start", far + 24.0, far + 21.0)
        };
        for (&(x, y, label), place) in column.iter().zip(places) {
            let side = (end - x).signum();
            chart.line("leader", (x + 6.0 * side, y), (end, place));
            chart.text("small clear", anchor, beside, place + 4.0, label);
        }
    }
}

/// Places for labels wanted at `wanted`, which ascend: as near as possible, and far enough apart within `range`.
fn spread(wanted: impl Iterator<Item = f64>, (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut places: Vec<f64> = wanted.collect();
    let gap = LABEL_GAP.min((bottom - top) / places.len().max(1) as f64);
    let mut least = top;
    for place in &mut places {
        *place = place.max(least);
        least = *place + gap;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance_and_stay_inside() {
        for wanted in [
            vec![10.0],
            vec![10.0; 5],
            vec![0.0, 1.0, 2.0, 300.0, 301.0, 400.0],
            (0..40).map(f64::from).collect(),
        ] {
            let places = spread(wanted.iter().copied(), (0.0, 330.0));
            let gap = LABEL_GAP.min(330.0 / wanted.len() as f64);
            assert!(places.windows(2).all(|two| two[1] - two[0] >= gap - 1e-9));
            assert!(places.iter().all(|place| (0.0..=330.0).contains(place)));
        }
        assert_eq!(
            spread([50.0, 100.0].into_iter(), (0.0, 330.0)),
            [50.0, 100.0]
        );
    }
}
