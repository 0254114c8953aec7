//! The choice of hunks of a change on the terminal, one after another.

use std::mem::take;

use raddle_protocol::{HunkDecision, ProposedHunk};

use super::quote::Quote;

pub(crate) const PROMPT: &str =
    "apply this hunk? yes, no, split, all, done, or why not? [y/n/s/a/d/?/…] ";

/// The effect of each answer to that prompt.
pub(crate) const EXPLANATIONS: [(&str, &str); 6] = [
    ("y", "applies this hunk"),
    ("n", "drops this hunk; the agent reads that you did"),
    (
        "s",
        "splits this hunk into smaller ones, if lines between its changes stay",
    ),
    ("a", "applies this hunk and all that follow"),
    ("d", "drops this hunk and all that follow; q does too"),
    (
        "other text",
        "drops this hunk, and the agent reads the text as the reason",
    ),
];

/// In place of the lines of a change that has none.
pub const AS_A_WHOLE: &str = "  the change of this file as a whole";

/// Lines on either side of a hunk beyond which it is not split.
const SPLIT_LINES_MAX: usize = 1000;

/// A choice of hunks, with the decisions so far.
#[derive(Clone, Debug)]
pub struct HunkChoice {
    hunks: Vec<ChosenHunk>,
    comments: CommentRule,
    /// Why the last line changed nothing.
    remark: Option<&'static str>,
}

/// Whether somebody reads why a hunk was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentRule {
    /// Another text than an answer drops the hunk, and is the reason.
    Allowed,
    /// It is no answer.
    None,
}

/// The part of a change to decide on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkView {
    /// Number and line of the hunk, before the path.
    pub lead: String,
    /// Path of the file.
    pub path: String,
    /// Removed and added lines, each with its mark. Empty if the file is decided on as a whole.
    pub lines: String,
    /// Why the last line changed nothing.
    pub remark: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct ChosenHunk {
    hunk: ProposedHunk,
    pieces: Vec<Piece>,
    /// The lines after the last piece that stay.
    tail: String,
    comments: Vec<String>,
}

/// A part of a hunk.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    /// The lines before it that stay.
    kept: String,
    /// Its first line in the file.
    line: u32,
    old: String,
    new: String,
    is_accepted: Option<bool>,
}

impl HunkChoice {
    /// Begins the choice; `None` if there is none.
    pub fn new(hunks: &[ProposedHunk], comments: CommentRule) -> Option<Self> {
        let chosen = hunks.iter().map(|it| ChosenHunk {
            hunk: it.clone(),
            pieces: vec![Piece {
                kept: String::new(),
                line: it.hunk.old_start,
                old: it.hunk.old_text.clone(),
                new: it.hunk.new_text.clone(),
                is_accepted: None,
            }],
            tail: String::new(),
            comments: Vec::new(),
        });
        let choice = Self {
            hunks: chosen.collect(),
            comments,
            remark: None,
        };
        let can_choose = hunks.len() > 1 || choice.hunks.iter().any(ChosenHunk::can_split);
        can_choose.then_some(choice)
    }

    /// Handles a line. Returns the decisions, in the order of the hunks, once all are made.
    pub fn handle_line(&mut self, line: &str) -> Option<Vec<HunkDecision>> {
        self.remark = None;
        let (decision, is_for_rest) = match line.to_lowercase().as_str() {
            "y" | "yes" => (true, false),
            "n" | "no" => (false, false),
            "a" | "all" => (true, true),
            "d" | "done" | "q" | "quit" => (false, true),
            "s" | "split" => {
                if !self.open_hunk()?.split() {
                    self.remark = Some("This hunk cannot be split.");
                }
                return None;
            }
            // A key of another program is no reason.
            it if it.chars().count() == 1 || self.comments == CommentRule::None => {
                self.remark = Some("There is no such answer; ? explains them.");
                return None;
            }
            _ => {
                self.open_hunk()?.comment(line);
                (false, false)
            }
        };
        let pieces = self.hunks.iter_mut().flat_map(|it| &mut it.pieces);
        let mut open = pieces.filter(|it| it.is_accepted.is_none());
        let decided = if is_for_rest { usize::MAX } else { 1 };
        for piece in open.by_ref().take(decided) {
            piece.is_accepted = Some(decision);
        }
        let is_open = open.next().is_some();
        (!is_open).then(|| self.hunks.iter().map(ChosenHunk::decision).collect())
    }

