//! Lays out text of the agent so that it cannot be taken for Raddle's own.
//!
//! Raddle's text starts a line. Text of the agent follows it, or follows a gutter. A line that the
//! terminal would wrap is broken here, so that no line starts with text of the agent.

use data_encoding::HEXLOWER;
use raddle_console::sanitize;
use sha2::{Digest, Sha256};

/// The prefix of continued lines.
pub(crate) const GUTTER: &str = "  │ ";

/// How many lines of a section are shown before it is truncated.
const LINES_MAX: usize = 20;

/// How many of them are from the end.
const TAIL_LINES: usize = 6;

/// The minimum number of lines on a page.
const ROWS_MIN: usize = 8;

/// The minimum width of a line beside its prefix.
const COLUMNS_MIN: usize = 16;

/// The maximum width of a tab.
const TAB_COLUMNS: usize = 8;

/// A prefix of ours, and text of the agent after it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quote {
    pub(crate) lead: String,
    pub(crate) text: String,
    /// Whether the text is a diff, whose lines begin with a mark.
    is_diff: bool,
}

/// A line on a terminal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QuoteLine {
    pub(crate) text: String,
    pub(crate) kind: LineKind,
}

/// Kind of a line, by which it has its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Plain,
    /// A line that a diff adds.
    Added,
    /// A line that a diff removes.
    Removed,
}

impl LineKind {
    fn of_mark(mark: Option<char>) -> Self {
        match mark {
            Some('+') => Self::Added,
            Some('-') => Self::Removed,
            _ => Self::Plain,
        }
    }
}

impl QuoteLine {
    fn plain(text: String) -> Self {
        let kind = LineKind::Plain;
        Self { text, kind }
    }
}

impl Quote {
    pub(crate) fn new(lead: impl Into<String>, text: impl Into<String>) -> Self {
        let (lead, text) = (lead.into(), text.into());
        let is_diff = false;
        Self {
            lead,
            text,
            is_diff,
        }
    }

    /// Quotes a diff.
    pub(crate) fn diff(text: impl Into<String>) -> Self {
        let is_diff = true;
        Self {
            is_diff,
            ..Self::new(GUTTER, text)
        }
    }

    /// Its lines on a terminal of this width. A line that is broken keeps its kind.
    pub(crate) fn lines(&self, columns: usize) -> Vec<QuoteLine> {
        let least = columns_of(&self.lead).max(columns_of(GUTTER)) + COLUMNS_MIN;
        // The last column stays free: some terminals wrap as soon as it is filled.
        let columns = columns.saturating_sub(1).max(least);
        let mut lines = Vec::new();
        let mut lead = self.lead.as_str();
        for source_line in sanitize(&self.text).trim_end().split('\n') {
            let mark = source_line.chars().next().filter(|_| self.is_diff);
            let kind = LineKind::of_mark(mark);
            let mut text = lead.to_owned();
            let mut used_columns = columns_of(&text);
            for letter in source_line.chars() {
                if used_columns + wide(letter) > columns {
                    let text = std::mem::replace(&mut text, GUTTER.to_owned());
                    lines.push(QuoteLine { text, kind });
                    used_columns = columns_of(GUTTER);
                }
                text.push(letter);
                used_columns += wide(letter);
            }
            lines.push(QuoteLine { text, kind });
            lead = GUTTER;
        }
        lines
    }
}

/// The lines of several sections. Each is truncated to its first and last lines, so that the prompt
/// below stays visible.
pub(crate) fn laid_out(things: &[Vec<Quote>], columns: usize) -> Vec<QuoteLine> {
    let mut shown = Vec::new();
    for thing in things {
        let lines: Vec<QuoteLine> = thing.iter().flat_map(|it| it.lines(columns)).collect();
        if lines.len() <= LINES_MAX {
            shown.extend(lines);
            continue;
        }
        let (head, rest) = lines.split_at(LINES_MAX - TAIL_LINES);
        let (omitted, tail) = rest.split_at(rest.len() - TAIL_LINES);
        shown.extend_from_slice(head);
        let more = omitted.len();
        let omission = format!("  … {more} more lines; ? pages through all");
        shown.push(QuoteLine::plain(omission));
        shown.extend_from_slice(tail);
        let sum = format!("  SHA-256 of all of it: {}", sum(thing));
        shown.push(QuoteLine::plain(sum));
    }
    shown
}

/// One page of the lines of all sections, counted from zero. The first page follows the last one.
pub(crate) fn page(
    things: &[Vec<Quote>],
    columns: usize,
    rows: usize,
    number: usize,
) -> Vec<QuoteLine> {
    let lines: Vec<QuoteLine> = things
        .iter()
        .flatten()
        .flat_map(|it| it.lines(columns))
        .collect();
    // Two rows are reserved: the page indicator and the prompt.
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
        shown.push(QuoteLine::plain(format!(
            "  lines {} to {until} of {}; ? shows {next} page",
            from + 1,
            lines.len()
        )));
    }
    shown
}

