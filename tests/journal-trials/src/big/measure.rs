//! Costs in a new process, without warm caches.

mod lists;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use raddle_core::ports::{Journal, PageQuery, Pages};
use raddle_core::{Command, Revert, Seq, ThreadId, TurnId};
use raddle_store::{LocalJournal, Options};

use crate::ledger::Ledger;
use crate::live::{LiveThread, fold};
use crate::verdict::{Limit, VerdictRow};

/// Number of entries on a page.
const PAGE: usize = 25;

const READY_MS_MAX: f64 = 300.0;
const GROWTH_MB_MAX: f64 = 50.0;
const PAGE_MS_MAX: f64 = 20.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MeasuredOperation {
    Open,
    Pages,
    Revert,
    Fork,
    Lists,
}

/// Measure one operation.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureArgs {
    what: MeasuredOperation,
    #[arg(long)]
    home: PathBuf,
    #[arg(long)]
    thread: ThreadId,
    /// Number of threads.
    #[arg(long)]
    threads: u64,
}

impl MeasureArgs {
    /// Measures, and returns the results.
    pub async fn run(self) -> Result<Vec<VerdictRow>> {
        let before = resident("VmRSS:")?;
        let start = Instant::now();
        let folder = self.home.clone();
        let store = LocalJournal::open(&Options { folder })?;
        let timing = match self.what {
            MeasuredOperation::Open => open(&store, self.thread, start).await?,
            MeasuredOperation::Revert => revert(&store, self.thread, start).await?,
            MeasuredOperation::Fork => fork(&store, self.thread, start).await?,
            MeasuredOperation::Pages => return pages(&store, self.thread).await,
            MeasuredOperation::Lists => return lists::all(&store, self.threads).await,
        };
        let growth = resident("VmHWM:")? - before;
        let Timing { what, ms } = timing;
        let limit = Limit::AtMost(GROWTH_MB_MAX);
        Ok(vec![
            VerdictRow::new(what, ms, "ms", Limit::AtMost(READY_MS_MAX)),
            VerdictRow::new(format!("{what}: memory grew by"), growth, "MB", limit),
        ])
    }
}

struct Timing {
    what: &'static str,
    ms: f64,
}

/// Returns the current or peak memory of this process, in MB.
fn resident(name: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|it| it.split_whitespace().next());
    let kilobytes: f64 = kilobytes
        .context("the system says how much memory is used")?
        .parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

async fn open(store: &LocalJournal, id: ThreadId, start: Instant) -> Result<Timing> {
    let mut ledger = Ledger::default();
    let live = LiveThread::open(store, id, "looker", &mut ledger).await?;
    let ms = ms(start);
    ensure!(live.ended.is_none(), "it was not taken");
    live.release(&mut ledger).await?;
    let what = "from start to the thread taken";
    Ok(Timing { what, ms })
}

/// Returns a turn in the middle and its first record.
async fn middle_turn(store: &LocalJournal, id: ThreadId) -> Result<(TurnId, Seq)> {
    let head = store.head(id).await?;
    let query = PageQuery {
        limit: 1000,
        ..PageQuery::default()
    };
    let mut query = query;
    loop {
        let page = store.turns(id, query.clone()).await?;
        let turn = page.entries.iter().find(|it| it.from.0 > head.0 / 2);
        if let Some(turn) = turn {
            return Ok((turn.turn.clone(), turn.from));
        }
        query.cursor = Some(page.next.context("there are turns in the middle")?);
    }
}

/// Reverts to before the middle, and so to before the newest compaction.
async fn revert(store: &LocalJournal, id: ThreadId, start: Instant) -> Result<Timing> {
    let opened = start.elapsed();
    let (turn, at) = middle_turn(store, id).await?;
    // A client that reverts knows the turn, so finding it does not count.
    let start = Instant::now() - opened;
    let mut ledger = Ledger::default();
    let mut live = LiveThread::open(store, id, "looker", &mut ledger).await?;
    let before = live.thread().turns();
    let point = fold(store, id, Some(Seq(at.0 - 1))).await?.revert_point();
    let principal = None;
    let revert = Command::Revert(Revert {
        turn,
        at,
        point,
        principal,
    });
    live.send_command(revert, &mut ledger)
        .await?
        .context("going back")?;
    let ms = ms(start);
    let turns = live.thread().turns();
    ensure!(
        turns > 0 && turns < before,
        "{turns} of {before} turns are left"
    );
    live.release(&mut ledger).await?;
    let what = "from start to half of it forgotten";
    Ok(Timing { what, ms })
}

async fn fork(store: &LocalJournal, id: ThreadId, start: Instant) -> Result<Timing> {
    let opened = start.elapsed();
    let (_, at) = middle_turn(store, id).await?;
    let before = Seq(at.0 / 2);
    let start = Instant::now() - opened;
    let mut ledger = Ledger::default();
    let to = ThreadId::mint();
    let fork = LiveThread::fork(store, (id, before, to), "looker", &mut ledger).await?;
    let ms = ms(start);
    ensure!(fork.ended.is_none(), "it was not forked");
    ensure!(fork.thread().turns() > 0, "it has no history");
    fork.release(&mut ledger).await?;
    store.delete(to).await?;
    let what = "from start to a quarter of it forked";
    Ok(Timing { what, ms })
}

async fn pages(store: &LocalJournal, id: ThreadId) -> Result<Vec<VerdictRow>> {
    let (turn, at) = middle_turn(store, id).await?;
    let one = PageQuery {
        limit: 1,
        ..PageQuery::default()
    };
    let start = Instant::now();
    let none = store.items(id, Some("none".into()), one.clone()).await?;
    let elapsed_ms = ms(start);
    ensure!(
        none.entries.is_empty(),
        "a turn that is not there has items"
    );
    // A cursor inside a turn in the middle is also valid for all items.
    let inside = store.items(id, Some(turn), one.clone()).await?.next;
    let limit = Limit::AtMost(PAGE_MS_MAX);
    let what = "the items of a turn that is not there";
    let mut rows = vec![VerdictRow::new(what, elapsed_ms, "ms", limit)];
    let page = |cursor, newest_first| PageQuery {
        cursor,
        limit: PAGE,
        newest_first,
    };
    let positions = [
        ("at the beginning", page(None, false)),
        ("in the middle", page(inside, false)),
        ("at the end", page(None, true)),
    ];
    for (position, query) in positions {
        ensure!(
            position != "in the middle" || query.cursor.is_some(),
            "{at}"
        );
        let limit = Limit::AtMost(PAGE_MS_MAX);
        let start = Instant::now();
        let turns = store.turns(id, query.clone()).await?;
        let elapsed_ms = ms(start);
        ensure!(turns.entries.len() == PAGE, "a page of turns is not full");
        rows.push(VerdictRow::new(
            format!("a page of turns {position}"),
            elapsed_ms,
            "ms",
            limit,
        ));
        let start = Instant::now();
        let items = store.items(id, None, query).await?;
        let elapsed_ms = ms(start);
        ensure!(items.entries.len() == PAGE, "a page of items is not full");
        rows.push(VerdictRow::new(
            format!("a page of items {position}"),
            elapsed_ms,
            "ms",
            limit,
        ));
    }
    Ok(rows)
}
