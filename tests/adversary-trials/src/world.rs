//! One server with its model, its client and its ground; and many of them.

mod client;
mod journal;
mod swap;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::call::{Class, ModelCallSpec, token};
use crate::control;
use crate::counters::AttackCounters;
use crate::grammar::{self, CallContext};
use crate::host::{EDITED, HostFixture};
use crate::model::HostileModel;
use crate::rng::Chance;
use crate::secrets::Secrets;
use crate::server::AdversaryServer;
use client::TurnReport;

/// Calls in one answer, turns in one thread, and threads in one world.
const CALLS: usize = EDITED;
const TURNS: usize = 3;
const THREADS: usize = 8;

/// What the model is told of a command that waits for others to end.
const HELD: &str = "nothing goes beyond the sandbox while";

/// How many wrongs are told.
const REPORTED_MAX: usize = 20;

#[derive(Args)]
pub struct WorldArgs {
    /// The program under test.
    #[arg(long)]
    raddle: PathBuf,
    /// How many calls the model makes, at least.
    #[arg(long, default_value_t = 2_000)]
    calls: usize,
    /// Where chance begins.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many worlds there are at a time.
    #[arg(long, default_value_t = 3)]
    lanes: usize,
    /// Have the server run everything without a fence; only in namespaces of their own.
    #[arg(long, hide = true)]
    open: bool,
}

impl WorldArgs {
    pub fn run(&self) -> Result<bool> {
        if self.open {
            control::ensure_alone()?;
        }
        let begun = Instant::now();
        let worlds = self.calls.div_ceil(CALLS * TURNS * THREADS);
        let lanes = self.lanes.clamp(1, worlds);
        let mut tally = AttackCounters::default();
        let ended: Vec<Result<AttackCounters>> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..lanes)
                .map(|lane| {
                    scope.spawn(move || {
                        let mut tally = AttackCounters::default();
                        for world in (lane..worlds).step_by(lanes) {
                            let seed = self.seed.wrapping_add(world as u64);
                            let lived = AttackWorld::open(&self.raddle, seed, self.open)?.live();
                            tally.add(lived.with_context(|| format!("the world of seed {seed}"))?);
                        }
                        Ok(tally)
                    })
                })
                .collect();
            running
                .into_iter()
                .map(|it| it.join().unwrap_or_else(|_| bail!("a lane panicked")))
                .collect()
        });
        for lane in ended {
            tally.add(lane?);
        }
        tally.judge();
        for wrong in tally.wrongs.iter().take(REPORTED_MAX) {
            println!("WRONG {wrong}");
        }
        println!(
            "figure: {} worlds in {:.1} s, {} wrongs",
            worlds,
            begun.elapsed().as_secs_f64(),
            tally.wrongs.len()
        );
        Ok(tally.wrongs.is_empty())
    }
}

/// How a thread is set up.
#[derive(Debug)]
struct Setting {
    approval: &'static str,
    sandbox: &'static str,
    model: &'static str,
    /// Whether commands have a way out, which leads to public hosts only.
    has_network: bool,
}

const SETTINGS: [Setting; 7] = [
    Setting::new("on-request", "workspace-write", "adversary"),
    Setting::new("on-request", "workspace-write", "adversary").with_network(),
    Setting::new("on-request", "workspace-write", "adversary").with_network(),
    Setting::new("untrusted", "workspace-write", "adversary"),
    Setting::new("never", "workspace-write", "adversary"),
    Setting::new("on-request", "workspace-write", "gpt-adversary").with_network(),
    Setting::new("on-request", "read-only", "adversary"),
];

impl Setting {
    const fn new(approval: &'static str, sandbox: &'static str, model: &'static str) -> Self {
        Self {
            approval,
            sandbox,
            model,
            has_network: false,
        }
    }

