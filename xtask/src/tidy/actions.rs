//! Check that actions of the public workflows, and those inside Raddle's own action, are pinned by
//! commit: a tag can be moved to other code.

use super::numbered;
use crate::repository::Tree;

const WORKFLOWS: &str = ".github/workflows/";
const ACTION: &str = "packages/action/";

pub fn check(tree: &Tree) -> Vec<String> {
    let is_workflow = |path: &str| path.starts_with(WORKFLOWS) || path.starts_with(ACTION);
    let workflows = tree.texts().filter(|(path, _)| is_workflow(path));
    let problems = workflows.flat_map(|(path, text)| {
        let unpinned = numbered(text).filter_map(|(line, text)| unpinned(text).map(|it| (line, it)));
        unpinned.map(move |(line, action)| {
            format!(
                "{path}:{line}: `{action}` can change; write `NAME@COMMIT # TAG`, with all 40 digits \
                 of the commit"
            )
        })
    });
    problems.collect()
}

/// Returns the action of a line that uses an unpinned one.
fn unpinned(line: &str) -> Option<&str> {
    let step = line.trim_start().trim_start_matches("- ").trim_start();
    let value = step.strip_prefix("uses:")?;
    let action = value.split('#').next().unwrap_or_default().trim();
    let action = action.trim_matches(['"', '\'']);
    let commit = action.split_once('@').map_or("", |(_, commit)| commit);
    let is_pinned = commit.len() == 40 && commit.bytes().all(|it| it.is_ascii_hexdigit());
    (!is_pinned).then_some(action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_commit_pins_an_action() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let pinned = format!("      - uses: a/b@{commit} # v4.4.0");
        for (line, expected) in [
            (pinned.as_str(), None),
            ("      - run: uses: a/b@v4", None),
            ("      - uses: a/b@v4", Some("a/b@v4")),
            ("        uses: 'a/b@main' # v4", Some("a/b@main")),
            ("      - uses: a/b", Some("a/b")),
            ("      - uses: a/b@0123456", Some("a/b@0123456")),
        ] {
            assert_eq!(unpinned(line), expected, "{line}");
        }
    }

    #[test]
    fn all_workflows_are_looked_at() {
        let tree = Tree::of(&[
            (".github/workflows/a.yml", "steps:\n  - uses: a/b@v4\n"),
            ("docs/a.md", "  - uses: a/b@v4\n"),
        ]);
        assert_eq!(check(&tree).len(), 1);
    }
}
