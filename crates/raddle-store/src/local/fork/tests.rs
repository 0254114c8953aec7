#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use raddle_core::{Delta, ItemPart, Timestamp};

use super::super::files::BlobFiles;
use super::super::{delete, schema};
use super::*;

fn deltas(count: u64, length: usize) -> Vec<Record> {
    let deltas = (1..=count).map(|seq| Record {
        seq: Seq(seq),
        at: Timestamp(1),
        body: RecordBody::Delta(Delta {
            item: "i".into(),
            part: ItemPart::Text,
            offset: 0,
            text: "x".repeat(length),
        }),
    });
    deltas.collect()
}

#[test]
fn no_piece_is_large() {
    let lengths = |count, length| {
        let pieces = pieces(deltas(count, length));
        pieces.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(lengths(0, 0), [0]);
    assert_eq!(lengths(1000, 8), [1000]);
    assert_eq!(lengths(2001, 8), [1000, 1000, 1]);
    assert_eq!(lengths(3, 400 << 10), [1, 1, 1]);
    assert_eq!(lengths(3, 1 << 20), [1, 1, 1]);
}

/// Creates a thread with open text, and runs the first piece of a fork of it.
fn start_fork(connection: &Connection) -> Fork {
    let from = ThreadId::mint();
    let mut row = ThreadRow::new(from);
    fence::begin(connection, from, &mut row).unwrap();
    for record in deltas(4, 8) {
        if let RecordBody::Delta(delta) = &record.body {
            write_delta(connection, row.number, from, &record, delta).unwrap();
        }
    }
    let (number, open) = open_text(connection, from, Seq(4)).unwrap();
    let mut fork = Fork {
        from,
        at: Seq(4),
        to: ThreadId::mint(),
        number,
        summary: None,
        open: open[..2].to_vec(),
        before: None,
        more: true,
    };
    fork.before = Some(fork.run(connection).unwrap().unwrap());
    fork.open = open[2..].to_vec();
    fork.more = false;
    fork
}

#[test]
fn a_fork_becomes_readable_with_its_last_piece() {
    let folder = tempfile::tempdir().unwrap();
    let connection = schema::open_or_create(folder.path()).unwrap();
    let fork = start_fork(&connection);
    let row = read::thread(&connection, fork.to).unwrap();
    assert_eq!(row, None);
    let forked = fork.run(&connection).unwrap().unwrap();
    assert_eq!(forked.head, Seq(4));
    let (_, open) = open_text(&connection, fork.to, Seq(4)).unwrap();
    assert_eq!(open, deltas(4, 8));
}

#[test]
fn an_interrupted_fork_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let connection = schema::open_or_create(folder.path()).unwrap();
    let fork = start_fork(&connection);
    let files = BlobFiles::new(folder.path());
    let number = delete::find_interrupted(&connection).unwrap().unwrap();
    while !delete::piece(&connection, &files, number).unwrap().done {}
    let result = fork.run(&connection).unwrap();
    let unavailable = matches!(result, Err(ForkError::Append(AppendError::Unavailable(_))));
    assert!(unavailable, "{result:?}");
    let remaining: i64 = connection
        .query_row("SELECT count(*) FROM delta", [], |row| row.get(0))
        .unwrap();
    assert_eq!(remaining, 4);
}
