//! What every command prints with: styles, tables, text from files made harmless. It must not know pipelines.

use std::fmt::Display;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use gesso::error::{Error, Result};
use gesso::limits;

use crate::Exit;

/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// What can be passed over.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What somebody should know.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();

/// `text` in `style`.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints to the standard output, without colours where it is none that shows them. A reader that has gone ends the
/// program: nobody is left to read the rest. So does a disk that is full, which is a failure.
pub(crate) fn print(text: &str) {
    let mut out = anstream::stdout();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        std::process::exit(i32::from(lost(&error) as u8));
    }
}

/// What it means for the program that its output could not be written: nothing when its reader has gone.
pub(crate) fn lost(error: &std::io::Error) -> Exit {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Exit::Success;
    }
    complain(&format!("cannot write the output: {error}"));
    Exit::Failure
}

/// Prints an error that ends the program.
pub(crate) fn complain(error: &dyn Display) {
    tell(&format!("{}: {}\n", styled(BAD, "error"), clean(&error.to_string(), usize::MAX)));
}

/// Prints to the standard error what nobody needs to see.
pub(crate) fn tell(text: &str) {
    // There is nowhere left to say that this failed.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Text from a file, of at most `width` characters, in which nothing steers the terminal.
pub(crate) fn clean(text: &str, width: usize) -> String {
    let mut shown = String::new();
    let mut count = 0;
    for character in text.chars() {
        let plain = matches!(character, '"' | '\'' | '\\') || character.escape_debug().len() == 1;
        let piece = if plain { character.to_string() } else { character.escape_debug().to_string() };
        count += piece.chars().count();
        if count > width {
            while shown.chars().count() >= width {
                shown.pop();
            }
            shown.push('\u{2026}');
            break;
        }
        shown.push_str(&piece);
    }
    shown
}

/// Columns under a heading, two spaces before each line; a column whose heading begins with `>` is right-aligned.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let right = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let headings = headings.iter().map(|heading| heading.trim_start_matches('>').to_owned()).collect();
        Self { rows: vec![headings], right }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as lines.
    pub(crate) fn lines(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).zip(&self.right);
            let line: Vec<String> = cells
                .map(
                    |((cell, &width), right)| {
                        if *right { format!("{cell:>width$}") } else { format!("{cell:width$}") }
                    },
                )
                .collect();
            let line = line.join("  ");
            let style = if number == 0 { DIM } else { Style::new() };
            text += &format!("  {}\n", styled(style, line.trim_end()));
        }
        text
    }
}

/// The bytes of a file that is at most `limit` bytes large.
///
/// # Errors
/// What the system says, with the path; invalid when the file is larger.
pub(crate) fn read_file(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| {
        let text = format!("cannot read `{}`: {error}", path.display());
        if error.kind() == std::io::ErrorKind::NotFound {
            Error::not_found(text)
        } else {
            Error::invalid(text)
        }
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > limit {
        return Err(Error::invalid(format!("`{}` has more than {limit} bytes, the limit", path.display())));
    }
    Ok(bytes)
}

/// As [`read_file`], of a file that nobody named: opening a pipe would wait for somebody to write.
///
/// # Errors
/// As [`read_file`]; invalid for what is no file.
pub(crate) fn read_regular(path: &Path, limit: usize) -> Result<Vec<u8>> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Error::invalid(format!("`{}` is not a regular file", path.display())));
    }
    read_file(path, limit)
}

/// The bytes of a pipeline's file.
///
/// # Errors
/// As [`read_file`].
pub(crate) fn read_pipeline(path: &Path) -> Result<Vec<u8>> {
    read_file(path, limits::MAX_PIPELINE_BYTES)
}

/// Writes a file.
///
/// # Errors
/// What the system says, with the path.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes)
        .map_err(|error| Error::invalid(format!("cannot write `{}`: {error}", path.display())))
}

/// JSON for people and scripts.
pub(crate) fn print_json(value: &serde_json::Value) {
    print(&format!("{value:#}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_file_steers_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\n\u{202e}", 80), "a\\u{1b}[31mb\\n\\u{202e}");
        assert_eq!(clean("it's \"\u{e9}\"", 80), "it's \"\u{e9}\"");
        assert_eq!(clean("abcdef", 4), "abc\u{2026}");
        assert_eq!(clean("abcd", 4), "abcd");
    }
}
