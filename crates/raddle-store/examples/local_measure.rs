//! Compares the speed of the local journal with bare SQLite, in one run on one disk.
//!
//! `cargo run --release -p raddle-store --example local_measure -- FOLDER` writes into new folders under
//! FOLDER (by default the system's temporary folder) and removes them again. Further arguments
//! (`power`, `group`, `deltas`, `turns`) select measurements. Both sides are measured alternately,
//! so that other load affects both alike.

use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use raddle_core::ports::Journal;
use raddle_core::{
    AgentMessage, Class, Delta, Event, Item, ItemBody, ItemCompleted, ItemPart, ItemStatus, Record,
    RecordBody, Seq, Settings, ThreadId, ThreadSource, ThreadStarted, Timestamp, ToolCall, TurnEnd,
    TurnEnded, TurnKind, TurnStarted,
};
use raddle_store::{LocalJournal, Options};
use rusqlite::Connection;

/// Text bytes of an event in these measurements.
const TEXT_BYTES: usize = 500;

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::tempdir_in(folder)?;
    let names: Vec<String> = std::env::args().skip(2).collect();
    let selected = |name: &str| names.is_empty() || names.iter().any(|it| it == name);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
    runtime.block_on(async {
        if selected("power") {
            power(folder.path()).await?;
        }
        if selected("group") {
            group(folder.path()).await?;
        }
        if selected("deltas") {
            deltas(folder.path()).await?;
        }
        if selected("turns") {
            turns(folder.path()).await?;
        }
        Ok(())
    })
}

fn print_line(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")
}

fn journal(folder: &Path, name: &str) -> LocalJournal {
    let folder = folder.join(name);
    LocalJournal::open(&Options { folder }).expect("a fresh folder can be opened")
}

/// Opens SQLite with one table, synced commits, and the page cache of the journal.
fn bare(folder: &Path, name: &str) -> Connection {
    let connection = Connection::open(folder.join(name)).expect("a fresh folder can be opened");
    connection
        .execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA cache_size = -8192;
             CREATE TABLE event (thread BLOB, seq INTEGER, body BLOB, PRIMARY KEY (thread, seq))
             WITHOUT ROWID;",
        )
        .expect("a fresh file takes a table");
    connection
}

fn event(seq: Seq) -> Record {
    let item = Item {
        id: format!("item-{seq}").as_str().into(),
        status: ItemStatus::Completed,
        body: ItemBody::AgentMessage(AgentMessage {
            text: "words ".repeat(TEXT_BYTES / 6),
            phase: None,
        }),
        call: Some(ToolCall {
            id: "call".to_owned(),
            tool: "tool".to_owned(),
            arguments: "{}".to_owned(),
            freeform: false,
            alone: false,
        }),
        output: None,
        sealed: None,
        started_at: Timestamp(0),
        completed_at: None,
    };
    let turn = "turn".into();
    Record {
        seq,
        at: Timestamp(1_700_000_000_000),
        body: Event::ItemCompleted(ItemCompleted { turn, item }).into(),
    }
}

fn delta(seq: Seq, offset: u64) -> Record {
    Record {
        seq,
        at: Timestamp(1_700_000_000_000),
        body: RecordBody::Delta(Delta {
            item: "0199c0de-0000-7000-8000-000000000000".into(),
            part: ItemPart::Text,
            offset,
            text: "8 bytes.".to_owned(),
        }),
    }
}

fn body(record: &Record) -> Vec<u8> {
    serde_json::to_vec(record).expect("records are JSON")
}

async fn append(journal: &LocalJournal, thread: ThreadId, record: &Record, class: Class) {
    let after = Seq(record.seq.0 - 1);
    let records = std::slice::from_ref(record);
    let head = journal.append(thread, after, records, class).await;
    assert_eq!(head, Ok(record.seq));
}

