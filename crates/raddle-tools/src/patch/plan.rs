//! What a patch would do to files.

use std::path::Path;

use super::lines::{self, ChunkMismatch};
use super::parse::{Section, parse};
use super::seek::SearchBudget;
use crate::files::{ChangePlan, Draft, FinalLink, Roots, ToolError};

/// Of lines that were not found, this many are repeated.
const LINES_SHOWN: usize = 40;

/// Why a patch cannot be applied, in words that a model can act on.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The text is no patch.
    #[error("the patch is not valid (line {line}): {why}")]
    Invalid {
        /// Where, counted from one.
        line: usize,
        /// Why.
        why: String,
    },
    /// A chunk stands nowhere in the file.
    #[error("{0}")]
    Mismatch(String),
    /// A file cannot be read or may not be written.
    #[error("{0}")]
    File(#[from] ToolError),
}

/// Looks at what a patch would do. Nothing is written.
///
/// Its sections are taken in their order, each on what the ones before it left.
pub fn plan(roots: &Roots, text: &str) -> Result<ChangePlan, PatchError> {
    let mut draft = Draft::new(roots);
    let effort = SearchBudget::new();
    for section in parse(text)? {
        match section {
            Section::Add { path, text } => {
                let index = draft.look(Path::new(&path), FinalLink::Follow)?;
                draft.put(index, text)?;
            }
            Section::Delete { path } => {
                let index = draft.look(Path::new(&path), FinalLink::Keep)?;
                draft.now(index)?;
                draft.remove(index);
            }
            Section::Update {
                path,
                moved_to,
                chunks,
            } => {
                let last = moved_to
                    .as_ref()
                    .map_or(FinalLink::Follow, |_| FinalLink::Keep);
                let index = draft.look(Path::new(&path), last)?;
                draft.now(index)?;
                if !chunks.is_empty() {
                    let text = lines::change(draft.text(index)?, &chunks, &effort);
                    let text = text.map_err(|it| mismatch(draft.shown(index), it))?;
                    draft.put(index, text)?;
                }
                if let Some(to) = moved_to {
                    let to = draft.look(Path::new(&to), FinalLink::Follow)?;
                    draft.rename(index, to);
                }
            }
        }
    }
    Ok(draft.finish()?)
}

fn mismatch(path: &Path, misfit: ChunkMismatch) -> PatchError {
    let ChunkMismatch {
        chunk,
        wanted,
        is_context,
        nearest,
        is_behind,
    } = misfit;
    let path = path.display();
    let what = if is_context {
        "the line that stands after @@ in"
    } else {
        "the lines of"
    };
    let mut text = format!("{what} chunk {chunk}: not found in {path}:\n");
    push(&mut text, &wanted);
    if is_behind {
        text.push_str("They stand before an earlier chunk of this patch; put the chunks in the order of the file.");
    } else if let Some((line, there)) = nearest {
        text.push_str(&format!(
            "The most similar place, from line {line}, says:\n"
        ));
        push(&mut text, &there);
        text.push_str("Read the file and write the patch again with its exact lines.");
    } else {
        text.push_str("Nothing in the file is similar. Read it and write the patch again.");
    }
    PatchError::Mismatch(text)
}

fn push(text: &mut String, lines: &[String]) {
    for line in lines.iter().take(LINES_SHOWN) {
        text.push_str(line);
        text.push('\n');
    }
    if lines.len() > LINES_SHOWN {
        text.push_str(&format!("… and {} more\n", lines.len() - LINES_SHOWN));
    }
}
