//! The findings of a review, from the text of the model, and the hunks in which they lie.
//!
//! The instructions of a review ask for this form. All else in the text is no finding:
//!
//! ```text
//! - [P1] The lock is never released — src/store.rs:10-12
//!   When the second read fails, …
//! ```

use raddle_protocol::ReviewFinding;

use crate::{Review, ReviewedHunk};

/// Limit: findings of a review that clients receive apart from its text; beyond it, only the text
/// has them.
const FINDINGS_MAX: usize = 100;

/// Returns the findings of a review that ended, with the hunks in which they lie.
pub(crate) fn findings(review: &Review) -> Vec<ReviewFinding> {
    let mut findings = parse(&review.text);
    for finding in &mut findings {
        let hunks = review.hunks.iter();
        let hunks = hunks.filter(|it| finding.path.as_deref() == Some(&it.path));
        let hunks = hunks.filter(|it| lies_in(finding, it));
        let ids: Vec<String> = hunks.map(|it| it.id.clone()).collect();
        finding.hunk_ids = (!ids.is_empty()).then_some(ids);
    }
    findings
}

/// Returns the hunks in which the findings in a text lie, with the paths that the findings name.
/// `folders`: the names of the folder of the thread.
pub(crate) fn hunks_of_findings(
    text: &str,
    reviewed: &[ReviewedHunk],
    folders: &[&str],
) -> Vec<ReviewedHunk> {
    let mut hunks = Vec::new();
    if reviewed.is_empty() {
        return hunks;
    }
    for finding in parse(text) {
        let Some(named) = &finding.path else {
            continue;
        };
        let mut in_folders = folders.iter().filter_map(|it| named.strip_prefix(it));
        let path = in_folders.find_map(|it| it.strip_prefix('/'));
        let path = path.unwrap_or_else(|| named.strip_prefix("./").unwrap_or(named));
        let found = reviewed.iter().filter(|it| it.path == path);
        for hunk in found.filter(|it| lies_in(&finding, it)) {
            let hunk = ReviewedHunk {
                path: named.clone(),
                ..hunk.clone()
            };
            if !hunks.contains(&hunk) {
                hunks.push(hunk);
            }
        }
    }
    hunks
}

/// Whether a finding shares a line with a hunk of its file.
fn lies_in(finding: &ReviewFinding, hunk: &ReviewedHunk) -> bool {
    let lines = finding.start_line.zip(finding.end_line);
    lines.is_some_and(|(start, end)| start <= hunk.last && hunk.first <= end)
}

/// Parses the findings in the text of a review.
fn parse(text: &str) -> Vec<ReviewFinding> {
    let mut findings: Vec<ReviewFinding> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if let Some(finding) = heading(line) {
            if findings.len() == FINDINGS_MAX {
                break;
            }
            findings.push(finding);
            is_open = true;
            continue;
        }
        // The text of a finding is indented, and ends at the first line that is not.
        is_open &= line.is_empty() || line.starts_with([' ', '\t']);
        if let Some(finding) = findings.last_mut().filter(|_| is_open) {
            if !finding.body.is_empty() {
                finding.body.push('\n');
            }
            finding
                .body
                .push_str(line.strip_prefix("  ").unwrap_or(line));
        }
    }
    for finding in &mut findings {
        finding.body.truncate(finding.body.trim_end().len());
    }
    findings
}

/// Parses the first line of a finding.
fn heading(line: &str) -> Option<ReviewFinding> {
    let rest = line
        .strip_prefix("- [P")
        .or_else(|| line.strip_prefix("* [P"))?;
    let (priority, rest) = rest.split_once(']')?;
    let priority = priority.parse().ok().filter(|it| *it <= 3)?;
    // A title may contain dashes, so the place is what follows the last one.
    let place = rest.rsplit_once(" — ").or_else(|| rest.rsplit_once(" -- "));
    let found = place.and_then(|(title, place)| Some((title, location(place)?)));
    let (title, (path, lines)) = match found {
        Some((title, (path, lines))) => (title, (Some(path), lines)),
        None => (rest, (None, None)),
    };
    let title = title.trim();
    (!title.is_empty()).then(|| ReviewFinding {
        title: title.to_owned(),
        body: String::new(),
        priority,
        path,
        start_line: lines.map(|(start, _)| start),
        end_line: lines.map(|(_, end)| end),
        hunk_ids: None,
    })
}

