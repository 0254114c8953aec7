//! Check that no crate but the protocol lists methods by name. Such a list restates a property of
//! the methods, and a new method is easily forgotten in it. The property belongs in the method
//! table, as an attribute.
//!
//! A list is an array, a pattern or a condition that names two or more methods, each by its string
//! or by the `NAME` of its type. An array may also name them in its rows: tuples, structs and calls
//! count by the first method that they name. Arms of a match and statements are counted separately:
//! they do something different for each method.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::replace;

use super::{code_lines, is_product_code, without_tests};
use crate::repository::Tree;

/// The method table.
const TABLE: &str = "crates/raddle-protocol/src/methods.rs";

/// The crate that may list methods.
const PROTOCOL: &str = "crates/raddle-protocol/";

/// Files whose arrays may have rows that name methods. The rows are members of params, and
/// `tests/it/bounds.rs` of the server fails if a method with such a member is forgotten.
const ROW_FILES: &[&str] = &["crates/raddle-server/src/gate/bounds.rs"];

pub fn check(tree: &Tree) -> Vec<String> {
    let methods = Methods::read(tree.text(TABLE).unwrap_or_default());
    if methods.names.is_empty() {
        return vec![format!(
            "{TABLE} has no line `\"name\" => Type`; if the method table has moved, tell tidy where"
        )];
    }
    let mut problems = Vec::new();
    for (path, text) in tree.texts() {
        if !is_product_code(path) || path.starts_with(PROTOCOL) {
            continue;
        }
        for list in lists(without_tests(text), &methods) {
            if list.has_rows && ROW_FILES.contains(&path) {
                continue;
            }
            let names: Vec<String> = list.names.iter().map(|it| format!("`{it}`")).collect();
            problems.push(format!(
                "{path}:{}: this lists methods by name ({}); use an attribute of the table in \
                 {TABLE}, or add one there",
                list.line,
                names.join(", ")
            ));
        }
    }
    problems
}

/// The methods of the table.
struct Methods<'a> {
    names: BTreeSet<&'a str>,
    /// Names by the types of the methods.
    types: BTreeMap<&'a str, &'a str>,
}

impl<'a> Methods<'a> {
    fn read(table: &'a str) -> Self {
        let mut names = BTreeSet::new();
        let mut types = BTreeMap::new();
        for (_, line) in code_lines(table) {
            let row = line.trim_start().strip_prefix('"');
            if let Some((name, rest)) = row.and_then(|it| it.split_once("\" => ")) {
                names.insert(name);
                types.insert(word(rest), name);
            }
        }
        Self { names, types }
    }

