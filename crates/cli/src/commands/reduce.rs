//! `crosswarp reduce`: one value of the elements of NPY files.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use crosswarp::cuda::Stream;
use crosswarp::prim::cuda::DeviceReducer;
use crosswarp::prim::{Element, Op, Reducer, Source, Value};
use crosswarp::shmem::Pe;
use half::{bf16, f16};

use serde::Serialize;

use super::error::CommandError;
use crate::args::reduce::{ReduceArgs, Reinterpret};
use crate::console;
use crate::format::{grouped, pes, si};
use crate::input::npy::{Dtype, Elements, NpyMap};
use crate::output::json::{self, Run};
use crate::world::backend::Backend;
use crate::world::pes::{in_world_of, kind_name, share};

/// Reduces the files and prints the value.
pub fn reduce(args: &ReduceArgs) -> Result<i32, CommandError> {
    let op = operation(args)?;
    let files = args
        .files
        .iter()
        .map(|path| NpyMap::open(path))
        .collect::<Result<Vec<_>, _>>()?;
    let dtype = files[0].dtype();
    for file in &files {
        if file.dtype() != dtype {
            return Err(file.wrong_dtype(dtype.name()).into());
        }
        if args.dtype == Some(Reinterpret::Bf16) && dtype != Dtype::U16 {
            return Err(file.wrong_dtype("u16 (holding bf16)").into());
        }
    }
    // Which arrays the operation takes, each made of files.
    let arrays: Vec<&[NpyMap]> = if op == Op::Dot {
        let (left, right) = files.split_at(1);
        if left[0].shape() != right[0].shape() {
            return Err(right[0].wrong_shape(left[0].shape().to_string()).into());
        }
        vec![left, right]
    } else {
        vec![&files]
    };
    // An exact sum computes more than it reads: 2 GB/s a core.
    let backend = match op {
        Op::ExactSum => Backend::choose(&args.backend)?,
        _ => Backend::choose_when_asked(&args.backend)?,
    };
    let asked = args.backend.pes;
    let n_pes = asked.map_or(backend.default_pes(), |pes| pes as usize);
    let report = in_world_of(asked, n_pes, |pe| match (dtype, args.dtype) {
        (_, Some(Reinterpret::Bf16)) => of_type::<bf16>(pe, &backend, op, &arrays),
        (Dtype::F16, _) => of_type::<f16>(pe, &backend, op, &arrays),
        (Dtype::F32, _) => of_type::<f32>(pe, &backend, op, &arrays),
        (Dtype::F64, _) => of_type::<f64>(pe, &backend, op, &arrays),
        (Dtype::I8, _) => of_type::<i8>(pe, &backend, op, &arrays),
        (Dtype::I16, _) => of_type::<i16>(pe, &backend, op, &arrays),
        (Dtype::I32, _) => of_type::<i32>(pe, &backend, op, &arrays),
        (Dtype::I64, _) => of_type::<i64>(pe, &backend, op, &arrays),
        (Dtype::U8, _) => of_type::<u8>(pe, &backend, op, &arrays),
        (Dtype::U16, _) => of_type::<u16>(pe, &backend, op, &arrays),
        (Dtype::U32, _) => of_type::<u32>(pe, &backend, op, &arrays),
        (Dtype::U64, _) => of_type::<u64>(pe, &backend, op, &arrays),
        (Dtype::Bool | Dtype::C64 | Dtype::C128, _) => Err(files[0]
            .wrong_dtype("a number type (f16, f32, f64, i8 to i64, u8 to u64)")
            .into()),
    })?;
    let Some(reduced) = report else {
        return Ok(0);
    };
    let report = ReduceReport {
        op: args.op,
        backend: &backend,
        reduced,
    };
    if args.json {
        console::line(report.json())?;
    } else {
        console::line(report.summary())?;
    }
    Ok(0)
}

fn operation(args: &ReduceArgs) -> Result<Op, CommandError> {
    if args.exact && args.op != Op::Sum {
        return Err(CommandError::Usage(format!(
            "--exact applies to sum, not to {}",
            args.op
        )));
    }
    if args.op == Op::Dot && args.files.len() != 2 {
        return Err(CommandError::Usage(format!(
            "dot needs two files, {} given",
            args.files.len()
        )));
    }
    Ok(if args.exact { Op::ExactSum } else { args.op })
}

/// What PE 0 has of a reduction.
struct Reduced {
    /// Type of the elements.
    dtype: String,
    /// Number of elements of an array.
    count: usize,
    value: Value,
    run: Run,
}