/// Parses `PATH`, `PATH:LINE` or `PATH:FIRST-LAST`, also in backquotes.
fn location(text: &str) -> Option<(String, Option<(u32, u32)>)> {
    let text = text.trim().trim_matches('`');
    let (path, lines) = match text.rsplit_once(':') {
        Some((path, range)) => {
            let (start, end) = range.split_once(['-', '–']).unwrap_or((range, range));
            let number = |it: &str| it.trim_start_matches('L').parse().ok().filter(|it| *it > 0);
            match number(start).zip(number(end)) {
                Some((start, end)) if start <= end => (path, Some((start, end))),
                _ => return None,
            }
        }
        None => (text, None),
    };
    // Two places are none, and a word is no path.
    let is_one = !path.contains(", ")
        && !path.ends_with(|it: char| it.is_ascii_digit() && path.contains(':'));
    let is_path = match lines {
        Some(_) => !path.is_empty(),
        None => path.contains(['/', '.']) && !path.contains(char::is_whitespace),
    };
    (is_one && is_path).then(|| (path.to_owned(), lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let findings = parse(text).into_iter();
        let findings = findings.map(|it| {
            let lines = it.start_line.zip(it.end_line);
            let lines = lines.map(|(start, end)| format!(":{start}-{end}"));
            let place = it.path.map(|path| path + &lines.unwrap_or_default());
            format!(
                "{} {}|{}|{}",
                it.priority,
                it.title,
                place.unwrap_or_default(),
                it.body
            )
        });
        findings.collect()
    }

    #[test]
    fn findings_are_read_from_the_text_of_a_review() {
        for (text, expected) in [
            ("Nothing found.", &[][..]),
            ("", &[]),
            (
                "Two problems.\n\n- [P1] A is lost — src/a.rs:10-12\n  When it\n    is late.\n\n- [P3] Slow -- \
                 `b c.rs:7`\nThe end.\n  no finding",
                &[
                    "1 A is lost|src/a.rs:10-12|When it\n  is late.",
                    "3 Slow|b c.rs:7-7|",
                ],
            ),
            // A title with dashes, a place without lines, and none at all.
            (
                "* [P0] A — B — /w/a.rs\n- [P2] The tests cannot fail\n\tnever",
                &["0 A — B|/w/a.rs|", "2 The tests cannot fail||\tnever"],
            ),
            (
                "- [P2] Wrong range — a.rs:9-3\n",
                &["2 Wrong range — a.rs:9-3||"],
            ),
            ("- [P2] L — a.rs:L9-L30\n", &["2 L|a.rs:9-30|"]),
            ("- [P2] N — a.rs:9–30\n", &["2 N|a.rs:9-30|"]),
            ("- [P2] C — a.rs:10:5\n", &["2 C — a.rs:10:5||"]),
            ("- [P2] T — a.rs:1, b.rs:2\n", &["2 T — a.rs:1, b.rs:2||"]),
            (
                "- [P2] Never released — deadlock\n",
                &["2 Never released — deadlock||"],
            ),
            ("- [P4] No priority\n- [P] x\n- [P1]\n- P1 x\n", &[]),
            (
                "- [P1] Wide — no place here\n",
                &["1 Wide — no place here||"],
            ),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
        let many = "- [P2] x — a:1\n".repeat(FINDINGS_MAX + 1);
        assert_eq!(parse(&many).len(), FINDINGS_MAX);
    }

    #[test]
    fn findings_lie_in_hunks_of_their_lines() {
        let hunk = |path: &str, id: &str, first, last| ReviewedHunk {
            path: path.to_owned(),
            id: id.to_owned(),
            first,
            last,
        };
        let reviewed = [
            hunk("a.rs", "h1", 3, 5),
            hunk("a.rs", "h2", 20, 21),
            hunk("src/a.rs", "h3", 1, 9),
        ];
        for (place, expected) in [
            ("a.rs:1-2", None),
            ("a.rs:5-19", Some("h1")),
            ("a.rs:6-19", None),
            ("a.rs:1-90", Some("h1 h2")),
            ("./a.rs:21", Some("h2")),
            ("/w/a.rs:4", Some("h1")),
            ("/real/w/src/a.rs:4", Some("h3")),
            ("/w2/a.rs:4", None),
            ("b/a.rs:4", None),
            // It is about no lines.
            ("a.rs", None),
        ] {
            let text = format!("- [P1] A — {place}\n- [P1] A — {place}\n");
            let hunks = hunks_of_findings(&text, &reviewed, &["/w", "/real/w"]);
            let review = Review {
                text,
                prompt: None,
                hunks,
            };
            for finding in findings(&review) {
                let ids = finding.hunk_ids.map(|it| it.join(" "));
                assert_eq!(ids.as_deref(), expected, "{place}");
            }
        }
    }
}
