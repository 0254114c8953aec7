//! Kills an appending process; the next process must find every acknowledged record.
//!
//! The process is this test program itself, started again to run [`writes_until_killed`].

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use raddle_core::ports::{AppendError, Journal, ListQuery, Pages};
use raddle_core::{Record, RecordBody, Seq, ThreadId, Timestamp};
use raddle_store::{NodeError, NodeLock};

use crate::makers::local;
use crate::records::{
    begin_turn, class_of, completed, delta, item_started, owned, started, turn_ended,
};

const FOLDER: &str = "RADDLE_STORE_TEST_FOLDER";
const THREAD: &str = "RADDLE_STORE_TEST_THREAD";

/// Returns the body at a number. It depends on the number alone, so that nothing need be
/// remembered.
fn body(thread: ThreadId, seq: Seq) -> RecordBody {
    let turn = format!("t{}", seq.0 / 20);
    let item = format!("i{}", seq.0 / 20);
    match seq.0 % 20 {
        _ if seq == Seq(1) => started(thread, "/w"),
        1 => owned(),
        2 => begin_turn(&turn, "go").remove(0),
        3 => begin_turn(&turn, "go").remove(1),
        4 => item_started(&turn, &item),
        // Long bodies are stored in their own files.
        18 if seq.0 % 100 == 18 => completed(&turn, &item, &"long ".repeat(20_000)),
        18 => completed(&turn, &item, "short"),
        19 => turn_ended(&turn),
        // A new turn begins with the next number, so this is a delta of an unsettled item.
        0 => owned(),
        offset => delta(&item, offset - 5, "x"),
    }
}

fn record(thread: ThreadId, seq: Seq) -> Record {
    Record {
        seq,
        at: Timestamp(1_000 + seq.0 as i64),
        body: body(thread, seq),
    }
}

#[test]
#[ignore = "is run by the other tests here, as a process that they kill"]
fn writes_until_killed() {
    let folder = std::env::var_os(FOLDER).expect("the folder is named");
    let thread = std::env::var(THREAD).expect("the thread is named");
    let thread: ThreadId = thread.parse().expect("the thread's name is one");
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    let folder = Path::new(&folder);
    let _alive = NodeLock::take(folder, &thread.to_string()).unwrap();
    runtime.block_on(async {
        let journal = local(folder);
        let mut head = journal.head(thread).await.unwrap();
        loop {
            // Appends of one to three records.
            let count = 1 + head.0 % 3;
            let records: Vec<Record> = (1..=count)
                .map(|by| record(thread, head.plus(by)))
                .collect();
            let class = class_of(&records);
            match journal.append(thread, head, &records, class).await {
                Ok(stored) => head = stored,
                Err(AppendError::Unavailable(_)) => continue,
                Err(AppendError::Unknown(_)) => {
                    head = journal.head(thread).await.unwrap();
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            writeln!(std::io::stdout(), "\ntold {head}").expect("someone listens");
        }
    });
}

fn spawn(folder: &Path, thread: ThreadId) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["crash::writes_until_killed", "--exact", "--ignored"])
        .arg("--nocapture")
        .env(FOLDER, folder)
        .env(THREAD, thread.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the process after a number of acknowledgements. Returns the last acknowledged record.
fn kill_after(mut child: Child, acknowledgements: usize) -> Seq {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = Seq::ZERO;
    let mut count = 0;
    while count < acknowledgements {
        let line = lines.next().expect("it tells until it is killed").unwrap();
        if let Some(seq) = line.strip_prefix("told ") {
            last = Seq(seq.parse().unwrap());
            count += 1;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Acknowledgements during the kill count too; a truncated line does not.
    for line in lines.map_while(Result::ok) {
        if let Some(Ok(seq)) = line.strip_prefix("told ").map(str::parse) {
            last = last.max(Seq(seq));
        }
    }
    last
}

/// Checks that the thread has everything up to the acknowledged record, and nothing that was never
/// written.
async fn check(journal: &(impl Journal + Pages), thread: ThreadId, acknowledged: Seq) {
    let head = journal.head(thread).await.unwrap();
    assert!(head >= acknowledged, "told {acknowledged}, found {head}");
    let records = journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap();
    assert_eq!(records.last().map(|it| it.seq), Some(head));
    let mut next = Seq(1);
    for stored in records {
        while next < stored.seq {
            // Only deltas of settled items may be missing.
            assert!(
                matches!(body(thread, next), RecordBody::Delta(_)),
                "{next} is gone"
            );
            assert!(next.0 / 20 * 20 + 18 <= head.0, "{next} is gone too early");
            next = next.next();
        }
        assert_eq!(stored, record(thread, stored.seq));
        next = stored.seq.next();
    }
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let page = journal.list(query).await.unwrap();
    let summary = page.entries.iter().find(|it| it.thread == thread).unwrap();
    assert_eq!(summary.head, head);
    assert_eq!(
        summary.turns,
        (0..=head.0).filter(|it| it % 20 == 2).count() as u64
    );
}

#[tokio::test]
async fn no_acknowledged_record_is_lost_when_a_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let thread = ThreadId::mint();
    for round in 0..20_usize {
        let acknowledged = kill_after(spawn(folder.path(), thread), 1 + round * 7 % 30);
        check(&local(folder.path()), thread, acknowledged).await;
    }
}

#[tokio::test]
async fn no_acknowledged_record_is_lost_beside_another_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (thread, other) = (ThreadId::mint(), ThreadId::mint());
    let living = spawn(folder.path(), other);
    for round in 0..10_usize {
        let acknowledged = kill_after(spawn(folder.path(), thread), 1 + round * 11 % 30);
        check(&local(folder.path()), thread, acknowledged).await;
    }
    let acknowledged = kill_after(living, 1);
    check(&local(folder.path()), other, acknowledged).await;
}

#[test]
fn a_node_that_was_killed_is_not_alive() {
    let folder = tempfile::tempdir().unwrap();
    let thread = ThreadId::mint();
    let name = thread.to_string();
    let alive = || NodeLock::is_alive(folder.path(), &name).unwrap();
    assert!(!alive());
    let mut child = spawn(folder.path(), thread);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // After its first acknowledgement it has been alive for a while.
    while !lines.next().unwrap().unwrap().starts_with("told ") {}
    assert!(alive());
    let lock = NodeLock::take(folder.path(), &name);
    assert!(matches!(lock, Err(NodeError::Alive(_))), "{lock:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!alive());
}
