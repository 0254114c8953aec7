//! `delete`.

use raddle_store::NodeLock;

use super::{StoredHome, block_on, files, filled};
use crate::records::ThreadScript;

#[test]
fn a_thread_that_is_deleted_is_found_nowhere() {
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
    let found = |marker: &[u8]| {
        let holds = |bytes: &[u8]| bytes.windows(marker.len()).any(|it| it == marker);
        files(home.path()).iter().any(|(_, bytes)| holds(bytes))
    };
    assert!(found(marker.as_bytes()));
    home.good(&["delete", &thread, "--yes"]);
    assert!(!found(marker.as_bytes()));
    assert_eq!(home.listed(&[]), [other]);
    home.good(&["verify"]);
    assert_eq!(home.run(&["delete", &thread, "--yes"]).code, 1);
}

#[test]
fn nobody_is_asked_where_nobody_can_answer() {
    let (home, [one, ..]) = filled();
    let ran = home.run_with(&["delete", &one.to_string()], b"yes\n");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("give --yes"), "{}", ran.err);
    assert_eq!(home.listed(&[]).len(), 3);
}

#[test]
fn a_thread_that_a_live_node_has_is_not_deleted() {
    let (home, [one, ..]) = filled();
    // The records that the tests write are of the node `one`.
    let lock = NodeLock::take(&home.threads(), "one").expect("a lock");
    let ran = home.run(&["delete", &one.to_string(), "--yes"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("a running server has the thread"),
        "{}",
        ran.err
    );
    assert_eq!(home.listed(&[]).len(), 3);
    drop(lock);
    home.good(&["delete", &one.to_string(), "--yes"]);
    assert_eq!(home.listed(&[]).len(), 2);
}
