//! Check that public functions fail with a typed error, and not with a text: a caller cannot tell
//! the cases of a text apart, and cannot tell it from other texts.
//!
//! A function is public if it is `pub` in any form, or belongs to such a trait.

use super::{code_lines, is_product_code, without_tests};
use crate::repository::Tree;

/// Error types that hold a text and nothing else.
const TEXTS: [&str; 2] = ["String", "&'static str"];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| is_product_code(path)) {
        for (line, signature) in public_signatures(without_tests(text)) {
            if let Some(error) = text_error(&signature) {
                problems.push(format!(
                    "{path}:{line}: this public function fails with a `{error}`; return an error \
                     type of the crate, whose `Display` is the text"
                ));
            }
        }
    }
    problems
}

/// Returns the signatures of public functions, each with the number of its first line.
fn public_signatures(text: &str) -> Vec<(usize, String)> {
    let mut signatures: Vec<(usize, String)> = Vec::new();
    let mut is_in_trait = false;
    let mut is_open = false;
    for (number, line) in code_lines(text) {
        let code = line.trim_start();
        let public = without_visibility(code);
        is_in_trait |= public.is_some_and(|it| it.starts_with("trait "));
        is_in_trait &= line != "}";
        let declaration = public.or(is_in_trait.then_some(code));
        if !is_open && declaration.is_some_and(is_function) {
            signatures.push((number, String::new()));
            is_open = true;
        }
        if is_open && let Some((_, signature)) = signatures.last_mut() {
            // It ends with the body, or with the declaration of a trait.
            let head = code.split('{').next().unwrap_or_default();
            signature.push_str(head.trim_end_matches(';'));
            signature.push(' ');
            is_open = head == code && !code.ends_with(';');
        }
    }
    signatures
}

/// Returns a declaration without its visibility, if it is public.
fn without_visibility(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("pub")?;
    let scope = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
    Some(scope.map_or(rest, |(_, it)| it).trim_start())
}

fn is_function(declaration: &str) -> bool {
    let modifiers = ["const", "async", "unsafe"];
    let mut words = declaration.split(' ');
    words.find(|it| !modifiers.contains(it)) == Some("fn")
}

/// Returns the error type of a signature, if that is a text.
fn text_error(signature: &str) -> Option<&str> {
    let returned = return_type(signature)?;
    let mut results = returned.match_indices("Result<");
    results.find_map(|(at, name)| {
        let error = second_argument(&returned[at + name.len()..])?;
        TEXTS.contains(&error).then_some(error)
    })
}

/// Returns the part of a signature after the arrow that is in no bracket.
fn return_type(signature: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, it) in signature.char_indices() {
        let is_arrow = it == '>' && signature[..at].ends_with('-');
        match it {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if is_arrow && depth == 0 => return signature[at + 1..].split(" where ").next(),
            '>' if !is_arrow => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the second of the generic arguments that a text begins with.
fn second_argument(text: &str) -> Option<&str> {
    let mut depth = 0;
    let mut begin = None;
    for (at, it) in text.char_indices() {
        match it {
            '(' | '[' | '<' => depth += 1,
            '>' if text[..at].ends_with('-') => {}
            ')' | ']' | '>' if depth > 0 => depth -= 1,
            '>' => return Some(text[begin?..at].trim().trim_end_matches(',')),
            ',' if depth == 0 && begin.is_none() => begin = Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_as_the_error_of_a_public_function_is_reported() {
        for (text, expected) in [
            ("pub fn a() -> Result<u8, String> {\n", true),
            ("pub(super) fn a() -> Option<Result<(), String>> {\n", true),
            (
                "pub const fn a(it: [u8; 2]) -> Result<u8, &'static str> {\n",
                true,
            ),
            (
                "    pub(crate) async fn a<T>(\n        it: &T,\n    ) -> Result<\n        Vec<(u8, T)>,\n        \
                 String,\n    >\n    where\n        T: Sized,\n    {\n",
                true,
            ),
            (
                "pub trait A {\n    fn a(&self) -> BoxFuture<'_, Result<(), String>>;\n}\n",
                true,
            ),
            ("fn a() -> Result<u8, String> {\n", false),
            ("trait A {\n    fn a() -> Result<u8, String>;\n}\n", false),
            (
                "pub trait A {\n    fn a();\n}\n\nimpl B {\n    fn b() -> Result<u8, String> {\n",
                false,
            ),
            ("pub fn a() -> Result<String, Error> {\n", false),
            ("pub fn a() -> io::Result<String> {\n", false),
            ("pub fn a() -> (Result<u8, Error>, String) {\n", false),
            (
                "pub fn a(it: impl Fn(&str) -> Result<u8, String>) -> Result<u8, Error> {\n",
                false,
            ),
            (
                "pub fn a<F>(it: F) -> u8\nwhere\n    F: Fn() -> Result<u8, String>,\n{\n",
                false,
            ),
            ("// pub fn a() -> Result<u8, String> {\n", false),
            (
                "#[cfg(test)]\nmod tests {\n    pub fn a() -> Result<u8, String> {\n",
                false,
            ),
        ] {
            let reported = check(&Tree::of(&[("crates/raddle-x/src/a.rs", text)]));
            assert_eq!(
                reported.len(),
                usize::from(expected),
                "{text}: {reported:?}"
            );
        }
    }

    #[test]
    fn report_names_the_line_of_the_function() {
        let text = "//! A.\n\npub fn a(\n    it: u8,\n) -> Result<u8, String> {\n";
        let reported = check(&Tree::of(&[
            ("crates/raddle-x/src/a.rs", text),
            ("crates/raddle-x/tests/it/a.rs", text),
            ("xtask/src/a.rs", text),
        ]));
        assert_eq!(reported.len(), 1, "{reported:?}");
        let begin = "crates/raddle-x/src/a.rs:3: this public function fails with a `String`;";
        assert!(reported[0].starts_with(begin), "{reported:?}");
    }
}
