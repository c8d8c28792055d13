//! `crosswarp divergence`: lanes that idle in the trees of a block.

use std::fmt::Write as _;

use crosswarp::lab::models::divergence::{Step, Tree, steps, useful};
use serde_json::{Value, json};

use crate::args::divergence::DivergenceArgs;
use crate::commands::error::CommandError;
use crate::console;
use crate::output::json;

/// Prints the share of useful lanes, step by step.
pub fn divergence(args: &DivergenceArgs) -> Result<i32, CommandError> {
    if !args.threads.is_power_of_two() || args.threads > 1024 {
        return Err(CommandError::Usage(format!(
            "--threads {}: a power of two up to 1024 is needed",
            args.threads
        )));
    }
    let trees = Tree::ALL.map(|tree| (tree, steps(tree, args.threads as usize)));
    if args.json {
        let object: serde_json::Map<String, Value> = trees
            .iter()
            .map(|(tree, steps)| (tree.name().to_owned(), as_json(steps)))
            .collect();
        console::line(json::line(&object))?;
        return Ok(0);
    }
    let mut out = format!(
        "Useful lanes of the warps that come along, tree over {} threads\n\nstep",
        args.threads
    );
    for (tree, _) in &trees {
        let _ = write!(out, "{:>13}", tree.name());
    }
    for number in 0..trees[0].1.len() {
        let _ = write!(out, "\n{:>4}", number + 1);
        for (_, steps) in &trees {
            let _ = write!(out, "{:>11.1} %", 100.0 * steps[number].useful());
        }
    }
    out.push_str("\n all");
    for (_, steps) in &trees {
        let _ = write!(out, "{:>11.1} %", 100.0 * useful(steps));
    }
    console::line(out)?;
    Ok(0)
}

fn as_json(steps: &[Step]) -> Value {
    let each: Vec<Value> = steps
        .iter()
        .map(|step| {
            json!({"stride": step.stride, "active": step.active, "warps": step.warps, "useful": step.useful()})
        })
        .collect();
    json!({"useful": useful(steps), "steps": each})
}
