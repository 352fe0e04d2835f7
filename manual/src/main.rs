//! `latency-manual FOLDER`: schedlat's man pages and shell completions, from the command line itself.
//!
//! Promises: nothing in them that cannot be typed, and nothing hidden.
//! Apart from xtask, which has to build while the committed BPF object is out of date and the
//! library refuses to.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _, Parser};
use clap_complete::{Shell, generate_to};
use latency_user::cli::Cli;

const NAME: &str = "schedlat";

#[derive(Debug, Parser)]
#[command(about)]
struct Arguments {
    /// Gets `man/` and `completions/`; what is in them is replaced
    folder: PathBuf,
}

fn main() -> Result<()> {
    write(&Arguments::parse().folder)
}

fn write(folder: &Path) -> Result<()> {
    let man = emptied(&folder.join("man"))?;
    clap_mangen::generate_to(Cli::command(), man)?;
    let completions = emptied(&folder.join("completions"))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut visible(), NAME, &completions)?;
    }
    Ok(())
}

fn emptied(folder: &Path) -> Result<PathBuf> {
    let replace = || {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)
    };
    replace().with_context(|| format!("cannot empty {}", folder.display()))?;
    Ok(folder.to_path_buf())
}

/// The commands without the hidden ones, which completions would offer.
fn visible() -> Command {
    let whole = Cli::command();
    let commands = whole.get_subcommands().filter(|it| !it.is_hide_set());
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments())
        .subcommands(commands.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages_of(command: &Command, prefix: &str) -> Vec<String> {
        let name = format!("{prefix}{}", command.get_name());
        let below = command.get_subcommands().filter(|it| !it.is_hide_set());
        let pages = below.flat_map(|it| pages_of(it, &format!("{name}-")));
        pages.chain([format!("{name}.1")]).collect()
    }

    #[test]
    fn every_command_has_a_page_and_hidden_ones_have_none() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let entries = fs::read_dir(folder.path().join("man")).unwrap();
        let mut written: Vec<_> = entries
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut expected = pages_of(&Cli::command(), "");
        written.sort();
        expected.sort();
        assert_eq!(written, expected);
        assert!(written.contains(&"schedlat-probe-wake.1".to_owned()));
    }

    #[test]
    fn completions_offer_what_can_be_typed_and_nothing_hidden() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        for name in ["schedlat.bash", "_schedlat", "schedlat.fish"] {
            let text = fs::read_to_string(folder.path().join("completions").join(name)).unwrap();
            assert!(text.contains("pingpong"), "{name} does not know pingpong");
            assert!(!text.contains("companion"), "{name} offers what is hidden");
        }
    }
}
