//! A ladder as one page: charts, table and method, with nothing loaded from anywhere.

use std::fmt::Write as _;

use crosswarp::cuda::Source;
use crosswarp::lab::ladder::{Check, Ladder, Rate, Rung, RungKind};
use crosswarp::lab::measure::Timing;

use super::text::{percent, rate, roof_line};
use crate::commands::lab::roofline::{PlottedKernel, Roof, WIDTH, picture};
use crate::drawing::chart::Chart;
use crate::drawing::svg::escape;
use crate::drawing::theme;
use crate::format::{general, grouped, microseconds};

const PAGE_STYLE: &str = "
  :root { color-scheme: light dark; --page: #f6f8fa; --card: #ffffff; --text: #1f2328; --soft: #59636e; --line: #d1d9e0;
    --own-tint: #dafbe1; --alarm: #cf222e; --accent: #1a7f37 }
  @media (prefers-color-scheme: dark) {
    :root { --page: #010409; --card: #0d1117; --text: #f0f6fc; --soft: #9198a1; --line: #3d444d; --own-tint: #12261e;
      --alarm: #ff7b72; --accent: #3fb950 }
  }
  * { box-sizing: border-box }
  body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, 'Segoe UI', Helvetica, Arial, sans-serif }
  main { max-width: 1240px; margin: 0 auto; padding: 40px 24px 64px }
  h1 { font-size: 32px; line-height: 1.2; margin: 0 0 4px } h2 { font-size: 20px; margin: 40px 0 12px }
  p.lead { margin: 0; color: var(--soft) }
  .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 16px; margin: 28px 0 0 }
  .tile, figure, .table { background: var(--card); border: 1px solid var(--line); border-radius: 10px }
  .tile { padding: 16px 20px } .tile b { display: block; font-size: 30px; line-height: 1.2; font-variant-numeric: tabular-nums }
  .tile span { color: var(--soft); font-size: 14px }
  figure { margin: 0 0 16px; padding: 8px } figure svg { display: block; width: 100%; height: auto }
  .table { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums }
  th, td { padding: 7px 8px; text-align: right; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap }
  th { color: var(--soft); font-weight: 600; white-space: normal } tr:last-child td { border-bottom: 0 }
  td.name, th.name { text-align: left; font-weight: 600 } td.name, td.good, td.bad, td.why { white-space: normal } td.name { min-width: 120px }
  td.why { text-align: left; min-width: 140px; color: var(--soft) }
  tr.own td { background: var(--own-tint) } td.bad { color: var(--alarm); font-weight: 600 }
  details { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 16px; margin: 0 0 12px }
  summary { cursor: pointer; font-weight: 600 } pre { overflow-x: auto; font: 13px/1.45 ui-monospace, 'SF Mono', Menlo, Consolas, monospace }
  ul { padding-left: 20px; color: var(--soft) } .key { display: flex; flex-wrap: wrap; gap: 18px; font-size: 14px; color: var(--soft); margin: 0 0 12px }
  figcaption { font-weight: 600; font-size: 14px; padding: 6px 8px 0 } .narrow { display: none } td small { display: block; color: var(--soft); font-size: 12px }
  @media (max-width: 720px) {
    main { padding: 24px 12px 48px } h1 { font-size: 26px } .wide { display: none } .narrow { display: block }
  }
  @media (max-width: 1023px) {
    .table { max-width: 640px } table, tbody { display: block } tr.heads { display: none }
    tr { display: grid; gap: 2px; padding: 10px 12px; border-bottom: 1px solid var(--line) }
    tr.own { background: var(--own-tint) } td { border: 0; padding: 0; white-space: normal; display: flex; justify-content: space-between; gap: 8px }
    td::before { content: attr(data-name); color: var(--soft) } td[data-name=\"\"]::before { content: none }
    td.number { display: none } td.name, td.why { min-width: 0 } td.name { font-size: 16px }
    td small { display: inline } td small::before { content: ' ' }
  }
  .key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px }
";

