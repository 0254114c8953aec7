//! `raddle undo` and `raddle diff`, on threads without checkpoints.

use tempfile::TempDir;

use super::{StoredHome, block_on};
use crate::records::ThreadScript;

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

/// Runs a command in the folder of a thread without checkpoints, and in another folder.
fn check(arguments: &[&str], code: i32, text: &str) {
    let home = StoredHome::new();
    let (work, elsewhere) = (folder(), folder());
    let folder = work.path().canonicalize().expect("its real path");
    let thread = block_on(async {
        let journal = home.journal();
        let mut script = ThreadScript::new();
        script.start(&journal, &folder.to_string_lossy()).await;
        script.turn(&journal, "t1", "hello").await;
        script.thread.to_string()
    });
    let output = home.run_in(&folder, arguments);
    let outcome = (output.code, output.out.as_str());
    assert_eq!(outcome, (code, ""), "{arguments:?}: {}", output.err);
    assert!(output.err.contains(text), "{arguments:?}: {}", output.err);
    if code == 2 {
        return;
    }
    let named = [arguments, &["--thread", &thread]].concat();
    let output = home.run_in(elsewhere.path(), &named);
    assert_eq!(output.code, code, "{named:?}: {}", output.err);
    assert!(output.err.contains(text), "{named:?}: {}", output.err);
    for (more, error) in [
        (&[][..], "no thread has the folder"),
        (&["--thread", "no-such-id"], "no thread has an id"),
    ] {
        let words = [arguments, more].concat();
        let output = home.run_in(elsewhere.path(), &words);
        assert_eq!(output.code, 1, "{words:?}: {}", output.err);
        assert!(output.err.contains(error), "{words:?}: {}", output.err);
    }
}

#[test]
fn an_undo_without_a_terminal_requires_a_confirmation() {
    check(
        &["undo"],
        2,
        "give --yes to restore the files, or --preview",
    );
    check(&["undo", "--redo"], 2, "give --yes");
    check(&["undo", "--yes", "--preview"], 2, "cannot be used with");
}

#[test]
fn an_undo_of_nothing_says_so() {
    check(&["undo", "--yes"], 1, "nothing to undo in");
    check(&["undo", "--preview", "--redo"], 1, "nothing to redo in");
}

/// A thread without a turn has nothing to undo.
#[test]
fn the_newest_thread_is_one_that_was_used() {
    let (home, work) = (StoredHome::new(), folder());
    let folder = work.path().canonicalize().expect("its real path");
    let used = block_on(async {
        let journal = home.journal();
        let mut used = ThreadScript::new();
        used.start(&journal, &folder.to_string_lossy()).await;
        used.turn(&journal, "t1", "hello").await;
        let mut unused = ThreadScript::new();
        unused.start(&journal, &folder.to_string_lossy()).await;
        used.thread.to_string()
    });
    let output = home.run_in(&folder, &["undo", "--yes"]);
    let text = format!("nothing to undo in {used}");
    assert!(output.err.contains(&text), "{}", output.err);
}

#[test]
fn a_diff_of_nothing_says_so() {
    check(&["diff"], 1, "changed files");
    check(&["diff", "--all", "--stat"], 1, "changed files");
}

#[test]
fn a_diff_of_an_unknown_turn_fails() {
    check(&["diff", "--turn", "t9"], 1, "");
    check(&["diff", "--turn", "t1", "--all"], 2, "cannot be used with");
}
