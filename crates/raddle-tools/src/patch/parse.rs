//! Parses the text of a patch.

use super::plan::PatchError;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const NO_NEWLINE: &str = "\\ No newline at end of file";

/// Size limits; no model writes larger patches.
const BYTES_MAX: usize = 8 << 20;
/// Limit: sections of one patch, with at most 8 MiB; beyond it, the call is rejected, and the model
/// is notified.
const SECTIONS_MAX: usize = 1_000;

/// Sections of a patch, in order.
pub type PatchSections = Vec<Section>;

/// Change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// Creates a file.
    Add {
        /// Path of the file.
        path: String,
        /// Contents of the new file.
        text: String,
    },
    /// Removes a file.
    Delete {
        /// Path of the file.
        path: String,
    },
    /// Changes lines of a file, or moves it.
    Update {
        /// Path of the file.
        path: String,
        /// New path, if it is moved.
        moved_to: Option<String>,
        /// Changes of its lines.
        chunks: Vec<Chunk>,
    },
}

/// Change at one position of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Lines somewhere before it, from outer to inner.
    pub contexts: Vec<String>,
    /// Context, removed and added lines.
    pub lines: Vec<ChunkLine>,
    /// Whether it is at the end of the file.
    pub is_at_end: bool,
    /// Whether its last new line ends without a newline.
    pub is_unended: bool,
}

/// A line of a chunk, without its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkLine {
    /// A line that stays as it is.
    Context(String),
    /// A line that is removed.
    Removed(String),
    /// A line that is added.
    Added(String),
}

/// Parses a patch; an error names its line, for the model.
pub fn parse(text: &str) -> Result<PatchSections, PatchError> {
    if text.len() > BYTES_MAX {
        return Err(invalid(
            0,
            "the patch is larger than 8 MiB; make several of it",
        ));
    }
    let lines: Vec<&str> = text.trim().lines().collect();
    let lines = unwrapped(&lines);
    let is_first = lines.first().is_some_and(|it| it.trim() == BEGIN);
    if !is_first {
        let why = format!("the first line of the patch must be '{BEGIN}'");
        return Err(invalid(1, &why));
    }
    if lines.len() < 2 || lines.last().is_none_or(|it| it.trim() != END) {
        let why = format!("the last line of the patch must be '{END}'");
        return Err(invalid(lines.len(), &why));
    }
    let lines = &lines[..lines.len() - 1];
    let gaps = &gaps(lines);
    let mut reader = PatchReader { lines, gaps, at: 1 };
    let mut sections = Vec::new();
    while let Some(line) = reader.peek() {
        if line.trim().is_empty() {
            reader.at += 1;
            continue;
        }
        if sections.len() == SECTIONS_MAX {
            return Err(reader.invalid("the patch has more than 1000 sections; make several of it"));
        }
        sections.push(reader.section()?);
    }
    if sections.is_empty() {
        return Err(invalid(1, "the patch names no file"));
    }
    Ok(sections)
}

/// Removes the heredoc or Markdown code block around a patch.
fn unwrapped<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    let [first, inner @ .., last] = lines else {
        return lines;
    };
    let (first, last) = (first.trim(), last.trim());
    let word = first
        .rsplit_once("<<")
        .map(|(_, word)| word.trim_start_matches('-').trim());
    let word = word.map(|it| it.trim_matches(['\'', '"']));
    let is_heredoc = word.is_some_and(|it| !it.is_empty() && it == last.trim_end_matches(')'));
    let is_code_block = first.starts_with("```") && last == "```";
    if is_heredoc || is_code_block {
        inner
    } else {
        lines
    }
}

/// Returns, for each line, whether only empty lines follow before the next chunk or header, so that
/// they belong to neither.
fn gaps(lines: &[&str]) -> Vec<bool> {
    let mut gaps = vec![true; lines.len()];
    let mut is_gap = true;
    for (line, gap) in lines.iter().zip(&mut gaps).rev() {
        if !line.trim().is_empty() {
            is_gap = line.starts_with("@@") || line.starts_with("***");
        }
        *gap = is_gap;
    }
    gaps
}

struct PatchReader<'a> {
    lines: &'a [&'a str],
    gaps: &'a [bool],
    at: usize,
}