/// The whole page, made by `command`; `kernels` can be unfolded at its end.
pub fn page(ladder: &Ladder, kernels: &[Source], command: &str) -> String {
    let title = format!("The {} ladder", ladder.subject);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} on {machine}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{PAGE_STYLE}{style}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"lead\">{what}, on {machine}</p>\n",
        machine = escape(&ladder.machine.to_string()),
        what = escape(&groups(ladder)),
        style = theme::style(),
    );
    tiles(&mut out, ladder);
    out.push_str("<h2>How fast each rung is</h2>\n");
    key(&mut out, ladder);
    let mut first = 0;
    for group in ladder.groups() {
        let (wide, narrow) = (
            bars(ladder, group, first),
            narrow_bars(ladder, group, first),
        );
        figure(&mut out, "bars", &wide, &narrow);
        first += group.len();
    }
    if ladder.rungs.iter().any(|rung| rung.work.operations > 0.0) {
        out.push_str("<h2>Where that is below the roof</h2>\n");
        let (wide, narrow) = (roofline(ladder, WIDTH), roofline(ladder, NARROW));
        figure(&mut out, "roofline", &wide, &narrow);
    }
    out.push_str("<h2>Rung by rung</h2>\n");
    table(&mut out, ladder);
    method(&mut out, ladder, command);
    if !kernels.is_empty() {
        out.push_str("<h2>The kernels</h2>\n");
    }
    for source in kernels {
        // Line ends are what `escape` would take for control characters.
        let lines: Vec<String> = source.text.lines().map(escape).collect();
        let _ = writeln!(
            out,
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escape(source.name),
            lines.join("\n")
        );
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// A chart for wide pages and one for narrow ones, whose heading is the page's text; the page shows one of them.
fn figure(out: &mut String, class: &str, wide: &Chart, narrow: &Chart) {
    let _ = writeln!(
        out,
        "<figure class=\"{class}\">\n<div class=\"wide\">\n{}</div>\n<div class=\"narrow\"><figcaption>{}</figcaption>\n{}</div>\n</figure>",
        wide.inline(),
        escape(narrow.title()),
        narrow.inline(),
    );
}

fn groups(ladder: &Ladder) -> String {
    let names: Vec<&str> = ladder
        .groups()
        .map(|group| group[0].group.as_str())
        .collect();
    names.join("; ")
}

/// The figures that a reader takes away: of the first group, of what is right.
fn tiles(out: &mut String, ladder: &Ladder) {
    let Some(group) = ladder.groups().next() else {
        return;
    };
    let right = || {
        group
            .iter()
            .filter(|rung| rung.kind != RungKind::Wrong && rung.check.is_right())
    };
    let by_time = |a: &&Rung, b: &&Rung| a.time.median.total_cmp(&b.time.median);
    let (Some(slowest), Some(fastest)) = (right().max_by(by_time), right().min_by(by_time)) else {
        return;
    };
    let best = rate(fastest.rate(ladder.rate));
    let tiles = [
        (
            format!("{best} {}", ladder.rate.unit()),
            format!("the fastest rung: {}", fastest.name),
        ),
        (
            percent(ladder.of_roof(fastest)),
            format!("of the roof, which is {}", ladder.bound(fastest).name()),
        ),
        (
            times(slowest.time.median / fastest.time.median),
            format!("faster than {}", slowest.name),
        ),
    ];
    out.push_str("<div class=\"tiles\">\n");
    for (figure, what) in tiles {
        let _ = writeln!(
            out,
            "<div class=\"tile\"><b>{}</b><span>{}</span></div>",
            escape(&figure),
            escape(&what)
        );
    }
    out.push_str("</div>\n");
}

/// How many times, in words that need no exponent.
fn times(ratio: f64) -> String {
    if ratio >= 100.0 {
        // Casts saturate.
        format!("{} ×", grouped(ratio.round() as u64))
    } else {
        format!("{} ×", general(ratio, 3))
    }
}

const KINDS: [(RungKind, &str); 4] = [
    (RungKind::Textbook, "a variant of the textbook"),
    (RungKind::Crosswarp, "Crosswarp"),
    (RungKind::Peer, "another library"),
    (RungKind::Wrong, "wrong on purpose"),
];

fn class(kind: RungKind) -> &'static str {
    match kind {
        RungKind::Textbook => "textbook",
        RungKind::Wrong => "wrong",
        RungKind::Crosswarp => "own",
        RungKind::Peer => "peer",
    }
}

fn key(out: &mut String, ladder: &Ladder) {
    out.push_str("<div class=\"key chart\">");
    for (kind, words) in KINDS {
        if ladder.rungs.iter().any(|rung| rung.kind == kind) {
            let colour = match kind {
                RungKind::Textbook => "blue",
                RungKind::Crosswarp => "green",
                RungKind::Peer => "violet",
                RungKind::Wrong => "grey",
            };
            let _ = write!(
                out,
                "<span><i style=\"background: var(--{colour})\"></i>{words}</span>"
            );
        }
    }
    out.push_str("</div>\n");
}

