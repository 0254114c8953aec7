//! A process that writes until it is killed, or until its script is over, and prints the stored
//! records.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use raddle_core::ports::{AppendError, Blobs, Journal, PageQuery, Pages};
use raddle_core::{
    Archive, Class, Command, Image, Input, Output, Record, Recovery, Rename, Revert, Seq, Settings,
    ThreadId, TurnId,
};
use raddle_store::{LocalJournal, NodeLock, Options};
use support::Rng;

use crate::content::RandomContent;
use crate::ledger::{Mark, WriterLine};
use crate::live::{AppendListener, LiveThread, Pace, fold};
use crate::turn::{self, Grain, ModelOutput};

/// Maximum number of threads of one writer.
const THREADS_MAX: usize = 4;

/// Maximum number of failures that a stubborn writer tolerates.
const FAILURES_MAX: u32 = 30;

/// Arguments of a writer.
#[derive(Clone, Debug, clap::Args)]
pub struct WriterArgs {
    /// Folder of the journal.
    #[arg(long)]
    pub home: PathBuf,
    /// Name of its node.
    #[arg(long)]
    pub node: String,
    /// Seed of its actions.
    #[arg(long)]
    pub seed: u64,
    /// Threads that it resumes.
    #[arg(long = "thread")]
    pub threads: Vec<ThreadId>,
    /// Do each action once, in order, and end; otherwise do random actions.
    #[arg(long)]
    pub once: bool,
    /// Number of random actions; without it, there is no end.
    #[arg(long)]
    pub acts: Option<usize>,
    /// Continue after a failure, from the stored state.
    #[arg(long)]
    pub stubborn: bool,
}

/// Action of a writer.
#[derive(Clone, Copy, Debug)]
enum Act {
    Start,
    Talk,
    Tool,
    LongTool,
    Image,
    Compact,
    Rename,
    Archive,
    Revert,
    Fork,
    Delete,
}

/// Each action once, in an order in which each has an effect.
const SCRIPT: [Act; 13] = [
    Act::Start,
    Act::Talk,
    Act::Tool,
    Act::Image,
    Act::LongTool,
    Act::Compact,
    Act::Start,
    Act::Talk,
    Act::Revert,
    Act::Fork,
    Act::Rename,
    Act::Archive,
    Act::Delete,
];

/// Random actions, weighted by repetition.
const RANDOM_ACTS: [Act; 20] = [
    Act::Start,
    Act::Talk,
    Act::Talk,
    Act::Talk,
    Act::Talk,
    Act::Tool,
    Act::Tool,
    Act::Tool,
    Act::Tool,
    Act::LongTool,
    Act::LongTool,
    Act::Image,
    Act::Image,
    Act::Image,
    Act::Compact,
    Act::Rename,
    Act::Archive,
    Act::Revert,
    Act::Fork,
    Act::Delete,
];

/// Prints the stored records on stdout.
#[derive(Default)]
struct StdoutReporter {
    /// Whether an append failed because the disk was full.
    was_full: bool,
}

impl StdoutReporter {
    fn report(&self, line: &WriterLine) {
        let Ok(mut text) = serde_json::to_vec(line) else {
            return;
        };
        text.push(b'\n');
        // One write, so that a line is printed whole or not at all. A closed stdout is ignored.
        let _ = std::io::stdout().write_all(&text);
        let _ = std::io::stdout().flush();
    }
}

impl AppendListener for StdoutReporter {
    fn stored(&mut self, thread: ThreadId, records: &[Record], class: Class) {
        self.report(&WriterLine::Acknowledged {
            thread,
            power: class == Class::Power,
            marks: records.iter().map(Mark::of).collect(),
        });
    }

    fn failed(&mut self, error: &AppendError, class: Class) {
        self.was_full |= matches!(error, AppendError::Full(_));
        self.report(&WriterLine::Failed {
            error: format!("{error:?}"),
            power: class == Class::Power,
        });
    }
}

