//! Hooks: the operator's commands and methods of plugins, on events of threads.
//!
//! All hooks of an event run at once, with a deadline; a command runs in the sandbox of the thread.
//! The strictest decision counts. A hook that fails decides nothing, or blocks if a plugin says so;
//! the user is notified.

mod output;
mod process;
mod warnings;

use std::sync::Arc;
use std::time::Duration;

use raddle_config::clock::now;
use raddle_config::{Hook, HookConfig, HookSet, HookTrust};
use raddle_core::ports::{
    BoxFuture, HookCall, HookEntry, HookEvent, HookLayer, HookObserver, HookOutcome, HookRuling,
    HookRun, HookRunEnd, HookRunStatus, Hooks,
};
use raddle_core::{HookPiece, ItemId};
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use self::output::Decision;
use self::warnings::ChangeWarnings;
use crate::log_budget::LogBudget;
use crate::process::ProcessStarter;
use crate::sidecar::{HOOK_TIMEOUT, PluginRegistry, SelectedHook};

/// The hooks of the configuration and of plugins.
pub struct InstalledHooks {
    config: HookConfig,
    starter: Arc<ProcessStarter>,
    plugins: PluginRegistry,
    /// Failures of hooks in the server's log.
    log_budget: LogBudget,
    /// Warnings about changed hooks and plugins.
    warnings: ChangeWarnings,
}

/// Time for the process of a plugin to start before its hook runs.
const PLUGIN_START_TIMEOUT: Duration = Duration::from_secs(15);

/// A hook that is about to run.
struct HookJob {
    run: HookRun,
    /// Name of the hook for the log.
    key: String,
    timeout: Duration,
    /// Whether a failure blocks what the hook decides on.
    blocks_on_failure: bool,
    decision: BoxFuture<'static, Decision>,
}

impl InstalledHooks {
    /// Creates the hooks; none runs before an event.
    pub fn new(config: HookConfig, starter: ProcessStarter, plugins: PluginRegistry) -> Self {
        Self {
            config,
            starter: Arc::new(starter),
            plugins,
            log_budget: LogBudget::default(),
            warnings: ChangeWarnings::default(),
        }
    }

    /// Returns all hooks that run on an event: those of the configuration first. The user is warned
    /// of those that have changed.
    async fn jobs(&self, call: HookCall, observer: &dyn HookObserver) -> Vec<HookJob> {
        let set = match self.config.is_known_empty() {
            true => HookSet::default(),
            false => self.load().await,
        };
        let mut methods = self.plugins.hooks(&call).await;
        methods.retain(|it| !it.is_disabled(&set));
        for warning in self.warnings.take(&call, &set, &self.plugins) {
            observer.warn(warning).await;
        }
        let command_count = set.hooks.len();
        let commands = selected(set, &call);
        if commands.is_empty() && methods.is_empty() {
            return Vec::new();
        }
        let input = input(&call);
        let text: Arc<[u8]> = input.to_string().into_bytes().into();
        let call = Arc::new(call);
        let commands = commands.into_iter().map(|hook| {
            let (starter, call, text) = (self.starter.clone(), call.clone(), text.clone());
            HookJob {
                run: started_run(&hook),
                key: hook.key.clone(),
                timeout: hook.timeout,
                blocks_on_failure: false,
                decision: Box::pin(async move {
                    match process::run(&starter, &hook, &call.settings, &text).await {
                        Ok(exit) => Decision::of(call.event, &exit),
                        Err(error) => Decision::failed(error.to_string()),
                    }
                }),
            }
        });
        let event = call.event;
        let mut jobs: Vec<HookJob> = commands.collect();
        for hook in methods {
            let order = command_count + hook.position();
            let order = i64::try_from(order).unwrap_or(i64::MAX);
            let input = input.clone();
            jobs.push(HookJob {
                run: plugin_run(&hook, event, order),
                key: hook.name(),
                // The plugin itself reports a hook that takes too long.
                timeout: PLUGIN_START_TIMEOUT + HOOK_TIMEOUT,
                blocks_on_failure: hook.blocks_on_failure(),
                decision: Box::pin(async move {
                    match hook.call(input, HOOK_TIMEOUT).await {
                        Ok(answer) => Decision::of_result(event, &answer),
                        Err(error) => Decision::failed(error.to_string()),
                    }
                }),
            });
        }
        jobs
    }

    /// Returns the hooks of the configuration.
    async fn load(&self) -> HookSet {
        let config = self.config.clone();
        let loaded = tokio::task::spawn_blocking(move || config.load()).await;
        let set = loaded.unwrap_or_default();
        for error in &set.errors {
            let (path, error) = (error.path.display(), &error.message);
            tracing::warn!(%path, error, "a file of hooks cannot be used");
        }
        set
    }
}

