//! One run: nodes that write threads, one fault, and the history of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use raddle_core::ThreadId;
use raddle_core::ports::Journal;
use rustix::process::{Pid, Signal, kill_process};
use support::{ChildGuard, Rng};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::checker::{self, HistoryVerdict};
use crate::fault::Fault;
use crate::history::{self, HistoryEntry, HistoryLine, RecordNote, Recorder, notes};
use crate::live::{FleetNode, FleetThread, TakePolicy, read_all};
use crate::node::{NodeOrder, NodeProcessArgs};
use crate::proxy::{Disturbance, FaultProxy};
use crate::server::{DatabaseServer, port};
use crate::turn::{self, Play};

/// Numbers of nodes and of threads.
const NODES: usize = 3;
const THREADS: usize = 8;

/// Time between two orders to the nodes.
const TICK: Duration = Duration::from_millis(12);

/// Time after which a journal that stores nothing, or a node that does not end, has failed. A
/// fail-over takes up to 30 s, and a server that has to replay its log some more.
const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Time for one statement: much more than one takes, so that the end of a run is not late.
const STATEMENT_MS: u64 = 1000;
const CLUSTER_STATEMENT_MS: u64 = 8000;

/// State that the runs of a process share.
pub struct RunEnvironment<'a> {
    pub runtime: &'a Runtime,
    pub server: &'a DatabaseServer,
    /// Folder of the histories.
    pub folder: &'a Path,
}

/// A finished run.
pub struct RunHistory {
    pub verdict: HistoryVerdict,
    pub lines: Vec<HistoryLine>,
    pub folder: PathBuf,
}

/// A node's process.
struct NodeProcess {
    name: String,
    guard: ChildGuard,
    stdin: ChildStdin,
    acknowledged: Arc<AtomicU64>,
    is_paused: bool,
}

/// A run that goes on.
pub struct FaultRun<'a> {
    environment: &'a RunEnvironment<'a>,
    fault: Fault,
    rng: Rng,
    proxy: Option<FaultProxy>,
    template: NodeTemplate,
    recorder: Recorder,
    /// The nodes; `None` is one that was killed.
    nodes: Vec<Option<NodeProcess>>,
    started: u64,
    /// Names of dead nodes.
    dead: Vec<String>,
    /// The node that each thread is meant for.
    placement: Vec<usize>,
    /// Appends that were acknowledged to nodes that are gone.
    acknowledged: u64,
}

/// Options that all nodes of a run have in common.
struct NodeTemplate {
    address: String,
    direct: String,
    schema: String,
    seed: u64,
    folder: PathBuf,
    threads: Vec<ThreadId>,
    statement_ms: u64,
}

impl NodeTemplate {
    fn node(&self, name: &str, number: u64, clock_offset: i64) -> NodeProcessArgs {
        NodeProcessArgs {
            address: self.address.clone(),
            schema: self.schema.clone(),
            name: name.to_owned(),
            seed: self.seed * 1_000_000 + number * 10_000,
            history: self.folder.join(format!("{name}.history")),
            thread: self.threads.clone(),
            clock_offset,
            statement_ms: self.statement_ms,
        }
    }
}

/// Makes one run.
pub fn run(environment: &RunEnvironment<'_>, fault: Fault, seed: u64) -> Result<RunHistory> {
    let mut run = FaultRun::start(environment, fault, seed)?;
    let result = fault.happen(&mut run).and_then(|()| run.finish());
    // The next run begins with a healthy server, whatever happened to this one.
    if environment.server.kind.is_cluster() {
        environment.server.script("resume", &[])?;
    }
    result?;
    let logs = environment.runtime.block_on(run.final_logs())?;
    let folder = run.template.folder.clone();
    let lines = history::read(&folder)?;
    let verdict = checker::check(&lines, &logs, fault.losses());
    if verdict.violations.is_empty() {
        let drop = format!("DROP SCHEMA {} CASCADE", run.template.schema);
        environment.server.script("psql", &["-qc", &drop])?;
    } else {
        let logs = serde_json::to_vec(&logs)?;
        std::fs::write(folder.join("logs.json"), logs)?;
    }
    Ok(RunHistory {
        verdict,
        lines,
        folder,
    })
}

impl<'a> FaultRun<'a> {
    fn start(environment: &'a RunEnvironment<'a>, fault: Fault, seed: u64) -> Result<Self> {
        let folder = environment.folder.join(format!("{}-{seed}", fault.name()));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let direct = environment.server.address()?;
        let is_cluster = environment.server.kind.is_cluster();
        let (proxy, address) = if is_cluster {
            (None, direct.clone())
        } else {
            let server = port(&direct)?;
            let proxy = environment
                .runtime
                .block_on(FaultProxy::start(server, seed))?;
            let before = format!("port={server}");
            let address = direct.replace(&before, &format!("port={}", proxy.port));
            (Some(proxy), address)
        };
        let id = ThreadId::mint().to_string().to_lowercase();
        let id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
        let template = NodeTemplate {
            address,
            direct,
            schema: format!("f{id}"),
            seed,
            folder: folder.clone(),
            threads: (0..THREADS).map(|_| ThreadId::mint()).collect(),
            statement_ms: match is_cluster {
                true => CLUSTER_STATEMENT_MS,
                false => STATEMENT_MS,
            },
        };
        let mut run = Self {
            environment,
            fault,
            rng: Rng::new(seed),
            proxy,
            template,
            recorder: Recorder::open(&folder.join("trial.history"), "trial")?,
            nodes: (0..NODES).map(|_| None).collect(),
            started: 0,
            dead: Vec::new(),
            placement: (0..THREADS).map(|thread| thread % NODES).collect(),
            acknowledged: 0,
        };
        // Creates the tables, before nodes would do it at the same time.
        drop(environment.runtime.block_on(run.judge("tables").open())?);
        for node in 0..NODES {
            run.start_node(node)?;
        }
        run.recover(1)?;
        Ok(run)
    }

