//! `delete`.

use raddle_store::NodeLock;

use super::{StoredHome, block_on, files, filled};
use crate::records::ThreadScript;

#[test]
fn a_deleted_thread_leaves_no_data() {
    let home = StoredHome::new();
    let marker = "5d0f6a1e9b7c43d2a8e4f1c6b3907d28";
    let (thread, other) = block_on(async {
        let journal = home.journal();
        let (mut script, mut other) = (ThreadScript::new(), ThreadScript::new());
        script.start(&journal, marker).await;
        script.turn(&journal, "t1", marker).await;
        other.start(&journal, "/w").await;
        other.turn(&journal, "t1", "stays").await;
        (script.thread.to_string(), other.thread.to_string())
    });
    let contains = |marker: &[u8]| {
        let holds = |bytes: &[u8]| bytes.windows(marker.len()).any(|it| it == marker);
        files(home.path()).iter().any(|(_, bytes)| holds(bytes))
    };
    assert!(contains(marker.as_bytes()));
    home.good(&["delete", &thread, "--yes"]);
    assert!(!contains(marker.as_bytes()));
    assert_eq!(home.listed(&[]), [other]);
    home.good(&["verify"]);
    assert_eq!(home.run(&["delete", &thread, "--yes"]).code, 1);
}

#[test]
fn delete_without_a_terminal_needs_yes() {
    let (home, [one, ..]) = filled();
    let output = home.run_with(&["delete", &one.to_string()], b"yes\n");
    assert_eq!(output.code, 2);
    assert!(output.err.contains("give --yes"), "{}", output.err);
    assert_eq!(home.listed(&[]).len(), 3);
}

#[test]
fn a_thread_that_a_live_node_has_is_not_deleted() {
    let (home, [one, ..]) = filled();
    // The records of these tests belong to the node `one`.
    let lock = NodeLock::take(&home.threads(), "one").expect("a lock");
    let output = home.run(&["delete", &one.to_string(), "--yes"]);
    assert_eq!(output.code, 1);
    assert!(
        output.err.contains("a running server has the thread"),
        "{}",
        output.err
    );
    assert_eq!(home.listed(&[]).len(), 3);
    drop(lock);
    home.good(&["delete", &one.to_string(), "--yes"]);
    assert_eq!(home.listed(&[]).len(), 2);
}