/// Width of a chart on a phone, so that its texts have 11 pixels there.
const NARROW: f64 = 360.0;
const NARROW_ROW: f64 = 44.0;

const ROW: f64 = 27.0;
const NAMES: f64 = 210.0;
const FIGURES: f64 = 190.0;
const BARS_WIDTH: f64 = 1000.0;
const HEAD: f64 = 62.0;

/// A bar per rung, as long as its rate, and a line at the roof.
fn bars(ladder: &Ladder, group: &[Rung], first: usize) -> Chart {
    let height = HEAD + ROW * group.len() as f64 + 44.0;
    let mut chart = Chart::new(&group[0].group, BARS_WIDTH, height);
    let roof = roof_of(ladder);
    let rates = group.iter().map(|rung| rung.rate(ladder.rate));
    let most = rates.fold(roof, f64::max);
    let room = BARS_WIDTH - NAMES - FIGURES;
    let x = |value: f64| NAMES + room * value / most;
    let bottom = HEAD + ROW * group.len() as f64;
    chart.line("goal", (x(roof), HEAD - 4.0), (x(roof), bottom + 6.0));
    let label = format!("roof: {} {}", rate(roof), ladder.rate.unit());
    chart.text("small faint", "middle", x(roof), bottom + 24.0, &label);
    for (place, rung) in group.iter().enumerate() {
        let value = rung.rate(ladder.rate);
        let top = HEAD + ROW * place as f64;
        let middle = top + ROW / 2.0 + 4.5;
        let number = format!("{}", first + place + 1);
        let strong = match rung.kind {
            RungKind::Crosswarp => "strong",
            _ => "name",
        };
        chart.text("faint small", "end", 38.0, middle, &number);
        chart.text(strong, "start", 48.0, middle, &rung.name);
        let hint = hint(rung);
        let width = (x(value) - NAMES).max(1.5);
        chart.cell(
            class(rung.kind),
            (NAMES, top + 4.0),
            (width, ROW - 8.0),
            &hint,
        );
        let figures = figures(ladder, rung);
        // Readable where the roof's line goes through it.
        let beside = NAMES + width + 8.0;
        chart.text("small clear", "start", beside, middle, &figures);
    }
    chart
}

/// The roof in the units of the ladder's rates.
fn roof_of(ladder: &Ladder) -> f64 {
    match ladder.rate {
        Rate::Gigabytes => ladder.ceilings.bandwidth / 1e9,
        Rate::Gigaflops => ladder.ceilings.rate / 1e9,
    }
}

fn hint(rung: &Rung) -> String {
    let time = &rung.time;
    format!(
        "{}: {} us ({} to {}). {}",
        rung.name,
        microseconds(time.median),
        microseconds(time.min),
        microseconds(time.max),
        rung.why
    )
}

fn figures(ladder: &Ladder, rung: &Rung) -> String {
    format!(
        "{} {} · {}",
        rate(rung.rate(ladder.rate)),
        ladder.rate.unit(),
        percent(ladder.of_roof(rung))
    )
}

/// The same for a narrow page: names stand above their bars.
fn narrow_bars(ladder: &Ladder, group: &[Rung], first: usize) -> Chart {
    let bottom = 8.0 + NARROW_ROW * group.len() as f64;
    let mut chart = Chart::untitled(&group[0].group, NARROW, bottom + 36.0);
    let roof = roof_of(ladder);
    let rates = group.iter().map(|rung| rung.rate(ladder.rate));
    let most = rates.fold(roof, f64::max);
    let (left, room) = (8.0, NARROW - 16.0);
    let x = left + room * roof / most;
    chart.line("goal", (x, 8.0), (x, bottom + 6.0));
    let label = format!("roof: {} {}", rate(roof), ladder.rate.unit());
    chart.text("small faint", "end", NARROW - 8.0, bottom + 24.0, &label);
    for (place, rung) in group.iter().enumerate() {
        let top = 8.0 + NARROW_ROW * place as f64;
        let class_of_name = match rung.kind {
            RungKind::Crosswarp => "strong clear",
            _ => "name clear",
        };
        let name = format!("{} {}", first + place + 1, rung.name);
        chart.text(class_of_name, "start", left, top + 16.0, &name);
        let figures = figures(ladder, rung);
        chart.text(
            "small clear",
            "end",
            left + room - 6.0,
            top + 16.0,
            &figures,
        );
        let width = (room * rung.rate(ladder.rate) / most).max(1.5);
        chart.cell(
            class(rung.kind),
            (left, top + 22.0),
            (width, 14.0),
            &hint(rung),
        );
    }
    chart
}