    /// Options of the node that the trial itself is: without a proxy.
    fn judge(&self, name: &str) -> NodeProcessArgs {
        let mut node = self.template.node(name, 9000, 0);
        node.address.clone_from(&self.template.direct);
        node.statement_ms = CLUSTER_STATEMENT_MS;
        node
    }

    pub fn start_node(&mut self, slot: usize) -> Result<()> {
        self.started += 1;
        let name = format!("node-{}", self.started);
        let offset = self.fault.clock_offset(self.started);
        let options = self.template.node(&name, self.started, offset);
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("node")
            .args(["--address", &options.address, "--schema", &options.schema])
            .args(["--name", &name, "--seed", &options.seed.to_string()])
            .arg("--history")
            .arg(&options.history)
            .args(["--clock-offset", &offset.to_string()])
            .args(["--statement-ms", &options.statement_ms.to_string()]);
        for thread in &options.thread {
            command.args(["--thread", &thread.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut guard = ChildGuard::spawn(&mut command)?;
        let stdin = guard.child.stdin.take().context("its stdin is ours")?;
        let stdout = guard.child.stdout.take().context("its stdout is ours")?;
        let acknowledged = Arc::new(AtomicU64::new(0));
        let progress = Arc::clone(&acknowledged);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                progress.store(line.parse().unwrap_or_default(), Ordering::Relaxed);
            }
        });
        self.note(format!("{name} starts"))?;
        self.nodes[slot] = Some(NodeProcess {
            name,
            guard,
            stdin,
            acknowledged,
            is_paused: false,
        });
        for node in self.dead.clone() {
            self.order(slot, &NodeOrder::Dead { node });
        }
        Ok(())
    }

    fn note(&self, what: String) -> Result<()> {
        self.recorder.record(HistoryEntry::Fault { what })
    }

    /// Sends an order to a node, unless it is paused or dead.
    fn order(&mut self, slot: usize, order: &NodeOrder) {
        if let Some(node) = &mut self.nodes[slot]
            && !node.is_paused
            && let Ok(json) = serde_json::to_string(order)
        {
            // A node that has ended is found at the end of the run.
            let _ = writeln!(node.stdin, "{json}");
        }
    }

    fn order_all(&mut self, order: &NodeOrder) {
        for slot in 0..NODES {
            self.order(slot, order);
        }
    }

    fn is_running(&self, slot: usize) -> bool {
        self.nodes[slot].as_ref().is_some_and(|it| !it.is_paused)
    }

    fn random_node(&mut self) -> usize {
        let running: Vec<usize> = (0..NODES).filter(|it| self.is_running(*it)).collect();
        *self.rng.pick(&running)
    }

    /// Lets nodes work for a random time, in milliseconds.
    pub fn work_for(&mut self, (low, high): (u64, u64)) -> Result<()> {
        let time = self.rng.range(low, high);
        self.work(Duration::from_millis(time))
    }

