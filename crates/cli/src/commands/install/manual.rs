//! Man pages and completions, made from the arguments.

use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use super::error::InstallError;
use super::file::write;
use crate::args;

/// Where each shell looks for completions, below a prefix.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions/crosswarp"),
    (Shell::Zsh, "share/zsh/site-functions/_crosswarp"),
    (
        Shell::Fish,
        "share/fish/vendor_completions.d/crosswarp.fish",
    ),
];

/// Writes `share/man/man1`, a page for the command and one for each of its commands, and the completions.
pub fn install(prefix: &Path) -> Result<(), InstallError> {
    for (name, page) in pages()? {
        write(&prefix.join("share/man/man1").join(name), &page, 0o644)?;
    }
    for (shell, path) in COMPLETIONS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut args::command(), "crosswarp", &mut script);
        write(&prefix.join(path), &script, 0o644)?;
    }
    Ok(())
}

/// The names of the pages and their text.
fn pages() -> Result<Vec<(String, Vec<u8>)>, InstallError> {
    let mut command = args::command().disable_help_subcommand(true);
    // Gives the commands below their full names.
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), InstallError> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page).map_err(InstallError::Page)?;
    pages.push((man.get_filename(), page));
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        add(inner, pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_with_its_options() {
        let pages = pages().unwrap();
        let page = |name: &str| {
            let found = pages.iter().find(|(page, _)| page == name);
            String::from_utf8(found.unwrap_or_else(|| panic!("no {name}")).1.clone()).unwrap()
        };
        assert!(page("crosswarp.1").contains("crosswarp\\-solve(1)"));
        assert!(page("crosswarp-install.1").contains("\\-\\-prefix"));
        assert!(page("crosswarp-bench-reduce.1").contains("crosswarp bench reduce"));
        assert!(!pages.iter().any(|(name, _)| name.contains("host")));
    }
}