fn roofline(ladder: &Ladder, width: f64) -> Chart {
    let roof = Roof {
        name: ladder.machine.to_string(),
        ceilings: ladder.ceilings,
        latency: None,
        multiprocessors: None,
    };
    let mut rungs: Vec<(usize, &Rung)> = (1..)
        .zip(&ladder.rungs)
        .filter(|(_, rung)| rung.work.operations > 0.0)
        .collect();
    // What comes last is drawn over the others: Crosswarp's own.
    rungs.sort_by_key(|(_, rung)| rung.kind == RungKind::Crosswarp);
    let marks: Vec<_> = rungs
        .into_iter()
        .map(|(number, rung)| {
            let speed = rung.work.operations / rung.time.median;
            PlottedKernel {
                label: number.to_string(),
                hint: format!("{number}: {}, {} GFLOP/s", rung.name, rate(speed / 1e9)),
                intensity: rung.work.intensity(),
                rate: Some(speed),
                class: class(rung.kind),
            }
        })
        .collect();
    picture(&roof, &marks, width)
}

fn table(out: &mut String, ladder: &Ladder) {
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column| {
            ladder
                .rungs
                .iter()
                .any(|rung| (column.cell)(rung).is_some())
        })
        .collect();
    let cells = |cell: &dyn Fn(&Column) -> String| -> String {
        columns.iter().map(|column| cell(column)).collect()
    };
    let mut number = 0;
    for group in ladder.groups() {
        let heads = cells(&|column| format!("<th>{}</th>", column.name));
        let _ = write!(
            out,
            "<p class=\"lead\">{}</p>\n<div class=\"table\"><table>\n<tr class=\"heads\"><th>#</th><th class=\"name\">rung</th>{heads}\
             <th>{}</th><th>of roof</th><th>× the rung above</th><th>result</th><th class=\"name\">why</th></tr>\n",
            escape(&group[0].group),
            ladder.rate.unit(),
        );
        for rung in group {
            let own = cells(&|column| {
                let text = (column.cell)(rung).unwrap_or_else(|| "–".to_owned());
                format!("<td data-name=\"{}\">{text}</td>", column.name)
            });
            let speedup = ladder
                .speedup(number)
                .map_or("–".to_owned(), |speedup| format!("{speedup:.2} ×"));
            number += 1;
            let good = matches!(rung.check, Check::Exact | Check::Within(_));
            let _ = writeln!(
                out,
                "<tr class=\"{}\"><td class=\"number\">{number}</td><td class=\"name\" data-name=\"\">{}</td>{own}\
                 <td data-name=\"{}\">{}</td><td data-name=\"of roof\">{}</td><td data-name=\"× the rung above\">{speedup}</td>\
                 <td data-name=\"result\" class=\"{}\">{}</td><td class=\"why\" data-name=\"\">{}</td></tr>",
                class(rung.kind),
                escape(&rung.name),
                ladder.rate.unit(),
                rate(rung.rate(ladder.rate)),
                percent(ladder.of_roof(rung)),
                if good { "good" } else { "bad" },
                escape(&rung.check.text()),
                escape(rung.why),
            );
        }
        out.push_str("</table></div>\n");
    }
}

/// A column that not every ladder has.
struct Column {
    name: &'static str,
    cell: fn(&Rung) -> Option<String>,
}

const COLUMNS: [Column; 4] = [
    Column {
        name: "cold, µs",
        cell: |rung| Some(with_spread(&rung.time)),
    },
    Column {
        name: "hot, µs",
        cell: |rung| rung.hot.as_ref().map(with_spread),
    },
    Column {
        name: "occupancy",
        cell: |rung| {
            rung.occupancy.map(|o| {
                let local = match o.local {
                    0 => String::new(),
                    bytes => format!(", {bytes} bytes of local memory"),
                };
                format!(
                    "<span title=\"{} threads, {} registers, {} bytes of shared memory{local}\">{:.0} %</span>",
                    o.threads,
                    o.registers,
                    o.shared,
                    100.0 * o.theoretical
                )
            })
        },
    },
    Column {
        name: "achieved",
        cell: |rung| Some(format!("{:.0} %", 100.0 * rung.occupancy?.achieved?)),
    },
];

/// The median, and below it the spread.
fn with_spread(time: &Timing) -> String {
    format!(
        "<span title=\"median of {} samples\">{}<small>{} – {}</small></span>",
        time.samples,
        microseconds(time.median),
        microseconds(time.min),
        microseconds(time.max),
    )
}

