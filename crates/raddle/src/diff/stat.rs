//! The number of changed lines of each file.

use raddle_protocol::{FileDiff, FileDiffContent, FileDiffKind};

/// Returns a line for each file, and one for all of them.
pub(super) fn lines(files: &[FileDiff]) -> Vec<String> {
    let (mut added, mut removed) = (0, 0);
    let mut lines = Vec::new();
    for file in files {
        let (plus, minus) = changed_lines(file);
        added += plus;
        removed += minus;
        let change = match &file.content {
            FileDiffContent::Text => format!("+{plus} -{minus}"),
            FileDiffContent::Same => "no line".to_owned(),
            other => other.as_str().to_owned(),
        };
        let author = file.author.as_str();
        lines.push(format!(" {} | {change} | {author}", name(file)));
    }
    let count = files.len();
    let noun = match count {
        1 => "file",
        _ => "files",
    };
    lines.push(format!(" {count} {noun} changed, +{added} -{removed}"));
    lines
}

/// Returns the numbers of added and of removed lines.
fn changed_lines(file: &FileDiff) -> (u64, u64) {
    let sum = |lines: fn(&raddle_protocol::DiffHunk) -> u32| {
        file.hunks.iter().map(|it| u64::from(lines(it))).sum()
    };
    (sum(|it| it.new_lines), sum(|it| it.old_lines))
}

fn name(file: &FileDiff) -> String {
    let path = file.path.replace('\n', "\\n");
    match (&file.kind, &file.previous_path) {
        (FileDiffKind::Modified, _) => path,
        (kind, Some(previous)) => format!(
            "{} => {path} ({})",
            previous.replace('\n', "\\n"),
            kind.as_str()
        ),
        (kind, None) => format!("{path} ({})", kind.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use raddle_protocol::DiffHunk;

    use super::*;

    fn file(path: &str, kind: &str, content: &str, hunks: &[(u32, u32)]) -> FileDiff {
        let hunk = |(old_lines, new_lines): &(u32, u32)| DiffHunk {
            id: "h".to_owned(),
            old_start: 1,
            old_lines: *old_lines,
            new_start: 1,
            new_lines: *new_lines,
            old_text: String::new(),
            new_text: String::new(),
        };
        FileDiff {
            change_id: String::new(),
            path: path.to_owned(),
            previous_path: (kind == "renamed").then(|| "old".to_owned()),
            kind: kind.into(),
            old_mode: None,
            new_mode: None,
            base_hash: None,
            result_hash: None,
            content: content.into(),
            hunks: hunks.iter().map(hunk).collect(),
            author: "tool".into(),
        }
    }

    #[test]
    fn each_file_has_its_numbers() {
        let files = [
            file("a", "modified", "text", &[(1, 2), (3, 0)]),
            file("b", "added", "binary", &[]),
            file("c", "renamed", "same", &[]),
        ];
        assert_eq!(
            lines(&files),
            [
                " a | +2 -4 | tool",
                " b (added) | binary | tool",
                " old => c (renamed) | no line | tool",
                " 3 files changed, +2 -4",
            ]
        );
    }
}
