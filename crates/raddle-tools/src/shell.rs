//! Command lines taken apart: what a policy judges, and what is shown to people.
//!
//! There is one parser, and it errs on the side of finding too much. What it cannot read stands in the
//! script as a command that could be any, so that a rule that forbids something is never silently passed.

mod actions;
mod awk;
mod digest;
mod display;
mod env;
mod git;
mod lexer;
mod meaning;
mod parse;
mod programs;
mod quote;
mod readings;
mod sed;
mod tree;
mod word;
mod work_budget;

pub use actions::actions;
pub use digest::{ApprovalSubject, DigestInput, UnseenFiles, approval_subject};
pub use display::{display_line, is_shown_whole};
pub use quote::quoted;

use raddle_core::policy::ParsedScript;

/// The longest line that is read; of a longer one only the beginning.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// The most commands that are listed.
pub const COMMANDS_MAX: usize = 1_000;

/// How deep scripts may stand in the words of scripts.
pub const LEVELS_MAX: usize = 10;

/// The most work that is spent on one line, in bytes that are read and steps that are taken. It is counted, so
/// that a line always gets the same verdict; what is left out could be any command.
pub const WORK_MAX: usize = 2_000_000;

/// Takes apart a line that a shell is given.
pub fn parse_line(line: &str) -> ParsedScript {
    parse_line_counted(line).0
}

/// Takes apart a line that a shell is given, and returns the work that it cost.
pub fn parse_line_counted(line: &str) -> (ParsedScript, usize) {
    let mut found = parse::ScriptParser::new();
    found.script(line);
    let spent = found.spent();
    (found.done(line.to_owned()), spent)
}

/// Takes apart a command that is run by its words, and sees through those that only run another.
pub fn parse_words(words: &[String]) -> ParsedScript {
    let mut found = parse::ScriptParser::new();
    found.command(words.to_vec());
    found.done(quoted(words))
}
