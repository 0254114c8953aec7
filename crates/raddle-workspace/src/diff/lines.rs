//! The hunks between two texts.
//!
//! The algorithm takes quadratic time where the same lines occur again and again on both sides.
//! Texts that would exceed a budget are split at lines that occur once on each side. A piece that
//! is still too large is shown as replaced. The budget counts work, not time, so the same texts
//! always give the same hunks.

use std::collections::HashMap;
use std::ops::Range;

use data_encoding::HEXLOWER;
use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};
use sha2::{Digest as _, Sha256};

use crate::WorkspacePath;

/// Number of lines shown around a change. Changes whose context touches are one hunk.
pub(super) const CONTEXT: u32 = 3;

/// Budget: the product of equal line pairs and all lines, up to which two texts are compared as a
/// whole.
const WORK_MAX: u64 = 50_000_000_000;

/// Maximum number of line pairs up to which a piece of two larger texts is compared.
const PIECE_PAIRS_MAX: usize = 1_000_000;

/// Some lines of a file and the lines in their place. The lines around them are not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHunk {
    /// Name of the hunk. It depends on the path, the lines and their neighbours, not on the number
    /// of the line: other changes of the file do not change it.
    pub id: String,
    /// The replaced lines, counted from zero.
    pub before: Range<u32>,
    /// Where the new lines are if all hunks are applied.
    pub after: Range<u32>,
    /// Content of the replaced lines, with their line ends.
    pub old: Vec<u8>,
    /// Content of the new lines, with their line ends.
    pub new: Vec<u8>,
}

/// Returns the lines of a text with their line ends.
pub(super) fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|it| *it == b'\n').collect()
}

/// Returns the hunks between two texts; `path` is part of their names.
pub(super) fn hunks(path: Option<&WorkspacePath>, old: &[u8], new: &[u8]) -> Vec<FileHunk> {
    let input = InternedInput::new(old, new);
    let changes = compare(&input);
    let groups = changes.chunk_by(|a, b| b.before.start - a.before.end <= 2 * CONTEXT);
    let (old, new) = (split(old), split(new));
    let mut occurrences: HashMap<[u8; 32], u32> = HashMap::new();
    let mut hunks = Vec::new();
    for group in groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let before = first.before.start..last.before.end;
        let after = first.after.start..last.after.end;
        let text = |lines: &[&[u8]], range: &Range<u32>| lines[as_usize(range)].concat();
        let hunk = FileHunk {
            id: String::new(),
            old: text(&old, &before),
            new: text(&new, &after),
            before,
            after,
        };
        let digest = digest(path, &old, &hunk);
        let nth = occurrences.entry(digest).or_insert(0);
        let id = Sha256::new()
            .chain_update(digest)
            .chain_update(nth.to_le_bytes());
        *nth += 1;
        hunks.push(FileHunk {
            id: HEXLOWER.encode(&id.finalize()[..8]),
            ..hunk
        });
    }
    hunks
}

