//! Finding lines in a file.

use std::cell::Cell;

/// Bytes that are compared for one patch; a patch that needs more is told that nothing was found. A comparison costs
/// something also where it ends at once.
const COMPARED_BYTES_MAX: usize = 128 << 20;
const COMPARISON_BYTES: usize = 16;

/// Above this the most similar place is not looked for.
const SIMILAR_LINES_MAX: usize = 4_000_000;
const SIMILAR_BYTES_MAX: usize = 256 << 20;

/// The comparing that one patch may still cost, in all its files.
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

/// The lines of a file, and how much more looking is worth.
pub(super) struct FileLines<'a> {
    pub all: Vec<&'a str>,
    /// The same without white space at their end, and around them.
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

    /// Where these lines stand at or after `from`. Those at the end of the file come first if that is where
    /// they should be. They are looked for exactly first, then ever less so.
    pub(super) fn seek(&self, wanted: &[&str], from: usize, is_at_end: bool) -> Option<usize> {
        if wanted.is_empty() {
            let end = self.all.len();
            return Some(if is_at_end { end } else { from });
        }
        let ended: Vec<&str> = wanted.iter().map(|it| it.trim_end()).collect();
        let trimmed: Vec<&str> = wanted.iter().map(|it| it.trim()).collect();
        let is_equal = |a: &str, b: &str| a == b;
        let is_alike = |a: &str, b: &str| plain(a).eq(plain(b));
        let place = (from, is_at_end);
        self.seek_in(&self.all, wanted, place, is_equal)
            .or_else(|| self.seek_in(&self.ended, &ended, place, is_equal))
            .or_else(|| self.seek_in(&self.trimmed, &trimmed, place, is_equal))
            .or_else(|| self.seek_in(&self.trimmed, &trimmed, place, is_alike))
    }

    fn seek_in(
        &self,
        lines: &[&str],
        wanted: &[&str],
        (from, is_at_end): (usize, bool),
        is_same: impl Fn(&str, &str) -> bool,
    ) -> Option<usize> {
        let last = lines.len().checked_sub(wanted.len())?;
        let fits = |at: &usize| {
            let there = &lines[*at..*at + wanted.len()];
            there.iter().zip(wanted).all(|(a, b)| {
                let bytes = a.len().min(b.len());
                self.budget.spend(COMPARISON_BYTES + bytes);
                !self.budget.is_spent() && is_same(a, b)
            })
        };
        if is_at_end && last >= from && fits(&last) {
            return Some(last);
        }
        let mut places = from..=last;
        let found = places.find(|at| self.budget.is_spent() || fits(at));
        found.filter(|_| !self.budget.is_spent())
    }

    /// The place at which most of the lines stand, for those who did not find all of them.
    pub(super) fn nearest(&self, wanted: &[&str]) -> Option<usize> {
        let bytes: usize = wanted.iter().map(|it| it.len()).sum();
        if wanted.len().saturating_mul(self.all.len()) > SIMILAR_LINES_MAX
            || bytes.saturating_mul(self.all.len()) > SIMILAR_BYTES_MAX
        {
            return None;
        }
        let wanted: Vec<String> = wanted.iter().map(|it| plain(it).collect()).collect();
        let lines: Vec<String> = self.all.iter().map(|it| plain(it).collect()).collect();
        let score = |at: usize| {
            let pairs = wanted.iter().zip(&lines[at..]);
            pairs.filter(|(a, b)| a == b && !a.is_empty()).count()
        };
        let best = (0..lines.len()).max_by_key(|at| (score(*at), usize::MAX - at))?;
        (score(best) > 0).then_some(best)
    }
}

/// A line without what is lost when it is copied: white space around it and typography.
fn plain(line: &str) -> impl Iterator<Item = char> {
    line.trim().chars().map(|it| match it {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    })
}
