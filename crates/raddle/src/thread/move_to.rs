//! `raddle thread move`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use raddle_config::clock::now;
use raddle_config::{PostgresStore, Secret, StoreSetting};
use raddle_console::Printer;
use raddle_core::ThreadId;
use raddle_store::{
    Archive, LocalJournal, Options, ThreadStore, Transfer, TransferError, TransferSummary,
};
use serde_json::json;

use super::delete::is_alive;
use crate::cli::ThreadMove;
use crate::home::Home;
use crate::{log, postgres, runtime};

pub(super) fn run(home: &Home, args: &ThreadMove) -> Result<ExitCode> {
    let source = postgres::configured_store(home, Vec::new())?;
    let destination = destination(args)?;
    postgres::ensure_built_in(&destination.setting())?;
    let is_same = match (&source, &destination) {
        (StoreSetting::Local, Destination::Home(_)) => destination.is_folder(&home.threads()),
        (source, _) => *source == destination.setting(),
    };
    ensure!(!is_same, "the threads are there already");
    runtime::current_thread()?.block_on(async {
        let from = open(&source, &home.threads()).await;
        let from = from.context("the store of this home cannot be used")?;
        let ids = match args.all {
            true => all(&*from).await?,
            false => named(&source, &home.threads(), &args.ids)?,
        };
        let to = match &destination {
            Destination::Home(folder) => open(&StoreSetting::Local, folder).await,
            Destination::Database(store) => {
                open(&StoreSetting::Postgres(store.clone()), Path::new("")).await
            }
        };
        let to = to.context("the destination cannot be used")?;
        let mut printer = Printer::new();
        let mut is_complete = true;
        for id in ids {
            let moved = move_one(&*from, &*to, id, &home.threads()).await;
            match moved {
                Ok(moved) => report(&mut printer, args, id, moved)?,
                // No thread of a user, such as the copy of an interrupted move, or one that was
                // deleted meanwhile.
                Err(error) if args.all && is_missing(&error) => {}
                Err(error) => {
                    is_complete = false;
                    if args.json {
                        let line = json!({ "thread": id, "error": format!("{error:#}") });
                        printer.line(&line.to_string())?;
                    }
                    log::print_line(&format!("raddle: {id} was not moved: {error:#}"));
                }
            }
        }
        printer.flush()?;
        for store in [from, to] {
            store.close().await;
        }
        Ok(match is_complete {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    })
}

/// Where threads go.
enum Destination {
    /// The folder of a home's threads.
    Home(PathBuf),
    Database(PostgresStore),
}

impl Destination {
    fn setting(&self) -> StoreSetting {
        match self {
            Self::Home(_) => StoreSetting::Local,
            Self::Database(store) => StoreSetting::Postgres(store.clone()),
        }
    }

    fn is_folder(&self, folder: &Path) -> bool {
        let real = |it: &Path| it.canonicalize().unwrap_or_else(|_| it.to_owned());
        matches!(self, Self::Home(it) if real(it) == real(folder))
    }
}

fn destination(args: &ThreadMove) -> Result<Destination> {
    let to = &args.to;
    if to.contains("://") || to.contains("host=") {
        return Ok(Destination::Database(PostgresStore {
            address: Secret(to.clone()),
            schema: args.schema.clone(),
        }));
    }
    ensure!(
        args.schema.is_none(),
        "--schema needs the address of a database as --to"
    );
    let home = std::path::absolute(to).context("--to")?;
    ensure!(
        home.is_dir(),
        "{} is no folder; give the home that gets the threads, or the address of a database, such as \
         postgres://user:password@host/database",
        home.display()
    );
    Ok(Destination::Home(home.join("threads")))
}

async fn open(setting: &StoreSetting, folder: &Path) -> Result<Box<dyn ThreadStore>> {
    match setting {
        StoreSetting::Local => {
            let folder = folder.to_owned();
            Ok(Box::new(LocalJournal::open(&Options { folder })?))
        }
        StoreSetting::Postgres(store) => Ok(postgres::open(store).await?),
    }
}

/// Returns the ids of a store, the oldest thread first.
pub(super) async fn all(store: &dyn ThreadStore) -> Result<Vec<ThreadId>> {
    let mut ids = Vec::new();
    loop {
        let page = store.ids(ids.last().copied()).await?;
        if page.is_empty() {
            return Ok(ids);
        }
        ids.extend(page);
    }
}

fn named(source: &StoreSetting, folder: &Path, ids: &[String]) -> Result<Vec<ThreadId>> {
    let archive = match source {
        StoreSetting::Local => Archive::open(folder)?,
        StoreSetting::Postgres(_) => None,
    };
    let named = |id: &String| match &archive {
        Some(archive) => super::find(archive, id),
        None => id
            .parse()
            .map_err(|_| anyhow!("{id} is not the whole id of a thread")),
    };
    ids.iter().map(named).collect()
}

async fn move_one(
    from: &dyn ThreadStore,
    to: &dyn ThreadStore,
    id: ThreadId,
    folder: &Path,
) -> Result<TransferSummary> {
    let transfer = Transfer::open(from, to, id).await?;
    if let Some(node) = transfer.owner()
        && is_alive(folder, node)?
    {
        bail!("a running server has it (node {node}); stop that server first");
    }
    Ok(transfer.run(now()).await?)
}

fn is_missing(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(TransferError::NotFound))
}

fn report(
    printer: &mut Printer,
    args: &ThreadMove,
    id: ThreadId,
    moved: TransferSummary,
) -> Result<()> {
    let TransferSummary {
        head,
        records,
        blobs,
    } = moved;
    if args.json {
        let line = json!({ "thread": id, "head": head, "records": records, "blobs": blobs });
        return Ok(printer.line(&line.to_string())?);
    }
    Ok(printer.line(&format!("{id}  {records} records, {blobs} blobs"))?)
}