impl WriterArgs {
    pub async fn run(self) -> Result<()> {
        let folder = self.home.clone();
        let store = LocalJournal::open(&Options { folder })?;
        let _lock = NodeLock::take(&self.home, &self.node)?;
        StdoutReporter::default().report(&WriterLine::Ready);
        let mut run = WriterRun {
            store: &store,
            node: self.node.clone(),
            rng: Rng::new(self.seed),
            threads: Vec::new(),
            pipe: StdoutReporter::default(),
        };
        for id in &self.threads {
            run.open_thread(*id).await?;
        }
        let mut failures = 0;
        for step in 0.. {
            let act = match SCRIPT.get(step) {
                Some(act) if self.once => *act,
                None if self.once => break,
                _ if self.acts.is_some_and(|acts| step >= acts) => break,
                _ => RANDOM_ACTS[run.rng.index(RANDOM_ACTS.len())],
            };
            let Err(error) = run.act(act).await else {
                continue;
            };
            failures += 1;
            if !self.stubborn || failures > FAILURES_MAX {
                return Err(error.context(format!("{act:?}")));
            }
            run.reopen_all().await;
        }
        run.pipe.report(&WriterLine::Done);
        Ok(())
    }
}

struct WriterRun<'a> {
    store: &'a LocalJournal,
    node: String,
    rng: Rng,
    threads: Vec<LiveThread<'a>>,
    pipe: StdoutReporter,
}

impl<'a> WriterRun<'a> {
    async fn open_thread(&mut self, id: ThreadId) -> Result<()> {
        let mut live = LiveThread::open(self.store, id, &self.node, &mut self.pipe).await?;
        // Work that the former owner left running is ended first.
        let outputs = Vec::new();
        turn::finish(
            &mut live,
            outputs,
            Grain::Fine,
            &mut self.rng,
            &mut self.pipe,
        )
        .await?;
        self.add_thread(live)
    }

    fn add_thread(&mut self, live: LiveThread<'a>) -> Result<()> {
        match &live.ended {
            Some(ended) => bail!("thread {} is over: {ended:?}", live.id),
            None => self.threads.push(live),
        }
        Ok(())
    }

    /// Ends the turn of a thread that met a full disk.
    async fn fail_turn(&mut self, id: ThreadId) -> Result<()> {
        let (node, pipe) = (&self.node, &mut self.pipe);
        if let Some(stored) = LiveThread::fail_turn(self.store, id, node, pipe).await? {
            self.pipe.report(&WriterLine::TurnFailed { stored });
        }
        Ok(())
    }

    /// Reopens every thread after a failure, from the stored state.
    async fn reopen_all(&mut self) {
        for live in std::mem::take(&mut self.threads) {
            let id = live.id;
            drop(live);
            // A thread that cannot be opened is left to the check.
            let _ = self.open_thread(id).await;
        }
    }

    async fn act(&mut self, act: Act) -> Result<()> {
        let act = match act {
            Act::Start | Act::Fork if self.threads.len() >= THREADS_MAX => Act::Delete,
            Act::Delete if self.threads.len() < 2 => Act::Start,
            act if self.threads.is_empty() && !matches!(act, Act::Start) => Act::Start,
            act => act,
        };
        let at = self.rng.index(self.threads.len());
        match act {
            Act::Start => self.start().await,
            Act::Delete => self.delete(at).await,
            Act::Fork => self.fork(at).await,
            act => {
                let mut live = self.threads.swap_remove(at);
                let id = live.id;
                let changed = self.change(&mut live, act).await;
                let result = changed.and_then(|()| self.add_thread(live));
                if result.is_err() && std::mem::take(&mut self.pipe.was_full) {
                    self.fail_turn(id).await?;
                }
                result
            }
        }
    }

    async fn start(&mut self) -> Result<()> {
        let settings = Settings {
            cwd: "/w".to_owned(),
            recovery: match self.rng.below(3) {
                0 => Some(Recovery::Continue),
                1 => Some(Recovery::Interrupt),
                _ => None,
            },
            ..Settings::default()
        };
        let id = ThreadId::mint();
        let (node, pipe) = (&self.node, &mut self.pipe);
        let live = LiveThread::start(self.store, id, node, settings, Pace::Rounds, pipe);
        let live = live.await?;
        self.add_thread(live)
    }

