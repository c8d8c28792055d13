//! Tables.

use super::staged::{OutputError, StagedFile};

/// Writes a heading and lines of a number, from `first` on, and a norm with every digit needed to read it back.
pub fn write_norms(
    mut file: StagedFile,
    heading: &str,
    first: u64,
    norms: &[f64],
) -> Result<(), OutputError> {
    file.put(format!("{heading}\n").as_bytes())?;
    for (number, norm) in (first..).zip(norms) {
        file.put(format!("{number},{norm:?}\n").as_bytes())?;
    }
    file.commit()
}

/// Writes `lower,upper,count` lines, or with another word for `what` the totals are, one a bin.
pub fn write_bins(
    mut file: StagedFile,
    what: &str,
    edges: &[f64],
    totals: &[u64],
) -> Result<(), OutputError> {
    file.put(format!("lower,upper,{what}\n").as_bytes())?;
    for (edges, total) in edges.windows(2).zip(totals) {
        file.put(format!("{},{},{total}\n", edges[0], edges[1]).as_bytes())?;
    }
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_exactly() {
        let norms = [0.1 + 0.2, 1e-300, f64::MIN_POSITIVE, 12345.678, 0.0];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.csv");
        let file = StagedFile::create(&path).unwrap();
        write_norms(file, "sweep,norm", 0, &norms).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("sweep,norm"));
        for (sweep, norm) in norms.iter().enumerate() {
            let (k, value) = lines.next().unwrap().split_once(',').unwrap();
            assert_eq!(k.parse::<usize>().unwrap(), sweep);
            assert_eq!(value.parse::<f64>().unwrap().to_bits(), norm.to_bits());
        }
        assert_eq!(lines.next(), None);
    }
}
