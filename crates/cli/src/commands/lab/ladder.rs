//! `crosswarp ladder`: the textbook's variants of a problem, from the bottom up.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use crosswarp::cuda::Device;
use crosswarp::lab::ladder::{
    COUNTER_SECTIONS, DURATION, Ladder, Occupied, Options, Rung, Subject, on_cpu, on_gpu,
    run_marked,
};
use crosswarp::lab::measure::Plan;
use crosswarp::lab::measure::nsight::Launched;

use crate::args::lab::{LadderArgs, LadderSubject};
use crate::commands::bench::COMMIT;
use crate::commands::error::CliError;
use crate::commands::lab::ladder_page;
use crate::commands::lab::profile::{ProfilingError, Selection, collect};
use crate::console;
use crate::format::{general, microseconds};
use crate::output::staged::StagedFile;
use crate::processor::physical_cores;

/// Exit code of a ladder with a rung that is wrong and should not be.
const WRONG: i32 = 1;

/// The processor's rungs share caches, memory and clocks with whatever else runs: medians over seconds.
const PROCESSOR: Plan = Plan {
    warm_up: Duration::from_millis(100),
    samples: 101,
    least: Duration::from_millis(2),
    most_calls: 1000,
    budget: Duration::from_secs(2),
};

/// Climbs, prints the table or JSON, and writes the page.
pub fn ladder(args: &LadderArgs) -> Result<i32, CliError> {
    if args.marked {
        return marked(args);
    }
    if args.source {
        for source in Subject::from(args.subject).kernels() {
            console::text(source.text.as_bytes())?;
        }
        return Ok(0);
    }
    let html = args.html.as_deref().map(StagedFile::create).transpose()?;
    let subject = Subject::from(args.subject);
    let device = if args.cpu { None } else { find(args)? };
    let options = Options {
        size: subject.check(
            args.size
                .unwrap_or_else(|| subject.default_size(device.is_some())),
        )?,
        plan: match (args.quick, &device) {
            (true, _) => Plan::quick(),
            (false, Some(_)) => Plan::default(),
            (false, None) => PROCESSOR,
        },
    };
    // Some rungs take seconds; whoever waits at a terminal sees how far it is.
    let watched = std::io::stderr().is_terminal();
    let mut show = |rung: &Rung| {
        if watched {
            console::complain(format_args!(
                "{}: {} us",
                rung.name,
                microseconds(rung.time.median)
            ));
        }
    };
    let mut ladder = match &device {
        Some(device) => on_gpu(subject, device, &options, &mut show)?,
        None => on_cpu(subject, physical_cores(), &options, &mut show)?,
    };
    if device.is_none() && !args.cpu {
        let reason = Device::get(0).err().map(|error| error.to_string());
        ladder.notes.insert(
            0,
            format!(
                "no GPU, so these are the processor's rungs ({})",
                reason.unwrap_or_default()
            ),
        );
    }
    if args.counters {
        let launches = match &device {
            Some(device) => counters(subject, device, options.size).map_err(|e| e.to_string()),
            None => Err("that is of GPUs".to_owned()),
        };
        match launches {
            Ok(launches) => ladder.add_counters(&launches),
            Err(reason) => ladder
                .notes
                .push(format!("no achieved occupancy: {reason}")),
        }
    }
    if let Some(mut file) = html {
        let kernels = if ladder.gpu { subject.kernels() } else { &[] };
        file.put(ladder_page::page(&ladder, kernels).as_bytes())?;
        file.commit()?;
    }
    if args.json {
        for row in ladder.rows() {
            let row = row.about("commit", COMMIT);
            console::line(row.json(&ladder.machine))?;
        }
    } else {
        console::line(table(&ladder))?;
    }
    let wrong = ladder.rungs.iter().any(|rung| !rung.verdict.is_right());
    Ok(if wrong { WRONG } else { 0 })
}

/// What Nsight Compute sees of the rungs when this command runs them once, marked.
fn counters(
    subject: Subject,
    device: &Device,
    size: usize,
) -> Result<Vec<Launched>, ProfilingError> {
    let words = [
        "ladder",
        subject.name(),
        "--marked",
        "--size",
        &size.to_string(),
        "--device",
        &device.ordinal().to_string(),
    ];
    let program = std::env::current_exe().map_err(|source| ProfilingError::Start {
        program: "crosswarp".into(),
        source,
    })?;
    let selection = Selection {
        sections: &COUNTER_SECTIONS,
        metrics: Some(DURATION),
        ..Selection::default()
    };
    collect(&selection, &program, &words.map(OsString::from))
}

