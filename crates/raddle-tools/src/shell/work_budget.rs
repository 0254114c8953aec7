//! Budget of work for parsing one line. It is counted and not timed, so that a line gets the same
//! verdict on every machine and under every load.

use std::cell::Cell;
use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use super::WORK_MAX;

/// Number of bytes that the parser gets at a time.
const CHUNK_BYTES: usize = 64;

/// Cost of such a read. Text that the parser reads twice counts twice. Its lexer takes longer for a
/// byte than the walk over the tree, so a byte costs two.
const CHUNK_COST: usize = 2 * CHUNK_BYTES;

/// Cost of the parser's steps between two progress reports. They take up to five times as long in
/// a text with errors, where the parser tries every symbol of the grammar at each step.
const STEPS_COST: usize = 12_500;

/// Base cost of a script.
const SCRIPT_COST: usize = 500;

/// Remaining work for a line.
pub(super) struct WorkBudget {
    remaining: usize,
}

impl WorkBudget {
    pub(super) fn new() -> Self {
        Self {
            remaining: WORK_MAX,
        }
    }

    /// Spends work. Returns whether any is left.
    pub(super) fn spend(&mut self, cost: usize) -> bool {
        self.remaining = self.remaining.saturating_sub(cost);
        !self.is_spent()
    }

    pub(super) fn is_spent(&self) -> bool {
        self.remaining == 0
    }

    pub(super) fn spent(&self) -> usize {
        WORK_MAX - self.remaining
    }

    /// Parses a script; returns `None` if it costs more than the remaining budget.
    ///
    /// The parser's cost is not linear: some tokens make it look ahead to the end of the text, and
    /// some errors make it copy all that it has read. So both its steps and the bytes that it asks
    /// for are counted.
    ///
    /// No chunk ends inside a character: the parser asks again for the rest of one, and reads
    /// address zero if it then gets nothing because the budget is spent.
    pub(super) fn parse(&mut self, text: &str) -> Option<Tree> {
        let bytes = text.as_bytes();
        let remaining = Cell::new(self.remaining.saturating_sub(SCRIPT_COST));
        let spend = |cost: usize| remaining.set(remaining.get().saturating_sub(cost));
        let mut read = |at: usize, _| {
            spend(CHUNK_COST);
            let end = text.ceil_char_boundary(at.saturating_add(CHUNK_BYTES));
            match remaining.get() {
                0 => &[][..],
                _ => bytes.get(at..end).unwrap_or_default(),
            }
        };
        let mut report = |_: &ParseState| {
            spend(STEPS_COST);
            match remaining.get() {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        let mut parser = Parser::new();
        let language = tree_sitter_bash::LANGUAGE.into();
        let tree = match parser.set_language(&language) {
            Ok(()) => {
                let options = ParseOptions::new().progress_callback(&mut report);
                parser.parse_with_options(&mut read, None, Some(options))
            }
            Err(_) => None,
        };
        self.remaining = remaining.get();
        // A parser that got only a part of the text may have built a tree of that.
        tree.filter(|_| !self.is_spent())
    }
}
