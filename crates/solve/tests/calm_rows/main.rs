//! Passes over planes make rows that are alike by a path of their own (`calm` in `pass.cuh`): what it makes is the same to
//! the last bit as what the other path makes. So does what restricts right sides without a pass. On the host, so that it is known before there is a GPU.

use std::path::Path;
use std::process::Command;

use crosswarp_cuda::skip::skip_tool;

#[test]
fn calm_rows_are_made_as_all_others() {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_string());
    if let Err(reason) = Command::new(&compiler).arg("--version").output() {
        return skip_tool(
            "calm_rows_are_made_as_all_others",
            format!("{compiler}: {reason}"),
        );
    }
    let this = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("passes");
    let compiled = Command::new(&compiler)
        .args(["-std=c++20", "-O2", "-ffp-contract=off", "-w", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(this.join("kernels"))
        .arg("-I")
        .arg(this.join("../cuda/device"))
        .arg(this.join("tests/calm_rows/passes.cpp"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    let output = Command::new(&program).output().unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{:?}: {found}", output.status);
}
