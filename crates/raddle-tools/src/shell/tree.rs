//! What the parser's tree says of one command.

use raddle_core::policy::{is_shell, shell_script, through};
use tree_sitter::Node;

use super::word::word;

/// The words of a command, and those of each line by itself where the parser took the end of one for a space.
pub(super) fn on_lines(node: Node<'_>, text: &str) -> Vec<Vec<String>> {
    let mut all = vec![words(node, text)];
    let parts: Vec<Node<'_>> = children(node).collect();
    let is_end = |a: &Node<'_>, b: &Node<'_>| {
        let between = &text[a.end_byte()..b.start_byte()];
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
    let mut found = Vec::new();
    for at in 0..redirect.child_count() {
        if redirect.field_name_for_child(at) == Some(field) {
            found.extend(redirect.child(at).map(|it| word(it, text)));
        }
    }
    if field == "destination" && !found.is_empty() {
        found.remove(0);
    }
    found
}

/// The last command within a statement.
pub(super) fn last_command(statement: Node<'_>) -> Option<Node<'_>> {
    let mut node = statement;
    while node.kind() != "command" {
        node = node.named_child((node.named_child_count() as u32).checked_sub(1)?)?;
    }
    Some(node)
}

/// Whether what is written here is read by a shell.
pub(super) fn feeds_shell(node: Node<'_>, text: &str) -> bool {
    let mut above = node.parent();
    while let Some(it) = above {
        if matches!(it.kind(), "redirected_statement" | "command") {
            let before = &text[it.start_byte()..node.start_byte()];
            let mut words = before.split(|it: char| it.is_whitespace() || ";|&()<>`".contains(it));
            return words.any(|it| is_shell(&[it.replace(['\'', '"', '\\'], "")]));
        }
        above = it.parent();
    }
    false
}

/// Whether the end of a heredoc is quoted, so that all of it is text.
pub(super) fn is_literal(body: Node<'_>, text: &str) -> bool {
    let start = body
        .parent()
        .and_then(|it| children(it).find(|it| it.kind() == "heredoc_start"));
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

pub(super) fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |at| node.child(at))
}