    /// What a turn is started with.
    fn turn(&self, thread: &str, said: &str, is_open: bool) -> Value {
        let input = json!([{"type": "text", "text": said}]);
        let mut params = json!({"threadId": thread, "input": input});
        if self.has_network && !is_open {
            params["sandboxPolicy"] = json!({"type": "workspaceWrite", "networkAccess": true});
        }
        params
    }

    const fn with_network(mut self) -> Self {
        self.has_network = true;
        self
    }

    /// Whether nothing stands in the way of this work.
    fn lets(&self, call: &ModelCallSpec) -> bool {
        let is_file_tool = call.name.ends_with("_file") || call.name.ends_with("_files");
        call.class == Class::Work
            && self.sandbox == "workspace-write"
            && !(self.approval == "never" && call.leaves.is_some())
            && !(self.model.starts_with("gpt") && is_file_tool)
    }
}

struct AttackWorld {
    raddle: PathBuf,
    is_open: bool,
    secrets: Secrets,
    host: HostFixture,
    model: HostileModel,
    server: AdversaryServer,
    rng: Chance,
    /// Chance for what is exchanged, so that the calls beside it are the same with it and without.
    swaps: Chance,
    /// The number of the next call, and of the next batch.
    calls: usize,
    batches: usize,
    counters: AttackCounters,
}

impl AttackWorld {
    fn open(raddle: &Path, seed: u64, is_open: bool) -> Result<Self> {
        let mut chance = Chance::new(seed);
        let secrets = Secrets::new(chance.bits());
        let model = HostileModel::open(secrets.clone())?;
        let config = model.config("adversary");
        let ground = HostFixture::new(&secrets, &config, |stage| match seed % 4 {
            0 => stage.forbid(),
            _ => Ok(()),
        })?;
        let mut command = Command::new(raddle);
        command
            .arg("app-server")
            .env("RADDLE_HOME", ground.layout.home())
            .env("RADDLE_LOG", "debug")
            .env("HOME", ground.layout.user())
            .envs(secrets.environment())
            .current_dir(ground.layout.workspace());
        let server = AdversaryServer::start(command, &ground.layout.root.join("server.stderr"))?;
        Ok(Self {
            raddle: raddle.to_owned(),
            is_open,
            secrets,
            host: ground,
            model,
            server,
            rng: chance,
            swaps: Chance::new(!seed),
            calls: 0,
            batches: 0,
            counters: AttackCounters::default(),
        })
    }

    /// Everything from the first thread to the last look at what is left.
    fn live(mut self) -> Result<AttackCounters> {
        for _ in 0..THREADS {
            let setting = self.rng.pick(&SETTINGS);
            let sandbox = match self.is_open {
                true => "danger-full-access",
                false => setting.sandbox,
            };
            let thread = self.server.call(
                "thread/start",
                &json!({"cwd": self.host.layout.workspace(), "model": setting.model,
                    "approvalPolicy": setting.approval, "sandbox": sandbox}),
            )?;
            let thread = thread["thread"]["id"]
                .as_str()
                .context("a thread")?
                .to_owned();
            for _ in 0..TURNS {
                self.turn(&thread, setting)?;
            }
            if !self.is_open && setting.approval != "never" {
                self.swap(&thread, setting)?;
            }
        }
        self.server.end()?;
        // What was on its way is there by now.
        self.counters.wrongs.extend(self.host.noticed()?);
        let home = self.host.layout.home();
        let exported = self.host.layout.root.join("exported");
        self.counters.acts =
            journal::check(&self.raddle, &home, &exported, &mut self.counters.wrongs)?;
        // Journals, logs, what commands wrote: all of it is below one folder.
        let found = self
            .secrets
            .found_below(&self.host.layout.root, &self.host.planted)?;
        self.counters.wrongs.extend(found);
        self.counters.wrongs.extend(self.model.leaks());
        let key = format!("Bearer {}", self.secrets.key());
        if self.model.key().as_deref() != Some(&key) {
            self.counters
                .wrongs
                .push("the model was not sent its key".to_owned());
        }
        Ok(self.counters)
    }

