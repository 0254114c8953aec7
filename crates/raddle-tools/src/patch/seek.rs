//! Searches for lines in a file.

use std::cell::Cell;

/// Limit: bytes compared to find the lines of one patch; beyond it, the lines are not found.
///
/// Each comparison has a base cost, even if it ends at once.
const COMPARED_BYTES_MAX: usize = 128 << 20;
const COMPARISON_BYTES: usize = 16;

/// Limits for the search of the most similar position.
const SIMILAR_LINES_MAX: usize = 4_000_000;
const SIMILAR_BYTES_MAX: usize = 256 << 20;

/// Remaining budget of comparisons for one patch, across its files.
pub(super) struct SearchBudget(Cell<usize>);

impl SearchBudget {
    pub(super) fn new() -> Self {
        Self(Cell::new(COMPARED_BYTES_MAX))
    }

    pub(super) fn spend(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub(bytes));
    }

    fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// Lines of a file, with the budget to search them.
pub(super) struct FileLines<'a> {
    pub all: Vec<&'a str>,
    /// The lines without white space at the end, and without white space on both sides.
    ended: Vec<&'a str>,
    trimmed: Vec<&'a str>,
    budget: &'a SearchBudget,
}

impl<'a> FileLines<'a> {
    pub(super) fn new(all: Vec<&'a str>, budget: &'a SearchBudget) -> Self {
        Self {
            ended: all.iter().map(|it| it.trim_end()).collect(),
            trimmed: all.iter().map(|it| it.trim()).collect(),
            all,
            budget,
        }
    }

    /// Returns the position of these lines at or after `from`. With `is_at_end`, a match at the end
    /// of the file is preferred. The search is exact first, then increasingly tolerant.
    pub(super) fn seek(&self, expected: &[&str], from: usize, is_at_end: bool) -> Option<usize> {
        if expected.is_empty() {
            let end = self.all.len();
            return Some(if is_at_end { end } else { from });
        }
        let ended: Vec<&str> = expected.iter().map(|it| it.trim_end()).collect();
        let trimmed: Vec<&str> = expected.iter().map(|it| it.trim()).collect();
        let is_equal = |a: &str, b: &str| a == b;
        let is_alike = |a: &str, b: &str| plain(a).eq(plain(b));
        let range = (from, is_at_end);
        self.seek_in(&self.all, expected, range, is_equal)
            .or_else(|| self.seek_in(&self.ended, &ended, range, is_equal))
            .or_else(|| self.seek_in(&self.trimmed, &trimmed, range, is_equal))
            .or_else(|| self.seek_in(&self.trimmed, &trimmed, range, is_alike))
    }

    fn seek_in(
        &self,
        lines: &[&str],
        expected: &[&str],
        (from, is_at_end): (usize, bool),
        is_same: impl Fn(&str, &str) -> bool,
    ) -> Option<usize> {
        let last = lines.len().checked_sub(expected.len())?;
        let fits = |at: &usize| {
            let window = &lines[*at..*at + expected.len()];
            window.iter().zip(expected).all(|(a, b)| {
                let bytes = a.len().min(b.len());
                self.budget.spend(COMPARISON_BYTES + bytes);
                !self.budget.is_spent() && is_same(a, b)
            })
        };
        if is_at_end && last >= from && fits(&last) {
            return Some(last);
        }
        let mut positions = from..=last;
        let position = positions.find(|at| self.budget.is_spent() || fits(at));
        position.filter(|_| !self.budget.is_spent())
    }

    /// Returns the position where most of the lines match, for an error message.
    pub(super) fn nearest(&self, expected: &[&str]) -> Option<usize> {
        let bytes: usize = expected.iter().map(|it| it.len()).sum();
        if expected.len().saturating_mul(self.all.len()) > SIMILAR_LINES_MAX
            || bytes.saturating_mul(self.all.len()) > SIMILAR_BYTES_MAX
        {
            return None;
        }
        let expected: Vec<String> = expected.iter().map(|it| plain(it).collect()).collect();
        let lines: Vec<String> = self.all.iter().map(|it| plain(it).collect()).collect();
        let score = |at: usize| {
            let pairs = expected.iter().zip(&lines[at..]);
            pairs.filter(|(a, b)| a == b && !a.is_empty()).count()
        };
        let best = (0..lines.len()).max_by_key(|at| (score(*at), usize::MAX - at))?;
        (score(best) > 0).then_some(best)
    }
}

/// Normalises what copying loses: white space around the line and typography.
fn plain(line: &str) -> impl Iterator<Item = char> {
    line.trim().chars().map(|it| match it {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    })
}