    async fn change(&mut self, live: &mut LiveThread<'a>, act: Act) -> Result<()> {
        let text = self.rng.text(40);
        let mut input = vec![Input::text(text)];
        let mut output = ModelOutput::default();
        match act {
            Act::Talk => {}
            Act::Tool => output.tool = Some(Output::text(self.rng.text(300))),
            // Long enough to be stored in its own file.
            Act::LongTool => output.tool = Some(Output::text(self.rng.text(70_000))),
            Act::Image => {
                let bytes = self.rng.bytes(3000);
                let thread = live.id;
                let blob = self.store.put(thread, bytes, "image/png".to_owned());
                let blob = blob.await?;
                input.push(Input::Image {
                    image: Image::Blob(blob),
                    detail: None,
                    path: None,
                });
            }
            Act::Compact => {
                return turn::compact(live, &mut self.rng, &mut self.pipe).await;
            }
            Act::Rename => {
                let name = Some(self.rng.text(12));
                let rename = Rename {
                    name,
                    principal: None,
                };
                return self.send_command(live, Command::Rename(rename)).await;
            }
            Act::Archive => {
                let archive = Archive {
                    archived: !live.thread().is_archived(),
                    principal: None,
                };
                return self.send_command(live, Command::Archive(archive)).await;
            }
            Act::Revert => return self.revert(live).await,
            Act::Start | Act::Fork | Act::Delete => return Ok(()),
        }
        for _ in 0..=self.rng.below(5) {
            output.pieces.push(self.rng.text(8));
        }
        let play = turn::play(
            live,
            input,
            vec![output],
            Grain::Fine,
            &mut self.rng,
            &mut self.pipe,
        );
        play.await.map(|_| ())
    }

    async fn send_command(&mut self, live: &mut LiveThread<'a>, command: Command) -> Result<()> {
        let reply = live.send_command(command, &mut self.pipe).await?;
        reply.map(|_| ()).context("an order was refused")
    }

    /// Reverts the newest turns.
    async fn revert(&mut self, live: &mut LiveThread<'a>) -> Result<()> {
        let Some((turn, at)) = self.some_turn(live).await? else {
            return Ok(());
        };
        let before = Seq(at.0.saturating_sub(1));
        let point = fold(self.store, live.id, Some(before))
            .await?
            .revert_point();
        let principal = None;
        let revert = Revert {
            turn,
            at,
            point,
            principal,
        };
        self.send_command(live, Command::Revert(revert)).await
    }

    /// Returns one of the newest turns and its first record.
    async fn some_turn(&mut self, live: &LiveThread<'a>) -> Result<Option<(TurnId, Seq)>> {
        let query = PageQuery {
            limit: 3,
            newest_first: true,
            ..PageQuery::default()
        };
        let mut turns = self.store.turns(live.id, query).await?.entries;
        if turns.is_empty() {
            return Ok(None);
        }
        let entry = turns.swap_remove(self.rng.index(turns.len()));
        Ok(Some((entry.turn, entry.from)))
    }

    async fn delete(&mut self, at: usize) -> Result<()> {
        let live = self.threads.swap_remove(at);
        let id = live.id;
        drop(live);
        self.pipe.report(&WriterLine::Deleting(id));
        self.store.delete(id).await?;
        self.pipe.report(&WriterLine::Deleted(id));
        Ok(())
    }

    /// Forks a thread before one of its newest turns.
    async fn fork(&mut self, at: usize) -> Result<()> {
        let live = self.threads.swap_remove(at);
        let turn = self.some_turn(&live).await?;
        let from = live.id;
        self.threads.push(live);
        let Some((_, turn)) = turn else {
            return Ok(());
        };
        let at = Seq(turn.0.saturating_sub(1));
        let to = ThreadId::mint();
        self.pipe.report(&WriterLine::Forking { from, at, to });
        let fork = LiveThread::fork(self.store, (from, at, to), &self.node, &mut self.pipe);
        let fork = fork.await?;
        self.add_thread(fork)
    }
}
