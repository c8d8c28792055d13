//! Writes the installed files below a folder.
fn main() {
    let to = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    for file in crosswarp_nvshmem::installation::files() {
        let path = to.join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.text).unwrap();
    }
}
