//! A node: a process of its own that writes threads, so that it can be killed or stopped.
//!
//! The trial sends orders on its stdin. The node prints the number of its acknowledged appends on
//! stdout.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use raddle_core::ThreadId;
use raddle_store::{FleetJournal, FleetOptions};
use serde::{Deserialize, Serialize};
use support::Rng;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::history::Recorder;
use crate::live::{FleetNode, FleetThread, TakePolicy};
use crate::turn::{self, Play};

/// Time between two lines with the progress.
const PROGRESS: Duration = Duration::from_millis(50);

/// Options of a node.
#[derive(Args)]
pub struct NodeProcessArgs {
    #[arg(long)]
    pub address: String,
    #[arg(long)]
    pub schema: String,
    #[arg(long)]
    pub name: String,
    #[arg(long)]
    pub seed: u64,
    /// File of its history.
    #[arg(long)]
    pub history: PathBuf,
    /// Threads of the run; orders name them by position.
    #[arg(long)]
    pub thread: Vec<ThreadId>,
    /// Offset of its clock, in milliseconds.
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub clock_offset: i64,
    /// Time for one statement, in milliseconds.
    #[arg(long)]
    pub statement_ms: u64,
}

/// An order of the trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum NodeOrder {
    /// Take a thread, unless a live node has it.
    Take { thread: usize },
    /// Take a thread from any node.
    Steal { thread: usize },
    /// Give a thread up.
    Release { thread: usize },
    /// This node is dead.
    Dead { node: String },
    /// This node is alive after all.
    Alive { node: String },
    /// End all turns, give all threads up, and exit.
    Finish,
}

impl NodeProcessArgs {
    pub fn options(&self) -> FleetOptions {
        FleetOptions {
            schema: self.schema.clone(),
            event_connections: 2,
            read_connections: 1,
            statement_max: Duration::from_millis(self.statement_ms),
            ..FleetOptions::new(&self.address)
        }
    }

    /// Opens the journal. The database may be away.
    pub async fn open(&self) -> Result<FleetNode> {
        let recorder = Recorder::open(&self.history, &self.name)?;
        let mut attempts = 0;
        let journal = loop {
            match FleetJournal::open(&self.options()).await {
                Ok(journal) => break journal,
                Err(error) if attempts == 600 => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            attempts += 1;
        };
        Ok(FleetNode {
            name: self.name.clone(),
            journal,
            recorder,
            threads: self.thread.clone(),
            dead: Mutex::new(HashSet::new()),
            clock_offset: self.clock_offset,
            acknowledged: AtomicU64::new(0),
            last_number: AtomicU64::new(0),
        })
    }

    pub async fn run(&self) -> Result<()> {
        let (sender, orders) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if let Ok(order) = serde_json::from_str::<NodeOrder>(&line) {
                    let _ = sender.send(order);
                }
            }
        });
        let node = Arc::new(self.open().await?);
        let progress = Arc::clone(&node);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PROGRESS).await;
                let mut stdout = std::io::stdout();
                let acknowledged = progress.acknowledged.load(Ordering::Relaxed);
                // The trial may have ended.
                if writeln!(stdout, "{acknowledged}").is_err() {
                    return;
                }
            }
        });
        let writers = Writers {
            node,
            seed: self.seed,
            tasks: HashMap::new(),
        };
        writers.follow(orders).await;
        Ok(())
    }
}

/// Tasks of the threads that a node writes.
struct Writers {
    node: Arc<FleetNode>,
    seed: u64,
    tasks: HashMap<usize, (watch::Sender<Play>, JoinHandle<()>)>,
}

impl Writers {
    async fn follow(mut self, mut orders: mpsc::UnboundedReceiver<NodeOrder>) {
        while let Some(order) = orders.recv().await {
            match order {
                NodeOrder::Take { thread } => self.start(thread, TakePolicy::FromDead),
                NodeOrder::Steal { thread } => self.start(thread, TakePolicy::FromAny),
                NodeOrder::Release { thread } => {
                    if let Some((play, _)) = self.tasks.get(&thread) {
                        play.send_replace(Play::Release);
                    }
                }
                NodeOrder::Dead { node } => {
                    self.dead(|dead| dead.insert(node));
                }
                NodeOrder::Alive { node } => {
                    self.dead(|dead| dead.remove(&node));
                }
                NodeOrder::Finish => {
                    for (play, task) in self.tasks.into_values() {
                        play.send_replace(Play::EndTurn);
                        // A task that panicked is one that stopped.
                        let _ = task.await;
                    }
                    return;
                }
            }
        }
    }

    fn dead(&self, change: impl FnOnce(&mut HashSet<String>) -> bool) {
        let dead = &self.node.dead;
        change(&mut dead.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn start(&mut self, thread: usize, policy: TakePolicy) {
        if let Some((_, task)) = self.tasks.get(&thread)
            && !task.is_finished()
        {
            return;
        }
        self.seed += 1;
        let (play, orders) = watch::channel(Play::GoOn);
        let (node, mut rng) = (Arc::clone(&self.node), Rng::new(self.seed));
        let task = tokio::spawn(async move {
            // The trial repeats an order that fails.
            if let Ok(Some(mut live)) = FleetThread::open(&node, thread, policy).await
                && let Err(error) = turn::play(&mut live, &mut rng, &orders).await
            {
                eprintln!("{}: thread {thread}: {error:#}", node.name);
            }
        });
        self.tasks.insert(thread, (play, task));
    }
}