    pub fn work(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.tick();
        }
        Ok(())
    }

    /// Lets nodes work until so many more appends are acknowledged.
    pub fn recover(&mut self, appends: u64) -> Result<()> {
        let (start, before) = (Instant::now(), self.acknowledged());
        while self.acknowledged() < before + appends {
            if start.elapsed() > STALL_TIMEOUT {
                bail!("the journal stored nothing for {STALL_TIMEOUT:?}");
            }
            self.tick();
        }
        self.note(format!("{appends} appends after {:?}", start.elapsed()))
    }

    fn acknowledged(&self) -> u64 {
        let nodes = self.nodes.iter().flatten();
        let current = nodes.map(|it| it.acknowledged.load(Ordering::Relaxed));
        self.acknowledged + current.sum::<u64>()
    }

    /// Sends the next order: a thread goes on, moves, or is taken from a live node.
    fn tick(&mut self) {
        let thread = self.rng.index(THREADS);
        let choice = self.rng.below(100);
        if choice >= 85 || !self.is_running(self.placement[thread]) {
            let former = self.placement[thread];
            self.placement[thread] = self.random_node();
            if choice < 98 {
                self.order(former, &NodeOrder::Release { thread });
            }
        }
        let order = match choice {
            98.. => NodeOrder::Steal { thread },
            _ => NodeOrder::Take { thread },
        };
        self.order(self.placement[thread], &order);
        std::thread::sleep(TICK);
    }

    /// Kills a random node, and returns its slot.
    pub fn kill_node(&mut self) -> Result<usize> {
        let slot = self.random_node();
        if let Some(mut node) = self.nodes[slot].take() {
            node.guard.kill()?;
            self.note(format!("{} was killed", node.name))?;
            self.acknowledged += node.acknowledged.load(Ordering::Relaxed);
            self.dead.push(node.name.clone());
            self.order_all(&NodeOrder::Dead { node: node.name });
        }
        Ok(slot)
    }

    /// Stops a random node, which the others take for dead, and returns its slot.
    pub fn pause_node(&mut self) -> Result<usize> {
        let slot = self.random_node();
        self.signal(slot, Signal::STOP)?;
        Ok(slot)
    }

    pub fn resume_node(&mut self, slot: usize) -> Result<()> {
        self.signal(slot, Signal::CONT)
    }

    fn signal(&mut self, slot: usize, signal: Signal) -> Result<()> {
        let Some(node) = &mut self.nodes[slot] else {
            return Ok(());
        };
        kill_process(Pid::from_child(&node.guard.child), signal)?;
        node.is_paused = signal == Signal::STOP;
        let (name, is_paused) = (node.name.clone(), node.is_paused);
        self.note(format!("{name} got {signal:?}"))?;
        let node = name;
        self.order_all(&match is_paused {
            true => NodeOrder::Dead { node },
            false => NodeOrder::Alive { node },
        });
        Ok(())
    }

    /// Disturbs connections for a time.
    pub fn disturb(&mut self, disturbance: Disturbance, time: Duration) -> Result<()> {
        self.work_for((100, 400))?;
        self.set_disturbance(disturbance);
        self.work(time)?;
        self.set_disturbance(Disturbance::None);
        let disturbed = self.proxy.as_ref().map_or(0, FaultProxy::disturbed);
        self.note(format!("{disturbed} requests or answers were disturbed"))?;
        self.work_for((100, 400))
    }

    fn set_disturbance(&self, disturbance: Disturbance) {
        if let Some(proxy) = &self.proxy {
            proxy.disturb(disturbance);
        }
    }

    pub fn set_clock(&mut self, offset: &str) -> Result<()> {
        self.note(format!("the clock of the server is {offset}"))?;
        self.environment.server.set_clock(offset)
    }

    pub fn script(&mut self, verb: &str) -> Result<()> {
        self.script_with(verb, &[])
    }

    /// Runs the script of the server while the nodes work.
    pub fn script_with(&mut self, verb: &str, arguments: &[&str]) -> Result<()> {
        self.note(format!("{verb} {arguments:?} begins"))?;
        let server = self.environment.server;
        let output = std::thread::scope(|scope| {
            let script = scope.spawn(|| server.script(verb, arguments));
            while !script.is_finished() {
                self.tick();
            }
            script
                .join()
                .unwrap_or_else(|_| bail!("the script panicked"))
        })?;
        self.note(format!("{verb} ended: {output}"))
    }

    /// Ends all nodes in peace.
    fn finish(&mut self) -> Result<()> {
        self.order_all(&NodeOrder::Finish);
        let end = Instant::now() + STALL_TIMEOUT;
        for node in self.nodes.iter_mut().flatten() {
            loop {
                if let Some(status) = node.guard.child.try_wait()? {
                    if !status.success() {
                        bail!("{} ended with {status}", node.name);
                    }
                    break;
                }
                if Instant::now() > end {
                    bail!("{} does not end", node.name);
                }
                std::thread::sleep(TICK);
            }
        }
        Ok(())
    }

    /// Takes all threads, ends their turns, and returns their logs.
    async fn final_logs(&self) -> Result<BTreeMap<usize, Vec<RecordNote>>> {
        let judge = self.judge("judge").open().await?;
        let mut logs = BTreeMap::new();
        for slot in 0..THREADS {
            let end = Instant::now() + STALL_TIMEOUT;
            while let Err(error) = self.end_turn(&judge, slot).await {
                if Instant::now() > end {
                    return Err(error.context(format!("thread {slot} cannot be taken")));
                }
                tokio::time::sleep(TICK).await;
            }
            let (id, journal) = (self.template.threads[slot], &judge.journal);
            let head = journal.head(id).await?;
            logs.insert(slot, notes(&read_all(journal, id, head).await?));
        }
        Ok(logs)
    }

    async fn end_turn(&self, judge: &FleetNode, slot: usize) -> Result<()> {
        let live = FleetThread::open(judge, slot, TakePolicy::FromAny).await?;
        let mut live = live.context("another node has the thread")?;
        let (_sender, orders) = watch::channel(Play::EndTurn);
        let mut rng = Rng::new(self.template.seed * 1_000_000 + 999_000 + slot as u64);
        turn::play(&mut live, &mut rng, &orders).await?;
        match live.ended {
            Some(raddle_core::WriterEnd::Released) => Ok(()),
            ended => bail!("the trial lost the thread: {ended:?}"),
        }
    }
}
