//! `crosswarp ladder`: the textbook's variants of a problem, from the bottom up.

mod page;
mod text;

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::time::Duration;

use crosswarp::cuda::Device;
use crosswarp::lab::ladder::{
    COUNTER_SECTIONS, DURATION, Options, Rung, Subject, on_cpu, on_gpu, run_marked,
};
use crosswarp::lab::measure::Plan;
use crosswarp::lab::measure::nsight::ProfiledLaunch;

use crate::args::ladder::LadderArgs;
use crate::commands::error::CommandError;
use crate::commands::source_commit::COMMIT;
use crate::console;
use crate::format::microseconds;
use crate::output::staged::StagedFile;
use crate::processor::physical_cores;
use crate::programs::nsight_compute::{ProfilingError, Selection, collect};

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
pub fn ladder(args: &LadderArgs) -> Result<i32, CommandError> {
    if args.marked {
        return marked(args);
    }
    if args.source {
        for source in args.subject.kernels() {
            console::text(source.text.as_bytes())?;
        }
        return Ok(0);
    }
    let html = args.html.as_deref().map(StagedFile::create).transpose()?;
    let subject = args.subject;
    if args.bins.is_some() && subject != Subject::Histogram {
        return Err(CommandError::Usage(format!(
            "--bins is of histogram; {} has none",
            subject.name()
        )));
    }
    let device = if args.cpu { None } else { find(args)? };
    let options = Options {
        bins: args.bins,
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
            Some(device) => counters(subject, device, &options).map_err(|e| e.to_string()),
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
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        let command = format!(
            "crosswarp {}",
            arguments.join(OsStr::new(" ")).to_string_lossy()
        );
        file.put(page::page(&ladder, kernels, &command).as_bytes())?;
        file.commit()?;
    }
    if args.json {
        for row in ladder.rows() {
            let row = row.about("commit", COMMIT);
            console::line(row.json(&ladder.machine))?;
        }
    } else {
        console::line(text::table(&ladder))?;
    }
    let wrong = ladder.rungs.iter().any(|rung| !rung.check.is_right());
    Ok(if wrong { WRONG } else { 0 })
}

/// What Nsight Compute sees of the rungs when this command runs them once, marked.
fn counters(
    subject: Subject,
    device: &Device,
    options: &Options,
) -> Result<Vec<ProfiledLaunch>, ProfilingError> {
    let mut words = vec![
        "ladder".to_owned(),
        subject.name().to_owned(),
        "--marked".to_owned(),
        format!("--size={}", options.size),
        format!("--device={}", device.ordinal()),
    ];
    words.extend(options.bins.map(|bins| format!("--bins={bins}")));
    let program = std::env::current_exe().map_err(|source| ProfilingError::Start {
        program: "crosswarp".into(),
        source,
    })?;
    let selection = Selection {
        sections: &COUNTER_SECTIONS,
        metrics: Some(DURATION),
        ..Selection::default()
    };
    let words: Vec<_> = words.into_iter().map(OsString::from).collect();
    collect(&selection, &program, &words)
}

fn marked(args: &LadderArgs) -> Result<i32, CommandError> {
    let subject = args.subject;
    let device = Device::get(args.device.unwrap_or(0)).map_err(crosswarp::cuda::Error::from)?;
    let size = args.size.unwrap_or_else(|| subject.default_size(true));
    run_marked(subject, &device, size, args.bins)?;
    Ok(0)
}

/// The GPU asked for, or the first if there is one.
fn find(args: &LadderArgs) -> Result<Option<Device>, CommandError> {
    match args.device {
        Some(ordinal) => Ok(Some(
            Device::get(ordinal).map_err(crosswarp::cuda::Error::from)?,
        )),
        None => Ok(Device::get(0).ok()),
    }
}
