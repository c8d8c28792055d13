//! `crosswarp ladder`: the textbook's variants of a problem, from the bottom up.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use crosswarp::cuda::Device;
use crosswarp::lab::ladder::{Ladder, Options, Rung, Subject, on_cpu, on_gpu};
use crosswarp::lab::measure::Plan;

use super::args::{LadderArgs, LadderSubject};
use super::page;
use crate::console;
use crate::error::CliError;
use crate::general::general;
use crate::staged::StagedFile;
use crate::topology::physical_cores;

/// Exit code of a ladder with a rung that is wrong and should not be.
const WRONG: i32 = 1;

/// Climbs, prints the table or JSON, and writes the page.
pub fn ladder(args: &LadderArgs) -> Result<i32, CliError> {
    let html = args.html.as_deref().map(StagedFile::create).transpose()?;
    let subject = Subject::from(args.subject);
    let device = if args.cpu { None } else { find(args)? };
    let options = Options {
        size: subject.check(
            args.size
                .unwrap_or_else(|| subject.default_size(device.is_some())),
        )?,
        plan: if args.quick {
            Plan::quick()
        } else {
            Plan::default()
        },
    };
    // Some rungs take seconds; whoever waits at a terminal sees how far it is.
    let watched = std::io::stderr().is_terminal();
    let mut show = |rung: &Rung| {
        if watched {
            console::complain(format_args!(
                "{}: {} us",
                rung.name,
                general(1e6 * rung.time.median, 5)
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
    if let Some(mut file) = html {
        file.put(page::page(&ladder).as_bytes())?;
        file.commit()?;
    }
    if args.json {
        for row in ladder.rows() {
            console::line(row.json(&ladder.machine))?;
        }
    } else {
        console::line(table(&ladder))?;
    }
    let wrong = ladder.rungs.iter().any(|rung| !rung.verdict.is_right());
    Ok(if wrong { WRONG } else { 0 })
}

/// The GPU asked for, or the first if there is one.
fn find(args: &LadderArgs) -> Result<Option<Device>, CliError> {
    match args.gpu {
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
        let width = group.iter().map(|rung| rung.name.len()).max().unwrap_or(0);
        let width = width.max(8);
        let _ = write!(
            out,
            "\n\n{}\n\n  #  {:<width$}  {:>10}  {:>10}  {:>8}  {:>7}  {:>9}  {:>8}  result",
            group[0].group,
            "rung",
            "cold us",
            "hot us",
            ladder.rate.unit(),
            "of roof",
            "occupancy",
            "speed-up"
        );
        for rung in group {
            let hot = rung
                .hot
                .map_or(String::new(), |hot| general(1e6 * hot.median, 5));
            let occupancy = rung
                .occupied
                .map_or(String::new(), |o| format!("{:.0} %", 100.0 * o.theoretical));
            let speedup = ladder
                .speedup(number)
                .map_or(String::new(), |speedup| format!("{speedup:.2} x"));
            number += 1;
            let _ = write!(
                out,
                "\n{number:>3}  {:<width$}  {:>10}  {hot:>10}  {:>8}  {:>7}  {occupancy:>9}  {speedup:>8}  {}",
                rung.name,
                general(1e6 * rung.time.median, 5),
                rate(rung.rate(ladder.rate)),
                percent(ladder.of_roof(rung)),
                rung.verdict.text(),
            );
        }
    }
    if !ladder.notes.is_empty() {
        let _ = write!(out, "\n\n{}", ladder.notes.join("\n"));
    }
    out
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
