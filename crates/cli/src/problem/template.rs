//! Problem files to start from: every key with a comment, those that may be left out commented out.

/// The names of problems, each with its file.
const TEMPLATES: [(&str, &str); 4] = [
    ("laplace1d", include_str!("template/laplace1d.toml")),
    ("laplace2d", include_str!("template/laplace2d.toml")),
    ("laplace3d", include_str!("template/laplace3d.toml")),
    ("fill", include_str!("template/fill.toml")),
];

/// The file of the problem `kind`.
pub fn of(kind: &str) -> Option<&'static str> {
    let found = TEMPLATES.iter().find(|(name, _)| *name == kind);
    found.map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::file;

    /// The keys that a problem may have, as the reader itself names them.
    fn keys(text: &str) -> Vec<String> {
        let with_unknown = format!("zz_zz = 1\n{text}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), with_unknown).unwrap();
        let error = file::read(file.path()).unwrap_err().to_string();
        let (_, expected) = error.split_once("expected one of ").unwrap();
        let keys = expected.split('`').skip(1).step_by(2);
        keys.map(str::to_owned).collect()
    }

    /// The same text with the keys that may be left out.
    fn whole(text: &str) -> Vec<String> {
        let lines = text.lines().map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') => key,
            _ => line,
        });
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn templates_are_problems_and_have_every_key() {
        for (name, text) in TEMPLATES {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let (problem, _) = file::read(file.path()).unwrap();
            assert_eq!(problem.name(), name);
            let keys = keys(text);
            assert!(keys.len() >= 12, "{keys:?}");
            let lines = whole(text);
            for key in &keys {
                let has = |line: &String| {
                    line.starts_with(&format!("{key} =")) || line.starts_with(&format!("[{key}]"))
                };
                assert!(lines.iter().any(has), "{name}: no line for {key}");
            }
            // Those that may be left out are keys, too: with all of them the keys contradict each other at most.
            std::fs::write(file.path(), lines.join("\n")).unwrap();
            if let Err(error) = file::read(file.path()) {
                let error = error.to_string();
                assert!(error.contains("are the same limit"), "{name}: {error}");
            }
        }
    }

    #[test]
    fn the_page_of_keys_has_them() {
        let page = include_str!("../../../../docs/problem-files.md");
        for (name, text) in TEMPLATES {
            assert!(page.contains(text), "docs/problem-files.md: another {name}");
        }
    }
}
