//! The walk through a script, and through the words of its commands.

use raddle_core::policy::{Script, UNKNOWN, shelled, through};
use tree_sitter::{Node, Parser};

use super::meaning::{self, Meaning};
use super::tree::{
    children, feeds_shell, is_literal, last_command, on_lines, script_at, words, words_behind,
};
use super::word::word;
use super::{COMMANDS_MAX, LEVELS_MAX, LINE_BYTES_MAX};

/// How much is read and listed in all, with scripts that stand in words of scripts.
const BYTES_MAX: usize = 8 * LINE_BYTES_MAX;

/// What a script may consist of to be plain.
const PLAIN: [&str; 11] = [
    "program",
    "list",
    "pipeline",
    "command",
    "command_name",
    "word",
    "string",
    "string_content",
    "raw_string",
    "number",
    "concatenation",
];

/// What may stand between.
const PLAIN_MARKS: [&str; 6] = ["&&", "||", "|", ";", "\n", "\""];

/// Commands that run another command by handing its words to a shell as one line.
const JOINERS: [&str; 3] = ["hyperfine", "parallel", "watch"];

/// Programs that start a shell if they are given nothing to run.
const OPENERS: [&str; 7] = [
    "chroot", "doas", "newgrp", "nsenter", "setarch", "sudo", "unshare",
];

