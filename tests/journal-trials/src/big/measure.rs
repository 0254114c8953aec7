//! What a process that has seen nothing yet pays.

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

/// How many entries a page has.
const PAGE: usize = 25;

const READY_MS_MAX: f64 = 300.0;
const GROWTH_MB_MAX: f64 = 50.0;
const PAGE_MS_MAX: f64 = 20.0;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MeasuredOperation {
    Open,
    Pages,
    Revert,
    Fork,
    Lists,
}

/// Measure one thing.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureArgs {
    what: MeasuredOperation,
    #[arg(long)]
    home: PathBuf,
    #[arg(long)]
    thread: ThreadId,
    /// How many threads there are.
    #[arg(long)]
    threads: u64,
}

impl MeasureArgs {
    /// Measures, and gives what was found.
    pub async fn run(self) -> Result<Vec<VerdictRow>> {
        let before = resident("VmRSS:")?;
        let begun = Instant::now();
        let folder = self.home.clone();
        let store = LocalJournal::open(&Options { folder })?;
        let looked = match self.what {
            MeasuredOperation::Open => open(&store, self.thread, begun).await?,
            MeasuredOperation::Revert => revert(&store, self.thread, begun).await?,
            MeasuredOperation::Fork => fork(&store, self.thread, begun).await?,
            MeasuredOperation::Pages => return pages(&store, self.thread).await,
            MeasuredOperation::Lists => return lists::all(&store, self.threads).await,
        };
        let growth = resident("VmHWM:")? - before;
        let Timing { what, ms } = looked;
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

/// How much memory this process has, or had at most.
fn resident(name: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|it| it.split_whitespace().next());
    let kilobytes: f64 = kilobytes
        .context("the system says how much memory is used")?
        .parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}

fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

async fn open(store: &LocalJournal, id: ThreadId, begun: Instant) -> Result<Timing> {
    let mut ledger = Ledger::default();
    let live = LiveThread::open(store, id, "looker", &mut ledger).await?;
    let ms = ms(begun);
    ensure!(live.ended.is_none(), "it was not taken");
    live.release(&mut ledger).await?;
    let what = "from start to the thread taken";
    Ok(Timing { what, ms })
}

/// A turn in the middle and its first record.
async fn middle(store: &LocalJournal, id: ThreadId) -> Result<(TurnId, Seq)> {
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

/// Goes back to before the middle, and with it before the newest compaction.
async fn revert(store: &LocalJournal, id: ThreadId, begun: Instant) -> Result<Timing> {
    let opened = begun.elapsed();
    let (turn, at) = middle(store, id).await?;
    // A client that goes back knows the turn; finding one in the middle is not part of the price.
    let begun = Instant::now() - opened;
    let mut ledger = Ledger::default();
    let mut live = LiveThread::open(store, id, "looker", &mut ledger).await?;
    let before = live.thread().turns();
    let past = fold(store, id, Some(Seq(at.0 - 1))).await?.revert_point();
    let principal = None;
    let revert = Command::Revert(Revert {
        turn,
        at,
        point: past,
        principal,
    });
    live.order(revert, &mut ledger)
        .await?
        .context("going back")?;
    let ms = ms(begun);
    let turns = live.thread().turns();
    ensure!(
        turns > 0 && turns < before,
        "{turns} of {before} turns are left"
    );
    live.release(&mut ledger).await?;
    let what = "from start to half of it forgotten";
    Ok(Timing { what, ms })
}

async fn fork(store: &LocalJournal, id: ThreadId, begun: Instant) -> Result<Timing> {
    let opened = begun.elapsed();
    let (_, at) = middle(store, id).await?;
    let before = Seq(at.0 / 2);
    let begun = Instant::now() - opened;
    let mut ledger = Ledger::default();
    let to = ThreadId::mint();
    let fork = LiveThread::fork(store, (id, before, to), "looker", &mut ledger).await?;
    let ms = ms(begun);
    ensure!(fork.ended.is_none(), "it was not forked");
    ensure!(fork.thread().turns() > 0, "it has no history");
    fork.release(&mut ledger).await?;
    store.delete(to).await?;
    let what = "from start to a quarter of it forked";
    Ok(Timing { what, ms })
}

async fn pages(store: &LocalJournal, id: ThreadId) -> Result<Vec<VerdictRow>> {
    let (turn, at) = middle(store, id).await?;
    let one = PageQuery {
        limit: 1,
        ..PageQuery::default()
    };
    let begun = Instant::now();
    let none = store.items(id, Some("none".into()), one.clone()).await?;
    let took = ms(begun);
    ensure!(
        none.entries.is_empty(),
        "a turn that is not there has items"
    );
    // Where the items of a turn in the middle go on, all items can go on.
    let inside = store.items(id, Some(turn), one.clone()).await?.next;
    let limit = Limit::AtMost(PAGE_MS_MAX);
    let what = "the items of a turn that is not there";
    let mut rows = vec![VerdictRow::new(what, took, "ms", limit)];
    let page = |cursor, newest_first| PageQuery {
        cursor,
        limit: PAGE,
        newest_first,
    };
    let places = [
        ("at the beginning", page(None, false)),
        ("in the middle", page(inside, false)),
        ("at the end", page(None, true)),
    ];
    for (place, query) in places {
        ensure!(place != "in the middle" || query.cursor.is_some(), "{at}");
        let limit = Limit::AtMost(PAGE_MS_MAX);
        let begun = Instant::now();
        let turns = store.turns(id, query.clone()).await?;
        let took = ms(begun);
        ensure!(turns.entries.len() == PAGE, "a page of turns is not full");
        rows.push(VerdictRow::new(
            format!("a page of turns {place}"),
            took,
            "ms",
            limit,
        ));
        let begun = Instant::now();
        let items = store.items(id, None, query).await?;
        let took = ms(begun);
        ensure!(items.entries.len() == PAGE, "a page of items is not full");
        rows.push(VerdictRow::new(
            format!("a page of items {place}"),
            took,
            "ms",
            limit,
        ));
    }
    Ok(rows)
}
