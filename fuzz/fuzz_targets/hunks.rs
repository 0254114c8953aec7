//! Chosen hunks, checked by an independent patcher.
//!
//! An input is a choice of one byte for each hunk, a line end, the old content, a NUL, and the new
//! content. The patcher reads the patch as text; it knows nothing of the structured form.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/raddle-workspace/tests/it/patcher.rs"]
mod patcher;

use raddle_workspace::{
    Content, DiffLimits, FileChange, HunkChoice, ProposedFile, WorkspacePath, apply_hunks,
};

fuzz::target!(|input: &[u8]| {
    let split = |bytes: &[u8], at: u8| {
        let place = bytes.iter().position(|it| *it == at)?;
        Some((bytes[..place].to_vec(), bytes[place + 1..].to_vec()))
    };
    let Some((choice, contents)) = split(input, b'\n') else {
        return;
    };
    let (old, new) = split(&contents, 0).unwrap_or((Vec::new(), contents));
    let path = WorkspacePath::new("file").expect("a path");
    let file = |bytes| {
        Some(ProposedFile {
            path: &path,
            mode: 0o644,
            bytes,
        })
    };
    let change = FileChange::proposed(file(&old), file(&new), &DiffLimits::default());
    let Some(change) = change else {
        assert_eq!(old, new);
        return;
    };
    if change.content == Content::Binary {
        // The new content may have more zero bytes.
        return;
    }
    let is_chosen = |number: usize| choice.get(number).is_some_and(|it| it % 2 == 1);
    let hunks = change.hunks().iter().enumerate();
    let choices: Vec<HunkChoice> = hunks
        .filter(|(number, _)| is_chosen(*number))
        .map(|(_, hunk)| HunkChoice::as_proposed(hunk))
        .collect();
    let (_, texts) = patcher::split_patch(&change.patch);
    assert_eq!(texts.len(), change.hunks().len());
    let texts = texts.iter().enumerate();
    let texts: Vec<&Vec<u8>> = texts
        .filter(|(number, _)| is_chosen(*number))
        .map(|(_, text)| text)
        .collect();
    let applied = apply_hunks(&old, &change, &choices).expect("the hunks apply");
    assert_eq!(applied, patcher::apply_text(&old, &texts));
    let all: Vec<HunkChoice> = change.hunks().iter().map(HunkChoice::as_proposed).collect();
    assert_eq!(apply_hunks(&old, &change, &all), Ok(new));
    assert_eq!(apply_hunks(&old, &change, &[]), Ok(old));
});
