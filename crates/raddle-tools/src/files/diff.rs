//! Unified diffs of two texts, as git prints them.
//!
//! The algorithm takes quadratic time where the same lines occur again and again on both sides.
//! Texts that would exceed a budget are split at lines that occur once on each side. A piece that
//! is still too large is shown as replaced. The budget counts work, not time, so the same texts
//! always give the same diff.

use std::fmt::Write as _;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};

/// Number of lines shown around a change.
const CONTEXT: u32 = 3;

/// Budget: the product of equal line pairs and all lines, up to which two texts are compared as a
/// whole.
const WORK_MAX: u64 = 50_000_000_000;

/// Maximum number of line pairs up to which a piece of two larger texts is compared.
const PIECE_PAIRS_MAX: usize = 1_000_000;

/// Returns the hunks of a unified diff, without file names. Empty if the texts are equal.
pub fn unified(base: &str, now: &str) -> String {
    let input = InternedInput::new(base, now);
    let hunks = compare(&input);
    // Changes with touching context are shown as one hunk.
    let groups = hunks.chunk_by(|a, b| b.before.start - a.before.end <= 2 * CONTEXT);
    let mut text = String::new();
    for group in groups {
        print(&mut text, &input, group);
    }
    text
}

/// Returns the share of the larger text that is also in the other, in percent.
pub(crate) fn similarity(base: &str, now: &str) -> usize {
    let input = InternedInput::new(base, now);
    let removed = compare(&input).into_iter().flat_map(|hunk| hunk.before);
    let bytes = |index: u32| input.interner[input.before[index as usize]].len();
    let common_bytes = base.len() - removed.map(bytes).sum::<usize>();
    match base.len().max(now.len()) {
        0 => 100,
        whole => common_bytes * 100 / whole,
    }
}

fn compare(input: &InternedInput<&str>) -> Vec<Hunk> {
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
    fn new(input: &InternedInput<&str>) -> Self {
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

fn compare_in_pieces(input: &InternedInput<&str>, counts: &LineCounts) -> Vec<Hunk> {
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
    input: &InternedInput<&str>,
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
    input: &InternedInput<&str>,
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

fn print(text: &mut String, input: &InternedInput<&str>, group: &[Hunk]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    let lead = first.before.start.min(CONTEXT);
    let rest = input.before.len() as u32 - last.before.end;
    let trailing = rest.min(CONTEXT);
    let before = (first.before.start - lead, last.before.end + trailing);
    let after = (first.after.start - lead, last.after.end + trailing);
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

/// Formats a range: lines count from one; an empty range names the line before it.
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
    range: Range<u32>,
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
