//! The work that reading one line may cost. It is counted and not timed, so that a line gets the same verdict on
//! every machine and under every load.

use std::cell::Cell;
use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use super::WORK_MAX;

/// Bytes that the parser is given at a time. Bytes that it reads twice are counted twice.
const CHUNK_BYTES: usize = 64;

/// What the steps cost that the parser takes between two reports.
const STEPS_COST: usize = 10_000;

/// What it costs to begin a script.
const SCRIPT_COST: usize = 500;

/// The work that is left for a line.
pub(super) struct WorkBudget {
    left: usize,
}

impl WorkBudget {
    pub(super) fn new() -> Self {
        Self { left: WORK_MAX }
    }

    /// Counts work. Returns whether any is left.
    pub(super) fn spend(&mut self, cost: usize) -> bool {
        self.left = self.left.saturating_sub(cost);
        !self.is_spent()
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    pub(super) fn spent(&self) -> usize {
        WORK_MAX - self.left
    }

    /// The tree of a script; nothing if it costs more than is left.
    ///
    /// The parser's cost is not linear: some tokens make it look ahead to the end of the text, and some errors
    /// make it copy all that it has read. So its steps are counted and also the bytes that it asks for.
    ///
    /// No chunk ends inside a letter: for the rest of one the parser asks again, and reads address zero if it then gets
    /// nothing because the budget is spent.
    pub(super) fn parse(&mut self, text: &str) -> Option<Tree> {
        let bytes = text.as_bytes();
        let left = Cell::new(self.left.saturating_sub(SCRIPT_COST));
        let spend = |cost: usize| left.set(left.get().saturating_sub(cost));
        let mut read = |at: usize, _| {
            spend(CHUNK_BYTES);
            let end = text.ceil_char_boundary(at.saturating_add(CHUNK_BYTES));
            match left.get() {
                0 => &[][..],
                _ => bytes.get(at..end).unwrap_or_default(),
            }
        };
        let mut report = |_: &ParseState| {
            spend(STEPS_COST);
            match left.get() {
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
        self.left = left.get();
        // A parser that was given less than the whole text may have made a tree of that.
        tree.filter(|_| !self.is_spent())
    }
}