/// Compares one power-durable append with one synced insert.
async fn power(folder: &Path) -> Result<()> {
    const ROUNDS: u64 = 500;
    let journal = journal(folder, "power");
    let bare = bare(folder, "power.sqlite");
    let thread = ThreadId::mint();
    let mut insert = bare
        .prepare("INSERT INTO event VALUES (?1, ?2, ?3)")
        .expect("the table is there");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for seq in 1..=ROUNDS {
        let record = event(Seq(seq));
        let id = *thread.as_uuid().as_bytes();
        let start = Instant::now();
        let bytes = body(&record);
        insert
            .execute((id, seq as i64, bytes))
            .expect("the disk has space");
        theirs.push(start.elapsed());
        let start = Instant::now();
        append(&journal, thread, &record, Class::Power).await;
        ours.push(start.elapsed());
    }
    let (ours, theirs) = (median(ours), median(theirs));
    print_line(&format!(
        "power append: {ours:?} (median of {ROUNDS}), bare insert with sync: {theirs:?}, ratio {:.2}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    ))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Compares many concurrent threads with inserts in batches of the same size.
async fn group(folder: &Path) -> Result<()> {
    const THREADS: usize = 1000;
    const ROUNDS: u64 = 20;
    let journal = std::sync::Arc::new(journal(folder, "group"));
    let mut bare = bare(folder, "group.sqlite");
    let threads: Vec<ThreadId> = (0..THREADS).map(|_| ThreadId::mint()).collect();
    let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
    let (mut our_bytes, mut their_bytes) = (0, 0);
    for seq in 1..=ROUNDS {
        let before = written()?.0;
        let start = Instant::now();
        let transaction = bare.transaction().expect("nobody else writes");
        for thread in &threads {
            let bytes = body(&event(Seq(seq)));
            let id = *thread.as_uuid().as_bytes();
            transaction
                .prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3)")
                .and_then(|mut insert| insert.execute((id, seq as i64, bytes)))
                .expect("the disk has space");
        }
        transaction.commit().expect("the disk has space");
        theirs += start.elapsed();
        their_bytes += written()?.0 - before;
        let before = written()?.0;
        let start = Instant::now();
        let appends: Vec<_> = threads
            .iter()
            .map(|thread| {
                let (journal, thread) = (std::sync::Arc::clone(&journal), *thread);
                tokio::spawn(async move {
                    append(&journal, thread, &event(Seq(seq)), Class::Power).await;
                })
            })
            .collect();
        for append in appends {
            append.await.expect("no append panics");
        }
        // Work that the journal does after the acknowledgement counts too.
        let empty = journal.append(threads[0], Seq(seq), &[], Class::Process);
        assert_eq!(empty.await, Ok(Seq(seq)));
        ours += start.elapsed();
        our_bytes += written()?.0 - before;
    }
    let total = THREADS as u64 * ROUNDS;
    let count = total as f64;
    let (ours, theirs) = (count / ours.as_secs_f64(), count / theirs.as_secs_f64());
    print_line(&format!(
        "group commit from {THREADS} threads: {ours:.0} appends/s, bare batches of {THREADS}: {theirs:.0} inserts/s, ratio {:.2}",
        ours / theirs
    ))?;
    print_line(&format!(
        "bytes written for each of those: {}, bare: {}",
        our_bytes / total,
        their_bytes / total
    ))
}

/// Streams eight bytes at a time, at a reader's pace and as fast as possible.
async fn deltas(folder: &Path) -> Result<()> {
    const COUNT: u64 = 1000;
    let journal = journal(folder, "deltas");
    let thread = ThreadId::mint();
    append(&journal, thread, &event(Seq(1)), Class::Power).await;
    let before = written()?;
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    for seq in 2..2 + COUNT {
        pace.tick().await;
        let record = delta(Seq(seq), (seq - 2) * 8);
        append(&journal, thread, &record, Class::Process).await;
    }
    let after = written()?;
    print_line(&format!(
        "8-byte deltas at 100/s: {} bytes written for each, {} of them to pages of the disk's cache",
        (after.0 - before.0) / COUNT,
        (after.1 - before.1) / COUNT
    ))?;
    const FAST: u64 = 20_000;
    let thread = ThreadId::mint();
    append(&journal, thread, &event(Seq(1)), Class::Power).await;
    let start = Instant::now();
    let streaming = async {
        for seq in 2..2 + FAST {
            let record = delta(Seq(seq), (seq - 2) * 8);
            append(&journal, thread, &record, Class::Process).await;
        }
    };
    streaming.await;
    let rate = FAST as f64 / start.elapsed().as_secs_f64();
    print_line(&format!(
        "deltas one after another: {rate:.0} rows/s, {:.0} text bytes/s",
        rate * 8.0
    ))
}

/// Starts and ends turns, in many listed threads.
async fn turns(folder: &Path) -> Result<()> {
    const THREADS: usize = 1000;
    const ROUNDS: u64 = 3;
    let journal = journal(folder, "turns");
    let threads: Vec<ThreadId> = (0..THREADS).map(|_| ThreadId::mint()).collect();
    for thread in &threads {
        let started = Event::ThreadStarted(ThreadStarted {
            thread: *thread,
            tenant: None,
            principal: None,
            source: ThreadSource::Cli,
            originator: Some("measure".to_owned()),
            label: None,
            version: "0.1.0".to_owned(),
            ephemeral: false,
            paginated: false,
            git: None,
            settings: Settings {
                cwd: "/home/someone/work".to_owned(),
                ..Settings::default()
            },
        });
        append(&journal, *thread, &at(1, started), Class::Process).await;
    }
    let before = written()?.0;
    let start = Instant::now();
    for round in 0..ROUNDS {
        for thread in &threads {
            let turn = raddle_core::TurnId::from(format!("{thread}-{round}").as_str());
            let started = Event::TurnStarted(TurnStarted {
                turn: turn.clone(),
                kind: TurnKind::Work,
                principal: None,
                root: None,
                output_schema: None,
                reviewed: Vec::new(),
            });
            let end = TurnEnd::Completed {};
            let ended = Event::TurnEnded(TurnEnded { turn, end });
            for (seq, event) in (2 * round + 2..).zip([started, ended]) {
                append(&journal, *thread, &at(seq, event), Class::Process).await;
            }
        }
    }
    let count = THREADS as u64 * ROUNDS;
    print_line(&format!(
        "turns that begin and end in {THREADS} threads: {} bytes written for each, {:?} of time",
        (written()?.0 - before) / count,
        start.elapsed() / u32::try_from(count).unwrap_or(u32::MAX)
    ))
}

/// Returns a record; each is later than the previous one.
fn at(seq: u64, event: Event) -> Record {
    Record {
        seq: Seq(seq),
        at: Timestamp(1_700_000_000_000 + i64::try_from(seq).unwrap_or(0)),
        body: event.into(),
    }
}

/// Returns the bytes that this process passed to `write`, and the bytes of dirtied pages.
fn written() -> Result<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|it| it.trim().parse().ok()).unwrap_or(0)
    };
    Ok((value("wchar:"), value("write_bytes:")))
}