    fn open_hunk(&mut self) -> Option<&mut ChosenHunk> {
        let is_open = |it: &&mut ChosenHunk| it.pieces.iter().any(|it| it.is_accepted.is_none());
        self.hunks.iter_mut().find(is_open)
    }

    /// Returns the part to decide on now.
    pub fn view(&self) -> Option<HunkView> {
        let pieces = self
            .hunks
            .iter()
            .flat_map(|hunk| hunk.pieces.iter().map(move |piece| (hunk, piece)));
        let pieces: Vec<_> = pieces.collect();
        let open = pieces.iter().position(|(_, it)| it.is_accepted.is_none());
        let index = open?;
        let (hunk, piece) = pieces.get(index)?;
        let (number, count) = (index + 1, pieces.len());
        Some(HunkView {
            lead: format!("hunk {number} of {count}, line {} of ", piece.line),
            path: hunk.hunk.path.clone(),
            lines: marked('-', &piece.old) + &marked('+', &piece.new),
            remark: self.remark,
        })
    }

    /// Returns the part to decide on now, for the terminal.
    pub(crate) fn shown(&self) -> Vec<Quote> {
        let Some(view) = self.view() else {
            return Vec::new();
        };
        let mut quotes = vec![Quote::new(view.lead, view.path)];
        match view.lines.is_empty() {
            true => quotes.push(Quote::new(AS_A_WHOLE, "")),
            false => quotes.push(Quote::diff(view.lines)),
        }
        quotes.extend(view.remark.map(|it| Quote::new(it, "")));
        quotes
    }
}

impl ChosenHunk {
    /// Whether it can be split. In text that is not UTF-8 the lines that stay would change.
    fn can_split(&self) -> bool {
        let hunk = &self.hunk.hunk;
        let is_text = [&hunk.old_text, &hunk.new_text]
            .iter()
            .all(|it| !it.contains(char::REPLACEMENT_CHARACTER));
        is_text && self.pieces.len() == 1 && self.split_pieces().0.len() > 1
    }

    /// Splits it, if it can be split. The decision is then on its first piece.
    fn split(&mut self) -> bool {
        let can_split = self.can_split();
        if can_split {
            (self.pieces, self.tail) = self.split_pieces();
        }
        can_split
    }

    /// Adds a comment on the piece that is open.
    fn comment(&mut self, text: &str) {
        let open = self.pieces.iter().find(|it| it.is_accepted.is_none());
        let place = open.filter(|_| self.pieces.len() > 1);
        let place = place.map(|it| format!("line {}: ", it.line));
        self.comments.push(place.unwrap_or_default() + text);
    }

    /// Returns the changes with lines between them that stay, and the lines after the last one.
    fn split_pieces(&self) -> (Vec<Piece>, String) {
        let it = &self.hunk.hunk;
        let old: Vec<&str> = it.old_text.split_inclusive('\n').collect();
        let new: Vec<&str> = it.new_text.split_inclusive('\n').collect();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut kept = String::new();
        let mut line = it.old_start;
        for step in steps(&old, &new) {
            if let Step::Keep(text) = step {
                kept.push_str(text);
                line += 1;
                continue;
            }
            if !kept.is_empty() || pieces.is_empty() {
                pieces.push(Piece {
                    kept: take(&mut kept),
                    line,
                    old: String::new(),
                    new: String::new(),
                    is_accepted: None,
                });
            }
            let Some(piece) = pieces.last_mut() else {
                continue;
            };
            match step {
                Step::Remove(text) => {
                    piece.old.push_str(text);
                    line += 1;
                }
                Step::Add(text) => piece.new.push_str(text),
                Step::Keep(_) => {}
            }
        }
        (pieces, kept)
    }

