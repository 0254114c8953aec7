//! Renames: a file that is gone and a file that is new, with the same or a similar content.

use std::collections::HashMap;

use super::lines::similarity;
use super::{Contents, PathChange, Sides, sides_of};
use crate::path::is_within;
use crate::{ContentHash, EntryKind, Error, FileEntry};

/// Share of common lines, in percent, from which a new file is a renamed one.
const SIMILARITY_MIN: usize = 50;

/// Maximum number of pairs of files that are compared by content.
const PAIRS_MAX: usize = 2_500;

/// Maximum size of files that are compared by content.
const BYTES_MAX: u64 = 1 << 20;

/// Maximum size of all files that are compared by content, because they are in memory at once.
const ALL_BYTES_MAX: u64 = 32 << 20;

/// Joins deletions and additions that are renames. The result is sorted by path.
pub(super) fn pair(
    changes: Vec<PathChange>,
    contents: &mut Contents<'_>,
) -> Result<Vec<Sides>, Error> {
    let is_file =
        |entry: Option<FileEntry>| entry.filter(|it| it.kind == EntryKind::File && it.size > 0);
    let mut deleted: Vec<usize> = Vec::new();
    let mut added: Vec<usize> = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        match (change.before, change.after) {
            (before, None) if is_file(before).is_some() => deleted.push(at),
            (None, after) if is_file(after).is_some() => added.push(at),
            _ => {}
        }
    }
    // From the place of the addition to that of its deletion.
    let mut sources: HashMap<usize, usize> = HashMap::new();
    let mut by_hash: HashMap<ContentHash, Vec<usize>> = HashMap::new();
    for at in deleted.iter().rev() {
        if let Some(entry) = changes[*at].before {
            by_hash.entry(entry.hash).or_default().push(*at);
        }
    }
    for at in &added {
        let Some(entry) = changes[*at].after else {
            continue;
        };
        let Some(same) = by_hash.get_mut(&entry.hash) else {
            continue;
        };
        let fits = same
            .iter()
            .rposition(|it| !is_nested(&changes[*it], &changes[*at]));
        if let Some(place) = fits {
            sources.insert(*at, same.remove(place));
        }
    }
    deleted.retain(|it| !sources.values().any(|taken| taken == it));
    added.retain(|it| !sources.contains_key(it));
    let size = |at: &usize| {
        let change = &changes[*at];
        let size = change.before.or(change.after).map_or(0, |it| it.size);
        if size > BYTES_MAX { 0 } else { size }
    };
    let bytes: u64 = deleted.iter().chain(&added).map(size).sum();
    if deleted.len() * added.len() <= PAIRS_MAX && bytes <= ALL_BYTES_MAX {
        let mut candidates = Vec::new();
        for from in &deleted {
            for to in &added {
                let score = score(&changes[*from], &changes[*to], contents)?;
                if score >= SIMILARITY_MIN {
                    candidates.push((std::cmp::Reverse(score), *from, *to));
                }
            }
        }
        candidates.sort();
        for (_, from, to) in candidates {
            if !sources.contains_key(&to) && !sources.values().any(|it| *it == from) {
                sources.insert(to, from);
            }
        }
    }
    Ok(joined(changes, &sources))
}

fn joined(changes: Vec<PathChange>, sources: &HashMap<usize, usize>) -> Vec<Sides> {
    let mut sides: Vec<Option<Sides>> = changes.into_iter().map(|it| Some(sides_of(it))).collect();
    for (to, from) in sources {
        let source = sides[*from].take();
        if let (Some((before, _)), Some(target)) = (source, &mut sides[*to]) {
            target.0 = before;
        }
    }
    sides.into_iter().flatten().collect()
}

/// Git cannot rename a file to a path below itself.
fn is_nested(from: &PathChange, to: &PathChange) -> bool {
    let (from, to) = (from.path.as_bytes(), to.path.as_bytes());
    is_within(from, to) || is_within(to, from)
}

fn score(from: &PathChange, to: &PathChange, contents: &mut Contents<'_>) -> Result<usize, Error> {
    let (Some(before), Some(after)) = (from.before, to.after) else {
        return Ok(0);
    };
    let (small, large) = (before.size.min(after.size), before.size.max(after.size));
    if is_nested(from, to) || large > BYTES_MAX || small * 100 < large * SIMILARITY_MIN as u64 {
        return Ok(0);
    }
    contents.load(&before.hash)?;
    contents.load(&after.hash)?;
    let (old, new) = (contents.loaded(&before.hash), contents.loaded(&after.hash));
    if old.contains(&0) || new.contains(&0) {
        return Ok(0);
    }
    Ok(similarity(old, new))
}
