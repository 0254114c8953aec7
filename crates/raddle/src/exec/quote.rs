//! What the agent wrote, laid out so that nobody takes it for words of ours.
//!
//! Ours are at the beginning of a line. What the agent wrote comes behind them, or behind a gutter: a line of it that
//! would be wrapped by the terminal is broken here, so that none begins without one.

use sha2::{Digest, Sha256};

use crate::print::sanitize;

/// In front of what goes on from the line above.
pub(super) const GUTTER: &str = "  │ ";

/// How many lines of one thing are shown until all of it is asked for.
const LINES_MAX: usize = 20;

/// How many of them are the last ones.
const TAIL_LINES: usize = 6;

/// A page has at least so many lines.
const ROWS_MIN: usize = 8;

/// A line holds at least so much beside what is in front of it.
const COLUMNS_MIN: usize = 16;

/// The furthest that a tab goes.
const TAB_COLUMNS: usize = 8;

/// A few words of ours, and what the agent wrote behind them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quote {
    pub(super) lead: String,
    pub(super) text: String,
}

impl Quote {
    pub(super) fn new(lead: impl Into<String>, text: impl Into<String>) -> Self {
        let (lead, text) = (lead.into(), text.into());
        Self { lead, text }
    }

    /// Its lines on a terminal of this width.
    pub(super) fn lines(&self, columns: usize) -> Vec<String> {
        let least = columns_of(&self.lead).max(columns_of(GUTTER)) + COLUMNS_MIN;
        // The last column is left free: some terminals go to the next line as soon as it is taken.
        let columns = columns.saturating_sub(1).max(least);
        let mut lines = Vec::new();
        let mut line = self.lead.clone();
        let mut taken = columns_of(&line);
        for letter in sanitize(&self.text).trim_end().chars() {
            let is_new = letter == '\n';
            if is_new || taken + wide(letter) > columns {
                lines.push(std::mem::replace(&mut line, GUTTER.to_owned()));
                taken = columns_of(GUTTER);
            }
            if !is_new {
                line.push(letter);
                taken += wide(letter);
            }
        }
        lines.push(line);
        lines
    }
}

/// The lines of several things. Of each so many of the first and the last that the question below it stays in
/// sight.
pub(super) fn laid_out(things: &[Vec<Quote>], columns: usize) -> Vec<String> {
    let mut shown = Vec::new();
    for thing in things {
        let lines: Vec<String> = thing.iter().flat_map(|it| it.lines(columns)).collect();
        if lines.len() <= LINES_MAX {
            shown.extend(lines);
            continue;
        }
        let (head, rest) = lines.split_at(LINES_MAX - TAIL_LINES);
        let (left_out, tail) = rest.split_at(rest.len() - TAIL_LINES);
        shown.extend_from_slice(head);
        let more = left_out.len();
        shown.push(format!("  … {more} more lines; ? pages through all"));
        shown.extend_from_slice(tail);
        shown.push(format!("  SHA-256 of all of it: {}", sum(thing)));
    }
    shown
}

/// One page of all lines of several things, counted from zero; after the last page comes the first again.
pub(super) fn page(
    things: &[Vec<Quote>],
    columns: usize,
    rows: usize,
    number: usize,
) -> Vec<String> {
    let lines: Vec<String> = things
        .iter()
        .flatten()
        .flat_map(|it| it.lines(columns))
        .collect();
    // Two rows are ours: the one that counts, and the prompt.
    let size = rows.saturating_sub(2).max(ROWS_MIN);
    let pages = lines.len().div_ceil(size).max(1);
    let number = number % pages;
    let from = number * size;
    let until = lines.len().min(from + size);
    let mut shown = lines[from..until].to_vec();
    if pages > 1 {
        let next = match number + 1 == pages {
            true => "the first",
            false => "the next",
        };
        shown.push(format!(
            "  lines {} to {until} of {}; ? shows {next} page",
            from + 1,
            lines.len()
        ));
    }
    shown
}

