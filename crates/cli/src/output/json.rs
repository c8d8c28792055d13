//! What `--json` prints: one object a line, each with the number of the schema. `docs/json.md` lists the fields.

use crosswarp::lab::measure::SCHEMA;
use serde::Serialize;
use serde_json::{Number, Value};

/// How a command on PEs was run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Number of PEs.
    pub pes: usize,
    /// `threads` or `processes`.
    pub world: &'static str,
    /// Time of the work.
    pub seconds: f64,
    /// Bytes of all files read or written, by second of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
}

#[derive(Serialize)]
struct WithSchema<'a, T> {
    schema: u32,
    #[serde(flatten)]
    object: &'a T,
}

/// `object` in one line, with the schema's number.
///
/// # Panics
/// If it is no object.
pub fn line<T: Serialize>(object: &T) -> String {
    let whole = WithSchema {
        schema: SCHEMA,
        object,
    };
    serde_json::to_string(&whole).expect("structs and maps of numbers and texts can be serialised")
}

/// A number, or a text for what JSON has no number for: `"inf"`, `"-inf"`, `"nan"`.
pub fn real(value: f64) -> Value {
    Number::from_f64(value).map_or_else(|| value.to_string().to_lowercase().into(), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_begin_with_the_schema() {
        #[derive(Serialize)]
        struct Report {
            what: &'static str,
            #[serde(flatten)]
            run: Run,
        }
        let run = Run {
            pes: 2,
            world: "threads",
            seconds: 0.5,
            bytes_per_second: None,
        };
        let text = line(&Report { what: "x", run });
        assert_eq!(
            text,
            r#"{"schema":2,"what":"x","pes":2,"world":"threads","seconds":0.5}"#
        );
        let map = serde_json::json!({"a": 1});
        assert_eq!(line(&map), r#"{"schema":2,"a":1}"#);
    }

    #[test]
    fn every_number_is_written() {
        for (value, text) in [
            (0.1, "0.1"),
            (f64::INFINITY, "\"inf\""),
            (f64::NEG_INFINITY, "\"-inf\""),
            (f64::NAN, "\"nan\""),
        ] {
            assert_eq!(real(value).to_string(), text);
        }
    }
}
