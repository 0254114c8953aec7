//! Anchors of a page that a link can target: its headings, as hosts and mdBook name them.

use std::collections::{BTreeMap, BTreeSet};

use super::numbered;

/// Returns the anchors of all headings. A repeated heading gets a number.
pub fn of(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in outside_code(text) {
        let Some(words) = heading(line) else { continue };
        let name = name(words);
        let count = counts.entry(name.clone()).or_default();
        anchors.insert(match *count {
            0 => name,
            more => format!("{name}-{more}"),
        });
        *count += 1;
    }
    anchors
}

/// Returns lines with their numbers, except blocks of code.
pub fn outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut block: Option<&str> = None;
    numbered(text).filter(move |(_, line)| {
        let begin = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|it| begin.starts_with(it));
        match (mark, block) {
            (Some(_), None) => block = mark,
            (Some(_), Some(_)) if mark == block => block = None,
            _ => return block.is_none(),
        }
        false
    })
}

/// Returns the text of a heading, a line with one to six `#`.
fn heading(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#');
    let depth = line.len() - words.len();
    let words = words.strip_prefix(' ')?;
    (1..=6).contains(&depth).then(|| words.trim())
}

/// Returns the anchor of a heading. Letters, digits, `-` and `_` stay, in lower case; spaces become
/// `-`. Of a link only the text counts.
pub fn name(words: &str) -> String {
    let mut name = String::new();
    let mut rest = words;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            ']' if rest.starts_with('(') => rest = rest.split_once(')').map_or("", |it| it.1),
            ' ' => name.push('-'),
            '-' | '_' => name.push(letter),
            _ if letter.is_alphanumeric() => name.extend(letter.to_lowercase()),
            _ => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let anchors: Vec<_> = of(text).into_iter().collect();
        assert_eq!(anchors, expected, "{text}");
    }

    #[test]
    fn headings_are_named_as_hosts_name_them() {
        check("# What a yes is good for", &["what-a-yes-is-good-for"]);
        check("### `/livez`", &["livez"]);
        check("## -32601: method_not found?", &["-32601-method_not-found"]);
        check("## See [the mock](mock.md), too", &["see-the-mock-too"]);
        check("## Ünten", &["ünten"]);
    }

    #[test]
    fn equal_headings_are_numbered() {
        check("# Keys\n## Keys\n## Keys\n", &["keys", "keys-1", "keys-2"]);
    }

    #[test]
    fn other_lines_have_no_anchor() {
        check(
            "#tag\n####### seven\n```sh\n# comment\n```\ntext # text\n",
            &[],
        );
    }
}
