//! Compares two parses of a script: the parser's tree, and the lexer's quotes and words.

use std::collections::HashMap;
use std::ops::Range;

use raddle_core::policy::UNKNOWN;
use tree_sitter::Node;

use super::lexer::{LexedScript, Substitution, SubstitutionForm};
use super::tree::{around, is_descriptor};
use super::word::{literal, word};

/// Kinds of nodes that the tree treats as text, in which no operator can occur.
const TEXT: [&str; 9] = [
    "ansi_c_string",
    "comment",
    "heredoc_body",
    "heredoc_content",
    "number",
    "raw_string",
    "string",
    "string_content",
    "word",
];

/// Kinds of nodes that contain words, and kinds of their children that are not words.
const AROUND_WORDS: &str = "\
    command declaration_command file_redirect heredoc_redirect herestring_redirect unset_command";
const NO_WORDS: &str = "\
    file_descriptor file_redirect heredoc_body heredoc_content heredoc_end heredoc_redirect heredoc_start \
    herestring_redirect list pipeline subshell variable_assignment";

/// Words that a shell recognises only if they stand alone.
const KEYWORDS: &str = "case do done elif else esac fi for function if in select then until while";

/// The part of the tree that the walk has visited, and the result of the lexer.
pub(super) struct Readings {
    lexed: LexedScript,
    operators_passed: usize,
    /// Ends of the nodes around the current one, and whether they are text.
    nodes: Vec<(usize, bool)>,
    /// Substitutions of the tree: start and form, and the end.
    substitutions: HashMap<(usize, SubstitutionForm), usize>,
    comments: Vec<Range<usize>>,
    /// Backquotes that are parsed again separately, so that the tree is ignored for them.
    read_again: Vec<Range<usize>>,
    has_hidden_operator: bool,
    /// Whether a word of the tree differs from that of the lexer.
    has_other_word: bool,
    /// For each command, the position where a word must continue of which the tree has only the
    /// beginning.
    continuations: HashMap<usize, usize>,
    has_joined_words: bool,
}

/// Commands that a shell may run and that the tree does not show.
pub(super) struct UnseenCommands {
    /// Texts that it may parse as scripts.
    pub(super) scripts: Vec<String>,
    /// Commands that dash runs where bash sees arithmetic.
    pub(super) commands: Vec<Vec<String>>,
    /// Whether it may run any other command too.
    pub(super) any: bool,
    /// Whether words were joined that the tree has in parts.
    pub(super) has_joined_words: bool,
}

impl Readings {
    pub(super) fn new(lexed: LexedScript, text: &str) -> Self {
        let again = lexed
            .substitutions
            .iter()
            .filter(|it| is_read_again(it, text));
        Self {
            read_again: again.map(|it| it.start..it.end).collect(),
            lexed,
            operators_passed: 0,
            nodes: Vec::new(),
            substitutions: HashMap::new(),
            comments: Vec::new(),
            has_hidden_operator: false,
            has_other_word: false,
            continuations: HashMap::new(),
            has_joined_words: false,
        }
    }

    /// Records the next node, in the order of the walk.
    pub(super) fn note(&mut self, node: Node<'_>, parent: Option<&Node<'_>>, text: &str) {
        let (start, end) = (node.start_byte(), node.end_byte());
        if node.kind() == "command_substitution" && self.is_row(start, end, text) {
            let from = self.read_again.partition_point(|it| it.end <= start);
            let to = self.read_again.partition_point(|it| it.start < end);
            self.read_again
                .splice(from..to, std::iter::once(start..end));
        }
        if let Some(parent) = parent {
            self.has_other_word |= self.is_other_word(node, *parent, text);
        }
        self.pass_operators(start);
        while self.nodes.last().is_some_and(|it| it.0 <= start) {
            self.nodes.pop();
        }
        let kind = node.kind();
        self.nodes.push((end, TEXT.contains(&kind)));
        match kind {
            "command_substitution" => {
                // Between double quotes the parser includes the blanks before it.
                let blanks = text[start..end].len() - text[start..end].trim_start().len();
                self.substitution(SubstitutionForm::Command, start + blanks, end);
            }
            "process_substitution" => self.substitution(SubstitutionForm::Process, start, end),
            "((" => self.substitution(SubstitutionForm::Group, start, end),
            "comment" => self.comments.push(start..end),
            _ => {}
        }
    }

