//! Plans the changes of a patch.

use std::path::Path;

use super::lines::{self, ChunkMismatch};
use super::parse::{Section, parse};
use super::seek::SearchBudget;
use crate::files::{ChangePlan, Draft, FinalLink, Roots, ToolError};

/// Maximum number of lines repeated in an error.
const LINES_SHOWN: usize = 40;

/// Error of a patch, worded so that a model can act on it.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The text is not a valid patch.
    #[error("the patch is not valid (line {line}): {why}")]
    Invalid {
        /// Line of the patch, counted from one.
        line: usize,
        /// Reason why the line is not valid.
        why: String,
    },
    /// A chunk does not match the file.
    #[error("{0}")]
    Mismatch(String),
    /// A file cannot be read or must not be written.
    #[error("{0}")]
    File(#[from] ToolError),
}

/// Plans the changes of a patch. Nothing is written.
///
/// Sections apply in order, each to the result of those before it.
pub fn plan(roots: &Roots, text: &str) -> Result<ChangePlan, PatchError> {
    let mut draft = Draft::new(roots);
    let budget = SearchBudget::new();
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
                    let text = lines::change(draft.text(index)?, &chunks, &budget);
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

fn mismatch(path: &Path, error: ChunkMismatch) -> PatchError {
    let ChunkMismatch {
        chunk,
        expected,
        is_context,
        nearest,
        is_out_of_order,
    } = error;
    let path = path.display();
    let subject = if is_context {
        "the line that stands after @@ in"
    } else {
        "the lines of"
    };
    let mut text = format!("{subject} chunk {chunk}: not found in {path}:\n");
    push(&mut text, &expected);
    if is_out_of_order {
        text.push_str("They stand before an earlier chunk of this patch; put the chunks in the order of the file.");
    } else if let Some((line, actual)) = nearest {
        text.push_str(&format!(
            "The most similar place, from line {line}, says:\n"
        ));
        push(&mut text, &actual);
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
