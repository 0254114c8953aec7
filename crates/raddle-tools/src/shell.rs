//! Parses command lines, for the policy and for display.
//!
//! There is one parser, and it errs on the side of finding too much. Text that it cannot parse
//! counts as an unknown command: rules can restrict it but never allow it.

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

/// Limit: a command line that is parsed for its judgement; beyond it, the rest counts as any
/// command: a rule can restrict it but not allow it.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// Limit: commands listed for one command line; beyond it, the rest counts as any command: a rule
/// can restrict it but not allow it.
pub const COMMANDS_MAX: usize = 1_000;

/// Limit: nesting of scripts in arguments of scripts; beyond it, the rest counts as any command: a
/// rule can restrict it but not allow it.
pub const LEVELS_MAX: usize = 10;

/// Limit: work for parsing one command line, in bytes and parser steps; beyond it, the rest counts
/// as any command: a rule can restrict it but not allow it.
///
/// It is counted and not timed, so that a line always gets the same verdict.
pub const WORK_MAX: usize = 600_000;

/// Parses a line for a shell.
pub fn parse_line(line: &str) -> ParsedScript {
    parse_line_counted(line).0
}

/// Parses a line for a shell, and returns the work that it cost.
pub fn parse_line_counted(line: &str) -> (ParsedScript, usize) {
    let mut parser = parse::ScriptParser::new();
    parser.script(line);
    let spent = parser.spent();
    (parser.done(line.to_owned()), spent)
}

/// Parses a command given as words, including the commands that it wraps.
pub fn parse_words(words: &[String]) -> ParsedScript {
    let mut parser = parse::ScriptParser::new();
    parser.command(words.to_vec());
    parser.done(quoted(words))
}
