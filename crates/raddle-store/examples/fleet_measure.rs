//! Compares the node log of the fleet's journal with bare inserts of single rows.
//!
//! ```sh
//! tests/fleet/pg-cluster.sh single /tmp/measure
//! cargo run --profile ci -p raddle-store --features fleet --example fleet_measure -- \
//!     "$(tests/fleet/pg-cluster.sh dsn /tmp/measure)" 1:100 1000:10
//! ```
//!
//! An argument after the address is a number of streaming threads, and the deltas of each in a
//! second. Each row prints the latency of a delta and the batches of a second; a bare insert is one
//! statement on a connection that does not wait for the disk either. Each run lasts ten seconds.

use std::io::{Result, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_core::ports::Journal;
use raddle_core::{
    AgentMessage, Class, Delta, Epoch, Event, Item, ItemBody, ItemCompleted, ItemPart, ItemStarted,
    ItemStatus, Owned, Record, RecordBody, Seq, Settings, ThreadId, ThreadSource, ThreadStarted,
    Timestamp,
};
use raddle_store::{FleetJournal, FleetOptions};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};

/// Duration of a run.
const RUN: Duration = Duration::from_secs(10);

/// Number of deltas of an item.
const ITEM_DELTAS: u64 = 100;

const USAGE: &str = "usage: fleet_measure ADDRESS THREADS:DELTAS_OF_EACH_PER_SECOND…";

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().expect(USAGE);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        for run in arguments {
            let (threads, rate) = run.split_once(':').expect(USAGE);
            let pace = Pace {
                threads: threads.parse().expect(USAGE),
                rate: rate.parse().expect(USAGE),
            };
            let bare = bare(&address, pace).await;
            print_line(&format!("{pace:?}, bare inserts: {bare}"))?;
            node_log(&address, pace).await?;
        }
        Ok(())
    })
}

fn print_line(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")
}

/// Load of a run.
#[derive(Clone, Copy, Debug)]
struct Pace {
    threads: u32,
    /// Deltas of each thread in a second.
    rate: u32,
}

impl Pace {
    /// Runs one task for each thread, whose steps begin at its pace. Returns the latencies that the
    /// steps returned.
    async fn run<S: Send + 'static, F>(
        self,
        threads: Vec<S>,
        step: impl Fn(S) -> F + Clone + Send + Sync + 'static,
    ) -> Latencies
    where
        F: Future<Output = (S, Duration)> + Send + 'static,
    {
        let period = Duration::from_secs(1) / self.rate;
        let start = tokio::time::Instant::now();
        let tasks: Vec<_> = (0_u32..)
            .zip(threads)
            .map(|(index, mut thread)| {
                let step = step.clone();
                tokio::spawn(async move {
                    let begin = start + period * index / self.threads;
                    let mut ticks = tokio::time::interval_at(begin, period);
                    let mut latencies = Vec::new();
                    while start.elapsed() < RUN {
                        ticks.tick().await;
                        let (next, latency) = step(thread).await;
                        thread = next;
                        latencies.push(latency);
                    }
                    latencies
                })
            })
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.expect("no step panics"));
        }
        Latencies::new(all, start.elapsed())
    }
}

/// Latencies of a run, ascending.
struct Latencies {
    sorted: Vec<Duration>,
    elapsed: Duration,
}

impl Latencies {
    fn new(mut latencies: Vec<Duration>, elapsed: Duration) -> Self {
        latencies.sort_unstable();
        Self {
            sorted: latencies,
            elapsed,
        }
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |share: f64| {
            let index = self.sorted.len() as f64 * share;
            self.sorted.get(index as usize).copied().unwrap_or_default()
        };
        let rate = self.sorted.len() as f64 / self.elapsed.as_secs_f64();
        let (p50, p99) = (at(0.5), at(0.99));
        write!(f, "p50 {p50:.2?}, p99 {p99:.2?}, {rate:.0} per second")
    }
}

/// Inserts each delta by a statement of its own.
async fn bare(address: &str, pace: Pace) -> Latencies {
    let client = connect(address).await;
    let table = "DROP TABLE IF EXISTS bare;
                 CREATE TABLE bare (thread uuid, seq bigint, body bytea, PRIMARY KEY (thread, seq))";
    client.batch_execute(table).await.expect("a table");
    let sql = "INSERT INTO bare (thread, seq, body) VALUES ($1, $2, $3)";
    let insert = client.prepare(sql).await.expect("a statement");
    let shared = Arc::new((client, insert));
    let threads = (0..pace.threads).map(|_| (ThreadId::mint(), 0)).collect();
    let latencies = pace.run(threads, move |(thread, seq): (ThreadId, i64)| {
        let shared = Arc::clone(&shared);
        async move {
            let (client, insert) = &*shared;
            let body = serde_json::to_vec(&delta(0).body).expect("a delta is JSON");
            let start = Instant::now();
            let params: [&(dyn ToSql + Sync); 3] = [thread.as_uuid(), &seq, &body];
            client.execute(insert, &params).await.expect("an insert");
            ((thread, seq + 1), start.elapsed())
        }
    });
    latencies.await
}