fn method(out: &mut String, ladder: &Ladder, command: &str) {
    out.push_str("<h2>How it was measured</h2>\n<ul>\n");
    let how = if ladder.gpu {
        "Times are medians of samples taken with the GPU's events around a graph of many calls; a call is everything \
         from input to result. Cold: inputs rotate, so that none is in the level-2 cache. Hot: one input again and again. \
         Occupancy is the theoretical one; achieved, where shown, is Nsight Compute's, of one run of the main kernel."
    } else {
        "Times are medians of samples by the processor's clock, over one array that is larger than its caches unless you chose less."
    };
    let mut item = |text: &str| {
        let _ = writeln!(out, "<li>{}</li>", escape(text));
    };
    item(how);
    item("Below each median stand the least and the greatest sample.");
    item(
        "Rates count what the problem needs, not what a variant happens to move; every result was checked in this run.",
    );
    item(&roof_line(ladder));
    for note in &ladder.notes {
        item(note);
    }
    item(&format!(
        "Crosswarp {}: {command}",
        env!("CARGO_PKG_VERSION")
    ));
    out.push_str("</ul>\n");
}

#[cfg(test)]
mod tests {
    use crosswarp::lab::ladder::KernelOccupancy;
    use crosswarp::lab::measure::Machine;
    use crosswarp::lab::models::roofline::{Ceilings, Work};

    use super::super::text::table;
    use super::*;

    const COMMAND: &str = "crosswarp ladder reduce --html report.html";

    fn rung(name: &str, kind: RungKind, us: f64, check: Check) -> Rung {
        let time = |us: f64| Timing {
            median: 1e-6 * us,
            min: 0.99e-6 * us,
            max: 1.02e-6 * us,
            samples: 15,
            calls: 4,
        };
        let own = kind == RungKind::Crosswarp;
        Rung {
            name: name.to_owned(),
            group: "sum of 16,777,216 f32".to_owned(),
            kind,
            why: "Because of a < b & c.",
            work: Work {
                bytes: 67_108_864.0,
                operations: 16_777_216.0,
            },
            time: time(us),
            hot: own.then(|| time(us / 2.0)),
            check,
            occupancy: own.then_some(KernelOccupancy {
                threads: 256,
                registers: 32,
                shared: 1024,
                local: 0,
                theoretical: 1.0,
                achieved: Some(0.87),
            }),
        }
    }

    fn source() -> Source<'static> {
        Source::new(
            "ladder/k.cu",
            "__global__ void k() {\n    if (1 < 2) return;\n}\n",
        )
    }

    fn ladder() -> Ladder {
        use RungKind::{Crosswarp, Peer, Textbook, Wrong};
        Ladder {
            subject: "reduce",
            title: "sum of 16,777,216 f32".to_owned(),
            machine: Machine {
                processor: "a processor".to_owned(),
                cores: 2,
                gpu: Some("A <GPU>".to_owned()),
            },
            gpu: true,
            ceilings: Ceilings {
                bandwidth: 4.6e12,
                rate: 65e12,
            },
            ceilings_are: "given".to_owned(),
            rate: Rate::Gigabytes,
            notes: vec!["a note".to_owned(), "another".to_owned()],
            rungs: vec![
                rung("racy", Wrong, 260.0, Check::WrongOnPurpose(0.994)),
                rung("atomic", Textbook, 29_482.0, Check::Exact),
                rung("shared", Textbook, 130.0, Check::Within(2.3e-7)),
                rung(
                    "broken",
                    Textbook,
                    100.0,
                    Check::Wrong("1 instead of 2".to_owned()),
                ),
                rung("crosswarp", Crosswarp, 15.0, Check::Exact),
                rung("CUB", Peer, 17.6, Check::Exact),
            ],
        }
    }

    #[test]
    fn reports_are_stable() {
        insta::assert_snapshot!("table", table(&ladder()));
        // The style is no part of what a reader of the report would miss.
        let page = page(&ladder(), &[source()], COMMAND)
            .replace(PAGE_STYLE, "")
            .replace(&theme::style(), "");
        insta::assert_snapshot!("page", page);
    }

    #[test]
    fn the_first_tiles_are_of_what_is_right() {
        let page = page(&ladder(), &[], COMMAND);
        assert!(page.contains("the fastest rung: crosswarp"));
        assert!(page.contains("<b>1,965 ×</b><span>faster than atomic"));
    }
}
