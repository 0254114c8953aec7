//! The two readings of a script, compared: the parser's tree, and the lexer's quotes.

use std::collections::HashMap;
use std::ops::Range;

use tree_sitter::Node;

use super::lexer::{Form, Lexed, Substitution};

/// What the tree takes for text, so that no operator can stand in it.
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

/// The tree, as far as the walk has come, beside the lexer's reading.
pub(super) struct Readings {
    lexed: Lexed,
    operators_passed: usize,
    /// The ends of the nodes that the walk is in, and whether they are text.
    nodes: Vec<(usize, bool)>,
    /// The substitutions of the tree: what begins at a place, and where it ends.
    substitutions: HashMap<(usize, Form), usize>,
    comments: Vec<Range<usize>>,
    has_hidden_operator: bool,
}

/// What a shell may run that is not in the tree.
pub(super) struct Unseen {
    /// Texts that it may read as scripts.
    pub(super) scripts: Vec<String>,
    /// Commands that dash runs where bash reckons.
    pub(super) commands: Vec<Vec<String>>,
    /// Whether it may run something else, too.
    pub(super) any: bool,
}

impl Readings {
    pub(super) fn new(lexed: Lexed) -> Self {
        Self {
            lexed,
            operators_passed: 0,
            nodes: Vec::new(),
            substitutions: HashMap::new(),
            comments: Vec::new(),
            has_hidden_operator: false,
        }
    }

    /// Takes note of the next node, in the order of the walk.
    pub(super) fn note(&mut self, node: Node<'_>) {
        let (start, end) = (node.start_byte(), node.end_byte());
        self.pass_operators(start);
        while self.nodes.last().is_some_and(|it| it.0 <= start) {
            self.nodes.pop();
        }
        let kind = node.kind();
        self.nodes.push((end, TEXT.contains(&kind)));
        match kind {
            "command_substitution" => self.substitution(Form::Command, start, end),
            "process_substitution" => self.substitution(Form::Process, start, end),
            "((" => self.substitution(Form::Group, start, end),
            "comment" => self.comments.push(start..end),
            _ => {}
        }
    }

    fn substitution(&mut self, form: Form, start: usize, end: usize) {
        self.substitutions.insert((start, form), end);
    }

    /// Looks at the operators before a place, each in the innermost node around it.
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

    /// What the tree does not show, once the walk is over.
    pub(super) fn unseen(mut self, text: &str) -> Unseen {
        self.pass_operators(text.len());
        let mut unseen = Unseen {
            scripts: Vec::new(),
            commands: self
                .lexed
                .groups
                .iter()
                .flat_map(|it| commands(&text[it.clone()]))
                .collect(),
            any: self.lexed.is_lost || self.has_hidden_operator,
        };
        let mut seen_to = 0;
        for it in &self.lexed.substitutions {
            // What stands in a script that is read again is found there.
            if it.start < seen_to || self.is_in_tree(it, text) {
                continue;
            }
            seen_to = it.end;
            unseen.scripts.push(it.script(text));
            unseen.any |= it.form != Form::Backquotes;
        }
        for comment in &self.comments {
            if self.lexed.comments.binary_search(&comment.start).is_err() {
                let behind = text[comment.clone()].trim_start_matches(['#', ';', '&', '|', ' ']);
                unseen.scripts.push(behind.to_owned());
                unseen.any = true;
            }
        }
        unseen
    }

    fn is_in_tree(&self, it: &Substitution, text: &str) -> bool {
        let has = |form| self.substitutions.get(&(it.start, form)) == Some(&it.end);
        match it.form {
            Form::Command => has(Form::Command),
            Form::Backquotes => has(Form::Command) && !text[it.start..it.end].contains('\\'),
            Form::Process => has(Form::Process),
            // The walk knows what is in arithmetic, and substitutions in it are listed by themselves.
            Form::Arithmetic => true,
            Form::Group => !self.substitutions.contains_key(&(it.start, Form::Group)),
        }
    }
}

/// The commands in what to bash is arithmetic, without those that begin with what only a number can be.
fn commands(text: &str) -> Vec<Vec<String>> {
    let parts = text.split([';', '&', '|', '(', ')', '\n', '!']);
    let words = parts.map(|it| {
        let words = it.split_whitespace();
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