fn digest(path: Option<&WorkspacePath>, old: &[&[u8]], hunk: &FileHunk) -> [u8; 32] {
    let lead = hunk.before.start.saturating_sub(CONTEXT)..hunk.before.start;
    let end = hunk
        .before
        .end
        .saturating_add(CONTEXT)
        .min(old.len() as u32);
    let trail = hunk.before.end..end;
    let parts: [&[u8]; 5] = [
        path.map_or(&b""[..], |it| it.as_bytes()),
        &old[as_usize(&lead)].concat(),
        &hunk.old,
        &hunk.new,
        &old[as_usize(&trail)].concat(),
    ];
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

pub(super) fn as_usize(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Returns the share of the larger text whose lines are also in the other, in percent.
pub(super) fn similarity(old: &[u8], new: &[u8]) -> usize {
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for line in split(old) {
        *counts.entry(line).or_insert(0) += 1;
    }
    let mut common = 0;
    for line in split(new) {
        if let Some(count) = counts.get_mut(line).filter(|it| **it > 0) {
            *count -= 1;
            common += line.len();
        }
    }
    match old.len().max(new.len()) {
        0 => 100,
        whole => common * 100 / whole,
    }
}

fn compare(input: &InternedInput<&[u8]>) -> Vec<Hunk> {
    let counts = LineCounts::new(input);
    let lines = (input.before.len() + input.after.len()) as u64;
    if counts.pairs().saturating_mul(lines) > WORK_MAX {
        return compare_in_pieces(input, &counts);
    }
    let mut diff = Diff::compute(Algorithm::Histogram, input);
    diff.postprocess_lines(input);
    diff.hunks().collect()
}

/// Occurrences of each line on either side.
struct LineCounts {
    before: Vec<u32>,
    after: Vec<u32>,
}

impl LineCounts {
    fn new(input: &InternedInput<&[u8]>) -> Self {
        let line_kinds = input.interner.num_tokens() as usize;
        let count = |tokens: &[Token]| {
            let mut counts = vec![0; line_kinds];
            for token in tokens {
                counts[token.0 as usize] += 1;
            }
            counts
        };
        Self {
            before: count(&input.before),
            after: count(&input.after),
        }
    }

    /// Number of pairs of equal lines, one of each side.
    fn pairs(&self) -> u64 {
        let both = self.before.iter().zip(&self.after);
        both.map(|(before, after)| u64::from(*before) * u64::from(*after))
            .sum()
    }

    fn is_once(&self, token: Token) -> bool {
        let at = token.0 as usize;
        self.before[at] == 1 && self.after[at] == 1
    }
}

fn compare_in_pieces(input: &InternedInput<&[u8]>, counts: &LineCounts) -> Vec<Hunk> {
    let (before, after) = (&input.before, &input.after);
    let head = common(before.iter(), after.iter());
    let (left, right) = (&before[head..], &after[head..]);
    let tail = common(left.iter().rev(), right.iter().rev());
    let ends = (before.len() - tail, after.len() - tail);
    let middle = (head..ends.0, head..ends.1);

    let mut hunks: Vec<Hunk> = Vec::new();
    let mut at = (head, head);
    for anchor in anchors(input, counts, middle).into_iter().chain([ends]) {
        let piece = (at.0..anchor.0, at.1..anchor.1);
        for hunk in compare_piece(input, piece) {
            match hunks.last_mut() {
                // Pieces touch if no anchor lies between them.
                Some(last)
                    if last.before.end == hunk.before.start
                        && last.after.end == hunk.after.start =>
                {
                    last.before.end = hunk.before.end;
                    last.after.end = hunk.after.end;
                }
                _ => hunks.push(hunk),
            }
        }
        at = (anchor.0 + 1, anchor.1 + 1);
    }
    hunks
}

fn common<'a>(
    before: impl Iterator<Item = &'a Token>,
    after: impl Iterator<Item = &'a Token>,
) -> usize {
    before.zip(after).take_while(|(a, b)| a == b).count()
}

/// Returns the longest sequence of lines that occur once on each side, in the same order on both.
fn anchors(
    input: &InternedInput<&[u8]>,
    counts: &LineCounts,
    (before, after): (Range<usize>, Range<usize>),
) -> Vec<(usize, usize)> {
    let mut positions = vec![usize::MAX; counts.after.len()];
    for at in after.clone() {
        positions[input.after[at].0 as usize] = at;
    }
    // The longest increasing subsequence: for each length, `tops` holds the pair that ends a
    // sequence of that length soonest on the other side. Each pair links to the previous one.
    let mut pairs: Vec<(usize, usize, Option<usize>)> = Vec::new();
    let mut tops: Vec<usize> = Vec::new();
    for at in before {
        let token = input.before[at];
        let position = positions[token.0 as usize];
        if !counts.is_once(token) || !after.contains(&position) {
            continue;
        }
        let length = tops.partition_point(|top| pairs[*top].1 < position);
        let previous = length.checked_sub(1).map(|shorter| tops[shorter]);
        if length == tops.len() {
            tops.push(pairs.len());
        } else {
            tops[length] = pairs.len();
        }
        pairs.push((at, position, previous));
    }
    let mut anchors = Vec::new();
    let mut next = tops.last().copied();
    while let Some((before, after, previous)) = next.map(|it| pairs[it]) {
        anchors.push((before, after));
        next = previous;
    }
    anchors.reverse();
    anchors
}

fn compare_piece(
    input: &InternedInput<&[u8]>,
    (before, after): (Range<usize>, Range<usize>),
) -> Vec<Hunk> {
    let whole = Hunk {
        before: before.start as u32..before.end as u32,
        after: after.start as u32..after.end as u32,
    };
    if before.is_empty() && after.is_empty() {
        return Vec::new();
    }
    if before.len().saturating_mul(after.len()) > PIECE_PAIRS_MAX {
        return vec![whole];
    }
    let mut diff = Diff::default();
    let tokens = input.interner.num_tokens();
    // Myers, since Histogram allocates a table of all tokens for every piece.
    diff.compute_with(
        Algorithm::Myers,
        &input.before[before.clone()],
        &input.after[after.clone()],
        tokens,
    );
    let shifted = |range: Range<u32>, by: &Range<u32>| range.start + by.start..range.end + by.start;
    diff.hunks()
        .map(|hunk| Hunk {
            before: shifted(hunk.before, &whole.before),
            after: shifted(hunk.after, &whole.after),
        })
        .collect()
}
