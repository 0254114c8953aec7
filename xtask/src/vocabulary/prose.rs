//! Comments: those that begin with a pronoun, and doc comments that say next to nothing.

use std::fmt;

use crate::repository::Tree;

/// Words that begin a comment without a noun.
const PRONOUNS: &[&str] = &["What", "Who", "Whoever"];

/// Number of words up to which a doc comment is short.
const SHORT_WORDS_MAX: usize = 3;

/// Reports comment lines that begin with a pronoun.
pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in rust(tree) {
        for (at, line) in text.lines().enumerate() {
            if let Some(word) = pronoun(line) {
                problems.push(format!(
                    "{path}:{}: the comment begins with `{word}`; begin with the noun that it is \
                     about",
                    at + 1
                ));
            }
        }
    }
    problems
}

/// Counts over all Rust files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProseCounts {
    lines: usize,
    pronouns: usize,
    doc_comments: usize,
    short_doc_comments: usize,
}

impl ProseCounts {
    pub fn of(tree: &Tree) -> Self {
        let mut counts = Self::default();
        for (_, text) in rust(tree) {
            counts.add(text);
        }
        counts
    }

    fn add(&mut self, text: &str) {
        // Words of the doc comment that is being read.
        let mut words: Option<usize> = None;
        for line in text.lines() {
            self.lines += 1;
            self.pronouns += usize::from(pronoun(line).is_some());
            match line.trim_start_matches([' ', '\t']).strip_prefix("///") {
                Some(doc) => {
                    words = Some(words.unwrap_or_default() + doc.split_whitespace().count());
                }
                None => self.end_doc_comment(words.take()),
            }
        }
        self.end_doc_comment(words);
    }

    fn end_doc_comment(&mut self, words: Option<usize>) {
        let Some(words) = words else { return };
        self.doc_comments += 1;
        self.short_doc_comments += usize::from((1..=SHORT_WORDS_MAX).contains(&words));
    }
}

impl fmt::Display for ProseCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:>8}  lines of Rust", self.lines)?;
        writeln!(
            out,
            "{:>8}  comment lines that begin with {}",
            self.pronouns,
            PRONOUNS.join(", ")
        )?;
        writeln!(out, "{:>8}  doc comments", self.doc_comments)?;
        writeln!(
            out,
            "{:>8}  of them with {SHORT_WORDS_MAX} words or fewer",
            self.short_doc_comments
        )
    }
}

fn rust(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.texts().filter(|(path, _)| path.ends_with(".rs"))
}

/// Returns the pronoun that begins a comment on its own line.
fn pronoun(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    let comment = comment.strip_prefix(['/', '!']).unwrap_or(comment);
    let comment = comment.trim_start_matches(' ');
    let end = comment.find(|it: char| !it.is_alphanumeric() && it != '_');
    let word = &comment[..end.unwrap_or(comment.len())];
    PRONOUNS.contains(&word).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_begin_with_a_pronoun_are_reported() {
        for (line, expected) in [
            ("/// What is shown.", 1),
            ("    //! Who's there?", 1),
            ("//  Whoever asks.", 1),
            ("/// Whatever is shown.", 0),
            ("/// The text. What is shown.", 0),
            ("let x = 1; // What it is.", 0),
            ("What(1)", 0),
        ] {
            let tree = Tree::of(&[("src/lib.rs", line), ("docs/a.md", "/// What is it")]);
            assert_eq!(check(&tree).len(), expected, "{line}");
        }
    }

    #[test]
    fn doc_comments_are_counted_with_all_their_lines() {
        let text = "/// One two.\n///\n/// Three.\nfn a() {}\n\n    /// One two\n    /// three \
            four.\n    fn b() {}\n///\nfn c() {}\n//! Not this.\n// What is this?\n/// Last.";
        let counts = ProseCounts::of(&Tree::of(&[("src/lib.rs", text)]));
        let expected = ProseCounts {
            lines: 13,
            pronouns: 1,
            doc_comments: 4,
            short_doc_comments: 2,
        };
        assert_eq!(counts, expected);
        let shown = counts.to_string();
        assert!(
            shown.ends_with("       2  of them with 3 words or fewer\n"),
            "{shown}"
        );
    }
}