fn marked(args: &LadderArgs) -> Result<i32, CliError> {
    let subject = Subject::from(args.subject);
    let device = Device::get(args.device.unwrap_or(0)).map_err(crosswarp::cuda::Error::from)?;
    let size = args.size.unwrap_or_else(|| subject.default_size(true));
    run_marked(subject, &device, size)?;
    Ok(0)
}

/// The GPU asked for, or the first if there is one.
fn find(args: &LadderArgs) -> Result<Option<Device>, CliError> {
    match args.device {
        Some(ordinal) => Ok(Some(
            Device::get(ordinal).map_err(crosswarp::cuda::Error::from)?,
        )),
        None => Ok(Device::get(0).ok()),
    }
}

/// The rungs as a terminal shows them.
pub fn table(ladder: &Ladder) -> String {
    let mut out = format!("{}\n{}", ladder.machine, roof_line(ladder));
    let mut number = 0;
    for group in ladder.groups() {
        let _ = write!(out, "\n\n{}\n\n", group[0].group);
        let mut rows = vec![HEADINGS.map(str::to_owned)];
        rows[0][4] = ladder.rate.unit().to_owned();
        for rung in group {
            let speedup = ladder
                .speedup(number)
                .map(|speedup| format!("{speedup:.2} x"));
            number += 1;
            rows.push([
                number.to_string(),
                rung.name.clone(),
                microseconds(rung.time.median),
                rung.hot
                    .map_or(String::new(), |hot| microseconds(hot.median)),
                rate(rung.rate(ladder.rate)),
                percent(ladder.of_roof(rung)),
                rung.occupied.map_or(String::new(), |o| occupancy(&o)),
                speedup.unwrap_or_default(),
                rung.verdict.text(),
            ]);
        }
        out.push_str(&aligned(&rows));
    }
    if !ladder.notes.is_empty() {
        let _ = write!(out, "\n\n{}", ladder.notes.join("\n"));
    }
    out
}

const HEADINGS: [&str; 9] = [
    "#",
    "rung",
    "cold us",
    "hot us",
    "",
    "of roof",
    "occupancy",
    "speed-up",
    "result",
];

/// Rows in columns as wide as they need, names and results to the left, figures to the right; columns with
/// nothing but a heading are left out.
fn aligned(rows: &[[String; HEADINGS.len()]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(
            |column| match rows[1..].iter().all(|row| row[column].is_empty()) {
                true => 0,
                false => width(column).unwrap_or(0),
            },
        )
        .collect();
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for (column, text) in row
            .iter()
            .enumerate()
            .filter(|(column, _)| widths[*column] > 0)
        {
            let width = widths[column];
            let _ = match column {
                1 | 8 => write!(line, "  {text:<width$}"),
                _ => write!(line, "  {text:>width$}"),
            };
        }
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The theoretical occupancy, and the achieved one if it was counted.
fn occupancy(occupied: &Occupied) -> String {
    let theoretical = format!("{:.0}", 100.0 * occupied.theoretical);
    match occupied.achieved {
        Some(achieved) => format!("{:.0} of {theoretical} %", 100.0 * achieved),
        None => format!("{theoretical} %"),
    }
}

/// The roof in a line.
pub fn roof_line(ladder: &Ladder) -> String {
    format!(
        "roof: {} GB/s, {} GFLOP/s ({})",
        general(ladder.ceilings.bandwidth / 1e9, 4),
        format_args!("{:.0}", ladder.ceilings.rate / 1e9),
        ladder.ceilings_are
    )
}

/// A rate with four digits, or fewer if it is small.
pub fn rate(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else {
        general(value, 3)
    }
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent >= 9.95 {
        format!("{percent:.0} %")
    } else {
        format!("{} %", general(percent, 2))
    }
}

impl From<LadderSubject> for Subject {
    fn from(subject: LadderSubject) -> Self {
        match subject {
            LadderSubject::Reduce => Self::Reduce,
            LadderSubject::Histogram => Self::Histogram,
            LadderSubject::Transpose => Self::Transpose,
            LadderSubject::Jacobi1d => Self::Jacobi1d,
            LadderSubject::Sgemm => Self::Sgemm,
        }
    }
}
