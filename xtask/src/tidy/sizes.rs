//! Files stay short enough to read, and each library says first where it stands.

use crate::repository::Tree;

const LINES_MAX: usize = 1_000;
const SOURCES: &[&str] = &["rs", "py", "ts", "js", "mjs", "sh", "toml", "md"];

/// Written by commands, not by people.
const GENERATED: &[&str] = &["docs/reference/", "docs/compatibility.md", "CHANGELOG.md"];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.texts() {
        let extension = path.rsplit_once('.').map_or("", |(_, it)| it);
        let generated = GENERATED.iter().any(|it| path.starts_with(it));
        let lines = text.lines().count();
        if SOURCES.contains(&extension) && !generated && lines > LINES_MAX {
            problems.push(format!(
                "{path} has {lines} lines, more than {LINES_MAX}; find the second idea in it and \
                 give that its own file"
            ));
        }
        if path.ends_with("src/lib.rs") && !text.starts_with("//!") {
            problems.push(format!(
                "{path} does not begin with `//!`; say first what the crate is, and what stands \
                 below and above it"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found_unless_it_is_generated() {
        let long = "x\n".repeat(LINES_MAX + 1);
        let fits = "x\n".repeat(LINES_MAX);
        let found = check(&Tree::of(&[
            ("crates/a/src/long.rs", &long),
            ("crates/a/src/fits.rs", &fits),
            ("docs/reference/long.md", &long),
            ("Cargo.lock", &long),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("crates/a/src/long.rs has 1001 lines"),
            "{found:?}"
        );
    }

    #[test]
    fn a_library_without_a_header_is_found() {
        let found = check(&Tree::of(&[
            ("crates/a/src/lib.rs", "mod x;\n"),
            ("crates/b/src/lib.rs", "//! The words.\n"),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/lib.rs"), "{found:?}");
    }
}
