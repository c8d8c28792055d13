//! What Nsight Compute measured, beside what the model says.
//!
//! [`parse`] reads the CSV of `ncu --csv --page details` with the sections [`SECTIONS`]: one line per metric of
//! each launch, with `Section Name`, `Metric Name`, `Metric Unit` and `Metric Value` among the columns.

use crosswarp_cuda::{Arch, ArchLimits, BlockNeeds, Occupancy};

/// The sections that [`ProfiledLaunch`] is made of, by the names `ncu` takes.
pub const SECTIONS: [&str; 3] = ["SpeedOfLight", "LaunchStats", "Occupancy"];

/// One launch of a kernel as the profiler saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfiledLaunch {
    /// The kernel.
    pub kernel: String,
    /// Compute capability of the GPU.
    pub arch: Option<Arch>,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of the grid.
    pub grid: u64,
    metrics: Vec<(String, f64)>,
}

/// Why a profile can not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The profiler's own complaint.
    #[error("Nsight Compute: {0}")]
    Profiler(String),
    /// No launch was profiled.
    #[error("Nsight Compute has profiled no kernel; does the program launch one?")]
    NoKernel,
    /// A column is missing.
    #[error("Nsight Compute's table has no column '{0}'")]
    Column(&'static str),
}

impl ProfiledLaunch {
    /// A metric by the profiler's name, in its base unit (bytes, seconds, per cent, counts).
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }

    /// What the model says of this launch: occupancy by its registers, shared memory and threads; `None`
    /// if the profiler did not name them or the GPU is not known.
    pub fn model(&self) -> Option<Occupancy> {
        let whole = |name| self.metric(name).map(|value| value as u32);
        let needs = BlockNeeds {
            threads: self.threads,
            registers: whole("Registers Per Thread")?,
            shared: whole("Static Shared Memory Per Block")
                .unwrap_or(0)
                .saturating_add(whole("Dynamic Shared Memory Per Block").unwrap_or(0)),
        };
        let mut limits = *ArchLimits::of(self.arch?)?;
        // How the driver has divided the SM's memory between shared memory and cache for this launch.
        if let Some(bytes) = whole("Shared Memory Configuration Size") {
            limits.shared = bytes;
        }
        Some(Occupancy::new(&limits, &needs))
    }

    /// Waves by the model, on the SMs that the profiler names.
    pub fn model_waves(&self) -> Option<f64> {
        let sms = self.metric("# SMs")? as u32;
        Some(self.model()?.waves(self.grid, sms))
    }
}

/// Every launch in the profiler's output, in order.
///
/// Lines that the profiler puts before its table (`==PROF==`) are passed over, its errors (`==ERROR==`) are
/// the error.
pub fn parse(text: &str) -> Result<Vec<ProfiledLaunch>, ProfileError> {
    for line in text.lines() {
        if let Some(complaint) = line.strip_prefix("==ERROR==") {
            return Err(ProfileError::Profiler(complaint.trim().to_owned()));
        }
    }
    let start = text.find("\"ID\"").ok_or(ProfileError::NoKernel)?;
    let mut records = records(&text[start..]).into_iter();
    let header = records.next().ok_or(ProfileError::NoKernel)?;
    let column = |name: &'static str| {
        header
            .iter()
            .position(|known| known == name)
            .ok_or(ProfileError::Column(name))
    };
    let (id, kernel) = (column("ID")?, column("Kernel Name")?);
    let (block, grid) = (column("Block Size")?, column("Grid Size")?);
    let (metric, unit, value) = (
        column("Metric Name")?,
        column("Metric Unit")?,
        column("Metric Value")?,
    );
    let arch = column("CC")?;
    let mut launches: Vec<(String, ProfiledLaunch)> = Vec::new();
    for record in records {
        let field = |place: usize| record.get(place).map_or("", String::as_str);
        let known = launches.iter().position(|(known, _)| known == field(id));
        let place = known.unwrap_or_else(|| {
            launches.push((
                field(id).to_owned(),
                ProfiledLaunch {
                    kernel: field(kernel).to_owned(),
                    arch: field(arch).parse().ok(),
                    threads: u32::try_from(product(field(block))).unwrap_or(u32::MAX),
                    grid: product(field(grid)),
                    metrics: Vec::new(),
                },
            ));
            launches.len() - 1
        });
        if let Some(number) = number(field(value)) {
            let number = number * scale(field(unit));
            launches[place]
                .1
                .metrics
                .push((field(metric).to_owned(), number));
        }
    }
    if launches.is_empty() {
        return Err(ProfileError::NoKernel);
    }
    Ok(launches.into_iter().map(|(_, launched)| launched).collect())
}

