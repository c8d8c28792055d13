//! Compiling CUDA C++ to a cubin, with the contract's switches.

use std::fmt;

use crate::arch::Arch;
use crate::compile::nvrtc::{Nvrtc, NvrtcError};
use crate::compile::source::HEADERS;
use crate::compile::source::Source;

/// The switches every compilation gets: with them, arithmetic gives the bits that IEEE 754 asks of
/// each operation, and so the bits the CPU gives. No multiplication is contracted with an addition,
/// subnormal numbers are kept, and division and square root round correctly. Code without such a
/// contract calls `fmaf` or an intrinsic where it wants one. Functions without an annotation are the
/// device's: a generic lambda can not have one.
const CONTRACT: [&str; 6] = [
    "--std=c++17",
    "--device-as-default-execution-space",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
];

/// What may vary between compilations of one source.
///
/// ```
/// use crosswarp_cuda::Options;
/// let options = Options::new().define("THREADS", 256).define("DEBUG", "");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    defines: Vec<(String, String)>,
}

impl Options {
    /// Nothing defined.
    pub fn new() -> Self {
        Self::default()
    }

    /// Defines the macro `name` as `value`, as `#define name value` would.
    #[must_use]
    pub fn define(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.defines.push((name.into(), value.to_string()));
        self
    }

    /// The compiler's command line for `arch`.
    pub(crate) fn command_line(&self, arch: Arch) -> Vec<String> {
        let mut line = vec![format!("--gpu-architecture={arch}")];
        line.extend(CONTRACT.map(String::from));
        line.extend(
            self.defines
                .iter()
                .map(|(name, value)| format!("--define-macro={name}={value}")),
        );
        line
    }
}

/// Whether a message stopped the compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It did.
    Error,
    /// It did not.
    Warning,
}

/// One message of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The source's or header's name.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Error or warning.
    pub severity: Severity,
    /// The compiler's text.
    pub message: String,
    /// The line of the source; empty when `file` is neither the source nor one of the headers.
    pub source_line: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(
            f,
            "{}:{}: {severity}: {}",
            self.file, self.line, self.message
        )?;
        if !self.source_line.is_empty() {
            write!(f, "\n    {}", self.source_line.trim())?;
        }
        Ok(())
    }
}

/// Why there is no cubin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// No compiler.
    #[error(transparent)]
    NoNvrtc(#[from] NvrtcError),
    /// The compiler does not know the architecture.
    #[error("NVRTC {}.{} ({path}) does not compile for {arch}, only for {}", version.0, version.1, list(supported))]
    UnsupportedArch {
        /// The architecture asked for.
        arch: Arch,
        /// NVRTC's version.
        version: (u32, u32),
        /// NVRTC's file.
        path: String,
        /// What it does compile for.
        supported: Vec<Arch>,
    },
    /// The source has errors; the messages, in order, errors only.
    #[error("{}", lines(.0))]
    Source(Vec<Diagnostic>),
    /// The compiler failed otherwise, e.g. because a kernel needs more than the architecture has.
    #[error("compiling {name} for {arch} failed: {reason}{}{log}", if log.is_empty() { "" } else { "\n" })]
    Failed {
        /// The source's name.
        name: String,
        /// The architecture.
        arch: Arch,
        /// NVRTC's name for the failure.
        reason: String,
        /// What it printed.
        log: String,
    },
}