    /// Whether a shell reads a word of the tree differently: it begins or ends elsewhere, or is not
    /// the literal in the tree.
    fn is_other_word(&mut self, node: Node<'_>, parent: Node<'_>, text: &str) -> bool {
        let kind = node.kind();
        let is_word = match node.is_named() {
            true => has(AROUND_WORDS, parent.kind()) && !has(NO_WORDS, kind),
            false => has(KEYWORDS, kind) || parent.kind() == "command",
        };
        let is_assignment = kind == "variable_assignment";
        if !is_word && !is_assignment || is_descriptor(node, text) {
            return false;
        }
        let (start, end) = (node.start_byte(), node.end_byte());
        let before = self.read_again.partition_point(|it| it.end <= start);
        let again = self.read_again.get(before);
        if again.is_some_and(|it| it.start < start || *it == (start..end)) {
            return false;
        }
        if is_assignment {
            return self.is_other_assignment(node, parent, text);
        }
        let words = &self.lexed.words;
        let (is_inside, whole) = match words.binary_search_by_key(&start, |it| it.start) {
            Ok(at) => (false, &words[at]),
            Err(_) => match around(start, words) {
                Some(whole) => (true, whole),
                None => return true,
            },
        };
        // Parts of one word are joined again.
        let goes_on = is_inside && self.continuations.remove(&parent.id()) == Some(start);
        self.has_joined_words |= goes_on;
        if is_inside != goes_on || end > whole.end {
            return true;
        }
        if end < whole.end {
            let may_go_on = parent.kind() == "command";
            return !may_go_on || self.continuations.insert(parent.id(), end).is_some();
        }
        if is_inside {
            return false;
        }
        let shown = word(node, text);
        !shown.contains(UNKNOWN) && literal(&text[start..end]) != Some(shown)
    }

    /// Whether there are several backquoted scripts here with only blanks between, which the parser
    /// mistakes for one.
    fn is_row(&self, start: usize, end: usize, text: &str) -> bool {
        let all = &self.lexed.substitutions;
        let (mut at, mut count) = (start, 0);
        while at < end {
            let Ok(index) = all.binary_search_by_key(&at, |it| it.start) else {
                return false;
            };
            if all[index].form != SubstitutionForm::Backquotes || all[index].end > end {
                return false;
            }
            let text_after = &text[all[index].end..end];
            at = end - text_after.trim_start_matches([' ', '\t']).len();
            count += 1;
        }
        count > 1
    }

    /// Whether an assignment ends elsewhere than its word, or its value is not the literal in the
    /// tree.
    fn is_other_assignment(&self, node: Node<'_>, parent: Node<'_>, text: &str) -> bool {
        let around = parent.kind();
        let is_arithmetic = around.ends_with("expression")
            || ["arithmetic_expansion", "c_style_for_statement"].contains(&around)
            || text[parent.byte_range()].starts_with("((");
        let is_named = |it: Node<'_>| it.kind() == "variable_name";
        if is_arithmetic || !node.child_by_field_name("name").is_some_and(is_named) {
            return false;
        }
        let words = &self.lexed.words;
        let Ok(at) = words.binary_search_by_key(&node.start_byte(), |it| it.start) else {
            return true;
        };
        let Some(value) = node.child_by_field_name("value") else {
            return words[at].end != node.end_byte();
        };
        if value.kind() == "array" {
            return words[at].end != value.start_byte();
        }
        let shown = word(value, text);
        let raw = &text[value.byte_range()];
        words[at].end != value.end_byte() || !shown.contains(UNKNOWN) && literal(raw) != Some(shown)
    }

    /// Returns the words of the lexer.
    pub(super) fn words(&self) -> &[Range<usize>] {
        &self.lexed.words
    }