/// Returns the commands that run on an event. Logs those that the user has to trust first.
fn selected(set: HookSet, call: &HookCall) -> Vec<Hook> {
    let mut hooks = set.hooks;
    hooks.retain(|it| it.event == call.event && it.enabled && it.selects(&call.subjects));
    for hook in hooks.iter().filter(|it| !it.may_run()) {
        let why = match hook.trust() {
            HookTrust::Modified => "it has changed since it was trusted",
            _ => "it is not trusted",
        };
        let key = &hook.key;
        tracing::warn!(
            key,
            why,
            "a hook does not run; `raddle hooks trust` trusts it"
        );
    }
    hooks.retain(Hook::may_run);
    hooks
}

impl Hooks for InstalledHooks {
    fn run<'a>(
        &'a self,
        call: HookCall,
        observer: &'a dyn HookObserver,
    ) -> BoxFuture<'a, HookOutcome> {
        Box::pin(async move {
            let jobs = self.jobs(call, observer).await;
            let mut runs = JoinSet::new();
            for (at, job) in jobs.into_iter().enumerate() {
                let started = Instant::now();
                observer.observe(job.run.clone()).await;
                runs.spawn(async move {
                    let decision = match timeout(job.timeout, job.decision).await {
                        Ok(decision) => decision,
                        Err(_) => {
                            let seconds = job.timeout.as_secs();
                            Decision::failed(format!("it was ended after {seconds} s"))
                        }
                    };
                    let decision = match job.blocks_on_failure {
                        true => decision.blocking_if_failed(&job.key),
                        false => decision,
                    };
                    (at, started, job.run, job.key, decision)
                });
            }
            let mut decisions = Vec::new();
            while let Some(joined) = runs.join_next().await {
                let Ok((at, started, run, key, decision)) = joined else {
                    continue;
                };
                for entry in &decision.entries {
                    if let HookEntry::Error(error) = entry
                        && self.log_budget.take(std::time::Instant::now()).is_some()
                    {
                        tracing::warn!(key, error, "a hook failed");
                    }
                }
                observer
                    .observe(ended_run(run.clone(), started, &decision))
                    .await;
                decisions.push((at, run.id, decision));
            }
            // In the order of the configuration, whichever ended first.
            decisions.sort_by_key(|(at, ..)| *at);
            outcome(decisions)
        })
    }

    fn is_empty(&self) -> bool {
        self.config.is_known_empty() && self.plugins.is_known_empty()
    }
}

/// Joins the decisions of all hooks.
fn outcome(decisions: Vec<(usize, String, Decision)>) -> HookOutcome {
    let mut outcome = HookOutcome::default();
    for (_, run, decision) in decisions {
        let before = outcome.ruling.clone();
        outcome.ruling = outcome.ruling.stricter(decision.ruling);
        if outcome.ruling != before {
            outcome.ruled_by = Some(run.clone());
        }
        if let Some(input) = decision.updated_input {
            // Two changes cannot be joined.
            match &outcome.updated_input {
                None => outcome.updated_input = Some(input),
                Some(first) if *first == input => {}
                Some(_) => {
                    let why = "Two hooks change the input of this call in different ways.";
                    let deny = HookRuling::Deny(why.to_owned());
                    outcome.ruling = outcome.ruling.stricter(deny);
                }
            }
        }
        let text = decision.context;
        outcome
            .context
            .extend(text.map(|text| HookPiece { run, text }));
    }
    outcome
}

/// Returns the input of a hook: the members of every event, and those of this one.
fn input(call: &HookCall) -> Value {
    let mut members = Map::new();
    let mut set = |name: &str, value: Value| members.insert(name.to_owned(), value);
    set("session_id", call.thread.to_string().into());
    if let Some(turn) = &call.turn {
        set("turn_id", turn.to_string().into());
    }
    set("transcript_path", Value::Null);
    set("cwd", call.settings.cwd.as_str().into());
    set("hook_event_name", call.event.name().into());
    set(
        "model",
        call.settings.model.as_deref().unwrap_or_default().into(),
    );
    set("permission_mode", "default".into());
    members.extend(call.input.clone());
    Value::Object(members)
}

fn started_run(hook: &Hook) -> HookRun {
    HookRun {
        id: ItemId::mint().to_string(),
        event: hook.event,
        display_order: hook.display_order,
        layer: hook.layer,
        source_path: hook.source_path.display().to_string(),
        status_message: hook.status_message.clone(),
        started_at: now().seconds(),
        end: None,
    }
}

fn plugin_run(hook: &SelectedHook, event: HookEvent, display_order: i64) -> HookRun {
    HookRun {
        id: ItemId::mint().to_string(),
        event,
        display_order,
        layer: HookLayer::Plugin,
        source_path: hook.manifest_path().display().to_string(),
        status_message: None,
        started_at: now().seconds(),
        end: None,
    }
}

fn ended_run(mut run: HookRun, started: Instant, decision: &Decision) -> HookRun {
    run.end = Some(HookRunEnd {
        completed_at: now().seconds(),
        duration_ms: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
        status: match (&decision.ruling, decision.has_failed()) {
            (_, true) => HookRunStatus::Failed,
            (HookRuling::Pass, false) => HookRunStatus::Completed,
            (HookRuling::Ask(_) | HookRuling::Deny(_), false) => HookRunStatus::Blocked,
        },
        entries: decision.entries.clone(),
    });
    run
}
