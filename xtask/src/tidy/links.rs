//! Links between the files of the repository lead somewhere.

use super::numbered;
use crate::repository::Tree;

pub fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (number, target) in links(text) {
            if is_elsewhere(&target) {
                continue;
            }
            let file = target.split(['#', '?']).next().unwrap_or_default();
            let found = resolve(path, file).is_some_and(|it| it.is_empty() || tree.has(&it));
            if !found {
                problems.push(format!(
                    "{path}:{number}: the link to `{target}` leads nowhere; mend the path or write \
                     the file"
                ));
            }
        }
    }
    problems
}

/// Another site, or a place in the same file.
fn is_elsewhere(target: &str) -> bool {
    target.starts_with('#') || target.contains("://") || target.starts_with("mailto:")
}

/// The path from the top of the repository, or nothing if it leaves it.
fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.replace("%20", " ");
    let mut steps: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from
            .split('/')
            .rev()
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect(),
    };
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop()?;
            }
            step => steps.push(step),
        }
    }
    Some(steps.join("/"))
}

/// Link targets with their line numbers, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in numbered(text) {
        let begin = line.trim_start();
        if let Some(mark) = ["```", "~~~"]
            .into_iter()
            .find(|mark| begin.starts_with(mark))
        {
            match fence {
                None => fence = Some(mark),
                Some(open) if open == mark => fence = None,
                Some(_) => {}
            }
            continue;
        }
        if fence.is_some() {
            continue;
        }
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            if let Some(target) = inline_target(&line[at + 2..]) {
                found.push((number, target));
            }
        }
        if let Some((_, target)) = line.strip_prefix('[').and_then(|it| it.split_once("]: ")) {
            found.extend(first_word(target).map(|target| (number, target)));
        }
    }
    found
}

/// What stands between the brackets, without a title.
fn inline_target(after: &str) -> Option<String> {
    let mut depth = 0;
    let end = after.find(|it| {
        depth += match it {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth < 0
    })?;
    first_word(&after[..end])
}

fn first_word(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some((target, _)) = text.strip_prefix('<').and_then(|it| it.split_once('>')) {
        return Some(target.to_owned());
    }
    text.split_whitespace().next().map(str::to_owned)
}

/// The line with its code spans taken out. An odd backtick at the end opens nothing.
fn without_code(line: &str) -> String {
    let pieces: Vec<&str> = line.split('`').collect();
    let mut out = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        if at % 2 == 0 || at + 1 == pieces.len() {
            out.push_str(piece);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        check(&Tree::of(&[
            ("docs/a.md", text),
            ("docs/errors/b.md", ""),
            ("README.md", ""),
        ]))
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "[b](errors/b.md#part) ![up](../README.md \"title\") [folder](errors/)\n\
            [root](/README.md) [site](https://example.com/x) [here](#here) [top](..)\n\
            [named]: errors/b.md\n`[code](nowhere.md)` and `a` [b](<errors/b.md>)\n\
            ```\n[fenced](nowhere.md)\n```\n";
        assert_eq!(problems(text), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for text in [
            "[x](nowhere.md)",
            "[x](errors/c.md#part)",
            "[x](../../README.md)",
            "[`code`](nowhere.md)",
            "[x]: nowhere.md",
            "```\nfenced\n```\n[x](/nowhere.md)",
        ] {
            assert_eq!(problems(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn the_place_is_named() {
        let found = problems("one\n[x](nowhere.md)\n");
        assert!(found[0].starts_with("docs/a.md:2: "), "{found:?}");
    }
}