    fn decision(&self) -> HunkDecision {
        let accepted = self.pieces.iter().filter(|it| it.is_accepted == Some(true));
        let count = accepted.count();
        let is_part = count > 0 && count < self.pieces.len();
        let text = self.pieces.iter().map(|it| {
            let chosen = match it.is_accepted {
                Some(true) => &it.new,
                _ => &it.old,
            };
            it.kept.clone() + chosen
        });
        let comment = self.comments.join("\n");
        HunkDecision {
            id: self.hunk.hunk.id.clone(),
            accept: count > 0,
            comment: (!comment.is_empty()).then_some(comment),
            replacement: is_part.then(|| text.chain([self.tail.clone()]).collect()),
        }
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Keep(&'a str),
    Remove(&'a str),
    Add(&'a str),
}

/// Returns the steps from one list of lines to another, with as many lines as possible kept.
fn steps<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Step<'a>> {
    if old.len().max(new.len()) > SPLIT_LINES_MAX {
        let removed = old.iter().map(|it| Step::Remove(it));
        return removed.chain(new.iter().map(|it| Step::Add(it))).collect();
    }
    // The number of lines that can be kept from each pair of positions on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            common[a][b] = match old[a] == new[b] {
                true => common[a + 1][b + 1] + 1,
                false => common[a + 1][b].max(common[a][b + 1]),
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut steps = Vec::new();
    loop {
        match (old.get(a), new.get(b)) {
            (None, None) => return steps,
            (Some(left), Some(right)) if left == right => {
                steps.push(Step::Keep(left));
                (a, b) = (a + 1, b + 1);
            }
            (Some(left), right) if right.is_none() || common[a + 1][b] >= common[a][b + 1] => {
                steps.push(Step::Remove(left));
                a += 1;
            }
            (_, Some(right)) => {
                steps.push(Step::Add(right));
                b += 1;
            }
            (Some(_), None) => return steps,
        }
    }
}

fn marked(mark: char, text: &str) -> String {
    let lines = text
        .split_inclusive('\n')
        .map(|line| match line.ends_with('\n') {
            true => format!("{mark}{line}"),
            false => format!("{mark}{line}\n"),
        });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use raddle_protocol::DiffHunk;
    use serde_json::json;

    use super::*;

    fn hunk(id: &str, old: &str, new: &str) -> ProposedHunk {
        ProposedHunk {
            path: "/w/a".to_owned(),
            hunk: DiffHunk {
                id: id.to_owned(),
                old_start: 7,
                old_lines: 0,
                new_start: 7,
                new_lines: 0,
                old_text: old.to_owned(),
                new_text: new.to_owned(),
            },
        }
    }

    #[test]
    fn lines_decide_hunk_by_hunk() {
        let hunks = [
            hunk("1", "a\nk\nb\n", "A\nk\nB\n"),
            hunk("2", "c\n", "d\n"),
            hunk("3", "h\na\nk\nb\nt\n", "h\nA\nk\nB\nt\n"),
        ];
        let yes =
            |id: &str| json!({"id": id, "accept": true, "comment": null, "replacement": null});
        let no =
            |id: &str| json!({"id": id, "accept": false, "comment": null, "replacement": null});
        let part =
            |text: &str| json!({"id": "1", "accept": true, "comment": null, "replacement": text});
        let why =
            |text: &str| json!({"id": "2", "accept": false, "comment": text, "replacement": null});
        for (lines, expected) in [
            (&["y", "n", "Yes"][..], [yes("1"), no("2"), yes("3")]),
            (&["a"], [yes("1"), yes("2"), yes("3")]),
            (&["n", "a"], [no("1"), yes("2"), yes("3")]),
            (&["y", "d"], [yes("1"), no("2"), no("3")]),
            (&["d"], [no("1"), no("2"), no("3")]),
            (
                &["y", "d is wrong", "y"],
                [yes("1"), why("d is wrong"), yes("3")],
            ),
            (
                &["s", "y", "n", "a"],
                [part("A\nk\nb\n"), yes("2"), yes("3")],
            ),
            (&["s", "n", "y", "d"], [part("a\nk\nB\n"), no("2"), no("3")]),
            // Lines before and after the parts stay.
            (
                &["y", "y", "s", "n", "y"],
                [
                    yes("1"),
                    yes("2"),
                    json!({
                        "id": "3", "accept": true, "comment": null, "replacement": "h\na\nk\nB\nt\n",
                    }),
                ],
            ),
            // Other keys are no answer, and a comment on a part names its line.
            (&["j", "y", "q"], [yes("1"), no("2"), no("3")]),
            (
                &["s", "keep", "y", "d"],
                [
                    json!({
                        "id": "1", "accept": true, "comment": "line 7: keep", "replacement": "a\nk\nB\n",
                    }),
                    no("2"),
                    no("3"),
                ],
            ),
            // All parts are the whole, and none is none. A part cannot be split again.
            (&["s", "y", "s", "y", "d"], [yes("1"), no("2"), no("3")]),
            (
                &["s", "n", "n", "s", "y", "d"],
                [no("1"), yes("2"), no("3")],
            ),
        ] {
            let choice = HunkChoice::new(&hunks, CommentRule::Allowed);
            let mut choice = choice.expect("a choice");
            let (last, first) = lines.split_last().expect("lines");
            for line in first {
                assert_eq!(choice.handle_line(line), None, "{lines:?}");
                assert!(!choice.shown().is_empty(), "{lines:?}");
            }
            let decisions = choice.handle_line(last).expect("decisions");
            assert_eq!(json!(decisions), json!(expected), "{lines:?}");
        }
    }

    #[test]
    fn without_a_reader_text_is_no_answer() {
        let hunks = [hunk("1", "a\n", "b\n"), hunk("2", "c\n", "d\n")];
        let choice = HunkChoice::new(&hunks, CommentRule::None);
        let mut choice = choice.expect("a choice");
        assert_eq!(choice.handle_line("not this"), None);
        assert!(choice.view().is_some_and(|it| it.remark.is_some()));
        assert_eq!(choice.handle_line("n"), None);
        let decisions = choice.handle_line("y").expect("decisions");
        assert_eq!(
            decisions.iter().map(|it| it.accept).collect::<Vec<_>>(),
            [false, true]
        );
    }

    #[test]
    fn a_change_that_cannot_be_divided_has_no_choice() {
        for (hunks, expected) in [
            (vec![], false),
            (vec![hunk("1", "a\n", "b\nc\n")], false),
            (vec![hunk("1", "", "")], false),
            (vec![hunk("1", "a\nk\nb\n", "A\nk\nb")], true),
            (vec![hunk("1", "a\nk\nb\n", "A\nk\u{fffd}\nB\n")], false),
            (vec![hunk("1", "a\nk\nb\n", "")], false),
            (vec![hunk("1", "k\na\nm\n", "k\nA\nm\n")], false),
        ] {
            let choice = HunkChoice::new(&hunks, CommentRule::Allowed);
            assert_eq!(choice.is_some(), expected, "{hunks:?}");
        }
    }

    #[test]
    fn the_view_names_the_place_of_each_part() {
        let hunks = [hunk("1", "a\nk\nb\n", "A\nk\nB")];
        let choice = HunkChoice::new(&hunks, CommentRule::Allowed);
        let mut choice = choice.expect("a choice");
        let shown = |choice: &HunkChoice| {
            let quotes = choice.shown().into_iter();
            quotes.map(|it| it.lead + &it.text).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&choice),
            [
                "hunk 1 of 1, line 7 of /w/a",
                "  │ -a\n-k\n-b\n+A\n+k\n+B\n"
            ]
        );
        choice.handle_line("s");
        choice.handle_line("y");
        assert_eq!(
            shown(&choice),
            ["hunk 2 of 2, line 9 of /w/a", "  │ -b\n+B\n"]
        );
    }
}