impl<'a> PatchReader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// Returns an error at the current line.
    fn invalid(&self, why: &str) -> PatchError {
        invalid(self.at + 1, why)
    }

    fn section(&mut self) -> Result<Section, PatchError> {
        let line = self.peek().unwrap_or_default().trim();
        let header = |prefix: &str| Some(line.strip_prefix(prefix)?.trim().to_owned());
        if let Some(path) = header("*** Add File:") {
            self.path(&path)?;
            return Ok(self.add(path));
        }
        if let Some(path) = header("*** Delete File:") {
            self.path(&path)?;
            return Ok(Section::Delete { path });
        }
        if let Some(path) = header("*** Update File:") {
            self.path(&path)?;
            return self.update(path);
        }
        let why = format!(
            "'{line}' is no header; write '*** Add File: PATH', '*** Delete File: PATH' or '*** Update File: PATH'"
        );
        Err(self.invalid(&why))
    }

    /// Checks the path of a header, and skips the header.
    fn path(&mut self, path: &str) -> Result<(), PatchError> {
        if path.is_empty() {
            return Err(self.invalid("the header names no path"));
        }
        self.at += 1;
        Ok(())
    }

    fn add(&mut self, path: String) -> Section {
        let mut text = String::new();
        while let Some(line) = self.peek().and_then(|it| it.strip_prefix('+')) {
            text.push_str(line);
            text.push('\n');
            self.at += 1;
        }
        if self.peek().is_some_and(|it| it.trim() == NO_NEWLINE) {
            text.pop();
            self.at += 1;
        }
        Section::Add { path, text }
    }

    fn update(&mut self, path: String) -> Result<Section, PatchError> {
        let mut moved_to = None;
        let target = |it: &'a str| it.trim().strip_prefix("*** Move to:");
        if let Some(to) = self.peek().and_then(target) {
            self.path(to.trim())?;
            moved_to = Some(to.trim().to_owned());
        }
        let mut chunks = Vec::new();
        while let Some(line) = self.peek() {
            if line.trim().is_empty() && self.is_gap() {
                self.at += 1;
                continue;
            }
            if line.starts_with("***") && line.trim() != END_OF_FILE {
                break;
            }
            chunks.push(self.chunk(chunks.is_empty())?);
        }
        if chunks.is_empty() && moved_to.is_none() {
            let why = format!("the update of '{path}' says nothing; give at least one chunk");
            return Err(self.invalid(&why));
        }
        Ok(Section::Update {
            path,
            moved_to,
            chunks,
        })
    }

    fn is_gap(&self) -> bool {
        self.gaps.get(self.at).is_none_or(|it| *it)
    }

    fn chunk(&mut self, is_first: bool) -> Result<Chunk, PatchError> {
        let mut chunk = Chunk::default();
        let mut is_marked = false;
        while let Some(context) = self.peek().and_then(|it| it.trim_end().strip_prefix("@@")) {
            is_marked = true;
            let context = context.strip_prefix(' ').unwrap_or(context);
            if !context.trim().is_empty() && !is_range(context) {
                chunk.contexts.push(context.to_owned());
            }
            self.at += 1;
        }
        if !is_marked && !is_first {
            let why = format!(
                "a chunk begins with '@@', but this line is '{}'",
                self.peek().unwrap_or_default()
            );
            return Err(self.invalid(&why));
        }
        while let Some(line) = self.peek() {
            if line.trim() == END_OF_FILE {
                chunk.is_at_end = true;
                self.at += 1;
                break;
            }
            if line == NO_NEWLINE {
                // After an old line, the mark does not apply to the new text.
                chunk.is_unended = !matches!(chunk.lines.last(), Some(ChunkLine::Removed(_)));
                chunk.is_at_end = true;
                self.at += 1;
                continue;
            }
            if line.starts_with("@@")
                || line.starts_with("***")
                || (line.is_empty() && self.is_gap())
            {
                break;
            }
            let to_owned = |it: &str| it.to_owned();
            chunk.lines.push(match line.chars().next() {
                None => ChunkLine::Context(String::new()),
                Some(' ') => ChunkLine::Context(to_owned(&line[1..])),
                Some('-') => ChunkLine::Removed(to_owned(&line[1..])),
                Some('+') => ChunkLine::Added(to_owned(&line[1..])),
                Some(_) => {
                    let why = format!(
                        "'{line}' begins with none of ' ' (a line that stays), '-' (one that goes) and '+' (one that comes)"
                    );
                    return Err(self.invalid(&why));
                }
            });
            self.at += 1;
        }
        if chunk.lines.is_empty() {
            return Err(self.invalid("the chunk has no lines"));
        }
        Ok(chunk)
    }
}

/// Whether a context is only the line numbers of a unified diff, as in `-1,2 +3,4 @@`.
fn is_range(context: &str) -> bool {
    let Some(numbers) = context.trim().strip_suffix("@@") else {
        return false;
    };
    let is_part = |it: char| it.is_ascii_digit() || "-+, ".contains(it);
    numbers.starts_with('-') && numbers.contains('+') && numbers.chars().all(is_part)
}

fn invalid(line: usize, why: &str) -> PatchError {
    PatchError::Invalid {
        line,
        why: why.to_owned(),
    }
}
