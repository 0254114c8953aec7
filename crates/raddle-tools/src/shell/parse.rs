//! Walks a script, and the words of its commands.

use std::ops::Range;

use raddle_core::policy::{ParsedScript, UNKNOWN, shell_invocation, wrapped_command};
use tree_sitter::Node;

use super::env;
use super::git;
use super::lexer;
use super::meaning::{self, Meaning};
use super::programs::{self, ProgramInvocations};
use super::readings::Readings;
use super::tree::{
    Statement, children, in_field, is_literal, last_command, on_lines, script_at, words,
    words_after,
};
use super::word::word;
use super::work_budget::WorkBudget;
use super::{COMMANDS_MAX, LEVELS_MAX, LINE_BYTES_MAX};

/// Cost of a node of the tree, of a word of a command, and of a byte of text.
const NODE_COST: usize = 20;
const WORD_COST: usize = 100;
const BYTE_COST: usize = 2;

/// Kinds of nodes that a plain script may consist of.
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

/// Tokens that may occur between them.
const PLAIN_MARKS: [&str; 6] = ["&&", "||", "|", ";", "\n", "\""];

/// Commands that run another command by passing its words to a shell as one line.
const JOINERS: [&str; 3] = ["hyperfine", "parallel", "watch"];

/// Programs that start a shell if they get no command.
const OPENERS: &str = "\
    at batch chroot doas i386 i486 i586 i686 linux32 linux64 newgrp nsenter setarch sg sudo uname26 unshare x86_64";

/// Shells with fewer features than bash, which parse some words differently.
const DASHES: &str = "ash dash hush posh sh yash";

/// Words that begin a compound command.
const COMPOUND: &str = "( (( [[ case for function if select until while {";