    /// Returns the method that the first of these tokens name.
    fn named_by(&self, tokens: &[(usize, Token<'_>)]) -> Option<&'a str> {
        let token = |at: usize| tokens.get(at).map(|(_, it)| *it);
        let is_path = token(1) == Some(Token::Symbol(':'));
        match token(0)? {
            Token::Text(name) => self.names.get(name).copied(),
            Token::Word(name) if is_path && token(3) == Some(Token::Word("NAME")) => {
                self.types.get(name).copied()
            }
            _ => None,
        }
    }
}

/// A list of methods in a file.
#[derive(Default)]
struct MethodList<'a> {
    /// The bracket around it, if it is in one.
    bracket: Option<char>,
    /// The line of the first name.
    line: usize,
    names: Vec<&'a str>,
    /// Whether it names methods in rows of an array.
    has_rows: bool,
}

impl<'a> MethodList<'a> {
    fn inside(bracket: char) -> Self {
        Self {
            bracket: Some(bracket),
            ..Self::default()
        }
    }

    fn is_array(&self) -> bool {
        self.bracket == Some('[')
    }

    /// Adds the first method of a row, if this is an array.
    fn add_row(&mut self, row: &Self) {
        if let Some(&name) = row.names.first().filter(|_| self.is_array()) {
            self.add(row.line, name);
            self.has_rows = true;
        }
    }

    /// Returns the names so far, and begins anew in the same bracket.
    fn split_off(&mut self) -> Self {
        let rest = Self {
            bracket: self.bracket,
            ..Self::default()
        };
        replace(self, rest)
    }

    fn add(&mut self, line: usize, name: &'a str) {
        if self.names.is_empty() {
            self.line = line;
        }
        if !self.names.contains(&name) {
            self.names.push(name);
        }
    }
}

/// Returns the lists of methods in a piece of code, in the order in which they end.
fn lists<'a>(code: &str, methods: &Methods<'a>) -> Vec<MethodList<'a>> {
    let tokens = tokens(code);
    // One for each open bracket, and one for the file.
    let mut open = vec![MethodList::default()];
    let mut ended = Vec::new();
    for (at, (line, token)) in tokens.iter().enumerate() {
        if let (Some(name), Some(list)) = (methods.named_by(&tokens[at..]), open.last_mut()) {
            list.add(*line, name);
        }
        let is_in_array = open.last().is_some_and(MethodList::is_array);
        match token {
            Token::Symbol(bracket @ ('(' | '[')) => open.push(MethodList::inside(*bracket)),
            // A struct.
            Token::Symbol('{') if is_in_array => open.push(MethodList::inside('{')),
            Token::Symbol(')' | ']' | '}') => {
                let list = open.pop();
                if let (Some(list), Some(outer)) = (&list, open.last_mut()) {
                    outer.add_row(list);
                }
                ended.extend(list);
            }
            // The end of a condition, and the beginning of its block.
            Token::Symbol('{') => {
                ended.extend(open.pop());
                open.extend([MethodList::default(), MethodList::default()]);
            }
            // The end of a statement or of a pattern.
            Token::Symbol(';') | Token::Arrow => {
                ended.extend(open.last_mut().map(MethodList::split_off));
            }
            _ => {}
        }
    }
    ended.extend(open);
    ended.retain(|list| list.names.len() > 1);
    ended
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// The content of a string.
    Text(&'a str),
    /// An identifier, a keyword or a number.
    Word(&'a str),
    /// `=>`.
    Arrow,
    /// Any other character.
    Symbol(char),
}

/// Splits code into tokens with their lines, without white space and comments.
fn tokens(code: &str) -> Vec<(usize, Token<'_>)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let (token, length) = next_token(rest, first);
        tokens.extend(token.map(|it| (line, it)));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Returns the token at the beginning of the code, unless it is white space or a comment, and the
/// number of its bytes.
fn next_token(code: &str, first: char) -> (Option<Token<'_>>, usize) {
    let until = |end: &str| code.find(end).map_or(code.len(), |at| at + end.len());
    if code.starts_with("//") {
        return (None, until("\n"));
    }
    if code.starts_with("/*") {
        return (None, until("*/"));
    }
    if code.starts_with("=>") {
        return (Some(Token::Arrow), 2);
    }
    if let Some((text, length)) = string(code) {
        return (Some(Token::Text(text)), length);
    }
    if let Some(length) = character(code) {
        return (None, length);
    }
    match word(code) {
        "" if first.is_whitespace() => (None, first.len_utf8()),
        "" => (Some(Token::Symbol(first)), first.len_utf8()),
        word => (Some(Token::Word(word)), word.len()),
    }
}

/// Returns the content of the string at the beginning of the code, and the length of the whole
/// literal.
fn string(code: &str) -> Option<(&str, usize)> {
    let prefix = ["br", "r"].into_iter().find(|it| code.starts_with(it));
    let Some(prefix) = prefix else {
        let content = code.strip_prefix('"')?;
        let mut is_escaped = false;
        let end = content.find(|it: char| {
            let is_end = it == '"' && !is_escaped;
            is_escaped = it == '\\' && !is_escaped;
            is_end
        });
        let end = end.unwrap_or(content.len());
        return Some((&content[..end], code.len().min(end + 2)));
    };
    let rest = &code[prefix.len()..];
    let quoted = rest.trim_start_matches('#');
    let hashes = &rest[..rest.len() - quoted.len()];
    let content = quoted.strip_prefix('"')?;
    let end = content.find(&format!("\"{hashes}"))?;
    let length = prefix.len() + hashes.len() + 1 + end + 1 + hashes.len();
    Some((&content[..end], length))
}

/// Returns the length of the character literal at the beginning of the code. A lifetime is not one.
fn character(code: &str) -> Option<usize> {
    let content = code.strip_prefix('\'')?;
    if content.starts_with('\\') {
        // The character after the backslash may be a quote.
        let end = content.get(2..)?.find('\'')?;
        return Some(1 + 2 + end + 1);
    }
    let letter = content.chars().next()?;
    let is_closed = content[letter.len_utf8()..].starts_with('\'');
    is_closed.then_some(1 + letter.len_utf8() + 1)
}

/// Returns the word at the beginning of the code, which may be empty.
fn word(code: &str) -> &str {
    let end = code.find(|it: char| !it.is_alphanumeric() && it != '_');
    &code[..end.unwrap_or(code.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "methods! {\n    /// Reads.\n    \"fs/readFile\" => FsReadFile(Params) -> \
        Response,\n        Core;\n\n    \"turn/start\" => TurnStart(Params) -> Response,\n        \
        Core;\n\n    \"account/logout\" => AccountLogout -> Response,\n        Useful;\n}\n";

    fn problems(path: &str, code: &str) -> Vec<String> {
        check(&Tree::of(&[(TABLE, ROWS), (path, code)]))
    }

    #[test]
    fn every_list_is_reported() {
        for code in [
            r#"const A: &[&str] = &["fs/readFile", "turn/start"];"#,
            r#"const A: [&str; 3] = ["fs/readFile", "other", "account/logout"];"#,
            r#"fn f(m: &str) -> bool { matches!(m, "fs/readFile" | "turn/start") }"#,
            "fn f(m: &str) -> bool { matches!(m, FsReadFile::NAME | methods::TurnStart::NAME) }",
            r#"fn f(m: &str) { match m { "fs/readFile" | "turn/start" => g(), _ => {} } }"#,
            r#"fn f(m: &str) -> bool { m == "fs/readFile" || m == AccountLogout::NAME }"#,
            r#"fn f(m: &str) { if m == "fs/readFile" || m == "turn/start" { g() } }"#,
            r#"fn f(m: &str) -> bool { ["fs/readFile", "turn/start"].contains(&m) }"#,
            r#"const A: &[(&str, &str)] = &[("fs/readFile", "path"), ("turn/start", "cwd")];"#,
            r#"const A: &[(u8, &str)] = &[(1, "fs/readFile"), (2, methods::TurnStart::NAME)];"#,
            r#"const A: &[Row] = &[Row { name: "fs/readFile" }, Row { name: "turn/start" }];"#,
            r#"fn f() { g([h("fs/readFile"), h("turn/start")]) }"#,
            "const A: &[&str] = &[\n    // One.\n    r\"fs/readFile\",\n    r#\"turn/start\"#,\n];",
            "#[cfg(test)]\nmod tests;\n\nconst A: [&str; 2] = [\"fs/readFile\", \"turn/start\"];",
            r#"fn f(m: &str) { g('"'); g('\''); h(&["fs/readFile", "turn/start"]) }"#,
            r#"fn f<'a>(m: &'a str) -> [&'a str; 2] { g("\""); ["fs/readFile", "turn/start"] }"#,
        ] {
            let reported = problems("crates/raddle-server/src/gate/new.rs", code);
            assert_eq!(reported.len(), 1, "{code}: {reported:?}");
        }
    }

    #[test]
    fn the_report_names_the_methods_and_the_table() {
        let code = "fn f() {}\n\nconst A: X = [\n    \"turn/start\",\n    \"fs/readFile\",\n];";
        let reported = problems("crates/raddle-client/src/new.rs", code);
        let expected = "crates/raddle-client/src/new.rs:4: this lists methods by name \
            (`turn/start`, `fs/readFile`); use an attribute of the table in \
            crates/raddle-protocol/src/methods.rs, or add one there";
        assert_eq!(reported, [expected]);
    }

    #[test]
    fn other_uses_of_names_are_accepted() {
        for code in [
            // Routes, and other matches that do something else for each method.
            "routes! {\n    \"fs/readFile\" => fs::read,\n    \"turn/start\" => turn::start,\n}",
            r#"fn f(m: &str) { match m { FsReadFile::NAME => a(), "turn/start" => b() } }"#,
            r#"fn f(m: &str) { if m == "fs/readFile" { a() } else if m == "turn/start" { b() } }"#,
            r#"fn f() { g(h("fs/readFile"), h("turn/start")) }"#,
            r#"const A: &[(&str, &str)] = &[("fs/readFile", "path"), ("fs/readFile", "cwd")];"#,
            // One name.
            r#"const A: &str = "fs/readFile"; const B: &str = "turn/start";"#,
            r#"fn f() { send("fs/readFile"); send(TurnStart::NAME, &["turn/start", "x"]); }"#,
            r#"const A: &[&str] = &["fs/readFile", "fs/readFile"];"#,
            // No names of methods.
            r#"const A: &[&str] = &["turn/started", "turn/completed"];"#,
            "use raddle_protocol::methods::{FsReadFile, TurnStart};",
            "// [\"fs/readFile\", \"turn/start\"]\n/* [\"fs/readFile\", \"turn/start\"] */",
            r##"const A: &str = r#"["fs/readFile", "turn/start"]"#;"##,
            // Tests.
            "#[cfg(test)]\nmod tests {\n    fn f() { g([\"fs/readFile\", \"turn/start\"]) }\n}",
        ] {
            let reported = problems("crates/raddle-server/src/new.rs", code);
            assert_eq!(reported, Vec::<String>::new(), "{code}");
        }
    }

    #[test]
    fn only_sources_of_other_crates_are_checked() {
        let code = r#"const A: &[&str] = &["fs/readFile", "turn/start"];"#;
        for (path, expected) in [
            ("crates/raddle-server/src/gate.rs", 1),
            ("crates/raddle-server/src/gate/tests.rs", 0),
            ("crates/raddle-server/tests/it/gate.rs", 0),
            ("crates/raddle-protocol/src/table.rs", 0),
            ("tests/crowd-trials/src/main.rs", 0),
        ] {
            assert_eq!(problems(path, code).len(), expected, "{path}");
        }
    }

    #[test]
    fn rows_are_accepted_where_they_are_members() {
        let rows = r#"const A: &[(&str, &str)] = &[("fs/readFile", "a"), ("turn/start", "b")];"#;
        let list = r#"const A: &[&str] = &["fs/readFile", "turn/start"];"#;
        for path in ROW_FILES {
            assert_eq!(problems(path, rows), Vec::<String>::new());
            assert_eq!(problems(path, list).len(), 1);
        }
    }

    #[test]
    fn missing_table_is_reported() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
        assert_eq!(check(&Tree::of(&[(TABLE, "fn main() {}")])).len(), 1);
    }
}
