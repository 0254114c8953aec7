//! Some hunks of a change, against an independent patcher and against git.

use std::fs;

use proptest::prelude::*;
use raddle_workspace::{FileChange, HunkChoice, HunkConflict, apply_hunks};

use crate::fixture::{Fixture, FolderState, git_apply, snapshot};
use crate::patcher::{apply_text, split_patch};

/// Returns the change from one text to another.
fn change(old: &[u8], new: &[u8]) -> FileChange {
    let at = Fixture::new();
    let mut workspace = at.open();
    at.write("file", old);
    let before = snapshot(&mut workspace);
    at.write("file", new);
    let after = snapshot(&mut workspace);
    let diff = workspace.diff(&before, &after).expect("a diff");
    diff.files.into_iter().next().expect("a change")
}

fn choose(change: &FileChange, chosen: impl Fn(usize) -> bool) -> Vec<HunkChoice> {
    let hunks = change.hunks().iter().enumerate();
    let hunks = hunks.filter(|(number, _)| chosen(*number));
    hunks
        .map(|(_, hunk)| HunkChoice::as_proposed(hunk))
        .collect()
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        6 => (0..6u8).prop_map(|it| format!("line {it}\n").into_bytes()),
        1 => Just(b"\n".to_vec()),
        1 => Just(b"windows\r\n".to_vec()),
        1 => Just(b"\xff\xfe no utf-8\n".to_vec()),
    ];
    (prop::collection::vec(line, 0..60), any::<bool>()).prop_map(|(lines, is_ended)| {
        let mut text = lines.concat();
        if !is_ended {
            text.extend(b"the end");
        }
        text
    })
}

/// A text, and the same with some lines replaced, removed or added.
fn texts() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let edits = prop::collection::vec((0..60usize, 0..3u8, 0..9u8), 0..8);
    (text(), edits).prop_map(|(old, edits)| {
        let mut lines: Vec<Vec<u8>> = old
            .split_inclusive(|it| *it == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        for (at, kind, value) in edits {
            let at = at.min(lines.len());
            let line = format!("edit {value}\n").into_bytes();
            match kind {
                0 => lines.insert(at, line),
                1 if at < lines.len() => drop(lines.remove(at)),
                _ if at < lines.len() => lines[at] = line,
                _ => {}
            }
        }
        (old, lines.concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_subset_is_what_an_independent_patcher_makes_of_it(
        (old, new) in texts(),
        chosen in prop::collection::vec(any::<bool>(), 64),
    ) {
        prop_assume!(old != new);
        let change = change(&old, &new);
        let chosen = |it: usize| chosen[it % chosen.len()];
        let (_, hunks) = split_patch(&change.patch);
        prop_assert_eq!(hunks.len(), change.hunks().len());
        let texts: Vec<&Vec<u8>> =
            hunks.iter().enumerate().filter(|(it, _)| chosen(*it)).map(|(_, it)| it).collect();
        let applied = apply_hunks(&old, &change, &choose(&change, chosen));
        prop_assert_eq!(applied.expect("the hunks"), apply_text(&old, &texts));
        let all = apply_hunks(&old, &change, &choose(&change, |_| true));
        prop_assert_eq!(all.expect("the hunks"), new);
        let none = apply_hunks(&old, &change, &[]);
        prop_assert_eq!(none.expect("no hunks"), old);
    }
}

#[test]
fn two_of_five_hunks_are_what_git_makes_of_them() {
    let line = |it: usize, mark: &str| format!("line {it}{mark}\n");
    let old: String = (0..100).map(|it| line(it, "")).collect();
    let changed = [5, 25, 45, 65, 85];
    let new: String = (0..100)
        .map(|it| {
            line(
                it,
                if changed.contains(&it) {
                    " changed\nand one more"
                } else {
                    ""
                },
            )
        })
        .collect();
    let change = change(old.as_bytes(), new.as_bytes());
    assert_eq!(change.hunks().len(), 5);
    let chosen = |it: usize| it == 1 || it == 3;
    let (mut patch, hunks) = split_patch(&change.patch);
    for (_, hunk) in hunks.iter().enumerate().filter(|(it, _)| chosen(*it)) {
        patch.extend(hunk);
    }
    let at = Fixture::new();
    at.write("file", &old);
    assert!(git_apply(&at.folder, &patch, &[]).status.success());
    let applied = apply_hunks(old.as_bytes(), &change, &choose(&change, chosen));
    assert_eq!(
        applied.expect("the hunks"),
        fs::read(at.path("file")).expect("the file")
    );
    assert_eq!(FolderState::read(&at.folder).0.len(), 1);
}

#[test]
fn replacement_stands_for_the_new_lines() {
    let change = change(b"a\nb\nc\n", b"a\nB\nc\n");
    let with = |replacement: &[u8]| {
        let choice = HunkChoice {
            replacement: Some(replacement.to_vec()),
            ..HunkChoice::as_proposed(&change.hunks()[0])
        };
        apply_hunks(b"a\nb\nc\n", &change, &[choice]).expect("the hunk")
    };
    assert_eq!(with(b"x\ny\n"), b"a\nx\ny\nc\n");
    assert_eq!(with(b"without a line end"), b"a\nwithout a line end\nc\n");
    assert_eq!(with(b""), b"a\nc\n");
}

#[test]
fn what_does_not_fit_is_a_conflict() {
    let of_text = change(b"a\nb\n", b"a\nB\n");
    let choice = HunkChoice::as_proposed(&of_text.hunks()[0]);
    let unknown = HunkChoice {
        id: "unknown".to_owned(),
        replacement: None,
    };
    let conflict = |base: &[u8], choices: &[HunkChoice]| {
        apply_hunks(base, &of_text, choices).expect_err("a conflict")
    };
    assert!(matches!(
        conflict(b"a\nb", std::slice::from_ref(&choice)),
        HunkConflict::BaseChanged { .. }
    ));
    assert_eq!(
        conflict(b"a\nb\n", &[choice.clone(), unknown]),
        HunkConflict::NoSuchHunk("unknown".to_owned())
    );
    assert_eq!(
        conflict(b"a\nb\n", &[choice.clone(), choice.clone()]),
        HunkConflict::ChosenTwice(choice.id)
    );
    let of_binary = change(b"a\0", b"b\0");
    let whole = apply_hunks(b"a\0", &of_binary, &[]);
    assert_eq!(whole, Err(HunkConflict::NoHunks));
}
