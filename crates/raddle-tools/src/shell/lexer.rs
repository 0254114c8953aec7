//! Lexes a script by its quotes alone: substitutions, operators and words.
//!
//! It is a second opinion to the parser, which treats some text as quoted that a shell expands.
//! Text on which both disagree is treated as an unknown command.

use std::ops::Range;

/// Maximum nesting of quotes, braces and parentheses.
const DEPTH_MAX: usize = 200;

/// Maximum nesting of heredocs in the substitutions of heredocs.
const HEREDOCS_MAX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SubstitutionForm {
    /// A command in `$(…)`.
    Command,
    /// A command between backquotes.
    Backquotes,
    /// A command in `<(…)` or `>(…)`.
    Process,
    /// An arithmetic expression in `$((…))`.
    Arithmetic,
    /// `((…)…)`, which looks like arithmetic but is a command.
    Group,
}

/// A range that a shell substitutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Substitution {
    pub(super) form: SubstitutionForm,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Substitution {
    /// Returns the script in it, as the shell that runs it reads it.
    pub(super) fn script(&self, text: &str) -> String {
        let inner = &text[self.start..self.end];
        match self.form {
            SubstitutionForm::Backquotes => unescaped(&inner[1..inner.len() - 1]),
            SubstitutionForm::Group => inner.to_owned(),
            _ => inner[2..inner.len() - 1].to_owned(),
        }
    }
}

/// Removes the backslashes that backquotes require.
fn unescaped(raw: &str) -> String {
    let mut out = String::new();
    let mut letters = raw.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_escaped = letters.peek().is_some_and(|it| "`\\$\"".contains(*it));
        match (letter, is_escaped) {
            ('\\', true) => out.extend(letters.next()),
            _ => out.push(letter),
        }
    }
    out
}

/// The result of lexing a script.
#[derive(Debug, Default)]
pub(super) struct LexedScript {
    /// Substitutions, ordered by start.
    pub(super) substitutions: Vec<Substitution>,
    /// Offsets at which `;`, `&`, `|` and line ends are operators, in order.
    pub(super) operators: Vec<usize>,
    /// Offsets of comments, in order.
    pub(super) comments: Vec<usize>,
    /// Words outside heredocs and quotes, in order. A descriptor number before `<` or `>` does not
    /// count.
    pub(super) words: Vec<Range<usize>>,
    /// The text in `((…))`: arithmetic to bash, a script to dash.
    pub(super) groups: Vec<Range<usize>>,
    /// Whether dash sees other quotes in it, or commands where bash sees arithmetic.
    pub(super) has_bash_quotes: bool,
    /// Whether a construct is never closed, or unknown.
    pub(super) is_lost: bool,
}

impl LexedScript {
    /// Returns text that bash reads inside `[[…]]` or after `&>`, and dash as a command.
    pub(super) fn bash_parts(&self, text: &str) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let next_operator = |from: usize| {
            let at = self.operators.partition_point(|it| *it < from);
            self.operators.get(at).copied().unwrap_or(text.len())
        };
        let mut open = None;
        for word in &self.words {
            match &text[word.clone()] {
                "[[" => open = Some(word.end),
                "]]" => {
                    let start = open.take().map_or(word.start, next_operator);
                    parts.extend((start < word.start).then_some(start..word.start));
                }
                _ => {}
            }
        }
        for at in &self.operators {
            if !text[*at..].starts_with("&>") {
                continue;
            }
            let context = self.words.partition_point(|it| it.start < *at);
            let start = self.words.get(context).map_or(text.len(), |it| it.end);
            let end = next_operator(at + 1);
            let has_text =
                start < end && !text[start..end].trim_matches([' ', ')', '}']).is_empty();
            parts.extend(has_text.then_some(start..end));
        }
        parts
    }
}