    fn substitution(&mut self, form: SubstitutionForm, start: usize, end: usize) {
        self.substitutions.insert((start, form), end);
    }

    /// Checks the operators before an offset, each in the innermost node around it.
    fn pass_operators(&mut self, before: usize) {
        while let Some(at) = self.lexed.operators.get(self.operators_passed)
            && *at < before
        {
            while self.nodes.last().is_some_and(|it| it.0 <= *at) {
                self.nodes.pop();
            }
            self.has_hidden_operator |= self.nodes.last().is_some_and(|it| it.1);
            self.operators_passed += 1;
        }
    }

    /// Returns the commands that the tree does not show, after the walk.
    pub(super) fn unseen(mut self, text: &str, is_for_dash: bool) -> UnseenCommands {
        self.pass_operators(text.len());
        let bash_parts = match is_for_dash {
            true => self.lexed.bash_parts(text),
            false => Vec::new(),
        };
        let is_other_shell = is_for_dash
            && (!bash_parts.is_empty()
                || !self.lexed.groups.is_empty()
                || self.lexed.has_bash_quotes);
        let mut unseen = UnseenCommands {
            scripts: Vec::new(),
            has_joined_words: self.has_joined_words,
            commands: self
                .lexed
                .groups
                .iter()
                .chain(&bash_parts)
                .flat_map(|it| commands(&text[it.clone()]))
                .collect(),
            any: self.lexed.is_lost
                || self.has_hidden_operator
                || self.has_other_word
                || !self.continuations.is_empty()
                || is_other_shell,
        };
        let mut handled_to = 0;
        for it in &self.lexed.substitutions {
            // A nested script is found when the outer one is parsed again.
            if it.start < handled_to || self.is_in_tree(it, text) {
                continue;
            }
            handled_to = it.end;
            unseen.scripts.push(it.script(text));
            unseen.any |= it.form != SubstitutionForm::Backquotes;
        }
        for comment in &self.comments {
            if self.lexed.comments.binary_search(&comment.start).is_err() {
                let commented = text[comment.clone()].trim_start_matches(['#', ';', '&', '|', ' ']);
                unseen.scripts.push(commented.to_owned());
                unseen.any = true;
            }
        }
        unseen
    }

    fn is_in_tree(&self, it: &Substitution, text: &str) -> bool {
        let has = |form| self.substitutions.get(&(it.start, form)) == Some(&it.end);
        match it.form {
            SubstitutionForm::Command => has(SubstitutionForm::Command),
            SubstitutionForm::Backquotes => {
                has(SubstitutionForm::Command) && !is_read_again(it, text)
            }
            SubstitutionForm::Process => has(SubstitutionForm::Process),
            // The walk handles arithmetic, and its substitutions are listed by themselves.
            SubstitutionForm::Arithmetic => true,
            SubstitutionForm::Group => !self
                .substitutions
                .contains_key(&(it.start, SubstitutionForm::Group)),
        }
    }
}

fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|it| it == word)
}

fn is_read_again(it: &Substitution, text: &str) -> bool {
    it.form == SubstitutionForm::Backquotes && text[it.start..it.end].contains('\\')
}

/// Returns the commands in text that bash treats as arithmetic, without those that begin with a
/// number.
fn commands(text: &str) -> Vec<Vec<String>> {
    let parts = text.split([';', '&', '|', '(', ')', '\n', '!']);
    let words = parts.map(|it| {
        let is_assignment = |it: &&str| it.contains('=');
        let words = it.split_whitespace().skip_while(is_assignment);
        let words = words.map(|it| it.replace(['\'', '"', '\\'], ""));
        words.collect::<Vec<String>>()
    });
    let is_name = |it: char| it.is_alphanumeric() || "_-./".contains(it);
    let is_command = |it: &Vec<String>| {
        it.first()
            .is_some_and(|it| it.contains(char::is_alphabetic) && it.chars().all(is_name))
    };
    words.filter(is_command).collect()
}
