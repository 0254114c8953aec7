//! A simple reader of unified diffs, to test our own. The fuzz target `patch` uses it too.

/// Applies the hunks of a unified diff strictly: every line must be where the diff says.
pub fn apply_unified(base: &str, diff: &str) -> String {
    let old: Vec<&str> = base.split_inclusive('\n').collect();
    let mut new = String::new();
    let mut at = 0;
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix("@@ -") {
            let range = header.split(' ').next().expect("a range");
            let mut numbers = range
                .split(',')
                .map(|it| it.parse::<usize>().expect("a number"));
            let start = numbers.next().expect("a start");
            let start = if numbers.next() == Some(0) {
                start
            } else {
                start - 1
            };
            new.extend(old[at..start].iter().copied());
            at = start;
            continue;
        }
        let is_unended = lines.next_if(|it| it.starts_with('\\')).is_some();
        let (mark, text) = line.split_at(1);
        let text = match is_unended {
            true => text.strip_suffix('\n').expect("a line"),
            false => text,
        };
        if mark != "+" {
            assert_eq!(old[at], text, "the diff is of another text");
            at += 1;
        }
        if mark != "-" {
            new.push_str(text);
        }
    }
    new.extend(old[at..].iter().copied());
    new
}
