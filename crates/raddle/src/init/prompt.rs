//! Questions on the terminal: printed to stderr, answered by a line of stdin.

use std::io::{self, BufRead, Write};

use anyhow::{Context, Result};
use raddle_console::sanitize;

/// Repeats a question until the answer is valid. The end of input is an error.
pub(super) fn ask_until_valid<T>(mut question: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match question() {
            Err(error) if error.is::<io::Error>() => return Err(error),
            Err(error) => print(&format!("   {error:#}"))?,
            answer => return answer,
        }
    }
}

pub(super) fn ask(question: &str, usual: Option<&str>) -> Result<String> {
    let mut terminal = io::stderr();
    let question = sanitize(question);
    match usual {
        Some(usual) => write!(terminal, "{question} [{}]: ", sanitize(usual))?,
        None => write!(terminal, "{question}: ")?,
    }
    terminal.flush()?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        let ended = io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "no answer came; nothing was written",
        );
        return Err(ended.into());
    }
    let answer = line.trim();
    Ok(match answer.is_empty() {
        true => usual.unwrap_or_default().to_owned(),
        false => answer.to_owned(),
    })
}

pub(super) fn print(line: &str) -> Result<()> {
    writeln!(io::stderr(), "{}", sanitize(line)).context("cannot write to the terminal")
}
