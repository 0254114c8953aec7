//! Finding lines in a file.

/// How exactly lines must agree, from the strictest.
const LEVELS: [fn(&str, &str) -> bool; 4] = [
    |a, b| a == b,
    |a, b| a.trim_end() == b.trim_end(),
    |a, b| a.trim() == b.trim(),
    |a, b| plain(a) == plain(b),
];

/// Where these lines stand at or after `from`. Those at the end of the file come first if that is where they
/// should be.
pub(super) fn seek(lines: &[&str], wanted: &[&str], from: usize, is_at_end: bool) -> Option<usize> {
    if wanted.is_empty() {
        return Some(if is_at_end { lines.len() } else { from });
    }
    let last = lines.len().checked_sub(wanted.len())?;
    for is_same in LEVELS {
        let fits = |at: &usize| {
            let there = &lines[*at..*at + wanted.len()];
            there.iter().zip(wanted).all(|(a, b)| is_same(a, b))
        };
        if is_at_end && last >= from && fits(&last) {
            return Some(last);
        }
        if let Some(at) = (from..=last).find(fits) {
            return Some(at);
        }
    }
    None
}

/// The place at which most of the lines stand, for those who did not find all of them.
pub(super) fn nearest(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let wanted: Vec<String> = wanted.iter().map(|it| plain(it)).collect();
    let lines: Vec<String> = lines.iter().map(|it| plain(it)).collect();
    // Enough to find a place that a person would call the same, in time that is not noticed.
    if wanted.len().saturating_mul(lines.len()) > 4_000_000 {
        return None;
    }
    let score = |at: usize| {
        let pairs = wanted.iter().zip(&lines[at..]);
        pairs.filter(|(a, b)| a == b && !a.is_empty()).count()
    };
    let best = (0..lines.len()).max_by_key(|at| (score(*at), usize::MAX - at))?;
    (score(best) > 0).then_some(best)
}

/// A line without what is lost when it is copied: white space around it and typography.
fn plain(line: &str) -> String {
    let plain = |it: char| match it {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    };
    let line: String = line.chars().map(plain).collect();
    line.trim().to_owned()
}
