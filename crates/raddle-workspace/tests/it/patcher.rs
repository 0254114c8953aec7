//! A simple patcher of bytes, to test our own. The fuzz target `hunks` uses it too.

/// Splits a patch of one file into its header and its hunks.
pub fn split_patch(patch: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut parts: Vec<Vec<u8>> = vec![Vec::new()];
    for line in patch.split_inclusive(|it| *it == b'\n') {
        if line.starts_with(b"@@ ") {
            parts.push(Vec::new());
        }
        parts.last_mut().expect("a part").extend_from_slice(line);
    }
    let hunks = parts.split_off(1);
    (parts.remove(0), hunks)
}

/// Applies hunks of a patch as text: it knows nothing of the structured form.
pub fn apply_text(base: &[u8], hunks: &[&Vec<u8>]) -> Vec<u8> {
    let old: Vec<&[u8]> = base.split_inclusive(|it| *it == b'\n').collect();
    let mut new = Vec::new();
    let mut at = 0;
    for hunk in hunks {
        let lines: Vec<&[u8]> = hunk.split_inclusive(|it| *it == b'\n').collect();
        let header = std::str::from_utf8(lines[0]).expect("a header");
        let range = header
            .trim_start_matches("@@ -")
            .split(' ')
            .next()
            .expect("a range");
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        let start: usize = start.parse().expect("a number");
        let start = if count == "0" { start } else { start - 1 };
        new.extend(old[at..start].concat());
        at = start;
        for (number, line) in lines.iter().enumerate().skip(1) {
            let (mark, text) = (line[0], &line[1..]);
            if mark == b'\\' {
                continue;
            }
            let is_unended = lines.get(number + 1).is_some_and(|it| it[0] == b'\\');
            let text = &text[..text.len() - usize::from(is_unended)];
            if mark != b'+' {
                assert_eq!(old[at], text, "the patch is of another text");
                at += 1;
            }
            if mark != b'-' {
                new.extend_from_slice(text);
            }
        }
    }
    new.extend(old[at..].concat());
    new
}
