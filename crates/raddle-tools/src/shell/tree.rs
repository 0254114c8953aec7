//! What the parser's tree says of one command.

use raddle_core::policy::{is_shell, shell_script, through};
use tree_sitter::Node;

use super::word::word;
use super::work::Work;

/// The words of a command, and those of each line by itself where the parser took the end of one for a space.
pub(super) fn on_lines(node: Node<'_>, text: &str) -> Vec<Vec<String>> {
    let mut all = vec![words(node, text)];
    let parts = children(node);
    let is_end = |a: &Node<'_>, b: &Node<'_>| {
        let between = text.get(a.end_byte()..b.start_byte()).unwrap_or_default();
        between.replace("\\\n", "").contains('\n')
    };
    let lines = parts.chunk_by(|a, b| !is_end(a, b));
    let lines = lines.map(|line| line.iter().map(|it| word(*it, text)).collect());
    let lines: Vec<Vec<String>> = lines.collect();
    if lines.len() > 1 {
        all.extend(lines);
    }
    all
}

/// The words of a command, in order, without what is set for it and where its output goes.
pub(super) fn words(node: Node<'_>, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for child in children(node) {
        match child.kind() {
            "variable_assignment" | "herestring_redirect" | "subshell" => {}
            "file_redirect" | "heredoc_redirect" => words.extend(words_behind(child, text)),
            _ => words.push(word(child, text)),
        }
    }
    words
}

/// What the parser takes for further places of a redirection.
pub(super) fn words_behind(redirect: Node<'_>, text: &str) -> Vec<String> {
    let field = match redirect.kind() {
        "file_redirect" => "destination",
        _ => "argument",
    };
    let found = in_field(redirect, field);
    let skipped = usize::from(field == "destination");
    found.skip(skipped).map(|it| word(it, text)).collect()
}

/// The children of a node in a field.
pub(super) fn in_field<'a>(node: Node<'a>, field: &str) -> impl Iterator<Item = Node<'a>> {
    let mut cursor = node.walk();
    let found: Vec<Node<'a>> = node.children_by_field_name(field, &mut cursor).collect();
    found.into_iter()
}

/// The last command within a statement.
pub(super) fn last_command<'a>(statement: Node<'a>, work: &mut Work) -> Option<Node<'a>> {
    let mut node = statement;
    while node.kind() != "command" {
        let count = node.named_child_count();
        if !work.spend(count) {
            return None;
        }
        node = node.named_child((count as u32).checked_sub(1)?)?;
    }
    Some(node)
}

/// A statement that the walk is in, and whether its text names a shell, as far as that was looked at.
pub(super) struct Statement {
    pub(super) depth: u32,
    read_to: usize,
    names_shell: bool,
}

impl Statement {
    pub(super) fn of(node: Node<'_>, depth: u32) -> Option<Self> {
        matches!(node.kind(), "redirected_statement" | "command").then(|| Self {
            depth,
            read_to: node.start_byte(),
            names_shell: false,
        })
    }

    /// How many bytes before this place were not looked at yet.
    pub(super) fn unread(&self, node: Node<'_>) -> usize {
        node.start_byte().saturating_sub(self.read_to)
    }

    /// Whether what is written at this place is read by a shell.
    pub(super) fn feeds_shell(&mut self, node: Node<'_>, text: &str) -> bool {
        let before = text.get(self.read_to..node.start_byte());
        let mut words = before
            .unwrap_or_default()
            .split(|it: char| it.is_whitespace() || ";|&()<>`".contains(it));
        self.names_shell = self.names_shell
            || words.any(|it| {
                let name = it.replace(['\'', '"', '\\'], "");
                name == "source" || is_shell(&[name])
            });
        self.read_to = self.read_to.max(node.start_byte());
        self.names_shell
    }
}

/// Whether the end of a heredoc is quoted, so that all of it is text.
pub(super) fn is_literal(redirect: Node<'_>, text: &str) -> bool {
    let start = children(redirect)
        .into_iter()
        .find(|it| it.kind() == "heredoc_start");
    start.is_some_and(|it| text[it.byte_range()].contains(['\'', '"', '\\']))
}

/// How many commands that run another are followed to a shell.
const CHAIN_MAX: usize = 32;

/// Where the script stands that a shell is given at the end of a chain of commands that run another.
pub(super) fn script_at(words: &[String]) -> Option<usize> {
    let mut start = 0;
    for _ in 0..CHAIN_MAX {
        let rest = &words[start..];
        if let Some(at) = shell_script(rest) {
            return Some(start + at);
        }
        start += *through(rest)?.starts.first()?;
    }
    None
}

/// The children of a node. Asking for each by its number would count from the first every time.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}
