//! The ladder on the processor: every rung right, rows that can be compared, and a page that a browser
//! shows without complaint. Without a browser (Chromium or Chrome on the PATH, or named by
//! CROSSWARP_BROWSER) what needs one says so by name.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::crosswarp;
use crosswarp::cuda::skip::skip_tool;

/// What has not ended by then hangs.
const WATCHDOG: Duration = Duration::from_secs(600);

/// A small ladder, its page in `folder`; the printed text.
fn climb(subject: &str, size: &str, folder: &Path, more: &[&str]) -> (String, PathBuf) {
    let page = folder.join("report.html");
    let output = crosswarp()
        .args(["ladder", subject, "--cpu", "--quick", "--size", size])
        .args(more)
        .arg("--html")
        .arg(&page)
        .timeout(WATCHDOG)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{error}");
    (String::from_utf8(output.stdout).unwrap(), page)
}

#[test]
fn rows_and_tables_tell_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, _) = climb("histogram", "65536", folder.path(), &["--json"]);
    let rows: Vec<serde_json::Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(rows.len() >= 4);
    for row in &rows {
        assert_eq!(row["about"]["result"], "exact", "{row}");
        // Of this repository, or of a package without one.
        let commit = row["about"]["commit"].as_str().unwrap();
        let hash = commit.len() >= 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(hash || commit == "unknown", "{commit}");
        assert!(row["us_min"].as_f64() <= row["us"].as_f64());
        assert_eq!(row["bytes"], 4 * (65536 + 256));
    }
    let file = folder.path().join("rows.json");
    let lines: Vec<String> = rows.iter().map(ToString::to_string).collect();
    fs::write(&file, lines.join("\n")).unwrap();
    let compared = crosswarp()
        .args(["bench", "compare"])
        .args([&file, &file])
        .output()
        .unwrap();
    let text = String::from_utf8(compared.stdout).unwrap();
    assert_eq!(text.matches("within the spread").count(), rows.len());
}

#[test]
fn sizes_that_no_rung_takes_are_refused() {
    let line = ["ladder", "sgemm", "--cpu", "--size", "100"];
    let output = crosswarp().args(line).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("a multiple of 128 from 128"), "{message}");
}

/// What a browser makes of the page: its DOM, and its complaints.
fn shown(browser: &Path, page: &Path, folder: &Path) -> (String, String) {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--enable-logging=stderr", "--v=0", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The picture's mean brightness, 0 to 255.
fn brightness(browser: &Path, page: &Path, folder: &Path, scheme: &str) -> f64 {
    let file = folder.join("shot.png");
    let status = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg("--window-size=1200,1600")
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("--screenshot={}", file.display()))
        .arg(format!("file://{}", page.display()))
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let file = std::io::BufReader::new(fs::File::open(&file).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let sum: u64 = pixels.iter().map(|&byte| u64::from(byte)).sum();
    sum as f64 / pixels.len() as f64
}

fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CROSSWARP_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|candidate| candidate.is_file())
}

#[test]
fn a_browser_shows_the_page_without_complaint() {
    let folder = tempfile::tempdir().unwrap();
    let (_, page) = climb("reduce", "65536", folder.path(), &[]);
    let text = fs::read_to_string(&page).unwrap();
    for reference in [
        "http://",
        "https://",
        "src=",
        "url(",
        "@import",
        "<script",
        "<link rel=\"style",
    ] {
        assert!(!text.contains(reference), "the page loads {reference}");
    }
    let Some(browser) = browser() else {
        skip_tool(
            "a_browser_shows_the_page_without_complaint",
            "no Chromium or Chrome",
        );
        return;
    };
    let (dom, complaints) = shown(&browser, &page, folder.path());
    let complaints: Vec<&str> = complaints
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert_eq!(complaints, Vec::<&str>::new());
    // A bar and a dot for each rung, one roof in each picture; each picture for wide pages and for narrow ones.
    let count = |mark: &str| dom.matches(mark).count();
    assert_eq!(count("<rect class=\"textbook\""), 2 * 4, "{dom}");
    assert_eq!(count("<circle class=\"textbook\""), 2 * 4);
    assert_eq!(
        (count("<rect class=\"own\""), count("<circle class=\"own\"")),
        (2, 2)
    );
    assert_eq!((count("class=\"goal\""), count("class=\"roof\"")), (2, 2));
    assert_eq!(count("<tr class="), 1 + 5);
    let [dark, light] = ["0", "1"].map(|scheme| brightness(&browser, &page, folder.path(), scheme));
    assert!(light > 200.0 && dark < 90.0, "light {light}, dark {dark}");
}