/// The value, on PE 0.
fn of_type<T: Element>(
    pe: &Pe,
    backend: &Backend,
    op: Op,
    arrays: &[&[NpyMap]],
) -> Result<Option<Reduced>, CommandError> {
    // Arrays are of one length.
    let count = arrays[0].iter().map(NpyMap::len).sum();
    let (value, seconds) = match backend.device(pe) {
        None => {
            let parts: Vec<_> = arrays
                .iter()
                .map(|files| Elements::new(files, share(count, pe)))
                .collect();
            let parts: Vec<&dyn Source<T>> = parts.iter().map(|part| part as _).collect();
            let start = Instant::now();
            let value = Reducer::new().on(pe).reduce_from(op, &parts)?;
            (value, start.elapsed())
        }
        Some(device) => {
            let mut parts = Vec::new();
            for files in arrays {
                let slices = files
                    .iter()
                    .map(NpyMap::elements::<T>)
                    .collect::<Result<Vec<_>, _>>()?;
                parts.push(cut(&slices, share(count, pe)));
            }
            let parts: Vec<&[T]> = parts.iter().map(|part| &**part).collect();
            let gpu = DeviceReducer::new(&device);
            let mut workspace = gpu.workspace(&Stream::new(&device)?)?;
            gpu.prepare(op, T::DTYPE)?;
            let start = Instant::now();
            let value = gpu.reduce_host_on(pe, op, &mut workspace, &parts)?;
            (value, start.elapsed())
        }
    };
    let seconds = seconds.as_secs_f64();
    let bytes = count * size_of::<T>() * arrays.len();
    Ok((pe.my_pe() == 0).then(|| Reduced {
        dtype: T::DTYPE.to_string(),
        count,
        value,
        run: Run {
            pes: pe.n_pes(),
            world: kind_name(pe),
            seconds,
            bytes_per_second: Some(bytes as f64 / seconds),
        },
    }))
}

/// Elements `range` of the concatenated `slices`: lent if one slice holds them all, else copied.
fn cut<'a, T: Copy>(slices: &[&'a [T]], range: Range<usize>) -> Cow<'a, [T]> {
    let mut start = 0;
    let mut copied = Vec::new();
    for slice in slices {
        let end = start + slice.len();
        let (from, to) = (range.start.max(start), range.end.min(end));
        if from < to {
            let piece = &slice[from - start..to - start];
            if piece.len() == range.len() {
                return Cow::Borrowed(piece);
            }
            copied.extend_from_slice(piece);
        }
        start = end;
    }
    Cow::Owned(copied)
}

/// A reduction with everything that is said of it.
struct ReduceReport<'a> {
    /// As it was asked for.
    op: Op,
    backend: &'a Backend,
    reduced: Reduced,
}

impl ReduceReport<'_> {
    fn json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            op: String,
            backend: &'a str,
            dtype: &'a str,
            count: usize,
            value: serde_json::Value,
            bits: String,
            #[serde(flatten)]
            run: &'a Run,
        }
        let Reduced {
            dtype,
            count,
            value,
            run,
        } = &self.reduced;
        json::line(&Object {
            op: self.op.to_string(),
            backend: self.backend.name(),
            dtype,
            count: *count,
            value: json_value(*value),
            bits: value.hex(),
            run,
        })
    }

    fn summary(&self) -> String {
        let Reduced {
            dtype,
            count,
            value,
            run,
        } = &self.reduced;
        format!(
            "{} = {value}  ({})\n{} elements {dtype} on {} ({}), {}, {:.3} ms, {}",
            self.op,
            value.hex(),
            grouped(*count as u64),
            pes(run.pes),
            run.world,
            self.backend.describe(),
            run.seconds * 1e3,
            si(run.bytes_per_second.unwrap_or(0.0), "B/s"),
        )
    }
}

/// The value as JSON: a number, or a text for what JSON has no number for.
fn json_value(value: Value) -> serde_json::Value {
    match value {
        Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => value
            .to_string()
            .parse::<i64>()
            .map_or(serde_json::Value::Null, Into::into),
        Value::U8(_) | Value::U16(_) | Value::U32(_) | Value::U64(_) => value
            .to_string()
            .parse::<u64>()
            .map_or(serde_json::Value::Null, Into::into),
        _ => json::real(value.to_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_lent_unless_they_span_files() {
        let slices: [&[i32]; 3] = [&[0, 1, 2], &[3], &[4, 5]];
        let all = [0, 1, 2, 3, 4, 5];
        for start in 0..=6 {
            for end in start..=6 {
                assert_eq!(*cut(&slices, start..end), all[start..end]);
            }
        }
        assert!(matches!(cut(&slices, 1..3), Cow::Borrowed(_)));
        assert!(matches!(cut(&slices, 1..4), Cow::Owned(_)));
    }

    #[test]
    fn json_has_every_value() {
        assert_eq!(
            json_value(Value::from(u64::MAX)).to_string(),
            "18446744073709551615"
        );
        assert_eq!(
            json_value(Value::from(i64::MIN)).to_string(),
            "-9223372036854775808"
        );
        assert_eq!(
            json_value(Value::from(0.1f32)).to_string(),
            "0.10000000149011612"
        );
        assert_eq!(json_value(Value::from(f64::NAN)).to_string(), "\"nan\"");
        assert_eq!(
            json_value(Value::from(f32::NEG_INFINITY)).to_string(),
            "\"-inf\""
        );
    }
}