async fn connect(address: &str) -> Client {
    let address = format!("{address} options='-c synchronous_commit=off'");
    let (client, io) = tokio_postgres::connect(&address, NoTls)
        .await
        .expect("a connection");
    tokio::spawn(io);
    client
}

/// A thread that streams.
struct Streaming {
    thread: ThreadId,
    head: Seq,
}

impl Streaming {
    fn record(&mut self, body: RecordBody) -> Record {
        self.head = self.head.next();
        Record {
            seq: self.head,
            at: Timestamp(1_700_000_000_000),
            body,
        }
    }

    async fn append(&mut self, journal: &FleetJournal, bodies: Vec<RecordBody>) -> Duration {
        let after = self.head;
        let records: Vec<Record> = bodies.into_iter().map(|it| self.record(it)).collect();
        let class = records.iter().map(|it| it.body.class()).max();
        let class = class.unwrap_or(Class::Process);
        let start = Instant::now();
        let head = journal.append(self.thread, after, &records, class).await;
        assert_eq!(head, Ok(self.head));
        start.elapsed()
    }
}

/// Streams through the node log, and takes one of the threads from another node.
async fn node_log(address: &str, pace: Pace) -> Result<()> {
    let client = connect(address).await;
    let drop = "DROP SCHEMA IF EXISTS measure CASCADE";
    client.batch_execute(drop).await.expect("no schema");
    let options = FleetOptions {
        schema: "measure".to_owned(),
        ..FleetOptions::new(address)
    };
    let journal = Arc::new(FleetJournal::open(&options).await.expect("a journal"));
    let mut threads = Vec::new();
    for _ in 0..pace.threads {
        let mut streaming = Streaming {
            thread: ThreadId::mint(),
            head: Seq::ZERO,
        };
        let thread = streaming.thread;
        let bodies = vec![started(thread), owned(), item(false)];
        streaming.append(&journal, bodies).await;
        threads.push((streaming, 0));
    }
    let first = threads[0].0.thread;
    let counter = "SELECT sum(n)::bigint FROM measure.node_logs";
    let shared = Arc::clone(&journal);
    let latencies = pace.run(threads, move |(mut streaming, count): (Streaming, u64)| {
        let journal = Arc::clone(&shared);
        async move {
            let latency = streaming.append(&journal, vec![delta(count).body]).await;
            if (count + 1) % ITEM_DELTAS == 0 {
                let bodies = vec![item(true), item(false)];
                streaming.append(&journal, bodies).await;
            }
            ((streaming, count + 1), latency)
        }
    });
    let latencies = latencies.await;
    let row = client.query_one(counter, &[]).await.expect("a row");
    let batches = row.get::<_, i64>(0) as f64 / latencies.elapsed.as_secs_f64();
    print_line(&format!(
        "{pace:?}, node log: {latencies}, {batches:.0} batches"
    ))?;
    let rows = "SELECT count(*) FROM measure.node_batches";
    let row = client.query_one(rows, &[]).await.expect("a row");
    let rows: i64 = row.get(0);
    let other = FleetJournal::open(&options).await.expect("a journal");
    // Opens its connections.
    let head = other.head(first).await.expect("a head");
    let missing = other.take(ThreadId::mint(), Some("one")).await;
    missing.expect("no thread");
    let start = Instant::now();
    assert_eq!(other.take(first, Some("one")).await, Ok(head));
    let taken = start.elapsed();
    print_line(&format!(
        "taking a thread, with {rows} rows in the log: {taken:.2?}"
    ))
}

fn delta(at: u64) -> Record {
    let body = Delta {
        item: "0199c0de-0000-7000-8000-000000000000".into(),
        part: ItemPart::Text,
        offset: at * 16,
        text: "sixteen letters.".to_owned(),
    };
    Record {
        seq: Seq::ZERO,
        at: Timestamp(0),
        body: body.into(),
    }
}

fn item(is_complete: bool) -> RecordBody {
    let item = Item {
        id: "0199c0de-0000-7000-8000-000000000000".into(),
        status: match is_complete {
            true => ItemStatus::Completed,
            false => ItemStatus::InProgress,
        },
        body: ItemBody::AgentMessage(AgentMessage {
            text: String::new(),
            phase: None,
        }),
        call: None,
        output: None,
        sealed: None,
        started_at: Timestamp(0),
        completed_at: None,
    };
    let turn = "turn".into();
    match is_complete {
        true => Event::ItemCompleted(ItemCompleted { turn, item }).into(),
        false => Event::ItemStarted(ItemStarted {
            turn,
            item,
            gate: None,
            ruling: None,
        })
        .into(),
    }
}

fn started(thread: ThreadId) -> RecordBody {
    Event::ThreadStarted(ThreadStarted {
        thread,
        tenant: None,
        principal: None,
        source: ThreadSource::Cli,
        originator: Some("measure".to_owned()),
        label: None,
        version: "0.1.0".to_owned(),
        ephemeral: false,
        paginated: false,
        git: None,
        settings: Settings::default(),
    })
    .into()
}

fn owned() -> RecordBody {
    Event::Owned(Owned {
        epoch: Epoch(1),
        node: "one".to_owned(),
        found: Seq::ZERO,
        reserved: Seq(1),
        level: raddle_core::LEVEL,
        version: String::new(),
    })
    .into()
}