/// `(32, 8, 1)` is 256.
fn product(dims: &str) -> u64 {
    dims.split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse::<u64>().ok())
        .fold(1, u64::saturating_mul)
}

/// Numbers come with commas between thousands.
fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// What makes a value of `unit` one of the base unit.
fn scale(unit: &str) -> f64 {
    let unit = unit.split('/').next().unwrap_or_default();
    match unit {
        "Kbyte" => 1e3,
        "Mbyte" => 1e6,
        "Gbyte" => 1e9,
        "Tbyte" => 1e12,
        "ns" | "nsecond" => 1e-9,
        "us" | "usecond" => 1e-6,
        "ms" | "msecond" => 1e-3,
        _ => 1.0,
    }
}

/// The records of a CSV text: fields in quotes may hold commas, line ends and doubled quotes.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            '\r' if !quoted => {}
            c => field.push(c),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = include_str!("../../tests/data/ncu.csv");

    #[test]
    fn the_profilers_table_is_read_and_the_model_agrees() {
        let launches = parse(CSV).unwrap();
        assert!(launches.len() >= 2);
        for launched in &launches {
            let model = launched.model().unwrap();
            let theirs = launched.metric("Theoretical Occupancy").unwrap();
            assert!(
                (100.0 * model.fraction() - theirs).abs() < 0.01,
                "{launched:?}"
            );
            let limits = [
                ("Block Limit Registers", model.by_registers),
                ("Block Limit Shared Mem", model.by_shared),
                ("Block Limit Warps", model.by_warps),
                ("Block Limit SM", model.by_blocks),
            ];
            for (name, ours) in limits {
                assert_eq!(launched.metric(name), Some(f64::from(ours)), "{name}");
            }
            let waves = launched.metric("Waves Per SM").unwrap();
            assert!((launched.model_waves().unwrap() - waves).abs() < 0.006);
            assert!(launched.metric("Duration").unwrap() < 1.0);
        }
    }

    #[test]
    fn complaints_and_empty_tables_are_errors() {
        let refused = "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\n";
        assert_eq!(
            parse(refused),
            Err(ProfileError::Profiler(
                "ERR_NVGPUCTRPERM - no permission".into()
            ))
        );
        assert_eq!(parse(""), Err(ProfileError::NoKernel));
        assert_eq!(
            parse("\"ID\",\"CC\"\n"),
            Err(ProfileError::Column("Kernel Name"))
        );
        let header = CSV.lines().next().unwrap();
        assert_eq!(parse(header), Err(ProfileError::NoKernel));
    }

    #[test]
    fn fields_in_quotes_hold_anything() {
        let text = "\"a\",\"b, \"\"c\"\"\nd\",e\r\n\"1,024.5\",,\n";
        let expected = [vec!["a", "b, \"c\"\nd", "e"], vec!["1,024.5", "", ""]];
        assert_eq!(records(text), expected);
        assert_eq!(number("1,024.5"), Some(1024.5));
        assert_eq!((product("(32, 8, 1)"), product("")), (256, 1));
        assert_eq!(scale("Kbyte/block"), 1e3);
    }
}
