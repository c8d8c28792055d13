//! GPUs by name.

use crosswarp::lab::models::roofline::DataSheet;

/// A GPU by the key of its data sheet.
pub fn data_sheet(text: &str) -> Result<&'static DataSheet, String> {
    DataSheet::of(&text.to_lowercase()).ok_or_else(|| {
        let keys: Vec<&str> = DataSheet::all().iter().map(|sheet| sheet.key).collect();
        format!("known are {}", keys.join(", "))
    })
}