/// What tells one long thing from another of the same beginning and end.
fn sum(thing: &[Quote]) -> String {
    let texts: Vec<&str> = thing.iter().map(|it| it.text.as_str()).collect();
    let sum = Sha256::digest(texts.join("\n"));
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The end of a line that fits into so many columns.
pub(super) fn end(line: &str, columns: usize) -> &str {
    let mut taken = 0;
    let fits = line.char_indices().rev().take_while(|(_, letter)| {
        taken += wide(*letter);
        taken <= columns
    });
    let from = fits.last().map_or(line.len(), |(at, _)| at);
    &line[from..]
}

fn columns_of(text: &str) -> usize {
    text.chars().map(wide).sum()
}

/// How many columns a letter takes at most. Too many is a line that is broken early, and no harm.
fn wide(letter: char) -> usize {
    match letter {
        '\t' => TAB_COLUMNS,
        _ if letter.is_ascii() => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_line_fits() {
        for (line, columns, shown) in [
            ("warp and weft", 4, "weft"),
            ("weft", 4, "weft"),
            ("weft", 9, "weft"),
            ("漢漢漢", 5, "漢漢"),
            ("weft", 0, ""),
            ("", 4, ""),
        ] {
            assert_eq!(end(line, columns), shown, "{line} {columns}");
        }
    }

    #[test]
    fn nothing_of_the_agents_begins_a_line() {
        let spaced = format!("echo{}may I? true", " ".repeat(27));
        let wide = "漢".repeat(20);
        for (text, lines) in [
            ("ls", vec!["may I? ls".to_owned()]),
            ("", vec!["may I? ".to_owned()]),
            (
                "ls\nmay I? true",
                vec!["may I? ls".to_owned(), "  │ may I? true".to_owned()],
            ),
            (
                "a\r\n\u{1b}[2Jb\n\n",
                vec!["may I? a\\u{d}".to_owned(), "  │ \\u{1b}[2Jb".to_owned()],
            ),
            ("a\u{2028}b", vec!["may I? a\\u{2028}b".to_owned()]),
            (
                &spaced,
                vec![
                    format!("may I? echo{}", " ".repeat(19)),
                    format!("  │ {}may I? true", " ".repeat(8)),
                ],
            ),
            (
                &wide,
                vec![
                    format!("may I? {}", "漢".repeat(11)),
                    format!("  │ {}", "漢".repeat(9)),
                ],
            ),
            (
                "\t\t\t\tx",
                vec!["may I? \t\t".to_owned(), "  │ \t\tx".to_owned()],
            ),
        ] {
            assert_eq!(Quote::new("may I? ", text).lines(31), lines, "{text:?}");
        }
        // However narrow it is said to be.
        assert_eq!(Quote::new("may I? ", "ls").lines(0), ["may I? ls"]);
    }

    fn hex_of(text: &str) -> String {
        let sum = Sha256::digest(text);
        sum.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn what_is_long_is_cut_until_it_is_wanted() {
        let long: Vec<String> = (1..=25).map(|it| format!("line {it}")).collect();
        let things = [
            vec![Quote::new("may I? ", long.join("\n"))],
            vec![Quote::new("  because: ", "x")],
        ];
        let cut = laid_out(&things, 80);
        assert_eq!(cut.len(), LINES_MAX + 3);
        assert_eq!(cut[13], "  │ line 14");
        assert_eq!(cut[14], "  … 5 more lines; ? pages through all");
        assert_eq!(cut[15], "  │ line 20");
        assert_eq!(cut[20], "  │ line 25");
        let sum = hex_of(&long.join("\n"));
        assert_eq!(cut[21], format!("  SHA-256 of all of it: {sum}"));
        assert_eq!(cut[22], "  because: x");
    }

    #[test]
    fn all_of_what_is_long_is_paged_through() {
        let long: Vec<String> = (1..=25).map(|it| format!("line {it}")).collect();
        let things = [
            vec![Quote::new("may I? ", long.join("\n"))],
            vec![Quote::new("  because: ", "x")],
        ];
        let first = page(&things, 80, 17, 0);
        assert_eq!(first.len(), 16);
        assert_eq!(first[0], "may I? line 1");
        assert_eq!(first[15], "  lines 1 to 15 of 26; ? shows the next page");
        let second = page(&things, 80, 17, 1);
        assert_eq!(second[0], "  │ line 16");
        assert_eq!(second[10], "  because: x");
        assert_eq!(second[11], "  lines 16 to 26 of 26; ? shows the first page");
        assert_eq!(page(&things, 80, 17, 2), first);
        // On a terminal that has room for all of it, or says nothing of its height.
        assert_eq!(page(&things, 80, 40, 3).len(), 26);
        assert_eq!(page(&things, 80, 0, 0).len(), ROWS_MIN + 1);
    }
}
