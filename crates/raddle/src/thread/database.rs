//! `raddle thread` on the database that `[store]` in the configuration names.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use raddle_config::{PostgresStore, StoreSetting};
use raddle_core::ports::{ItemEntry, ListQuery, Page, PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Base, Record, Seq, ThreadId, TurnId};
use raddle_store::ThreadStore;
use tokio::runtime::Runtime;

use super::show::{PAGE_BYTES, ThreadView};
use super::verify::Verifier;
use super::{export, import, list, move_to, show, unarchive};
use crate::cli::ThreadCommand;
use crate::home::Home;
use crate::{postgres, runtime};

/// Threads of a page, when all are listed.
const PAGE: usize = 500;

pub(super) fn run(home: &Home, command: &ThreadCommand) -> Result<ExitCode> {
    let database = match postgres::configured_store(home, Vec::new())? {
        StoreSetting::Postgres(store) => Database {
            runtime: runtime::current_thread()?,
            store,
        },
        StoreSetting::Local => bail!("the configuration names no database any more"),
    };
    let runtime = &database.runtime;
    match command {
        ThreadCommand::Move(args) => move_to::run(home, args),
        // A server does it.
        ThreadCommand::Unarchive(args) => unarchive::restore(id(&args.id)?),
        ThreadCommand::Delete(_) => bail!(
            "the threads are in a database, and a server on another machine may have this one; delete it \
             with a client of a server"
        ),
        ThreadCommand::List(args) => list::print(args, |query, text| {
            let store = database.open()?;
            let page = match text {
                None => runtime.block_on(store.list(query.clone())),
                Some(text) => list::search_all(query, |query: &ListQuery| {
                    runtime.block_on(store.search(text.to_owned(), query.clone()))
                }),
            };
            Ok(page?)
        }),
        ThreadCommand::Show(args) => {
            let thread = id(&args.id)?;
            let store = &*database.open()?;
            let view = StoredThread {
                store,
                thread,
                runtime,
            };
            show::print(&view, thread, args)
        }
        ThreadCommand::Export(args) => {
            let store = &*database.open()?;
            let threads = match args.all {
                true => runtime.block_on(listed(store))?,
                false => ids(&args.ids)?,
            };
            export::write_files(args, &threads, false, &mut |thread, out, extent| {
                runtime.block_on(raddle_store::export(store, thread, out, extent))
            })
        }
        ThreadCommand::Import(args) => import::read(args, |file, options| {
            let store = database.open()?;
            let imported = runtime.block_on(raddle_store::import(&*store, file, options));
            imported.map_err(import::failed)
        }),
        ThreadCommand::Verify(args) => {
            let store = &*database.open()?;
            let threads = match args.ids.is_empty() {
                true => runtime.block_on(move_to::all(store))?,
                false => ids(&args.ids)?,
            };
            let mut verifier = Verifier::new(args);
            for thread in threads {
                match runtime.block_on(raddle_store::verify(store, thread)) {
                    // The thread was deleted meanwhile.
                    Err(ReadError::NotFound) if args.ids.is_empty() => {}
                    report => {
                        let report = report.with_context(|| format!("thread {thread}"))?;
                        verifier.report(&report)?;
                    }
                }
            }
            verifier.end()
        }
    }
}

/// The database, not connected.
struct Database {
    runtime: Runtime,
    store: PostgresStore,
}

impl Database {
    fn open(&self) -> Result<Box<dyn ThreadStore>> {
        let opened = self.runtime.block_on(postgres::open(&self.store));
        opened.context("the database cannot be used; see `raddle fleet check`")
    }
}

/// Returns the threads that lists show, the oldest first.
async fn listed(store: &dyn ThreadStore) -> Result<Vec<ThreadId>> {
    let mut ids = Vec::new();
    for archived in [false, true] {
        let mut query = ListQuery {
            archived,
            oldest_first: true,
            limit: PAGE,
            ..ListQuery::default()
        };
        loop {
            let page = store.list(query.clone()).await?;
            ids.extend(page.entries.iter().map(|it| it.thread));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
    }
    Ok(ids)
}

fn ids(ids: &[String]) -> Result<Vec<ThreadId>> {
    ids.iter().map(|it| id(it)).collect()
}

/// Parses a whole id: a prefix would take a walk through all threads of the database.
fn id(id: &str) -> Result<ThreadId> {
    id.parse().map_err(|_| {
        anyhow!(
            "{id} is not the whole id of a thread; the threads are in a database, so give all of it, as \
             `raddle thread list` prints it"
        )
    })
}

/// A thread of the database.
struct StoredThread<'a> {
    store: &'a dyn ThreadStore,
    thread: ThreadId,
    runtime: &'a Runtime,
}

impl ThreadView for StoredThread<'_> {
    fn summary(&self) -> Result<Option<Summary>, ReadError> {
        let mut summary = None;
        let mut after = Seq::ZERO;
        loop {
            let page = self.records(after)?;
            let Some(last) = page.last() else {
                return Ok(summary.filter(|it: &Summary| it.thread == self.thread));
            };
            after = last.seq;
            for record in &page {
                Summary::fold(&mut summary, record);
            }
        }
    }

    fn base(&self) -> Result<Option<Base>, ReadError> {
        self.runtime.block_on(self.store.base(self.thread, None))
    }

    fn records(&self, after: Seq) -> Result<Vec<Record>, ReadError> {
        let records = self.store.read(self.thread, after, PAGE_BYTES);
        self.runtime.block_on(records)
    }

    fn turns(&self, query: &PageQuery) -> Result<Page<TurnEntry>, ReadError> {
        let turns = self.store.turns(self.thread, query.clone());
        self.runtime.block_on(turns)
    }

    fn items(&self, turn: &TurnId, query: &PageQuery) -> Result<Page<ItemEntry>, ReadError> {
        let items = self
            .store
            .items(self.thread, Some(turn.clone()), query.clone());
        self.runtime.block_on(items)
    }
}
