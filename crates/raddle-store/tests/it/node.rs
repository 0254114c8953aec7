//! Who is alive.

use raddle_store::{NodeError, NodeLock};

#[test]
fn a_node_is_alive_while_it_holds_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let alive = |name| NodeLock::is_alive(folder.path(), name).unwrap();
    assert!(!alive("one"));
    let one = NodeLock::take(folder.path(), "one").unwrap();
    let two = NodeLock::take(folder.path(), "two").unwrap();
    assert!(alive("one"));
    assert!(alive("two"));
    drop(one);
    assert!(!alive("one"));
    assert!(alive("two"));
    drop(two);
}

#[test]
fn a_name_is_held_once() {
    let folder = tempfile::tempdir().unwrap();
    let held = NodeLock::take(folder.path(), "one").unwrap();
    let second = NodeLock::take(folder.path(), "one");
    assert!(matches!(second, Err(NodeError::Alive(_))), "{second:?}");
    drop(held);
    NodeLock::take(folder.path(), "one").unwrap();
}

#[test]
fn a_name_is_no_path() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["", ".", "..", "a/b", "../one", "a.b", "ä", &"x".repeat(101)] {
        let taken = NodeLock::take(folder.path(), name);
        assert!(matches!(taken, Err(NodeError::BadName(_))), "{name}");
        let alive = NodeLock::is_alive(folder.path(), name);
        assert!(matches!(alive, Err(NodeError::BadName(_))), "{name}");
    }
}
