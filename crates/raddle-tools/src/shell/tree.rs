//! Reads commands from the parser's tree.

use std::ops::Range;

use raddle_core::policy::{UNKNOWN, is_shell, shell_script, wrapped_command};
use tree_sitter::Node;

use super::programs;
use super::word::{literal, word};
use super::work_budget::WorkBudget;

/// Returns the words of a command, and of each line by itself if the parser mistook a line end for
/// a space.
pub(super) fn on_lines(node: Node<'_>, text: &str, lexed: &[Range<usize>]) -> Vec<Vec<String>> {
    let mut all = vec![words(node, text, lexed)];
    let mut parts = children(node);
    parts.retain(|it| !is_descriptor(*it, text));
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

/// Returns the words of a command in order, without assignments and redirections. Parts within one
/// word of the lexer are joined, however the parser splits them.
pub(super) fn words(node: Node<'_>, text: &str, lexed: &[Range<usize>]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    // End of the previous word in the text.
    let mut last_end = None;
    for child in children(node) {
        let start = child.start_byte();
        let is_joined = last_end == Some(start);
        last_end = None;
        match child.kind() {
            "variable_assignment" | "herestring_redirect" | "subshell" => {}
            _ if is_descriptor(child, text) => {}
            "file_redirect" | "heredoc_redirect" => words.extend(words_after(child, text)),
            _ => {
                last_end = Some(child.end_byte());
                let part = word(child, text);
                let whole = match is_joined {
                    true => around(start, lexed),
                    false => None,
                };
                match (words.last_mut(), whole) {
                    (Some(word), Some(whole)) => {
                        word.push_str(&part);
                        match literal(&text[whole.clone()]) {
                            Some(it) if child.end_byte() == whole.end => *word = it,
                            _ => word.push(UNKNOWN),
                        }
                    }
                    _ => words.push(part),
                }
            }
        }
    }
    words
}

/// Returns the word of the lexer with this offset inside.
pub(super) fn around(at: usize, lexed: &[Range<usize>]) -> Option<&Range<usize>> {
    let before = lexed.partition_point(|it| it.start < at).checked_sub(1)?;
    lexed.get(before).filter(|it| at < it.end)
}

/// Whether a number is that of a descriptor, which the parser mistakes for a word before `<`.
pub(super) fn is_descriptor(node: Node<'_>, text: &str) -> bool {
    let is_redirect = |it: &u8| b"<>".contains(it);
    text.as_bytes()
        .get(node.end_byte())
        .is_some_and(is_redirect)
        && text[node.byte_range()]
            .bytes()
            .all(|it| it.is_ascii_digit())
}

/// Returns the words that the parser mistakes for further targets of a redirection.
pub(super) fn words_after(redirect: Node<'_>, text: &str) -> Vec<String> {
    let field = match redirect.kind() {
        "file_redirect" => "destination",
        _ => "argument",
    };
    let nodes = in_field(redirect, field);
    let skipped = usize::from(field == "destination");
    nodes.skip(skipped).map(|it| word(it, text)).collect()
}

/// Returns the children of a node in a field.
pub(super) fn in_field<'a>(node: Node<'a>, field: &str) -> impl Iterator<Item = Node<'a>> {
    let mut cursor = node.walk();
    let nodes: Vec<Node<'a>> = node.children_by_field_name(field, &mut cursor).collect();
    nodes.into_iter()
}

/// Returns the last command within a statement.
pub(super) fn last_command<'a>(statement: Node<'a>, budget: &mut WorkBudget) -> Option<Node<'a>> {
    let mut node = statement;
    while node.kind() != "command" {
        let count = node.named_child_count();
        if !budget.spend(count) {
            return None;
        }
        node = node.named_child((count as u32).checked_sub(1)?)?;
    }
    Some(node)
}

/// A statement around the current node, and whether the scanned part of its text names a shell.
pub(super) struct Statement {
    pub(super) depth: u32,
    read_to: usize,
    names_shell: bool,
    /// Name of the last program that runs commands from its input, if there is one.
    pub(super) reader: String,
}

impl Statement {
    pub(super) fn of(node: Node<'_>, depth: u32) -> Option<Self> {
        matches!(node.kind(), "redirected_statement" | "command").then(|| Self {
            depth,
            read_to: node.start_byte(),
            names_shell: false,
            reader: String::new(),
        })
    }

    /// Returns the number of bytes before this node that were not scanned yet.
    pub(super) fn unread(&self, node: Node<'_>) -> usize {
        node.start_byte().saturating_sub(self.read_to)
    }

    /// Returns the words before this node that were not scanned yet.
    pub(super) fn unread_words<'a>(&self, node: Node<'_>, text: &'a str) -> Vec<&'a str> {
        let before = text.get(self.read_to..node.start_byte());
        before
            .unwrap_or_default()
            .split(|it: char| it.is_whitespace() || ";|&()<>`".contains(it))
            .filter(|it| !it.is_empty())
            .collect()
    }

    /// Whether a shell reads the text at this node. Scans the words before it.
    pub(super) fn feeds_shell(&mut self, node: Node<'_>, words: &[&str]) -> bool {
        for word in words {
            let name = word.replace(['\'', '"', '\\'], "");
            let last = name.rsplit('/').next().unwrap_or_default();
            if programs::is_reader(last) {
                self.reader = last.to_owned();
            }
            self.names_shell |= name == "source" || is_shell(&[name]);
        }
        self.read_to = self.read_to.max(node.start_byte());
        self.names_shell
    }
}

/// Whether the delimiter of a heredoc is quoted, so that its text is literal.
pub(super) fn is_literal(redirect: Node<'_>, text: &str) -> bool {
    let start = children(redirect)
        .into_iter()
        .find(|it| it.kind() == "heredoc_start");
    start.is_some_and(|it| text[it.byte_range()].contains(['\'', '"', '\\']))
}

/// Maximum number of wrapping commands that are followed to a shell.
const CHAIN_MAX: usize = 32;

/// Returns the index of the script that a shell gets at the end of a chain of wrapping commands.
pub(super) fn script_at(words: &[String]) -> Option<usize> {
    let mut start = 0;
    for _ in 0..CHAIN_MAX {
        let rest = &words[start..];
        if let Some(at) = shell_script(rest) {
            return Some(start + at);
        }
        start += *wrapped_command(rest)?.starts.first()?;
    }
    None
}

/// Returns the children of a node. Access by index would count from the first child every time.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}
