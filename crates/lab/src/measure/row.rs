//! One measured figure.

use serde_json::{Map, Value};

use super::machine::Machine;
use super::timing::Timing;

/// The number of the fields' meanings in what `--json` prints, here and in every command: one more with every change
/// that a reader has to know of.
pub const SCHEMA: u32 = 2;

/// What was measured, with which parameters, and the time of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The parameters, by name, in the order they were given.
    pub parameters: Vec<(String, Value)>,
    /// What else is to be said, by name; no part of what the row measures.
    pub remarks: Vec<(String, Value)>,
    /// The time of one call.
    pub time: Timing,
    /// Bytes that one call has to move.
    pub bytes: Option<u64>,
    /// Arithmetic operations of one call.
    pub operations: Option<u64>,
}

impl Row {
    /// A figure without parameters.
    pub fn new(what: impl Into<String>, time: Timing) -> Self {
        Self {
            what: what.into(),
            parameters: Vec::new(),
            remarks: Vec::new(),
            time,
            bytes: None,
            operations: None,
        }
    }

    /// The same with one more parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    /// The same with one more remark, which two runs may differ in.
    #[must_use]
    pub fn about(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.remarks.push((name.to_owned(), value.into()));
        self
    }

    /// The same with the bytes that a call has to move.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        Self {
            bytes: Some(bytes),
            ..self
        }
    }

    /// The same with the arithmetic operations of a call.
    #[must_use]
    pub fn operations(self, operations: u64) -> Self {
        Self {
            operations: Some(operations),
            ..self
        }
    }

    /// Bytes over the median time, GB/s.
    pub fn gigabytes(&self) -> Option<f64> {
        Some(self.bytes? as f64 / self.time.median / 1e9)
    }

    /// Operations over the median time, GFLOP/s.
    pub fn gigaflops(&self) -> Option<f64> {
        Some(self.operations? as f64 / self.time.median / 1e9)
    }

    /// The row as one line of JSON: `schema`, `what`, the parameters, `seconds`, `us`, `us_min`, `us_max`, `samples`,
    /// `calls`, with bytes also `bytes_per_second`, with operations `gflops`, the remarks as `about`, then
    /// the version and the machine.
    pub fn json(&self, machine: &Machine) -> String {
        let mut object = Map::new();
        object.insert("schema".into(), SCHEMA.into());
        object.insert("impl".into(), "crosswarp".into());
        object.insert("what".into(), self.what.clone().into());
        object.extend(self.parameters.iter().cloned());
        object.insert("seconds".into(), self.time.median.into());
        for (name, seconds) in [
            ("us", self.time.median),
            ("us_min", self.time.min),
            ("us_max", self.time.max),
        ] {
            object.insert(name.into(), (1e6 * seconds).into());
        }
        object.insert("samples".into(), self.time.samples.into());
        object.insert("calls".into(), self.time.calls.into());
        if let Some(bytes) = self.bytes {
            object.insert("bytes".into(), bytes.into());
        }
        if let Some(rate) = self.gigabytes() {
            object.insert("bytes_per_second".into(), (1e9 * rate).into());
        }
        if let Some(rate) = self.gigaflops() {
            object.insert("gflops".into(), rate.into());
        }
        if !self.remarks.is_empty() {
            let remarks: Map<String, Value> = self.remarks.iter().cloned().collect();
            object.insert("about".into(), remarks.into());
        }
        object.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        object.insert("machine".into(), machine.to_string().into());
        Value::Object(object).to_string()
    }
}
