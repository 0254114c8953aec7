//! Applying some hunks of a change.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Content, ContentHash, FileChange, FileHunk};

/// A hunk that is to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkChoice {
    /// Name of the hunk.
    pub id: String,
    /// Content in place of the new lines of the hunk. It is completed by a line end if it has
    /// none and lines follow.
    pub replacement: Option<Vec<u8>>,
}

impl HunkChoice {
    /// Chooses a hunk as it is.
    pub fn as_proposed(hunk: &FileHunk) -> Self {
        Self {
            id: hunk.id.clone(),
            replacement: None,
        }
    }
}

/// Reason why hunks cannot be applied. Nothing is applied then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HunkConflict {
    /// The content is not the one that the hunks are of.
    #[error("the file changed: it has the content {actual}, and the hunks are of {expected}")]
    BaseChanged {
        /// Hash of the content that the hunks are of.
        expected: ContentHash,
        /// Hash of the given content.
        actual: ContentHash,
    },
    /// The change has no such hunk.
    #[error("the change has no hunk {0}")]
    NoSuchHunk(String),
    /// A hunk is chosen twice.
    #[error("hunk {0} is chosen twice")]
    ChosenTwice(String),
    /// The change has no hunks: it is binary, too large, or one of the mode or the path alone.
    #[error("the change has no hunks to choose: take it as a whole or not at all")]
    NoHunks,
}

/// Applies the chosen hunks to the content before the change, and leaves the others out.
pub fn apply_hunks(
    base: &[u8],
    change: &FileChange,
    choices: &[HunkChoice],
) -> Result<Vec<u8>, HunkConflict> {
    let expected = match &change.before {
        Some(side) => side.entry.hash,
        None => ContentHash::of(b""),
    };
    let actual = ContentHash::of(base);
    if actual != expected {
        return Err(HunkConflict::BaseChanged { expected, actual });
    }
    let Content::Text(hunks) = &change.content else {
        return Err(HunkConflict::NoHunks);
    };
    let ids: BTreeSet<&str> = hunks.iter().map(|it| &*it.id).collect();
    let mut chosen: BTreeMap<&str, &HunkChoice> = BTreeMap::new();
    for choice in choices {
        if !ids.contains(&*choice.id) {
            return Err(HunkConflict::NoSuchHunk(choice.id.clone()));
        }
        if chosen.insert(&choice.id, choice).is_some() {
            return Err(HunkConflict::ChosenTwice(choice.id.clone()));
        }
    }
    let lines: Vec<&[u8]> = base.split_inclusive(|it| *it == b'\n').collect();
    let mut result = Vec::with_capacity(base.len());
    let mut at = 0;
    for hunk in hunks {
        let Some(choice) = chosen.get(&*hunk.id) else {
            continue;
        };
        let (start, end) = (hunk.before.start as usize, hunk.before.end as usize);
        result.extend(lines[at..start].concat());
        let new = choice.replacement.as_ref().unwrap_or(&hunk.new);
        result.extend_from_slice(new);
        at = end;
        if at < lines.len() && !new.is_empty() && !new.ends_with(b"\n") {
            result.push(b'\n');
        }
    }
    result.extend(lines[at..].concat());
    Ok(result)
}