/// Programs that run the words after one of these options.
const RUNNERS: &[(&str, &[&str])] = &[
    ("fd", &["-x", "--exec", "-X", "--exec-batch"]),
    ("fdfind", &["-x", "--exec", "-X", "--exec-batch"]),
    ("find", &["-exec", "-execdir", "-ok", "-okdir"]),
    ("gfind", &["-exec", "-execdir", "-ok", "-okdir"]),
    ("git", &["run"]),
    ("jobs", &["-x"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("script", &["--"]),
];

/// Parser state: the commands found so far.
pub(super) struct ScriptParser {
    commands: Vec<Vec<String>>,
    plain: bool,
    has_unknown: bool,
    level: usize,
    budget: WorkBudget,
    literals: HiddenLiterals,
    /// Whether the script is for a shell with fewer features than bash.
    is_for_dash: bool,
}

/// Conditions under which a shell runs a literal: a construct that evaluates one as arithmetic or
/// as a name, and a quoted substitution. The two may be far apart, connected by a variable.
#[derive(Clone, Copy, Debug, Default)]
struct HiddenLiterals {
    evaluates: bool,
    substitutes: bool,
}

impl ScriptParser {
    pub(super) fn new() -> Self {
        Self {
            commands: Vec::new(),
            plain: true,
            has_unknown: false,
            level: 0,
            budget: WorkBudget::new(),
            literals: HiddenLiterals::default(),
            is_for_dash: false,
        }
    }

    pub(super) fn done(self, line: String) -> ParsedScript {
        ParsedScript {
            line,
            commands: self.commands,
            plain: self.plain,
        }
    }

    /// Adds an unknown command, which rules can restrict but not allow.
    fn unknown(&mut self) {
        self.plain = false;
        if !self.has_unknown {
            self.has_unknown = true;
            self.commands.push(vec![UNKNOWN.to_string()]);
        }
    }

    /// Spends work. Without budget, the unparsed rest is treated as an unknown command.
    fn spend(&mut self, cost: usize) -> bool {
        let may_go_on = self.budget.spend(cost);
        if !may_go_on {
            self.unknown();
        }
        may_go_on
    }

    pub(super) fn spent(&self) -> usize {
        self.budget.spent()
    }

    /// Parses a script and adds its commands, unless it is nested too deeply or the budget is
    /// spent.
    pub(super) fn script(&mut self, text: &str) {
        if self.level == LEVELS_MAX {
            return self.unknown();
        }
        if !self.spend(BYTE_COST * text.len().min(LINE_BYTES_MAX)) {
            return;
        }
        let mut end = text.len().min(LINE_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if end < text.len() {
            self.unknown();
        }
        let text = &text[..end];
        if let Some(rest) = without_time(text) {
            self.plain = false;
            self.command(vec!["time".to_owned()]);
            return self.script(&rest);
        }
        // Neither shells nor the parser agree on the meaning of these.
        let is_odd = |it: char| {
            it.is_control() && !"\n\t".contains(it) || it.is_whitespace() && !it.is_ascii()
        };
        if text.contains(is_odd) || text.ends_with('\\') {
            self.unknown();
        }
        self.level += 1;
        self.read_both(text);
        if text.contains("\\\n") {
            // A continued line, or the end of a comment: both are parsed.
            self.plain = false;
            self.read_both(&text.replace("\\\n", ""));
            if goes_on_in_word(text) {
                // Only one of the two parses has the whole word, and it may be wrong elsewhere.
                self.unknown();
            }
        }
        self.level -= 1;
    }

    /// Parses a script, and again if a line begins with a backslash, which the parser mistakes for
    /// a continuation. The first line continues nothing, and stays.
    fn read_both(&mut self, text: &str) {
        self.read(text);
        let is_escaped = |line: &&str| line.trim_start().starts_with('\\');
        if text.lines().skip(1).any(|it| is_escaped(&it)) {
            self.plain = false;
            let bare = |(at, line): (usize, &str)| match at > 0 && is_escaped(&line) {
                true => line.trim_start().trim_start_matches('\\').to_owned(),
                false => line.to_owned(),
            };
            let lines: Vec<String> = text.lines().enumerate().map(bare).collect();
            self.read(&lines.join("\n"));
        }
    }

    fn read(&mut self, text: &str) {
        let outer = std::mem::take(&mut self.literals);
        self.walk(text);
        if self.literals.evaluates && self.literals.substitutes {
            self.unknown();
        }
        self.literals = outer;
    }

    fn walk(&mut self, text: &str) {
        if !self.spend(text.len()) {
            return;
        }
        let Some(tree) = self.budget.parse(text) else {
            return self.unknown();
        };
        if tree.root_node().has_error() {
            self.unknown();
        }
        let mut readings = Readings::new(lexer::lex(text), text);
        let mut cursor = tree.walk();
        // Ancestors of the current node, with the node itself.
        let mut nodes: Vec<Node<'_>> = Vec::new();
        let mut statements: Vec<Statement> = Vec::new();
        loop {
            let (node, depth) = (cursor.node(), cursor.depth());
            nodes.truncate(depth as usize);
            while statements.last().is_some_and(|it| it.depth >= depth) {
                statements.pop();
            }
            if !self.spend(NODE_COST) {
                return;
            }
            readings.note(node, nodes.last(), text);
            let statement = statements.last_mut();
            self.visit(node, &nodes, statement, text, readings.words());
            nodes.push(node);
            statements.extend(Statement::of(node, depth));
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return self.compare(readings, text);
                }
            }
        }
    }

    /// Parses the parts that a shell runs and the parser's tree does not show.
    fn compare(&mut self, readings: Readings, text: &str) {
        if !self.spend(BYTE_COST * text.len()) {
            return;
        }
        let unseen = readings.unseen(text, self.is_for_dash);
        self.plain &= !unseen.has_joined_words;
        if unseen.any {
            self.unknown();
        }
        for script in unseen.scripts {
            self.plain = false;
            self.script(&script);
        }
        for command in unseen.commands {
            self.plain = false;
            self.command(command);
        }
    }

    fn visit(
        &mut self,
        node: Node<'_>,
        above: &[Node<'_>],
        statement: Option<&mut Statement>,
        text: &str,
        lexed: &[Range<usize>],
    ) {
        let kind = node.kind();
        let is_plain = match node.is_named() {
            true => PLAIN.contains(&kind),
            false => PLAIN_MARKS.contains(&kind),
        };
        if !is_plain {
            self.plain = false;
        }
        self.look_for_hidden(node, above, text);
        match kind {
            "command" => {
                let lines = on_lines(node, text, lexed);
                if lines.len() > 1 {
                    self.unknown();
                }
                for words in lines {
                    self.command(words);
                }
                self.coprocess(node, text);
            }
            "for_statement" => {
                let name = node.child_by_field_name("variable");
                let name = name.map_or("", |it| &text[it.byte_range()]);
                self.set(name, &UNKNOWN.to_string());
            }
            "variable_assignment" => {
                let name = node.child_by_field_name("name");
                let name = name.map_or("", |it| &text[it.byte_range()]);
                let value = node.child_by_field_name("value");
                let value = value.map(|it| word(it, text)).unwrap_or_default();
                if meaning::is_executed_assignment(&format!("{name}={value}")) {
                    self.unknown();
                }
                self.set(name, &value);
            }
            "declaration_command" | "unset_command" | "test_command" => {
                let parts = children(node).into_iter();
                self.command(parts.map(|it| word(it, text)).collect());
            }
            "redirected_statement" => self.after_redirect(node, text, lexed),
            "heredoc_body" => {
                let body = &text[node.byte_range()];
                let (is_shell, reader) = self.input_reader(statement, node, text);
                if is_shell {
                    self.script(body);
                }
                self.run(programs::run_from_input(&reader, body));
            }
            "herestring_redirect" => {
                let (is_shell, reader) = self.input_reader(statement, node, text);
                if !is_shell && reader.is_empty() {
                    return;
                }
                let input: String = children(node)
                    .into_iter()
                    .filter(Node::is_named)
                    .map(|it| word(it, text))
                    .collect();
                if is_shell {
                    self.inner_script(&input);
                }
                self.run(programs::run_from_input(&reader, &input));
            }
            _ => {}
        }
    }

    /// Handles `coproc while …`, which the parser mistakes for a simple command.
    fn coprocess(&mut self, node: Node<'_>, text: &str) {
        let parts = children(node);
        let word_at = |at: usize| parts.get(at).map_or("", |it| &text[it.byte_range()]);
        if word_at(0) != "coproc" {
            return;
        }
        // A name may come before it.
        for at in [1, 2] {
            if COMPOUND.split(' ').any(|it| it == word_at(at)) {
                self.unknown();
                self.script(&text[parts[at].start_byte()..]);
            }
        }
    }

    /// Returns whether a shell reads the text at this node, and the name of another program that
    /// reads it.
    fn input_reader(
        &mut self,
        statement: Option<&mut Statement>,
        node: Node<'_>,
        text: &str,
    ) -> (bool, String) {
        let Some(it) = statement.filter(|it| self.spend(BYTE_COST * it.unread(node))) else {
            return (false, String::new());
        };
        let words = it.unread_words(node, text);
        if !self.spend(WORD_COST * words.len()) {
            return (false, String::new());
        }
        (it.feeds_shell(node, &words), it.reader.clone())
    }

    /// Handles a variable that is set, or passed to a command.
    fn set(&mut self, name: &str, value: &str) {
        if meaning::is_executed_variable(name) && !meaning::is_prompt(name, value) {
            self.unknown();
        }
        self.literals.evaluates |= meaning::is_number_name(name);
        if let Some(line) = meaning::script_in(name, value) {
            self.plain = false;
            self.inner_script(line);
        }
        if let Some(program) = meaning::options_in(name) {
            let words = value.split_whitespace();
            let words: Vec<String> = words.map(|it| it.replace(['\'', '"'], "")).collect();
            self.run(programs::run_by(program, &words));
        }
    }

    /// Records where a shell evaluates a literal, and literals with substitutions in them.
    fn look_for_hidden(&mut self, node: Node<'_>, above: &[Node<'_>], text: &str) {
        let raw = &text[node.byte_range()];
        let literal = match node.kind() {
            "arithmetic_expansion" | "array" | "c_style_for_statement" | "subscript" | "((" => {
                self.literals.evaluates = true;
                return;
            }
            "file_redirect" => {
                // A target after `>&` that is not a number is expanded twice.
                let parts = children(node);
                let is_doubled = parts.iter().any(|it| [">&", "<&"].contains(&it.kind()));
                let is_number = |it: &Node<'_>| {
                    let raw = &text[it.byte_range()];
                    raw.bytes().all(|it| it.is_ascii_digit() || it == b'-')
                };
                self.literals.evaluates |= is_doubled && !parts.last().is_some_and(is_number);
                return;
            }
            "test_operator" => {
                let is_reckoned = ["-eq", "-ge", "-gt", "-le", "-lt", "-ne", "-v"];
                self.literals.evaluates |= is_reckoned.contains(&raw);
                return;
            }
            "expansion" => {
                let is_part = children(node).iter().any(|it| it.kind() == ":");
                self.literals.evaluates |= is_part || meaning::reads_value(raw);
                return;
            }
            "raw_string" | "ansi_c_string" | "string" | "word" | "heredoc_body" => {
                if !self.spend(raw.len()) {
                    return;
                }
                match node.kind() {
                    "heredoc_body" => raw.to_owned(),
                    _ => word(node, text),
                }
            }
            _ => return,
        };
        // The shell itself expands an unquoted heredoc, and the parser sees that.
        let is_open =
            node.kind() == "heredoc_body" && !above.last().is_some_and(|it| is_literal(*it, text));
        let is_begun = literal == "$" || literal.ends_with('$') && literal.contains('[');
        let substitutes = literal.contains("$(") || literal.contains('`') || is_begun;
        self.literals.substitutes |= substitutes && (!is_open || literal.contains("\\$"));
    }

    /// Handles words after a redirection: they belong to the command before it, but the parser
    /// mistakes them for targets.
    fn after_redirect(&mut self, node: Node<'_>, text: &str, lexed: &[Range<usize>]) {
        let mut trailing_words = Vec::new();
        for redirect in in_field(node, "redirect") {
            trailing_words.extend(words_after(redirect, text));
        }
        if trailing_words.is_empty() {
            return;
        }
        let body = node.child_by_field_name("body");
        let mut whole = match body.and_then(|it| last_command(it, &mut self.budget)) {
            Some(command) => words(command, text, lexed),
            None => Vec::new(),
        };
        whole.extend(trailing_words);
        self.command(whole);
    }

    /// Adds a command, and the commands that it runs.
    pub(super) fn command(&mut self, words: Vec<String>) {
        if words.is_empty() {
            return;
        }
        if self.commands.len() >= COMMANDS_MAX {
            return self.unknown();
        }
        let cost = |it: &String| WORD_COST + BYTE_COST * it.len();
        if !self.spend(words.iter().map(cost).sum()) {
            return;
        }
        if words.iter().any(|it| it.contains(UNKNOWN)) {
            self.plain = false;
        }
        let name = words[0].rsplit('/').next().unwrap_or_default().to_owned();
        if COMPOUND.split(' ').any(|it| it == words[0]) && words[0] != "[[" {
            // The parser mistook a compound command for a simple one.
            self.unknown();
        }
        match meaning::after(&name, &words[1..]) {
            Meaning::Same => {}
            Meaning::Other => self.plain = false,
            Meaning::Any => self.unknown(),
        }
        if meaning::BY_NAME.contains(&name.as_str()) || name == "printf" || name == "typeset" {
            self.literals.evaluates |=
                name != "printf" || words.iter().any(|it| it.starts_with("-v"));
        }
        // A script is judged by itself, so it is not listed as a word too.
        let listed = match script_at(&words) {
            Some(at) if at + 1 == words.len() => &words[..at],
            _ => &words[..],
        };
        self.commands.push(listed.to_vec());
        if let Some(invocation) = shell_invocation(&words) {
            let is_dash = DASHES.split(' ').any(|it| it == name);
            let outer = std::mem::replace(&mut self.is_for_dash, is_dash);
            if invocation.unsure {
                self.unknown();
            }
            if let Some(at) = invocation.script {
                // The script may use the words after it in any way.
                let is_alone = at + 1 == words.len();
                self.plain &= is_alone;
                match is_alone {
                    true => self.inner_script(&words[at]),
                    false => self.inner_script_in_context(&words[at]),
                }
            }
            self.is_for_dash = outer;
        }
        self.run_by(&name, &words);
    }

    /// Parses a script in a word.
    fn inner_script(&mut self, script: &str) {
        if script.contains(UNKNOWN) {
            self.unknown();
        }
        self.script(&script.replace(UNKNOWN, "$0"));
    }

    /// Parses a script that may evaluate values from this one as arithmetic.
    fn inner_script_in_context(&mut self, script: &str) {
        let may_reckon = script.contains(['[', '(', '!', '@']) || script.contains("let");
        self.literals.evaluates |= may_reckon;
        self.inner_script(script);
    }

    /// Adds the commands in the arguments of a command.
    fn run_by(&mut self, name: &str, words: &[String]) {
        if let Some(wrapped) = wrapped_command(words) {
            for (name, value) in words.iter().filter_map(|it| it.split_once('=')) {
                self.set(name, value);
            }
            self.plain &= wrapped.neutral;
            if wrapped.unsure {
                self.unknown();
            }
            for start in wrapped.starts {
                let filled = |replacement: &str| -> Vec<String> {
                    let fill = |word: &String| {
                        let all = wrapped.placeholders.iter();
                        all.fold(word.clone(), |word, it| word.replace(it, replacement))
                    };
                    // The words after `:::` replace placeholders.
                    let is_here = |it: &&String| name != "parallel" || !it.starts_with(":::");
                    let here = words[start..].iter().take_while(is_here);
                    here.map(fill).collect()
                };
                if JOINERS.contains(&name) {
                    self.joined_script(&filled("\"$0\""));
                }
                let mut inner = filled(&UNKNOWN.to_string());
                if wrapped.adds_arguments {
                    inner.push(UNKNOWN.to_string());
                }
                self.command(inner);
            }
        } else if OPENERS.split(' ').any(|it| it == name) {
            // It starts a shell that reads commands from its input.
            self.unknown();
        }
        let rest = &words[1..];
        if let Some((_, openers)) = RUNNERS.iter().find(|it| it.0 == name) {
            self.commands_after(rest, openers);
        }
        match name {
            "eval" => self.joined_script(without_dashes(rest)),
            "!" => {
                // Variables may be set for a command there.
                let assignment = |it: &String| {
                    let (name, value) = it.split_once('=')?;
                    Some((name.trim_end_matches('+').to_owned(), value.to_owned()))
                };
                let set: Vec<(String, String)> = rest.iter().map_while(assignment).collect();
                for (name, value) in &set {
                    self.set(name, value);
                }
                self.command(rest[set.len()..].to_vec());
            }
            "mapfile" | "readarray" => {
                for (at, word) in rest.iter().enumerate() {
                    let letters = word.strip_prefix('-').unwrap_or_default();
                    let value = programs::value_of(letters, "C", "cdnOsu");
                    let next = rest.get(at + 1).map(String::as_str);
                    let line = value.and_then(|it| it.or(next));
                    line.into_iter().for_each(|it| self.inner_script(it));
                }
            }
            "trap" => {
                let mut rest = rest.iter().filter(|it| !it.starts_with('-'));
                rest.next().into_iter().for_each(|it| self.inner_script(it));
            }
            "env" | "genv" => self.split_string(words),
            "git" => self.run_by_git(rest),
            name => self.run(programs::run_by(name, rest)),
        }
    }

    fn run(&mut self, run: ProgramInvocations) {
        if run.any {
            self.unknown();
        }
        for script in run.scripts {
            self.plain = false;
            self.inner_script(&script);
        }
        for command in run.commands {
            self.plain = false;
            self.command(command);
        }
    }

    /// Handles `env -S`: its value is split into words that replace it.
    fn split_string(&mut self, words: &[String]) {
        let is_split = |it: &String| {
            it.starts_with("--s")
                || it.starts_with('-') && !it.starts_with("--") && it.contains('S')
        };
        let Some(at) = words.iter().position(is_split) else {
            return;
        };
        self.plain = false;
        let (mut before, mut trailing_words) = (words[..at].to_vec(), &words[at + 1..]);
        let (mut option, mut value) = (words[at].as_str(), "");
        if let Some((name, joined)) = option.split_once(['S', '=']) {
            (option, value) = (name, joined);
        }
        if value.is_empty()
            && let Some((next, rest)) = trailing_words.split_first()
        {
            (value, trailing_words) = (next, rest);
        }
        // Other short options in the same word.
        if !option.starts_with("--") && option.len() > 1 {
            before.push(option.to_owned());
        }
        let Some(split) = env::split(value) else {
            return self.unknown();
        };
        self.command([&before, &split, trailing_words].concat());
    }

    fn run_by_git(&mut self, words: &[String]) {
        let run = git::run_by(words);
        if run.any {
            self.unknown();
        }
        for script in run.scripts {
            self.plain = false;
            self.inner_script(&script);
        }
        if let Some(at) = words.iter().position(|it| it == "foreach") {
            let is_option = |it: &&String| it.starts_with('-');
            let options = words[at + 1..].iter().take_while(is_option).count();
            self.joined_script(&words[at + 1 + options..]);
        }
    }

    /// Joins words and parses them as a script.
    fn joined_script(&mut self, words: &[String]) {
        self.plain = false;
        self.inner_script_in_context(&words.join(" "));
    }

    /// Adds the commands after one of these words, up to the next semicolon.
    fn commands_after(&mut self, words: &[String], openers: &[&str]) {
        let mut rest = words;
        while let Some(at) = rest.iter().position(|it| openers.contains(&it.as_str())) {
            self.plain = false;
            if self.budget.is_spent() || self.commands.len() >= COMMANDS_MAX {
                return self.unknown();
            }
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

/// Blanks out each `time` before a compound command, where the parser mistakes it for a command.
fn without_time(text: &str) -> Option<String> {
    if !text.contains("time") {
        return None;
    }
    let lexed = lexer::lex(text);
    let is_ended = |from: usize, to: usize| {
        let at = lexed.operators.partition_point(|it| *it < from);
        lexed.operators.get(at).is_some_and(|it| *it < to)
    };
    let mut out = text.to_owned();
    for (at, word) in lexed.words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|it| lexed.words.get(it));
        let is_first = before.is_none_or(|it| is_ended(it.end, word.start));
        if !is_first || &text[word.clone()] != "time" {
            continue;
        }
        let next = |at: usize| {
            lexed
                .words
                .get(at)
                .filter(|it| !is_ended(word.end, it.start))
        };
        let text_at = |at: usize| next(at).map_or("", |it| &text[it.clone()]);
        let next_word = if text_at(at + 1) == "-p" {
            at + 2
        } else {
            at + 1
        };
        if ["{", "case", "for", "if", "until", "while"].contains(&text_at(next_word))
            && let Some(it) = next(next_word)
        {
            out.replace_range(word.start..it.start, &" ".repeat(it.start - word.start));
        }
    }
    (out != text).then_some(out)
}

/// Returns the words without a leading `--`.
fn without_dashes(words: &[String]) -> &[String] {
    match words {
        [first, rest @ ..] if first == "--" => rest,
        words => words,
    }
}

/// Whether a line continues in the next within a word or an operator. It does not with a blank on
/// either side, or an operator before and a word after.
fn goes_on_in_word(text: &str) -> bool {
    text.match_indices("\\\n").any(|(at, _)| {
        let before = &text[..at];
        let is_escaped = (before.len() - before.trim_end_matches('\\').len()) % 2 == 1;
        let before = before.chars().next_back().unwrap_or('\n');
        let after = text[at + 2..].chars().next().unwrap_or('\n');
        let is_begun =
            ";&|({".contains(before) && (after.is_alphanumeric() || "_./-\"'".contains(after));
        !is_escaped && !before.is_whitespace() && !after.is_whitespace() && !is_begun
    })
}