pub(super) fn lex(text: &str) -> LexedScript {
    let mut lexer = Lexer {
        text: text.as_bytes(),
        at: 0,
        end: text.len(),
        out: LexedScript::default(),
        contexts: vec![Context::Script { cases: 0 }],
        heredocs: Vec::new(),
        heredoc_depth: 0,
        is_word_start: true,
        open_words: vec![None],
        has_brackets: false,
        has_quoted_substitution: false,
    };
    lexer.run();
    let mut out = lexer.out;
    out.is_lost |= lexer.has_brackets && lexer.has_quoted_substitution;
    out.substitutions.sort_by_key(|it| it.start);
    out.operators.sort_unstable();
    out.comments.sort_unstable();
    out.words.sort_by_key(|it| it.start);
    out.has_bash_quotes |= lexer.has_brackets;
    out
}

/// The construct that the lexer is in.
#[derive(Clone, Copy, Debug)]
enum Context {
    Script {
        cases: usize,
    },
    Paren {
        form: Option<SubstitutionForm>,
        start: usize,
        cases: usize,
        /// Whether it is the second of two adjacent parentheses.
        is_second: bool,
        /// Whether the two adjacent parentheses are also closed together.
        is_arithmetic: bool,
    },
    /// Between double quotes.
    Quotes,
    /// In an unquoted heredoc.
    Heredoc,
    Brace {
        is_quoted: bool,
        has_single_quotes: bool,
    },
}

struct Heredoc {
    delimiter: Vec<u8>,
    is_literal: bool,
    has_tabs: bool,
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    end: usize,
    out: LexedScript,
    contexts: Vec<Context>,
    heredocs: Vec<Heredoc>,
    heredoc_depth: usize,
    is_word_start: bool,
    /// Start of the current word, for the script and for each parenthesis around the context.
    open_words: Vec<Option<usize>>,
    /// Whether there is `$[…]`, which is arithmetic too.
    has_brackets: bool,
    has_quoted_substitution: bool,
}

