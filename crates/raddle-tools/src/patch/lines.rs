//! Applies chunks to the lines of a text.

use super::parse::{Chunk, ChunkLine};
use super::seek::{FileLines, SearchBudget};

/// Reason why a chunk does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkMismatch {
    /// Number of the chunk, counted from one.
    pub chunk: usize,
    /// Lines that were searched for.
    pub expected: Vec<String>,
    /// Whether they are context lines before the chunk.
    pub is_context: bool,
    /// Lines at the most similar position in the file, with the line number, counted from one.
    pub nearest: Option<(usize, Vec<String>)>,
    /// Whether the lines are before an earlier chunk of the patch.
    pub is_out_of_order: bool,
}

/// A line of a file and its line ending.
struct TerminatedLine<'a> {
    text: &'a str,
    end: &'static str,
}

/// Applies all chunks and returns the new text.
pub(super) fn change(
    text: &str,
    chunks: &[Chunk],
    budget: &SearchBudget,
) -> Result<String, ChunkMismatch> {
    budget.spend(text.len());
    // A byte order mark is kept, but not matched.
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let old: Vec<TerminatedLine<'_>> = body.split_inclusive('\n').map(split_ending).collect();
    let texts = FileLines::new(old.iter().map(|it| it.text).collect(), budget);
    let count = |end: &str| old.iter().filter(|it| it.end == end).count();
    let end = if count("\r\n") > count("\n") {
        "\r\n"
    } else {
        "\n"
    };

    let mut new: Vec<(&str, &str)> = Vec::new();
    let (mut at, mut copied, mut is_unended) = (0, 0, None);
    for (index, chunk) in chunks.iter().enumerate() {
        let to_mismatch =
            |expected: &[&str], is_context| mismatch(&texts, expected, (index + 1, at), is_context);
        let mut from = at;
        for context in &chunk.contexts {
            let position = texts.seek(&[context], from, false);
            from = position.ok_or_else(|| to_mismatch(&[context], true))? + 1;
        }
        let mut lines: &[ChunkLine] = &chunk.lines;
        let mut expected = old_lines(lines);
        let is_at_end = chunk.is_at_end || (expected.is_empty() && chunk.contexts.is_empty());
        let mut position = texts.seek(&expected, from, is_at_end);
        // An empty line at the end of a chunk is often only formatting of the patch.
        if let (None, [rest @ .., ChunkLine::Context(last)]) = (position, lines)
            && last.trim().is_empty()
        {
            lines = rest;
            expected.pop();
            position = texts.seek(&expected, from, is_at_end);
        }
        let start = position.ok_or_else(|| to_mismatch(&expected, false))?;
        new.extend(old[copied..start].iter().map(|it| (it.text, it.end)));
        copied = start;
        for line in lines {
            match line {
                ChunkLine::Context(_) => {
                    let line_kept = &old[copied];
                    new.push((line_kept.text, line_kept.end));
                    copied += 1;
                }
                ChunkLine::Removed(_) => copied += 1,
                ChunkLine::Added(text) => new.push((text, end)),
            }
        }
        at = copied;
        is_unended = Some(chunk.is_unended);
    }
    new.extend(old[copied..].iter().map(|it| (it.text, it.end)));
    let last = new.len().saturating_sub(1);
    let mut whole = mark.to_owned();
    for (index, (text, ending)) in new.into_iter().enumerate() {
        whole.push_str(text);
        let is_cut = is_unended == Some(true) && copied == old.len();
        whole.push_str(match ending {
            _ if index == last && is_cut => "",
            // It is no longer the last line, so it needs an ending.
            "" if index < last => end,
            ending => ending,
        });
    }
    Ok(whole)
}

fn split_ending(line: &str) -> TerminatedLine<'_> {
    let ends = ["\r\n", "\n"];
    let end = ends.into_iter().find(|it| line.ends_with(it)).unwrap_or("");
    let text = &line[..line.len() - end.len()];
    TerminatedLine { text, end }
}

fn old_lines(lines: &[ChunkLine]) -> Vec<&str> {
    let old = lines.iter().filter_map(|line| match line {
        ChunkLine::Context(text) | ChunkLine::Removed(text) => Some(text.as_str()),
        ChunkLine::Added(_) => None,
    });
    old.collect()
}

fn mismatch(
    texts: &FileLines<'_>,
    expected: &[&str],
    (chunk, at): (usize, usize),
    is_context: bool,
) -> ChunkMismatch {
    let near = texts.nearest(expected);
    let shown = |near: usize| {
        let actual = texts
            .all
            .iter()
            .skip(near)
            .take(expected.len().clamp(1, 12));
        (near + 1, actual.map(|it| (*it).to_owned()).collect())
    };
    ChunkMismatch {
        chunk,
        expected: expected.iter().map(|it| (*it).to_owned()).collect(),
        is_context,
        is_out_of_order: texts
            .seek(expected, 0, false)
            .is_some_and(|position| position < at),
        nearest: near.map(shown),
    }
}
