//! `chips man`

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::{exit, output};

/// Write the manual, a page for each command
///
/// The pages of a release are made by it; `man -l` shows one that lies anywhere.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("chips man ~/.local/share/man/man1"))]
pub struct Args {
    /// The folder that the pages are written to; it is made where it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    for (name, page) in pages()? {
        let path = folder.join(name);
        std::fs::write(&path, page).with_context(|| format!("can't write {}", path.display()))?;
        output::line(output::one_line(&path.to_string_lossy()))?;
    }
    Ok(exit::DONE.into())
}

/// The page of each command that help shows: its file name, and its text for `man`.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    // The names of commands below commands come into being when the whole is built.
    let mut all = crate::command_line().disable_help_subcommand(true);
    all.build();
    let mut pages = Vec::new();
    let mut left = vec![&all];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help"));
        let man = Man::new(command.clone()).source(concat!("Chips ", env!("CARGO_PKG_VERSION"))).manual("Chips");
        // No date, so that a page depends on nothing but the command; an empty one would be left out, and what follows move up.
        let man = man.date(" ");
        pages.push((man.get_filename(), page(&man, command)?));
    }
    pages.sort();
    Ok(pages)
}

/// One page. Examples keep their lines, which a section of plain text would not.
fn page(man: &Man, command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let mut last = Roff::new();
    if let Some(shown) = command.get_after_help() {
        last.control("SH", ["EXAMPLES"]).control("nf", []);
        let shown = shown.to_string();
        for line in shown.lines().filter(|line| *line != "Examples:") {
            last.text([roman(line.trim_start())]);
        }
        last.control("fi", []);
    }
    if command.get_name() != "chips" {
        last.control("SH", ["SEE ALSO"]).text([bold("chips"), roman("(1)")]);
    }
    last.to_writer(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn shown(name: &str) -> String {
        let pages = pages().unwrap();
        let (_, page) = pages.iter().find(|(page, _)| page == name).unwrap_or_else(|| panic!("no {name}"));
        String::from_utf8(page.clone()).unwrap()
    }

    #[test]
    fn every_command_that_help_shows_has_a_page_by_its_whole_name() {
        fn names(command: &clap::Command, above: &str, found: &mut Vec<String>) {
            let name = format!("{above}{}", command.get_name());
            found.push(format!("{name}.1"));
            let below = command.get_subcommands().filter(|below| !below.is_hide_set());
            below.for_each(|below| names(below, &format!("{name}-"), found));
        }
        let mut expected = Vec::new();
        names(&crate::command_line(), "", &mut expected);
        expected.sort();
        let written: Vec<_> = pages().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(written, expected);
        assert!(written.len() > 30 && written.contains(&"chips-harness-add.1".to_owned()), "{written:?}");
    }

    #[test]
    fn a_page_says_what_help_says() {
        let page = shown("chips-serve.1");
        let title = concat!(".TH chips-serve 1 \" \" \"Chips ", env!("CARGO_PKG_VERSION"), "\" Chips\n");
        for part in [title, ".SH NAME\nchips\\-serve", ".SH EXAMPLES\n.nf\n", "CHIPS_LISTEN", "\\-\\-public\\-url"] {
            assert!(page.contains(part), "{part:?} is not in\n{page}");
        }
        assert!(!page.contains('\u{1b}'), "{page}");
    }
}