impl Lexer<'_> {
    fn run(&mut self) {
        let depth = self.contexts.len();
        while self.at < self.end && !self.out.is_lost {
            if self.contexts.len() > DEPTH_MAX {
                self.out.is_lost = true;
                return;
            }
            match self.contexts[self.contexts.len() - 1] {
                Context::Script { .. } | Context::Paren { .. } => self.bare(),
                Context::Quotes => self.quoted(Some(b'"')),
                Context::Heredoc => self.quoted(None),
                Context::Brace {
                    is_quoted,
                    has_single_quotes,
                } => self.brace(is_quoted, has_single_quotes),
            }
        }
        self.out.is_lost |= self.contexts.len() != depth || self.at > self.end;
        self.end_word();
    }

    /// Records whether the next byte outside quotes is part of a word.
    fn pass_word(&mut self) {
        let (byte, next) = (self.peek(0), self.peek(1));
        let is_part = match byte {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' => false,
            b'<' | b'>' => next == b'(',
            b'#' => !self.is_word_start,
            _ => true,
        };
        if !is_part {
            return self.end_word();
        }
        let at = self.at;
        if let Some(open @ None) = self.open_words.last_mut()
            && (byte, next) != (b'\\', b'\n')
        {
            *open = Some(at);
        }
    }

    fn end_word(&mut self) {
        let Some(start) = self.open_words.last_mut().and_then(Option::take) else {
            return;
        };
        let is_redirect = b"<>".contains(&self.peek(0));
        let is_digit = |it: &u8| it.is_ascii_digit();
        if !is_redirect || !self.text[start..self.at].iter().all(is_digit) {
            self.out.words.push(start..self.at.min(self.end));
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        let at = self.at + ahead;
        match at < self.end {
            true => self.text[at],
            false => 0,
        }
    }

    fn skip(&mut self, count: usize) {
        self.at += count;
        self.is_word_start = false;
    }

    /// Lexes a step outside quotes.
    fn bare(&mut self) {
        self.pass_word();
        let byte = self.peek(0);
        match byte {
            b'\\' => {
                let is_continued = self.peek(1) == b'\n';
                self.at += 2;
                self.is_word_start &= is_continued;
            }
            b'\'' => self.single(),
            b'"' => self.open(Context::Quotes, 1),
            b'`' => self.backquotes(),
            b'$' => self.dollar(false, true),
            b'<' | b'>' if self.peek(1) == b'(' => self.paren(Some(SubstitutionForm::Process), 2),
            b'<' if self.peek(1) == b'<' && self.peek(2) == b'<' => self.blank(3),
            b'<' if self.peek(1) == b'<' && !self.is_in_arithmetic() => self.heredoc(),
            b'(' => {
                let form = (self.peek(1) == b'(').then_some(SubstitutionForm::Group);
                self.paren(form, 1);
            }
            b')' => self.close_paren(),
            b'#' if self.is_word_start => {
                self.out.comments.push(self.at);
                let rest = &self.text[self.at..self.end];
                let length = rest.iter().position(|it| *it == b'\n');
                self.at += length.unwrap_or(rest.len());
            }
            b';' | b'&' | b'|' => {
                self.out.operators.push(self.at);
                self.blank(1);
            }
            b'\n' => {
                self.out.operators.push(self.at);
                self.blank(1);
                self.bodies();
            }
            b' ' | b'\t' | b'<' | b'>' => self.blank(1),
            _ if self.is_word_start && (byte == b'c' || byte == b'e') => {
                self.case_word();
                self.skip(1);
            }
            _ => self.skip(1),
        }
    }

    fn blank(&mut self, count: usize) {
        self.at += count;
        self.is_word_start = true;
    }

    /// Lexes a step between double quotes, or in a heredoc.
    fn quoted(&mut self, end: Option<u8>) {
        match self.peek(0) {
            b'\\' => self.skip(2),
            b'`' => self.backquotes(),
            b'$' => self.dollar(true, false),
            byte if Some(byte) == end => {
                self.contexts.pop();
                self.skip(1);
            }
            _ => self.skip(1),
        }
    }

    /// Lexes a step in `${…}`.
    fn brace(&mut self, is_quoted: bool, has_single_quotes: bool) {
        match self.peek(0) {
            b'\\' => self.skip(2),
            b'}' => {
                self.contexts.pop();
                self.skip(1);
            }
            b'\'' if has_single_quotes => self.single(),
            b'"' => self.open(Context::Quotes, 1),
            b'`' => self.backquotes(),
            b'$' => self.dollar(is_quoted, has_single_quotes),
            b'<' | b'>' if !is_quoted && self.peek(1) == b'(' => {
                self.paren(Some(SubstitutionForm::Process), 2);
            }
            _ => self.skip(1),
        }
    }

    fn open(&mut self, context: Context, count: usize) {
        self.contexts.push(context);
        self.skip(count);
    }

    fn single(&mut self) {
        let rest = &self.text[self.at + 1..self.end];
        match rest.iter().position(|it| *it == b'\'') {
            Some(length) => {
                self.pass_literal(self.at + 1..self.at + 1 + length);
                self.skip(length + 2);
            }
            None => self.out.is_lost = true,
        }
    }

    /// Checks the text between single quotes, which are ordinary characters in arithmetic.
    fn pass_literal(&mut self, range: Range<usize>) {
        let inner = &self.text[range];
        let substitutes = inner.contains(&b'`') || inner.windows(2).any(|it| it == b"$(");
        self.has_quoted_substitution |= substitutes;
        self.out.is_lost |= substitutes && self.is_in_arithmetic();
    }

    /// Returns the next position of a byte without a backslash before it.
    fn unescaped_end(&self, from: usize, byte_to_find: u8) -> Option<usize> {
        let mut at = from;
        while at < self.end {
            match self.text[at] {
                b'\\' => at += 2,
                byte if byte == byte_to_find => return Some(at),
                _ => at += 1,
            }
        }
        None
    }

    /// Lexes backquotes. A shell searches for the second one before it looks at the text between
    /// them.
    fn backquotes(&mut self) {
        let Some(last) = self.unescaped_end(self.at + 1, b'`') else {
            self.out.is_lost = true;
            return;
        };
        self.out.substitutions.push(Substitution {
            form: SubstitutionForm::Backquotes,
            start: self.at,
            end: last + 1,
        });
        if !self.text[self.at..last].contains(&b'\\') {
            // Text with backslashes is lexed again by itself instead.
            self.at += 1;
            self.inner(Context::Script { cases: 0 }, last);
            self.at = last;
        }
        self.skip(last + 1 - self.at);
    }

    fn dollar(&mut self, is_quoted: bool, has_single_quotes: bool) {
        match self.peek(1) {
            b'(' => self.paren(Some(SubstitutionForm::Command), 2),
            b'{' => {
                // In later versions of bash these begin a script.
                if b" \t\n|(".contains(&self.peek(2)) {
                    self.out.is_lost = true;
                    return;
                }
                let context = Context::Brace {
                    is_quoted,
                    has_single_quotes: !is_quoted || self.is_about_pattern(),
                };
                self.open(context, 2);
            }
            b'[' => {
                self.has_brackets = true;
                self.skip(1);
            }
            b'\'' if has_single_quotes => match self.unescaped_end(self.at + 2, b'\'') {
                Some(last) => {
                    let inner = &self.text[self.at + 2..last];
                    self.out.has_bash_quotes |= inner.contains(&b'\'');
                    self.pass_literal(self.at + 2..last);
                    self.skip(last + 1 - self.at);
                }
                None => self.out.is_lost = true,
            },
            _ => self.skip(1),
        }
    }

    /// Whether `${…}` contains a pattern, in which single quotes are quotes even between double
    /// quotes.
    fn is_about_pattern(&self) -> bool {
        let mut rest = &self.text[self.at + 2..self.end];
        if let [b'!', next, ..] = rest
            && *next != b'}'
        {
            rest = &rest[1..];
        }
        let is_name = |it: &u8| it.is_ascii_alphanumeric() || *it == b'_';
        let length = rest.iter().take_while(|it| is_name(it)).count();
        rest = rest.get(length.max(1)..).unwrap_or_default();
        if rest.first() == Some(&b'[') {
            let length = rest.iter().position(|it| *it == b']');
            rest = length.map_or(&[][..], |it| &rest[it + 1..]);
        }
        rest.first().is_some_and(|it| b"#%/^,".contains(it))
    }

    fn paren(&mut self, form: Option<SubstitutionForm>, count: usize) {
        let is_second = match self.contexts.last() {
            Some(Context::Paren {
                form: Some(outer),
                start,
                ..
            }) => *outer != SubstitutionForm::Process && self.at == start + open_bytes(*outer),
            _ => false,
        };
        self.contexts.push(Context::Paren {
            form,
            start: self.at,
            cases: 0,
            is_second,
            is_arithmetic: false,
        });
        self.open_words.push(None);
        self.blank(count);
    }

    fn is_in_arithmetic(&self) -> bool {
        for context in self.contexts.iter().rev() {
            if let Context::Paren {
                form, is_second, ..
            } = context
            {
                if *is_second {
                    return true;
                }
                if matches!(
                    form,
                    Some(SubstitutionForm::Command | SubstitutionForm::Process)
                ) {
                    return false;
                }
            }
        }
        false
    }

    fn close_paren(&mut self) {
        match self.contexts.last_mut() {
            Some(Context::Script { cases } | Context::Paren { cases, .. }) if *cases > 0 => {
                return self.blank(1);
            }
            _ => {}
        }
        let Some(Context::Paren {
            form,
            start,
            is_second,
            is_arithmetic,
            ..
        }) = self.contexts.last().copied()
        else {
            self.out.is_lost = true;
            return;
        };
        self.contexts.pop();
        self.open_words.pop();
        if is_second
            && self.peek(1) == b')'
            && let Some(Context::Paren { is_arithmetic, .. }) = self.contexts.last_mut()
        {
            *is_arithmetic = true;
        }
        self.skip(1);
        if form == Some(SubstitutionForm::Group) && is_arithmetic {
            self.out.groups.push(start + 2..self.at - 2);
        }
        let form = match form {
            Some(SubstitutionForm::Command) if is_arithmetic => Some(SubstitutionForm::Arithmetic),
            Some(SubstitutionForm::Group) if is_arithmetic => None,
            form => form,
        };
        self.out.substitutions.extend(form.map(|form| Substitution {
            form,
            start,
            end: self.at,
        }));
    }

    /// Counts the keyword `case`, in which closing parentheses have no opening ones.
    fn case_word(&mut self) {
        let rest = &self.text[self.at..self.end];
        let ends = rest
            .get(4)
            .is_none_or(|it| !it.is_ascii_alphanumeric() && *it != b'_');
        if let Some(Context::Script { cases } | Context::Paren { cases, .. }) =
            self.contexts.last_mut()
            && ends
        {
            match &rest[..rest.len().min(4)] {
                b"case" if rest.len() > 4 => *cases += 1,
                b"esac" => *cases = cases.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Lexes the word after `<<`.
    fn heredoc(&mut self) {
        self.at += 2;
        let has_tabs = self.peek(0) == b'-';
        self.at += usize::from(has_tabs);
        while b" \t".contains(&self.peek(0)) {
            self.at += 1;
        }
        let (mut delimiter, mut is_literal) = (Vec::new(), false);
        while self.at < self.end {
            match self.peek(0) {
                b'\\' => {
                    is_literal = true;
                    delimiter.push(self.peek(1));
                    self.at += 2;
                }
                quote @ (b'\'' | b'"') => {
                    is_literal = true;
                    let rest = &self.text[self.at + 1..self.end];
                    let Some(length) = rest.iter().position(|it| *it == quote) else {
                        self.out.is_lost = true;
                        return;
                    };
                    delimiter.extend(&rest[..length]);
                    self.at += length + 2;
                }
                // Shells do not agree on the meaning of these in such a word.
                b'$' | b'`' => {
                    self.out.is_lost = true;
                    return;
                }
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
                byte => {
                    delimiter.push(byte);
                    self.at += 1;
                }
            }
        }
        self.is_word_start = false;
        self.heredocs.push(Heredoc {
            delimiter,
            is_literal,
            has_tabs,
        });
    }

    /// Lexes the heredocs of the line that just ended.
    fn bodies(&mut self) {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let start = self.at;
            let (mut line, mut end) = (start, self.end);
            while line < self.end {
                let rest = &self.text[line..self.end];
                let length = rest.iter().position(|it| *it == b'\n');
                let length = length.unwrap_or(rest.len());
                let tabs = rest.iter().take_while(|it| **it == b'\t').count();
                let skipped = if heredoc.has_tabs { tabs } else { 0 };
                if rest[..length].get(skipped..) == Some(&heredoc.delimiter) {
                    end = line;
                    break;
                }
                line += length + 1;
            }
            if !heredoc.is_literal {
                self.body(end);
            }
            self.at = self.end.min(match end < self.end {
                true => {
                    line + self.text[line..]
                        .iter()
                        .take_while(|it| **it != b'\n')
                        .count()
                }
                false => end,
            });
            if self.at < self.end {
                self.out.operators.push(self.at);
                self.at += 1;
            }
        }
        self.is_word_start = true;
    }

    /// Lexes an unquoted heredoc up to its end.
    fn body(&mut self, end: usize) {
        if self.heredoc_depth == HEREDOCS_MAX {
            self.out.is_lost = true;
            return;
        }
        self.heredoc_depth += 1;
        self.inner(Context::Heredoc, end);
        self.heredoc_depth -= 1;
    }

    /// Lexes up to an end, with a fresh context.
    fn inner(&mut self, context: Context, end: usize) {
        let contexts = std::mem::replace(&mut self.contexts, vec![context]);
        let open_words = std::mem::replace(&mut self.open_words, vec![None]);
        let heredocs = std::mem::take(&mut self.heredocs);
        let outer_end = std::mem::replace(&mut self.end, end);
        self.is_word_start = true;
        self.run();
        self.end = outer_end;
        self.heredocs = heredocs;
        self.open_words = open_words;
        self.contexts = contexts;
    }
}

fn open_bytes(form: SubstitutionForm) -> usize {
    match form {
        SubstitutionForm::Group => 1,
        _ => 2,
    }
}
