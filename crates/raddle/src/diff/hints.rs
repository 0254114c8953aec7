//! Reasons why `git apply` does not apply a printed diff completely, for stderr.

use std::path::Path;

use raddle_protocol::{FileDiffContent, WorkspaceDiff};

/// Files that are named; the rest is counted.
const FILES_MAX: usize = 10;

/// Returns a line for each reason. `subfolder`: the folder of the paths, below the root of its
/// repository.
pub(super) fn lines(diff: &WorkspaceDiff, subfolder: Option<String>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(folder) = subfolder {
        lines.push(format!(
            "the paths are relative to {folder} of a repository: use `git apply --directory={folder}`"
        ));
    }
    if diff.unified.contains(char::REPLACEMENT_CHARACTER) {
        let what = "the diff contains U+FFFD, in place of every byte that is not UTF-8: `git apply` \
                    does not apply to such a file";
        lines.push(what.to_owned());
    }
    let is_omitted = |it: &&raddle_protocol::FileDiff| it.content == FileDiffContent::Omitted;
    let omitted: Vec<_> = diff.files.iter().filter(is_omitted).collect();
    lines.extend(omitted.iter().take(FILES_MAX).map(|it| {
        let path = it.path.replace('\n', "\\n");
        format!("not in the diff, because it is too large: {path}")
    }));
    let rest = omitted.len().saturating_sub(FILES_MAX);
    if rest > 0 {
        lines.push(format!(
            "not in the diff, because it is too large: {rest} more"
        ));
    }
    lines
}

/// Returns the path of a folder below the root of its git repository; none for the root itself, and
/// outside of a repository.
pub(super) fn folder_in_repository(folder: &Path) -> Option<String> {
    let root = folder.ancestors().find(|it| it.join(".git").exists())?;
    let inner = folder.strip_prefix(root).ok()?;
    let is_root = inner.as_os_str().is_empty();
    (!is_root).then(|| inner.display().to_string())
}

#[cfg(test)]
mod tests {
    use raddle_protocol::FileDiff;

    use super::*;

    #[test]
    fn each_reason_has_a_line() {
        let file = |path: &str, content: FileDiffContent| FileDiff {
            change_id: String::new(),
            path: path.to_owned(),
            previous_path: None,
            kind: "modified".into(),
            old_mode: None,
            new_mode: None,
            base_hash: None,
            result_hash: None,
            content,
            hunks: Vec::new(),
            author: "tool".into(),
        };
        let large = file("large", FileDiffContent::Omitted);
        for (unified, subfolder, files, expected) in [
            ("+a\n", None, vec![], vec![]),
            (
                "+a\n",
                Some("app"),
                vec![file("a", FileDiffContent::Text)],
                vec![
                    "the paths are relative to app of a repository: use `git apply --directory=app`",
                ],
            ),
            (
                "+\u{fffd}\n",
                None,
                vec![],
                vec![
                    "the diff contains U+FFFD, in place of every byte that is not UTF-8: `git apply` \
                     does not apply to such a file",
                ],
            ),
            (
                "",
                None,
                vec![large.clone()],
                vec!["not in the diff, because it is too large: large"],
            ),
        ] {
            let diff = WorkspaceDiff {
                unified: unified.to_owned(),
                files,
                gaps: Vec::new(),
            };
            assert_eq!(lines(&diff, subfolder.map(str::to_owned)), expected);
        }
        let diff = WorkspaceDiff {
            unified: String::new(),
            files: vec![large; FILES_MAX + 2],
            gaps: Vec::new(),
        };
        let all = lines(&diff, None);
        assert_eq!(all.len(), FILES_MAX + 1);
        assert_eq!(
            all.last().map(String::as_str),
            Some("not in the diff, because it is too large: 2 more")
        );
    }

    #[test]
    fn a_folder_has_a_path_below_the_root_of_its_repository() {
        let top = tempfile::tempdir().expect("a folder");
        let root = top.path().join("root");
        std::fs::create_dir_all(root.join(".git")).expect("a folder");
        for (folder, expected) in [("", None), ("a", Some("a")), ("a/b", Some("a/b"))] {
            assert_eq!(
                folder_in_repository(&root.join(folder)).as_deref(),
                expected
            );
        }
    }
}
