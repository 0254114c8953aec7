//! Check that the table of bounds in ARCHITECTURE.md names the constant of each bound, and that it
//! exists.

use super::numbered;
use crate::repository::Tree;

const FILE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Bounds";

/// Index of the column that holds `NAME` in `path`.
const LOCATION_COLUMN: usize = 2;

pub fn check(tree: &Tree) -> Vec<String> {
    let rows: Vec<(usize, Vec<&str>)> = tree.text(FILE).map(rows).unwrap_or_default();
    if rows.is_empty() {
        return vec![format!(
            "{FILE} has no table under `{HEADING}`; write one: what, bound, where, what happens past it"
        )];
    }
    rows.iter()
        .filter_map(|(number, cells)| {
            let location = cells.get(LOCATION_COLUMN).copied().unwrap_or_default();
            let problem = match location.split('`').collect::<Vec<_>>()[..] {
                ["", name, " in ", path, ""] => match tree.text(path) {
                    None => format!("there is no file `{path}`"),
                    Some(text) if !has_word(text, name) => format!("`{path}` has no `{name}`"),
                    Some(_) => return None,
                },
                _ => format!("`{location}` does not say where, as in \"`NAME` in `path`\""),
            };
            Some(format!(
                "{FILE}:{number}: {problem}; make the row true, or take it out"
            ))
        })
        .collect()
}

/// Returns the rows of the first table under the heading, without its header.
fn rows(text: &str) -> Vec<(usize, Vec<&str>)> {
    numbered(text)
        .skip_while(|(_, line)| *line != HEADING)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .skip_while(|(_, line)| !line.starts_with('|'))
        .take_while(|(_, line)| line.starts_with('|'))
        .skip(2)
        .map(|(number, line)| {
            let cells = line.trim_matches('|').split('|').map(str::trim);
            (number, cells.collect())
        })
        .collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let in_word = |it: char| it.is_alphanumeric() || it == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(in_word) && !text[at + word.len()..].starts_with(in_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(row: &str) -> Vec<String> {
        let page =
            format!("# A\n\n## Bounds\n\nWords.\n\n| a | b | c | d |\n|---|---|---|---|\n{row}\n");
        check(&Tree::of(&[
            ("ARCHITECTURE.md", &page),
            ("crates/a/src/b.rs", "const ROWS_MAX: usize = 3;\n"),
        ]))
    }

    #[test]
    fn existing_bound_is_accepted() {
        assert!(problems("| rows | 3 | `ROWS_MAX` in `crates/a/src/b.rs` | an error |").is_empty());
    }

    #[test]
    fn missing_bound_is_reported() {
        for row in [
            "| rows | 3 | `ROWS` in `crates/a/src/b.rs` | an error |",
            "| rows | 3 | `ROWS_MAX` in `crates/a/src/c.rs` | an error |",
            "| rows | 3 | somewhere | an error |",
            "| rows | 3 |",
        ] {
            assert_eq!(problems(row).len(), 1, "{row}");
        }
    }

    #[test]
    fn missing_table_is_reported() {
        assert_eq!(problems("").len(), 1);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