fn list(archs: &[Arch]) -> String {
    archs
        .iter()
        .map(Arch::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn lines(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(Diagnostic::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Compiles `source` for `arch`, without a cache; the cubin's bytes.
///
/// Needs NVRTC, but neither GPU nor driver.
///
/// ```
/// use crosswarp_cuda::{Arch, CompileError, Options, Source, compile};
/// let source = Source::new("bad.cu", "__global__ void k() {\n  undefined();\n}");
/// match compile(&source, Arch::new(9, 0), &Options::new()) {
///     Err(CompileError::Source(messages)) => assert_eq!(messages[0].line, 2),
///     Err(CompileError::NoNvrtc(reason)) => println!("{reason}"),
///     other => panic!("{other:?}"),
/// }
/// ```
pub fn compile(
    source: &Source<'_>,
    arch: Arch,
    options: &Options,
) -> Result<Vec<u8>, CompileError> {
    compile_with(supporting(arch)?, source, arch, options)
}

/// The machine's NVRTC, if it compiles for `arch`.
pub(crate) fn supporting(arch: Arch) -> Result<&'static Nvrtc, CompileError> {
    let nvrtc = Nvrtc::get()?;
    if nvrtc.archs().contains(&arch) {
        return Ok(nvrtc);
    }
    Err(CompileError::UnsupportedArch {
        arch,
        version: nvrtc.version(),
        path: nvrtc.path().display().to_string(),
        supported: nvrtc.archs().to_vec(),
    })
}

/// Compiles with `nvrtc`, which supports `arch`.
pub(crate) fn compile_with(
    nvrtc: &Nvrtc,
    source: &Source<'_>,
    arch: Arch,
    options: &Options,
) -> Result<Vec<u8>, CompileError> {
    let headers = headers_of(source);
    let compiled = nvrtc.compile(
        source.name,
        source.text,
        &headers,
        &options.command_line(arch),
    );
    compiled.cubin.map_err(|reason| {
        let mut errors = parse_log(&compiled.log, source, &headers);
        errors.retain(|diagnostic| diagnostic.severity == Severity::Error);
        if errors.is_empty() {
            let log = compiled.log.trim().to_string();
            CompileError::Failed {
                name: source.name.into(),
                arch,
                reason,
                log,
            }
        } else {
            CompileError::Source(errors)
        }
    })
}

/// Every header `source` can include: its own first, so that they win.
pub(crate) fn headers_of<'a>(source: &Source<'a>) -> Vec<(&'a str, &'a str)> {
    source.headers.iter().chain(HEADERS).copied().collect()
}

/// The messages of a log: lines of the form `file(line): error: text` or `file(line): warning #n: text`.
fn parse_log(log: &str, source: &Source<'_>, headers: &[(&str, &str)]) -> Vec<Diagnostic> {
    log.lines()
        .filter_map(|line| parse_message(line, source, headers))
        .collect()
}

fn parse_message(text: &str, source: &Source<'_>, headers: &[(&str, &str)]) -> Option<Diagnostic> {
    let (place, rest) = text.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    let line = line.parse::<usize>().ok()?;
    let (kind, message) = rest.split_once(": ")?;
    let severity = match kind.split_whitespace().next()? {
        "error" | "catastrophic" => Severity::Error,
        "warning" => Severity::Warning,
        _ => return None,
    };
    let contents = if file == source.name {
        Some(source.text)
    } else {
        headers
            .iter()
            .find(|(name, _)| *name == file)
            .map(|(_, text)| *text)
    };
    let source_line = contents
        .and_then(|text| text.lines().nth(line.checked_sub(1)?))
        .unwrap_or_default();
    Some(Diagnostic {
        file: file.into(),
        line,
        severity,
        message: message.into(),
        source_line: source_line.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source<'static> = Source::new(
        "k.cu",
        "#include \"mine.cuh\"\n__global__ void k() {\n    undefined();\n}\n",
    )
    .with_headers(&[("mine.cuh", "#pragma once\nint x = y;\n")]);

    #[test]
    fn messages_are_shown_with_their_line() {
        let log = "mine.cuh(2): error: identifier \"y\" is undefined\n  int x = y;\n          ^\n\n\
                   k.cu(3): error: identifier \"undefined\" is undefined\n      undefined();\n      ^\n\n\
                   k.cu(1): warning #177-D: variable \"z\" was declared but never referenced\n\n\
                   2 errors detected in the compilation of \"k.cu\".\n";
        let messages = parse_log(log, &SOURCE, &headers_of(&SOURCE));
        assert_eq!(messages.len(), 3);
        assert_eq!(
            messages[0].to_string(),
            "mine.cuh:2: error: identifier \"y\" is undefined\n    int x = y;"
        );
        assert_eq!(
            messages[1].to_string(),
            "k.cu:3: error: identifier \"undefined\" is undefined\n    undefined();"
        );
        assert_eq!(messages[2].severity, Severity::Warning);
    }

    #[test]
    fn odd_log_lines_are_no_messages() {
        for line in [
            "",
            "k.cu(x): error: e",
            "k.cu(1): remark: e",
            "(): error: ",
            "k.cu(99999999999999999999): error: e",
        ] {
            assert!(parse_log(line, &SOURCE, &[]).is_empty(), "{line}");
        }
        let far = parse_log(
            "k.cu(900): error: e\nk.cu(0): error: f\nother.h(1): error: g",
            &SOURCE,
            &[],
        );
        assert!(far.len() == 3 && far.iter().all(|message| message.source_line.is_empty()));
    }

    #[test]
    fn the_contract_is_always_on_the_command_line() {
        let line = Options::new()
            .define("N", 3)
            .define("EMPTY", "")
            .command_line(Arch::new(9, 0));
        for switch in [
            "--gpu-architecture=sm_90",
            "--fmad=false",
            "--ftz=false",
            "--prec-div=true",
            "--prec-sqrt=true",
        ] {
            assert!(line.iter().any(|option| option == switch), "{switch}");
        }
        assert_eq!(
            line[line.len() - 2..],
            ["--define-macro=N=3", "--define-macro=EMPTY="]
        );
    }
}