/// Programs that run what stands behind one of these words.
const RUNNERS: &[(&str, &[&str])] = &[
    ("fd", &["-x", "--exec", "-X", "--exec-batch"]),
    ("fdfind", &["-x", "--exec", "-X", "--exec-batch"]),
    ("find", &["-exec", "-execdir", "-ok", "-okdir"]),
    ("git", &["run"]),
    ("jobs", &["-x"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("script", &["--"]),
];

/// What was found so far.
pub(super) struct Found {
    commands: Vec<Vec<String>>,
    plain: bool,
    level: usize,
    bytes_left: usize,
}

impl Found {
    pub(super) fn new() -> Self {
        Self {
            commands: Vec::new(),
            plain: true,
            level: 0,
            bytes_left: BYTES_MAX,
        }
    }

    pub(super) fn done(self, line: String) -> Script {
        Script {
            line,
            commands: self.commands,
            plain: self.plain,
        }
    }

    /// Something that could be any command.
    fn unknown(&mut self) {
        self.plain = false;
        let unknown = vec![UNKNOWN.to_string()];
        if !self.commands.contains(&unknown) {
            self.commands.push(unknown);
        }
    }

    /// Takes apart a script.
    pub(super) fn script(&mut self, text: &str) {
        if self.level == LEVELS_MAX {
            return self.unknown();
        }
        let mut end = text.len().min(LINE_BYTES_MAX).min(self.bytes_left);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if end < text.len() {
            self.unknown();
        }
        let text = &text[..end];
        // Shells do not agree on what these are, nor does the parser.
        let is_odd = |it: char| {
            it.is_control() && !"\n\t".contains(it) || it.is_whitespace() && !it.is_ascii()
        };
        if text.contains(is_odd) || text.ends_with('\\') {
            self.unknown();
        }
        self.level += 1;
        self.read(text);
        if text.contains("\\\n") {
            // A line that goes on, or the end of a comment: both are looked at.
            self.plain = false;
            self.read(&text.replace("\\\n", ""));
        }
        let is_escaped = |line: &str| line.trim_start().starts_with('\\');
        if text.lines().skip(1).any(is_escaped) {
            // The parser takes such a line for more of the one before.
            self.plain = false;
            let bare = |line: &str| line.trim_start().trim_start_matches('\\').to_owned();
            let lines: Vec<String> = text.lines().map(bare).collect();
            self.read(&lines.join("\n"));
        }
        self.level -= 1;
    }

    fn read(&mut self, text: &str) {
        if text.len() > self.bytes_left {
            return self.unknown();
        }
        self.bytes_left -= text.len();
        let mut parser = Parser::new();
        let language = tree_sitter_bash::LANGUAGE.into();
        let tree = match parser.set_language(&language) {
            Ok(()) => parser.parse(text, None),
            Err(_) => None,
        };
        let Some(tree) = tree else {
            return self.unknown();
        };
        if tree.root_node().has_error() {
            self.unknown();
        }
        let mut cursor = tree.walk();
        loop {
            self.visit(cursor.node(), text);
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn visit(&mut self, node: Node<'_>, text: &str) {
        let kind = node.kind();
        let is_plain = match node.is_named() {
            true => PLAIN.contains(&kind),
            false => PLAIN_MARKS.contains(&kind),
        };
        if !is_plain {
            self.plain = false;
        }
        match kind {
            "command" => {
                let lines = on_lines(node, text);
                if lines.len() > 1 {
                    self.unknown();
                }
                for words in lines {
                    self.command(words);
                }
            }
            "variable_assignment" => {
                let name = node.child_by_field_name("name");
                let name = name.map_or("", |it| &text[it.byte_range()]);
                let value = node.child_by_field_name("value");
                let value = value.map(|it| word(it, text)).unwrap_or_default();
                if meaning::is_order(&format!("{name}={value}")) {
                    self.unknown();
                }
            }
            "declaration_command" | "unset_command" | "test_command" => {
                self.command(children(node).map(|it| word(it, text)).collect());
            }
            "redirected_statement" => self.after_redirect(node, text),
            "heredoc_body" => {
                let body = &text[node.byte_range()];
                if !is_literal(node, text) {
                    // Commands between backticks, which the parser takes for text.
                    let body = body.replace("\\`", "");
                    body.split('`')
                        .skip(1)
                        .step_by(2)
                        .for_each(|it| self.script(it));
                }
                if feeds_shell(node, text) {
                    self.script(body);
                }
            }
            "herestring_redirect" if feeds_shell(node, text) => {
                let said: String = children(node)
                    .filter(Node::is_named)
                    .map(|it| word(it, text))
                    .collect();
                self.given(&said);
            }
            _ => {}
        }
    }

    /// Words behind a redirection belong to the command before it; the parser takes them for places.
    fn after_redirect(&mut self, node: Node<'_>, text: &str) {
        let mut behind = Vec::new();
        for at in 0..node.child_count() {
            if let (Some("redirect"), Some(redirect)) =
                (node.field_name_for_child(at), node.child(at))
            {
                behind.extend(words_behind(redirect, text));
            }
        }
        if behind.is_empty() {
            return;
        }
        let mut whole = match node.child_by_field_name("body").and_then(last_command) {
            Some(command) => words(command, text),
            None => Vec::new(),
        };
        whole.extend(behind);
        self.command(whole);
    }

    /// Adds a command, and what it runs.
    pub(super) fn command(&mut self, words: Vec<String>) {
        if words.is_empty() {
            return;
        }
        let bytes: usize = words.iter().map(|it| it.len() + 1).sum();
        if self.commands.len() >= COMMANDS_MAX || bytes > self.bytes_left {
            return self.unknown();
        }
        self.bytes_left -= bytes;
        if words.iter().any(|it| it.contains(UNKNOWN)) {
            self.plain = false;
        }
        let name = words[0].rsplit('/').next().unwrap_or_default().to_owned();
        match meaning::after(&name, &words[1..]) {
            Meaning::Same => {}
            Meaning::Other => self.plain = false,
            Meaning::Any => self.unknown(),
        }
        // A script is judged by itself, so it is not listed as a word too.
        let listed = match script_at(&words) {
            Some(at) if at + 1 == words.len() => &words[..at],
            _ => &words[..],
        };
        self.commands.push(listed.to_vec());
        if let Some(shelled) = shelled(&words) {
            if shelled.unsure {
                self.unknown();
            }
            if let Some(at) = shelled.script {
                // It uses words behind it as it likes.
                self.plain &= at + 1 == words.len();
                self.given(&words[at]);
            }
        }
        self.run_by(&name, &words);
    }

    /// A script that stands in a word.
    fn given(&mut self, script: &str) {
        if script.contains(UNKNOWN) {
            self.unknown();
        }
        self.script(&script.replace(UNKNOWN, "$0"));
    }

    /// What a command runs that it is given.
    fn run_by(&mut self, name: &str, words: &[String]) {
        if let Some(through) = through(words) {
            self.plain &= through.neutral;
            if through.unsure {
                self.unknown();
            }
            for start in through.starts {
                if JOINERS.contains(&name) {
                    self.joined(&words[start..]);
                }
                let mut inner = words[start..].to_vec();
                if through.fed {
                    inner.push(UNKNOWN.to_string());
                }
                self.command(inner);
            }
        } else if OPENERS.contains(&name) {
            // It starts a shell that reads what it runs.
            self.unknown();
        }
        let rest = &words[1..];
        if let Some((_, openers)) = RUNNERS.iter().find(|it| it.0 == name) {
            self.behind(rest, openers);
        }
        match name {
            "eval" => self.joined(rest),
            "trap" => {
                let mut rest = rest.iter().filter(|it| !it.starts_with('-'));
                rest.next().into_iter().for_each(|it| self.given(it));
            }
            "env" => {
                let is_split = |it: &String| {
                    it.starts_with("--split")
                        || it.starts_with('-') && !it.starts_with("--") && it.contains('S')
                };
                if let Some(at) = rest.iter().position(is_split) {
                    let own = rest[at]
                        .split_once(['S', '='])
                        .map_or("", |it| it.1)
                        .to_owned();
                    self.joined(&[&[own], &rest[at + 1..]].concat());
                }
            }
            "git" => self.run_by_git(rest),
            _ => {}
        }
    }

    fn run_by_git(&mut self, words: &[String]) {
        if let Some(at) = words.iter().position(|it| it == "foreach") {
            let is_option = |it: &&String| it.starts_with('-');
            let options = words[at + 1..].iter().take_while(is_option).count();
            self.joined(&words[at + 1 + options..]);
        }
        if !words.iter().any(|it| it == "rebase") {
            return;
        }
        for (at, word) in words.iter().enumerate() {
            let value = word.strip_prefix("--exec=").or(word.strip_prefix("-x"));
            match value.filter(|it| !it.is_empty()) {
                Some(script) => self.joined(&[script.to_owned()]),
                None if word == "--exec" || word == "-x" => {
                    self.joined(words.get(at + 1..at + 2).unwrap_or_default());
                }
                None => {}
            }
        }
    }

    /// Words that are put together again and read as a script.
    fn joined(&mut self, words: &[String]) {
        self.plain = false;
        self.given(&words.join(" "));
    }

    /// What stands behind one of these words up to the next semicolon.
    fn behind(&mut self, words: &[String], openers: &[&str]) {
        let mut rest = words;
        while let Some(at) = rest.iter().position(|it| openers.contains(&it.as_str())) {
            self.plain = false;
            rest = &rest[at + 1..];
            let end = rest
                .iter()
                .position(|it| it == ";" || it == "+")
                .unwrap_or(rest.len());
            let filled = rest[..end]
                .iter()
                .map(|it| it.replace("{}", &UNKNOWN.to_string()));
            self.command(filled.collect());
        }
        let with_value = words.iter().filter_map(|it| it.split_once('='));
        for (_, value) in with_value.filter(|(option, _)| openers.contains(option)) {
            self.plain = false;
            self.command(vec![value.to_owned()]);
        }
    }
}
