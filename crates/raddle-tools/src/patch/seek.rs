//! Finding lines in a file.

use std::cell::Cell;

/// How exactly lines must agree, from the strictest.
const LEVELS: [fn(&str, &str) -> bool; 4] = [
    |a, b| a == b,
    |a, b| a.trim_end() == b.trim_end(),
    |a, b| a.trim() == b.trim(),
    |a, b| plain(a).eq(plain(b)),
];

/// How many lines are compared for one file; whoever needs more is told that nothing was found.
const COMPARED_MAX: usize = 10_000_000;

/// Above this the most similar place is not looked for.
const SIMILAR_MAX: usize = 4_000_000;

/// The lines of a file, and how much more looking is worth.
pub(super) struct Lines<'a> {
    pub all: Vec<&'a str>,
    left: Cell<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(all: Vec<&'a str>) -> Self {
        let left = Cell::new(COMPARED_MAX);
        Self { all, left }
    }

    /// Where these lines stand at or after `from`. Those at the end of the file come first if that is where
    /// they should be.
    pub(super) fn seek(&self, wanted: &[&str], from: usize, is_at_end: bool) -> Option<usize> {
        let lines = &self.all;
        if wanted.is_empty() {
            return Some(if is_at_end { lines.len() } else { from });
        }
        let last = lines.len().checked_sub(wanted.len())?;
        for is_same in LEVELS {
            let fits = |at: &usize| {
                let there = &lines[*at..*at + wanted.len()];
                there.iter().zip(wanted).all(|(a, b)| {
                    self.left.set(self.left.get().saturating_sub(1));
                    is_same(a, b)
                })
            };
            if is_at_end && last >= from && fits(&last) {
                return Some(last);
            }
            let mut places = from..=last;
            let found = places.find(|at| self.left.get() == 0 || fits(at));
            if self.left.get() == 0 {
                return None;
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The place at which most of the lines stand, for those who did not find all of them.
    pub(super) fn nearest(&self, wanted: &[&str]) -> Option<usize> {
        if wanted.len().saturating_mul(self.all.len()) > SIMILAR_MAX {
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
