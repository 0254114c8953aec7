//! Liveness of nodes.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use raddle_core::Seq;
use raddle_core::ports::{Journal, ListQuery, Pages};
use raddle_store::{NodeError, NodeLock};

use crate::makers::local;
use crate::records::ThreadScript;

const FOLDER: &str = "RADDLE_STORE_TEST_COLD";

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
    let lock = NodeLock::take(folder.path(), "one").unwrap();
    let second = NodeLock::take(folder.path(), "one");
    assert!(matches!(second, Err(NodeError::Alive(_))), "{second:?}");
    drop(lock);
    NodeLock::take(folder.path(), "one").unwrap();
}

#[test]
fn a_name_is_no_path() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["", ".", "..", "a/b", "../one", "a.b", "ä", &"x".repeat(101)] {
        let result = NodeLock::take(folder.path(), name);
        assert!(matches!(result, Err(NodeError::BadName(_))), "{name}");
        let alive = NodeLock::is_alive(folder.path(), name);
        assert!(matches!(alive, Err(NodeError::BadName(_))), "{name}");
    }
}

#[test]
#[ignore = "is run by the test below, as one process of many"]
fn starts_cold() {
    let folder = std::env::var_os(FOLDER).expect("the folder is named");
    let folder = Path::new(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    // All processes begin when all are started.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let mut script = ThreadScript::new();
    let name = script.thread.to_string();
    runtime.block_on(async {
        let journal = local(folder);
        let _alive = NodeLock::take(folder, &name).unwrap();
        assert!(NodeLock::is_alive(folder, &name).unwrap());
        script.start(&journal, "/w").await;
        script.turn(&journal, "t", "go").await;
    });
    writeln!(std::io::stdout(), "\nbegan {name}").unwrap();
}

#[tokio::test]
async fn many_processes_start_on_an_empty_folder_at_once() {
    const PROCESSES: usize = 64;
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("new");
    let children: Vec<Child> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["node::starts_cold", "--exact", "--ignored", "--nocapture"])
                .env(FOLDER, &folder)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let started: Vec<Child> = children
        .into_iter()
        .map(|mut child| {
            let mut input = child.stdin.take().unwrap();
            input.write_all(b"go\n").unwrap();
            child
        })
        .collect();
    let mut names = Vec::new();
    for child in started {
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stdout}{stderr}");
        let name = stdout.lines().find_map(|line| line.strip_prefix("began "));
        names.push(name.unwrap().to_owned());
    }
    names.sort();
    let journal = local(&folder);
    let query = ListQuery {
        limit: 2 * PROCESSES,
        ..ListQuery::default()
    };
    let page = journal.list(query).await.unwrap();
    let mut listed: Vec<String> = page
        .entries
        .iter()
        .map(|it| it.thread.to_string())
        .collect();
    listed.sort();
    assert_eq!(listed, names);
    for entry in page.entries {
        // Reading verifies the chain of each.
        let read = journal.read(entry.thread, Seq::ZERO, usize::MAX).await;
        assert_eq!(read.unwrap().last().map(|it| it.seq), Some(entry.head));
        assert!(!NodeLock::is_alive(&folder, &entry.thread.to_string()).unwrap());
    }
    drop(journal);
    let file = rusqlite::Connection::open(folder.join("journal.sqlite")).unwrap();
    let check: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

/// Files of a killed node are removed; fresh and held locks stay.
#[test]
fn only_old_locks_without_a_holder_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let held = NodeLock::take(folder.path(), "held").unwrap();
    let nodes = folder.path().join("nodes");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for name in ["old", "fresh", "held"] {
        let mut options = std::fs::OpenOptions::new();
        let options = options.create(true).append(true);
        let file = options.open(nodes.join(format!("{name}.lock"))).unwrap();
        if name != "fresh" {
            file.set_modified(long_ago).unwrap();
        }
    }
    let lock = NodeLock::take(folder.path(), "one").unwrap();
    let mut remaining: Vec<_> = std::fs::read_dir(&nodes)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    remaining.sort();
    assert_eq!(remaining, ["fresh.lock", "held.lock", "one.lock"]);
    drop((held, lock));
}
