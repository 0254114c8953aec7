//! Changing the lines of a text.

use super::parse::{Chunk, ChunkLine};
use super::seek::{FileLines, SearchBudget};

/// Why a chunk does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkMismatch {
    /// Which one, counted from one.
    pub chunk: usize,
    /// What was looked for.
    pub wanted: Vec<String>,
    /// Whether they were to stand before the chunk.
    pub is_context: bool,
    /// What the file says at the most similar place: its line, counted from one, and the lines.
    pub nearest: Option<(usize, Vec<String>)>,
    /// Whether they stand before a chunk that came earlier in the patch.
    pub is_behind: bool,
}

/// A line of a file and what ends it.
struct TerminatedLine<'a> {
    text: &'a str,
    end: &'static str,
}

/// The text after all chunks.
pub(super) fn change(
    text: &str,
    chunks: &[Chunk],
    effort: &SearchBudget,
) -> Result<String, ChunkMismatch> {
    effort.spend(text.len());
    // A mark that says nothing but how the file is encoded.
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let old: Vec<TerminatedLine<'_>> = body.split_inclusive('\n').map(ended).collect();
    let texts = FileLines::new(old.iter().map(|it| it.text).collect(), effort);
    let count = |end: &str| old.iter().filter(|it| it.end == end).count();
    let end = if count("\r\n") > count("\n") {
        "\r\n"
    } else {
        "\n"
    };

    let mut new: Vec<(&str, &str)> = Vec::new();
    let (mut at, mut copied, mut is_unended) = (0, 0, None);
    for (index, chunk) in chunks.iter().enumerate() {
        let misfit =
            |wanted: &[&str], is_context| mismatch(&texts, wanted, (index + 1, at), is_context);
        let mut from = at;
        for context in &chunk.contexts {
            let found = texts.seek(&[context], from, false);
            from = found.ok_or_else(|| misfit(&[context], true))? + 1;
        }
        let mut lines: &[ChunkLine] = &chunk.lines;
        let mut wanted = olds(lines);
        let is_at_end = chunk.is_at_end || (wanted.is_empty() && chunk.contexts.is_empty());
        let mut found = texts.seek(&wanted, from, is_at_end);
        // An empty line at the end of a chunk is often only how the patch is laid out.
        if let (None, [rest @ .., ChunkLine::Context(last)]) = (found, lines)
            && last.trim().is_empty()
        {
            lines = rest;
            wanted.pop();
            found = texts.seek(&wanted, from, is_at_end);
        }
        let start = found.ok_or_else(|| misfit(&wanted, false))?;
        new.extend(old[copied..start].iter().map(|it| (it.text, it.end)));
        copied = start;
        for line in lines {
            match line {
                ChunkLine::Context(_) => {
                    let kept = &old[copied];
                    new.push((kept.text, kept.end));
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
            // It was the last one and is not any more.
            "" if index < last => end,
            ending => ending,
        });
    }
    Ok(whole)
}

fn ended(line: &str) -> TerminatedLine<'_> {
    let ends = ["\r\n", "\n"];
    let end = ends.into_iter().find(|it| line.ends_with(it)).unwrap_or("");
    let text = &line[..line.len() - end.len()];
    TerminatedLine { text, end }
}

fn olds(lines: &[ChunkLine]) -> Vec<&str> {
    let old = lines.iter().filter_map(|line| match line {
        ChunkLine::Context(text) | ChunkLine::Removed(text) => Some(text.as_str()),
        ChunkLine::Added(_) => None,
    });
    old.collect()
}

fn mismatch(
    texts: &FileLines<'_>,
    wanted: &[&str],
    (chunk, at): (usize, usize),
    is_context: bool,
) -> ChunkMismatch {
    let near = texts.nearest(wanted);
    let shown = |near: usize| {
        let there = texts.all.iter().skip(near).take(wanted.len().clamp(1, 12));
        (near + 1, there.map(|it| (*it).to_owned()).collect())
    };
    ChunkMismatch {
        chunk,
        wanted: wanted.iter().map(|it| (*it).to_owned()).collect(),
        is_context,
        is_behind: texts.seek(wanted, 0, false).is_some_and(|found| found < at),
        nearest: near.map(shown),
    }
}
