//! What changed between two texts, as git prints it.

use std::fmt::Write as _;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};

/// How many lines around a change are shown.
const CONTEXT: u32 = 3;

/// The hunks of a unified diff, without the lines that name the files. Nothing if the texts are the same.
pub fn unified(base: &str, now: &str) -> String {
    let input = InternedInput::new(base, now);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let hunks: Vec<Hunk> = diff.hunks().collect();
    // Changes whose surroundings touch are shown as one.
    let groups = hunks.chunk_by(|a, b| b.before.start - a.before.end <= 2 * CONTEXT);
    let mut text = String::new();
    for group in groups {
        print(&mut text, &input, group);
    }
    text
}

/// How much of the larger of two texts is in the other, in percent.
pub(crate) fn similarity(base: &str, now: &str) -> usize {
    let input = InternedInput::new(base, now);
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let lines = (0..).zip(&input.before);
    let kept = lines.filter(|(index, _)| !diff.is_removed(*index));
    let kept: usize = kept.map(|(_, token)| input.interner[*token].len()).sum();
    match base.len().max(now.len()) {
        0 => 100,
        whole => kept * 100 / whole,
    }
}

fn print(text: &mut String, input: &InternedInput<&str>, group: &[Hunk]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let lead = first.before.start.min(CONTEXT);
    let rest = input.before.len() as u32 - last.before.end;
    let trail = rest.min(CONTEXT);
    let before = (first.before.start - lead, last.before.end + trail);
    let after = (first.after.start - lead, last.after.end + trail);
    let _ = writeln!(text, "@@ -{} +{} @@", range(before), range(after));
    let mut at = before.0;
    for hunk in group {
        lines(text, input, ' ', &input.before, at..hunk.before.start);
        lines(text, input, '-', &input.before, hunk.before.clone());
        lines(text, input, '+', &input.after, hunk.after.clone());
        at = hunk.before.end;
    }
    lines(text, input, ' ', &input.before, at..before.1);
}

/// Lines are counted from one, but none are said to be after the one before them.
fn range((start, end): (u32, u32)) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    }
}

fn lines(
    text: &mut String,
    input: &InternedInput<&str>,
    mark: char,
    tokens: &[Token],
    range: std::ops::Range<u32>,
) {
    for token in &tokens[range.start as usize..range.end as usize] {
        let line = input.interner[*token];
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}