/// The digest that distinguishes two long texts with the same beginning and end.
fn sum(thing: &[Quote]) -> String {
    let texts: Vec<&str> = thing.iter().map(|it| it.text.as_str()).collect();
    HEXLOWER.encode(&Sha256::digest(texts.join("\n")))
}

/// The end of a line that fits into this many columns.
pub(crate) fn end(line: &str, columns: usize) -> &str {
    let mut used_columns = 0;
    let fits = line.char_indices().rev().take_while(|(_, letter)| {
        used_columns += wide(*letter);
        used_columns <= columns
    });
    let from = fits.last().map_or(line.len(), |(at, _)| at);
    &line[from..]
}

fn columns_of(text: &str) -> usize {
    text.chars().map(wide).sum()
}

/// The maximum number of columns of a character. An overestimate breaks a line early, which is
/// harmless.
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

    fn texts(lines: Vec<QuoteLine>) -> Vec<String> {
        lines.into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn a_line_of_a_diff_keeps_its_kind() {
        let long = "+".repeat(40);
        let quote = Quote::diff(format!("@@\n-a\n{long}\n k"));
        let kinds: Vec<LineKind> = quote.lines(31).iter().map(|it| it.kind).collect();
        use LineKind::{Added, Plain, Removed};
        assert_eq!(kinds, [Plain, Removed, Added, Added, Plain]);
        let other = Quote::new(GUTTER, "+a").lines(31);
        assert_eq!(other[0].kind, Plain);
    }

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
    fn no_line_starts_with_text_of_the_agent() {
        let spaced = format!("echo{}allow? true", " ".repeat(27));
        let wide = "漢".repeat(20);
        for (text, lines) in [
            ("ls", vec!["allow? ls".to_owned()]),
            ("", vec!["allow? ".to_owned()]),
            (
                "ls\nallow? true",
                vec!["allow? ls".to_owned(), "  │ allow? true".to_owned()],
            ),
            (
                "a\r\n\u{1b}[2Jb\n\n",
                vec!["allow? a\\u{d}".to_owned(), "  │ \\u{1b}[2Jb".to_owned()],
            ),
            ("a\u{2028}b", vec!["allow? a\\u{2028}b".to_owned()]),
            (
                &spaced,
                vec![
                    format!("allow? echo{}", " ".repeat(19)),
                    format!("  │ {}allow? true", " ".repeat(8)),
                ],
            ),
            (
                &wide,
                vec![
                    format!("allow? {}", "漢".repeat(11)),
                    format!("  │ {}", "漢".repeat(9)),
                ],
            ),
            (
                "\t\t\t\tx",
                vec!["allow? \t\t".to_owned(), "  │ \t\tx".to_owned()],
            ),
        ] {
            let actual = texts(Quote::new("allow? ", text).lines(31));
            assert_eq!(actual, lines, "{text:?}");
        }
        // Even at an invalid width.
        assert_eq!(texts(Quote::new("allow? ", "ls").lines(0)), ["allow? ls"]);
    }

    #[test]
    fn long_text_is_truncated_until_requested() {
        let long: Vec<String> = (1..=25).map(|it| format!("line {it}")).collect();
        let things = [
            vec![Quote::new("allow? ", long.join("\n"))],
            vec![Quote::new("  because: ", "x")],
        ];
        let cut = texts(laid_out(&things, 80));
        assert_eq!(cut.len(), LINES_MAX + 3);
        assert_eq!(cut[13], "  │ line 14");
        assert_eq!(cut[14], "  … 5 more lines; ? pages through all");
        assert_eq!(cut[15], "  │ line 20");
        assert_eq!(cut[20], "  │ line 25");
        let sum = HEXLOWER.encode(&Sha256::digest(long.join("\n")));
        assert_eq!(cut[21], format!("  SHA-256 of all of it: {sum}"));
        assert_eq!(cut[22], "  because: x");
    }

    #[test]
    fn long_text_is_paged() {
        let long: Vec<String> = (1..=25).map(|it| format!("line {it}")).collect();
        let things = [
            vec![Quote::new("allow? ", long.join("\n"))],
            vec![Quote::new("  because: ", "x")],
        ];
        let page = |columns, rows, number| texts(page(&things, columns, rows, number));
        let first = page(80, 17, 0);
        assert_eq!(first.len(), 16);
        assert_eq!(first[0], "allow? line 1");
        assert_eq!(first[15], "  lines 1 to 15 of 26; ? shows the next page");
        let second = page(80, 17, 1);
        assert_eq!(second[0], "  │ line 16");
        assert_eq!(second[10], "  because: x");
        assert_eq!(second[11], "  lines 16 to 26 of 26; ? shows the first page");
        assert_eq!(page(80, 17, 2), first);
        // On a terminal large enough for all of it, or of unknown height.
        assert_eq!(page(80, 40, 3).len(), 26);
        assert_eq!(page(80, 0, 0).len(), ROWS_MIN + 1);
    }
}