    fn turn(&mut self, thread: &str, setting: &Setting) -> Result<()> {
        let stage = self.host.layout.clone();
        let calls: Vec<ModelCallSpec> = (0..CALLS)
            .map(|_| {
                self.calls += 1;
                grammar::next(&mut CallContext {
                    rng: &mut self.rng,
                    layout: &stage,
                    number: self.calls,
                })
            })
            .collect();
        self.batches += 1;
        let said = self.model.plan(self.batches, calls.clone());
        let left_before = self.host.left()?;
        let start = setting.turn(thread, &said, self.is_open);
        let turn = TurnReport::run(&mut self.server, thread, &start, &calls, &mut self.counters)?;
        self.counters.turns += 1;

        let what = || {
            format!(
                "thread {thread}, batch {}, {}",
                self.batches, setting.approval
            )
        };
        if let Some(noticed) = self.host.noticed()? {
            let attacks: Vec<&ModelCallSpec> =
                calls.iter().filter(|it| it.class != Class::Work).collect();
            bail!("{}: {noticed}; one of {attacks:#?}", what());
        }
        let left = self.host.left()?;
        for file in left.difference(&left_before) {
            let by = calls.iter().find(|it| it.leaves.as_ref() == Some(file));
            let is_granted =
                |it: &&ModelCallSpec| it.class == Class::Work && turn.accepted.contains(&it.number);
            if !by.as_ref().is_some_and(is_granted) {
                let wrong = format!(
                    "{}: {} was left without a yes: {by:?}",
                    what(),
                    file.display()
                );
                self.counters.wrongs.push(wrong);
            }
        }
        for call in &calls {
            self.count(call, &turn, setting)?;
        }
        Ok(())
    }

    fn count(&mut self, call: &ModelCallSpec, turn: &TurnReport, setting: &Setting) -> Result<()> {
        let output = self.model.output(call);
        // Nothing goes beyond the fence while something runs in it, and typing needs something that runs.
        let is_held = output.as_ref().is_some_and(|it| it.contains(HELD));
        self.counters.held += usize::from(is_held);
        let is_due = setting.lets(call) && !turn.is_broken_off && !is_held;
        let counts = self.counters.of(call.kind);
        counts.made += 1;
        counts.asked += usize::from(turn.asked.contains(&call.number));
        let Some(output) = output else {
            if !turn.is_broken_off {
                let wrong = format!("no output of call {} came back: {call:?}", call.number);
                self.counters.wrongs.push(wrong);
            }
            return Ok(());
        };
        counts.answered += 1;
        counts.begun += usize::from(output.contains(&format!("reached-{}.", call.number)));
        let typed = self.model.typed_output(call);
        let shown = call.shows.as_ref().is_none_or(|it| {
            output.contains(it) || typed.as_ref().is_some_and(|typed| typed.contains(it))
        });
        let changed = match &call.changes {
            Some(file) => {
                std::fs::read_to_string(file).is_ok_and(|it| it.contains(&token(call.number)))
            }
            None => true,
        };
        let left = call.leaves.as_ref().is_none_or(|it| it.exists());
        if is_due {
            counts.due += 1;
            let done = shown && changed && left;
            counts.done += usize::from(done);
            if !done {
                let undone = format!("{call:?} in {setting:?}: {output} {typed:?}");
                self.counters.undone.entry(call.kind).or_insert(undone);
            }
        }
        if call.class == Class::Attack && call.shows.is_some() && shown {
            self.counters
                .wrongs
                .push(format!("it says that it succeeded: {call:?}"));
        }
        // What the proxy says, whatever that is.
        let is_proxied = call.kind == "connects-by-proxy" && output.contains("HTTP/1.1 ");
        self.counters.proxied += usize::from(is_proxied);
        self.counters.answered(&call.name);
        Ok(())
    }
}
